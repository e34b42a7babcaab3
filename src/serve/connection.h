#pragma once
// One connection, as httplib reads and writes it, with the limits that httplib 0.11 does not have: on the
// bytes of a request and on the time it may take in all. Otherwise one byte every few seconds would hold a
// thread for ever, and a line without an end would fill the memory.
#include <httplib.h>

#include <array>
#include <chrono>

namespace normscope::serve {

struct ConnectionLimits {
  std::size_t request_bytes = 32 << 10;
  std::chrono::milliseconds request{10'000};  // until it is read
  std::chrono::milliseconds first{4'000};     // until its first byte
  std::chrono::milliseconds stall{20'000};    // while nothing of the answer is taken
};

class Connection : public httplib::Stream {
 public:
  Connection(socket_t socket, const ConnectionLimits& limits);

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* bytes, size_t size) override;
  ssize_t write(const char* bytes, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

  // Takes what the other side still sends, for a moment: closing with bytes unread would destroy the answer.
  void linger();

 private:
  using Clock = std::chrono::steady_clock;
  bool wait(short event, std::chrono::milliseconds time) const;

  socket_t socket_;
  const ConnectionLimits& limits_;
  Clock::time_point begun_;
  std::size_t received_ = 0;
  std::array<char, 4096> buffer_{};
  std::size_t at_ = 0, filled_ = 0;
};

}  // namespace normscope::serve

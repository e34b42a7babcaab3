#pragma once
// One connection, with limits on the bytes of a request and on the time it may take in all: otherwise one
// byte every few seconds would hold a thread for ever, and a line without an end would fill the memory.
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace normscope::serve {

struct ConnectionLimits {
  std::size_t request_bytes = 32 << 10;
  std::chrono::milliseconds request{10'000};  // until it is read
  std::chrono::milliseconds first{4'000};     // until its first byte
  std::chrono::milliseconds stall{20'000};    // while nothing of the answer is taken
};

class Connection {
 public:
  // The socket stays its owner's.
  Connection(int socket, const ConnectionLimits& limits);

  enum class Head { whole, too_long, too_slow, gone };
  // Reads up to the first empty line; `head` then ends with it. gone: closed, or silent from the beginning.
  Head read_head(std::string& head);
  // Whether all of it was taken.
  bool write(std::string_view bytes);
  // Ends the answer and takes what the other side still sends, for a moment: closing with bytes unread would
  // destroy the answer.
  void linger();

 private:
  using Clock = std::chrono::steady_clock;
  bool wait(short event, std::chrono::milliseconds time) const;

  int socket_;
  const ConnectionLimits& limits_;
  Clock::time_point begun_;
};

}  // namespace normscope::serve

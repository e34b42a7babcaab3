#include "serve/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace normscope::serve {

using std::chrono::milliseconds;

Connection::Connection(socket_t socket, const ConnectionLimits& limits)
    : socket_(socket), limits_(limits), begun_(Clock::now()) {}

bool Connection::wait(short event, milliseconds time) const {
  const Clock::time_point end = Clock::now() + time;
  for (;;) {
    const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
    pollfd asked{socket_, event, 0};
    const int ready = ::poll(&asked, 1, static_cast<int>(std::max<milliseconds::rep>(0, left.count())));
    if (ready < 0 && errno == EINTR) continue;
    return ready > 0;
  }
}

bool Connection::is_readable() const {
  const auto spent = std::chrono::duration_cast<milliseconds>(Clock::now() - begun_);
  const milliseconds limit = received_ == 0 ? limits_.first : limits_.request;
  return at_ < filled_ || (spent < limit && wait(POLLIN, limit - spent));
}

bool Connection::is_writable() const {
  return wait(POLLOUT, limits_.stall);
}

ssize_t Connection::read(char* bytes, size_t size) {
  if (at_ == filled_) {
    if (received_ >= limits_.request_bytes || !is_readable()) return -1;
    const ssize_t got = ::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (got <= 0) return got;
    at_ = 0;
    filled_ = static_cast<std::size_t>(got);
    received_ += filled_;
  }
  const std::size_t taken = std::min(size, filled_ - at_);
  std::copy_n(buffer_.data() + at_, taken, bytes);
  at_ += taken;
  return static_cast<ssize_t>(taken);
}

ssize_t Connection::write(const char* bytes, size_t size) {
  for (;;) {
    if (!is_writable()) return -1;
    const ssize_t put = ::send(socket_, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    return put;
  }
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip = "127.0.0.1";  // nothing else can reach us, and nobody asks
  port = 0;
}

void Connection::get_local_ip_and_port(std::string& ip, int& port) const {
  ip = "127.0.0.1";
  port = 0;
}

void Connection::linger() {
  constexpr std::size_t most = 1 << 20;
  constexpr milliseconds moment(200);
  ::shutdown(socket_, SHUT_WR);
  const Clock::time_point end = Clock::now() + moment;
  for (std::size_t taken = 0; taken < most && Clock::now() < end;) {
    if (!wait(POLLIN, std::chrono::duration_cast<milliseconds>(end - Clock::now()))) return;
    const ssize_t got = ::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (got <= 0) return;
    taken += static_cast<std::size_t>(got);
  }
}

}  // namespace normscope::serve

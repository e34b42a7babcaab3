#include "serve/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace normscope::serve {

using std::chrono::milliseconds;

Connection::Connection(int socket, const ConnectionLimits& limits)
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

Connection::Head Connection::read_head(std::string& head) {
  constexpr std::string_view end = "\r\n\r\n";
  head.clear();
  std::array<char, 4096> piece;
  for (;;) {
    const auto spent = std::chrono::duration_cast<milliseconds>(Clock::now() - begun_);
    const milliseconds limit = head.empty() ? limits_.first : limits_.request;
    if (spent >= limit || !wait(POLLIN, limit - spent)) return head.empty() ? Head::gone : Head::too_slow;
    const ssize_t got = ::recv(socket_, piece.data(), piece.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return Head::gone;
    const std::size_t searched = head.size() - std::min(head.size(), end.size() - 1);
    head.append(piece.data(), static_cast<std::size_t>(got));
    const std::size_t found = head.find(end, searched);
    if (found != std::string::npos) {
      head.resize(found + end.size());
      return Head::whole;
    }
    if (head.size() >= limits_.request_bytes) return Head::too_long;
  }
}

bool Connection::write(std::string_view bytes) {
  while (!bytes.empty()) {
    if (!wait(POLLOUT, limits_.stall)) return false;
    const ssize_t put = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (put <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

void Connection::linger() {
  constexpr std::size_t most = 1 << 20;
  constexpr milliseconds moment(200);
  ::shutdown(socket_, SHUT_WR);
  std::array<char, 4096> piece;
  const Clock::time_point end = Clock::now() + moment;
  for (std::size_t taken = 0; taken < most && Clock::now() < end;) {
    if (!wait(POLLIN, std::chrono::duration_cast<milliseconds>(end - Clock::now()))) return;
    const ssize_t got = ::recv(socket_, piece.data(), piece.size(), MSG_DONTWAIT);
    if (got <= 0) return;
    taken += static_cast<std::size_t>(got);
  }
}

}  // namespace normscope::serve

#include "serve/server.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

#include "normscope/error.h"
#include "serve/answers.h"
#include "serve/connection.h"
#include "serve/http.h"

namespace normscope::serve {
namespace {

// Idle connections hold a thread each until their time is up; so many do not keep others waiting.
constexpr std::size_t kThreads = 128;
constexpr int kWaiting = 256;  // connections not yet accepted
constexpr std::size_t kPiece = 64 << 10;

[[noreturn]] void fail(int wanted, int reason) {
  if (reason == EADDRINUSE)
    throw InputError(fmt::format(
        "Port {} is taken by another program; name another with --port, or --port 0 for any free one.",
        wanted));
  throw Error(fmt::format("Port {} of 127.0.0.1 cannot be listened on: {}.", wanted,
                          std::generic_category().message(reason)));
}

Descriptor closed_on_exec(int number) {
  if (number >= 0) ::fcntl(number, F_SETFD, FD_CLOEXEC);
  return Descriptor(number);
}

Descriptor listening_socket(int wanted) {
  Descriptor listening = closed_on_exec(::socket(AF_INET, SOCK_STREAM, 0));
  // The port of a server that just ended is free at once. SO_REUSEPORT would let two servers share one.
  const int yes = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(wanted));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (listening.number() < 0 ||
      ::setsockopt(listening.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      ::bind(listening.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listening.number(), kWaiting) != 0 || ::fcntl(listening.number(), F_SETFL, O_NONBLOCK) != 0)
    fail(wanted, errno);
  return listening;
}

int port_of(const Descriptor& listening) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (::getsockname(listening.number(), reinterpret_cast<sockaddr*>(&address), &size) != 0) fail(0, errno);
  return ntohs(address.sin_port);
}

// As long as the file was when it was opened, even if it grows meanwhile; a file that was cut ends the
// connection.
void send_file(const File& file, Connection& connection) {
  for (std::uint64_t at = 0; at < file.size;) {
    const std::string piece = file.read(at, std::min<std::uint64_t>(file.size - at, kPiece));
    if (piece.empty() || !connection.write(piece)) return;
    at += piece.size();
  }
}

}  // namespace

// One thread accepts; so many as are needed answer, one request per connection, so that none is kept alive
// for nothing.
class Server::Listener {
 public:
  Listener(Site site, int wanted)
      : site_(std::move(site)), listening_(listening_socket(wanted)), port_(port_of(listening_)) {
    int ends[2];
    if (::pipe(ends) != 0) fail(wanted, errno);
    wake_read_ = closed_on_exec(ends[0]);
    wake_write_ = closed_on_exec(ends[1]);
  }

  int port() const { return port_; }

  void run() {
    const bool fine = accept_until_stopped();
    halt();
    for (std::thread& worker : workers_) worker.join();
    workers_.clear();
    if (!fine) throw Error("The server's socket failed; start it again.");
  }

  void halt() {
    const std::lock_guard lock(mutex_);
    if (std::exchange(stopped_, true)) return;
    for (const int open : open_) ::shutdown(open, SHUT_RDWR);
    waiting_.clear();
    changed_.notify_all();
    const char byte = 0;
    while (::write(wake_write_.number(), &byte, 1) < 0 && errno == EINTR) continue;
  }

 private:
  // False if the socket failed.
  bool accept_until_stopped() {
    for (;;) {
      pollfd asked[] = {{listening_.number(), POLLIN, 0}, {wake_read_.number(), POLLIN, 0}};
      if (::poll(asked, 2, -1) < 0 && errno != EINTR) return false;
      if (asked[1].revents != 0) return true;
      if (asked[0].revents == 0) continue;
      Descriptor accepted = closed_on_exec(::accept(listening_.number(), nullptr, nullptr));
      if (accepted.number() >= 0) {
        if (!enqueue(std::move(accepted))) return true;
      } else if (errno == EBADF || errno == EINVAL || errno == ENOTSOCK) {
        return false;
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));  // until others have been closed
      }
    }
  }

  // False once it is stopped.
  bool enqueue(Descriptor accepted) {
    const std::lock_guard lock(mutex_);
    if (stopped_) return false;
    waiting_.push_back(std::move(accepted));
    if (waiting_.size() > idle_ && workers_.size() < kThreads) {
      try {
        workers_.emplace_back([this] { work(); });
      } catch (const std::system_error&) {  // no more threads; those there are will come to it
        if (workers_.empty()) throw;
      }
    }
    changed_.notify_one();
    return true;
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      changed_.wait(lock, [&] { return stopped_ || !waiting_.empty(); });
      --idle_;
      if (stopped_) return;
      const Descriptor connected = std::move(waiting_.front());
      waiting_.pop_front();
      open_.insert(connected.number());
      lock.unlock();
      converse(connected.number());
      lock.lock();
      open_.erase(connected.number());
    }
  }

  void converse(int socket) const {
    Connection connection(socket, limits_);
    try {
      std::string head;
      const Connection::Head read = connection.read_head(head);
      if (read == Connection::Head::gone) return;
      const std::optional<Request> request =
          read == Connection::Head::whole ? parsed_request(head) : std::nullopt;
      const Answer given = request ? reply(*request) : refusal_of(read, head);
      const bool begun = connection.write(answer_head(given));
      if (begun && !(request && request->method == "HEAD")) {
        if (given.file) {
          send_file(*given.file, connection);
        } else {
          connection.write(given.body);
        }
      }
      connection.linger();
    } catch (const std::exception&) {  // no memory; the connection ends without an answer
    }
  }

  static Answer refusal_of(Connection::Head read, std::string_view head) {
    switch (read) {
      case Connection::Head::too_long:
        return head.find("\r\n") == std::string_view::npos ? refusal(414, "The address is too long.")
                                                           : refusal(431, "The request is too long.");
      case Connection::Head::too_slow:
        return refusal(408, "The request took too long.");
      default:
        return refusal(400, "The request could not be understood.");
    }
  }

  Answer reply(const Request& request) const {
    try {
      return answer(site_, port_, request);
    } catch (const std::exception&) {  // no memory, most likely; its text is not the other side's business
      return refusal(500, "The answer could not be made.");
    }
  }

  const Site site_;
  const ConnectionLimits limits_;
  const Descriptor listening_;
  const int port_;
  Descriptor wake_read_{-1}, wake_write_{-1};  // a pipe: a byte in it ends the waiting for connections

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Descriptor> waiting_;  // accepted, nobody's yet
  std::set<int> open_;              // being answered
  std::vector<std::thread> workers_;
  std::size_t idle_ = 0;
  bool stopped_ = false;
};

Server::Server(Site site, int port) : listener_(std::make_unique<Listener>(std::move(site), port)) {}
Server::~Server() = default;

int Server::port() const {
  return listener_->port();
}

void Server::run() {
  listener_->run();
}

void Server::stop() {
  listener_->halt();
}

}  // namespace normscope::serve

#include "serve/server.h"

#include <fmt/core.h>
#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

#include "normscope/error.h"
#include "serve/answers.h"
#include "serve/connection.h"

namespace normscope::serve {
namespace {

// Idle connections hold a thread each until their time is up; so many do not keep others waiting.
constexpr std::size_t kThreads = 128;
constexpr int kWaiting = 256;  // connections not yet accepted; httplib asks for 5
constexpr std::size_t kPiece = 64 << 10;

void send(Answer given, httplib::Response& response) {
  response.status = given.status;
  if (!given.policy.empty()) response.set_header("Content-Security-Policy", given.policy);
  if (!given.location.empty()) response.set_header("Location", given.location);
  if (!given.allow.empty()) response.set_header("Allow", given.allow);
  if (!given.file || given.file->size == 0) {
    if (!given.type.empty()) response.set_content(given.body, given.type);
    return;
  }
  // As long as it was when it was opened, even if it grows meanwhile; a file that was cut ends the
  // connection.
  const auto file = std::make_shared<File>(std::move(*given.file));
  response.set_content_provider(file->size, given.type,
                                [file](std::size_t offset, std::size_t length, httplib::DataSink& sink) {
                                  const std::string piece = file->read(offset, std::min(length, kPiece));
                                  return !piece.empty() && sink.write(piece.data(), piece.size());
                                });
}

}  // namespace

// httplib 0.11 with our own connections: it parses requests and writes answers, the limits are ours
// (serve/connection.h), and every connection takes one request, so that none is kept alive for nothing.
class Server::Listener : public httplib::Server {
 public:
  Listener(Site site, int wanted) : site_(std::move(site)) {
    new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    // httplib would set SO_REUSEPORT, with which two servers share a port and each gets half of the requests.
    set_socket_options([](socket_t socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      reply(request, response);
      return HandlerResponse::Handled;
    });
    // What httplib refuses itself has no body yet.
    set_error_handler([](const httplib::Request&, httplib::Response& response) {
      if (!response.has_header("Content-Security-Policy"))
        send(refusal(response.status, "The request could not be understood."), response);
    });
    set_post_routing_handler([](const httplib::Request&, httplib::Response& response) { guard(response); });
    errno = 0;
    port_ = wanted == 0 ? bind_to_any_port("127.0.0.1") : bind_to_port("127.0.0.1", wanted) ? wanted : -1;
    if (port_ <= 0) fail(wanted, errno);
    ::listen(svr_sock_, kWaiting);
  }

  int port() const { return port_; }

  void run() {
    {
      const std::lock_guard lock(mutex_);
      if (stopped_) return;
      answering_ = true;
    }
    const bool fine = listen_after_bind();
    const std::lock_guard lock(mutex_);
    if (!fine && !stopped_) throw Error("The server's socket failed; start it again.");
  }

  void halt() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
      for (const socket_t open : open_) ::shutdown(open, SHUT_RDWR);
      if (!answering_) return;
    }
    while (!is_running() && svr_sock_ != INVALID_SOCKET) std::this_thread::yield();  // it is about to be
    stop();
  }

 private:
  [[noreturn]] static void fail(int wanted, int reason) {
    if (reason == EADDRINUSE)
      throw InputError(fmt::format(
          "Port {} is taken by another program; name another with --port, or --port 0 for any free one.",
          wanted));
    throw Error(fmt::format("Port {} of 127.0.0.1 cannot be listened on: {}.", wanted,
                            std::generic_category().message(reason)));
  }

  void reply(const httplib::Request& request, httplib::Response& response) const {
    const bool one_host = request.get_header_value_count("Host") == 1;
    const std::string host = one_host ? request.get_header_value("Host") : "";
    try {
      send(answer(site_, port_, {request.method, request.target, host}), response);
    } catch (const std::exception&) {  // no memory, most likely; its text is not the other side's business
      send(refusal(500, "The answer could not be made."), response);
    }
  }

  static void guard(httplib::Response& response) {
    response.set_header("X-Content-Type-Options", "nosniff");
    response.set_header("X-Frame-Options", "DENY");
    response.set_header("Referrer-Policy", "no-referrer");
    response.set_header("Cross-Origin-Resource-Policy", "same-origin");
    response.set_header("Cross-Origin-Opener-Policy", "same-origin");
    response.set_header("Cache-Control", "no-store");
    response.headers.erase("Accept-Ranges");
  }

  // Ranges are not offered: a hundred of them in one request would be a hundred answers. Nor is compression,
  // on which httplib would spend seconds to save a copy within one machine.
  static void plain(httplib::Request& request) {
    request.ranges.clear();
    request.headers.erase("Accept-Encoding");
  }

  bool process_and_close_socket(socket_t socket) override {
    {
      const std::lock_guard lock(mutex_);
      if (stopped_) ::shutdown(socket, SHUT_RDWR);
      open_.insert(socket);
    }
    Connection connection(socket, limits_);
    bool closed = false;
    const bool fine = connection.is_readable() && process_request(connection, true, closed, plain);
    connection.linger();
    const std::lock_guard lock(mutex_);
    open_.erase(socket);
    ::close(socket);
    return fine;
  }

  const Site site_;
  const ConnectionLimits limits_;
  int port_ = 0;
  std::mutex mutex_;
  std::set<socket_t> open_;
  bool stopped_ = false, answering_ = false;
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

#include "fetch/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

#include "normscope/error.h"
#include "normscope/executor.h"

extern char** environ;

namespace normscope::fetch {
namespace {

constexpr std::size_t kMostComplaint = 1 << 14, kLongestLine = 200;
constexpr int kLook = 100;  // milliseconds: a signal interrupts poll only in the thread that it reaches

[[noreturn]] void fail(const std::string& program, int error) {
  throw Error(fmt::format("The program '{}' could not be started: {}; try again.", program,
                          std::generic_category().message(error)));
}

class Pipe {
 public:
  explicit Pipe(const std::string& program) {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) fail(program, errno);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close(0);
    close(1);
  }
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void close_write_end() { close(1); }

 private:
  void close(std::size_t end) {
    if (ends_.at(end) >= 0) ::close(ends_.at(end));
    ends_.at(end) = -1;
  }
  std::array<int, 2> ends_{};
};

// A child that is waited for even if we leave early, and is then told to stop.
class Child {
 public:
  explicit Child(pid_t id) : id_(id) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (id_ < 0) return;
    ::kill(id_, SIGKILL);
    wait();
  }
  int wait() {
    int status = 0;
    while (::waitpid(id_, &status, 0) < 0 && errno == EINTR) {
    }
    id_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t id_;
};

// The child sees nothing of ours but the two pipes, and signals act on it as usual.
int spawn(const std::vector<std::string>& arguments, const Pipe& out, const Pipe& err, pid_t& id) {
  std::vector<char*> words;
  words.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write_end(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write_end(), STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t usual;
  sigemptyset(&usual);
  for (const int signal : {SIGPIPE, SIGXFSZ}) sigaddset(&usual, signal);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const int error = ::posix_spawnp(&id, words[0], &actions, &attributes, words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

// Reads what is there; false at the end.
bool read_some(int descriptor, const std::function<void(std::span<const std::byte>)>& take) {
  std::array<std::byte, 1 << 16> buffer;
  const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (got > 0) take(std::span(buffer).first(static_cast<std::size_t>(got)));
  return got > 0;
}

// Programs warn of this and that before they say what is wrong.
std::string main_line(const std::string& text) {
  std::string last;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, std::min(end - begin, kLongestLine));
    if (line.find("rror") != std::string::npos || line.find("ERR!") != std::string::npos) return line;
    if (!line.empty()) last = line;
    begin = end + 1;
  }
  return last;
}

}  // namespace

ProgramEnd run_program(const std::vector<std::string>& arguments,
                       const std::function<void(std::span<const std::byte>)>& output,
                       const std::atomic<bool>* stop) {
  const std::string& program = arguments.at(0);
  Pipe out(program), err(program);
  pid_t id = -1;
  const int error = spawn(arguments, out, err, id);
  if (error == ENOENT) return {.found = false, .code = -1, .complaint = {}};
  if (error != 0) fail(program, error);
  Child child(id);
  out.close_write_end();
  err.close_write_end();

  std::string complaint;
  const auto take_complaint = [&](std::span<const std::byte> bytes) {
    const std::size_t room = kMostComplaint - std::min(kMostComplaint, complaint.size());
    complaint.append(reinterpret_cast<const char*>(bytes.data()), std::min(room, bytes.size()));
  };
  std::array<pollfd, 2> ends = {pollfd{out.read_end(), POLLIN, 0}, pollfd{err.read_end(), POLLIN, 0}};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {  // poll passes over those below 0
    const int ready = ::poll(ends.data(), ends.size(), kLook);
    if (ready < 0 && errno != EINTR) fail(program, errno);
    if (stop != nullptr && stop->load(std::memory_order_relaxed)) throw Cancelled();
    if (ready <= 0) continue;
    if (ends[0].revents != 0 && !read_some(ends[0].fd, output)) ends[0].fd = -1;
    if (ends[1].revents != 0 && !read_some(ends[1].fd, take_complaint)) ends[1].fd = -1;
  }
  return {.found = true, .code = child.wait(), .complaint = main_line(complaint)};
}

}  // namespace normscope::fetch

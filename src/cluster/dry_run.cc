#include "cluster/dry_run.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <exception>

#include "normscope/error.h"
#include "normscope/executor.h"

namespace normscope {
namespace {

constexpr double kBytesOfMegabyte = 1 << 20;
constexpr std::size_t kLongestSentence = 2048;
constexpr double kRefusal = -1;  // in the place of a share: a sentence follows, in one piece with it

using Work = std::function<void(const std::function<void(double)>& tell)>;

[[noreturn]] void be_the_child(const Work& work, int to) {
  const int nowhere = ::open("/dev/null", O_WRONLY);
  ::dup2(nowhere, STDOUT_FILENO);
  const auto tell = [&](const void* bytes, std::size_t size) {
    [[maybe_unused]] const auto told = ::write(to, bytes, size);
  };
  int code = 0;
  try {
    work([&](double share) { tell(&share, sizeof share); });
  } catch (const std::exception& error) {
    std::string bytes(reinterpret_cast<const char*>(&kRefusal), sizeof kRefusal);
    bytes += std::string(error.what()).substr(0, kLongestSentence);
    tell(bytes.data(), bytes.size());
    code = 2;
  }
  ::_exit(code);
}

struct Pipe {
  int from = -1, to = -1;

  Pipe() {
    int ends[2] = {};
    if (::pipe(ends) != 0) throw Error("The dry run could not be started.");
    from = ends[0], to = ends[1];
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    ::close(from);
    ::close(to);
  }
};

}  // namespace

DryRun dry_run(const Work& work, double seconds, const std::function<bool()>& stopped) {
  const Pipe pipe;
  const pid_t child = ::fork();
  if (child < 0) throw Error("The dry run could not be started.");
  if (child == 0) be_the_child(work, pipe.to);
  ::fcntl(pipe.from, F_SETFL, O_NONBLOCK);

  const auto start = std::chrono::steady_clock::now();
  DryRun found;
  double first_share = 0, first_seconds = 0;
  rusage usage{};
  bool failed = false;
  while (true) {
    double share = 0;
    found.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    while (::read(pipe.from, &share, sizeof share) == static_cast<ssize_t>(sizeof share)) {
      if (share < 0) {
        char text[kLongestSentence];
        const ssize_t size = ::read(pipe.from, text, sizeof text);
        found.refused.assign(text, size > 0 ? static_cast<std::size_t>(size) : 0);
        break;
      }
      if (found.share == 0) first_share = share, first_seconds = found.seconds;
      found.share = std::max(found.share, share);
    }
    if (found.ended) {
      if (failed && found.refused.empty()) found.refused = "The command was killed in its dry run.";
      break;
    }
    int status = 0;
    if (::wait4(child, &status, WNOHANG, &usage) == child) {
      found.ended = true;  // once more, for its last words
      failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
      continue;
    }
    const bool asked_to_stop = stopped();
    if (asked_to_stop || found.seconds >= seconds) {
      ::kill(child, SIGKILL);
      ::wait4(child, &status, 0, &usage);
      if (asked_to_stop) throw Cancelled();
      break;
    }
    ::usleep(10'000);
  }
  found.megabytes = static_cast<double>(usage.ru_maxrss) * 1024 / kBytesOfMegabyte;
  // What it takes to begin is not work that is shared.
  if (!found.ended && found.share > first_share)
    found.seconds =
        first_seconds + (found.seconds - first_seconds) * (1 - first_share) / (found.share - first_share);
  return found;
}

}  // namespace normscope

#include "record/run_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <ctime>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "core/printable.h"
#include "normscope/error.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kRenewed(30);
constexpr std::time_t kStale = 300;  // seconds

std::string this_host() {
  char host[256] = {};
  return ::gethostname(host, sizeof host - 1) == 0 ? host : "?";
}

struct Holder {
  std::string host;
  long pid = 0;
};

std::optional<Holder> holder_of(int descriptor) {
  char text[512] = {};
  const ssize_t size = ::pread(descriptor, text, sizeof text - 1, 0);
  if (size <= 0) return std::nullopt;
  const std::string_view all(text, static_cast<std::size_t>(size));
  const std::size_t space = all.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  Holder holder{std::string(all.substr(0, space)), 0};
  std::from_chars(all.data() + space + 1, all.data() + all.size(), holder.pid);
  return holder.pid > 0 ? std::optional(holder) : std::nullopt;
}

bool alive(long pid) {
  return ::kill(static_cast<pid_t>(pid), 0) == 0 || errno != ESRCH;
}

}  // namespace

struct RunLock::Held {
  fs::path path;
  int descriptor = -1;
  const pid_t process = ::getpid();
  std::mutex mutex;
  std::condition_variable ends;
  bool ended = false;
  std::thread renewing;

  Held(fs::path at, int opened) : path(std::move(at)), descriptor(opened) {
    renewing = std::thread([this] {
      std::unique_lock lock(mutex);
      while (!ends.wait_for(lock, kRenewed, [this] { return ended; })) ::futimens(descriptor, nullptr);
    });
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    {
      const std::lock_guard lock(mutex);
      ended = true;
    }
    ends.notify_all();
    renewing.join();
    ::unlink(path.c_str());
    ::close(descriptor);
  }
};

RunLock::RunLock(const fs::path& directory) {
  const fs::path path = directory / kLockFile;
  while (true) {
    // A link planted there must not be followed.
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor < 0) return;  // what is to be written says why it cannot be
    struct Close {
      int descriptor;
      ~Close() {
        if (descriptor >= 0) ::close(descriptor);
      }
    } close{descriptor};
    const bool taken = ::flock(descriptor, LOCK_EX | LOCK_NB) != 0;
    const bool no_locks = taken && errno != EWOULDBLOCK;
    struct stat opened {
    }, named{};
    if (::fstat(descriptor, &opened) != 0) return;
    if (::lstat(path.c_str(), &named) != 0 || named.st_ino != opened.st_ino) continue;  // it was just let go
    const auto holder = holder_of(descriptor);
    const bool here = holder && holder->host == this_host();
    if (here && holder->pid == ::getpid()) return;
    const bool refreshed = std::time(nullptr) - opened.st_mtime < kStale;
    const bool in_use = taken && !no_locks ? true
                        : !holder          ? false
                        : here             ? no_locks && alive(holder->pid)
                                           : refreshed;
    if (in_use) {
      const std::string who =
          holder ? fmt::format("process {} on {}", holder->pid, printable(holder->host)) : "another process";
      throw InputError(fmt::format(
          "'{}' is in use by {}; wait until it ends, or name another directory (if it is dead: remove '{}').",
          directory.string(), who, path.string()));
    }
    const std::string text = fmt::format("{} {}\n", this_host(), ::getpid());
    if (::ftruncate(descriptor, 0) != 0 ||
        ::pwrite(descriptor, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
      // A full disk: what is to be written says so.
    }
    close.descriptor = -1;
    held_ = std::make_unique<Held>(path, descriptor);
    return;
  }
}

RunLock::~RunLock() {
  if (!held_ || held_->process == ::getpid()) return;
  // A child of who locked it has neither the thread nor the lock: it can only let go of its copy of the file.
  ::close(held_->descriptor);
  static_cast<void>(held_.release());  // to end it would wait for that thread
}

}  // namespace normscope

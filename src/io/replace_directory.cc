#include "io/replace_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <vector>

#include "io/file_errors.h"
#include "io/replace_file.h"
#include "normscope/error.h"

namespace normscope::io {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& label, int error) {
  const std::string reason = std::generic_category().message(error);
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      reject(label, "cannot be made: the directory it is to stand in does not exist", "create that first");
    case EACCES:
    case EPERM:
    case EROFS:
      reject(label, "cannot be made: the directory it is to stand in is not writable (" + reason + ")",
             "choose another place");
    case ENAMETOOLONG:
      reject(label, "cannot be made: its name is too long", "choose a shorter name");
    default:
      throw Error(
          fmt::format("{} could not be written: {}; free some space or choose another place", label, reason));
  }
}

// "model/" and "model" are the same; a link stands for where it leads.
fs::path resolved(const fs::path& path, const std::string& label) {
  fs::path target = path.lexically_normal();
  if (!target.has_filename()) target = target.parent_path();
  if (target.empty() || target == "." || target == ".." || !target.has_filename() ||
      path.native().find('\0') != std::string::npos)
    reject(label, "is not a directory that can be written", "name a new directory");
  std::error_code error;
  if (fs::is_symlink(target, error)) target = fs::weakly_canonical(target, error);
  if (error && error != std::errc::no_such_file_or_directory) fail(label, error.value());
  if (fs::exists(target, error) && !fs::is_directory(target, error))
    reject(label, "is a file, where a directory is to be written", "name a new directory");
  return target;
}

void sync_directory(const fs::path& directory) {
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);  // some file systems cannot; the files in it are whole either way
  ::close(descriptor);
}

// As file temporaries are: locked as long as it is filled, so that one that is not is stale.
class TemporaryDirectory {
 public:
  TemporaryDirectory(const fs::path& parent, const std::string& label) {
    static std::atomic<unsigned> counter{0};
    for (;;) {
      path_ = parent / temporary_name(counter++);
      if (::mkdir(path_.c_str(), 0777) != 0) {
        if (errno == EEXIST || errno == EINTR) continue;
        fail(label, errno);
      }
      descriptor_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
      struct stat status {};
      // Between its making and its lock another process may have taken it for stale.
      if (descriptor_ >= 0 && ::flock(descriptor_, LOCK_EX) == 0 && ::fstat(descriptor_, &status) == 0 &&
          status.st_nlink == 0) {
        ::close(descriptor_);
        continue;
      }
      return;
    }
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  int descriptor_ = -1;
};

// Only if files are all it holds.
void remove_flat(const fs::path& directory) {
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error))
    if (entry->is_regular_file(error)) files.push_back(entry->path());
  for (const fs::path& file : files) fs::remove(file, error);
  ::rmdir(directory.c_str());
}

// Directories that a killed writer left.
void remove_stale_directories(const fs::path& parent) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error))
    if (is_temporary_name(entry->path().filename().string())) found.push_back(entry->path());
  for (const fs::path& path : found) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor < 0) continue;
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) remove_flat(path);
    ::close(descriptor);
  }
}

// Where the file system cannot exchange names, the old directory is here for a moment.
fs::path aside_of(const fs::path& target) {
  return target.parent_path() / (target.filename().string() + ".normscope-before");
}

// After a kill in that moment.
void bring_back(const fs::path& target) {
  std::error_code error;
  if (!fs::is_directory(aside_of(target), error)) return;
  if (fs::exists(target, error))
    remove_flat(aside_of(target));
  else
    fs::rename(aside_of(target), target, error);
}

bool exchange(const fs::path& one, const fs::path& other) {
#ifdef RENAME_EXCHANGE
  return ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) == 0;
#else
  static_cast<void>(one);
  static_cast<void>(other);
  return false;
#endif
}

// `made` becomes `target`; what was there goes into the room of `made`, to be removed with it.
void put_in_place(const fs::path& made, const fs::path& target, const std::string& label) {
  if (::rename(made.c_str(), target.c_str()) == 0) return;  // nothing there, or an empty directory
  if (errno != EEXIST && errno != ENOTEMPTY) fail(label, errno);
  if (exchange(made, target)) return;
  const fs::path aside = aside_of(target);
  if (::rename(target.c_str(), aside.c_str()) != 0) fail(label, errno);
  if (::rename(made.c_str(), target.c_str()) != 0) {
    const int error = errno;
    ::rename(aside.c_str(), target.c_str());
    fail(label, error);
  }
  ::rename(aside.c_str(), made.c_str());
}

}  // namespace

void replace_directory(const fs::path& path, const std::function<void(const fs::path&)>& fill) {
  const std::string label = quoted_path(path.string());
  const fs::path target = resolved(path, label);
  const fs::path parent = target.has_parent_path() ? target.parent_path() : fs::path(".");
  bring_back(target);
  remove_stale_directories(parent);
  const TemporaryDirectory made(parent, label);
  fill(made.path());
  sync_directory(made.path());
  put_in_place(made.path(), target, label);
  sync_directory(parent);
}

}  // namespace normscope::io

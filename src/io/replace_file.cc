#include "io/replace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "io/file_errors.h"
#include "normscope/error.h"

namespace normscope::io {
namespace {

namespace fs = std::filesystem;

// The call is at fault when the place cannot be written to; a full or failing disk is not.
[[noreturn]] void fail_writing(const std::string& label, int error) {
  const std::string reason = std::generic_category().message(error);
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      reject(label, "cannot be written: its directory does not exist", "create the directory first");
    case EACCES:
    case EPERM:
    case EROFS:
      reject(label, "cannot be written: its directory is not writable (" + reason + ")",
             "choose another place");
    case EISDIR:
      reject(label, "cannot be written: it is a directory", "name a file");
    case ENAMETOOLONG:
      reject(label, "cannot be written: its name is too long", "choose a shorter name");
    default:
      throw Error(
          fmt::format("{} could not be written: {}; free some space or choose another place", label, reason));
  }
}

struct Target {
  fs::path path;
  std::optional<mode_t> mode;  // of the file that is there already, which the new one keeps
};

// The file to replace: where a symbolic link leads. Only regular files are replaced; renaming over a device
// would destroy it.
Target resolve(const std::string& path, const std::string& label) {
  if (path.empty() || path == "-" || path.find('\0') != std::string::npos)
    reject(label, "is not a file that can be written", "name a file");
  std::error_code error;
  fs::path target = path;
  if (fs::is_symlink(target, error)) target = fs::weakly_canonical(target, error);
  if (error && error != std::errc::no_such_file_or_directory) fail_writing(label, error.value());
  struct stat status {};
  if (::stat(target.c_str(), &status) != 0) return {target, std::nullopt};
  if (S_ISDIR(status.st_mode)) fail_writing(label, EISDIR);
  if (!S_ISREG(status.st_mode)) reject(label, "cannot be written: it is not a regular file", "name a file");
  return {target, status.st_mode & 07777};
}

constexpr std::string_view kTemporaryBegin = ".normscope-", kTemporaryEnd = ".tmp";

// Locked as long as it is written: one that is not is stale. File systems without locks do without.
class Temporary {
 public:
  Temporary(const fs::path& directory, const std::string& label) : label_(label) {
    static std::atomic<unsigned> counter{0};
    do {
      path_ = directory / temporary_name(counter++);
      fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (fd_ < 0 ? errno == EEXIST || errno == EINTR : taken_for_stale());
    if (fd_ < 0) fail_writing(label_, errno);
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (fd_ >= 0) ::close(fd_);
    if (!renamed_) ::unlink(path_.c_str());
  }

  void set_mode(mode_t mode) {
    if (::fchmod(fd_, mode) != 0) fail_writing(label_, errno);
  }
  void append(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t put = ::write(fd_, bytes.data(), bytes.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) fail_writing(label_, errno);
      bytes = bytes.subspan(static_cast<std::size_t>(put));
    }
  }
  void rename_to(const fs::path& target) {
    if (::fsync(fd_) != 0) fail_writing(label_, errno);
    const int closed = ::close(fd_);
    fd_ = -1;
    if (closed != 0) fail_writing(label_, errno);
    if (::rename(path_.c_str(), target.c_str()) != 0) fail_writing(label_, errno);
    renamed_ = true;
  }

 private:
  // Between its making and its lock another process may have removed it.
  bool taken_for_stale() {
    struct stat status {};
    const bool gone = ::flock(fd_, LOCK_EX) == 0 && ::fstat(fd_, &status) == 0 && status.st_nlink == 0;
    if (gone) ::close(fd_);
    return gone;
  }

  std::string label_;
  fs::path path_;
  int fd_ = -1;
  bool renamed_ = false;
};

// The rename itself reaches the disk with the directory. Some file systems cannot sync one; the file is whole
// either way.
void sync_directory(const fs::path& directory) {
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

void remove_if_stale(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return;
  struct stat status {};
  if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && ::flock(fd, LOCK_EX | LOCK_NB) == 0)
    ::unlink(path.c_str());
  ::close(fd);
}

}  // namespace

std::string temporary_name(unsigned number) {
  return fmt::format("{}{}-{}{}", kTemporaryBegin, ::getpid(), number, kTemporaryEnd);
}

bool is_temporary_name(std::string_view name) {
  if (!name.starts_with(kTemporaryBegin) || !name.ends_with(kTemporaryEnd)) return false;
  name.remove_prefix(kTemporaryBegin.size());
  name.remove_suffix(std::min(name.size(), kTemporaryEnd.size()));
  const std::size_t dash = name.find('-');
  const auto is_number = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  return dash != std::string_view::npos && is_number(name.substr(0, dash)) &&
         is_number(name.substr(dash + 1));
}

void remove_stale_temporaries(const fs::path& directory) noexcept {
  try {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(directory)) {
      if (is_temporary_name(entry.path().filename().string())) found.push_back(entry.path());
    }
    for (const fs::path& path : found) remove_if_stale(path);
  } catch (const std::exception&) {  // a directory that cannot be read is not to be cleared
    return;
  }
}

void replace_file(const std::string& path, const std::function<void(const Append&)>& content) {
  const std::string label = quoted_path(path);
  const Target target = resolve(path, label);
  const fs::path directory = target.path.has_parent_path() ? target.path.parent_path() : fs::path(".");
  Temporary temporary(directory, label);
  if (target.mode) temporary.set_mode(*target.mode);
  content([&](std::span<const std::byte> bytes) { temporary.append(bytes); });
  temporary.rename_to(target.path);
  sync_directory(directory);
}

}  // namespace normscope::io

#include "io/replace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include "io/sentence.h"
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

class Temporary {
 public:
  Temporary(const fs::path& directory, const std::string& label) : label_(label) {
    static std::atomic<unsigned> counter{0};
    do {
      path_ = directory / fmt::format(".normscope-{}-{}.tmp", ::getpid(), counter++);
      fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (fd_ < 0 && (errno == EEXIST || errno == EINTR));
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

}  // namespace

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

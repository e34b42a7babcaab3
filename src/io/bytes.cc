#include "io/bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

#include "io/file_errors.h"
#include "normscope/error.h"

namespace normscope::io {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ > STDIN_FILENO) ::close(fd_);  // standard input belongs to the program
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void fail_reading(const std::string& label, int error) {
  throw Error(fmt::format("{} could not be read: {}; check the disk or the connection and try again", label,
                          std::generic_category().message(error)));
}

class MemoryBytes : public Bytes {
 public:
  MemoryBytes(std::vector<std::byte> bytes, std::string label)
      : bytes_(std::move(bytes)), label_(std::move(label)) {}
  std::uint64_t size() const override { return bytes_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> into) const override {
    if (offset > bytes_.size() || into.size() > bytes_.size() - offset)
      reject_truncated(label_, offset + into.size(), bytes_.size());
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
  }

 private:
  std::vector<std::byte> bytes_;
  std::string label_;
};

class FileBytes : public Bytes {
 public:
  FileBytes(std::unique_ptr<FileDescriptor> file, std::uint64_t size, std::string label)
      : file_(std::move(file)), size_(size), label_(std::move(label)) {}
  std::uint64_t size() const override { return size_; }
  void read(std::uint64_t offset, std::span<std::byte> into) const override {
    const std::uint64_t end = offset + into.size();
    while (!into.empty()) {
      const ssize_t got = ::pread(file_->get(), into.data(), into.size(), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail_reading(label_, errno);
      if (got == 0) reject_truncated(label_, end, offset);
      offset += static_cast<std::uint64_t>(got);
      into = into.subspan(static_cast<std::size_t>(got));
    }
  }

 private:
  std::unique_ptr<FileDescriptor> file_;
  std::uint64_t size_;
  std::string label_;
};

std::unique_ptr<FileDescriptor> open_file(const std::string& path, const std::string& label) {
  if (path == "-") return std::make_unique<FileDescriptor>(STDIN_FILENO);
  if (path.find('\0') != std::string::npos)
    reject(label, "is not a path: it contains a zero byte", "check the path");
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fd >= 0) return std::make_unique<FileDescriptor>(fd);
  const int error = errno;
  if (error == ENOENT) reject(label, "does not exist", "check the path");
  if (error == EACCES || error == EPERM)
    reject(label, "may not be read: permission denied", "change its permissions or copy it");
  reject(label, "could not be opened: " + std::generic_category().message(error), "check the path");
}

std::vector<std::byte> read_to_end(int fd, const std::string& label, std::uint64_t max_bytes) {
  constexpr std::size_t kChunk = std::size_t{1} << 16;
  std::vector<std::byte> chunk(kChunk), bytes;
  for (;;) {
    const ssize_t got = ::read(fd, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_reading(label, errno);
    if (got == 0) return bytes;
    if (static_cast<std::uint64_t>(got) > max_bytes - bytes.size())
      reject(label, fmt::format("holds more than {} bytes, the most that is read from a stream", max_bytes),
             "save it to a file, which is read in parts, or raise the limit");
    bytes.insert(bytes.end(), chunk.begin(), chunk.begin() + got);
  }
}

}  // namespace

std::string label_of(const std::string& path) {
  return path == "-" ? "standard input" : quoted_path(path);
}

std::unique_ptr<Bytes> open_bytes(const std::string& path, std::uint64_t max_bytes) {
  const std::string label = label_of(path);
  auto file = open_file(path, label);
  struct stat status {};
  if (::fstat(file->get(), &status) != 0) fail_reading(label, errno);
  if (S_ISDIR(status.st_mode))
    reject(label, "is a directory", "name a .npy, .npz or .safetensors file in it");
  if (S_ISREG(status.st_mode) && path != "-")
    return std::make_unique<FileBytes>(std::move(file), static_cast<std::uint64_t>(status.st_size), label);
  try {
    return bytes_in_memory(read_to_end(file->get(), label, max_bytes), label);
  } catch (const std::bad_alloc&) {
    throw Error(fmt::format("{} does not fit in memory; save it to a file, which is read in parts", label));
  }
}

std::unique_ptr<Bytes> bytes_in_memory(std::vector<std::byte> bytes, const std::string& label) {
  return std::make_unique<MemoryBytes>(std::move(bytes), label);
}

ByteStream stream_of(const Bytes& bytes, std::uint64_t begin, std::uint64_t end) {
  return {end - begin, [&bytes, at = begin](std::span<std::byte> into) mutable {
            bytes.read(at, into);
            at += into.size();
          }};
}

}  // namespace normscope::io

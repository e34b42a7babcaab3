#pragma once
// What reading through libarchive shares: the reader, and where it asks for the bytes of a file.
#include <archive.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "io/bytes.h"

namespace normscope::io {

struct FreeArchive {
  void operator()(archive* reader) const { archive_read_free(reader); }
};
using ArchiveReader = std::unique_ptr<archive, FreeArchive>;

inline ArchiveReader archive_reader() {
  ArchiveReader reader(archive_read_new());
  if (!reader) throw std::bad_alloc();
  return reader;
}

// Gives the bytes of a file to libarchive, piece by piece. What went wrong with them must not pass through C:
// it is kept, and thrown by `rethrow`.
class ArchiveSource {
 public:
  explicit ArchiveSource(const Bytes& bytes) : bytes_(bytes), piece_(std::size_t{1} << 16) {}

  int open(archive* reader) { return archive_read_open(reader, this, nullptr, next, nullptr); }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  static la_ssize_t next(archive*, void* data, const void** buffer) {
    auto& source = *static_cast<ArchiveSource*>(data);
    try {
      const auto now = static_cast<std::size_t>(
          std::min<std::uint64_t>(source.piece_.size(), source.bytes_.size() - source.position_));
      source.bytes_.read(source.position_, std::span(source.piece_).first(now));
      source.position_ += now;
      *buffer = source.piece_.data();
      return static_cast<la_ssize_t>(now);
    } catch (...) {
      source.failure_ = std::current_exception();
      return ARCHIVE_FATAL;
    }
  }

  const Bytes& bytes_;
  std::uint64_t position_ = 0;
  std::vector<std::byte> piece_;
  std::exception_ptr failure_;
};

}  // namespace normscope::io

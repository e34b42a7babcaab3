#pragma once
// Where a file's bytes come from. Files are read with pread rather than mapped: a mapped file that shrinks or
// fails under us would end the process with SIGBUS, a failed pread is an error we can report. Either way only
// the parts asked for are read.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace normscope::io {

class Bytes {
 public:
  virtual ~Bytes() = default;
  virtual std::uint64_t size() const = 0;
  // Fills `into` from `offset`, or throws.
  virtual void read(std::uint64_t offset, std::span<std::byte> into) const = 0;
};

// A path, or "-" for standard input. Regular files stay on disk; anything else is read to its end, at most
// max_bytes.
std::unique_ptr<Bytes> open_bytes(const std::string& path, std::uint64_t max_bytes);
std::unique_ptr<Bytes> bytes_in_memory(std::vector<std::byte> bytes, const std::string& label);

// The label of a path in messages: quoted, or "standard input".
std::string label_of(const std::string& path);

// A run of `size` bytes read from front to back; `next` fills its span with the following bytes, or throws.
struct ByteStream {
  std::uint64_t size;
  std::function<void(std::span<std::byte>)> next;
};
ByteStream stream_of(const Bytes& bytes, std::uint64_t begin, std::uint64_t end);

}  // namespace normscope::io

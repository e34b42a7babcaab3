// Any bytes handed to the .tar.gz reader, packed or as a tar, are read or rejected with InputError; names it
// gives stay below the directory.
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fetch/tar_gz.h"
#include "normscope/error.h"

namespace {

void read(const std::vector<std::byte>& bytes) {
  const auto archive = normscope::io::bytes_in_memory(bytes, "'input'");
  const normscope::fetch::TarLimits limits{.total = 1 << 22, .file = 1 << 20, .entries = 1000};
  try {
    normscope::fetch::read_tar_gz(
        *archive, "'input'", limits, [](const std::string& name, const normscope::io::ByteStream& content) {
          if (name.empty() || name[0] == '/' || ("/" + name + "/").find("/../") != std::string::npos)
            __builtin_trap();
          std::vector<std::byte> half(content.size / 2);
          content.next(half);
        });
  } catch (const normscope::InputError&) {
  }
}

// Stored, not compressed: what the fuzzer changes in the tar stays where it is.
std::vector<std::byte> stored(const std::uint8_t* data, std::size_t size) {
  z_stream stream{};
  if (deflateInit2(&stream, 0, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) return {};
  std::vector<std::byte> out(deflateBound(&stream, size));
  stream.next_in = const_cast<Bytef*>(data);
  stream.avail_in = static_cast<uInt>(size);
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  read({begin, begin + size});
  read(stored(data, size));
  return 0;
}

#pragma once
// Files in a .tar.gz, read by libarchive from front to back as if packed by an enemy: names stay below the
// directory they are unpacked to, nothing but regular files and directories is accepted, and no more bytes
// are unpacked than the limits allow (and what libarchive reads ahead), whatever the archive claims. That an
// archive is whole and unchanged is for its digest to say.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "io/bytes.h"

namespace normscope::fetch {

struct TarLimits {
  std::uint64_t total = std::uint64_t{1} << 30;   // bytes unpacked, headers and files passed over included
  std::uint64_t file = std::uint64_t{512} << 20;  // of one file
  std::size_t entries = 10'000;
};

// Called for each regular file; what it does not read is passed over. The name has no empty, "." or ".."
// part, no leading or trailing slash and no control character.
using TarVisitor = std::function<void(const std::string& name, const io::ByteStream& content)>;

// Throws InputError, with `label` for the archive, on whatever is wrong with it.
void read_tar_gz(const io::Bytes& archive, const std::string& label, const TarLimits& limits,
                 const TarVisitor& visit);

}  // namespace normscope::fetch

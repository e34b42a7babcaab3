#pragma once
// The bytes of a file that is to be text: .gz, .xz and .zst are unpacked, known by what they begin with
// rather than by name, and what is plainly something else is named.
#include <cstdint>
#include <memory>
#include <string>

#include "io/bytes.h"

namespace normscope::io {

struct TextBytes {
  std::unique_ptr<Bytes> bytes;
  bool unpacked = false;  // the bytes are in memory, not those of the file
};

// A path, or "-" for standard input. What is compressed may unpack to max_bytes; larger files that are not
// are the caller's to refuse. Throws InputError if it is compressed and damaged or too large, or of a kind
// that is no text, or no UTF-8.
TextBytes open_text(const std::string& path, std::uint64_t max_bytes);

// "reviews.tsv" of "reviews.tsv.gz": the name without that of the compression.
std::string without_compression(const std::string& path);

}  // namespace normscope::io

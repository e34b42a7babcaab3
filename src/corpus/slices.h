#pragma once
// A long file in slices that can be read one at a time: slice k begins at the first good place at or behind
// byte k·size.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "io/bytes.h"

namespace normscope::corpus {

// Whether the text may be cut before `at`, with the bytes around to look at; 0 < at < around.size().
using GoodPlace = bool (*)(std::string_view around, std::size_t at);
// Before white space that follows a visible character: no piece of GPT-2's or BERT's reaches across.
bool before_white_space(std::string_view around, std::size_t at);
// Behind an empty line.
bool begins_paragraph(std::string_view around, std::size_t at);

struct Slice {
  std::uint64_t begin = 0;
  std::string bytes;
};

std::uint64_t slice_count(std::uint64_t file_size, std::size_t size);
// Of at most 2·size + 4 bytes. Where there is no good place within `size` bytes, the cut is between any two
// characters.
Slice read_slice(const io::Bytes& file, std::uint64_t index, std::size_t size, GoodPlace good);

}  // namespace normscope::corpus

#include "corpus/slices.h"

#include <algorithm>
#include <span>

#include "core/utf8.h"

namespace normscope::corpus {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

std::string read(const io::Bytes& file, std::uint64_t begin, std::uint64_t end) {
  std::string bytes(static_cast<std::size_t>(end - begin), '\0');
  file.read(begin, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

std::uint64_t cut_at(const io::Bytes& file, std::uint64_t index, std::size_t size, GoodPlace good) {
  constexpr std::uint64_t before = 4;  // bytes that places may look back
  const std::uint64_t from = index * size;
  if (index == 0 || from >= file.size()) return std::min(from, file.size());
  const std::uint64_t begin = from - std::min(before, from);
  const std::string around = read(file, begin, std::min(from + size, file.size()));
  const auto first = static_cast<std::size_t>(from - begin);
  for (std::size_t at = first; at < around.size(); ++at)
    if (at > 0 && good(around, at)) return begin + at;
  std::size_t at = first;
  // Bytes that are no UTF-8 may look like one endless character.
  while (at < std::min(around.size(), first + 3) &&
         (continues_character(around[at]) || (at > 0 && around[at - 1] == '\r' && around[at] == '\n')))
    ++at;
  return begin + at;
}

}  // namespace

bool before_white_space(std::string_view around, std::size_t at) {
  return is_space(around[at]) && around[at - 1] > ' ' && around[at - 1] < 0x7f;
}

bool begins_paragraph(std::string_view around, std::size_t at) {
  if (is_space(around[at]) || around[at - 1] != '\n') return false;
  const std::string_view behind = around.substr(0, at - 1);
  return behind.ends_with('\n') || behind.ends_with("\n\r");
}

std::uint64_t slice_count(std::uint64_t file_size, std::size_t size) {
  return (file_size + size - 1) / size;
}

Slice read_slice(const io::Bytes& file, std::uint64_t index, std::size_t size, GoodPlace good) {
  const std::uint64_t begin = cut_at(file, index, size, good), end = cut_at(file, index + 1, size, good);
  return {begin, read(file, begin, std::max(begin, end))};
}

}  // namespace normscope::corpus

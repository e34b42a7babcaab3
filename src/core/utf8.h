#pragma once
// Where characters of UTF-8 begin and end, in bytes that may be anything.
#include <cstddef>
#include <string_view>

namespace normscope {

struct Utf8Sequence {
  std::size_t size;
  bool valid;
};
// The character at the beginning of the bytes, of which there is at least one; or, not valid, the longest
// part of a character that is not finished, or one byte that begins none (Unicode, Table 3-7).
Utf8Sequence first_sequence(std::string_view bytes);

// The character at `position` of valid UTF-8; the position is moved behind it.
inline char32_t next_character(std::string_view valid, std::size_t& position) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(valid[position + i]); };
  const char32_t lead = byte(0);
  const std::size_t left = valid.size() - position;
  char32_t c = lead;
  std::size_t size = 1;
  if (lead >= 0xF0 && left >= 4) {
    c = (lead & 0x07U) << 18 | (byte(1) & 0x3FU) << 12 | (byte(2) & 0x3FU) << 6 | (byte(3) & 0x3FU);
    size = 4;
  } else if (lead >= 0xE0 && left >= 3) {
    c = (lead & 0x0FU) << 12 | (byte(1) & 0x3FU) << 6 | (byte(2) & 0x3FU);
    size = 3;
  } else if (lead >= 0xC0 && left >= 2) {
    c = (lead & 0x1FU) << 6 | (byte(1) & 0x3FU);
    size = 2;
  }
  position += size;
  return c;
}

inline bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

}  // namespace normscope

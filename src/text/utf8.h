#pragma once
// Characters of UTF-8. Strings inside this room are valid; only lossy_utf8 meets bytes that may not be.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace normscope::text {

// The character at `position`, which is moved behind it.
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

std::size_t utf8_size(char32_t c);
void append_utf8(std::string& to, char32_t c);
std::u32string characters(std::string_view valid);
std::string utf8(std::u32string_view characters);
bool is_valid_utf8(std::string_view bytes);

struct LossyText {
  std::string text;                       // valid
  std::vector<std::uint32_t> boundaries;  // of its characters in the bytes given; one more than characters
};

// Every longest sequence that begins a character and does not finish it becomes one U+FFFD, and so does every
// other byte that is no part of a character: Python's errors='replace', Unicode's recommendation.
LossyText lossy_utf8(std::string_view bytes);

}  // namespace normscope::text

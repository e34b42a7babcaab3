#pragma once
// Characters of UTF-8. Strings inside this room are valid; only lossy_utf8 meets bytes that may not be.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/utf8.h"

namespace normscope::text {

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

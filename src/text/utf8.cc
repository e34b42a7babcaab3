#include "text/utf8.h"

namespace normscope::text {
void append_utf8(std::string& to, char32_t c) {
  const auto push = [&](char32_t byte) { to.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    push(c);
  } else if (c < 0x800) {
    push(0xC0 | c >> 6);
    push(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    push(0xE0 | c >> 12);
    push(0x80 | (c >> 6 & 0x3F));
    push(0x80 | (c & 0x3F));
  } else {
    push(0xF0 | c >> 18);
    push(0x80 | (c >> 12 & 0x3F));
    push(0x80 | (c >> 6 & 0x3F));
    push(0x80 | (c & 0x3F));
  }
}

std::u32string characters(std::string_view valid) {
  std::u32string result;
  for (std::size_t i = 0; i < valid.size();) result.push_back(next_character(valid, i));
  return result;
}

std::string utf8(std::u32string_view characters) {
  std::string result;
  for (const char32_t c : characters) append_utf8(result, c);
  return result;
}

bool is_valid_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const Utf8Sequence sequence = first_sequence(bytes);
    if (!sequence.valid) return false;
    bytes.remove_prefix(sequence.size);
  }
  return true;
}

LossyText lossy_utf8(std::string_view bytes) {
  LossyText result;
  result.text.reserve(bytes.size());
  std::size_t position = 0;
  while (position < bytes.size()) {
    result.boundaries.push_back(static_cast<std::uint32_t>(position));
    const Utf8Sequence sequence = first_sequence(bytes.substr(position));
    if (sequence.valid) {
      result.text.append(bytes.substr(position, sequence.size));
    } else {
      append_utf8(result.text, 0xFFFD);
    }
    position += sequence.size;
  }
  result.boundaries.push_back(static_cast<std::uint32_t>(bytes.size()));
  return result;
}

}  // namespace normscope::text

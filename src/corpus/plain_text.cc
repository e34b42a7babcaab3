#include "corpus/plain_text.h"

#include <fmt/format.h>

#include "core/utf8.h"
#include "io/file_errors.h"

namespace normscope::corpus {
namespace {

// Of the first byte that is not UTF-8; all of them if there is none.
std::size_t valid_size(std::string_view bytes) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    if (static_cast<unsigned char>(bytes[at]) < 0x80) {
      ++at;
      continue;
    }
    const Utf8Sequence sequence = first_sequence(bytes.substr(at));
    if (!sequence.valid) return at;
    at += sequence.size;
  }
  return at;
}

}  // namespace

bool is_utf8(std::string_view bytes) {
  return valid_size(bytes) == bytes.size();
}

void check_utf8(std::string_view bytes, const std::string& label, std::uint64_t offset) {
  const std::size_t zero = bytes.find('\0'), invalid = valid_size(bytes);
  if (zero < invalid)
    io::reject(label, fmt::format("has a zero byte at offset {}, so it is not text", offset + zero),
               "name a text file, UTF-8");
  if (invalid < bytes.size())
    io::reject(label,
               fmt::format("is not UTF-8: byte 0x{:02x} at offset {} is no part of a character",
                           static_cast<unsigned char>(bytes[invalid]), offset + invalid),
               "convert it, for example: iconv -f LATIN1 -t UTF-8");
}

std::string with_plain_line_ends(std::string text) {
  std::size_t to = 0;
  for (std::size_t from = 0; from < text.size(); ++from) {
    const bool carriage = text[from] == '\r';
    if (carriage && from + 1 < text.size() && text[from + 1] == '\n') continue;
    text[to++] = carriage ? '\n' : text[from];
  }
  text.resize(to);
  return text;
}

std::string from_latin1(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() + bytes.size() / 16);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      text.push_back(c);
    } else {
      text.push_back(static_cast<char>(0xC0 | byte >> 6));
      text.push_back(static_cast<char>(0x80 | (byte & 0x3F)));
    }
  }
  return text;
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = text.find(from); at != std::string_view::npos; at = text.find(from)) {
    result.append(text.substr(0, at)).append(to);
    text.remove_prefix(at + from.size());
  }
  return result.append(text);
}

}  // namespace normscope::corpus

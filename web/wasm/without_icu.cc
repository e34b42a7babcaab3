// The page carries neither ICU nor Oniguruma: its own models were trained on plain English words. Characters beyond ASCII
// count as letters without a lower case, so that a word with one is a word the models do not know.
#include "normscope/error.h"
#include "text/regex.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace normscope::text {
namespace {

bool between(char32_t c, char32_t first, char32_t last) {
  return c >= first && c <= last;
}

}  // namespace

bool is_white_space(char32_t c) {
  return c == ' ' || between(c, '\t', '\r') || c == 0xA0;
}
bool is_numeric(char32_t c) {
  return between(c, '0', '9');
}
bool is_word(char32_t c) {
  return is_numeric(c) || between(c, 'a', 'z') || between(c, 'A', 'Z') || c == '_' || c > 0xA0;
}
bool is_punctuation(char32_t c) {
  return between(c, '!', '~') && !is_numeric(c) && !between(c, 'a', 'z') && !between(c, 'A', 'Z');
}
bool is_nonspacing_mark(char32_t /*c*/) {
  return false;
}
bool is_combining_mark(char32_t /*c*/) {
  return false;
}
bool is_control(char32_t c) {
  return (c < ' ' && !is_white_space(c)) || between(c, 0x7F, 0x9F);
}

std::u32string lower_case(char32_t c) {
  return std::u32string(1, between(c, 'A', 'Z') ? c + ('a' - 'A') : c);
}

std::vector<Change> normalize(std::string_view valid, NormalForm /*form*/) {
  std::vector<Change> result;
  for (std::size_t i = 0; i < valid.size();) result.push_back({next_character(valid, i), 0});
  return result;
}

std::vector<std::size_t> grapheme_ends(std::string_view valid) {
  std::vector<std::size_t> ends;
  for (std::size_t i = 0; i < valid.size();) {
    next_character(valid, i);
    ends.push_back(i);
  }
  return ends;
}

struct Regex::Compiled {};

Regex::Regex(std::string_view /*pattern*/, std::string_view where) {
  throw InputError(std::string(where) +
                   " is a regular expression, which the page does not read; use the program normscope.");
}
std::vector<Match> Regex::find(std::string_view /*valid*/) const {
  return {};
}

}  // namespace normscope::text

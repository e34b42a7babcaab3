#pragma once
// What the tokenizers need to know of Unicode, from ICU. The reference library mixes versions of Unicode: it
// normalizes as of 9.0, knows punctuation, marks and control characters as of 8.0, and the rest as of 16.
// A character that came later than the version in question counts as unassigned here too; what came after
// the 15.0 of Debian's ICU (and, in patterns, the version of its Oniguruma) is not known here.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace normscope::text {

bool is_white_space(char32_t c);
bool is_numeric(char32_t c);          // Nd, Nl, No
bool is_word(char32_t c);             // \w of Unicode regular expressions
bool is_punctuation(char32_t c);      // P* as of 8.0, and all of ASCII's
bool is_nonspacing_mark(char32_t c);  // Mn as of 8.0
bool is_combining_mark(char32_t c);   // M* as of 9.0
bool is_control(char32_t c);          // Cc, Cf, Co as of 8.0

// İ is the only character whose lower case is two characters.
std::u32string lower_case(char32_t c);

// A character of a new version of a text, and how it came about: 0, it replaces the next one of the old; 1,
// it was inserted; −n, it replaces the next one, and the n after that are gone.
struct Change {
  char32_t character;
  int change;
};

enum class NormalForm { c, d, kc, kd };
std::vector<Change> normalize(std::string_view valid, NormalForm form);

// Where extended grapheme clusters end.
std::vector<std::size_t> grapheme_ends(std::string_view valid);

}  // namespace normscope::text

#include "text/unicode.h"

#include <unicode/ubrk.h>
#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/utext.h>

#include <algorithm>
#include <array>
#include <memory>

#include "normscope/error.h"
#include "text/utf8.h"

namespace normscope::text {
namespace {

// Did the character exist in Unicode `major`.0?
bool existed(char32_t c, int major) {
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(c), age);
  return age[0] < major || (age[0] == major && age[1] == 0);
}

std::uint32_t category(char32_t c) {
  return U_GET_GC_MASK(static_cast<UChar32>(c));
}

constexpr int normalization_version = 9;
constexpr int category_version = 8;

int combining_class(char32_t c) {
  if (c < 0x300) return 0;
  return existed(c, normalization_version) ? u_getCombiningClass(static_cast<UChar32>(c)) : 0;
}

const UNormalizer2* instance(bool compatible) {
  UErrorCode status = U_ZERO_ERROR;
  const UNormalizer2* found = compatible ? unorm2_getNFKCInstance(&status) : unorm2_getNFCInstance(&status);
  if (U_FAILURE(status) != 0) throw Error("ICU's normalization data are missing; install libicu again.");
  return found;
}

struct Decomposed {
  char32_t character;
  int change;
  int combining_class;
};

// Full decomposition in canonical order.
std::vector<Decomposed> decompose(std::string_view valid, bool compatible) {
  const UNormalizer2* normalizer = instance(compatible);
  std::vector<Decomposed> result;
  result.reserve(valid.size());
  std::size_t pending = 0;  // from here on, marks that are not yet in order
  const auto by_class = [](const Decomposed& a, const Decomposed& b) {
    return a.combining_class < b.combining_class;
  };
  const auto push = [&](char32_t c, bool first) {
    const int of_c = combining_class(c);
    if (of_c == 0) {
      std::stable_sort(result.begin() + static_cast<std::ptrdiff_t>(pending), result.end(), by_class);
      pending = result.size() + 1;
    }
    result.push_back({c, first ? 0 : 1, of_c});
  };
  for (std::size_t i = 0; i < valid.size();) {
    const char32_t c = next_character(valid, i);
    if (c < 0xA0 || !existed(c, normalization_version)) {
      push(c, true);
      continue;
    }
    std::array<UChar, 32> mapped;
    UErrorCode status = U_ZERO_ERROR;
    const std::int32_t size =
        unorm2_getDecomposition(normalizer, static_cast<UChar32>(c), mapped.data(), mapped.size(), &status);
    if (size < 0 || U_FAILURE(status) != 0) {
      push(c, true);
      continue;
    }
    for (std::int32_t at = 0; at < size;) {
      const bool first = at == 0;
      UChar32 part = 0;
      U16_NEXT(mapped.data(), at, size, part);
      push(static_cast<char32_t>(part), first);
    }
  }
  std::stable_sort(result.begin() + static_cast<std::ptrdiff_t>(pending), result.end(), by_class);
  return result;
}

// The character that two make together, or 0.
char32_t composed(const UNormalizer2* canonical, char32_t first, char32_t second) {
  if (second < 0x300) return 0;
  const UChar32 c = unorm2_composePair(canonical, static_cast<UChar32>(first), static_cast<UChar32>(second));
  return c > 0 && existed(static_cast<char32_t>(c), normalization_version) ? static_cast<char32_t>(c) : 0;
}

std::vector<Change> compose(const std::vector<Decomposed>& decomposed) {
  const UNormalizer2* canonical = instance(false);
  std::vector<Change> result;
  result.reserve(decomposed.size());
  std::size_t starter = decomposed.size();  // where in the result the last one is, if there is one
  int last_class = -1;                      // of the mark before, if it did not compose with the starter
  for (const Decomposed& next : decomposed) {
    if (starter < result.size()) {
      Change& base = result[starter];
      const bool blocked = last_class >= next.combining_class;
      const char32_t both = blocked ? 0 : composed(canonical, base.character, next.character);
      if (both != 0) {
        base = {both, base.change + next.change - 1};
        continue;
      }
      last_class = next.combining_class == 0 ? -1 : next.combining_class;
    }
    if (next.combining_class == 0) starter = result.size();
    result.push_back({next.character, next.change});
  }
  return result;
}

}  // namespace

bool is_white_space(char32_t c) {
  return u_isUWhiteSpace(static_cast<UChar32>(c)) != 0;
}

bool is_numeric(char32_t c) {
  return (category(c) & U_GC_N_MASK) != 0;
}

bool is_word(char32_t c) {
  const auto code = static_cast<UChar32>(c);
  return (category(c) & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) != 0 ||
         u_hasBinaryProperty(code, UCHAR_ALPHABETIC) != 0 ||
         u_hasBinaryProperty(code, UCHAR_JOIN_CONTROL) != 0;
}

// The characters named one by one have changed their category since.
bool is_punctuation(char32_t c) {
  if (c < 0x80)
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
  if (c == 0x166D || c == 0x111C9) return true;
  return (category(c) & U_GC_P_MASK) != 0 && existed(c, category_version);
}

bool is_nonspacing_mark(char32_t c) {
  if (c == 0x1734) return true;
  if (c == 0x1885 || c == 0x1886 || c == 0xA9BD || c == 0x111C9) return false;
  return (category(c) & U_GC_MN_MASK) != 0 && existed(c, category_version);
}

bool is_combining_mark(char32_t c) {
  if (c == 0x1CF2 || c == 0x1CF3) return true;
  if (c == 0x111C9) return false;
  return (category(c) & U_GC_M_MASK) != 0 && existed(c, normalization_version);
}

bool is_control(char32_t c) {
  return (category(c) & (U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK)) != 0 && existed(c, category_version);
}

std::u32string lower_case(char32_t c) {
  if (c == 0x130) return U"i\u0307";
  return {static_cast<char32_t>(u_tolower(static_cast<UChar32>(c)))};
}

std::vector<Change> normalize(std::string_view valid, NormalForm form) {
  const std::vector<Decomposed> parts = decompose(valid, form == NormalForm::kc || form == NormalForm::kd);
  if (form == NormalForm::c || form == NormalForm::kc) return compose(parts);
  std::vector<Change> result;
  result.reserve(parts.size());
  for (const Decomposed& part : parts) result.push_back({part.character, part.change});
  return result;
}

std::vector<std::size_t> grapheme_ends(std::string_view valid) {
  std::vector<std::size_t> ends;
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<UBreakIterator, decltype(&ubrk_close)> breaks(
      ubrk_open(UBRK_CHARACTER, "", nullptr, 0, &status), &ubrk_close);
  const std::unique_ptr<UText, decltype(&utext_close)> text(
      utext_openUTF8(nullptr, valid.data(), static_cast<std::int64_t>(valid.size()), &status), &utext_close);
  ubrk_setUText(breaks.get(), text.get(), &status);
  if (U_FAILURE(status) != 0) throw Error("ICU's break rules are missing; install libicu again.");
  for (std::int32_t end = ubrk_next(breaks.get()); end != UBRK_DONE; end = ubrk_next(breaks.get()))
    ends.push_back(static_cast<std::size_t>(end));
  return ends;
}

}  // namespace normscope::text

#pragma once
// A stretch of text on its way through normalizers and pre-tokenizers. Each of its bytes remembers which
// bytes of the original it stands for; what is inserted stands for what its neighbour stands for.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "text/unicode.h"

namespace normscope::text {

struct Source {
  std::uint32_t begin = 0, end = 0;  // bytes of the original
};

// Parts of a text, in order and without gaps: those that a pattern found, and those between.
struct Match {
  std::size_t begin = 0, end = 0;
  bool found = false;
};

// What becomes of the parts that were found when a text is cut there.
enum class Delimiter { removed, isolated, merged_with_previous, merged_with_next, contiguous };

class AlignedText {
 public:
  AlignedText() = default;
  explicit AlignedText(std::string valid);

  const std::string& text() const { return text_; }
  bool empty() const { return text_.empty(); }
  // Where in the original this stretch begins.
  std::size_t origin() const { return origin_.begin; }

  // The bytes of the original that [begin, end) of the text stands for; the same numbers if there are no such
  // bytes.
  Source source(std::size_t begin, std::size_t end) const;

  AlignedText slice(std::size_t begin, std::size_t end) const;
  std::vector<AlignedText> split(std::vector<Match> parts, Delimiter delimiter) const;

  // `removed` characters at the beginning are gone, the others are as the changes say.
  void transform(const std::vector<Change>& changes, std::size_t removed = 0);
  void keep_if(const std::function<bool(char32_t)>& keep);
  void map(const std::function<char32_t(char32_t)>& map);
  void replace(const std::vector<Match>& parts, std::string_view content);
  void prepend(std::string_view prefix);
  void strip(bool left, bool right);
  // Every byte as one character of the alphabet of byte-level BPE.
  void to_byte_characters();

 private:
  void transform_range(std::size_t begin, std::size_t end, const std::vector<Change>& changes,
                       std::size_t removed);

  std::string text_;
  std::vector<Source> source_;  // of each byte of text_
  Source origin_;
};

// The printable character that byte-level BPE writes for a byte, and back; -1 if there is none.
char32_t byte_character(unsigned char byte);
int byte_of_character(char32_t c);

template <class Predicate>
std::vector<Match> find_characters(std::string_view valid, const Predicate& wanted);

std::vector<Match> find_literal(std::string_view valid, std::string_view literal);

}  // namespace normscope::text

#include "text/utf8.h"

template <class Predicate>
std::vector<normscope::text::Match> normscope::text::find_characters(std::string_view valid,
                                                                     const Predicate& wanted) {
  std::vector<Match> parts;
  std::size_t between = 0;
  for (std::size_t position = 0; position < valid.size();) {
    const std::size_t begin = position;
    if (!wanted(next_character(valid, position))) continue;
    if (between < begin) parts.push_back({between, begin, false});
    parts.push_back({begin, position, true});
    between = position;
  }
  if (between < valid.size()) parts.push_back({between, valid.size(), false});
  return parts;
}

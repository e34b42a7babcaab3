#include "text/aligned_text.h"

#include <algorithm>
#include <array>

namespace normscope::text {
namespace {

struct ByteAlphabet {
  std::array<char32_t, 256> characters{};
  std::array<int, 512> bytes{};

  // Printable bytes of Latin-1 are themselves; the others follow from U+0100 on, in order.
  ByteAlphabet() {
    bytes.fill(-1);
    char32_t next = 256;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      characters[byte] = printable ? byte : next++;
      bytes[characters[byte]] = static_cast<int>(byte);
    }
  }
};

const ByteAlphabet& byte_alphabet() {
  static const ByteAlphabet alphabet;
  return alphabet;
}

}  // namespace

char32_t byte_character(unsigned char byte) {
  return byte_alphabet().characters[byte];
}

int byte_of_character(char32_t c) {
  return c < 512 ? byte_alphabet().bytes[c] : -1;
}

AlignedText::AlignedText(std::string valid)
    : text_(std::move(valid)), origin_{0, static_cast<std::uint32_t>(text_.size())} {
  source_.reserve(text_.size());
  for (std::size_t i = 0; i < text_.size();) {
    const auto begin = static_cast<std::uint32_t>(i);
    next_character(text_, i);
    source_.resize(i, Source{begin, static_cast<std::uint32_t>(i)});
  }
}

Source AlignedText::source(std::size_t begin, std::size_t end) const {
  const auto b = static_cast<std::uint32_t>(begin), e = static_cast<std::uint32_t>(end);
  if (begin == end) return {origin_.begin + b, origin_.begin + e};
  if (begin > end || end > source_.size()) return {b, e};
  return {source_[begin].begin, source_[end - 1].end};
}

AlignedText AlignedText::slice(std::size_t begin, std::size_t end) const {
  AlignedText result;
  if (begin >= end) return result;
  const auto at = [](std::size_t i) { return static_cast<std::ptrdiff_t>(i); };
  result.text_ = text_.substr(begin, end - begin);
  result.source_.assign(source_.begin() + at(begin), source_.begin() + at(end));
  result.origin_ = {source_[begin].begin, source_[end - 1].end};
  return result;
}

std::vector<AlignedText> AlignedText::split(std::vector<Match> parts, Delimiter delimiter) const {
  std::vector<Match> kept;
  bool found_before = false;
  switch (delimiter) {
    case Delimiter::removed:
      std::copy_if(parts.begin(), parts.end(), std::back_inserter(kept),
                   [](const Match& m) { return !m.found; });
      break;
    case Delimiter::isolated:
      kept = std::move(parts);
      break;
    case Delimiter::contiguous:
    case Delimiter::merged_with_previous:
      for (const Match& part : parts) {
        const bool joins =
            delimiter == Delimiter::contiguous ? part.found == found_before : part.found && !found_before;
        if (joins && !kept.empty()) {
          kept.back().end = part.end;
        } else {
          kept.push_back(part);
        }
        found_before = part.found;
      }
      break;
    case Delimiter::merged_with_next:
      for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
        if (part->found && !found_before && !kept.empty()) {
          kept.back().begin = part->begin;
        } else {
          kept.push_back(*part);
        }
        found_before = part->found;
      }
      std::reverse(kept.begin(), kept.end());
      break;
  }
  std::vector<AlignedText> result;
  result.reserve(kept.size());
  for (const Match& part : kept) {
    if (part.begin < part.end) result.push_back(slice(part.begin, part.end));
  }
  return result;
}

// The reference library transforms what stands for the whole original, and leaves out inserted characters at
// the beginning that stand for nothing (they come from patterns that match between characters).
void AlignedText::transform(const std::vector<Change>& changes, std::size_t removed) {
  if (origin_.begin == origin_.end) return transform_range(0, 0, changes, removed);
  if (text_.empty()) return;
  std::size_t begin = 0, end = 0;
  bool begun = false;
  for (; end < source_.size() && source_[end].end <= origin_.end; ++end) {
    if (begun || source_[end].begin == source_[end].end) continue;
    begun = true;
    begin = end;
  }
  transform_range(begun ? begin : end, end, changes, removed);
}

void AlignedText::transform_range(std::size_t begin, std::size_t end, const std::vector<Change>& changes,
                                  std::size_t removed) {
  std::size_t old = begin;  // the next character of the old text
  const auto skip = [&] {
    if (old < end) next_character(text_, old);
  };
  for (std::size_t i = 0; i < removed; ++i) skip();
  std::string text;
  std::vector<Source> source;
  text.reserve(changes.size() + text_.size() - (end - begin));
  source.reserve(text.capacity());
  text.append(text_, 0, begin);
  source.assign(source_.begin(), source_.begin() + static_cast<std::ptrdiff_t>(begin));
  for (const Change& next : changes) {
    Source aligned{origin_.begin, origin_.begin};
    if (next.change > 0) {
      if (old > 0) aligned = source_[old - 1];
    } else if (!source_.empty()) {
      aligned = source_[std::min(old, source_.size() - 1)];
    }
    if (next.change <= 0) skip();
    for (int i = next.change; i < 0; ++i) skip();
    append_utf8(text, next.character);
    source.resize(text.size(), aligned);
  }
  text.append(text_, end);
  source.insert(source.end(), source_.begin() + static_cast<std::ptrdiff_t>(end), source_.end());
  text_ = std::move(text);
  source_ = std::move(source);
}

void AlignedText::keep_if(const std::function<bool(char32_t)>& keep) {
  std::vector<Change> changes;
  std::size_t removed_first = 0;
  for (std::size_t i = 0; i < text_.size();) {
    const char32_t c = next_character(text_, i);
    if (keep(c)) {
      changes.push_back({c, 0});
      continue;
    }
    if (changes.empty()) {
      ++removed_first;
    } else {
      --changes.back().change;
    }
  }
  transform(changes, removed_first);
}

void AlignedText::map(const std::function<char32_t(char32_t)>& map) {
  std::vector<Change> changes;
  for (std::size_t i = 0; i < text_.size();) changes.push_back({map(next_character(text_, i)), 0});
  transform(changes);
}

void AlignedText::replace(const std::vector<Match>& parts, std::string_view content) {
  std::string text;
  std::vector<Source> source;
  std::size_t copied = 0;
  const auto copy_until = [&](std::size_t end) {
    if (copied >= end) return;
    text.append(text_, copied, end - copied);
    source.insert(source.end(), source_.begin() + static_cast<std::ptrdiff_t>(copied),
                  source_.begin() + static_cast<std::ptrdiff_t>(end));
  };
  for (const Match& part : parts) {
    if (!part.found) continue;
    copy_until(part.begin);
    const Source aligned = part.end == 0 ? Source{origin_.begin, origin_.begin} : source_[part.end - 1];
    text.append(content);
    source.resize(text.size(), aligned);
    copied = part.end;
  }
  copy_until(text_.size());
  text_ = std::move(text);
  source_ = std::move(source);
}

void AlignedText::prepend(std::string_view prefix) {
  if (text_.empty()) return;
  std::size_t end = 0;
  const char32_t first = next_character(text_, end);
  std::vector<Change> changes;
  for (std::size_t i = 0; i < prefix.size();) {
    const bool inserted = i != 0;
    changes.push_back({next_character(prefix, i), inserted ? 1 : 0});
  }
  changes.push_back({first, 1});
  transform_range(0, end, changes, 0);
}

void AlignedText::strip(bool left, bool right) {
  const std::u32string all = characters(text_);
  std::size_t begin = 0, end = all.size();
  while (left && begin < all.size() && is_white_space(all[begin])) ++begin;
  while (right && end > 0 && is_white_space(all[end - 1])) --end;
  if (begin == 0 && end == all.size()) return;
  std::vector<Change> changes;
  for (std::size_t i = begin; i < end; ++i) changes.push_back({all[i], 0});
  transform(changes, begin);
}

void AlignedText::to_byte_characters() {
  std::vector<Change> changes;
  changes.reserve(text_.size());
  for (const char byte : text_)
    changes.push_back({byte_character(static_cast<unsigned char>(byte)), continues_character(byte) ? 1 : 0});
  transform(changes);
}

std::vector<Match> find_literal(std::string_view valid, std::string_view literal) {
  std::vector<Match> parts;
  std::size_t between = 0;
  for (std::size_t at = valid.find(literal); at != std::string_view::npos;
       at = valid.find(literal, between)) {
    if (between < at) parts.push_back({between, at, false});
    between = at + literal.size();
    parts.push_back({at, between, true});
  }
  if (between < valid.size()) parts.push_back({between, valid.size(), false});
  return parts;
}

}  // namespace normscope::text

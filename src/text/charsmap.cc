#include "text/charsmap.h"

#include "text/unicode.h"
#include "text/utf8.h"

namespace normscope::text {
namespace {

std::string from_base64(const Node& node) {
  std::string_view encoded = node.string();
  if (encoded.size() % 4 != 0) node.fail("the length of base64 is a multiple of 4");
  for (int i = 0; i < 2 && !encoded.empty() && encoded.back() == '='; ++i) encoded.remove_suffix(1);
  std::string bytes;
  unsigned bits = 0;
  int count = 0;
  for (const char c : encoded) {
    const int digit = c >= 'A' && c <= 'Z'   ? c - 'A'
                      : c >= 'a' && c <= 'z' ? c - 'a' + 26
                      : c >= '0' && c <= '9' ? c - '0' + 52
                      : c == '+'             ? 62
                      : c == '/'             ? 63
                                             : -1;
    if (digit < 0) node.fail("not base64");
    bits = (bits << 6 | static_cast<unsigned>(digit)) & 0xFFFF;
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes.push_back(static_cast<char>(bits >> count & 0xFF));
    }
  }
  return bytes;
}

std::uint32_t little_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

// `part` of the text becomes `replacement`; what is removed counts for the character before.
void replace(std::vector<Change>& changes, std::string_view part, std::string_view replacement) {
  const std::u32string old = characters(part), now = characters(replacement);
  for (std::size_t i = 0; i < now.size(); ++i) changes.push_back({now[i], i < old.size() ? 0 : 1});
  if (now.size() < old.size() && !changes.empty())
    changes.back().change -= static_cast<int>(old.size() - now.size());
}

}  // namespace

Charsmap::Charsmap(const Node& base64) {
  const std::string bytes = from_base64(base64);
  if (bytes.size() < 4) base64.fail("too short for a trie");
  const std::size_t size = little_endian(bytes, 0) / 4 * std::size_t{4};
  if (size < 4 || size > bytes.size() - 4) base64.fail("the trie is longer than the data");
  for (std::size_t at = 4; at < 4 + size; at += 4) trie_.push_back(little_endian(bytes, at));
  replacements_ = bytes.substr(4 + size);
  if (!is_valid_utf8(replacements_)) base64.fail("the replacements are not UTF-8");
}

std::optional<std::string_view> Charsmap::replacement(std::string_view sequence) const {
  const auto offset = [](std::uint32_t unit) { return std::size_t{unit >> 10} << ((unit & (1U << 9)) >> 6); };
  std::size_t node = offset(trie_[0]);
  for (const char c : sequence) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0) break;
    node ^= byte;
    if (node >= trie_.size()) break;
    const std::uint32_t unit = trie_[node];
    if ((unit & ((1U << 31) | 0xFFU)) != byte) break;
    node ^= offset(unit);
    if (node >= trie_.size()) break;
    if ((unit >> 8 & 1U) == 0) continue;
    const std::size_t begin = trie_[node] & ((1U << 31) - 1);
    if (begin > replacements_.size() ||
        (begin < replacements_.size() && continues_character(replacements_[begin])))
      break;
    return std::string_view(replacements_).substr(begin, replacements_.find('\0', begin) - begin);
  }
  return std::nullopt;
}

// A cluster of less than six bytes is replaced as a whole, by whatever its beginning stands for; the others
// character by character. So the reference library does it, and models were trained with that.
void Charsmap::apply(AlignedText& text) const {
  const std::string& all = text.text();
  std::vector<Change> changes;
  changes.reserve(all.size());
  bool modified = false;
  std::size_t begin = 0;
  for (const std::size_t end : grapheme_ends(all)) {
    const auto cluster = std::string_view(all).substr(begin, end - begin);
    begin = end;
    if (cluster.size() < 6) {
      if (const auto found = replacement(cluster)) {
        replace(changes, cluster, *found);
        modified = true;
        continue;
      }
    }
    for (std::size_t i = 0; i < cluster.size();) {
      const std::size_t from = i;
      const char32_t c = next_character(cluster, i);
      const auto part = cluster.substr(from, i - from);
      if (const auto found = replacement(part)) {
        replace(changes, part, *found);
        modified = true;
      } else {
        changes.push_back({c, 0});
      }
    }
  }
  if (modified) text.transform(changes);
}

}  // namespace normscope::text

#pragma once
// The normalizer that SentencePiece compiles into its models: a double-array trie (Darts) from character
// sequences to places in a list of replacements.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/aligned_text.h"
#include "text/node.h"

namespace normscope::text {

class Charsmap {
 public:
  // Base64 of: bytes of the trie (32 bits, little endian), trie, replacements with a zero byte after each.
  explicit Charsmap(const Node& base64);

  void apply(AlignedText& text) const;

 private:
  // For the shortest beginning of the sequence that is in the trie.
  std::optional<std::string_view> replacement(std::string_view sequence) const;

  std::vector<std::uint32_t> trie_;
  std::string replacements_;
};

}  // namespace normscope::text

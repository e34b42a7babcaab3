#pragma once
// Byte-pair encoding: a word begins as its characters; again and again the neighbours with the best rank
// among the merges become one, the leftmost first.
#include <unordered_map>

#include "text/model.h"

namespace normscope::text {

struct Merge {
  std::uint32_t rank = 0;  // the lowest goes first
  std::uint32_t id = 0;    // what the two become
};

struct BpeSettings {
  std::optional<std::string> unknown;
  std::string prefix;  // of every character but a word's first
  std::string suffix;  // of a word's last character
  bool fuse_unknown = false;
  bool byte_fallback = false;  // characters that are not in the vocabulary become <0x..> tokens
  bool ignore_merges = false;  // a word that is a token needs no merges
};

class Bpe final : public Model {
 public:
  using Merges = std::unordered_map<std::uint64_t, Merge>;
  static std::uint64_t pair(std::uint32_t left, std::uint32_t right) {
    return std::uint64_t{left} << 32 | right;
  }

  Bpe(Vocabulary vocabulary, Merges merges, BpeSettings settings, std::string where);

  // In n log n for n characters.
  void tokenize(std::string_view word, std::vector<WordToken>& tokens) const override;

 private:
  Merges merges_;
  BpeSettings settings_;
  std::string where_;
};

// Merges by name, the first with the best rank. `where` says where they were read.
Bpe::Merges merges_of(const Vocabulary& vocabulary,
                      const std::vector<std::pair<std::string, std::string>>& names, std::string_view prefix,
                      std::string_view where);

}  // namespace normscope::text

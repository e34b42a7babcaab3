#pragma once
// Tokens that are found in the text before any model sees it: "[MASK]", "<|endoftext|>".
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "text/model.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"
#include "text/trie.h"

namespace normscope::text {

struct AddedToken {
  std::string content;
  bool single_word = false;  // not inside a word
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // and behind it
  bool normalized = false;   // looked for after the normalizer, in its normalized form
  bool special = false;      // not shown when decoding
};

std::vector<AddedToken> added_tokens(const Node& list);

class AddedTokens {
 public:
  // Ids are those of the model where it has the token, and count on from there where not, whatever the file
  // says.
  AddedTokens(const std::vector<AddedToken>& tokens, const Vocabulary& vocabulary,
              const Normalizer* normalizer);

  // The whole text, normalized but for the tokens found.
  std::vector<Piece> find(AlignedText text, const Normalizer* normalizer) const;

  std::optional<std::uint32_t> id(std::string_view token) const;
  const AddedToken* token(std::uint32_t id) const;
  // As the decoder wants it: in the normalized form, if that is what is found in texts.
  std::optional<std::string> decoded(std::uint32_t id) const;
  bool is_special(std::string_view content) const;
  std::size_t ids_end() const { return ids_end_; }

 private:
  std::vector<Piece> cut(const AlignedText& text, const Trie& trie) const;

  std::unordered_map<std::string, std::uint32_t> ids_;
  std::unordered_map<std::uint32_t, AddedToken> tokens_;
  std::unordered_map<std::uint32_t, std::string> normalized_;  // where it differs
  std::unordered_set<std::string> special_;
  Trie as_written_, as_normalized_;
  std::size_t ids_end_ = 0;
};

}  // namespace normscope::text

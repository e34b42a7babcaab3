#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/node.h"

namespace normscope::text {

inline constexpr std::uint32_t highest_id = (1U << 24) - 1;

class Vocabulary {
 public:
  Vocabulary() = default;
  // An object of tokens with their ids; two tokens with the same id are rejected.
  explicit Vocabulary(const Node& node);

  // False if the token or the id is taken.
  bool insert(std::string_view token, std::uint32_t id);

  std::optional<std::uint32_t> id(std::string_view token) const;
  std::optional<std::string_view> token(std::uint32_t id) const;
  // <0x0A>
  std::optional<std::uint32_t> byte_id(unsigned char byte) const;
  std::size_t size() const { return ids_.size(); }
  std::size_t ids_end() const { return ids_end_; }
  std::size_t longest_token() const { return longest_token_; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> ids_;
  std::unordered_map<std::uint32_t, std::string_view> tokens_;  // into the keys of ids_
  std::size_t ids_end_ = 0;
  std::size_t longest_token_ = 0;
};

struct WordToken {
  std::uint32_t id = 0;
  std::size_t begin = 0, end = 0;  // bytes of the word
  std::string_view text;           // as the vocabulary spells it, or the part of the word it does not know
};

// Cuts a word into tokens of the vocabulary.
class Model {
 public:
  virtual ~Model() = default;
  // Appends to `tokens`.
  virtual void tokenize(std::string_view word, std::vector<WordToken>& tokens) const = 0;
  const Vocabulary& vocabulary() const { return vocabulary_; }

 protected:
  explicit Model(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  Vocabulary vocabulary_;
};

std::unique_ptr<const Model> make_model(const Node& node);

// One per kind; make_model chooses.
std::unique_ptr<const Model> make_bpe(const Node& node);
std::unique_ptr<const Model> make_word_piece(const Node& node);
std::unique_ptr<const Model> make_word_level(const Node& node);
std::unique_ptr<const Model> make_unigram(const Node& node);

}  // namespace normscope::text

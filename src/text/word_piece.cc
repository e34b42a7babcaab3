// WordPiece: from the left, always the longest token of the vocabulary; a word that does not work out is
// unknown. WordLevel: words are tokens.
#include <fmt/format.h>

#include <limits>

#include "normscope/error.h"
#include "text/model.h"
#include "text/utf8.h"

namespace normscope::text {
namespace {

class WordPiece final : public Model {
 public:
  explicit WordPiece(const Node& node)
      : Model(Vocabulary(node.at("vocab"))),
        unknown_(node.string("unk_token", "[UNK]")),
        prefix_(node.string("continuing_subword_prefix", "##")),
        where_(node.where()) {
    if (const auto most = node.find("max_input_chars_per_word"))
      most_characters_ = most->integer(std::numeric_limits<std::uint32_t>::max());
  }

  void tokenize(std::string_view word, std::vector<WordToken>& tokens) const override {
    std::size_t characters = 0;
    for (const char byte : word) characters += continues_character(byte) ? 0 : 1;
    const std::size_t before = tokens.size();
    if (characters <= most_characters_ && cut(word, tokens)) return;
    tokens.resize(before);
    const auto unknown = vocabulary_.id(unknown_);
    if (!unknown)
      throw InputError(
          fmt::format("{}: the unknown token \"{}\" is not in the vocabulary.", where_, unknown_));
    tokens.push_back({*unknown, 0, word.size(), *vocabulary_.token(*unknown)});
  }

 private:
  bool cut(std::string_view word, std::vector<WordToken>& tokens) const {
    std::string spelled;
    for (std::size_t begin = 0; begin < word.size();) {
      std::size_t end = std::min(word.size(), begin + vocabulary_.longest_token());
      while (end < word.size() && continues_character(word[end])) --end;
      spelled.assign(begin > 0 ? prefix_ : "");
      const std::size_t prefix = spelled.size();
      spelled.append(word.substr(begin, end - begin));
      std::optional<std::uint32_t> id;
      while (end > begin && !(id = vocabulary_.id(spelled))) {
        do {
          --end;
        } while (end > begin && continues_character(word[end]));
        spelled.resize(prefix + end - begin);
      }
      if (!id || end == begin) return false;
      tokens.push_back({*id, begin, end, *vocabulary_.token(*id)});
      begin = end;
    }
    return true;
  }

  std::string unknown_, prefix_, where_;
  std::size_t most_characters_ = 100;
};

class WordLevel final : public Model {
 public:
  explicit WordLevel(const Node& node)
      : Model(Vocabulary(node.at("vocab"))),
        unknown_(node.string("unk_token", "<unk>")),
        where_(node.where()) {}

  void tokenize(std::string_view word, std::vector<WordToken>& tokens) const override {
    auto id = vocabulary_.id(word);
    if (!id) id = vocabulary_.id(unknown_);
    if (!id)
      throw InputError(
          fmt::format("{}: the unknown token \"{}\" is not in the vocabulary.", where_, unknown_));
    tokens.push_back({*id, 0, word.size(), *vocabulary_.token(*id)});
  }

 private:
  std::string unknown_, where_;
};

}  // namespace

std::unique_ptr<const Model> make_word_piece(const Node& node) {
  return std::make_unique<WordPiece>(node);
}

std::unique_ptr<const Model> make_word_level(const Node& node) {
  return std::make_unique<WordLevel>(node);
}

}  // namespace normscope::text

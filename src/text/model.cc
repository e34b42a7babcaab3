#include "text/model.h"

#include <fmt/format.h>

#include <array>

namespace normscope::text {

Vocabulary::Vocabulary(const Node& node) {
  if (!node.value().is_object()) node.fail("expected an object of tokens with their ids");
  ids_.reserve(node.value().size());
  tokens_.reserve(node.value().size());
  for (const auto& [token, id] : node.value().items()) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > highest_id)
      node.fail(fmt::format("the id of \"{}\" is not a whole number from 0 to {}", token, highest_id));
    if (!insert(token, id.get<std::uint32_t>()))
      node.fail(fmt::format("\"{}\" has the same id, {}, as another token", token, id.get<std::uint32_t>()));
  }
}

bool Vocabulary::insert(std::string_view token, std::uint32_t id) {
  if (tokens_.contains(id)) return false;
  const auto [entry, inserted] = ids_.try_emplace(std::string(token), id);
  if (!inserted) return false;
  tokens_.emplace(id, entry->first);
  ids_end_ = std::max(ids_end_, std::size_t{id} + 1);
  longest_token_ = std::max(longest_token_, token.size());
  return true;
}

std::optional<std::uint32_t> Vocabulary::id(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string_view> Vocabulary::token(std::uint32_t id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::uint32_t> Vocabulary::byte_id(unsigned char byte) const {
  constexpr std::string_view digits = "0123456789ABCDEF";
  const std::array<char, 6> token = {'<', '0', 'x', digits[byte >> 4], digits[byte & 0xF], '>'};
  return id(std::string_view(token.data(), token.size()));
}

std::unique_ptr<const Model> make_model(const Node& node) {
  std::string type = node.string("type", "");
  if (type.empty()) {
    // Older files do not say.
    type = node.find("merges")                      ? "BPE"
           : node.at("vocab").value().is_array()    ? "Unigram"
           : node.find("continuing_subword_prefix") ? "WordPiece"
                                                    : "WordLevel";
  }
  if (type == "BPE") return make_bpe(node);
  if (type == "WordPiece") return make_word_piece(node);
  if (type == "WordLevel") return make_word_level(node);
  if (type == "Unigram") return make_unigram(node);
  node.fail(fmt::format("unknown model \"{}\"", type));
}

}  // namespace normscope::text

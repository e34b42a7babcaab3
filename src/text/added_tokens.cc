#include "text/added_tokens.h"

#include <algorithm>

#include "text/utf8.h"

namespace normscope::text {
namespace {

// Where the character before `end` begins.
std::size_t character_before(std::string_view valid, std::size_t end) {
  --end;
  while (end > 0 && continues_character(valid[end])) --end;
  return end;
}

char32_t character_at(std::string_view valid, std::size_t position) {
  return next_character(valid, position);
}

}  // namespace

std::vector<AddedToken> added_tokens(const Node& list) {
  std::vector<AddedToken> result;
  for (const Node& item : list.items()) {
    item.at("id").integer(highest_id);
    AddedToken token;
    token.content = item.at("content").string();
    token.single_word = item.boolean("single_word", false);
    token.lstrip = item.boolean("lstrip", false);
    token.rstrip = item.boolean("rstrip", false);
    token.special = item.boolean("special", false);
    token.normalized = item.boolean("normalized", !token.special);
    result.push_back(std::move(token));
  }
  return result;
}

AddedTokens::AddedTokens(const std::vector<AddedToken>& tokens, const Vocabulary& vocabulary,
                         const Normalizer* normalizer) {
  auto next = static_cast<std::uint32_t>(vocabulary.size());
  for (const AddedToken& token : tokens) {
    if (token.content.empty()) continue;
    auto known = id(token.content);
    if (!known) known = vocabulary.id(token.content);
    const std::uint32_t its = known ? *known : next++;
    ids_[token.content] = its;
    tokens_[its] = token;
    ids_end_ = std::max(ids_end_, std::size_t{its} + 1);
    if (token.special) special_.insert(token.content);
    normalized_.erase(its);
    if (token.normalized && normalizer != nullptr) {
      AlignedText content(token.content);
      normalizer->apply(content);
      if (content.text() != token.content) normalized_[its] = content.text();
    }
  }
  for (const auto& [its, token] : tokens_) {
    const auto form = normalized_.find(its);
    const std::string& content = form != normalized_.end() ? form->second : token.content;
    if (!content.empty()) (token.normalized ? as_normalized_ : as_written_).insert(content, its);
  }
}

std::vector<Piece> AddedTokens::find(AlignedText text, const Normalizer* normalizer) const {
  std::vector<Piece> pieces;
  for (Piece& piece : cut(text, as_written_)) {
    if (piece.id) {
      pieces.push_back(std::move(piece));
      continue;
    }
    if (normalizer != nullptr) normalizer->apply(piece.text);
    for (Piece& part : cut(piece.text, as_normalized_)) pieces.push_back(std::move(part));
  }
  return pieces;
}

std::vector<Piece> AddedTokens::cut(const AlignedText& text, const Trie& trie) const {
  const std::string_view all = text.text();
  std::vector<Piece> pieces;
  const auto push = [&](std::size_t begin, std::size_t end, std::optional<std::uint32_t> its) {
    if (begin < end) pieces.push_back({text.slice(begin, end), its});
  };
  std::size_t between = 0;  // what is before has been cut off
  for (std::size_t at = 0; at < all.size();) {
    std::size_t size = 0;
    std::uint32_t its = 0;
    trie.prefixes(all.substr(at), [&](std::size_t length, std::uint32_t value) {
      size = length;
      its = value;
    });
    if (size == 0) {
      ++at;
      continue;
    }
    std::size_t begin = at, end = at + size;
    at = end;
    const AddedToken& token = tokens_.at(its);
    if (token.single_word) {
      const bool word_before = begin > 0 && is_word(character_at(all, character_before(all, begin)));
      const bool word_behind = end < all.size() && is_word(character_at(all, end));
      if (word_before || word_behind) continue;
    }
    if (token.lstrip) {
      // What the token before has taken stays there.
      while (begin > between && is_white_space(character_at(all, character_before(all, begin))))
        begin = character_before(all, begin);
      begin = std::max(begin, between);
    }
    if (token.rstrip) {
      std::size_t next = end;
      while (next < all.size() && is_white_space(next_character(all, next))) end = next;
    }
    if (between < begin) push(between, begin, std::nullopt);
    push(begin, end, its);
    between = end;
  }
  push(between, all.size(), std::nullopt);
  return pieces;
}

std::optional<std::uint32_t> AddedTokens::id(std::string_view token) const {
  const auto found = ids_.find(std::string(token));
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

const AddedToken* AddedTokens::token(std::uint32_t id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : &found->second;
}

std::optional<std::string> AddedTokens::decoded(std::uint32_t id) const {
  const auto form = normalized_.find(id);
  if (form != normalized_.end()) return form->second;
  const AddedToken* found = token(id);
  return found == nullptr ? std::nullopt : std::optional(found->content);
}

bool AddedTokens::is_special(std::string_view content) const {
  return special_.contains(std::string(content));
}

}  // namespace normscope::text

#include "text/bpe.h"

#include <fmt/format.h>

#include <queue>

#include "normscope/error.h"
#include "text/utf8.h"

namespace normscope::text {
namespace {

constexpr std::size_t none = static_cast<std::size_t>(-1);

struct Symbol {
  std::uint32_t id;
  std::size_t size;  // bytes of the word; 0 once it was merged into the one before
  std::size_t previous, next;
};

struct Candidate {
  Merge merge;
  std::size_t left;

  // The top of a std::priority_queue is the greatest.
  bool operator<(const Candidate& other) const {
    return merge.rank != other.merge.rank ? merge.rank > other.merge.rank : left > other.left;
  }
};

}  // namespace

Bpe::Bpe(Vocabulary vocabulary, Merges merges, BpeSettings settings, std::string where)
    : Model(std::move(vocabulary)),
      merges_(std::move(merges)),
      settings_(std::move(settings)),
      where_(std::move(where)) {}

void Bpe::tokenize(std::string_view word, std::vector<WordToken>& tokens) const {
  if (settings_.ignore_merges) {
    if (const auto whole = vocabulary_.id(word)) {
      tokens.push_back({*whole, 0, word.size(), *vocabulary_.token(*whole)});
      return;
    }
  }

  std::vector<Symbol> symbols;
  symbols.reserve(word.size());
  const auto add = [&](std::uint32_t id, std::size_t size) {
    const std::size_t at = symbols.size();
    if (at > 0) symbols.back().next = at;
    symbols.push_back({id, size, at > 0 ? at - 1 : none, none});
  };
  std::size_t unknown_size = 0;  // of the unknown token that is still to be added
  std::uint32_t unknown = 0;
  const auto add_unknown = [&] {
    if (unknown_size > 0) add(unknown, unknown_size);
    unknown_size = 0;
  };
  std::string spelled;
  for (std::size_t position = 0; position < word.size();) {
    const std::size_t begin = position;
    next_character(word, position);
    const std::size_t size = position - begin;
    spelled.assign(begin > 0 ? settings_.prefix : "");
    spelled.append(word.substr(begin, size));
    if (position == word.size()) spelled.append(settings_.suffix);

    if (const auto id = vocabulary_.id(spelled)) {
      add_unknown();
      add(*id, size);
      continue;
    }
    if (settings_.byte_fallback) {
      std::vector<std::uint32_t> bytes;
      for (const char byte : spelled) {
        if (const auto id = vocabulary_.byte_id(static_cast<unsigned char>(byte))) bytes.push_back(*id);
      }
      if (bytes.size() == spelled.size()) {
        for (const std::uint32_t id : bytes) add(id, 1);
        continue;
      }
    }
    if (!settings_.unknown) continue;  // so it is done: the character is lost
    if (!settings_.fuse_unknown) add_unknown();
    const auto id = vocabulary_.id(*settings_.unknown);
    if (!id)
      throw InputError(
          fmt::format("{}: the unknown token \"{}\" is not in the vocabulary.", where_, *settings_.unknown));
    unknown = *id;
    unknown_size += size;
  }
  add_unknown();

  std::vector<Candidate> initial;
  const auto candidate = [&](std::size_t left) -> std::optional<Candidate> {
    const std::size_t right = symbols[left].next;
    if (right == none) return std::nullopt;
    const auto found = merges_.find(pair(symbols[left].id, symbols[right].id));
    if (found == merges_.end()) return std::nullopt;
    return Candidate{found->second, left};
  };
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    if (const auto next = candidate(i)) initial.push_back(*next);
  }
  std::priority_queue<Candidate> queue({}, std::move(initial));
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = symbols[best.left];
    if (left.size == 0) continue;
    // The neighbours may have changed since.
    const auto now = candidate(best.left);
    if (!now || now->merge.id != best.merge.id) continue;
    Symbol& right = symbols[left.next];
    left.id = best.merge.id;
    left.size += right.size;
    left.next = right.next;
    right.size = 0;
    if (left.next != none) symbols[left.next].previous = best.left;
    if (left.previous != none) {
      if (const auto next = candidate(left.previous)) queue.push(*next);
    }
    if (const auto next = candidate(best.left)) queue.push(*next);
  }

  std::size_t begin = 0;
  for (const Symbol& symbol : symbols) {
    if (symbol.size == 0) continue;
    tokens.push_back({symbol.id, begin, begin + symbol.size, *vocabulary_.token(symbol.id)});
    begin += symbol.size;
  }
}

Bpe::Merges merges_of(const Vocabulary& vocabulary,
                      const std::vector<std::pair<std::string, std::string>>& names, std::string_view prefix,
                      std::string_view where) {
  Bpe::Merges merges;
  merges.reserve(names.size());
  std::uint32_t rank = 0;
  for (const auto& merge : names) {
    const std::string &left = merge.first, &right = merge.second;
    const auto known = [&](std::string_view token) {
      const auto id = vocabulary.id(token);
      if (!id)
        throw InputError(
            fmt::format("{}: merge {} (\"{}\" and \"{}\") needs \"{}\", which is not in the vocabulary.",
                        where, rank, left, right, token));
      return *id;
    };
    const std::uint32_t left_id = known(left), right_id = known(right);
    if (right.size() < prefix.size())
      throw InputError(
          fmt::format("{}: merge {}: \"{}\" is shorter than the prefix \"{}\".", where, rank, right, prefix));
    merges.insert_or_assign(Bpe::pair(left_id, right_id),
                            Merge{rank, known(left + right.substr(prefix.size()))});
    ++rank;
  }
  return merges;
}

std::unique_ptr<const Model> make_bpe(const Node& node) {
  Vocabulary vocabulary(node.at("vocab"));
  BpeSettings settings;
  if (const auto unknown = node.find("unk_token")) settings.unknown = unknown->string();
  settings.prefix = node.string("continuing_subword_prefix", "");
  settings.suffix = node.string("end_of_word_suffix", "");
  settings.fuse_unknown = node.boolean("fuse_unk", false);
  settings.byte_fallback = node.boolean("byte_fallback", false);
  settings.ignore_merges = node.boolean("ignore_merges", false);

  const Node list = node.at("merges");
  if (!list.value().is_array()) list.fail("expected a list");
  std::vector<std::pair<std::string, std::string>> names;
  for (const auto& merge : list.value()) {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      names.emplace_back(merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>());
      continue;
    }
    // "left right", in older files.
    if (!merge.is_string()) list.fail("a merge is a pair of tokens");
    const auto& both = merge.get_ref<const std::string&>();
    if (both.starts_with("#version")) continue;
    const std::size_t space = both.find(' ');
    if (space == std::string::npos || both.find(' ', space + 1) != std::string::npos)
      list.fail(fmt::format("\"{}\" is not a pair of tokens with a space between", both));
    names.emplace_back(both.substr(0, space), both.substr(space + 1));
  }
  Bpe::Merges merges = merges_of(vocabulary, names, settings.prefix, list.where());
  return std::make_unique<Bpe>(std::move(vocabulary), std::move(merges), std::move(settings), node.where());
}

}  // namespace normscope::text

// Unigram: of all ways to cut a word into pieces of the vocabulary, the one with the highest sum of scores
// (log-probabilities), by Viterbi from the left.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "normscope/error.h"
#include "text/model.h"
#include "text/trie.h"
#include "text/utf8.h"

namespace normscope::text {
namespace {

constexpr double unknown_penalty = 10;

class Unigram final : public Model {
 public:
  explicit Unigram(const Node& node)
      : Model({}), byte_fallback_(node.boolean("byte_fallback", false)), where_(node.where()) {
    const Node pieces = node.at("vocab");
    if (!pieces.value().is_array()) pieces.fail("expected a list of pieces with their scores");
    if (pieces.value().size() > highest_id) pieces.fail("too many pieces");
    // Of pieces that are there twice, the last one counts.
    std::unordered_map<std::string_view, std::uint32_t> last;
    for (const auto& piece : pieces.value()) {
      if (!piece.is_array() || piece.size() != 2 || !piece[0].is_string() || !piece[1].is_number())
        pieces.fail("expected [piece, score] in every place");
      const auto id = static_cast<std::uint32_t>(scores_.size());
      scores_.push_back(piece[1].get<double>());
      last[piece[0].get_ref<const std::string&>()] = id;
      least_score_ = std::min(least_score_, scores_.back());
    }
    for (const auto& [piece, id] : last) {
      vocabulary_.insert(piece, id);
      trie_.insert(piece, id);
    }
    if (const auto unknown = node.find("unk_id")) {
      if (scores_.empty()) pieces.fail("the vocabulary is empty");
      unknown_ = static_cast<std::uint32_t>(unknown->integer(scores_.size() - 1));
    }
  }

  void tokenize(std::string_view word, std::vector<WordToken>& tokens) const override {
    std::vector<Match> path = best_path(word);
    // Unknown neighbours are one token.
    for (std::size_t i = 0; i < path.size();) {
      std::size_t end = path[i].end;
      std::size_t next = i + 1;
      if (unknown_ && path[i].id == *unknown_) {
        for (; next < path.size() && path[next].id == *unknown_; ++next) end = path[next].end;
      }
      add(word, path[i].begin, end, tokens);
      i = next;
    }
  }

 private:
  struct Match {
    std::size_t begin, end;
    std::uint32_t id;
  };
  struct Best {  // of all paths that end here
    double score = 0;
    std::size_t begin = std::numeric_limits<std::size_t>::max();
    std::uint32_t id = 0;
  };

  std::vector<Match> best_path(std::string_view word) const {
    std::vector<Best> best(word.size() + 1);
    for (std::size_t begin = 0; begin < word.size();) {
      std::size_t next = begin;
      next_character(word, next);
      const auto offer = [&](std::size_t end, double score, std::uint32_t id) {
        Best& old = best[end];
        const double sum = score + best[begin].score;
        if (old.begin == Best().begin || sum > old.score) old = {sum, begin, id};
      };
      bool has_single = false;
      trie_.prefixes(word.substr(begin), [&](std::size_t size, std::uint32_t id) {
        offer(begin + size, scores_[id], id);
        has_single = has_single || begin + size == next;
      });
      if (!has_single) {
        if (!unknown_)
          throw InputError(
              fmt::format("{}: the text has a character that is not in the vocabulary, and there is no "
                          "unknown token.",
                          where_));
        offer(next, least_score_ - unknown_penalty, *unknown_);
      }
      begin = next;
    }
    std::vector<Match> path;
    for (std::size_t end = word.size(); end > 0; end = best[end].begin)
      path.push_back({best[end].begin, end, best[end].id});
    std::reverse(path.begin(), path.end());
    return path;
  }

  void add(std::string_view word, std::size_t begin, std::size_t end, std::vector<WordToken>& tokens) const {
    const std::string_view piece = word.substr(begin, end - begin);
    auto id = vocabulary_.id(piece);
    if (!id && byte_fallback_) {
      std::vector<WordToken> bytes;
      for (const char byte : piece) {
        const auto byte_id = vocabulary_.byte_id(static_cast<unsigned char>(byte));
        if (byte_id) bytes.push_back({*byte_id, begin, end, *vocabulary_.token(*byte_id)});
      }
      if (bytes.size() == piece.size()) {
        tokens.insert(tokens.end(), bytes.begin(), bytes.end());
        return;
      }
    }
    if (!id) id = unknown_;
    tokens.push_back({id.value(), begin, end, piece});
  }

  std::vector<double> scores_;
  Trie trie_;
  double least_score_ = std::numeric_limits<double>::infinity();
  std::optional<std::uint32_t> unknown_;
  bool byte_fallback_;
  std::string where_;
};

}  // namespace

std::unique_ptr<const Model> make_unigram(const Node& node) {
  return std::make_unique<Unigram>(node);
}

}  // namespace normscope::text

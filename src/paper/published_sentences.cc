#include "paper/published_sentences.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/number_text.h"

namespace normscope {
namespace {

// What is marked stands between asterisks.
constexpr const char* kTable3[] = {
    "whether you like rap music or loathe it, you can't deny either the tragic loss of two young men in the prime of their *talent* or the *power* of this movie.",
    "it is great summer *fun* to watch arnold and his buddy gerald bounce off a quirky cast of characters.",
    "the lion king was a roaring *success* when it was released eight years ago, but on imax it seems better, not just bigger.",
    "it provides the grand, intelligent *entertainment* of a superior cast playing smart people amid a compelling plot.",
    "some of their jokes work, but most fail miserably and in the end, pumpkin is *far* more *offensive* than it is funny."};
constexpr const char* kTable4[] = {
    "it's hard to *like* a film about a guy who is utterly unlikeable, and shiner, starring michael caine as an aging british boxing promoter desperate for a taste of fame and fortune, is certainly that.",
    "you'll gasp appalled and *laugh* outraged and possibly, watching the spectacle of a promising young lad treading desperately in a nasty sea, shed an errant tear.",
    "this is *wild* surreal *stuff*, but brilliant and the camera just kind of sits there and lets you look at this and its like you're going from one room to the next and none of them have any relation to the other.",
    "it's a much more *emotional* journey than what shyamalan has given us in his past two movies, and gibson, stepping in for bruce willis, is the perfect actor to take us on the trip.",
    "*although* german cooking does not come readily to *mind* when considering the world's best cuisine, mostly martha could make deutschland a popular destination for hungry tourists."};

// The run's own view of a sentence; null if it has not looked at it.
const MarkedSentence* find(const TextEvidence& run, const std::string& text) {
  for (const MarkedSentence& sentence : run.marked.sentences)
    if (std::accumulate(sentence.tokens.begin(), sentence.tokens.end(), std::string()) == text)
      return &sentence;
  return nullptr;
}

// Whether a token of the word is unselectable in some layer.
bool is_marked(const MarkedSentence& sentence, std::pair<std::size_t, std::size_t> word) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < sentence.tokens.size(); ++i) {
    const std::size_t end = at + sentence.tokens[i].size();
    if (at < word.second && end > word.first && !sentence.layers[i].empty()) return true;
    at = end;
  }
  return false;
}

}  // namespace

std::vector<PublishedSentence> published_sentences(int table) {
  std::vector<PublishedSentence> sentences;
  for (const std::string written : table == 3 ? std::span(kTable3) : std::span(kTable4)) {
    PublishedSentence& sentence = sentences.emplace_back();
    bool inside = false;
    for (const char c : written) {
      if (c != '*') {
        sentence.text += c;
      } else if (inside = !inside; inside) {
        sentence.marked.emplace_back(sentence.text.size(), 0);
      } else {
        sentence.marked.back().second = sentence.text.size();
      }
    }
  }
  return sentences;
}

std::vector<ReportTable> with_published_marks(int table, const TextRuns& runs,
                                              std::vector<ReportTable> tables) {
  ReportTable marks{fmt::format("Table {}: the words it marks, beside what is unselectable here", table),
                    {{"sentence", "marked word", "unselectable here, in some layer", "other tokens of it"}}};
  for (const PublishedSentence& sentence : published_sentences(table)) {
    for (const auto& word : sentence.marked) {
      std::size_t looked = 0, agreed = 0, others = 0, other_marks = 0;
      for (const TextEvidence* run : runs) {
        const MarkedSentence* found = find(*run, sentence.text);
        if (found == nullptr) continue;
        ++looked;
        agreed += is_marked(*found, word);
        others += found->tokens.size();
        other_marks += found->marked();
      }
      if (looked == 0) continue;
      marks.rows.push_back({sentence.text.substr(0, sentence.text.find(' ', 24)) + " …",
                            sentence.text.substr(word.first, word.second - word.first),
                            fmt::format("in {} of {}", agreed, counted(looked, "seed")),
                            fmt::format("{} of {} tokens, over the seeds", other_marks, others)});
    }
  }
  if (marks.rows.size() > 1) tables.insert(tables.begin(), std::move(marks));
  return tables;
}

}  // namespace normscope

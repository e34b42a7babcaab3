// Table 3 of Brody, Alon, Yahav 2023: words that are unselectable in some layer of the language model without
// scaling.
#include "paper/brody_tables.h"
#include "paper/published_sentences.h"

namespace normscope {
namespace {

std::vector<double> with_scaling(const Evidence& evidence) {
  return word_shares(sound_runs(evidence.texts, kWithScaling)).tokens;
}

Findings shown(const Evidence& evidence) {
  const TextRuns runs = sound_runs(evidence.texts, kWithoutScaling);
  return {.texts = shown_sentences(evidence, runs, "table3",
                                   "Table 3: unselectable words, language model without scaling"),
          .tables = with_published_marks(3, runs)};
}

Findings shown_without_norm(const Evidence& evidence) {
  const TextRuns runs = sound_runs(evidence.texts, "none");
  return {
      .texts = shown_sentences(evidence, runs, "table3-none",
                               "Table 3: unselectable words, language model without a norm before attention"),
      .tables = with_published_marks(3, runs)};
}

}  // namespace

Exhibit brody_table3_none() {
  Claim claim =
      words_claim("Table 3, no norm",
                  "Words are unselectable in at least one layer of the language model without LayerNorm",
                  "none", {Need::language, {"none"}});
  claim.asks = {sentences_long_enough("none"), language_learned("none")};
  return {{claim}, shown_without_norm};
}

Exhibit brody_table3() {
  Claim claim = words_claim(
      "Table 3", "Words are unselectable in at least one layer of the language model without scaling",
      kWithoutScaling, language_norms());
  claim.asks = {sentences_long_enough(kWithoutScaling), language_learned(kWithoutScaling)};
  claim.afterword =
      claim.afterword + when(any_in(with_scaling), written(" With scaling, the same sentences: {} %.",
                                                           digits(1, mean_of(with_scaling), 100)));
  return {{claim}, shown};
}

}  // namespace normscope

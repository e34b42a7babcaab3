// Table 3 of Brody, Alon, Yahav 2023: words that are unselectable in some layer of the language model without
// scaling.
#include "paper/brody_tables.h"

namespace normscope {
namespace {

std::vector<double> with_scaling(const Evidence& evidence) {
  return word_shares(sound_runs(evidence.texts, kWithScaling)).tokens;
}

Findings shown(const Evidence& evidence) {
  return {.texts = shown_sentences(evidence, sound_runs(evidence.texts, kWithoutScaling), "table3",
                                   "Table 3: unselectable words, language model without scaling")};
}

}  // namespace

Exhibit brody_table3() {
  Claim claim = words_claim(
      "Table 3", "Words are unselectable in at least one layer of the language model without scaling",
      kWithoutScaling, language_norms());
  claim.asks = {language_learned(kWithoutScaling)};
  claim.afterword =
      claim.afterword + when(any_in(with_scaling), written(" With scaling, the same sentences: {} %.",
                                                           digits(1, of(with_scaling, mean_interval), 100)));
  return {{claim}, shown};
}

}  // namespace normscope

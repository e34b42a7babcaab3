// Table 3 of Brody, Alon, Yahav 2023: words that are unselectable in some layer of the language model without
// scaling.
#include <fmt/format.h>

#include "core/number_text.h"
#include "paper/brody_tables.h"

namespace normscope {

std::vector<TextFinding> shown_sentences(const Evidence& evidence, const TextRuns& runs, const char* name,
                                         const char* title) {
  constexpr std::size_t most = 12;
  if (runs.empty()) return {};
  const TextEvidence& run = *runs.front();
  const TextRecipe& recipe = evidence.recipe;
  return {{name, title,
           fmt::format("{}Of {} sentences ({}) those with the most unselectable tokens, a line each; "
                       "underlined is what no query can put on top, among the tokens of its sentence, in at "
                       "least one layer. Tokens: {}. Seed {}.",
                       recipe.generated ? "GENERATED TEXT, not language. " : "", run.marked.sentences.size(),
                       recipe.sentence_source, recipe.tokenizer, run.id.seed),
           "", marked_figure(run.marked.sentences, most)}};
}

Findings brody_table3(const Evidence& evidence) {
  const TextRuns without = sound_runs(evidence.texts, kWithoutScaling);
  Claim claim = words_claim(
      "Table 3", "Words are unselectable in at least one layer of the language model without scaling",
      without, evidence.recipe);
  if (const auto with = word_shares(sound_runs(evidence.texts, kWithScaling)).tokens; !with.empty())
    claim.why +=
        fmt::format(" With scaling, the same sentences: {} %.", with_interval(mean_interval(with), 1, 100));
  Findings found;
  found.claims = {claim};
  found.texts = shown_sentences(evidence, without, "table3",
                                "Table 3: unselectable words, language model without scaling");
  return found;
}

}  // namespace normscope

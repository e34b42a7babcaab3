// Table 4 of Brody, Alon, Yahav 2023: words that are unselectable in some layer of a BERT without norms,
// trained on sentiment.
#include <fmt/format.h>

#include "core/number_text.h"
#include "paper/brody_tables.h"
#include "paper/published_sentences.h"

namespace normscope {
namespace {

ReportTable sentiment_recipe(const TextRecipe& recipe) {
  return {
      "Recipe of the sentiment model",
      {{"setting", "published", "here"},
       {"texts", "SST-2", fmt::format("{}; {} to train on", recipe.corpus, recipe.training_texts)},
       {"tokenizer", "BERT's, cased, 28996 tokens", recipe.tokenizer},
       {"steps", "50000", std::to_string(recipe.steps)},
       {"texts of a step, tokens at most", "32 × 128", fmt::format("{} × {}", recipe.batch, recipe.context)},
       {"hidden units of a feed-forward part", "3072", std::to_string(recipe.feed_forward)},
       {"AdamW, linear to 0 from", "5e-05", significant(recipe.learning_rate, 6)},
       {"dropout", "0.1", significant(recipe.dropout, 6)},
       {"sentences looked at", "five shown",
        fmt::format("{} ({})", recipe.sentences, recipe.sentence_source)}}};
}

// Shares by layer over the sentences, as if they were windows.
ReportTable shares_of(const TextRuns& runs) {
  std::vector<TextEvidence> sentences;
  for (const TextEvidence* run : runs) {
    TextEvidence& each = sentences.emplace_back();
    each.id = run->id;
    each.snapshots.push_back({run->rows.empty() ? 0 : run->rows.back().step, run->marked.tally});
  }
  const TextRuns chosen = sound_runs(sentences, "none");
  const std::size_t layers = layers_of(chosen);
  return {"Table 4: unselectable tokens of the sentences, per cent, in BERT without norms",
          {layer_header(layers), measured_row("where the norm used to be", chosen, layers, after),
           head_row("in the heads: mean (least to most head); not in the paper", chosen, layers)}};
}

Interval accuracy(const Evidence& evidence) {
  return mean_interval(
      last_values(sound_runs(evidence.texts, "none"),
                  [](const TextRow& row) { return row.held_out ? row.held_out->accuracy : kNoValue; }),
      level_of(evidence));
}
double chance(const Evidence& evidence) {
  return evidence.recipe.classes > 0 ? 1 / static_cast<double>(evidence.recipe.classes) : 0;
}
double asked(const Evidence& evidence) {
  return chance(evidence) + 0.05;
}
// In per cent.
template <double (*share)(const Evidence&)>
double percent_of(const Evidence& evidence) {
  return 100 * share(evidence);
}

Findings shown(const Evidence& evidence) {
  const TextRuns runs = sound_runs(evidence.texts, "none");
  return {
      .texts = shown_sentences(evidence, runs, "table4", "Table 4: unselectable words, BERT without norms"),
      .tables = with_published_marks(4, runs, {shares_of(runs), sentiment_recipe(evidence.recipe)})};
}

}  // namespace

Exhibit brody_table4() {
  Claim claim = words_claim(
      "Table 4", "Words are unselectable in at least one layer of a BERT without norms, trained on sentiment",
      "none", {Need::sentiment, {"none"}});
  const Condition evaluated = some(of(accuracy, &Interval::count));
  const auto right = digits(1, accuracy, 100);
  claim.measured = claim.measured + when(evaluated, written("; test accuracy {} %", right));
  claim.asks = {
      sentences_long_enough("none"),
      learned(
          any_of({negation(evaluated),
                  [](const Evidence& evidence) {
                    return above(evidence, accuracy(evidence),
                                 {asked(evidence), "five per cent above chance", chance(evidence)},
                                 "share of the test texts that are right");
                  }}),
          written(
              " The models have hardly learned the task (chance is {:.0f} %). More steps are needed for these to be the words of a trained model.",
              percent_of<chance>),
          written("{} % of the test texts are right, and {:.0f} % are asked for (chance is {:.0f} %)", right,
                  percent_of<asked>, percent_of<chance>))};
  claim.afterword = claim.afterword + " Keys are read where the norm in front of each attention used to be.";
  return {{claim}, shown};
}

}  // namespace normscope

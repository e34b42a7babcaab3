// Table 4 of Brody, Alon, Yahav 2023: words that are unselectable in some layer of a BERT without norms,
// trained on sentiment.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

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

// Of sentences whose words were weighed, by run: how many of their most important words are unselectable, and how many
// of all their words.
struct Important {
  std::vector<double> most, all;
  std::size_t sentences = 0;
};
Important important(const Evidence& evidence) {
  Important found;
  for (const TextEvidence* run : sound_runs(evidence.texts, "none")) {
    std::size_t sentences = 0, hit = 0, tokens = 0, marked = 0;
    for (const MarkedSentence& sentence : run->marked.sentences) {
      if (sentence.importance.empty()) continue;
      const auto most = std::max_element(sentence.importance.begin(), sentence.importance.end());
      ++sentences;
      hit += !sentence.layers[static_cast<std::size_t>(most - sentence.importance.begin())].empty();
      tokens += sentence.tokens.size();
      marked += sentence.marked();
    }
    if (sentences == 0) continue;
    found.sentences = sentences;
    found.most.push_back(static_cast<double>(hit) / static_cast<double>(sentences));
    found.all.push_back(static_cast<double>(marked) / static_cast<double>(tokens));
  }
  return found;
}

Claim important_words(std::vector<Ask> asks) {
  const auto most = mean_of(of(important, &Important::most)), all = mean_of(of(important, &Important::all));
  const auto apart = [](const Evidence& evidence) {
    const Important found = important(evidence);
    return mean_difference(found.all, found.most, level_of(evidence));
  };
  return {
      .where = "App. D",
      .sentence = "Words that are important to the task are among the unselectable ones",
      .published = "such words are among those marked, which may hurt the task; no numbers",
      .needs = {{Need::sentiment, {"none"}}, {Need::sentences}},
      .there = any_in(of(important, &Important::most)),
      .measured = written(
          "of {} sentences the most important token is unselectable in {} %; of all their tokens {} % are",
          of(important, &Important::sentences), digits(1, most, 100), digits(1, all, 100)),
      .why = written(
          "Important is a token without which the loss of the class that the model gives the sentence rises most. Most important less all, seed by seed: {} %. Whether it hurts the task is not said by this: {}.",
          digits(1, apart, 100),
          counted(of(important, [](const Important& found) { return found.most.size(); }), "seed")),
      .asks = std::move(asks),
      .holds = [=](const Evidence& evidence) -> Answer {
        constexpr const char* what = "share of sentences whose most important token is unselectable";
        // As of all words: none in any run is no; a mean above 0 with its interval is yes.
        if (std::ranges::max(important(evidence).most) == 0)
          return at_least(evidence, 0.0, std::numeric_limits<double>::min(), what);
        return above(evidence, most(evidence), 0, what);
      },
      .stand_in = text_stand_in,
      .not_at_hand = text_not_at_hand,
      .afterword = generated_note,
      .topic = "selectability"};
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
  return {{claim, important_words(claim.asks)}, shown};
}

}  // namespace normscope

#include "paper/text_measures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/number_text.h"
#include "paper/part.h"
#include "report/curves.h"

namespace normscope {
namespace {

// What a language model must have learned for its keys to be those of a trained one, in nats.
constexpr Threshold kLearned{
    0.5, "half a nat is more than the frequencies of tokens alone take a small model off its start"};

bool classifies(const TextRecipe& recipe) {
  return recipe.training_texts > 0;
}
std::size_t published_batch(const TextRecipe& recipe) {
  return classifies(recipe) ? 32 : 16;
}
std::size_t published_context(const TextRecipe& recipe) {
  return classifies(recipe) ? 128 : 1024;
}

}  // namespace

bool TextRecipe::at_published_scale() const {
  return steps >= kPublishedTextSteps && batch >= published_batch(*this) &&
         context >= published_context(*this);
}

double held_out_loss_of(const TextRow& row) {
  return row.held_out ? row.held_out->loss : kNoValue;
}

TextRuns sound_runs(std::span<const TextEvidence> runs, std::string_view norm) {
  TextRuns chosen;
  for (const TextEvidence& run : runs) {
    if (run.id.norm == norm && !run.broken) chosen.push_back(&run);
  }
  return chosen;
}

std::uint64_t last_step(std::span<const TextEvidence> runs) {
  std::uint64_t last = 0;
  for (const TextEvidence& run : runs) {
    if (!run.broken && !run.rows.empty()) last = std::max(last, run.rows.back().step);
  }
  return last;
}

std::vector<double> last_values(const TextRuns& runs, const RowValue& value) {
  std::vector<double> values;
  for (const TextEvidence* run : runs) {
    if (!run->rows.empty() && std::isfinite(value(run->rows.back())))
      values.push_back(value(run->rows.back()));
  }
  return values;
}

std::string text_stand_in(const Evidence& evidence) {
  const TextRecipe& recipe = evidence.recipe;
  std::string text;
  if (!recipe.at_published_scale())
    text = fmt::format("{} steps of {} × {} tokens", recipe.steps, recipe.batch, recipe.context);
  if (recipe.generated) append(text, "text written by a grammar", " of ");
  return text;
}

std::string text_not_at_hand(const Evidence& evidence) {
  const TextRecipe& recipe = evidence.recipe;
  if (text_stand_in(evidence).empty()) return "";
  return fmt::format("{} steps of {} × {} tokens of {}", kPublishedTextSteps, published_batch(recipe),
                     published_context(recipe), classifies(recipe) ? "SST-2" : "Wikipedia");
}

std::string generated_note(const Evidence& evidence) {
  return evidence.recipe.generated
             ? " GENERATED TEXT: the corpus was written by a built-in grammar and is not language."
             : "";
}

Ask learned(const Condition& condition, const Text& hardly, const Text& so_far) {
  return {
      condition,
      when(told(condition), hardly) +
          when(
              negation(told(condition)),
              written(
                  " Whether the models have learned cannot be told from these seeds: {}. More seeds or steps are needed.",
                  so_far))};
}

Ask language_learned(const std::string& norm) {
  const auto gained = [=](const Evidence& evidence) {
    std::vector<double> gains;
    for (const TextEvidence* run : sound_runs(evidence.texts, norm)) {
      if (run->rows.empty()) continue;
      const double gain = held_out_loss_of(run->rows.front()) - held_out_loss_of(run->rows.back());
      if (std::isfinite(gain)) gains.push_back(gain);
    }
    return mean_interval(gains, level_of(evidence));
  };
  return learned(
      above(gained, kLearned, Aspect(norm + ": held-out loss, start − end", "nats")),
      written(
          " The models have hardly learned: their held-out loss fell by {:.2f} nats, and {} are asked for. More steps are needed.",
          [=](const Evidence& evidence) { return gained(evidence).mean; }, kLearned.value),
      written("their held-out loss fell by {} nats, and {} are asked for", digits(2, gained),
              kLearned.value));
}

void add_point(CurveFigure::Curve& curve, std::uint64_t step, std::span<const double> values, double unit,
               double least, double most) {
  const Interval interval = mean_interval(values);
  if (interval.count == 0) return;
  curve.x.push_back(static_cast<double>(step));
  curve.y.push_back(unit * interval.mean);
  const bool band = interval.count > 1;
  const auto [low, high] = interval.drawn();
  curve.low.push_back(unit * std::clamp(band ? low : interval.mean, least, most));
  curve.high.push_back(unit * std::clamp(band ? high : interval.mean, least, most));
}

std::string scale_caption(const TextRecipe& recipe) {
  return fmt::format(
      "{}{}, {}; {} steps of {} × {} tokens{}. ", recipe.generated ? "GENERATED TEXT, not language: " : "",
      recipe.corpus, recipe.tokenizer, recipe.steps, recipe.batch, recipe.context,
      recipe.at_published_scale() ? "" : ", a reduced recipe (published: 50 000 of 16 × 1024)");
}

std::string seeds_caption(std::span<const TextEvidence> runs) {
  std::vector<std::uint64_t> seeds;
  for (const TextEvidence& run : runs) {
    if (!run.broken) seeds.push_back(run.id.seed);
  }
  std::string text = seeds_caption(seeds);
  if (seeds.size() < runs.size())
    text += fmt::format(" Left out: {} whose loss left its course.", runs.size() - seeds.size());
  return text;
}

}  // namespace normscope

// Fig. 4 of Brody, Alon, Yahav 2023: does scaling lower the loss of a language model?
#include <fmt/format.h>

#include <cmath>

#include "core/number_text.h"
#include "paper/part.h"
#include "report/collapse_page.h"

namespace normscope {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

double train_loss(const TextRow& row) {
  return row.train_loss;
}

// Read off the figure, at the end.
struct PublishedLoss {
  const char* what;
  double with, without;
  double (*value)(const TextRow&);
};
constexpr PublishedLoss kTrain{"training", 7.28, 7.33, train_loss},
    kTest{"test", 7.33, 7.38, held_out_loss_of};

// Without minus with scaling of the same seed, where both have the step.
std::vector<double> differences_at(std::span<const TextEvidence> runs, std::uint64_t step,
                                   const RowValue& value) {
  const auto at = [&](const TextEvidence& run) {
    for (const TextRow& row : run.rows) {
      if (row.step == step) return value(row);
    }
    return kNoValue;
  };
  std::vector<double> differences;
  for (const TextEvidence* with : sound_runs(runs, kWithScaling)) {
    for (const TextEvidence* without : sound_runs(runs, kWithoutScaling)) {
      if (with->id.seed != without->id.seed) continue;
      const double difference = at(*without) - at(*with);
      if (std::isfinite(difference)) differences.push_back(difference);
    }
  }
  return differences;
}

Claim scaling_lowers(const PublishedLoss& published) {
  const auto differences = [=](const Evidence& evidence) {
    return mean_interval(differences_at(evidence.texts, last_step(evidence.texts), published.value),
                         level_of(evidence));
  };
  const auto at_end = [=](const char* norm) {
    return digits(3, [=](const Evidence& evidence) {
      return mean_interval(last_values(sound_runs(evidence.texts, norm), published.value),
                           level_of(evidence));
    });
  };
  const auto seeds = of(differences, &Interval::count);
  const double gain = published.without - published.with;
  return {
      .where = "Fig. 4",
      .sentence = fmt::format("Scaling lowers the {} loss of the language model", published.what),
      .published = fmt::format("{:.2f} with, {:.2f} without, after {} steps (read off the figure)",
                               published.with, published.without, kPublishedTextSteps),
      .needs = {language_norms()},
      .there = some(seeds),
      .otherwise = "not run with both norms and one seed to the end",
      .measured = written(
          "{} with, {} without, after {} steps; without − with, seed by seed: {}", at_end(kWithScaling),
          at_end(kWithoutScaling), [](const Evidence& evidence) { return last_step(evidence.texts); },
          digits(4, differences)),
      .why = written("Nats, {}, same batches, initial numbers and dropout with and without.",
                     counted(seeds, "seed")),
      .asks = {enough_text_seeds(seeds)},
      .holds = above(differences, 0,
                     Aspect(fmt::format("{} loss, without − with scaling", published.what), "nats", gain)),
      .undecided = " The interval of the difference holds 0: these runs show none." +
                   when(below(differences, gain),
                        fmt::format(" The published difference, {:.2f}, lies beyond it.", gain)),
      .stand_in = text_stand_in,
      .not_at_hand = text_not_at_hand,
      .afterword =
          when(
              some(seeds),
              " The losses themselves compare only at the published scale, on the published corpus (Wikipedia) and in its tokens.") +
          generated_note,
      .topic = "scaling"};
}

CurveFigure::Panel loss_panel(std::span<const TextEvidence> runs, const std::string& title,
                              const PublishedLoss& published) {
  CurveFigure::Panel panel = step_panel(title, "cross-entropy, nats");
  const std::tuple<const char*, const char*, double> norms[] = {
      {kWithScaling, "with scaling (layernorm)", published.with},
      {kWithoutScaling, "without scaling (center)", published.without}};
  for (const auto& [norm, name, end] : norms) {
    const TextRuns chosen = sound_runs(runs, norm);
    if (chosen.empty()) continue;
    CurveFigure::Curve curve;
    curve.name = name;
    for (const TextRow& row : chosen.front()->rows) {
      std::vector<double> values;
      for (const TextEvidence* run : chosen) {
        for (const TextRow& each : run->rows) {
          if (each.step == row.step && std::isfinite(published.value(each)))
            values.push_back(published.value(each));
        }
      }
      add_point(curve, row.step, values, 1, 0, kUnbounded);
    }
    panel.curves.push_back(std::move(curve));
    if (last_step(runs) >= kPublishedTextSteps)
      panel.marks.push_back({name, static_cast<double>(kPublishedTextSteps), end,
                             "read off the paper's figure; another corpus"});
  }
  return panel;
}

CurveFigure::Panel difference_panel(std::span<const TextEvidence> runs) {
  CurveFigure::Panel panel = step_panel("What scaling gains: loss without − with, same seed", "nats");
  const TextRuns with = sound_runs(runs, kWithScaling);
  if (with.empty()) return panel;
  for (const auto& [name, published] : {std::pair{"training loss", &kTrain}, {"held-out loss", &kTest}}) {
    CurveFigure::Curve curve;
    curve.name = name;
    for (const TextRow& row : with.front()->rows)
      add_point(curve, row.step, differences_at(runs, row.step, published->value), 1, -kUnbounded,
                kUnbounded);
    panel.curves.push_back(std::move(curve));
  }
  return panel;
}

Findings shown(const Evidence& evidence) {
  const auto runs = evidence.texts;
  CurveFigure figure;
  figure.panels = {loss_panel(runs, "Training loss (Fig. 4)", kTrain),
                   loss_panel(runs, "Held-out loss (Fig. 4)", kTest), difference_panel(runs)};
  figure.caption =
      scale_caption(evidence.recipe) +
      "Published after 50 000 steps on Wikipedia: training 7.28 with and 7.33 without scaling, test 7.33 and 7.38; losses compare only at that scale and on that corpus. " +
      seeds_caption(runs);
  return {.figures = {to_figure("fig4", "Language model: does scaling lower the loss?", "", figure)}};
}

}  // namespace

ReportTable language_recipe(const TextRecipe& recipe) {
  const std::uint64_t seen = recipe.steps * recipe.batch * recipe.context;
  return {"Recipe of the language model",
          {{"setting", "published", "here"},
           {"corpus", "Wikipedia, 20220301.en", recipe.corpus},
           {"tokenizer", "GPT-2's BPE, 50257 tokens", recipe.tokenizer},
           {"steps", "50000", std::to_string(recipe.steps)},
           {"texts × tokens of a step", "16 × 1024", fmt::format("{} × {}", recipe.batch, recipe.context)},
           {"tokens seen", "819200000",
            fmt::format("{} ({:.2g} times the {} of the corpus that were read)", seen,
                        static_cast<double>(seen) /
                            static_cast<double>(std::max<std::uint64_t>(1, recipe.training_tokens)),
                        recipe.training_tokens)},
           {"AdamW, linear to 0 from", "5e-05", significant(recipe.learning_rate, 6)},
           {"learning rates of all steps, summed", "1.25",
            fmt::format("{:.3g}", recipe.learning_rate * static_cast<double>(recipe.steps) / 2)},
           {"dropout", "0.1", significant(recipe.dropout, 6)},
           {"eps of LayerNorm", "GPT-2's, 1e-05", significant(recipe.eps, 6)},
           {"windows looked at", "1000 of 768 to 1024 tokens (SQuAD)",
            fmt::format("{} of {} tokens, {}", recipe.windows, recipe.context, recipe.window_source)}}};
}

Exhibit brody_fig4() {
  return {{scaling_lowers(kTrain), scaling_lowers(kTest)}, shown};
}

}  // namespace normscope

// The open questions of §5 of Brody, Alon, Yahav 2023, of every layer of a language model: learned normals in
// place of 1.
#include <fmt/format.h>

#include <cmath>

#include "core/number_text.h"
#include "paper/part.h"
#include "report/collapse_page.h"

namespace normscope {
namespace {

constexpr Threshold kSame{0.01, "a fifth of what scaling gains in the paper, 0.05 nats"};

// Held-out loss at the end, of the norm less LayerNorm's, seed by seed.
std::vector<double> differences(const Evidence& evidence, const std::string& norm) {
  std::vector<double> all;
  for (const TextEvidence* one : sound_runs(evidence.texts, kWithScaling)) {
    for (const TextEvidence* other : sound_runs(evidence.texts, norm)) {
      if (one->id.seed != other->id.seed || one->rows.empty() || other->rows.empty()) continue;
      const double difference = held_out_loss_of(other->rows.back()) - held_out_loss_of(one->rows.back());
      if (std::isfinite(difference)) all.push_back(difference);
    }
  }
  return all;
}

Claim in_every_layer(const std::string& norm, const char* question) {
  const auto difference = [=](const Evidence& evidence) {
    return mean_interval(differences(evidence, norm), level_of(evidence));
  };
  const auto at_end = [](const std::string& of_norm) {
    return digits(3, [=](const Evidence& evidence) {
      return mean_interval(last_values(sound_runs(evidence.texts, of_norm), held_out_loss_of),
                           level_of(evidence));
    });
  };
  const auto seeds = of(difference, &Interval::count);
  const Aspect loss(norm + ": held-out loss, less LayerNorm's", " nats");
  return {.where = "§5, asked",
          .sentence = question,
          .published = "asked, not answered",
          .needs = {{Need::language, {kWithScaling, norm}}},
          .there = some(seeds),
          .otherwise = "not run with both norms and one seed to the end",
          .measured = written(
              "held-out loss {} with {}, {} with LayerNorm, after {} steps; difference, seed by seed: {}",
              at_end(norm), norm, at_end(kWithScaling),
              [](const Evidence& evidence) { return last_step(evidence.texts); }, digits(4, difference)),
          .why = written("Nats, {}, same batches and initial numbers; every layer learns normals of its own.",
                         counted(seeds, "seed")),
          .asks = {enough_text_seeds(seeds), language_learned(kWithScaling)},
          .holds = any_of({told(above(difference, 0, loss)),
                           all_of({below(difference, kSame, loss), above(difference, -kSame.value, loss)})}),
          .undecided = " These seeds leave both open, a difference and none.",
          .stand_in = text_stand_in,
          .not_at_hand = text_not_at_hand,
          .answer =
              [=](const Evidence& evidence) {
                const Answer worse = above(difference(evidence), 0);
                return !worse   ? "the same loss as with the fixed normal 1, within a hundredth of a nat"
                       : *worse ? "a higher loss than with the fixed normal 1"
                                : "a lower loss than with the fixed normal 1";
              },
          .afterword = generated_note,
          .topic = "projection"};
}

Findings shown(const Evidence& evidence) {
  CurveFigure figure;
  figure.panels = {step_panel("Held-out loss", "cross-entropy, nats")};
  for (const char* norm : {kWithScaling, "project:1", "project:2"}) {
    const TextRuns chosen = sound_runs(evidence.texts, norm);
    if (chosen.empty()) continue;
    CurveFigure::Curve& curve = figure.panels[0].curves.emplace_back();
    curve.name = norm;
    for (const TextRow& row : chosen.front()->rows) {
      std::vector<double> values;
      for (const TextEvidence* run : chosen) {
        for (const TextRow& each : run->rows) {
          if (each.step == row.step && std::isfinite(held_out_loss_of(each)))
            values.push_back(held_out_loss_of(each));
        }
      }
      add_point(curve, row.step, values, 1, 0, std::numeric_limits<double>::infinity());
    }
  }
  figure.caption =
      scale_caption(evidence.recipe) +
      "project:k makes keys orthogonal to k normals that each layer learns, then scales to √d. " +
      seeds_caption(evidence.texts);
  return {
      .figures = {to_figure("followups-lm", "Language model: learned normals in every layer", "", figure)}};
}

}  // namespace

Exhibit brody_followups_lm() {
  return {{in_every_layer("project:1",
                          "Would a learned normal for every layer of a language model do instead of 1?"),
           in_every_layer(
               "project:2",
               "What if keys are orthogonal to 2 learned normals in every layer of a language model?")},
          shown};
}

}  // namespace normscope

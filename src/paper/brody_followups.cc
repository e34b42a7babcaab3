// The open questions of §5 of Brody, Alon, Yahav 2023: learned normals in place of 1.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/number_text.h"
#include "paper/majority_measures.h"
#include "paper/part.h"
#include "report/collapse_page.h"

namespace normscope {
namespace {

// The first value of a loss at which a norm can be compared with LayerNorm: reached by all runs of both.
std::optional<double> common_loss(const Evidence& evidence, const std::string& norm) {
  const MajorityRuns a = sound_runs(evidence.majority, "layernorm"), b = sound_runs(evidence.majority, norm);
  if (a.empty() || b.empty()) return std::nullopt;
  for (const double loss : {0.2, 0.3, 0.5, 1.0, 2.0}) {
    const auto reached = [&](const MajorityRun* run) { return run->steps_to(loss).has_value(); };
    if (std::all_of(a.begin(), a.end(), reached) && std::all_of(b.begin(), b.end(), reached)) return loss;
  }
  return std::nullopt;
}

constexpr Threshold kSame{1.1, "what is within a tenth of the steps is called as fast", 1};

Claim learned_normals(const std::string& norm, std::string question) {
  const auto loss = [=](const Evidence& evidence) { return common_loss(evidence, norm).value_or(0); };
  const auto ratio = [=](const Evidence& evidence) {
    return steps_ratio(norm, "layernorm", loss(evidence))(evidence);
  };
  const auto seeds = of(ratio, &RatioInterval::count);
  return {
      .where = "§5, asked",
      .sentence = std::move(question),
      .published = "asked, not answered",
      .needs = {{Need::majority, {"layernorm", "rmsnorm", norm}}},
      .there = above(loss, 0),
      .otherwise = "no common loss reached",
      .measured = written(
          "steps to loss {}: {} those of LayerNorm; test accuracy {} after {}", loss, ratio,
          digits(3, at_end(norm, kAccuracy)),
          [=](const Evidence& evidence) { return sound_runs(evidence.majority, norm).front()->step; }),
      .why = written("Steps compared seed by seed, {}: geometric mean, with its interval.",
                     counted(seeds, "seed")),
      .asks = {{at_least(seeds, 2), "Fewer than two seeds were run."}},
      .holds = any_of(
          {told(above(ratio, 1, Aspect(norm + " over layernorm, steps to the same loss", "×"))),
           at_most(of(ratio, factor_apart), kSame, Aspect(norm + " and layernorm, steps apart by", "×"))}),
      .undecided = " These seeds leave both open, a difference and none.",
      .answer =
          [=](const Evidence& evidence) {
            const Answer slower = above(ratio(evidence), 1.0);
            return !slower   ? "as fast as the fixed normal 1, within a tenth"
                   : *slower ? "slower than the fixed normal 1"
                             : "faster than the fixed normal 1";
          },
      .topic = "projection"};
}

Findings shown(const Evidence& evidence) {
  std::vector<MajorityRun> chosen;
  for (const MajorityRun& run : evidence.majority) {
    if (run.id.norm == "layernorm" || run.id.norm == "rmsnorm" || run.id.norm.starts_with("project:"))
      chosen.push_back(run);
  }
  CurveFigure figure;
  figure.panels = {majority_panel(chosen, "Training loss", "cross-entropy, nats", kTrainLoss, {}, true),
                   majority_panel(chosen, "Test accuracy per position", "share right", kAccuracy),
                   majority_panel(chosen, "Attention: distance from uniform", "total variation", kDistance)};
  figure.caption = "project:k makes keys orthogonal to k learned normals instead of 1, then scales to √d. " +
                   seeds_caption(chosen);
  return {.figures = {to_figure("followups", "The paper's open questions: learned normals", "", figure)}};
}

}  // namespace

Exhibit brody_followups() {
  return {{learned_normals("project:1", "Would one learned normal do instead of 1?"),
           learned_normals("project:2", "What if keys are orthogonal to 2 learned normals?"),
           learned_normals("project:4", "What if keys are orthogonal to 4 learned normals?")},
          shown};
}

}  // namespace normscope

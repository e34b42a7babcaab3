// The open questions of §6 of Brody, Alon, Yahav 2023: learned normals in place of 1.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/number_text.h"
#include "paper/majority_claims.h"
#include "paper/part.h"
#include "report/collapse_page.h"
#include "train/runs_by_norm.h"

namespace normscope {
namespace {

// The first value of a loss at which the runs of two norms can be compared: reached by all of both.
std::optional<double> common_loss(const MajorityRuns& a, const MajorityRuns& b) {
  if (a.empty() || b.empty()) return std::nullopt;
  for (const double loss : {0.2, 0.3, 0.5, 1.0, 2.0}) {
    const auto reached = [&](const MajorityRun* run) { return run->steps_to(loss).has_value(); };
    if (std::all_of(a.begin(), a.end(), reached) && std::all_of(b.begin(), b.end(), reached)) return loss;
  }
  return std::nullopt;
}

Claim answer_of(std::span<const MajorityRun> runs, const std::string& norm) {
  const std::string normals = norm.substr(norm.find(':') + 1);
  Claim claim =
      claim_of("§6, asked",
               normals == "1" ? "Would one learned normal do instead of 1?"
                              : fmt::format("What if keys are orthogonal to {} learned normals?", normals),
               "asked, not answered");
  const MajorityRuns chosen = sound_runs(runs, norm);
  const auto loss = common_loss(sound_runs(runs, "layernorm"), chosen);
  if (!loss) {
    claim.measured = "no common loss reached";
    return claim;
  }
  const RatioInterval ratio = steps_ratio(runs, norm, "layernorm", *loss);
  claim.measured = fmt::format(
      "steps to loss {}: {} those of LayerNorm; test accuracy {} after {}", *loss, with_interval(ratio),
      with_interval(mean_interval(last_values(chosen, kAccuracy.value)), 3), chosen.front()->step);
  claim.holds = ratio.count < 2 ? Holds::open : Holds::answered;
  const Answer slower = above(ratio, 1);
  claim.condition = !slower   ? "no difference that these seeds can show"
                    : *slower ? "slower than the fixed normal 1"
                              : "faster than the fixed normal 1";
  claim.why = fmt::format("Steps compared seed by seed, {}: geometric mean, 95 % interval.",
                          counted(ratio.count, "seed"));
  return claim;
}

}  // namespace

Findings brody_followups(const Evidence& evidence) {
  Findings found;
  for (const std::string& norm : norms_of(evidence.majority)) {
    if (norm.starts_with("project:")) found.claims.push_back(answer_of(evidence.majority, norm));
  }
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
  found.figures = {to_figure("followups", "The paper's open questions: learned normals", "", figure)};
  return found;
}

}  // namespace normscope

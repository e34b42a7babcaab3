// Fig. 2 of Brody, Alon, Yahav 2023: does projection speed up training, and do queries turn to 1?
#include <fmt/format.h>

#include "core/number_text.h"
#include "paper/majority_claims.h"
#include "paper/part.h"
#include "report/collapse_page.h"
#include "train/runs_by_norm.h"

namespace normscope {
namespace {

constexpr PublishedValue kLosses[] = {{"layernorm", 1000, 0.75}, {"layernorm", 2000, 0.40},
                                      {"layernorm", 3000, 0.30}, {"layernorm", 5000, 0.20},
                                      {"published", 1000, 1.5},  {"published", 2000, 0.87},
                                      {"published", 3000, 0.60}, {"published", 5000, 0.43}};
constexpr PublishedValue kAngles[] = {{"layernorm", 100, 70},
                                      {"layernorm", 6000, 20},
                                      {"layernorm", 17000, 11},
                                      {"published", 100, 72.5},
                                      {"published", 17000, 83}};
constexpr PublishedCurve kLossCurve{kLosses, kTrainLoss.value, 0.03, 2, true};

Claim speed_claim(std::span<const MajorityRun> runs) {
  constexpr double loss = 0.5;
  const RatioInterval code = steps_ratio(runs, "published", "layernorm", loss),
                      equal = steps_ratio(runs, "rmsnorm", "layernorm", loss),
                      literal = steps_ratio(runs, "xsigma", "layernorm", loss);
  Claim claim = claim_of("Fig. 2a, §4.1", "Without projection, training takes 3× as many steps", "3×");
  claim.measured = fmt::format(
      "steps to loss {}, without over with projection: {} as in the published code (norm 1/√d), {} at equal "
      "scale (norm √d), {} for x/σ",
      loss, with_interval(code), with_interval(equal), with_interval(literal));
  if (code.count < 2 || equal.count < 2) {
    claim.why = "Fewer than two seeds were run.";
    return claim;
  }
  claim.why = fmt::format(
      "Ratios seed by seed, {}: geometric mean with Student's 95 % interval of the logarithms; with runs "
      "that never got there (censored) the median with that of the sign test, which needs six seeds.",
      counted(equal.count, "seed"));
  // The claim is that removing the projection costs much: at least half as much again, beyond doubt.
  const Answer at_equal_scale = above(equal, 1.5), in_the_code = above(code, 1.5);
  if (at_equal_scale == true) {
    claim.holds = Holds::yes;
  } else if (in_the_code == true) {
    claim.holds = Holds::conditionally;
    claim.condition =
        "the norm without projection also makes its output d times smaller, as the published code does by "
        "mistake";
    const Answer helps = above(equal, 1);
    claim.why += fmt::format(
        " The code divides by √d where it should multiply, so that keys and values enter attention d times "
        "smaller. At equal scale the projection {}.",
        !helps   ? "makes no difference that these seeds can show"
        : *helps ? "helps, but by far less"
                 : "makes training slower, not faster");
  } else if (at_equal_scale == false && in_the_code == false) {
    claim.holds = Holds::no;
  } else {
    claim.why += " These seeds leave both open, less than 1.5× and more.";
  }
  return claim;
}

Claim alignment_claim(std::span<const MajorityRun> runs) {
  Claim claim = claim_of("Fig. 2b", "With projection the queries turn to 1, without they do not",
                         "with: 70° → 20° @6K → 11° @17K; without: 70–75° → 83° @17K");
  constexpr double aligned = 30, apart = 60;
  const MajorityRuns layernorm = sound_runs(runs, "layernorm");
  std::string differences;
  Answer with, without = true;
  bool any = false;
  for (const std::string& norm : norms_of(runs)) {
    const MajorityRuns chosen = sound_runs(runs, norm);
    if (chosen.empty()) continue;
    const Interval first = mean_interval(values_at(chosen, 0, kAngle.value)),
                   last = mean_interval(last_values(chosen, kAngle.value));
    append(
        claim.measured,
        fmt::format("{}: {:.0f}° → {}° @{}", norm, first.mean, with_interval(last, 1), chosen.front()->step),
        "; ");
    if (norm == "layernorm") {
      with = below(last, aligned);
    } else if (!norm.starts_with("project")) {
      any = true;
      without = all_of({without, above(last, apart)});
      std::vector<double> a, b;
      for (const MajorityRun* one : layernorm) {
        for (const MajorityRun* other : chosen) {
          if (one->id.seed != other->id.seed) continue;
          a.push_back(kAngle.value(one->rows.back()));
          b.push_back(kAngle.value(other->rows.back()));
        }
      }
      if (a.size() > 1)
        append(differences, fmt::format("{} {}°", norm, with_interval(mean_difference(a, b), 1)));
    }
  }
  if (layernorm.empty() || !any) return claim;
  const bool early = layernorm.front()->step < 17'000 && with != true;
  claim.holds = early ? Holds::open : judged(all_of({with, without}));
  claim.why = fmt::format(
      "Mean angle of the test tokens' queries to 1, {}; a 95 % interval below 30° counts as aligned, above "
      "60° as not.",
      counted(layernorm.size(), "seed"));
  if (!differences.empty())
    claim.why += fmt::format(" More than with projection, seed by seed: {}.", differences);
  if (layernorm.size() < 2) claim.why += " One seed has no interval.";
  if (early) claim.why += " Published for 17 000 steps; fewer were run.";
  return claim;
}

}  // namespace

std::span<const PublishedValue> published_losses() {
  return kLosses;
}
std::span<const PublishedValue> published_angles() {
  return kAngles;
}

Findings brody_fig2(const Evidence& evidence) {
  const auto runs = without_learned_normals(evidence.majority);
  Findings found;
  found.claims = curve_claims(runs, kLossCurve, "Fig. 2a", "Training loss");
  found.claims.insert(found.claims.begin(), speed_claim(runs));
  found.claims.push_back(alignment_claim(runs));
  CurveFigure figure;
  figure.panels = {
      majority_panel(runs, "Training loss (Fig. 2a)", "cross-entropy, nats", kTrainLoss, kLosses, true),
      majority_panel(runs, "Angle of the queries to 1 (Fig. 2b)", "degrees", kAngle, kAngles),
      majority_panel(runs, "Attention: distance from uniform", "total variation", kDistance)};
  figure.caption =
      "Diamonds are the published values; published and xsigma are the norm without projection as the "
      "paper's code and its formula have it, rmsnorm the one at LayerNorm's scale. " +
      seeds_caption(runs);
  found.figures = {to_figure("fig2", "Majority: does projection speed up training, and do queries turn to 1?",
                             "", figure)};
  return found;
}

}  // namespace normscope

// Fig. 1a and 1b of Brody, Alon, Yahav 2023: keys and queries of the majority task in three dimensions.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/number_text.h"
#include "paper/majority_claims.h"
#include "paper/part.h"
#include "report/scatter.h"
#include "train/runs_by_norm.h"

namespace normscope {
namespace {

// A share of squared lengths in percent; what only rounding can have left of nothing is nothing.
std::string energy(double value) {
  constexpr double rounding = 1e-10;  // the square of float's, in percent
  return value < rounding ? "0" : fmt::format("{:.2g}", value);
}

std::vector<Claim> claims_of(std::span<const MajorityRun> runs) {
  constexpr double along = 30, in_plane = 0.01;
  const MajoritySettings published = majority_in_3d();
  Claim with = claim_of(
      "Fig. 1b", "With LayerNorm, d = 3: keys lie in the plane orthogonal to 1, queries along 1", "picture");
  Claim without = claim_of("Fig. 1a", "Without: no apparent structure", "picture");
  std::vector<const Claim*> undecided;
  bool cut_short = false;
  for (const std::string& norm : norms_of(runs)) {
    const MajorityRuns chosen = sound_runs(runs, norm);
    if (chosen.empty()) continue;
    std::vector<double> flatness;
    for (const MajorityRun* run : chosen)
      flatness.push_back(100 * out_of_plane(type_geometry(run->spec, run->parameters).keys));
    const Interval flat = mean_interval(flatness), turn = mean_interval(last_values(chosen, kAngle.value));
    std::vector<double> right = last_values(chosen, kAccuracy.value);
    for (double& share : right) share *= 100;
    Claim& claim = norm == "layernorm" ? with : without;
    append(
        claim.measured,
        fmt::format("{}: {} % of the keys' energy outside their best plane, queries at {}° to 1, test "
                    "accuracy {} %",
                    norm, energy(flat.mean), with_interval(turn, 1), with_interval(mean_interval(right), 1)),
        "; ");
    claim.why = fmt::format(
        "Over {}. Below 30° counts as along 1, below 0.01 % as in a plane; random directions lie at 57° on "
        "average.",
        counted(chosen.size(), "seed"));
    const bool to_the_end = std::all_of(chosen.begin(), chosen.end(), [&](const MajorityRun* run) {
      return run->step >= published.steps || run->rows.back().test.accuracy >= published.stop_accuracy;
    });
    if (!to_the_end) {
      cut_short = true;
      continue;
    }
    const Answer flat_keys = below(flat, in_plane), aligned = below(turn, along);
    if (!flat_keys || !aligned) undecided.push_back(&claim);
    if (norm == "layernorm") {
      // That the keys lie in the plane is what LayerNorm is; that queries turn to its normal is what was
      // learned.
      claim.holds = flat_keys == true && aligned == true ? Holds::yes : Holds::no;
      if (flat_keys == true && aligned != true)
        claim.why += " The keys lie in the plane, as they must; the queries do not turn to 1.";
    } else {
      const bool structured = flat_keys == true || aligned == true;
      if (claim.holds != Holds::no) claim.holds = structured ? Holds::no : Holds::yes;
      if (structured) claim.why += fmt::format(" {} shows structure.", norm);
    }
  }
  for (Claim* claim : {&without, &with}) {
    if (claim->measured.empty()) claim->measured = "not run";
    if (std::find(undecided.begin(), undecided.end(), claim) != undecided.end()) {
      claim->holds = Holds::open;
      claim->why +=
          " Intervals that reach from below to above these limits, or one seed, which has none, leave it "
          "open: more seeds are needed.";
    }
    if (cut_short) {
      claim->holds = Holds::open;
      claim->why += " Not all runs were trained as long as published: to accuracy 1 or for 10 000 steps.";
    }
  }
  return {without, with};
}

Figure figure_of(std::span<const MajorityRun> runs) {
  ScatterFigure figure;
  for (const std::string& norm : norms_of(runs)) {
    ScatterFigure::Panel each;
    each.title = norm + (norm == "layernorm"   ? " (Fig. 1b)"
                         : norm == "published" ? " (Fig. 1a, as the code computes it)"
                                               : "");
    each.ones_plane = true;
    ScatterFigure::Group keys, queries;
    keys.name = "keys";
    queries.name = "queries";
    queries.arrows = true;
    for (const MajorityRun* run : sound_runs(runs, norm)) {
      const TypeGeometry geometry = type_geometry(run->spec, run->parameters);
      // Directions: lengths differ between norms and runs by more than a picture can hold.
      const auto add = [&](const Matrix<double>& rows, ScatterFigure::Group& group, const char* what) {
        for (std::size_t r = 0; r < rows.rows(); ++r) {
          const auto row = rows[r];
          const double length = std::sqrt(row[0] * row[0] + row[1] * row[1] + row[2] * row[2]);
          if (!(length > 0)) continue;
          group.points.push_back(
              {row[0] / length, row[1] / length, row[2] / length,
               fmt::format("{} of class {}, seed {}, length {:.3g}", what, r, run->id.seed, length)});
        }
      };
      add(geometry.keys, keys, "key");
      add(geometry.queries, queries, "query");
    }
    each.groups = {std::move(keys), std::move(queries)};
    figure.panels.push_back(std::move(each));
  }
  figure.caption = "Directions of keys and queries of all token types after training, all runs overlaid. " +
                   seeds_caption(runs);
  return {"fig1ab", "Majority in three dimensions: keys and queries", "", scatter_svg(figure),
          scatter_csv(figure)};
}

}  // namespace

Findings brody_fig1ab(const Evidence& evidence) {
  return {claims_of(evidence.majority), {figure_of(evidence.majority)}};
}

}  // namespace normscope

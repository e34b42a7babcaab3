// Fig. 1a and 1b of Brody, Alon, Yahav 2023: keys and queries of the majority task in three dimensions.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "core/number_text.h"
#include "paper/majority_measures.h"
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

constexpr Threshold kAlong{30, "half of the 57° at which random directions lie on average, in round figures"},
    kInPlane{
        0.01,
        "a ten thousandth of the energy: what rounding leaves is far less, what training leaves far more"};
constexpr const char* kProjected = "layernorm";

// Those of the plan, or, where there are none, without any norm.
std::vector<MajorityRun> without_norm(const Evidence& evidence) {
  MajoritySettings settings = majority_in_3d();
  settings.steps = evidence.plan.steps_3d;
  return evidence.train_majority("majority-3d-none", settings, {"none"});
}
std::span<const MajorityRun> runs_in_3d(const Evidence& evidence) {
  if (!evidence.majority.empty() || !evidence.train_majority) return evidence.majority;
  return once<without_norm>(evidence);
}

// What the runs of a norm have learned, over seeds.
struct Geometry {
  std::string norm;
  Interval outside;   // energy of the keys outside their best plane, per cent
  Interval angle;     // of the queries to 1
  Interval accuracy;  // per cent
  bool to_the_end;    // as published: to accuracy 1 or for 10 000 steps
  Answer in_plane, along_ones;

  Answer structured() const { return any_of({in_plane, along_ones}); }
};
// Seed by seed, the energy of the keys outside their best plane.
std::map<std::string, std::vector<double>> energies(const Evidence& evidence) {
  std::map<std::string, std::vector<double>> of;
  for (const std::string& norm : norms_of(runs_in_3d(evidence))) {
    for (const MajorityRun* run : sound_runs(runs_in_3d(evidence), norm))
      of[norm].push_back(100 * out_of_plane(type_geometry(run->spec, run->parameters).keys));
  }
  return of;
}
std::vector<Geometry> geometries(const Evidence& evidence, std::optional<bool> projected = {}) {
  const MajoritySettings published = majority_in_3d();
  std::vector<Geometry> all;
  for (const std::string& norm : norms_of(runs_in_3d(evidence))) {
    const MajorityRuns chosen = sound_runs(runs_in_3d(evidence), norm);
    if (chosen.empty() || (projected && (norm == kProjected) != *projected)) continue;
    const bool to_the_end = std::all_of(chosen.begin(), chosen.end(), [&](const MajorityRun* run) {
      return run->step >= published.steps || run->rows.back().test.accuracy >= published.stop_accuracy;
    });
    const Interval outside = mean_interval(once<energies>(evidence).at(norm), level_of(evidence)),
                   angle = mean_interval(last_values(chosen, kAngle.value), level_of(evidence));
    std::vector<double> accuracies = last_values(chosen, kAccuracy.value);
    for (double& accuracy : accuracies) accuracy *= 100;
    all.push_back(
        {norm, outside, angle, mean_interval(accuracies, level_of(evidence)), to_the_end,
         below(evidence, outside, kInPlane, {norm + ": energy of the keys outside their plane", "%"}),
         below(evidence, angle, kAlong, {norm + ": angle of the queries to 1", "°"})});
  }
  return all;
}

// With projection or without.
using Chosen = std::vector<Geometry>;
auto those(bool projected) {
  return [=](const Evidence& evidence) -> Chosen { return geometries(evidence, projected); };
}
Chosen all_norms(const Evidence& evidence) {
  return geometries(evidence);
}
Answer to_the_end(const Chosen& norms) {
  return all_of(norms, std::mem_fn(&Geometry::to_the_end));
}
std::string geometry_text(const Chosen& norms) {
  std::string text;
  for (const Geometry& each : norms)
    append(
        text,
        fmt::format(
            "{}: {} % of the keys' energy outside their best plane, queries at {}° to 1, test accuracy {} %",
            each.norm, energy(each.outside.mean), with_interval(each.angle, 1),
            with_interval(each.accuracy, 1)),
        "; ");
  return text;
}

// What both claims ask and show. seen: what is to be said of norms that were trained to the end.
Claim picture(bool projected, const char* where, const char* sentence, std::vector<Runs> needs,
              Answer (*holds)(const Chosen&), std::string (*seen)(const Geometry&)) {
  const auto norms = those(projected);
  return {
      .where = where,
      .sentence = sentence,
      .published = "picture",
      .needs = std::move(needs),
      .there = any_in(norms),
      .otherwise = "not run",
      .measured = of(norms, geometry_text),
      .why = written(
          "Over {}. Below {:g}° counts as along 1, below {:g} % as in a plane; random directions lie at 57° on average.{}",
          counted(of(norms, [](const Chosen& chosen) { return chosen.back().angle.count; }), "seed"),
          kAlong.value, kInPlane.value,
          of(norms,
             [=](const Chosen& chosen) {
               std::string text;
               for (const Geometry& each : chosen) text += each.to_the_end ? seen(each) : "";
               return text;
             })),
      .asks = {{[](const Evidence& evidence) {
                  Evidence unnoted = evidence;
                  unnoted.standard.comparisons = nullptr;
                  return to_the_end(all_norms(unnoted));
                },
                " Not all runs were trained as long as published: to accuracy 1 or for 10 000 steps."}},
      .holds = of(norms, holds),
      .undecided =
          " Intervals that reach from below to above these limits, or one seed, which has none, leave it open: more seeds are needed.",
      .topic = "projection"};
}

std::vector<Runs> pictured() {
  return {{Need::majority_3d, {"layernorm", "rmsnorm", "published"}}};
}

Claim without_projection(const char* where, const char* sentence, const std::vector<Runs>& needs) {
  return picture(
      false, where, sentence, needs,
      [](const Chosen& norms) {
        return all_of(norms, [](const Geometry& each) {
          const Answer structured = each.structured();
          return structured ? Answer(!*structured) : structured;
        });
      },
      [](const Geometry& each) {
        return each.structured() == true ? fmt::format(" {} shows structure.", each.norm) : "";
      });
}

// That the keys lie in the plane is what LayerNorm is; that queries turn to its normal is what was learned.
Claim with_projection() {
  return picture(
      true, "Fig. 1b", "With LayerNorm, d = 3: keys lie in the plane orthogonal to 1, queries along 1",
      pictured(),
      [](const Chosen& norms) {
        return all_of(norms, [](const Geometry& each) { return all_of({each.in_plane, each.along_ones}); });
      },
      [](const Geometry& each) -> std::string {
        return each.in_plane == true && each.along_ones == false
                   ? " The keys lie in the plane, as they must; the queries do not turn to 1."
                   : "";
      });
}

Figure figure_of(const char* name, const char* title, std::span<const MajorityRun> runs) {
  ScatterFigure figure;
  for (const std::string& norm : norms_of(runs)) {
    ScatterFigure::Panel each;
    each.title = norm + (norm == "layernorm"   ? " (Fig. 1b)"
                         : norm == "published" ? " (Fig. 1a, as the code computes it)"
                         : norm == "none"      ? " (Fig. 1a, without LayerNorm)"
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
  return {name, title, "", scatter_svg(figure), scatter_csv(figure)};
}

}  // namespace

Exhibit brody_fig1ab() {
  return {{without_projection("Fig. 1a", "Without: no apparent structure", pictured()), with_projection()},
          [](const Evidence& evidence) -> Findings {
            return {.figures = {figure_of("fig1ab", "Majority in three dimensions: keys and queries",
                                          evidence.majority)}};
          }};
}

Exhibit brody_fig1a_none() {
  return {{without_projection("Fig. 1a, no norm", "Without LayerNorm: no apparent structure", {})},
          [](const Evidence& evidence) -> Findings {
            return {.figures = {figure_of("fig1a-none", "Majority in three dimensions, without any norm",
                                          runs_in_3d(evidence))}};
          }};
}

}  // namespace normscope

// The equilibria view: two tokens in the plane (Wu et al. 2024, Theorem 3, Fig. 1 and 5). What the page
// calls:
//
//   equilibriaPortrait(w, sign)                        token 2 beside token 1 at (0, sign)
//   equilibriaMap(w, cells, layers)                    fates with both tokens moving, by their angles
//   equilibriaShares(w, starts, layers, seed)          the same from random starts: normscope equilibria
//   --starts --steps equilibriaPath(w, degrees1, degrees2, layers)      one start, layer by layer:
//   --trajectory degrees1,degrees2
#include "normscope/equilibria.h"

#include <cmath>
#include <numbers>
#include <string>

#include "bridge.h"
#include "normscope/statistics.h"

namespace normscope::web {
namespace {

constexpr std::size_t kAngles = 3600, kArrows = 36;
constexpr std::size_t kMostCells = 181, kMostStarts = 100'000, kMostLayers = 10'000;

double degrees_of(double x, double y) {
  const double angle = std::atan2(y, x) * 180 / std::numbers::pi;
  return angle < 0 ? angle + 360 : angle;
}

val points_of(double w, int sign) {
  val points = val::array();
  for (const FixedPoint& each : fixed_points(w, sign)) {
    val point = val::object();
    point.set("name", std::string(1, each.name));
    point.set("kind", std::string(name_of(each.kind)));
    point.set("x", each.x);
    point.set("y", each.y);
    point.set("degrees", degrees_of(each.x, each.y));
    point.set("multiplier", each.multiplier);
    points.call<void>("push", point);
  }
  return points;
}

// How far one layer turns token 2, in degrees, at kArrows angles.
val arrows_of(double w, int sign) {
  std::vector<double> angles, turns;
  for (std::size_t i = 0; i < kArrows; ++i) {
    const double degrees = 360 * (static_cast<double>(i) + 0.5) / kArrows;
    const auto at = direction(degrees);
    Matrix<double> x(2, 2, {0, static_cast<double>(sign), at[0], at[1]});
    if (equilibrium_layer(w, x.view()) > 0) continue;
    angles.push_back(degrees);
    turns.push_back(std::remainder(degrees_of(x(1, 0), x(1, 1)) - degrees, 360.0));
  }
  val arrows = val::object();
  arrows.set("degrees", numbers(angles));
  arrows.set("turns", numbers(turns));
  return arrows;
}

int sign_of(double sign) {
  return sign < 0 ? -1 : 1;
}

val portrait(double w, double side) {
  return answer([&] {
    require_equilibrium_weight(w);
    const int sign = sign_of(side);
    const ArcBasin basin = arc_basin(w, kAngles, Executor(1));
    val arc = val::object();
    arc.set("angles", static_cast<double>(basin.angles));
    arc.set("apart", static_cast<double>(basin.apart));
    arc.set("share", basin.share);
    arc.set("formula", basin.formula);
    arc.set("mismatches", static_cast<double>(basin.mismatches));
    arc.set("zeroRows", static_cast<double>(basin.zero_rows));
    arc.set("unsettled", static_cast<double>(basin.unsettled));
    val result = val::object();
    result.set("points", points_of(w, sign));
    result.set("arrows", arrows_of(w, sign));
    result.set("arc", arc);
    return result;
  });
}

val map(double w, double cells, double layers) {
  return answer([&] {
    require_equilibrium_weight(w);
    const auto fates = coupled_map(w, count_of(cells, "cells", 1, kMostCells),
                                   count_of(layers, "layers", 2, kMostLayers), Executor(1));
    std::vector<std::uint8_t> values;
    for (const Fate fate : fates) values.push_back(static_cast<std::uint8_t>(fate));
    val names = val::array();
    for (const auto fate : {Fate::collapsed, Fate::apart, Fate::zero_row, Fate::unsettled}) {
      names.call<void>("push", std::string(name_of(fate)));
    }
    val result = val::object();
    result.set("fates",
               val::global("Uint8Array").new_(emscripten::typed_memory_view(values.size(), values.data())));
    result.set("names", names);
    return result;
  });
}

val share_of(std::size_t hits, std::size_t count) {
  const Interval interval = share_interval(hits, count);
  val result = val::object();
  result.set("starts", static_cast<double>(hits));
  result.set("share", interval.mean);
  result.set("low", interval.low);
  result.set("high", interval.high);
  return result;
}

val shares(double w, double starts, double layers, double seed) {
  return answer([&] {
    require_equilibrium_weight(w);
    RankOptions options;
    options.w = w;
    options.starts = count_of(starts, "starts", 1, kMostStarts);
    options.layers = count_of(layers, "layers", 2, kMostLayers);
    options.seed = checked_seed(seed);
    const FinalRanks ranks = final_ranks(options, Executor(1));
    val result = val::object();
    result.set("starts", static_cast<double>(ranks.starts));
    result.set("collapsed", share_of(ranks.ranks[1], ranks.starts));
    result.set("apart", share_of(ranks.ranks[2], ranks.starts));
    result.set("zeroRows", static_cast<double>(ranks.zero_rows));
    result.set("unsettled", static_cast<double>(ranks.unsettled));
    return result;
  });
}

val path(double w, double degrees1, double degrees2, double layers) {
  return answer([&] {
    require_equilibrium_weight(w);
    const auto one = direction(degrees1), two = direction(degrees2);
    const TokenPath path =
        token_path(w, {one[0], one[1], two[0], two[1]}, count_of(layers, "layers", 1, kMostLayers));
    std::vector<double> steps;
    for (const auto& step : path.steps) steps.insert(steps.end(), step.begin(), step.end());
    val result = val::object();
    result.set("steps", numbers(steps));  // x1, y1, x2, y2 per layer, the start first
    result.set("zeroRows", static_cast<double>(path.zero_rows));
    result.set("fate", std::string(name_of(path.fate)));
    return result;
  });
}

}  // namespace
}  // namespace normscope::web

EMSCRIPTEN_BINDINGS(equilibria) {
  emscripten::function("equilibriaPortrait", &normscope::web::portrait);
  emscripten::function("equilibriaMap", &normscope::web::map);
  emscripten::function("equilibriaShares", &normscope::web::shares);
  emscripten::function("equilibriaPath", &normscope::web::path);
}

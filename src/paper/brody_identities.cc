// What Brody, Alon, Yahav 2023 prove of LayerNorm, as computed: §2, appendices B and C, and Fig. 5.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "normscope/norm.h"
#include "normscope/norm_identities.h"
#include "paper/part.h"
#include "report/scatter.h"

namespace normscope {
namespace {

constexpr Threshold kRounding{
    1e-13,
    "some hundred roundings of float64, as sums over a thousand entries may gather; what is false is off by far more"};
constexpr std::size_t kDimensions[] = {2, 3, 4, 8, 16, 64, 256, 768};

std::vector<NormIdentities> by_dimension(const Evidence& evidence) {
  std::vector<NormIdentities> all;
  for (const std::size_t d : kDimensions)
    all.push_back(norm_identities(d, evidence.plan.draws, evidence.plan.seed));
  return all;
}

using Residual = double NormIdentities::*;
struct Equation {
  const char* name;
  Residual residual;
};
constexpr Equation kProjectionAndScaling[] = {{"eq. 4", &NormIdentities::orthogonal},
                                              {"eq. 5", &NormIdentities::length},
                                              {"‖LayerNorm(x)‖ = √d", &NormIdentities::scaled}},
                   kPlane[] = {{"eq. 13", &NormIdentities::projected},
                               {"eq. 14", &NormIdentities::direction},
                               {"eq. 15", &NormIdentities::two_points}},
                   kMatrix[] = {{"eq. 16", &NormIdentities::action},
                                {"eq. 17–21", &NormIdentities::coordinates},
                                {"eq. 22, 25–27", &NormIdentities::inverse},
                                {"eq. 23, 24", &NormIdentities::change_of_basis},
                                {"eq. 28", &NormIdentities::formula}};

// Over all dimensions.
double largest(const Evidence& evidence, Residual residual) {
  double most = 0;
  for (const NormIdentities& each : once<by_dimension>(evidence)) most = std::max(most, each.*residual);
  return most;
}

Claim identity(const char* where, const char* sentence, std::span<const Equation> equations) {
  return {.where = where,
          .sentence = sentence,
          .published = "proved",
          .measured = written(
              "largest residual in {} to {} dimensions, {} vectors each: {}", kDimensions[0],
              *std::rbegin(kDimensions), [](const Evidence& evidence) { return evidence.plan.draws; },
              [=](const Evidence& evidence) {
                std::string text;
                for (const Equation& each : equations)
                  append(text, fmt::format("{} {:.1e}", each.name, largest(evidence, each.residual)));
                return text;
              }),
          .why = "Over the length of what is compared, in float64; by dimension in the table.",
          .holds =
              [=](const Evidence& evidence) {
                return all_of(equations, [&](const Equation& each) {
                  return at_most(evidence, largest(evidence, each.residual), kRounding,
                                 Aspect(std::string(each.name) + ": largest residual"));
                });
              },
          .topic = "projection"};
}

Claim undefined() {
  const auto entry = [](const Evidence& evidence) { return largest(evidence, &NormIdentities::undefined); };
  return {
      .where = "App. B, footnote 4",
      .sentence = "What does LayerNorm make of α = 0, where it is undefined?",
      .published = "undefined",
      .measured = written("largest entry of what is returned for multiples of 1: {:g}", entry),
      .why =
          "With eps = 0 a row without a direction to scale becomes 0 and is counted; in float32 or with an eps the rounding of the mean may be scaled instead.",
      .answer = when(at_most(entry, 0), "0, and the row is counted") +
                when(above(entry, 0), written("entries of up to {:g}", entry)),
      .topic = "projection"};
}

// Points of a plane M in three dimensions, and where LayerNorm takes them.
Figure figure_5() {
  const double v[3] = {0, std::sqrt(0.5), -std::sqrt(0.5)};  // across the picture
  ScatterFigure figure;
  ScatterFigure::Panel& panel = figure.panels.emplace_back();
  panel.title = "The plane M through v and 1, and its image";
  panel.ones_plane = true;
  ScatterFigure::Group points{"points of M", {}}, ones{"multiples of 1, where it is undefined", {}},
      images{"LayerNorm of all of M", {}}, direction{"v", {}, true};
  for (int s = -4; s <= 4; ++s) {
    for (int t = -3; t <= 3; ++t) {
      const double alpha = 0.5 * s, beta = 0.4 * t;
      double x[3], y[3];
      for (int i = 0; i < 3; ++i) x[i] = alpha * v[i] + beta;
      const std::string where = fmt::format("α = {:g}, β = {:g}", alpha, beta);
      (s == 0 ? ones : points).points.push_back({x[0], x[1], x[2], where});
      if (s == 0) continue;
      norm_forward<double>(parse_norm("layernorm"), {}, MatrixView<const double>(x, 1, 3),
                           MatrixView<double>(y, 1, 3));
      const bool seen = std::any_of(images.points.begin(), images.points.end(), [&](const auto& point) {
        return std::hypot(point.x - y[0], point.y - y[1], point.z - y[2]) < 1e-12;
      });
      if (!seen) images.points.push_back({y[0], y[1], y[2], s > 0 ? "√d·v, of α > 0" : "−√d·v, of α < 0"});
    }
  }
  direction.points.push_back({v[0], v[1], v[2], "v, a unit vector of H"});
  const std::size_t count = images.points.size();
  panel.groups = {points, ones, images, direction};
  const std::string sentence = fmt::format(
      "The disc is H, the plane orthogonal to 1, with its normal. LayerNorm takes the {} points of M that are not multiples of 1 to {} points of H.",
      points.points.size(), count);
  return {"fig5", "LayerNorm maps each plane through 1 to two points",
          "After Brody et al. (2023), Fig. 5. " + sentence, scatter_svg(figure), scatter_csv(figure)};
}

Findings shown(const Evidence& evidence) {
  ReportTable table{"Largest residuals of the identities, by dimension", {{"dimension"}}};
  std::vector<Equation> all;
  for (const std::span<const Equation> some :
       {std::span<const Equation>(kProjectionAndScaling), std::span<const Equation>(kPlane),
        std::span<const Equation>(kMatrix)})
    all.insert(all.end(), some.begin(), some.end());
  for (const Equation& each : all) table.rows.front().emplace_back(each.name);
  for (const NormIdentities& found : once<by_dimension>(evidence)) {
    std::vector<std::string>& row = table.rows.emplace_back();
    row.push_back(std::to_string(found.dimension));
    for (const Equation& each : all) row.push_back(fmt::format("{:.1e}", found.*each.residual));
  }
  return {.figures = {figure_5()}, .tables = {table}};
}

}  // namespace

Exhibit brody_identities() {
  return {{identity("§2, eq. 4, 5", "LayerNorm projects orthogonally to 1, then scales to norm √d",
                    kProjectionAndScaling),
           identity("App. B, Fig. 5", "LayerNorm maps all of a plane through 1 to two points, ±√d·v", kPlane),
           undefined(),
           identity("App. C, eq. 16–28", "The projection is the matrix I − 11ᵀ/d, by a change of basis",
                    kMatrix)},
          shown};
}

}  // namespace normscope

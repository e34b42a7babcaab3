#include "result/collapse.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/number_text.h"
#include "normscope/statistics.h"

namespace normscope {
namespace {

TheoremResult result_of(const std::vector<Assumption>& assumptions, const std::vector<double>& bound,
                        std::size_t violations) {
  TheoremResult result;
  for (const Assumption& each : assumptions) result.assumptions.push_back({each});
  if (bound.empty()) return result;
  result.bound = bound;
  result.violations = violations;
  return result;
}

CollapseTheoryResult result_of(const CollapseTheory& theory) {
  CollapseTheoryResult result;
  result.epsilon = theory.epsilon;
  if (theory.radius > 0) result.radius = theory.radius;
  if (theory.diameter > 0) result.diameter = theory.diameter;
  result.theorem1 = result_of(theory.theorem1, theory.bound1, theory.violations1);
  result.theorem2_diameter = result_of(theory.theorem2, theory.bound2_diameter, theory.violations2_diameter);
  result.theorem2_radius = result_of(theory.theorem2, theory.bound2_radius, theory.violations2_radius);
  result.corollary1 = result_of(theory.corollary1, theory.bound_corollary, theory.violations_corollary);
  return result;
}

}  // namespace

CollapseCurveResult result_of(const CollapseCurve& curve) {
  CollapseCurveResult result;
  result.group = curve.group;
  result.mask = curve.name;
  result.name = full_name(curve.group, curve.name);
  result.rate = {curve.rate};
  for (const std::string_view name : TokenMeasures::names())
    result.measures.emplace_back(std::string(name), MeasureByLayer());
  for (std::size_t layer = 0; layer < curve.layers.size(); ++layer) {
    const CollapseCurve::Summary summary = curve.summary(layer);
    for (std::size_t m = 0; m < result.measures.size(); ++m) {
      result.measures[m].second.mean.push_back(summary.mean[m]);
      result.measures[m].second.sd.push_back(summary.sd[m]);
    }
  }
  result.singular_values = curve.singular_values;
  result.least_weight = curve.least_weight;
  result.entropy = curve.entropy;
  result.empty_rows = curve.empty_rows;
  result.undefined_rows = curve.norm.undefined_rows();
  result.theory = result_of(curve.theory);
  return result;
}

std::string full_name(const std::string& group, const std::string& name) {
  return group.empty() ? name : group + ", " + name;
}

std::string collapse_verdict(const std::vector<CollapseCurve>& curves) {
  if (curves.empty()) return {};
  const auto by_end = [](const CollapseCurve& a, const CollapseCurve& b) {
    return a.mean(a.layers.size() - 1, &TokenMeasures::relative) <
           b.mean(b.layers.size() - 1, &TokenMeasures::relative);
  };
  const std::size_t last = curves.front().layers.size() - 1;
  const std::string layers = counted(last, "layer");
  const auto [least, most] = std::minmax_element(curves.begin(), curves.end(), by_end);
  const auto tell = [&](const CollapseCurve& curve) {
    return fmt::format("{} (μ/‖X‖ {:.3g})", full_name(curve.group, curve.name),
                       curve.mean(last, &TokenMeasures::relative));
  };
  if (curves.size() == 1) return fmt::format("After {}: {}.", layers, tell(*least));
  // Which is which in the mean; whether another start would agree is for the differences to tell.
  const std::vector<double> low = least->of(last, &TokenMeasures::relative),
                            high = most->of(last, &TokenMeasures::relative);
  const Interval apart = mean_difference(low, high);
  const std::string between =
      apart.count < 2 ? std::string("one sample, so that another start may differ")
      : apart.count == 2
          ? fmt::format("they differ by {:.3g} and {:.3g} in the two samples", high[0] - low[0],
                        high[1] - low[1])
          : fmt::format("they differ by {:.3g} to {:.3g} (95 %, sample by sample)", apart.low, apart.high);
  // The farther in the mean lies farther in each of two samples, or beyond doubt in more.
  const bool told_apart = apart.count < 2    ? true
                          : apart.count == 2 ? high[0] > low[0] && high[1] > low[1]
                                             : apart.low > 0;
  if (!told_apart)
    return fmt::format(
        "After {} these {} samples do not tell apart where tokens are nearest to equal: {} and {}; "
        "{}.",
        layers, apart.count, tell(*least), tell(*most), between);
  return fmt::format("After {} the tokens are nearest to equal under {} and farthest from it under {}; {}.",
                     layers, tell(*least), tell(*most), between);
}

}  // namespace normscope

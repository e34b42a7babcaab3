#include "result/collapse.h"

#include <fmt/core.h>

#include <algorithm>

#include "normscope/statistics.h"

namespace normscope {

std::string full_name(const CollapseCurve& curve) {
  return curve.group.empty() ? curve.name : curve.group + ", " + curve.name;
}

std::string collapse_verdict(const std::vector<CollapseCurve>& curves) {
  if (curves.empty()) return {};
  const auto by_end = [](const CollapseCurve& a, const CollapseCurve& b) {
    return a.mean(a.layers.size() - 1, &TokenMeasures::relative) <
           b.mean(b.layers.size() - 1, &TokenMeasures::relative);
  };
  const std::size_t last = curves.front().layers.size() - 1;
  const auto [least, most] = std::minmax_element(curves.begin(), curves.end(), by_end);
  const auto tell = [&](const CollapseCurve& curve) {
    return fmt::format("{} (μ/‖X‖ {:.3g})", full_name(curve), curve.mean(last, &TokenMeasures::relative));
  };
  if (curves.size() == 1) return fmt::format("After {} layers: {}.", last, tell(*least));
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
  const bool told_apart = apart.count < 3 || apart.low > 0 || apart.high < 0;
  if (!told_apart)
    return fmt::format(
        "After {} layers these {} samples do not tell apart where tokens are nearest to equal: {} and {}; "
        "{}.",
        last, apart.count, tell(*least), tell(*most), between);
  return fmt::format(
      "After {} layers the tokens are nearest to equal under {} and farthest from it under {}; {}.", last,
      tell(*least), tell(*most), between);
}

}  // namespace normscope

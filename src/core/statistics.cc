#include "normscope/statistics.h"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>

namespace normscope {

Interval mean_interval(std::span<const double> values) {
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  Interval result{values.size(), unknown, unknown, unknown};
  if (values.empty()) return result;
  const auto n = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  result.mean = sum / n;
  if (values.size() == 1) return result;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  const double reach =
      boost::math::quantile(boost::math::students_t(n - 1), 0.975) * std::sqrt(squares / (n - 1) / n);
  result.low = result.mean - reach;
  result.high = result.mean + reach;
  return result;
}

Interval share_interval(std::size_t hits, std::size_t count) {
  constexpr double z = 1.959963984540054;  // 97.5 % quantile of the normal distribution
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  if (count == 0) return {count, unknown, unknown, unknown};
  const auto n = static_cast<double>(count);
  const double share = static_cast<double>(hits) / n, scale = 1 / (1 + z * z / n);
  const double centre = scale * (share + z * z / (2 * n));
  const double reach = scale * z * std::sqrt(share * (1 - share) / n + z * z / (4 * n * n));
  // At a share of 0 or 1 the interval ends there; rounding must not put it beside.
  return {count, share, hits == 0 ? 0 : centre - reach, hits == count ? 1 : centre + reach};
}

}  // namespace normscope

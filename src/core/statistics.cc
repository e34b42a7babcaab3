#include "normscope/statistics.h"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>

namespace normscope {
namespace {

// The 95 % interval of a mean with this standard error and degrees of freedom.
void set_ends(Interval& interval, double freedom, double error) {
  const double reach = boost::math::quantile(boost::math::students_t(freedom), 0.975) * error;
  interval.low = interval.mean - reach;
  interval.high = interval.mean + reach;
}

}  // namespace

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
  set_ends(result, n - 1, std::sqrt(squares / (n - 1) / n));
  return result;
}

Interval line_slope(std::span<const double> y) {
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  Interval result{y.size(), unknown, unknown, unknown};
  if (y.size() < 2) return result;
  const auto n = static_cast<double>(y.size());
  const double middle = (n - 1) / 2;
  double mean = 0, products = 0, squares = 0;
  for (const double value : y) mean += value / n;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double x = static_cast<double>(i) - middle;
    products += x * (y[i] - mean);
    squares += x * x;
  }
  result.mean = products / squares;
  if (y.size() == 2) return result;
  double residuals = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double residual = y[i] - mean - result.mean * (static_cast<double>(i) - middle);
    residuals += residual * residual;
  }
  set_ends(result, n - 2, std::sqrt(residuals / (n - 2) / squares));
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

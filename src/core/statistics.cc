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

}  // namespace normscope

#include "normscope/statistics.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <vector>

#include "core/levels.h"

namespace normscope {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// mean ± t·s·√(1/n + further): of the mean itself with further = 0, of a further value with 1.
Interval students(std::span<const double> values, double level, double further) {
  Interval result{values.size(), kUnknown, kUnknown, kUnknown};
  if (values.empty()) return result;
  const auto n = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  result.mean = sum / n;
  if (values.size() == 1) return result;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  const double t = boost::math::quantile(boost::math::students_t(n - 1), (1 + level) / 2);
  const double reach = t * std::sqrt(squares / (n - 1) * (1 / n + further));
  result.low = result.mean - reach;
  result.high = result.mean + reach;
  if (values.size() == 2 && further == 0) {
    result.first = values[0];
    result.second = values[1];
  }
  return result;
}

// The greatest k with 2·P(Bin(n, ½) < k) ≤ 1 − level; 0 if there is none.
std::size_t sign_test_rank(std::size_t n, double level) {
  double logarithm = -static_cast<double>(n) * std::numbers::ln2,
         below = 0;  // of P(Bin(n, ½) = k), which may underflow
  std::size_t k = 0;
  while (2 * (below += std::exp(logarithm)) <= 1 - level) {
    logarithm += std::log(static_cast<double>(n - k) / static_cast<double>(k + 1));
    ++k;
  }
  return k;
}

double median(const std::vector<double>& sorted) {
  const std::size_t n = sorted.size();
  // Of two in the middle the geometric mean, as for ratios; an end that is not known stays so.
  return n % 2 == 1 ? sorted[n / 2] : std::sqrt(sorted[n / 2 - 1]) * std::sqrt(sorted[n / 2]);
}

}  // namespace

std::optional<std::array<double, 2>> Interval::both() const {
  if (count != 2 || !std::isfinite(mean)) return std::nullopt;
  if (std::isfinite(first)) return std::array{first, second};
  if (!std::isfinite(half_width())) return std::nullopt;
  static const double t = boost::math::quantile(boost::math::students_t(1), (1 + kUsualLevel) / 2);
  return std::array{mean - half_width() / t, mean + half_width() / t};
}

std::array<double, 2> Interval::drawn() const {
  auto ends = both().value_or(std::array{low, high});
  if (ends[1] < ends[0]) std::swap(ends[0], ends[1]);
  return ends;
}

Interval mean_interval(std::span<const double> values, double level) {
  return students(values, level, 0);
}

Interval mean_difference(std::span<const double> a, std::span<const double> b, double level) {
  std::vector<double> differences;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) differences.push_back(b[i] - a[i]);
  return mean_interval(differences, level);
}

// The same at 95 %.
Interval mean_interval(std::span<const double> values) {
  return mean_interval(values, kUsualLevel);
}
Interval mean_difference(std::span<const double> a, std::span<const double> b) {
  return mean_difference(a, b, kUsualLevel);
}
RatioInterval ratio_interval(std::span<const Range> ratios) {
  return ratio_interval(ratios, kUsualLevel);
}
RatioInterval mean_ratio(std::span<const double> a, std::span<const double> b) {
  return mean_ratio(a, b, kUsualLevel);
}
Interval share_interval(std::size_t hits, std::size_t count) {
  return share_interval(hits, count, kUsualLevel);
}

Interval prediction_interval(std::span<const double> values, double level) {
  return students(values, level, 1);
}

RatioInterval ratio_interval(std::span<const Range> ratios, double level) {
  RatioInterval result{ratios.size(), 0, {kUnknown, kUnknown}, kUnknown, kUnknown};
  if (ratios.empty()) return result;
  std::vector<double> logs, lows, highs;
  for (const Range& ratio : ratios) {
    // Of nothing to nothing: known to be unknown, which is not censored.
    if (std::isnan(ratio.low) || std::isnan(ratio.high))
      return {ratios.size(), 0, result.estimate, kUnknown, kUnknown};
    result.censored += ratio.low != ratio.high;
    logs.push_back(std::log(ratio.low));
    lows.push_back(ratio.low);
    highs.push_back(ratio.high);
  }
  if (result.censored == 0) {
    const Interval mean = mean_interval(logs, level);
    const double centre = std::exp(mean.mean);
    result = {ratios.size(), 0, {centre, centre}, std::exp(mean.low), std::exp(mean.high)};
    if (mean.both()) result.both = {ratios[0].low, ratios[1].low};
    return result;
  }
  std::sort(lows.begin(), lows.end());
  std::sort(highs.begin(), highs.end());
  result.estimate = {median(lows), median(highs)};
  if (ratios.size() == 1) return result;
  const std::size_t k = sign_test_rank(ratios.size(), level);
  result.low = k == 0 ? 0 : lows[k - 1];
  result.high = k == 0 ? kInfinity : highs[ratios.size() - k];
  return result;
}

RatioInterval mean_ratio(std::span<const double> a, std::span<const double> b, double level) {
  std::vector<Range> ratios;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) ratios.push_back({b[i] / a[i], b[i] / a[i]});
  return ratio_interval(ratios, level);
}

double line_slope(std::span<const double> y) {
  if (y.size() < 2) return kUnknown;
  const auto n = static_cast<double>(y.size());
  const double middle = (n - 1) / 2;
  double mean = 0, products = 0, squares = 0;
  for (const double value : y) mean += value / n;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double x = static_cast<double>(i) - middle;
    products += x * (y[i] - mean);
    squares += x * x;
  }
  return products / squares;
}

// Clopper and Pearson's: P(Bin(n, low) ≥ hits) and P(Bin(n, high) ≤ hits) are half of what may be missed each. By the
// incomplete beta function the ends are its inverses.
Interval share_interval(std::size_t hits, std::size_t count, double level) {
  if (count == 0) return {count, kUnknown, kUnknown, kUnknown};
  const auto n = static_cast<double>(count), x = static_cast<double>(hits);
  const double missed = (1 - level) / 2;
  const double low = hits == 0 ? 0 : boost::math::ibeta_inv(x, n - x + 1, missed),
               high = hits == count ? 1 : boost::math::ibetac_inv(x + 1, n - x, missed);
  Interval result{count, x / n, low, high};
  if (count == 2) {
    result.first = hits > 0 ? 1 : 0;
    result.second = hits > 1 ? 1 : 0;
  }
  return result;
}

double level_of_look(std::size_t look, std::size_t intervals) {
  const auto k = static_cast<double>(look), all = static_cast<double>(std::max<std::size_t>(1, intervals));
  return 1 - (1 - kUsualLevel) / (k * (k + 1) * all);
}

double rank_correlation(std::span<const double> a, std::span<const double> b) {
  const auto ranks_of = [](std::span<const double> values) {
    std::vector<double> ranks(values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      for (const double other : values) ranks[i] += other < values[i] ? 1 : other == values[i] ? 0.5 : 0;
    const double mean = static_cast<double>(values.size()) / 2;
    for (double& rank : ranks) rank -= mean;
    return ranks;
  };
  const std::vector<double> x = ranks_of(a), y = ranks_of(b);
  const auto product = [](const std::vector<double>& u, const std::vector<double>& v) {
    return std::inner_product(u.begin(), u.end(), v.begin(), 0.0);
  };
  return product(x, y) / std::sqrt(product(x, x) * product(y, y));
}

}  // namespace normscope

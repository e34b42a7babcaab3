#pragma once
// Means, ratios and shares, with their uncertainty. What each interval covers, and of what model:
// docs/theory.md, Statistics. Fewer than two values have no interval.
#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>

namespace normscope {

// Mean of independent values with Student's 95 % interval for it. One value: low and high are NaN. No value:
// all NaN.
struct Interval {
  std::size_t count = 0;
  double mean = 0, low = 0, high = 0;
  // Of two values these, as they came; see `both`.
  double first = std::numeric_limits<double>::quiet_NaN(), second = first;

  double half_width() const { return (high - low) / 2; }
  // Whether all of it lies on one side; never without an interval.
  bool below(double value) const { return high < value; }
  bool above(double value) const { return low > value; }

  // The values of an interval of two, to be shown in its place: Student's interval of two is 12.7 times as wide as
  // they lie apart from their mean, and says less than they do. Of an interval that was read from a file the lesser
  // comes first.
  std::optional<std::array<double, 2>> both() const;
  // The ends that figures draw: of two values these, the lesser first, else low and high.
  std::array<double, 2> drawn() const;

  static void describe(auto& visit, auto& self) {
    visit("count", self.count, "values");
    visit("mean", self.mean, "of the values; null: there is none");
    visit("low", self.low, "lower end of the 95 % interval; null: one value has none");
    visit("high", self.high, "its upper end");
  }
};
Interval mean_interval(std::span<const double> values);
// b − a, element by element, as a mean with its interval: the two were measured on the same samples, seeds,
// windows. What one has more than the other is left out.
Interval mean_difference(std::span<const double> a, std::span<const double> b);

// Where one further value of the same normal distribution lies with probability `level`, which may depend on
// the values seen: mean ± t·s·√(1 + 1/n). For several values to lie in theirs with 95 % together, level is
// 1 − 0.05/how many (Bonferroni).
Interval prediction_interval(std::span<const double> values, double level);

// A positive number that is known to lie from low to high: both are it if it was observed; high is infinite
// for a run that had not arrived when it ended, and low 0 for one of which nothing more is known than when
// another ended.
struct Range {
  double low = 0, high = 0;
};
// Ratios, one per seed. If all are known: their geometric mean, with Student's interval of the mean of their
// logarithms. Otherwise their median, with the interval of the sign test: from the k-th least lower end to
// the k-th greatest upper end, k the greatest with 2·P(Bin(n, ½) < k) ≤ 5 %, or from 0 to infinity below six
// seeds. One ratio: low and high of the interval are NaN. None: all NaN.
struct RatioInterval {
  std::size_t count = 0, censored = 0;  // ratios, and how many of them are not known exactly
  Range estimate;                       // equal ends unless the median itself is not known exactly
  double low = 0, high = 0;
  // Of two ratios that are known, these: as of Interval.
  std::optional<std::array<double, 2>> both = {};

  bool below(double value) const { return high < value; }
  bool above(double value) const { return low > value; }
};
RatioInterval ratio_interval(std::span<const Range> ratios);
// b/a, element by element, all known: the ratio of what was measured on the same samples.
RatioInterval mean_ratio(std::span<const double> a, std::span<const double> b);

// Slope of the straight line through (0, y₀), (1, y₁), … by least squares; NaN for fewer than two points.
// Points of a curve are no independent draws, so that the scatter about the line is no measure of its
// uncertainty: that comes from the slopes of several samples.
double line_slope(std::span<const double> y);
// Share of `hits` in `count` independent trials with Clopper and Pearson's 95 % interval, which covers with at least
// that whatever the share is. No trial: all NaN.
Interval share_interval(std::size_t hits, std::size_t count);

// Spearman's, of as many values each, ties sharing their mean rank; NaN of fewer than two, or if all are equal.
double rank_correlation(std::span<const double> a, std::span<const double> b);

}  // namespace normscope

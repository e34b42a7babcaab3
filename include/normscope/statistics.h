#pragma once
// Means and shares, with their uncertainty.
#include <cstddef>
#include <span>

namespace normscope {

// Mean of independent values with Student's 95 % interval for it. One value: low and high are NaN. No value:
// all NaN.
struct Interval {
  std::size_t count = 0;
  double mean = 0, low = 0, high = 0;

  double half_width() const { return (high - low) / 2; }
};
Interval mean_interval(std::span<const double> values);

// Slope of the straight line through (0, y₀), (1, y₁), … by least squares, with Student's 95 % interval. Two
// points: low and high are NaN. Fewer: all NaN.
Interval line_slope(std::span<const double> y);
// Share of `hits` in `count` independent trials with Wilson's 95 % interval, which also serves shares near 0
// and 1. No trial: all NaN.
Interval share_interval(std::size_t hits, std::size_t count);

}  // namespace normscope

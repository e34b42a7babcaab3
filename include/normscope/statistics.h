#pragma once
// Means over seeds, with their uncertainty.
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

}  // namespace normscope

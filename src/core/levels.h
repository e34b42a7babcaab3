#pragma once
// The intervals of statistics.h at another level than 95 %: for several that are judged together, and for what is
// looked at again and again. level: with which probability an interval covers, over repetitions, what it is an
// interval of.
#include <cstddef>
#include <span>

#include "normscope/statistics.h"

namespace normscope {

inline constexpr double kUsualLevel = 0.95;

Interval mean_interval(std::span<const double> values, double level);
Interval mean_difference(std::span<const double> a, std::span<const double> b, double level);
RatioInterval ratio_interval(std::span<const Range> ratios, double level);
RatioInterval mean_ratio(std::span<const double> a, std::span<const double> b, double level);
Interval share_interval(std::size_t hits, std::size_t count, double level);

// Of something that is looked at again and again, each time with more values, 5 % of wrong intervals are allowed in
// all; the look-th look (from 1) may have 5 %/(look·(look + 1)) of them. That sums to 5 % however often one looks,
// so that with 95 % all of the intervals cover at once, whenever and for whatever reason one stops. intervals: that
// are judged together, and share what a look has.
double level_of_look(std::size_t look, std::size_t intervals = 1);

}  // namespace normscope

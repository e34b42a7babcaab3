#include "keys/placed.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace normscope {
namespace {

KeyGroups group_equal_keys(MatrixView<const double> keys, std::span<const double> offsets,
                           std::span<const std::size_t> kept) {
  const auto compare = [&](std::size_t a, std::size_t b) {
    for (std::size_t c : kept)
      if (keys(a, c) != keys(b, c)) return keys(a, c) < keys(b, c) ? -1 : 1;
    if (!offsets.empty() && offsets[a] != offsets[b]) return offsets[a] < offsets[b] ? -1 : 1;
    return 0;
  };
  std::vector<std::size_t> order(keys.rows);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const int sign = compare(a, b);
    return sign != 0 ? sign < 0 : a < b;
  });
  std::vector<std::size_t> leader(keys.rows);
  for (std::size_t k = 0; k < order.size(); ++k)
    leader[order[k]] = k > 0 && compare(order[k], order[k - 1]) == 0 ? leader[order[k - 1]] : order[k];
  KeyGroups groups;
  groups.distinct_of.resize(keys.rows);
  groups.first.reserve(keys.rows);
  groups.members.reserve(keys.rows);
  for (std::size_t i = 0; i < keys.rows; ++i) {
    if (leader[i] == i) {
      groups.distinct_of[i] = groups.first.size();
      groups.first.push_back(i);
      groups.members.push_back({i});
    } else {
      groups.distinct_of[i] = groups.distinct_of[leader[i]];
      groups.members[groups.distinct_of[i]].push_back(i);
    }
  }
  return groups;
}

}  // namespace

PlacedKeys::PlacedKeys(MatrixView<const double> given, std::span<const double> given_offsets,
                       const KeyOptions& key_options)
    : keys(given), options(key_options) {
  // Equal offsets move all scores alike: no offsets at all.
  if (!std::all_of(given_offsets.begin(), given_offsets.end(),
                   [&](double b) { return b == given_offsets[0]; }))
    offsets = given_offsets;
  // Yet if they are rounded numbers, a covered key may owe its verdict to that.
  rounded_equal_offsets =
      offsets.empty() && !given_offsets.empty() && given_offsets[0] != 0 && !options.noise;
  hull = affine_hull(keys, options.rank, options.unit_roundoff, options.smallest_rounding);
  groups = group_equal_keys(keys, offsets, hull.kept);
  place();
  measure_wobble();
}

double PlacedKeys::distance(std::size_t key) const {
  const auto point = frame.points[key];
  return std::sqrt(std::inner_product(point.begin(), point.end(), point.begin(), 0.0));
}

void PlacedKeys::place() {
  const std::size_t m = distinct(), rank = hull.rank;
  frame.offsets = !offsets.empty();
  frame.dimension = rank + (frame.offsets ? 1 : 0);
  frame.points = Matrix<double>(m, frame.dimension);
  frame.all = Panels(frame.dimension);
  frame.all.reserve(m);
  exact_points = Matrix<double>(m, hull.kept.size());
  double middle = 0;
  if (frame.offsets) {
    for (std::size_t i : groups.first) middle += offsets[i] / static_cast<double>(m);
    double spread = 0;
    for (std::size_t i : groups.first) spread = std::max(spread, std::abs(offsets[i] - middle));
    hull.unit = std::max(hull.unit, spread > 0 ? std::ldexp(1.0, std::ilogb(spread)) : 0.0);
  }
  for (std::size_t k = 0; k < m; ++k) {
    const std::size_t i = groups.first[k];
    auto point = frame.points[k];
    hull.frame(keys[i], point.data());
    if (frame.offsets) {
      exact_offsets.push_back(offsets[i]);
      point[rank] = (offsets[i] - middle) / hull.unit;
    }
    frame.all.push(point);
    frame.largest_norm = std::max(frame.largest_norm, distance(k));
    for (std::size_t c = 0; c < hull.kept.size(); ++c) exact_points(k, c) = keys(i, hull.kept[c]);
  }
  frame.point_error = hull.frame_error * frame.largest_norm;
}

void PlacedKeys::measure_wobble() {
  const std::size_t m = distinct();
  wobble.resize(m);
  const double root_d = std::sqrt(static_cast<double>(keys.cols));
  for (std::size_t k = 0; k < m; ++k) {
    const std::size_t i = groups.first[k];
    double squares = 0;  // in units, lest large keys overflow
    for (double value : keys[i]) squares += (value / hull.unit) * (value / hull.unit);
    wobble[k] = options.unit_roundoff * std::sqrt(squares) + options.smallest_rounding * root_d / hull.unit;
    if (frame.offsets) wobble[k] = std::hypot(wobble[k], options.offset_roundoff * offsets[i] / hull.unit);
    if (options.noise) wobble[k] = *options.noise / hull.unit;
  }
  largest_wobble = *std::max_element(wobble.begin(), wobble.end());
}

}  // namespace normscope

#include "keys/placed.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "keys/exact.h"

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
                       const KeyOptions& key_options, const Executor* executor)
    : keys(given), options(key_options) {
  // Equal offsets move all scores alike: no offsets at all.
  if (!std::all_of(given_offsets.begin(), given_offsets.end(),
                   [&](double b) { return b == given_offsets[0]; }))
    offsets = given_offsets;
  // Yet if they are rounded numbers, a covered key may owe its verdict to that.
  rounded_equal_offsets =
      offsets.empty() && !given_offsets.empty() && given_offsets[0] != 0 && !options.noise;
  const auto find_hull = [&] {
    return affine_hull(keys, options.rank, options.unit_roundoff, options.smallest_rounding);
  };
  if (executor != nullptr && keys.rows * keys.cols < kWorthSharing) executor = nullptr;
  hull = executor != nullptr ? told_on_machine(*executor, find_hull) : find_hull();
  groups = group_equal_keys(keys, offsets, hull.kept);
  place(executor);
  measure_wobble();
}

double PlacedKeys::distance(std::size_t key) const {
  const auto point = frame.points[key];
  return std::sqrt(std::inner_product(point.begin(), point.end(), point.begin(), 0.0));
}

// The distinct keys in the frame. middle: of the offsets.
Matrix<double> PlacedKeys::framed(double middle) const {
  Matrix<double> points(distinct(), frame.dimension);
  for (std::size_t k = 0; k < distinct(); ++k) {
    const std::size_t i = groups.first[k];
    hull.frame(keys[i], points[k].data());
    if (frame.offsets) points(k, hull.rank) = (offsets[i] - middle) / hull.unit;
  }
  return points;
}

void PlacedKeys::place(const Executor* executor) {
  const std::size_t m = distinct();
  frame.offsets = !offsets.empty();
  frame.dimension = hull.rank + (frame.offsets ? 1 : 0);
  double middle = 0;
  if (frame.offsets) {
    for (std::size_t i : groups.first) middle += offsets[i] / static_cast<double>(m);
    double spread = 0;
    for (std::size_t i : groups.first) spread = std::max(spread, std::abs(offsets[i] - middle));
    hull.unit = std::max(hull.unit, spread > 0 ? std::ldexp(1.0, std::ilogb(spread)) : 0.0);
  }
  const auto points = [&] { return framed(middle); };
  const auto kept = [&] {
    Matrix<double> given(m, hull.kept.size());
    for (std::size_t k = 0; k < m; ++k)
      for (std::size_t c = 0; c < hull.kept.size(); ++c) given(k, c) = keys(groups.first[k], hull.kept[c]);
    return given;
  };
  frame.points = executor != nullptr ? once_per_machine(*executor, points) : SharedMatrix(points());
  if (!all_kept())
    kept_points_ = executor != nullptr ? once_per_machine(*executor, kept) : SharedMatrix(kept());
  for (std::size_t k = 0; k < m; ++k) {
    const std::size_t i = groups.first[k];
    if (frame.offsets) exact_offsets.push_back(offsets[i]);
    frame.largest_norm = std::max(frame.largest_norm, distance(k));
    // With offsets the last coordinate is rounded as the others are.
    if (hull.reduced())
      frame.point_error = std::max(frame.point_error, hull.frame_error(keys[i]) + 0x1p-53 * distance(k));
  }
  if (!hull.reduced()) frame.point_error = 0x1p-53 * frame.largest_norm;
}

// In the hull a key's place is lift times its kept coordinates, which stretches what happened to them; or,
// off its place by what `off` says, the foot of its perpendicular, which does not. Either serves, for all
// keys alike.
void PlacedKeys::measure_wobble() {
  const std::size_t m = distinct();
  const double root_d = std::sqrt(static_cast<double>(keys.cols));
  // Half a step of double's least numbers is no double itself.
  const double step = std::max(options.smallest_rounding, std::numeric_limits<double>::denorm_min());
  bool far_from_flat = false;  // some key, by more than its own rounding
  bool unclear = false;  // of some key, far smaller than its distance from the others, doubles cannot tell
  // A bound of the spectral norm.
  const double stretch =
      hull.reduced() && hull.rank > 0
          ? std::min(hull.lift.norm(), std::sqrt(hull.lift.cwiseAbs().rowwise().sum().maxCoeff() *
                                                 hull.lift.cwiseAbs().colwise().sum().maxCoeff()))
          : 1;
  const Eigen::MatrixXd sizes = hull.lift.cwiseAbs();
  std::vector<double> whole(m), stretched(m);
  Eigen::VectorXd errors(static_cast<Eigen::Index>(hull.kept.size()));
  for (std::size_t k = 0; k < m; ++k) {
    const std::size_t i = groups.first[k];
    const bool bounded = options.noise || !options.errors.empty();
    if (bounded) {
      for (const std::size_t each : groups.members[k])
        whole[k] = std::max(whole[k], (options.noise ? *options.noise : options.errors[each]) / hull.unit);
      stretched[k] = stretch * whole[k];
    } else {
      double squares = 0;  // in units, lest large keys overflow
      for (double value : keys[i]) squares += (value / hull.unit) * (value / hull.unit);
      whole[k] = options.unit_roundoff * std::sqrt(squares) + step * root_d / hull.unit;
    }
    if (!hull.reduced()) continue;
    if (!bounded) {
      for (std::size_t c = 0; c < hull.kept.size(); ++c)
        errors[static_cast<Eigen::Index>(c)] =
            (options.unit_roundoff * std::abs(keys(i, hull.kept[c])) + step) / hull.unit;
      stretched[k] = std::min((sizes * errors).norm(), stretch * errors.norm());
    }
    double off = 0;
    for (const std::size_t each : groups.members[k])
      off = std::max(off, hull.off[static_cast<Eigen::Index>(each)] / hull.unit);
    const double steps = 2 * static_cast<double>(keys.cols);
    const double computed = 0x1p-53 * steps * distance(k);  // what `off` may be off
    far_from_flat = far_from_flat || off > whole[k] + computed;
    unclear = unclear || off > whole[k];
    whole[k] += off + 2 * frame.point_error + computed;
  }
  if (unclear && !far_from_flat) {
    constexpr double kMostProducts = 1e7;  // a hundredth of a second or so
    Effort effort(kMostProducts);
    try {
      far_from_flat = !lies_in_flat(keys, hull.rank, effort);
    } catch (const BeyondEffort&) {
      far_from_flat = true;
    }
  }
  wobble = hull.reduced() && *std::max_element(stretched.begin(), stretched.end()) <
                                 *std::max_element(whole.begin(), whole.end())
               ? std::move(stretched)
               : std::move(whole);
  if (frame.offsets && !options.noise)
    for (std::size_t k = 0; k < m; ++k)
      wobble[k] = std::hypot(wobble[k], (options.offset_roundoff * std::abs(offsets[groups.first[k]]) +
                                         options.smallest_offset_rounding) /
                                            hull.unit);
  largest_wobble = *std::max_element(wobble.begin(), wobble.end());
  // (b) of the theorem speaks of keys within the errors that lie in a flat. Noise above the finest rounding
  // fills directions that were left out; errors do unless a projection confines the keys meant; and where a
  // key is farther from the flat than its own rounding there are no such keys.
  const bool leaves_flat = options.noise             ? *options.noise > hull.finest || far_from_flat
                           : !options.errors.empty() ? hull.rank + options.projected_out < keys.cols
                                                     : far_from_flat;
  keys_leave_flat = hull.reduced() && leaves_flat;
}

}  // namespace normscope

#include "keys/exact_margin.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "keys/panels.h"

namespace normscope {
namespace {

constexpr unsigned kWeightBits = 256;  // of weights on the way; those of the end are exact

// Also where the square is beyond the range of doubles; never 0 for a positive number.
double square_root(const Rational& square) {
  if (square <= 0) return 0;
  const long half = (bits(Integer(numerator(square))) - bits(Integer(denominator(square)))) / 2;
  const Integer power = Integer(1) << static_cast<unsigned>(2 * std::abs(half));
  const Rational reduced =
      half >= 0 ? Rational(square / Rational(power)) : Rational(square * Rational(power));
  const double root = std::ldexp(std::sqrt(reduced.convert_to<double>()), static_cast<int>(half));
  return std::clamp(root, std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::max());
}

Rational power_of_two(int exponent) {
  const Integer power = Integer(1) << static_cast<unsigned>(std::abs(exponent));
  return exponent >= 0 ? Rational(power) : Rational(Integer(1), power);
}

Integer dot(const std::vector<Integer>& a, const std::vector<Integer>& b) {
  Integer sum = 0;
  for (std::size_t c = 0; c < a.size(); ++c) sum += a[c] * b[c];
  return sum;
}

// Wolfe's method in integers: k_j − k_i, mapped by the lift, in units of 2^unit_. Which members are tried is
// up to weights of kWeightBits; the point each set of members leads to, and that no key lies nearer, is
// exact.
class ExactNearest {
 public:
  ExactNearest(MatrixView<const double> points, std::span<const double> offsets, std::size_t key,
               std::span<const double> lift, Effort& effort)
      : points_(points),
        offsets_(offsets),
        key_(key),
        rank_(points.cols),
        dimension_(points.cols + (offsets.empty() ? 0 : 1)),
        ray_(points.rows),
        effort_(effort) {
    lowest_ = std::min(lowest_exponent(points),
                       offsets.empty() ? 0 : lowest_exponent({offsets.data(), 1, offsets.size()}));
    if (!lift.empty()) {
      lift_exponent_ = std::min(0, lowest_exponent({lift.data(), rank_, rank_}));
      for (double entry : lift) lift_.push_back(scaled(entry, lift_exponent_));
    }
    for (std::size_t j = 0; j < points.rows; ++j)
      for (double value : points[j]) largest_ = std::max(largest_, std::abs(value));
    for (double value : offsets) largest_ = std::max(largest_, std::abs(value));
    const int length = (largest_ > 0 ? std::ilogb(largest_) : 0) - lowest_ - lift_exponent_;
    ray_length_ = Integer(1) << static_cast<unsigned>(std::max(0, length));
  }

  ExactMargin solve(std::span<const std::size_t> hint) {
    for (std::size_t j : hint)
      if (j < points_.rows && j != key_ && std::find(members_.begin(), members_.end(), j) == members_.end())
        enter(j);
    if (members_.empty()) enter(key_ == 0 ? 1 : 0);
    const Integer share = (Integer(1) << kWeightBits) / static_cast<unsigned>(members_.size());
    for (Integer& weight : weights_) weight = share;
    settle();
    while (true) {
      const std::size_t rival = lowest();
      if (rival == kNone) break;
      enter(rival);
      settle();
    }
    ExactMargin result;
    const Rational unit = power_of_two(lowest_ + lift_exponent_);
    result.margin = square_root(Rational(squared_, determinant_ * determinant_) * unit * unit);
    if (offsets_.empty() || dual_[rank_] < 0) {
      const Rational lift_unit = power_of_two(lift_exponent_);
      for (std::size_t c = 0; c < rank_; ++c) {
        // Boost's own rationals take no negative denominator.
        result.query.push_back(offsets_.empty() ? Rational(-dual_[c])
                                                : Rational(-dual_[c], -dual_[rank_]) * lift_unit);
      }
    }
    return result;
  }

 private:
  // k_j − k_i on the kept coordinates, and b_j − b_i, in units of 2^lowest_.
  std::vector<Integer> difference(std::size_t j) const {
    std::vector<Integer> v(dimension_);
    for (std::size_t c = 0; c < rank_; ++c)
      v[c] = scaled(points_(j, c), lowest_) - scaled(points_(key_, c), lowest_);
    if (!offsets_.empty()) v[rank_] = scaled(offsets_[j], lowest_) - scaled(offsets_[key_], lowest_);
    return v;
  }

  // The same in the frame, in units of 2^(lowest_ + lift_exponent_).
  std::vector<Integer> framed(std::size_t j) const {
    std::vector<Integer> v(dimension_);
    if (j == ray_) {
      v[rank_] = -ray_length_;
      return v;
    }
    std::vector<Integer> plain = difference(j);
    if (lift_.empty()) return plain;
    for (std::size_t a = 0; a < rank_; ++a)
      for (std::size_t b = 0; b < rank_; ++b) v[a] += lift_[a * rank_ + b] * plain[b];
    if (!offsets_.empty()) v[rank_] = plain[rank_] << static_cast<unsigned>(-lift_exponent_);
    return v;
  }

  void enter(std::size_t j) {
    members_.push_back(j);
    vectors_.push_back(framed(j));
    weights_.emplace_back(0);
  }
  void leave(std::size_t a) {
    const auto at = static_cast<std::ptrdiff_t>(a);
    members_.erase(members_.begin() + at);
    vectors_.erase(vectors_.begin() + at);
    weights_.erase(weights_.begin() + at);
  }

  // Weights, times the determinant, of the nearest point of the members' affine hull: with edges e_a from the
  // first member (or along the ray), (E Eᵀ) μ = −E y_0, by fraction-free elimination, whose pivots are minors
  // of a Gram matrix and positive. Empty if the members are affinely dependent; `dependent` is then one that
  // is.
  std::vector<Integer> affine_weights(std::size_t& dependent) {
    const std::size_t first = members_[0] == ray_ && members_.size() > 1 ? 1 : 0, m = members_.size() - 1;
    std::vector<std::size_t> others;
    std::vector<std::vector<Integer>> edges;
    for (std::size_t a = 0; a <= m; ++a) {
      if (a == first) continue;
      others.push_back(a);
      edges.push_back(vectors_[a]);
      if (members_[a] != ray_)
        for (std::size_t c = 0; c < dimension_; ++c) edges.back()[c] -= vectors_[first][c];
    }
    std::vector<std::vector<Integer>> rows(m, std::vector<Integer>(m + 1));
    for (std::size_t a = 0; a < m; ++a) {
      for (std::size_t b = 0; b <= a; ++b) rows[a][b] = rows[b][a] = dot(edges[a], edges[b]);
      rows[a][m] = -dot(edges[a], vectors_[first]);
    }
    Integer previous = 1;
    for (std::size_t p = 0; p < m; ++p) {
      if (rows[p][p] == 0) {
        dependent = others[p];
        return {};
      }
      const std::size_t left = m - p;
      effort_.spend(left * left, bits(rows[p][p]));
      for (std::size_t r = p + 1; r < m; ++r) {
        for (std::size_t c = p + 1; c <= m; ++c) {
          rows[r][c] = rows[r][c] * rows[p][p] - rows[r][p] * rows[p][c];
          divide_exactly(rows[r][c], previous);
        }
      }
      previous = rows[p][p];
    }
    determinant_ = previous;
    std::vector<Integer> weights(m + 1);
    weights[first] = determinant_;
    for (std::size_t a = m; a-- > 0;) {
      Integer value = rows[a][m] * determinant_;
      for (std::size_t b = a + 1; b < m; ++b) value -= rows[a][b] * weights[others[b]];
      divide_exactly(value, rows[a][a]);
      weights[others[a]] = value;
      if (members_[others[a]] != ray_) weights[first] -= value;
    }
    return weights;
  }

  // Minor cycles: towards the nearest point of the affine hull, dropping members whose weight vanishes.
  void settle() {
    while (true) {
      std::size_t dependent = kNone;
      const std::vector<Integer> exact = affine_weights(dependent);
      if (exact.empty()) {
        leave(dependent);
        continue;
      }
      std::size_t leaving = kNone;
      Integer best_weight = 0, best_fall = 1;  // the step is their quotient
      std::vector<Integer> target(exact.size());
      for (std::size_t a = 0; a < exact.size(); ++a) {
        target[a] = (exact[a] << kWeightBits) / determinant_;
        if (exact[a] > 0) continue;
        const Integer fall = weights_[a] - target[a];
        if (leaving == kNone || weights_[a] * best_fall < best_weight * fall)
          leaving = a, best_weight = weights_[a], best_fall = fall == 0 ? Integer(1) : fall;
      }
      if (leaving == kNone) {
        weights_ = std::move(target);
        place(exact);
        return;
      }
      for (std::size_t a = 0; a < exact.size(); ++a) {
        weights_[a] += (target[a] - weights_[a]) * best_weight / best_fall;
        if (weights_[a] < 0) weights_[a] = 0;
      }
      leave(leaving);
    }
  }

  // The nearest point, times the determinant, and what makes a product of kept coordinates one with it.
  void place(const std::vector<Integer>& exact) {
    std::vector<Integer> point(dimension_);
    for (std::size_t a = 0; a < exact.size(); ++a)
      for (std::size_t c = 0; c < dimension_; ++c) point[c] += exact[a] * vectors_[a][c];
    squared_ = dot(point, point);
    dual_ = point;
    if (lift_.empty()) return;
    for (std::size_t b = 0; b < rank_; ++b) {
      dual_[b] = 0;
      for (std::size_t a = 0; a < rank_; ++a) dual_[b] += lift_[a * rank_ + b] * point[a];
    }
  }

  // The key (or ray) lowest in the direction of the nearest point x, if it is lower than that point: v·x <
  // x·x, where a shift by the exponent of the lift brings offsets to the unit of the rest.
  std::size_t lowest() const {
    if (!offsets_.empty() && dual_[rank_] > 0 &&
        std::find(members_.begin(), members_.end(), ray_) == members_.end())
      return ray_;
    // On a common scale, in doubles.
    const unsigned lift_shift = static_cast<unsigned>(-lift_exponent_);
    long top = bits(squared_) - bits(determinant_) + lowest_;
    for (std::size_t c = 0; c < dimension_; ++c)
      top = std::max(top, bits(dual_[c]) + (c == rank_ ? static_cast<long>(lift_shift) : 0));
    std::vector<double> rough(dimension_);
    for (std::size_t c = 0; c < dimension_; ++c)
      rough[c] = rounded(dual_[c], top - (c == rank_ ? static_cast<long>(lift_shift) : 0));
    const double limit =
        rounded(squared_, top + bits(determinant_) - lowest_) / rounded(determinant_, bits(determinant_));
    const double underflow = 1e-290 + 1e-322 * static_cast<double>(dimension_) * largest_;
    std::size_t best = kNone;
    Integer best_value = squared_;
    for (std::size_t j = 0; j < points_.rows; ++j) {
      if (j == key_) continue;
      double sum = 0, size = std::abs(limit);
      for (std::size_t c = 0; c < rank_; ++c) {
        const double product = rough[c] * (points_(j, c) - points_(key_, c));
        sum += product;
        size += std::abs(product);
      }
      if (!offsets_.empty()) {
        const double product = rough[rank_] * (offsets_[j] - offsets_[key_]);
        sum += product;
        size += std::abs(product);
      }
      if (sum - size * static_cast<double>(dimension_ + 8) * 0x1p-50 - underflow > limit)
        continue;  // clearly farther
      if (std::find(members_.begin(), members_.end(), j) != members_.end()) continue;
      const std::vector<Integer> v = difference(j);
      Integer value = 0;
      for (std::size_t c = 0; c < rank_; ++c) value += v[c] * dual_[c];
      if (!offsets_.empty()) value += (v[rank_] * dual_[rank_]) << lift_shift;
      effort_.spend(dimension_, bits(determinant_));
      value *= determinant_;
      if (value < best_value) best = j, best_value = value;
    }
    return best;
  }

  MatrixView<const double> points_;
  std::span<const double> offsets_;
  std::size_t key_, rank_, dimension_, ray_;
  Effort& effort_;
  int lowest_ = 0, lift_exponent_ = 0;
  std::vector<Integer> lift_;  // rank × rank, in units of 2^lift_exponent_; empty: the identity
  double largest_ = 0;
  Integer ray_length_;
  std::vector<std::size_t> members_;
  std::vector<std::vector<Integer>> vectors_;
  std::vector<Integer> weights_;       // in units of 2^-kWeightBits
  std::vector<Integer> dual_;          // lift transposed times the nearest point, times the determinant
  Integer squared_, determinant_ = 1;  // of the nearest point, times the determinant squared
};

}  // namespace

ExactMargin exact_margin(MatrixView<const double> points, std::span<const double> offsets, std::size_t key,
                         std::span<const double> lift, std::span<const std::size_t> hint, Effort& effort) {
  return ExactNearest(points, offsets, key, lift, effort).solve(hint);
}

}  // namespace normscope

#include "keys/exact_margin.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "keys/panels.h"

namespace normscope {
namespace {

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

class ExactNearest {
 public:
  ExactNearest(MatrixView<const double> points, std::span<const double> offsets, std::size_t key,
               std::span<const double> metric)
      : points_(points),
        offsets_(offsets),
        key_(key),
        rank_(points.cols),
        dimension_(points.cols + (offsets.empty() ? 0 : 1)) {
    for (double entry : metric) metric_.push_back(rational(entry));
    ray_ = points.rows;
  }

  ExactMargin solve(std::span<const std::size_t> hint) {
    std::size_t first = key_ == 0 ? 1 : 0;
    for (std::size_t j : hint)
      if (j < points_.rows && j != key_) first = j;
    members_ = {first};
    vectors_ = {difference(first)};
    weights_ = {Rational(1)};
    place();
    // Exact arithmetic makes Wolfe's method finite; every round brings the point strictly nearer.
    while (true) {
      const std::size_t rival = lowest();
      if (rival == kNone) break;
      members_.push_back(rival);
      vectors_.push_back(difference(rival));
      weights_.push_back(Rational(0));
      settle();
    }
    ExactMargin result;
    result.margin = square_root(squared_);
    if (offsets_.empty() || dual_[rank_] < 0)
      for (std::size_t c = 0; c < rank_; ++c)
        result.query.push_back(offsets_.empty() ? Rational(-dual_[c]) : Rational(dual_[c] / dual_[rank_]));
    return result;
  }

 private:
  std::vector<Rational> difference(std::size_t j) const {
    std::vector<Rational> v(dimension_);
    if (j == ray_) {
      v[rank_] = -1;
      return v;
    }
    for (std::size_t c = 0; c < rank_; ++c) v[c] = rational(points_(j, c)) - rational(points_(key_, c));
    if (!offsets_.empty()) v[rank_] = rational(offsets_[j]) - rational(offsets_[key_]);
    return v;
  }

  // Metric times vector.
  std::vector<Rational> dual(const std::vector<Rational>& v) const {
    if (metric_.empty()) return v;
    std::vector<Rational> result(v);
    for (std::size_t a = 0; a < rank_; ++a) {
      result[a] = 0;
      for (std::size_t b = 0; b < rank_; ++b) result[a] += metric_[a * rank_ + b] * v[b];
    }
    return result;
  }

  static Rational dot(const std::vector<Rational>& a, const std::vector<Rational>& b) {
    Rational sum = 0;
    for (std::size_t c = 0; c < a.size(); ++c) sum += a[c] * b[c];
    return sum;
  }

  void place() {
    std::vector<Rational> x(dimension_);
    for (std::size_t a = 0; a < members_.size(); ++a)
      for (std::size_t c = 0; c < dimension_; ++c) x[c] += weights_[a] * vectors_[a][c];
    dual_ = dual(x);
    squared_ = dot(x, dual_);
  }

  // The key (or ray) lowest in the direction of the nearest point, if it is lower than that point.
  std::size_t lowest() const {
    if (!offsets_.empty() && dual_[rank_] > 0 &&
        std::find(members_.begin(), members_.end(), ray_) == members_.end())
      return ray_;
    std::vector<double> rough(dimension_);
    for (std::size_t c = 0; c < dimension_; ++c) rough[c] = dual_[c].convert_to<double>();
    const double limit = squared_.convert_to<double>();
    std::size_t best = kNone;
    Rational best_value = squared_;
    for (std::size_t j = 0; j < points_.rows; ++j) {
      if (j == key_) continue;
      double sum = 0, size = limit;
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
      if (sum - size * static_cast<double>(dimension_ + 8) * 0x1p-50 > limit) continue;  // clearly farther
      if (std::find(members_.begin(), members_.end(), j) != members_.end()) continue;
      const Rational value = dot(difference(j), dual_);
      if (value < best_value) best = j, best_value = value;
    }
    return best;
  }

  // Weights of the nearest point of the members' affine hull: G λ = μ a, Σ a λ = 1, by elimination.
  std::vector<Rational> affine_weights() const {
    const std::size_t c = members_.size();
    std::vector<std::vector<Rational>> m(c + 1, std::vector<Rational>(c + 2));
    for (std::size_t a = 0; a < c; ++a) {
      const std::vector<Rational> image = dual(vectors_[a]);
      for (std::size_t b = 0; b < c; ++b) m[a][b] = dot(image, vectors_[b]);
      m[a][c] = m[c][a] = members_[a] == ray_ ? 0 : 1;
    }
    m[c][c + 1] = 1;
    for (std::size_t p = 0; p <= c; ++p) {
      std::size_t pivot = p;
      while (pivot <= c && m[pivot][p] == 0) ++pivot;
      if (pivot > c) return {};
      std::swap(m[p], m[pivot]);
      for (std::size_t r = 0; r <= c; ++r) {
        if (r == p || m[r][p] == 0) continue;
        const Rational factor = m[r][p] / m[p][p];
        for (std::size_t k = p; k < c + 2; ++k) m[r][k] -= factor * m[p][k];
      }
    }
    std::vector<Rational> weights(c);
    for (std::size_t a = 0; a < c; ++a) weights[a] = m[a][c + 1] / m[a][a];
    return weights;
  }

  void settle() {
    while (true) {
      const std::vector<Rational> target = affine_weights();
      Rational step = 1;
      std::size_t leaving = kNone;
      for (std::size_t a = 0; a < target.size(); ++a) {
        if (target[a] > 0) continue;
        const Rational reach =
            weights_[a] == 0 ? Rational(0) : Rational(weights_[a] / (weights_[a] - target[a]));
        if (leaving == kNone || reach < step) step = reach, leaving = a;
      }
      if (leaving == kNone) {
        weights_ = target;
        place();
        return;
      }
      for (std::size_t a = 0; a < target.size(); ++a) weights_[a] += step * (target[a] - weights_[a]);
      const auto at = static_cast<std::ptrdiff_t>(leaving);
      members_.erase(members_.begin() + at);
      vectors_.erase(vectors_.begin() + at);
      weights_.erase(weights_.begin() + at);
    }
  }

  MatrixView<const double> points_;
  std::span<const double> offsets_;
  std::size_t key_, rank_, dimension_, ray_;
  std::vector<Rational> metric_;
  std::vector<std::size_t> members_;
  std::vector<std::vector<Rational>> vectors_;
  std::vector<Rational> weights_, dual_;  // dual_: metric times the nearest point
  Rational squared_;
};

}  // namespace

ExactMargin exact_margin(MatrixView<const double> points, std::span<const double> offsets, std::size_t key,
                         std::span<const double> metric, std::span<const std::size_t> hint) {
  return ExactNearest(points, offsets, key, metric).solve(hint);
}

}  // namespace normscope

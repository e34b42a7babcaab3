// Included by search.cc once per instruction set.
#if defined(NORMSCOPE_KEYS_CORRAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMSCOPE_KEYS_CORRAL_INL_H_
#undef NORMSCOPE_KEYS_CORRAL_INL_H_
#else
#define NORMSCOPE_KEYS_CORRAL_INL_H_
#endif

// Wolfe's corral: the affinely independent points whose hull holds the current nearest point to the origin
// (P. Wolfe, Finding the nearest point in a polytope, 1976). A corral may also hold the downward ray of the
// problem with offsets, a direction whose weight does not count in the sum; and points given as p = a·(point),
// a > 0, whose weights count a times: far points so scaled are as long as near ones.
//
// With rows A = [p, σ·a] (a = 1 for a point as it is, 0 for the ray) it keeps H = (A Aᵀ)⁻¹ up to date by
// bordering, so the nearest point of the affine hull has weights H a / (aᵀ H a), with Σ λ_p a_p = 1. H also gives
// the distances to the facets: row p of the barycentric map has squared norm H_pp.
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "keys/panels-inl.h"
#include "keys/search.h"

HWY_BEFORE_NAMESPACE();
namespace normscope::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using CorralTag = hn::CappedTag<double, 8>;
constexpr std::size_t kCorralLanes = hn::MaxLanes(CorralTag());

constexpr std::size_t padded(std::size_t count) {
  return (count + 7) / 8 * 8;
}

// out[0, columns) = Σ_r coefficients[r] · matrix[r, 0 … columns). Whole vectors are read and written, so rows
// and out are padded.
HWY_INLINE void combine_rows(const double* HWY_RESTRICT matrix, std::size_t stride,
                             const double* HWY_RESTRICT coefficients, std::size_t rows, std::size_t columns,
                             double* HWY_RESTRICT out) {
  const CorralTag tag;
  std::size_t c = 0;
  for (; c + 2 * kCorralLanes < columns; c += 3 * kCorralLanes) {
    auto s0 = hn::Zero(tag), s1 = s0, s2 = s0;
    const double* row = matrix + c;
    for (std::size_t r = 0; r < rows; ++r, row += stride) {
      const auto factor = hn::Set(tag, coefficients[r]);
      s0 = hn::MulAdd(factor, hn::LoadU(tag, row), s0);
      s1 = hn::MulAdd(factor, hn::LoadU(tag, row + kCorralLanes), s1);
      s2 = hn::MulAdd(factor, hn::LoadU(tag, row + 2 * kCorralLanes), s2);
    }
    hn::StoreU(s0, tag, out + c);
    hn::StoreU(s1, tag, out + c + kCorralLanes);
    hn::StoreU(s2, tag, out + c + 2 * kCorralLanes);
  }
  for (; c < columns; c += kCorralLanes) {
    auto sum = hn::Zero(tag);
    const double* row = matrix + c;
    for (std::size_t r = 0; r < rows; ++r, row += stride)
      sum = hn::MulAdd(hn::Set(tag, coefficients[r]), hn::LoadU(tag, row), sum);
    hn::StoreU(sum, tag, out + c);
  }
}

// matrix[r, 0 … columns) += factors[r] · row, in whole vectors.
HWY_INLINE void add_outer(double* HWY_RESTRICT matrix, std::size_t stride, const double* HWY_RESTRICT factors,
                          std::size_t rows, double common, const double* HWY_RESTRICT row,
                          std::size_t columns) {
  const CorralTag tag;
  for (std::size_t c = 0; c < columns; c += kCorralLanes) {
    const auto part = hn::Mul(hn::Set(tag, common), hn::LoadU(tag, row + c));
    double* at = matrix + c;
    for (std::size_t r = 0; r < rows; ++r, at += stride)
      hn::StoreU(hn::MulAdd(hn::Set(tag, factors[r]), part, hn::LoadU(tag, at)), tag, at);
  }
}

constexpr double kRoundoff = 0x1p-53;
// A pivot of the bordered inverse below this share of the new diagonal means: affinely dependent.
constexpr double kDependent = 1e-13;
constexpr double kZeroWeight = 1e-14;

class Corral {
 public:
  // Rows are padded so that kernels may work in whole vectors (three at a time, hence the slack).
  explicit Corral(std::size_t dimension)
      : dimension_(dimension),
        capacity_(padded(dimension + 2) + 24),
        width_(padded(dimension) + 24),
        points_(capacity_ * width_),
        transposed_(dimension * capacity_),
        counted_(capacity_),
        weights_(capacity_),
        target_(capacity_),
        column_(capacity_),
        gram_(capacity_ * capacity_),
        inverse_(capacity_ * capacity_),
        nearest_(width_) {
    members_.reserve(capacity_);
  }

  // Starts anew from one point. counted: the a above, from 0 to 1.
  void start(std::size_t member, std::span<const double> point, double counted);
  // Adds a member and moves to the nearest point of the new hull. False if numerically that brings no
  // progress (the point is affinely dependent on the corral, say): the search has then reached the end of its
  // precision.
  bool add(std::size_t member, std::span<const double> point, double counted);
  // The same where the distance is known better than from the weights; false only if there is no new hull.
  bool push(std::size_t member, std::span<const double> point, double counted);
  // Takes a member out and moves to the nearest point of the hull of the others.
  bool drop(std::size_t slot) {
    if (size() < 2) return false;
    remove(slot);
    return settle();
  }

  // Computes afresh what updates have blurred. False if that leaves no convex combination.
  bool repair();

  std::size_t size() const { return members_.size(); }
  std::size_t dimension() const { return dimension_; }
  bool contains(std::size_t member) const;
  bool spans() const { return size() == dimension_ + 1; }  // a full simplex: the origin's place is decided
  std::span<const std::size_t> members() const { return members_; }
  std::span<const double> weights() const { return {weights_.data(), size()}; }
  std::span<const double> nearest() const { return {nearest_.data(), dimension_}; }
  double squared_distance() const { return squared_distance_; }
  double scale() const { return scale_; }  // σ², the size of squared distances in this problem

  // For a full simplex: whether the origin lies inside it for any points within `error` (a norm) of these,
  // and the radius of a ball around the origin inside the simplex (0 if not proven). Weights are known to a ten
  // millionth, or to `coarse`.
  struct Enclosure {
    bool proven = false;
    double radius = 0;
  };
  Enclosure enclosure(double error, double coarse);
  // With weights known better: `off` bounds |Σ λ p| and |Σ λ a − 1|·σ, for any points within `error` of these.
  Enclosure enclosure(double error, double coarse, std::span<const double> weights, double off) {
    if (updates_ > 0) refresh();
    return try_enclosure(error, coarse, weights, off);
  }
  // By how much the weights are off, to first order, if p·x differs by `column` from what it is at the nearest point
  // x; it keeps the sum of the weights.
  std::span<const double> correction(std::span<const double> column);

 private:
  const double* point(std::size_t slot) const { return points_.data() + slot * width_; }
  void store(std::size_t slot, std::span<const double> point);
  bool border(std::size_t member, std::span<const double> point, double counted);
  void remove(std::size_t slot);
  bool settle();
  void place();
  void refresh();
  void polish();
  void sharpen();
  void take_correction();
  double shift(double error) const;
  Enclosure try_enclosure(double error, double coarse, std::span<const double> weights, double off) const;

  std::size_t dimension_, capacity_, width_;
  std::vector<std::size_t> members_;
  std::vector<double> points_;      // capacity × dimension, row stride width_
  std::vector<double> transposed_;  // dimension × capacity
  std::vector<double> counted_, weights_, target_, column_;
  std::vector<double> gram_, inverse_;  // capacity × capacity, row stride capacity
  std::vector<double> nearest_;
  double squared_distance_ = 0, scale_ = 1;
  std::size_t updates_ = 0;  // of the inverse since it was last computed from the Gram matrix
};

bool Corral::contains(std::size_t member) const {
  return std::find(members_.begin(), members_.end(), member) != members_.end();
}

void Corral::store(std::size_t slot, std::span<const double> p) {
  std::copy(p.begin(), p.end(), points_.begin() + static_cast<std::ptrdiff_t>(slot * width_));
  for (std::size_t k = 0; k < dimension_; ++k) transposed_[k * capacity_ + slot] = p[k];
}

void Corral::start(std::size_t member, std::span<const double> p, double counted) {
  members_.assign(1, member);
  updates_ = 0;
  store(0, p);
  counted_[0] = counted;
  const double squares = dot(p.data(), p.data(), dimension_);
  scale_ = squares > 0 ? squares : 1.0;
  gram_[0] = squares + scale_ * counted * counted;
  inverse_[0] = 1.0 / gram_[0];
  weights_[0] = 1 / counted;
  place();
}

// Appends the point and borders the inverse with it.
bool Corral::border(std::size_t member, std::span<const double> p, double counted) {
  const std::size_t c = size();
  if (c + 1 > dimension_ + 1 || c == capacity_) return false;
  double* fresh = &gram_[c * capacity_];
  combine_rows(transposed_.data(), capacity_, p.data(), dimension_, c, fresh);
  for (std::size_t a = 0; a < c; ++a) {
    fresh[a] += scale_ * counted * counted_[a];
    gram_[a * capacity_ + c] = fresh[a];
  }
  const double diagonal = dot(p.data(), p.data(), dimension_) + scale_ * counted * counted;
  // column = H g;  pivot = diagonal − gᵀ H g
  combine_rows(inverse_.data(), capacity_, fresh, c, c, column_.data());
  const double pivot = diagonal - dot(column_.data(), fresh, c);
  if (!(pivot > kDependent * diagonal)) return false;
  const double reciprocal = 1.0 / pivot;
  add_outer(inverse_.data(), capacity_, column_.data(), c, reciprocal, column_.data(), c);
  for (std::size_t a = 0; a < c; ++a)
    inverse_[a * capacity_ + c] = inverse_[c * capacity_ + a] = -column_[a] * reciprocal;
  inverse_[c * capacity_ + c] = reciprocal;
  gram_[c * capacity_ + c] = diagonal;
  store(c, p);
  counted_[c] = counted;
  weights_[c] = 0;
  members_.push_back(member);
  ++updates_;
  return true;
}

// Updates let rounding pile up in the inverse; every so often it is computed afresh, G = L Lᵀ, H = L⁻ᵀ L⁻¹.
void Corral::refresh() {
  const std::size_t c = size();
  std::vector<double> lower(c * c), solved(c * c);
  for (std::size_t a = 0; a < c; ++a)
    for (std::size_t b = 0; b <= a; ++b) {
      const double rest = gram_[a * capacity_ + b] - dot(&lower[a * c], &lower[b * c], b);
      lower[a * c + b] = a == b ? std::sqrt(std::max(rest, 0.0)) : rest / lower[b * c + b];
    }
  for (std::size_t b = 0; b < c; ++b)  // column b of L⁻¹, kept as row b of `solved`
    for (std::size_t a = b; a < c; ++a)
      solved[b * c + a] =
          ((a == b ? 1.0 : 0.0) - dot(&lower[a * c + b], &solved[b * c + b], a - b)) / lower[a * c + a];
  for (std::size_t a = 0; a < c; ++a)
    for (std::size_t b = 0; b <= a; ++b)
      inverse_[a * capacity_ + b] = inverse_[b * capacity_ + a] =
          dot(&solved[a * c + a], &solved[b * c + a], c - a);
  updates_ = 0;
}

// The inverse without row and column `slot`; the last member then moves into the gap.
void Corral::remove(std::size_t slot) {
  const std::size_t c = size(), last = c - 1;
  const double* gone = &inverse_[slot * capacity_];
  std::copy_n(gone, c, column_.begin());
  add_outer(inverse_.data(), capacity_, column_.data(), c, -1.0 / column_[slot], column_.data(), c);
  if (slot != last) {
    std::copy_n(points_.begin() + static_cast<std::ptrdiff_t>(last * width_), dimension_,
                points_.begin() + static_cast<std::ptrdiff_t>(slot * width_));
    for (std::size_t k = 0; k < dimension_; ++k)
      transposed_[k * capacity_ + slot] = transposed_[k * capacity_ + last];
    counted_[slot] = counted_[last];
    weights_[slot] = weights_[last];
    members_[slot] = members_[last];
    for (auto* matrix : {&gram_, &inverse_}) {
      double* m = matrix->data();
      std::copy_n(m + last * capacity_, c, m + slot * capacity_);
      m[slot * capacity_ + slot] = m[slot * capacity_ + last];
      for (std::size_t a = 0; a < last; ++a) m[a * capacity_ + slot] = m[slot * capacity_ + a];
    }
  }
  members_.pop_back();
  ++updates_;
}

void Corral::place() {
  combine_rows(points_.data(), width_, weights_.data(), size(), dimension_, nearest_.data());
  squared_distance_ = dot(nearest_.data(), nearest_.data(), dimension_);
}

// Wolfe's minor cycles: walk towards the nearest point of the affine hull, dropping members whose weight
// vanishes.
bool Corral::settle() {
  if (updates_ > 40) refresh();
  while (true) {
    const std::size_t c = size();
    double sum = 0;
    combine_rows(inverse_.data(), capacity_, counted_.data(), c, c, target_.data());
    for (std::size_t a = 0; a < c; ++a) sum += counted_[a] * target_[a];
    if (!(sum > 0) || !std::isfinite(sum)) return false;
    double step = 1;
    std::size_t leaving = c;
    for (std::size_t a = 0; a < c; ++a) {
      target_[a] /= sum;
      if (target_[a] > kZeroWeight) continue;
      // Of several members whose weights vanish at once, as on grids, the later ones start from 0.
      const double reach = weights_[a] > target_[a] ? weights_[a] / (weights_[a] - target_[a]) : 0;
      if (leaving == c || reach < step) step = reach, leaving = a;
    }
    if (leaving == c) {
      std::copy_n(target_.begin(), c, weights_.begin());
      place();
      return true;
    }
    if (c == 1 || !std::isfinite(step)) return false;
    step = std::clamp(step, 0.0, 1.0);
    for (std::size_t a = 0; a < c; ++a)
      weights_[a] = std::max(0.0, weights_[a] + step * (target_[a] - weights_[a]));
    weights_[leaving] = 0;
    remove(leaving);
  }
}

bool Corral::add(std::size_t member, std::span<const double> p, double counted) {
  const double before = squared_distance_;
  return push(member, p, counted) && squared_distance_ < before;
}

bool Corral::push(std::size_t member, std::span<const double> p, double counted) {
  return border(member, p, counted) && settle();
}

// A bound on |Σ λ p| and on |Σ λ a − 1|·σ, for points within `error` of these.
double Corral::shift(double error) const {
  const std::size_t c = size();
  double trace = 0, total = 1;  // points that count less weigh more than 1 together; the ray is what it is
  for (std::size_t a = 0; a < c; ++a) {
    trace += gram_[a * capacity_ + a];
    if (counted_[a] < 1 && counted_[a] > 0) total += weights_[a];
  }
  const double rounding = 4 * (static_cast<double>(c) + static_cast<double>(dimension_) + 4) * kRoundoff;
  return std::sqrt(squared_distance_) * (1 + rounding) + total * (rounding * std::sqrt(trace) + 2 * error);
}

Corral::Enclosure Corral::try_enclosure(double error, double coarse, std::span<const double> weights,
                                        double off) const {
  if (!spans()) return {};
  const std::size_t c = size();
  // η bounds ‖I − G H‖ for the exact Gram matrix G of points within `error` of these.
  double residual = 0, gram_norm = 0, inverse_norm = 0, trace = 0;
  for (std::size_t a = 0; a < c; ++a) {
    trace += gram_[a * capacity_ + a];
    for (std::size_t b = 0; b < c; ++b) {
      const double entry =
          dot(&gram_[a * capacity_], &inverse_[b * capacity_], c) - (a == b ? 1.0 : 0.0);  // H is symmetric
      residual += entry * entry;
      gram_norm += gram_[a * capacity_ + b] * gram_[a * capacity_ + b];
      inverse_norm += inverse_[a * capacity_ + b] * inverse_[a * capacity_ + b];
    }
  }
  gram_norm = std::sqrt(gram_norm), inverse_norm = std::sqrt(inverse_norm);
  const double count = static_cast<double>(c);
  const double rounding = 4 * (count + static_cast<double>(dimension_) + 4) * kRoundoff;
  const double moved = count * (2 * error * std::sqrt(trace) + error * error);  // ‖G' − G‖ for moved points
  const double eta = std::sqrt(residual) + (rounding * (gram_norm + trace) + moved) * inverse_norm;
  if (!(eta < 0.25)) return {};
  Enclosure result{true, INFINITY};
  for (std::size_t a = 0; a < c; ++a) {
    const double* row = &inverse_[a * capacity_];
    const double row_norm = std::sqrt(dot(row, row, c));
    const double squared = row[a] + row_norm * eta / (1 - eta);  // bounds (G⁻¹)_aa
    const double slope = std::sqrt(std::max(0.0, squared));
    // Proven positive, and known well enough to be printed.
    if (!(weights[a] > 2 * slope * off) || !(slope * off < std::max(1e-7 * weights[a], coarse))) return {};
    // The homogeneous part of the row is λ/σ; what is left is the gradient of λ, and λ/|∇λ| the facet's
    // distance.
    const double sure_weight = weights[a] - slope * off;
    const double gradient = std::sqrt(std::max(0.0, squared - sure_weight * sure_weight / scale_));
    result.radius = std::min(result.radius, sure_weight / gradient);
  }
  result.radius = std::max(0.0, result.radius);
  return result;
}

// At the nearest point x of the affine hull every member has the same p·x. The inverse comes from a Gram
// matrix, which squares the condition number; what it leaves of the residual, measured on the points, is
// solved for again.
void Corral::polish() {
  const std::size_t c = size();
  for (int round = 0; round < 2; ++round) {
    double total = 0;
    for (std::size_t a = 0; a < c; ++a) total += counted_[a] * weights_[a];
    for (std::size_t a = 0; a < c; ++a) weights_[a] /= total;
    place();
    take_correction();
    for (std::size_t a = 0; a < c; ++a) weights_[a] -= target_[a];
    place();
  }
}

// Into target_: by how much the weights are off, judged by the spread of p·x over the members.
void Corral::take_correction() {
  const std::size_t c = size();
  double mean = 0;
  combine_rows(transposed_.data(), capacity_, nearest_.data(), dimension_, c, column_.data());
  for (std::size_t a = 0; a < c; ++a) mean += weights_[a] * column_[a];
  for (std::size_t a = 0; a < c; ++a) column_[a] -= counted_[a] * mean;
  correction({column_.data(), c});
}

std::span<const double> Corral::correction(std::span<const double> column) {
  const std::size_t c = size();
  double drift = 0, sum = 0;
  combine_rows(inverse_.data(), capacity_, column.data(), c, c, target_.data());
  combine_rows(inverse_.data(), capacity_, counted_.data(), c, c, column_.data());
  for (std::size_t a = 0; a < c; ++a) drift += counted_[a] * target_[a], sum += counted_[a] * column_[a];
  for (std::size_t a = 0; a < c; ++a) target_[a] -= drift / sum * column_[a];
  return {target_.data(), c};
}

// Where the hull passes close by, the weights' own rounding is coarse against the nearest point; what is left
// of the residual is then taken out of the point itself.
void Corral::sharpen() {
  for (int round = 0; round < 2; ++round) {
    take_correction();
    for (std::size_t k = 0; k < dimension_; ++k)
      nearest_[k] -= dot(&transposed_[k * capacity_], target_.data(), size());
  }
  squared_distance_ = dot(nearest_.data(), nearest_.data(), dimension_);
}

bool Corral::repair() {
  refresh();
  if (!settle()) return false;
  polish();
  if (!spans()) sharpen();
  return std::all_of(weights_.begin(), weights_.begin() + static_cast<std::ptrdiff_t>(size()),
                     [](double weight) { return weight >= 0; });
}

Corral::Enclosure Corral::enclosure(double error, double coarse) {
  if (!spans()) return {};
  polish();
  const Enclosure first = try_enclosure(error, coarse, weights(), shift(error));
  if (first.proven || updates_ == 0) return first;
  refresh();
  polish();
  return try_enclosure(error, coarse, weights(), shift(error));
}

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // NORMSCOPE_KEYS_CORRAL_INL_H_

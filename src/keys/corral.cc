#include "keys/corral.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

namespace normscope {
namespace {

double dot(const double* a, const double* b, std::size_t count) {
  double sums[4] = {0, 0, 0, 0};
  std::size_t c = 0;
  for (; c + 4 <= count; c += 4)
    for (std::size_t k = 0; k < 4; ++k) sums[k] += a[c + k] * b[c + k];
  for (; c < count; ++c) sums[0] += a[c] * b[c];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

constexpr double kRoundoff = 0x1p-53;
// A pivot of the bordered inverse below this share of the new diagonal means: affinely dependent.
constexpr double kDependent = 1e-13;
constexpr double kZeroWeight = 1e-14;

}  // namespace

bool Corral::contains(std::size_t member) const {
  return std::find(members_.begin(), members_.end(), member) != members_.end();
}

double Corral::product(std::size_t slot, std::span<const double> p, bool counted) const {
  return dot(point(slot), p.data(), dimension_) + (counted ? scale_ * counted_[slot] : 0.0);
}

void Corral::start(std::size_t member, std::span<const double> p) {
  members_.assign(1, member);
  updates_ = 0;
  std::copy(p.begin(), p.end(), points_.begin());
  counted_[0] = 1;
  const double squares = dot(p.data(), p.data(), dimension_);
  scale_ = squares > 0 ? squares : 1.0;
  gram_[0] = squares + scale_;
  inverse_[0] = 1.0 / gram_[0];
  weights_[0] = 1;
  place();
}

// Appends the point and borders the inverse with it.
bool Corral::border(std::size_t member, std::span<const double> p) {
  const std::size_t c = size();
  if (c + 1 > dimension_ + 1 || c == capacity_) return false;
  const bool counted = member != kRay;
  for (std::size_t a = 0; a < c; ++a) gram_[a * capacity_ + c] = gram_[c * capacity_ + a] = product(a, p, counted);
  const double diagonal = dot(p.data(), p.data(), dimension_) + (counted ? scale_ : 0.0);
  // column = H g;  pivot = diagonal − gᵀ H g
  double pivot = diagonal;
  for (std::size_t a = 0; a < c; ++a) {
    column_[a] = dot(&inverse_[a * capacity_], &gram_[c * capacity_], c);
    pivot -= column_[a] * gram_[c * capacity_ + a];
  }
  if (!(pivot > kDependent * diagonal)) return false;
  const double reciprocal = 1.0 / pivot;
  for (std::size_t a = 0; a < c; ++a) {
    const double factor = column_[a] * reciprocal;
    double* row = &inverse_[a * capacity_];
    for (std::size_t b = 0; b < c; ++b) row[b] += factor * column_[b];
    row[c] = inverse_[c * capacity_ + a] = -factor;
  }
  inverse_[c * capacity_ + c] = reciprocal;
  gram_[c * capacity_ + c] = diagonal;
  std::copy(p.begin(), p.end(), points_.begin() + static_cast<std::ptrdiff_t>(c * dimension_));
  counted_[c] = counted ? 1 : 0;
  weights_[c] = 0;
  members_.push_back(member);
  ++updates_;
  return true;
}

// Updates let rounding pile up in the inverse; every so often it is computed afresh.
void Corral::refresh() {
  const auto c = static_cast<Eigen::Index>(size()), stride = static_cast<Eigen::Index>(capacity_);
  using Strided = Eigen::Map<Eigen::MatrixXd, 0, Eigen::OuterStride<>>;
  const Strided gram(gram_.data(), c, c, Eigen::OuterStride<>(stride));
  Strided inverse(inverse_.data(), c, c, Eigen::OuterStride<>(stride));
  inverse = Eigen::MatrixXd(gram).llt().solve(Eigen::MatrixXd::Identity(c, c));
  updates_ = 0;
}

// The inverse without row and column `slot`; the last member moves into the gap.
void Corral::remove(std::size_t slot) {
  const std::size_t last = size() - 1;
  if (slot != last) {
    std::copy_n(points_.begin() + static_cast<std::ptrdiff_t>(last * dimension_), dimension_,
                points_.begin() + static_cast<std::ptrdiff_t>(slot * dimension_));
    counted_[slot] = counted_[last];
    weights_[slot] = weights_[last];
    members_[slot] = members_[last];
    for (auto* matrix : {&gram_, &inverse_}) {
      double* m = matrix->data();
      for (std::size_t a = 0; a <= last; ++a) std::swap(m[slot * capacity_ + a], m[last * capacity_ + a]);
      for (std::size_t a = 0; a <= last; ++a) std::swap(m[a * capacity_ + slot], m[a * capacity_ + last]);
    }
  }
  members_.pop_back();
  const double reciprocal = 1.0 / inverse_[last * capacity_ + last];
  const double* gone = &inverse_[last * capacity_];
  for (std::size_t a = 0; a < last; ++a) {
    const double factor = inverse_[a * capacity_ + last] * reciprocal;
    double* row = &inverse_[a * capacity_];
    for (std::size_t b = 0; b < last; ++b) row[b] -= factor * gone[b];
  }
  ++updates_;
}

void Corral::place() {
  std::fill(nearest_.begin(), nearest_.end(), 0.0);
  for (std::size_t a = 0; a < size(); ++a) {
    const double* p = point(a);
    for (std::size_t k = 0; k < dimension_; ++k) nearest_[k] += weights_[a] * p[k];
  }
  squared_distance_ = dot(nearest_.data(), nearest_.data(), dimension_);
}

// Wolfe's minor cycles: walk towards the nearest point of the affine hull, dropping members whose weight vanishes.
bool Corral::settle() {
  if (updates_ > 40) refresh();
  while (true) {
    const std::size_t c = size();
    double sum = 0;
    for (std::size_t a = 0; a < c; ++a) {
      target_[a] = dot(&inverse_[a * capacity_], counted_.data(), c);
      sum += counted_[a] * target_[a];
    }
    if (!(sum > 0) || !std::isfinite(sum)) return false;
    double step = 1;
    std::size_t leaving = c;
    for (std::size_t a = 0; a < c; ++a) {
      target_[a] /= sum;
      if (target_[a] > kZeroWeight) continue;
      const double reach = weights_[a] / (weights_[a] - target_[a]);
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

bool Corral::add(std::size_t member, std::span<const double> p) {
  const double before = squared_distance_;
  if (!border(member, p)) return false;
  if (!settle()) return false;
  return squared_distance_ < before;
}

Corral::Enclosure Corral::enclosure(double error) const {
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
  const double shift = std::sqrt(squared_distance_) * (1 + rounding) +
                       rounding * std::sqrt(trace) + 2 * error;  // bound on |Σ λ p| and on |Σ λ − 1|·σ
  Enclosure result{true, INFINITY};
  for (std::size_t a = 0; a < c; ++a) {
    const double* row = &inverse_[a * capacity_];
    const double row_norm = std::sqrt(dot(row, row, c));
    const double squared = row[a] + row_norm * eta / (1 - eta);  // bounds (G⁻¹)_aa
    const double slope = std::sqrt(std::max(0.0, squared));
    // Proven positive, and known well enough to be printed.
    if (!(weights_[a] > 2 * slope * shift) || !(slope * shift < std::max(1e-8 * weights_[a], 1e-11))) return {};
    // The homogeneous part of the row is λ/σ; what is left is the gradient of λ, and λ/|∇λ| the facet's distance.
    const double sure_weight = weights_[a] - slope * shift;
    const double gradient = std::sqrt(std::max(0.0, squared - sure_weight * sure_weight / scale_));
    result.radius = std::min(result.radius, sure_weight / gradient);
  }
  result.radius = std::max(0.0, result.radius);
  return result;
}

}  // namespace normscope

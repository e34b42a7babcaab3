#include "keys/weight.h"

#include <algorithm>
#include <cmath>

#include "core/decompose.h"

namespace normscope {
namespace {

constexpr double kGap = 1e-9;  // of log weight
constexpr int kMostSteps = 100;
constexpr int kQuickSteps = 12;
constexpr double kNegligible = 1e-7;  // of a softmax weight, in a Hessian

struct Problem {
  Eigen::MatrixXd differences;  // rank × n, column j is k_j − k_i
  Eigen::VectorXd offsets;      // b_j − b_i

  // f, and the softmax weights p.
  double value(const Eigen::VectorXd& q, Eigen::VectorXd& p) const {
    p.noalias() = differences.transpose() * q;
    p += offsets;
    const double top = p.maxCoeff();
    p = (p.array() - top).exp();
    const double sum = p.sum();
    p /= sum;
    return top + std::log(sum);
  }

  // Gibbs: for any convex weights μ, f(q) ≥ Σ μ_j (q·p_j + b_j) + entropy(μ) ≥ Σ μ_j b_j + entropy(μ) − R‖Σ
  // μ_j p_j‖, less what the rounding of differences and sums can do.
  double lower_bound(const Eigen::VectorXd& mu, double radius) const {
    const double rounding =
        4 * static_cast<double>(differences.rows() + 8) * 0x1p-53 *
        (radius * mu.dot(differences.colwise().norm().transpose()) + mu.dot(offsets.cwiseAbs()));
    double bound = mu.dot(offsets) - rounding;
    for (const double weight : mu)
      if (weight > 0) bound -= weight * std::log(weight);
    return bound - radius * (differences * mu).norm();
  }

  // Weights near μ whose mean difference vanishes, if there are any: where R is large, ‖Σ μ_j p_j‖ must be
  // tiny for the bound to say anything. (A Newton step of the dual: C is the covariance of the differences
  // under μ.)
  Eigen::VectorXd balanced(const Eigen::VectorXd& start, const SymmetricEigen& covariance) const {
    const Eigen::VectorXd& lambda = covariance.values;
    const double floor = 1e-13 * std::max(lambda.maxCoeff(), 1e-300);
    Eigen::VectorXd mu = start;
    for (int round = 0; round < 3; ++round) {
      const Eigen::VectorXd g = differences * mu;
      const Eigen::VectorXd along = covariance.vectors.transpose() * g;
      const Eigen::VectorXd s =
          covariance.vectors *
          (lambda.array() > floor).select(along.array() / lambda.array().max(floor), 0.0).matrix();
      const double shift = s.dot(g);
      mu.array() *= 1.0 - ((differences.transpose() * s).array() - shift);
      if (!(mu.minCoeff() >= 0)) return start;
      mu /= mu.sum();
    }
    return mu;
  }
};

// argmin of g·s + ½ sᵀHs over ‖q + s‖ ≤ radius, H ⪰ 0 given by its eigenvectors: the multiplier ν ≥ 0 of the
// ball solves ‖(H + νI)⁻¹(H q − g)‖ = radius, found by bisection on a monotone function.
Eigen::VectorXd newton_point(const Eigen::VectorXd& q, const Eigen::VectorXd& g, const SymmetricEigen& eigen,
                             double radius) {
  const Eigen::VectorXd lambda = eigen.values.cwiseMax(0.0);
  const Eigen::VectorXd target =
      lambda.cwiseProduct(eigen.vectors.transpose() * q) - eigen.vectors.transpose() * g;
  const auto point = [&](double nu) -> Eigen::VectorXd {
    return (target.array() / (lambda.array() + nu)).matrix();
  };
  const double floor = 1e-14 * std::max(lambda.maxCoeff(), 1e-300);
  if (point(floor).norm() <= radius) return eigen.vectors * point(floor);
  double low = floor, high = std::max(2 * floor, target.norm() / radius);
  for (int k = 0; k < 200 && high / low > 1 + 1e-15; ++k) {
    const double middle = std::sqrt(low * high);
    (point(middle).norm() > radius ? low : high) = middle;
  }
  Eigen::VectorXd result = eigen.vectors * point(high);
  const double size = result.norm();
  if (size > radius) result *= radius / size;
  return result;
}

// The same by Cholesky factors: Newton's method on 1/‖q(ν)‖ = 1/radius, which is nearly linear in ν. nu:
// where to start, and where it ended. Precise enough for a step, not for a proof.
Eigen::VectorXd newton_point(const Eigen::VectorXd& q, const Eigen::VectorXd& g, Eigen::MatrixXd hessian,
                             double radius, double& nu) {
  const Eigen::VectorXd target = hessian.selfadjointView<Eigen::Lower>() * q - g;
  const double floor = 1e-12 * std::max(hessian.diagonal().maxCoeff(), 1e-300);
  const Eigen::VectorXd diagonal = hessian.diagonal();
  double low = floor, high = std::max(2 * floor, target.norm() / radius);
  nu = std::clamp(nu, low, high);
  Eigen::VectorXd result;
  for (int round = 0; round < 12; ++round) {
    hessian.diagonal() = diagonal.array() + nu;
    const Cholesky factor = cholesky(hessian);
    result = factor.solve(target);
    const double size = result.norm();
    if (!std::isfinite(size)) return q;
    if (std::abs(size - radius) <= 1e-6 * radius || (size < radius && nu <= low)) break;
    (size > radius ? low : high) = nu;
    const double fall = factor.solve_lower(result).squaredNorm();
    nu += size * size / fall * (size - radius) / radius;
    if (!(nu >= low && nu <= high)) nu = std::max(low, 0.5 * (low + high));
    if (low >= high) break;
  }
  if (const double size = result.norm(); size > radius) result *= radius / size;
  return result;
}

// Steps that hold however flat or sharp f is, at the price of an eigendecomposition each. size: of the
// points.
LargestWeight careful(const Problem& problem, double radius, const Eigen::VectorXd& start, double gap) {
  const Eigen::Index n = problem.differences.cols(), rank = problem.differences.rows();
  Eigen::VectorXd q = Eigen::VectorXd::Zero(rank), p(n);
  double f = problem.value(q, p);
  Eigen::VectorXd trial_p(n);
  if (const double trial_f = problem.value(start, trial_p); trial_f < f) f = trial_f, q = start, p = trial_p;
  // A weight is at most 1.
  double proven = std::max(0.0, problem.lower_bound(p, radius));
  for (int step = 0; step < kMostSteps && rank > 0 && f - proven > gap; ++step) {
    const Eigen::VectorXd g = problem.differences * p;
    const Eigen::MatrixXd weighted = problem.differences * p.cwiseSqrt().asDiagonal();
    const Eigen::MatrixXd hessian = weighted * weighted.transpose() - g * g.transpose();
    const SymmetricEigen eigen = symmetric_eigen(hessian);
    proven = std::max(proven, problem.lower_bound(problem.balanced(p, eigen), radius));
    const Eigen::VectorXd direction = newton_point(q, g, eigen, radius) - q;
    // The ball is convex, so every point of the segment is allowed: halve until f falls enough.
    const double slope = g.dot(direction);
    if (!(slope < 0)) break;
    double length = 1;
    bool moved = false;
    for (int halving = 0; halving < 60; ++halving, length *= 0.5) {
      const Eigen::VectorXd trial = q + length * direction;
      const double trial_f = problem.value(trial, trial_p);
      if (trial_f <= f + 1e-4 * length * slope) {
        moved = trial_f < f;
        q = trial, f = trial_f, p = trial_p;
        break;
      }
    }
    proven = std::max(proven, problem.lower_bound(p, radius));
    if (!moved) break;
  }
  return {std::exp(-f), std::min(1.0, std::exp(-std::min(proven, f)) * (1 + 1e-12))};
}

}  // namespace

struct WeightSearch::Place {
  Eigen::VectorXd q, p;  // p: softmax weights
  Eigen::VectorXd mean;  // Σ p_j k_j
  double f = 0;
};

WeightSearch::WeightSearch(MatrixView<const double> points, std::span<const double> offsets,
                           MatrixView<const double> given)
    : points_(static_cast<Eigen::Index>(points.cols), static_cast<Eigen::Index>(points.rows)),
      offsets_(Eigen::VectorXd::Zero(static_cast<Eigen::Index>(points.rows))) {
  for (std::size_t j = 0; j < points.rows; ++j) {
    const auto column = static_cast<Eigen::Index>(j);
    for (std::size_t c = 0; c < points.cols; ++c)
      points_(static_cast<Eigen::Index>(c), column) = points(j, c);
    if (!offsets.empty()) offsets_[column] = offsets[j];
    largest_norm_ = std::max(largest_norm_, points_.col(column).norm());
    largest_offset_ = std::max(largest_offset_, std::abs(offsets_[column]));
  }
  given_.resize(static_cast<Eigen::Index>(given.cols), static_cast<Eigen::Index>(given.rows));
  for (std::size_t j = 0; j < given.rows; ++j)
    for (std::size_t c = 0; c < given.cols; ++c)
      given_(static_cast<Eigen::Index>(c), static_cast<Eigen::Index>(j)) = given(j, c);
}

WeightSearch::Place WeightSearch::at(Eigen::VectorXd q, Eigen::Index key) const {
  Place place;
  place.p.noalias() = points_.transpose() * q;
  place.p += offsets_;
  const double top = place.p.maxCoeff(), own = place.p[key];
  place.p = (place.p.array() - top).exp();
  const double sum = place.p.sum();
  place.p /= sum;
  place.mean.noalias() = points_ * place.p;
  place.f = top - own + std::log(sum);
  place.q = std::move(q);
  return place;
}

// Σ p_j k_j k_jᵀ − mean meanᵀ over the keys whose weight counts: a Newton step need not be exact.
Eigen::MatrixXd WeightSearch::hessian(const Place& place) const {
  const Eigen::Index rank = points_.rows();
  Eigen::MatrixXd weighted(rank, points_.cols());
  Eigen::Index count = 0;
  for (Eigen::Index j = 0; j < points_.cols(); ++j)
    if (place.p[j] > kNegligible)
      weighted.col(count++) = (points_.col(j) - place.mean) * std::sqrt(place.p[j]);
  Eigen::MatrixXd result = Eigen::MatrixXd::Zero(rank, rank);
  result.selfadjointView<Eigen::Lower>().rankUpdate(weighted.leftCols(count));
  return result;
}

// Newton steps within the ball. Ends when the gap is closed, or where it makes no headway.
WeightSearch::Place WeightSearch::descend(Place place, Eigen::Index key, double radius, double gap,
                                          double& proven) const {
  double nu = 0;
  for (int step = 0;; ++step) {
    const Eigen::VectorXd g = place.mean - points_.col(key);
    proven = std::max(proven, place.f - (g.dot(place.q) + radius * g.norm()));
    if (step == kQuickSteps || place.f - proven <= gap) return place;
    const Eigen::VectorXd direction = newton_point(place.q, g, hessian(place), radius, nu) - place.q;
    const double slope = g.dot(direction);
    if (!(slope < 0)) return place;
    double length = 1;
    for (int halving = 0;; ++halving, length *= 0.25) {
      if (halving == 8) return place;
      Place trial = at(place.q + length * direction, key);
      if (trial.f > place.f + 1e-4 * length * slope) continue;
      place = std::move(trial);
      break;
    }
  }
}

LargestWeight WeightSearch::largest(std::size_t key, double radius, std::span<const double> start,
                                    double gap) const {
  const auto own = static_cast<Eigen::Index>(key);
  const Eigen::Index rank = points_.rows();
  Eigen::VectorXd first = points_.col(own);
  if (!start.empty()) first = Eigen::Map<const Eigen::VectorXd>(start.data(), rank);
  if (const double size = first.norm(); size > 0) first *= radius / size;
  double proven = 0;  // a weight is at most 1
  const Place found = descend(at(std::move(first), own), own, radius, gap, proven);
  // Scores in full rather than differences to the key's own: where that costs digits, these are computed.
  const double rounding =
      4 * static_cast<double>(rank + 8) * 0x1p-53 * (radius * largest_norm_ + largest_offset_);
  if (found.f - proven <= gap && rounding < 0.1 * gap) {
    return {std::exp(-found.f), std::min(1.0, std::exp(-std::min(proven, found.f) + rounding) * (1 + 1e-12))};
  }
  const Eigen::MatrixXd& exact = given_.size() > 0 ? given_ : points_;
  return careful({exact.colwise() - exact.col(own), offsets_.array() - offsets_[own]}, radius, found.q, gap);
}

LargestWeight largest_weight(MatrixView<const double> points, std::span<const double> offsets,
                             std::size_t key, double radius, std::span<const double> start) {
  return WeightSearch(points, offsets).largest(key, radius, start, kGap);
}

}  // namespace normscope

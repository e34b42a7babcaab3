#include "keys/weight.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

namespace normscope {
namespace {

constexpr double kGap = 1e-9;  // of log weight
constexpr int kMostSteps = 100;

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
  // μ_j p_j‖.
  double lower_bound(const Eigen::VectorXd& mu, double radius) const {
    double bound = mu.dot(offsets);
    for (const double weight : mu)
      if (weight > 0) bound -= weight * std::log(weight);
    return bound - radius * (differences * mu).norm();
  }

  // Weights near μ whose mean difference vanishes, if there are any: where R is large, ‖Σ μ_j p_j‖ must be
  // tiny for the bound to say anything. (A Newton step of the dual: C is the covariance of the differences
  // under μ.)
  Eigen::VectorXd balanced(const Eigen::VectorXd& start,
                           const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>& covariance) const {
    const Eigen::VectorXd& lambda = covariance.eigenvalues();
    const double floor = 1e-13 * std::max(lambda.maxCoeff(), 1e-300);
    Eigen::VectorXd mu = start;
    for (int round = 0; round < 3; ++round) {
      const Eigen::VectorXd g = differences * mu;
      const Eigen::VectorXd along = covariance.eigenvectors().transpose() * g;
      const Eigen::VectorXd s =
          covariance.eigenvectors() *
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
Eigen::VectorXd newton_point(const Eigen::VectorXd& q, const Eigen::VectorXd& g,
                             const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>& eigen, double radius) {
  const Eigen::VectorXd lambda = eigen.eigenvalues().cwiseMax(0.0);
  const Eigen::VectorXd target =
      lambda.cwiseProduct(eigen.eigenvectors().transpose() * q) - eigen.eigenvectors().transpose() * g;
  const auto point = [&](double nu) -> Eigen::VectorXd {
    return (target.array() / (lambda.array() + nu)).matrix();
  };
  const double floor = 1e-14 * std::max(lambda.maxCoeff(), 1e-300);
  if (point(floor).norm() <= radius) return eigen.eigenvectors() * point(floor);
  double low = floor, high = std::max(2 * floor, target.norm() / radius);
  for (int k = 0; k < 200 && high / low > 1 + 1e-15; ++k) {
    const double middle = std::sqrt(low * high);
    (point(middle).norm() > radius ? low : high) = middle;
  }
  Eigen::VectorXd result = eigen.eigenvectors() * point(high);
  const double size = result.norm();
  if (size > radius) result *= radius / size;
  return result;
}

}  // namespace

LargestWeight largest_weight(MatrixView<const double> points, std::span<const double> offsets,
                             std::size_t key, double radius, std::span<const double> start) {
  const auto n = static_cast<Eigen::Index>(points.rows), rank = static_cast<Eigen::Index>(points.cols);
  Problem problem;
  problem.differences.resize(rank, n);
  problem.offsets = Eigen::VectorXd::Zero(n);
  for (Eigen::Index j = 0; j < n; ++j) {
    for (Eigen::Index c = 0; c < rank; ++c)
      problem.differences(c, j) = points(static_cast<std::size_t>(j), static_cast<std::size_t>(c)) -
                                  points(key, static_cast<std::size_t>(c));
    if (!offsets.empty()) problem.offsets[j] = offsets[static_cast<std::size_t>(j)] - offsets[key];
  }
  Eigen::VectorXd q = Eigen::VectorXd::Zero(rank), p(n);
  double f = problem.value(q, p);
  if (!start.empty()) {
    Eigen::VectorXd trial = Eigen::Map<const Eigen::VectorXd>(start.data(), rank), trial_p(n);
    if (const double size = trial.norm(); size > 0) {
      trial *= radius / size;
      if (const double trial_f = problem.value(trial, trial_p); trial_f < f)
        f = trial_f, q = trial, p = trial_p;
    }
  }
  double proven = problem.lower_bound(p, radius);
  Eigen::VectorXd trial_p(n);
  for (int step = 0; step < kMostSteps && rank > 0 && f - proven > kGap; ++step) {
    const Eigen::VectorXd g = problem.differences * p;
    const Eigen::MatrixXd weighted = problem.differences * p.cwiseSqrt().asDiagonal();
    const Eigen::MatrixXd hessian = weighted * weighted.transpose() - g * g.transpose();
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(hessian);
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
  // Rounding of f itself is a few ulp of its largest term; far below the gap that is asked for.
  return {std::exp(-f), std::min(1.0, std::exp(-std::min(proven, f)) * (1 + 1e-12))};
}

}  // namespace normscope

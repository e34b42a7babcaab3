#pragma once
// The largest softmax weight a query of bounded norm can give a key: maximise over ‖q‖ ≤ R
//   exp(q·k_i + b_i) / Σ_j exp(q·k_j + b_j),
// that is, minimise the convex f(q) = log Σ_j exp(q·(k_j − k_i) + b_j − b_i).
#include <Eigen/Core>
#include <cstddef>
#include <span>

#include "normscope/matrix.h"

namespace normscope {

struct LargestWeight {
  double attained;  // by a query of norm ≤ R that was found
  double bound;     // no query of norm ≤ R gives more: convexity gives f* ≥ f(q) − (g·q + R‖g‖)
};

// The questions about one set of keys. May be asked from several threads at once.
class WeightSearch {
 public:
  // points: n × rank orthonormal coordinates of the keys, near 0 rather than far from it. offsets: n, or
  // none. given: the same points before they were moved there, for differences that this must not round away;
  // or none.
  WeightSearch(MatrixView<const double> points, std::span<const double> offsets,
               MatrixView<const double> given = {});

  // start: a promising direction, or empty. gap: of the logarithm of the weight, between attained and bound.
  LargestWeight largest(std::size_t key, double radius, std::span<const double> start, double gap) const;

 private:
  struct Place;  // a query and what it gives
  Place at(Eigen::VectorXd q, Eigen::Index key) const;
  Eigen::MatrixXd hessian(const Place& place) const;
  Place descend(Place place, Eigen::Index key, double radius, double gap, double& proven) const;

  Eigen::MatrixXd points_, given_;  // rank × n
  Eigen::VectorXd offsets_;
  double largest_norm_ = 0, largest_offset_ = 0;
};

// The same for one key, to within what doubles allow.
LargestWeight largest_weight(MatrixView<const double> points, std::span<const double> offsets,
                             std::size_t key, double radius, std::span<const double> start);

}  // namespace normscope

#pragma once
// The span of k learned normals V (k × d), as projection needs it.
#include <Eigen/Core>
#include <span>

#include "normscope/matrix.h"

namespace normscope {

class NormalSpan {
 public:
  // Throws InputError unless the normals are finite and linearly independent beyond the unit roundoff of
  // their dtype.
  NormalSpan(MatrixView<const double> normals, double unit_roundoff);

  // y ← y − Vᵀc with c = (VVᵀ)⁻¹V y, and returns c. A remainder that is only rounding becomes exactly 0.
  Eigen::VectorXd project(std::span<double> y) const;

 private:
  // With the rows of V scaled to norm 1 and V̂ = U S Wᵀ: VᵀGV = WWᵀ and GV = (diag(1/‖vᵢ‖) U S⁻¹) Wᵀ.
  Eigen::MatrixXd basis_;       // W, d × k, orthonormal columns
  Eigen::MatrixXd from_basis_;  // diag(1/‖vᵢ‖) U S⁻¹, k × k
  double rounding_ = 0;         // ‖remainder‖/‖y‖ below which nothing but rounding is left
};

}  // namespace normscope

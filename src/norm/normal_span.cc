#include "norm/normal_span.h"

#include <fmt/format.h>

#include <cmath>

#include "core/decompose.h"
#include "normscope/error.h"

namespace normscope {

NormalSpan::NormalSpan(MatrixView<const double> normals, double unit_roundoff) {
  const auto k = static_cast<Eigen::Index>(normals.rows), d = static_cast<Eigen::Index>(normals.cols);
  if (k > d)
    throw InputError(fmt::format("{} normals in {} dimensions cannot be independent; use fewer", k, d));
  Eigen::MatrixXd unit(k, d);
  Eigen::VectorXd inverse_norm(k);
  for (Eigen::Index i = 0; i < k; ++i) {
    for (Eigen::Index j = 0; j < d; ++j) {
      unit(i, j) = normals(static_cast<std::size_t>(i), static_cast<std::size_t>(j));
    }
    if (!unit.row(i).allFinite()) throw InputError(fmt::format("normal {} holds NaN or Inf", i));
    const double norm = unit.row(i).stableNorm();
    if (norm == 0)
      throw InputError(fmt::format("normal {} is zero; normals must be linearly independent", i));
    unit.row(i) /= norm;
    inverse_norm(i) = 1 / norm;
  }
  // The length of a normal does not change its span: independence is judged on unit normals.
  const ThinSvd svd = jacobi_svd(unit);
  const Eigen::VectorXd& singular = svd.values;
  if (singular(k - 1) <= 2 * unit_roundoff * static_cast<double>(d) * singular(0)) {
    throw InputError(fmt::format(
        "the {} normals are linearly dependent (singular values of the unit normals from {:.3g} to {:.3g}); "
        "remove one or draw them anew",
        k, singular(0), singular(k - 1)));
  }
  basis_ = svd.v;
  from_basis_ = inverse_norm.asDiagonal() * svd.u * singular.cwiseInverse().asDiagonal();
  // The computed basis leans out of the true span by a few roundoffs times the condition of the normals.
  rounding_ = 16 * 0x1p-53 * std::sqrt(static_cast<double>(d)) * singular(0) / singular(k - 1);
}

Eigen::VectorXd NormalSpan::project(std::span<double> y) const {
  Eigen::Map<Eigen::VectorXd> rest(y.data(), static_cast<Eigen::Index>(y.size()));
  const double before = rest.norm();
  Eigen::VectorXd along = basis_.transpose() * rest;
  rest.noalias() -= basis_ * along;
  // Once more: what the first subtraction left along the normals is as large as its rounding.
  const Eigen::VectorXd left = basis_.transpose() * rest;
  rest.noalias() -= basis_ * left;
  if (rest.norm() <= rounding_ * before) rest.setZero();
  return from_basis_ * (along + left);
}

}  // namespace normscope

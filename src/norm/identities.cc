// The identities of Brody, Alon, Yahav 2023 (§2, App. B, C) as objects one can hold and test.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

#include "norm/normal_span.h"
#include "normscope/error.h"
#include "normscope/norm.h"

namespace normscope {
namespace {

void check_dimension(std::size_t d) {
  if (d == 0) throw InputError("a projection needs at least one dimension, got 0");
}

void check_finite(std::span<const double> values, const char* what) {
  const auto bad = std::find_if(values.begin(), values.end(), [](double v) { return !std::isfinite(v); });
  if (bad != values.end()) {
    throw InputError(
        fmt::format("{} holds {} at entry {}; finite numbers are needed", what, *bad, bad - values.begin()));
  }
}

Matrix<double> to_matrix(const Eigen::MatrixXd& from) {
  Matrix<double> to(static_cast<std::size_t>(from.rows()), static_cast<std::size_t>(from.cols()));
  for (Eigen::Index i = 0; i < from.rows(); ++i) {
    for (Eigen::Index j = 0; j < from.cols(); ++j) {
      to(static_cast<std::size_t>(i), static_cast<std::size_t>(j)) = from(i, j);
    }
  }
  return to;
}

}  // namespace

Matrix<double> projection_matrix(std::size_t d) {
  check_dimension(d);
  const auto size = static_cast<double>(d);
  Matrix<double> p(d, d);
  for (std::size_t i = 0; i < d; ++i) {
    for (std::size_t j = 0; j < d; ++j) p(i, j) = (i == j ? size - 1 : -1) / size;
  }
  return p;
}

Matrix<double> projection_matrix_by_change_of_basis(std::size_t d) {
  check_dimension(d);
  const auto n = static_cast<Eigen::Index>(d);
  const auto size = static_cast<double>(d);
  // M (eq. 26): columns uᵢ = 1 − d·eᵢ for i < d, then 1.
  Eigen::MatrixXd m = Eigen::MatrixXd::Ones(n, n);
  m.diagonal().head(n - 1).array() -= size;
  // d·M⁻¹ (eq. 27): −1 on the diagonal, and 1 in the last column and row. Kept integer so that the one
  // division below is the only rounding.
  Eigen::MatrixXd inverse = Eigen::MatrixXd::Zero(n, n);
  inverse.diagonal().setConstant(-1);
  inverse.col(n - 1).setOnes();
  inverse.row(n - 1).setOnes();
  // A (eq. 24): keeps the coordinates along the uᵢ, drops the one along 1.
  Eigen::MatrixXd a = Eigen::MatrixXd::Identity(n, n);
  a(n - 1, n - 1) = 0;
  return to_matrix(m * a * inverse / size);
}

Matrix<double> projection_matrix(MatrixView<const double> normals) {
  check_dimension(normals.cols);
  if (normals.rows == 0) throw InputError("a projection along normals needs at least one normal");
  const NormalSpan span(normals, 0x1p-53);
  Matrix<double> p(normals.cols, normals.cols);
  for (std::size_t i = 0; i < normals.cols; ++i) {  // P is symmetric: row i is P eᵢ
    p(i, i) = 1;
    span.project(p[i]);
  }
  return p;
}

std::array<std::vector<double>, 2> plane_image(std::span<const double> v) {
  check_dimension(v.size());
  check_finite(v, "the vector of the plane");
  std::array<std::vector<double>, 2> points;
  points[0].resize(v.size());
  const NormSpec layernorm{.projection = Projection::ones, .scaling = Scaling::root_dimension};
  const NormCounts counts = norm_forward(layernorm, NormParameters<double>{}, {v.data(), 1, v.size()},
                                         {points[0].data(), 1, v.size()});
  if (counts.undefined_rows() > 0) {
    throw InputError(
        "the vector of the plane is parallel to 1 (all entries equal), so the two span no plane");
  }
  std::transform(points[0].begin(), points[0].end(), std::back_inserter(points[1]), std::negate<>());
  return points;
}

Hyperplane image_hyperplane(std::span<const double> gain, std::span<const double> bias) {
  check_dimension(gain.size());
  check_finite(gain, "gain");
  check_finite(bias, "bias");
  if (!bias.empty() && bias.size() != gain.size()) {
    throw InputError(fmt::format("gain has {} entries, but bias has {}", gain.size(), bias.size()));
  }
  // 1/g in units of its largest entry: 1/min|gᵢ|. The gain that attains it gets ±1, also when it is 0.
  const auto least = std::min_element(gain.begin(), gain.end(),
                                      [](double a, double b) { return std::fabs(a) < std::fabs(b); });
  Hyperplane plane;
  plane.normal.resize(gain.size());
  for (std::size_t i = 0; i < gain.size(); ++i) {
    if (*least != 0) plane.normal[i] = std::fabs(*least) / gain[i];
  }
  if (*least == 0) plane.normal[static_cast<std::size_t>(least - gain.begin())] = 1;
  Eigen::Map<Eigen::VectorXd> normal(plane.normal.data(), static_cast<Eigen::Index>(gain.size()));
  normal.normalize();
  if (!bias.empty()) plane.offset = normal.dot(Eigen::Map<const Eigen::VectorXd>(bias.data(), normal.size()));
  return plane;
}

}  // namespace normscope

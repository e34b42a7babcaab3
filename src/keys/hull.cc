#include "keys/hull.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace normscope {
namespace {

using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Rounding noise of relative size u gives column c of the keys an error of up to u·rms_c per entry, and the n
// × d noise matrix, columns divided by that, a spectral norm of about (√n + √d)/√3; the factor leaves room
// for a few roundings per entry (a mean, a division).
constexpr double kNoiseFactor = 8;

double largest_magnitude(MatrixView<const double> keys) {
  double largest = 0;
  for (std::size_t i = 0; i < keys.rows; ++i)
    for (double value : keys[i]) largest = std::max(largest, std::abs(value));
  return largest;
}

// A power of two no smaller than value/2, so that scaling by it is exact and leaves numbers of size about 1.
double power_of_two_near(double value) {
  return value > 0 ? std::ldexp(1.0, std::ilogb(value)) : 1.0;
}

// Cheap proof that no direction is noise: all pivots of the Gram matrix lie far above the tolerance.
bool clearly_full_rank(const Eigen::MatrixXd& gram, double singular_tolerance) {
  const Eigen::LDLT<Eigen::MatrixXd> factor(gram);
  const double smallest = factor.vectorD().minCoeff(), largest = factor.vectorD().maxCoeff();
  return factor.info() == Eigen::Success && smallest > 1e-10 * largest &&
         smallest > 1e4 * singular_tolerance * singular_tolerance;
}

}  // namespace

void AffineHull::frame(std::span<const double> key, double* out) const {
  if (!reduced()) {
    for (std::size_t c = 0; c < rank; ++c) out[c] = (key[c] - centre[static_cast<Eigen::Index>(c)]) / unit;
    return;
  }
  Eigen::VectorXd coordinates(static_cast<Eigen::Index>(rank));
  for (std::size_t c = 0; c < rank; ++c)
    coordinates[static_cast<Eigen::Index>(c)] =
        (key[kept[c]] - centre[static_cast<Eigen::Index>(kept[c])]) / unit;
  Eigen::Map<Eigen::VectorXd>(out, static_cast<Eigen::Index>(rank)).noalias() = lift * coordinates;
}

std::vector<double> AffineHull::query(std::span<const double> frame_query) const {
  if (!reduced()) return {frame_query.begin(), frame_query.end()};
  const Eigen::Map<const Eigen::VectorXd> y(frame_query.data(),
                                            static_cast<Eigen::Index>(frame_query.size()));
  std::vector<double> result(static_cast<std::size_t>(basis.rows()));
  Eigen::Map<Eigen::VectorXd>(result.data(), basis.rows()) = basis * y;
  return result;
}

std::vector<double> AffineHull::kept_query(std::span<const double> frame_query) const {
  if (!reduced()) return {frame_query.begin(), frame_query.end()};
  const Eigen::Map<const Eigen::VectorXd> y(frame_query.data(),
                                            static_cast<Eigen::Index>(frame_query.size()));
  const Eigen::VectorXd on_kept = lift.transpose() * y;
  std::vector<double> result(static_cast<std::size_t>(basis.rows()), 0.0);
  for (std::size_t c = 0; c < rank; ++c) result[kept[c]] = on_kept[static_cast<Eigen::Index>(c)];
  return result;
}

AffineHull affine_hull(MatrixView<const double> keys, RankPolicy policy, double unit_roundoff) {
  const auto n = static_cast<Eigen::Index>(keys.rows), d = static_cast<Eigen::Index>(keys.cols);
  AffineHull hull;
  hull.kept.resize(keys.cols);
  std::iota(hull.kept.begin(), hull.kept.end(), std::size_t{0});
  hull.rank = keys.cols;
  hull.frame_error = 0x1p-53;
  const double largest = largest_magnitude(keys), scale = power_of_two_near(largest);
  hull.unit = scale;
  hull.centre = Eigen::VectorXd::Zero(d);
  if (largest == 0) {  // all keys are the zero vector
    hull.rank = policy == RankPolicy::full ? keys.cols : 0;
    if (hull.rank == 0) hull.kept.clear(), hull.basis.resize(d, 0);
    return hull;
  }

  // Centre and spread, computed on scaled keys so that nothing overflows.
  RowMatrix x(n, d);
  for (Eigen::Index i = 0; i < n; ++i)
    for (Eigen::Index c = 0; c < d; ++c)
      x(i, c) = keys(static_cast<std::size_t>(i), static_cast<std::size_t>(c)) / scale;
  const Eigen::RowVectorXd rms = (x.colwise().squaredNorm() / static_cast<double>(n)).cwiseSqrt();
  const Eigen::RowVectorXd mean = x.colwise().mean();
  hull.centre = mean.transpose() * scale;
  x.rowwise() -= mean;
  const double spread = x.cwiseAbs().maxCoeff();
  hull.unit = spread > 0 ? scale * power_of_two_near(spread) : scale;

  const double root_n = std::sqrt(static_cast<double>(n)), root_d = std::sqrt(static_cast<double>(d));
  const double singular_tolerance = kNoiseFactor * std::max(unit_roundoff, 0x1p-53) * (root_n + root_d);
  hull.tolerance = singular_tolerance / root_n * (rms.norm() / root_d) * scale;
  if (policy == RankPolicy::full) return hull;
  // Columns in units of their own size, to which their rounding is proportional.
  const Eigen::RowVectorXd column_unit = (rms.array() > 0).select(rms, 1.0);
  x.array().rowwise() /= column_unit.array();
  // More rows only add to the Gram matrix, so a few that span every direction speak for all.
  const Eigen::Index few = std::min(n, 4 * d + 16);
  if (n > d && clearly_full_rank(x.topRows(few).transpose() * x.topRows(few), singular_tolerance))
    return hull;

  // Rank-revealing QR, of the triangular factor when x is tall. Its first `rank` pivots are the coordinates
  // that parametrise the hull best, and the first rows of R span the hull's directions.
  Eigen::MatrixXd small = x;
  if (n > d)
    small = Eigen::HouseholderQR<Eigen::MatrixXd>(x).matrixQR().topRows(d).triangularView<Eigen::Upper>();
  const Eigen::ColPivHouseholderQR<Eigen::MatrixXd> pivoted(small);
  const Eigen::Index most = std::min(small.rows(), d);
  Eigen::Index rank = 0;
  while (rank < most && std::abs(pivoted.matrixR()(rank, rank)) > singular_tolerance) ++rank;
  if (rank == d) return hull;

  hull.rank = static_cast<std::size_t>(rank);
  hull.kept.resize(hull.rank);
  hull.basis.resize(d, rank);
  if (rank == 0) return hull;
  const Eigen::MatrixXd rows =
      Eigen::MatrixXd(pivoted.matrixR().topRows(rank).triangularView<Eigen::Upper>()) *
      pivoted.colsPermutation().transpose() * column_unit.asDiagonal();
  hull.basis = Eigen::HouseholderQR<Eigen::MatrixXd>(rows.transpose()).householderQ() *
               Eigen::MatrixXd::Identity(d, rank);
  for (std::size_t c = 0; c < hull.rank; ++c)
    hull.kept[c] =
        static_cast<std::size_t>(pivoted.colsPermutation().indices()[static_cast<Eigen::Index>(c)]);
  std::sort(hull.kept.begin(), hull.kept.end());
  Eigen::MatrixXd kept_rows(rank, rank);
  for (Eigen::Index c = 0; c < rank; ++c)
    kept_rows.row(c) = hull.basis.row(static_cast<Eigen::Index>(hull.kept[static_cast<std::size_t>(c)]));
  hull.lift = kept_rows.inverse();
  hull.frame_error = 0x1p-53 * static_cast<double>(rank + 4) * std::max(1.0, hull.lift.norm());
  for (std::size_t i = 0; i < keys.rows; ++i) {
    Eigen::VectorXd point(rank);
    hull.frame(keys[i], point.data());
    const Eigen::VectorXd off =
        (x.row(static_cast<Eigen::Index>(i)).array() * column_unit.array()).matrix().transpose() *
            (scale / hull.unit) -
        hull.basis * point;
    hull.noise = std::max(hull.noise, off.norm() * hull.unit);
  }
  return hull;
}

}  // namespace normscope

#include "keys/hull.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace normscope {
namespace {

using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// How many times the rms of one rounding per entry a direction may spread and still count as rounding, and
// how many times the most that one rounding can do a single key may stand out. Numbers of few bits (float16,
// bfloat16) are computed in more and rounded once; float32 and float64 numbers are rounded at every step (the
// terms of a mean, the difference, the quotient), where a mean errs for all entries of a key alike.
struct Allowance {
  double spread, key;
};
constexpr Allowance kRoundedOnce = {2, 2}, kRoundedOften = {4, 8};
constexpr double kFewBits = 0x1p-16;  // unit roundoff above which numbers count as of few bits
constexpr double kArithmetic = 8;     // the same for the doubles all this is computed in, in units of 2^-53

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

// The most that rounding to nearest does to a number: half a unit in its last place.
double half_ulp(double value, double unit_roundoff, double smallest_rounding) {
  return std::max(value == 0 ? 0 : std::ldexp(unit_roundoff, std::ilogb(value)), smallest_rounding);
}

// The rounding of the keys: rounded to nearest, an entry errs by at most its half_ulp and by 1/√3 of that in
// rms. `grain` is the rms error of each column; columns in units of it carry errors of the same size, whose
// part along any one direction has rms 1 over the keys, if entries are rounded independently.
struct Rounding {
  double unit_roundoff, smallest;
  Eigen::RowVectorXd grain;

  Rounding(MatrixView<const double> keys, double roundoff, double smallest_rounding)
      : unit_roundoff(std::max(roundoff, 0x1p-53)), smallest(smallest_rounding) {
    grain.setZero(static_cast<Eigen::Index>(keys.cols));
    for (std::size_t c = 0; c < keys.cols; ++c) {
      double largest = 0, squares = 0;
      for (std::size_t i = 0; i < keys.rows; ++i) largest = std::max(largest, error(keys(i, c)));
      if (largest == 0) continue;
      for (std::size_t i = 0; i < keys.rows; ++i)
        squares += (error(keys(i, c)) / largest) * (error(keys(i, c)) / largest);
      grain[static_cast<Eigen::Index>(c)] =
          largest * std::sqrt(squares / (3 * static_cast<double>(keys.rows)));
    }
  }
  double error(double value) const { return half_ulp(value, unit_roundoff, smallest); }
  bool once() const { return unit_roundoff > kFewBits; }
  Allowance allowance() const { return once() ? kRoundedOnce : kRoundedOften; }
};

// Cheap proof that no direction is noise: all pivots of the Gram matrix lie far above the tolerance.
bool clearly_full_rank(const Eigen::MatrixXd& gram, double singular_tolerance) {
  const Eigen::LDLT<Eigen::MatrixXd> factor(gram);
  const double smallest = factor.vectorD().minCoeff(), largest = factor.vectorD().maxCoeff();
  return factor.info() == Eigen::Success && smallest > 1e-10 * largest &&
         smallest > 1e4 * singular_tolerance * singular_tolerance;
}

// Whether every single key stays along each direction (a column) within what rounding can do to it; the first
// directions up to the last that fails are kept. A key's entries may err independently, or, at worst, all to
// the same side. x: centred keys in units of the grain.
Eigen::Index directions_with_outliers(MatrixView<const double> keys, const RowMatrix& x,
                                      const Eigen::MatrixXd& directions, const Rounding& rounding,
                                      double arithmetic) {
  const Eigen::Index d = directions.rows(), count = directions.cols();
  const Eigen::MatrixXd squares = directions.cwiseAbs2(), sizes = directions.cwiseAbs();
  Eigen::Index kept = 0;
  Eigen::RowVectorXd relative(d);
  for (Eigen::Index i = 0; i < x.rows() && kept < count; ++i) {
    for (Eigen::Index c = 0; c < d; ++c) {
      const double error =
          rounding.error(keys(static_cast<std::size_t>(i), static_cast<std::size_t>(c))) / std::sqrt(3.0);
      relative[c] = error > rounding.grain[c] ? error / rounding.grain[c] : 1.0;
    }
    const Eigen::RowVectorXd along = x.row(i) * directions, together = relative * sizes * std::sqrt(3.0),
                             apart = (relative.cwiseAbs2() * squares).cwiseSqrt();
    for (Eigen::Index j = count; j-- > kept;) {
      const double most =
          rounding.allowance().key * std::min(4 * apart[j], together[j]) + arithmetic * apart[j];
      if (std::abs(along[j]) > most) {
        kept = j + 1;
        break;
      }
    }
  }
  return kept;
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

AffineHull affine_hull(MatrixView<const double> keys, RankPolicy policy, double unit_roundoff,
                       double smallest_rounding) {
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

  // Columns in units of their rounding. Rounding alone, in `noise` dimensions of n keys, has singular values
  // of up to √n + √noise in these units.
  const Rounding rounding(keys, unit_roundoff, smallest_rounding);
  const Eigen::RowVectorXd grain = rounding.grain / scale;
  const Eigen::RowVectorXd column_unit = (grain.array() > 0).select(grain, 1.0);
  const double root_n = std::sqrt(static_cast<double>(n)), root_d = std::sqrt(static_cast<double>(d));
  const double arithmetic = kArithmetic * 0x1p-53 * (rms.array() / column_unit.array()).maxCoeff();
  const auto tolerance = [&](double noise) {
    return rounding.allowance().spread * (root_n + std::sqrt(noise)) + arithmetic * (root_n + root_d);
  };
  hull.tolerance = tolerance(1) / root_n * (grain.norm() / root_d) * scale;
  if (policy == RankPolicy::full) return hull;
  x.array().rowwise() /= column_unit.array();
  // More rows only add to the Gram matrix, so a few that span every direction speak for all.
  const Eigen::Index few = std::min(n, 4 * d + 16);
  if (n > d &&
      clearly_full_rank(x.topRows(few).transpose() * x.topRows(few),
                        std::max(tolerance(static_cast<double>(d)), std::sqrt(3.0) * root_n * root_d)))
    return hull;

  Eigen::MatrixXd small = x;
  if (n > d)
    small = Eigen::HouseholderQR<Eigen::MatrixXd>(x).matrixQR().topRows(d).triangularView<Eigen::Upper>();
  const Eigen::BDCSVD<Eigen::MatrixXd> spectrum(small, Eigen::ComputeThinV);
  const Eigen::Index most = spectrum.singularValues().size();
  Eigen::Index rank = most;
  const auto is_noise = [&](Eigen::Index j) {
    const double together = std::sqrt(3.0) * root_n * spectrum.matrixV().col(j).lpNorm<1>();
    return spectrum.singularValues()[j] <=
           std::max(tolerance(static_cast<double>(d - j)), rounding.once() ? 0 : together);
  };
  while (rank > 0 && is_noise(rank - 1)) --rank;
  rank += directions_with_outliers(keys, x, spectrum.matrixV().middleCols(rank, most - rank), rounding,
                                   arithmetic * (1 + root_d));
  if (rank == d) return hull;

  // Rank-revealing QR: its first `rank` pivots are the coordinates that parametrise the hull best, and the
  // first rows of R span the hull's directions.
  const Eigen::ColPivHouseholderQR<Eigen::MatrixXd> pivoted(small);
  hull.rank = static_cast<std::size_t>(rank);
  for (std::size_t c = 0; c < hull.rank; ++c)
    hull.kept[c] =
        static_cast<std::size_t>(pivoted.colsPermutation().indices()[static_cast<Eigen::Index>(c)]);
  hull.kept.resize(hull.rank);
  std::sort(hull.kept.begin(), hull.kept.end());
  hull.basis.resize(d, rank);
  if (rank == 0) return hull;
  const Eigen::MatrixXd rows =
      Eigen::MatrixXd(pivoted.matrixR().topRows(rank).triangularView<Eigen::Upper>()) *
      pivoted.colsPermutation().transpose() * column_unit.asDiagonal();
  hull.basis = Eigen::HouseholderQR<Eigen::MatrixXd>(rows.transpose()).householderQ() *
               Eigen::MatrixXd::Identity(d, rank);
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

#include "keys/hull.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/decompose.h"

namespace normscope {
namespace {

// What rounding may leave in a direction and still be called rounding; docs/theory.md, "Rank", states the
// model. All numbers are in units of one rounding per entry: rms 1 over the keys, in any one direction.
struct Allowance {
  double spread;   // rms that is rounding, whatever lies above it
  double key;      // of the most one rounding can do: how far any single key may stand out,
  double others;   // or, if that is more, times what half of the keys keep within
  double product;  // rms that is rounding only below a gap
  double gap;      // how far the weakest direction kept must stand above what is left out then
};
// Numbers of few bits (float16, bfloat16) are computed in more and rounded once; float32 and float64 numbers
// are rounded at every step: the terms of an inner product, a mean (which errs for all entries of a key
// alike), the difference, the quotient.
constexpr Allowance kRoundedOnce = {2, 2, 12, 3, 20}, kRoundedOften = {4, 8, 40, 200, 100};
constexpr double kFewBits = 0x1p-16;  // unit roundoff above which numbers count as of few bits
constexpr double kPerTerm = 10;       // √max(n, d) times this is `product` where it is more, for long sums,
constexpr double kMostProduct = 500;  // up to here
constexpr double kInformation = 1700;  // information stands 1000 roundings out, which is 1732 here
constexpr double kDecomposition = 8;   // error of singular values, in units of 2^-53 of the largest

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

// The most that rounding to nearest does to a number: half a unit in its last place. In units of a power of
// two, since it may be less than doubles hold.
double half_ulp(double value, double unit, double unit_roundoff, double smallest_rounding) {
  return std::max(value == 0 ? 0 : std::ldexp(unit_roundoff, std::ilogb(value) - std::ilogb(unit)),
                  smallest_rounding / unit);
}

constexpr double kUneven =
    4;  // a key rounded so many times as coarsely or finely as the middle one makes a set uneven
constexpr double kUnevenColumn = 64;  // and so does an entry beside the middle one of its column
constexpr double kCentred = 64;       // roundings: the most a mean is that has been taken off
constexpr double kFinest = 0x1p-10;   // of the middle key's rounding: none counts as rounded more finely

// The rounding of the keys: rounded to nearest, an entry errs by at most its half_ulp and by 1/√3 of that in
// rms. `grain` is the rms error of each column; columns in units of it carry errors of the same size, whose
// part along any one direction has rms 1 over the keys, if entries are rounded independently. Where some keys
// are far larger or smaller than others and so rounded more coarsely or finely, `key` is by how much, and rows
// are measured in that.
struct Rounding {
  double unit_roundoff, smallest;
  RowMatrix errors;  // half_ulp of each entry, in units of its column's scale
  Eigen::RowVectorXd grain;
  Eigen::VectorXd key;
  bool even = true;
  double finest = kFinest;

  // mean: of the keys, in units of the scales. Where one has been taken off, in arithmetic that rounds, a key
  // that is left small by it errs as the others do.
  Rounding(MatrixView<const double> keys, const Eigen::RowVectorXd& scales, const Eigen::RowVectorXd& mean,
           double roundoff, double smallest_rounding)
      : unit_roundoff(std::max(roundoff, 0x1p-53)), smallest(smallest_rounding) {
    const auto n = static_cast<Eigen::Index>(keys.rows), d = static_cast<Eigen::Index>(keys.cols);
    errors.resize(n, d);
    for (Eigen::Index i = 0; i < n; ++i)
      for (Eigen::Index c = 0; c < d; ++c)
        errors(i, c) = half_ulp(keys(static_cast<std::size_t>(i), static_cast<std::size_t>(c)), scales[c],
                                unit_roundoff, smallest);
    if (!once() && mean.cwiseAbs().maxCoeff() <= kCentred * unit_roundoff) finest = 1;
    key.setOnes(n);
    measure_columns();
    measure_keys();
    even = key.maxCoeff() <= kUneven && key.minCoeff() * kUneven >= 1 && !has_uneven_column();
    if (even) {
      key.setOnes(n);
      return;
    }
    for (int round = 0; round < 4; ++round) measure_columns(), measure_keys();
    measure_columns();
  }
  // In rms, of an entry in units of its column and key.
  double relative(Eigen::Index i, Eigen::Index c) const {
    const double error = errors(i, c) / (std::sqrt(3.0) * key[i]);
    return error > grain[c] ? error / grain[c] : 1.0;
  }
  bool once() const { return unit_roundoff > kFewBits; }
  Allowance allowance() const { return once() ? kRoundedOnce : kRoundedOften; }
  double product(Eigen::Index n, Eigen::Index d) const {
    const double most = allowance().product;
    const double longest = std::sqrt(static_cast<double>(std::max(n, d)));
    return once() ? most : std::clamp(kPerTerm * longest, most, kMostProduct);
  }

 private:
  void measure_columns() {
    for (Eigen::Index c = 0; c < grain.size() || c == 0; ++c) {
      if (c == 0) grain.setZero(errors.cols());
      const Eigen::ArrayXd column = errors.col(c).array() / key.array();
      const double largest = column.maxCoeff();
      if (largest > 0) grain[c] = largest * std::sqrt((column / largest).square().mean() / 3);
    }
  }
  void measure_keys() {
    std::vector<double> sizes(static_cast<std::size_t>(key.size()));
    for (Eigen::Index i = 0; i < key.size(); ++i) {
      double squares = 0;
      for (Eigen::Index c = 0; c < grain.size(); ++c)
        if (grain[c] > 0) squares += errors(i, c) / grain[c] * (errors(i, c) / grain[c]) / 3;
      sizes[static_cast<std::size_t>(i)] = key[i] = std::sqrt(squares / static_cast<double>(grain.size()));
    }
    const auto half = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
    std::nth_element(sizes.begin(), half, sizes.end());
    const double middle = *half > 0 ? *half : 1;
    key = (key / middle).cwiseMax(finest);
  }
  // A key that is large in few columns only, as massive activations are.
  bool has_uneven_column() const {
    std::vector<double> column(static_cast<std::size_t>(errors.rows()));
    const auto half = column.begin() + static_cast<std::ptrdiff_t>(column.size() / 2);
    for (Eigen::Index c = 0; c < errors.cols(); ++c) {
      for (Eigen::Index i = 0; i < errors.rows(); ++i) column[static_cast<std::size_t>(i)] = errors(i, c);
      std::nth_element(column.begin(), half, column.end());
      if (*half > 0 && errors.col(c).maxCoeff() > kUnevenColumn * *half) return true;
    }
    return false;
  }
};

// The rows from their weighted mean. That errs by some roundings itself, which all rows would share as a
// direction of their own: differences from it are exact, or far larger, so that their mean is what it errs by.
RowMatrix about_mean(RowMatrix rows, const Eigen::RowVectorXd& weights) {
  for (int pass = 0; pass < 2; ++pass) rows.rowwise() -= Eigen::RowVectorXd(weights * rows / weights.sum());
  return rows;
}

// Proof that all singular values of X exceed `least`, from XᵀX or a part of it (more rows only add): XᵀX − τI
// is positive definite with τ above least² and above what the rounding of the product and of the factors can
// hide.
bool all_exceed(Eigen::MatrixXd gram, double least) {
  gram.diagonal().array() -= std::max(4 * least * least, 1e-11 * gram.trace());
  return cholesky(gram).positive;
}

// Keeps the first directions up to the last in which a single key stands out of the flat: farther, over all
// directions to be left out, than rounding can take it, its entries erring independently or, at worst, all to
// the same side, and farther than half of the other keys go. (Over all: with fewer keys than directions a
// singular vector of mere rounding points at a single key.) x: keys in units of the grain.
Eigen::Index directions_with_outliers(const RowMatrix& x, const Eigen::MatrixXd& directions,
                                      const Rounding& rounding) {
  const Eigen::Index n = x.rows(), d = directions.rows(), count = directions.cols();
  if (count == 0) return 0;
  RowMatrix relative(n, d);
  for (Eigen::Index i = 0; i < n; ++i)
    for (Eigen::Index c = 0; c < d; ++c) relative(i, c) = rounding.relative(i, c);
  // From the middle key, which one that stands out does not move.
  RowMatrix along = x * directions;
  std::vector<double> sizes(static_cast<std::size_t>(n));
  const auto half = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
  for (Eigen::Index j = 0; j < count; ++j) {
    for (Eigen::Index i = 0; i < n; ++i) sizes[static_cast<std::size_t>(i)] = along(i, j);
    std::nth_element(sizes.begin(), half, sizes.end());
    along.col(j).array() -= *half;
  }
  const Eigen::VectorXd apart = (relative.cwiseAbs2() * directions.cwiseAbs2()).rowwise().sum().cwiseSqrt(),
                        together = (relative * directions.cwiseAbs()).rowwise().norm() * std::sqrt(3.0);
  for (Eigen::Index i = 0; i < n; ++i) sizes[static_cast<std::size_t>(i)] = along.row(i).norm() / apart[i];
  std::nth_element(sizes.begin(), half, sizes.end());
  const Allowance allowance = rounding.allowance();
  // The more directions, the more alike keys are in their distance.
  const double others = 2 + (allowance.others - 2) / std::sqrt(static_cast<double>(count));
  Eigen::Index kept = 0;
  for (Eigen::Index i = 0; i < n; ++i) {
    const double limit =
        std::max(allowance.key * std::min(4 * apart[i], together[i]), others * *half * apart[i]) +
        4 * 0x1p-53 * x.row(i).norm();
    if (along.row(i).norm() <= limit * (1 + 1e-9)) continue;
    Eigen::Index strongest = 0;
    along.row(i).cwiseAbs().maxCoeff(&strongest);
    kept = std::max(kept, strongest + 1);
  }
  return kept;
}

// How many of the singular values, in units of the grain and descending, with their directions, rounding does
// not explain: see `Allowance`. Outliers apart.
Eigen::Index directions_above_rounding(const Eigen::VectorXd& values, const Eigen::MatrixXd& directions,
                                       Eigen::Index n, const Rounding& rounding) {
  const double root_n = std::sqrt(static_cast<double>(n));
  const Eigen::Index d = directions.rows();
  const auto over_directions = [&](Eigen::Index left) {
    return root_n + std::sqrt(static_cast<double>(left));
  };
  const Allowance allowance = rounding.allowance();
  const double decomposition = values.size() > 0 ? kDecomposition * 0x1p-53 * values[0] : 0;
  const auto is_rounding = [&](Eigen::Index j) {
    const double together = std::sqrt(3.0) * root_n * directions.col(j).lpNorm<1>();
    return values[j] <= decomposition + std::max(allowance.spread * over_directions(d - j),
                                                 rounding.once() ? 0 : together);
  };
  Eigen::Index rank = values.size();
  while (rank > 0 && is_rounding(rank - 1)) --rank;
  // Below a gap what products leave is rounding too, but nothing as wide as information. The widest gap
  // counts.
  const auto most_of_products = [&](Eigen::Index j) {
    const double most = rounding.product(n, d) * over_directions(d - j) + decomposition;
    return std::max(decomposition, std::min(most, kInformation * root_n));
  };
  double widest = allowance.gap;
  Eigen::Index at = rank;
  for (Eigen::Index r = rank; r-- > 1;) {
    if (values[r] > most_of_products(r)) break;
    if (values[r - 1] >= widest * values[r]) widest = values[r - 1] / values[r], at = r;
  }
  return at;
}

// What NumPy's matrix_rank makes of the centred keys, which it would hold in float32 at least.
std::size_t matrix_rank(const Eigen::VectorXd& values, std::size_t n, std::size_t d, double unit_roundoff) {
  if (values.size() == 0) return 0;
  const double tolerance =
      values.maxCoeff() * static_cast<double>(std::max(n, d)) * 2 * std::min(unit_roundoff, 0x1p-24);
  return static_cast<std::size_t>((values.array() > tolerance).count());
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

double AffineHull::frame_error(std::span<const double> key) const {
  Eigen::VectorXd sizes(static_cast<Eigen::Index>(rank));
  for (std::size_t c = 0; c < rank; ++c)
    sizes[static_cast<Eigen::Index>(c)] =
        std::abs((key[kept[c]] - centre[static_cast<Eigen::Index>(kept[c])]) / unit);
  if (!reduced()) return 0x1p-53 * sizes.norm();
  return 0x1p-53 * static_cast<double>(rank + 4) * (lift.cwiseAbs() * sizes).norm();
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
  const double largest = largest_magnitude(keys), scale = power_of_two_near(largest);
  hull.unit = scale;
  hull.centre = Eigen::VectorXd::Zero(d);
  if (largest == 0) {  // all keys are the zero vector
    hull.rank = policy == RankPolicy::full ? keys.cols : 0;
    if (hull.rank == 0) {
      hull.kept.clear();
      hull.basis.resize(d, 0);
      hull.off.setZero(n);
    }
    return hull;
  }

  // Centre and spread, computed on scaled columns so that nothing overflows or vanishes.
  Eigen::RowVectorXd scales(d);
  RowMatrix scaled(n, d);
  for (Eigen::Index c = 0; c < d; ++c) {
    double top = 0;
    for (std::size_t i = 0; i < keys.rows; ++i)
      top = std::max(top, std::abs(keys(i, static_cast<std::size_t>(c))));
    scales[c] = power_of_two_near(top);
    for (Eigen::Index i = 0; i < n; ++i)
      scaled(i, c) = keys(static_cast<std::size_t>(i), static_cast<std::size_t>(c)) / scales[c];
  }
  const Eigen::RowVectorXd mean = scaled.colwise().mean();
  hull.centre = mean.cwiseProduct(scales).transpose();
  RowMatrix x = about_mean(scaled, Eigen::RowVectorXd::Ones(n));
  const Eigen::RowVectorXd shares = scales / scale;  // of a column in the set; 0 where that is beyond doubles
  const double spread = (x.cwiseAbs().colwise().maxCoeff().array() * shares.array()).maxCoeff();
  hull.unit = spread > 0 ? scale * power_of_two_near(spread) : scale;

  // Columns in units of their rounding. Rounding alone, in m directions of n keys, has singular values of
  // about √n + √m at most in these units.
  const Rounding rounding(keys, scales, mean, unit_roundoff, smallest_rounding);
  const Eigen::RowVectorXd& grain = rounding.grain;
  const Eigen::RowVectorXd column_unit = (grain.array() > 0).select(grain, 1.0);
  hull.finest = (grain.cwiseProduct(scales)).minCoeff();
  const double root_n = std::sqrt(static_cast<double>(n)), root_d = std::sqrt(static_cast<double>(d));
  // Of a singular value in units of the grain: rms spread, for coordinates of average size.
  const double average = grain.cwiseProduct(shares).norm() / root_d * scale;
  const auto spread_of = [&](double value) { return value / root_n * average; };
  const RowMatrix centred = x * shares.asDiagonal();
  const double frobenius = centred.norm();
  if (!rounding.even) {
    // About a centre that the coarsely rounded keys do not pull off the flat of the others, nor far from the
    // small ones, whose differences from it would then be rounded as coarsely.
    x = about_mean(scaled, rounding.key.cwiseAbs2().cwiseInverse().transpose());
    x.array().colwise() /= rounding.key.array();
  }
  x.array().rowwise() /= column_unit.array();
  const double one_direction =
      rounding.allowance().spread * (root_n + 1) + kDecomposition * 0x1p-53 * x.norm() / root_d;
  hull.tolerance = spread_of(one_direction);
  hull.matrix_rank = keys.cols;
  const Eigen::RowVectorXd plain_unit = column_unit.cwiseProduct(shares);
  const Eigen::Index few = std::min(n, 4 * d + 16);
  if (n > d && rounding.even) {
    const Eigen::MatrixXd gram = x.topRows(few).transpose() * x.topRows(few);
    const double least =
                     std::max(rounding.product(n, d) * (root_n + root_d), std::sqrt(3.0) * root_n * root_d),
                 usual =
                     frobenius * static_cast<double>(std::max(n, d)) * 2 * std::min(unit_roundoff, 0x1p-24);
    if (all_exceed(gram, least) &&
        all_exceed(plain_unit.asDiagonal() * gram * plain_unit.asDiagonal(), usual))
      return hull;
  }
  hull.matrix_rank =
      matrix_rank(singular_values(n > d ? householder_qr(centred).r() : Eigen::MatrixXd(centred)), keys.rows,
                  keys.cols, unit_roundoff);
  if (policy == RankPolicy::full) return hull;

  Eigen::MatrixXd small = x;
  if (n > d) small = householder_qr(x).r();
  const RightSvd spectrum = right_svd(small);
  const Eigen::VectorXd& values = spectrum.values;
  Eigen::Index rank = directions_above_rounding(values, spectrum.v, n, rounding);
  rank += directions_with_outliers(x, spectrum.v.middleCols(rank, values.size() - rank), rounding);
  if (rank > 0) hull.weakest = spread_of(values[rank - 1]);
  if (rank < values.size()) hull.left_out = spread_of(values[rank]);
  hull.tolerance =
      std::max(spread_of(rounding.allowance().spread * (root_n + 1) + kDecomposition * 0x1p-53 * values[0]),
               hull.left_out);
  if (rank == d) return hull;

  // Rank-revealing QR: its first `rank` pivots are the coordinates that parametrise the hull best, and the
  // first rows of R span the hull's directions.
  const PivotedQr pivoted = pivoted_qr(small);
  hull.rank = static_cast<std::size_t>(rank);
  for (std::size_t c = 0; c < hull.rank; ++c)
    hull.kept[c] = static_cast<std::size_t>(pivoted.permutation.indices()[static_cast<Eigen::Index>(c)]);
  hull.kept.resize(hull.rank);
  std::sort(hull.kept.begin(), hull.kept.end());
  hull.basis.resize(d, rank);
  hull.lift.resize(rank, rank);
  if (rank > 0) {
    const Eigen::MatrixXd rows = pivoted.r(rank) * pivoted.permutation.transpose() * plain_unit.asDiagonal();
    hull.basis = householder_qr(rows.transpose()).thin_q();
    Eigen::MatrixXd kept_rows(rank, rank);
    for (Eigen::Index c = 0; c < rank; ++c)
      kept_rows.row(c) = hull.basis.row(static_cast<Eigen::Index>(hull.kept[static_cast<std::size_t>(c)]));
    hull.lift = inverse(kept_rows);
  }
  hull.off.resize(n);
  Eigen::VectorXd point(rank);
  for (Eigen::Index i = 0; i < n; ++i) {
    hull.frame(keys[static_cast<std::size_t>(i)], point.data());
    Eigen::VectorXd off = -(hull.basis * point);
    for (Eigen::Index c = 0; c < d; ++c)
      off[c] += (keys(static_cast<std::size_t>(i), static_cast<std::size_t>(c)) - hull.centre[c]) / hull.unit;
    hull.off[i] = off.norm() * hull.unit;
  }
  hull.noise = hull.off.maxCoeff();
  return hull;
}

}  // namespace normscope

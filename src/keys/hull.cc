#include "keys/hull.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "core/decompose.h"
#include "core/gemm.h"

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
constexpr double kInformation = 1700;    // information stands 1000 roundings out, which is 1732 here
constexpr double kChasmOfFine = 1e6;     // a gap so wide that nothing below it but information stands out;
constexpr double kChasm = 1e3;           // of keys less fine than doubles, below one direction alone,
constexpr double kDeepest = 1e5;         // if what lies below it is at most so wide, in rms
constexpr double kLikeOthers = 6;        // over √directions: how many times the rms of others is like them
constexpr double kUncounted = 0x1p20;    // a key measured in so much does not move the flat
constexpr double kSilent = 0.05;         // roundings, in rms: others that leave less are no products
constexpr double kFewestResiduals = 6;   // of the other keys, to judge by them how far one is out
constexpr double kLeastOwn = 0.1;        // of a key's distance from a flat that it drags along, to be told
constexpr double kDecomposition = 8;     // error of singular values, in units of 2^-53 of the largest
constexpr double kDoubted = 64;          // in the same units: values below this are computed anew,
constexpr double kDoubtedOfFine = 8192;  // of keys as fine as doubles: all that may be taken for rounding

// Float64 keys are rounded as finely as doubles calculate: what they leave beside their wide directions would drown in the
// rounding of the calculation, and is found in long double, which is finer where machines have one.
using WideRows = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
constexpr double kAsFineAsDoubles = 0x1p-50;  // unit roundoff below which numbers count as that
constexpr double kWide = std::numeric_limits<long double>::epsilon();

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
  if (std::isnormal(value)) {  // the power of two below it: its exponent without the rest
    constexpr std::uint64_t kExponent = 0x7ff0000000000000;
    const auto power = std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) & kExponent);
    return std::max(unit_roundoff * (power / unit), smallest_rounding / unit);
  }
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
  // Of keys that were rounded once: how many do not err as another does, and √ of how often one error counts.
  double apart = 0, repeats = 1;

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
    measure();
    if (once()) find_repeats(keys);
  }
  // The largest singular value that the errors of n keys have in `left` directions, in expectation at most.
  double over_directions(Eigen::Index n, Eigen::Index left) const {
    const double root = std::sqrt(static_cast<double>(left));
    return std::max(std::sqrt(static_cast<double>(n)) + root, repeats * (std::sqrt(apart) + root));
  }
  // The same, with no key finer than the middle one.
  Rounding no_finer() const {
    Rounding coarse = *this;
    coarse.finest = 1;
    coarse.measure();
    return coarse;
  }
  // In rms, of an entry in units of its column and key.
  double relative(Eigen::Index i, Eigen::Index c) const {
    const double error = errors(i, c) / (std::sqrt(3.0) * key[i]);
    return error > grain[c] ? error / grain[c] : 1.0;
  }
  // In rms, of all entries of a key, in units of the columns; not finer than the key counts as.
  double of_key(Eigen::Index i) const {
    double squares = 0;
    for (Eigen::Index c = 0; c < grain.size(); ++c)
      if (grain[c] > 0) squares += std::pow(errors(i, c) / grain[c], 2) / 3;
    return std::max(1.0, std::sqrt(squares / static_cast<double>(grain.size())) / key[i]);
  }
  // In rms, of a key along one direction, in the units of its row; no finer than the columns are, or than the key counts as.
  double towards(Eigen::Index i, const Eigen::VectorXd& direction) const {
    double squares = 0;
    for (Eigen::Index c = 0; c < grain.size(); ++c)
      if (grain[c] > 0) squares += std::pow(direction[c] * errors(i, c) / grain[c], 2) / 3;
    return std::max(std::min(1.0, 1 / key[i]), std::sqrt(squares) / key[i]);
  }
  bool once() const { return unit_roundoff > kFewBits; }
  bool fine() const { return unit_roundoff < kAsFineAsDoubles; }
  Allowance allowance() const { return once() ? kRoundedOnce : kRoundedOften; }
  double product(Eigen::Index n, Eigen::Index d) const {
    const double most = allowance().product;
    const double longest = std::sqrt(static_cast<double>(std::max(n, d)));
    return once() ? most : std::clamp(kPerTerm * longest, most, kMostProduct);
  }

 private:
  void measure() {
    key.setOnes(errors.rows());
    measure_columns();
    measure_keys();
    even = key.maxCoeff() <= kUneven && key.minCoeff() * kUneven >= 1 && !has_uneven_column();
    if (even) {
      key.setOnes(errors.rows());
      return;
    }
    for (int round = 0; round < 4; ++round) measure_columns(), measure_keys();
    measure_columns();
  }
  // Keys that are equal, opposite, or another power of two as large, are rounded alike.
  void find_repeats(MatrixView<const double> keys) {
    std::unordered_map<std::uint64_t, double> weights;  // 0: not seen before
    for (Eigen::Index i = 0; i < errors.rows(); ++i) {
      const auto row = keys[static_cast<std::size_t>(i)];
      const auto first = std::find_if(row.begin(), row.end(), [](double value) { return value != 0; });
      if (first == row.end()) continue;
      const double unit = std::copysign(power_of_two_near(std::abs(*first)), *first);
      std::uint64_t hash = 0;
      for (const double value : row)
        hash = (std::rotl(hash, 5) ^ std::bit_cast<std::uint64_t>(value / unit + 0.0)) * 0x9e3779b97f4a7c15;
      double& weight = weights[hash];
      const bool again = weight > 0;
      double squares = 0;
      for (Eigen::Index c = 0; c < grain.size(); ++c)
        if (grain[c] > 0) squares += std::pow(errors(i, c) / (grain[c] * key[i]), 2) / 3;
      weight += squares / static_cast<double>(grain.size());
      if (again) repeats = std::max(repeats, std::sqrt(weight));
    }
    apart = static_cast<double>(weights.size());
  }
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
    // The middle entry of a column is below a limit if more than half of them are.
    const Eigen::RowVectorXd largest = errors.colwise().maxCoeff();
    Eigen::RowVectorXd small = Eigen::RowVectorXd::Zero(errors.cols()), zero = small;
    for (Eigen::Index i = 0; i < errors.rows(); ++i)
      for (Eigen::Index c = 0; c < errors.cols(); ++c) {
        small[c] += kUnevenColumn * errors(i, c) < largest[c] ? 1 : 0;
        zero[c] += errors(i, c) == 0 ? 1 : 0;
      }
    const Eigen::Index middle = errors.rows() / 2;
    const auto half = static_cast<double>(middle);
    return ((small.array() > half) && (zero.array() <= half)).any();
  }
};

// The rows from their weighted mean. That errs by some roundings itself, which all rows would share as a
// direction of their own: differences from it are exact, or far larger, so that their mean is what it errs by.
template <class Rows>
Rows about_mean(Rows rows, const Eigen::RowVectorXd& weights) {
  using Scalar = typename Rows::Scalar;
  const Eigen::Matrix<Scalar, 1, Eigen::Dynamic> shares =
      weights.template cast<Scalar>() / static_cast<Scalar>(weights.sum());
  for (int pass = 0; pass < 2; ++pass)
    rows.rowwise() -= Eigen::Matrix<Scalar, 1, Eigen::Dynamic>(shares * rows);
  return rows;
}

// Keys about a centre, in units of their rounding: of the columns, and of keys that are rounded more coarsely or finely
// than the middle one.
struct MeasuredKeys {
  RowMatrix rows;
  WideRows wide;  // the same more precisely, where they are as fine as doubles; else empty

  MeasuredKeys(const RowMatrix& scaled, const Eigen::VectorXd& key, const Eigen::RowVectorXd& column_unit,
               bool fine) {
    const Eigen::RowVectorXd weights = key.cwiseAbs2().cwiseInverse().transpose();
    if (!fine) {
      rows = about_mean(scaled, weights);
      rows.array().colwise() /= key.array();
      rows.array().rowwise() /= column_unit.array();
      return;
    }
    wide = about_mean(WideRows(scaled.cast<long double>()), weights);
    wide.array().colwise() /= key.array().cast<long double>();
    wide.array().rowwise() /= column_unit.array().cast<long double>();
    rows = wide.cast<double>();
  }
};

// XᵀX.
Eigen::MatrixXd gram_of(const Eigen::Ref<const RowMatrix>& x) {
  const auto n = static_cast<std::size_t>(x.rows()), d = static_cast<std::size_t>(x.cols());
  const RowMatrix transposed = x.transpose();
  Eigen::MatrixXd gram(x.cols(), x.cols());
  const OneThreadPerProduct one_thread;
  multiply<double>(1, {transposed.data(), d, n}, {transposed.data(), d, n}, Transpose::yes, 0,
                   MatrixView<double>(gram.data(), d, d));
  return gram;
}

// Proof that all singular values of X exceed `least`, from XᵀX or a part of it (more rows only add): XᵀX − τI
// is positive definite with τ above least² and above what the rounding of the product and of the factors can
// hide.
bool all_exceed(Eigen::MatrixXd gram, double least) {
  gram.diagonal().array() -= std::max(4 * least * least, 1e-11 * gram.trace());
  return cholesky(gram).positive;
}

// Right singular vectors and values, the small ones as precisely as can be told: divide and conquer errs by some tens of
// 2^-53 of the largest, and sets some to 0. What is left of the keys without the left and right vectors of the large ones is
// decomposed on its own. A vector that errs by 2^-53 leaves as much of the large ones in it; without the left vectors, too, that
// is a square.
struct Spectrum {
  Eigen::MatrixXd small;  // the keys; of more keys than dimensions their triangular factor
  Eigen::VectorXd values;
  Eigen::MatrixXd v;
  Eigen::Index strong = 0;  // values found at once
  RowMatrix weak;           // what each key has along the others; empty: not found apart

  explicit Spectrum(const MeasuredKeys& keys) {
    const RowMatrix& x = keys.rows;
    const bool tall = x.rows() > x.cols(), fine = keys.wide.size() > 0;
    small = tall ? householder_qr(x).r() : Eigen::MatrixXd(x);
    RightSvd found = right_svd(small);
    values = std::move(found.values);
    v = std::move(found.v);
    strong = (values.array() > (fine ? kDoubtedOfFine : kDoubted) * 0x1p-53 * values[0]).count();
    const Eigen::Index others = values.size() - strong;
    if (strong == 0 || others == 0) return;
    const Eigen::MatrixXd beside = v.rightCols(others);
    const Eigen::MatrixXd left = householder_qr(fine ? Eigen::MatrixXd(x * v.leftCols(strong))
                                                     : Eigen::MatrixXd(small * v.leftCols(strong)))
                                     .thin_q();
    Eigen::MatrixXd rest = fine ? Eigen::MatrixXd((keys.wide * beside.cast<long double>()).cast<double>())
                                : Eigen::MatrixXd(small * beside);
    rest -= left * (left.transpose() * rest);
    const RightSvd sharp = right_svd(fine && tall ? householder_qr(rest).r() : rest);
    values.tail(others) = sharp.values;
    v.rightCols(others) = beside * sharp.v;
    if (fine) weak = rest * sharp.v;
  }
  // By how much the j-th value may be off.
  double error(Eigen::Index j) const {
    if (values.size() == 0) return 0;
    if (weak.size() == 0 || j < strong) return kDecomposition * 0x1p-53 * values[0];
    return kDecomposition * (0x1p-53 * values[strong] + kWide * values[0]);
  }
  // What each key has along the directions from the first on.
  RowMatrix along(const RowMatrix& x, Eigen::Index first) const {
    const Eigen::Index count = v.cols() - first, apart = weak.size() == 0 ? 0 : std::min(count, weak.cols());
    RowMatrix result(x.rows(), count);
    result.leftCols(count - apart).noalias() = x * v.middleCols(first, count - apart);
    if (apart > 0) result.rightCols(apart) = weak.rightCols(apart);
    return result;
  }
  // How far what `along` finds of a key of norm 1 may be off.
  double along_error(Eigen::Index first) const {
    const Eigen::Index plain =
        weak.size() == 0 ? v.cols() - first : std::max<Eigen::Index>(0, strong - first);
    return 4 * (plain > 0 ? 0x1p-53 * std::sqrt(static_cast<double>(plain)) : kWide);
  }
};

// Of what half of the keys keep within, or of their root mean square: a key that goes farther stands out. The more
// directions, the more alike keys are in their distance.
double times_the_others(const Allowance& allowance, Eigen::Index directions) {
  return 2 + (allowance.others - 2) / std::sqrt(static_cast<double>(directions));
}

// How far each key lies from the flat of the others, if by more than they explain: a key drags the flat that is
// fitted to all of them, so that it lies nearer to that than to theirs, and they lie off it. Of the distance r
// to the fitted flat a key has 1 - h left, h its leverage; without it Σr² falls by r²/(1 - h) of its own. 0
// for keys that are not far out, measured by what is left of the others in as many directions.
struct FarOut {
  Eigen::VectorXd distances;
  Eigen::Array<bool, Eigen::Dynamic, 1> alone;  // what is left of the others is less than one rounding leaves
};
FarOut distances_from_others(const RowMatrix& x, const Spectrum& spectrum, const RowMatrix& along,
                             const Eigen::VectorXd& key, double times) {
  const Eigen::Index n = along.rows(), weak = along.cols(), rank = spectrum.v.cols() - weak;
  const RowMatrix kept = x * spectrum.v.leftCols(rank);
  FarOut found{Eigen::VectorXd::Zero(n), Eigen::Array<bool, Eigen::Dynamic, 1>::Constant(n, false)};
  const double freedom = static_cast<double>(n - 2 - rank);  // of the others
  if (freedom * static_cast<double>(weak) < kFewestResiduals || freedom < 1) return found;
  const double decomposition = spectrum.error(rank);
  const Eigen::VectorXd centre = key.cwiseInverse().normalized();
  const Eigen::VectorXd squares = along.rowwise().squaredNorm();
  const double all = squares.sum();
  for (Eigen::Index i = 0; i < n; ++i) {
    const double own = 1 - centre[i] * centre[i] -
                       (kept.row(i).array() / spectrum.values.head(rank).transpose().array()).square().sum();
    const double others = std::max(0.0, all - squares[i] / own), distance = std::sqrt(squares[i]);
    if (own > kLeastOwn && squares[i] / own > times * times * others / freedom)
      found.distances[i] = std::max(0.0, distance - decomposition) / own;
    found.alone[i] = others <= kSilent * kSilent * freedom;
  }
  return found;
}

// How many of the directions from `rank` on are kept, up to the last in which a single key stands out of the
// flat: farther, over all directions to be left out, than rounding can take it, its entries erring
// independently or, at worst, all to the same side, and farther than half of the other keys go; or as far out
// of the flat of the others as information is. (Over all, those without a singular value included: with fewer
// keys than directions a singular vector of mere rounding points at a single key.) x: keys in units of the
// grain.
Eigen::Index directions_with_outliers(const RowMatrix& x, const Spectrum& spectrum, Eigen::Index rank,
                                      const Rounding& rounding) {
  const Eigen::MatrixXd& directions = spectrum.v;
  const Eigen::Index n = x.rows(), d = directions.rows(), weak = directions.cols() - rank;
  if (weak == 0) return 0;
  RowMatrix relative(n, d);
  for (Eigen::Index i = 0; i < n; ++i)
    for (Eigen::Index c = 0; c < d; ++c) relative(i, c) = rounding.relative(i, c);
  RowMatrix along = spectrum.along(x, rank);
  const Allowance allowance = rounding.allowance();
  const double others = times_the_others(allowance, weak);
  const FarOut far_out = distances_from_others(x, spectrum, along, rounding.key, others);
  // What counts as the rounding of a key: that of all its entries, since terms that cancelled may have been as large as they.
  // Where the others are flat without any rounding nothing has cancelled, and it is that of the entries which take it out.
  const auto own_rounding = [&](Eigen::Index i) {
    if (!far_out.alone[i]) return rounding.of_key(i);
    const Eigen::VectorXd out = directions.rightCols(weak) * along.row(i).transpose();
    return rounding.towards(i, out / out.norm());
  };
  // From the middle key, which one that stands out does not move.
  std::vector<double> sizes(static_cast<std::size_t>(n));
  const auto half = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
  for (Eigen::Index j = 0; j < weak; ++j) {
    for (Eigen::Index i = 0; i < n; ++i) sizes[static_cast<std::size_t>(i)] = along(i, j);
    std::nth_element(sizes.begin(), half, sizes.end());
    along.col(j).array() -= *half;
  }
  Eigen::VectorXd apart, together;
  if (directions.cols() == d) {
    apart = (relative.cwiseAbs2() * directions.rightCols(weak).cwiseAbs2()).rowwise().sum().cwiseSqrt();
    together = std::sqrt(3.0) * (relative * directions.rightCols(weak).cwiseAbs()).rowwise().norm();
  } else {
    const Eigen::VectorXd kept_of_columns = directions.leftCols(rank).cwiseAbs2().rowwise().sum();
    apart = (relative.cwiseAbs2() * (1 - kept_of_columns.array()).cwiseMax(0.0).matrix()).cwiseSqrt();
    together = std::sqrt(3.0) * relative.rowwise().norm();
  }
  for (Eigen::Index i = 0; i < n; ++i) sizes[static_cast<std::size_t>(i)] = along.row(i).norm() / apart[i];
  std::nth_element(sizes.begin(), half, sizes.end());
  Eigen::Index kept = 0;
  for (Eigen::Index i = 0; i < n; ++i) {
    const double limit =
        std::max(allowance.key * std::min(4 * apart[i], together[i]), others * *half * apart[i]) +
        spectrum.along_error(rank) * x.row(i).norm();
    const bool informs = far_out.distances[i] > 0 && far_out.distances[i] > kInformation * own_rounding(i);
    if (along.row(i).norm() <= limit * (1 + 1e-9) && !informs) continue;
    Eigen::Index strongest = 0;
    along.row(i).cwiseAbs().maxCoeff(&strongest);
    kept = std::max(kept, strongest + 1);
  }
  return kept;
}

// How many of the singular values, in units of the grain and descending, with their directions, rounding does
// not explain: see `Allowance`. Outliers apart.
Eigen::Index directions_above_rounding(const Spectrum& spectrum, Eigen::Index n, const Rounding& rounding) {
  const Eigen::VectorXd& values = spectrum.values;
  const Eigen::MatrixXd& directions = spectrum.v;
  const double root_n = std::sqrt(static_cast<double>(n));
  const Eigen::Index d = directions.rows();
  const auto over_directions = [&](Eigen::Index left) { return rounding.over_directions(n, left); };
  const Allowance allowance = rounding.allowance();
  const auto is_rounding = [&](Eigen::Index j) {
    const double together = std::sqrt(3.0) * root_n * directions.col(j).lpNorm<1>();
    return values[j] <= spectrum.error(j) + std::max(allowance.spread * over_directions(d - j),
                                                     rounding.once() ? 0 : together);
  };
  Eigen::Index rank = values.size();
  while (rank > 0 && is_rounding(rank - 1)) --rank;
  // Below a gap what products leave is rounding too, but nothing as wide as information. The widest gap
  // counts.
  const auto most_of_products = [&](Eigen::Index j) {
    const double decomposition = spectrum.error(j),
                 most = rounding.product(n, d) * over_directions(d - j) + decomposition;
    return std::max(decomposition, std::min(most, kInformation * root_n));
  };
  double widest = allowance.gap;
  Eigen::Index at = rank;
  for (Eigen::Index r = rank; r-- > 1;) {
    if (values[r] > most_of_products(r)) break;
    if (values[r - 1] >= widest * values[r]) widest = values[r - 1] / values[r], at = r;
  }
  // A product of rank 1 may leave a column near 0 in every key, whose rounding stands so far out of that of the others that no
  // gap is left below it. Of information the wider directions explain a share, as of anything keys have by chance.
  const auto informs = [&](Eigen::Index j) {
    const double freedom = std::sqrt(static_cast<double>(n - 1 - j));
    return values[j] > std::max(kInformation * freedom, most_of_products(j));
  };
  const double chasm = rounding.fine() ? kChasmOfFine : kChasm;
  const Eigen::Index above = rounding.once()   ? 0
                             : rounding.fine() ? n
                                               : 1;  // directions above a chasm, at most
  for (Eigen::Index r = 1; r < at && 4 * r <= n && r <= above; ++r) {
    if (values[r - 1] < chasm * values[r] || values[r] > kDeepest * root_n) continue;
    while (r < at && 4 * r <= n && informs(r)) ++r;
    if (4 * r <= n) at = std::min(at, r);
    break;
  }
  return at;
}

// How many directions there are with those in which a far smaller key than the others is out of their flat. Rows that
// are measured in their own rounding let such a key pull the flat to itself, and nothing can be told of it; here none
// counts more than the middle one. scaled: keys in units of the columns' scales.
Eigen::Index directions_with_small_keys(const RowMatrix& scaled, const Eigen::RowVectorXd& column_unit,
                                        const Rounding& rounding) {
  const Eigen::Index n = scaled.rows();
  const Eigen::VectorXd key = rounding.key.cwiseMax(1.0);
  const MeasuredKeys measured(scaled, key, column_unit, rounding.fine());
  const Spectrum spectrum(measured);
  const Eigen::Index rank = directions_above_rounding(spectrum, n, rounding), weak = spectrum.v.cols() - rank;
  if (weak == 0) return rank;
  const RowMatrix along = spectrum.along(measured.rows, rank);
  const Eigen::VectorXd distances =
      distances_from_others(measured.rows, spectrum, along, key, times_the_others(rounding.allowance(), weak))
          .distances;
  Eigen::Index kept = 0;
  for (Eigen::Index i = 0; i < n; ++i) {
    if (rounding.key[i] * kUneven >= 1 || distances[i] <= kInformation * rounding.of_key(i) * rounding.key[i])
      continue;
    Eigen::Index strongest = 0;
    along.row(i).cwiseAbs().maxCoeff(&strongest);
    kept = std::max(kept, strongest + 1);
  }
  return rank + kept;
}

// Whether keys that are far finer than the middle one lie no farther from the flat of the others than these do, and so err as
// these do: they are what is left where terms as large as those of the others cancel, as in X(AB) for a row of X that A
// hardly sees. Information of their own would take them farther out. scaled: keys in units of the columns' scales.
bool small_keys_err_as_others(const RowMatrix& scaled, const Rounding& rounding) {
  const auto is_small = rounding.key.array() * kUneven < 1;
  const auto small = is_small.count();
  if (rounding.once() || small == 0) return false;
  const Rounding coarse = rounding.no_finer();
  const Eigen::VectorXd key = is_small.select(kUncounted, coarse.key.array());
  const Eigen::RowVectorXd column_unit = (coarse.grain.array() > 0).select(coarse.grain, 1.0);
  const MeasuredKeys measured(scaled, key, column_unit, coarse.fine());
  const Spectrum spectrum(measured);
  const Eigen::Index others = scaled.rows() - small,
                     rank = directions_above_rounding(spectrum, others, coarse),
                     weak = spectrum.v.cols() - rank, freedom = others - 1 - rank;
  if (freedom < 1 || freedom * weak < kFewestResiduals) return false;
  const Eigen::ArrayXd squares =
      spectrum.along(measured.rows, rank).rowwise().squaredNorm().array() * key.array().square();
  const double times = 2 + kLikeOthers / std::sqrt(static_cast<double>(weak)),
               farthest = is_small.select(squares, 0.0).maxCoeff();
  return farthest * static_cast<double>(freedom) <= times * times * is_small.select(0.0, squares).sum();
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

namespace {

// What takes the kept coordinates to the frame, and by how much of it lengths come out wrong: exactly, they
// would be those of lift times kept rows, which is the identity but for the rounding of the inverse.
void measure_lift(AffineHull& hull) {
  const auto rank = static_cast<Eigen::Index>(hull.rank);
  Eigen::MatrixXd kept_rows(rank, rank);
  for (Eigen::Index c = 0; c < rank; ++c)
    kept_rows.row(c) = hull.basis.row(static_cast<Eigen::Index>(hull.kept[static_cast<std::size_t>(c)]));
  hull.lift = inverse(kept_rows);
  const double rounding = 2 * static_cast<double>(rank) * 0x1p-53;
  const double error = (hull.lift * kept_rows - Eigen::MatrixXd::Identity(rank, rank)).norm() +
                       rounding * (hull.lift.cwiseAbs() * kept_rows.cwiseAbs()).norm();
  hull.length_error = std::isfinite(error) ? error : std::numeric_limits<double>::max();
}

// How far each key lies from its place. Of keys as fine as doubles, what the calculation errs by is added: one far smaller
// than its distance from the centre may have lost all it is off.
template <class Scalar>
void measure_off(AffineHull& hull, MatrixView<const double> keys) {
  using Vector = Eigen::Matrix<Scalar, Eigen::Dynamic, 1>;
  const auto n = static_cast<Eigen::Index>(keys.rows), d = hull.centre.size(),
             rank = static_cast<Eigen::Index>(hull.rank);
  const Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic> basis = hull.basis.cast<Scalar>(),
                                                              lift = hull.lift.cast<Scalar>();
  const Scalar unit = hull.unit;
  hull.off.resize(n);
  Vector from_centre(d), coordinates(rank);
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index c = 0; c < d; ++c)
      from_centre[c] = (static_cast<Scalar>(keys(static_cast<std::size_t>(i), static_cast<std::size_t>(c))) -
                        static_cast<Scalar>(hull.centre[c])) /
                       unit;
    for (Eigen::Index c = 0; c < rank; ++c)
      coordinates[c] = from_centre[static_cast<Eigen::Index>(hull.kept[static_cast<std::size_t>(c)])];
    const Vector place = lift * coordinates;
    Scalar off = (from_centre - basis * place).norm();
    if constexpr (!std::is_same_v<Scalar, double>)
      off += static_cast<Scalar>(kWide) * static_cast<Scalar>(rank + 4) *
             ((lift.cwiseAbs() * coordinates.cwiseAbs()).norm() + from_centre.norm());
    hull.off[i] = static_cast<double>(off) * hull.unit;
  }
}

void keep_first(AffineHull& hull, const PivotedQr& pivoted) {
  hull.kept.resize(hull.rank);
  for (std::size_t c = 0; c < hull.rank; ++c)
    hull.kept[c] = static_cast<std::size_t>(pivoted.permutation.indices()[static_cast<Eigen::Index>(c)]);
  std::sort(hull.kept.begin(), hull.kept.end());
}

}  // namespace

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
  scales.setZero();
  for (std::size_t i = 0; i < keys.rows; ++i)
    for (Eigen::Index c = 0; c < d; ++c)
      scales[c] = std::max(scales[c], std::abs(keys(i, static_cast<std::size_t>(c))));
  for (Eigen::Index c = 0; c < d; ++c) scales[c] = power_of_two_near(scales[c]);
  for (Eigen::Index i = 0; i < n; ++i)
    for (Eigen::Index c = 0; c < d; ++c)
      scaled(i, c) = keys(static_cast<std::size_t>(i), static_cast<std::size_t>(c)) / scales[c];
  const Eigen::RowVectorXd mean = scaled.colwise().mean();
  hull.centre = mean.cwiseProduct(scales).transpose();
  const Eigen::RowVectorXd shares = scales / scale;  // of a column in the set; 0 where that is beyond doubles
  double spread = 0, frobenius = 0;
  {  // large, and done with before more is needed
    const RowMatrix centred = about_mean(scaled, Eigen::RowVectorXd::Ones(n)) * shares.asDiagonal();
    spread = centred.cwiseAbs().maxCoeff();
    frobenius = centred.norm();
  }
  hull.unit = spread > 0 ? std::min(scale * power_of_two_near(spread), 0x1p1023) : scale;

  // Columns in units of their rounding. Rounding alone, in m directions of n keys, has singular values of
  // about √n + √m at most in these units.
  Rounding rounding(keys, scales, mean, unit_roundoff, smallest_rounding);
  if (small_keys_err_as_others(scaled, rounding)) rounding = rounding.no_finer();
  const Eigen::RowVectorXd& grain = rounding.grain;
  const Eigen::RowVectorXd column_unit = (grain.array() > 0).select(grain, 1.0);
  hull.finest = (grain.cwiseProduct(scales)).minCoeff();
  const double root_n = std::sqrt(static_cast<double>(n)), root_d = std::sqrt(static_cast<double>(d));
  // Of a singular value in units of the grain: rms spread, for coordinates of average size.
  const double average = grain.cwiseProduct(shares).norm() / root_d * scale;
  const auto spread_of = [&](double value) { return value / root_n * average; };
  // Where keys are rounded unevenly, about a centre that the coarsely rounded ones do not pull off the flat of the others,
  // nor far from the small ones, whose differences from it would then be rounded as coarsely.
  MeasuredKeys measured(scaled, rounding.key, column_unit, false);
  const RowMatrix& x = measured.rows;
  const double one_direction =
      rounding.allowance().spread * (root_n + 1) + kDecomposition * 0x1p-53 * x.norm() / root_d;
  hull.tolerance = spread_of(one_direction);
  hull.matrix_rank = keys.cols;
  const Eigen::RowVectorXd plain_unit = column_unit.cwiseProduct(shares);
  const Eigen::Index few = std::min(n, 4 * d + 16);
  if (n > d && rounding.even) {
    const Eigen::MatrixXd gram = gram_of(x.topRows(few));
    const double least =
                     std::max(rounding.product(n, d) * (root_n + root_d), std::sqrt(3.0) * root_n * root_d),
                 usual =
                     frobenius * static_cast<double>(std::max(n, d)) * 2 * std::min(unit_roundoff, 0x1p-24);
    if (all_exceed(gram, least) &&
        all_exceed(plain_unit.asDiagonal() * gram * plain_unit.asDiagonal(), usual))
      return hull;
  }
  {  // large, and done with before more is needed
    RowMatrix centred = about_mean(scaled, Eigen::RowVectorXd::Ones(n));
    centred *= shares.asDiagonal();
    hull.matrix_rank =
        matrix_rank(singular_values(n > d ? householder_qr(centred).r() : Eigen::MatrixXd(centred)),
                    keys.rows, keys.cols, unit_roundoff);
  }
  if (policy == RankPolicy::full) return hull;

  if (rounding.fine()) measured = MeasuredKeys(scaled, rounding.key, column_unit, true);
  const Spectrum spectrum(measured);
  const Eigen::MatrixXd& small = spectrum.small;
  const Eigen::VectorXd& values = spectrum.values;
  Eigen::Index rank = directions_above_rounding(spectrum, n, rounding);
  rank += directions_with_outliers(x, spectrum, rank, rounding);
  if (rounding.key.minCoeff() * kUneven < 1)
    rank = std::max(rank, directions_with_small_keys(scaled, column_unit, rounding));
  rank = std::min(rank, n - 1);
  if (rank > 0) hull.weakest = spread_of(values[rank - 1]);
  if (rank < values.size()) hull.left_out = spread_of(values[rank]);
  hull.tolerance =
      std::max(spread_of(rounding.allowance().spread * (root_n + 1) + spectrum.error(rank)), hull.left_out);
  if (rank == d) return hull;

  // Rank-revealing QR: its first `rank` pivots are the coordinates that parametrise the hull best, and the
  // first rows of R span the hull's directions.
  const PivotedQr pivoted = pivoted_qr(small);
  hull.rank = static_cast<std::size_t>(rank);
  keep_first(hull, pivoted);
  hull.basis.resize(d, rank);
  hull.lift.resize(rank, rank);
  if (rank > 0) {
    const Eigen::MatrixXd rows = pivoted.r(rank) * pivoted.permutation.transpose() * plain_unit.asDiagonal();
    hull.basis = householder_qr(rows.transpose()).thin_q();
    measure_lift(hull);
    // Columns of very different sizes: those that hold the directions best for their rounding may hold hardly
    // any of their length. Others will do if they hold as many directions beyond doubt.
    if (plain_unit.maxCoeff() > kUnevenColumn * plain_unit.minCoeff()) {
      AffineHull longest = hull;
      keep_first(longest, pivoted_qr(hull.basis.transpose()));
      Eigen::MatrixXd columns(small.rows(), rank);
      for (Eigen::Index c = 0; c < rank; ++c)
        columns.col(c) = small.col(static_cast<Eigen::Index>(longest.kept[static_cast<std::size_t>(c)]));
      const double surely =
          2 * rounding.product(n, d) * (root_n + root_d) + kDecomposition * 0x1p-53 * values[0];
      measure_lift(longest);
      if (longest.length_error < hull.length_error && singular_values(columns).minCoeff() > surely)
        hull = std::move(longest);
    }
  }
  if (rounding.fine())
    measure_off<long double>(hull, keys);
  else
    measure_off<double>(hull, keys);
  hull.noise = hull.off.maxCoeff();
  return hull;
}

}  // namespace normscope

#include "oracle/flat_sets.h"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/decompose.h"
#include "normscope/random.h"
#include "oracle/certificate.h"
#include "oracle/oracle.h"

namespace normscope::oracle {
namespace {

// To nearest, ties to even, among numbers with `bits` bits above the step of the smallest.
double to_bits(double value, int bits, int smallest_exponent) {
  if (value == 0) return 0;
  const int exponent = std::max(std::ilogb(value) - bits + 1, smallest_exponent);
  return std::ldexp(std::nearbyint(std::ldexp(value, -exponent)), exponent);
}

struct Precision {
  const char* name;
  int bits, smallest_exponent;
  bool once() const { return bits < 20; }
  bool wide() const { return bits == 53; }
  double roundoff() const { return std::ldexp(1.0, -bits); }
  double operator()(double value) const { return to_bits(value, bits, smallest_exponent); }
};
constexpr std::array kPrecisions = {Precision{"float16", 11, -24}, Precision{"bfloat16", 8, -133},
                                    Precision{"float32", 24, -149}, Precision{"float64", 53, -1074}};

using Exact = Matrix<long double>;

// A matrix as it is computed, and as it was meant: the second without rounding, but for that of long double.
struct Computed {
  Matrix<double> value;
  Exact meant;
};

Computed stored(Matrix<double> value) {
  Exact meant(value.rows(), value.cols());
  for (std::size_t i = 0; i < value.rows(); ++i)
    std::copy(value[i].begin(), value[i].end(), meant[i].begin());
  return {std::move(value), std::move(meant)};
}

template <class Draw>
Matrix<double> fill(std::size_t n, std::size_t d, const Precision& precision, Draw draw) {
  Matrix<double> result(n, d);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t c = 0; c < d; ++c) result(i, c) = precision(draw(i, c));
  return result;
}

Matrix<double> gaussian(Random& random, std::size_t n, std::size_t d, const Precision& precision,
                        double mean = 0) {
  return fill(n, d, precision, [&](auto, auto) { return mean + random.normal(); });
}

// Sums of products in T, one after the other or in `lanes` partial sums, as vector units do.
template <class T>
double inner(std::span<const double> left, const Matrix<double>& right, std::size_t c, std::size_t lanes) {
  std::array<T, 8> sums{};
  for (std::size_t k = 0; k < left.size(); ++k)
    sums[k % lanes] += static_cast<T>(left[k]) * static_cast<T>(right(k, c));
  T sum = 0;
  for (std::size_t k = 0; k < lanes; ++k) sum += sums[k];
  return static_cast<double>(sum);
}

Computed product(Random& random, const Computed& left, const Computed& right, const Precision& precision) {
  const std::size_t n = left.value.rows(), inner_size = right.value.rows(), d = right.value.cols();
  const std::size_t lanes = random.below(2) == 0 ? 1 : 8;
  Computed result{Matrix<double>(n, d), Exact(n, d)};
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t c = 0; c < d; ++c) {
      result.value(i, c) = precision(precision.wide() ? inner<double>(left.value[i], right.value, c, lanes)
                                                      : inner<float>(left.value[i], right.value, c, lanes));
      for (std::size_t k = 0; k < inner_size; ++k) result.meant(i, c) += left.meant(i, k) * right.meant(k, c);
    }
  return result;
}

// A row less its mean and, with `scale`, divided by its deviation; in the arithmetic of Number.
template <class Number>
std::vector<Number> normed_row(std::span<const double> x, bool scale, std::span<const double> gain,
                               std::span<const double> bias) {
  const auto d = static_cast<Number>(x.size());
  Number mean = 0, squares = 0;
  for (double value : x) mean += static_cast<Number>(value);
  mean /= d;
  for (double value : x) {
    const Number off = static_cast<Number>(value) - mean;
    squares += off * off;
  }
  const Number deviation = scale ? std::sqrt(squares / d) : Number(1);
  std::vector<Number> result;
  for (std::size_t c = 0; c < x.size(); ++c) {
    result.push_back((static_cast<Number>(x[c]) - mean) / deviation);
    if (!gain.empty())
      result.back() = result.back() * static_cast<Number>(gain[c]) + static_cast<Number>(bias[c]);
  }
  return result;
}

template <class T>
Computed normed(const Matrix<double>& x, bool scale, const Precision& precision, std::span<const double> gain,
                std::span<const double> bias) {
  Computed result{Matrix<double>(x.rows(), x.cols()), Exact(x.rows(), x.cols())};
  for (std::size_t i = 0; i < x.rows(); ++i) {
    const std::vector<T> computed = normed_row<T>(x[i], scale, gain, bias);
    const std::vector<long double> meant = normed_row<long double>(x[i], scale, gain, bias);
    for (std::size_t c = 0; c < x.cols(); ++c) {
      result.value(i, c) = precision(static_cast<double>(computed[c]));
      result.meant(i, c) = meant[c];
    }
  }
  return result;
}

std::size_t between(Random& random, std::size_t low, std::size_t high) {
  return low + random.below(high - low + 1);
}

// Dimensions, all sizes alike.
std::size_t dimension(Random& random, std::size_t low, std::size_t high) {
  const double from = std::log2(static_cast<double>(low)), to = std::log2(static_cast<double>(high) + 0.999);
  return static_cast<std::size_t>(std::exp2(from + (to - from) * random.uniform()));
}

enum class Family {
  two,
  three,
  scaled,
  one_direction,
  shifted,
  centred,
  layernorm,
  affine,
  lattice,
  copied,
  positive,
  repeated
};
constexpr std::array kFamilies = {"product of two",
                                  "product of three",
                                  "columns of many sizes",
                                  "outer product",
                                  "product, then a bias",
                                  "centred rows",
                                  "layernorm",
                                  "layernorm, gain, bias",
                                  "lattice",
                                  "columns that repeat",
                                  "product of positive numbers",
                                  "keys that repeat"};

std::vector<double> positive(Random& random, std::size_t d, double spread, const Precision& precision) {
  std::vector<double> list(d);
  for (double& value : list) value = precision(std::exp(spread * random.normal()));
  return list;
}

// Smallest singular value of the centred keys in their flat, over what rounding does to their entries: signal
// that is no more than rounding cannot be found by anyone.
bool stands_out(const Computed& keys, std::size_t rank, const Precision& precision) {
  const auto n = static_cast<Eigen::Index>(keys.value.rows()),
             d = static_cast<Eigen::Index>(keys.value.cols());
  Eigen::MatrixXd x(n, d);
  for (Eigen::Index i = 0; i < n; ++i)
    for (Eigen::Index c = 0; c < d; ++c)
      x(i, c) = static_cast<double>(keys.meant(static_cast<std::size_t>(i), static_cast<std::size_t>(c)));
  for (Eigen::Index c = 0; c < d; ++c) {
    const double size = x.col(c).norm() / std::sqrt(static_cast<double>(n));
    x.col(c).array() -= x.col(c).mean();
    if (size > 0) x.col(c) /= size * precision.roundoff();
  }
  const Eigen::MatrixXd gram =
      n > d ? Eigen::MatrixXd(x.transpose() * x) : Eigen::MatrixXd(x * x.transpose());
  const Eigen::VectorXd values = symmetric_eigenvalues(gram);
  const double weakest = std::sqrt(std::max(0.0, values[values.size() - static_cast<Eigen::Index>(rank)]) /
                                   static_cast<double>(n));
  return weakest > (precision.once() ? 60 : 1000);
}

// Of a row: what scaling divides by. Where it is small against the row, few digits of the row are left.
double least_deviation(const Matrix<double>& x) {
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < x.rows(); ++i) {
    const double count = static_cast<double>(x.cols()),
                 mean = std::accumulate(x[i].begin(), x[i].end(), 0.0) / count;
    double squares = 0;
    for (double value : x[i]) squares += (value - mean) * (value - mean);
    least = std::min(least, std::sqrt(squares / count));
  }
  return least;
}

// Whether what the products rounded spreads, in some direction, a thousand times as far as the entries are rounded: that
// is what information does. So much is left where a product cancels in a column for all keys.
bool looks_like_information(const Computed& keys, std::size_t rank, const Precision& precision) {
  const auto n = static_cast<Eigen::Index>(keys.value.rows()),
             d = static_cast<Eigen::Index>(keys.value.cols());
  Eigen::MatrixXd errors(n, d);
  for (Eigen::Index c = 0; c < d; ++c) {
    double squares = 0;
    for (Eigen::Index i = 0; i < n; ++i) {
      const auto row = static_cast<std::size_t>(i), column = static_cast<std::size_t>(c);
      const double value = keys.value(row, column);
      errors(i, c) = static_cast<double>(static_cast<long double>(value) - keys.meant(row, column));
      const double rounding = value == 0 ? 0 : std::ldexp(precision.roundoff(), std::ilogb(value));
      squares += rounding * rounding;
    }
    errors.col(c).array() -= errors.col(c).mean();
    if (squares > 0) errors.col(c) /= std::sqrt(squares / static_cast<double>(n));
  }
  const Eigen::MatrixXd gram =
      n > d ? Eigen::MatrixXd(errors.transpose() * errors) : Eigen::MatrixXd(errors * errors.transpose());
  const double widest = std::sqrt(symmetric_eigenvalues(gram).maxCoeff());
  return widest > 980 * std::sqrt(static_cast<double>(n - 1) - static_cast<double>(rank));
}

struct Drawn {
  Computed keys;
  std::size_t rank;
  Matrix<double> truth;
};

Drawn draw(Random& random, Family family, std::size_t d, const Precision& precision) {
  // Numbers of few bits lose what spreads little, and products spread unevenly if their rank is nearly full.
  const std::size_t most = precision.once() ? std::max<std::size_t>(1, d / 2) : d;
  std::size_t rank = random.below(4) == 0 ? most : between(random, 1, most);
  if (family == Family::one_direction) rank = 1;
  if (family == Family::lattice) rank = std::min<std::size_t>(rank, 5);  // ties are for integers, and slow
  const std::size_t n = rank + 2 + random.below(2 * rank + 30);
  const Precision& wide = kPrecisions[3];
  switch (family) {
    case Family::two:
    case Family::one_direction: {
      Computed z = stored(gaussian(random, n, rank, precision)),
               q = stored(gaussian(random, rank, d, precision));
      return {product(random, z, q, precision), rank, std::move(z.value)};
    }
    case Family::positive: {  // of one sign, so that the mean is the widest direction of all
      if (random.below(2) == 0) rank = 1;
      const auto uniform = [&](auto, auto) { return random.uniform(); };
      Computed z = stored(fill(n, rank, precision, uniform)), q = stored(fill(rank, d, precision, uniform));
      return {product(random, z, q, precision), rank, std::move(z.value)};
    }
    case Family::repeated: {  // two thirds of the keys are equal to others
      Matrix<double> few = gaussian(random, n, rank, precision), z(3 * n, rank);
      for (std::size_t i = 0; i < 3 * n; ++i) {
        const auto from = few[i < n ? i : random.below(n)];
        std::copy(from.begin(), from.end(), z[i].begin());
      }
      Computed factor = stored(std::move(z));
      return {product(random, factor, stored(gaussian(random, rank, d, precision)), precision), rank,
              std::move(factor.value)};
    }
    case Family::three: {
      const std::size_t middle = between(random, rank, std::max(rank, 2 * d));
      // Numbers of few bits are summed in float32, and stay there between two products.
      const Precision& between_products = precision.once() ? kPrecisions[2] : precision;
      if (random.below(2) == 0) {  // X(AB): of some rows of X hardly anything is left
        // A of small integers and X of 24 bits, so that XA, which the verdicts are those of, is exact.
        Computed x = stored(gaussian(random, n, middle, precision.wide() ? kPrecisions[2] : precision)),
                 a = stored(fill(middle, rank, precision, [&](std::size_t i, std::size_t c) {
                   return i < rank ? (i == c ? 1.0 : 0.0) : static_cast<double>(random.below(5)) - 2;
                 }));
        Computed truth = product(random, x, a, wide);
        return {product(random, x,
                        product(random, a, stored(gaussian(random, rank, d, precision)), between_products),
                        precision),
                rank, std::move(truth.value)};
      }
      Computed z = stored(gaussian(random, n, rank, precision)),
               q = stored(gaussian(random, rank, middle, precision)),
               w = stored(gaussian(random, middle, d, precision));
      return {product(random, product(random, z, q, between_products), w, precision), rank,
              std::move(z.value)};
    }
    case Family::scaled: {
      Computed z = stored(gaussian(random, n, rank, precision));
      // Far apart in size they are for integers, which are slow in many dimensions.
      const int reach = precision.bits == 11 ? 4 : d > 12 ? 6 : 40;
      std::vector<int> scale(d);
      for (int& s : scale) s = static_cast<int>(random.below(2 * static_cast<std::size_t>(reach))) - reach;
      const Computed q = stored(fill(
          rank, d, precision, [&](auto, std::size_t c) { return std::ldexp(random.normal(), scale[c]); }));
      return {product(random, z, q, precision), rank, std::move(z.value)};
    }
    case Family::shifted: {
      Computed z = stored(gaussian(random, n, rank, precision));
      // Numbers of few bits are rounded once, after the bias.
      Computed keys = product(random, z, stored(gaussian(random, rank, d, precision)),
                              precision.once() ? kPrecisions[2] : precision);
      const std::vector<double> bias = positive(random, d, 1, precision);
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t c = 0; c < d; ++c) {
          keys.value(i, c) = precision(keys.value(i, c) + bias[c]);
          keys.meant(i, c) += static_cast<long double>(bias[c]);
        }
      return {std::move(keys), rank, std::move(z.value)};
    }
    case Family::centred:
    case Family::layernorm:
    case Family::affine: {
      const std::size_t dimensions = std::max<std::size_t>(d, 3),
                        count = dimensions + 1 + random.below(2 * d + (family == Family::centred ? 30 : 10));
      // Of 24 bits, so that differences are exact.
      const Matrix<double> x =
          gaussian(random, count, dimensions, kPrecisions[2], static_cast<double>(random.below(2)));
      const bool scale = family != Family::centred;
      if (scale && least_deviation(x) < 0.3) return draw(random, family, d, precision);
      std::vector<double> gain, bias;
      if (family == Family::affine) {
        gain = positive(random, dimensions, 0.5, precision.wide() ? wide : kPrecisions[2]);
        bias = positive(random, dimensions, 1, precision.wide() ? wide : kPrecisions[2]);
      }
      Computed keys = precision.wide() ? normed<double>(x, scale, precision, gain, bias)
                                       : normed<float>(x, scale, precision, gain, bias);
      Matrix<double> truth;
      if (!scale) {
        truth = Matrix<double>(count, dimensions - 1);
        for (std::size_t i = 0; i < count; ++i)
          for (std::size_t c = 0; c + 1 < dimensions; ++c) truth(i, c) = x(i, c) - x(i, dimensions - 1);
      }
      return {std::move(keys), dimensions - 1, std::move(truth)};
    }
    case Family::lattice: {
      const auto small = [&](auto, auto) { return static_cast<double>(random.below(5)) - 2; };
      Computed z = stored(fill(n, rank, precision, small));
      Matrix<double> map(rank, d);  // the identity and small integers, so that it has its full rank
      for (std::size_t k = 0; k < rank; ++k)
        for (std::size_t c = 0; c < d; ++c)
          map(k, c) = c < rank ? (c == k ? 1 : 0) : static_cast<double>(random.below(3)) - 1;
      Computed q = stored(std::move(map));
      Computed keys = product(random, z, q, wide);
      return {std::move(keys), rank, std::move(z.value)};
    }
    case Family::copied: {
      Computed z = stored(gaussian(random, n, rank, precision));
      Computed keys = stored(Matrix<double>(n, d));
      for (std::size_t c = 0; c < d; ++c) {
        const std::size_t from = c < rank ? c : random.below(rank);
        const double factor =
            c < rank ? 1 : std::ldexp(random.below(2) == 0 ? 1 : -1, static_cast<int>(random.below(5)) - 2);
        for (std::size_t i = 0; i < n; ++i)
          keys.value(i, c) = z.value(i, from) * factor,
                        keys.meant(i, c) = static_cast<long double>(keys.value(i, c));
      }
      return {std::move(keys), rank, std::move(z.value)};
    }
  }
  return {};
}

std::size_t affine_rank(const Matrix<double>& truth) {
  return ExactKeys(truth.view(), {}).rank();
}

}  // namespace

FlatSet draw_flat_set(std::uint64_t seed, std::uint64_t index, std::size_t largest) {
  const auto family = static_cast<Family>(index % kFamilies.size());
  Precision precision = kPrecisions[index / kFamilies.size() % kPrecisions.size()];
  Random random(seed, index);
  while (true) {
    const std::size_t d = dimension(random, 2, largest);
    Drawn drawn = draw(random, family, d, precision);
    if (family == Family::lattice) drawn.rank = affine_rank(drawn.truth);
    if (family == Family::three && looks_like_information(drawn.keys, drawn.rank, precision)) continue;
    if (drawn.rank == 0 || !stands_out(drawn.keys, drawn.rank, precision)) continue;
    FlatSet set;
    set.name = std::string(kFamilies[static_cast<std::size_t>(family)]) + ", " + precision.name;
    set.unit_roundoff = precision.roundoff();
    set.smallest_rounding = std::ldexp(0.5, precision.smallest_exponent);
    set.rank = drawn.rank;
    set.truth = std::move(drawn.truth);
    set.rounded_once = precision.once();
    for (std::size_t i = 0; i < drawn.keys.value.rows(); ++i) {
      long double squares = 0;
      for (std::size_t c = 0; c < drawn.keys.value.cols(); ++c) {
        const long double off = static_cast<long double>(drawn.keys.value(i, c)) - drawn.keys.meant(i, c);
        squares += off * off;
      }
      set.errors.push_back(static_cast<double>(1.001L * std::sqrt(squares)));
    }
    set.keys = std::move(drawn.keys.value);
    return set;
  }
}

FlatTally& FlatTally::operator+=(FlatTally&& other) {
  add_fields(*this, other, &FlatTally::sets, &FlatTally::keys, &FlatTally::wrong_rank, &FlatTally::wrong,
             &FlatTally::within_errors, &FlatTally::not_robust, &FlatTally::invalid);
  std::move(other.failures.begin(), other.failures.end(), std::back_inserter(failures));
  return *this;
}

FlatTally compare_flat_set(std::uint64_t seed, std::uint64_t index, std::size_t largest) {
  const FlatSet set = draw_flat_set(seed, index, largest);
  const std::size_t n = set.keys.rows(), d = set.keys.cols();
  FlatTally tally;
  tally.sets = 1;
  tally.keys = n;
  const auto fail = [&](const std::string& what) {
    tally.failures.push_back(set.name + ", " + std::to_string(n) + " × " + std::to_string(d) + ", rank " +
                             std::to_string(set.rank) + ", seed " + std::to_string(seed) + ", set " +
                             std::to_string(index) + ": " + what);
  };
  const Executor alone(1);
  KeyOptions options;
  options.unit_roundoff = set.unit_roundoff;
  options.smallest_rounding = set.smallest_rounding;
  options.margins = Margins::bound;
  const KeySet as_rounded = decide_keys(set.keys.view(), {}, options, alone);
  if (as_rounded.rank != set.rank) {
    ++tally.wrong_rank;
    fail("rank " + std::to_string(as_rounded.rank) + " found");
    return tally;
  }
  options.errors = set.errors;
  options.projected_out = d - set.rank;  // the flat is known
  const KeySet decided = decide_keys(set.keys.view(), {}, options, alone);

  std::vector<Verdict> truth(n, Verdict::selectable);
  if (set.truth.rows() > 0) {
    KeyOptions plain;
    plain.rank = RankPolicy::full;
    plain.margins = Margins::bound;
    plain.certificates = false;
    const KeySet flat = decide_keys(set.truth.view(), {}, plain, alone);
    for (std::size_t i = 0; i < n; ++i) truth[i] = flat.keys[i].verdict;
  }
  const double largest_error = *std::max_element(set.errors.begin(), set.errors.end());
  for (std::size_t i = 0; i < n; ++i) {
    const KeyVerdict& key = decided.keys[i];
    tally.not_robust += !key.robust;
    if (key.verdict == truth[i]) continue;
    const std::string what =
        "key " + std::to_string(i) + " is " + name_of(truth[i]) + ", decided as " + name_of(key.verdict);
    if (key.robust || largest_error == 0)
      ++tally.wrong, fail(what);
    else if (set.rounded_once && as_rounded.keys[i].robust)
      ++tally.wrong, fail(what + ", robust against rounding");
    else
      ++tally.within_errors;
  }

  // On the coordinates kept, verdicts and certificates are exact.
  if (n * d > 300 || decided.rank == 0) return tally;
  const Matrix<double> kept = decided.kept.empty() ? set.keys : on_coordinates(set.keys, decided.kept);
  const ExactKeys exact(kept.view(), {}), all(set.keys.view(), {});
  for (std::size_t i = 0; i < n; ++i) {
    const KeyVerdict& key = decided.keys[i];
    if (const Verdict expected = oracle_verdict(exact, i); expected != key.verdict) {
      ++tally.wrong;
      fail("key " + std::to_string(i) + " is " + name_of(expected) + " on the kept coordinates, decided as " +
           name_of(key.verdict));
    }
    // A witness of a selectable key holds on all coordinates; what else proves a verdict, on those kept.
    KeyVerdict seen = key;
    if (key.verdict != Verdict::selectable && !key.witness.empty() && !decided.kept.empty()) {
      seen.witness.clear();
      for (const std::size_t c : decided.kept) seen.witness.push_back(key.witness[c]);
    }
    const std::string problem = check_certificate(key.verdict == Verdict::selectable ? all : exact, i, seen);
    if (!problem.empty()) ++tally.invalid, fail("key " + std::to_string(i) + ": " + problem);
  }

  // No query gives more than the bound of the largest weight, whatever it makes of the rounding.
  options.query_norm =
      100 / std::max(1e-300, std::abs(*std::max_element(set.keys.values().begin(), set.keys.values().end())));
  const KeySet weighed = decide_keys(set.keys.view(), {}, options, alone);
  Random random(seed, index + 1);
  for (int attempt = 0; attempt < 40; ++attempt) {
    std::vector<double> query(d);
    for (double& q : query) q = attempt < 2 ? (attempt == 0 ? 1 : -1) : random.normal();
    const double size = std::sqrt(std::inner_product(query.begin(), query.end(), query.begin(), 0.0));
    std::vector<double> scores(n);
    for (std::size_t i = 0; i < n; ++i)
      scores[i] = std::inner_product(query.begin(), query.end(), set.keys[i].begin(), 0.0) *
                  *options.query_norm / size;
    const double top = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (double score : scores) sum += std::exp(score - top);
    for (std::size_t i = 0; i < n; ++i)
      if (std::exp(scores[i] - top) / sum > *weighed.keys[i].max_weight_bound * (1 + 1e-9)) {
        ++tally.invalid;
        fail("key " + std::to_string(i) + " can have more than the bound of its largest weight");
      }
  }
  return tally;
}

}  // namespace normscope::oracle

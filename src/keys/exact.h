#pragma once
// Verdicts in exact arithmetic, for what floating point cannot decide. Float input is an exact rational, so
// "exact" means: for the very numbers given.
//
// Cover space: find λ ≥ 0 with Σ λ_j (k_j − k_i) = 0, Σ λ_j (b_j − b_i) ≥ 0, Σ λ_j = 1 over the other keys,
// by a revised simplex method in integers (Edmonds' integer pivoting: the basis inverse is kept as adjugate
// and determinant, so no fraction is ever reduced). Infeasible: the dual is a witness. Feasible: a basic
// solution is a cover; further rounds look for covers that use further keys, until they span the hull
// (relative interior, unselectable) or the dual shows a query that ties exactly the keys found (tied). Prices
// are screened in floating point with an error bound; only the unclear ones are computed exactly.
#ifdef __EMSCRIPTEN__  // no GMP there: the same arithmetic, slower
#include <boost/multiprecision/cpp_int.hpp>
#else
#include <boost/multiprecision/gmp.hpp>
#endif
#include <cstddef>
#include <span>
#include <vector>

#include "normscope/keys.h"

namespace normscope {

#ifdef __EMSCRIPTEN__
using IntegerBackend = boost::multiprecision::cpp_int_backend<>;
using RationalBackend = boost::multiprecision::cpp_rational_backend;
#else
using IntegerBackend = boost::multiprecision::gmp_int;
using RationalBackend = boost::multiprecision::gmp_rational;
#endif
using Integer = boost::multiprecision::number<IntegerBackend, boost::multiprecision::et_off>;
using Rational = boost::multiprecision::number<RationalBackend, boost::multiprecision::et_off>;

// Rational arithmetic stops here, by what it was allowed: verdicts and margins beyond it stay unknown.
struct BeyondEffort {};

// What rational arithmetic may take for one key. Counted, not timed, so that answers do not depend on the
// machine.
class Effort {
 public:
  explicit Effort(double products) : left_(products) {}  // of 64-bit words
  // `products` of numbers of so many bits, each followed by an exact division.
  void spend(std::size_t products, long bits) {
    const double words = static_cast<double>(bits) / 64 + 1;
    left_ -= 3 * words * words * static_cast<double>(products);
    if (left_ < 0) throw BeyondEffort();
  }
  // So many numbers of so many bits at a time.
  static void hold(std::size_t numbers, long bits) {
    constexpr double kMostBytes = 0x1p28;
    if (static_cast<double>(numbers) * (static_cast<double>(bits) / 8 + 16) > kMostBytes)
      throw BeyondEffort();
  }

 private:
  double left_;
};

struct ExactTerm {
  std::size_t index;
  Rational weight;
};

struct ExactVerdict {
  Verdict verdict = Verdict::selectable;
  std::vector<Integer> query;  // witness direction on the points' coordinates, up to a positive factor
  Integer offset_factor = 0;   // with offsets: the query is query / offset_factor (0: any large multiple)
  std::vector<ExactTerm> cover;
  std::vector<ExactTerm> interior;
  std::vector<std::size_t> tied_with;
};

// points: the first `count` rows are the (distinct) keys, in the coordinates that matter. offsets: empty or
// one per row. `hint` lists keys likely to be in the answer; they are tried first. Throws BeyondEffort.
ExactVerdict decide_exactly(MatrixView<const double> points, std::span<const double> offsets,
                            std::size_t count, std::size_t key, std::span<const std::size_t> hint,
                            Effort& effort);

// The witness of a selectable key as an exact query: the direction, over the offset factor if there are
// offsets (at factor 0 the multiple of it that is large enough to win).
std::vector<Rational> exact_query(const ExactVerdict& verdict, MatrixView<const double> points,
                                  std::span<const double> offsets, std::size_t key);

// Exact barycentric coordinates of `key` in the listed keys; empty if they are not affinely independent, or
// the key is not in their affine hull. With offsets only the keys' coordinates enter. Throws BeyondEffort.
std::vector<Rational> barycentric_coordinates(MatrixView<const double> points, std::size_t key,
                                              std::span<const std::size_t> members, Effort& effort);

// Whether all keys lie, exactly, in a flat of that dimension. Throws BeyondEffort.
bool lies_in_flat(MatrixView<const double> keys, std::size_t dimension, Effort& effort);

// Sign of the exact value of query·(k_i − k_j) + (b_i − b_j).
int exact_score_difference_sign(std::span<const double> query, MatrixView<const double> keys,
                                std::span<const double> offsets, std::size_t i, std::size_t j);

Rational rational(double value);  // exactly
// value / 2^lowest, for an exponent no higher than the value's own; the lowest of a matrix suits all its
// entries.
Integer scaled(double value, int lowest);
int lowest_exponent(MatrixView<const double> values);
// value / 2^shift as a double, rounded once or twice; |value| may exceed the range of doubles.
double rounded(const Integer& value, long shift);
// value /= divisor, which is known to leave no remainder.
void divide_exactly(Integer& value, const Integer& divisor);
long bits(const Integer& value);  // of the magnitude; 0 for 0

// A power of two near the largest magnitude (1 if all are zero).
Rational power_of_two_below(std::span<const Rational> values);

}  // namespace normscope

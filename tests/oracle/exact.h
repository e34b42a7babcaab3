#pragma once
// Exact arithmetic under the oracle: keys as integers, and fraction-free elimination on them.
//
// A double is an integer times a power of two, so each coordinate of a key set becomes integers after one
// exact scaling of that coordinate. Scaling a coordinate changes neither affine ranks nor convex weights, and
// only rescales the matching coordinate of a query. Nothing here shares code with the engine it judges.
#include <boost/multiprecision/gmp.hpp>
#include <cstddef>
#include <span>
#include <vector>

#include "normscope/matrix.h"

namespace normscope::oracle {

using Integer = boost::multiprecision::number<boost::multiprecision::gmp_int, boost::multiprecision::et_off>;
using IntegerMatrix = std::vector<std::vector<Integer>>;

struct ScaledIntegers {
  std::vector<Integer> values;
  int exponent = 0;  // the number meant is values[c] · 2^exponent
};
// Finite values[c] · 2^exponents[c] (exponents may be empty: all 0) over one common power of two.
ScaledIntegers scale_to_integers(std::span<const double> values, std::span<const int> exponents = {});

// numerator / denominator, correct to a few units in the last place even where either overflows a double.
double ratio(const Integer& numerator, const Integer& denominator);

// A key set as integers. Column d holds the offsets (all zero when there are none): in this *lifted* space
// the score of key j is (q, 1)·(k_j, b_j).
class ExactKeys {
 public:
  ExactKeys(MatrixView<const double> keys, std::span<const double> offsets);

  std::size_t count() const { return values_.size(); }
  std::size_t dimensions() const { return exponents_.size() - 1; }
  bool has_offsets() const { return has_offsets_; }
  // Coordinate c of key j is at(j, c) · 2^exponent(c).
  const Integer& at(std::size_t j, std::size_t c) const { return values_[j][c]; }
  int exponent(std::size_t c) const { return exponents_[c]; }
  std::span<const int> exponents() const { return exponents_; }
  // (k_i − k_j, b_i − b_j), each coordinate in its own power of two.
  std::vector<Integer> difference(std::size_t i, std::size_t j) const;

  // Dimension of the affine hull of the keys, and of the points (k_j, b_j).
  std::size_t rank() const { return rank_; }
  std::size_t lifted_rank() const { return lifted_rank_; }
  // Dimension of the affine hull of some of the points (k_j, b_j); the list must not be empty.
  std::size_t lifted_rank(std::span<const std::size_t> subset) const;

 private:
  bool has_offsets_;
  std::vector<int> exponents_;
  IntegerMatrix values_;
  std::size_t rank_ = 0, lifted_rank_ = 0;
};

// Reduced row echelon form over a common denominator: row r holds `determinant` in column pivots[r] and zero
// in every other pivot column; rows from pivots.size() on are zero.
struct Echelon {
  IntegerMatrix rows;
  std::vector<std::size_t> pivots;
  Integer determinant = 1;
};
Echelon eliminate(IntegerMatrix matrix);

// value ← (value · pivot − left · right) / previous, where the division is known to leave no remainder: by
// Sylvester's identity every entry of a fraction-free elimination is a minor of the input.
void fraction_free_step(Integer& value, const Integer& pivot, const Integer& left, const Integer& right,
                        const Integer& previous);

}  // namespace normscope::oracle

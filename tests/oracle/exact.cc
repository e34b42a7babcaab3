#include "oracle/exact.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

namespace normscope::oracle {
namespace {

struct Dyadic {
  std::int64_t mantissa;  // odd, or 0
  int exponent;
};

Dyadic split(double value) {
  if (value == 0) return {0, 0};
  int exponent = 0;
  auto mantissa = static_cast<std::int64_t>(std::ldexp(std::frexp(value, &exponent), 53));
  exponent -= 53;
  const int zeros = std::countr_zero(static_cast<std::uint64_t>(mantissa));
  return {mantissa / (std::int64_t{1} << zeros), exponent + zeros};
}

std::size_t rank_of_differences(const ExactKeys& keys, std::span<const std::size_t> subset, bool lifted) {
  IntegerMatrix rows;
  for (std::size_t j : subset.subspan(1)) {
    rows.push_back(keys.difference(subset.front(), j));
    if (!lifted) rows.back().pop_back();
  }
  return eliminate(std::move(rows)).pivots.size();
}

}  // namespace

ScaledIntegers scale_to_integers(std::span<const double> values, std::span<const int> exponents) {
  std::vector<Dyadic> parts;
  int lowest = INT_MAX;
  for (std::size_t c = 0; c < values.size(); ++c) {
    parts.push_back(split(values[c]));
    if (parts.back().mantissa == 0) continue;
    if (!exponents.empty()) parts.back().exponent += exponents[c];
    lowest = std::min(lowest, parts.back().exponent);
  }
  ScaledIntegers scaled;
  scaled.exponent = lowest == INT_MAX ? 0 : lowest;
  for (const Dyadic& part : parts) {
    scaled.values.emplace_back(part.mantissa);
    if (part.mantissa != 0) scaled.values.back() <<= part.exponent - lowest;
  }
  return scaled;
}

double ratio(const Integer& numerator, const Integer& denominator) {
  long top = 0, bottom = 0;
  const double above = mpz_get_d_2exp(&top, numerator.backend().data());
  const double below = mpz_get_d_2exp(&bottom, denominator.backend().data());
  return std::ldexp(above / below, static_cast<int>(std::clamp(top - bottom, -5000L, 5000L)));
}

ExactKeys::ExactKeys(MatrixView<const double> keys, std::span<const double> offsets)
    : has_offsets_(!offsets.empty()),
      exponents_(keys.cols + 1),
      values_(keys.rows, std::vector<Integer>(keys.cols + 1)) {
  std::vector<double> column(keys.rows);
  for (std::size_t c = 0; c <= keys.cols; ++c) {
    for (std::size_t j = 0; j < keys.rows; ++j) {
      column[j] = c < keys.cols ? keys(j, c) : has_offsets_ ? offsets[j] : 0.0;
    }
    ScaledIntegers scaled = scale_to_integers(column);
    exponents_[c] = scaled.exponent;
    for (std::size_t j = 0; j < keys.rows; ++j) values_[j][c] = std::move(scaled.values[j]);
  }
  std::vector<std::size_t> all(keys.rows);
  std::iota(all.begin(), all.end(), std::size_t{0});
  if (all.empty()) return;
  rank_ = rank_of_differences(*this, all, false);
  lifted_rank_ = has_offsets_ ? rank_of_differences(*this, all, true) : rank_;
}

std::vector<Integer> ExactKeys::difference(std::size_t i, std::size_t j) const {
  std::vector<Integer> result(exponents_.size());
  for (std::size_t c = 0; c < result.size(); ++c) result[c] = values_[i][c] - values_[j][c];
  return result;
}

std::size_t ExactKeys::lifted_rank(std::span<const std::size_t> subset) const {
  return rank_of_differences(*this, subset, true);
}

void fraction_free_step(Integer& value, const Integer& pivot, const Integer& left, const Integer& right,
                        const Integer& previous) {
  mpz_t& target = value.backend().data();
  mpz_mul(target, target, pivot.backend().data());
  mpz_submul(target, left.backend().data(), right.backend().data());
  mpz_divexact(target, target, previous.backend().data());
}

Echelon eliminate(IntegerMatrix matrix) {
  Echelon echelon;
  const std::size_t rows = matrix.size(), columns = rows == 0 ? 0 : matrix.front().size();
  for (std::size_t column = 0; column < columns && echelon.pivots.size() < rows; ++column) {
    const std::size_t top = echelon.pivots.size();
    std::size_t found = top;
    while (found < rows && matrix[found][column] == 0) ++found;
    if (found == rows) continue;
    std::swap(matrix[top], matrix[found]);
    const Integer pivot = matrix[top][column];
    for (std::size_t row = 0; row < rows; ++row) {
      if (row == top) continue;
      const Integer left = std::exchange(matrix[row][column], Integer(0));
      for (std::size_t k = 0; k < columns; ++k) {
        if (k != column) {
          fraction_free_step(matrix[row][k], pivot, left, matrix[top][k], echelon.determinant);
        }
      }
    }
    echelon.determinant = pivot;
    echelon.pivots.push_back(column);
  }
  echelon.rows = std::move(matrix);
  return echelon;
}

}  // namespace normscope::oracle

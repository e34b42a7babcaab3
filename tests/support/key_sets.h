#pragma once
// Sets of keys to decide, and what every decided set must be.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "normscope/keys.h"
#include "normscope/random.h"
#include "oracle/certificate.h"
#include "oracle/oracle.h"

namespace normscope {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr Verdict kSelectable = Verdict::selectable, kTied = Verdict::tied,
                         kUnselectable = Verdict::unselectable;

inline Matrix<double> matrix(const std::vector<std::vector<double>>& rows) {
  Matrix<double> keys(rows.size(), rows.at(0).size());
  for (std::size_t i = 0; i < rows.size(); ++i) std::copy(rows[i].begin(), rows[i].end(), keys[i].begin());
  return keys;
}

inline Matrix<double> gaussian(Random& random, std::size_t n, std::size_t d) {
  Matrix<double> keys(n, d);
  for (std::size_t i = 0; i < n; ++i)
    for (double& value : keys[i]) value = random.normal();
  return keys;
}

// Small integers: duplicates, collinear and coplanar keys abound, and moves by integers round nothing.
inline Matrix<double> lattice(Random& random, std::size_t n, std::size_t d, std::uint64_t width) {
  Matrix<double> keys(n, d);
  for (std::size_t i = 0; i < n; ++i)
    for (double& value : keys[i]) value = static_cast<double>(random.below(width));
  return keys;
}

inline std::vector<double> gaussian_list(Random& random, std::size_t n, double size = 1) {
  std::vector<double> list(n);
  for (double& value : list) value = size * random.normal();
  return list;
}

inline std::vector<double> unit_vector(Random& random, std::size_t d) {
  std::vector<double> v = gaussian_list(random, d);
  const double size = std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
  for (double& value : v) value /= size;
  return v;
}

inline KeySet decide(const Matrix<double>& keys, std::span<const double> offsets = {},
                     const KeyOptions& options = {}, int threads = 1) {
  return decide_keys(keys.view(), offsets, options, Executor(threads));
}

inline std::vector<Verdict> verdicts(const KeySet& set) {
  std::vector<Verdict> list;
  for (const KeyVerdict& key : set.keys) list.push_back(key.verdict);
  return list;
}

// Verdicts are the oracle's and certificates prove them.
inline void expect_proven(const Matrix<double>& keys, std::span<const double> offsets, const KeySet& set) {
  ASSERT_EQ(set.keys.size(), keys.rows());
  const oracle::ExactKeys exact(keys.view(), offsets);
  for (std::size_t i = 0; i < keys.rows(); ++i) {
    EXPECT_STREQ(name_of(set.keys[i].verdict), name_of(oracle::oracle_verdict(exact, i))) << "key " << i;
    EXPECT_EQ(oracle::check_certificate(exact, i, set.keys[i]), "") << "key " << i;
  }
}

inline void expect_no_nan(const KeySet& set) {
  EXPECT_TRUE(std::isfinite(set.rank_tolerance));
  for (const KeyVerdict& key : set.keys) {
    EXPECT_GE(key.margin, 0);
    EXPECT_EQ(std::isfinite(key.margin), set.n > 1);
    EXPECT_GE(key.depth, 0);
    EXPECT_TRUE(std::isfinite(key.depth));
    for (double q : key.witness) EXPECT_TRUE(std::isfinite(q));
    for (const CoverTerm& term : key.cover) EXPECT_GE(term.weight, 0);
    for (const CoverTerm& term : key.interior) EXPECT_GE(term.weight, 0);
    if (key.max_weight) {
      EXPECT_LE(*key.max_weight, *key.max_weight_bound);
    }
  }
}

// min_j over the others of q·(k_i − k_j) + (b_i − b_j), relative to ‖q‖, or to ‖(q, 1)‖ with offsets.
inline double achieved_margin(const Matrix<double>& keys, std::span<const double> offsets, std::size_t i,
                              std::span<const double> query) {
  double least = kInfinity;
  for (std::size_t j = 0; j < keys.rows(); ++j) {
    if (j == i) continue;
    double gap = offsets.empty() ? 0 : offsets[i] - offsets[j];
    for (std::size_t c = 0; c < keys.cols(); ++c) gap += query[c] * (keys(i, c) - keys(j, c));
    least = std::min(least, gap);
  }
  double squares = offsets.empty() ? 0 : 1;
  for (double q : query) squares += q * q;
  return least / std::sqrt(squares);
}

}  // namespace normscope

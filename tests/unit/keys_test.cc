// Which keys attention can select: the definitions, the numbers that come with a verdict, and what must not
// change it.
#include "normscope/keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numbers>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "normscope/error.h"
#include "normscope/norm.h"
#include "normscope/random.h"
#include "oracle/certificate.h"
#include "oracle/oracle.h"

namespace normscope {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Verdict kSelectable = Verdict::selectable, kTied = Verdict::tied,
                  kUnselectable = Verdict::unselectable;

Matrix<double> matrix(const std::vector<std::vector<double>>& rows) {
  Matrix<double> keys(rows.size(), rows.at(0).size());
  for (std::size_t i = 0; i < rows.size(); ++i) std::copy(rows[i].begin(), rows[i].end(), keys[i].begin());
  return keys;
}

Matrix<double> gaussian(Random& random, std::size_t n, std::size_t d) {
  Matrix<double> keys(n, d);
  for (std::size_t i = 0; i < n; ++i)
    for (double& value : keys[i]) value = random.normal();
  return keys;
}

// Small integers: duplicates, collinear and coplanar keys abound, and moves by integers round nothing.
Matrix<double> lattice(Random& random, std::size_t n, std::size_t d, std::uint64_t width) {
  Matrix<double> keys(n, d);
  for (std::size_t i = 0; i < n; ++i)
    for (double& value : keys[i]) value = static_cast<double>(random.below(width));
  return keys;
}

std::vector<double> gaussian_list(Random& random, std::size_t n) {
  std::vector<double> list(n);
  for (double& value : list) value = random.normal();
  return list;
}

std::vector<double> unit_vector(Random& random, std::size_t d) {
  std::vector<double> v = gaussian_list(random, d);
  const double size = std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
  for (double& value : v) value /= size;
  return v;
}

KeySet decide(const Matrix<double>& keys, std::span<const double> offsets = {},
              const KeyOptions& options = {}, int threads = 1) {
  return decide_keys(keys.view(), offsets, options, Executor(threads));
}

std::vector<Verdict> verdicts(const KeySet& set) {
  std::vector<Verdict> list;
  for (const KeyVerdict& key : set.keys) list.push_back(key.verdict);
  return list;
}

// Verdicts are the oracle's and certificates prove them.
void expect_proven(const Matrix<double>& keys, std::span<const double> offsets, const KeySet& set) {
  ASSERT_EQ(set.keys.size(), keys.rows());
  const oracle::ExactKeys exact(keys.view(), offsets);
  for (std::size_t i = 0; i < keys.rows(); ++i) {
    EXPECT_STREQ(name_of(set.keys[i].verdict), name_of(oracle::oracle_verdict(exact, i))) << "key " << i;
    EXPECT_EQ(oracle::check_certificate(exact, i, set.keys[i]), "") << "key " << i;
  }
}

void expect_no_nan(const KeySet& set) {
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
double achieved_margin(const Matrix<double>& keys, std::span<const double> offsets, std::size_t i,
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

TEST(Keys, AKeyInsideTheHullIsNeverSelected) {
  // Corners, centre, the middle of the edge 0–1.
  const Matrix<double> keys = matrix({{0, 0}, {2, 0}, {2, 2}, {0, 2}, {1, 1}, {1, 0}});
  const KeySet set = decide(keys);
  EXPECT_EQ(verdicts(set),
            (std::vector<Verdict>{kSelectable, kSelectable, kSelectable, kSelectable, kUnselectable, kTied}));
  EXPECT_EQ(set.n, 6u);
  EXPECT_EQ(set.d, 2u);
  EXPECT_EQ(set.rank, 2u);
  EXPECT_EQ(set.counts.selectable, 4u);
  EXPECT_EQ(set.counts.tied, 1u);
  EXPECT_EQ(set.counts.unselectable, 1u);
  EXPECT_NEAR(set.keys[0].margin, 2 / std::sqrt(5), 1e-12);  // the line from (1, 0) to (0, 2)
  EXPECT_NEAR(set.keys[2].margin, std::sqrt(2), 1e-12);      // the line from (2, 0) to (0, 2)
  EXPECT_GT(set.keys[4].depth, 0);
  EXPECT_LE(set.keys[4].depth, 1);
  expect_proven(keys, {}, set);
}

TEST(Keys, AKeyOnAnEdgeIsTiedWithItsEnds) {
  const Matrix<double> keys = matrix({{0, 0}, {2, 0}, {2, 2}, {0, 2}, {1, 1}, {1, 0}});
  const KeyVerdict middle = decide(keys).keys[5];
  EXPECT_EQ(middle.tied_with, (std::vector<std::size_t>{0, 1}));
  ASSERT_EQ(middle.cover.size(), 2u);
  for (const CoverTerm& term : middle.cover) {
    EXPECT_LE(term.index, 1u);
    EXPECT_DOUBLE_EQ(term.weight, 0.5);
  }
  ASSERT_EQ(middle.witness.size(), 2u);
  EXPECT_EQ(middle.witness[0], 0);
  EXPECT_LT(middle.witness[1], 0);
  EXPECT_EQ(middle.margin, 0);
  EXPECT_FALSE(middle.robust);
}

TEST(Keys, EqualKeysAtAVertexAreTied) {
  const Matrix<double> keys = matrix({{0, 0}, {4, 0}, {0, 4}, {4, 0}, {1, 1}, {1, 1}});
  const KeySet set = decide(keys);
  EXPECT_EQ(verdicts(set),
            (std::vector<Verdict>{kSelectable, kTied, kSelectable, kTied, kUnselectable, kUnselectable}));
  EXPECT_EQ(set.keys[1].tied_with, (std::vector<std::size_t>{3}));
  EXPECT_EQ(set.keys[3].tied_with, (std::vector<std::size_t>{1}));
  EXPECT_EQ(set.keys[1].margin, 0);
  EXPECT_EQ(set.keys[1].cover.size(), 1u);
  EXPECT_EQ(set.keys[3].cover.at(0).index, 1u);
  EXPECT_EQ(set.robust_counts.tied, 0u);
  expect_proven(keys, {}, set);
}

TEST(Keys, OnASegmentTheEndsAreSelectableAndTheRestNot) {
  const Matrix<double> keys = matrix({{1, 2}, {0, 0}, {3, 6}, {2, 4}});
  for (RankPolicy rank : {RankPolicy::numerical, RankPolicy::full}) {
    KeyOptions options;
    options.rank = rank;
    const KeySet set = decide(keys, {}, options);
    EXPECT_EQ(verdicts(set), (std::vector<Verdict>{kUnselectable, kSelectable, kSelectable, kUnselectable}));
    EXPECT_EQ(set.rank, rank == RankPolicy::numerical ? 1u : 2u);
    EXPECT_NEAR(set.keys[1].margin, std::sqrt(5), 1e-12);
    EXPECT_NEAR(set.keys[2].margin, std::sqrt(5), 1e-12);
    expect_proven(keys, {}, set);
  }
  EXPECT_GT(decide(keys).keys[0].depth, 0);
  EXPECT_LE(decide(keys).keys[0].depth, std::sqrt(5) * (1 + 1e-12));
}

TEST(Keys, KeysThatAreAllEqualAreTied) {
  for (double value : {0.0, 3.5, -1e200}) {
    const Matrix<double> keys = matrix({{value, value}, {value, value}, {value, value}});
    for (RankPolicy rank : {RankPolicy::numerical, RankPolicy::full}) {
      KeyOptions options;
      options.rank = rank;
      const KeySet set = decide(keys, {}, options);
      EXPECT_EQ(set.counts.tied, 3u) << value;
      EXPECT_EQ(set.keys[1].tied_with, (std::vector<std::size_t>{0, 2}));
      expect_proven(keys, {}, set);
      if (rank == RankPolicy::numerical) {
        EXPECT_EQ(set.rank, 0u);
      }
    }
  }
}

TEST(Keys, OneKeyAloneIsSelectableWithInfiniteMargin) {
  for (const std::vector<double>& key : {std::vector<double>{0}, {7, -2, 0}, {1e300, 1e-300}}) {
    const KeySet set = decide(matrix({key}));
    EXPECT_EQ(set.counts.selectable, 1u);
    EXPECT_EQ(set.keys[0].margin, kInfinity);
    EXPECT_TRUE(set.keys[0].robust);
    EXPECT_EQ(decide(matrix({key}), std::vector<double>{-5}).keys[0].verdict, kSelectable);
  }
}

TEST(Keys, OnALineOnlyTheTwoExtremesAreSelectable) {
  Random random(1);
  for (std::size_t n = 2; n <= 40; ++n) {
    const Matrix<double> keys = gaussian(random, n, 1);
    const KeySet set = decide(keys);
    const auto [low, high] = std::minmax_element(keys.values().begin(), keys.values().end());
    for (std::size_t i = 0; i < n; ++i) {
      const bool extreme = keys(i, 0) == *low || keys(i, 0) == *high;
      EXPECT_EQ(set.keys[i].verdict, extreme ? kSelectable : kUnselectable);
      if (!extreme) {
        EXPECT_LE(set.keys[i].depth, std::min(keys(i, 0) - *low, *high - keys(i, 0)));
      }
    }
    std::vector<double> sorted = keys.values();
    std::sort(sorted.begin(), sorted.end());
    EXPECT_NEAR(set.keys[static_cast<std::size_t>(high - keys.values().begin())].margin,
                sorted[n - 1] - sorted[n - 2], 1e-12);
  }
}

TEST(Keys, NoMoreKeysThanDimensionsAreAllSelectable) {
  Random random(2);
  for (std::size_t d = 1; d <= 12; ++d)
    for (std::size_t n = 1; n <= d + 1; ++n) {
      const KeySet set = decide(gaussian(random, n, d));
      EXPECT_EQ(set.counts.selectable, n) << n << " × " << d;
      EXPECT_EQ(set.robust_counts.selectable, n);
      EXPECT_EQ(set.rank, n - 1);
    }
}

TEST(Keys, OfACubeWithFaceCentresOnlyTheCornersAreSelectable) {
  std::vector<std::vector<double>> rows;
  for (int corner = 0; corner < 8; ++corner)
    rows.push_back({double(corner & 1), double(corner >> 1 & 1), double(corner >> 2)});
  for (std::size_t axis = 0; axis < 3; ++axis)
    for (double side : {0.0, 1.0}) {
      rows.push_back({0.5, 0.5, 0.5});
      rows.back()[axis] = side;
    }
  const Matrix<double> keys = matrix(rows);
  const KeySet set = decide(keys);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(set.keys[i].verdict, kSelectable);
    EXPECT_NEAR(set.keys[i].margin, 1 / std::sqrt(3), 1e-12);  // three neighbours and three face centres
  }
  for (std::size_t i = 8; i < 14; ++i) {
    EXPECT_EQ(set.keys[i].verdict, kTied);
    const std::size_t axis = (i - 8) / 2;
    std::vector<std::size_t> face;
    for (std::size_t corner = 0; corner < 8; ++corner)
      if (keys(corner, axis) == keys(i, axis)) face.push_back(corner);
    EXPECT_EQ(set.keys[i].tied_with, face);
  }
  expect_proven(keys, {}, set);
}

TEST(Keys, OffsetsLiftAKeyOutOfTheHullOrPushAVertexUnder) {
  const Matrix<double> keys = matrix({{-1}, {0}, {1}});
  EXPECT_EQ(decide(keys, std::vector<double>{0, 0, 0}).keys[1].verdict, kUnselectable);
  EXPECT_EQ(decide(keys, std::vector<double>{0, 0.5, 0}).keys[1].verdict, kSelectable);
  EXPECT_EQ(decide(keys, std::vector<double>{0, -0.5, 0}).keys[1].verdict, kUnselectable);
  // A large enough query outweighs any offset at a vertex; the lower of two equal keys is lost.
  EXPECT_EQ(decide(keys, std::vector<double>{-1000, 0, 0}).keys[0].verdict, kSelectable);
  const Matrix<double> twice = matrix({{-1}, {1}, {1}});
  EXPECT_EQ(verdicts(decide(twice, std::vector<double>{0, 1, 2})),
            (std::vector<Verdict>{kSelectable, kUnselectable, kSelectable}));
}

TEST(Keys, OffsetsThatAreAffineInTheKeysChangeNothing) {
  Random random(3);
  for (int draw = 0; draw < 40; ++draw) {
    const Matrix<double> keys = lattice(random, 2 + random.below(12), 1 + random.below(3), 5);
    std::vector<double> offsets(keys.rows(), 7.0);
    for (std::size_t i = 0; i < keys.rows(); ++i)
      for (std::size_t c = 0; c < keys.cols(); ++c) offsets[i] += keys(i, c) * static_cast<double>(c + 1);
    EXPECT_EQ(verdicts(decide(keys)), verdicts(decide(keys, offsets))) << "draw " << draw;
  }
}

TEST(Keys, TheMarginOfASimplexIsTheDistanceToTheOppositeFacet) {
  for (std::size_t d = 2; d <= 12; ++d) {
    Matrix<double> keys(d, d);  // e_1 … e_d: the centroid of the others is at distance √(d/(d−1))
    for (std::size_t i = 0; i < d; ++i) keys(i, i) = 1;
    const KeySet set = decide(keys);
    EXPECT_EQ(set.rank, d - 1);
    for (const KeyVerdict& key : set.keys)
      EXPECT_NEAR(key.margin, std::sqrt(static_cast<double>(d) / static_cast<double>(d - 1)), 1e-12);
  }
}

TEST(Keys, TheOriginLiesInsideTheCrossPolytope) {
  for (std::size_t d = 1; d <= 10; ++d) {
    Matrix<double> keys(2 * d + 1, d);
    for (std::size_t c = 0; c < d; ++c) keys(2 * c, c) = 1, keys(2 * c + 1, c) = -1;
    const KeySet set = decide(keys);
    EXPECT_EQ(set.counts.selectable, 2 * d);
    for (std::size_t i = 0; i < 2 * d; ++i) EXPECT_NEAR(set.keys[i].margin, 1, 1e-12);
    EXPECT_EQ(set.keys[2 * d].verdict, kUnselectable);
    EXPECT_GE(set.keys[2 * d].depth, 0);
    EXPECT_LE(set.keys[2 * d].depth, 1 / std::sqrt(static_cast<double>(d)) * (1 + 1e-12));  // the inradius
    if (d <= 5) expect_proven(keys, {}, set);
  }
}

TEST(Keys, TheMarginOfARegularPolygonIsTheHeightOfItsCap) {
  for (std::size_t n : {3, 4, 5, 7, 16, 50, 300}) {
    Matrix<double> keys(n, 2);
    const double step = 2 * std::numbers::pi / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i) {
      keys(i, 0) = std::cos(step * static_cast<double>(i));
      keys(i, 1) = std::sin(step * static_cast<double>(i));
    }
    const KeySet set = decide(keys);
    EXPECT_EQ(set.counts.selectable, n);
    // Between the proven bound and the margin: 1e-10 of it, and the rounding of keys of size 1.
    const double margin = n == 3 ? 1.5 : 1 - std::cos(step);
    for (const KeyVerdict& key : set.keys) EXPECT_NEAR(key.margin, margin, 1e-9 * margin + 1e-13) << n;
  }
}

TEST(Keys, TheMarginOfAFlatCapIsItsHeight) {
  for (double height : {1e-1, 1e-3, 1e-5, 1e-7, 1e-9, 1e-11}) {
    const Matrix<double> keys = matrix({{-1, 0}, {1, 0}, {0.3, height}, {0, -1}, {-0.5, -0.7}});
    for (bool with_offsets : {false, true}) {
      const std::vector<double> offsets =
          with_offsets ? std::vector<double>{0, 0, 0, 0, -1} : std::vector<double>();
      const KeyVerdict cap = decide(keys, offsets).keys[2];
      EXPECT_EQ(cap.verdict, kSelectable) << height;
      EXPECT_NEAR(cap.margin, height, 1e-9 * height + 1e-13) << height << ", offsets " << with_offsets;
    }
    EXPECT_TRUE(decide(keys).keys[2].robust) << height;  // far above the rounding of doubles of size 1
  }
}

TEST(Keys, TheMarginAboveALongThinFaceIsItsHeight) {
  // Nearest point: in the face of keys 0, 1, 2; the height above it from rational arithmetic.
  const Matrix<double> keys = matrix({{-0.92, -1.67, -0.92},
                                      {0.18, -2.26, 0.89},
                                      {-0.11, -2.06, 2.5},
                                      {0.5, -2.47, -1.54},
                                      {-0.38, -1.96, 0.17},
                                      {0.35, -1.25, -0.99}});
  constexpr double kHeight = 0.004040478574886702;
  EXPECT_NEAR(decide(keys).keys[4].margin, kHeight, 1e-9 * kHeight + 1e-13);
}

// The distance of (k_i, b_i) to the hull of the others and everything below it, by pairwise Frank-Wolfe on
// the weights: an interval that surely holds it.
struct Interval {
  double low, high;
};
Interval slow_margin(const Matrix<double>& keys, std::span<const double> offsets, std::size_t i) {
  const std::size_t d = keys.cols();
  std::vector<std::vector<double>> points;  // (k_j − k_i, b_j − b_i)
  for (std::size_t j = 0; j < keys.rows(); ++j) {
    if (j == i) continue;
    points.emplace_back(d + 1);
    for (std::size_t c = 0; c < d; ++c) points.back()[c] = keys(j, c) - keys(i, c);
    if (!offsets.empty()) points.back()[d] = offsets[j] - offsets[i];
  }
  const auto dot = [&](const std::vector<double>& a, const std::vector<double>& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  };
  // Going down is free, so only the part of the last coordinate below 0 counts.
  const auto lowered = [&](std::vector<double> x) {
    x[d] = std::min(x[d], 0.0);
    return x;
  };
  std::vector<double> weights(points.size(), 0.0), mean = points[0], moved(d + 1), direction(d + 1);
  weights[0] = 1;
  Interval found{0, kInfinity};
  for (int round = 0; round < 20000; ++round) {
    const std::vector<double> x = lowered(mean);
    std::size_t towards = 0, away = points.size();
    double least = kInfinity, most = -kInfinity;
    for (std::size_t j = 0; j < points.size(); ++j) {
      const double score = dot(x, points[j]);
      if (score < least) least = score, towards = j;
      if (weights[j] > 0 && score > most) most = score, away = j;
    }
    const double size = std::sqrt(dot(x, x));
    found.high = std::min(found.high, size);
    if (size > 0) found.low = std::max(found.low, least / size);
    if (found.high - found.low < 1e-9 || towards == away) break;
    for (std::size_t c = 0; c <= d; ++c) direction[c] = points[towards][c] - points[away][c];
    double low = 0, high = weights[away];
    const auto slope = [&](double step) {
      for (std::size_t c = 0; c <= d; ++c) moved[c] = mean[c] + step * direction[c];
      return dot(lowered(moved), direction);
    };
    if (slope(high) > 0)
      for (int halving = 0; halving < 60; ++halving) {
        const double middle = 0.5 * (low + high);
        (slope(middle) > 0 ? high : low) = middle;
      }
    else
      low = high;
    weights[towards] += low;
    weights[away] = low == weights[away] ? 0 : weights[away] - low;
    std::fill(mean.begin(), mean.end(), 0.0);
    for (std::size_t j = 0; j < points.size(); ++j)
      for (std::size_t c = 0; c <= d; ++c) mean[c] += weights[j] * points[j][c];
  }
  return found;
}

TEST(Keys, TheMarginIsTheDistanceToTheHullOfTheOthers) {
  Random random(4);
  std::size_t compared = 0;
  for (int draw = 0; draw < 120; ++draw) {
    const std::size_t d = 1 + random.below(6), n = 2 + random.below(14);
    const Matrix<double> keys = gaussian(random, n, d);
    const std::vector<double> offsets = draw % 2 == 0 ? std::vector<double>() : gaussian_list(random, n);
    const KeySet set = decide(keys, offsets);
    for (std::size_t i = 0; i < n; ++i) {
      const Interval slow = slow_margin(keys, offsets, i);
      if (set.keys[i].verdict != kSelectable) {
        EXPECT_EQ(set.keys[i].margin, 0);
        EXPECT_LT(slow.low, 1e-9);
        continue;
      }
      ++compared;
      ASSERT_LT(slow.high - slow.low, 1e-7) << "draw " << draw << ", key " << i;
      EXPECT_GE(set.keys[i].margin, slow.low - 1e-9) << "draw " << draw << ", key " << i;
      EXPECT_LE(set.keys[i].margin, slow.high + 1e-9) << "draw " << draw << ", key " << i;
    }
  }
  EXPECT_GT(compared, 500u);
}

TEST(Keys, TheBoundOfAMarginIsPositiveAndNoLargerThanTheMargin) {
  Random random(5);
  for (std::size_t n : {5, 40, 300})
    for (std::size_t d : {1, 3, 8, 32}) {
      for (bool with_offsets : {false, true}) {
        const Matrix<double> keys = gaussian(random, n, d);
        const std::vector<double> offsets = with_offsets ? gaussian_list(random, n) : std::vector<double>();
        KeyOptions options;
        const KeySet exact = decide(keys, offsets, options);
        options.margins = Margins::bound;
        const KeySet bound = decide(keys, offsets, options);
        EXPECT_EQ(verdicts(exact), verdicts(bound));
        for (std::size_t i = 0; i < n; ++i) {
          if (exact.keys[i].verdict != kSelectable) continue;
          EXPECT_GT(bound.keys[i].margin, 0);
          EXPECT_LE(bound.keys[i].margin, exact.keys[i].margin * (1 + 1e-9));
        }
      }
    }
}

TEST(Keys, TheWitnessAchievesTheMargin) {
  Random random(6);
  for (std::size_t n : {2, 6, 20, 60})
    for (std::size_t d : {1, 2, 5, 9}) {
      const Matrix<double> keys = gaussian(random, n, d);
      const KeySet set = decide(keys);
      for (std::size_t i = 0; i < n; ++i)
        if (set.keys[i].verdict == kSelectable) {
          EXPECT_NEAR(achieved_margin(keys, {}, i, set.keys[i].witness), set.keys[i].margin,
                      1e-10 * (1 + set.keys[i].margin));
        }
    }
}

TEST(Keys, TheWitnessOfABoundAchievesTheBound) {
  Random random(7);
  KeyOptions options;
  options.margins = Margins::bound;
  for (std::size_t d : {2, 6, 20}) {
    const Matrix<double> keys = gaussian(random, 250, d);
    const KeySet set = decide(keys, {}, options);
    for (std::size_t i = 0; i < 250; ++i) {
      if (set.keys[i].verdict != kSelectable) continue;
      EXPECT_GE(achieved_margin(keys, {}, i, set.keys[i].witness), set.keys[i].margin * (1 - 1e-12))
          << "d = " << d << ", key " << i;
    }
  }
}

TEST(Keys, WithOffsetsTheWitnessWinsAndIsNoBetterThanTheMargin) {
  Random random(8);
  for (int draw = 0; draw < 30; ++draw) {
    const std::size_t d = 1 + random.below(5), n = 2 + random.below(20);
    const Matrix<double> keys = gaussian(random, n, d);
    const std::vector<double> offsets = gaussian_list(random, n);
    const KeySet set = decide(keys, offsets);
    for (std::size_t i = 0; i < n; ++i) {
      if (set.keys[i].verdict != kSelectable) continue;
      const double achieved = achieved_margin(keys, offsets, i, set.keys[i].witness);
      EXPECT_GT(achieved, 0);
      EXPECT_LE(achieved, set.keys[i].margin * (1 + 1e-9));
    }
    expect_proven(keys, offsets, set);
  }
}

TEST(Keys, AMoveByLessThanTheDepthKeepsTheKeyUnselectable) {
  Random random(9);
  std::size_t moves = 0;
  for (int draw = 0; draw < 30; ++draw) {
    const std::size_t d = 1 + random.below(4), n = d + 4 + random.below(30);
    const Matrix<double> keys = gaussian(random, n, d);
    const KeySet set = decide(keys);
    for (std::size_t i = 0; i < n; ++i) {
      if (!(set.keys[i].depth > 0)) continue;
      for (int direction = 0; direction < 4; ++direction) {
        Matrix<double> moved = keys;
        const std::vector<double> step = unit_vector(random, d);
        for (std::size_t c = 0; c < d; ++c) moved(i, c) += 0.999999 * set.keys[i].depth * step[c];
        EXPECT_EQ(oracle::oracle_verdict(moved.view(), {}, i), kUnselectable)
            << "draw " << draw << ", key " << i << ", depth " << set.keys[i].depth;
        ++moves;
      }
    }
  }
  EXPECT_GT(moves, 400u);
}

TEST(Keys, ARobustVerdictSurvivesNoiseOfThatNorm) {
  Random random(10);
  KeyOptions options;
  options.noise = 0.02;
  std::size_t robust = 0;
  for (int draw = 0; draw < 20; ++draw) {
    const std::size_t d = 1 + random.below(3), n = 5 + random.below(12);
    const Matrix<double> keys = gaussian(random, n, d);
    const KeySet set = decide(keys, {}, options);
    for (int change = 0; change < 10; ++change) {
      Matrix<double> noisy = keys;
      for (std::size_t i = 0; i < n; ++i) {
        const std::vector<double> step = unit_vector(random, d);
        for (std::size_t c = 0; c < d; ++c) noisy(i, c) += 0.02 * step[c];
      }
      const KeySet changed = decide(noisy);
      for (std::size_t i = 0; i < n; ++i) {
        if (!set.keys[i].robust) continue;
        ++robust;
        EXPECT_EQ(changed.keys[i].verdict, set.keys[i].verdict) << "draw " << draw << ", key " << i;
      }
    }
  }
  EXPECT_GT(robust, 500u);
}

TEST(Keys, ScalingByAPowerOfTwoScalesMarginsAndDepthsExactly) {
  Random random(11);
  for (int draw = 0; draw < 12; ++draw) {
    const Matrix<double> keys =
        draw % 3 == 0 ? lattice(random, 20, 3, 4) : gaussian(random, 20, 1 + random.below(5));
    const KeySet set = decide(keys);
    for (int power : {-300, -40, 3, 250}) {
      Matrix<double> scaled = keys;
      for (std::size_t i = 0; i < keys.rows(); ++i)
        for (double& value : scaled[i]) value = std::ldexp(value, power);
      const KeySet other = decide(scaled);
      EXPECT_EQ(verdicts(set), verdicts(other));
      EXPECT_EQ(std::ldexp(set.rank_tolerance, power), other.rank_tolerance);
      for (std::size_t i = 0; i < keys.rows(); ++i) {
        EXPECT_EQ(std::ldexp(set.keys[i].margin, power), other.keys[i].margin) << draw << ", key " << i;
        EXPECT_EQ(std::ldexp(set.keys[i].depth, power), other.keys[i].depth) << draw << ", key " << i;
        EXPECT_EQ(set.keys[i].robust, other.keys[i].robust);
      }
    }
  }
}

TEST(Keys, AMoveOfAllKeysKeepsTheVerdicts) {
  Random random(12);
  for (int draw = 0; draw < 40; ++draw) {
    const std::size_t d = 1 + random.below(4);
    const Matrix<double> keys = lattice(random, 2 + random.below(20), d, 3 + random.below(20));
    Matrix<double> moved = keys;
    for (std::size_t c = 0; c < d; ++c) {
      const double step = static_cast<double>(random.below(2000)) - 1000;
      for (std::size_t i = 0; i < keys.rows(); ++i) moved(i, c) += step;
    }
    const KeySet set = decide(keys), other = decide(moved);
    EXPECT_EQ(verdicts(set), verdicts(other)) << "draw " << draw;
    for (std::size_t i = 0; i < keys.rows(); ++i)
      EXPECT_NEAR(set.keys[i].margin, other.keys[i].margin, 1e-9 * (1 + set.keys[i].margin));
  }
}

TEST(Keys, PermutedKeysHavePermutedVerdicts) {
  Random random(13);
  for (int draw = 0; draw < 40; ++draw) {
    const std::size_t n = 2 + random.below(draw < 35 ? 25 : 400), d = 1 + random.below(4);
    const Matrix<double> keys = draw % 2 == 0 ? lattice(random, n, d, 5) : gaussian(random, n, d);
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t k = n; k > 1; --k) std::swap(order[k - 1], order[random.below(k)]);
    Matrix<double> permuted(n, d);
    for (std::size_t k = 0; k < n; ++k)
      std::copy(keys[order[k]].begin(), keys[order[k]].end(), permuted[k].begin());
    const KeySet set = decide(keys), other = decide(permuted);
    for (std::size_t k = 0; k < n; ++k) {
      EXPECT_EQ(other.keys[k].verdict, set.keys[order[k]].verdict) << "draw " << draw;
      if (std::isfinite(other.keys[k].margin)) {
        EXPECT_NEAR(other.keys[k].margin, set.keys[order[k]].margin, 1e-9 * (1e-3 + other.keys[k].margin))
            << draw;
      }
    }
  }
}

TEST(Keys, AnInteriorKeyChangesNoOtherVerdict) {
  Random random(14);
  for (int draw = 0; draw < 30; ++draw) {
    const std::size_t n = 4 + random.below(20), d = 1 + random.below(3);
    Matrix<double> keys = gaussian(random, n, d), more(n + 1, d);
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double weight = 0.2 + random.uniform();
      sum += weight;
      for (std::size_t c = 0; c < d; ++c) more(n, c) += weight * keys(i, c);
      std::copy(keys[i].begin(), keys[i].end(), more[i].begin());
    }
    for (double& value : more[n]) value /= sum;
    const KeySet set = decide(keys), other = decide(more);
    EXPECT_EQ(other.keys[n].verdict, kUnselectable);
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(set.keys[i].verdict, other.keys[i].verdict) << draw;
  }
}

TEST(Keys, RowsMayStandApartInMemory) {
  Random random(15);
  const Matrix<double> keys = gaussian(random, 30, 3);
  std::vector<double> wide(30 * 7, std::numeric_limits<double>::quiet_NaN());
  for (std::size_t i = 0; i < 30; ++i)
    std::copy(keys[i].begin(), keys[i].end(), wide.begin() + static_cast<std::ptrdiff_t>(7 * i));
  const KeySet set =
      decide_keys(MatrixView<const double>(wide.data(), 30, 3, 7), {}, KeyOptions(), Executor(1));
  const KeySet expected = decide(keys);
  EXPECT_EQ(verdicts(set), verdicts(expected));
  for (std::size_t i = 0; i < 30; ++i) EXPECT_EQ(set.keys[i].margin, expected.keys[i].margin);
}

TEST(Keys, WithoutCertificatesTheNumbersAreTheSame) {
  Random random(16);
  for (bool with_offsets : {false, true}) {
    const Matrix<double> keys = lattice(random, 40, 3, 5);
    const std::vector<double> offsets = with_offsets ? gaussian_list(random, 40) : std::vector<double>();
    KeyOptions options;
    const KeySet with = decide(keys, offsets, options);
    options.certificates = false;
    const KeySet without = decide(keys, offsets, options);
    EXPECT_EQ(verdicts(with), verdicts(without));
    for (std::size_t i = 0; i < 40; ++i) {
      EXPECT_EQ(with.keys[i].margin, without.keys[i].margin);
      EXPECT_EQ(with.keys[i].depth, without.keys[i].depth);
      EXPECT_EQ(with.keys[i].robust, without.keys[i].robust);
      EXPECT_TRUE(without.keys[i].cover.empty() && without.keys[i].interior.empty());
    }
  }
}

// Orthonormal coordinates in the plane orthogonal to 1.
Matrix<double> in_the_plane(const Matrix<double>& keys) {
  Matrix<double> plane(keys.rows(), 2);
  for (std::size_t i = 0; i < keys.rows(); ++i) {
    plane(i, 0) = (keys(i, 0) - keys(i, 1)) / std::sqrt(2);
    plane(i, 1) = (keys(i, 0) + keys(i, 1) - 2 * keys(i, 2)) / std::sqrt(6);
  }
  return plane;
}

TEST(RankPolicy, RoundingInAProjectedOutDirectionDoesNotCount) {
  constexpr int kSeeds = 60;
  int full_differs = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    Matrix<double> keys(40, 3);
    for (std::size_t i = 0; i < 40; ++i) {
      std::array<float, 3> x;
      for (float& value : x) value = static_cast<float>(random.normal());
      const float mean = (x[0] + x[1] + x[2]) / 3.0F;
      for (std::size_t c = 0; c < 3; ++c) keys(i, c) = x[c] - mean;
    }
    KeyOptions options;
    options.unit_roundoff = 0x1p-24;
    const KeySet numerical = decide(keys, {}, options);
    EXPECT_EQ(numerical.rank, 2u) << "seed " << seed;
    EXPECT_GT(numerical.rank_tolerance, 0);
    EXPECT_LT(numerical.rank_tolerance, 1e-4);
    const KeySet plane = decide(in_the_plane(keys));
    EXPECT_EQ(plane.rank, 2u);
    EXPECT_EQ(verdicts(numerical), verdicts(plane)) << "seed " << seed;
    EXPECT_EQ(numerical.counts.selectable, plane.counts.selectable) << "seed " << seed;
    for (std::size_t i = 0; i < 40; ++i)
      EXPECT_NEAR(numerical.keys[i].margin, plane.keys[i].margin, 1e-5) << "seed " << seed;
    options.rank = RankPolicy::full;
    const KeySet full = decide(keys, {}, options);
    EXPECT_EQ(full.rank, 3u);
    EXPECT_GE(full.counts.selectable, plane.counts.selectable) << "seed " << seed;
    // What rounding alone made selectable is never called robust.
    EXPECT_LE(full.robust_counts.selectable, plane.counts.selectable) << "seed " << seed;
    full_differs += full.counts.selectable != plane.counts.selectable ? 1 : 0;
    if (seed < 10) {
      const oracle::ExactKeys exact(keys.view(), {});
      for (std::size_t i = 0; i < 40; ++i)
        EXPECT_EQ(full.keys[i].verdict, oracle::oracle_verdict(exact, i)) << "seed " << seed << ", key " << i;
    }
  }
  EXPECT_GE(full_differs, kSeeds * 9 / 10);
}

TEST(RankPolicy, KeysThatAreExactlyFlatHaveTheSameVerdictsUnderBoth) {
  Random random(21);
  for (int draw = 0; draw < 30; ++draw) {
    const Matrix<double> flat = lattice(random, 3 + random.below(20), 2, 6);
    Matrix<double> keys(flat.rows(), 4);  // (x, y, 2x − y, 3)
    for (std::size_t i = 0; i < flat.rows(); ++i) {
      keys(i, 0) = flat(i, 0), keys(i, 1) = flat(i, 1);
      keys(i, 2) = 2 * flat(i, 0) - flat(i, 1), keys(i, 3) = 3;
    }
    KeyOptions options;
    const KeySet numerical = decide(keys, {}, options);
    options.rank = RankPolicy::full;
    const KeySet full = decide(keys, {}, options);
    EXPECT_EQ(verdicts(numerical), verdicts(full)) << "draw " << draw;
    EXPECT_EQ(verdicts(numerical), verdicts(decide(flat))) << "draw " << draw;
    EXPECT_LE(numerical.rank, 2u);
    expect_proven(keys, {}, numerical);
    expect_proven(keys, {}, full);
  }
}

TEST(RankPolicy, TheToleranceFollowsTheRoundingOfTheDtype) {
  Random random(22);
  Matrix<double> keys = gaussian(random, 50, 3);
  // A direction, not a coordinate: small coordinates are rounded as finely as they are small.
  for (std::size_t i = 0; i < 50; ++i) keys(i, 2) = keys(i, 0) + 1e-5 * keys(i, 2);
  KeyOptions options;
  std::map<double, std::size_t> rank;
  for (double roundoff : {0x1p-53, 0x1p-24, 0x1p-11, 0x1p-8}) {
    options.unit_roundoff = roundoff;
    rank[roundoff] = decide(keys, {}, options).rank;
  }
  EXPECT_EQ(rank[0x1p-53], 3u);
  EXPECT_EQ(rank[0x1p-24], 3u);
  EXPECT_EQ(rank[0x1p-11], 2u);
  EXPECT_EQ(rank[0x1p-8], 2u);
}

// To nearest, ties to even, with the unit roundoff given; what a normal number of that many bits holds.
double rounded_to(double value, double roundoff) {
  if (value == 0) return 0;
  const double ulp = std::ldexp(2 * roundoff, std::ilogb(value));
  return std::nearbyint(value / ulp) * ulp;
}

struct FewBits {
  double roundoff;
  std::size_t n, d;
  double spread, mean;
  bool every_column;  // has the mean, or only the last
};

TEST(RankPolicy, ADirectionThatSpreadsMoreThanItsRoundingIsKept) {
  for (const FewBits& shape : {FewBits{0x1p-11, 12, 2, 1, 100, true}, FewBits{0x1p-8, 64, 16, 0.2, 30, false},
                               FewBits{0x1p-8, 64, 16, 0.2, 30, true}, FewBits{0x1p-24, 12, 2, 1, 1e6, true},
                               FewBits{0x1p-8, 5, 2, 1, 30, true}})
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      SCOPED_TRACE(testing::Message() << "roundoff " << shape.roundoff << ", mean " << shape.mean << ", n "
                                      << shape.n << ", seed " << seed);
      Random random(seed);
      Matrix<double> keys(shape.n, shape.d);
      for (std::size_t i = 0; i < shape.n; ++i)
        for (std::size_t c = 0; c < shape.d; ++c)
          keys(i, c) = rounded_to(
              shape.spread * random.normal() + (shape.every_column || c + 1 == shape.d ? shape.mean : 0),
              shape.roundoff);
      KeyOptions options;
      options.unit_roundoff = shape.roundoff;
      options.margins = Margins::bound;
      const KeySet numerical = decide(keys, {}, options);
      EXPECT_EQ(numerical.rank, std::min(shape.d, shape.n - 1));
      options.rank = RankPolicy::full;
      EXPECT_EQ(verdicts(numerical), verdicts(decide(keys, {}, options)));
    }
}

TEST(RankPolicy, KeysOfFewBitsThatWereRoundedOnceLoseTheFlatDirection) {
  for (double roundoff : {0x1p-11, 0x1p-8})
    for (auto [n, d] : {std::pair<std::size_t, std::size_t>{40, 3}, {400, 3}, {100, 8}, {60, 24}})
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        SCOPED_TRACE(testing::Message() << roundoff << ", " << n << " × " << d << ", seed " << seed);
        Random random(seed);
        Matrix<double> keys = gaussian(random, n, d);
        for (std::size_t i = 0; i < n; ++i) {
          const double mean = std::accumulate(keys[i].begin(), keys[i].end(), 0.0) / static_cast<double>(d);
          for (double& value : keys[i]) value = rounded_to(value - mean, roundoff);
        }
        KeyOptions options;
        options.unit_roundoff = roundoff;
        options.margins = Margins::bound;
        EXPECT_EQ(decide(keys, {}, options).rank, d - 1);
      }
}

TEST(RankPolicy, OneKeyThatRoundingDoesNotExplainKeepsItsDirection) {
  // A column that is constant but for one key of a thousand, whose rms is far below the rounding.
  for (double roundoff : {0x1p-24, 0x1p-11, 0x1p-8}) {
    SCOPED_TRACE(roundoff);
    Matrix<double> keys(1000, 3);
    for (std::size_t i = 0; i < 1000; ++i)
      keys(i, 0) = i % 2 == 0 ? 1 : -1, keys(i, 1) = i % 4 < 2 ? 1 : -1, keys(i, 2) = 30;
    const std::size_t inner = 500;
    keys(inner, 0) = keys(inner, 1) = 0;
    KeyOptions options;
    options.unit_roundoff = roundoff;
    EXPECT_EQ(decide(keys, {}, options).rank, 2u);
    const double ulp = std::ldexp(2 * roundoff, 4);
    keys(inner, 2) += ulp;  // the last bit: rounding may have set it
    EXPECT_EQ(decide(keys, {}, options).rank, 2u);
    keys(inner, 2) += 8 * ulp;
    const KeySet set = decide(keys, {}, options);
    EXPECT_EQ(set.rank, 3u);
    EXPECT_EQ(set.keys[inner].verdict, kSelectable);
  }
}

TEST(RankPolicy, StepsOfTheSmallestNumbersAreRounding) {
  // Float16 has no number between 0 and 2^-24.
  const Matrix<double> keys = matrix({{0, 1}, {0x1p-24, 2}, {0, 3}, {0x1p-24, 4}, {0, 2.5}});
  KeyOptions options;
  options.unit_roundoff = 0x1p-11;
  EXPECT_EQ(decide(keys, {}, options).rank, 2u);
  options.smallest_rounding = 0x1p-25;
  EXPECT_EQ(decide(keys, {}, options).rank, 1u);
}

TEST(Robust, OffsetsAreRoundedToo) {
  const Matrix<double> keys = matrix({{-1}, {1}, {0}});
  const std::vector<double> offsets = {1000, 1000, 1000.0625};
  KeyOptions options;
  const KeySet fine = decide(keys, offsets, options);
  EXPECT_EQ(fine.keys[2].verdict, kSelectable);
  EXPECT_TRUE(fine.keys[2].robust);
  options.offset_roundoff = 0x1p-11;  // float16: half a unit in the last place of 1000 is 1/4
  const KeySet coarse = decide(keys, offsets, options);
  EXPECT_EQ(coarse.keys[2].verdict, kSelectable);
  EXPECT_FALSE(coarse.keys[2].robust);
}

TEST(Robust, EqualOffsetsMayHaveDifferedBeforeRounding) {
  const Matrix<double> keys = matrix({{-1}, {1}, {0}});
  EXPECT_TRUE(decide(keys, std::vector<double>{0, 0, 0}).keys[2].robust);
  const KeySet set = decide(keys, std::vector<double>{5, 5, 5});
  EXPECT_EQ(set.keys[2].verdict, kUnselectable);
  EXPECT_FALSE(set.keys[2].robust);
  EXPECT_TRUE(set.keys[0].robust);
}

TEST(Robust, NumbersNearZeroAreRoundedByMoreThanTheirSize) {
  const Matrix<double> keys = matrix({{0}, {0x1p-24}});
  KeyOptions options;
  options.rank = RankPolicy::full;
  options.unit_roundoff = 0x1p-11;
  EXPECT_TRUE(decide(keys, {}, options).keys[0].robust);
  options.smallest_rounding = 0x1p-25;
  EXPECT_EQ(decide(keys, {}, options).keys[0].verdict, kSelectable);
  EXPECT_FALSE(decide(keys, {}, options).keys[0].robust);
}

TEST(Robust, KeysWhoseSquaresOverflowAreJudgedAlike) {
  const Matrix<double> small = matrix({{1, 1}, {1, -1}, {-1, 1}, {-1, -1}, {0.25, 0}, {1, 0}});
  for (double scale : {0x1p996, 0x1p-996}) {
    Matrix<double> keys = small;
    for (std::size_t i = 0; i < keys.rows(); ++i)
      for (double& value : keys[i]) value *= scale;
    for (double roundoff : {0x1p-53, 0x1p-24, 0x1p-3}) {
      KeyOptions options;
      options.unit_roundoff = roundoff;
      const KeySet expected = decide(small, {}, options), set = decide(keys, {}, options);
      for (std::size_t i = 0; i < keys.rows(); ++i) {
        EXPECT_EQ(set.keys[i].robust, expected.keys[i].robust) << scale << ", " << roundoff << ", key " << i;
        EXPECT_EQ(set.keys[i].margin, expected.keys[i].margin * scale) << scale << ", key " << i;
      }
    }
  }
}

TEST(Keys, LayerNormMakesEveryDistinctKeySelectable) {
  KeyOptions options;
  options.unit_roundoff = 0x1p-24;
  const NormSpec layernorm = parse_norm("layernorm");
  for (std::size_t d = 3; d <= 16; ++d)
    for (std::size_t n : {2, 3, 5, 9, 17, 40, 100, 200})
      for (std::uint64_t seed = 0; seed < 4; ++seed) {
        Random random(seed, n * 100 + d);
        Matrix<float> x(n, d);
        for (std::size_t i = 0; i < n; ++i)
          for (float& value : x[i]) value = static_cast<float>(random.normal());
        norm_forward<float>(layernorm, {}, x.view(), x.view());
        Matrix<double> keys(n, d);
        for (std::size_t i = 0; i < n; ++i) std::copy(x[i].begin(), x[i].end(), keys[i].begin());
        const KeySet set = decide(keys, {}, options);
        EXPECT_EQ(set.robust_counts.unselectable, 0u) << n << " × " << d << ", seed " << seed;
        EXPECT_EQ(set.robust_counts.tied, 0u) << n << " × " << d << ", seed " << seed;
        EXPECT_EQ(set.rank, std::min(n, d) - 1) << n << " × " << d << ", seed " << seed;
        // On a circle some neighbours are nearer than their rounding; on larger spheres none are.
        if (d >= 5) {
          EXPECT_EQ(set.robust_counts.selectable, n) << n << " × " << d << ", seed " << seed;
        }
      }
}

std::vector<std::size_t> last_prefixes_by_brute_force(const Matrix<double>& keys,
                                                      std::span<const double> offsets) {
  std::vector<std::size_t> last(keys.rows(), 0);
  for (std::size_t length = 1; length <= keys.rows(); ++length) {
    const oracle::ExactKeys exact(keys.view().first_rows(length),
                                  offsets.empty() ? offsets : offsets.first(length));
    for (std::size_t i = 0; i < length; ++i)
      if (oracle::oracle_verdict(exact, i) == kSelectable) last[i] = length;
  }
  return last;
}

void expect_prefixes(const Matrix<double>& keys, std::span<const double> offsets, int draw) {
  KeyOptions options;
  options.prefix = true;
  const KeySet set = decide(keys, offsets, options);
  const std::vector<std::size_t> expected = last_prefixes_by_brute_force(keys, offsets);
  for (std::size_t i = 0; i < keys.rows(); ++i) {
    ASSERT_TRUE(set.keys[i].last_prefix.has_value());
    EXPECT_EQ(*set.keys[i].last_prefix, expected[i]) << "draw " << draw << ", key " << i;
    EXPECT_EQ(*set.keys[i].last_prefix == keys.rows(), set.keys[i].verdict == kSelectable);
  }
}

TEST(Prefixes, AreTheLongestInWhichTheKeyIsSelectable) {
  // (0) (2) then (1) between them: never; then (3): it overtakes (2).
  KeyOptions options;
  options.prefix = true;
  const KeySet set = decide(matrix({{0}, {2}, {1}, {3}, {0}}), {}, options);
  std::vector<std::size_t> last;
  for (const KeyVerdict& key : set.keys) last.push_back(*key.last_prefix);
  EXPECT_EQ(last, (std::vector<std::size_t>{4, 3, 0, 5, 0}));
}

TEST(Prefixes, AgreeWithDecidingEveryPrefix) {
  Random random(31);
  for (int draw = 0; draw < 40; ++draw)
    expect_prefixes(gaussian(random, 1 + random.below(18), 1 + random.below(4)), {}, draw);
}

TEST(Prefixes, AgreeWithDecidingEveryPrefixOfKeysWithDuplicatesAndFlatFaces) {
  Random random(32);
  for (int draw = 0; draw < 60; ++draw)
    expect_prefixes(lattice(random, 1 + random.below(18), 1 + random.below(3), 2 + random.below(4)), {},
                    draw);
}

TEST(Prefixes, AgreeWithDecidingEveryPrefixOfKeysWithOffsets) {
  Random random(33);
  for (int draw = 0; draw < 60; ++draw) {
    const std::size_t n = 1 + random.below(16), d = 1 + random.below(3);
    const Matrix<double> keys = draw % 2 == 0 ? gaussian(random, n, d) : lattice(random, n, d, 3);
    std::vector<double> offsets = gaussian_list(random, n);
    if (draw % 4 == 3)
      for (double& offset : offsets) offset = std::round(offset);
    expect_prefixes(keys, offsets, draw);
  }
}

class Bytes {
 public:
  std::string text;
  void number(double value) { raw(&value, sizeof value); }
  void count(std::size_t value) { raw(&value, sizeof value); }
  void optional(const std::optional<double>& value) {
    count(value ? 1 : 0);
    number(value.value_or(0));
  }
  void terms(const std::vector<CoverTerm>& list) {
    count(list.size());
    for (const CoverTerm& term : list) count(term.index), number(term.weight);
  }

 private:
  void raw(const void* data, std::size_t size) { text.append(static_cast<const char*>(data), size); }
};

// Every field of a set, bit for bit.
std::string bytes_of(const KeySet& set) {
  Bytes out;
  for (std::size_t value : {set.n, set.d, set.rank, set.exact_path}) out.count(value);
  out.number(set.rank_tolerance);
  for (const KeyCounts& counts : {set.counts, set.robust_counts})
    for (std::size_t value : {counts.selectable, counts.tied, counts.unselectable}) out.count(value);
  out.count(set.keys.size());
  for (const KeyVerdict& key : set.keys) {
    out.count(static_cast<std::size_t>(key.verdict));
    for (bool flag : {key.robust, key.verified, key.exact_path}) out.count(flag ? 1 : 0);
    out.number(key.margin);
    out.number(key.depth);
    out.count(key.witness.size());
    for (double q : key.witness) out.number(q);
    out.count(key.exact_witness.size());
    for (const std::string& q : key.exact_witness) out.text += q + "\n";
    out.terms(key.cover);
    out.terms(key.interior);
    out.count(key.tied_with.size());
    for (std::size_t j : key.tied_with) out.count(j);
    out.optional(key.max_weight);
    out.optional(key.max_weight_bound);
    out.count(key.last_prefix.value_or(static_cast<std::size_t>(-1)));
  }
  return out.text;
}

void expect_same_for_any_threads(const Matrix<double>& keys, std::span<const double> offsets,
                                 const KeyOptions& options) {
  const std::string one = bytes_of(decide(keys, offsets, options, 1));
  for (int threads : {2, 8})
    EXPECT_TRUE(one == bytes_of(decide(keys, offsets, options, threads)))
        << threads << " threads, " << keys.rows() << " × " << keys.cols();
}

TEST(Threads, GiveTheSameBytes) {
  Random random(41);
  for (std::size_t d : {5, 8}) {
    Matrix<double> keys = gaussian(random, 1000, d);
    for (std::size_t i = 0; i < 50; ++i)  // duplicates, of vertices and of interior keys
      std::copy(keys[i].begin(), keys[i].end(), keys[900 + i].begin());
    const std::vector<double> offsets = gaussian_list(random, 1000);
    KeyOptions options;
    expect_same_for_any_threads(keys, {}, options);
    expect_same_for_any_threads(keys, offsets, options);
    options.prefix = true;
    expect_same_for_any_threads(keys, {}, options);
    options.prefix = false;
    options.margins = Margins::bound;
    expect_same_for_any_threads(keys, {}, options);
  }
}

TEST(Threads, GiveTheSameBytesForExactCertificates) {
  Random random(42);
  KeyOptions options;
  options.exact = true;
  for (std::size_t d : {5, 8}) {
    const Matrix<double> keys = gaussian(random, 1000, d);
    expect_same_for_any_threads(keys, {}, options);
  }
  expect_same_for_any_threads(lattice(random, 300, 3, 6), {}, options);
  expect_same_for_any_threads(lattice(random, 200, 3, 6), gaussian_list(random, 200), options);
}

TEST(Threads, GiveTheSameBytesForLargestWeights) {
  Random random(43);
  KeyOptions options;
  options.query_norm = 4;
  options.prefix = true;
  for (std::size_t d : {5, 8}) {
    const Matrix<double> keys = gaussian(random, 250, d);
    expect_same_for_any_threads(keys, {}, options);
    expect_same_for_any_threads(keys, gaussian_list(random, 250), options);
  }
}

TEST(Batches, GiveWhatEachSetGivesAlone) {
  Random random(44);
  std::vector<Matrix<double>> sets;
  std::vector<std::vector<double>> offsets;
  for (int s = 0; s < 25; ++s) {
    const std::size_t n = 1 + random.below(s == 7 ? 400 : 30), d = 1 + random.below(5);
    sets.push_back(s % 3 == 0 ? lattice(random, n, d, 3) : gaussian(random, n, d));
    offsets.push_back(gaussian_list(random, n));
  }
  std::vector<MatrixView<const double>> views;
  std::vector<std::span<const double>> spans;
  for (std::size_t s = 0; s < sets.size(); ++s) views.push_back(sets[s].view()), spans.push_back(offsets[s]);
  KeyOptions options;
  options.prefix = true;
  options.query_norm = 2;
  for (std::size_t count : {std::size_t{3}, sets.size()})  // few: threads share one set; many: a set each
    for (int threads : {1, 2, 8})
      for (bool with_offsets : {false, true}) {
        const std::vector<KeySet> together =
            decide_key_sets(std::span(views).first(count),
                            with_offsets ? std::span<const std::span<const double>>(spans).first(count)
                                         : std::span<const std::span<const double>>(),
                            options, Executor(threads));
        ASSERT_EQ(together.size(), count);
        for (std::size_t s = 0; s < count; ++s)
          EXPECT_TRUE(bytes_of(together[s]) ==
                      bytes_of(decide(sets[s], with_offsets ? spans[s] : std::span<const double>(), options)))
              << "set " << s << ", " << threads << " threads";
      }
  EXPECT_TRUE(decide_key_sets({}, {}, options, Executor(1)).empty());
}

template <class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

void expect_facts(const std::string& message, const std::vector<std::string>& facts) {
  for (const std::string& fact : facts)
    EXPECT_NE(message.find(fact), std::string::npos) << "\"" << fact << "\" is missing in: " << message;
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

TEST(KeyInput, NeedsAtLeastOneKeyWithOneCoordinate) {
  const double none = 0;
  for (auto [n, d] : {std::pair<std::size_t, std::size_t>{0, 5}, {4, 0}, {0, 0}}) {
    const MatrixView<const double> keys(&none, n, d);
    expect_facts(message_of([&] { decide_keys(keys, {}, {}, Executor(1)); }),
                 {std::to_string(n) + " × " + std::to_string(d)});
  }
}

TEST(KeyInput, ThatIsNotFiniteIsNamedByRowAndColumn) {
  Matrix<double> keys(4, 3);
  for (auto [value, name] : {std::pair<double, std::string>{std::nan(""), "NaN"},
                             {kInfinity, "infinite"},
                             {-kInfinity, "infinite"}}) {
    keys(2, 1) = value;
    expect_facts(message_of([&] { decide(keys); }), {"row 2", "column 1", name});
  }
}

TEST(KeyInput, OffsetsMustBeOneFiniteNumberPerKey) {
  const Matrix<double> keys = matrix({{0, 1}, {1, 0}, {2, 2}});
  for (std::size_t length : {1, 2, 4})
    expect_facts(message_of([&] { decide(keys, std::vector<double>(length, 1.0)); }),
                 {std::to_string(length), "3"});
  expect_facts(message_of([&] {
                 decide(keys, std::vector<double>{1, 2, std::nan("")});
               }),
               {"offset 2", "NaN"});
  expect_facts(message_of([&] {
                 decide(keys, std::vector<double>{1, kInfinity, 0});
               }),
               {"offset 1", "infinite"});
}

TEST(KeyInput, OptionsMustBeFiniteAndNotNegative) {
  const Matrix<double> keys = matrix({{0}, {1}});
  for (double wrong : {-1.0, std::nan(""), kInfinity}) {
    KeyOptions noise, query_norm, roundoff;
    noise.noise = wrong, query_norm.query_norm = wrong, roundoff.unit_roundoff = wrong;
    expect_facts(message_of([&] { decide(keys, {}, noise); }), {"noise"});
    expect_facts(message_of([&] { decide(keys, {}, query_norm); }), {"query_norm"});
    expect_facts(message_of([&] { decide(keys, {}, roundoff); }), {"unit_roundoff"});
    const std::vector<MatrixView<const double>> sets = {keys.view(), keys.view()};
    expect_facts(message_of([&] { decide_key_sets(sets, {}, noise, Executor(1)); }), {"noise"});
  }
}

TEST(KeyInput, OfABatchIsNamedByItsSet) {
  const Matrix<double> good = matrix({{0, 1}, {1, 0}});
  Matrix<double> bad = good;
  bad(1, 0) = std::nan("");
  const std::vector<MatrixView<const double>> views = {good.view(), good.view(), bad.view()};
  expect_facts(message_of([&] { decide_key_sets(views, {}, {}, Executor(2)); }),
               {"set 2", "row 1", "column 0", "NaN"});
  const std::vector<double> two = {0, 1}, three = {0, 1, 2};
  const std::vector<std::span<const double>> few = {two, two};
  expect_facts(message_of([&] { decide_key_sets(views, few, {}, Executor(2)); }), {"2", "3"});
  const std::vector<std::span<const double>> uneven = {two, three};
  expect_facts(message_of([&] { decide_key_sets(std::span(views).first(2), uneven, {}, Executor(2)); }),
               {"set 1", "3", "2"});
}

Matrix<double> shaped(Random& random, std::size_t n, std::size_t d, double centre, double spread) {
  Matrix<double> keys(n, d);
  for (std::size_t i = 0; i < n; ++i)
    for (double& value : keys[i]) value = centre + spread * random.normal();
  return keys;
}

TEST(Scales, FromTheSmallestToTheLargestNumbersAreDecidedExactly) {
  Random random(51);
  for (auto [centre, spread] : {std::pair<double, double>{0, 1e300},
                                {1e300, 1e299},
                                {0, 1e-300},
                                {0, 4e-323},  // denormals: a few units of the smallest number
                                {0, 1e-310},
                                {1e6, 1e-3},
                                {1e6, 1e-9},
                                {-1e15, 1.0},
                                {1, 1e-15}})
    for (RankPolicy rank : {RankPolicy::full, RankPolicy::numerical})
      for (int draw = 0; draw < 6; ++draw) {
        SCOPED_TRACE(testing::Message() << "centre " << centre << ", spread " << spread << ", draw " << draw
                                        << (rank == RankPolicy::full ? ", full" : ", numerical"));
        const std::size_t n = 2 + random.below(14), d = 1 + random.below(3);
        const Matrix<double> keys = shaped(random, n, d, centre, spread);
        KeyOptions options;
        options.rank = rank;
        options.query_norm = 1;
        options.prefix = true;
        const KeySet set = decide(keys, {}, options);
        expect_no_nan(set);
        // The numerical policy answers for the hull it found, which may be flatter.
        if (rank == RankPolicy::full || set.rank == oracle::ExactKeys(keys.view(), {}).rank())
          expect_proven(keys, {}, set);
      }
}

TEST(Scales, CoordinatesOfVeryDifferentSizeAreDecidedExactly) {
  Random random(52);
  KeyOptions options;
  options.rank = RankPolicy::full;
  for (int draw = 0; draw < 20; ++draw) {
    SCOPED_TRACE(draw);
    Matrix<double> keys = gaussian(random, 4 + random.below(12), 3);
    for (std::size_t i = 0; i < keys.rows(); ++i) keys(i, 1) *= 1e-12, keys(i, 2) *= 1e20;
    const KeySet set = decide(keys, {}, options);
    expect_no_nan(set);
    expect_proven(keys, {}, set);
  }
}

TEST(Scales, OffsetsFarLargerOrSmallerThanTheKeysAreDecidedExactly) {
  Random random(53);
  for (double scale : {1e-300, 1e-20, 1e20, 1e300})
    for (int draw = 0; draw < 6; ++draw) {
      SCOPED_TRACE(testing::Message() << "offsets of size " << scale << ", draw " << draw);
      const std::size_t n = 2 + random.below(12);
      const Matrix<double> keys = gaussian(random, n, 1 + random.below(3));
      std::vector<double> offsets = gaussian_list(random, n);
      for (double& offset : offsets) offset *= scale;
      const KeySet set = decide(keys, offsets);
      expect_no_nan(set);
      const oracle::ExactKeys exact(keys.view(), offsets);
      for (std::size_t i = 0; i < n; ++i)
        EXPECT_STREQ(name_of(set.keys[i].verdict), name_of(oracle::oracle_verdict(exact, i))) << "key " << i;
    }
}

TEST(Scales, WitnessesOfLargeKeysWithOffsetsWinExactly) {
  // The query is of size 1e-300, where doubles are coarse or absent.
  Random random(55);
  for (double scale : {1e-300, 1e150, 1e300})
    for (int draw = 0; draw < 10; ++draw) {
      SCOPED_TRACE(testing::Message() << "scale " << scale << ", draw " << draw);
      const std::size_t n = 3 + random.below(10);
      Matrix<double> keys = gaussian(random, n, 1 + random.below(3));
      for (std::size_t i = 0; i < n; ++i)
        for (double& value : keys[i]) value *= scale;
      const std::vector<double> offsets = gaussian_list(random, n);
      const KeySet set = decide(keys, offsets);
      expect_no_nan(set);
      expect_proven(keys, offsets, set);
    }
}

TEST(Scales, MarginsWhoseSquaresAreBeyondDoublesAreFound) {
  // The middle key stands out by one unit in the last place: rational arithmetic finds its margin.
  for (double scale : {0x1p-900, 0x1p-600, 1.0, 0x1p600, 0x1p900}) {
    SCOPED_TRACE(scale);
    const Matrix<double> keys =
        matrix({{0, scale}, {2 * scale, scale}, {scale, scale * (1 + 0x1p-52)}, {scale, 0}});
    KeyOptions options;
    options.rank = RankPolicy::full;
    const KeyVerdict key = decide(keys, {}, options).keys[2];
    EXPECT_EQ(key.verdict, kSelectable);
    EXPECT_TRUE(key.exact_path);
    EXPECT_NEAR(key.margin / (scale * 0x1p-52), 1, 1e-12);
  }
}

TEST(Scales, ExactCertificatesVerifyAtEveryScale) {
  Random random(54);
  KeyOptions options;
  options.exact = true;
  for (double scale : {1e-300, 1e-3, 1.0, 1e300})
    for (int draw = 0; draw < 6; ++draw) {
      SCOPED_TRACE(testing::Message() << "scale " << scale << ", draw " << draw);
      Matrix<double> keys = draw % 2 == 0 ? lattice(random, 12, 2, 4) : gaussian(random, 12, 3);
      for (std::size_t i = 0; i < 12; ++i)
        for (double& value : keys[i]) value *= scale;
      const KeySet set = decide(keys, {}, options);
      for (const KeyVerdict& key : set.keys) EXPECT_TRUE(key.verified);
      expect_proven(keys, {}, set);
    }
}

}  // namespace
}  // namespace normscope

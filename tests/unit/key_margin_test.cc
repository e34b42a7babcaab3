// The numbers that come with a verdict: margins, witnesses that achieve them, and depths.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>
#include <vector>

#include "keys/exact_margin.h"
#include "normscope/keys.h"
#include "normscope/random.h"
#include "normscope/tensor_file.h"
#include "support/key_sets.h"
#include "support/paths.h"

namespace normscope {
namespace {

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

// Grids are where several weights of the search vanish at once.
TEST(Keys, MarginsOnGridsAreTheWidest) {
  Random random(20, 3);
  std::size_t compared = 0;
  for (int round = 0; round < 400; ++round) {
    const std::size_t d = 2 + random.below(4), n = 6 + random.below(16);
    Matrix<double> keys = lattice(random, n, d, 3);
    for (double& value : keys[0]) value /= 2;
    const KeySet set = decide(keys);
    for (std::size_t i = 0; i < n; ++i) {
      if (set.keys[i].verdict != kSelectable) continue;
      Effort effort(0x1p40);
      const double widest = exact_margin(std::as_const(keys).view(), {}, i, {}, {}, effort).margin;
      EXPECT_NEAR(set.keys[i].margin, widest, 1e-9 * widest) << "round " << round << ", key " << i;
      ++compared;
    }
  }
  EXPECT_GT(compared, 1000u);
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

TEST(ExactEffort, ADegenerateSetThatDoublesDoNotFinishHasAnEnd) {
  const Tensor tensor =
      TensorFile::open(source_path() + "/tests/golden/keys/slow_exact_margins_f32.npy").read();
  KeyOptions options;
  options.unit_roundoff = 0x1p-24;
  options.certificates = false;
  const Matrix<double> keys(tensor.shape[0], tensor.shape[1], tensor.values);
  const KeySet exact = decide(keys, {}, options);
  options.margins = Margins::bound;
  const KeySet bound = decide(keys, {}, options);
  EXPECT_EQ(verdicts(exact), verdicts(bound));
  EXPECT_GT(exact.exact_path, 1u);
  std::size_t between_bounds = 0;
  for (std::size_t i = 0; i < exact.n; ++i) {
    const std::optional<double> at_most = exact.keys[i].margin_at_most;
    between_bounds += at_most.has_value();
    // Both are proven: an upper bound is no smaller than any lower one; and what is found for a bound is found for
    // the margin, too.
    EXPECT_GE(at_most.value_or(exact.keys[i].margin / (1 - 1e-6)), bound.keys[i].margin) << i;
    EXPECT_GE(exact.keys[i].margin, bound.keys[i].margin * (1 - 1e-12)) << i;
  }
  EXPECT_LE(between_bounds, 1u);
}

TEST(ExactEffort, BeyondItKeysAreUndecidedAndMarginsBetweenBounds) {
  // On a grid most keys tie, which only rational arithmetic can tell.
  Random random(9);
  const Matrix<double> keys = lattice(random, 60, 4, 4);
  KeyOptions options;
  const KeySet all = decide(keys, {}, options);
  EXPECT_EQ(all.counts.undecided, 0u);
  ASSERT_GT(all.counts.tied, 0u);
  options.exact_effort = 0;
  options.prefix = true;
  options.query_norm = 3;
  const KeySet none = decide(keys, {}, options);
  EXPECT_GT(none.counts.undecided, 0u);
  EXPECT_LT(none.counts.tied, all.counts.tied);  // equal keys need no arithmetic
  for (std::size_t i = 0; i < keys.rows(); ++i) {
    const KeyVerdict& key = none.keys[i];
    EXPECT_STREQ(name_of(Verdict::undecided), "undecided");
    if (key.verdict != Verdict::undecided) {
      EXPECT_EQ(key.verdict, all.keys[i].verdict) << i;
      continue;
    }
    EXPECT_FALSE(key.robust);
    ASSERT_TRUE(key.margin_at_most) << i;
    EXPECT_LE(all.keys[i].margin, *key.margin_at_most) << i;
    EXPECT_GE(*key.max_weight_bound, *key.max_weight);
  }
}

}  // namespace
}  // namespace normscope

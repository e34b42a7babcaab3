// The rank policy and robustness: what the rounding of the numbers may and may not decide.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "normscope/keys.h"
#include "normscope/random.h"
#include "support/key_sets.h"

namespace normscope {
namespace {

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

}  // namespace
}  // namespace normscope

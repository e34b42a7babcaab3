// From the smallest to the largest numbers.
#include <gtest/gtest.h>

#include <vector>

#include "keys/exact_margin.h"
#include "normscope/keys.h"
#include "normscope/random.h"
#include "support/key_sets.h"

namespace normscope {
namespace {

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
  // The middle key stands out by one unit in the last place, as the search from its own place finds, and rational
  // arithmetic.
  for (double scale : {0x1p-900, 0x1p-600, 1.0, 0x1p600, 0x1p900}) {
    SCOPED_TRACE(scale);
    const Matrix<double> keys =
        matrix({{0, scale}, {2 * scale, scale}, {scale, scale * (1 + 0x1p-52)}, {scale, 0}});
    KeyOptions options;
    options.rank = RankPolicy::full;
    const KeyVerdict key = decide(keys, {}, options).keys[2];
    EXPECT_EQ(key.verdict, kSelectable);
    EXPECT_NEAR(key.margin / (scale * 0x1p-52), 1, 1e-12);
    Effort effort(0x1p40);
    const double exact = exact_margin(keys.view(), {}, 2, {}, {}, effort).margin;
    EXPECT_NEAR(exact / (scale * 0x1p-52), 1, 1e-12);
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

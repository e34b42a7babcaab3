// The rank policy and robustness: what the rounding of the numbers may and may not decide.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "normscope/error.h"
#include "normscope/keys.h"
#include "normscope/norm.h"
#include "normscope/random.h"
#include "normscope/tensor_file.h"
#include "support/key_sets.h"
#include "support/paths.h"

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

// Z·Q by sums of products in T, as any program computes it.
template <class T>
Matrix<double> product(Random& random, std::size_t n, std::size_t rank, std::size_t d) {
  const Matrix<double> left = gaussian(random, n, rank), right = gaussian(random, rank, d);
  Matrix<double> keys(n, d);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t c = 0; c < d; ++c) {
      T sum = 0;
      for (std::size_t k = 0; k < rank; ++k) sum += static_cast<T>(left(i, k)) * static_cast<T>(right(k, c));
      keys(i, c) = static_cast<double>(sum);
    }
  return keys;
}

TEST(RankPolicy, ProductsHaveTheRankOfTheirFactors) {
  struct Shape {
    std::size_t n, d, rank;
  };
  Random random(23);
  KeyOptions options;
  options.margins = Margins::bound;
  options.certificates = false;
  for (const Shape& shape :
       {Shape{40, 32, 1}, {60, 16, 5}, {80, 64, 3}, {80, 64, 20}, {200, 128, 64}, {400, 384, 30}})
    for (int draw = 0; draw < (shape.d < 100 ? 8 : 1); ++draw) {
      const KeySet set = decide(product<double>(random, shape.n, shape.rank, shape.d), {}, options);
      EXPECT_EQ(set.rank, shape.rank) << shape.n << " × " << shape.d;
      EXPECT_EQ(set.matrix_rank, shape.rank) << shape.n << " × " << shape.d;
      EXPECT_EQ(set.kept.size(), shape.rank);
      EXPECT_LT(set.rank_tolerance, set.weakest_spread);
    }
  options.unit_roundoff = 0x1p-24;
  EXPECT_EQ(decide(product<float>(random, 600, 128, 256), {}, options).rank, 128u);
}

TEST(RankPolicy, SaysWhatNumPyWouldSay) {
  Random random(24);
  Matrix<double> keys = gaussian(random, 40, 3);
  EXPECT_EQ(decide(keys).matrix_rank, 3u);
  for (std::size_t i = 0; i < 40; ++i) keys(i, 2) *= 1e-20;  // rounded as finely as it is small
  const KeySet set = decide(keys);
  EXPECT_EQ(set.rank, 3u);
  EXPECT_EQ(set.matrix_rank, 2u);
}

TEST(RankPolicy, InformationAThousandRoundingsOutIsKept) {
  for (double roundoff : {0x1p-53, 0x1p-24})
    for (auto [n, d] : {std::pair<std::size_t, std::size_t>{30, 4}, {200, 64}, {300, 256}})
      for (bool one_key : {false, true}) {
        SCOPED_TRACE(testing::Message()
                     << roundoff << ", " << n << " × " << d << (one_key ? ", one key" : ""));
        Random random(n + d);
        // All but one direction; that one a thousand roundings of an entry wide, or far off for a single key.
        Matrix<double> keys = gaussian(random, n, d);
        const std::vector<double> normal = unit_vector(random, d);
        for (std::size_t i = 0; i < n; ++i) {
          const double along = std::inner_product(normal.begin(), normal.end(), keys[i].begin(), 0.0);
          const double wanted = one_key ? (i == 3 ? 1000 * roundoff * std::sqrt(static_cast<double>(d)) : 0)
                                        : 1000 * roundoff * random.normal();
          for (std::size_t c = 0; c < d; ++c)
            keys(i, c) = rounded_to(keys(i, c) + (wanted - along) * normal[c], roundoff);
        }
        KeyOptions options;
        options.unit_roundoff = roundoff;
        options.margins = Margins::bound;
        options.certificates = false;
        EXPECT_EQ(decide(keys, {}, options).rank, d);
      }
}

Matrix<double> key_file(const std::string& name) {
  const Tensor tensor = TensorFile::open(source_path() + "/tests/golden/keys/" + name + ".npy").read();
  return {tensor.shape[0], tensor.shape[1], tensor.values};
}

TEST(Robust, BelowFullRankRoundingIsMeasuredInTheFlat) {
  // Zero-sum keys in float16 and before they were rounded. The last: 14.5 roundings out, where 12.5 would do
  // if its place in the flat moved by no more than the key.
  const Matrix<double> rounded = key_file("robust_rounded_f16"), unrounded = key_file("robust_exact_f64");
  KeyOptions options;
  options.unit_roundoff = 0x1p-11;
  options.smallest_rounding = 0x1p-25;
  const KeySet set = decide(rounded, {}, options), truth = decide(unrounded);
  ASSERT_EQ(set.rank, 15u);
  ASSERT_EQ(truth.rank, 15u);
  EXPECT_EQ(truth.keys.back().verdict, kUnselectable);
  std::size_t robust = 0;
  for (std::size_t i = 0; i < set.n; ++i) {
    robust += set.keys[i].robust;
    if (set.keys[i].robust) {
      EXPECT_EQ(set.keys[i].verdict, truth.keys[i].verdict) << i;
    }
  }
  EXPECT_FALSE(set.keys.back().robust);
  EXPECT_GT(robust, set.n / 2);
}

TEST(Robust, NoiseThatFillsSpaceLeavesNoCoverOfAFlatSet) {
  const Matrix<double> line = matrix({{0, 0}, {1, 1}, {2, 2}});
  KeyOptions options;
  EXPECT_TRUE(decide(line, {}, options).keys[1].robust);
  options.noise = 0.01;
  const KeySet set = decide(line, {}, options);
  EXPECT_EQ(set.keys[1].verdict, kUnselectable);
  EXPECT_FALSE(set.keys[1].robust);
  EXPECT_TRUE(set.keys[0].robust);
  const Matrix<double> moved = matrix({{0, 0}, {1.005, 0.995}, {2, 2}});
  EXPECT_EQ(decide(moved, {}, options).keys[1].verdict, kSelectable);
  options.noise = 1e-17;
  EXPECT_TRUE(decide(line, {}, options).keys[1].robust);
}

TEST(Robust, TheRoundingOfAFileIsCarriedThroughANorm) {
  // Float32 near 8000 has steps of 2⁻¹¹: after the mean is off they are what is left of the keys' precision.
  const NormSpec spec = parse_norm("center");
  Random random(25);
  std::size_t differ = 0, robust = 0;
  for (int draw = 0; draw < 40; ++draw) {
    Matrix<double> meant(30, 4), stored(30, 4);
    for (std::size_t i = 0; i < 30; ++i)
      for (std::size_t c = 0; c < 4; ++c) {
        meant(i, c) = 8000 + 0.02 * random.normal();
        stored(i, c) = static_cast<double>(static_cast<float>(meant(i, c)));
      }
    KeyOptions options;
    options.unit_roundoff = 0x1p-24;
    const std::vector<double> errors = norm_errors(spec, stored.view(), 0x1p-24, 0, 0x1p-24);
    norm_forward<double>(spec, {}, stored.view(), stored.view());
    norm_forward<double>(spec, {}, meant.view(), meant.view());
    options.errors = errors;
    options.projected_out = 1;
    const KeySet set = decide(stored, {}, options), truth = decide(meant);
    for (std::size_t i = 0; i < 30; ++i) {
      differ += set.keys[i].verdict != truth.keys[i].verdict;
      robust += set.keys[i].robust;
      if (set.keys[i].robust) {
        EXPECT_EQ(set.keys[i].verdict, truth.keys[i].verdict) << draw << ", " << i;
      }
    }
  }
  EXPECT_GT(differ, 0u);
  EXPECT_GT(robust, 200u);
}

TEST(Robust, AFlatThatNoProjectionMadeIsNotKnownToBeMeant) {
  // Keys on a sphere are all selectable; these differ along its axis by less than float32 resolves.
  Matrix<double> keys = matrix({{1000, -1, -1}, {1000, 1, -1}, {1000, 0, 1}, {1000, 0, 0}});
  const NormSpec spec = parse_norm("rmsnorm");
  const std::vector<double> errors = norm_errors(spec, keys.view(), 0x1p-24, 0, 0x1p-24);
  norm_forward<double>(spec, {}, keys.view(), keys.view());
  for (std::size_t i = 0; i < keys.rows(); ++i)
    for (double& value : keys[i]) value = static_cast<double>(static_cast<float>(value));
  KeyOptions options;
  options.unit_roundoff = 0x1p-24;
  options.errors = errors;
  const KeySet set = decide(keys, {}, options);
  EXPECT_EQ(set.rank, 2u);
  EXPECT_EQ(set.keys[3].verdict, kUnselectable);
  EXPECT_FALSE(set.keys[3].robust);
}

TEST(RankPolicy, OneLargeKeyHidesNoDirectionOfTheOthers) {
  // An attention sink in float16, rounded 16000 times as coarsely as the rest.
  Random random(26);
  Matrix<double> keys(100, 8);
  for (std::size_t i = 0; i < 100; ++i)
    for (double& value : keys[i])
      value = rounded_to(i == 0 ? (random.normal() > 0 ? 16000 : -16000) : random.normal(), 0x1p-11);
  KeyOptions options;
  options.unit_roundoff = 0x1p-11;
  options.margins = Margins::bound;
  const KeySet set = decide(keys, {}, options);
  EXPECT_EQ(set.rank, 8u);
  options.rank = RankPolicy::full;
  EXPECT_EQ(verdicts(set), verdicts(decide(keys, {}, options)));
}

TEST(RankPolicy, FewKeysInManyDimensionsThatWereRoundedOnceHaveTheRankOfTheirFactors) {
  for (double roundoff : {0x1p-11, 0x1p-8})
    for (std::size_t rank : {1, 2, 4, 8})
      for (int draw = 0; draw < 5; ++draw) {
        Random random(static_cast<std::uint64_t>(draw));
        Matrix<double> keys = product<float>(random, 60, rank, 384);
        for (std::size_t i = 0; i < 60; ++i)
          for (double& value : keys[i]) value = rounded_to(value, roundoff);
        KeyOptions options;
        options.unit_roundoff = roundoff;
        options.margins = Margins::bound;
        options.certificates = false;
        EXPECT_EQ(decide(keys, {}, options).rank, rank) << roundoff << ", draw " << draw;
      }
}

TEST(RankPolicy, ThreeKeysOfAnOuterProductThatWasRoundedOnceLieOnALine) {
  for (std::size_t d : {128, 512})
    for (std::uint64_t draw = 0; draw < 20; ++draw) {
      Random random(draw);
      Matrix<double> keys = product<float>(random, 3, 1, d);
      for (std::size_t i = 0; i < 3; ++i)
        for (double& value : keys[i]) value = rounded_to(value, 0x1p-11);
      KeyOptions options;
      options.unit_roundoff = 0x1p-11;
      EXPECT_EQ(decide(keys, {}, options).rank, 1u) << d << ", draw " << draw;
    }
}

TEST(RankPolicy, AKeyOutOfAnExactFlatKeepsItsDirectionHoweverFewTheOthers) {
  for (std::size_t n : {3, 12, 40}) {
    Matrix<double> keys(n, 30);
    Random random(n);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t c = 0; c < 30; ++c)
        keys(i, c) = 1.5 + (c < 2 ? static_cast<double>(random.below(512)) / 2048 : 0);
    const std::size_t flat = decide(keys).rank;
    keys(1, 29) += 2000 * 0x1p-24;
    KeyOptions options;
    options.unit_roundoff = 0x1p-24;
    EXPECT_EQ(decide(keys, {}, options).rank, std::min(flat + 1, n - 1)) << n;
  }
}

TEST(RankPolicy, ColumnsAndKeysNearTheEndsOfTheRangeKeepTheirDirections) {
  Random random(27);
  const Matrix<double> plain = gaussian(random, 12, 3);
  for (double scale : {1e-308, 1e-290, 1e300}) {
    Matrix<double> keys = plain;
    for (std::size_t i = 0; i < 12; ++i)
      for (double& value : keys[i]) value *= scale;
    EXPECT_EQ(decide(keys).rank, 3u) << scale;
    EXPECT_EQ(verdicts(decide(keys)), verdicts(decide(plain))) << scale;
  }
  Matrix<double> keys = plain;
  for (std::size_t i = 0; i < 12; ++i) keys(i, 0) *= 1e160, keys(i, 2) *= 1e-160;
  EXPECT_EQ(decide(keys).rank, 3u);
  EXPECT_EQ(verdicts(decide(keys)), verdicts(decide(plain)));
  KeyOptions options;
  options.rank = RankPolicy::full;
  EXPECT_EQ(decide(keys, {}, options).matrix_rank, 1u);
}

// The mean of equal numbers need not be that number: what it errs by is no spread of the keys.
TEST(RankPolicy, AColumnOfEqualNumbersIsNoDirection) {
  for (const double steps : {2.0, 1e4}) {  // of the last place: rounding, and information
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      Random random(seed);
      const std::size_t n = 3 + random.below(30), d = 2 + random.below(6), varied = random.below(d);
      Matrix<double> keys(n, d);
      for (std::size_t c = 0; c < d; ++c) {
        const double value = random.normal() * std::ldexp(1.0, static_cast<int>(random.below(80)) - 40);
        for (std::size_t i = 0; i < n; ++i) keys(i, c) = value;
      }
      const double step = std::nextafter(keys(0, varied), INFINITY) - keys(0, varied);
      for (std::size_t i = 0; i < n; ++i)
        keys(i, varied) += step * std::floor(steps * static_cast<double>(i) / static_cast<double>(n - 1));
      const KeySet set = decide(keys);
      EXPECT_EQ(set.rank, steps > 2 ? 1u : 0u) << "seed " << seed;
      if (set.rank == 0) {
        EXPECT_EQ(set.counts.tied, n) << "seed " << seed;
      } else {
        EXPECT_EQ(set.kept, std::vector<std::size_t>{varied}) << "seed " << seed;
        EXPECT_EQ(set.counts.selectable, 2u) << "seed " << seed;
      }
    }
  }
}

TEST(Robust, ErrorsAreOnePerKeyAndFinite) {
  const Matrix<double> keys = matrix({{0, 0}, {1, 1}, {2, 0}});
  KeyOptions options;
  const std::vector<double> two = {0, 0}, negative = {0, -1, 0}, large = {0, 0.8, 0},
                            batch = {0, 0, 0, 0, 0.8, 0};
  options.errors = two;
  EXPECT_THROW(decide(keys, {}, options), InputError);
  options.errors = negative;
  EXPECT_THROW(decide(keys, {}, options), InputError);
  options.errors = large;
  EXPECT_FALSE(decide(keys, {}, options).keys[1].robust == decide(keys).keys[1].robust);
  options.errors = batch;
  const std::vector<MatrixView<const double>> sets = {keys.view(), keys.view()};
  const std::vector<KeySet> decided = decide_key_sets(sets, {}, options, Executor(1));
  EXPECT_TRUE(decided[0].keys[1].robust);
  EXPECT_FALSE(decided[1].keys[1].robust);
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

// A key is held against its own rounding, not against that of far larger ones.
TEST(RankPolicy, ASmallKeyKeepsADirectionOfItsOwn) {
  struct Case {
    double roundoff, least;  // as many roundings of the key (−1, −1) as rounding cannot explain
  };
  for (const auto& [roundoff, least] :
       {Case{0x1p-8, 32}, Case{0x1p-11, 32}, Case{0x1p-24, 2000}, Case{0x1p-53, 2000}}) {
    for (const double times : {1, 8}) {
      const double size = times * least * roundoff;
      const std::vector<double> values = {-1, -1, size, -size, 16, 16, 32, 32, 48, 48, 64, 64};
      KeyOptions options;
      options.unit_roundoff = roundoff;
      const KeySet set = decide_keys({values.data(), 6, 2}, {}, options, Executor(1));
      EXPECT_EQ(set.rank, 2u) << roundoff << ", " << size;
      EXPECT_EQ(set.keys[1].verdict, kSelectable) << roundoff << ", " << size;
    }
  }
}

// With few keys more than dimensions of their flat, one that is out of it takes the flat that fits them all along.
TEST(RankPolicy, AKeyOutOfAFlatThatItDragsKeepsItsDirection) {
  for (const auto& [n, d, rank] :
       {std::tuple<std::size_t, std::size_t, std::size_t>{20, 16, 9}, {60, 64, 40}})
    for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6, 7, 8}) {
      Random random(seed);
      Matrix<double> keys(n, d);
      const Matrix<double> left = gaussian(random, n, rank), right = gaussian(random, rank, d - 1);
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t c = 0; c + 1 < d; ++c) {
          for (std::size_t k = 0; k < rank; ++k) keys(i, c) += left(i, k) * right(k, c);
          keys(i, c) = rounded_to(keys(i, c), 0x1p-24);
        }
      // A last column that is the sum of two others, but for one key.
      for (std::size_t i = 0; i < n; ++i) keys(i, d - 1) = rounded_to(keys(i, 0) + keys(i, 1), 0x1p-24);
      KeyOptions options;
      options.unit_roundoff = 0x1p-24;
      options.margins = Margins::bound;
      options.certificates = false;
      EXPECT_EQ(decide(keys, {}, options).rank, rank) << n << ", seed " << seed;
      keys(3, d - 1) =
          rounded_to(keys(3, d - 1) + 8000 * 0x1p-24 * std::sqrt(static_cast<double>(d)), 0x1p-24);
      EXPECT_EQ(decide(keys, {}, options).rank, rank + 1) << n << ", seed " << seed;
    }
}

// The error of a decomposition in doubles, some thousand roundings of float64, is no direction beside that of the key.
TEST(RankPolicy, AKeyOutOfAnExactFlatOfDoublesHasOneDirectionOfItsOwn) {
  for (const auto& [n, d, rank] :
       {std::tuple<std::size_t, std::size_t, std::size_t>{30, 16, 3}, {60, 64, 5}, {60, 128, 5}})
    for (const std::uint64_t seed : {1, 2, 3}) {
      Random random(seed);
      Matrix<double> keys(n, d);
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t c = 0; c < d; ++c)
          keys(i, c) =
              c < rank ? random.normal() : std::ldexp(keys(i, c % rank), static_cast<int>(c % 3) - 1);
      // Across the flat, in which the columns 0 and `rank` go together.
      const double ratio = keys(0, rank) / keys(0, 0);
      const double out = 500 * 0x1p-53 * std::sqrt(static_cast<double>(d)) / std::hypot(1, ratio);
      keys(7, 0) -= ratio * out, keys(7, rank) += out;
      KeyOptions options;
      options.margins = Margins::bound;
      options.certificates = false;
      EXPECT_EQ(decide(keys, {}, options).rank, rank + 1) << n << " × " << d << ", seed " << seed;
    }
}

// Measured in its own rounding a far smaller key pulls the flat that fits all keys to itself.
TEST(RankPolicy, AFarSmallerKeyOutOfTheFlatOfTheOthersKeepsItsDirection) {
  constexpr double kRoundoff = 0x1p-24;
  for (const double size : {0.05, 0.004})
    for (const auto& [n, d] : {std::tuple<std::size_t, std::size_t>{12, 4}, {30, 16}, {100, 32}})
      for (const std::uint64_t seed : {1, 2, 3}) {
        Random random(seed);
        // Every second column repeats, twice as large, the one before it.
        Matrix<double> keys(n, d);
        for (std::size_t i = 0; i < n; ++i)
          for (std::size_t c = 0; c < d; c += 2) {
            keys(i, c) = rounded_to(random.normal() * (i == 3 ? size : 1), kRoundoff);
            keys(i, c + 1) = 2 * keys(i, c);
          }
        KeyOptions options;
        options.unit_roundoff = kRoundoff;
        options.margins = Margins::bound;
        options.certificates = false;
        EXPECT_EQ(decide(keys, {}, options).rank, d / 2) << size << ", " << n << ", seed " << seed;
        // By 5000 roundings of its own entries.
        for (std::size_t c = 1; c < d; c += 2)
          keys(3, c) =
              rounded_to(keys(3, c) + (c % 4 == 1 ? 1 : -1) * 5000 * kRoundoff * 2 * size, kRoundoff);
        const KeySet out = decide(keys, {}, options);
        EXPECT_EQ(out.rank, d / 2 + 1) << size << ", " << n << ", seed " << seed;
        EXPECT_EQ(out.keys[3].verdict, kSelectable) << size << ", " << n << ", seed " << seed;
      }
}

// A key near the mean that was taken off is small, but errs as the others do.
// Doubles calculate no more finely than they are rounded.
TEST(RankPolicy, OuterProductsOfDoublesLieOnALineHoweverManyTheirDimensions) {
  for (const auto& [n, d] : {std::pair<std::size_t, std::size_t>{64, 64}, {60, 160}, {64, 256}}) {
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      Random random(seed, d);
      std::vector<double> z(n), q(d);
      for (double& value : z) value = random.uniform();
      for (double& value : q) value = random.uniform();
      Matrix<double> keys(n, d);
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t c = 0; c < d; ++c) keys(i, c) = z[i] * q[c];
      const KeySet set = decide(keys);
      EXPECT_EQ(set.rank, 1u) << n << " × " << d << ", seed " << seed;
      EXPECT_EQ(set.counts.selectable, 2u) << n << " × " << d << ", seed " << seed;
    }
  }
}

// The second factor leaves some column near 0 in every key, which carries the rounding of far larger terms. That may be a
// direction of its own; what is left in the others is none.
TEST(RankPolicy, AColumnThatCancelsInProductsOfThreeLeavesTheOthersRounding) {
  constexpr std::size_t n = 20, d = 64, between = 100;
  KeyOptions options;
  options.margins = Margins::bound;
  options.certificates = false;
  int on_a_line = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed, 3);
    const Matrix<double> z = gaussian(random, n, 1), q = gaussian(random, 1, between),
                         w = gaussian(random, between, d);
    Matrix<double> keys(n, d);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = 0; k < between; ++k)
        for (std::size_t c = 0; c < d; ++c) keys(i, c) += z(i, 0) * q(0, k) * w(k, c);
    const KeySet set = decide(keys, {}, options);
    EXPECT_LE(set.rank, 2u) << "seed " << seed;
    on_a_line += set.rank == 1 ? 1 : 0;
  }
  EXPECT_GE(on_a_line, 36);
}

// X(AB), summed in T, and XA beside it: A of small integers and X of 24 bits, so that doubles hold XA exactly.
template <class T>
std::pair<Matrix<double>, Matrix<double>> factored_map(Random& random, std::size_t n, std::size_t rank,
                                                       std::size_t d) {
  const auto times = [](const Matrix<double>& left, const Matrix<double>& right) {
    Matrix<double> result(left.rows(), right.cols());
    for (std::size_t i = 0; i < left.rows(); ++i)
      for (std::size_t c = 0; c < right.cols(); ++c) {
        T sum = 0;
        for (std::size_t k = 0; k < left.cols(); ++k)
          sum += static_cast<T>(left(i, k)) * static_cast<T>(right(k, c));
        result(i, c) = static_cast<double>(sum);
      }
    return result;
  };
  Matrix<double> x = gaussian(random, n, d), a(d, rank), b = gaussian(random, rank, d);
  for (std::size_t i = 0; i < n; ++i)
    for (double& value : x[i]) value = static_cast<double>(static_cast<float>(value));
  for (std::size_t i = 0; i < d; ++i)
    for (double& value : a[i]) value = 1 + static_cast<double>(random.below(7));
  Matrix<double> exact(n, rank);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t c = 0; c < rank; ++c)
      for (std::size_t k = 0; k < d; ++k) exact(i, c) += x(i, k) * a(k, c);
  return {times(x, times(a, b)), std::move(exact)};
}

// Rows of X that A hardly sees leave small keys, which err as much as the large ones do.
TEST(RankPolicy, KeysThatCancelInAFactoredMapErrAsTheOthersDo) {
  KeyOptions options;
  options.margins = Margins::bound;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed, 4);
    const std::size_t rank = 1 + seed % 2, d = rank + 2 + random.below(60),
                      n = 2 * rank + 6 + random.below(150);
    const bool wide = seed % 4 < 2;
    options.unit_roundoff = wide ? 0x1p-53 : 0x1p-24;
    const auto [keys, exact] =
        wide ? factored_map<double>(random, n, rank, d) : factored_map<float>(random, n, rank, d);
    const KeySet set = decide(keys, {}, options);
    EXPECT_EQ(set.rank, rank) << n << " × " << d << ", seed " << seed;
    EXPECT_EQ(verdicts(set), verdicts(decide(exact))) << n << " × " << d << ", seed " << seed;
  }
}

// What looks like them but lies farther out than the others leave, is not what cancelled.
TEST(RankPolicy, SmallKeysWithDirectionsOfTheirOwnKeepThemBesideLargeOnesOnALine) {
  constexpr std::size_t large = 20, small = 9, d = 6;
  for (const double roundoff : {0x1p-24, 0x1p-53})
    for (const double ratio : {10., 1e3, 1e6})
      for (std::uint64_t seed = 0; seed < 4; ++seed) {
        Random random(seed, 5);
        const auto rounded = [&](double value) {
          return roundoff > 0x1p-30 ? static_cast<double>(static_cast<float>(value)) : value;
        };
        const Matrix<double> line = gaussian(random, large, 1), along = gaussian(random, 1, d);
        Matrix<double> keys(large + small, d);
        for (std::size_t i = 0; i < keys.rows(); ++i)
          for (std::size_t c = 0; c < d; ++c)
            keys(i, c) = rounded(i < large ? 4 * rounded(line(i, 0)) * rounded(along(0, c))
                                           : 16 / ratio * random.normal());
        KeyOptions options;
        options.unit_roundoff = roundoff;
        options.margins = Margins::bound;
        EXPECT_EQ(decide(keys, {}, options).rank, d) << roundoff << ", " << ratio << ", seed " << seed;
      }
}

// The others are (x, 5) without any rounding: what is coarse about the key that is off is not what takes it out.
TEST(RankPolicy, OneKeyOffALineStandsOutHoweverLargeItsOtherEntryIs) {
  const auto with = [](double x, double off, std::size_t n, double roundoff) {
    Matrix<double> keys(n, 2);
    for (std::size_t i = 0; i < n; ++i) keys(i, 0) = static_cast<double>(i % 27) - 12, keys(i, 1) = 5;
    keys(7, 0) = x, keys(7, 1) = 5 + off * 4 * roundoff;  // off: in halves of its last place
    KeyOptions options;
    options.unit_roundoff = roundoff;
    const KeySet set = decide(keys, {}, options);
    KeyOptions full = options;
    full.rank = RankPolicy::full;
    EXPECT_EQ(verdicts(set), verdicts(decide(keys, {}, full)));
    return set.rank;
  };
  EXPECT_EQ(with(-9, 1100, 45, 0x1p-53), 2u);
  EXPECT_EQ(with(268, 8000, 45, 0x1p-53), 2u);
  EXPECT_EQ(with(268, 8000, 25, 0x1p-24), 2u);
  EXPECT_EQ(with(-455, 50000, 57, 0x1p-24), 2u);
}

// Multiples of one vector, rounded once: those that are equal, opposite or twice as large err alike.
TEST(RankPolicy, MultiplesThatShareTheirRoundingLieOnALine) {
  for (const double roundoff : {0x1p-11, 0x1p-8})
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      Random random(seed, 6);
      const std::size_t d = 16 + random.below(112), copies = 8 + random.below(60);
      const Matrix<double> vector = gaussian(random, 1, d);
      std::vector<double> times;
      for (const double k : {-3., -1., 0., 1., 3.}) times.insert(times.end(), copies, k);
      times.push_back(2);
      Matrix<double> keys(times.size(), d), exact(times.size(), 1);
      for (std::size_t i = 0; i < times.size(); ++i) {
        exact(i, 0) = times[i];
        for (std::size_t c = 0; c < d; ++c) {
          int exponent = 0;
          const double fraction = std::frexp(times[i] * vector(0, c), &exponent) / (2 * roundoff);
          keys(i, c) = std::ldexp(std::nearbyint(fraction) * (2 * roundoff), exponent);
        }
      }
      KeyOptions options;
      options.unit_roundoff = roundoff;
      const KeySet set = decide(keys, {}, options);
      EXPECT_EQ(set.rank, 1u) << d << ", " << copies << " copies, seed " << seed;
      EXPECT_EQ(verdicts(set), verdicts(decide(exact))) << d << ", seed " << seed;
    }
}

TEST(RankPolicy, KeysThatRepeatHaveNoMoreRankThanDistinctOnes) {
  for (const auto& [n, d, distinct] :
       {std::tuple<std::size_t, std::size_t, std::size_t>{5, 48, 2}, {40, 24, 2}, {64, 64, 22}}) {
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      Random random(seed, n);
      const Matrix<double> factor = gaussian(random, distinct, 1), line = gaussian(random, 1, d);
      Matrix<double> keys(n, d);
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t from = i < distinct ? i : random.below(distinct);
        for (std::size_t c = 0; c < d; ++c) keys(i, c) = factor(from, 0) * line(0, c) + 0.3;
      }
      EXPECT_EQ(decide(keys).rank, 1u) << n << " × " << d << ", seed " << seed;
    }
  }
}

// Pairs of keys that differ by more than a thousand roundings, in all coordinates alike.
TEST(RankPolicy, InformationIsKeptInThousandsOfDimensions) {
  const std::size_t d = 3000;
  const std::vector<double> along = {1, 1, 2, 2, 3, 3, 4, 4};
  for (int steps = 9; steps <= 15; ++steps) {
    Matrix<double> keys(8, d);
    for (std::size_t i = 0; i < 8; ++i)
      for (std::size_t c = 0; c < d; ++c)
        keys(i, c) = along[i] * (c % 2 == 0 ? 1 : -1) +
                     std::ldexp((i % 2 == 0 ? 1 : -1) * (c % 3 == 0 ? 1 : -1) * steps * 256, -52);
    EXPECT_EQ(decide(keys).rank, 2u) << steps;
  }
}

TEST(RankPolicy, CentredProductsHaveTheRankOfTheirFactorsBesideASink) {
  for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
    Random random(seed);
    Matrix<double> keys(400, 16);
    std::vector<double> direction(16), mean(16, 0.0);
    for (double& value : direction) value = random.normal();
    for (std::size_t i = 0; i < 400; ++i) {
      const double length = random.normal() * (i == 0 ? 1000 : 1);
      for (std::size_t c = 0; c < 16; ++c) mean[c] += (keys(i, c) = length * direction[c]) / 400;
    }
    for (std::size_t i = 0; i < 400; ++i)
      for (std::size_t c = 0; c < 16; ++c) keys(i, c) -= mean[c];
    KeyOptions options;
    options.margins = Margins::bound;
    options.exact_effort = 0;
    EXPECT_EQ(decide(keys, {}, options).rank, 1u) << seed;
  }
}

TEST(RankPolicy, AKeyThatIsLargeInFewColumnsHidesNoDirectionOfTheOthers) {
  for (const auto& [roundoff, size] : {std::pair(0x1p-11, 1e4), std::pair(0x1p-24, 1e7)}) {
    Random random(27);
    Matrix<double> keys(40, 8);
    for (std::size_t i = 0; i < 40; ++i)
      for (double& value : keys[i]) value = rounded_to(random.normal(), roundoff);
    keys(0, 0) = keys(0, 1) = rounded_to(size, roundoff);
    KeyOptions options;
    options.unit_roundoff = roundoff;
    options.margins = Margins::bound;
    EXPECT_EQ(decide(keys, {}, options).rank, 8u) << size;
  }
}

// Float16, float32 and float64 keys, one of which is far off the flat of the others for its own size, though not
// for theirs.
TEST(RobustBelowFullRank, AKeyOffTheFlatByMoreThanItsRoundingIsNotRobustlyUnselectable) {
  const std::vector<double> half = {-1, -1, .0625, -.0625, 16, 16, 32, 32, 48, 48, 64, 64};
  const std::vector<double> single = {-1,   -1,   .01F,  -.01F, 4096,  4096,
                                      8192, 8192, 12288, 12288, 16384, 16384};
  const std::vector<double> wide = {-1,   -1,   1e-14, -1e-14, 4096,  4096,
                                    8192, 8192, 12288, 12288,  16384, 16384};
  for (const auto& [values, roundoff] :
       {std::pair(half, 0x1p-11), std::pair(single, 0x1p-24), std::pair(wide, 0x1p-53)}) {
    KeyOptions options;
    options.unit_roundoff = roundoff;
    const MatrixView<const double> keys(values.data(), 6, 2);
    const KeySet flat = decide_keys(keys, {}, options, Executor(1));
    EXPECT_FALSE(flat.rank == 1 && flat.keys[1].verdict == Verdict::unselectable && flat.keys[1].robust);
    options.rank = RankPolicy::full;
    EXPECT_EQ(decide_keys(keys, {}, options, Executor(1)).keys[1].verdict, Verdict::selectable);
  }
  // Four units in the last place of a double off a line.
  const double off = 1.25 + 4 * 0x1p-52;
  const std::vector<double> line = {1, 1, 1.25, 1.25, 1.5, 1.5, 1.75, 1.75, 1.25, off};
  const KeySet doubles = decide_keys({line.data(), 5, 2}, {}, {}, Executor(1));
  EXPECT_FALSE(doubles.keys[4].verdict == Verdict::unselectable && doubles.keys[4].robust);
}

// Noise that is less than any rounding does not put the key into the flat.
TEST(RobustBelowFullRank, NeitherIsOneThatDoublesLoseBesideTheCentre) {
  const double u = 0x1p-53;
  std::vector<double> values;
  for (const double t : {0, 2, 1024, 2048, 3072, 4096, 5120, 6144, 7168, 8192})
    values.insert(values.end(), 4, t);
  for (const double value : {1 + 24 * u, 1 - 24 * u, 1.0, 1.0}) values.push_back(value);
  const Matrix<double> keys(11, 4, values);
  const KeySet set = decide(keys);
  ASSERT_EQ(set.rank, 1u);
  EXPECT_EQ(set.keys[10].verdict, Verdict::unselectable);
  EXPECT_FALSE(set.keys[10].robust) << "(1, −1, 0, 0) tells it from all others, whatever rounding did";
  EXPECT_GT(set.left_out, 24 * u);
}

TEST(RobustBelowFullRank, NoNoiseDoesNotBringAKeyIntoTheFlat) {
  const std::vector<double> values = {-1,   -1,   1e-14, -1e-14, 4096,  4096,  8192,
                                      8192, 9000, 9000,  10000,  10000, 16384, 16384};
  for (const double noise : {0.0, 1e-20}) {
    KeyOptions options;
    options.noise = noise;
    const KeySet set = decide_keys({values.data(), 7, 2}, {}, options, Executor(1));
    ASSERT_EQ(set.rank, 1u);
    for (const KeyVerdict& key : set.keys) EXPECT_FALSE(key.verdict == Verdict::unselectable && key.robust);
  }
}

// Three keys in a plane: of columns of very different sizes those are kept that hold lengths.
TEST(KeysBelowFullRank, MarginsAreLengthsThoughColumnsDifferInSize) {
  for (const double scale : {1e2, 1e4, 1e6, 1e10}) {
    const std::vector<double> values = {0, -2, 0, 0, 0, -scale, -3 / scale, -3, -2 * scale};
    const KeySet set = decide_keys({values.data(), 3, 3}, {}, {}, Executor(1));
    ASSERT_EQ(set.rank, 2u) << scale;
    // Of key 1 to the line through the others: the cross product over the length, by hand.
    const double a[3] = {0, 2, -scale}, b[3] = {-3 / scale, -1, -2 * scale};
    const double cross[3] = {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
    const double expected = std::hypot(cross[0], cross[1], cross[2]) / std::hypot(b[0], b[1], b[2]);
    EXPECT_NEAR(set.keys[1].margin / expected, 1, 1e-6) << scale;
    EXPECT_FALSE(set.keys[1].margin_at_most) << scale;
    EXPECT_LE(set.keys[1].margin, expected * (1 + 1e-12)) << scale;
  }
}

TEST(RobustBelowFullRank, NoiseIsHeldAgainstTheFinestColumn) {
  const std::vector<double> values = {1e5, 0, 0, -1e5, 0, 0, 0, 1, 1, 0, -1, -1, 25000, .125, .125};
  KeyOptions options;
  options.noise = 1e-11;  // less than rounding of the first column, far more than that of the others
  const KeySet set = decide_keys({values.data(), 5, 3}, {}, options, Executor(1));
  EXPECT_EQ(set.rank, 2u);
  EXPECT_EQ(set.keys[4].verdict, Verdict::unselectable);
  EXPECT_FALSE(set.keys[4].robust);
  std::vector<double> moved = values;
  moved.back() += 9e-12;
  EXPECT_EQ(decide_keys({moved.data(), 5, 3}, {}, {}, Executor(1)).keys[4].verdict, Verdict::selectable);
}

TEST(RobustBelowFullRank, OnlyScalingOfWholeRowsKeepsKeysInTheProjection) {
  for (const char* name : {"center", "layernorm", "center+unit"})
    EXPECT_EQ(directions_projected_out(parse_norm(name)), 1u) << name;
  for (const char* name : {"none", "rmsnorm", "center+dyt", "center+qknorm:2", "xsigma"})
    EXPECT_EQ(directions_projected_out(parse_norm(name)), 0u) << name;
}

// Badly scaled coordinates, on which the updated inverse of a search loses its digits.
TEST(MarginAtMost, IsAnUpperBound) {
  const std::vector<double> values = {7.050080924968746e-05,  -10.491352664504088,   -0.00019944389500506466,
                                      13.946547255296256,     8.499660389902165e-05, 11.897514758796374,
                                      4.3491040832441304e-05, -12.866253810647455,   9.862424823872288e-05,
                                      5.1805055696473445};
  KeyOptions options;
  const KeySet decided = decide_keys({values.data(), 5, 2}, {}, options, Executor(1));
  EXPECT_NEAR(decided.keys[0].margin, 1.97544e-05, 1e-9);
  options.exact_effort = 0;
  const KeySet bounded = decide_keys({values.data(), 5, 2}, {}, options, Executor(1));
  EXPECT_GE(bounded.keys[0].margin_at_most.value_or(INFINITY), 1.97542e-05);
}

TEST(WeightBound, IsAboveZeroWhereTheWeightIsBelowAllDoubles) {
  const std::vector<double> values = {1, 2}, offsets = {0, 1000};
  KeyOptions options;
  options.query_norm = 1;
  EXPECT_GT(
      decide_keys({values.data(), 2, 1}, offsets, options, Executor(1)).keys[0].max_weight_bound.value(), 0);
}

TEST(Robust, CountsTheStepOfTheLeastDoubles) {
  std::vector<double> values = {0, 0, 1, 0, 0, 1, 64, 64};
  for (double& value : values) value *= std::numeric_limits<double>::denorm_min();
  EXPECT_FALSE(decide_keys({values.data(), 4, 2}, {}, {}, Executor(1)).keys[0].robust);
}

}  // namespace
}  // namespace normscope

// The largest softmax weight that a query of bounded norm can give a key.
#include "keys/weight.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include "normscope/keys.h"
#include "normscope/random.h"
#include "normscope/tensor_file.h"
#include "support/key_sets.h"
#include "support/paths.h"

namespace normscope {
namespace {

std::vector<KeyVerdict> weigh(const Matrix<double>& keys, std::span<const double> offsets, double radius) {
  KeyOptions options;
  options.query_norm = radius;
  return decide_keys(keys.view(), offsets, options, Executor(1)).keys;
}

// Softmax weights under one query.
std::vector<double> softmax(const Matrix<double>& keys, std::span<const double> offsets,
                            std::span<const double> query) {
  std::vector<double> weights(keys.rows());
  for (std::size_t i = 0; i < keys.rows(); ++i) {
    weights[i] = offsets.empty() ? 0 : offsets[i];
    for (std::size_t c = 0; c < keys.cols(); ++c) weights[i] += query[c] * keys(i, c);
  }
  const double top = *std::max_element(weights.begin(), weights.end());
  double sum = 0;
  for (double& weight : weights) sum += weight = std::exp(weight - top);
  for (double& weight : weights) weight /= sum;
  return weights;
}

// The two numbers must be in order and nearly meet: otherwise neither says what the largest weight is.
void expect_tight(const KeyVerdict& key) {
  ASSERT_TRUE(key.max_weight && key.max_weight_bound);
  EXPECT_GT(*key.max_weight, 0);
  EXPECT_LE(*key.max_weight, *key.max_weight_bound);
  EXPECT_LE(*key.max_weight_bound, 1);
  EXPECT_LE(*key.max_weight_bound - *key.max_weight, 1e-6 * *key.max_weight);
}

TEST(LargestWeight, IsAbsentUnlessAskedFor) {
  const Matrix<double> keys(2, 1, {0, 1});
  const KeySet set = decide_keys(keys.view(), {}, {}, Executor(1));
  EXPECT_FALSE(set.keys[0].max_weight);
  EXPECT_FALSE(set.keys[0].max_weight_bound);
}

TEST(LargestWeight, OfTwoKeysIsTheLogisticFunctionOfTheirDistance) {
  for (double distance : {0.01, 0.5, 3.0})
    for (double radius : {0.0, 0.3, 2.0, 7.0}) {
      const Matrix<double> keys(2, 2, {1, 1, 1 + 0.6 * distance, 1 - 0.8 * distance});
      for (const KeyVerdict& key : weigh(keys, {}, radius)) {
        expect_tight(key);
        EXPECT_NEAR(*key.max_weight, 1 / (1 + std::exp(-radius * distance)), 1e-8);
      }
    }
}

TEST(LargestWeight, OfTheCentreIsThatOfTheZeroQuery) {
  const Matrix<double> keys(5, 2, {1, 0, -1, 0, 0, 1, 0, -1, 0, 0});
  for (double radius : {0.5, 3.0, 100.0}) {
    const KeyVerdict key = weigh(keys, {}, radius)[4];
    expect_tight(key);
    EXPECT_NEAR(*key.max_weight, 0.2, 1e-7) << radius;
  }
}

TEST(LargestWeight, AgreesWithADenseSearchOfTheDisc) {
  constexpr int kRings = 60, kRays = 360;
  Random random(11);
  for (std::size_t n = 1; n <= 9; ++n)
    for (double radius : {0.3, 2.0, 6.0})
      for (bool with_offsets : {false, true}) {
        const Matrix<double> keys = gaussian(random, n, 2);
        const std::vector<double> offsets = with_offsets ? gaussian_list(random, n) : std::vector<double>();
        std::vector<double> best = softmax(keys, offsets, std::vector<double>{0, 0});
        for (int ring = 1; ring <= kRings; ++ring)
          for (int ray = 0; ray < kRays; ++ray) {
            const double angle = 2 * std::numbers::pi * ray / kRays, length = radius * ring / kRings;
            const std::vector<double> at = softmax(
                keys, offsets, std::vector<double>{length * std::cos(angle), length * std::sin(angle)});
            for (std::size_t i = 0; i < n; ++i) best[i] = std::max(best[i], at[i]);
          }
        // Between grid points log weight changes by at most step · largest distance of two keys.
        double widest = 0;
        for (std::size_t i = 0; i < n; ++i)
          for (std::size_t j = 0; j < i; ++j)
            widest = std::max(widest, std::hypot(keys(i, 0) - keys(j, 0), keys(i, 1) - keys(j, 1)));
        const double step = radius * std::hypot(0.5 / kRings, std::numbers::pi / kRays);
        const std::vector<KeyVerdict> found = weigh(keys, offsets, radius);
        for (std::size_t i = 0; i < n; ++i) {
          expect_tight(found[i]);
          EXPECT_LE(best[i], *found[i].max_weight_bound * (1 + 1e-12));
          EXPECT_GE(best[i], *found[i].max_weight * std::exp(-step * widest));
        }
      }
}

TEST(LargestWeight, IsNeverExceededByAQueryOfThatNorm) {
  Random random(12);
  for (std::size_t d : {1, 3, 5, 8, 16})
    for (std::size_t n : {2, 6, 20, 50})
      for (double radius : {0.5, 3.0, 20.0}) {
        const Matrix<double> keys = gaussian(random, n, d);
        const std::vector<double> offsets =
            random.below(2) == 0 ? gaussian_list(random, n) : std::vector<double>();
        const std::vector<KeyVerdict> found = weigh(keys, offsets, radius);
        for (const KeyVerdict& key : found) expect_tight(key);
        for (int draw = 0; draw < 200; ++draw) {
          // Towards a random key or anywhere, mostly on the sphere.
          std::vector<double> query = gaussian_list(random, d);
          if (draw % 2 == 0) {
            const auto key = keys[random.below(n)];
            for (std::size_t c = 0; c < d; ++c) query[c] = key[c] + 0.2 * query[c];
          }
          double size = 0;
          for (double q : query) size += q * q;
          const double length = radius * (draw % 4 < 3 ? 1.0 : random.uniform()) / std::sqrt(size);
          for (double& q : query) q *= length;
          const std::vector<double> weights = softmax(keys, offsets, query);
          for (std::size_t i = 0; i < n; ++i)
            EXPECT_LE(weights[i], *found[i].max_weight_bound * (1 + 1e-12)) << n << " × " << d;
        }
      }
}

TEST(LargestWeight, WithNoQueryIsTheSoftmaxOfTheOffsets) {
  Random random(13);
  for (std::size_t n : {1, 2, 7, 30}) {
    const Matrix<double> keys = gaussian(random, n, 4);
    for (const KeyVerdict& key : weigh(keys, {}, 0)) {
      expect_tight(key);
      EXPECT_NEAR(*key.max_weight, 1 / static_cast<double>(n), 1e-14);
    }
    const std::vector<double> offsets = gaussian_list(random, n);
    const std::vector<double> expected = softmax(keys, offsets, std::vector<double>(4, 0.0));
    const std::vector<KeyVerdict> found = weigh(keys, offsets, 0);
    for (std::size_t i = 0; i < n; ++i) {
      expect_tight(found[i]);
      EXPECT_NEAR(*found[i].max_weight, expected[i], 1e-14);
    }
  }
}

TEST(LargestWeight, GrowsWithTheNormOfTheQuery) {
  Random random(14);
  for (std::size_t d : {1, 2, 5})
    for (bool with_offsets : {false, true}) {
      const Matrix<double> keys = gaussian(random, 25, d);
      const std::vector<double> offsets = with_offsets ? gaussian_list(random, 25) : std::vector<double>();
      std::vector<double> before(25, 0.0);
      for (double radius : {0.0, 0.1, 0.5, 1.0, 3.0, 10.0, 30.0, 100.0}) {
        const std::vector<KeyVerdict> found = weigh(keys, offsets, radius);
        for (std::size_t i = 0; i < 25; ++i) {
          expect_tight(found[i]);
          EXPECT_GE(*found[i].max_weight, before[i] * (1 - 1e-8)) << "key " << i << ", radius " << radius;
          before[i] = *found[i].max_weight;
        }
      }
    }
}

// At a vertex of the keys the margin outgrows any offsets.
TEST(LargestWeight, OfAVertexTendsToOneWhateverTheOffsets) {
  Random random(15);
  for (std::size_t d : {1, 2, 4}) {
    const Matrix<double> keys = gaussian(random, 20, d);
    const std::vector<KeyVerdict> alone = weigh(keys, {}, 1e7);
    const std::vector<KeyVerdict> offset = weigh(keys, gaussian_list(random, 20), 1e7);
    std::size_t vertices = 0;
    for (std::size_t i = 0; i < 20; ++i) {
      if (alone[i].verdict != Verdict::selectable) continue;
      ASSERT_GT(alone[i].margin, 1e-5);
      ++vertices;
      EXPECT_GT(*alone[i].max_weight, 1 - 1e-12);
      EXPECT_GT(*offset[i].max_weight, 1 - 1e-12);
      EXPECT_GE(*offset[i].max_weight_bound, *offset[i].max_weight);
    }
    EXPECT_GE(vertices, d + 1);
  }
}

TEST(LargestWeight, OfAKeyWithADuplicateIsAtMostHalf) {
  Random random(16);
  Matrix<double> keys = gaussian(random, 12, 3);
  for (std::size_t i : {2, 9}) std::fill(keys[i].begin(), keys[i].end(), 5.0);  // a vertex, twice
  for (double radius : {1.0, 10.0, 1e3, 1e5}) {
    const std::vector<KeyVerdict> found = weigh(keys, {}, radius);
    EXPECT_EQ(*found[2].max_weight, *found[9].max_weight);
    EXPECT_LE(*found[2].max_weight_bound, 0.5 * (1 + 1e-9));
    expect_tight(found[2]);
    if (radius > 5) {
      EXPECT_NEAR(*found[2].max_weight, 0.5, 1e-9);
    }
  }
}

// Some key of its cover always scores at least as high, so an unselectable key never gets more than half.
TEST(LargestWeight, OfAnUnselectableKeyHasACeilingBelowHalf) {
  Random random(17);
  std::size_t seen = 0;
  for (std::size_t d : {1, 2, 3, 5}) {
    const Matrix<double> keys = gaussian(random, 40, d);
    for (double radius : {1.0, 100.0, 1e6})
      for (const KeyVerdict& key : weigh(keys, {}, radius)) {
        if (key.verdict != Verdict::unselectable) continue;
        ++seen;
        EXPECT_LE(*key.max_weight_bound, 0.5 * (1 + 1e-9));
        expect_tight(key);
      }
  }
  EXPECT_GT(seen, 100u);
}

TEST(LargestWeight, OfEqualKeysIsAnEqualShare) {
  const Matrix<double> keys(4, 2, {3, 1, 3, 1, 3, 1, 3, 1});
  for (double radius : {0.0, 5.0})
    for (const KeyVerdict& key : weigh(keys, {}, radius)) {
      EXPECT_NEAR(*key.max_weight, 0.25, 1e-14);
      expect_tight(key);
    }
}

TEST(LargestWeight, OfAKeyAloneIsOne) {
  for (double radius : {0.0, 5.0}) {
    const KeyVerdict key = weigh(Matrix<double>(1, 3, {1, 2, 3}), {}, radius)[0];
    EXPECT_EQ(*key.max_weight, 1);
    EXPECT_EQ(*key.max_weight_bound, 1);
  }
}

TEST(LargestWeight, DoesNotDependOnAMoveOfAllKeysOrOffsets) {
  Random random(18);
  const Matrix<double> keys = gaussian(random, 15, 3);
  const std::vector<double> offsets = gaussian_list(random, 15);
  Matrix<double> moved = keys;
  std::vector<double> raised = offsets;
  for (std::size_t i = 0; i < 15; ++i) {
    for (std::size_t c = 0; c < 3; ++c) moved(i, c) += 10 * static_cast<double>(c + 1);
    raised[i] += 100;
  }
  const std::vector<KeyVerdict> before = weigh(keys, offsets, 2), after = weigh(moved, raised, 2);
  for (std::size_t i = 0; i < 15; ++i) EXPECT_NEAR(*before[i].max_weight, *after[i].max_weight, 1e-8);
}

// A query may use every direction of the hull, however the keys are turned within a larger space.
TEST(LargestWeight, CountsTheNormInTheHullOfFlatKeys) {
  Random random(19);
  const Matrix<double> flat = gaussian(random, 12, 2);
  Matrix<double> turned(12, 3);  // (x, y) → x (1, 2, 2)/3 + y (2, 1, −2)/3
  for (std::size_t i = 0; i < 12; ++i) {
    turned(i, 0) = (flat(i, 0) + 2 * flat(i, 1)) / 3;
    turned(i, 1) = (2 * flat(i, 0) + flat(i, 1)) / 3;
    turned(i, 2) = (2 * flat(i, 0) - 2 * flat(i, 1)) / 3;
  }
  const std::vector<KeyVerdict> expected = weigh(flat, {}, 3), found = weigh(turned, {}, 3);
  for (std::size_t i = 0; i < 12; ++i) {
    expect_tight(found[i]);
    EXPECT_NEAR(*found[i].max_weight, *expected[i].max_weight, 1e-7);
  }
}

TEST(LargestWeight, AcceptsAnyStart) {
  Random random(20);
  const Matrix<double> keys = gaussian(random, 20, 4);
  for (std::size_t key = 0; key < 20; ++key) {
    const double reference = largest_weight(keys.view(), {}, key, 2, {}).attained;
    for (int draw = 0; draw < 5; ++draw) {
      const std::vector<double> start = draw == 0 ? std::vector<double>(4, 0.0) : gaussian_list(random, 4);
      EXPECT_NEAR(largest_weight(keys.view(), {}, key, 2, start).attained, reference, 1e-8);
    }
  }
}

TEST(LargestWeight, OfKeysBelowFullRankHoldsForTheKeysAsGiven) {
  // Float16, nearly zero-sum: what rounding left along 1 moves scores by a tenth at this norm.
  const Tensor tensor = TensorFile::open(source_path() + "/tests/golden/keys/weight_bound_f16.npy").read();
  const Matrix<double> keys(tensor.shape[0], tensor.shape[1], tensor.values);
  KeyOptions options;
  options.unit_roundoff = 0x1p-11;
  options.query_norm = 100;
  const KeySet set = decide_keys(keys.view(), {}, options, Executor(1));
  ASSERT_EQ(set.rank, 3u);
  Random random(31);
  for (int attempt = 0; attempt < 200; ++attempt) {
    std::vector<double> query =
        attempt < 2 ? std::vector<double>(4, attempt == 0 ? 1 : -1) : gaussian_list(random, 4);
    const double size = std::sqrt(std::inner_product(query.begin(), query.end(), query.begin(), 0.0));
    std::vector<double> scores(keys.rows());
    for (std::size_t i = 0; i < keys.rows(); ++i)
      scores[i] = std::inner_product(query.begin(), query.end(), keys[i].begin(), 0.0) * 100 / size;
    const double top = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (const double score : scores) sum += std::exp(score - top);
    for (std::size_t i = 0; i < keys.rows(); ++i)
      EXPECT_LE(std::exp(scores[i] - top) / sum, *set.keys[i].max_weight_bound * (1 + 1e-12)) << i;
  }
}

TEST(LargestWeight, OfKeysFarApartIsNotRoundedAway) {
  Matrix<double> keys(3, 1);
  keys(1, 0) = 1, keys(2, 0) = 1e17;  // moved to their mean, 0 and 1 are one point
  const std::vector<KeyVerdict> found = weigh(keys, {}, 10);
  EXPECT_GE(*found[0].max_weight_bound, 1 / (1 + std::exp(-10.0)));
  EXPECT_LE(*found[0].max_weight, *found[0].max_weight_bound);
}

}  // namespace
}  // namespace normscope

// Which keys attention can select: the definitions, and what must not change a verdict.
#include "normscope/keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "normscope/norm.h"
#include "normscope/random.h"
#include "support/key_sets.h"

namespace normscope {
namespace {

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

TEST(Keys, BoundsWithoutCertificatesAreBoundsOfTheSameVerdicts) {
  // Points of a circle, close together, and a tie, which rational arithmetic has to decide.
  Matrix<double> keys(43, 2);
  for (std::size_t i = 0; i < 40; ++i) {
    const double angle = 3e-8 * static_cast<double>(i);
    keys[i][0] = std::cos(angle);
    keys[i][1] = std::sin(angle);
  }
  for (std::size_t i = 40; i < 43; ++i) keys[i][0] = -2, keys[i][1] = static_cast<double>(i) - 41;
  KeyOptions options;
  const KeySet exact = decide(keys, {}, options);
  options.certificates = false;
  options.margins = Margins::bound;
  const KeySet bare = decide(keys, {}, options);
  EXPECT_GT(bare.exact_path, 0u);
  EXPECT_EQ(verdicts(bare), verdicts(exact));
  for (std::size_t i = 0; i < 43; ++i) {
    EXPECT_GE(bare.keys[i].margin, 0);
    EXPECT_LE(bare.keys[i].margin, exact.keys[i].margin);
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

struct PrefixesByBruteForce {
  std::vector<std::size_t> last;               // in which the key is selectable
  std::vector<std::vector<Verdict>> verdicts;  // in the prefixes that hold it, the shortest first
};

PrefixesByBruteForce prefixes_by_brute_force(const Matrix<double>& keys, std::span<const double> offsets) {
  PrefixesByBruteForce result{std::vector<std::size_t>(keys.rows(), 0),
                              std::vector<std::vector<Verdict>>(keys.rows())};
  for (std::size_t length = 1; length <= keys.rows(); ++length) {
    const oracle::ExactKeys exact(keys.view().first_rows(length),
                                  offsets.empty() ? offsets : offsets.first(length));
    for (std::size_t i = 0; i < length; ++i) {
      result.verdicts[i].push_back(oracle::oracle_verdict(exact, i));
      if (result.verdicts[i].back() == kSelectable) result.last[i] = length;
    }
  }
  return result;
}

void expect_prefixes(const Matrix<double>& keys, std::span<const double> offsets, int draw) {
  KeyOptions options;
  options.prefix = true;
  const KeySet set = decide(keys, offsets, options);
  const PrefixesByBruteForce expected = prefixes_by_brute_force(keys, offsets);
  for (std::size_t i = 0; i < keys.rows(); ++i) {
    ASSERT_TRUE(set.keys[i].last_prefix.has_value());
    EXPECT_EQ(*set.keys[i].last_prefix, expected.last[i]) << "draw " << draw << ", key " << i;
    const std::vector<Verdict>& verdicts = expected.verdicts[i];
    const KeyVerdict& key = set.keys[i];
    EXPECT_EQ(key.prefix_verdict, *std::min_element(verdicts.begin(), verdicts.end()))
        << "draw " << draw << ", key " << i;
    if (key.prefix_verdict != Verdict::unselectable) {
      EXPECT_EQ(verdicts[key.verdict_prefix - i - 1], key.prefix_verdict) << "draw " << draw << ", key " << i;
    }
    if (key.robust_in_prefixes) {
      EXPECT_EQ(key.prefix_verdict, Verdict::unselectable);
    }
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

TEST(Prefixes, AKeyInsideMayHaveBeenOnAFace) {
  // The middle of a line, which a key beside it makes an edge, and one on the other side an inner line again.
  KeyOptions options;
  options.prefix = true;
  const KeySet set = decide(matrix({{0, 0}, {2, 0}, {1, 0}, {1, 1}, {1, -1}}), {}, options);
  EXPECT_EQ(set.keys[2].verdict, Verdict::unselectable);
  EXPECT_EQ(set.keys[2].prefix_verdict, Verdict::tied);
  EXPECT_EQ(set.keys[2].verdict_prefix, 4u);
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

TEST(Keys, ManyEqualKeysDoNotListEachOtherInFull) {
  const std::size_t n = 70000;
  Matrix<double> keys(n, 2);
  keys(n - 1, 0) = 1;
  KeyOptions options;
  options.margins = Margins::bound;
  const KeySet set = decide(keys, {}, options);
  EXPECT_EQ(set.counts.tied, n - 1);
  EXPECT_EQ(set.counts.selectable, 1u);
  for (const std::size_t i : {std::size_t{0}, n / 2, n - 2}) {
    ASSERT_EQ(set.keys[i].tied_with.size(), (std::size_t{1} << 23) / n);
    EXPECT_EQ(set.keys[i].tied_with[0], i == 0 ? 1u : 0u);
  }
}

}  // namespace
}  // namespace normscope

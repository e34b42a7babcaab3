// What advice says would make a key selectable, held against the exact oracle: on sets changed as it says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "normscope/advice.h"
#include "oracle/families.h"
#include "oracle/oracle.h"

namespace normscope::oracle {
namespace {

using enum Verdict;

// Whole numbers: a few bits, so that small fractions of them are still doubles.
Matrix<double> whole_keys(Random& random, std::size_t n, std::size_t d) {
  Matrix<double> keys(n, d);
  for (std::size_t i = 0; i < n; ++i)
    for (double& x : keys[i]) x = std::round(8 * random.normal());
  return keys;
}

std::vector<double> whole_offsets(Random& random, std::size_t n) {
  std::vector<double> offsets(n);
  for (double& b : offsets) b = std::round(16 * random.normal());
  return offsets;
}

// To the grid of 2^-24, on which products with the keys above are doubles.
double down(double value) {
  return std::floor(std::ldexp(value, 24)) * 0x1p-24;
}
double up(double value) {
  return std::ceil(std::ldexp(value, 24)) * 0x1p-24;
}

KeySet decided(const Matrix<double>& keys, const std::vector<double>& offsets) {
  KeyOptions options;
  options.rank = RankPolicy::full;
  return decide_keys(keys.view(), offsets, options, Executor(1));
}

SetAdvice advice_on(const Matrix<double>& keys, const std::vector<double>& offsets, const KeySet& set) {
  KeyOptions options;
  options.rank = RankPolicy::full;
  return advise(keys.view(), offsets, set, options, Executor(2));
}

Verdict scaled(Matrix<double> keys, const std::vector<double>& offsets, std::size_t i, double factor) {
  for (double& x : keys[i]) x *= factor;
  return oracle_verdict(keys.view(), offsets, i);
}

Verdict lifted(const Matrix<double>& keys, std::vector<double> offsets, std::size_t i, double more) {
  offsets.resize(keys.rows(), 0.0);
  offsets[i] += more;
  return oracle_verdict(keys.view(), offsets, i);
}

bool wins(const Matrix<double>& keys, std::vector<double> offsets, std::size_t i,
          const std::vector<double>& query, double factor, double more) {
  offsets.resize(keys.rows(), 0.0);
  const auto score = [&](std::size_t j) {
    long double sum = offsets[j] + (j == i ? more : 0);
    for (std::size_t c = 0; c < query.size(); ++c)
      sum += static_cast<long double>(query[c]) * keys(j, c) * (j == i ? factor : 1);
    return sum;
  };
  for (std::size_t j = 0; j < keys.rows(); ++j)
    if (j != i && !(score(i) > score(j))) return false;
  return true;
}

TEST(KeyAdvice, ThresholdsAreThoseOfTheOracle) {
  Random random(20);
  std::size_t scales = 0, offsets_seen = 0, grown = 0;
  for (int draw = 0; draw < 120; ++draw) {
    const std::size_t d = 1 + random.below(3), n = 3 + random.below(10);
    const Matrix<double> keys = whole_keys(random, n, d);
    const std::vector<double> offsets = draw % 2 == 0 ? std::vector<double>() : whole_offsets(random, n);
    const KeySet set = decided(keys, offsets);
    const SetAdvice advice = advice_on(keys, offsets, set);
    for (std::size_t i = 0; i < n; ++i) {
      SCOPED_TRACE(testing::Message() << "draw " << draw << ", key " << i << " of " << n << ", d " << d);
      const bool in_need = set.keys[i].verdict == tied || set.keys[i].verdict == unselectable;
      ASSERT_EQ(advice.keys[i].has_value(), in_need);
      if (!in_need) continue;
      const KeyAdvice& said = *advice.keys[i];
      const bool zero = std::all_of(keys[i].begin(), keys[i].end(), [](double x) { return x == 0; });
      ASSERT_EQ(said.scale.has_value(), !zero) << said.without;
      if (said.scale) {
        ++scales;
        const double least = said.scale->least;
        grown += least > 1;
        ASSERT_GE(least, 1);
        // Below the threshold none selects it, from the present value on; above it some query does.
        EXPECT_NE(scaled(keys, offsets, i, std::max(1.0, down(least - 0x1p-23))), selectable);
        EXPECT_EQ(scaled(keys, offsets, i, up(least + 0x1p-23)), selectable);
        EXPECT_EQ(scaled(keys, offsets, i, up(2 * least + 1)), selectable);
        ASSERT_FALSE(said.scale->witness.empty());
        EXPECT_TRUE(wins(keys, offsets, i, said.scale->witness, said.scale->enough, 0));
        EXPECT_TRUE(wins(keys, offsets, i, said.scale->witness, 10 * said.scale->enough, 0));
        // The cover reproduces the key at the threshold, with at least its offset.
        std::vector<double> mixture(d, 0.0);
        double total = 0, offset = 0;
        for (const CoverTerm& term : said.scale->cover) {
          EXPECT_NE(term.index, i);
          total += term.weight;
          if (!offsets.empty()) offset += term.weight * offsets[term.index];
          for (std::size_t c = 0; c < d; ++c) mixture[c] += term.weight * keys(term.index, c);
        }
        EXPECT_NEAR(total, 1, 1e-12);
        for (std::size_t c = 0; c < d; ++c) EXPECT_NEAR(mixture[c], least * keys(i, c), 1e-9);
        if (!offsets.empty()) {
          EXPECT_GE(offset, offsets[i] - 1e-9);
        }
      }
      ASSERT_TRUE(said.offset.has_value()) << said.without;
      ++offsets_seen;
      const double least = said.offset->least;
      ASSERT_GE(least, 0);
      EXPECT_NE(lifted(keys, offsets, i, std::max(0.0, down(least - 0x1p-23))), selectable);
      EXPECT_EQ(lifted(keys, offsets, i, up(least + 0x1p-23)), selectable);
      ASSERT_FALSE(said.offset->witness.empty());
      EXPECT_TRUE(wins(keys, offsets, i, said.offset->witness, 1, said.offset->enough));
      if (offsets.empty()) {
        EXPECT_EQ(least, 0);
      }
    }
  }
  // The sets must have asked something.
  EXPECT_GT(scales, 100u);
  EXPECT_GT(grown, 50u);
  EXPECT_GT(offsets_seen, 100u);
}

TEST(KeyAdvice, OffsetsForAllMakeEveryKeySelectableThatHasNoEqual) {
  Random random(21);
  for (int draw = 0; draw < 40; ++draw) {
    const std::size_t d = 1 + random.below(3), n = 4 + random.below(9);
    const Matrix<double> keys = whole_keys(random, n, d);
    std::vector<double> offsets = draw % 2 == 0 ? std::vector<double>() : whole_offsets(random, n);
    const KeySet set = decided(keys, offsets);
    const SetAdvice advice = advice_on(keys, offsets, set);
    if (set.counts.selectable == n) {
      EXPECT_FALSE(advice.all.has_value());
      continue;
    }
    ASSERT_TRUE(advice.all.has_value());
    offsets.resize(n, 0.0);
    for (std::size_t i = 0; i < n; ++i) offsets[i] += advice.all->offsets[i];
    for (std::size_t i = 0; i < n; ++i) {
      bool equal = false;
      for (std::size_t j = 0; j < n; ++j)
        equal |= j != i && std::equal(keys[i].begin(), keys[i].end(), keys[j].begin());
      // Of equal keys rounding may lift one above the other.
      if (!equal) {
        EXPECT_EQ(oracle_verdict(keys.view(), offsets, i), selectable) << "draw " << draw << ", key " << i;
      }
      EXPECT_GE(advice.all->least[i], 0);
    }
  }
}

// Below full rank: in a plane through the origin a multiple of a key stays in it, beside the origin none does.
TEST(KeyAdvice, FactorsAreToldInFlatsThroughAndBesideTheOrigin) {
  Random random(22);
  std::size_t seen[2] = {};
  for (int draw = 0; draw < 40; ++draw) {
    const std::size_t n = 6 + random.below(8);
    const Matrix<double> plane = whole_keys(random, n, 2);
    for (const double height : {0.0, 32.0}) {
      Matrix<double> keys(n, 3);
      for (std::size_t i = 0; i < n; ++i) {
        keys(i, 0) = plane(i, 0);
        keys(i, 1) = plane(i, 1);
        keys(i, 2) = plane(i, 0) + plane(i, 1) + height;
      }
      const KeyOptions options;
      const std::vector<double> offsets = draw % 2 == 0 ? std::vector<double>() : whole_offsets(random, n);
      const KeySet set = decide_keys(keys.view(), offsets, options, Executor(1));
      if (set.rank != 2) continue;
      const SetAdvice advice = advise(keys.view(), offsets, set, options, Executor(1));
      for (std::size_t i = 0; i < n; ++i) {
        if (!advice.keys[i] || (keys(i, 0) == 0 && keys(i, 1) == 0)) continue;
        SCOPED_TRACE(testing::Message()
                     << "draw " << draw << ", key " << i << " of " << n << ", at " << height);
        const KeyAdvice& said = *advice.keys[i];
        ASSERT_TRUE(said.scale.has_value()) << said.without;
        ++seen[height != 0];
        const double least = said.scale->least;
        if (height != 0) {
          EXPECT_EQ(least, 1);
          // So that the program finds the same, with its measure of rounding.
          Matrix<double> changed = keys;
          for (double& x : changed[i]) x *= said.scale->enough;
          EXPECT_EQ(decide_keys(changed.view(), offsets, options, Executor(1)).keys[i].verdict, selectable);
        }
        EXPECT_NE(scaled(keys, offsets, i, std::max(1.0, down(least - 0x1p-23))), selectable);
        EXPECT_EQ(scaled(keys, offsets, i, up(least + 0x1p-23)), selectable);
        ASSERT_FALSE(said.scale->witness.empty());
        EXPECT_TRUE(wins(keys, offsets, i, said.scale->witness, said.scale->enough, 0));
        EXPECT_TRUE(wins(keys, offsets, i, said.scale->witness, 10 * said.scale->enough, 0));
        EXPECT_FALSE(said.scale->cover.empty());
      }
    }
  }
  EXPECT_GT(seen[0], 50u);
  EXPECT_GT(seen[1], 50u);
}

TEST(KeyAdvice, KnownSets) {
  // The middle of a square, with its corners: twice as far out it is a corner's equal, beyond a vertex.
  const Matrix<double> keys(5, 2, {4, 4, 4, -4, -4, 4, -4, -4, 1, 0});
  const SetAdvice square = advice_on(keys, {}, decided(keys, {}));
  ASSERT_TRUE(square.keys[4] && square.keys[4]->scale);
  EXPECT_EQ(square.keys[4]->scale->least, 4);
  EXPECT_GT(square.keys[4]->scale->witness[0], 0);
  // A key of zeros has no direction to grow in.
  const Matrix<double> centre(3, 1, {-1, 0, 1});
  const SetAdvice line = advice_on(centre, {}, decided(centre, {}));
  EXPECT_FALSE(line.keys[1]->scale.has_value());
  EXPECT_NE(line.keys[1]->without.find("zeros"), std::string::npos);
  // Between −1 and 1 the others reach 0.5 at 0.5: it must rise by 2.5.
  const Matrix<double> three(3, 1, {-1, 1, 0.5});
  const std::vector<double> offsets = {-1, 1, -2};
  const SetAdvice lift = advice_on(three, offsets, decided(three, offsets));
  EXPECT_DOUBLE_EQ(lift.keys[2]->offset->least, 2.5);
  // Equal keys tie; each alone needs any growth at all.
  const Matrix<double> twins(3, 1, {2, 2, -1});
  const SetAdvice twin = advice_on(twins, {}, decided(twins, {}));
  EXPECT_EQ(twin.keys[0]->scale->least, 1);
  EXPECT_EQ(twin.all->counts.tied, 2u);
}

// Their flat is a point: no rational arithmetic is needed, which would take minutes.
// Offsets near the end of what doubles hold: what all keys would need lies beyond it, and is left out.
TEST(KeyAdvice, HugeOffsetsAreNoMistake) {
  const Matrix<double> keys(3, 1, {-1, 0, 1});
  const std::vector<double> offsets = {1.7e308, -1.7e308, 1.7e308};
  const KeySet set = decide_keys(keys.view(), offsets, {}, Executor(1));
  ASSERT_EQ(set.keys[1].verdict, Verdict::unselectable);
  const SetAdvice advice = advise(keys.view(), offsets, set, {}, Executor(1));
  EXPECT_TRUE(advice.keys[1]);
  if (advice.all) {
    for (const double offset : advice.all->offsets) EXPECT_TRUE(std::isfinite(offset));
  }
}

TEST(KeyAdvice, ManyEqualKeysAreToldAtOnce) {
  const Matrix<double> keys(1000, 64, std::vector<double>(64000, 1.5));
  const KeySet set = decide_keys(keys.view(), {}, {}, Executor(2));
  const SetAdvice equal = advise(keys.view(), {}, set, {}, Executor(2));
  for (std::size_t i = 0; i < keys.rows(); ++i) {
    ASSERT_TRUE(equal.keys[i] && equal.keys[i]->scale && equal.keys[i]->offset);
    EXPECT_EQ(equal.keys[i]->scale->least, 1);
    EXPECT_TRUE(wins(keys, {}, i, equal.keys[i]->scale->witness, equal.keys[i]->scale->enough, 0));
  }
}

}  // namespace
}  // namespace normscope::oracle

// The search from a key's own place: what it claims is proven by rational arithmetic, and it closes what the frame
// leaves open.
#include "keys/own_place.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "keys/exact.h"
#include "keys/exact_margin.h"
#include "normscope/keys.h"
#include "normscope/random.h"
#include "support/key_sets.h"

namespace normscope {
namespace {

KeyOptions full_rank() {
  KeyOptions options;
  options.rank = RankPolicy::full;
  return options;
}

double nudged(Random& random, double value) {
  const std::uint64_t step = random.below(3);
  return step == 2 ? value : std::nextafter(value, step == 0 ? kInfinity : -kInfinity);
}

// The second half is the first, but for one unit in the last place.
Matrix<double> near_duplicates(Random& random, std::size_t n, std::size_t d) {
  Matrix<double> keys = gaussian(random, n, d);
  for (std::size_t i = n / 2; i < n; ++i)
    for (std::size_t c = 0; c < d; ++c) keys(i, c) = nudged(random, keys(i - n / 2, c));
  return keys;
}

// Sizes from 1 down to 10^-decades.
Matrix<double> shells(Random& random, std::size_t n, std::size_t d, double decades) {
  Matrix<double> keys = gaussian(random, n, d);
  for (std::size_t i = 0; i < n; ++i)
    for (double& value : keys[i])
      value *= std::pow(10.0, -decades * static_cast<double>(i) / static_cast<double>(n));
  return keys;
}

// Around the first key, at the least distance doubles allow, and far ones whose differences from it stand, but for
// rounding, at right angles to the direction of the near ones: there a far key meets the nearest face, and whether
// it scores below the key hangs on the last bits of the query.
Matrix<double> tangents(Random& random, std::size_t n, std::size_t d) {
  Matrix<double> keys(n, d);
  for (double& value : keys[0]) value = 1 + random.uniform();
  const std::vector<double> normal = unit_vector(random, d);
  for (std::size_t i = 1; i < n; ++i) {
    if (i <= d / 2) {
      for (std::size_t c = 0; c < d; ++c)
        keys(i, c) = keys(0, c) - 0x1p-50 * normal[c] + (random.below(2) == 0 ? 0x1p-52 : 0);
      continue;
    }
    std::vector<double> far = gaussian_list(random, d);
    double along = std::inner_product(far.begin(), far.end(), normal.begin(), 0.0);
    along += random.below(3) == 0 ? std::abs(random.normal()) : 0;
    for (std::size_t c = 0; c < d; ++c) keys(i, c) = keys(0, c) + far[c] - along * normal[c];
  }
  return keys;
}

struct Checked {
  std::size_t selectable = 0, widest = 0, unselectable = 0, unclear = 0;
};

// Every key of a set, also those that need no second look, beside rational arithmetic.
Checked check(const Matrix<double>& keys, const std::vector<double>& offsets = {}) {
  Checked checked;
  const KeyOptions options = full_rank();
  const PlacedKeys placed(keys.view(), offsets, options);
  for (std::size_t key = 0; key < placed.distinct(); ++key) {
    Effort effort(0x1p40);
    const Verdict verdict =
        decide_exactly(placed.exact_points(), placed.exact_offsets, placed.distinct(), key, {}, effort)
            .verdict;
    for (const Margins margins : {Margins::bound, Margins::exact}) {
      const Found found = search_from_own_place(placed, key, placed.distinct(), margins, {});
      SCOPED_TRACE(testing::Message() << "key " << key << ", " << name_of(margins));
      if (found.kind == Found::Kind::unclear) {
        checked.unclear += margins == Margins::exact;
        continue;
      }
      if (found.kind == Found::Kind::unselectable) {
        EXPECT_EQ(verdict, kUnselectable);
        EXPECT_GT(found.radius, 0);
        checked.unselectable += margins == Margins::exact;
        continue;
      }
      EXPECT_EQ(verdict, kSelectable);
      const double widest =
          exact_margin(placed.exact_points(), placed.exact_offsets, key, {}, {}, effort).margin /
          placed.hull.unit;
      EXPECT_GT(found.margin, 0);
      EXPECT_LE(found.margin, widest * (1 + 1e-15));
      EXPECT_GE(found.at_most, widest * (1 - 1e-15));
      if (found.widest) {
        EXPECT_GE(found.margin, widest * (1 - 2e-9));
      }
      checked.selectable += margins == Margins::exact;
      checked.widest += margins == Margins::exact && found.widest;
    }
  }
  return checked;
}

TEST(OwnPlace, BoundsOfMarginsHoldForNearDuplicates) {
  Random random(1);
  Checked all;
  for (int draw = 0; draw < 12; ++draw) {
    SCOPED_TRACE(draw);
    const Checked some = check(near_duplicates(random, 20, 2 + random.below(5)));
    all.selectable += some.selectable, all.widest += some.widest, all.unclear += some.unclear;
  }
  EXPECT_GT(all.widest, 100u);
  EXPECT_LE(10 * all.unclear, all.selectable);
}

TEST(OwnPlace, BoundsOfMarginsHoldOverDecades) {
  Random random(2);
  Checked all;
  for (const double decades : {5.0, 20.0, 40.0, 150.0})
    for (int draw = 0; draw < 3; ++draw) {
      SCOPED_TRACE(testing::Message() << decades << " decades, draw " << draw);
      const Checked some = check(shells(random, 20, 2 + random.below(4), decades));
      all.selectable += some.selectable, all.widest += some.widest, all.unselectable += some.unselectable;
    }
  EXPECT_GT(all.widest, 30u);
  EXPECT_GT(all.unselectable, 30u);
}

// Built to sit on the error bound.
TEST(OwnPlace, BoundsOfMarginsHoldWhereFarKeysMeetTheNearestFace) {
  Random random(3);
  std::size_t selectable = 0;
  for (int draw = 0; draw < 40; ++draw) {
    SCOPED_TRACE(draw);
    selectable += check(tangents(random, 14, 3 + random.below(4))).selectable;
  }
  EXPECT_GT(selectable, 100u);
}

TEST(OwnPlace, BoundsOfMarginsHoldWithOffsets) {
  Random random(4);
  Checked all;
  for (const double size : {1e-12, 1.0, 1e12})
    for (int draw = 0; draw < 4; ++draw) {
      SCOPED_TRACE(testing::Message() << "offsets of size " << size << ", draw " << draw);
      const Matrix<double> keys = near_duplicates(random, 16, 2 + random.below(3));
      const Checked some = check(keys, gaussian_list(random, 16, size));
      all.selectable += some.selectable, all.unselectable += some.unselectable;
    }
  EXPECT_GT(all.selectable, 50u);
  EXPECT_GT(all.unselectable, 10u);
}

// Directions are no farther from the exact ones than they say, and no shorter than 1.
TEST(OwnPlace, DirectionsAreKnownToTheirError) {
  Random random(5);
  for (const double centre : {0.0, 1.0, 1e15, 1e-300})
    for (const double spread : {1.0, 1e-16, 1e-310, 1e290}) {
      SCOPED_TRACE(testing::Message() << "centre " << centre << ", spread " << spread);
      Matrix<double> keys = gaussian(random, 12, 5);
      for (std::size_t i = 0; i < 12; ++i)
        for (double& value : keys[i]) value = centre + spread * value;
      const KeyOptions options = full_rank();
      const PlacedKeys placed(keys.view(), {}, options);
      if (placed.distinct() < 2) continue;
      const Directions directions = directions_from(placed, 0, placed.distinct());
      ASSERT_EQ(directions.points.size(), placed.distinct());
      for (std::size_t j = 1; j < placed.distinct(); ++j) {
        const double* w = directions.points.panel(j / Panels::kWidth) + Panels::kWidth + j % Panels::kWidth;
        Rational squares = 0, off = 0;
        const Integer power = Integer(1) << static_cast<unsigned>(std::abs(directions.exponents[j]));
        const Rational length = directions.exponents[j] < 0 ? Rational(Integer(1), power) : Rational(power);
        for (std::size_t c = 0; c < 5; ++c) {
          const Rational exact =
              (rational(placed.exact_points()(j, c)) - rational(placed.exact_points()(0, c))) / length;
          const Rational difference = rational(w[c * Panels::kWidth]) - exact;
          off += difference * difference;
          squares += exact * exact;
        }
        const Rational error = rational(directions.error);
        EXPECT_LE(off, error * error);
        EXPECT_GE(squares, Rational(Integer(999999), Integer(1000000)));
        EXPECT_LT(squares, Rational(Integer(4000001), Integer(1000000)));
      }
    }
}

TEST(OwnPlace, InManyDimensionsNearDuplicatesNeedNoRationalArithmetic) {
  Random random(6);
  for (const std::size_t d : {24, 64}) {
    const Matrix<double> keys = near_duplicates(random, 80, d);
    const KeySet set = decide(keys, {}, full_rank());
    EXPECT_EQ(set.counts.selectable, 80u) << d;
    EXPECT_EQ(set.exact_path, 0u) << d;
    for (std::size_t i = 0; i < 80; ++i) {
      const KeyVerdict& key = set.keys[i];
      EXPECT_FALSE(key.margin_at_most) << i;
      // Hardly more than the distance of its twin.
      double squares = 0;
      for (std::size_t c = 0; c < d; ++c) {
        const double difference = keys(i, c) - keys((i + 40) % 80, c);
        squares += difference * difference;
      }
      EXPECT_LE(key.margin, std::sqrt(squares) * (1 + 1e-12)) << i;
      for (std::size_t j = 0; j < 80; ++j) {
        if (j != i) {
          EXPECT_EQ(exact_score_difference_sign(key.witness, keys.view(), {}, i, j), 1) << i << ", " << j;
        }
      }
    }
  }
}

// A cover that holds both a twin and far keys.
TEST(OwnPlace, DepthIsARadiusOfABallInTheHull) {
  Random random(7);
  std::size_t moves = 0;
  for (int draw = 0; draw < 30; ++draw) {
    const std::size_t d = 2 + random.below(2);
    Matrix<double> keys = shells(random, 24, d, 60);
    const KeyOptions options = full_rank();
    const PlacedKeys placed(keys.view(), {}, options);
    for (std::size_t key = 0; key < 24; ++key) {
      const Found found = search_from_own_place(placed, key, 24, Margins::bound, {});
      if (found.kind != Found::Kind::unselectable) continue;
      for (int step = 0; step < 4; ++step) {
        Matrix<double> moved = keys;
        const std::vector<double> direction = unit_vector(random, d);
        for (std::size_t c = 0; c < d; ++c)
          moved(key, c) += 0.999999 * found.radius * placed.hull.unit * direction[c];
        EXPECT_EQ(oracle::oracle_verdict(moved.view(), {}, key), kUnselectable)
            << "draw " << draw << ", key " << key;
        ++moves;
      }
    }
  }
  EXPECT_GT(moves, 100u);
}

}  // namespace
}  // namespace normscope

// Pairs of doubles err by less than they say, and signs of score differences are exact.
#include "keys/wide.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "keys/exact.h"
#include "normscope/random.h"
#include "support/key_sets.h"

namespace normscope {
namespace {

Rational exact(Wide value) {
  return rational(value.high) + rational(value.low);
}

Wide drawn(Random& random) {
  const double high = std::ldexp(random.normal(), static_cast<int>(random.below(60)));
  return {high, high * 0x1p-54 * (2 * random.uniform() - 1)};
}

TEST(WideNumbers, DifferencesOfDoublesAreExact) {
  Random random(1);
  for (int draw = 0; draw < 1000; ++draw) {
    const double a = drawn(random).high,
                 b = draw % 2 == 0 ? std::nextafter(a, 0) : drawn(random).high * 0x1p-40;
    EXPECT_EQ(exact(wide_difference(a, b)), rational(a) - rational(b));
  }
}

// Also of sums whose terms cancel but for their last bits.
TEST(WideNumbers, SumsOfProductsErrByNoMoreThanTheySay) {
  Random random(2);
  for (int draw = 0; draw < 300; ++draw) {
    const std::size_t n = 2 + random.below(60);
    std::vector<Wide> a(n), b(n);
    for (std::size_t c = 0; c < n; ++c) a[c] = drawn(random), b[c] = drawn(random);
    if (draw % 2 == 0)
      for (std::size_t c = 1; c < n; c += 2)
        a[c] = -a[c - 1], b[c] = {b[c - 1].high, b[c - 1].low + b[c - 1].high * 0x1p-60};
    Rational sum = 0, size = 0;
    for (std::size_t c = 0; c < n; ++c) {
      const Rational product = exact(a[c]) * exact(b[c]);
      sum += product;
      size += abs(product);
    }
    const Rational bound = size * rational(static_cast<double>(n + 2) * 2 * kWideError);
    EXPECT_LE(abs(Rational(exact(dot(a, b)) - sum)), bound) << draw;
  }
}

// Differences between two keys that the query meets at a right angle, but for less than doubles hold.
TEST(WideNumbers, SignsOfScoreDifferencesAreExactNearTies) {
  Random random(3);
  int signs[3] = {};
  for (int draw = 0; draw < 2000; ++draw) {
    const std::size_t d = 2 + random.below(5);
    const double scale = std::ldexp(1.0, static_cast<int>(random.below(5)) * 400 - 800);
    Matrix<double> keys(2, d);
    std::vector<double> query(d);
    for (std::size_t c = 0; c < d; ++c) keys(0, c) = scale * random.normal(), query[c] = random.normal();
    // Of two equal coordinates the second takes back what the first gives, or nearly.
    for (std::size_t c = 0; c < d; ++c) keys(1, c) = keys(0, c);
    const double step = scale * random.normal();
    keys(0, 1) = keys(0, 0), query[1] = -query[0];
    keys(1, 0) = keys(0, 0) + step,
            keys(1, 1) = draw % 3 == 0 ? keys(1, 0) : std::nextafter(keys(1, 0), scale);
    Rational sum = 0;
    for (std::size_t c = 0; c < d; ++c)
      sum += rational(query[c]) * (rational(keys(0, c)) - rational(keys(1, c)));
    EXPECT_EQ(exact_score_difference_sign(query, keys.view(), {}, 0, 1), sum.sign()) << draw;
    ++signs[sum.sign() + 1];
  }
  for (const int count : signs) EXPECT_GT(count, 100);
}

}  // namespace
}  // namespace normscope

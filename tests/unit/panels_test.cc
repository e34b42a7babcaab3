// Scanning packed points gives what a plain loop over them gives.
#include "keys/panels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "normscope/matrix.h"
#include "normscope/random.h"

namespace normscope {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Points {
  Matrix<double> rows;
  Panels panels;
};

// Small integers: every score is exact in any order of summation, and ties abound.
Points integer_points(Random& random, std::size_t n, std::size_t d) {
  Points points{Matrix<double>(n, d), Panels(d)};
  for (std::size_t i = 0; i < n; ++i) {
    for (double& value : points.rows[i]) value = static_cast<double>(random.below(5)) - 2;
    points.panels.push(points.rows[i]);
  }
  return points;
}

std::vector<double> integer_query(Random& random, std::size_t d) {
  std::vector<double> query(d);
  for (double& value : query) value = static_cast<double>(random.below(7)) - 3;
  return query;
}

double score_of(const Points& points, std::size_t i, const double* query) {
  double score = 0;
  for (std::size_t c = 0; c < points.rows.cols(); ++c) score += query[c] * points.rows(i, c);
  return score;
}

TopScore plain_top_score(const Points& points, std::size_t count, const double* query, std::size_t skip) {
  TopScore best{-kInfinity, kNone};
  for (std::size_t i = 0; i < count; ++i) {
    if (i == skip) continue;
    const double score = score_of(points, i, query);
    if (score > best.score) best = {score, i};
  }
  return best;
}

std::vector<std::size_t> dimensions() {
  std::vector<std::size_t> list;
  for (std::size_t d = 1; d <= 20; ++d) list.push_back(d);
  list.push_back(64);
  return list;
}

TEST(Panels, TopScoreIsThatOfAPlainLoopForEverySizeAndDimension) {
  Random random(1);
  for (std::size_t d : dimensions())
    for (std::size_t n = 0; n <= 70; ++n) {
      const Points points = integer_points(random, n, d);
      ASSERT_EQ(points.panels.size(), n);
      for (std::size_t skip : {kNone, std::size_t{0}, n / 2, n - 1}) {
        const std::vector<double> query = integer_query(random, d);
        const TopScore expected = plain_top_score(points, n, query.data(), skip);
        const TopScore found = top_score(points.panels, n, query.data(), skip);
        ASSERT_EQ(found.score, expected.score) << n << " × " << d << ", skip " << skip;
        ASSERT_EQ(found.index, expected.index) << n << " × " << d << ", skip " << skip;
      }
    }
}

TEST(Panels, SkippingTheWinnerGivesTheRunnerUp) {
  Random random(2);
  for (std::size_t n : {2, 7, 8, 9, 16, 17, 31, 70}) {
    const Points points = integer_points(random, n, 3);
    const std::vector<double> query = integer_query(random, 3);
    const std::size_t winner = top_score(points.panels, n, query.data(), kNone).index;
    const TopScore expected = plain_top_score(points, n, query.data(), winner);
    const TopScore second = top_score(points.panels, n, query.data(), winner);
    EXPECT_EQ(second.score, expected.score) << n;
    EXPECT_EQ(second.index, expected.index) << n;
  }
}

TEST(Panels, OnlyTheFirstPointsCount) {
  Random random(3);
  for (std::size_t d : {1, 4, 9, 20})
    for (std::size_t count = 0; count <= 70; ++count) {
      const Points points = integer_points(random, 70, d);
      const std::vector<double> query = integer_query(random, d);
      for (std::size_t skip : {kNone, std::size_t{3}, std::size_t{69}}) {
        const TopScore expected = plain_top_score(points, count, query.data(), skip);
        const TopScore found = top_score(points.panels, count, query.data(), skip);
        ASSERT_EQ(found.score, expected.score) << count << " of 70, d = " << d;
        ASSERT_EQ(found.index, expected.index) << count << " of 70, d = " << d;
      }
    }
}

TEST(Panels, NoPointToScoreMeansMinusInfinityAndNoIndex) {
  const std::vector<double> query = {1, 2};
  Panels panels(2);
  EXPECT_EQ(top_score(panels, 0, query.data(), kNone).score, -kInfinity);
  EXPECT_EQ(top_score(panels, 0, query.data(), kNone).index, kNone);
  panels.push(std::vector<double>{3, 4});
  EXPECT_EQ(top_score(panels, 1, query.data(), 0).score, -kInfinity);
  EXPECT_EQ(top_score(panels, 1, query.data(), 0).index, kNone);
  EXPECT_EQ(top_score(panels, 0, query.data(), kNone).index, kNone);
  EXPECT_EQ(top_score(panels, 1, query.data(), kNone).score, 11);
}

TEST(Panels, EqualScoresGoToTheLowestIndex) {
  for (std::size_t n : {1, 2, 7, 8, 9, 15, 16, 17, 64, 65, 70}) {
    Panels panels(3);
    for (std::size_t i = 0; i < n; ++i) panels.push(std::vector<double>{1, -2, 0.5});
    const std::vector<double> query = {4, 1, -2};
    EXPECT_EQ(top_score(panels, n, query.data(), kNone).index, 0u) << n;
    EXPECT_EQ(top_score(panels, n, query.data(), 0).index, n > 1 ? 1u : kNone) << n;
    EXPECT_EQ(top_score(panels, n, query.data(), n / 2).index, n > 1 ? 0u : kNone) << n;
  }
}

TEST(Panels, NegativeScoresBeatPadding) {
  for (std::size_t n = 1; n <= 17; ++n) {
    Panels panels(1);
    for (std::size_t i = 0; i < n; ++i) panels.push(std::vector<double>{-100.0 - static_cast<double>(n - i)});
    const double one = 1;
    EXPECT_EQ(top_score(panels, n, &one, kNone).score, -101) << n;
    EXPECT_EQ(top_score(panels, n, &one, kNone).index, n - 1) << n;
  }
}

TEST(Panels, SeveralQueriesAtOnceGiveWhatEachGivesAlone) {
  Random random(4);
  for (std::size_t d : {1, 2, 3, 5, 8, 13, 20, 64})
    for (std::size_t n : {0, 1, 5, 8, 9, 16, 23, 40, 70})
      for (std::size_t queries = 1; queries <= 13; ++queries) {
        const Points points = integer_points(random, n, d);
        const std::size_t stride = d + random.below(4), count = random.below(n + 1);
        std::vector<double> values(queries * stride, 1e9);  // between the queries: not to be read
        std::vector<std::size_t> skips(queries);
        for (std::size_t k = 0; k < queries; ++k) {
          const std::vector<double> query = integer_query(random, d);
          std::copy(query.begin(), query.end(), values.begin() + static_cast<std::ptrdiff_t>(k * stride));
          skips[k] = random.below(3) == 0 || n == 0 ? kNone : random.below(n);
        }
        std::vector<TopScore> best(queries);
        top_scores(points.panels, count, values.data(), stride, skips, best);
        for (std::size_t k = 0; k < queries; ++k) {
          const TopScore expected = plain_top_score(points, count, &values[k * stride], skips[k]);
          ASSERT_EQ(best[k].score, expected.score) << n << " × " << d << ", query " << k << " of " << queries;
          ASSERT_EQ(best[k].index, expected.index) << n << " × " << d << ", query " << k << " of " << queries;
        }
      }
}

// Sums may be formed in another order: d products of size about 1 differ by a few ulp each.
TEST(Panels, RealNumbersAgreeUpToRounding) {
  Random random(5);
  for (std::size_t d : dimensions())
    for (std::size_t n : {1, 6, 8, 33, 70}) {
      Points points{Matrix<double>(n, d), Panels(d)};
      points.panels.reserve(n);
      for (std::size_t i = 0; i < n; ++i) {
        for (double& value : points.rows[i]) value = random.normal();
        points.panels.push(points.rows[i]);
      }
      std::vector<double> queries(4 * d);
      for (double& value : queries) value = random.normal();
      std::vector<TopScore> best(4);
      top_scores(points.panels, n, queries.data(), d, std::vector<std::size_t>(4, n / 2), best);
      for (std::size_t k = 0; k < 4; ++k) {
        const TopScore expected = plain_top_score(points, n, &queries[k * d], n / 2);
        if (n == 1) {
          EXPECT_EQ(best[k].index, kNone);
          continue;
        }
        EXPECT_NEAR(best[k].score, expected.score, 1e-12) << n << " × " << d;
        EXPECT_NEAR(score_of(points, best[k].index, &queries[k * d]), expected.score, 1e-12);
        EXPECT_NE(best[k].index, n / 2);
      }
    }
}

TEST(Panels, ClearedPanelsStartAnew) {
  Panels panels(2);
  for (int i = 0; i < 11; ++i) panels.push(std::vector<double>{5, 5});
  panels.clear();
  EXPECT_EQ(panels.size(), 0u);
  panels.push(std::vector<double>{1, 1});
  const std::vector<double> query = {1, 1};
  EXPECT_EQ(top_score(panels, 1, query.data(), kNone).score, 2);
}

}  // namespace
}  // namespace normscope

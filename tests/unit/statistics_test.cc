#include "normscope/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/levels.h"
#include "normscope/random.h"

namespace normscope {
namespace {

TEST(MeanInterval, IsStudents) {
  const auto none = mean_interval({}), one = mean_interval(std::vector<double>{3});
  EXPECT_TRUE(std::isnan(none.mean));
  EXPECT_EQ(none.count, 0U);
  EXPECT_EQ(one.mean, 3);
  EXPECT_TRUE(std::isnan(one.low) && std::isnan(one.high));
  // t₀.₉₇₅ of 1, 4 and 9 degrees of freedom: 12.7062, 2.776445, 2.262157.
  const auto two = mean_interval(std::vector<double>{1, 3});
  EXPECT_EQ(two.mean, 2);
  EXPECT_NEAR(two.half_width(), 12.706204736, 1e-8);
  const auto five = mean_interval(std::vector<double>{1, 2, 3, 4, 5});
  EXPECT_NEAR(five.low, 3 - 2.7764451052 * std::sqrt(2.5 / 5), 1e-9);
  EXPECT_NEAR(five.high, 3 + 2.7764451052 * std::sqrt(2.5 / 5), 1e-9);
  const auto ten = mean_interval(std::vector<double>{0, 1, 0, 1, 0, 1, 0, 1, 0, 1});
  EXPECT_NEAR(ten.half_width(), 2.2621571628 * std::sqrt(2.5 / 9 / 10), 1e-9);
  const auto same = mean_interval(std::vector<double>{2, 2, 2});
  EXPECT_EQ(same.low, 2);
  EXPECT_EQ(same.high, 2);
}

constexpr double kNever = std::numeric_limits<double>::infinity();

std::vector<double> normal_values(Random& random, std::size_t count) {
  std::vector<double> values(count);
  for (double& value : values) value = random.normal();
  return values;
}

TEST(PredictionInterval, IsStudentsOfOneMoreValue) {
  const auto five = prediction_interval(std::vector<double>{1, 2, 3, 4, 5}, 0.95);
  EXPECT_NEAR(five.low, 3 - 2.7764451052 * std::sqrt(2.5 * 1.2), 1e-9);
  EXPECT_NEAR(five.high, 3 + 2.7764451052 * std::sqrt(2.5 * 1.2), 1e-9);
  EXPECT_TRUE(std::isnan(prediction_interval(std::vector<double>{1}, 0.95).low));
}

// A curve of four points of the same distribution beside five seeds: least to largest misses 1/3 of the
// points, and any of the four of 1 − (2/3)⁴ = 80 % of the curves.
TEST(PredictionInterval, CoversAWholeCurveWhereTheSpreadOfTheSeedsDoesNot) {
  constexpr std::size_t curves = 4000, points = 4, seeds = 5;
  std::size_t missed = 0, missed_by_spread = 0, missed_points = 0;
  Random random(7, 0);
  for (std::size_t c = 0; c < curves; ++c) {
    bool miss = false, miss_by_spread = false;
    for (std::size_t p = 0; p < points; ++p) {
      const std::vector<double> values = normal_values(random, seeds);
      const double published = random.normal();
      const Interval further = prediction_interval(values, 1 - 0.05 / points);
      miss = miss || published < further.low || published > further.high;
      const auto [low, high] = std::minmax_element(values.begin(), values.end());
      const bool outside = published < *low || published > *high;
      missed_points += outside;
      miss_by_spread = miss_by_spread || outside;
    }
    missed += miss;
    missed_by_spread += miss_by_spread;
  }
  const auto share = [](std::size_t count, std::size_t of) {
    return static_cast<double>(count) / static_cast<double>(of);
  };
  EXPECT_NEAR(share(missed_points, curves * points), 1.0 / 3, 0.02);
  EXPECT_NEAR(share(missed_by_spread, curves), 0.80, 0.03);
  EXPECT_NEAR(share(missed, curves), 0.05, 0.015);  // a standard deviation is 0.0034
}

// Steps of two norms that do not differ: log-normal, with a standard deviation of 0.3 in each.
TEST(RatioInterval, IsCentredAtOneUnderNoEffect) {
  constexpr std::size_t trials = 3000, seeds = 10;
  Random random(11, 0);
  double log_estimates = 0, means_of_ratios = 0;
  std::size_t covered = 0;
  for (std::size_t t = 0; t < trials; ++t) {
    std::vector<double> a = normal_values(random, seeds), b = normal_values(random, seeds);
    for (std::vector<double>* values : {&a, &b}) {
      for (double& value : *values) value = std::exp(0.3 * value);
    }
    const RatioInterval ratio = mean_ratio(a, b);
    log_estimates += std::log(ratio.estimate.low) / trials;
    covered += ratio.low <= 1 && 1 <= ratio.high;
    for (std::size_t s = 0; s < seeds; ++s) means_of_ratios += b[s] / a[s] / (trials * seeds);
  }
  EXPECT_NEAR(std::exp(log_estimates), 1, 0.01);
  EXPECT_NEAR(means_of_ratios, 1.09, 0.02);
  EXPECT_NEAR(static_cast<double>(covered) / trials, 0.95, 0.015);
}

// Twice the steps without, and runs that end at 2000: about half of them have not arrived by then. Dropping
// those makes the effect smaller than it is.
TEST(RatioInterval, SeedsThatNeverArriveAreCensoredNotDropped) {
  constexpr std::size_t trials = 3000, seeds = 10;
  constexpr double end = 2000, truth = 2;
  Random random(13, 0);
  std::size_t covered = 0, dropped_covers = 0, below = 0, above = 0, censored = 0;
  for (std::size_t t = 0; t < trials; ++t) {
    std::vector<Range> ratios;
    std::vector<double> with, without;
    for (std::size_t s = 0; s < seeds; ++s) {
      const double a = 1000 * std::exp(0.3 * random.normal()), b = 2000 * std::exp(0.3 * random.normal());
      const Range of_a = a <= end ? Range{a, a} : Range{end, kNever},
                  of_b = b <= end ? Range{b, b} : Range{end, kNever};
      ratios.push_back({of_b.low / of_a.high, of_b.high / of_a.low});
      if (a <= end && b <= end) with.push_back(a), without.push_back(b);
    }
    const RatioInterval ratio = ratio_interval(ratios);
    censored += ratio.censored;
    EXPECT_EQ(ratio.count, seeds);
    covered += ratio.low <= truth && truth <= ratio.high;
    below += ratio.estimate.high < truth;
    above += ratio.estimate.low > truth;
    const RatioInterval dropped = mean_ratio(with, without);
    dropped_covers += dropped.low <= truth && truth <= dropped.high;
  }
  EXPECT_GT(censored, trials * seeds / 3);
  EXPECT_GE(static_cast<double>(covered) / trials, 0.95);
  EXPECT_LT(static_cast<double>(dropped_covers) / trials, 0.85);
  // The median, where it is known, is too low or too high in no more than half of the trials.
  EXPECT_LT(below, trials * 0.52);
  EXPECT_LT(above, trials * 0.52);
}

TEST(RatioInterval, OfNothingToNothingIsNone) {
  const double a[] = {1, 0, 2}, b[] = {2, 0, 3};
  const RatioInterval ratio = mean_ratio(a, b);
  EXPECT_EQ(ratio.count, 3u);
  EXPECT_EQ(ratio.censored, 0u);
  for (const double value : {ratio.estimate.low, ratio.low, ratio.high}) EXPECT_TRUE(std::isnan(value));
}

TEST(RatioInterval, OfFewIsWhatCanBeSaid) {
  const std::vector<Range> known = {{1, 1}, {4, 4}};
  EXPECT_NEAR(ratio_interval(known).estimate.low, 2, 1e-12);
  EXPECT_EQ(ratio_interval(known).estimate.low, ratio_interval(known).estimate.high);
  EXPECT_TRUE(std::isnan(ratio_interval(std::span(known).first(1)).low));
  EXPECT_TRUE(std::isnan(ratio_interval({}).estimate.low));
  // Below six seeds the sign test excludes nothing.
  const std::vector<Range> five = {{2, 2}, {3, 3}, {4, 4}, {5, kNever}, {6, kNever}};
  const RatioInterval of_five = ratio_interval(five);
  EXPECT_EQ(of_five.censored, 2u);
  EXPECT_EQ(of_five.estimate.low, 4);
  EXPECT_EQ(of_five.estimate.high, 4);
  EXPECT_EQ(of_five.low, 0);
  EXPECT_EQ(of_five.high, kNever);
  const std::vector<Range> six = {{2, 2}, {3, 3}, {4, kNever}, {5, kNever}, {6, kNever}, {7, 7}};
  const RatioInterval of_six = ratio_interval(six);
  EXPECT_EQ(of_six.low, 2);
  EXPECT_EQ(of_six.high, kNever);
  EXPECT_NEAR(of_six.estimate.low, std::sqrt(20), 1e-12);
  EXPECT_EQ(of_six.estimate.high, kNever);
}

// 2⁻ⁿ is no double then.
TEST(RatioInterval, OfThousandsOfSeedsHasAnEnd) {
  std::vector<Range> ratios;
  for (int i = 1; i <= 3001; ++i) ratios.push_back({static_cast<double>(i), static_cast<double>(i)});
  ratios.back().high = std::numeric_limits<double>::infinity();  // one never arrived
  const RatioInterval interval = ratio_interval(ratios);
  // By the normal approximation, 1501 ± 1.96·√3001/2.
  EXPECT_NEAR(interval.low, 1501 - 53.7, 2);
  EXPECT_NEAR(interval.high, 1501 + 53.7, 2);
}

TEST(ShareInterval, IsClopperAndPearsons) {
  const Interval some = share_interval(10, 100);  // qbeta(0.025, 10, 91), qbeta(0.975, 11, 90)
  EXPECT_NEAR(some.low, 0.0490046892, 1e-9);
  EXPECT_NEAR(some.high, 0.1762225978, 1e-9);
  EXPECT_EQ(some.mean, 0.1);
  EXPECT_EQ(share_interval(0, 10).low, 0);
  EXPECT_NEAR(share_interval(0, 10).high, 1 - std::pow(0.025, 0.1), 1e-12);
  EXPECT_EQ(share_interval(10, 10).high, 1);
  EXPECT_TRUE(std::isnan(share_interval(0, 0).mean));
}

double probability_of(std::size_t hits, std::size_t count, double share) {
  const auto n = static_cast<double>(count), x = static_cast<double>(hits);
  return std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) + x * std::log(share) +
                  (n - x) * std::log1p(-share));
}

// Intervals that share 5 % must not miss more than theirs. Those that are right on average (Wilson's) cover with 84 % at 95 %,
// and with 95 % at 99.9 %, where shares are small.
TEST(ShareInterval, CoversEveryShareAtItsLevel) {
  for (const double level : {0.95, 0.99, 0.999}) {
    for (const std::size_t count : {10UL, 100UL, 1000UL}) {
      std::vector<Interval> intervals;
      for (std::size_t hits = 0; hits <= count; ++hits)
        intervals.push_back(share_interval(hits, count, level));
      for (const double expected : {0.005, 0.05, 0.1, 0.17, 0.5, 1.0, 3.0, 5.0}) {  // hits
        const double share = expected / static_cast<double>(count);
        double covered = 0;
        for (std::size_t hits = 0; hits <= count; ++hits)
          if (intervals[hits].low <= share && share <= intervals[hits].high)
            covered += probability_of(hits, count, share);
        EXPECT_GE(covered, level - 1e-9) << level << ' ' << count << ' ' << share;
      }
    }
  }
}

TEST(RankCorrelation, IsSpearmans) {
  const std::vector<double> a = {1, 2, 3, 4, 5}, b = {10, 100, 1000, 1e4, 1e5}, c = {5, 6, 7, 8, 7};
  EXPECT_DOUBLE_EQ(rank_correlation(a, b), 1);
  EXPECT_NEAR(rank_correlation(a, c), 0.8207826816681233, 1e-15);  // scipy.stats.spearmanr
  EXPECT_NEAR(rank_correlation(c, std::vector<double>{-5, -6, -7, -8, -7}), -1, 1e-15);
  EXPECT_TRUE(std::isnan(rank_correlation(a, std::vector<double>(5, 1.0))));
  EXPECT_TRUE(std::isnan(rank_correlation({}, {})));
}

TEST(MeanDifference, IsOfPairs) {
  // Samples differ by far more than the two do.
  const std::vector<double> a = {1, 10, 100}, b = {1.5, 10.6, 100.4};
  EXPECT_TRUE(mean_difference(a, b).above(0));
  EXPECT_FALSE(mean_difference(std::span(a).first(1), b).above(0));
  EXPECT_FALSE(mean_difference(std::span(a).first(1), b).below(9));
}

}  // namespace
}  // namespace normscope

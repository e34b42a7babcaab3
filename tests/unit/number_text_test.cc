#include "core/number_text.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/duration.h"
#include "core/levels.h"

namespace normscope {
namespace {

const double kNone = std::numeric_limits<double>::quiet_NaN();
const double kInfinite = std::numeric_limits<double>::infinity();

TEST(NumberText, HasTheDigitsThatWereAskedFor) {
  EXPECT_EQ(fixed(1.25, 1), "1.2");
  EXPECT_EQ(fixed(-0.5, 3), "-0.500");
  EXPECT_EQ(significant(1234.5, 3), "1.23e+03");
  EXPECT_EQ(significant(0.05, 6), "0.05");
  EXPECT_EQ(all_digits(0.1), "0.1");
  EXPECT_EQ(all_digits(1.0 / 3), "0.3333333333333333");
}

TEST(NumberText, SaysThatThereIsNoNumber) {
  for (const double value : {kNone, kInfinite, -kInfinite}) {
    EXPECT_EQ(fixed(value, 2), "–");
    EXPECT_EQ(significant(value, 2, "-"), "-");
    EXPECT_EQ(percent(value, 1, ""), "");
    EXPECT_EQ(all_digits(value), "");
  }
}

TEST(NumberText, SharesAreInPercent) {
  EXPECT_EQ(percent(0.125, 1), "12.5 %");
  EXPECT_EQ(percent(1, 0), "100 %");
  EXPECT_EQ(percent_of(3, 80, 2), "3.75 %");
  EXPECT_EQ(percent_of(0, 7, 1), "0.0 %");
}

TEST(NumberText, WhatIsNeitherNoneNorAllIsNotRoundedToIt) {
  EXPECT_EQ(percent_of(2999, 3000, 1), "> 99.9 %");
  EXPECT_EQ(percent_of(1, 3000, 1), "< 0.1 %");
  EXPECT_EQ(percent_of(3000, 3000, 1), "100.0 %");
  EXPECT_EQ(percent_of(1, 3000, 2), "0.03 %");
  EXPECT_EQ(percent(0.9996, 0), "> 99 %");
  EXPECT_EQ(percent(0.9994, 1), "99.9 %");
  EXPECT_EQ(percent(1e-9, 2), "< 0.01 %");
  EXPECT_EQ(percent(0.1 + 0.2 + 0.7, 1), "100.0 %");  // all but for rounding
  EXPECT_EQ(short_percent(0.9999), "> 99 %");
  EXPECT_EQ(short_percent(0.99999, 4), "> 99.99 %");
  EXPECT_EQ(short_percent(1), "100 %");
}

TEST(NumberText, AMeanHasItsIntervalIfThereIsOne) {
  const double three[] = {1, 2, 3};
  EXPECT_EQ(with_interval(mean_interval(three), 2), "2.00 ± 2.48");
  EXPECT_EQ(with_interval(mean_interval(three), 0, 100, {.sign = " ±"}), "200 ±248");
  EXPECT_EQ(with_interval(mean_interval(std::span(three, 1)), 2), "1.00");
  EXPECT_EQ(with_interval(mean_interval({}), 2), "nothing");
  EXPECT_EQ(with_interval(mean_interval({}), 2, 1, {.none = "-"}), "-");
}

TEST(NumberText, AnIntervalLeavesItsDigits) {
  EXPECT_EQ(with_interval(Interval{5, 0.51234, 0.50234, 0.52234}), "0.51 ± 0.01");
  EXPECT_EQ(with_interval(Interval{5, 1234.5, 1134.5, 1334.5}), "1234 ± 100");
  EXPECT_EQ(with_interval(Interval{5, 2e-7, 1e-7, 3e-7}), "2e-07 ± 1e-07");
  EXPECT_EQ(with_interval(Interval{1, 0.5, kNone, kNone}), "0.5");
}

TEST(NumberText, TwoValuesSayMoreThanTheirInterval) {
  const double values[] = {0.197, 0.407, 0.3};
  const Interval two = mean_interval(std::span(values, 2));
  EXPECT_EQ(with_interval(two, 1, 100), "19.7, 40.7");
  EXPECT_EQ(with_interval(two), "0.197, 0.407");
  EXPECT_EQ(mean_text(two), "0.197, 0.407");
  EXPECT_EQ(mean_text(mean_interval(values)), "0.301 ± 0.26");
  // At whatever level the interval is.
  EXPECT_EQ(with_interval(mean_interval(std::span(values, 2), 0.999), 1, 100), "19.7, 40.7");
  // Read from a file, where they are not: found again, the lesser first.
  EXPECT_EQ(mean_text(Interval{2, two.mean, two.low, two.high}), "0.197, 0.407");
  const double changes[] = {0.25, -0.5};
  EXPECT_EQ(change_text(mean_interval(changes)), "+0.25, -0.5");
  EXPECT_EQ(with_interval(share_interval(1, 2), 0, 100), "100, 0");
  const double a[] = {1, 2}, b[] = {1.5, 2};
  EXPECT_EQ(with_interval(mean_ratio(a, b)), "1.50×, 1.00×");
  EXPECT_EQ(factor_text(mean_ratio(a, b)), "1.5, 1");
}

TEST(NumberText, RatiosTellWhatIsCensored) {
  EXPECT_EQ(with_interval(RatioInterval{}), "not run");
  EXPECT_EQ(with_interval(RatioInterval{3, 0, {1.3, 1.3}, 1.1, 1.54}), "1.30× (1.10 to 1.54)");
  EXPECT_EQ(with_interval(RatioInterval{10, 3, {2, kInfinite}, 1.4, kInfinite}),
            "median more than 2.00× (more than 1.40), 3 of 10 seeds censored");
  EXPECT_EQ(with_interval(RatioInterval{4, 1, {2, 2}, 0, kInfinite}),
            "median 2.00×, 1 of 4 seeds censored, no interval");
  EXPECT_EQ(factor_text(RatioInterval{5, 0, {0.31, 0.31}, 0.3, 0.32}), "0.31 (0.3 to 0.32)");
  EXPECT_EQ(factor_text(RatioInterval{1, 0, {0.31, 0.31}, kNone, kNone}), "0.31");
}

// A ratio to nothing has no size, and the mean of its logarithms no interval.
TEST(NumberText, NeverWritesNan) {
  const double left[] = {0.2, 0.3, 0.4}, nothing[] = {0, 0, 0};
  EXPECT_EQ(factor_text(mean_ratio(nothing, left)), "not measurable");
  EXPECT_EQ(factor_text(mean_ratio(nothing, nothing)), "not measurable");
  EXPECT_EQ(factor_text(mean_ratio(std::span(nothing, 1), std::span(left, 1))), "not measurable");
  EXPECT_EQ(factor_text(mean_ratio(left, nothing)), "0");
  const double unknown[] = {kNone, 1};
  EXPECT_EQ(with_interval(mean_interval(unknown)), "not measurable");
  EXPECT_EQ(with_interval(mean_interval(unknown), 2), "not measurable");
  EXPECT_EQ(with_interval(mean_interval(std::span(unknown, 1))), "not measurable");
}

TEST(NumberText, SharesAreNoPowersOfTen) {
  EXPECT_EQ(short_percent(1), "100 %");
  EXPECT_EQ(short_percent(0.999), "> 99 %");
  EXPECT_EQ(short_percent(0.5), "50 %");
  EXPECT_EQ(short_percent(0.0114), "1.1 %");
  EXPECT_EQ(short_percent(0.000123), "0.012 %");
  EXPECT_EQ(short_percent(0), "0 %");
  EXPECT_EQ(short_percent(0.12345, 3), "12.3 %");
}

TEST(NumberText, TimesAreRough) {
  EXPECT_EQ(rough_duration(0.01), "1 s");
  EXPECT_EQ(rough_duration(89), "89 s");
  EXPECT_EQ(rough_duration(90), "2 min");
  EXPECT_EQ(rough_duration(5000), "83 min");
  EXPECT_EQ(rough_duration(9000), "2.5 h");
  EXPECT_EQ(rough_duration(40'000), "11 h");
  EXPECT_EQ(rough_duration(200'000), "2.3 days");
  EXPECT_EQ(rough_duration(2e6), "23 days");
}

TEST(NumberText, OneHasNoPlural) {
  EXPECT_EQ(counted(1, "document"), "1 document");
  EXPECT_EQ(counted(0, "document"), "0 documents");
  EXPECT_EQ(counted(2, "token"), "2 tokens");
}

}  // namespace
}  // namespace normscope

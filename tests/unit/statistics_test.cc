#include "normscope/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

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

}  // namespace
}  // namespace normscope

#include "core/pace.h"

#include <gtest/gtest.h>

namespace normscope {
namespace {

TEST(Pace, FollowsTheLastHalfOfTheTime) {
  Pace pace;
  EXPECT_EQ(pace.rate(), 0);
  for (int second = 1; second <= 10; ++second) pace.add(second, 100.0 * second);
  EXPECT_DOUBLE_EQ(pace.rate(), 100);
  for (int second = 11; second <= 40; ++second) pace.add(second, 1000 + 10.0 * (second - 10));
  EXPECT_DOUBLE_EQ(pace.rate(), 10);
}

// A minute of preparations says nothing of how long the work takes.
TEST(Pace, BeginsWithTheWork) {
  Pace pace;
  pace.add(60, 0);
  EXPECT_EQ(pace.rate(), 0);
  pace.add(61, 40);
  EXPECT_DOUBLE_EQ(pace.rate(), 40);
  pace.add(70, 400);
  EXPECT_DOUBLE_EQ(pace.rate(), 40);
  // Who does not tell that nothing is done has begun at once.
  Pace told_late;
  told_late.add(60, 1);
  EXPECT_DOUBLE_EQ(told_late.rate(), 1.0 / 60);
}

TEST(SparseLines, AreSomeDozensInADay) {
  SparseLines lines;
  std::size_t told = 0, in_the_first_hour = 0;
  EXPECT_FALSE(lines.due(9.9)) << "what ends soon needs none";
  for (double seconds = 10; seconds <= 86'400; seconds += 0.5) {
    if (!lines.due(seconds)) continue;
    EXPECT_FALSE(lines.due(1.2 * seconds));
    in_the_first_hour += seconds <= 3600 ? 1 : 0;
    ++told;
  }
  EXPECT_EQ(told, 41u);
  EXPECT_EQ(in_the_first_hour, 27u);
}

}  // namespace
}  // namespace normscope

// Sets that are flat up to the rounding of the arithmetic that made them: rank and verdicts are those of the
// flat.
#include "oracle/flat_sets.h"

#include <gtest/gtest.h>

namespace normscope::oracle {
namespace {

void expect_as_in_the_flat(std::uint64_t seed, std::uint64_t sets, std::size_t largest,
                           double most_differing) {
  FlatTally total;
  for (std::uint64_t index = 0; index < sets; ++index) total += compare_flat_set(seed, index, largest);
  EXPECT_EQ(total.sets, sets);
  EXPECT_EQ(total.wrong_rank, 0u);
  EXPECT_EQ(total.wrong, 0u);
  EXPECT_EQ(total.invalid, 0u);
  // What rounding may have changed says so, and is rare.
  EXPECT_LT(static_cast<double>(total.within_errors), most_differing * static_cast<double>(total.keys));
  for (const std::string& failure : total.failures) ADD_FAILURE() << failure;
}

TEST(FlatSets, OfFewDimensionsHaveTheRankAndVerdictsOfTheFlat) {
  expect_as_in_the_flat(11, 800, 16, 0.01);
}

TEST(FlatSets, OfManyDimensionsHaveTheRankAndVerdictsOfTheFlat) {
  expect_as_in_the_flat(12, 40, 160, 0.01);
}

}  // namespace
}  // namespace normscope::oracle

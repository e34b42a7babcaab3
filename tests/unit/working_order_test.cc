#include "core/working_order.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace normscope {
namespace {

TEST(SpreadOrder, HasEveryPlaceOnce) {
  for (std::size_t count = 0; count < 300; ++count) {
    std::vector<std::size_t> order = spread_order(count);
    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(order[i], i) << count;
    ASSERT_EQ(order.size(), count);
  }
}

TEST(SpreadOrder, AtAnyTimeTheShareDoneIsTheShareOfTheWork) {
  // Work that gets harder and harder: the last place takes a thousand times as long as the first.
  for (const std::size_t count : {100, 1000, 2000, 2048}) {
    const auto work = [&](std::size_t place) {
      return 1 + 999.0 * static_cast<double>(place * place) / static_cast<double>(count * count);
    };
    double all = 0, done = 0;
    for (std::size_t i = 0; i < count; ++i) all += work(i);
    const std::vector<std::size_t> order = spread_order(count);
    for (std::size_t i = 0; i < count; ++i) {
      done += work(order[i]);
      const double share = static_cast<double>(i + 1) / static_cast<double>(count);
      if (static_cast<double>(i + 1) >= 20) {  // fewer say little
        EXPECT_NEAR(done / all / share, 1, 0.25) << i << " of " << count;
      }
    }
  }
}

TEST(WorkingOrder, LargePiecesComeFirstAndTheRestIsSpread) {
  // Two of a tenth of all each, and a thousand small ones that get harder unbeknown to their costs.
  std::vector<double> costs(1000, 0.8);
  costs.push_back(100);
  costs.insert(costs.begin(), 101);
  const std::vector<std::size_t> order = working_order(costs, 4);
  ASSERT_EQ(order.size(), costs.size());
  EXPECT_EQ(order[0], 0u);
  EXPECT_EQ(order[1], 1001u);
  std::vector<std::size_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) ASSERT_EQ(sorted[i], i);
  double all = 0, half = 0;
  for (std::size_t turn = 2; turn < order.size(); ++turn) {
    const auto takes = static_cast<double>(order[turn] * order[turn]);
    all += takes;
    if (turn < 2 + 500) half += takes;
  }
  EXPECT_NEAR(half / all, 0.5, 0.02);
}

TEST(WorkingOrder, FewPiecesAreTakenBySize) {
  EXPECT_EQ(working_order(std::vector<double>{1, 3, 2, 3}, 2), (std::vector<std::size_t>{1, 3, 2, 0}));
  EXPECT_TRUE(working_order({}, 8).empty());
}

}  // namespace
}  // namespace normscope

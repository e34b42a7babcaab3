#include "keys/spread_order.h"

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

}  // namespace
}  // namespace normscope

#include "normscope/executor.h"

#include <gtest/gtest.h>

#include <atomic>

namespace normscope {
namespace {

TEST(Executor, StopsBeforeTheNextPieceWhenItIsAskedTo) {
  for (const int threads : {1, 2, 8}) {
    std::atomic<bool> stop = false;
    std::atomic<int> begun = 0;
    const Executor executor(threads, &stop);
    EXPECT_THROW(executor.for_each(100'000,
                                   [&](std::size_t) {
                                     if (++begun == 10) stop = true;
                                   }),
                 Cancelled);
    EXPECT_LT(begun, 1000) << threads;  // those that had begun, and no more
    EXPECT_THROW(executor.for_each(1, [&](std::size_t) { ++begun; }), Cancelled);
    stop = false;
    begun = 0;
    executor.for_each(100, [&](std::size_t) { ++begun; });
    EXPECT_EQ(begun, 100);
  }
}

}  // namespace
}  // namespace normscope

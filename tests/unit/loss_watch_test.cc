// Losses that are merely noisy, and those that are not; the curves are recorded by golden/record_losses.py.
#include "normscope/loss_watch.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "normscope/error.h"
#include "support/message.h"
#include "support/paths.h"

namespace normscope {
namespace {

class WatchedLoss : public ::testing::Test {
 protected:
  // The trouble a curve of losses leads to.
  static std::optional<LossTrouble> watched(const std::vector<double>& losses,
                                            LossWatch watch = LossWatch()) {
    for (std::size_t step = 0; step < losses.size(); ++step)
      if (auto trouble = watch.tell(step, losses[step])) return trouble;
    return std::nullopt;
  }
  static std::vector<double> recorded(const char* name) {
    std::ifstream file(source_path() + "/tests/golden/losses.json");
    return nlohmann::json::parse(file)[name].get<std::vector<double>>();
  }
};

TEST_F(WatchedLoss, NoiseOfRealTrainingsIsNoSpike) {
  for (const char* curve : {"words", "classes", "steps"}) {
    const std::vector<double> losses = recorded(curve);
    ASSERT_GE(losses.size(), 1000u) << curve;
    EXPECT_FALSE(watched(losses).has_value()) << curve;
  }
}

TEST_F(WatchedLoss, TrainingsThatGoWrongAreStoppedSoon) {
  for (const char* curve : {"too_fast", "swapped"}) {
    const auto trouble = watched(recorded(curve));
    ASSERT_TRUE(trouble.has_value()) << curve;
    EXPECT_EQ(trouble->kind, LossTrouble::Kind::spike) << curve;
    EXPECT_GE(trouble->step, 600u) << curve;
    EXPECT_LE(trouble->step, 660u) << curve;
  }
}

TEST_F(WatchedLoss, OneHighLossIsNoSpikeAndEightInARowAre) {
  std::vector<double> losses(200, 2);
  losses[100] = 1e6;
  EXPECT_FALSE(watched(losses).has_value());
  for (std::size_t i = 150; i < 157; ++i) losses[i] = 4;
  EXPECT_FALSE(watched(losses).has_value());
  losses[157] = 4;
  const auto trouble = watched(losses);
  ASSERT_TRUE(trouble.has_value());
  EXPECT_EQ(trouble->step, 150u);
  EXPECT_EQ(trouble->steps, 8u);
  EXPECT_EQ(trouble->usual, 2);
}

TEST_F(WatchedLoss, AnExplosionAtTheVeryBeginningIsStopped) {
  std::vector<double> losses = {5.5};
  for (int step = 1; step < 40; ++step) losses.push_back(300 - step);  // falls, but from where it blew up to
  const auto trouble = watched(losses);
  ASSERT_TRUE(trouble.has_value());
  EXPECT_EQ(trouble->step, 1u);
  EXPECT_EQ(trouble->usual, 5.5);
  for (std::size_t step = 8; step < losses.size(); ++step) losses[step] = 5;  // that was only a bad start
  EXPECT_FALSE(watched(losses).has_value());
}

TEST_F(WatchedLoss, ASlowRiseAboveTheBeginningIsStopped) {
  std::vector<double> losses;
  for (int step = 0; step < 3000; ++step) losses.push_back(5 + 0.002 * step);
  const auto trouble = watched(losses);
  ASSERT_TRUE(trouble.has_value());
  EXPECT_GT(trouble->loss, 6.2);
  EXPECT_LT(trouble->loss, 6.4);
}

TEST_F(WatchedLoss, WhatIsNotFiniteStopsAtOnceByName) {
  LossWatch watch;
  const auto nan = watch.tell(0, std::numeric_limits<double>::quiet_NaN());
  ASSERT_TRUE(nan.has_value());
  EXPECT_EQ(nan->kind, LossTrouble::Kind::not_finite);
  const std::vector<ParameterSlot> slots = {{"word", 2, 2, 0}, {"layers.0.up.weight", 1, 3, 4}};
  std::vector<float> values = {1, -9, 3, 4, 5, 6, 7};
  EXPECT_EQ(first_not_finite(slots, values), "");
  EXPECT_EQ(largest_slot(slots, values), "word");
  values[5] = -std::numeric_limits<float>::infinity();
  const auto trouble = watch.tell(12, 3.5, first_not_finite(slots, values));
  ASSERT_TRUE(trouble.has_value());
  expect_mentions(sentence_of(*trouble, LastGood{"run/checkpoint.safetensors", 10}),
                  {"stopped at step 12", "'layers.0.up.weight' is no longer finite", "loss 3.5",
                   "'run/checkpoint.safetensors', of step 10"});
  expect_mentions(sentence_of(*nan, std::nullopt), {"no good checkpoint", "lower learning rate"});
}

TEST_F(WatchedLoss, GoesOnAsIfItHadNeverStopped) {
  const std::vector<double> losses = recorded("too_fast");
  LossWatch whole, parted;
  for (std::size_t step = 0; step < losses.size(); ++step) {
    LossWatch next;
    next.restore(parted.state());
    parted = next;
    EXPECT_EQ(parted.limit(), whole.limit());
    EXPECT_EQ(whole.tell(step, losses[step]).has_value(), parted.tell(step, losses[step]).has_value());
    EXPECT_EQ(whole.calm(), parted.calm());
  }
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::vector<double>& hostile : {std::vector<double>{},
                                             {1, 2, 3, 4, 5, 6, 7},
                                             {1, 2, 3, 4, 5, 6, 7, 8, 9},
                                             {1, 2, 3, nan, 5, 6, 7, 8},
                                             {-1, 2, 3, 4, 5, 6, 7, 8},
                                             {0.5, 2, 3, 4, 5, 6, 7, 8},
                                             {1, 1e300, 3, 4, 5, 6, 7, 8}})
    EXPECT_THROW(LossWatch().restore(hostile), InputError);
}

}  // namespace
}  // namespace normscope

// What is said of collapse under masks, from curves that are made up.
#include <gtest/gtest.h>

#include <algorithm>

#include "normscope/executor.h"
#include "paper/wu_collapse.h"
#include "paper/wu_pretrained.h"

namespace normscope {
namespace {

// Every case keeps μ/‖X‖ of its sample, and more of it under local masks, by what `more` says of the sample.
RunCollapse made_up(std::vector<double> more) {
  return [more](const std::vector<CollapseCase>& cases, const CollapseSettings& settings) {
    std::vector<CollapseCurve> curves;
    for (const CollapseCase& each : cases) {
      CollapseCurve curve;
      curve.group = each.group;
      curve.name = each.name;
      const bool local = each.name == "window:1" || each.name == "onesided:1";
      for (std::size_t layer = 0; layer <= settings.layers; ++layer) {
        curve.layers.emplace_back();
        for (std::size_t sample = 0; sample < settings.samples; ++sample) {
          TokenMeasures measures;
          measures.norm = 1;
          measures.relative = measures.mu =
              0.2 + 0.1 * static_cast<double>(sample) + (local && layer > 0 ? more[sample] : 0);
          curve.layers.back().push_back(measures);
        }
      }
      curve.rate.samples.assign(settings.samples, 1);
      curves.push_back(std::move(curve));
    }
    return curves;
  };
}

Claim local_is_slower(const std::vector<double>& more) {
  const WuPart part = wu_figure2({more.size(), 1, 0}, made_up(more));
  return *std::find_if(part.claims.begin(), part.claims.end(), [](const Claim& claim) {
    return claim.claim == "Collapse is slower under local masks";
  });
}

TEST(WuClaims, MasksAreComparedSampleBySample) {
  // Samples differ by far more than masks do.
  EXPECT_EQ(local_is_slower({0.010, 0.011, 0.012, 0.010}).holds, Holds::yes);
  EXPECT_EQ(local_is_slower({-0.010, -0.011, -0.012, -0.010}).holds, Holds::no);
  EXPECT_EQ(local_is_slower({0.020, -0.010, 0.015, -0.005}).holds, Holds::open);
}

TEST(WuClaims, OneSampleHasNoIntervalAndLeavesEverythingOpen) {
  const WuPart part = wu_figure2({1, 1, 0}, made_up({0.1}));
  ASSERT_EQ(part.claims.size(), 4u);
  for (const Claim& claim : part.claims) {
    EXPECT_EQ(claim.holds, Holds::open) << claim.claim;
    EXPECT_EQ(claim.measured.find("±"), std::string::npos) << claim.measured;
  }
}

TEST(WuClaims, NothingIsSaidOfPretrainedModelsWithoutOne) {
  const WuPart pretrained = wu_figure9_pretrained({}, Executor(1));
  ASSERT_EQ(pretrained.claims.size(), 1u);
  EXPECT_EQ(pretrained.claims[0].holds, Holds::open);
  EXPECT_NE(pretrained.claims[0].measured.find("no pretrained model"), std::string::npos);
  EXPECT_EQ(wu_figure9({1, 1, 0}).claims[0].where, "Wu Fig. 9, random init");
}

}  // namespace
}  // namespace normscope

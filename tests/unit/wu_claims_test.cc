// What is said of collapse under masks, from curves that are made up.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "normscope/executor.h"
#include "paper/part.h"

namespace normscope {
namespace {

// Every case keeps μ/‖X‖ of its sample, and more of it under local masks, by what `more` says of the sample.
RunCollapse made_up(std::vector<double> more) {
  return
      [more](const std::string&, const std::vector<CollapseCase>& cases, const CollapseSettings& settings) {
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

Findings found_by(MakeExhibit* part, std::size_t samples, const RunCollapse& run = {}) {
  PaperPlan plan;
  plan.samples = samples;
  const Executor executor(1);
  Evidence evidence{plan, executor};
  evidence.collapse = run;
  return judge(part(), evidence);
}

Judgement local_is_slower(const std::vector<double>& more) {
  const Findings part = found_by(wu_fig2, more.size(), made_up(more));
  return *std::find_if(part.claims.begin(), part.claims.end(), [](const Judgement& claim) {
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
  const Findings part = found_by(wu_fig2, 1, made_up({0.1}));
  ASSERT_EQ(part.claims.size(), 4u);
  for (const Judgement& claim : part.claims) {
    EXPECT_EQ(claim.holds, Holds::open) << claim.claim;
    EXPECT_EQ(claim.measured.find("±"), std::string::npos) << claim.measured;
  }
}

// Under which masks skips keep tokens apart is what the curves say.
TEST(WuClaims, SkipsAreToldMaskByMask) {
  const auto left = [](std::vector<std::string> together) -> RunCollapse {
    return [together](const std::string&, const std::vector<CollapseCase>& cases,
                      const CollapseSettings& settings) {
      std::vector<CollapseCurve> curves;
      for (const CollapseCase& each : cases) {
        CollapseCurve& curve = curves.emplace_back();
        curve.group = each.group;
        curve.name = each.name;
        const bool collapses = std::find(together.begin(), together.end(), each.name) != together.end();
        TokenMeasures measures;
        measures.norm = 1;
        measures.relative = measures.mu = 0.5;
        curve.layers.assign(1, std::vector<TokenMeasures>(settings.samples, measures));
        measures.relative = measures.mu = collapses ? 1e-4 : 0.3;
        curve.layers.resize(settings.layers + 1, std::vector<TokenMeasures>(settings.samples, measures));
        curve.rate.samples.assign(settings.samples, 1);
      }
      return curves;
    };
  };
  const auto told = [&](std::vector<std::string> together) {
    const Findings part = found_by(wu_fig2, 3, left(std::move(together)));
    return std::find_if(part.claims.begin(), part.claims.end(),
                        [](const Judgement& claim) { return claim.claim.starts_with("Do skip connections"); })
        ->verdict;
  };
  EXPECT_EQ(told({}), "yes, over 12 layers");
  EXPECT_EQ(
      told({"full", "causal"}),
      "under window:1, onesided:1, not under full, causal: less than a hundredth is left after 12 layers");
  EXPECT_EQ(
      told({"window:1"}),
      "under full, causal, onesided:1, not under window:1: less than a hundredth is left after 12 layers");
}

TEST(WuClaims, NothingIsSaidOfPretrainedModelsWithoutOne) {
  const Findings found = found_by(wu_fig9, 1);
  ASSERT_EQ(found.claims.size(), 2u);
  EXPECT_EQ(found.claims[1].holds, Holds::open);
  EXPECT_NE(found.claims[1].measured.find("no pretrained model"), std::string::npos);
  EXPECT_EQ(found.claims[0].where, "Wu Fig. 9, random init");
}

// Embeddings that share their token type, a third of the variance, have cosines of about 1/3 however they were drawn; what
// training adds is for the other claim.
TEST(WuClaims, CosinesAtRandomInitTellNothingOfTraining) {
  const Judgement found = found_by(wu_fig9, 4).claims.at(0);
  EXPECT_EQ(found.holds, Holds::conditionally) << found.verdict;
  const std::size_t mean = found.measured.find("mean ");
  ASSERT_NE(mean, std::string::npos) << found.measured;
  EXPECT_NEAR(std::stod(found.measured.substr(mean + 5)), 1.0 / 3, 0.03) << found.measured;
  EXPECT_NE(found.why.find("does not by itself tell of training"), std::string::npos) << found.why;
}

// Flat attention has made all tokens equal where sharp attention has not: their ratio has no size.
TEST(WuClaims, ARatioToNothingIsNotMeasurable) {
  const RunCollapse run = [](const std::string&, const std::vector<CollapseCase>& cases,
                             const CollapseSettings& settings) {
    std::vector<CollapseCurve> curves;
    for (const CollapseCase& each : cases) {
      CollapseCurve& curve = curves.emplace_back();
      curve.group = each.group;
      curve.name = each.name;
      TokenMeasures measures;
      measures.norm = 1;
      measures.relative = measures.mu = each.name == "d_QK = 64" ? 0 : 0.5;
      curve.layers.assign(settings.layers + 1, std::vector<TokenMeasures>(settings.samples, measures));
    }
    return curves;
  };
  for (const Judgement& claim : found_by(wu_fig7, 3, run).claims) {
    EXPECT_EQ(claim.measured.find("nan"), std::string::npos) << claim.measured;
    EXPECT_NE(claim.measured.find("full not measurable, causal not measurable"), std::string::npos)
        << claim.measured;
    EXPECT_EQ(claim.holds, Holds::open) << claim.claim;
  }
}

TEST(Answer, IsYesNoOrNotYet) {
  const Interval interval{3, 0.5, 0.4, 0.6}, none{1, 0.5, NAN, NAN};
  EXPECT_EQ(above(interval, 0.3), true);
  EXPECT_EQ(above(interval, 0.7), false);
  EXPECT_EQ(above(interval, 0.5), std::nullopt);
  EXPECT_EQ(below(interval, 0.3), false);
  EXPECT_EQ(below(interval, 0.7), true);
  EXPECT_EQ(below(none, 0.7), std::nullopt);
  EXPECT_EQ(at_least(interval, 0.4), true);
  EXPECT_EQ(all_of({true, std::nullopt}), std::nullopt);
  EXPECT_EQ(all_of({std::nullopt, false}), false);
  EXPECT_EQ(all_of({true, true}), true);
  EXPECT_EQ(judged(false, true), Holds::conditionally);
  EXPECT_EQ(judged(false, std::nullopt), Holds::open);
  EXPECT_EQ(judged(std::nullopt, true), Holds::open);
}

}  // namespace
}  // namespace normscope

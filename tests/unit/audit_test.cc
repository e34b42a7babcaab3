// An audit that looks again and again: how often its verdicts are wrong, and what it runs next.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/levels.h"
#include "normscope/executor.h"
#include "normscope/random.h"
#include "paper/part.h"
#include "paper/schedule.h"

namespace normscope {
namespace {

constexpr std::size_t kLooks = 6, kMost = 64;  // 2, 4, 8 … 64 values
constexpr Threshold kMuch{1, "made up"};

// So many series of draws about a mean each, of which a claim says that all are above the threshold.
struct Simulated {
  std::vector<std::vector<double>> draws;

  Simulated(std::uint64_t trial, const std::vector<double>& means) {
    for (std::size_t s = 0; s < means.size(); ++s) {
      Random random(trial, s);
      auto& series = draws.emplace_back();
      for (std::size_t i = 0; i < kMost; ++i) series.push_back(means[s] + random.normal());
    }
  }
  Claim claim(bool any) const {
    const auto of_series = [this](std::size_t s) -> Condition {
      return above(
          [this, s](const Evidence& evidence) {
            return mean_interval(std::span(draws[s]).first(evidence.plan.samples), level_of(evidence));
          },
          kMuch);
    };
    Condition holds = of_series(0);
    for (std::size_t s = 1; s < draws.size(); ++s)
      holds = any ? any_of({holds, of_series(s)}) : all_of({holds, of_series(s)});
    return {.measured = "", .holds = holds};
  }
  // At every look, by so many values each time.
  std::vector<Holds> verdicts(bool any = false) const {
    std::vector<Holds> all;
    const Executor executor(1);
    for (std::size_t look = 1; look <= kLooks; ++look) {
      PaperPlan plan;
      plan.samples = std::size_t{1} << look;
      Evidence evidence{plan, executor};
      evidence.look = look;
      all.push_back(judge(claim(any), evidence)->holds);
    }
    return all;
  }
};

// The kinds of intervals that verdicts are made of, from draws that are standard normal if the threshold is the truth.
struct Kind {
  const char* name;
  double threshold;
  ComparisonResult (*measured)(std::span<const double> draws, double level);
};
ComparisonResult mean_of_draws(std::span<const double> draws, double level) {
  std::vector<double> values(draws.begin(), draws.end());
  for (double& value : values) value += 1;
  return measured_of(mean_interval(values, level));
}
// Of pairs that differ from one another by far more than the two of a pair do.
ComparisonResult difference_of_draws(std::span<const double> draws, double level) {
  std::vector<double> a, b;
  for (const double draw : draws) {
    a.push_back(100 * std::cos(static_cast<double>(a.size())));
    b.push_back(a.back() + 2 + draw);
  }
  return measured_of(mean_difference(a, b, level));
}
ComparisonResult ratio_of_draws(std::span<const double> draws, double level) {
  std::vector<double> a, b;
  for (const double draw : draws) {
    a.push_back(1 + static_cast<double>(a.size()));
    b.push_back(a.back() * 1.5 * std::exp(0.3 * draw));
  }
  return measured_of(mean_ratio(a, b, level));
}
// Some of the slower never arrive, and of some the faster do not.
ComparisonResult censored_ratio_of_draws(std::span<const double> draws, double level) {
  constexpr double never = std::numeric_limits<double>::infinity();
  std::vector<Range> ratios;
  for (const double draw : draws) {
    const double ratio = 1.5 * std::exp(0.3 * draw);
    ratios.push_back(ratio > 1.8 ? Range{1.8, never} : ratio < 1.1 ? Range{0, 1.1} : Range{ratio, ratio});
  }
  return measured_of(ratio_interval(ratios, level));
}
constexpr Kind kKinds[] = {{"mean", 1, mean_of_draws},
                           {"difference", 2, difference_of_draws},
                           {"ratio", 1.5, ratio_of_draws},
                           {"censored ratio", 1.5, censored_ratio_of_draws}};

// At every look, by so many draws each time, whose mean is away from where the threshold is the truth.
std::vector<Holds> verdicts_of(const Kind& kind, std::uint64_t trial, double away) {
  Random random(trial, 1 + static_cast<std::uint64_t>(&kind - kKinds));
  std::vector<double> draws;
  for (std::size_t i = 0; i < kMost; ++i) draws.push_back(away + random.normal());
  const Claim claim{.measured = "", .holds = [&](const Evidence& evidence) {
                      const auto seen = std::span(draws).first(evidence.plan.samples);
                      return noted(evidence, Side::above, kind.measured(seen, level_of(evidence)),
                                   kind.threshold, kind.name);
                    }};
  std::vector<Holds> all;
  const Executor executor(1);
  for (std::size_t look = 1; look <= kLooks; ++look) {
    PaperPlan plan;
    plan.samples = std::size_t{1} << look;
    Evidence evidence{plan, executor};
    evidence.look = look;
    all.push_back(judge(claim, evidence)->holds);
  }
  return all;
}

bool settles(const std::vector<Holds>& verdicts) {
  return std::any_of(verdicts.begin(), verdicts.end(), [](Holds holds) { return holds != Holds::open; });
}

// The mean is the threshold itself, so that yes and no are both wrong; every audit stops at the first that it comes to.
TEST(Audit, OfATrueNullSeldomComesToAVerdict) {
  constexpr std::size_t audits = 1000;
  for (const std::size_t series : {1, 4}) {
    for (const bool any : {false, true}) {
      std::size_t wrong = 0;
      for (std::size_t audit = 0; audit < audits; ++audit)
        wrong += settles(Simulated(audit, std::vector<double>(series, kMuch.value)).verdicts(any));
      EXPECT_LE(wrong, audits / 20) << series << (any ? " any" : " all");
      if (series == 1) {
        EXPECT_GT(wrong, audits / 200);  // or nothing was looked at
      }
    }
  }
}

TEST(Audit, OfATrueNullSeldomComesToAVerdictWhateverItMeasures) {
  constexpr std::size_t audits = 1000;
  for (const Kind& kind : kKinds) {
    std::size_t wrong = 0;
    for (std::size_t audit = 0; audit < audits; ++audit) wrong += settles(verdicts_of(kind, audit, 0));
    EXPECT_LE(wrong, audits / 20) << kind.name;
    EXPECT_GT(wrong, 0u) << kind.name;
  }
}

TEST(Audit, GrowingSamplesOfAnyKindSettleAClaimAndSeldomTurnIt) {
  for (const Kind& kind : kKinds) {
    std::size_t settled = 0, turned = 0, right = 0, trials = 0;
    for (const double away : {1.0, -1.0, 0.75, -0.5, 0.0}) {
      for (std::size_t trial = 0; trial < 100; ++trial, ++trials) {
        const std::vector<Holds> verdicts = verdicts_of(kind, trial, away);
        const auto has = [&](Holds holds) {
          return std::find(verdicts.begin(), verdicts.end(), holds) != verdicts.end();
        };
        turned += has(Holds::yes) && has(Holds::no);
        if (away == 0) continue;
        settled += verdicts.back() != Holds::open;
        right += verdicts.back() == (away > 0 ? Holds::yes : Holds::no);
      }
    }
    EXPECT_LT(turned, trials / 20) << kind.name;
    EXPECT_GE(settled, 320u) << kind.name;  // of 400
    EXPECT_GE(right, settled - settled / 20) << kind.name;
  }
}

TEST(Audit, WithoutSpendingItsFivePerCentWouldBeWrongFarMoreOften) {
  std::size_t wrong = 0;
  for (std::size_t audit = 0; audit < 1000; ++audit) {
    const Simulated simulated(audit, {kMuch.value});
    for (std::size_t n = 2; n <= kMost; n *= 2) {
      const Interval naive = mean_interval(std::span(simulated.draws[0]).first(n));
      if (above(naive, kMuch).has_value()) {
        ++wrong;
        break;
      }
    }
  }
  EXPECT_GT(wrong, 100u);
}

TEST(Audit, GrowingSamplesSettleAClaimAndSeldomTurnIt) {
  std::size_t settled = 0, turned = 0, trials = 0;
  for (const double mean : {kMuch.value + 1, kMuch.value + 0.5, kMuch.value - 0.75, kMuch.value}) {
    for (std::size_t trial = 0; trial < 250; ++trial, ++trials) {
      const std::vector<Holds> verdicts = Simulated(trial, {mean, mean + 0.1}).verdicts();
      if (mean != kMuch.value) settled += verdicts.back() != Holds::open;
      const auto has = [&](Holds holds) {
        return std::find(verdicts.begin(), verdicts.end(), holds) != verdicts.end();
      };
      turned += has(Holds::yes) && has(Holds::no);
    }
  }
  EXPECT_GE(settled, 600u);  // of 750
  EXPECT_LT(turned, trials / 20);
}

TEST(Audit, SpendsFivePerCentHoweverOftenItLooks) {
  double spent = 0;
  for (std::size_t look = 1; look <= 10'000; ++look) spent += 1 - level_of_look(look);
  EXPECT_LE(spent, 0.05);
  EXPECT_GT(spent, 0.0499);
  EXPECT_DOUBLE_EQ(1 - level_of_look(2, 4), (1 - level_of_look(2)) / 4);
}

TEST(Audit, NotesItsComparisonsAndJudgesHalfAndTwiceTheThreshold) {
  const PaperPlan plan;
  const Executor executor(1);
  const auto measured = [](const Evidence&) { return Interval{5, 1.4, 1.3, 1.5}; };
  const Claim claim{.measured = "",
                    .holds = above(measured, Threshold{1.2, "a reason", 1}, Aspect("what", "×", 3)),
                    .stand_in = "a stand-in",
                    .not_at_hand = "the paper's own"};
  const Judgement found = judge(claim, Evidence{plan, executor}).value();
  EXPECT_EQ(found.verdict, "for a stand-in: holds");
  EXPECT_EQ(found.not_at_hand, "the paper's own");
  EXPECT_EQ(found.holds_half, Holds::yes);    // of 1.1
  EXPECT_EQ(found.holds_twice, Holds::open);  // of 1.4
  ASSERT_EQ(found.comparisons.size(), 1u);
  const ComparisonResult& comparison = found.comparisons[0];
  EXPECT_EQ(comparison.what, "what");
  EXPECT_EQ(comparison.answer, "yes");
  EXPECT_EQ(comparison.reason, "a reason");
  EXPECT_DOUBLE_EQ(*comparison.half, 1.1);
  EXPECT_DOUBLE_EQ(*comparison.twice, 1.4);
  EXPECT_EQ(comparison.published, 3);
  EXPECT_NE(found.missing.find("Nearest to turning it: what"), std::string::npos) << found.missing;
}

ClaimResult open_claim(double value, double reach, double threshold) {
  ClaimResult claim;
  ComparisonResult each;
  each.value = value;
  each.low = value - reach;
  each.high = value + reach;
  each.threshold = threshold;
  each.count = 4;
  each.answer = "not yet";
  claim.comparisons = {each};
  return claim;
}

TEST(Schedule, LooksAtEverythingOnceThenWhereMostIsDecidedForTheTime) {
  std::vector<Line> lines(3);
  lines[0] = {"dear", 0, 3, {100, 100, 100}};
  lines[1] = {"cheap", 0, 3, {1, 2, 4}};
  lines[2] = {"exact", 0, 1, {5}};
  EXPECT_EQ(next_line(lines), 1u);
  lines[1].level = 1;
  EXPECT_EQ(next_line(lines), 2u);
  lines[2].level = 1;
  EXPECT_EQ(next_line(lines), 0u);
  lines[0].level = 1;
  EXPECT_EQ(next_line(lines), std::nullopt);  // nothing is open
  lines[0].claims = {open_claim(1.5, 0.6, 1)};
  EXPECT_EQ(next_line(lines), 0u);
  lines[1].claims = {open_claim(1.5, 0.6, 1)};
  EXPECT_EQ(next_line(lines), 1u);  // as near, for less
  lines[1].claims = {open_claim(1.0001, 0.6, 1)};
  EXPECT_EQ(next_line(lines), 0u);  // hopeless
  lines[0].claims[0].holds = Holds::no;
  EXPECT_EQ(next_line(lines), 1u);  // a settled claim is left alone
  // No further run can settle it: no interval of it is undecided, or it has none.
  lines[1].claims[0].comparisons[0].answer = "no";
  EXPECT_EQ(next_line(lines), std::nullopt);
  lines[1].claims[0].comparisons.clear();
  EXPECT_EQ(next_line(lines), std::nullopt);
}

TEST(Schedule, WhatDoesNotFitWaitsForWhatDoes) {
  std::vector<Line> lines(2);
  lines[0] = {"many claims", 0, 1, {100}, 500};
  lines[1] = {"one claim", 0, 1, {50}, 1};
  EXPECT_EQ(next_line(lines), 0u);
  EXPECT_EQ(next_line(lines, 60), 1u);
  EXPECT_EQ(next_line(lines, 10), 0u);
}

TEST(Schedule, WhatALineWaitsForIsRunInItsPlace) {
  std::vector<Line> lines(2);
  lines[0] = {"first", 1, 2, {1, 1}};
  lines[1] = {"second", 1, 2, {1, 1}, 1, 2, {open_claim(1.5, 0.6, 1)}, 0};
  EXPECT_EQ(next_line(lines), 0u);
  lines[0].level = 2;
  EXPECT_EQ(next_line(lines), 1u);
}

TEST(PaperEfforts, AreThoseOfTheParts) {
  std::map<std::string, int> seen;
  for (const Effort& effort : paper_efforts()) {
    ++seen[effort.name];
    EXPECT_TRUE(std::is_sorted(effort.amounts.begin(), effort.amounts.end())) << effort.name;
  }
  for (const PaperPart& part : paper_parts()) EXPECT_EQ(seen[part.effort], 1) << part.name;
}

}  // namespace
}  // namespace normscope

// How a claim that is a value is judged: verdict, what is missing, what must be run.
#include "paper/claim.h"

#include <gtest/gtest.h>

#include <cmath>

#include "normscope/executor.h"
#include "paper/part.h"

namespace normscope {
namespace {

// An interval that every evidence has.
auto always(double low, double high) {
  return [=](const Evidence&) { return Interval{3, (low + high) / 2, low, high}; };
}
const auto kLow = always(0.1, 0.2), kHigh = always(0.8, 0.9), kWide = always(0.1, 0.9);

std::optional<Judgement> judged_alone(const Claim& claim) {
  const PaperPlan plan;
  const Executor executor(1);
  return judge(claim, Evidence{plan, executor});
}
Judgement judgement_of(Claim claim) {
  claim.where = "Fig. 0";
  claim.measured = written("{}", kHigh);
  claim.why = "Why.";
  return judged_alone(claim).value();
}

TEST(Claim, HoldsByItsInterval) {
  EXPECT_EQ(judgement_of({.holds = above(kHigh, 0.5)}).holds, Holds::yes);
  EXPECT_EQ(judgement_of({.holds = above(kLow, 0.5)}).holds, Holds::no);
  EXPECT_EQ(judgement_of({.holds = above(kWide, 0.5)}).holds, Holds::open);
  EXPECT_EQ(judgement_of({.holds = above(kHigh, 0.5)}).measured, "0.85 ± 0.05");
}

TEST(Claim, SaysWhatIsMissing) {
  const Ask seeds{at_least([](const Evidence&) { return 2; }, 3), " Three seeds are needed."},
      steps{above(kHigh, 0.5), " More steps are needed."};
  const Judgement found = judgement_of({.asks = {seeds, steps}, .holds = above(kHigh, 0.5)});
  EXPECT_EQ(found.holds, Holds::open);
  EXPECT_EQ(found.why, "Why. Three seeds are needed.");
  const Judgement told =
      judgement_of({.asks = {steps}, .holds = above(kWide, 0.5), .undecided = " The interval is too wide."});
  EXPECT_EQ(told.holds, Holds::open);
  EXPECT_EQ(told.why, "Why. The interval is too wide.");
}

TEST(Claim, HoldsOnTheFirstConditionThatDoes) {
  const Claim claim{.holds = above(kLow, 0.5),
                    .holds_if = {{above(kLow, 0.6), "not this", " Not said."},
                                 {above(kHigh, 0.6), "this", " Said."},
                                 {above(kHigh, 0.7), "nor this"}}};
  const Judgement found = judgement_of(claim);
  EXPECT_EQ(verdict_of(found), "holds only if this");
  EXPECT_EQ(found.why, "Why. Said.");
  // While it cannot be told of a condition, the claim is not refuted; of the claim itself, conditions wait.
  EXPECT_EQ(judgement_of({.holds = above(kLow, 0.5), .holds_if = {{above(kWide, 0.5), "x"}}}).holds,
            Holds::open);
  EXPECT_EQ(judgement_of({.holds = above(kLow, 0.5), .holds_if = {{above(kLow, 0.5), "x"}}}).holds,
            Holds::no);
  EXPECT_EQ(judgement_of({.holds = above(kWide, 0.5), .holds_if = {{above(kHigh, 0.5), "x"}}}).holds,
            Holds::open);
  EXPECT_EQ(
      judgement_of({.holds = above(kWide, 0.5), .holds_if = {{above(kHigh, 0.5), "x", {}, true}}}).holds,
      Holds::conditionally);
}

TEST(Claim, RunsThatTakeSomethingForGrantedMakeItACondition) {
  EXPECT_EQ(verdict_of(judgement_of({.holds = above(kHigh, 0.5), .granted = "less is enough"})),
            "holds only if less is enough");
  EXPECT_EQ(judgement_of({.holds = above(kLow, 0.5), .granted = "less is enough"}).holds, Holds::no);
}

// A stand-in settles its own sentence, for and against.
TEST(Claim, AStandInIsWhatTheVerdictIsAbout) {
  EXPECT_EQ(verdict_of(judgement_of({.holds = above(kHigh, 0.5), .stand_in = "minilm"})),
            "for minilm: holds");
  const Judgement against = judgement_of(
      {.holds = above(kLow, 0.5), .stand_in = "minilm", .not_at_hand = "bert", .afterword = " Last."});
  EXPECT_EQ(against.holds, Holds::no);
  EXPECT_EQ(against.verdict, "for minilm: does not hold");
  EXPECT_EQ(against.not_at_hand, "bert");
  EXPECT_EQ(against.why, "Why. Last.");
  EXPECT_EQ(verdict_of(judgement_of({.holds = above(kWide, 0.5), .stand_in = "minilm"})), "open");
}

TEST(Claim, AQuestionIsAnsweredOnceItCanBe) {
  EXPECT_EQ(verdict_of(judgement_of({.answer = "both"})), "both");
  EXPECT_EQ(verdict_of(judgement_of({.holds = above(kLow, 0.5), .answer = "both"})), "both");
  EXPECT_EQ(verdict_of(judgement_of({.holds = above(kWide, 0.5), .answer = "both"})), "open");
  EXPECT_EQ(verdict_of(judgement_of({.asks = {{above(kLow, 0.5)}}, .answer = "both"})), "open");
}

// How strict intervals are follows from how many a verdict is made of, not from how often conditions ask for them; and
// what only guards is no comparison.
TEST(Claim, CountsAnIntervalOnceHoweverOftenItIsAskedFor) {
  const Condition low = above(kLow, 0.5, "low"), high = above(kHigh, 0.5, "high"),
                  there = at_least([](const Evidence&) { return 3; }, 2);
  const Judgement found = judgement_of(
      {.asks = {{there}}, .holds = all_of({there, low, high}), .holds_if = {{high, "this"}, {low, "that"}}});
  ASSERT_EQ(found.comparisons.size(), 2u);
  EXPECT_EQ(found.comparisons[0].what, "low");
  EXPECT_EQ(found.comparisons[1].what, "high");
  EXPECT_DOUBLE_EQ(found.level, 1 - 0.05 / 2);
  // Held against two thresholds it is one interval in two comparisons.
  const Judgement twice =
      judgement_of({.holds = all_of({above(kHigh, 0.5, "high"), above(kHigh, 0.6, "high")})});
  EXPECT_EQ(twice.comparisons.size(), 2u);
  EXPECT_DOUBLE_EQ(twice.level, 0.95);
}

TEST(Claim, IsLeftOutWhereThereIsNothingToSay) {
  const Condition never = above(kLow, 0.5);
  EXPECT_FALSE(judged_alone({.there = never, .holds = never}));
  const Judgement found = judgement_of({.there = never, .otherwise = "not run", .holds = never});
  EXPECT_EQ(found.measured, "not run");
  EXPECT_EQ(found.holds, Holds::open);
  EXPECT_EQ(found.why, "");
}

TEST(Claim, OnesAreCountedInTheSingular) {
  const auto some = [](std::size_t yes, std::size_t conditionally, std::size_t no) {
    std::vector<Judgement> claims;
    for (const auto& [holds, count] :
         {std::pair{Holds::yes, yes}, {Holds::conditionally, conditionally}, {Holds::no, no}})
      for (std::size_t k = 0; k < count; ++k) claims.emplace_back().holds = holds;
    return counts_of(claims);
  };
  EXPECT_EQ(some(1, 1, 1),
            "Claims: 3 in all, 1 holds, 1 holds only under a condition, 1 does not hold, 0 open");
  EXPECT_EQ(some(2, 0, 3), "Claims: 5 in all, 2 hold, 0 hold only under a condition, 3 do not hold, 0 open");
}

TEST(Condition, CombinesAnswersOfThreeKinds) {
  const PaperPlan plan;
  const Executor executor(1);
  const Evidence evidence{plan, executor};
  const Condition yes = above(kHigh, 0.5), no = above(kLow, 0.5), open = above(kWide, 0.5);
  EXPECT_EQ(all_of({yes, open})(evidence), std::nullopt);
  EXPECT_EQ(all_of({open, no})(evidence), false);
  EXPECT_EQ(any_of({no, open})(evidence), std::nullopt);
  EXPECT_EQ(any_of({open, yes})(evidence), true);
  EXPECT_EQ(any_of({no, no})(evidence), false);
  EXPECT_EQ(in_turn({open, no})(evidence), std::nullopt);
  EXPECT_EQ(in_turn({yes, no})(evidence), false);
  EXPECT_EQ(negation(open)(evidence), std::nullopt);
  EXPECT_EQ(negation(no)(evidence), true);
  EXPECT_EQ(surely(open)(evidence), false);
  EXPECT_EQ(told(open)(evidence), false);
  EXPECT_EQ(told(no)(evidence), true);
  const double thresholds[] = {0.3, 0.5};
  EXPECT_EQ(all_of(thresholds, [](double each) { return above(kHigh, each); })(evidence), true);
  EXPECT_EQ(none([](const Evidence&) { return 0; })(evidence), true);
  EXPECT_EQ(none([](const Evidence&) { return 1; })(evidence), false);
  EXPECT_EQ(some([](const Evidence&) { return 0; })(evidence), false);
}

TEST(PaperParts, NeedWhatTheirClaimsDo) {
  for (const PaperPart& part : paper_parts()) {
    const std::string name = part.name;
    const bool majority = name == "fig2" || name == "fig3" || name == "followups";
    const bool models = name == "wu2" || name == "wu3" || name == "wu4" || name == "wu8" || name == "wu9" ||
                        name == "beyond" || name == "page";
    EXPECT_EQ(part.needs(Need::majority), majority) << name;
    EXPECT_EQ(part.needs(Need::majority_3d), name == "fig1ab") << name;
    EXPECT_EQ(part.needs(Need::language), name == "fig4" || name == "table1" || name == "table2" ||
                                              name.starts_with("table3") || name == "followups-lm")
        << name;
    EXPECT_EQ(part.needs(Need::sentiment), name == "table4") << name;
    EXPECT_EQ(part.needs(Need::keys), name == "table1" || name == "table2") << name;
    EXPECT_EQ(part.needs(Need::sentences), name.starts_with("table3") || name == "table4") << name;
    EXPECT_EQ(part.needs(Need::models), models) << name;
  }
}

TEST(PaperParts, TrainTheNormsOfTheirClaimsOnce) {
  PaperPlan plan;
  plan.parts = {"fig3", "followups"};
  EXPECT_EQ(norms_for(plan, Need::majority),
            (std::vector<std::string>{"layernorm", "rmsnorm", "xsigma", "published", "project:1", "project:2",
                                      "project:4"}));
  plan.parts = {"followups"};
  EXPECT_EQ(norms_for(plan, Need::majority),
            (std::vector<std::string>{"layernorm", "rmsnorm", "project:1", "project:2", "project:4"}));
  EXPECT_TRUE(norms_for(plan, Need::language).empty());
  plan.parts = {"table3", "table4"};
  EXPECT_EQ(norms_for(plan, Need::language), (std::vector<std::string>{"layernorm", "center"}));
  EXPECT_EQ(norms_for(plan, Need::sentiment), std::vector<std::string>{"none"});
  EXPECT_FALSE(plan_needs(plan, Need::keys));
}

int runs = 0;
int run_again(const Evidence&) {
  return ++runs;
}

TEST(Evidence, IsRunOnceForAllWhoLook) {
  const PaperPlan plan;
  const Executor executor(1);
  const Evidence evidence{plan, executor}, other{plan, executor};
  EXPECT_EQ(once<run_again>(evidence), 1);
  EXPECT_EQ(once<run_again>(evidence), 1);
  EXPECT_EQ(once<run_again>(other), 2);
}

}  // namespace
}  // namespace normscope

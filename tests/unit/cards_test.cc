#include <gtest/gtest.h>

#include "report/paper_cards.h"
#include "report/result_cards.h"
#include "unit/markup.h"

namespace normscope {
namespace {

const std::string kAttack = "\"></a><script>alert(1)</script>";

ClaimResult claim_of(const char* id, Holds holds) {
  ClaimResult claim{"Fig. 2a", "Without projection, training takes 3× as many steps", "3×", "1.04×",
                    "does not hold"};
  claim.id = id;
  claim.paper = "brody2023";
  claim.topic = "projection";
  claim.holds = claim.holds_half = holds;
  claim.holds_twice = Holds::open;
  claim.missing = "Five more seeds.";
  ComparisonResult comparison;
  comparison.what = "rmsnorm over layernorm";
  comparison.unit = "×";
  comparison.value = 1.04;
  comparison.low = 0.92;
  comparison.high = 1.17;
  comparison.threshold = 1.5;
  comparison.reason = "half as much again is much";
  comparison.published = 3;
  comparison.answer = holds == Holds::yes ? "yes" : holds == Holds::no ? "no" : "not yet";
  claim.comparisons = {comparison};
  claim.figures = {"fig2", "confound-scale-rmsnorm"};
  return claim;
}

PaperResult result_of(std::initializer_list<Holds> verdicts) {
  PaperResult result;
  for (const Holds holds : verdicts)
    result.claims.push_back(claim_of(("fig2-" + std::to_string(result.claims.size() + 1)).c_str(), holds));
  return result;
}

TEST(Cards, ACardSaysWhatTheClaimOfTheResultsSays) {
  const std::vector<Card> cards = paper_cards(result_of({Holds::no}), 10);
  ASSERT_EQ(cards.size(), 1u);
  EXPECT_EQ(cards[0].id, "claim-fig2-1");
  EXPECT_EQ(cards[0].figures, std::vector<std::string>{"fig2"});
  EXPECT_EQ(cards[0].change, "Five more seeds.");
  const std::string html = card_html(cards[0], 3);
  for (const char* words :
       {"1.04× (0.92 to 1.17)", "published 3×", "above 1.5×", "half as much again is much",
        "With half the threshold: the same; with twice: open", "data-topic=\"projection\"",
        "class=\"badge fails\"", ">N</span>does not hold", "Five more seeds."})
    EXPECT_EQ(count(html, words) > 0, true) << words << "\n" << html;
}

TEST(Cards, OfTwoValuesBothAreDrawnAndNoInterval) {
  const Reading reading{
      .unit = "%", .value = 30, .low = -97, .high = 157, .both = {{20, 40}}, .threshold = 50};
  const std::string svg = readings_html(std::span(&reading, 1));
  EXPECT_EQ(count(svg, "<circle class=\"value"), 2u);
  EXPECT_EQ(count(svg, "class=\"interval"), 0u);
  EXPECT_EQ(words_of(reading), "20, 40\u00a0%");
}

TEST(Cards, ThresholdAndIntervalLieWhereTheirNumbersSay) {
  Reading reading{.unit = "×", .value = 1, .low = 0.5, .high = 1.5, .threshold = 2, .above = true};
  const auto at = [](const std::string& svg, const std::string& before) {
    return std::stod(between(svg, before, " "));
  };
  const std::string svg = readings_html(std::span(&reading, 1));
  const double low = at(svg, "class=\"interval open\" d=\"M"),
               threshold = at(svg, "class=\"threshold\" d=\"M");
  const double value = std::stod(between(svg, "class=\"value open\" cx=\"", "\""));
  EXPECT_LT(low, value);
  EXPECT_LT(value, threshold);
  EXPECT_NEAR((value - low) * 3, threshold - low, 0.5);  // 0.5, 1 and 2 on one linear axis
  // Without an interval there is only the value; without any number nothing.
  reading.low = reading.high = NAN;
  EXPECT_EQ(count(readings_html(std::span(&reading, 1)), "class=\"interval"), 0u);
  reading.value = NAN;
  EXPECT_EQ(readings_html(std::span(&reading, 1)), "");
}

TEST(Cards, AThresholdThatWillDoItselfIsNamedSo) {
  Reading none{
      .value = 0, .low = 0, .high = 0, .threshold = 0, .above = false, .itself = true, .answer = true};
  EXPECT_EQ(count(readings_html(std::span(&none, 1)), ">at most 0<"), 1u);
  none.itself = false;
  EXPECT_EQ(count(readings_html(std::span(&none, 1)), ">below 0<"), 1u);
  ClaimResult claim = claim_of("fig2-1", Holds::yes);
  claim.amount = "all";
  PaperResult result;
  result.claims = {claim};
  EXPECT_EQ(count(card_html(paper_cards(result, 1)[0], 2), "intervals of"), 0u);  // the number is exact
  result.claims[0].comparisons[0].count = 3;
  EXPECT_EQ(count(card_html(paper_cards(result, 1)[0], 2), "all, intervals of 95 %"), 1u);
}

TEST(Cards, TheScoreCountsEveryVerdictOnce) {
  const PaperResult result =
      result_of({Holds::yes, Holds::yes, Holds::conditionally, Holds::no, Holds::open, Holds::answered});
  CardedPage page;
  page.score = scorecard_of(result);
  page.verdict = counts_sentence(page.score.cards);
  EXPECT_EQ(
      page.verdict,
      "Of 5 claims 2 hold, 1 holds only under a condition, 1 does not, 1 is open; 1 question is answered.");
  page.figures = {{"fig2", "Losses", "", "<svg width=\"10\" height=\"10\"></svg>", "a,b\n1,2\n"}};
  const std::string html = render_html(page);
  EXPECT_EQ(count(html, "<a class=\"tile "), 6u);
  EXPECT_EQ(count(html, "<article class=\"card "), 6u);
  EXPECT_EQ(count(html, "<figure "), 1u);  // in the first card; the others lead there
  EXPECT_EQ(count(html, "<a class=\"see\" href=\"#fig2\">"), 5u);
  for (const Card& card : page.score.cards) {
    EXPECT_EQ(count(html, "id=\"" + card.id + "\""), 1u);
    EXPECT_EQ(count(html, "href=\"#" + card.id + "\""), 3u);  // tile, contents, its own address
  }
}

TEST(Cards, NothingOfAClaimBecomesMarkup) {
  PaperResult result = result_of({Holds::open});
  ClaimResult& claim = result.claims[0];
  for (std::string* text :
       {&claim.where, &claim.claim, &claim.published, &claim.measured, &claim.verdict, &claim.why, &claim.id,
        &claim.topic, &claim.missing, &claim.stand_in, &claim.comparisons[0].what, &claim.comparisons[0].unit,
        &claim.comparisons[0].reason})
    *text = kAttack;
  claim.figures = claim.confounds = {kAttack};
  CardedPage page;
  page.score = scorecard_of(result);
  page.figures = {{kAttack, kAttack, kAttack, "<svg></svg>"}};
  page.confounds = {{kAttack, kAttack, kAttack, {}}};
  EXPECT_EQ(count(render_html(page), "<script>alert"), 0u);
  EXPECT_EQ(count(card_html(page.score.cards[0], 2), "<script>alert"), 0u);
}

// Also from a file, where of two seeds only mean and interval stand.
TEST(Cards, OfTwoSeedsATrainingShowsBothInTheirOrder) {
  MajorityResult result;
  MajorityNormResult& norm = result.norms.emplace_back();
  norm.norm = "layernorm";
  norm.runs = 2;
  const double accuracies[] = {0.75, 0.5};
  for (const double accuracy : accuracies) {
    MajorityRunResult& run = result.runs.emplace_back();
    run.run.norm = "layernorm";
    run.measures.accuracy = accuracy;
  }
  const Interval mean = mean_interval(accuracies);
  static_cast<Interval&>(norm.measures.accuracy) = {2, mean.mean, mean.low, mean.high};
  const Card card = training_cards(result).at(0);
  EXPECT_EQ(card.verdict, "accuracy 75.0, 50.0 %");
  EXPECT_EQ(words_of(card.readings.at(0)), "75, 50\u00a0%");
}

TEST(Cards, AScanHoldsOnlyIfEveryTokenCanBeSelected) {
  ScanResult result;
  result.spaces = {{"model", {.tokens = 10, .sets = 2}},
                   {"head", {.tokens = 10, .sets = 8, .unselectable_in_some = 4, .unselectable_in_all = 1}}};
  result.spaces.push_back({"reachable", {.tokens = 10, .sets = 8, .tied_in_some = 2}});
  const std::vector<Card> cards = scan_cards(result);
  ASSERT_EQ(cards.size(), 3u);
  EXPECT_EQ(cards[0].badge, Badge::holds);
  EXPECT_EQ(cards[0].verdict, "holds of 10 tokens in 2 sets");
  EXPECT_EQ(cards[1].badge, Badge::fails);
  EXPECT_EQ(cards[1].verdict, "does not hold: 4 of 10 tokens cannot in some of 8 sets");
  EXPECT_EQ(words_of(cards[1].readings[0]), "40\u00a0%");
  EXPECT_EQ(cards[2].badge, Badge::only_if);
  EXPECT_EQ(cards[2].verdict, "holds only if ties count: 2 of 10 tokens never lead alone in some of 8 sets");
  result.spaces = {{"reachable", {.tokens = 10, .sets = 0}}, {"head", {.tokens = 0, .sets = 0}}};
  EXPECT_TRUE(scan_cards(result).empty());  // nothing was asked, so nothing holds
}

// "Not worse" alone claims more than an interval can show.
TEST(Cards, AChangeOfRetrievalIsToldWithItsMargin) {
  AblateResult result;
  result.settings.tolerated = 0.05;
  result.settings.prompts = 16;
  AblateRowResult& row = result.rows.emplace_back();
  row.name = "rmsnorm";
  const auto change = [](double low, double high, RetrievalVerdict verdict) {
    return RetrievalChange{
        "copy", {16, 0.9, 0.8, 1}, {16, 0.8, 0.7, 0.9}, {16, (low + high) / 2, low, high}, 0.1, verdict};
  };
  row.retrieval = {change(-0.03, 0.01, RetrievalVerdict::not_worse),
                   change(-0.3, 0.1, RetrievalVerdict::not_shown),
                   change(-0.03, -0.01, RetrievalVerdict::worse), change(-0.3, -0.1, RetrievalVerdict::worse),
                   change(-0.3, 0.1, RetrievalVerdict::untestable)};
  const std::vector<Card> cards = ablate_cards(result);
  ASSERT_EQ(cards.size(), 5u);
  EXPECT_EQ(cards[0].verdict, "no worse by 5 % of what it has above chance");
  EXPECT_EQ(cards[0].badge, Badge::fails);
  EXPECT_EQ(cards[1].verdict, "no difference these 16 prompts can show");
  EXPECT_EQ(cards[1].badge, Badge::open);
  EXPECT_EQ(cards[2].verdict, "worse, by less than 5 % of what it has above chance");
  EXPECT_EQ(cards[3].verdict, "worse");
  EXPECT_EQ(cards[4].badge, Badge::open);
  EXPECT_TRUE(cards[4].verdict.starts_with("untestable"));
  const std::string markup = card_html(cards[0], 3);
  EXPECT_EQ(count(markup, "no worse by 5 %"), 1u) << markup;
}

}  // namespace
}  // namespace normscope

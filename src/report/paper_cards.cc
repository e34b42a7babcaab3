#include "report/paper_cards.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "core/number_text.h"

namespace normscope {
namespace {

constexpr std::size_t kMostReadings = 40;

struct PaperName {
  const char *name, *title;
};
constexpr PaperName kPapers[] = {{"brody2023", "Brody, Alon and Yahav 2023"},
                                 {"wu2024", "Wu et al. 2024"},
                                 {"beyond", "Beyond the papers"}};

Badge badge_of(Holds holds) {
  switch (holds) {
    case Holds::yes:
      return Badge::holds;
    case Holds::conditionally:
      return Badge::only_if;
    case Holds::no:
      return Badge::fails;
    case Holds::answered:
      return Badge::answered;
    case Holds::open:
      break;
  }
  return Badge::open;
}

Reading reading_of(const ComparisonResult& comparison) {
  Reading reading{.name = comparison.what,
                  .unit = comparison.unit,
                  .value = comparison.value,
                  .low = comparison.low,
                  .high = comparison.high,
                  .published = comparison.published,
                  .threshold = comparison.threshold,
                  .above = comparison.direction == Side::above || comparison.direction == Side::at_least,
                  .itself = comparison.direction == Side::at_least || comparison.direction == Side::at_most};
  // An end that is infinite is null in results.json, and so reads as none.
  constexpr double kBeyond = std::numeric_limits<double>::infinity();
  const bool low = std::isfinite(reading.low), high = std::isfinite(reading.high);
  if (!std::isfinite(reading.value)) reading.value = NAN;
  if (!low) reading.low = high ? -kBeyond : NAN;
  if (!high) reading.high = low ? kBeyond : NAN;
  if (comparison.answer != "not yet") reading.answer = comparison.answer == "yes";
  return reading;
}

// "1.5×: half as much again counts as much; under half of it …, under twice …".
std::string thresholds(const ClaimResult& claim) {
  std::vector<std::string> reasons;
  for (const ComparisonResult& each : claim.comparisons) {
    if (each.reason.empty()) continue;
    std::string reason = fmt::format("{} {}{}{}: {}", name_of(each.direction), significant(each.threshold, 3),
                                     each.unit == "×" || each.unit == "°" || each.unit.empty() ? "" : " ",
                                     each.unit, each.reason);
    if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end())
      reasons.push_back(std::move(reason));
  }
  if (reasons.empty()) return "";
  const auto under = [&](Holds holds) {
    return holds == claim.holds ? std::string("the same") : std::string(word_of(badge_of(holds)));
  };
  return fmt::format("{}. With half the threshold: {}; with twice: {}.", fmt::join(reasons, "; "),
                     under(claim.holds_half), under(claim.holds_twice));
}

// "8 samples, at the second look; intervals of 98.7 %"
std::string judged_by(const ClaimResult& claim) {
  // Exact numbers have no intervals.
  if (std::none_of(claim.comparisons.begin(), claim.comparisons.end(),
                   [](const ComparisonResult& each) { return each.count > 0; }))
    return claim.amount;
  return fmt::format("{}{}{}intervals of {} %", claim.amount, claim.amount.empty() ? "" : ", ",
                     claim.looks > 1 ? fmt::format("after {} looks; ", claim.looks) : "",
                     significant(100 * claim.level, 4));
}

Card card_of(const ClaimResult& claim) {
  Card card{.id = "claim-" + claim.id,
            .where = claim.where,
            .sentence = claim.claim,
            .badge = badge_of(claim.holds),
            .verdict = claim.verdict,
            .note = thresholds(claim),
            .why = claim.why,
            .change = what_is_missing(claim),
            .figures = {},
            .paper = claim.paper,
            .topic = claim.topic,
            .confounds = claim.confounds};
  // Those of the chapter on confounds stand there.
  std::copy_if(claim.figures.begin(), claim.figures.end(), std::back_inserter(card.figures),
               [](const std::string& name) { return !name.starts_with(kConfoundFigure); });
  const auto fact = [&](const char* name, const std::string& words) {
    if (!words.empty()) card.facts.push_back({name, words});
  };
  fact("Published", claim.published);
  fact("Measured", claim.measured);
  fact("Looked at", claim.stand_in);
  fact("Not at hand", claim.not_at_hand);
  fact("Judged by", judged_by(claim));
  for (const ComparisonResult& comparison : claim.comparisons) {
    if (card.readings.size() == kMostReadings) break;
    card.readings.push_back(reading_of(comparison));
  }
  return card;
}

}  // namespace

std::vector<Card> paper_cards(const PaperResult& result, std::size_t most) {
  std::vector<Card> cards;
  for (const ClaimResult& claim : result.claims) {
    if (cards.size() == most) break;
    cards.push_back(card_of(claim));
  }
  return cards;
}

std::string counts_sentence(std::span<const Card> cards) {
  const auto count = [&](Badge badge) {
    return static_cast<std::size_t>(
        std::count_if(cards.begin(), cards.end(), [&](const Card& card) { return card.badge == badge; }));
  };
  const std::size_t answered = count(Badge::answered), claims = cards.size() - answered;
  std::vector<std::string> parts;
  const auto part = [&](Badge badge, const char* one, const char* several) {
    if (const std::size_t n = count(badge); n > 0)
      parts.push_back(fmt::format("{} {}", n, n == 1 ? one : several));
  };
  part(Badge::holds, "holds", "hold");
  part(Badge::only_if, "holds only under a condition", "hold only under a condition");
  part(Badge::fails, "does not", "do not");
  part(Badge::open, "is open", "are open");
  std::string text =
      claims == 0 ? "" : fmt::format("Of {} {}", counted(claims, "claim"), fmt::join(parts, ", "));
  if (answered > 0)
    text += fmt::format("{}{} {} answered", text.empty() ? "" : "; ", counted(answered, "question"),
                        answered == 1 ? "is" : "are");
  return text + ".";
}

Scorecard scorecard_of(const PaperResult& result) {
  Scorecard score;
  score.cards = paper_cards(result, result.claims.size());
  for (const PaperName& paper : kPapers) {
    std::vector<Card> own;
    std::copy_if(score.cards.begin(), score.cards.end(), std::back_inserter(own),
                 [&](const Card& card) { return card.paper == paper.name; });
    if (!own.empty()) score.papers.push_back({paper.name, paper.title, counts_sentence(own)});
  }
  return score;
}

}  // namespace normscope

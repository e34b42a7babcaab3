#include "paper/claim.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "paper/part.h"

namespace normscope {

namespace {

// What the conditions of a claim say, all of them.
struct Answers {
  std::vector<Answer> asks, granted;
  Answer holds = true;
};
Answers answers_of(const Claim& claim, const Evidence& evidence) {
  Answers answers;
  for (const Ask& ask : claim.asks) answers.asks.push_back(ask.met(evidence));
  if (claim.holds) answers.holds = claim.holds(evidence);
  for (const Granted& granted : claim.holds_if) answers.granted.push_back(granted.holds(evidence));
  return answers;
}

struct Outcome {
  Holds holds = Holds::open;
  const Granted* on = nullptr;  // condition on which it holds
  bool asked = false;           // open because something that is asked for is not there
};
Outcome outcome_of(const Claim& claim, const Answers& answers) {
  for (const Answer& met : answers.asks) {
    if (met != true) return {Holds::open, nullptr, true};
  }
  if (claim.answer) return {answers.holds ? Holds::answered : Holds::open};
  Answer if_granted = false;
  for (std::size_t i = 0; i < claim.holds_if.size(); ++i) {
    const Granted& granted = claim.holds_if[i];
    if (answers.holds == true || (!answers.holds && !granted.though_open)) continue;
    if (answers.granted[i] == true) return {Holds::conditionally, &granted};
    if_granted = any_of({if_granted, answers.granted[i]});
  }
  return {judged(answers.holds, if_granted)};
}

// The same number and interval of the same thing: conditions ask for it more than once.
bool same_measured(const ComparisonResult& a, const ComparisonResult& b) {
  const auto same = [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); };
  return a.what == b.what && a.count == b.count && same(a.value, b.value) && same(a.low, b.low) &&
         same(a.high, b.high);
}
bool same_comparison(const ComparisonResult& a, const ComparisonResult& b) {
  return same_measured(a, b) && a.direction == b.direction && a.threshold == b.threshold;
}
// Without those that are there before, in order.
template <class Same>
std::vector<ComparisonResult> each_once(const std::vector<ComparisonResult>& comparisons, const Same& same) {
  std::vector<ComparisonResult> kept;
  for (const ComparisonResult& each : comparisons) {
    if (std::none_of(kept.begin(), kept.end(),
                     [&](const ComparisonResult& before) { return same(before, each); }))
      kept.push_back(each);
  }
  return kept;
}
// That share what a look may miss: one interval covers, or misses, whatever it is held against.
std::size_t intervals_in(const std::vector<ComparisonResult>& comparisons) {
  const auto all = each_once(comparisons, same_measured);
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [](const ComparisonResult& each) { return each.count > 0; }));
}

std::string number_with(const std::string& unit, double value) {
  std::string number = significant(value, 3);
  if (number.starts_with('-')) number.replace(0, 1, "−");
  return number + (unit.empty() || unit == "×" || unit == "°" ? "" : " ") + unit;
}

std::string comparison_text(const ComparisonResult& each) {
  return fmt::format("{} lies at {} ({} to {}), to be {} {}", each.what, number_with(each.unit, each.value),
                     number_with("", each.low), number_with("", each.high), name_of(each.direction),
                     number_with(each.unit, each.threshold));
}

// What leaves it open; of a settled claim, the interval that is nearest to its threshold, by its own width.
std::string missing_in(const std::vector<ComparisonResult>& comparisons, bool open) {
  const ComparisonResult* nearest = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const ComparisonResult& each : comparisons) {
    if (each.count == 0 || (open && each.answer != "not yet")) continue;
    const double distance = std::fabs(each.value - each.threshold) / std::max(each.high - each.low, 1e-300);
    if (nearest != nullptr && !(distance < least)) continue;
    nearest = &each;
    least = std::isfinite(distance) ? distance : least;
  }
  if (nearest == nullptr) return "";
  return open ? fmt::format("More of the same runs: {}.", comparison_text(*nearest))
              : fmt::format("Nearest to turning it: {}.", comparison_text(*nearest));
}

}  // namespace

std::optional<Judgement> judge(const Claim& claim, const Evidence& given) {
  Judgement found{claim.where, claim.sentence, claim.published(given)};
  found.topic = claim.topic;
  found.confounds = claim.confounds;
  found.looks = std::max<std::size_t>(1, given.look);
  found.not_at_hand = claim.not_at_hand(given);
  if (claim.there && claim.there(given) != true) {
    if (!claim.otherwise) return std::nullopt;
    found.measured = claim.otherwise(given);
    found.missing = "It was not run.";
  } else {
    Evidence evidence = given;
    // How many intervals share what a look may miss is known once all have been looked at. What is asked for can only
    // leave a claim open, and has no share.
    std::vector<ComparisonResult> counted;
    evidence.standard.comparisons = &counted;
    Claim verdict_alone = claim;
    verdict_alone.asks.clear();
    answers_of(verdict_alone, evidence);
    const std::size_t intervals = std::max<std::size_t>(1, intervals_in(counted));
    found.level = given.look == 0 ? 1 - (1 - kUsualLevel) / static_cast<double>(intervals)
                                  : level_of_look(given.look, intervals);
    const auto answers_with = [&](double scale, std::vector<ComparisonResult>* comparisons) {
      evidence.standard = {found.level, scale, comparisons};
      Answers answers = answers_of(claim, evidence);
      evidence.standard = {found.level};
      return answers;
    };
    const Answers answers = answers_with(1, &found.comparisons);
    found.comparisons = each_once(found.comparisons, same_comparison);
    const Outcome verdict = outcome_of(claim, answers);
    found.holds = verdict.holds;
    found.holds_half = outcome_of(claim, answers_with(0.5, nullptr)).holds;
    found.holds_twice = outcome_of(claim, answers_with(2, nullptr)).holds;
    found.measured = claim.measured(evidence);
    found.why = claim.why(evidence);
    found.stand_in = claim.stand_in(evidence);
    for (std::size_t i = 0; i < claim.asks.size(); ++i) {
      if (answers.asks[i] == true) continue;
      const std::string missing = claim.asks[i].missing(evidence);
      found.why += missing;
      append(found.missing, missing.substr(missing.find_first_not_of(' ') == 1 ? 1 : 0), " ");
    }
    if (verdict.on != nullptr) {
      found.condition = verdict.on->words(evidence);
      found.why += verdict.on->why(evidence);
    } else if (found.holds == Holds::answered) {
      found.condition = claim.answer(evidence);
    } else if (found.holds == Holds::open && !verdict.asked && !claim.answer) {
      found.why += claim.undecided(evidence);
    }
    if (const std::string granted = claim.granted(evidence); !granted.empty()) {
      for (Holds* holds : {&found.holds_half, &found.holds_twice, &found.holds}) {
        if (*holds != Holds::yes) continue;
        *holds = Holds::conditionally;
        if (holds == &found.holds) found.condition = granted;
      }
    }
    if (found.missing.empty()) found.missing = missing_in(found.comparisons, found.holds == Holds::open);
  }
  found.why += claim.afterword(given);
  found.verdict = verdict_of(found);
  return found;
}

std::string verdict_of(const Judgement& claim) {
  if (claim.holds == Holds::open) return "open";
  if (claim.holds == Holds::answered) return claim.condition;
  return (claim.stand_in.empty() ? "" : fmt::format("for {}: ", claim.stand_in)) +
         (claim.holds == Holds::yes  ? "holds"
          : claim.holds == Holds::no ? "does not hold"
                                     : "holds only if " + claim.condition);
}

std::string counts_of(std::span<const Judgement> claims) {
  const auto count = [&](Holds holds) {
    return std::count_if(claims.begin(), claims.end(),
                         [&](const Judgement& claim) { return claim.holds == holds; });
  };
  const auto third = [&](Holds holds, const char* ending) { return count(holds) == 1 ? ending : ""; };
  const auto answered = count(Holds::answered);
  std::string text =
      fmt::format("Claims: {} in all, {} hold{}, {} hold{} only under a condition, {} do{} not hold, {} open",
                  static_cast<std::ptrdiff_t>(claims.size()) - answered, count(Holds::yes),
                  third(Holds::yes, "s"), count(Holds::conditionally), third(Holds::conditionally, "s"),
                  count(Holds::no), third(Holds::no, "es"), count(Holds::open));
  if (answered > 0) text += fmt::format("; questions answered: {}", answered);
  const auto stand_ins = std::count_if(claims.begin(), claims.end(), [](const Judgement& claim) {
    return !claim.stand_in.empty() && claim.holds != Holds::open && claim.holds != Holds::answered;
  });
  if (stand_ins > 0)
    text += fmt::format("; {} of the verdicts are about what stands in for the paper's own", stand_ins);
  return text;
}

ReportTable claims_table(const std::vector<Judgement>& claims) {
  ReportTable table{"Claims", {{"where", "claim", "published", "measured", "verdict", "why"}}};
  for (const Judgement& claim : claims) {
    table.rows.push_back(
        {claim.where, claim.claim, claim.published, claim.measured, verdict_of(claim), claim.why});
  }
  return table;
}

const Standard& standard_of(const Evidence& evidence) {
  return evidence.standard;
}
double level_of(const Evidence& evidence) {
  return evidence.standard.level;
}

Answer compared(Side side, Range measured, double threshold) {
  const bool upwards = side == Side::above || side == Side::at_least;
  const bool itself = side == Side::at_least || side == Side::at_most;
  if (measured.low > threshold) return upwards;
  if (measured.high < threshold) return !upwards;
  if (itself && (upwards ? measured.low : measured.high) == threshold) return true;
  return std::nullopt;
}

Answer noted(const Evidence& evidence, Side side, ComparisonResult measured, const Threshold& threshold,
             const Aspect& aspect) {
  const Standard& standard = standard_of(evidence);
  measured.threshold = threshold.at(standard.scale);
  const Answer answer = compared(side, {measured.low, measured.high}, measured.threshold);
  if (standard.comparisons == nullptr || (aspect.what.empty() && measured.count == 0)) return answer;
  measured.what = aspect.what;
  measured.unit = aspect.unit;
  measured.published = aspect.published;
  measured.direction = side;
  measured.reason = threshold.reason;
  if (!threshold.is_natural()) {
    measured.half = threshold.at(0.5);
    measured.twice = threshold.at(2);
  }
  measured.answer = !answer ? "not yet" : *answer ? "yes" : "no";
  standard.comparisons->push_back(std::move(measured));
  return answer;
}

Answer all_of(std::initializer_list<Answer> answers) {
  Answer all = true;
  for (const Answer& answer : answers) {
    if (answer == false) return false;
    if (!answer) all.reset();
  }
  return all;
}
Answer any_of(std::initializer_list<Answer> answers) {
  Answer any = false;
  for (const Answer& answer : answers) {
    if (answer == true) return true;
    if (!answer) any.reset();
  }
  return any;
}

Condition all_of(std::initializer_list<Condition> conditions) {
  return [all = std::vector(conditions)](const Evidence& evidence) {
    return all_of(all, [&](const Condition& each) { return each(evidence); });
  };
}
Condition any_of(std::initializer_list<Condition> conditions) {
  return [all = std::vector(conditions)](const Evidence& evidence) {
    Answer any = false;
    for (const Condition& each : all) any = any_of({any, each(evidence)});
    return any;
  };
}
Condition in_turn(std::initializer_list<Condition> conditions) {
  return [all = std::vector(conditions)](const Evidence& evidence) {
    Answer answer = true;
    for (std::size_t i = 0; i < all.size() && answer == true; ++i) answer = all[i](evidence);
    return answer;
  };
}
Condition negation(Condition condition) {
  return [condition = std::move(condition)](const Evidence& evidence) {
    const Answer answer = condition(evidence);
    return answer ? Answer(!*answer) : answer;
  };
}
Condition surely(Condition condition) {
  return [condition = std::move(condition)](const Evidence& evidence) { return condition(evidence) == true; };
}
Condition told(Condition condition) {
  return [condition = std::move(condition)](const Evidence& evidence) {
    return condition(evidence).has_value();
  };
}

Text operator+(Text first, Text second) {
  return [=](const Evidence& evidence) { return first(evidence) + second(evidence); };
}
Text when(Condition condition, Text text) {
  return [=](const Evidence& evidence) { return condition(evidence) == true ? text(evidence) : ""; };
}

Holds judged(Answer holds, Answer if_granted) {
  if (holds == true) return Holds::yes;
  if (holds == false && if_granted == true) return Holds::conditionally;
  return !holds || !if_granted ? Holds::open : Holds::no;
}

void append(std::string& list, std::string_view entry, std::string_view separator) {
  if (!list.empty()) list += separator;
  list += entry;
}

CurveFigure::Panel step_panel(std::string title, std::string y_label) {
  CurveFigure::Panel panel;
  panel.title = std::move(title);
  panel.x_label = "training step";
  panel.y_label = std::move(y_label);
  return panel;
}

std::string seeds_caption(std::span<const std::uint64_t> seeds) {
  std::vector<std::uint64_t> each;
  for (const std::uint64_t seed : seeds) {
    if (std::find(each.begin(), each.end(), seed) == each.end()) each.push_back(seed);
  }
  return fmt::format("Seed{} {}{}.", each.size() == 1 ? "" : "s", fmt::join(each, ", "),
                     each.size() > 2    ? "; bands are 95 % intervals of the mean over seeds"
                     : each.size() == 2 ? "; lines are means, bands reach from one seed to the other"
                                        : "");
}

}  // namespace normscope

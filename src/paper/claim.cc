#include "paper/claim.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace normscope {

const char* name_of(Holds holds) {
  constexpr const char* names[] = {"yes", "conditionally", "no", "open", "answered"};
  return names[static_cast<std::size_t>(holds)];
}
std::span<const Holds> values_of(Holds) {
  static constexpr Holds all[] = {Holds::yes, Holds::conditionally, Holds::no, Holds::open, Holds::answered};
  return all;
}

namespace {

// What the conditions of a claim say of it, once all that it asks for is there.
void settle(const Claim& claim, const Evidence& evidence, Judgement& found) {
  const Answer holds = claim.holds ? claim.holds(evidence) : true;
  if (claim.answer) {
    if (holds) found.holds = Holds::answered, found.condition = claim.answer(evidence);
    return;
  }
  Answer if_granted = false;
  for (const Granted& granted : claim.holds_if) {
    if (holds == true || (!holds && !granted.though_open)) continue;
    const Answer then = granted.holds(evidence);
    if (then == true) {
      found.holds = Holds::conditionally;
      found.condition = granted.words(evidence);
      found.why += granted.why(evidence);
      return;
    }
    if_granted = any_of({if_granted, then});
  }
  found.holds = judged(holds, if_granted);
  if (found.holds == Holds::open) found.why += claim.undecided(evidence);
  const std::string granted = claim.granted(evidence);
  if (granted.empty()) return;
  if (found.holds == Holds::yes) {
    found.holds = Holds::conditionally;
    found.condition = granted;
  } else if (found.holds == Holds::no && !claim.refutable) {
    found.holds = Holds::open;
    found.why += " These runs speak against it, but they are not those of the paper: it stays open unless " +
                 granted + ".";
  }
}

}  // namespace

std::optional<Judgement> judge(const Claim& claim, const Evidence& evidence) {
  Judgement found{claim.where, claim.sentence, claim.published(evidence)};
  if (claim.there && claim.there(evidence) != true) {
    if (!claim.otherwise) return std::nullopt;
    found.measured = claim.otherwise(evidence);
  } else {
    found.measured = claim.measured(evidence);
    found.why = claim.why(evidence);
    bool missing = false;
    for (const Ask& ask : claim.asks) {
      if (ask.met(evidence) == true) continue;
      missing = true;
      found.why += ask.missing(evidence);
    }
    if (!missing) settle(claim, evidence, found);
  }
  found.why += claim.afterword(evidence);
  return found;
}

std::string verdict_of(const Judgement& claim) {
  switch (claim.holds) {
    case Holds::yes:
      return "holds";
    case Holds::conditionally:
      return "holds only if " + claim.condition;
    case Holds::no:
      return "does not hold";
    case Holds::answered:
      return claim.condition;
    case Holds::open:
      break;
  }
  return "open";
}

std::string counts_of(std::span<const Judgement> claims) {
  const auto count = [&](Holds holds) {
    return std::count_if(claims.begin(), claims.end(),
                         [&](const Judgement& claim) { return claim.holds == holds; });
  };
  const auto answered = count(Holds::answered);
  std::string text =
      fmt::format("Claims: {} in all, {} hold, {} hold only under a condition, {} do not hold, {} open",
                  static_cast<std::ptrdiff_t>(claims.size()) - answered, count(Holds::yes),
                  count(Holds::conditionally), count(Holds::no), count(Holds::open));
  if (answered > 0) text += fmt::format("; questions answered: {}", answered);
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

Answer is_above(Range measured, double threshold) {
  return measured.low > threshold ? Answer(true) : measured.high < threshold ? Answer(false) : std::nullopt;
}
Answer is_below(Range measured, double threshold) {
  return measured.high < threshold ? Answer(true) : measured.low > threshold ? Answer(false) : std::nullopt;
}
Answer is_at_least(Range measured, double threshold) {
  return measured.low >= threshold ? Answer(true) : is_above(measured, threshold);
}
Answer is_at_most(Range measured, double threshold) {
  return measured.high <= threshold ? Answer(true) : is_below(measured, threshold);
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
                     each.size() > 1 ? "; bands are 95 % intervals of the mean over seeds" : "");
}

}  // namespace normscope

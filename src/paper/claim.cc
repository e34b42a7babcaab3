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

Claim claim_of(std::string where, std::string claim, std::string published) {
  Claim result;
  result.where = std::move(where);
  result.claim = std::move(claim);
  result.published = std::move(published);
  return result;
}

std::string verdict_of(const Claim& claim) {
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

std::string counts_of(std::span<const Claim> claims) {
  const auto count = [&](Holds holds) {
    return std::count_if(claims.begin(), claims.end(),
                         [&](const Claim& claim) { return claim.holds == holds; });
  };
  const auto answered = count(Holds::answered);
  std::string text =
      fmt::format("Claims: {} in all, {} hold, {} hold only under a condition, {} do not hold, {} open",
                  static_cast<std::ptrdiff_t>(claims.size()) - answered, count(Holds::yes),
                  count(Holds::conditionally), count(Holds::no), count(Holds::open));
  if (answered > 0) text += fmt::format("; questions answered: {}", answered);
  return text;
}

ReportTable claims_table(const std::vector<Claim>& claims) {
  ReportTable table{"Claims", {{"where", "claim", "published", "measured", "verdict", "why"}}};
  for (const Claim& claim : claims) {
    table.rows.push_back(
        {claim.where, claim.claim, claim.published, claim.measured, verdict_of(claim), claim.why});
  }
  return table;
}

Answer all_of(std::initializer_list<Answer> answers) {
  Answer all = true;
  for (const Answer& answer : answers) {
    if (answer == false) return false;
    if (!answer) all.reset();
  }
  return all;
}

Holds judged(Answer holds) {
  return !holds ? Holds::open : *holds ? Holds::yes : Holds::no;
}
Holds judged(Answer holds, Answer if_granted) {
  if (holds != false) return judged(holds);
  return if_granted == true ? Holds::conditionally : judged(if_granted);
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

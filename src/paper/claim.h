#pragma once
// A published claim beside what was measured, and how it is judged: what was measured is an interval, a claim
// a threshold, and the answer yes, no or not yet.
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/number_text.h"
#include "report/curves.h"
#include "report/page.h"

namespace normscope {

// open: not enough was run to tell; answered: the paper asked, and claimed nothing
enum class Holds { yes, conditionally, no, open, answered };
const char* name_of(Holds holds);
std::span<const Holds> values_of(Holds);

struct Claim {
  std::string where;      // "Fig. 2a"
  std::string claim;      // in the paper's words, shortened
  std::string published;  // value, with its unit
  std::string measured;   // mean ± interval, over how many seeds
  Holds holds = Holds::open;
  std::string condition;  // what must be granted, continuing "holds only if"; or the answer
  std::string why;        // the evidence, in a sentence or two

  static void describe(auto& visit, auto& self) {
    visit("where", self.where, "figure, table or section");
    visit("claim", self.claim, "in the paper's words, shortened");
    visit("published", self.published, "value, with its unit");
    visit("measured", self.measured, "mean and interval");
    visit("holds", self.holds, "the verdict in a word");
    visit("condition", self.condition, "what must be granted, or the answer");
    visit("why", self.why, "the evidence");
  }
};

// A claim as it stands in a paper, not yet measured.
Claim claim_of(std::string where, std::string claim, std::string published);

// "holds", "holds only if …", "does not hold", "open", or the answer
std::string verdict_of(const Claim& claim);
// "Claims: 5 in all, 2 hold, …"
std::string counts_of(std::span<const Claim> claims);
ReportTable claims_table(const std::vector<Claim>& claims);

// Whether something is so, is not so, or cannot be told yet.
using Answer = std::optional<bool>;

// Yes if all of the interval lies on that side of the threshold, no if all of it lies on the other; not yet
// if the threshold is inside, or if there is no interval, as of one sample.
template <class Interval>
Answer above(const Interval& interval, double threshold) {
  return interval.above(threshold) ? Answer(true) : interval.below(threshold) ? Answer(false) : std::nullopt;
}
template <class Interval>
Answer below(const Interval& interval, double threshold) {
  return interval.below(threshold) ? Answer(true) : interval.above(threshold) ? Answer(false) : std::nullopt;
}
// The same where the threshold itself will do.
template <class Interval>
Answer at_least(const Interval& interval, double threshold) {
  return interval.low >= threshold ? Answer(true) : interval.below(threshold) ? Answer(false) : std::nullopt;
}

// One no is enough for no; yes takes all.
Answer all_of(std::initializer_list<Answer> answers);
template <class Range, class Test>
Answer all_of(const Range& range, const Test& test) {
  Answer all = true;
  for (const auto& each : range) all = all_of({all, Answer(test(each))});
  return all;
}

// yes, no or open
Holds judged(Answer holds);
// The same, but what does not hold is judged again with something granted, on which condition it then holds.
Holds judged(Answer holds, Answer if_granted);

// A further entry of a list in a sentence.
void append(std::string& list, std::string_view entry, std::string_view separator = ", ");
// A panel over the steps of a training.
CurveFigure::Panel step_panel(std::string title, std::string y_label);
// "Seeds 11, 42; bands are …"; each seed once.
std::string seeds_caption(std::span<const std::uint64_t> seeds);

}  // namespace normscope

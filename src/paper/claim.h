#pragma once
// A published claim as a value: what was said, what must be run, what was measured, and how it is judged. What
// was measured is an interval, a claim a threshold, and the answer yes, no or not yet; the verdict and what is
// missing to settle it follow.
#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/number_text.h"
#include "normscope/statistics.h"
#include "report/curves.h"
#include "report/page.h"

namespace normscope {

struct Evidence;  // what was run (paper/part.h)
// What is made of the evidence: an interval, a number, a text.
template <class M>
concept Measure = std::invocable<const M&, const Evidence&>;

// Whether something is so, is not so, or cannot be told yet; and as a question to the evidence.
using Answer = std::optional<bool>;
using Condition = std::function<Answer(const Evidence&)>;

// Yes if all of the interval lies on that side of the threshold, no if all of it lies on the other; not yet
// if the threshold is inside, or if there is no interval, as of one sample.
Answer is_above(Range measured, double threshold);
Answer is_below(Range measured, double threshold);
// The same where the threshold itself will do.
Answer is_at_least(Range measured, double threshold);
Answer is_at_most(Range measured, double threshold);

// Of an interval or an exact number, an answer; of a measure, a condition.
template <class Measured>
auto compared(Answer (*how)(Range, double), const Measured& measured, double threshold) {
  if constexpr (Measure<Measured>) {
    return Condition([=](const Evidence& evidence) { return compared(how, measured(evidence), threshold); });
  } else if constexpr (std::is_arithmetic_v<Measured>) {
    return how({static_cast<double>(measured), static_cast<double>(measured)}, threshold);
  } else {
    return how({measured.low, measured.high}, threshold);
  }
}
auto above(const auto& measured, double threshold) {
  return compared(is_above, measured, threshold);
}
auto below(const auto& measured, double threshold) {
  return compared(is_below, measured, threshold);
}
auto at_least(const auto& measured, double threshold) {
  return compared(is_at_least, measured, threshold);
}
auto at_most(const auto& measured, double threshold) {
  return compared(is_at_most, measured, threshold);
}
// Of a count.
auto none(const auto& counted) {
  return at_most(counted, 0);
}
auto some(const auto& counted) {
  return at_least(counted, 1);
}

// Of a list or a text.
template <Measure M>
Condition any_in(const M& list) {
  return [=](const Evidence& evidence) { return !list(evidence).empty(); };
}

// One no is enough for no; yes takes all.
Answer all_of(std::initializer_list<Answer> answers);
Condition all_of(std::initializer_list<Condition> conditions);
// One yes is enough for yes; no takes all.
Answer any_of(std::initializer_list<Answer> answers);
Condition any_of(std::initializer_list<Condition> conditions);
// The first that is not yes: what comes after is not asked before.
Condition in_turn(std::initializer_list<Condition> conditions);
Condition negation(Condition condition);
// Not yet counts as no.
Condition surely(Condition condition);
// Whether it is yes or no.
Condition told(Condition condition);

// Over masks, layers, models: of answers an answer, of conditions a condition.
template <class Range, class Test>
auto all_of(const Range& range, const Test& test) {
  if constexpr (std::is_same_v<decltype(test(*std::begin(range))), Condition>) {
    Condition all = [](const Evidence&) { return Answer(true); };
    for (const auto& each : range) all = all_of({all, test(each)});
    return all;
  } else {
    Answer all = true;
    for (const auto& each : range) all = all_of({all, Answer(test(each))});
    return all;
  }
}

// Words, with what was measured in them; default: none.
class Text {
 public:
  Text() = default;
  Text(const char* words) : Text(std::string(words)) {}
  Text(std::string words) : of_([words = std::move(words)](const Evidence&) { return words; }) {}
  template <Measure M>
  requires(!std::same_as<M, Text>) Text(M words) : of_(std::move(words)) {}

  std::string operator()(const Evidence& evidence) const { return of_ ? of_(evidence) : ""; }
  explicit operator bool() const { return static_cast<bool>(of_); }

 private:
  std::function<std::string(const Evidence&)> of_;
};
Text operator+(Text first, Text second);
// Said only if it is so.
Text when(Condition condition, Text text);

// Intervals as people read them; the rest is for fmt.
template <class Part>
auto words_of(const Part& part, const Evidence& evidence) {
  if constexpr (Measure<Part>) {
    return words_of(part(evidence), evidence);
  } else if constexpr (requires { with_interval(part); }) {
    return with_interval(part);
  } else {
    return part;
  }
}
// "… {} …", filled with measures.
template <class... Parts>
Text written(const char* format, const Parts&... parts) {
  return [=](const Evidence& evidence) {
    return fmt::format(fmt::runtime(format), words_of(parts, evidence)...);
  };
}
// Something of what is measured: a member, or what a function makes of it.
template <Measure M>
auto of(const M& measure, auto what) {
  return [=](const Evidence& evidence) { return std::invoke(what, measure(evidence)); };
}
template <Measure M>
Text counted(const M& count, const char* what) {
  return [=](const Evidence& evidence) { return counted(count(evidence), what); };
}
// An interval with so many digits, in multiples of 1/unit.
template <Measure M>
auto digits(int count, const M& measure, double unit = 1) {
  return [=](const Evidence& evidence) { return with_interval(measure(evidence), count, unit); };
}

// What must be run before a claim can be looked at.
enum class Need {
  majority,     // trainings of the majority task, in 8 dimensions
  majority_3d,  // and in 3
  language,     // trainings on text
  sentiment,
  keys,       // of the language models while they learn, decided
  sentences,  // marked by the models trained on text
  models,     // pretrained
};
struct Runs {
  Need what;
  std::vector<std::string> norms = {};  // that are trained
};

// Without it nothing can be told.
struct Ask {
  Condition met;
  Text missing = {};
};
// With something granted, a claim that does not hold does.
struct Granted {
  Condition holds;
  Text words;                // what, continuing "holds only if"
  Text why = {};             // said if that is the verdict
  bool though_open = false;  // which it is also while the claim itself is open
};

struct Claim {
  std::string where = {};     // "Fig. 2a"
  std::string sentence = {};  // in the paper's words, shortened
  Text published = {};        // value, with its unit
  std::vector<Runs> needs = {};
  Condition there = {};  // whether there is anything to look at
  Text otherwise = {};   // stands for what was measured if not; none: the claim is left out
  Text measured = {};    // mean ± interval, over how many seeds
  Text why = {};         // the evidence, in a sentence or two
  std::vector<Ask> asks = {};
  Condition holds = {};
  std::vector<Granted> holds_if = {};  // the first that does is the condition
  Text undecided = {};                 // said if the intervals leave it open
  Text granted = {};  // what is taken for granted by looking at these runs, on which condition it then holds
  bool refutable = true;  // by runs that take something for granted
  Text answer = {};       // of a question: the paper asked, and claimed nothing; told if `holds` is
  Text afterword = {};    // said in any case
};

// open: not enough was run to tell; answered: the paper asked, and claimed nothing
enum class Holds { yes, conditionally, no, open, answered };
const char* name_of(Holds holds);
std::span<const Holds> values_of(Holds);

// A claim beside what was measured.
struct Judgement {
  std::string where, claim, published, measured = {};
  Holds holds = Holds::open;
  std::string condition = {};  // what must be granted, continuing "holds only if"; or the answer
  std::string why = {};

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
// None if there is nothing to look at and nothing to say of that.
std::optional<Judgement> judge(const Claim& claim, const Evidence& evidence);
// yes, no or open; what does not hold is judged again with something granted, on which condition it then
// holds.
Holds judged(Answer holds, Answer if_granted = false);

// "holds", "holds only if …", "does not hold", "open", or the answer
std::string verdict_of(const Judgement& claim);
// "Claims: 5 in all, 2 hold, …"
std::string counts_of(std::span<const Judgement> claims);
ReportTable claims_table(const std::vector<Judgement>& claims);

// A further entry of a list in a sentence.
void append(std::string& list, std::string_view entry, std::string_view separator = ", ");
// A panel over the steps of a training.
CurveFigure::Panel step_panel(std::string title, std::string y_label);
// "Seeds 11, 42; bands are …"; each seed once.
std::string seeds_caption(std::span<const std::uint64_t> seeds);

}  // namespace normscope

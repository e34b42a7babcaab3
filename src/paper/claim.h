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

#include "core/levels.h"
#include "core/number_text.h"
#include "normscope/statistics.h"
#include "report/curves.h"
#include "report/page.h"
#include "result/paper.h"

namespace normscope {

struct Evidence;  // what was run (paper/part.h)
// What is made of the evidence: an interval, a number, a text.
template <class M>
concept Measure = std::invocable<const M&, const Evidence&>;

// Whether something is so, is not so, or cannot be told yet; and as a question to the evidence.
using Answer = std::optional<bool>;
using Condition = std::function<Answer(const Evidence&)>;

// What something is held against, and why that. Half of it and twice it are counted from `neutral`, where there is
// no effect: 0 of a difference, 1 of a ratio. Without a reason it is a natural one, and stays.
struct Threshold {
  double value = 0;
  const char* reason = "";
  double neutral = 0;

  constexpr Threshold(double natural) : value(natural) {}
  constexpr Threshold(double given, const char* why, double from = 0)
      : value(given), reason(why), neutral(from) {}
  bool is_natural() const { return *reason == 0; }
  double at(double scale) const { return is_natural() ? value : neutral + scale * (value - neutral); }
};
// What is compared, for people.
struct Aspect {
  std::string what = {}, unit = {};
  std::optional<double> published = {};

  Aspect() = default;
  Aspect(const char* name) : what(name) {}
  Aspect(std::string name, std::string in = {}, std::optional<double> value = {})
      : what(std::move(name)), unit(std::move(in)), published(value) {}
};

// Yes if all of the interval lies on that side of the threshold, no if all of it lies on the other; not yet
// if the threshold is inside, or if there is no interval, as of one sample. at_least and at_most: the threshold
// itself will do.
Answer compared(Side side, Range measured, double threshold);

// How strictly the evidence is judged: the level of its intervals, thresholds by a factor, and where
// comparisons are written down; null: nowhere.
struct Standard {
  double level = kUsualLevel, scale = 1;
  std::vector<ComparisonResult>* comparisons = nullptr;
};
const Standard& standard_of(const Evidence& evidence);
double level_of(const Evidence& evidence);

// An interval, an exact number, or a pair of ends as they stand in a comparison.
template <class Measured>
ComparisonResult measured_of(const Measured& measured) {
  ComparisonResult result;
  if constexpr (std::is_arithmetic_v<Measured>) {
    result.value = result.low = result.high = static_cast<double>(measured);
  } else {
    result.low = measured.low;
    result.high = measured.high;
    result.count = measured.count;
    if constexpr (requires { measured.mean; }) {
      result.value = measured.mean;
    } else {
      result.value = measured.estimate.low;
    }
  }
  return result;
}
// By the standard of the evidence, which notes it. An exact number without a name only guards what comes after, such as
// whether there are any seeds: it is nothing that was measured of the claim, and is not noted.
Answer noted(const Evidence& evidence, Side side, ComparisonResult measured, const Threshold& threshold,
             const Aspect& aspect);

// Of an interval or an exact number, an answer; of a measure, a condition; within a condition, with the evidence
// first, an answer that is noted.
template <Side side>
struct Compare {
  template <class Measured>
  auto operator()(const Measured& measured, const Threshold& threshold, const Aspect& aspect = {}) const {
    if constexpr (Measure<Measured>) {
      return Condition([=, *this](const Evidence& evidence) {
        return (*this)(evidence, measured(evidence), threshold, aspect);
      });
    } else {
      const ComparisonResult result = measured_of(measured);
      return compared(side, {result.low, result.high}, threshold.value);
    }
  }
  template <class Measured>
  Answer operator()(const Evidence& evidence, const Measured& measured, const Threshold& threshold,
                    const Aspect& aspect = {}) const {
    return noted(evidence, side, measured_of(measured), threshold, aspect);
  }
};
inline constexpr Compare<Side::above> above;
inline constexpr Compare<Side::below> below;
inline constexpr Compare<Side::at_least> at_least;
inline constexpr Compare<Side::at_most> at_most;
// Of a count.
auto none(const auto& counted, const Aspect& aspect = {}) {
  return at_most(counted, 0, aspect);
}
auto some(const auto& counted, const Aspect& aspect = {}) {
  return at_least(counted, 1, aspect);
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
// The mean of values, with an interval by the standard of the evidence.
template <Measure M>
auto mean_of(const M& values) {
  return [=](const Evidence& evidence) { return mean_interval(values(evidence), level_of(evidence)); };
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
  Text granted = {};   // what is taken for granted by looking at these runs, on which condition it then holds
  Text stand_in = {};  // what is looked at in the place of the paper's, and which the verdict is then about
  Text not_at_hand = {};  // what of the paper's is not looked at
  Text answer = {};       // of a question: the paper asked, and claimed nothing; told if `holds` is
  Text afterword = {};    // said in any case
  const char* topic = "";
  std::vector<std::string> confounds = {};  // what the paper did not separate
};

// A claim that has been judged.
using Judgement = ClaimResult;
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

#include "report/training_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/number_text.h"
#include "report/training_page.h"
#include "result/columns.h"

namespace normscope {
namespace {

constexpr IntervalStyle kInCells{.sign = " ±", .none = "-"};
constexpr const char* kTitle = "Where the trainings ended";

// Of the runs of a norm, the values of a measure that are finite.
template <class RunResult, class Value>
std::vector<double> values_of(const std::vector<RunResult>& runs, const std::string& norm,
                              const Value& value) {
  std::vector<double> values;
  for (const RunResult& run : runs)
    if (run.run.norm == norm && std::isfinite(value(run))) values.push_back(value(run));
  return values;
}

template <class RunResult>
std::uint64_t longest(const std::vector<RunResult>& runs, const std::string& norm) {
  std::uint64_t steps = 0;
  for (const RunResult& run : runs)
    if (run.run.norm == norm) steps = std::max(steps, run.step);
  return steps;
}

// The mean if all runs got there, "-" if none did; otherwise the median of all and how many did.
std::string steps_cell(const std::vector<MajorityRunResult>& runs, const std::string& norm,
                       std::string_view loss) {
  std::vector<double> steps;
  std::vector<Range> ranges;
  for (const MajorityRunResult& run : runs) {
    if (run.run.norm != norm) continue;
    const auto mark = std::find_if(run.steps_to.begin(), run.steps_to.end(),
                                   [&](const auto& each) { return each.first == loss; });
    const auto reached = mark == run.steps_to.end() ? std::nullopt : mark->second;
    const auto made = static_cast<double>(reached.value_or(run.step));
    if (reached) steps.push_back(made);
    ranges.push_back({made, reached ? made : std::numeric_limits<double>::infinity()});
  }
  if (steps.empty() || steps.size() == ranges.size())
    return with_interval(mean_interval(steps), 0, 1, kInCells);
  const Range median = ratio_interval(ranges).estimate;
  return fmt::format("median {}{:.0f} ({} of {})", median.low == median.high ? "" : ">", median.low,
                     steps.size(), ranges.size());
}

struct MajorityLine {
  std::string norm;
  std::size_t runs;
  std::uint64_t steps;
  MajorityMeasures<std::string> measures;
  Named<std::string> steps_to;

  static void describe(auto& visit, auto& self) {
    const auto& measures = self.measures;
    visit("norm", self.norm, "before attention");
    visit("runs", self.runs, "of this norm");
    visit("steps", self.steps, "of the longest");
    visit("train loss", measures.train_loss, "since the evaluation before");
    visit("test loss", measures.test_loss, "of the held-out fifth");
    visit("accuracy %", measures.accuracy, "of positions");
    visit("whole seq. %", measures.sequence_accuracy, "right at every position");
    visit("angle to 1", measures.angle_mean + "°", "of the first layer's queries");
    visit("entropy", measures.attention_entropy, "of the attention rows, in nats");
    visit("from uniform", measures.attention_distance, "total variation distance");
    visit("to", self.steps_to, "steps until the train loss is at most this");
  }
};

struct TextLine {
  std::string norm;
  std::size_t runs;
  std::uint64_t steps, seen;
  bool classes;
  std::string train_loss, held_out_loss, quality;

  static void describe(auto& visit, auto& self) {
    visit("norm", self.norm, "by name");
    visit("runs", self.runs, "without those with trouble");
    visit("steps", self.steps, "of the longest");
    visit("train loss", self.train_loss, "since the evaluation before");
    visit(self.classes ? "test loss" : "held-out loss", self.held_out_loss, "of what is not trained on");
    visit(self.classes ? "accuracy %" : "perplexity", self.quality, "of the same");
    visit(self.classes ? "texts seen" : "tokens seen", self.seen, "in training");
  }
};

}  // namespace

ReportTable majority_table(const MajorityResult& result) {
  using M = MajorityMeasures<double>;
  std::vector<MajorityLine> rows;
  std::vector<std::size_t> counts;
  for (const MajorityNormResult& norm : result.norms) {
    const std::string& name = norm.norm;
    counts.push_back(norm.runs);
    const auto cell = [&](double M::*measure, int digits, double factor = 1) {
      const auto values =
          values_of(result.runs, name, [&](const MajorityRunResult& run) { return run.measures.*measure; });
      return with_interval(mean_interval(values), digits, factor, kInCells);
    };
    MajorityLine& row =
        rows.emplace_back(MajorityLine{name,
                                       norm.runs,
                                       longest(result.runs, name),
                                       {.train_loss = cell(&M::train_loss, 3),
                                        .test_loss = cell(&M::test_loss, 3),
                                        .accuracy = cell(&M::accuracy, 1, 100),
                                        .sequence_accuracy = cell(&M::sequence_accuracy, 1, 100),
                                        .angle_mean = cell(&M::angle_mean, 1),
                                        .angle_sd = "",
                                        .attention_entropy = cell(&M::attention_entropy, 2),
                                        .attention_distance = cell(&M::attention_distance, 3)},
                                       {}});
    for (const std::string_view loss : kLossMarks)
      row.steps_to.emplace_back(fmt::format("to {}", loss), steps_cell(result.runs, name, loss));
  }
  return {kTitle, table_of(rows), over_seeds(counts)};
}

ReportTable text_training_table(const TextResult& result) {
  using Run = TextRunResult;
  const bool classes = result.settings.classifies();
  std::vector<TextLine> rows;
  std::vector<std::size_t> counts;
  std::vector<Run> sound = result.runs;
  std::erase_if(sound, [](const Run& run) { return run.trouble.has_value(); });
  for (const TextNormResult& norm : result.norms) {
    counts.push_back(norm.runs);
    const auto cell = [&](const MeanResult& mean, int digits, double unit, const auto& value) {
      const auto values = values_of(sound, norm.norm, value);
      const Interval shown = values.size() == 2 ? mean_interval(values) : Interval(mean);
      return with_interval(shown, digits, unit, kInCells);
    };
    const std::uint64_t steps = longest(sound, norm.norm);
    rows.push_back(
        {.norm = norm.norm,
         .runs = norm.runs,
         .steps = steps,
         .seen = steps * result.settings.batch * (classes ? 1 : result.settings.context),
         .classes = classes,
         .train_loss = cell(norm.train_loss, 3, 1, [](const Run& run) { return run.measures.train_loss; }),
         .held_out_loss =
             cell(norm.held_out_loss, 3, 1, [](const Run& run) { return run.measures.held_out_loss; }),
         .quality = norm.accuracy
                        ? cell(*norm.accuracy, 1, 100, [](const Run& run) { return run.measures.accuracy; })
                    : norm.perplexity
                        ? cell(*norm.perplexity, 1, 1, [](const Run& run) { return run.perplexity; })
                        : std::string(kInCells.none)});
  }
  const bool alone = result.runs.size() <= result.norms.size();
  return {kTitle, table_of(rows),
          !alone    ? over_seeds(counts)
          : classes ? "± is the 95 % interval of a share of the texts that were tested"
                    : ""};
}

RunView majority_view(const MajorityResult& result, const Provenance&) {
  return {.section = {.title = "", .tables = {majority_table(result)}}};
}

RunView text_training_view(const TextResult& result, const Provenance&) {
  RunView view{.section = {.title = "", .tables = {text_training_table(result)}}};
  std::vector<std::vector<std::string>> stopped = {{"norm", "seed", "why", "step", "tensor"}};
  for (const TextRunResult& run : result.runs)
    if (run.trouble)
      stopped.push_back({run.run.norm, std::to_string(run.run.seed), name_of(run.trouble->kind),
                         std::to_string(run.trouble->step), run.trouble->tensor});
  if (stopped.size() > 1) view.section.tables.push_back({"Stopped before their end", std::move(stopped)});
  return view;
}

}  // namespace normscope

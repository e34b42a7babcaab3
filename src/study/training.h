#pragma once
// What all trainings share: which runs there are, the way to the last step, the run directory.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/run_pieces.h"
#include "normscope/error.h"
#include "record/training_record.h"
#include "result/json_reader.h"
#include "result/json_writer.h"
#include "result/options.h"
#include "result/ranges.h"
#include "result/training.h"
#include "study/context.h"

namespace normscope {

// Options of every training.
struct TrainingOptions {
  std::string norm = {}, seeds = {};
  std::optional<std::uint64_t> seed = {};  // of a single run
  double weight_decay = 0, clip = 0;
  std::optional<std::uint64_t> checkpoint_every = {};

  static OptionFacts counted(const char* otherwise = nullptr, double low = 1,
                             const char* old_name = nullptr) {
    return {.low = low, .high = 1e9, .otherwise = otherwise, .old_name = old_name};
  }
  static void describe(auto& visit, auto& self) {
    visit("seeds", self.seeds, "Seeds of the runs: 10: the paper's ten (3: its first three); 11,42: a list",
          OptionFacts{.type = "LIST", .otherwise = "that of --seed"});
    visit("weight-decay", self.weight_decay, "Decoupled weight decay (AdamW)",
          OptionFacts{.type = "X", .low = 0, .high = 1e3});
    visit("clip", self.clip, "Largest norm of the gradient; 0: no limit",
          OptionFacts{.type = "X", .low = 0, .high = 1e9});
    visit("checkpoint-every", self.checkpoint_every, "Steps between two checkpoints, rounded up to a record",
          counted("half a minute"));
  }
};

// Names of norms with commas, each once.
std::vector<std::string> parse_norms(const std::string& text);
// seeds: a number of the paper's ten, or a list; empty: `seed`, or the paper's first.
std::vector<std::uint64_t> parse_seeds(const std::string& seeds, std::optional<std::uint64_t> seed);
std::vector<PlannedRun> every_run(const std::vector<std::string>& norms,
                                  std::span<const std::uint64_t> seeds);
// Each norm once, in the order of its first run.
std::vector<std::string> norms_of(const std::vector<PlannedRun>& runs);

// A training as a run directory (record/training_record.h): metrics.jsonl has a line per run and evaluation,
// checkpoint.safetensors the parameters, moments and progress of every run. A plan names its Training, Row
// and Measures; `check_plan`, `measures_of` and `row_of` say the rest.
template <class Plan>
class PlanRecord {
 public:
  using Training = typename Plan::Training;

  // A new training. Throws InputError if the directory holds a run already.
  PlanRecord(const std::filesystem::path& directory, std::string_view command, const Provenance& provenance,
             const Plan& plan)
      : PlanRecord(TrainingRecord(directory, command, provenance, json_of(plan), settings_text(plan)), plan) {
  }
  // An earlier training, to go on with. Throws InputError if it is not one of `command`, of another version,
  // or being written by another process.
  static PlanRecord open(const std::filesystem::path& directory, std::string_view command) {
    Plan plan;
    constexpr const char* place = "The run's config.json";
    JsonReader::read(TrainingRecord::options(directory, command), place, plan);
    require_in_ranges(plan, place);
    constexpr std::size_t most_runs = 4096;
    if (plan.runs.empty() || plan.runs.size() > most_runs)
      throw InputError(
          fmt::format("The run's config.json names no norm and seed to train, or more than {}.", most_runs));
    check_plan(plan);
    TrainingRecord record = TrainingRecord::open(directory, settings_text(plan));
    return {std::move(record), std::move(plan)};
  }
  // A new training, or the one there with the same plan. One of some of its runs, all else alike, gives way.
  static PlanRecord begin_or_open(const std::filesystem::path& directory, std::string_view command,
                                  const Provenance& provenance, const Plan& plan) {
    if (!std::filesystem::exists(directory / "config.json"))
      return PlanRecord(directory, command, provenance, plan);
    {
      PlanRecord record = open(directory, command);
      if constexpr (requires { require_same_data(plan, plan); }) require_same_data(record.plan(), plan);
      if (json_of(record.plan()) == json_of(plan)) return record;
      if (!is_of_some_runs(record.plan(), plan))
        throw InputError(fmt::format("'{}' holds a training with other settings; name a new directory.",
                                     directory.string()));
    }
    std::filesystem::remove_all(directory);
    return PlanRecord(directory, command, provenance, plan);
  }

  // Goes on to a later step than planned, where the way there is the same: a plan says so by
  // `for_any_length(settings)`. Throws InputError where it is not.
  void extend(std::string_view command, std::uint64_t steps) {
    const std::uint64_t planned = plan_.settings.steps;
    if (steps <= planned)
      throw InputError(fmt::format(
          "--steps {}: the training in '{}' is planned to step {}; give a larger number to extend it, or leave "
          "--steps out to go on.",
          steps, directory().path().string(), planned));
    const auto& schedule = plan_.settings.adam.schedule;
    bool extendible = false;
    if constexpr (requires { for_any_length(plan_.settings); })
      extendible = schedule.kind == Schedule::Kind::constant || schedule.steps > planned;
    if (!extendible)
      throw InputError(fmt::format(
          "--steps {}: the learning rate of the training in '{}' has fallen to 0 at step {}, so that more steps "
          "would be another training; begin one with --steps {} in a new directory.",
          steps, directory().path().string(), schedule.steps, steps));
    plan_.settings.steps = steps;
    record_.set_options(command, json_of(plan_));
  }

  const RunDirectory& directory() const { return record_.directory(); }
  const Plan& plan() const { return plan_; }
  // Where the checkpoint is, if there is one.
  std::optional<std::filesystem::path> checkpoint() const {
    return record_.checkpoint_step() ? std::optional(record_.checkpoint_path()) : std::nullopt;
  }
  // Steps between two checkpoints, rounded up to an evaluation.
  void set_checkpoint_every(std::uint64_t steps) { record_.set_checkpoint_every(steps); }

  // Brings a training of plan() to where the checkpoint left it, if there is one.
  void restore(Training& training) {
    record_.restore([&](const TrainingState& state) {
      std::vector<std::vector<typename Plan::Row>> rows(plan_.runs.size());
      for (const std::string& text : state.lines()) {
        const auto line = from_json<Line>(text, std::string("The run's ") + kMetricsFile);
        const auto found = std::find(plan_.runs.begin(), plan_.runs.end(), line.run);
        if (found == plan_.runs.end())
          throw InputError(fmt::format("'{}' holds a line of a run that is not of this training.",
                                       record_.log_path().string()));
        rows[static_cast<std::size_t>(found - plan_.runs.begin())].push_back(
            row_of(line.step, line.measures));
      }
      for (std::size_t r = 0; r < rows.size(); ++r) written_[r] = rows[r].size();
      training.restore(state.tensors(), std::move(rows));
      return training.step();
    });
  }
  // The rows recorded since the last call, in the order of runs; a checkpoint, if it is time for one or the
  // training is done. Of a run in trouble it holds the last good state.
  void add(const Training& training) {
    std::string lines;
    for (std::size_t r = 0; r < written_.size(); ++r) {
      const auto& run = training.runs()[r];
      for (; written_[r] < run.rows.size(); ++written_[r]) {
        const auto& row = run.rows[written_[r]];
        lines += json_of(Line{row.step, {run.id}, measures_of(row, plan_)}, -1);
      }
    }
    if (!lines.empty()) record_.append(lines);
    if constexpr (requires { training.calm(); })
      if (!training.calm()) return;
    if (record_.checkpoint_due(training.step(), training.done()))
      record_.write_checkpoint(training.step(), training.checkpoint());
  }

 private:
  using Line = TrainingLine<typename Plan::Measures>;

  static bool is_of_some_runs(const Plan& some, Plan all) {
    for (const PlannedRun& run : some.runs)
      if (std::find(all.runs.begin(), all.runs.end(), run) == all.runs.end()) return false;
    all.runs = some.runs;
    return json_of(some) == json_of(all);
  }

  PlanRecord(TrainingRecord record, Plan plan)
      : record_(std::move(record)), plan_(std::move(plan)), written_(plan_.runs.size(), 0) {
    if constexpr (requires { plan_.checkpoint_every; }) record_.set_checkpoint_every(plan_.checkpoint_every);
  }
  // What numbers follow from: not from how many steps there will be, where it is the same way to all of them.
  static std::string settings_text(const Plan& plan) {
    std::string text;
    if constexpr (requires { for_any_length(plan.settings); }) {
      text = json_of(for_any_length(plan.settings), -1);
    } else {
      text = json_of(plan.settings, -1);
    }
    text.pop_back();  // the newline
    return text;
  }

  TrainingRecord record_;
  Plan plan_;
  std::vector<std::size_t> written_;  // rows of each run that the log holds
};

struct TrainingTime {
  double seconds = 0;
  std::uint64_t steps = 0;   // over all runs
  std::uint64_t tokens = 0;  // of texts, what fills them up to one length included
  double ms_per_step() const { return 1e3 * seconds / static_cast<double>(steps); }
  // NaN if there was no step to do.
  double tokens_per_second() const {
    return tokens == 0 ? std::nan("") : static_cast<double>(tokens) / seconds;
  }
};

// Brings the training to where the record left it, in all processes of a job, of which the first has the record.
template <class Plan>
void restore(typename Plan::Training& training, PlanRecord<Plan>* record, const Executor& executor) {
  if (record != nullptr) record->restore(training);
  if (!is_alone(executor))
    training.set_state(executor.pieces()->from_first([&] { return training.state(); }));
}

// How runs stand, for the line of progress; empty before the first steps.
std::string state_of(std::span<const MajorityRun> runs);
std::string state_of(std::span<const TextRun> runs);

// Trains to the end, into `record` if there is one. Progress: steps, or tokens of texts. `evaluated` is
// called after every evaluation, before a checkpoint knows of it: what it writes is not missing after a kill.
template <class Plan>
TrainingTime train_to_end(typename Plan::Training& training, PlanRecord<Plan>* record, const Context& context,
                          const std::function<void()>& evaluated = {}) {
  std::atomic<std::size_t> steps = 0, tokens = 0;
  std::size_t left = 0;  // steps of all runs
  for (const auto& run : training.runs())
    if (!run.finished) left += training.settings().steps - run.step;
  const auto on_step = [&](auto... seen) {
    const std::size_t step = ++steps;
    std::size_t all = 0;
    ((all = tokens += seen), ...);
    if (!context.progress) return;
    if (all == 0) return context.progress(step, left);
    context.progress(all, std::max(all, all / step * left));  // texts may have lengths of their own
  };
  const auto start = std::chrono::steady_clock::now();
  if (record != nullptr && training.done()) record->add(training);
  while (!training.done()) {
    training.advance(context.executor, on_step);
    if (evaluated) evaluated();
    if (record != nullptr) record->add(training);
    if (const std::string state = state_of(training.runs()); context.detail && !state.empty())
      context.detail(state);
  }
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), steps, tokens};
}

}  // namespace normscope

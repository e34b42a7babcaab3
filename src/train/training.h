#pragma once
// How runs of a training are advanced, kept and restored, whatever is trained. A task defines
//
//   TrainingData<Task>                          what its runs share, from settings, runs and source
//   Runner<Task>, a RunnerOf<Task> with
//     gradient(gradient, executor)                of the next step, and its loss
//     fine(loss, gradient), fine_after(loss)      whether to go on, before and after the update
//     give_up()                                   ends the run where all was well
//     evaluate(train_loss, executor)              adds a row
//     diverged()                                  whether the run gave up
//     tell(on_step)                               after a step
//     take_tensors(prefix, tensors, diverged)     restores what only this task has
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "normscope/error.h"
#include "normscope/training.h"
#include "train/run_state.h"

namespace normscope {

inline std::vector<std::string> norms_of(const std::vector<TrainingRunId>& runs) {
  std::vector<std::string> norms(runs.size());
  std::transform(runs.begin(), runs.end(), norms.begin(), [](const TrainingRunId& id) { return id.norm; });
  return norms;
}

template <class Task>
struct TrainingData;
template <class Task>
struct Runner;

// One run with what it needs to go on.
template <class Task>
struct RunnerOf {
  template <class Spec>
  RunnerOf(const typename Task::Settings& settings_, const Spec& spec, const TrainingRunId& id)
      : settings(settings_), slots(parameter_slots(spec)) {
    run.spec = spec;
    run.parameters = initial_parameters(spec, id.seed);
    run.id = id;
  }

  // A task's own may take their places.
  void before_steps() {}                  // to the next evaluation
  bool reached() const { return false; }  // what the run is for, before its last step
  bool calm() const { return true; }
  void add_tensors(const std::string&, std::vector<Tensor>&) const {}

  const typename Task::Settings& settings;
  typename Task::Run run;
  std::vector<ParameterSlot> slots;
  AdamState adam;
  std::vector<float> good;  // parameters to come back to
};

template <class Task>
void advance(Runner<Task>& runner, const Executor& executor, const typename Task::OnStep& on_step) {
  auto& run = runner.run;
  const auto& settings = runner.settings;
  if (run.rows.empty()) {
    runner.evaluate(std::numeric_limits<double>::quiet_NaN(), executor);
    run.finished = run.finished || settings.steps == 0;
    return;
  }
  runner.before_steps();
  std::vector<float> gradient(run.parameters.size());
  const std::uint64_t first = run.step,
                      end = std::min(settings.steps,
                                     first - first % settings.evaluate_every + settings.evaluate_every);
  double sum = 0;
  for (; run.step < end; ++run.step) {
    const double loss = runner.gradient(gradient, executor);
    if (!runner.fine(loss, gradient)) return runner.give_up();
    adam_update(settings.adam, runner.adam, run.parameters, gradient);
    if (!runner.fine_after(loss)) return runner.give_up();
    sum += loss;
    if (on_step) runner.tell(on_step);
  }
  runner.evaluate(sum / static_cast<double>(end - first), executor);
  run.finished = run.finished || run.step >= settings.steps || runner.reached();
}

template <class Task>
struct Training<Task>::State {
  State(const Settings& settings_, const std::vector<TrainingRunId>& runs, typename Task::Source source)
      : settings(settings_), data(settings, runs, std::move(source)) {
    runners.reserve(runs.size());
    for (const TrainingRunId& id : runs) runners.emplace_back(settings, data, id);
    publish();
  }
  void publish() {
    view.clear();
    for (const auto& runner : runners) view.push_back(runner.run);
  }

  Settings settings;
  TrainingData<Task> data;
  std::vector<Runner<Task>> runners;
  std::vector<Run> view;  // what runs() shows
};

template <class Task>
Training<Task>::Training(const Settings& settings, const std::vector<TrainingRunId>& runs,
                         typename Task::Source source)
    : state_(std::make_unique<State>(settings, runs, std::move(source))) {}
template <class Task>
Training<Task>::~Training() = default;
template <class Task>
Training<Task>::Training(Training&&) noexcept = default;
template <class Task>
Training<Task>& Training<Task>::operator=(Training&&) noexcept = default;

template <class Task>
auto Training<Task>::settings() const -> const Settings& {
  return state_->settings;
}
template <class Task>
auto Training<Task>::runs() const -> std::span<const Run> {
  return state_->view;
}
template <class Task>
std::uint64_t Training<Task>::step() const {
  std::uint64_t steps = state_->settings.steps;
  for (const Run& run : state_->view) {
    if (!run.finished) steps = std::min(steps, run.step);
  }
  return steps;
}
template <class Task>
bool Training<Task>::done() const {
  return std::all_of(state_->view.begin(), state_->view.end(), [](const Run& run) { return run.finished; });
}
template <class Task>
bool Training<Task>::calm() const {
  return std::all_of(state_->runners.begin(), state_->runners.end(),
                     [](const auto& runner) { return runner.run.finished || runner.calm(); });
}

// Threads work on different runs while there are enough of them, else together on one.
template <class Task>
void Training<Task>::advance(const Executor& executor, const typename Task::OnStep& on_step) {
  std::vector<Runner<Task>*> active;
  for (auto& runner : state_->runners) {
    if (!runner.run.finished) active.push_back(&runner);
  }
  if (active.size() >= static_cast<std::size_t>(executor.threads())) {
    const Executor serial(1);
    executor.for_each(active.size(), [&](std::size_t i) { normscope::advance(*active[i], serial, on_step); });
  } else {
    for (auto* runner : active) normscope::advance(*runner, executor, on_step);
  }
  state_->publish();
}

template <class Task>
std::vector<Tensor> Training<Task>::checkpoint() const {
  std::vector<Tensor> tensors;
  for (const auto& runner : state_->runners) {
    const Run& run = runner.run;
    const std::string prefix = tensor_prefix(run.id);
    add_tensors(prefix, runner.slots,
                {run.parameters, runner.adam, run.step, run.finished, runner.diverged()}, tensors);
    runner.add_tensors(prefix, tensors);
  }
  return tensors;
}

template <class Task>
void Training<Task>::restore(std::span<const Tensor> checkpoint, std::vector<std::vector<Row>> rows) {
  if (rows.size() != state_->runners.size())
    throw InputError("The log does not belong to the runs of the checkpoint.");
  const TensorsByName tensors = by_name(checkpoint);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    auto& runner = state_->runners[r];
    Run& run = runner.run;
    const std::string prefix = tensor_prefix(run.id);
    RunState state = take_tensors(prefix, runner.slots, state_->settings.steps, tensors);
    run.parameters = std::move(state.parameters);
    runner.adam = std::move(state.adam);
    run.step = state.step;
    runner.take_tensors(prefix, tensors, state.diverged);
    if (rows[r].empty() || (!state.diverged && rows[r].back().step != run.step)) {
      throw InputError(
          fmt::format("The log does not reach the step {} of the checkpoint for {} with seed {}.", run.step,
                      run.id.norm, run.id.seed));
    }
    run.rows = std::move(rows[r]);
    // One that had come to the last step goes on if there are more now.
    run.finished =
        state.finished && (run.step >= state_->settings.steps || state.diverged || runner.reached());
  }
  state_->publish();
}

}  // namespace normscope

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
//     own_state(), set_own_state(bytes)           the same, and what is not in a checkpoint, for another process
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/run_pieces.h"
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
  bool shares_steps() const { return false; }  // whether it gains by all processes of a job at each step
  void add_tensors(const std::string&, std::vector<Tensor>&) const {}

  // What every task has; it can go on in another process with this and its own.
  struct State {
    std::vector<typename Task::Row> rows;
    std::vector<float> parameters, good;
    AdamState adam;
    std::uint64_t step = 0;
    bool finished = false;
    std::string own;
  };

  const typename Task::Settings& settings;
  typename Task::Run run;
  std::vector<ParameterSlot> slots;
  AdamState adam;
  std::vector<float> good;        // parameters to come back to
  std::uint64_t step_before = 0;  // of the last advance
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
std::string state_of(const Runner<Task>& runner) {
  const auto& run = runner.run;
  return packed(typename RunnerOf<Task>::State{run.rows, run.parameters, runner.good, runner.adam, run.step,
                                               run.finished, runner.own_state()});
}

template <class Task>
void set_state(Runner<Task>& runner, std::string_view bytes) {
  auto state = unpacked<typename RunnerOf<Task>::State>(bytes);
  auto& run = runner.run;
  run.rows = std::move(state.rows);
  run.parameters = std::move(state.parameters);
  run.step = state.step;
  run.finished = state.finished;
  runner.good = std::move(state.good);
  runner.adam = std::move(state.adam);
  runner.set_own_state(state.own);
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

template <class Task>
std::string Training<Task>::state() const {
  std::vector<std::string> states;
  for (const auto& runner : state_->runners) states.push_back(state_of(runner));
  return packed(states);
}
template <class Task>
void Training<Task>::set_state(std::string_view state) {
  const auto states = unpacked<std::vector<std::string>>(state);
  for (std::size_t r = 0; r < state_->runners.size(); ++r)
    normscope::set_state(state_->runners[r], states.at(r));
  state_->publish();
}

// Processes at different runs.
template <class Task>
void advance_in_processes(std::span<Runner<Task>* const> active, const Executor& executor,
                          const typename Task::OnStep& on_step) {
  const PieceWork work{"runs of a training", std::vector<double>(active.size(), 1), false, {}, {}};
  const auto states = run_pieces<std::string>(executor, work, [&](std::size_t i, const Executor& inside) {
    advance(*active[i], inside, typename Task::OnStep());
    return state_of(*active[i]);
  });
  for (std::size_t i = 0; i < active.size(); ++i) {
    const std::uint64_t before = active[i]->step_before;
    set_state(*active[i], states[i]);
    for (std::uint64_t step = before; on_step && step < active[i]->run.step; ++step) active[i]->tell(on_step);
  }
}

// Runs need not talk to each other: threads, or processes, work on different ones while there is one for each. What
// is left they do together, one run after the other, if its steps are worth the messages.
template <class Task>
void Training<Task>::advance(const Executor& executor, const typename Task::OnStep& on_step) {
  std::vector<Runner<Task>*> active;
  for (auto& runner : state_->runners) {
    if (!runner.run.finished) active.push_back(&runner);
    runner.step_before = runner.run.step;
  }
  if (!is_alone(executor) && !active.empty()) {
    const std::size_t left = active.size() % executor.pieces()->processes();
    const bool together = left > 0 && active.back()->shares_steps();
    const std::span<Runner<Task>*const> all(active), apart = all.first(all.size() - (together ? left : 0));
    if (!apart.empty()) advance_in_processes<Task>(apart, executor, on_step);
    for (auto* runner : all.subspan(apart.size())) normscope::advance(*runner, executor, on_step);
    return state_->publish();
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

#pragma once
// Several runs of a training, each with a norm and a seed of its own.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "normscope/executor.h"
#include "normscope/tensor_file.h"
#include "normscope/train.h"

namespace normscope {

// All runs of a training, advanced together, evaluation by evaluation, so that one log and one checkpoint
// hold them all. Results do not depend on the number of threads nor on the other runs: batches, initial
// parameters and dropout come from a run's own seed.
//
// A task names its Settings (steps, evaluate_every, adam, …), Run (id, spec, rows, parameters, step,
// finished, …) and Row (step, train_loss, …), what its data come from (Source), and whom it tells of a step
// (OnStep).
template <class Task>
class Training {
 public:
  using Settings = typename Task::Settings;
  using Run = typename Task::Run;
  using Row = typename Task::Row;

  Training(const Settings& settings, const std::vector<TrainingRunId>& runs, typename Task::Source source);
  ~Training();
  Training(Training&&) noexcept;
  Training& operator=(Training&&) noexcept;

  const Settings& settings() const;
  std::span<const Run> runs() const;
  std::uint64_t step() const;  // of the runs that are not finished; at the end settings().steps
  bool done() const;
  // Whether no run that goes on may be getting into trouble: only then is a checkpoint one to come back to.
  bool calm() const;

  // Records step 0, or trains every unfinished run to its next evaluation, in a job different runs in different
  // processes. `on_step`, if given, is called for every step of every run, from any thread.
  void advance(const Executor& executor, const typename Task::OnStep& on_step = {});

  // Everything but the rows, of every run under "norm/seedN/": the tensors of parameter_slots, "adam.mean",
  // "adam.square", "progress" (int64: steps done, updates done, finished, diverged), and what the task adds.
  std::vector<Tensor> checkpoint() const;
  // Throws InputError if the tensors or rows are not those of these runs.
  void restore(std::span<const Tensor> checkpoint, std::vector<std::vector<Row>> rows);

  // All that changes while runs go on, as bytes, for another process of a job.
  std::string state() const;
  void set_state(std::string_view state);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace normscope

#pragma once
// Runs of a training that are advanced together. A runner has a member `run` with `id`, `step` and
// `finished`.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "normscope/executor.h"
#include "normscope/train.h"

namespace normscope {

inline std::vector<std::string> norms_of(const std::vector<TrainingRunId>& runs) {
  std::vector<std::string> norms(runs.size());
  std::transform(runs.begin(), runs.end(), norms.begin(), [](const TrainingRunId& id) { return id.norm; });
  return norms;
}

// "norm/seedN/": what the names of a run's tensors in a checkpoint begin with.
std::string tensor_prefix(const TrainingRunId& id);

// Of the runs that are not finished; `steps` if all are.
template <class Runners>
std::uint64_t step_of(const Runners& runners, std::uint64_t steps) {
  for (const auto& runner : runners) {
    if (!runner.run.finished) steps = std::min(steps, runner.run.step);
  }
  return steps;
}

template <class Runners>
bool all_finished(const Runners& runners) {
  return std::all_of(runners.begin(), runners.end(), [](const auto& runner) { return runner.run.finished; });
}

// advance(runner, executor) for every run that is not finished. Threads work on different runs while there
// are enough of them, else together on one.
template <class Runners, class Advance>
void advance_unfinished(Runners& runners, const Executor& executor, const Advance& advance) {
  std::vector<typename Runners::value_type*> active;
  for (auto& runner : runners) {
    if (!runner.run.finished) active.push_back(&runner);
  }
  if (active.size() >= static_cast<std::size_t>(executor.threads())) {
    const Executor serial(1);
    executor.for_each(active.size(), [&](std::size_t i) { advance(*active[i], serial); });
  } else {
    for (auto* runner : active) advance(*runner, executor);
  }
}

}  // namespace normscope

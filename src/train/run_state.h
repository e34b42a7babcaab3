#pragma once
// Where a run of a training stands, apart from what it recorded, and its tensors in a checkpoint.
#include <map>
#include <span>
#include <string>
#include <vector>

#include "normscope/tensor_file.h"
#include "normscope/train.h"

namespace normscope {

struct RunState {
  std::vector<float> parameters;
  AdamState adam;
  std::uint64_t step = 0;
  bool finished = false;
  bool diverged = false;  // the loss or a parameter became NaN or infinite
};

// "norm/seedN/": what the names of a run's tensors in a checkpoint begin with.
std::string tensor_prefix(const TrainingRunId& id);

// Adds the tensors of the slots, "adam.mean", "adam.square" and "progress" (int64: steps done, updates done,
// finished, diverged), each name behind `prefix`.
void add_tensors(const std::string& prefix, std::span<const ParameterSlot> slots, const RunState& state,
                 std::vector<Tensor>& tensors);

using TensorsByName = std::map<std::string, const Tensor*>;
TensorsByName by_name(std::span<const Tensor> tensors);
// The state of a run of at most `steps` steps. Throws InputError if a tensor is missing, has another size, or
// holds what no training writes.
RunState take_tensors(const std::string& prefix, std::span<const ParameterSlot> slots, std::uint64_t steps,
                      const TensorsByName& tensors);

}  // namespace normscope

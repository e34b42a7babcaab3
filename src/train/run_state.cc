#include "train/run_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "normscope/error.h"

namespace normscope {
namespace {

using Accept = bool (*)(double);

std::span<const double> find(const TensorsByName& tensors, const std::string& name, std::size_t size,
                             Accept accept) {
  const auto found = tensors.find(name);
  if (found == tensors.end())
    throw InputError(fmt::format("The checkpoint has no tensor '{}'; it belongs to other runs.", name));
  const std::vector<double>& values = found->second->values;
  if (values.size() != size) {
    throw InputError(
        fmt::format("The tensor '{}' of the checkpoint has {} numbers, but this run needs {}; it belongs to "
                    "a model of another shape.",
                    name, values.size(), size));
  }
  if (!std::all_of(values.begin(), values.end(), accept)) {
    throw InputError(
        fmt::format("The tensor '{}' of the checkpoint holds NaN or Inf, which no training writes there; "
                    "put the right checkpoint back or start anew.",
                    name));
  }
  return values;
}

Tensor tensor(const std::string& name, std::vector<std::size_t> shape, std::span<const float> values) {
  return {name, DType::float32, std::move(shape), {values.begin(), values.end()}};
}

}  // namespace

std::string tensor_prefix(const TrainingRunId& id) {
  return fmt::format("{}/seed{}/", id.norm, id.seed);
}

void add_tensors(const std::string& prefix, std::span<const ParameterSlot> slots, const RunState& state,
                 std::vector<Tensor>& tensors) {
  for (const ParameterSlot& slot : slots) {
    tensors.push_back(tensor(prefix + slot.name,
                             slot.rows == 1 ? std::vector{slot.cols} : std::vector{slot.rows, slot.cols},
                             std::span(state.parameters).subspan(slot.offset, slot.size())));
  }
  const std::size_t size = state.parameters.size();
  std::vector<float> mean = state.adam.mean, square = state.adam.square;
  mean.resize(size);
  square.resize(size);
  tensors.push_back(tensor(prefix + "adam.mean", {size}, mean));
  tensors.push_back(tensor(prefix + "adam.square", {size}, square));
  tensors.push_back({prefix + "progress",
                     DType::int64,
                     {4},
                     {static_cast<double>(state.step), static_cast<double>(state.adam.step),
                      static_cast<double>(state.finished), static_cast<double>(state.diverged)}});
}

TensorsByName by_name(std::span<const Tensor> tensors) {
  TensorsByName names;
  for (const Tensor& tensor : tensors) names[tensor.name] = &tensor;
  return names;
}

RunState take_tensors(const std::string& prefix, std::span<const ParameterSlot> slots, std::uint64_t steps,
                      const TensorsByName& tensors) {
  const Accept finite = [](double value) { return std::isfinite(value); };
  const auto progress = find(tensors, prefix + "progress", 4, finite);
  RunState state;
  state.finished = progress[2] != 0;
  state.diverged = progress[3] != 0;
  // Of a run that diverged, anything is left; moments of a gradient may overflow before the loss does.
  const Accept anything = [](double) { return true; },
               overflown = [](double value) { return !std::isnan(value); };
  const Accept parameter = state.diverged ? anything : finite, moment = state.diverged ? anything : overflown;
  for (const ParameterSlot& slot : slots) {
    const auto values = find(tensors, prefix + slot.name, slot.size(), parameter);
    state.parameters.insert(state.parameters.end(), values.begin(), values.end());
  }
  const auto mean = find(tensors, prefix + "adam.mean", state.parameters.size(), moment);
  const auto square = find(tensors, prefix + "adam.square", state.parameters.size(), moment);
  state.adam.mean.assign(mean.begin(), mean.end());
  state.adam.square.assign(square.begin(), square.end());
  const auto whole = [&](std::size_t i) {
    if (progress[i] < 0 || progress[i] > static_cast<double>(steps)) {
      throw InputError(
          fmt::format("The tensor '{}progress' of the checkpoint holds a step that cannot be.", prefix));
    }
    return static_cast<std::uint64_t>(progress[i]);
  };
  state.step = whole(0);
  state.adam.step = whole(1);
  return state;
}

}  // namespace normscope

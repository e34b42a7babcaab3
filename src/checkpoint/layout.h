#pragma once
// A model as its family lays it out in files: config.json and the tensors, by the table that reads them.
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/families.h"
#include "normscope/checkpoint.h"

namespace normscope::checkpoint {

struct Layout {
  nlohmann::ordered_json config;
  ModelPlan plan;  // what the reader makes of it
};

// `label` names the directory in messages. Throws InputError if the layout of the family cannot hold the
// model.
Layout layout_of(const ModelSpec& spec, std::size_t types, const CheckpointExtras& extras,
                 const std::string& label);

std::string config_text(const nlohmann::ordered_json& config);

// Shows every tensor of the model in the same order each time; values are gone after the call. Throws
// InputError if the weights are not of the shape that the spec says.
using ShowTensor =
    std::function<void(const std::string& name, std::vector<std::size_t> shape, std::span<const float>)>;
void show_tensors(const ModelWeights& weights, const ModelPlan& plan, const ShowTensor& show);

}  // namespace normscope::checkpoint

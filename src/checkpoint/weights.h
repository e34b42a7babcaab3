#pragma once
// The weights of a checkpoint as a model takes them: in × out, W_Q, W_K, W_V side by side, as float. Read
// from the file each time, never kept.
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/families.h"
#include "checkpoint/tensor_source.h"
#include "normscope/model.h"

namespace normscope::checkpoint {

// Finds every tensor of the plan, decides which head there is, and checks all shapes, without reading data.
// `config` names what the shapes follow from in messages ("config.json"). Throws InputError if a tensor is
// missing, of another shape, or of a dtype weights do not have. `notes` takes a sentence about an output
// matrix that is there and not used, since `config` ties the output to the words; to see whether the two
// differ, they are read.
std::unique_ptr<ModelWeights> model_weights(ModelPlan plan, std::shared_ptr<const TensorSource> tensors,
                                            std::string config, std::vector<std::string>* notes = nullptr);

}  // namespace normscope::checkpoint

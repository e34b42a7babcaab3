// Trained parameters as a model that can be run.
#include <fmt/format.h>

#include "normscope/error.h"
#include "train/parameters.h"

namespace normscope {
namespace {

// W in × out of one that is stored out × in.
Matrix<float> transposed(std::span<const float> values, std::size_t outputs, std::size_t inputs) {
  Matrix<float> matrix(inputs, outputs);
  for (std::size_t o = 0; o < outputs; ++o) {
    for (std::size_t i = 0; i < inputs; ++i) matrix(i, o) = values[o * inputs + i];
  }
  return matrix;
}
Matrix<float> table(std::span<const float> values, std::size_t width) {
  Matrix<float> matrix(values.size() / width, width);
  std::copy(values.begin(), values.end(), matrix.data());
  return matrix;
}
std::vector<float> vector(std::span<const float> values) {
  return {values.begin(), values.end()};
}

class TrainedModel final : public ModelWeights {
 public:
  TrainedModel(const TransformerSpec& spec, std::vector<float> parameters)
      : spec_(spec),
        parameters_(std::move(parameters)),
        parts_(slices(spec_, std::span<const float>(parameters_))) {
    spec_.model.block.dropout = 0;  // is for training only
  }

  const ModelSpec& spec() const override { return spec_.model; }

  Matrix<float> embeddings(std::span<const std::uint32_t> ids) const override {
    const std::size_t d = spec_.model.block.width;
    if (ids.size() > spec_.model.positions) {
      throw InputError(fmt::format("A text of {} tokens is longer than the model's {} positions.", ids.size(),
                                   spec_.model.positions));
    }
    Matrix<float> x(ids.size(), d);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] >= spec_.model.vocabulary)
        throw InputError(
            fmt::format("Id {} is not in a vocabulary of {} words.", ids[i], spec_.model.vocabulary));
      // In the order in which checkpoints are read back.
      for (std::size_t k = 0; k < d; ++k) {
        const float typed = parts_.word[ids[i] * d + k] + (parts_.type.empty() ? 0.0F : parts_.type[k]);
        x(i, k) = typed + parts_.position[i * d + k];
      }
    }
    return x;
  }
  Matrix<float> words() const override { return table(parts_.word, spec_.model.block.width); }
  Matrix<float> positions() const override { return table(parts_.position, spec_.model.block.width); }
  Matrix<float> types() const override { return table(parts_.type, spec_.model.block.width); }

  EmbeddingWeights embedding() const override {
    EmbeddingWeights weights;
    weights.norm = norm(parts_.embedding_norm);
    return weights;
  }
  BlockWeights<float> layer(std::size_t index) const override {
    const LayerSlices<const float>& part = parts_.layers.at(index);
    const std::size_t d = spec_.model.block.width, f = spec_.model.block.feed_forward;
    BlockWeights<float> weights;
    weights.query_key_value = transposed(part.in_proj, 3 * d, d);
    weights.query_key_value_bias = vector(part.in_bias);
    weights.output = transposed(part.out_weight, d, d);
    weights.output_bias = vector(part.out_bias);
    weights.up = transposed(part.weight1, f, d);
    weights.up_bias = vector(part.bias1);
    weights.down = transposed(part.weight2, d, f);
    weights.down_bias = vector(part.bias2);
    weights.attention_gain = vector(part.norm1.gain);
    weights.attention_bias = vector(part.norm1.bias);
    weights.feed_forward_gain = vector(part.norm2.gain);
    weights.feed_forward_bias = vector(part.norm2.bias);
    return weights;
  }
  NormWeights final_norm() const override { return norm(parts_.final_norm); }
  HeadWeights head() const override {
    if (spec_.model.head == ModelSpec::Head::none)
      throw InputError("The model has no head over its vocabulary.");
    HeadWeights weights;
    weights.output = words();
    return weights;
  }

 private:
  static NormWeights norm(const NormSlices<const float>& part) {
    return {vector(part.gain), vector(part.bias)};
  }

  TransformerSpec spec_;
  std::vector<float> parameters_;
  TransformerSlices<const float> parts_;
};

}  // namespace

std::unique_ptr<ModelWeights> trained_model(const TransformerSpec& spec, std::vector<float> parameters) {
  check_transformer(spec);
  if (const std::size_t size = parameter_count(spec); parameters.size() != size)
    throw InputError(fmt::format("{} parameters do not fit a transformer with {}.", parameters.size(), size));
  for (const ParameterSlot& slot : parameter_slots(spec)) {
    if (slot.name.ends_with(".normals") || slot.name.ends_with(".alpha")) {
      throw InputError(
          fmt::format("A model with '{}' can be trained, but not yet run outside of training.", slot.name));
    }
  }
  return std::make_unique<TrainedModel>(spec, std::move(parameters));
}

}  // namespace normscope

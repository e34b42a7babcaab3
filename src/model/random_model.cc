// A model before training.
#include "normscope/error.h"
#include "normscope/model.h"
#include "normscope/random.h"

namespace normscope {
namespace {

class RandomModel : public ModelWeights {
 public:
  RandomModel(const ModelSpec& spec, std::uint64_t seed) : spec_(spec), seed_(seed) {
    require_valid(spec.block);
  }

  const ModelSpec& spec() const override { return spec_; }

  Matrix<float> embeddings(std::span<const std::uint32_t> ids) const override {
    Matrix<float> x(ids.size(), spec_.width_of_embedding());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] >= spec_.vocabulary) throw InputError("An id is not in the vocabulary.");
      add_row(x[i], Part::word, ids[i]);
      if (has_positions()) add_row(x[i], Part::position, i);
    }
    return x;
  }

  Matrix<float> words() const override {
    Matrix<float> rows(spec_.vocabulary, spec_.width_of_embedding());
    for (std::size_t v = 0; v < spec_.vocabulary; ++v) add_row(rows[v], Part::word, v);
    return rows;
  }

  Matrix<float> positions() const override {
    if (!has_positions()) return {};
    Matrix<float> rows(spec_.positions, spec_.width_of_embedding());
    for (std::size_t i = 0; i < rows.rows(); ++i) add_row(rows[i], Part::position, i);
    return rows;
  }

  Matrix<float> types() const override { return {}; }

  EmbeddingWeights embedding() const override {
    EmbeddingWeights weights;
    if (spec_.width_of_embedding() != spec_.block.width)
      weights.map = drawn(spec_.width_of_embedding(), spec_.block.width, Part::map, 0);
    return weights;
  }

  BlockWeights<float> layer(std::size_t index) const override {
    const BlockSpec& block = spec_.block;
    index = spec_.weights_of(index);
    BlockWeights<float> weights;
    weights.query_key_value =
        drawn(block.width, block.query_width() + 2 * block.key_width(), Part::query_key_value, index);
    weights.output = drawn(block.query_width(), block.width, Part::output, index);
    // All layers share the offsets by distance, as in T5.
    if (block.relative.buckets > 0)
      weights.relative = drawn(block.heads, block.relative.buckets, Part::relative, 0);
    if (block.feed_forward == 0) return weights;
    weights.up = drawn(block.width, block.feed_forward, Part::up, index);
    if (block.gated) weights.gate = drawn(block.width, block.feed_forward, Part::gate, index);
    weights.down = drawn(block.feed_forward, block.width, Part::down, index);
    return weights;
  }

  NormWeights final_norm() const override { return {}; }

  HeadWeights head() const override {
    if (spec_.head == ModelSpec::Head::none) throw InputError("The model has no output head.");
    const std::size_t width =
        spec_.head == ModelSpec::Head::transform ? spec_.width_of_embedding() : spec_.block.width;
    HeadWeights weights;
    if (spec_.head == ModelSpec::Head::transform)
      weights.transform = drawn(spec_.block.width, width, Part::transform, 0);
    weights.activation = spec_.block.activation;
    weights.output = Matrix<float>(spec_.vocabulary, width);
    for (std::size_t v = 0; v < spec_.vocabulary; ++v)
      add_row(weights.output[v], spec_.tied ? Part::word : Part::head, v);
    return weights;
  }

 private:
  enum class Part : std::uint64_t {
    word,
    position,
    map,
    query_key_value,
    output,
    relative,
    up,
    gate,
    down,
    transform,
    head
  };

  bool has_positions() const {
    return spec_.block.rotary.frequencies.empty() && spec_.block.relative.buckets == 0;
  }
  Random random(Part part, std::uint64_t row) const {
    return Random(seed_, static_cast<std::uint64_t>(part) << 40 | row);
  }
  void add_row(std::span<float> to, Part part, std::uint64_t row) const {
    Random numbers = random(part, row);
    for (float& value : to) value += static_cast<float>(spec_.initializer_range * numbers.normal());
  }
  Matrix<float> drawn(std::size_t rows, std::size_t cols, Part part, std::size_t layer) const {
    Matrix<float> result(rows, cols);
    for (std::size_t i = 0; i < rows; ++i)
      add_row(result[i], part, static_cast<std::uint64_t>(layer) << 20 | i);
    return result;
  }

  ModelSpec spec_;
  std::uint64_t seed_;
};

}  // namespace

Matrix<float> ModelWeights::words() const {
  throw InputError("The word embeddings of this model are not known apart from its other weights.");
}
Matrix<float> ModelWeights::positions() const {
  throw InputError("The positions of this model are not known apart from its other weights.");
}
Matrix<float> ModelWeights::types() const {
  throw InputError("The token types of this model are not known apart from its other weights.");
}

std::unique_ptr<ModelWeights> random_model(const ModelSpec& spec, std::uint64_t seed) {
  return std::make_unique<RandomModel>(spec, seed);
}

}  // namespace normscope

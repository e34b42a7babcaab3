#pragma once
// Models of a few numbers in memory, to be written as checkpoints: random weights, and biases, gains and
// token types that are neither 0 nor 1.
#include <memory>
#include <string>
#include <vector>

#include "normscope/model.h"
#include "normscope/random.h"

namespace normscope {

class FilledModel : public ModelWeights {
 public:
  explicit FilledModel(const ModelSpec& spec, std::uint64_t seed = 5)
      : inner_(random_model(spec, seed)), seed_(seed) {}

  const ModelSpec& spec() const override { return inner_->spec(); }
  // In the order of checkpoints: word, type, position.
  Matrix<float> embeddings(std::span<const std::uint32_t> ids) const override {
    const Matrix<float> all = words(), places = positions(), kinds = types();
    Matrix<float> sum(ids.size(), all.cols());
    for (std::size_t i = 0; i < ids.size(); ++i)
      for (std::size_t k = 0; k < all.cols(); ++k) {
        sum(i, k) = all(ids[i], k);
        if (kinds.rows() > 0) sum(i, k) += kinds(0, k);
        sum(i, k) += places(i, k);
      }
    return sum;
  }
  EmbeddingWeights embedding() const override {
    EmbeddingWeights weights = inner_->embedding();
    if (spec().embedding_norm.affine) weights.norm = {around(1, width(), 1), around(0, width(), 2)};
    return weights;
  }
  BlockWeights<float> layer(std::size_t index) const override {
    BlockWeights<float> weights = inner_->layer(index);
    const BlockSpec& block = spec().block;
    const std::uint64_t first = 20 * (index + 1);
    if (block.norm.affine) {
      weights.attention_gain = around(1, width(), first);
      weights.attention_bias = around(0, width(), first + 1);
    }
    if (block.feed_forward_norm.value_or(block.norm).affine) {
      weights.feed_forward_gain = around(1, width(), first + 2);
      weights.feed_forward_bias = around(0, width(), first + 3);
    }
    weights.query_key_value_bias = around(0, 3 * width(), first + 4);
    weights.output_bias = around(0, width(), first + 5);
    weights.up_bias = around(0, block.feed_forward, first + 6);
    weights.down_bias = around(0, width(), first + 7);
    return weights;
  }
  NormWeights final_norm() const override {
    if (!spec().final_norm.affine) return {};
    return {around(1, width(), 3), around(0, width(), 4)};
  }
  HeadWeights head() const override {
    HeadWeights weights = inner_->head();
    if (spec().head != ModelSpec::Head::transform) return weights;
    weights.transform_bias = around(0, width(), 5);
    weights.transform_norm = {around(1, width(), 6), around(0, width(), 7)};
    weights.bias = around(0, spec().vocabulary, 8);
    return weights;
  }
  Matrix<float> words() const override { return inner_->words(); }
  Matrix<float> positions() const override { return inner_->positions(); }
  Matrix<float> types() const override {
    if (spec().family != "bert") return {};
    return {2, width(), around(0, 2 * width(), 9)};
  }

 private:
  std::size_t width() const { return spec().block.width; }
  std::vector<float> around(double middle, std::size_t count, std::uint64_t stream) const {
    Random random(seed_, 1000 + stream);
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(middle + 0.3 * random.normal());
    return values;
  }

  std::unique_ptr<ModelWeights> inner_;
  std::uint64_t seed_;
};

inline NormSpec norm_for_model(const std::string& name, bool affine = true, double eps = 1e-5) {
  NormSpec norm = parse_norm(name);
  norm.affine = affine;
  norm.eps = eps;
  return norm;
}

inline ModelSpec small_gpt2(const NormSpec& norm) {
  ModelSpec spec;
  spec.family = "gpt2";
  spec.vocabulary = 30;
  spec.layers = 2;
  spec.positions = 12;
  spec.causal = true;
  spec.initializer_range = 0.5;
  spec.head = ModelSpec::Head::linear;
  spec.tied = true;
  spec.block.width = 8;
  spec.block.heads = 4;
  spec.block.feed_forward = 20;
  spec.block.activation = Activation::gelu_tanh;
  spec.block.placement = Placement::pre;
  spec.block.norm = spec.final_norm = norm;
  return spec;
}

inline ModelSpec small_bert(const NormSpec& norm) {
  ModelSpec spec = small_gpt2(norm);
  spec.family = "bert";
  spec.causal = false;
  spec.head = ModelSpec::Head::none;
  spec.tied = false;
  spec.block.activation = Activation::gelu;
  spec.block.placement = Placement::post;
  spec.embedding_norm = norm;
  spec.final_norm = {};
  return spec;
}

}  // namespace normscope

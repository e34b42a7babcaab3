// Shape and parameters of the transformers that are trained.
#include <fmt/format.h>

#include <cmath>

#include "normscope/error.h"
#include "normscope/random.h"
#include "train/parameters.h"

namespace normscope {
namespace {

// Stream of a run's seed.
constexpr std::uint64_t kInitialTransformer = 2;

// Every tensor, in the order in which they stand.
template <class T, class Visit>
void visit_parameters(const TransformerSpec& spec, TransformerSlices<T>& slices, const Visit& visit) {
  const ModelSpec& model = spec.model;
  const BlockSpec& block = model.block;
  const std::size_t d = block.width, f = block.feed_forward;
  visit("word", model.vocabulary, d, &slices.word, nullptr);
  visit("position", model.positions, d, &slices.position, nullptr);
  if (spec.types > 0) visit("type", spec.types, d, &slices.type, nullptr);
  visit_norm(model.embedding_norm, "embedding_norm", d, slices.embedding_norm, visit);
  slices.layers.resize(model.layers);
  for (std::size_t l = 0; l < model.layers; ++l) {
    LayerSlices<T>& layer = slices.layers[l];
    const std::string at = fmt::format("layers.{}.", l);
    visit_norm(block.norm, at + "norm1", d, layer.norm1, visit);
    visit(at + "attention.qkv.weight", 3 * d, d, &layer.in_proj, nullptr);
    if (spec.query_key_value_bias) visit(at + "attention.qkv.bias", 1, 3 * d, &layer.in_bias, nullptr);
    visit(at + "attention.out.weight", d, d, &layer.out_weight, nullptr);
    visit(at + "attention.out.bias", 1, d, &layer.out_bias, nullptr);
    visit_norm(block.feed_forward_norm.value_or(block.norm), at + "norm2", d, layer.norm2, visit);
    visit(at + "up.weight", f, d, &layer.weight1, nullptr);
    visit(at + "up.bias", 1, f, &layer.bias1, nullptr);
    visit(at + "down.weight", d, f, &layer.weight2, nullptr);
    visit(at + "down.bias", 1, d, &layer.bias2, nullptr);
  }
  visit_norm(model.final_norm, "final_norm", d, slices.final_norm, visit);
  if (spec.classes == 0) return;
  visit("pooler.weight", d, d, &slices.pooler_weight, nullptr);
  visit("pooler.bias", 1, d, &slices.pooler_bias, nullptr);
  visit("classifier.weight", spec.classes, d, &slices.classifier_weight, nullptr);
  visit("classifier.bias", 1, spec.classes, &slices.classifier_bias, nullptr);
}

NormSpec layer_norm(double eps) {
  NormSpec norm = parse_norm("layernorm");
  norm.affine = true;
  norm.eps = eps;
  return norm;
}

// What both published models have in common: 4 layers of width 8 with 4 heads, and dropout 0.1.
TransformerSpec published(std::string family, std::size_t vocabulary, std::size_t positions,
                          std::size_t feed_forward, Activation activation, Placement placement) {
  TransformerSpec spec;
  spec.model.family = std::move(family);
  spec.model.vocabulary = vocabulary;
  spec.model.layers = 4;
  spec.model.positions = positions;
  BlockSpec& block = spec.model.block;
  block.width = 8;
  block.heads = 4;
  block.feed_forward = feed_forward;
  block.activation = activation;
  block.placement = placement;
  block.dropout = 0.1;
  return spec;
}

}  // namespace

TransformerSpec published_language_model() {
  TransformerSpec spec = published("gpt2", 50'257, 1024, 32, Activation::gelu_tanh, Placement::pre);
  spec.model.causal = true;
  spec.model.head = ModelSpec::Head::linear;
  spec.model.tied = true;
  spec.model.final_norm = layer_norm(1e-5);
  spec.model.block.norm = layer_norm(1e-5);
  spec.model.block.norm.affine = false;
  spec.model.block.feed_forward_norm = layer_norm(1e-5);
  spec.query_key_value_bias = false;
  return spec;
}

TransformerSpec published_sentiment_model() {
  TransformerSpec spec = published("bert", 28'996, 512, 3072, Activation::gelu, Placement::post);
  spec.types = 2;
  spec.classes = 2;
  return spec;
}

void check_transformer(const TransformerSpec& spec) {
  constexpr std::size_t most_words = 1 << 24, most_width = 1 << 16, most_layers = 4096,
                        most_positions = 1 << 20;
  const ModelSpec& model = spec.model;
  const BlockSpec& block = model.block;
  const auto within = [](std::size_t value, std::size_t most, std::string_view what) {
    if (value >= 1 && value <= most) return;
    throw InputError(fmt::format("A transformer needs from 1 to {} {}, not {}.", most, what, value));
  };
  within(model.vocabulary, most_words, "words in its vocabulary");
  within(model.positions, most_positions, "positions");
  within(model.layers, most_layers, "layers");
  within(block.width, most_width, "dimensions");
  within(block.feed_forward, most_width, "feed-forward units");
  if (block.heads < 1 || block.width % block.heads != 0) {
    throw InputError(fmt::format("{} heads do not divide a dimension of {}; take a divisor of it.",
                                 block.heads, block.width));
  }
  if (!(block.dropout >= 0 && block.dropout < 1))
    throw InputError(fmt::format("Dropout is at least 0 and below 1, not {}.", block.dropout));
  if (spec.classes == 1) throw InputError("A classifier needs at least 2 classes.");
  const auto refuse = [](bool asked, std::string_view what) {
    if (asked) throw InputError(fmt::format("Training does not offer {}.", what));
  };
  refuse(!block.rotary.frequencies.empty(), "rotary positions");
  refuse(block.relative.buckets > 0, "offsets by distance");
  refuse(block.gated, "gated feed-forward parts");
  refuse(!block.skip, "blocks without skip connections");
  refuse(block.normalize_query_key, "queries and keys scaled in each head");
  refuse(block.placement == Placement::sandwich, "sandwich norms");
  refuse(block.step != 1, "a step size");
  refuse(block.key_head_count() != block.heads, "keys shared by heads");
  refuse(block.width_of_head() * block.heads != block.width, "heads that do not fill the width");
  refuse(model.groups > 0, "layers that share weights");
  refuse(model.window > 0, "windows of attention");
  refuse(model.width_of_embedding() != block.width, "embeddings narrower than the model");
  refuse(block.activation == Activation::relu || block.activation == Activation::silu,
         "activations other than gelu and gelu_tanh");
  check_trained_norm(block.norm, "of attention", block.width);
  check_trained_norm(block.feed_forward_norm.value_or(block.norm), "of the feed-forward part", block.width);
  check_trained_norm(model.embedding_norm, "of the embeddings", block.width);
  check_trained_norm(model.final_norm, "after the last layer", block.width);
}

std::vector<ParameterSlot> parameter_slots(const TransformerSpec& spec) {
  return slots_by<TransformerSlices<float>>(
      [&](auto& parts, const auto& visit) { visit_parameters(spec, parts, visit); });
}

std::size_t parameter_count(const TransformerSpec& spec) {
  const auto slots = parameter_slots(spec);
  return slots.back().offset + slots.back().size();
}

template <class T>
TransformerSlices<T> slices(const TransformerSpec& spec, std::span<T> parameters) {
  return slices_by<TransformerSlices<T>>(
      parameters, [&](auto& parts, const auto& visit) { visit_parameters(spec, parts, visit); });
}
template TransformerSlices<float> slices(const TransformerSpec&, std::span<float>);
template TransformerSlices<double> slices(const TransformerSpec&, std::span<double>);
template TransformerSlices<const float> slices(const TransformerSpec&, std::span<const float>);
template TransformerSlices<const double> slices(const TransformerSpec&, std::span<const double>);

std::vector<float> initial_parameters(const TransformerSpec& spec, std::uint64_t seed) {
  check_transformer(spec);
  std::vector<float> values(parameter_count(spec), 0.0F);
  const auto parts = slices(spec, std::span(values));
  Random random(seed, kInitialTransformer);
  const auto normal = [&](std::span<float> part, double sd) {
    for (float& value : part) value = static_cast<float>(sd * random.normal());
  };
  const auto norm = [&](const NormSlices<float>& of_norm) {
    std::fill(of_norm.gain.begin(), of_norm.gain.end(), 1.0F);
    normal(of_norm.normals, 1);
    if (of_norm.alpha != nullptr) *of_norm.alpha = 0.5F;
  };
  const double sd = spec.model.initializer_range;
  const bool gpt2 = spec.model.block.placement == Placement::pre;
  const double into_residual = gpt2 ? sd / std::sqrt(2 * static_cast<double>(spec.model.layers)) : sd;
  normal(parts.word, sd);
  normal(parts.position, sd);
  normal(parts.type, sd);
  norm(parts.embedding_norm);
  for (const LayerSlices<float>& layer : parts.layers) {
    norm(layer.norm1);
    normal(layer.in_proj, sd);
    normal(layer.out_weight, into_residual);
    norm(layer.norm2);
    normal(layer.weight1, sd);
    normal(layer.weight2, into_residual);
  }
  norm(parts.final_norm);
  normal(parts.pooler_weight, sd);
  normal(parts.classifier_weight, sd);
  return values;
}

}  // namespace normscope

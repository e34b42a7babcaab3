// Collapse with the weights of a model, in the shape of every family.
#include <gtest/gtest.h>

#include <cmath>

#include "normscope/collapse.h"
#include "normscope/error.h"
#include "normscope/model.h"
#include "normscope/random.h"
#include "support/message.h"

namespace normscope {
namespace {

constexpr std::size_t kTokens = 11;

NormSpec affine(std::string_view name, double eps) {
  NormSpec norm = parse_norm(name);
  norm.affine = true;
  norm.eps = eps;
  return norm;
}

ModelSpec tiny(const char* family) {
  ModelSpec spec;
  spec.family = family;
  spec.vocabulary = 40;
  spec.layers = 3;
  spec.positions = 32;
  spec.block.width = 12;
  spec.block.heads = 4;
  spec.block.feed_forward = 20;
  spec.initializer_range = 0.3;
  return spec;
}

ModelSpec bert() {
  ModelSpec spec = tiny("bert");
  spec.block.norm = spec.embedding_norm = affine("layernorm", 1e-12);
  return spec;
}

ModelSpec albert() {
  ModelSpec spec = bert();
  spec.family = "albert";
  spec.groups = 1;
  spec.embedding_width = 6;
  spec.block.activation = Activation::gelu_tanh;
  return spec;
}

ModelSpec gpt2() {
  ModelSpec spec = tiny("gpt2");
  spec.causal = true;
  spec.block.norm = spec.final_norm = affine("layernorm", 1e-5);
  spec.block.placement = Placement::pre;
  spec.block.activation = Activation::gelu_tanh;
  return spec;
}

ModelSpec llama() {
  ModelSpec spec = tiny("llama");
  spec.causal = true;
  spec.window = 5;
  spec.block.key_heads = 2;
  spec.block.head_width = 4;
  spec.block.norm = spec.final_norm = affine("rmsnorm", 1e-5);
  spec.block.placement = Placement::pre;
  spec.block.activation = Activation::silu;
  spec.block.gated = true;
  spec.block.rotary.frequencies = {1, 0.01};
  return spec;
}

ModelSpec t5() {
  ModelSpec spec = tiny("t5");
  spec.positions = 0;
  spec.block.head_width = 2;
  spec.block.norm = spec.final_norm = affine("rmsnorm", 1e-6);
  spec.block.placement = Placement::pre;
  spec.block.activation = Activation::relu;
  spec.block.temperature = 1;
  spec.block.relative = {8, 16, true};
  return spec;
}

std::vector<ModelSpec> families() {
  return {bert(), albert(), gpt2(), llama(), t5()};
}

// A model whose gains and biases are not 1 and 0, as after training.
class Trained : public ModelWeights {
 public:
  explicit Trained(const ModelSpec& spec) : model_(random_model(spec, 7)) {}
  const ModelSpec& spec() const override { return model_->spec(); }
  Matrix<float> embeddings(std::span<const std::uint32_t> ids) const override {
    return model_->embeddings(ids);
  }
  EmbeddingWeights embedding() const override {
    EmbeddingWeights weights = model_->embedding();
    weights.norm = {drawn(spec().width_of_embedding(), 1, 1), drawn(spec().width_of_embedding(), 0, 2)};
    return weights;
  }
  BlockWeights<float> layer(std::size_t index) const override {
    reads.push_back(index);
    BlockWeights<float> weights = model_->layer(index);
    const BlockSpec& block = spec().block;
    const std::size_t d = block.width, stream = spec().groups > 0 ? 10 : 10 * (index + 1);
    weights.attention_gain = drawn(d, 1, stream);
    weights.attention_bias = drawn(d, 0, stream + 1);
    weights.feed_forward_gain = drawn(d, 1, stream + 2);
    weights.feed_forward_bias = drawn(d, 0, stream + 3);
    weights.query_key_value_bias = drawn(block.query_width() + 2 * block.key_width(), 0, stream + 4);
    weights.output_bias = drawn(d, 0, stream + 5);
    weights.up_bias = drawn(block.feed_forward, 0, stream + 6);
    if (block.gated) weights.gate_bias = drawn(block.feed_forward, 0, stream + 7);
    weights.down_bias = drawn(d, 0, stream + 8);
    return weights;
  }
  NormWeights final_norm() const override { return model_->final_norm(); }
  HeadWeights head() const override { return model_->head(); }

  mutable std::vector<std::size_t> reads;

 private:
  static std::vector<float> drawn(std::size_t size, double middle, std::uint64_t stream) {
    Random random(99, stream);
    std::vector<float> values(size);
    for (float& value : values) value = static_cast<float>(middle + 0.2 * random.normal());
    return values;
  }
  std::unique_ptr<ModelWeights> model_;
};

std::vector<std::vector<std::uint32_t>> texts_of(std::size_t samples) {
  std::vector<std::vector<std::uint32_t>> texts(samples);
  Random random(3, 0);
  for (auto& text : texts) {
    for (std::size_t i = 0; i < kTokens; ++i) text.push_back(static_cast<std::uint32_t>(random.below(40)));
  }
  return texts;
}

CollapseSettings settings_of(std::shared_ptr<const ModelWeights> model, std::size_t samples = 2) {
  CollapseSettings settings;
  settings.tokens = kTokens;
  settings.layers = model->spec().layers;
  settings.samples = samples;
  settings.texts = texts_of(samples);
  settings.model = std::move(model);
  return settings;
}

CollapseCase own_case(const ModelSpec& spec, std::string_view variant = "full") {
  return {std::string(variant), "own", variant_of(variant, spec.block), model_mask(spec, kTokens)};
}

class CollapseOfEveryFamily : public testing::TestWithParam<ModelSpec> {};

TEST_P(CollapseOfEveryFamily, TheFullBlockUnderItsOwnMaskIsTheForwardPass) {
  const auto model = std::make_shared<Trained>(GetParam());
  for (const Precision precision : {Precision::float32, Precision::float64}) {
    CollapseSettings settings = settings_of(model);
    settings.precision = precision;
    const Executor executor(2);
    const auto curves = collapse({own_case(GetParam())}, settings, executor);
    std::vector<std::vector<Matrix<float>>> expected(GetParam().layers + 1,
                                                     std::vector<Matrix<float>>(settings.samples));
    expected[0] = embed(*model, settings.texts, executor);
    ForwardObserver observer;
    observer.point = [&](std::size_t text, std::size_t layer, TracePoint point, MatrixView<const float> x) {
      if (point != TracePoint::out) return;
      Matrix<float> copy(x.rows, x.cols);
      for (std::size_t i = 0; i < x.rows; ++i) std::copy(x[i].begin(), x[i].end(), copy[i].begin());
      expected[layer + 1][text] = std::move(copy);
    };
    forward(*model, settings.texts, executor, observer);
    for (std::size_t layer = 0; layer <= GetParam().layers; ++layer) {
      for (std::size_t s = 0; s < settings.samples; ++s) {
        std::vector<double> singular;
        const TokenMeasures wanted =
            measure_tokens<float>(expected[layer][s].view(), Spectrum::yes, &singular);
        const TokenMeasures& measured = curves[0].layers[layer][s];
        EXPECT_NEAR(measured.norm, wanted.norm, 1e-5 * wanted.norm) << "layer " << layer;
        EXPECT_NEAR(measured.mu, wanted.mu, 1e-5 * wanted.norm) << "layer " << layer;
        EXPECT_NEAR(measured.mean_cosine, wanted.mean_cosine, 1e-5) << "layer " << layer;
        EXPECT_NEAR(measured.min_cosine, wanted.min_cosine, 1e-5) << "layer " << layer;
        EXPECT_NEAR(measured.least_singular, wanted.least_singular, 1e-5 * wanted.norm) << "layer " << layer;
      }
    }
  }
}

TEST_P(CollapseOfEveryFamily, EveryVariantMaskAndNormRuns) {
  const auto model = std::make_shared<Trained>(GetParam());
  std::vector<CollapseCase> cases;
  for (const std::string_view variant : variant_names()) {
    for (const char* mask : {"full", "causal", "window:1", "onesided:1"}) {
      for (const char* norm : {"rmsnorm", "layernorm", "unit", "dyt"}) {
        BlockSpec block = GetParam().block;
        block.norm = parse_norm(norm);
        block.temperature = 4;
        cases.push_back({std::string(variant), std::string(mask) + ' ' + norm, variant_of(variant, block),
                         parse_mask(mask, kTokens)});
      }
    }
  }
  const auto curves = collapse(cases, settings_of(model), Executor(2));
  ASSERT_EQ(curves.size(), cases.size());
  for (const CollapseCurve& curve : curves) {
    EXPECT_TRUE(std::isfinite(curve.mean(3, &TokenMeasures::relative))) << curve.group << ' ' << curve.name;
    // No theorem speaks of several heads.
    EXPECT_TRUE(curve.theory.bound1.empty() && curve.theory.bound2_diameter.empty() &&
                curve.theory.bound_corollary.empty())
        << curve.group << ' ' << curve.name;
  }
  // Once each, for all cases and samples.
  EXPECT_EQ(model->reads, (std::vector<std::size_t>{0, 1, 2}));
}

INSTANTIATE_TEST_SUITE_P(Families, CollapseOfEveryFamily, testing::ValuesIn(families()),
                         [](const auto& tested) { return tested.param.family; });

TEST(CollapseOfAModel, WithoutSkipNormAndFeedForwardOnlyAttentionIsLeft) {
  for (const ModelSpec& spec : families()) {
    const BlockSpec block = variant_of("san", spec.block);
    EXPECT_EQ(block.key_heads, spec.block.key_heads);
    EXPECT_EQ(block.head_width, spec.block.head_width);
    EXPECT_EQ(block.rotary.frequencies, spec.block.rotary.frequencies);
    EXPECT_EQ(block.relative.buckets, spec.block.relative.buckets);
    EXPECT_EQ(block.temperature, spec.block.temperature);
    EXPECT_EQ(block.feed_forward, 0u);
    EXPECT_FALSE(block.skip);
    EXPECT_EQ(block.norm, NormSpec());
  }
}

TEST(CollapseOfAModel, RandomInitIsTheSameForASeedAndAnyNumberOfThreads) {
  const auto run = [](std::uint64_t seed, int threads) {
    const std::shared_ptr<const ModelWeights> model = random_model(llama(), seed);
    const auto curves = collapse({own_case(llama()), own_case(llama(), "san+norm")}, settings_of(model, 3),
                                 Executor(threads));
    std::vector<double> values;
    for (const CollapseCurve& curve : curves) {
      for (const auto& layer : curve.layers) {
        for (const TokenMeasures& each : layer) {
          for (const double value : each.values()) values.push_back(value);
        }
      }
    }
    return values;
  };
  EXPECT_EQ(run(1, 1), run(1, 4));
  EXPECT_NE(run(1, 1), run(2, 1));
}

TEST(CollapseOfAModel, TheoremOneSpeaksOfAModelWithOneHead) {
  ModelSpec spec = bert();
  spec.block.heads = 1;
  const auto model = std::make_shared<Trained>(spec);
  const auto curves = collapse({own_case(spec, "san")}, settings_of(model), Executor(1));
  EXPECT_EQ(curves[0].theory.bound1.size(), 4u);
  EXPECT_EQ(curves[0].theory.violations1, 0u);
}

TEST(CollapseOfAModel, WhatDoesNotFitTheModelIsRefused) {
  const auto model = std::make_shared<Trained>(llama());
  const auto message = [&](const auto& change) {
    std::vector<CollapseCase> cases = {own_case(llama())};
    CollapseSettings settings = settings_of(model);
    change(cases[0].block, settings);
    return message_of<InputError>([&] { collapse(cases, settings, Executor(1)); });
  };
  using Block = BlockSpec&;
  using Settings = CollapseSettings&;
  expect_mentions(message([](Block, Settings settings) { settings.layers = 4; }), {"has 3 layers, not 4"});
  expect_mentions(message([](Block, Settings settings) { settings.texts.pop_back(); }),
                  {"1 texts for 2 samples"});
  expect_mentions(message([](Block, Settings settings) { settings.texts[1].pop_back(); }), {"has 10 tokens"});
  expect_mentions(message([](Block, Settings settings) { settings.texts[1][0] = 40; }), {"vocabulary"});
  expect_mentions(message([](Block, Settings settings) { settings.fresh_weights = true; }), {"neither"});
  expect_mentions(message([](Block block, Settings) { block.key_heads = 4; }), {"key heads"});
  expect_mentions(message([](Block block, Settings) { block.feed_forward = 8; }), {"feed-forward"});
  expect_mentions(message([](Block block, Settings) { block.gated = false; }), {"gate"});
}

}  // namespace
}  // namespace normscope

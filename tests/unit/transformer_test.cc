#include "normscope/transformer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "normscope/error.h"
#include "normscope/random.h"
#include "support/message.h"
#include "train/parameters.h"

namespace normscope {
namespace {

// A small model with everything a spec can have; parameters and batches drawn from a seed.
TransformerSpec small_language_model(const std::string& norm = "layernorm") {
  TransformerSpec spec = published_language_model();
  spec.model.vocabulary = 37;
  spec.model.positions = 45;
  spec.model.layers = 2;
  spec.model.block.width = 6;
  spec.model.block.heads = 3;
  spec.model.block.feed_forward = 70;
  spec.model.block.norm = parse_norm(norm);
  spec.model.block.norm.eps = 1e-5;
  spec.model.block.norm.affine = true;
  spec.model.block.dropout = 0.25;
  spec.query_key_value_bias = true;
  return spec;
}

TransformerSpec small_classifier(const std::string& norm = "none") {
  TransformerSpec spec = published_sentiment_model();
  spec.model.vocabulary = 29;
  spec.model.positions = 40;
  spec.model.layers = 2;
  spec.model.block.width = 6;
  spec.model.block.heads = 2;
  spec.model.block.feed_forward = 13;
  spec.model.block.norm = parse_norm(norm);
  spec.model.block.norm.eps = 1e-6;
  spec.model.block.norm.affine = norm != "none";
  spec.model.embedding_norm = spec.model.block.norm;
  spec.classes = 3;
  return spec;
}

TokenBatch random_batch(const TransformerSpec& spec, std::size_t texts, std::size_t length,
                        std::uint64_t seed) {
  Random random(seed);
  TokenBatch batch;
  batch.texts = texts;
  batch.length = length;
  for (std::size_t i = 0; i < texts * length; ++i)
    batch.tokens.push_back(static_cast<std::uint32_t>(random.below(spec.model.vocabulary)));
  if (spec.classes > 0) {
    for (std::size_t i = 0; i < texts; ++i) {
      batch.targets.push_back(static_cast<std::uint32_t>(random.below(spec.classes)));
      batch.lengths.push_back(static_cast<std::uint32_t>(1 + random.below(length)));
    }
  } else {
    for (std::size_t i = 0; i < texts * length; ++i) {
      batch.targets.push_back(i % 7 == 3 ? TokenBatch::ignored
                                         : static_cast<std::uint32_t>(random.below(spec.model.vocabulary)));
    }
  }
  return batch;
}

// Far from initial values, so that no gradient is near 0 by symmetry.
template <class T>
std::vector<T> random_parameters(const TransformerSpec& spec, std::uint64_t seed) {
  const std::vector<float> initial = initial_parameters(spec, seed);
  std::vector<T> values(initial.begin(), initial.end());
  Random random(seed, 77);
  for (T& value : values) value += static_cast<T>(0.3 * random.normal());
  return values;
}

std::string slot_of(const TransformerSpec& spec, std::size_t index) {
  for (const ParameterSlot& slot : parameter_slots(spec)) {
    if (index < slot.offset + slot.size()) return slot.name;
  }
  return "?";
}

// Central differences of every parameter against the gradient; with dropout the same numbers are drawn anew.
void expect_gradient(const TransformerSpec& spec, const TokenBatch& batch, std::optional<DropoutKey> key) {
  const Executor executor(2);
  std::vector<double> parameters = random_parameters<double>(spec, 5);
  const auto model = make_transformer_gradient<double>(spec);
  std::vector<double> gradient(parameters.size()), unused(parameters.size());
  model->gradient(batch, parameters, gradient, key, executor);
  double largest = 0;
  for (const double g : gradient) largest = std::max(largest, std::fabs(g));
  constexpr double kStep = 1e-5;
  // Some of the parameters, in every slot.
  std::vector<std::size_t> looked_at;
  for (const ParameterSlot& slot : parameter_slots(spec)) {
    for (std::size_t i = 0; i<slot.size(); i += slot.size()> 100 ? 17 : 3)
      looked_at.push_back(slot.offset + i);
  }
  for (const std::size_t i : looked_at) {
    const double value = parameters[i];
    const auto loss_at = [&](double moved) {
      parameters[i] = moved;
      return key ? model->gradient(batch, parameters, unused, key, executor).loss
                 : model->measure(batch, parameters, executor).loss;
    };
    const double above = loss_at(value + kStep), below = loss_at(value - kStep);
    parameters[i] = value;
    ASSERT_NEAR((above - below) / (2 * kStep), gradient[i], 1e-7 * std::max(1.0, largest))
        << slot_of(spec, i) << " at " << i;
  }
}

TEST(Transformer, GradientOfTheLanguageModelIsThatOfFiniteDifferences) {
  for (const char* const norm :
       {"layernorm", "center", "rmsnorm", "none", "xsigma", "published", "dyt", "project:2", "qknorm:3"}) {
    SCOPED_TRACE(norm);
    const TransformerSpec spec = small_language_model(norm);
    expect_gradient(spec, random_batch(spec, 2, 35, 1), std::nullopt);
  }
}

TEST(Transformer, GradientUnderDropoutIsThatOfFiniteDifferences) {
  const TransformerSpec language = small_language_model(), classifier = small_classifier("layernorm");
  expect_gradient(language, random_batch(language, 2, 34, 2), DropoutKey{3, 4});
  expect_gradient(classifier, random_batch(classifier, 3, 20, 2), DropoutKey{3, 4});
}

TEST(Transformer, GradientOfTheClassifierIsThatOfFiniteDifferences) {
  for (const char* const norm : {"none", "layernorm", "center", "rmsnorm"}) {
    SCOPED_TRACE(norm);
    const TransformerSpec spec = small_classifier(norm);
    expect_gradient(spec, random_batch(spec, 4, 33, 1), std::nullopt);
  }
}

TEST(Transformer, GradientInFloatIsThatInDouble) {
  for (const bool classifies : {false, true}) {
    const TransformerSpec spec = classifies ? small_classifier("layernorm") : small_language_model();
    const TokenBatch batch = random_batch(spec, 3, 40, 8);
    const std::vector<float> single = random_parameters<float>(spec, 9);
    const std::vector<double> twice(single.begin(), single.end());
    std::vector<float> gradient(single.size());
    std::vector<double> expected(single.size());
    for (const std::optional<DropoutKey> key :
         {std::optional<DropoutKey>(), std::optional(DropoutKey{1, 2})}) {
      const Executor executor(2);
      const double loss =
          make_transformer_gradient<float>(spec)->gradient(batch, single, gradient, key, executor).loss;
      EXPECT_NEAR(
          loss, make_transformer_gradient<double>(spec)->gradient(batch, twice, expected, key, executor).loss,
          2e-6);
      for (std::size_t i = 0; i < single.size(); ++i)
        ASSERT_NEAR(gradient[i], expected[i], 2e-6) << slot_of(spec, i);
    }
  }
}

TEST(Transformer, IsTheSameForAnyNumberOfThreads) {
  const TransformerSpec spec = small_language_model();
  const TokenBatch batch = random_batch(spec, 11, 40, 3);
  const std::vector<float> parameters = random_parameters<float>(spec, 4);
  std::vector<float> first(parameters.size()), other(parameters.size());
  const auto loss = [&](int threads, std::vector<float>& gradient) {
    return make_transformer_gradient<float>(spec)
        ->gradient(batch, parameters, gradient, DropoutKey{5, 6}, Executor(threads))
        .loss;
  };
  const double expected = loss(1, first);
  for (const int threads : {2, 8}) {
    EXPECT_EQ(loss(threads, other), expected);
    EXPECT_EQ(first, other);
  }
}

TEST(Transformer, WhatFollowsATextDoesNotMatter) {
  const TransformerSpec spec = small_classifier("layernorm");
  TokenBatch batch = random_batch(spec, 2, 38, 6);
  batch.lengths = {7, 38};
  const auto model = make_transformer_gradient<double>(spec);
  const std::vector<double> parameters = random_parameters<double>(spec, 1);
  const double loss = model->measure(batch, parameters, Executor(1)).loss;
  for (std::size_t i = 7; i < 38; ++i) batch.tokens[i] = 3;
  EXPECT_EQ(model->measure(batch, parameters, Executor(1)).loss, loss);
  batch.tokens[6] = (batch.tokens[6] + 1) % 29;
  EXPECT_NE(model->measure(batch, parameters, Executor(1)).loss, loss);
}

TEST(Transformer, TokensAfterATargetDoNotMatter) {
  const TransformerSpec spec = small_language_model();
  TokenBatch batch = random_batch(spec, 1, 40, 6);
  std::fill(batch.targets.begin(), batch.targets.end(), TokenBatch::ignored);
  batch.targets[33] = 5;
  const auto model = make_transformer_gradient<double>(spec);
  const std::vector<double> parameters = random_parameters<double>(spec, 1);
  const double loss = model->measure(batch, parameters, Executor(1)).loss;
  for (std::size_t i = 34; i < 40; ++i) batch.tokens[i] = (batch.tokens[i] + 1) % 37;
  EXPECT_EQ(model->measure(batch, parameters, Executor(1)).loss, loss);
}

TEST(Transformer, LogitsFarAboveTheTargetDoNotOverflow) {
  // 600 in powers of e: beyond what a shift by the bound alone could hold.
  TransformerSpec spec = small_language_model();
  const TokenBatch batch = random_batch(spec, 1, 32, 6);
  std::vector<float> parameters = random_parameters<float>(spec, 1);
  for (float& value : slices(spec, std::span(parameters)).word) value *= 300;
  const std::vector<double> twice(parameters.begin(), parameters.end());
  std::vector<float> gradient(parameters.size());
  const double loss =
      make_transformer_gradient<float>(spec)->gradient(batch, parameters, gradient, {}, Executor(1)).loss;
  EXPECT_NEAR(loss, make_transformer_gradient<double>(spec)->measure(batch, twice, Executor(1)).loss,
              1e-5 * loss);
  EXPECT_GT(loss, 100);
  for (const float g : gradient) ASSERT_TRUE(std::isfinite(g));
}

TEST(Transformer, NanInAWordIsSeenInTheLoss) {
  const TransformerSpec spec = small_language_model();
  std::vector<float> parameters = random_parameters<float>(spec, 1);
  parameters[36 * 6 + 2] = std::nanf("");
  TokenBatch batch = random_batch(spec, 1, 32, 6);
  std::fill(batch.tokens.begin(), batch.tokens.end(), 1U);
  EXPECT_TRUE(
      std::isnan(make_transformer_gradient<float>(spec)->measure(batch, parameters, Executor(1)).loss));
}

TEST(Transformer, AllRightIsAnAccuracyOfOne) {
  const TransformerSpec spec = small_classifier();
  std::vector<float> parameters = initial_parameters(spec, 1);
  parameters[parameters.size() - 2] = 9;  // the bias of the second class
  const auto model = make_transformer_gradient<float>(spec);
  for (std::size_t texts = 1; texts < 60; ++texts) {
    TokenBatch batch = random_batch(spec, texts, 3, texts);
    std::fill(batch.targets.begin(), batch.targets.end(), 1);
    EXPECT_EQ(model->measure(batch, parameters, Executor(1)).accuracy, 1);
    batch.targets[0] = 0;
    EXPECT_EQ(model->measure(batch, parameters, Executor(1)).accuracy,
              static_cast<double>(texts - 1) / static_cast<double>(texts));
  }
}

TEST(Transformer, RefusesBatchesThatDoNotFit) {
  const TransformerSpec spec = small_language_model();
  const auto model = make_transformer_gradient<float>(spec);
  const std::vector<float> parameters = initial_parameters(spec, 1);
  const TokenBatch good = random_batch(spec, 1, 20, 6);
  const auto refusal = [&](auto change) {
    TokenBatch batch = good;
    change(batch);
    return message_of([&] { model->measure(batch, parameters, Executor(1)); });
  };
  EXPECT_EQ(refusal([](TokenBatch& batch) { batch.tokens[3] = 37; }),
            "Token 37 is not in a vocabulary of 37 words.");
  EXPECT_EQ(refusal([](TokenBatch& batch) { batch.targets[3] = 99; }), "Target 99 is not one of 37 words.");
  EXPECT_EQ(refusal([](TokenBatch& batch) {
              std::fill(batch.targets.begin(), batch.targets.end(), TokenBatch::ignored);
            }),
            "No token of the batch has a target: there is no loss.");
  EXPECT_EQ(refusal([](TokenBatch& batch) { batch.lengths = {21}; }),
            "A text of 21 tokens does not fit a batch of length 20.");
  EXPECT_EQ(refusal([](TokenBatch& batch) { batch.tokens.pop_back(); }),
            "19 tokens do not make 1 texts of 20 tokens.");
}

TEST(Transformer, HasThePublishedNumberOfParameters) {
  // 413 752 with gain and bias of four norms and the biases of four attentions, which are frozen.
  EXPECT_EQ(parameter_count(published_language_model()), 413'752u - 4 * 16 - 4 * 24);
  EXPECT_EQ(parameter_count(published_language_model()), 413'592u);  // "414K"
}

TEST(Transformer, TheClassifierHasThePublishedNumberOfParameters) {
  const TransformerSpec spec = published_sentiment_model();
  EXPECT_EQ(spec.model.vocabulary, 28'996u);   // BERT's cased one
  EXPECT_EQ(parameter_count(spec), 446'250u);  // "446K"
}

}  // namespace
}  // namespace normscope

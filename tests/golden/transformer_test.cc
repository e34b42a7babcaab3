// The trainer of transformers against PyTorch and Hugging Face transformers, as recorded by
// record_transformer.py: gradients at the first step, the losses of fifty steps.
#include "normscope/transformer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/paths.h"

namespace normscope {
namespace {

using nlohmann::json;

const json& recording() {
  static const json file = json::parse(std::ifstream(source_path() + "/tests/golden/transformer.json"));
  return file;
}

// As in record_transformer.py.
double draw(std::uint64_t slot, std::uint64_t place) {
  std::uint64_t z = (place + (slot << 32)) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  z ^= z >> 31;
  return static_cast<double>(z >> 40) / 0x1p23 - 1;
}

TransformerSpec spec_of(const json& c) {
  const bool gpt2 = c.at("family") == "gpt2";
  TransformerSpec spec = gpt2 ? published_language_model() : published_sentiment_model();
  spec.model.vocabulary = c.at("vocabulary");
  spec.model.positions = c.at("positions");
  spec.model.layers = c.at("layers");
  BlockSpec& block = spec.model.block;
  block.width = c.at("d");
  block.heads = c.at("heads");
  block.feed_forward = c.at("feed_forward");
  block.norm = parse_norm(c.at("norm").get<std::string>());
  if (gpt2) {
    block.norm.eps = 1e-5;
  } else {
    block.norm.affine = c.at("norm") != "none";
    block.norm.eps = 1e-12;
    spec.model.embedding_norm = block.norm;
    spec.classes = c.at("classes");
  }
  return spec;
}

std::vector<float> parameters_of(const TransformerSpec& spec) {
  std::vector<float> parameters;
  std::uint64_t number = 0;
  for (const ParameterSlot& slot : parameter_slots(spec)) {
    const double mean = slot.name.ends_with(".gain") ? 1 : 0;
    for (std::size_t i = 0; i < slot.size(); ++i)
      parameters.push_back(static_cast<float>(0.1 * draw(number, i) + mean));
    ++number;
  }
  return parameters;
}

TokenBatch batch_of(const json& c, const TransformerSpec& spec, std::size_t step) {
  TokenBatch batch;
  batch.texts = c.at("texts");
  batch.length = c.at("length");
  for (std::size_t i = 0; i < batch.texts * batch.length; ++i) {
    const double share = (draw(5000 + step % 3, i) + 1) / 2;
    const double place = share * share * share * share * static_cast<double>(spec.model.vocabulary);
    batch.tokens.push_back(std::max(1U, static_cast<std::uint32_t>(place)));
  }
  if (spec.classes > 0) {
    for (std::size_t text = 0; text < batch.texts; ++text) {
      batch.lengths.push_back(static_cast<std::uint32_t>(1 + (7 * text + 3 * (step % 3)) % batch.length));
      batch.targets.push_back(static_cast<std::uint32_t>((text + step % 3) % spec.classes));
    }
  } else {
    for (std::size_t i = 0; i < batch.tokens.size(); ++i)
      batch.targets.push_back((i + 1) % batch.length == 0 ? TokenBatch::ignored : batch.tokens[i + 1]);
  }
  return batch;
}

// Under the address sanitizer a step of 50 257 words takes seconds, and the first ones show as much of
// memory.
#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t kSteps = 8;
#else
constexpr std::size_t kSteps = 50;
#endif

class TransformerGolden : public testing::TestWithParam<std::size_t> {
 protected:
  const json& recorded = recording().at("cases").at(GetParam());
  const TransformerSpec spec = spec_of(recorded);
};

TEST_P(TransformerGolden, GradientsAreThoseOfPyTorch) {
  const std::vector<float> parameters = parameters_of(spec);
  std::vector<float> gradient(parameters.size());
  const double loss = make_transformer_gradient<float>(spec)
                          ->gradient(batch_of(recorded, spec, 0), parameters, gradient, {}, Executor(2))
                          .loss;
  EXPECT_NEAR(loss, recorded.at("losses").at(0).get<double>(), 1e-5);
  for (const ParameterSlot& slot : parameter_slots(spec)) {
    const auto own = std::span<const float>(gradient).subspan(slot.offset, slot.size());
    double scale = 0;
    for (const float value : own) scale = std::max(scale, static_cast<double>(std::fabs(value)));
    const double tolerance = 2e-5 * scale + 1e-9;
    if (slot.name == "word") {
      for (const auto& [row, values] : recorded.at("rows").items()) {
        for (std::size_t k = 0; k < slot.cols; ++k) {
          ASSERT_NEAR(own[std::stoul(row) * slot.cols + k], values.at(k).get<double>(), tolerance)
              << "word " << row << ", " << k;
        }
      }
      double dot = 0;
      for (std::size_t i = 0; i < own.size(); ++i) dot += static_cast<double>(own[i]) * draw(9000, i);
      EXPECT_NEAR(dot, recorded.at("word_dot").get<double>(), 20 * tolerance);
      continue;
    }
    const json& values = recorded.at("gradients").at(slot.name);
    const std::size_t stride = slot.size() < 500 ? 1 : slot.size() / 250;
    ASSERT_EQ(values.size(), (slot.size() + stride - 1) / stride) << slot.name;
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(own[i * stride], values.at(i).get<double>(), tolerance) << slot.name << " " << i;
  }
}

TEST_P(TransformerGolden, FiftyStepsHaveTheLossesOfPyTorch) {
  std::vector<float> parameters = parameters_of(spec), gradient(parameters.size());
  AdamSettings adam;
  adam.learning_rate = recorded.at("learning_rate");
  adam.weight_decay = recorded.at("weight_decay");
  adam.schedule.steps = 50;
  AdamState state;
  const auto model = make_transformer_gradient<float>(spec);
  const Executor executor(2);
  for (std::size_t step = 0; step < kSteps; ++step) {
    const double loss =
        model->gradient(batch_of(recorded, spec, step), parameters, gradient, {}, executor).loss;
    ASSERT_NEAR(loss, recorded.at("losses").at(step).get<double>(), 1e-4) << "step " << step;
    adam_update(adam, state, parameters, gradient);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, TransformerGolden, testing::Range<std::size_t>(0, 5));

}  // namespace
}  // namespace normscope

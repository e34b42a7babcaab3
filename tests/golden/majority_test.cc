// The encoder and its training against PyTorch, as recorded by record_majority.py: logits, all gradients at
// the first step, the losses of a hundred steps from the same start and batches.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "normscope/executor.h"
#include "normscope/train.h"
#include "support/paths.h"

namespace normscope {
namespace {

using nlohmann::json;

struct Golden {
  EncoderSpec spec;
  AdamSettings adam;
  SequenceSet set;
  std::vector<std::vector<std::uint32_t>> batches;
  std::vector<float> parameters;
  json recorded;
};

const json& recording() {
  static const json file = json::parse(std::ifstream(source_path() + "/tests/golden/majority.json"));
  return file;
}

std::vector<double> flat(const EncoderSpec& spec, const json& tensors, const json& more = json::object()) {
  std::vector<double> values;
  for (const ParameterSlot& slot : parameter_slots(spec)) {
    const json& tensor = more.contains(slot.name) ? more.at(slot.name) : tensors.at(slot.name);
    EXPECT_EQ(tensor.size(), slot.size()) << slot.name;
    for (const json& value : tensor) values.push_back(value.get<double>());
  }
  return values;
}

Golden load(std::size_t index) {
  const json& c = recording().at("cases").at(index);
  Golden golden;
  golden.recorded = c;
  golden.spec.classes = c.at("classes");
  golden.spec.dimension = c.at("d");
  golden.spec.layers = c.at("layers");
  golden.spec.heads = c.at("heads");
  golden.spec.feed_forward = c.at("feed_forward");
  golden.spec.norm1 = parse_norm(c.at("norm").get<std::string>());
  golden.spec.norm2 = parse_norm("layernorm");
  golden.spec.norm2.affine = true;
  golden.spec.mask = c.at("mask").get<std::string>();
  const json& optimizer = c.at("optimizer");
  golden.adam.learning_rate = optimizer.at("learning_rate");
  golden.adam.weight_decay = optimizer.at("weight_decay");
  golden.adam.clip = optimizer.at("clip");
  golden.adam.schedule.steps = optimizer.at("decay_steps");
  const json& setup = recording().at("setups").at(c.at("setup").get<std::size_t>());
  std::vector<std::uint16_t> tokens;
  for (const json& row : setup.at("tokens")) {
    for (const json& token : row) tokens.push_back(token.get<std::uint16_t>());
  }
  golden.set = make_sequences(setup.at("classes"), setup.at("length"), tokens,
                              setup.at("labels").get<std::vector<std::uint16_t>>());
  golden.batches = setup.at("batches").get<std::vector<std::vector<std::uint32_t>>>();
  const json& own = c.at("parameters");
  const json& shared = own.contains("same_as")
                           ? recording().at("cases").at(own.at("same_as").get<std::size_t>()).at("parameters")
                           : own;
  const auto values = flat(golden.spec, shared, c.value("extra_parameters", json::object()));
  golden.parameters.assign(values.begin(), values.end());
  return golden;
}

std::vector<EncoderPath> paths(const EncoderSpec& spec) {
  if (is_bag_of_types(spec)) return {EncoderPath::generic, EncoderPath::bag};
  return {EncoderPath::generic};
}

class Majority : public testing::TestWithParam<std::size_t> {};

TEST_P(Majority, LogitsAreThoseOfPyTorch) {
  const Golden golden = load(GetParam());
  const std::size_t first = golden.batches[0][0];
  const auto logits = encoder_logits<float>(
      golden.spec, golden.parameters,
      std::span(golden.set.tokens).subspan(first * golden.set.length, golden.set.length));
  const json& expected = golden.recorded.at("logits0");
  ASSERT_EQ(logits.values().size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(logits.values()[i], expected[i].get<double>(), 5e-5) << i;
  }
}

template <class T>
void expect_gradients(const Golden& golden, EncoderPath path, const char* member, double tolerance) {
  const std::vector<T> parameters(golden.parameters.begin(), golden.parameters.end());
  std::vector<T> gradient(parameters.size());
  make_encoder_gradient<T>(golden.spec, path)
      ->gradient(golden.set, golden.batches[0], parameters, gradient, Executor(1));
  const auto expected = flat(golden.spec, golden.recorded.at(member));
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::fabs(value));
  for (const ParameterSlot& slot : parameter_slots(golden.spec)) {
    for (std::size_t i = slot.offset; i < slot.offset + slot.size(); ++i) {
      EXPECT_NEAR(gradient[i], expected[i], tolerance * largest) << slot.name << " " << i - slot.offset;
    }
  }
}

TEST_P(Majority, EveryGradientOfTheFirstStepIsPyTorchs) {
  const Golden golden = load(GetParam());
  for (const EncoderPath path : paths(golden.spec)) {
    expect_gradients<float>(golden, path, "gradients", 5e-6);
    expect_gradients<double>(golden, path, "gradients64", 1e-9);
  }
}

// PyTorch itself differs by up to 9e-7 between float and double; a forgotten learning-rate decay by 2e-4.
TEST_P(Majority, LossesOfAHundredStepsArePyTorchs) {
  const Golden golden = load(GetParam());
  const auto expected = golden.recorded.at("losses").get<std::vector<double>>();
  const Executor executor(1);
  for (const EncoderPath path : paths(golden.spec)) {
    const auto model = make_encoder_gradient<float>(golden.spec, path);
    std::vector<float> parameters = golden.parameters, gradient(parameters.size());
    AdamState state;
    for (std::size_t step = 0; step < expected.size(); ++step) {
      const double loss = model->gradient(golden.set, golden.batches[step], parameters, gradient, executor);
      ASSERT_NEAR(loss, expected[step], 1e-5 * expected[step]) << "step " << step;
      adam_update(golden.adam, state, parameters, gradient);
    }
    if (!golden.recorded.contains("final")) continue;
    const auto final_values = flat(golden.spec, golden.recorded.at("final"));
    for (std::size_t i = 0; i < parameters.size(); ++i)
      EXPECT_NEAR(parameters[i], final_values[i], 2e-5) << i;
  }
}

std::string case_name(const testing::TestParamInfo<std::size_t>& info) {
  std::string name = recording().at("cases").at(info.param).at("name");
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Recorded, Majority, testing::Range<std::size_t>(0, recording().at("cases").size()),
                         case_name);

}  // namespace
}  // namespace normscope

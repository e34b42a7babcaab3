// The block's forward pass and the measures of tokens against PyTorch and NumPy, as recorded by
// record_collapse.py: the tokens after every layer, for all variants, masks, norms and placements.
#include "normscope/collapse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "normscope/block.h"
#include "normscope/tensor_file.h"
#include "support/paths.h"

namespace normscope {
namespace {

using nlohmann::json;

const json& recording() {
  static const json file = json::parse(std::ifstream(source_path() + "/tests/golden/collapse.json"));
  return file;
}

const Tensor& tensor(const std::string& name) {
  static const std::map<std::string, Tensor> all = [] {
    const auto file = TensorFile::open(source_path() + "/tests/golden/collapse.safetensors");
    std::map<std::string, Tensor> tensors;
    for (const TensorInfo& info : file.tensors()) tensors[info.name] = file.read(info.name);
    return tensors;
  }();
  return all.at(name);
}

// tensor[index], flat.
std::span<const double> part(const std::string& name, std::size_t index) {
  const Tensor& whole = tensor(name);
  const std::size_t size = whole.values.size() / whole.shape.at(0);
  return std::span(whole.values).subspan(index * size, size);
}

std::size_t size(const char* name) {
  return recording().at(name).get<std::size_t>();
}

const json& recorded_case(std::size_t index) {
  return recording().at("cases").at(index);
}

BlockSpec block(const json& c) {
  BlockSpec spec;
  spec.width = size("width");
  spec.heads = size("heads");
  spec.feed_forward = size("feed_forward");
  spec.norm = parse_norm(c.at("norm").get<std::string>());
  spec.norm.eps = c.at("eps");
  spec.norm.affine = c.at("affine");
  const std::string placement = c.at("placement");
  spec.placement = placement == "pre"        ? Placement::pre
                   : placement == "sandwich" ? Placement::sandwich
                                             : Placement::post;
  spec.temperature = c.at("temperature");
  spec.normalize_query_key = c.at("query_key_norm");
  return variant_of(c.at("variant").get<std::string>(), spec);
}

Mask mask(const json& c) {
  const std::size_t n = size("tokens");
  if (c.at("mask") != "random") return parse_mask(c.at("mask").get<std::string>(), n);
  const std::vector<std::uint8_t> allowed(tensor("mask").values.begin(), tensor("mask").values.end());
  return Mask::from_dense({allowed.data(), n, n});
}

template <class T>
std::vector<T> numbers(const std::string& name, std::size_t layer, bool wanted = true) {
  const auto values = part("weights." + name, layer);
  if (!wanted) return {};
  return {values.begin(), values.end()};
}

template <class T>
BlockWeights<T> weights(const json& c, std::size_t layer) {
  const std::size_t d = size("width"), f = size("feed_forward");
  const bool biases = c.at("biases"), affine = c.at("affine");
  BlockWeights<T> result;
  result.query_key_value = {d, 3 * d, numbers<T>("query_key_value", layer)};
  result.output = {d, d, numbers<T>("output", layer)};
  result.up = {d, f, numbers<T>("up", layer)};
  result.down = {f, d, numbers<T>("down", layer)};
  result.query_key_value_bias = numbers<T>("query_key_value_bias", layer, biases);
  result.output_bias = numbers<T>("output_bias", layer, biases);
  result.up_bias = numbers<T>("up_bias", layer, biases);
  result.down_bias = numbers<T>("down_bias", layer, biases);
  result.attention_gain = numbers<T>("attention_gain", layer, affine);
  result.attention_bias = numbers<T>("attention_bias", layer, affine);
  result.feed_forward_gain = numbers<T>("feed_forward_gain", layer, affine);
  result.feed_forward_bias = numbers<T>("feed_forward_bias", layer, affine);
  return result;
}

template <class T>
Matrix<T> start() {
  const auto& values = tensor("start").values;
  return {size("tokens"), size("width"), std::vector<T>(values.begin(), values.end())};
}

// ‖x − expected‖/‖expected‖
template <class T>
double distance(const Matrix<T>& x, std::span<const double> expected) {
  double off = 0, whole = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    off += std::pow(static_cast<double>(x.values()[i]) - expected[i], 2);
    whole += std::pow(expected[i], 2);
  }
  return std::sqrt(off / whole);
}

template <class T>
void expect_recorded(std::size_t index, double tolerance) {
  const json& c = recorded_case(index);
  SCOPED_TRACE(c.dump());
  const BlockSpec spec = block(c);
  const Mask edges = mask(c);
  const std::size_t layers = size("layers"), count = size("tokens") * size("width");
  Matrix<T> x = start<T>();
  BlockForward<T> forward;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    SCOPED_TRACE(layer);
    const BlockCounts counts = forward.apply(spec, weights<T>(c, layer), edges, x.view());
    EXPECT_LE(distance(x, part("outputs", index).subspan(layer * count, count)), tolerance);
    const double least = part("least_weight", index)[layer];
    EXPECT_NEAR(counts.least_weight, least, tolerance * (1 + 10 * least));
    EXPECT_NEAR(counts.entropy, part("entropy", index)[layer], 10 * tolerance);
    EXPECT_EQ(counts.empty_rows, c.at("mask") == "random" ? 1U : 0U);
  }
}

std::vector<std::size_t> cases_of(const std::string& group) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < recording().at("cases").size(); ++i) {
    if (recorded_case(i).at("group") == group) indices.push_back(i);
  }
  return indices;
}

std::vector<std::string> groups() {
  std::vector<std::string> names;
  for (const json& c : recording().at("cases")) {
    const auto name = c.at("group").get<std::string>();
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

class Block : public testing::TestWithParam<std::string> {};

TEST_P(Block, TokensOfEveryLayerArePyTorchs) {
  for (const std::size_t index : cases_of(GetParam())) expect_recorded<double>(index, 1e-12);
}

// PyTorch in float differs from itself in double by up to 1e-5.
TEST_P(Block, TokensInFloatArePyTorchsInDoubleUpToRounding) {
  for (const std::size_t index : cases_of(GetParam())) expect_recorded<float>(index, 5e-5);
}

std::string group_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Recorded, Block, testing::ValuesIn(groups()), group_name);

TEST(AttentionMatrix, IsPyTorchs) {
  const std::size_t n = size("tokens"), heads = size("heads");
  const auto with_matrices = recording().at("attention").get<std::vector<std::size_t>>();
  ASSERT_FALSE(with_matrices.empty());
  for (std::size_t k = 0; k < with_matrices.size(); ++k) {
    const json& c = recorded_case(with_matrices[k]);
    SCOPED_TRACE(c.dump());
    for (std::size_t head = 0; head < heads; ++head) {
      const auto expected = part("attention", k).subspan(head * n * n, n * n);
      const auto found =
          attention_matrix<double>(block(c), weights<double>(c, 0), mask(c), start<double>().view(), head);
      for (std::size_t i = 0; i < n * n; ++i) EXPECT_NEAR(found.values()[i], expected[i], 1e-13) << i;
    }
  }
}

class Measures : public testing::TestWithParam<std::size_t> {
 protected:
  template <class T>
  Matrix<T> tokens() const {
    const json& measured = recording().at("measures").at(GetParam());
    const std::size_t n = size("tokens"), d = size("width"), layers = size("layers");
    const auto all = part("outputs", measured.at("case").get<std::size_t>());
    const auto wanted = measured.at("layers") == "final" ? all.subspan((layers - 1) * n * d) : all;
    return {wanted.size() / d, d, std::vector<T>(wanted.begin(), wanted.end())};
  }

  template <class T>
  void expect_recorded(double tolerance) const {
    std::vector<double> singular;
    const TokenMeasures found = measure_tokens<T>(tokens<T>().view(), Spectrum::yes, &singular);
    const json& expected = recording().at("measures").at(GetParam()).at("values");
    for (std::size_t i = 0; i < TokenMeasures::count; ++i) {
      const std::string name(TokenMeasures::names()[i]);
      const double value = expected.at(name);
      EXPECT_NEAR(found.values()[i], value, tolerance * std::max(1.0, std::fabs(value))) << name;
    }
    const auto& values = tensor("singular_values." + std::to_string(GetParam())).values;
    ASSERT_EQ(singular.size(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(singular[i], values[i], tolerance * values[0]);
  }
};

TEST_P(Measures, AreNumPysAndPyTorchs) {
  expect_recorded<double>(1e-10);
}

TEST_P(Measures, OfFloatTokensAreTheSameUpToRounding) {
  expect_recorded<float>(1e-6);
}

INSTANTIATE_TEST_SUITE_P(Recorded, Measures,
                         testing::Range<std::size_t>(0, recording().at("measures").size()));

}  // namespace
}  // namespace normscope

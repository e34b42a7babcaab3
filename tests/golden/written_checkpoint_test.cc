// Checkpoints written here, as the Hugging Face library reads them: its logits, recorded by
// check_written_checkpoint.py from the very directories this test writes, against ours.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "normscope/checkpoint.h"
#include "normscope/executor.h"
#include "support/filled_model.h"
#include "support/paths.h"
#include "support/temporary_directory.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Ids = std::vector<std::uint32_t>;

constexpr double kTolerance = 5e-5;
const std::vector<Ids> kTexts = {{3, 141, 59, 265, 35, 89, 79, 32, 38}, {299, 0, 7, 7}};

ModelSpec with_300_words(ModelSpec spec) {
  spec.vocabulary = 300;
  spec.positions = 32;
  spec.layers = 4;
  return spec;
}

struct Written {
  FilledModel model;
  CheckpointExtras extras;
  bool classes = false;
};

Written gpt2(const char* norm) {
  return {FilledModel(with_300_words(small_gpt2(norm_for_model(norm)))), {}};
}

Tensor drawn(const char* name, std::vector<std::size_t> shape, std::uint64_t stream) {
  std::size_t size = 1;
  for (const std::size_t extent : shape) size *= extent;
  Tensor tensor{name, DType::float32, std::move(shape), std::vector<double>(size)};
  Random random(11, stream);
  for (double& value : tensor.values) value = static_cast<double>(static_cast<float>(random.normal()));
  return tensor;
}

Written classifier() {
  Written written{
      FilledModel(with_300_words(small_bert(norm_for_model("layernorm", true, 1e-12)))), {}, true};
  written.extras.labels = {"negative", "positive"};
  written.extras.tensors = {drawn("bert.pooler.dense.weight", {8, 8}, 1),
                            drawn("bert.pooler.dense.bias", {8}, 2), drawn("classifier.weight", {2, 8}, 3),
                            drawn("classifier.bias", {2}, 4)};
  return written;
}

std::vector<double> mapped(const Tensor& weight, const Tensor& bias, const std::vector<double>& x) {
  std::vector<double> y = bias.values;
  for (std::size_t i = 0; i < y.size(); ++i)
    for (std::size_t j = 0; j < x.size(); ++j) y[i] += weight.values[i * x.size() + j] * x[j];
  return y;
}

// Per text: logits of every token, or of the classes.
std::vector<std::vector<double>> logits_of(const Written& written, const ModelWeights& model) {
  std::vector<std::vector<double>> all;
  for (const Matrix<float>& tokens : forward(model, kTexts, Executor(1))) {
    if (!written.classes) {
      const std::vector<float> values = logits(model.spec(), model.head(), tokens.view()).values();
      all.emplace_back(values.begin(), values.end());
      continue;
    }
    const std::vector<Tensor>& head = written.extras.tensors;
    std::vector<double> pooled = mapped(head[0], head[1], {tokens[0].begin(), tokens[0].end()});
    for (double& value : pooled) value = std::tanh(value);
    all.push_back(mapped(head[2], head[3], pooled));
  }
  return all;
}

// Kept, for the script to look at, if NORMSCOPE_WRITTEN names a directory.
class WrittenForTransformers : public ::testing::Test {
 protected:
  fs::path place(const std::string& name) const {
    const char* kept = std::getenv("NORMSCOPE_WRITTEN");
    return (kept != nullptr ? fs::path(kept) : temporary_.path()) / name;
  }
  std::vector<std::vector<double>> ours(const std::string& name, const Written& written) const {
    write_checkpoint(place(name), written.model, written.extras);
    auto all = logits_of(written, *open_checkpoint(place(name).string()).weights);
    std::ofstream(place(name + ".json")) << json{{"ids", kTexts}, {"logits", all}}.dump();
    return all;
  }
  static void expect_recorded(const std::string& name, const std::vector<std::vector<double>>& got) {
    std::ifstream file(source_path() + "/tests/golden/written_checkpoint.json");
    const auto recorded = json::parse(file)[name].get<std::vector<std::vector<double>>>();
    ASSERT_EQ(recorded.size(), got.size());
    for (std::size_t t = 0; t < got.size(); ++t) {
      ASSERT_EQ(recorded[t].size(), got[t].size());
      for (std::size_t i = 0; i < got[t].size(); ++i) ASSERT_NEAR(got[t][i], recorded[t][i], kTolerance);
    }
  }

  const TemporaryDirectory temporary_;
};

TEST_F(WrittenForTransformers, ALanguageModelHasTheLogitsOfTheLibrary) {
  expect_recorded("gpt2", ours("gpt2", gpt2("layernorm")));
}

TEST_F(WrittenForTransformers, AClassifierHasTheLogitsOfTheLibrary) {
  expect_recorded("bert", ours("bert", classifier()));
}

// The script sees that the library refuses this one; were it read as GPT-2, its logits would be others.
TEST_F(WrittenForTransformers, ANormTheLibraryDoesNotHaveGivesOtherLogits) {
  const auto plain = ours("gpt2", gpt2("layernorm")), center = ours("center", gpt2("center"));
  double difference = 0;
  for (std::size_t i = 0; i < plain[0].size(); ++i)
    difference = std::max(difference, std::abs(plain[0][i] - center[0][i]));
  EXPECT_GT(difference, 0.1);
  EXPECT_FALSE(fs::exists(place("center") / "model.safetensors"));
}

}  // namespace
}  // namespace normscope

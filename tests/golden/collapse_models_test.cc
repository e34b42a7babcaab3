// Collapse with the weights of a model of every family against the tokens that Hugging Face transformers has
// after each of its layers, as recorded by record_models.py.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "normscope/checkpoint.h"
#include "normscope/collapse.h"
#include "normscope/tensor_file.h"
#include "support/paths.h"

namespace normscope {
namespace {

const std::string kModels = source_path() + "/tests/golden/models/";

class CollapseOfRecordedModel : public testing::TestWithParam<std::string> {};

TEST_P(CollapseOfRecordedModel, MeasuresTransformersTokensInEveryLayer) {
  const auto file = TensorFile::open(kModels + "values.safetensors");
  const Checkpoint checkpoint = open_checkpoint(kModels + GetParam());
  const ModelSpec& spec = checkpoint.weights->spec();
  for (const char* text : {"0", "1"}) {
    const std::string name = GetParam() + "." + text + ".";
    const Tensor ids = file.read(name + "ids"), hidden = file.read(name + "hidden");
    CollapseSettings settings;
    settings.tokens = ids.values.size();
    settings.layers = spec.layers;
    settings.model = checkpoint.weights;
    settings.texts = {{ids.values.begin(), ids.values.end()}};
    const auto curves =
        collapse({{"full", "own", spec.block, model_mask(spec, settings.tokens)}}, settings, Executor(1));
    const std::size_t size = settings.tokens * spec.block.width;
    ASSERT_EQ(hidden.values.size(), (spec.layers + 1) * size);
    for (std::size_t layer = 0; layer <= spec.layers; ++layer) {
      const auto first = hidden.values.begin() + static_cast<std::ptrdiff_t>(layer * size);
      const Matrix<double> tokens(settings.tokens, spec.block.width,
                                  {first, first + static_cast<std::ptrdiff_t>(size)});
      const TokenMeasures expected = measure_tokens<double>(tokens.view(), Spectrum::yes),
                          &found = curves[0].layers[layer][0];
      const double tolerance = 5e-5 * expected.norm;
      EXPECT_NEAR(found.norm, expected.norm, tolerance) << "layer " << layer << " of text " << text;
      EXPECT_NEAR(found.mu, expected.mu, tolerance) << "layer " << layer << " of text " << text;
      EXPECT_NEAR(found.least_singular, expected.least_singular, tolerance)
          << "layer " << layer << " of text " << text;
      EXPECT_NEAR(found.mean_cosine, expected.mean_cosine, 1e-4) << "layer " << layer << " of text " << text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, CollapseOfRecordedModel,
                         testing::Values("bert", "roberta", "distilbert", "albert", "gpt2", "llama",
                                         "mistral", "qwen2", "t5"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace normscope

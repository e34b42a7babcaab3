// Whole models against Hugging Face transformers, as recorded by record_models.py: what enters the first
// layer and leaves each, the final norm, the logits; of a tiny model of every family and of two real ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "fetch/place.h"
#include "normscope/checkpoint.h"
#include "normscope/error.h"
#include "normscope/executor.h"
#include "normscope/model.h"
#include "normscope/tensor_file.h"
#include "support/paths.h"

namespace normscope {
namespace {

// Of the largest number compared: float32 in transformers is within 4e-6 of float64 on these inputs.
constexpr double kTolerance = 5e-5;
const std::string kModels = source_path() + "/tests/golden/models/";

using Tensors = std::map<std::string, Tensor>;
using Ids = std::vector<std::uint32_t>;

Tensors read_all(const std::string& name) {
  const auto file = TensorFile::open(kModels + name);
  Tensors tensors;
  for (const TensorInfo& info : file.tensors()) tensors[info.name] = file.read(info.name);
  return tensors;
}

const Tensor& recorded(const std::string& name) {
  static const Tensors all = read_all("values.safetensors");
  return all.at(name);
}

const Tensor& recorded_of_real_weights(const std::string& name) {
  static const Tensors all = read_all("real.safetensors");
  return all.at(name);
}

Ids ids_of(const Tensor& tensor) {
  return {tensor.values.begin(), tensor.values.end()};
}

Matrix<float> copy_of(MatrixView<const float> view) {
  Matrix<float> copy(view.rows, view.cols);
  for (std::size_t i = 0; i < view.rows; ++i) std::copy(view[i].begin(), view[i].end(), copy[i].begin());
  return copy;
}

// What a forward pass showed of each text, at [text][layer].
struct Pass {
  std::vector<std::vector<Matrix<float>>> out;
  std::vector<Matrix<float>> before_first_norm, after_first_norm, result;
};

Pass pass(const ModelWeights& weights, const std::vector<Ids>& texts, int threads = 2) {
  Pass seen;
  seen.out.assign(texts.size(), std::vector<Matrix<float>>(weights.spec().layers));
  seen.before_first_norm.resize(texts.size());
  seen.after_first_norm.resize(texts.size());
  ForwardObserver observer;
  observer.point = [&](std::size_t text, std::size_t layer, TracePoint point, MatrixView<const float> x) {
    if (point == TracePoint::out) seen.out.at(text).at(layer) = copy_of(x);
    if (layer > 0) return;
    if (point == TracePoint::norm_in) seen.before_first_norm.at(text) = copy_of(x);
    if (point == TracePoint::norm_out) seen.after_first_norm.at(text) = copy_of(x);
  };
  seen.result = forward(weights, texts, Executor(threads), observer);
  return seen;
}

// expected[index], if it is one of several matrices.
std::span<const double> part(const Tensor& expected, std::size_t index) {
  const std::size_t size = expected.values.size() / expected.shape.at(0);
  return std::span(expected.values).subspan(index * size, size);
}

void expect_close(std::span<const float> found, std::span<const double> expected, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double off = std::abs(static_cast<double>(found[i]) - expected[i]);
    worst = std::isfinite(off) ? std::max(worst, off) : INFINITY;
    largest = std::max(largest, std::abs(expected[i]));
  }
  EXPECT_LE(worst, kTolerance * largest)
      << what << " is off by " << worst / largest << " of its largest number";
}

bool has_norm_before_attention(const ModelSpec& spec) {
  return spec.block.placement != Placement::post;
}

class RecordedModel : public testing::TestWithParam<std::string> {
 protected:
  static constexpr std::size_t kTexts = 2;

  // Shards hold the weights of the model they are named after.
  static std::string values_of(std::size_t text, const std::string& what) {
    const std::string name = GetParam().substr(0, GetParam().find("-sharded"));
    return name + "." + std::to_string(text) + "." + what;
  }
  static std::vector<Ids> texts() {
    std::vector<Ids> all;
    for (std::size_t text = 0; text < kTexts; ++text) all.push_back(ids_of(recorded(values_of(text, "ids"))));
    return all;
  }

  const Checkpoint checkpoint_ = open_checkpoint(kModels + GetParam());
  const ModelWeights& weights_ = *checkpoint_.weights;
};

TEST_P(RecordedModel, HasTransformersTokensAfterEveryLayer) {
  const ModelSpec& spec = weights_.spec();
  const Pass seen = pass(weights_, texts());
  for (std::size_t text = 0; text < kTexts; ++text) {
    SCOPED_TRACE("text " + std::to_string(text));
    const Tensor& hidden = recorded(values_of(text, "hidden"));
    ASSERT_EQ(hidden.shape.at(0), spec.layers + 1);
    // A narrower embedding is mapped between the norm and the first layer, where no trace point is.
    if (spec.width_of_embedding() == spec.block.width) {
      const auto& first = has_norm_before_attention(spec) ? seen.before_first_norm : seen.after_first_norm;
      expect_close(first[text].values(), part(hidden, 0), "what enters the first layer");
    }
    for (std::size_t layer = 0; layer < spec.layers; ++layer)
      expect_close(seen.out[text][layer].values(), part(hidden, layer + 1), name_of(TracePoint::out, layer));
    expect_close(seen.result[text].values(), recorded(values_of(text, "final")).values, "the result");
  }
}

class RecordedHead : public RecordedModel {};

TEST_P(RecordedHead, HasTransformersLogits) {
  const ModelSpec& spec = weights_.spec();
  const HeadWeights head = weights_.head();
  const auto tokens = forward(weights_, texts(), Executor(1));
  for (std::size_t text = 0; text < kTexts; ++text) {
    const Matrix<float> found = logits(spec, head, tokens[text].view());
    EXPECT_EQ(found.cols(), spec.vocabulary);
    expect_close(found.values(), recorded(values_of(text, "logits")).values,
                 "logits of text " + std::to_string(text));
  }
}

TEST_P(RecordedHead, LosesOfNextTokensWhatTransformersLogitsSay) {
  const ModelSpec& spec = weights_.spec();
  const HeadWeights head = weights_.head();
  const auto all = texts();
  const Executor executor(2);
  const auto tokens = forward(weights_, all, executor);
  for (std::size_t text = 0; text < kTexts; ++text) {
    const Tensor& expected = recorded(values_of(text, "logits"));
    const auto losses = next_token_losses(spec, head, tokens[text].view(), all[text], executor);
    ASSERT_EQ(losses.size(), all[text].size() - 1);
    for (std::size_t i = 0; i < losses.size(); ++i) {
      const auto row = part(expected, i);
      const double top = *std::max_element(row.begin(), row.end());
      double sum = 0, largest = 0;
      for (const double logit : row)
        sum += std::exp(logit - top), largest = std::max(largest, std::abs(logit));
      // Two logits enter, each off by at most the tolerance of logits.
      EXPECT_NEAR(losses[i], std::log(sum) + top - row[all[text][i + 1]], 2 * kTolerance * (1 + largest))
          << "token " << i << " of text " << text;
    }
  }
}

TEST_P(RecordedModel, GivesTheSameBytesAloneAndOnSeveralThreads) {
  const auto together = forward(weights_, texts(), Executor(3));
  for (std::size_t text = 0; text < kTexts; ++text) {
    const std::vector<Ids> alone = {texts()[text]};
    EXPECT_EQ(forward(weights_, alone, Executor(1)).at(0).values(), together[text].values());
  }
}

class RecordedEncoder : public RecordedModel {};

TEST_P(RecordedEncoder, HasNoHead) {
  EXPECT_EQ(weights_.spec().head, ModelSpec::Head::none);
  EXPECT_THROW(weights_.head(), InputError);
}

const std::vector<std::string> kEncoders = {"t5", "t5-gated"};
const std::vector<std::string> kWithHead = {
    "bert",          "bert-sharded", "roberta",      "distilbert", "albert",  "gpt2", "llama",
    "llama-sharded", "llama-bias",   "llama-linear", "llama3",     "mistral", "qwen2"};

std::string test_name(const testing::TestParamInfo<std::string>& model) {
  std::string name = model.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(WithHead, RecordedModel, testing::ValuesIn(kWithHead), test_name);
INSTANTIATE_TEST_SUITE_P(Encoder, RecordedModel, testing::ValuesIn(kEncoders), test_name);
INSTANTIATE_TEST_SUITE_P(WithHead, RecordedHead, testing::ValuesIn(kWithHead), test_name);
INSTANTIATE_TEST_SUITE_P(Encoder, RecordedEncoder, testing::ValuesIn(kEncoders), test_name);

// Real weights are fetched on request only.
#define SKIP_UNLESS_FETCHED(name) \
  if (!fetch::is_fetched(name))   \
  GTEST_SKIP() << "the weights are not on this machine; `normscope data get " name "` fetches them"

Matrix<float> columns_of(const Matrix<float>& x, const std::vector<double>& columns) {
  Matrix<float> some(x.rows(), columns.size());
  for (std::size_t i = 0; i < x.rows(); ++i)
    for (std::size_t c = 0; c < columns.size(); ++c) some(i, c) = x(i, static_cast<std::size_t>(columns[c]));
  return some;
}

std::vector<float> norms_of(const Matrix<float>& x) {
  std::vector<float> norms;
  for (std::size_t i = 0; i < x.rows(); ++i) {
    double squares = 0;
    for (const float value : x[i]) squares += static_cast<double>(value) * value;
    norms.push_back(static_cast<float>(std::sqrt(squares)));
  }
  return norms;
}

void expect_recorded_tokens(const ModelWeights& weights, const std::string& name) {
  const auto& columns = recorded_of_real_weights(name + ".columns").values;
  const Tensor& hidden = recorded_of_real_weights(name + ".hidden");
  const Tensor& norms = recorded_of_real_weights(name + ".norms");
  const Pass seen = pass(weights, {ids_of(recorded_of_real_weights(name + ".ids"))});
  ASSERT_EQ(hidden.shape.at(0), weights.spec().layers + 1);
  const auto& first =
      has_norm_before_attention(weights.spec()) ? seen.before_first_norm : seen.after_first_norm;
  for (std::size_t layer = 0; layer <= weights.spec().layers; ++layer) {
    SCOPED_TRACE("after " + std::to_string(layer) + " layers");
    const Matrix<float>& tokens = layer == 0 ? first.at(0) : seen.out.at(0).at(layer - 1);
    expect_close(columns_of(tokens, columns).values(), part(hidden, layer), "the recorded columns");
    expect_close(norms_of(tokens), part(norms, layer), "the norms");
  }
  expect_close(columns_of(seen.result.at(0), columns).values(),
               recorded_of_real_weights(name + ".final").values, "the result");
}

Ids encode(const Checkpoint& checkpoint, const std::string& text) {
  Ids ids;
  for (const Token& token : checkpoint.tokenizer.value().encode(text)) ids.push_back(token.id);
  return ids;
}

TEST(RealMiniLM, HasTransformersTokensAfterEveryLayer) {
  SKIP_UNLESS_FETCHED("minilm");
  const Checkpoint checkpoint = open_checkpoint("minilm");
  expect_recorded_tokens(*checkpoint.weights, "minilm");
  EXPECT_EQ(
      encode(checkpoint, "Some keys lie between the others, and no query of attention can select them."),
      ids_of(recorded_of_real_weights("minilm.ids")));
}

TEST(RealMiniLM, FindsSimilarSentencesSimilar) {
  SKIP_UNLESS_FETCHED("minilm");
  const Checkpoint checkpoint = open_checkpoint("minilm");
  std::vector<Ids> texts;
  for (const char* sentence : {"That is a happy person", "That is a very happy person", "That is a happy dog",
                               "Today is a sunny day"})
    texts.push_back(encode(checkpoint, sentence));
  std::vector<std::vector<double>> pooled;
  for (const Matrix<float>& tokens : forward(*checkpoint.weights, texts, Executor(2))) {
    std::vector<double> sum(tokens.cols());
    for (std::size_t i = 0; i < tokens.rows(); ++i)
      for (std::size_t c = 0; c < tokens.cols(); ++c) sum[c] += tokens(i, c);
    pooled.push_back(sum);
  }
  const auto dot = [](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  };
  const std::vector<double> published = {0.943, 0.695, 0.257};
  for (std::size_t k = 0; k < published.size(); ++k) {
    const double cosine = dot(pooled[0], pooled[k + 1]) /
                          std::sqrt(dot(pooled[0], pooled[0]) * dot(pooled[k + 1], pooled[k + 1]));
    EXPECT_NEAR(cosine, recorded_of_real_weights("minilm.cosines").values.at(k), kTolerance) << k;
    EXPECT_NEAR(cosine, published[k], 0.0005 + kTolerance) << k;
  }
}

TEST(RealStories15M, HasTransformersTokensAfterEveryLayer) {
  SKIP_UNLESS_FETCHED("stories15m");
  expect_recorded_tokens(*open_checkpoint("stories15m").weights, "stories15m");
}

TEST(RealStories15M, ContinuesOnceUponATimeAsTransformersDoes) {
  SKIP_UNLESS_FETCHED("stories15m");
  const Checkpoint checkpoint = open_checkpoint("stories15m");
  Ids expected = encode(checkpoint, "Once upon a time");
  ASSERT_EQ(expected, ids_of(recorded_of_real_weights("stories15m.ids")));
  const Ids start = expected, more = ids_of(recorded_of_real_weights("stories15m.continuation"));
  expected.insert(expected.end(), more.begin(), more.end());
  const Ids found = continue_greedily(*checkpoint.weights, start, more.size(), std::nullopt, Executor(2));
  EXPECT_EQ(found, expected);
  EXPECT_EQ(checkpoint.tokenizer->decode(found),
            "Once upon a time, there was a little girl named Lily. She loved to play outside in the "
            "sunshine. One day, "
            "she saw a big, red ball in the sky. It was the sun!");
}

}  // namespace
}  // namespace normscope

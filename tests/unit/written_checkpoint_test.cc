// Checkpoints written here: read back number for number, in the layout of their family, and what is refused.
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>

#include "normscope/executor.h"
#include "normscope/scan.h"
#include "support/filled_model.h"
#include "support/opened_checkpoint.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Ids = std::vector<std::uint32_t>;

const std::vector<Ids> kTexts = {{3, 1, 4, 1, 5, 9, 2, 6}, {29, 0, 7}};

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
json config_of(const fs::path& directory) {
  return json::parse(content(directory / "config.json"));
}

void expect_same(const Matrix<float>& got, const Matrix<float>& expected, const char* what) {
  EXPECT_EQ(got.rows(), expected.rows()) << what;
  EXPECT_EQ(got.values(), expected.values()) << what;
}

void expect_same_layer(const BlockWeights<float>& got, const BlockWeights<float>& expected) {
  expect_same(got.query_key_value, expected.query_key_value, "query, key, value");
  expect_same(got.output, expected.output, "output");
  expect_same(got.up, expected.up, "up");
  expect_same(got.down, expected.down, "down");
  EXPECT_EQ(got.query_key_value_bias, expected.query_key_value_bias);
  EXPECT_EQ(got.output_bias, expected.output_bias);
  EXPECT_EQ(got.up_bias, expected.up_bias);
  EXPECT_EQ(got.down_bias, expected.down_bias);
  EXPECT_EQ(got.attention_gain, expected.attention_gain);
  EXPECT_EQ(got.attention_bias, expected.attention_bias);
  EXPECT_EQ(got.feed_forward_gain, expected.feed_forward_gain);
  EXPECT_EQ(got.feed_forward_bias, expected.feed_forward_bias);
}

void expect_same_weights(const ModelWeights& got, const ModelWeights& expected) {
  expect_same(got.words(), expected.words(), "words");
  expect_same(got.positions(), expected.positions(), "positions");
  expect_same(got.types(), expected.types(), "types");
  EXPECT_EQ(got.embedding().norm.gain, expected.embedding().norm.gain);
  EXPECT_EQ(got.embedding().norm.bias, expected.embedding().norm.bias);
  for (std::size_t l = 0; l < expected.spec().layers; ++l) expect_same_layer(got.layer(l), expected.layer(l));
  EXPECT_EQ(got.final_norm().gain, expected.final_norm().gain);
  EXPECT_EQ(got.final_norm().bias, expected.final_norm().bias);
}

void expect_same_norms(const ModelSpec& got, const ModelSpec& expected) {
  EXPECT_EQ(got.block.norm, expected.block.norm);
  EXPECT_EQ(got.block.feed_forward_norm.value_or(got.block.norm),
            expected.block.feed_forward_norm.value_or(expected.block.norm));
  EXPECT_EQ(got.embedding_norm, expected.embedding_norm);
  EXPECT_EQ(got.final_norm, expected.final_norm);
}

void expect_same_tokens(const ModelWeights& got, const ModelWeights& expected) {
  const Executor executor(1);
  const auto tokens = forward(got, kTexts, executor), own = forward(expected, kTexts, executor);
  for (std::size_t t = 0; t < kTexts.size(); ++t) EXPECT_EQ(tokens[t].values(), own[t].values());
}

class WrittenCheckpoint : public ::testing::Test {
 protected:
  Checkpoint written(const ModelWeights& model, const CheckpointExtras& extras = {}) const {
    write_checkpoint(place_, model, extras);
    return open_checkpoint(place_.string());
  }
  std::string refusal(const ModelWeights& model, const CheckpointExtras& extras = {}) const {
    return message_of([&] { write_checkpoint(place_, model, extras); });
  }
  // The refusal of a directory whose config.json was changed.
  std::string refusal_after(const ModelWeights& model, const std::function<void(json&)>& change) const {
    write_checkpoint(place_, model);
    json config = config_of(place_);
    change(config);
    std::ofstream(place_ / "config.json") << config.dump();
    return message_of([&] { open_checkpoint(place_.string()); });
  }

  const TemporaryDirectory temporary_;
  const fs::path place_ = temporary_.path() / "model";
};

TEST_F(WrittenCheckpoint, IsReadBackNumberForNumberWithEveryNorm) {
  for (const std::string_view name : norm_names_without_normals())
    for (const bool affine : {true, false})
      for (const bool bert : {true, false}) {
        SCOPED_TRACE(std::string(name) + (affine ? " affine" : "") + (bert ? " bert" : " gpt2"));
        const std::string norm = name.find(':') == std::string_view::npos ? std::string(name) : "qknorm:2";
        const NormSpec spec = norm_for_model(norm, affine, 1e-5);
        const FilledModel model(bert ? small_bert(spec) : small_gpt2(spec));
        const Checkpoint checkpoint = written(model);
        expect_same_tokens(*checkpoint.weights, model);
        const bool plain = norm == "layernorm";
        EXPECT_EQ(fs::exists(place_ / "model.safetensors"), plain);
        EXPECT_EQ(config_of(place_)["model_type"].get<std::string>(),
                  std::string(plain ? "" : "normscope-") + (bert ? "bert" : "gpt2"));
        if (plain && !affine) continue;  // gains of 1 and biases of 0 are written then
        expect_same_norms(checkpoint.weights->spec(), model.spec());
        expect_same_weights(*checkpoint.weights, model);
      }
}

TEST_F(WrittenCheckpoint, ANormWithoutAffinePartGetsGainsOfOneAndBiasesOfZero) {
  ModelSpec spec = small_gpt2(norm_for_model("layernorm"));
  spec.block.feed_forward_norm = spec.block.norm;
  spec.block.norm.affine = false;  // as published: frozen before attention only
  const FilledModel model(spec);
  const Checkpoint checkpoint = written(model);
  EXPECT_EQ(config_of(place_)["model_type"], "gpt2");
  const BlockWeights<float> layer = checkpoint.weights->layer(1);
  EXPECT_EQ(layer.attention_gain, std::vector<float>(8, 1));
  EXPECT_EQ(layer.attention_bias, std::vector<float>(8, 0));
  EXPECT_EQ(layer.feed_forward_gain, model.layer(1).feed_forward_gain);
  expect_same_tokens(*checkpoint.weights, model);
}

TEST_F(WrittenCheckpoint, EachNormMayBeAnother) {
  ModelSpec spec = small_bert(norm_for_model("center", true, 0));
  spec.block.feed_forward_norm = norm_for_model("rmsnorm", false, 1e-3);
  spec.embedding_norm = norm_for_model("none", false, 0);
  const FilledModel model(spec);
  const Checkpoint checkpoint = written(model);
  expect_same_norms(checkpoint.weights->spec(), spec);
  expect_same_weights(*checkpoint.weights, model);
  expect_same_tokens(*checkpoint.weights, model);
  const json norms = config_of(place_)["normscope_norms"];
  EXPECT_EQ(norms["attention"]["norm"], "center");
  EXPECT_EQ(norms["feed_forward"]["affine"], false);
  EXPECT_FALSE(norms.contains("final"));
}

TEST_F(WrittenCheckpoint, HeadsAreWrittenAndReadBack) {
  ModelSpec masked = small_bert(norm_for_model("layernorm", true, 1e-12));
  masked.head = ModelSpec::Head::transform;
  ModelSpec untied = small_gpt2(norm_for_model("layernorm"));
  untied.tied = false;
  for (const ModelSpec& spec : {masked, untied, small_gpt2(norm_for_model("center"))}) {
    const FilledModel model(spec);
    const Checkpoint checkpoint = written(model);
    ASSERT_EQ(checkpoint.weights->spec().head, spec.head);
    EXPECT_EQ(checkpoint.weights->spec().tied, spec.tied);
    const HeadWeights got = checkpoint.weights->head(), expected = model.head();
    expect_same(got.output, expected.output, "output");
    expect_same(got.transform, expected.transform, "transform");
    EXPECT_EQ(got.bias, expected.bias);
    EXPECT_EQ(got.transform_norm.gain, expected.transform_norm.gain);
    EXPECT_EQ(got.transform_norm.bias, expected.transform_norm.bias);
  }
  ModelSpec headless = small_gpt2(norm_for_model("layernorm"));
  headless.head = ModelSpec::Head::none;
  headless.tied = false;
  EXPECT_EQ(written(FilledModel(headless)).weights->spec().head, ModelSpec::Head::none);
}

// What the Hugging Face library wrote is written again with the same tensors.
TEST_F(WrittenCheckpoint, HoldsTheTensorsOfTheOneItCameFrom) {
  TinyCheckpoint bert = tiny_bert();
  bert.map("cls.predictions.transform.dense", kTinyWidth, kTinyWidth);
  bert.norm("cls.predictions.transform.LayerNorm", kTinyWidth);
  bert.add("cls.predictions.bias", {kTinyWords});
  for (const TinyCheckpoint& from : {bert, tiny_gpt2()}) {
    write_checkpoint(place_, *opened(from).weights);
    const TensorFile file = TensorFile::open((place_ / "model.safetensors").string());
    EXPECT_EQ(file.metadata().at("format"), "pt");
    EXPECT_EQ(file.tensors().size(), from.tensors.size());
    for (const auto& [name, tensor] : from.tensors) {
      const Tensor got = file.read(name);
      EXPECT_EQ(got.dtype, DType::float32) << name;
      EXPECT_EQ(got.shape, tensor.shape) << name;
      EXPECT_EQ(got.values, tensor.values) << name;
    }
  }
}

TEST_F(WrittenCheckpoint, OfDistilbertIsReadBackToo) {
  ModelSpec spec = small_bert(norm_for_model("layernorm", true, 1e-12));
  spec.family = "distilbert";
  const FilledModel model(spec);
  const Checkpoint checkpoint = written(model);
  expect_same_weights(*checkpoint.weights, model);
  expect_same_tokens(*checkpoint.weights, model);
}

TEST_F(WrittenCheckpoint, OfAClassifierHoldsItsHeadAndLabels) {
  const FilledModel model(small_bert(norm_for_model("layernorm", true, 1e-12)));
  CheckpointExtras extras;
  extras.labels = {"negative", "positive"};
  extras.tensors = {{"classifier.weight", DType::float32, {2, 8}, std::vector<double>(16, 0.25)},
                    {"classifier.bias", DType::float32, {2}, {1, -1}}};
  extras.dropout = 0.1;
  extras.padding = 0;
  const Checkpoint checkpoint = written(model, extras);
  expect_same_weights(*checkpoint.weights, model);
  const json config = config_of(place_);
  EXPECT_EQ(config["architectures"], json({"BertForSequenceClassification"}));
  EXPECT_EQ(config["num_labels"], 2);
  EXPECT_EQ(config["id2label"]["1"], "positive");
  EXPECT_EQ(config["label2id"]["negative"], 0);
  EXPECT_EQ(config["hidden_dropout_prob"], 0.1);
  EXPECT_EQ(config["pad_token_id"], 0);
  const TensorFile file = TensorFile::open((place_ / "model.safetensors").string());
  EXPECT_EQ(file.read("classifier.bias").values, (std::vector<double>{1, -1}));
}

TEST_F(WrittenCheckpoint, HoldsTheTokenizerItWasGiven) {
  const std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nkeys\n";
  const FilledModel model(small_bert(norm_for_model("layernorm")));
  const Checkpoint checkpoint = written(model, {.files = {{"vocab.txt", vocabulary}}});
  EXPECT_EQ(content(place_ / "vocab.txt"), vocabulary);
  EXPECT_TRUE(checkpoint.tokenizer.has_value()) << checkpoint.no_tokenizer;
  for (const char* name :
       {"", ".", "..", "../vocab.txt", "a/b", "config.json", "model.safetensors", "x.safetensors"})
    expect_mentions(refusal(model, {.files = {{name, "x"}}}), {"cannot hold a file named"});
}

TEST_F(WrittenCheckpoint, TakesThePlaceOfAnOlderOneAndOfNothingElse) {
  const FilledModel first(small_gpt2(norm_for_model("layernorm")), 1),
      second(small_gpt2(norm_for_model("center")), 2);
  fs::create_directory(place_);  // an empty directory is a place too
  write_checkpoint(place_ / "", first, {.files = {{"notes.txt", "x"}}});
  const Checkpoint older = open_checkpoint(place_.string());
  expect_same_weights(*written(second).weights, second);
  expect_same_weights(*older.weights, first);  // who has it open keeps it
  EXPECT_FALSE(fs::exists(place_ / "notes.txt"));
  EXPECT_FALSE(fs::exists(place_ / "model.safetensors"));
  EXPECT_EQ(temporary_.entries(), 1u);

  const fs::path link = temporary_.path() / "link";
  fs::create_symlink("model", link);
  write_checkpoint(link, first);
  EXPECT_TRUE(fs::is_symlink(link));
  expect_same_weights(*open_checkpoint(place_.string()).weights, first);

  fs::create_directory(place_ / "folder");
  expect_mentions(refusal(first), {"holds files that are not a checkpoint written by normscope"});
  fs::remove(place_ / "folder");
  std::ofstream(place_ / "config.json") << R"({"model_type": "gpt2"})";
  expect_mentions(refusal(first), {"holds files that are not a checkpoint written by normscope"});
  EXPECT_TRUE(fs::exists(place_ / "model.safetensors"));
}

TEST_F(WrittenCheckpoint, APlaceThatCannotBeIsRefused) {
  const FilledModel model(small_gpt2(norm_for_model("layernorm")));
  temporary_.file("f", "x");
  for (const fs::path& place :
       {temporary_.path() / "f", temporary_.path() / "none" / "model", temporary_.path() / "f" / "model",
        fs::path(""), fs::path("."), fs::path("/")})
    EXPECT_THROW(write_checkpoint(place, model), InputError) << place;
  EXPECT_EQ(temporary_.entries(), 1u);
}

TEST_F(WrittenCheckpoint, WhatTheLayoutCannotHoldIsRefused) {
  const NormSpec norm = norm_for_model("layernorm");
  const auto refused = [&](const auto& change, const std::vector<std::string>& facts) {
    ModelSpec spec = small_gpt2(norm);
    change(spec);
    expect_mentions(refusal(FilledModel(spec)), facts);
  };
  refused([](ModelSpec& s) { s.family = "llama"; }, {"'llama'", "gpt2", "bert"});
  refused([](ModelSpec& s) { s.family = ""; }, {"not a family whose checkpoints are written"});
  refused([](ModelSpec& s) { s.block.placement = Placement::sandwich; }, {"where norms stand"});
  refused([](ModelSpec& s) { s.causal = false; }, {"who attends to whom"});
  refused([](ModelSpec& s) { s.block.skip = false; }, {"skip connections"});
  refused([](ModelSpec& s) { s.block.normalize_query_key = true; }, {"qknorm"});
  refused([](ModelSpec& s) { s.block.temperature = 5; }, {"temperature"});
  refused([&](ModelSpec& s) { s.embedding_norm = norm; }, {"a norm of embeddings"});
  refused([](ModelSpec& s) { s.window = 3; }, {"window"});
  refused([](ModelSpec& s) { s.positions = 0; }, {"n_positions = 0"});
  EXPECT_FALSE(fs::exists(place_));
}

TEST_F(WrittenCheckpoint, WeightsThatAreNotFiniteAreRefusedByName) {
  class Broken : public FilledModel {
   public:
    using FilledModel::FilledModel;
    BlockWeights<float> layer(std::size_t index) const override {
      BlockWeights<float> weights = FilledModel::layer(index);
      if (index == 1) weights.up_bias[3] = std::numeric_limits<float>::quiet_NaN();
      return weights;
    }
  };
  const FilledModel good(small_gpt2(norm_for_model("layernorm")));
  write_checkpoint(place_, good);
  expect_mentions(refusal(Broken(good.spec())), {"transformer.h.1.mlp.c_fc.bias", "nan at number 3"});
  expect_same_weights(*open_checkpoint(place_.string()).weights, good);
  EXPECT_EQ(temporary_.entries(), 1u);
}

TEST_F(WrittenCheckpoint, AHostileConfigIsRefused) {
  const FilledModel model(small_gpt2(norm_for_model("center")));
  const auto norms = [](json& config) -> json& { return config["normscope_norms"]; };
  const auto refused = [&](const std::function<void(json&)>& change, const std::vector<std::string>& facts) {
    expect_mentions(refusal_after(model, change), facts);
  };
  refused([&](json& c) { norms(c)["attention"]["norm"] = "batchnorm"; },
          {"config.json", "normscope_norms.attention.norm = \"batchnorm\"", "layernorm"});
  refused([&](json& c) { norms(c)["attention"]["norm"] = "normals:2"; }, {"normals:2"});
  refused([&](json& c) { norms(c)["final"]["norm"] = "qknorm:3"; }, {"divide the width 8"});
  refused([&](json& c) { norms(c)["final"]["norm"] = 7; }, {"normscope_norms.final.norm = 7"});
  refused([&](json& c) { norms(c)["final"]["eps"] = -1; }, {"eps = -1"});
  refused([&](json& c) { norms(c)["final"]["affine"] = "yes"; }, {"affine"});
  refused([&](json& c) { norms(c)["final"] = "center"; }, {"normscope_norms.final", "an object"});
  refused([&](json& c) { norms(c).erase("feed_forward"); }, {"does not say normscope_norms.feed_forward"});
  refused([&](json& c) { norms(c)["embedding"] = {{"norm", "center"}}; }, {"gpt2 has no norm there"});
  refused([&](json& c) { c.erase("normscope_norms"); }, {"does not say normscope_norms"});
  refused([&](json& c) { c["normscope_norms"] = 3; }, {"normscope_norms = 3"});
  refused([&](json& c) { c["model_type"] = "gpt2"; }, {"model_type", "normscope-gpt2"});
  refused([&](json& c) { c["model_type"] = "normscope-llama"; }, {"normscope-llama", "normscope-bert"});
  // Tensors that do not fit what the norms say.
  refused([&](json& c) { norms(c)["attention"]["affine"] = false; },
          {"transformer.h.0.ln_1.weight", "that norm has no gain"});
  const FilledModel bare(small_gpt2(norm_for_model("center", false)));
  expect_mentions(refusal_after(bare, [&](json& c) { norms(c)["attention"]["affine"] = true; }),
                  {"holds no tensor 'transformer.h.0.ln_1.weight'"});
}

// The paper's model without scaling: attention cannot select every word, and the scan of its checkpoint sees
// it.
TEST_F(WrittenCheckpoint, ScansAsTheModelInMemoryDoes) {
  ModelSpec spec = small_gpt2(norm_for_model("center", false, 0));
  spec.block.width = 4;
  spec.block.heads = 2;
  const auto model = random_model(spec, 3);
  const Checkpoint checkpoint = written(*model);
  const Executor executor(1);
  const std::vector<Ids> windows = {{3, 1, 4, 2, 5, 9, 6, 8, 7, 11, 10, 12}};
  const auto got = scan(*checkpoint.weights, windows, {}, executor),
             expected = scan(*model, windows, {}, executor);
  std::size_t unselectable = 0;
  for (std::size_t l = 0; l < 2; ++l) {
    const ScanLayer &layer = got[0].layers[l], &own = expected[0].layers[l];
    EXPECT_EQ(layer.model.verdicts, own.model.verdicts);
    EXPECT_EQ(layer.heads[1].keys.verdicts, own.heads[1].keys.verdicts);
    unselectable += layer.model.count(Verdict::unselectable);
  }
  EXPECT_GT(unselectable, 0u);
}

}  // namespace
}  // namespace normscope

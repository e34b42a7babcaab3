// Shapes, names and layouts of every family, and what is refused.
#include <cmath>

#include "support/opened_checkpoint.h"
#include "support/tensor_bytes.h"

namespace normscope {
namespace {

using nlohmann::json;
using Ids = std::vector<std::uint32_t>;

std::vector<float> sum_of(std::initializer_list<std::vector<float>> terms) {
  std::vector<float> sum(terms.begin()->size());
  for (const std::vector<float>& term : terms)
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += term[k];
  return sum;
}

std::vector<float> values_of(std::span<const float> row) {
  return {row.begin(), row.end()};
}

TEST(CheckpointBert, HasTheShapeConfigJsonSays) {
  const Checkpoint checkpoint = opened(tiny_bert());
  const ModelSpec& spec = checkpoint.weights->spec();
  EXPECT_EQ(spec.family, "bert");
  EXPECT_EQ(spec.vocabulary, kTinyWords);
  EXPECT_EQ(spec.layers, 2u);
  EXPECT_EQ(spec.positions, kTinyPositions);
  EXPECT_EQ(spec.block.heads, 2u);
  EXPECT_EQ(spec.block.feed_forward, kTinyHidden);
  EXPECT_EQ(spec.block.placement, Placement::post);
  EXPECT_EQ(name_of(spec.block.norm), "layernorm");
  EXPECT_TRUE(spec.block.norm.affine);
  EXPECT_EQ(spec.block.norm.eps, 1e-12);
  EXPECT_EQ(spec.embedding_norm, spec.block.norm);
  EXPECT_EQ(name_of(spec.final_norm), "none");
  EXPECT_FALSE(spec.causal);
  EXPECT_EQ(spec.head, ModelSpec::Head::none);
}

TEST(CheckpointBert, LinearMapsAreTransposedAndQueriesKeysAndValuesStandSideBySide) {
  const TinyCheckpoint model = tiny_bert();
  const BlockWeights<float> layer = opened(model).weights->layer(1);
  const std::string at = "bert.encoder.layer.1.";
  expect_map(model, at + "attention.self.query.weight", layer.query_key_value, 0);
  expect_map(model, at + "attention.self.key.weight", layer.query_key_value, 8);
  expect_map(model, at + "attention.self.value.weight", layer.query_key_value, 16);
  expect_map(model, at + "attention.output.dense.weight", layer.output);
  expect_map(model, at + "intermediate.dense.weight", layer.up);
  expect_map(model, at + "output.dense.weight", layer.down);
  const std::vector<float> bias = model.vector(at + "attention.self.value.bias");
  ASSERT_EQ(layer.query_key_value_bias.size(), 24u);
  EXPECT_TRUE(std::equal(bias.begin(), bias.end(), layer.query_key_value_bias.begin() + 16));
  EXPECT_EQ(layer.up_bias, model.vector(at + "intermediate.dense.bias"));
  EXPECT_EQ(layer.attention_gain, model.vector(at + "attention.output.LayerNorm.weight"));
  EXPECT_EQ(layer.feed_forward_bias, model.vector(at + "output.LayerNorm.bias"));
}

TEST(CheckpointBert, EmbeddingsAddWordTypeAndPosition) {
  const TinyCheckpoint model = tiny_bert("");
  const Matrix<float> sum = opened(model).weights->embeddings(Ids{7, 3});
  EXPECT_EQ(values_of(sum[1]), sum_of({model.row("embeddings.word_embeddings.weight", 3),
                                       model.row("embeddings.token_type_embeddings.weight", 0),
                                       model.row("embeddings.position_embeddings.weight", 1)}));
}

TEST(CheckpointBert, RefusesIdsBeyondTheVocabularyAndTextsBeyondThePositions) {
  const Checkpoint checkpoint = opened(tiny_bert());
  expect_mentions(message_of([&] { checkpoint.weights->embeddings(Ids{10}); }), {"10", "10 tokens"});
  expect_mentions(message_of([&] { checkpoint.weights->embeddings(Ids(7, 0)); }), {"7 tokens", "at most 6"});
  expect_mentions(message_of([&] { checkpoint.weights->layer(2); }), {"Layer 2", "has 2"});
}

TEST(CheckpointBert, OldFilesCallGainAndBiasGammaAndBeta) {
  TinyCheckpoint model = tiny_bert();
  for (const auto& [name, tensor] : tiny_bert().tensors) {
    const std::size_t norm = name.find("LayerNorm.");
    if (norm == std::string::npos) continue;
    model.rename(name, name.substr(0, norm + 10) + (name.ends_with("weight") ? "gamma" : "beta"));
  }
  const Checkpoint checkpoint = opened(model);
  EXPECT_EQ(checkpoint.weights->embedding().norm.gain, model.vector("bert.embeddings.LayerNorm.gamma"));
  EXPECT_EQ(checkpoint.weights->layer(0).attention_bias,
            model.vector("bert.encoder.layer.0.attention.output.LayerNorm.beta"));
}

TEST(CheckpointBert, HeadTransformsAndIsTiedToTheWordEmbedding) {
  TinyCheckpoint model = tiny_bert();
  model.map("cls.predictions.transform.dense", kTinyWidth, kTinyWidth);
  model.norm("cls.predictions.transform.LayerNorm", kTinyWidth);
  model.add("cls.predictions.bias", {kTinyWords});
  const Checkpoint checkpoint = opened(model);
  EXPECT_EQ(checkpoint.weights->spec().head, ModelSpec::Head::transform);
  EXPECT_TRUE(checkpoint.weights->spec().tied);
  const HeadWeights head = checkpoint.weights->head();
  expect_map(model, "cls.predictions.transform.dense.weight", head.transform);
  EXPECT_EQ(head.output.values(), model.vector("bert.embeddings.word_embeddings.weight"));
  EXPECT_EQ(head.bias, model.vector("cls.predictions.bias"));
  EXPECT_EQ(head.transform_norm.gain, model.vector("cls.predictions.transform.LayerNorm.weight"));
  EXPECT_EQ(head.activation, Activation::gelu);
}

TEST(CheckpointBert, UntiedHeadIsItsOwnMatrixAndMayNotBeMissing) {
  TinyCheckpoint model = tiny_bert();
  model.map("cls.predictions.transform.dense", kTinyWidth, kTinyWidth);
  model.norm("cls.predictions.transform.LayerNorm", kTinyWidth);
  model.config["tie_word_embeddings"] = false;
  model.map("cls.predictions.decoder", kTinyWidth, kTinyWords);
  const HeadWeights head = opened(model).weights->head();
  EXPECT_EQ(head.output.values(), model.vector("cls.predictions.decoder.weight"));
  EXPECT_EQ(head.bias, model.vector("cls.predictions.decoder.bias"));
  model.tensors.erase("cls.predictions.decoder.weight");
  expect_mentions(refusal(model), {"cls.predictions.decoder.weight", "model.safetensors"});
}

TEST(CheckpointBert, WithoutAHeadSaysSo) {
  const Checkpoint checkpoint = opened(tiny_bert());
  expect_mentions(message_of([&] { checkpoint.weights->head(); }), {"no head"});
}

TEST(CheckpointRoberta, CountsPositionsFromAfterThePaddingAndNotThePadding) {
  TinyCheckpoint model = tiny_bert("roberta.");
  model.config["model_type"] = "roberta";
  model.config["pad_token_id"] = 1;
  const Checkpoint checkpoint = opened(model);
  EXPECT_EQ(checkpoint.weights->spec().positions, kTinyPositions - 2);
  const Matrix<float> sum = checkpoint.weights->embeddings(Ids{5, 1, 6});
  const std::string at = "roberta.embeddings.";
  const auto expected = [&](std::size_t word, std::size_t position) {
    return sum_of({model.row(at + "word_embeddings.weight", word),
                   model.row(at + "token_type_embeddings.weight", 0),
                   model.row(at + "position_embeddings.weight", position)});
  };
  EXPECT_EQ(values_of(sum[0]), expected(5, 2));
  EXPECT_EQ(values_of(sum[1]), expected(1, 1));
  EXPECT_EQ(values_of(sum[2]), expected(6, 3));
}

TEST(CheckpointRoberta, HeadAlwaysUsesGelu) {
  TinyCheckpoint model = tiny_bert("roberta.");
  model.config["model_type"] = "roberta";
  model.config["hidden_act"] = "relu";
  model.map("lm_head.dense", kTinyWidth, kTinyWidth);
  model.norm("lm_head.layer_norm", kTinyWidth);
  model.add("lm_head.bias", {kTinyWords});
  const Checkpoint checkpoint = opened(model);
  EXPECT_EQ(checkpoint.weights->spec().block.activation, Activation::relu);
  EXPECT_EQ(checkpoint.weights->head().activation, Activation::gelu);
}

TEST(CheckpointDistilbert, HasNoTypesAndItsOwnNames) {
  TinyCheckpoint model;
  model.config = {{"model_type", "distilbert"},
                  {"dim", 8},
                  {"n_layers", 1},
                  {"n_heads", 2},
                  {"hidden_dim", 12},
                  {"max_position_embeddings", 6},
                  {"vocab_size", 10},
                  {"activation", "gelu"}};
  const std::string at = "distilbert.transformer.layer.0.";
  model.add("distilbert.embeddings.word_embeddings.weight", {10, 8});
  model.add("distilbert.embeddings.position_embeddings.weight", {6, 8});
  model.norm("distilbert.embeddings.LayerNorm", 8);
  for (const char* map : {"q_lin", "k_lin", "v_lin", "out_lin"}) model.map(at + "attention." + map, 8, 8);
  model.norm(at + "sa_layer_norm", 8);
  model.map(at + "ffn.lin1", 8, 12);
  model.map(at + "ffn.lin2", 12, 8);
  model.norm(at + "output_layer_norm", 8);
  model.map("vocab_transform", 8, 8);
  model.norm("vocab_layer_norm", 8);
  model.map("vocab_projector", 8, 10);
  const Checkpoint checkpoint = opened(model);
  const BlockWeights<float> layer = checkpoint.weights->layer(0);
  expect_map(model, at + "attention.k_lin.weight", layer.query_key_value, 8);
  expect_map(model, at + "ffn.lin2.weight", layer.down);
  EXPECT_EQ(values_of(checkpoint.weights->embeddings(Ids{4})[0]),
            sum_of({model.row("distilbert.embeddings.word_embeddings.weight", 4),
                    model.row("distilbert.embeddings.position_embeddings.weight", 0)}));
  EXPECT_EQ(checkpoint.weights->spec().block.norm.eps, 1e-12);
  // Tied unless config.json says otherwise, whatever the file holds.
  EXPECT_EQ(checkpoint.weights->head().output.values(),
            model.vector("distilbert.embeddings.word_embeddings.weight"));
}

TEST(CheckpointAlbert, LayersOfAGroupShareWeightsAndTheEmbeddingIsNarrower) {
  TinyCheckpoint model;
  model.config = {{"model_type", "albert"},  {"hidden_size", 8},
                  {"embedding_size", 4},     {"num_hidden_layers", 4},
                  {"num_hidden_groups", 2},  {"num_attention_heads", 2},
                  {"intermediate_size", 12}, {"max_position_embeddings", 6},
                  {"type_vocab_size", 2},    {"vocab_size", 10}};
  model.add("albert.embeddings.word_embeddings.weight", {10, 4});
  model.add("albert.embeddings.position_embeddings.weight", {6, 4});
  model.add("albert.embeddings.token_type_embeddings.weight", {2, 4});
  model.norm("albert.embeddings.LayerNorm", 4);
  model.map("albert.encoder.embedding_hidden_mapping_in", 4, 8);
  const auto group = [](int number) {
    return "albert.encoder.albert_layer_groups." + std::to_string(number) + ".albert_layers.0.";
  };
  for (int number : {0, 1}) {
    for (const char* map : {"query", "key", "value", "dense"})
      model.map(group(number) + "attention." + map, 8, 8);
    model.norm(group(number) + "attention.LayerNorm", 8);
    model.map(group(number) + "ffn", 8, 12);
    model.map(group(number) + "ffn_output", 12, 8);
    model.norm(group(number) + "full_layer_layer_norm", 8);
  }
  model.map("predictions.dense", 8, 4);
  model.norm("predictions.LayerNorm", 4);
  model.add("predictions.bias", {10});
  const Checkpoint checkpoint = opened(model);
  EXPECT_EQ(checkpoint.weights->spec().embedding_width, 4u);
  EXPECT_EQ(checkpoint.weights->spec().block.activation, Activation::gelu_tanh);
  expect_map(model, "albert.encoder.embedding_hidden_mapping_in.weight", checkpoint.weights->embedding().map);
  expect_map(model, group(0) + "ffn.weight", checkpoint.weights->layer(1).up);
  expect_map(model, group(1) + "ffn.weight", checkpoint.weights->layer(2).up);
  // The same shape before training shares them too.
  const auto drawn = random_model(checkpoint.weights->spec(), 1);
  EXPECT_EQ(drawn->layer(0).up.values(), drawn->layer(1).up.values());
  EXPECT_NE(drawn->layer(1).up.values(), drawn->layer(2).up.values());
  const HeadWeights head = checkpoint.weights->head();
  expect_map(model, "predictions.dense.weight", head.transform);
  EXPECT_EQ(head.output.cols(), 4u);
  model.config["inner_group_num"] = 2;
  expect_mentions(refusal(model), {"inner_group_num = 2", "1"});
}

TEST(CheckpointGpt2, MatricesAreStoredInByOutAndFused) {
  for (const std::string prefix : {"transformer.", ""}) {
    const TinyCheckpoint model = tiny_gpt2(prefix);
    const Checkpoint checkpoint = opened(model);
    const ModelSpec& spec = checkpoint.weights->spec();
    EXPECT_TRUE(spec.causal);
    EXPECT_EQ(spec.block.placement, Placement::pre);
    EXPECT_EQ(spec.block.activation, Activation::gelu_tanh);
    EXPECT_EQ(spec.final_norm, spec.block.norm);
    EXPECT_EQ(spec.block.norm.eps, 1e-5);
    const BlockWeights<float> layer = checkpoint.weights->layer(0);
    EXPECT_EQ(layer.query_key_value.values(), model.vector(prefix + "h.0.attn.c_attn.weight"));
    EXPECT_EQ(layer.query_key_value_bias, model.vector(prefix + "h.0.attn.c_attn.bias"));
    EXPECT_EQ(layer.up.values(), model.vector(prefix + "h.0.mlp.c_fc.weight"));
    EXPECT_EQ(layer.down.rows(), 4 * kTinyWidth);
    EXPECT_EQ(checkpoint.weights->final_norm().bias, model.vector(prefix + "ln_f.bias"));
    EXPECT_EQ(spec.head, ModelSpec::Head::linear);
    EXPECT_EQ(checkpoint.weights->head().output.values(), model.vector(prefix + "wte.weight"));
    EXPECT_TRUE(checkpoint.weights->head().bias.empty());
  }
}

TEST(CheckpointGpt2, ScoresMayBeUnscaledButNotByLayer) {
  TinyCheckpoint model = tiny_gpt2();
  model.config["scale_attn_weights"] = false;
  EXPECT_EQ(opened(model).weights->spec().block.score_scale(), 1);
  model.config["scale_attn_by_inverse_layer_idx"] = true;
  expect_mentions(refusal(model), {"scale_attn_by_inverse_layer_idx = true", "config.json"});
}

TEST(CheckpointLlama, HasGatesGroupedKeysAndNoBias) {
  const TinyCheckpoint model = tiny_llama();
  const Checkpoint checkpoint = opened(model);
  const ModelSpec& spec = checkpoint.weights->spec();
  EXPECT_EQ(spec.block.key_head_count(), 2u);
  EXPECT_TRUE(spec.block.gated);
  EXPECT_EQ(spec.block.activation, Activation::silu);
  EXPECT_EQ(name_of(spec.block.norm), "rmsnorm");
  EXPECT_EQ(spec.block.rotary.frequencies, std::vector<double>{1});
  EXPECT_FALSE(spec.block.rotary.neighbours);
  const BlockWeights<float> layer = checkpoint.weights->layer(0);
  EXPECT_EQ(layer.query_key_value.cols(), 16u);
  expect_map(model, "model.layers.0.self_attn.k_proj.weight", layer.query_key_value, 8);
  expect_map(model, "model.layers.0.self_attn.v_proj.weight", layer.query_key_value, 12);
  expect_map(model, "model.layers.0.mlp.gate_proj.weight", layer.gate);
  expect_map(model, "model.layers.0.mlp.up_proj.weight", layer.up);
  EXPECT_TRUE(layer.query_key_value_bias.empty());
  EXPECT_TRUE(layer.attention_bias.empty());
  EXPECT_FALSE(spec.tied);
  EXPECT_EQ(checkpoint.weights->head().output.values(), model.vector("lm_head.weight"));
}

TEST(CheckpointLlama, TiedHeadIsTheWordEmbeddingAndNoHeadIsNone) {
  TinyCheckpoint model = tiny_llama();
  model.tensors.erase("lm_head.weight");
  EXPECT_EQ(opened(model).weights->spec().head, ModelSpec::Head::none);
  model.config["tie_word_embeddings"] = true;
  const Checkpoint checkpoint = opened(model);
  EXPECT_TRUE(checkpoint.weights->spec().tied);
  EXPECT_EQ(checkpoint.weights->head().output.values(), model.vector("model.embed_tokens.weight"));
}

TEST(CheckpointLlama, AnOutputThatTyingLeavesUnusedIsTold) {
  TinyCheckpoint model = tiny_llama();
  EXPECT_TRUE(opened(model).notes.empty());
  model.config["tie_word_embeddings"] = true;
  const Checkpoint checkpoint = opened(model);
  EXPECT_EQ(checkpoint.weights->head().output.values(), model.vector("model.embed_tokens.weight"));
  ASSERT_EQ(checkpoint.notes.size(), 1);
  expect_mentions(checkpoint.notes[0], {"model.safetensors", "lm_head.weight", "model.embed_tokens.weight",
                                        "config.json", "tie_word_embeddings"});
  Tensor same = model.tensors.at("model.embed_tokens.weight");
  same.name = "lm_head.weight";
  model.tensors.insert_or_assign(same.name, same);
  EXPECT_TRUE(opened(model).notes.empty());
}

TEST(CheckpointLlama, HeadsMayBeOfAnotherWidthThanTheModel) {
  TinyCheckpoint model = tiny_llama();
  model.config["head_dim"] = 4;
  model.map("model.layers.0.self_attn.q_proj", 8, 16, false);
  model.map("model.layers.0.self_attn.k_proj", 8, 8, false);
  model.map("model.layers.0.self_attn.v_proj", 8, 8, false);
  model.map("model.layers.0.self_attn.o_proj", 16, 8, false);
  const Checkpoint checkpoint = opened(model);
  EXPECT_EQ(checkpoint.weights->spec().block.query_width(), 16u);
  expect_map(model, "model.layers.0.self_attn.o_proj.weight", checkpoint.weights->layer(0).output);
}

TEST(CheckpointLlama, BiasesFollowConfigJson) {
  TinyCheckpoint model = tiny_llama();
  for (const char* map : {"q_proj", "k_proj", "v_proj", "o_proj"})
    model.add(std::string("model.layers.0.self_attn.") + map + ".bias",
              {model.tensors.at(std::string("model.layers.0.self_attn.") + map + ".weight").shape[0]});
  expect_mentions(refusal(model), {"q_proj.bias", "config.json"});
  model.config["attention_bias"] = true;
  const BlockWeights<float> layer = opened(model).weights->layer(0);
  EXPECT_EQ(layer.query_key_value_bias.size(), 16u);
  EXPECT_EQ(layer.output_bias, model.vector("model.layers.0.self_attn.o_proj.bias"));
  model.config["mlp_bias"] = true;
  expect_mentions(refusal(model), {"model.layers.0.mlp.up_proj.bias"});
}

TEST(CheckpointLlama, RotaryFrequenciesAreStretchedLinearlyOrAsLlama3Does) {
  TinyCheckpoint model = tiny_llama();
  model.config["head_dim"] = 8;
  model.config["rope_theta"] = 10000;
  for (const char* map : {"q_proj", "k_proj", "v_proj"})
    model.map(std::string("model.layers.0.self_attn.") + map, 8, map[0] == 'q' ? 32 : 16, false);
  model.map("model.layers.0.self_attn.o_proj", 32, 8, false);
  const auto frequencies = [&] { return opened(model).weights->spec().block.rotary.frequencies; };
  const std::vector<double> plain = frequencies();
  ASSERT_EQ(plain.size(), 4u);
  for (int m = 0; m < 4; ++m) EXPECT_NEAR(plain[m], std::pow(10, -m), 1e-7 * plain[m]);

  model.config["rope_scaling"] = {{"type", "linear"}, {"factor", 4.0}};
  for (int m = 0; m < 4; ++m) EXPECT_NEAR(frequencies()[m], plain[m] / 4, 1e-7 * plain[m]);

  // Wavelengths 6.3, 63, 628, 6283 with bounds 64/4 and 64/0.5: the first stays, the second is blended.
  model.config["rope_scaling"] = {{"rope_type", "llama3"},
                                  {"factor", 8.0},
                                  {"low_freq_factor", 0.5},
                                  {"high_freq_factor", 4.0},
                                  {"original_max_position_embeddings", 64}};
  const double blend = (64 / (2 * M_PI * 10) - 0.5) / 3.5;
  const std::vector<double> stretched = frequencies();
  EXPECT_EQ(stretched[0], plain[0]);
  EXPECT_NEAR(stretched[1], (1 - blend) * 0.1 / 8 + blend * 0.1, 1e-8);
  EXPECT_NEAR(stretched[2], 0.01 / 8, 1e-9);
  EXPECT_NEAR(stretched[3], 0.001 / 8, 1e-10);

  model.config["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 8.0}};
  expect_mentions(refusal(model), {"rope_scaling.rope_type = \"yarn\"", "llama3"});
  model.config["rope_scaling"] = nullptr;
  model.config["partial_rotary_factor"] = 0.5;
  expect_mentions(refusal(model), {"partial_rotary_factor = 0.5"});
  model.config.erase("partial_rotary_factor");
  model.config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 16.0}};
  EXPECT_NEAR(frequencies()[1], 0.5, 1e-7);
}

TEST(CheckpointMistral, LooksBackThroughAWindow) {
  TinyCheckpoint model = tiny_llama("mistral");
  model.config["sliding_window"] = 5;
  EXPECT_EQ(opened(model).weights->spec().window, 5u);
  model.config["sliding_window"] = nullptr;
  EXPECT_EQ(opened(model).weights->spec().window, 0u);
  model.config.erase("sliding_window");
  EXPECT_EQ(opened(model).weights->spec().window, 4096u);
}

TEST(CheckpointQwen2, HasBiasOfQueriesKeysAndValuesAndAnOptionalWindow) {
  TinyCheckpoint model = tiny_llama("qwen2", 2);
  model.config["sliding_window"] = 5;
  model.config["max_window_layers"] = 1;
  const Checkpoint checkpoint = opened(model);
  EXPECT_EQ(checkpoint.weights->spec().window, 0u);
  const BlockWeights<float> layer = checkpoint.weights->layer(1);
  EXPECT_EQ(layer.query_key_value_bias.size(), 16u);
  EXPECT_TRUE(layer.output_bias.empty());
  model.config["use_sliding_window"] = true;
  expect_mentions(refusal(model), {"max_window_layers = 1", "2"});
  model.config["max_window_layers"] = 0;
  EXPECT_EQ(opened(model).weights->spec().window, 5u);
  model.config["layer_types"] = {"full_attention", "sliding_attention"};
  expect_mentions(refusal(model), {"layer_types"});
}

TEST(CheckpointT5, BlocksShareTheOffsetsOfTheFirstAndScoresAreNotScaled) {
  const TinyCheckpoint model = tiny_t5(false);
  const Checkpoint checkpoint = opened(model);
  const ModelSpec& spec = checkpoint.weights->spec();
  EXPECT_EQ(spec.block.score_scale(), 1);
  EXPECT_EQ(spec.block.query_width(), 6u);
  EXPECT_EQ(spec.block.activation, Activation::relu);
  EXPECT_EQ(spec.block.relative.buckets, 8u);
  EXPECT_EQ(spec.block.relative.max_distance, 20u);
  EXPECT_EQ(spec.positions, 0u);
  EXPECT_EQ(spec.head, ModelSpec::Head::none);
  const BlockWeights<float> layer = checkpoint.weights->layer(1);
  expect_map(model, "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
             Matrix<float>(2, 8, layer.relative.values()));
  expect_map(model, "encoder.block.1.layer.0.SelfAttention.o.weight", layer.output);
  expect_map(model, "encoder.block.1.layer.1.DenseReluDense.wi.weight", layer.up);
  EXPECT_EQ(checkpoint.weights->embeddings(Ids(100, 3)).rows(), 100u);
}

TEST(CheckpointT5, GatedBlocksApplyGeluByTanhToTheGate) {
  const TinyCheckpoint model = tiny_t5(true);
  const Checkpoint checkpoint = opened(model);
  EXPECT_TRUE(checkpoint.weights->spec().block.gated);
  EXPECT_EQ(checkpoint.weights->spec().block.activation, Activation::gelu_tanh);
  const BlockWeights<float> layer = checkpoint.weights->layer(0);
  expect_map(model, "encoder.block.0.layer.1.DenseReluDense.wi_0.weight", layer.gate);
  expect_map(model, "encoder.block.0.layer.1.DenseReluDense.wi_1.weight", layer.up);
}

TEST(CheckpointUmt5, EveryBlockHasItsOwnOffsets) {
  TinyCheckpoint model = tiny_t5(true);
  model.config["model_type"] = "umt5";
  expect_mentions(refusal(model), {"encoder.block.1.layer.0.SelfAttention.relative_attention_bias.weight"});
  model.add("encoder.block.1.layer.0.SelfAttention.relative_attention_bias.weight", {8, 2});
  expect_map(model, "encoder.block.1.layer.0.SelfAttention.relative_attention_bias.weight",
             opened(model).weights->layer(1).relative);
}

TEST(CheckpointErrors, NameTheFamilyAndThoseThatAreKnown) {
  TinyCheckpoint model = tiny_bert();
  model.config["model_type"] = "mamba";
  expect_mentions(refusal(model), {"config.json", "mamba", "bert, roberta", "qwen2", "t5"});
  model.config.erase("model_type");
  expect_mentions(refusal(model), {"does not say model_type"});
}

TEST(CheckpointErrors, NameTheMissingTensorAndItsFile) {
  TinyCheckpoint model = tiny_bert();
  model.tensors.erase("bert.encoder.layer.1.output.dense.bias");
  expect_mentions(refusal(model), {"'bert.encoder.layer.1.output.dense.bias'", "model.safetensors"});
  model.tensors.erase("bert.embeddings.word_embeddings.weight");
  expect_mentions(refusal(model), {"'bert.embeddings.word_embeddings.weight'"});
}

TEST(CheckpointErrors, GiveBothShapes) {
  TinyCheckpoint model = tiny_bert();
  model.add("bert.encoder.layer.0.intermediate.dense.weight", {12, 9});
  expect_mentions(refusal(model), {"bert.encoder.layer.0.intermediate.dense.weight", "(12, 9)", "(12, 8)"});
}

TEST(CheckpointErrors, MoreLayersThanConfigJsonSaysAreAnotherModel) {
  TinyCheckpoint model = tiny_bert();
  model.config["num_hidden_layers"] = 1;
  expect_mentions(refusal(model), {"bert.encoder.layer.1.", "only 1 layers"});
}

TEST(CheckpointErrors, NameTensorAndRowOfNumbersThatAreNotFinite) {
  for (const double bad : {kInfinity, -kInfinity, std::nan("")}) {
    TinyCheckpoint model = tiny_bert();
    model.tensors.at("bert.encoder.layer.0.output.dense.weight").values[3 * 12 + 5] = bad;
    model.tensors.at("bert.embeddings.word_embeddings.weight").values[2 * 8] = bad;
    const Checkpoint checkpoint = opened(model);
    expect_mentions(
        message_of([&] { checkpoint.weights->layer(0); }),
        {"bert.encoder.layer.0.output.dense.weight", "row 3", std::isnan(bad) ? "NaN" : "infinite"});
    expect_mentions(message_of([&] {
                      checkpoint.weights->embeddings(Ids{1, 2});
                    }),
                    {"word_embeddings", "row 2"});
    EXPECT_EQ(checkpoint.weights->embeddings(Ids{1, 3}).rows(), 2u);
  }
}

TEST(CheckpointErrors, NumbersOfConfigJsonHaveLimits) {
  const std::vector<std::pair<std::string, json>> wrong = {{"hidden_size", 0},
                                                           {"hidden_size", -8},
                                                           {"hidden_size", 1 << 21},
                                                           {"hidden_size", 8.5},
                                                           {"num_hidden_layers", 20000},
                                                           {"num_attention_heads", 3},
                                                           {"layer_norm_eps", "1e9"},
                                                           {"layer_norm_eps", -1},
                                                           {"hidden_act", "mish"},
                                                           {"is_decoder", true},
                                                           {"position_embedding_type", "relative_key"},
                                                           {"vocab_size", nullptr},
                                                           {"quantization_config", {{"bits", 4}}}};
  for (const auto& [key, value] : wrong) {
    TinyCheckpoint model = tiny_bert();
    model.config[key] = value;
    expect_mentions(refusal(model), {"config.json", key});
  }
}

TEST(CheckpointErrors, ConfigJsonMayBeAnything) {
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{\"model_type\":"), std::string(100000, '['),
        std::string("{\"a\":1,\"a\":2}"), std::string("\xff\0", 2)}) {
    const TemporaryDirectory directory;
    tiny_bert().write(directory);
    directory.file("config.json", text);
    expect_mentions(message_of([&] { open_checkpoint(directory.path().string()); }), {"config.json"});
  }
}

TEST(CheckpointErrors, IntegersAreNoWeights) {
  TinyCheckpoint model = tiny_bert();
  Tensor& tensor = model.tensors.at("bert.encoder.layer.0.output.dense.weight");
  tensor.dtype = DType::int8;
  std::fill(tensor.values.begin(), tensor.values.end(), 1.0);
  expect_mentions(refusal(model), {"bert.encoder.layer.0.output.dense.weight", "int8"});
}

}  // namespace
}  // namespace normscope

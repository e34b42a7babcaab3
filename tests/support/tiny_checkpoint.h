#pragma once
// Checkpoints of a few numbers, written as the Hugging Face library would: names, shapes and config.json of
// each family. Every number of every tensor is different, so that no transpose or mix-up goes unseen.
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "normscope/tensor_file.h"
#include "support/temporary_directory.h"

namespace normscope {

struct TinyCheckpoint {
  nlohmann::json config;
  std::map<std::string, Tensor> tensors;

  Tensor& add(const std::string& name, std::vector<std::size_t> shape) {
    std::size_t size = 1;
    for (const std::size_t extent : shape) size *= extent;
    Tensor tensor{name, DType::float32, std::move(shape), std::vector<double>(size)};
    for (double& value : tensor.values) value = static_cast<double>(++numbers_) / 1024;
    return tensors.insert_or_assign(name, std::move(tensor)).first->second;
  }
  void map(const std::string& name, std::size_t in, std::size_t out, bool bias = true) {
    add(name + ".weight", {out, in});
    if (bias) add(name + ".bias", {out});
  }
  void norm(const std::string& name, std::size_t width, bool bias = true) {
    add(name + ".weight", {width});
    if (bias) add(name + ".bias", {width});
  }
  void rename(const std::string& from, const std::string& to) {
    Tensor tensor = tensors.at(from);
    tensor.name = to;
    tensors.erase(from);
    tensors.insert_or_assign(to, tensor);
  }
  // W(in, out) of a tensor that is stored out × in.
  float entry(const std::string& name, std::size_t in, std::size_t out) const {
    const Tensor& tensor = tensors.at(name);
    return static_cast<float>(tensor.values.at(out * tensor.shape.at(1) + in));
  }
  std::vector<float> vector(const std::string& name) const {
    const Tensor& tensor = tensors.at(name);
    return {tensor.values.begin(), tensor.values.end()};
  }
  std::vector<float> row(const std::string& name, std::size_t row) const {
    const std::vector<float> all = vector(name);
    const std::size_t width = tensors.at(name).shape.at(1);
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(row * width);
    return {begin, begin + static_cast<std::ptrdiff_t>(width)};
  }

  std::vector<Tensor> list() const {
    std::vector<Tensor> all;
    for (const auto& [name, tensor] : tensors) all.push_back(tensor);
    return all;
  }
  std::string write(const TemporaryDirectory& directory,
                    const std::string& file = "model.safetensors") const {
    directory.file("config.json", config.dump());
    write_safetensors(directory.file(file), list());
    return directory.path().string();
  }

 private:
  int numbers_ = 0;
};

inline constexpr std::size_t kTinyWidth = 8, kTinyHidden = 12, kTinyWords = 10, kTinyPositions = 6;

inline TinyCheckpoint tiny_bert(const std::string& prefix = "bert.", std::size_t layers = 2) {
  TinyCheckpoint model;
  model.config = {{"model_type", "bert"},
                  {"hidden_size", kTinyWidth},
                  {"num_hidden_layers", layers},
                  {"num_attention_heads", 2},
                  {"intermediate_size", kTinyHidden},
                  {"max_position_embeddings", kTinyPositions},
                  {"type_vocab_size", 2},
                  {"vocab_size", kTinyWords},
                  {"hidden_act", "gelu"},
                  {"layer_norm_eps", 1e-12}};
  model.add(prefix + "embeddings.word_embeddings.weight", {kTinyWords, kTinyWidth});
  model.add(prefix + "embeddings.position_embeddings.weight", {kTinyPositions, kTinyWidth});
  model.add(prefix + "embeddings.token_type_embeddings.weight", {2, kTinyWidth});
  model.norm(prefix + "embeddings.LayerNorm", kTinyWidth);
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const std::string at = prefix + "encoder.layer." + std::to_string(layer) + ".";
    for (const char* map : {"query", "key", "value"})
      model.map(at + "attention.self." + map, kTinyWidth, kTinyWidth);
    model.map(at + "attention.output.dense", kTinyWidth, kTinyWidth);
    model.norm(at + "attention.output.LayerNorm", kTinyWidth);
    model.map(at + "intermediate.dense", kTinyWidth, kTinyHidden);
    model.map(at + "output.dense", kTinyHidden, kTinyWidth);
    model.norm(at + "output.LayerNorm", kTinyWidth);
  }
  return model;
}

inline TinyCheckpoint tiny_gpt2(const std::string& prefix = "transformer.") {
  TinyCheckpoint model;
  model.config = {{"model_type", "gpt2"}, {"n_embd", kTinyWidth},          {"n_layer", 1},
                  {"n_head", 2},          {"n_positions", kTinyPositions}, {"vocab_size", kTinyWords}};
  model.add(prefix + "wte.weight", {kTinyWords, kTinyWidth});
  model.add(prefix + "wpe.weight", {kTinyPositions, kTinyWidth});
  const std::string at = prefix + "h.0.";
  const auto conv = [&](const std::string& name, std::size_t in, std::size_t out) {
    model.add(at + name + ".weight", {in, out});
    model.add(at + name + ".bias", {out});
  };
  model.norm(at + "ln_1", kTinyWidth);
  conv("attn.c_attn", kTinyWidth, 3 * kTinyWidth);
  conv("attn.c_proj", kTinyWidth, kTinyWidth);
  model.norm(at + "ln_2", kTinyWidth);
  conv("mlp.c_fc", kTinyWidth, 4 * kTinyWidth);
  conv("mlp.c_proj", 4 * kTinyWidth, kTinyWidth);
  model.norm(prefix + "ln_f", kTinyWidth);
  return model;
}

// Four heads of width 2, two of keys.
inline TinyCheckpoint tiny_llama(const std::string& type = "llama", std::size_t layers = 1) {
  TinyCheckpoint model;
  model.config = {{"model_type", type},
                  {"hidden_size", kTinyWidth},
                  {"num_hidden_layers", layers},
                  {"num_attention_heads", 4},
                  {"num_key_value_heads", 2},
                  {"intermediate_size", kTinyHidden},
                  {"max_position_embeddings", 64},
                  {"vocab_size", kTinyWords},
                  {"rms_norm_eps", 1e-5}};
  model.add("model.embed_tokens.weight", {kTinyWords, kTinyWidth});
  const bool qwen = type == "qwen2";
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const std::string at = "model.layers." + std::to_string(layer) + ".";
    model.map(at + "self_attn.q_proj", kTinyWidth, kTinyWidth, qwen);
    model.map(at + "self_attn.k_proj", kTinyWidth, kTinyWidth / 2, qwen);
    model.map(at + "self_attn.v_proj", kTinyWidth, kTinyWidth / 2, qwen);
    model.map(at + "self_attn.o_proj", kTinyWidth, kTinyWidth, false);
    model.map(at + "mlp.gate_proj", kTinyWidth, kTinyHidden, false);
    model.map(at + "mlp.up_proj", kTinyWidth, kTinyHidden, false);
    model.map(at + "mlp.down_proj", kTinyHidden, kTinyWidth, false);
    model.norm(at + "input_layernorm", kTinyWidth, false);
    model.norm(at + "post_attention_layernorm", kTinyWidth, false);
  }
  model.norm("model.norm", kTinyWidth, false);
  model.add("lm_head.weight", {kTinyWords, kTinyWidth});
  return model;
}

// Two heads of width 3: their 6 coordinates are not the model's 8.
inline TinyCheckpoint tiny_t5(bool gated) {
  TinyCheckpoint model;
  model.config = {{"model_type", "t5"},
                  {"d_model", kTinyWidth},
                  {"num_layers", 2},
                  {"num_heads", 2},
                  {"d_kv", 3},
                  {"d_ff", kTinyHidden},
                  {"vocab_size", kTinyWords},
                  {"relative_attention_num_buckets", 8},
                  {"relative_attention_max_distance", 20},
                  {"feed_forward_proj", gated ? "gated-gelu" : "relu"}};
  model.add("shared.weight", {kTinyWords, kTinyWidth});
  for (int layer = 0; layer < 2; ++layer) {
    const std::string at = "encoder.block." + std::to_string(layer) + ".layer.";
    for (const char* map : {"q", "k", "v"}) model.map(at + "0.SelfAttention." + map, kTinyWidth, 6, false);
    model.map(at + "0.SelfAttention.o", 6, kTinyWidth, false);
    model.norm(at + "0.layer_norm", kTinyWidth, false);
    for (const char* map : {"wi_0", "wi_1"})
      if (gated) model.map(at + "1.DenseReluDense." + map, kTinyWidth, kTinyHidden, false);
    if (!gated) model.map(at + "1.DenseReluDense.wi", kTinyWidth, kTinyHidden, false);
    model.map(at + "1.DenseReluDense.wo", kTinyHidden, kTinyWidth, false);
    model.norm(at + "1.layer_norm", kTinyWidth, false);
  }
  model.add("encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", {8, 2});
  model.norm("encoder.final_layer_norm", kTinyWidth, false);
  return model;
}

}  // namespace normscope

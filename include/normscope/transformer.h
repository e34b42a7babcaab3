#pragma once
// Training transformers of any shape: GPT-2's (causal, next token, tied head) and BERT's (all tokens see all,
// a class for each text), with every norm exchangeable. Forward is that of model.h; here are loss and
// gradient.
//
//   h₀ = norm(word + position + type)              dropout
//   h  ← block(h) per layer (block.h, pre or post) dropout of attention weights and of what attention and
//                                                  feed-forward add
//   next token   −log softmax(E·norm(h)ᵢ) at token i + 1, mean over all i that count; E are the word
//                embeddings. Logits are never stored: blocks of tokens × words, recomputed backward
//   class        −log softmax(C·tanh(P·h₁ + p) + c) at the label, mean over texts   dropout of tanh(…)
//
// Activations of a layer are recomputed backward; only what enters each layer is held: O(tokens·d·layers).
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "normscope/executor.h"
#include "normscope/model.h"
#include "normscope/train.h"

namespace normscope {

struct TransformerSpec {
  // Shape, norms, activation, dropout (block.dropout, everywhere the same). Not trained here: rotation,
  // offsets, gates, shared layers, grouped keys, qknorm, sandwich, windows, no skip, step sizes.
  ModelSpec model;
  bool query_key_value_bias = true;  // without: the published language model's, frozen at 0
  std::size_t types = 0;             // rows of the table of token types, of which all texts use the first
  std::size_t classes = 0;           // of a text; 0: next token
};
// GPT-2 as published by Brody et al. (d 8, 4 layers, 4 heads, 1024 positions, 50257 words): gain and bias of
// the norm before attention and the bias of queries, keys and values are frozen, so they are left out.
TransformerSpec published_language_model();
// BERT on SST-2 as published: hidden 8, 4 layers, 4 heads, intermediate 3072, no norm anywhere.
TransformerSpec published_sentiment_model();
// Throws InputError that names the setting at fault.
void check_transformer(const TransformerSpec& spec);

// In this order: "word" (V × d), "position", "type", "embedding_norm.gain", "embedding_norm.bias", per layer
// "layers.0.norm1.gain", "layers.0.norm1.bias", "layers.0.attention.qkv.weight" (3d × d: rows of W_Q, W_K,
// W_V), "….attention.qkv.bias", "….attention.out.weight" (d × d), "….attention.out.bias", "….norm2.gain",
// "….norm2.bias", "….up.weight" (f × d), "….up.bias", "….down.weight" (d × f), "….down.bias"; then
// "final_norm.gain", "final_norm.bias", "pooler.weight" (d × d), "pooler.bias", "classifier.weight" (classes
// × d), "classifier.bias". What a spec has no use for is left out. Matrices are out × in, row-major.
std::vector<ParameterSlot> parameter_slots(const TransformerSpec& spec);
std::size_t parameter_count(const TransformerSpec& spec);
// As Hugging Face does: weights N(0, initializer_range²), biases 0, gains 1; GPT-2's maps into the residual
// stream (attention.out, down) N(0, initializer_range²/(2·layers)).
std::vector<float> initial_parameters(const TransformerSpec& spec, std::uint64_t seed);
// The model with these parameters, to run, scan or write; the head of classes is not part of it.
std::unique_ptr<ModelWeights> trained_model(const TransformerSpec& spec, std::vector<float> parameters);

// Texts of a batch, filled up to one length.
struct TokenBatch {
  static constexpr std::uint32_t ignored = 0xffffffff;

  std::size_t texts = 0, length = 0;
  std::vector<std::uint32_t> tokens;   // texts × length
  std::vector<std::uint32_t> lengths;  // of each text; empty: all are full. What follows is not attended to
  // Next token: texts × length, what each token is to be followed by, or `ignored`. Class: one per text.
  std::vector<std::uint32_t> targets;
};

struct TransformerLoss {
  double loss = 0;          // mean over targets
  double accuracy = 0;      // share of targets with the highest logit; of classes only
  std::size_t targets = 0;  // that are not ignored
};

// The same bytes for any number of threads. Not for use by two threads at once.
template <class T>
class TransformerGradient {
 public:
  virtual ~TransformerGradient() = default;
  // Writes ∂loss/∂parameters. `key`: where dropout gets its random numbers (a stream per step); none: no
  // dropout. Throws InputError if a token, length or target is out of range or no target counts.
  virtual TransformerLoss gradient(const TokenBatch& batch, std::span<const T> parameters,
                                   std::span<T> gradient, std::optional<DropoutKey> key,
                                   const Executor& executor) = 0;
  virtual TransformerLoss measure(const TokenBatch& batch, std::span<const T> parameters,
                                  const Executor& executor) = 0;
};
// For float and double.
template <class T>
std::unique_ptr<TransformerGradient<T>> make_transformer_gradient(const TransformerSpec& spec);

}  // namespace normscope

#pragma once
// A trained transformer: its shape, where its weights come from, and its forward pass, layer by layer.
//
//   h₀ = norm(word + position + type)·map      the parts a family lacks are left out
//   hₗ = block(hₗ₋₁)                           all texts pass a layer before the next one's weights are read
//   y  = norm(h_L)                             pre-norm families
//   logits = yWᵀ + b                           where there is a head; BERT: of norm(a(yW₁ + b₁))
//
// Held at once: the weights of one layer, and n × d of each text of the call. Never n × n of a head.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "normscope/block.h"
#include "normscope/executor.h"
#include "normscope/mask.h"
#include "normscope/matrix.h"
#include "normscope/norm.h"

namespace normscope {

struct ModelSpec {
  enum class Head {
    none,
    linear,
    transform,  // norm(activation(xW + b)) before the linear map (BERT, RoBERTa, ALBERT)
  };
  std::string family;  // "bert", "gpt2", …
  std::size_t vocabulary = 0, layers = 0;
  std::size_t positions = 0;  // longest text; 0: no limit
  std::size_t groups = 0;     // of layers that share their weights (ALBERT: 1); 0: none do
  BlockSpec block;
  bool causal = false;
  std::size_t window = 0;  // of a causal model: a token and the window − 1 before it; 0: all before it
  std::size_t embedding_width = 0;  // narrower than the block's in ALBERT; 0: the block's
  NormSpec embedding_norm, final_norm;
  Head head = Head::none;
  bool tied = false;                // the head is the word embedding
  double initializer_range = 0.02;  // sd of weights before training

  // Whose weights a layer has: its own number, or that of its group.
  std::size_t weights_of(std::size_t layer) const { return groups == 0 ? layer : layer * groups / layers; }
  std::size_t width_of_embedding() const { return embedding_width > 0 ? embedding_width : block.width; }
};

// Who attends to whom in a text of that many tokens.
Mask model_mask(const ModelSpec& spec, std::size_t tokens);

// Gain and bias of a norm; empty: 1 and 0.
struct NormWeights {
  std::vector<float> gain, bias;
};

struct EmbeddingWeights {
  NormWeights norm;
  Matrix<float> map;  // embedding width × width; empty: none
  std::vector<float> map_bias;
};

struct HeadWeights {
  Matrix<float> transform;  // d × d or d × embedding width; empty: none
  std::vector<float> transform_bias;
  NormWeights transform_norm;
  Activation activation = Activation::gelu;
  Matrix<float> output;     // V × d
  std::vector<float> bias;  // V; empty: 0
};

// Where weights come from. Every call reads (or draws) them anew; may be called from several threads.
class ModelWeights {
 public:
  virtual ~ModelWeights() = default;
  virtual const ModelSpec& spec() const = 0;
  // Word, position and type embeddings of a text, summed: n × embedding width. Throws InputError if an id is
  // not in the vocabulary or the text is longer than the positions.
  virtual Matrix<float> embeddings(std::span<const std::uint32_t> ids) const = 0;
  virtual EmbeddingWeights embedding() const = 0;
  virtual BlockWeights<float> layer(std::size_t index) const = 0;
  virtual NormWeights final_norm() const = 0;
  // Throws InputError if there is no head.
  virtual HeadWeights head() const = 0;
  // The parts of embeddings() alone, × embedding width: V words, what is added at each position (no rows: the
  // model has none), the types of tokens, of which a text has the first (no rows: none). Throw InputError
  // where they are not known apart.
  virtual Matrix<float> words() const;
  virtual Matrix<float> positions() const;
  virtual Matrix<float> types() const;
};

// The same shape before training: weights N(0, initializer_range²), biases 0, gains 1.
std::unique_ptr<ModelWeights> random_model(const ModelSpec& spec, std::uint64_t seed);

// Named places on a token's way. norm.in and norm.out are before and after the norm whose output enters
// attention: where the norm comes after a block (post), that of the block before, or of the embeddings.
enum class TracePoint { norm_in, norm_out, query, key, value, attention_out, out };
std::span<const TracePoint> trace_points();
std::string name_of(TracePoint point, std::size_t layer);  // "layer.3.attn.norm.in", …, "layer.3.out"

// Who looks on; any may be empty. Calls for one text come in order; those for different texts may come from
// several threads at once.
struct ForwardObserver {
  std::function<void(std::size_t text, std::size_t layer, TracePoint, MatrixView<const float>)> point;
  std::function<void(std::size_t text, std::size_t layer, const AttentionRows<float>&)> attention;
  // Before the first text passes the layer; from the calling thread.
  std::function<void(std::size_t layer, const BlockSpec&, const BlockWeights<float>&)> layer;
};

// What is done differently from the model as trained; empty: nothing.
struct ForwardChanges {
  std::function<BlockSpec(std::size_t layer)> block;
  std::optional<NormSpec> embedding_norm, final_norm;
  std::function<Mask(std::size_t tokens)> mask;
};

// The tokens of each text after the last layer and the final norm, n × d. The same bytes for any number of
// threads. Throws InputError on an empty text and as ModelWeights does; Error when tokens stop being finite
// (which names the layer).
std::vector<Matrix<float>> forward(const ModelWeights& weights,
                                   std::span<const std::vector<std::uint32_t>> texts,
                                   const Executor& executor, const ForwardObserver& observer = {},
                                   const ForwardChanges& changes = {});

// h₀ of each text, n × d: what enters the first layer. Throws as forward.
std::vector<Matrix<float>> embed(const ModelWeights& weights,
                                 std::span<const std::vector<std::uint32_t>> texts, const Executor& executor);

// Logits of tokens (n × d, after the final norm): n × V.
Matrix<float> logits(const ModelSpec& spec, const HeadWeights& head, MatrixView<const float> tokens);

// −log of the probability of each next token, in nats: n − 1 numbers. Holds few rows of logits at a time.
std::vector<double> next_token_losses(const ModelSpec& spec, const HeadWeights& head,
                                      MatrixView<const float> tokens, std::span<const std::uint32_t> ids,
                                      const Executor& executor);

// The text continued by the likeliest token, `count` times or until `end` comes.
std::vector<std::uint32_t> continue_greedily(const ModelWeights& weights, std::vector<std::uint32_t> ids,
                                             std::size_t count, std::optional<std::uint32_t> end,
                                             const Executor& executor);

}  // namespace normscope

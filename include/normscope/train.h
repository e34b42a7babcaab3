#pragma once
// Training: an encoder whose every norm can be exchanged, its loss and gradient, and the optimiser.
//
// The encoder, for tokens t₁ … t_T of `classes` types, per layer (pre-norm):
//
//   h = norm1(x)                    q, k, v = h W_Qᵀ, h W_Kᵀ, h W_Vᵀ   (no bias)
//   x ← x + softmax(q kᵀ/√(d/heads)) v W_Oᵀ + b_O                      (per head, under the mask)
//   x ← x + relu(norm2(x) W₁ᵀ + b₁) W₂ᵀ + b₂
//
// or with the norms elsewhere, f being attention or the feed-forward part: post norm(x + f(x)), sandwich
// x + norm°(f(norm(x))), norm° the same without gain and bias; and with √d_QK in the place of √(d/heads).
//
// Two variants: with a learned matrix M in front of norm1, the identity at first, h = norm1(x Mᵀ) (not post); with
// uniform attention its scores are 0, so that it is the mean over the keys that the mask leaves, and W_Q and W_K
// neither matter nor learn.
//
// Starting from x = embedding[t]; logits = x · embeddingᵀ (tied). No positions, no dropout. The target of
// every position is the label of its sequence; the loss is the mean cross-entropy over all positions of a
// batch.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "normscope/executor.h"
#include "normscope/matrix.h"
#include "normscope/norm.h"

namespace normscope {

struct EncoderSpec {
  std::size_t classes = 20;
  std::size_t dimension = 8;  // d
  std::size_t layers = 1;
  std::size_t heads = 1;
  std::size_t feed_forward = 8;
  NormSpec norm1;             // before attention
  NormSpec norm2;             // before the feed-forward part
  std::string mask = "full";  // by a name of mask.h; random ones are drawn from seed 0
  bool matrix = false;        // a learned d × d matrix in front of norm1
  bool uniform = false;       // attention is frozen at equal weights
  Placement placement = Placement::pre;
  double temperature = 0;  // d_QK; 0: the width of a head
  // Weight λ of what is added to the loss that training lessens, to keep tokens apart: 1 − (μ/‖X‖)² of the tokens X
  // that leave a layer, mean over all layers but the last, and over sequences. 0 for X = 0.
  double keep_apart = 0;

  double query_key_width() const {
    const std::size_t width = dimension / heads;
    return temperature > 0 ? temperature : static_cast<double>(width);
  }
  bool operator==(const EncoderSpec&) const = default;
};
// Throws InputError that names the setting at fault: a size of 0, heads that do not divide d, a norm that
// leaves nothing of d dimensions, a sandwich of norms with learned normals or α, a matrix in front of a norm that is post, tokens
// to be kept apart in one layer.
void check_encoder(const EncoderSpec& spec);

// One tensor of the parameters, which stand in one array, each tensor row-major.
struct ParameterSlot {
  std::string name;  // "embedding", "layers.0.attention.in_proj", …
  std::size_t rows = 1, cols = 1, offset = 0;

  std::size_t size() const { return rows * cols; }
};
std::vector<ParameterSlot> parameter_slots(const EncoderSpec& spec);
std::size_t parameter_count(const EncoderSpec& spec);

// Embedding and normals N(0,1); in_proj Xavier-uniform; the other weights and their biases U(±1/√fan_in), the
// bias of the attention's output 0; gains 1, biases of norms 0, α of tanh ½, matrices in front of norms the identity.
std::vector<float> initial_parameters(const EncoderSpec& spec, std::uint64_t seed);

// Sequences of one length, each with one label. Without positions and mask a sequence is a bag: how often
// each type occurs in it.
struct SequenceSet {
  static constexpr std::size_t most_counted_classes = 256;

  std::size_t classes = 0, length = 0;
  std::vector<std::uint16_t> tokens;  // size() × length
  std::vector<std::uint16_t> labels;
  std::vector<std::uint16_t> counts;  // size() × classes; empty if there are more than most_counted_classes

  std::size_t size() const { return labels.size(); }
};
// Counts the types. Throws InputError if shapes do not fit or a token or label is not below `classes`.
SequenceSet make_sequences(std::size_t classes, std::size_t length, std::vector<std::uint16_t> tokens,
                           std::vector<std::uint16_t> labels);

// Means over positions; attention also over layers and heads.
struct EncoderMeasures {
  double loss = 0;
  double accuracy = 0;  // share of positions whose highest logit is the label (the first, if several)
  double sequence_accuracy = 0;  // share of sequences right at every position
  double attention_entropy = 0;  // of an attention row, in nats; uniform attention has log T
  double attention_distance =
      0;  // total variation between an attention row and uniform over the keys left by the mask

  bool operator==(const EncoderMeasures&) const = default;
};

// How loss and gradient are computed; every kind gives the same numbers up to rounding.
//   generic  any spec: every position of every sequence
//   bag      one layer, full mask, norm2 = LayerNorm, at most 256 classes: per type, what all sequences share
//   is computed once, and a
//            sequence needs only sums weighted by its counts
//   automatic: bag where it applies
enum class EncoderPath { automatic, generic, bag };

// Results are the same for any number of threads. Not for use by two threads at once.
template <class T>
class EncoderGradient {
 public:
  virtual ~EncoderGradient() = default;
  // Loss of the sequences `batch` (at least one) of `set`, with what keeps tokens apart; writes ∂loss/∂parameters.
  virtual double gradient(const SequenceSet& set, std::span<const std::uint32_t> batch,
                          std::span<const T> parameters, std::span<T> gradient, const Executor& executor) = 0;
  virtual EncoderMeasures measure(const SequenceSet& set, std::span<const T> parameters,
                                  const Executor& executor) = 0;  // the loss is the cross-entropy alone
};
// For float and double. Throws InputError if check_encoder does, or if the bag path is asked for and does not
// apply.
template <class T>
std::unique_ptr<EncoderGradient<T>> make_encoder_gradient(const EncoderSpec& spec,
                                                          EncoderPath path = EncoderPath::automatic);
// Whether the bag path applies.
bool is_bag_of_types(const EncoderSpec& spec);

// The logits of one sequence, length × classes, by the generic path.
template <class T>
Matrix<T> encoder_logits(const EncoderSpec& spec, std::span<const T> parameters,
                         std::span<const std::uint16_t> tokens);

// μ/‖X‖ of the tokens that enter the first layer, and of those that leave each: layers + 1 means over the sequences.
template <class T>
std::vector<double> encoder_spread(const EncoderSpec& spec, std::span<const T> parameters,
                                   const SequenceSet& set, const Executor& executor);

// One run of a training that compares norms and seeds.
struct TrainingRunId {
  std::string norm;
  std::uint64_t seed = 0;

  bool operator==(const TrainingRunId&) const = default;
};

// Learning rate as a factor of its peak: after `warmup` steps of linear rise, constant, linear to 0 at
// `steps`, or half a cosine to 0 there.
struct Schedule {
  enum class Kind { constant, linear, cosine } kind = Kind::linear;
  std::uint64_t warmup = 0, steps = 170'000;

  double factor(std::uint64_t step) const;  // step counts from 0
  bool operator==(const Schedule&) const = default;
};

struct AdamSettings {
  double learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;  // decoupled (AdamW)
  double clip = 0;          // largest norm of the whole gradient; 0: no limit
  Schedule schedule;

  bool operator==(const AdamSettings&) const = default;
};
struct AdamState {
  std::vector<float> mean, square;  // running averages of the gradient and of its squares
  std::uint64_t step = 0;           // updates done
};
// One update of the parameters; the state's vectors are made at the first. The gradient is scaled if clipped.
void adam_update(const AdamSettings& settings, AdamState& state, std::span<float> parameters,
                 std::span<float> gradient);

}  // namespace normscope

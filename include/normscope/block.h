#pragma once
// One transformer block, forward: rows are tokens. Every part can be switched off, so that what attention,
// skip, norm and feed-forward each do to the tokens is seen separately.
//
//   attention     R = (hW_Q + b_Q)(hW_K + b_K)ᵀ/√d_QK + offsets per head, A = softmax of R over the mask's
//                 edges, f(h) = [A₁hW_V¹ … A_HhW_V^H]W_O + b_O. Fewer key heads than query heads: each serves
//                 several, one after the other (grouped-query attention)
//   rotary        queries and keys at position p are turned by the angles p·frequency (RoPE)
//   offsets       by distance of query and key: a learned number for each bucket of distances (T5)
//   feed-forward  f(h) = a(hW₁ + b₁)W₂ + b₂, a = gelu, …; gated: (a(hW_G + b_G) ⊙ (hW₁ + b₁))W₂ + b₂
//   each of them  post      norm(x + f(x))
//                 pre       x + f(norm(x))
//                 sandwich  x + norm(f(norm(x)))      without skip: the same without "x +"
//   step size     h: x + h·f in the place of x + f, f with the norms inside it; without skip (1 − h)x + h·f, since a
//                 layer x ← f is Euler's step of length 1 of dx/dt = f − x. Layer l is then at the time l·h; h = 1 is
//                 the block as it stands above
//
// A token that attends to nothing has a softmax over no score: its row of A is 0 (and counted). Rows that a
// norm leaves undefined: see norm.h.
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "normscope/mask.h"
#include "normscope/matrix.h"
#include "normscope/norm.h"

namespace normscope {

// gelu(x) = x·Φ(x); gelu_tanh: its approximation by tanh (GPT-2's gelu_new); silu(x) = x/(1 + e⁻ˣ).
enum class Activation { gelu, gelu_tanh, relu, silu };

struct Rotary {
  std::vector<double> frequencies;  // one per pair of coordinates, at most half a head; empty: no rotation
  // Which coordinates make pair m of P: (m, m + P) as Hugging Face stores them, or neighbours (2m, 2m + 1).
  bool neighbours = false;
};

// T5: half of the buckets hold single distances, the others logarithmic ranges up to max_distance; one half
// of all for keys after the query, the other for those before (all for those before, if not both ways).
struct RelativeBuckets {
  std::size_t buckets = 0;  // 0: no offsets
  std::size_t max_distance = 128;
  bool both_ways = true;

  std::size_t bucket(std::size_t query, std::size_t key) const;
};

struct BlockSpec {
  std::size_t width = 0, heads = 1;
  std::size_t key_heads = 0;     // of keys and values; 0: as many as heads
  std::size_t head_width = 0;    // 0: width / heads
  std::size_t feed_forward = 0;  // hidden width; 0: the block is attention only
  Activation activation = Activation::gelu;
  bool gated = false;
  bool skip = true;
  NormSpec norm;                              // none: no norm
  std::optional<NormSpec> feed_forward_norm;  // if it differs from that of attention
  Placement placement = Placement::post;
  double step = 1;                   // h, in (0, 1]
  double temperature = 0;            // d_QK, of which scores are divided by the root; 0: the width of a head
  bool normalize_query_key = false;  // queries and keys scaled to norm 1 in each head (qknorm)
  Rotary rotary;
  RelativeBuckets relative;
  double dropout = 0;  // of attention weights and of f's output, as in BERT in training

  std::size_t width_of_head() const { return head_width > 0 ? head_width : width / heads; }
  std::size_t query_width() const { return heads * width_of_head(); }
  std::size_t key_head_count() const { return key_heads > 0 ? key_heads : heads; }
  std::size_t key_width() const { return key_head_count() * width_of_head(); }
  std::size_t key_head_of(std::size_t head) const { return head / (heads / key_head_count()); }
  double score_scale() const;
};

// Throws InputError if heads do not divide the width, key heads do not divide heads, the temperature is
// negative or not finite, dropout is not in [0, 1), the step size not in (0, 1], or the norm does not fit.
void require_valid(const BlockSpec& spec);

// Weights map rows from the left: y = xW + b, W in × out. An empty bias is 0; empty gains are 1.
template <class T>
struct BlockWeights {
  Matrix<T> query_key_value;  // d × (query width + 2 key widths): W_Q, W_K, W_V side by side
  Matrix<T> output;           // query width × d
  Matrix<T> up, down;         // d × f, f × d; empty if the block has no feed-forward
  Matrix<T> gate;             // d × f, if gated
  Matrix<T> relative;         // heads × buckets, if there are any
  std::vector<T> query_key_value_bias, output_bias, up_bias, gate_bias, down_bias;
  // Gain and bias of the norms, if affine: of attention and of feed-forward. Sandwich has one more norm
  // inside each, after f, without gain and bias.
  std::vector<T> attention_gain, attention_bias, feed_forward_gain, feed_forward_bias;
};

// What one pass through a block did.
struct BlockCounts {
  double least_weight =
      1;               // ε: the least attention weight on an edge, over heads and tokens (before dropout)
  double entropy = 0;  // of the attention weights, mean over heads and tokens, nats
  std::size_t empty_rows = 0;  // of the mask
  NormCounts norm;
};

// Where dropout gets its random numbers: the same for any number of threads.
struct DropoutKey {
  std::uint64_t seed = 0, stream = 0;
};

// What a pass holds on its way.
enum class BlockPoint {
  attention_norm_in,  // of the norm of attention, before it (pre, sandwich) or after it (post)
  attention_norm_out,
  attention_in,  // what attention maps to queries, keys and values
  query,
  key,
  value,          // n × query width, n × key width; of queries and keys after rotation and qknorm
  attention_out,  // before skip
  feed_forward_norm_in,
  feed_forward_norm_out,
  out,  // of the block
};

// Some rows of one head's attention weights, before dropout: token first + i gives weights(i, j) to token
// reach.first + j, 0 where the mask has no edge.
template <class T>
struct AttentionRows {
  std::size_t head = 0, first = 0;
  Mask::Run reach;
  MatrixView<const T> weights;
};

// Who looks on; either may be empty. What is shown is gone after the call.
template <class T>
struct BlockObserver {
  std::function<void(BlockPoint, MatrixView<const T>)> point;
  std::function<void(const AttentionRows<T>&)> attention;
};

// The scratch memory a pass needs, kept between passes: O(n·(d + f)) and 128 rows of scores, never n × n.
template <class T>
class BlockForward {
 public:
  BlockForward();
  ~BlockForward();
  BlockForward(BlockForward&&) noexcept;
  BlockForward& operator=(BlockForward&&) noexcept;

  // x ← block(x), n × d. For float and double. Throws InputError when shapes do not fit together.
  BlockCounts apply(const BlockSpec& spec, const BlockWeights<T>& weights, const Mask& mask,
                    std::type_identity_t<MatrixView<T>> x, DropoutKey key = {},
                    const BlockObserver<T>& observer = {});

 private:
  struct Scratch;
  std::unique_ptr<Scratch> scratch_;
};

// The attention matrix of one head (n × n), plainly: for small n, to look at and to test against.
template <class T>
Matrix<double> attention_matrix(const BlockSpec& spec, const BlockWeights<T>& weights, const Mask& mask,
                                std::type_identity_t<MatrixView<const T>> h, std::size_t head);

}  // namespace normscope

#pragma once
// One transformer block, forward: rows are tokens. Every part can be switched off, so that what attention,
// skip, norm and feed-forward each do to the tokens is seen separately.
//
//   attention     R = (hW_Q + b_Q)(hW_K + b_K)ᵀ/√d_QK per head, A = softmax of R over the mask's edges,
//                 f(h) = [A₁hW_V¹ … A_HhW_V^H]W_O + b_O
//   feed-forward  f(h) = gelu(hW₁ + b₁)W₂ + b₂, gelu(x) = x·Φ(x)
//   each of them  post      norm(x + f(x))
//                 pre       x + f(norm(x))
//                 sandwich  x + norm(f(norm(x)))      without skip: the same without "x +"
//
// A token that attends to nothing has a softmax over no score: its row of A is 0 (and counted). Rows that a
// norm leaves undefined: see norm.h.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "normscope/mask.h"
#include "normscope/matrix.h"
#include "normscope/norm.h"

namespace normscope {

struct BlockSpec {
  std::size_t width = 0, heads = 1;
  std::size_t feed_forward = 0;  // hidden width; 0: the block is attention only
  bool skip = true;
  NormSpec norm;  // none: no norm
  Placement placement = Placement::post;
  double temperature = 0;            // d_QK, of which scores are divided by the root; 0: the width of a head
  bool normalize_query_key = false;  // queries and keys scaled to norm 1 in each head (qknorm)
  double dropout = 0;                // of attention weights and of f's output, as in BERT in training

  std::size_t head_width() const { return width / heads; }
  double score_scale() const;
};

// Throws InputError if heads do not divide the width, the temperature is negative or not finite, dropout is
// not in [0, 1), or the norm does not fit.
void require_valid(const BlockSpec& spec);

// Weights map rows from the left: y = xW + b, W in × out. An empty bias is 0; empty gains are 1.
template <class T>
struct BlockWeights {
  Matrix<T> query_key_value;  // d × 3d: W_Q, W_K, W_V side by side
  Matrix<T> output;           // d × d
  Matrix<T> up, down;         // d × f, f × d; empty if the block has no feed-forward
  std::vector<T> query_key_value_bias, output_bias, up_bias, down_bias;
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

// The room a pass needs, kept between passes: O(n·(d + f)) and 128 rows of scores, never n × n.
template <class T>
class BlockForward {
 public:
  BlockForward();
  ~BlockForward();
  BlockForward(BlockForward&&) noexcept;
  BlockForward& operator=(BlockForward&&) noexcept;

  // x ← block(x), n × d. For float and double. Throws InputError when shapes do not fit together.
  BlockCounts apply(const BlockSpec& spec, const BlockWeights<T>& weights, const Mask& mask,
                    std::type_identity_t<MatrixView<T>> x, DropoutKey key = {});

 private:
  struct Room;
  std::unique_ptr<Room> room_;
};

// The attention matrix of one head (n × n), plainly: for small n, to look at and to test against.
template <class T>
Matrix<double> attention_matrix(const BlockSpec& spec, const BlockWeights<T>& weights, const Mask& mask,
                                std::type_identity_t<MatrixView<const T>> h, std::size_t head);

}  // namespace normscope

#pragma once
// The inner part of the bag path: all pairs (sequence, type), in chunks.
#include <cstdint>
#include <vector>

#include "normscope/train.h"

namespace normscope {

// What all sequences of a step share, C = classes, F = feed-forward width.
template <class T>
struct BagTables {
  std::size_t classes = 0, dimension = 0, heads = 0, feed_forward = 0;
  // Per type t a matrix (d + 2·heads) × C: w_tu v_uj (j of head h), w_tu (per head), w_tu log w_tu (per
  // head).
  std::vector<T> mix;
  std::vector<T> start;           // C × d: embedding + b_O
  std::vector<T> out;             // d × d: W_O
  std::vector<T> weight1, bias1;  // F × d and F, the gain and bias of norm2 folded in
  std::vector<T> weight2, bias2;
  std::vector<T> embedding;  // C × d
  T eps = 0;                 // of norm2
};

// The sequences of a batch side by side, so that the pairs of a type, which come in the order of rows, are
// read as a stream.
struct BagBatch {
  std::vector<std::uint16_t> counts;  // rows × classes
  std::vector<std::uint16_t> labels;  // of the rows
  std::vector<std::uint32_t> rows;    // for each type, from type · number of rows on: the rows it occurs in
  std::size_t length = 0;             // of a sequence
  double weight = 0;                  // of one position: 1/(rows · length)
};
// Pairs of one type: entries [begin, end) of BagBatch::rows.
struct BagChunk {
  std::size_t type, begin, end;
};

// Offsets of the sums of a chunk's gradient, with respect to the folded parameters.
struct BagSums {
  BagSums(std::size_t classes, std::size_t d, std::size_t heads, std::size_t feed_forward)
      : embedding(1),
        weight1(embedding + classes * d),
        bias1(weight1 + feed_forward * d),
        weight2(bias1 + feed_forward),
        bias2(weight2 + d * feed_forward),
        out(bias2 + d),
        x1(out + d * d),
        mix(x1 + d),
        size(mix + classes * (d + heads)) {}
  // The loss stands at 0; x1: ∂/∂x after attention, summed over the chunk; mix: C × (d + heads), of the
  // chunk's type.
  std::size_t embedding, weight1, bias1, weight2, bias2, out, x1, mix, size;
};

struct BagMeasure {
  double loss = 0, entropy = 0, distance = 0;  // weighted sums over pairs
  double right = 0;                            // positions, counted
  std::vector<std::uint32_t> wrong;            // rows with a wrong type
};

// Compiled for the instruction set of this machine.
template <class T>
struct BagKernels {
  // totals: BagSums::size numbers, zero at the start.
  void (*gradient)(const BagTables<T>& tables, const BagBatch& batch, const BagChunk& chunk, double* totals);
  void (*measure)(const BagTables<T>& tables, const BagBatch& batch, const BagChunk& chunk,
                  BagMeasure& total);
};
template <class T>
BagKernels<T> bag_kernels();

}  // namespace normscope

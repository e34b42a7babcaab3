#pragma once
// The element-wise half of a block's forward pass, for the best instruction set of the machine.
#include <cstddef>
#include <span>

#include "normscope/block.h"
#include "normscope/mask.h"

namespace normscope {

struct SoftmaxRow {
  double least = 1;    // weight on an edge
  double entropy = 0;  // nats
};

// Softmax over the runs of a row of scores, in place; scores[0] belongs to token `first`, and what no run
// covers becomes 0. No run: all 0. For float and double.
template <class T>
SoftmaxRow softmax_runs(T* scores, std::size_t width, std::size_t first, std::span<const Mask::Run> runs);

// In place. Float: relative error of gelu's Φ below 3e-7 where x > −5, of the others below 1e-6; double: by
// the formula.
void activate(Activation activation, float* values, std::size_t count);
void activate(Activation activation, double* values, std::size_t count);

}  // namespace normscope

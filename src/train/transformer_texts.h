#pragma once
// The inner part of training transformers: whole texts, one after another, between tokens and what enters the
// head.
#include <cstddef>
#include <optional>
#include <span>

#include "normscope/transformer.h"

namespace normscope {

template <class T>
struct TransformerJob {
  const TransformerSpec* spec = nullptr;
  const TokenBatch* batch = nullptr;
  std::span<const T> parameters;
  std::optional<DropoutKey> dropout;
  std::size_t columns = 0;                   // of each text: its length, padded
  std::size_t first_text = 0, end_text = 0;  // of this job
  T* kept = nullptr;  // texts × kept_rows × columns: what backward needs of forward; null: not wanted
};
// What enters a layer, what attention makes of it, and a number per head.
inline std::size_t kept_rows_of_layer(const BlockSpec& block) {
  return 2 * block.width + block.heads;
}
// Of every layer, and what enters the final norm.
inline std::size_t kept_rows(const ModelSpec& model) {
  return model.layers * kept_rows_of_layer(model.block) + model.block.width;
}

// Compiled for the instruction set of this machine. N is texts × columns.
template <class T>
struct TransformerKernels {
  // After the final norm, to d × N.
  void (*forward)(const TransformerJob<T>& job, T* outputs);
  // From ∂L/∂outputs (d × N) adds to `gradient`, which begins after the tables of embeddings and leaves the
  // classes' head alone, and writes ∂L/∂(word + position + type) to `dembeddings` (d × N).
  void (*backward)(const TransformerJob<T>& job, const T* doutputs, std::span<double> gradient,
                   T* dembeddings);
};
template <class T>
TransformerKernels<T> transformer_kernels();

}  // namespace normscope

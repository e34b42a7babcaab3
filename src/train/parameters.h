#pragma once
// Where each tensor of an encoder stands in the one array of its parameters, or of their gradient.
#include <span>
#include <vector>

#include "normscope/train.h"

namespace normscope {

template <class T>
struct NormSlices {
  std::span<T> gain, bias, normals;  // empty where the norm has none
  T* alpha = nullptr;
};

template <class T>
struct LayerSlices {
  NormSlices<T> norm1, norm2;
  std::span<T> in_proj;                         // 3d × d: rows of W_Q, then W_K, then W_V
  std::span<T> out_weight, out_bias;            // d × d, d
  std::span<T> weight1, bias1, weight2, bias2;  // F × d, F, d × F, d
};

template <class T>
struct EncoderSlices {
  std::span<T> embedding;  // classes × d
  std::vector<LayerSlices<T>> layers;
};

// T may be const.
template <class T>
EncoderSlices<T> slices(const EncoderSpec& spec, std::span<T> parameters);

// The parameters of one norm as the norm room takes them, of rows of width d.
template <class T>
NormParameters<T> norm_parameters(const NormSlices<const T>& slices, std::size_t d);
template <class T>
NormGradients<T> norm_gradients(const NormSlices<T>& slices, std::size_t d);

}  // namespace normscope

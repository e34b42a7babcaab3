#pragma once
// Where each tensor of a model stands in the one array of its parameters, or of their gradient.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "normscope/train.h"
#include "normscope/transformer.h"

namespace normscope {

template <class T>
struct NormSlices {
  std::span<T> gain, bias, normals;  // empty where the norm has none
  T* alpha = nullptr;
};

template <class T>
struct LayerSlices {
  NormSlices<T> norm1, norm2;
  std::span<T> matrix;                          // d × d in front of norm1, or none
  std::span<T> in_proj, in_bias;                // 3d × d: rows of W_Q, then W_K, then W_V; 3d, or none
  std::span<T> out_weight, out_bias;            // d × d, d
  std::span<T> weight1, bias1, weight2, bias2;  // F × d, F, d × F, d
};

template <class T>
struct EncoderSlices {
  std::span<T> embedding;  // classes × d
  std::vector<LayerSlices<T>> layers;
};

template <class T>
struct TransformerSlices {
  std::span<T> word, position, type;  // V × d, positions × d, types × d
  NormSlices<T> embedding_norm, final_norm;
  std::vector<LayerSlices<T>> layers;
  std::span<T> pooler_weight, pooler_bias, classifier_weight, classifier_bias;
};

// Every tensor of a norm, in the order in which they stand: visit(name, rows, cols, span member of the
// slices, or null, and pointer member) for each.
template <class Slices, class Visit>
void visit_norm(const NormSpec& norm, const std::string& name, std::size_t d, Slices& slices,
                const Visit& visit) {
  if (norm.affine) {
    visit(name + ".gain", 1, d, &slices.gain, nullptr);
    visit(name + ".bias", 1, d, &slices.bias, nullptr);
  }
  if (norm.projection == Projection::normals) {
    visit(name + ".normals", static_cast<std::size_t>(norm.normals), d, &slices.normals, nullptr);
  }
  if (norm.scaling == Scaling::tanh) {
    visit(name + ".alpha", 1, 1, static_cast<decltype(&slices.gain)>(nullptr), &slices.alpha);
  }
}

// Throws InputError if the norm leaves nothing of d dimensions or cannot be computed; `where` names it.
void check_trained_norm(const NormSpec& norm, std::string_view where, std::size_t d);

// A model's table of tensors is a function visit_all(slices, visit) that calls visit, as visit_norm does, for
// every tensor in the order in which they stand. From it: where each stands, and slices of one array.
template <class Slices, class VisitAll>
std::vector<ParameterSlot> slots_by(const VisitAll& visit_all) {
  std::vector<ParameterSlot> slots;
  std::size_t offset = 0;
  Slices unused;
  visit_all(unused, [&](const std::string& name, std::size_t rows, std::size_t cols, auto*, auto) {
    slots.push_back({name, rows, cols, offset});
    offset += rows * cols;
  });
  return slots;
}
template <class Slices, class T, class VisitAll>
Slices slices_by(std::span<T> parameters, const VisitAll& visit_all) {
  Slices result;
  std::size_t offset = 0;
  visit_all(result,
            [&](const std::string&, std::size_t rows, std::size_t cols, std::span<T>* slice, auto scalar) {
              if (slice != nullptr) *slice = parameters.subspan(offset, rows * cols);
              if constexpr (std::is_same_v<decltype(scalar), T**>) *scalar = parameters.data() + offset;
              offset += rows * cols;
            });
  return result;
}

// T may be const.
template <class T>
TransformerSlices<T> slices(const TransformerSpec& spec, std::span<T> parameters);
template <class T>
EncoderSlices<T> slices(const EncoderSpec& spec, std::span<T> parameters);

// The parameters of one norm as the norm room takes them, of rows of width d.
template <class T>
NormParameters<T> norm_parameters(const NormSlices<const T>& slices, std::size_t d);
template <class T>
NormGradients<T> norm_gradients(const NormSlices<T>& slices, std::size_t d);

}  // namespace normscope

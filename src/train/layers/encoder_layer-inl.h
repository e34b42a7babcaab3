// One layer of the encoder of train.h.   x: (d, T)
#ifndef NORMSCOPE_TRAIN_LAYERS_ENCODER_LAYER_REFERENCE
#define NORMSCOPE_TRAIN_LAYERS_ENCODER_LAYER_REFERENCE
#include "train/layers/attention-inl.h"
#include "train/layers/feed_forward-inl.h"
#include "train/layers/linear-inl.h"
#include "train/layers/norm-inl.h"

namespace normscope::reference {

inline Array sum(Array a, const Array& b) {
  for (std::size_t i = 0; i < a.values().size(); ++i) a.data()[i] += b.data()[i];
  return a;
}

// What attention reads.
inline Array first_norm(const EncoderSpec& spec, const LayerSlices<const double>& parameters,
                        const Array& x) {
  return norm(spec.norm1, parameters.norm1, spec.matrix ? linear(parameters.matrix, {}, x) : x);
}

inline Array encoder_layer(const EncoderSpec& spec, const LayerSlices<const double>& parameters,
                           const Array& x) {
  const Array qkv = linear(parameters.in_proj, {}, first_norm(spec, parameters, x));
  const Array o = attention(qkv, spec.heads, parse_mask(spec.mask, x.cols()), spec.uniform);
  const Array x1 = sum(x, linear(parameters.out_weight, parameters.out_bias, o));
  return sum(x1, feed_forward(Activation::relu, parameters, norm(spec.norm2, parameters.norm2, x1)));
}

}  // namespace normscope::reference
#endif

#if defined(NORMSCOPE_TRAIN_LAYERS_ENCODER_LAYER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMSCOPE_TRAIN_LAYERS_ENCODER_LAYER_INL_H_
#undef NORMSCOPE_TRAIN_LAYERS_ENCODER_LAYER_INL_H_
#else
#define NORMSCOPE_TRAIN_LAYERS_ENCODER_LAYER_INL_H_
#endif

#include <algorithm>
#include <optional>

#include "train/layers/attention-inl.h"
#include "train/layers/feed_forward-inl.h"
#include "train/layers/linear-inl.h"
#include "train/layers/norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normscope::HWY_NAMESPACE {
namespace {

template <class T>
class EncoderLayer {
 public:
  EncoderLayer(const EncoderSpec& spec, const LayerSlices<const T>& parameters, std::size_t length,
               std::size_t columns, const T* mask)
      : norm1_(spec.norm1, parameters.norm1, spec.dimension, columns),
        norm2_(spec.norm2, parameters.norm2, spec.dimension, columns),
        in_(parameters.in_proj, {}, 3 * spec.dimension, spec.dimension),
        out_(parameters.out_weight, parameters.out_bias, spec.dimension, spec.dimension),
        attention_(spec.dimension, spec.heads, length, columns, mask, spec.uniform),
        feed_forward_(parameters, spec.dimension, spec.feed_forward, columns),
        x_(spec.dimension, columns),
        h_(x_),
        m_(x_),
        o_(x_),
        x1_(x_),
        g_(x_),
        part_(x_),
        qkv_(3 * spec.dimension, columns),
        dqkv_(qkv_) {
    if (spec.matrix) matrix_.emplace(parameters.matrix, std::span<const T>(), spec.dimension, spec.dimension);
  }

  // x is replaced by the layer's output.
  void forward(Columns<T>& x) {
    x_ = x;
    if (matrix_) matrix_->forward(x_, m_);
    norm1_.forward(matrix_ ? m_ : x_, h_);
    in_.forward(h_, qkv_);
    attention_.forward(qkv_, o_);
    out_.forward(o_, part_);
    add(x, part_, x);
    x1_ = x;
    norm2_.forward(x1_, g_);
    feed_forward_.forward(g_, part_);
    add(x, part_, x);
  }

  // ∂L/∂output is replaced by ∂L/∂input.
  void backward(Columns<T>& dx) {
    feed_forward_.backward(g_, dx, part_);
    norm2_.backward(x1_, part_, dx);
    out_.backward(o_, dx, part_);
    attention_.backward(qkv_, part_, dqkv_);
    in_.backward(h_, dqkv_, part_);
    if (!matrix_) return norm1_.backward(x_, part_, dx);
    std::fill_n(h_.data(), h_.size(), T(0));  // is spent
    norm1_.backward(m_, part_, h_);
    matrix_->backward(x_, h_, part_);
    add(dx, part_, dx);
  }

  void take_gradients(const LayerSlices<double>& gradient) const {
    norm1_.take_gradients(gradient.norm1);
    norm2_.take_gradients(gradient.norm2);
    if (matrix_) matrix_->take_gradients(gradient.matrix, {});
    in_.take_gradients(gradient.in_proj, {});
    out_.take_gradients(gradient.out_weight, gradient.out_bias);
    feed_forward_.take_gradients(gradient);
  }

  const Attention<T>& attention() const { return attention_; }

 private:
  Norm<T> norm1_, norm2_;
  std::optional<Linear<T, LaneSums>> matrix_;
  Linear<T, LaneSums> in_, out_;
  Attention<T> attention_;
  FeedForward<T> feed_forward_;
  Columns<T> x_, h_, m_, o_, x1_, g_, part_, qkv_, dqkv_;
};

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

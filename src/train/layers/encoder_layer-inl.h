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

// norm°: without gain and bias.
inline NormSpec bare(NormSpec norm) {
  norm.affine = false;
  return norm;
}

// x + f(norm(x)), norm(x + f(x)), x + norm°(f(norm(x))); of the first two norm(Mx) with a matrix in front.
template <class Function>
Array sublayer(Placement placement, const NormSpec& spec, const NormSlices<const double>& parameters,
               const Array& x, const Function& f, std::span<const double> matrix = {}) {
  if (placement == Placement::post) return norm(spec, parameters, sum(x, f(x)));
  const Array y = f(norm(spec, parameters, matrix.empty() ? x : linear(matrix, {}, x)));
  return sum(x, placement == Placement::pre ? y : norm(bare(spec), {}, y));
}

inline Array encoder_layer(const EncoderSpec& spec, const LayerSlices<const double>& parameters,
                           const Array& x) {
  const Array x1 = sublayer(
      spec.placement, spec.norm1, parameters.norm1, x,
      [&](const Array& h) {
        const Array qkv = linear(parameters.in_proj, {}, h);
        const Array o =
            attention(qkv, spec.heads, parse_mask(spec.mask, x.cols()), spec.temperature, spec.uniform);
        return linear(parameters.out_weight, parameters.out_bias, o);
      },
      parameters.matrix);
  return sublayer(spec.placement, spec.norm2, parameters.norm2, x1,
                  [&](const Array& h) { return feed_forward(Activation::relu, parameters, h); });
}

// What attention reads.
inline Array first_norm(const EncoderSpec& spec, const LayerSlices<const double>& parameters,
                        const Array& x) {
  if (spec.placement == Placement::post) return x;
  return norm(spec.norm1, parameters.norm1, spec.matrix ? linear(parameters.matrix, {}, x) : x);
}

// (‖m‖√T/‖X‖)² = 1 − (μ/‖X‖)², m the mean token; 0 for X = 0.
inline double alikeness(const Array& x) {
  double mean_square = 0, square = 0;
  for (std::size_t i = 0; i < x.rows(); ++i) {
    double mean = 0;
    for (std::size_t t = 0; t < x.cols(); ++t) {
      mean += x(i, t) / static_cast<double>(x.cols());
      square += x(i, t) * x(i, t);
    }
    mean_square += mean * mean;
  }
  return square > 0 ? static_cast<double>(x.cols()) * mean_square / square : 0;
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
      : placement_(spec.placement),
        norm1_(spec.norm1, parameters.norm1, spec.dimension, columns),
        norm2_(spec.norm2, parameters.norm2, spec.dimension, columns),
        inner1_(bare(spec.norm1), {}, spec.dimension, columns),
        inner2_(bare(spec.norm2), {}, spec.dimension, columns),
        in_(parameters.in_proj, {}, 3 * spec.dimension, spec.dimension),
        out_(parameters.out_weight, parameters.out_bias, spec.dimension, spec.dimension),
        attention_(spec.dimension, spec.heads, length, columns, mask, spec.temperature, spec.uniform),
        feed_forward_(parameters, spec.dimension, spec.feed_forward, columns),
        x_(spec.dimension, columns),
        h_(x_),
        m_(x_),
        o_(x_),
        x1_(x_),
        g_(x_),
        part_(x_),
        inside1_(x_),
        inside2_(x_),
        dinside_(x_),
        qkv_(3 * spec.dimension, columns),
        dqkv_(qkv_) {
    if (spec.matrix) matrix_.emplace(parameters.matrix, std::span<const T>(), spec.dimension, spec.dimension);
  }

  // x is replaced by the layer's output.
  void forward(Columns<T>& x) {
    if (placement_ == Placement::post) return forward_post(x);
    x_ = x;
    if (matrix_) matrix_->forward(x_, m_);
    norm1_.forward(matrix_ ? m_ : x_, h_);
    in_.forward(h_, qkv_);
    attention_.forward(qkv_, o_);
    out_.forward(o_, part_);
    norm_inside(inner1_, inside1_);
    add(x, part_, x);
    x1_ = x;
    norm2_.forward(x1_, g_);
    feed_forward_.forward(g_, part_);
    norm_inside(inner2_, inside2_);
    add(x, part_, x);
  }

  // ∂L/∂output is replaced by ∂L/∂input.
  void backward(Columns<T>& dx) {
    if (placement_ == Placement::post) return backward_post(dx);
    feed_forward_.backward(g_, through_inside(inner2_, inside2_, dx), part_);
    norm2_.backward(x1_, part_, dx);
    out_.backward(o_, through_inside(inner1_, inside1_, dx), part_);
    attention_.backward(qkv_, part_, dqkv_);
    in_.backward(h_, dqkv_, part_);
    if (!matrix_) return norm1_.backward(x_, part_, dx);
    std::fill_n(h_.data(), h_.size(), T(0));  // is spent
    norm1_.backward(m_, part_, h_);
    matrix_->backward(x_, h_, part_);
    add(dx, part_, dx);
  }

  // What entered the layer that was run last.
  const Columns<T>& input() const { return x_; }

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
  static NormSpec bare(NormSpec norm) {
    norm.affine = false;
    return norm;
  }

  // norm1(x + attention(x)), then the same with the feed-forward part; x1_ and g_ are what the norms are of.
  void forward_post(Columns<T>& x) {
    x_ = x;
    in_.forward(x_, qkv_);
    attention_.forward(qkv_, o_);
    out_.forward(o_, part_);
    add(x_, part_, x1_);
    norm1_.forward(x1_, h_);
    feed_forward_.forward(h_, part_);
    add(h_, part_, g_);
    norm2_.forward(g_, x);
  }

  void backward_post(Columns<T>& dx) {
    clear(dinside_);
    norm2_.backward(g_, dx, dinside_);
    feed_forward_.backward(h_, dinside_, part_);
    add(dinside_, part_, dinside_);
    clear(dx);
    norm1_.backward(x1_, dinside_, dx);
    out_.backward(o_, dx, part_);
    attention_.backward(qkv_, part_, dqkv_);
    in_.backward(x_, dqkv_, part_);
    add(dx, part_, dx);
  }

  // Of a sandwich: what is in part_ is kept, and normed.
  void norm_inside(Norm<T>& inner, Columns<T>& inside) {
    if (placement_ != Placement::sandwich) return;
    inside = part_;
    inner.forward(inside, part_);
  }
  const Columns<T>& through_inside(Norm<T>& inner, const Columns<T>& inside, const Columns<T>& dx) {
    if (placement_ != Placement::sandwich) return dx;
    part_ = dx;
    clear(dinside_);
    inner.backward(inside, part_, dinside_);
    return dinside_;
  }
  static void clear(Columns<T>& x) { std::fill_n(x.data(), x.size(), T(0)); }

  Placement placement_;
  Norm<T> norm1_, norm2_, inner1_, inner2_;  // inner: of a sandwich
  std::optional<Linear<T, LaneSums>> matrix_;
  Linear<T, LaneSums> in_, out_;
  Attention<T> attention_;
  FeedForward<T> feed_forward_;
  Columns<T> x_, h_, m_, o_, x1_, g_, part_, inside1_, inside2_, dinside_, qkv_, dqkv_;
};

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

// Layers as forward/backward pairs, compiled once per instruction set. Each layer keeps what its backward
// needs of the last forward; gradients of parameters are summed over sequences until take_gradients.
//
// Shapes: activations are Block<T>, features × columns (see kernels-inl.h); T is the sequence length, d the
// width, F that of the feed-forward part. Weights are row-major as in train.h, used as y = W x on columns.
#if defined(NORMSCOPE_TRAIN_LAYERS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMSCOPE_TRAIN_LAYERS_INL_H_
#undef NORMSCOPE_TRAIN_LAYERS_INL_H_
#else
#define NORMSCOPE_TRAIN_LAYERS_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "train/kernels-inl.h"
#include "train/parameters.h"

HWY_BEFORE_NAMESPACE();
namespace normscope::HWY_NAMESPACE {
namespace {

template <class T>
class Block {
 public:
  Block() = default;
  Block(std::size_t rows, std::size_t columns)
      : rows_(rows), columns_(columns), values_(rows * columns, T(0)) {}

  std::size_t rows() const { return rows_; }
  std::size_t columns() const { return columns_; }
  T* data() { return values_.data(); }
  const T* data() const { return values_.data(); }
  T* row(std::size_t r) { return values_.data() + r * columns_; }
  const T* row(std::size_t r) const { return values_.data() + r * columns_; }

 private:
  std::size_t rows_ = 0, columns_ = 0;
  Aligned<T> values_;
};

// y = W x + b.
template <class T>
class Linear {
 public:
  Linear(std::span<const T> weight, std::span<const T> bias, std::size_t outputs, std::size_t inputs)
      : weight_(weight),
        bias_(bias),
        outputs_(outputs),
        inputs_(inputs),
        weight_sums_(outputs * inputs * kLanes<T>, T(0)),
        bias_sums_(bias.size() * kLanes<T>, T(0)) {}

  void forward(const Block<T>& x, Block<T>& y) const {
    if (bias_.empty()) {
      product<Start::zero>(outputs_, inputs_, {weight_.data(), inputs_, 1}, bias_.data(), x.data(),
                           x.columns(), y.data(), y.columns(), x.columns());
    } else {
      product<Start::bias>(outputs_, inputs_, {weight_.data(), inputs_, 1}, bias_.data(), x.data(),
                           x.columns(), y.data(), y.columns(), x.columns());
    }
  }
  // dx is written.
  void backward(const Block<T>& x, const Block<T>& dy, Block<T>& dx) {
    product<Start::zero>(inputs_, outputs_, {weight_.data(), 1, inputs_}, bias_.data(), dy.data(),
                         dy.columns(), dx.data(), dx.columns(), dy.columns());
    add_outer(outputs_, dy.data(), dy.columns(), inputs_, x.data(), x.columns(), weight_sums_.data(),
              dy.columns());
    if (!bias_.empty()) add_rows(outputs_, dy.data(), dy.columns(), bias_sums_.data(), dy.columns());
  }
  void take_gradients(std::span<double> weight, std::span<double> bias) const {
    reduce_lanes(weight_sums_.data(), weight.size(), weight.data());
    reduce_lanes(bias_sums_.data(), bias.size(), bias.data());
  }

 private:
  std::span<const T> weight_, bias_;
  std::size_t outputs_, inputs_;
  std::vector<T> weight_sums_, bias_sums_;
};

// Any norm. Those with one scale per token and at most the projection orthogonal to 1 run on columns; the
// others go through the norm room, row by row.
template <class T>
class Norm {
 public:
  Norm(const NormSpec& spec, const NormSlices<const T>& parameters, std::size_t d, std::size_t columns)
      : spec_(spec),
        parameters_(parameters),
        fast_(column_norm(spec, d)),
        z_(d, columns),
        centred_(fast_ && fast_->deviation ? d : 0, columns),
        inverse_(1, columns),
        gain_sums_(spec.affine ? d * kLanes<T> : 0, T(0)),
        bias_sums_(spec.affine ? d * kLanes<T> : 0, T(0)),
        gain_(parameters.gain.size()),
        bias_(parameters.bias.size()),
        normals_(parameters.normals.size()) {}

  void forward(const Block<T>& x, Block<T>& y) {
    if (!fast_) return forward_rows(x, y);
    const std::size_t d = x.rows(), columns = x.columns();
    norm_columns(*fast_, d, x.data(), z_.data(), centred_.data(), inverse_.data(), columns, columns);
    for (std::size_t i = 0; i < d; ++i) {
      const Vec<T> gain = splat(spec_.affine ? parameters_.gain[i] : T(1));
      const Vec<T> bias = splat(spec_.affine ? parameters_.bias[i] : T(0));
      for (std::size_t c = 0; c < columns; c += kLanes<T>) {
        store(hn::MulAdd(load(z_.row(i) + c), gain, bias), y.row(i) + c);
      }
    }
  }

  // Adds ∂L/∂x to dx; dy is spent.
  void backward(const Block<T>& x, Block<T>& dy, Block<T>& dx) {
    if (!fast_) return backward_rows(x, dy, dx);
    const std::size_t d = x.rows(), columns = x.columns();
    if (spec_.affine) {
      add_rows(d, dy.data(), columns, bias_sums_.data(), columns);
      for (std::size_t i = 0; i < d; ++i) {
        const Vec<T> gain = splat(parameters_.gain[i]);
        Vec<T> sum = load(gain_sums_.data() + i * kLanes<T>);
        for (std::size_t c = 0; c < columns; c += kLanes<T>) {
          const Vec<T> g = load(dy.row(i) + c);
          sum = hn::MulAdd(g, load(z_.row(i) + c), sum);
          store(hn::Mul(g, gain), dy.row(i) + c);
        }
        store(sum, gain_sums_.data() + i * kLanes<T>);
      }
    }
    norm_columns_backward(*fast_, d, z_.data(), centred_.data(), inverse_.data(), dy.data(), dx.data(),
                          columns, columns);
  }

  void take_gradients(const NormSlices<double>& gradient) const {
    reduce_lanes(gain_sums_.data(), gain_sums_.size() / kLanes<T>, gradient.gain.data());
    reduce_lanes(bias_sums_.data(), bias_sums_.size() / kLanes<T>, gradient.bias.data());
    const auto add = [](const std::vector<T>& from, std::span<double> to) {
      for (std::size_t i = 0; i < from.size(); ++i) to[i] += static_cast<double>(from[i]);
    };
    add(gain_, gradient.gain);
    add(bias_, gradient.bias);
    add(normals_, gradient.normals);
    if (gradient.alpha != nullptr) *gradient.alpha += static_cast<double>(alpha_);
  }

 private:
  static std::optional<ColumnNorm<T>> column_norm(const NormSpec& spec, std::size_t d) {
    const auto root = std::sqrt(static_cast<T>(d));
    ColumnNorm<T> norm{spec.projection == Projection::ones, true, false, root, static_cast<T>(spec.eps)};
    if (spec.projection == Projection::normals) return std::nullopt;
    switch (spec.scaling) {
      case Scaling::none:
        norm.scale = false;
        return norm;
      case Scaling::root_dimension:
        return norm;
      case Scaling::unit:
        norm.target = 1;
        return norm;
      case Scaling::inverse_root_dimension:
        norm.target = 1 / root;
        return norm;
      case Scaling::standard_deviation:
        norm.deviation = true;
        return norm;
      default:
        return std::nullopt;
    }
  }

  static Matrix<T> transposed(const Block<T>& x) {
    Matrix<T> rows(x.columns(), x.rows());
    for (std::size_t i = 0; i < x.rows(); ++i) {
      for (std::size_t c = 0; c < x.columns(); ++c) rows(c, i) = x.row(i)[c];
    }
    return rows;
  }

  void forward_rows(const Block<T>& x, Block<T>& y) const {
    Matrix<T> rows = transposed(x);
    norm_forward<T>(spec_, norm_parameters(parameters_, x.rows()), rows.view(), rows.view());
    for (std::size_t i = 0; i < x.rows(); ++i) {
      for (std::size_t c = 0; c < x.columns(); ++c) y.row(i)[c] = rows(c, i);
    }
  }

  void backward_rows(const Block<T>& x, const Block<T>& dy, Block<T>& dx) {
    const std::size_t d = x.rows();
    const Matrix<T> rows = transposed(x);
    Matrix<T> gradient = transposed(dy);
    const NormGradients<T> sums = {gain_, bias_, {normals_.data(), normals_.size() / d, d}, &alpha_};
    norm_backward<T>(spec_, norm_parameters(parameters_, d), rows.view(), gradient.view(), gradient.view(),
                     sums);
    for (std::size_t i = 0; i < d; ++i) {
      for (std::size_t c = 0; c < x.columns(); ++c) dx.row(i)[c] += gradient(c, i);
    }
  }

  NormSpec spec_;
  NormSlices<const T> parameters_;
  std::optional<ColumnNorm<T>> fast_;
  Block<T> z_, centred_, inverse_;
  std::vector<T> gain_sums_, bias_sums_;  // per lane, of the columns
  std::vector<T> gain_, bias_, normals_;  // of the rows
  T alpha_ = 0;
};

// Sums over the tokens of one sequence, means over heads.
struct AttentionMeasure {
  double entropy = 0, distance = 0;
};

// softmax(q kᵀ/√(d/heads) + mask) v per head; keys are rows and queries columns, so that softmax runs down
// columns.
template <class T>
class Attention {
 public:
  // mask: keys × columns, added to the scores (0 or a very negative number; every query has a key left), or
  // null.
  Attention(std::size_t d, std::size_t heads, std::size_t length, std::size_t columns, const T* mask)
      : width_(d / heads),
        heads_(heads),
        length_(length),
        mask_(mask),
        scale_(1 / std::sqrt(static_cast<T>(width_))),
        weights_(heads, Block<T>(length, columns)),
        dweights_(length, columns),
        dots_(width_ * length) {}

  // qkv: 3d × columns; o: d × columns.
  void forward(const Block<T>& qkv, Block<T>& o) {
    const std::size_t d = width_ * heads_, columns = qkv.columns();
    for (std::size_t h = 0; h < heads_; ++h) {
      const T *q = qkv.row(h * width_), *k = qkv.row(d + h * width_), *v = qkv.row(2 * d + h * width_);
      Block<T>& weights = weights_[h];
      product<Start::zero>(length_, width_, {k, 1, columns}, q, q, columns, weights.data(), columns, columns);
      scale(weights);
      softmax_columns(length_, weights.data(), columns, mask_, columns, columns);
      product<Start::zero>(width_, length_, {v, columns, 1}, q, weights.data(), columns, o.row(h * width_),
                           columns, columns);
    }
  }

  // dqkv is written.
  void backward(const Block<T>& qkv, const Block<T>& dout, Block<T>& dqkv) {
    const std::size_t d = width_ * heads_, columns = qkv.columns();
    for (std::size_t h = 0; h < heads_; ++h) {
      const T *q = qkv.row(h * width_), *k = qkv.row(d + h * width_), *v = qkv.row(2 * d + h * width_);
      const T* g = dout.row(h * width_);
      const Block<T>& weights = weights_[h];
      product<Start::zero>(length_, width_, {v, 1, columns}, q, g, columns, dweights_.data(), columns,
                           columns);
      sums_over_queries(g, weights, dqkv.row(2 * d + h * width_), columns);
      softmax_columns_backward(length_, weights.data(), columns, dweights_.data(), columns);
      scale(dweights_);
      product<Start::zero>(width_, length_, {k, columns, 1}, q, dweights_.data(), columns,
                           dqkv.row(h * width_), columns, columns);
      sums_over_queries(q, dweights_, dqkv.row(d + h * width_), columns);
    }
  }

  AttentionMeasure measure() const {
    AttentionMeasure sum;
    // Uniform over the keys that the mask leaves to a query.
    std::vector<double> uniform(length_, 1.0 / static_cast<double>(length_));
    for (std::size_t i = 0; mask_ != nullptr && i < length_; ++i) {
      double left = 0;
      for (std::size_t j = 0; j < length_; ++j) left += hidden(j, i) ? 0 : 1;
      uniform[i] = 1 / left;
    }
    for (const Block<T>& weights : weights_) {
      for (std::size_t j = 0; j < length_; ++j) {
        for (std::size_t i = 0; i < length_; ++i) {
          const auto weight = static_cast<double>(weights.row(j)[i]);
          // Rounding may put the only weight of a row above 1.
          if (weight > 0 && weight < 1) sum.entropy -= weight * std::log(weight);
          if (!hidden(j, i)) sum.distance += std::fabs(weight - uniform[i]) / 2;
        }
      }
    }
    return {sum.entropy / static_cast<double>(heads_), sum.distance / static_cast<double>(heads_)};
  }

 private:
  void scale(Block<T>& block) const {
    const Vec<T> factor = splat(scale_);
    T* const values = block.data();
    for (std::size_t i = 0; i < block.rows() * block.columns(); i += kLanes<T>) {
      store(hn::Mul(load(values + i), factor), values + i);
    }
  }

  bool hidden(std::size_t key, std::size_t query) const {
    return mask_ != nullptr && mask_[key * dweights_.columns() + query] < 0;
  }

  // result[c][j] = Σ over queries i of a[c][i]·block[j][i], for keys j; padding keys get 0.
  void sums_over_queries(const T* a, const Block<T>& block, T* result, std::size_t columns) {
    row_products(width_, a, columns, length_, block.data(), columns, result, columns, columns);
    for (std::size_t c = 0; c < width_; ++c) {
      std::fill(result + c * columns + length_, result + (c + 1) * columns, T(0));
    }
  }

  std::size_t width_, heads_, length_;
  const T* mask_;
  T scale_;
  std::vector<Block<T>> weights_;
  Block<T> dweights_;
  std::vector<T> dots_;
};

// relu(W₁ x + b₁), then W₂ · + b₂.
template <class T>
class FeedForward {
 public:
  FeedForward(const LayerSlices<const T>& parameters, std::size_t d, std::size_t width, std::size_t columns)
      : first_(parameters.weight1, parameters.bias1, width, d),
        second_(parameters.weight2, parameters.bias2, d, width),
        hidden_(width, columns),
        dhidden_(width, columns) {}

  void forward(const Block<T>& x, Block<T>& y) {
    first_.forward(x, hidden_);
    relu(hidden_.rows(), hidden_.data(), hidden_.columns(), hidden_.columns());
    second_.forward(hidden_, y);
  }
  void backward(const Block<T>& x, const Block<T>& dy, Block<T>& dx) {
    second_.backward(hidden_, dy, dhidden_);
    relu_backward(hidden_.rows(), hidden_.data(), dhidden_.data(), hidden_.columns(), hidden_.columns());
    first_.backward(x, dhidden_, dx);
  }
  void take_gradients(const LayerSlices<double>& gradient) const {
    first_.take_gradients(gradient.weight1, gradient.bias1);
    second_.take_gradients(gradient.weight2, gradient.bias2);
  }

 private:
  Linear<T> first_, second_;
  Block<T> hidden_, dhidden_;
};

template <class T>
HWY_INLINE void add_block(const Block<T>& from, Block<T>& to) {
  for (std::size_t i = 0; i < from.rows() * from.columns(); i += kLanes<T>) {
    store(hn::Add(load(to.data() + i), load(from.data() + i)), to.data() + i);
  }
}

template <class T>
class EncoderLayer {
 public:
  EncoderLayer(const EncoderSpec& spec, const LayerSlices<const T>& parameters, std::size_t length,
               std::size_t columns, const T* mask)
      : norm1_(spec.norm1, parameters.norm1, spec.dimension, columns),
        norm2_(spec.norm2, parameters.norm2, spec.dimension, columns),
        in_(parameters.in_proj, {}, 3 * spec.dimension, spec.dimension),
        out_(parameters.out_weight, parameters.out_bias, spec.dimension, spec.dimension),
        attention_(spec.dimension, spec.heads, length, columns, mask),
        feed_forward_(parameters, spec.dimension, spec.feed_forward, columns),
        x_(spec.dimension, columns),
        h_(x_),
        o_(x_),
        x1_(x_),
        g_(x_),
        part_(x_),
        qkv_(3 * spec.dimension, columns),
        dqkv_(qkv_) {}

  // x is replaced by the layer's output.
  void forward(Block<T>& x) {
    x_ = x;
    norm1_.forward(x_, h_);
    in_.forward(h_, qkv_);
    attention_.forward(qkv_, o_);
    out_.forward(o_, part_);
    add_block(part_, x);
    x1_ = x;
    norm2_.forward(x1_, g_);
    feed_forward_.forward(g_, part_);
    add_block(part_, x);
  }

  // ∂L/∂output is replaced by ∂L/∂input.
  void backward(Block<T>& dx) {
    feed_forward_.backward(g_, dx, part_);
    norm2_.backward(x1_, part_, dx);
    out_.backward(o_, dx, part_);
    attention_.backward(qkv_, part_, dqkv_);
    in_.backward(h_, dqkv_, part_);
    norm1_.backward(x_, part_, dx);
  }

  void take_gradients(const LayerSlices<double>& gradient) const {
    norm1_.take_gradients(gradient.norm1);
    norm2_.take_gradients(gradient.norm2);
    in_.take_gradients(gradient.in_proj, {});
    out_.take_gradients(gradient.out_weight, gradient.out_bias);
    feed_forward_.take_gradients(gradient);
  }

  const Attention<T>& attention() const { return attention_; }

 private:
  Norm<T> norm1_, norm2_;
  Linear<T> in_, out_;
  Attention<T> attention_;
  FeedForward<T> feed_forward_;
  Block<T> x_, h_, o_, x1_, g_, part_, qkv_, dqkv_;
};

// logits = embedding · x.
template <class T>
HWY_INLINE void tied_output(const T* embedding, const Block<T>& x, Block<T>& logits) {
  product<Start::zero>(logits.rows(), x.rows(), {embedding, x.rows(), 1}, embedding, x.data(), x.columns(),
                       logits.data(), logits.columns(), x.columns());
}

// dx is written; the embedding's gradient is added to lane sums.
template <class T>
HWY_INLINE void tied_output_backward(const T* embedding, const Block<T>& x, const Block<T>& dlogits,
                                     Block<T>& dx, T* embedding_sums) {
  product<Start::zero>(x.rows(), dlogits.rows(), {embedding, 1, x.rows()}, embedding, dlogits.data(),
                       dlogits.columns(), dx.data(), dx.columns(), x.columns());
  add_outer(dlogits.rows(), dlogits.data(), dlogits.columns(), x.rows(), x.data(), x.columns(),
            embedding_sums, x.columns());
}

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

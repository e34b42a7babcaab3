// y = W x + b.   W: (M, K), b: (M) or none, x: (K, T), y: (M, T)
#ifndef NORMSCOPE_TRAIN_LAYERS_LINEAR_REFERENCE
#define NORMSCOPE_TRAIN_LAYERS_LINEAR_REFERENCE
#include <span>

#include "train/columns.h"

namespace normscope::reference {

inline Array linear(std::span<const double> weight, std::span<const double> bias, const Array& x) {
  const std::size_t K = x.rows(), T = x.cols(), M = weight.size() / K;
  Array y(M, T);
  for (std::size_t m = 0; m < M; ++m) {
    for (std::size_t t = 0; t < T; ++t) {
      y(m, t) = bias.empty() ? 0 : bias[m];
      for (std::size_t k = 0; k < K; ++k) y(m, t) += weight[m * K + k] * x(k, t);
    }
  }
  return y;
}

}  // namespace normscope::reference
#endif

#if defined(NORMSCOPE_TRAIN_LAYERS_LINEAR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMSCOPE_TRAIN_LAYERS_LINEAR_INL_H_
#undef NORMSCOPE_TRAIN_LAYERS_LINEAR_INL_H_
#else
#define NORMSCOPE_TRAIN_LAYERS_LINEAR_INL_H_
#endif

#include "train/products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normscope::HWY_NAMESPACE {
namespace {

// ∂L/∂W = Σ over columns of dy ⊗ x, as lane sums: for few weights.
template <class T>
class LaneSums {
 public:
  LaneSums(std::size_t outputs, std::size_t inputs) : sums_(outputs * inputs * kLanes<T>, T(0)) {}

  void add(const Columns<T>& dy, const Columns<T>& x) {
    add_outer(dy.rows(), dy.from(), x.rows(), x.from(), sums_.data(), dy.columns());
  }
  void take(std::span<double> weight) const { reduce_lanes(sums_.data(), weight.size(), weight.data()); }

 private:
  Aligned<T> sums_;
};

// The same in no more memory than the weights take, up to padding: for whole texts.
template <class T>
class RowSums {
 public:
  RowSums(std::size_t outputs, std::size_t inputs) : sums_(outputs, padded_columns(inputs)) {}

  void add(const Columns<T>& dy, const Columns<T>& x) {
    const std::size_t columns = dy.columns(), stride = sums_.columns();
    transposed_.resize(columns * stride);
    transpose(x.data(), columns, x.rows(), columns, transposed_.data(), stride);
    product<Start::add>({dy.rows(), columns, stride}, {dy.data(), columns, 1}, {transposed_.data(), stride},
                        sums_.from());
  }
  void take(std::span<double> weight) const {
    const std::size_t inputs = weight.size() / sums_.rows();
    for (std::size_t i = 0; i < weight.size(); ++i)
      weight[i] += static_cast<double>(sums_.row(i / inputs)[i % inputs]);
  }

 private:
  Columns<T> sums_;
  Aligned<T> transposed_;
};

template <class T, template <class> class Sums>
class Linear {
 public:
  Linear(std::span<const T> weight, std::span<const T> bias, std::size_t outputs, std::size_t inputs)
      : weight_(weight),
        bias_(bias),
        outputs_(outputs),
        inputs_(inputs),
        sums_(outputs, inputs),
        bias_sums_(bias.size() * kLanes<T>, T(0)) {}

  void forward(const Columns<T>& x, Columns<T>& y) const {
    const Shape shape = {outputs_, inputs_, x.columns()};
    const Weights<T> weights = {weight_.data(), inputs_, 1};
    if (bias_.empty()) {
      product<Start::zero>(shape, weights, x.from(), y.from());
    } else {
      product<Start::bias>(shape, weights, x.from(), y.from(), bias_.data());
    }
  }
  // dx is written.
  void backward(const Columns<T>& x, const Columns<T>& dy, Columns<T>& dx) {
    product<Start::zero>({inputs_, outputs_, dy.columns()}, {weight_.data(), 1, inputs_}, dy.from(),
                         dx.from());
    sums_.add(dy, x);
    if (!bias_.empty()) add_rows(outputs_, dy.data(), bias_sums_.data(), dy.columns());
  }
  void take_gradients(std::span<double> weight, std::span<double> bias) const {
    sums_.take(weight);
    reduce_lanes(bias_sums_.data(), bias.size(), bias.data());
  }

 private:
  std::span<const T> weight_, bias_;
  std::size_t outputs_, inputs_;
  Sums<T> sums_;
  Aligned<T> bias_sums_;
};

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

// y = W₂ a(W₁ x + b₁) + b₂ with an activation a.   x, y: (d, T), W₁: (F, d), W₂: (d, F)
#ifndef NORMSCOPE_TRAIN_LAYERS_FEED_FORWARD_REFERENCE
#define NORMSCOPE_TRAIN_LAYERS_FEED_FORWARD_REFERENCE
#include <algorithm>
#include <cmath>
#include <numbers>

#include "normscope/block.h"
#include "train/layers/linear-inl.h"
#include "train/parameters.h"

namespace normscope::reference {

inline double activated(Activation activation, double u) {
  switch (activation) {
    case Activation::gelu:
      return u * std::erfc(-u / std::numbers::sqrt2) / 2;
    case Activation::gelu_tanh:
      return u * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (u + 0.044715 * u * u * u))) / 2;
    case Activation::relu:
      return std::max(0.0, u);
    case Activation::silu:
      return u / (1 + std::exp(-u));
  }
  return u;
}

inline Array feed_forward(Activation activation, const LayerSlices<const double>& parameters,
                          const Array& x) {
  Array hidden = linear(parameters.weight1, parameters.bias1, x);
  for (std::size_t i = 0; i < hidden.values().size(); ++i)
    hidden.data()[i] = activated(activation, hidden.data()[i]);
  return linear(parameters.weight2, parameters.bias2, hidden);
}

}  // namespace normscope::reference
#endif

#if defined(NORMSCOPE_TRAIN_LAYERS_FEED_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMSCOPE_TRAIN_LAYERS_FEED_FORWARD_INL_H_
#undef NORMSCOPE_TRAIN_LAYERS_FEED_FORWARD_INL_H_
#else
#define NORMSCOPE_TRAIN_LAYERS_FEED_FORWARD_INL_H_
#endif

#include "train/layers/linear-inl.h"
#include "train/products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normscope::HWY_NAMESPACE {
namespace {

// relu in place.
template <class T>
HWY_INLINE void relu(T* values, std::size_t size) {
  for (std::size_t i = 0; i < size; i += kLanes<T>) store(hn::Max(load(values + i), zero<T>()), values + i);
}

// ∂L/∂(before relu) in place of ∂L/∂(after), from the values after.
template <class T>
HWY_INLINE void relu_backward(const T* values, T* gradient, std::size_t size) {
  for (std::size_t i = 0; i < size; i += kLanes<T>) {
    const auto on = hn::Gt(load(values + i), zero<T>());
    store(hn::IfThenElseZero(on, load(gradient + i)), gradient + i);
  }
}

// With relu, the hidden layer held: for few units.
template <class T>
class FeedForward {
 public:
  FeedForward(const LayerSlices<const T>& parameters, std::size_t d, std::size_t width, std::size_t columns)
      : first_(parameters.weight1, parameters.bias1, width, d),
        second_(parameters.weight2, parameters.bias2, d, width),
        hidden_(width, columns),
        dhidden_(width, columns) {}

  void forward(const Columns<T>& x, Columns<T>& y) {
    first_.forward(x, hidden_);
    relu(hidden_.data(), hidden_.size());
    second_.forward(hidden_, y);
  }
  void backward(const Columns<T>& x, const Columns<T>& dy, Columns<T>& dx) {
    second_.backward(hidden_, dy, dhidden_);
    relu_backward(hidden_.data(), dhidden_.data(), hidden_.size());
    first_.backward(x, dhidden_, dx);
  }
  void take_gradients(const LayerSlices<double>& gradient) const {
    first_.take_gradients(gradient.weight1, gradient.bias1);
    second_.take_gradients(gradient.weight2, gradient.bias2);
  }

 private:
  Linear<T, LaneSums> first_, second_;
  Columns<T> hidden_, dhidden_;
};

// With a GELU, kUnits hidden units and kTextColumns columns at a time: the hidden layer, which may be
// hundreds of times wider than x, is never held, and computed again backward.
template <class T>
class FusedFeedForward {
 public:
  FusedFeedForward(const LayerSlices<const T>& parameters, std::size_t d, std::size_t hidden,
                   Activation activation)
      : parameters_(parameters),
        d_(d),
        hidden_(hidden),
        stride_(padded_columns(d)),
        activation_(activation),
        down_weight_(hidden * d),
        x_(kTextColumns, stride_),
        dy_(kTextColumns, stride_),
        values_(kUnits),
        slopes_(kUnits) {
    transpose(parameters.weight2.data(), hidden, d, hidden, down_weight_.data(), d);
  }

  void forward(const Columns<T>& x, Columns<T>& y) {
    for_blocks(x.columns(), [&](std::size_t c, std::size_t unit, std::size_t count) HWY_ATTR {
      if (unit == 0) {
        for (std::size_t k = 0; k < d_; ++k) std::fill_n(y.row(k) + c, kTextColumns, parameters_.bias2[k]);
      }
      raise(x, c, unit, count);
      activate(count);
      product<Start::add>({d_, count, kTextColumns}, {down_weight_.data() + unit * d_, 1, d_}, values_.from(),
                          y.from(0, c));
    });
  }

  // dx is written.
  void backward(const Columns<T>& x, const Columns<T>& dy, Columns<T>& dx) {
    if (up_.size() == 0) {
      up_ = down_ = Columns<T>(hidden_, stride_);
      up_bias_.assign(hidden_ * kLanes<T>, T(0));
      down_bias_.assign(d_ * kLanes<T>, T(0));
    }
    const std::size_t columns = x.columns();
    for_blocks(columns, [&](std::size_t c, std::size_t unit, std::size_t count) HWY_ATTR {
      if (unit == 0) {
        for (std::size_t k = 0; k < d_; ++k) std::fill_n(dx.row(k) + c, kTextColumns, T(0));
        transpose(x.data() + c, columns, d_, kTextColumns, x_.data(), stride_);
        transpose(dy.data() + c, columns, d_, kTextColumns, dy_.data(), stride_);
      }
      raise(x, c, unit, count);
      product<Start::zero>({count, d_, kTextColumns}, {down_weight_.data() + unit * d_, d_, 1}, dy.from(0, c),
                           slopes_.from());
      activate_backward(count);
      product<Start::add>({d_, count, kTextColumns}, {parameters_.weight1.data() + unit * d_, 1, d_},
                          slopes_.from(), dx.from(0, c));
      const Shape of_units = {count, kTextColumns, stride_};
      product<Start::add>(of_units, {slopes_.data(), kTextColumns, 1}, x_.from(), up_.from(unit));
      product<Start::add>(of_units, {values_.data(), kTextColumns, 1}, dy_.from(), down_.from(unit));
      add_rows(count, slopes_.data(), up_bias_.data() + unit * kLanes<T>, kTextColumns);
    });
    add_rows(d_, dy.data(), down_bias_.data(), columns);
  }

  // After backward.
  void take_gradients(const LayerSlices<double>& gradient) const {
    for (std::size_t unit = 0; unit < hidden_; ++unit) {
      for (std::size_t k = 0; k < d_; ++k) {
        gradient.weight1[unit * d_ + k] += static_cast<double>(up_.row(unit)[k]);
        gradient.weight2[k * hidden_ + unit] += static_cast<double>(down_.row(unit)[k]);
      }
    }
    reduce_lanes(up_bias_.data(), hidden_, gradient.bias1.data());
    reduce_lanes(down_bias_.data(), d_, gradient.bias2.data());
  }

 private:
  static constexpr std::size_t kUnits = 64;

  template <class Body>
  HWY_INLINE void for_blocks(std::size_t columns, const Body& body) {
    for (std::size_t c = 0; c < columns; c += kTextColumns) {
      for (std::size_t unit = 0; unit < hidden_; unit += kUnits)
        body(c, unit, std::min(kUnits, hidden_ - unit));
    }
  }

  // W₁ x + b₁ of some units.
  HWY_INLINE void raise(const Columns<T>& x, std::size_t c, std::size_t unit, std::size_t count) {
    product<Start::bias>({count, d_, kTextColumns}, {parameters_.weight1.data() + unit * d_, d_, 1},
                         x.from(0, c), values_.from(), parameters_.bias1.data() + unit);
  }

  // a(values) in their place.
  HWY_INLINE void activate(std::size_t count) {
    const auto replace = [&](const auto& function) HWY_ATTR {
      for (std::size_t i = 0; i < count * kTextColumns; i += kLanes<T>)
        store(function(load(values_.data() + i)), values_.data() + i);
    };
    if (activation_ == Activation::gelu) {
      replace([](Vec<T> x) HWY_ATTR { return gelu_value<T>(x); });
    } else {
      replace([](Vec<T> x) HWY_ATTR { return gelu_tanh<T>(x).value; });
    }
  }

  // The same, and the slopes, which hold ∂L/∂a, times a′.
  HWY_INLINE void activate_backward(std::size_t count) {
    const auto replace = [&](const auto& function) HWY_ATTR {
      for (std::size_t i = 0; i < count * kTextColumns; i += kLanes<T>) {
        const WithSlope<T> result = function(load(values_.data() + i));
        store(result.value, values_.data() + i);
        store(hn::Mul(result.slope, load(slopes_.data() + i)), slopes_.data() + i);
      }
    };
    if (activation_ == Activation::gelu) {
      replace([](Vec<T> x) HWY_ATTR { return gelu<T>(x); });
    } else {
      replace([](Vec<T> x) HWY_ATTR { return gelu_tanh<T>(x); });
    }
  }

  const LayerSlices<const T>& parameters_;
  std::size_t d_, hidden_, stride_;
  Activation activation_;
  Aligned<T> down_weight_;  // W₂, unit by unit: rows `hidden` apart share few lines of a cache
  Columns<T> up_, down_;    // gradients, hidden × d both; empty: none yet
  Aligned<T> up_bias_, down_bias_;
  Columns<T> x_, dy_;
  Columns<T, kTextColumns> values_, slopes_;
};

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

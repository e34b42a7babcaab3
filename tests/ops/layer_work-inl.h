// How an op becomes a row of the table, for one instruction set.
//
// An op is one struct: its form, the number of tokens, the layer's reference, and Layer<T>, which runs the
// fast one. Both take the parameters as one array, in the order of the form.
#if defined(NORMSCOPE_TESTS_OPS_LAYER_WORK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMSCOPE_TESTS_OPS_LAYER_WORK_INL_H_
#undef NORMSCOPE_TESTS_OPS_LAYER_WORK_INL_H_
#else
#define NORMSCOPE_TESTS_OPS_LAYER_WORK_INL_H_
#endif

#include <fmt/format.h>

#include <limits>

#include "ops/ops.h"
#include "train/columns.h"
#include "train/layers/feed_forward-inl.h"

#ifndef NORMSCOPE_TESTS_OPS_LAYER_WORK_ONCE
#define NORMSCOPE_TESTS_OPS_LAYER_WORK_ONCE
namespace normscope::ops {

struct Slot {
  std::string name;
  std::size_t rows, cols;
};
struct Form {
  std::string name, shape;
  std::size_t input_rows, output_rows;
  double operations;  // as Row::operations
  std::vector<Slot> parameters = {};
};
inline double real(std::size_t value) {
  return static_cast<double>(value);
}
// All but the first, one after another.
template <class T>
std::vector<T> flat(const Arrays& arrays) {
  std::vector<T> values;
  for (std::size_t a = 1; a < arrays.size(); ++a) {
    for (const double value : arrays[a].value.values()) values.push_back(static_cast<T>(value));
  }
  return values;
}
inline double norm_operations(std::size_t d, std::size_t tokens) {
  return 14 * real(d) * real(tokens);
}
inline double attention_operations(std::size_t d, std::size_t heads, std::size_t tokens) {
  return (12 * real(d) + 8 * real(heads)) * real(tokens) * real(tokens);
}
inline double linear_operations(std::size_t outputs, std::size_t inputs, std::size_t tokens) {
  return 6 * real(outputs) * real(inputs) * real(tokens);
}

}  // namespace normscope::ops
#endif

HWY_BEFORE_NAMESPACE();
namespace normscope::HWY_NAMESPACE {
namespace {

using ops::Array;
using ops::Arrays;
using ops::Slot;

template <class T>
using Values = std::span<const T>;

// An op's layer on padded columns. What a layer must write is NaN before; padding of the input is 0, as in
// the generic path, and so is its gradient. An op may ask for more padding.
template <class Op>
std::size_t columns_of(const Op& op) {
  if constexpr (requires { Op::kPadding; }) {
    return (op.tokens + Op::kPadding - 1) / Op::kPadding * Op::kPadding;
  } else {
    return padded_columns(op.tokens);
  }
}

template <class Op, class T>
class LayerWork final : public ops::Work {
 public:
  LayerWork(const Op& op, const Arrays& arrays)
      : op_(op),
        arrays_(arrays),
        columns_(columns_of(op)),
        x_(op.form().input_rows, columns_),
        y_(op.form().output_rows, columns_),
        dy_(y_),
        seed_(y_),
        dx_(x_),
        values_(ops::flat<T>(arrays)),
        layer_(op_, values_, columns_) {
    fill(x_, arrays[0].value);
    constexpr T nan = std::numeric_limits<T>::quiet_NaN();
    std::fill_n(y_.data(), y_.size(), nan);
    std::fill_n(dx_.data(), dx_.size(), nan);
  }

  void forward() override { layer_.forward(x_, y_); }
  Array output() const override { return tokens_of(y_); }
  void seed(const Array& gradient) override { fill(seed_, gradient); }
  void backward() override {
    dy_ = seed_;
    layer_.backward(x_, dy_, dx_);
  }
  Arrays gradients() const override {
    std::vector<double> sums(values_.size(), 0.0);
    layer_.take_gradients(sums);
    Arrays result = {{arrays_[0].name, tokens_of(dx_)}};
    auto next = sums.begin();
    for (std::size_t a = 1; a < arrays_.size(); ++a) {
      const Array& shape = arrays_[a].value;
      const auto end = next + static_cast<std::ptrdiff_t>(shape.values().size());
      result.push_back({arrays_[a].name, Array(shape.rows(), shape.cols(), {next, end})});
      next = end;
    }
    return result;
  }
  std::string complaint() const override {
    for (std::size_t i = 0; i < dx_.rows(); ++i) {
      for (std::size_t c = op_.tokens; c < columns_; ++c) {
        if (dx_.row(i)[c] != 0) {
          return fmt::format("the gradient of padding column {}, row {}, is {} instead of 0", c, i,
                             dx_.row(i)[c]);
        }
      }
    }
    return {};
  }

 private:
  static void fill(Columns<T>& to, const Array& from) {
    for (std::size_t i = 0; i < from.rows(); ++i) {
      for (std::size_t c = 0; c < from.cols(); ++c) to.row(i)[c] = static_cast<T>(from(i, c));
    }
  }
  Array tokens_of(const Columns<T>& from) const {
    Array result(from.rows(), op_.tokens);
    for (std::size_t i = 0; i < from.rows(); ++i) {
      for (std::size_t c = 0; c < op_.tokens; ++c) result(i, c) = static_cast<double>(from.row(i)[c]);
    }
    return result;
  }

  Op op_;
  Arrays arrays_;
  std::size_t columns_;
  Columns<T> x_, y_, dy_, seed_, dx_;
  std::vector<T> values_;
  typename Op::template Layer<T> layer_;
};

template <class Op>
ops::Row make_row(const Op& op) {
  ops::Row row;
  const ops::Form form = op.form();
  row.name = form.name;
  row.shape = form.shape;
  row.operations = form.operations;
  const std::string seed = row.name + row.shape;
  row.arrays.push_back({"x", ops::random_array("x", form.input_rows, op.tokens, seed)});
  if constexpr (requires(Array & x) { op.adjust(x); }) op.adjust(row.arrays[0].value);
  for (const Slot& slot : form.parameters)
    row.arrays.push_back({slot.name, ops::random_array(slot.name, slot.rows, slot.cols, seed)});
  if constexpr (requires(Array & gradient) { op.adjust_seed(gradient); })
    row.adjust_seed = [op](Array& gradient) { op.adjust_seed(gradient); };
  row.reference = [op](const Arrays& arrays) {
    return op.reference(arrays[0].value, ops::flat<double>(arrays));
  };
  row.in_float = [op](const Arrays& arrays) { return std::make_unique<LayerWork<Op, float>>(op, arrays); };
  row.in_double = [op](const Arrays& arrays) { return std::make_unique<LayerWork<Op, double>>(op, arrays); };
  return row;
}

// Either feed-forward layer: FeedForward, which takes relu, or FusedFeedForward.
template <bool kFused>
struct FeedForwardOp {
  static constexpr std::size_t kPadding = kFused ? kTextColumns : kColumns;
  std::size_t d, width, tokens;
  Activation activation = Activation::relu;

  ops::Form form() const {
    const char* const name = !kFused                          ? "feed_forward"
                             : activation == Activation::gelu ? "fused_feed_forward/gelu"
                                                              : "fused_feed_forward/gelu_tanh";
    return {name,
            fmt::format("d={} F={} T={}", d, width, tokens),
            d,
            d,
            2 * ops::linear_operations(d, width, tokens),
            {{"up.weight", width, d}, {"up.bias", 1, width}, {"down.weight", d, width}, {"down.bias", 1, d}}};
  }
  template <class V>
  LayerSlices<V> slice(std::span<V> values) const {
    LayerSlices<V> slices;
    slices.weight1 = values.first(d * width);
    slices.bias1 = values.subspan(d * width, width);
    slices.weight2 = values.subspan((d + 1) * width, d * width);
    slices.bias2 = values.last(d);
    return slices;
  }
  Array reference(const Array& x, Values<double> values) const {
    return reference::feed_forward(activation, slice(values), x);
  }

  template <class T>
  struct Layer {
    Layer(const FeedForwardOp& op, Values<T> values, std::size_t columns)
        : op_(op), parameters(op.slice(values)), layer(make(columns)) {}
    void forward(const Columns<T>& x, Columns<T>& y) { layer.forward(x, y); }
    void backward(const Columns<T>& x, Columns<T>& dy, Columns<T>& dx) { layer.backward(x, dy, dx); }
    void take_gradients(std::span<double> sums) const { layer.take_gradients(op_.slice(sums)); }

    auto make(std::size_t columns) const {
      if constexpr (kFused) {
        return FusedFeedForward<T>(parameters, op_.d, op_.width, op_.activation);
      } else {
        return FeedForward<T>(parameters, op_.d, op_.width, columns);
      }
    }
    const FeedForwardOp& op_;
    LayerSlices<const T> parameters;
    std::conditional_t<kFused, FusedFeedForward<T>, FeedForward<T>> layer;
  };
};

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

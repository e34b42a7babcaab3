// How an op becomes a row of the table, for one instruction set.
//
// An op is one struct: name, shape, rows of its input and output, parameters, the reference, and Layer<T>,
// which runs the real one.
#if defined(NORMSCOPE_TESTS_OPS_LAYER_WORK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMSCOPE_TESTS_OPS_LAYER_WORK_INL_H_
#undef NORMSCOPE_TESTS_OPS_LAYER_WORK_INL_H_
#else
#define NORMSCOPE_TESTS_OPS_LAYER_WORK_INL_H_
#endif

#include <fmt/format.h>

#include <limits>

#include "ops/ops.h"
#include "train/layers-inl.h"

#ifndef NORMSCOPE_TESTS_OPS_LAYER_WORK_ONCE
#define NORMSCOPE_TESTS_OPS_LAYER_WORK_ONCE
namespace normscope::ops {

struct Slot {
  std::string name;
  std::size_t rows, cols;
};
inline double real(std::size_t value) {
  return static_cast<double>(value);
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

// An op's layer on padded blocks. What a layer must write is NaN before; padding of the input is 0, as in the
// generic path, and so is its gradient. An op may ask for more padding.
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
        x_(op.input_rows(), columns_),
        y_(op.output_rows(), columns_),
        dy_(y_),
        seed_(y_),
        dx_(x_),
        values_(flat(arrays)),
        layer_(op_, values_, columns_) {
    fill(x_, arrays[0].value);
    constexpr T nan = std::numeric_limits<T>::quiet_NaN();
    std::fill_n(y_.data(), y_.rows() * columns_, nan);
    std::fill_n(dx_.data(), dx_.rows() * columns_, nan);
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
  static std::vector<T> flat(const Arrays& arrays) {
    std::vector<T> values;
    for (std::size_t a = 1; a < arrays.size(); ++a) {
      for (const double value : arrays[a].value.values()) values.push_back(static_cast<T>(value));
    }
    return values;
  }
  static void fill(Block<T>& block, const Array& from) {
    for (std::size_t i = 0; i < from.rows(); ++i) {
      for (std::size_t c = 0; c < from.cols(); ++c) block.row(i)[c] = static_cast<T>(from(i, c));
    }
  }
  Array tokens_of(const Block<T>& block) const {
    Array result(block.rows(), op_.tokens);
    for (std::size_t i = 0; i < block.rows(); ++i) {
      for (std::size_t c = 0; c < op_.tokens; ++c) result(i, c) = static_cast<double>(block.row(i)[c]);
    }
    return result;
  }

  Op op_;
  Arrays arrays_;
  std::size_t columns_;
  Block<T> x_, y_, dy_, seed_, dx_;
  std::vector<T> values_;
  typename Op::template Layer<T> layer_;
};

template <class Op>
ops::Row make_row(const Op& op) {
  ops::Row row;
  row.name = op.name();
  row.shape = op.shape();
  row.operations = op.operations();
  const std::string seed = row.name + row.shape;
  row.arrays.push_back({"x", ops::random_array("x", op.input_rows(), op.tokens, seed)});
  if constexpr (requires(Array & x) { op.adjust(x); }) op.adjust(row.arrays[0].value);
  for (const Slot& slot : op.parameters())
    row.arrays.push_back({slot.name, ops::random_array(slot.name, slot.rows, slot.cols, seed)});
  if constexpr (requires(Array & gradient) { op.adjust_seed(gradient); })
    row.adjust_seed = [op](Array& gradient) { op.adjust_seed(gradient); };
  row.reference = [op](const Arrays& arrays) { return op.reference(arrays[0].value, arrays); };
  row.in_float = [op](const Arrays& arrays) { return std::make_unique<LayerWork<Op, float>>(op, arrays); };
  row.in_double = [op](const Arrays& arrays) { return std::make_unique<LayerWork<Op, double>>(op, arrays); };
  return row;
}

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

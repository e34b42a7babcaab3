// The ops that are layers, compiled once per instruction set as the layers are.
//
// layer_rows() says at which shapes.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/layer_rows.cc"
#include <fmt/format.h>
// In this order, before highway.h.
// clang-format off
#include "core/targets.h"
#include <hwy/foreach_target.h>
// clang-format on

#include <cmath>
#include <limits>

#include "normscope/mask.h"
#include "ops/layer_work-inl.h"
#include "train/generic.h"
#include "train/layers/attention-inl.h"
#include "train/layers/cross_entropy-inl.h"
#include "train/layers/encoder_layer-inl.h"
#include "train/layers/linear-inl.h"
#include "train/layers/norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normscope::HWY_NAMESPACE {
namespace {

template <template <class> class Sums>
struct LinearOp {
  std::size_t outputs, inputs, tokens;
  bool bias = false;

  ops::Form form() const {
    std::vector<Slot> slots = {{"weight", outputs, inputs}};
    if (bias) slots.push_back({"bias", 1, outputs});
    const bool rows = std::is_same_v<Sums<float>, RowSums<float>>;
    return {fmt::format("linear{}{}", rows ? "/rows" : "", bias ? "+bias" : ""),
            fmt::format("{}x{} T={}", outputs, inputs, tokens),
            inputs,
            outputs,
            ops::linear_operations(outputs, inputs, tokens),
            slots};
  }
  Array reference(const Array& x, Values<double> values) const {
    return reference::linear(values.first(outputs * inputs), values.subspan(outputs * inputs), x);
  }

  template <class T>
  struct Layer {
    Layer(const LinearOp& op, Values<T> values, std::size_t)
        : weights(op.outputs * op.inputs),
          linear(values.first(weights), values.subspan(weights), op.outputs, op.inputs) {}
    void forward(const Columns<T>& x, Columns<T>& y) { linear.forward(x, y); }
    void backward(const Columns<T>& x, Columns<T>& dy, Columns<T>& dx) { linear.backward(x, dy, dx); }
    void take_gradients(std::span<double> sums) const {
      linear.take_gradients(sums.first(weights), sums.subspan(weights));
    }
    std::size_t weights;
    Linear<T, Sums> linear;
  };
};

struct NormOp {
  NormSpec spec;
  std::size_t d, tokens;
  bool undefined = false;  // zero and constant columns, which scaling leaves undefined

  ops::Form form() const {
    std::vector<Slot> slots;
    if (spec.affine) slots = {{"gain", 1, d}, {"bias", 1, d}};
    if (spec.projection == Projection::normals)
      slots.push_back({"normals", static_cast<std::size_t>(spec.normals), d});
    if (spec.scaling == Scaling::tanh) slots.push_back({"alpha", 1, 1});
    return {fmt::format("norm/{}{}{}", name_of(spec), spec.affine ? "+affine" : "",
                        undefined ? "/undefined" : ""),
            fmt::format("d={} T={} eps={}", d, tokens, spec.eps),
            d,
            d,
            ops::norm_operations(d, tokens),
            slots};
  }
  void adjust(Array& x) const {
    for (std::size_t c = 0; undefined && c < tokens; ++c) {
      const float level = c == 0 ? 0.0F : c == 1 ? 1.0F : static_cast<float>(x(0, c));
      for (std::size_t i = 0; i < d; ++i) x(i, c) = static_cast<double>(level);
    }
  }
  template <class V>
  NormSlices<V> slice(std::span<V> values) const {
    NormSlices<V> slices;
    std::size_t offset = 0;
    visit_norm(spec, "", d, slices,
               [&](const std::string&, std::size_t rows, std::size_t cols, std::span<V>* part, auto scalar) {
                 if (part != nullptr) *part = values.subspan(offset, rows * cols);
                 if constexpr (std::is_same_v<decltype(scalar), V**>) *scalar = values.data() + offset;
                 offset += rows * cols;
               });
    return slices;
  }
  Array reference(const Array& x, Values<double> values) const {
    return reference::norm(spec, slice(values), x);
  }

  template <class T>
  struct Layer {
    Layer(const NormOp& op, Values<T> values, std::size_t columns)
        : norm(op.spec, op.slice(values), op.d, columns), op_(op) {}
    void forward(const Columns<T>& x, Columns<T>& y) { norm.forward(x, y); }
    void backward(const Columns<T>& x, Columns<T>& dy, Columns<T>& dx) {
      std::fill_n(dx.data(), dx.size(), T(0));
      norm.backward(x, dy, dx);
    }
    void take_gradients(std::span<double> sums) const { norm.take_gradients(op_.slice(sums)); }
    Norm<T> norm;
    const NormOp& op_;
  };
};

// Added to what a mask hides, as the generic path does.
constexpr double kHiddenScore = -1e30;

// Column c sees keys 0 … c only, if masked, with 0.1 added per key.
struct SoftmaxOp {
  std::size_t keys, tokens;
  bool masked;

  ops::Form form() const {
    return {masked ? "softmax+mask" : "softmax", fmt::format("keys={} T={}", keys, tokens), keys, keys,
            8 * ops::real(keys) * ops::real(tokens)};
  }
  double bias(std::size_t key, std::size_t c) const {
    return key > c ? kHiddenScore : 0.125 * ops::real(key);
  }
  Array reference(const Array& x, Values<double>) const {
    Array scores = x;
    for (std::size_t j = 0; j < keys; ++j) {
      for (std::size_t c = 0; masked && c < tokens; ++c) scores(j, c) += bias(j, c);
    }
    return reference::softmax(scores);
  }

  template <class T>
  struct Layer {
    Layer(const SoftmaxOp& op, Values<T>, std::size_t columns)
        : masked(op.masked), bias(op.keys, columns), weights(op.keys, columns) {
      for (std::size_t j = 0; j < op.keys; ++j) {
        for (std::size_t c = 0; c < op.tokens; ++c) bias.row(j)[c] = static_cast<T>(op.bias(j, c));
      }
    }
    void forward(const Columns<T>& x, Columns<T>& y) {
      weights = x;
      softmax_columns(x.rows(), weights.data(), masked ? bias.data() : nullptr, x.columns());
      y = weights;
    }
    void backward(const Columns<T>& x, Columns<T>& dy, Columns<T>& dx) {
      dx = dy;
      softmax_columns_backward(x.rows(), weights.data(), dx.data(), x.columns());
    }
    void take_gradients(std::span<double>) const {}
    bool masked;
    Columns<T> bias, weights;
  };
};

struct AttentionOp {
  std::size_t d, heads, tokens;
  std::string mask;

  ops::Form form() const {
    return {mask == "full" ? "attention" : "attention+" + mask,
            fmt::format("d={} heads={} T={}", d, heads, tokens), 3 * d, d,
            ops::attention_operations(d, heads, tokens)};
  }
  Array reference(const Array& x, Values<double>) const {
    return reference::attention(x, heads, parse_mask(mask, tokens));
  }

  template <class T>
  struct Layer {
    Layer(const AttentionOp& op, Values<T>, std::size_t columns)
        : mask(added_mask<T>(op.mask, op.tokens)),
          attention(op.d, op.heads, op.tokens, columns, mask.empty() ? nullptr : mask.data()) {}
    void forward(const Columns<T>& x, Columns<T>& y) { attention.forward(x, y); }
    void backward(const Columns<T>& x, Columns<T>& dy, Columns<T>& dx) { attention.backward(x, dy, dx); }
    void take_gradients(std::span<double>) const {}
    std::vector<T> mask;
    Attention<T> attention;
  };
};

// The weights of the columns are ∂L/∂loss, so that those of the padding are 0.
struct CrossEntropyOp {
  std::size_t classes, tokens;
  bool ties = false;  // logits that are small whole numbers: the first of the highest counts

  ops::Form form() const {
    return {ties ? "cross_entropy/ties" : "cross_entropy", fmt::format("C={} T={}", classes, tokens), classes,
            2, 8 * ops::real(classes) * ops::real(tokens)};
  }
  void adjust(Array& x) const {
    for (std::size_t i = 0; ties && i < classes * tokens; ++i) x.data()[i] = std::round(x.data()[i]);
  }
  std::vector<std::uint16_t> labels() const {
    std::vector<std::uint16_t> values(tokens);
    for (std::size_t c = 0; c < tokens; ++c)
      values[c] = static_cast<std::uint16_t>((7 * c + classes - 1) % classes);
    return values;
  }
  Array reference(const Array& x, Values<double>) const {
    const auto all = labels();
    return reference::cross_entropy(x, {all.begin(), all.end()});
  }

  template <class T>
  struct Layer {
    Layer(const CrossEntropyOp& op, Values<T>, std::size_t columns)
        : labels(op.labels()), weights(1, columns) {
      labels.resize(columns, 0);
    }
    void forward(const Columns<T>& x, Columns<T>& y) {
      Columns<T> spent = x;
      cross_entropy_columns(x.rows(), spent.data(), labels.data(), weights.data(), {y.row(0), y.row(1)},
                            x.columns());
    }
    void backward(const Columns<T>& x, Columns<T>& dy, Columns<T>& dx) {
      dx = x;
      Columns<T> loss(1, x.columns());
      cross_entropy_columns(x.rows(), dx.data(), labels.data(), dy.row(0), {loss.data(), nullptr},
                            x.columns());
    }
    void take_gradients(std::span<double>) const {}
    std::vector<std::uint16_t> labels;
    Columns<T> weights;
  };
};

struct EncoderLayerOp {
  EncoderSpec spec;
  std::size_t tokens;

  ops::Form form() const {
    const std::size_t d = spec.dimension;
    std::vector<Slot> slots;
    for (const ParameterSlot& slot : parameter_slots(spec)) {
      if (slot.name != "embedding") slots.push_back({slot.name, slot.rows, slot.cols});
    }
    return {
        fmt::format("encoder_layer/{}{}{}", name_of(spec.norm1), spec.mask == "full" ? "" : "+" + spec.mask,
                    spec.placement == Placement::pre ? "" : fmt::format("+{}", name_of(spec.placement))),
        fmt::format("d={} F={} heads={} T={}", d, spec.feed_forward, spec.heads, tokens),
        d,
        d,
        ops::linear_operations(4 * d, d, tokens) + ops::attention_operations(d, spec.heads, tokens) +
            2 * ops::linear_operations(d, spec.feed_forward, tokens) + 2 * ops::norm_operations(d, tokens),
        slots};
  }
  // The layer's parameters behind an embedding of zeros, as an encoder has them.
  template <class V>
  std::vector<V> with_embedding(Values<V> values) const {
    std::vector<V> all(spec.classes * spec.dimension, V(0));
    all.insert(all.end(), values.begin(), values.end());
    return all;
  }
  Array reference(const Array& x, Values<double> values) const {
    const std::vector<double> all = with_embedding(values);
    return reference::encoder_layer(spec, slices(spec, std::span(all)).layers[0], x);
  }

  template <class T>
  struct Layer {
    Layer(const EncoderLayerOp& op, Values<T> parameters, std::size_t columns)
        : op_(op),
          values(op.with_embedding(parameters)),
          mask(added_mask<T>(op.spec.mask, op.tokens)),
          layer(op.spec, slices(op.spec, Values<T>(values)).layers[0], op.tokens, columns,
                mask.empty() ? nullptr : mask.data()) {}
    void forward(const Columns<T>& x, Columns<T>& y) {
      y = x;
      layer.forward(y);
    }
    void backward(const Columns<T>&, Columns<T>& dy, Columns<T>& dx) {
      dx = dy;
      layer.backward(dx);
    }
    void take_gradients(std::span<double> sums) const {
      std::vector<double> all(values.size(), 0.0);
      layer.take_gradients(slices(op_.spec, std::span(all)).layers[0]);
      std::copy(all.end() - static_cast<std::ptrdiff_t>(sums.size()), all.end(), sums.begin());
    }
    const EncoderLayerOp& op_;
    std::vector<T> values, mask;
    EncoderLayer<T> layer;
  };
};

// The majority task has d = F = 8, 20 classes and length 50: those rows are timed.
void add_rows_of_layers(std::vector<ops::Row>* rows) {
  const auto add = [&](const auto& op, bool perf = false, bool grad = true) {
    rows->push_back(make_row(op));
    rows->back().perf = perf;
    rows->back().grad = grad;
  };
  const std::size_t lengths[] = {1, 2, 5, 8, 17, 50};
  for (const bool bias : {false, true}) {
    for (const std::size_t tokens : lengths) add(LinearOp<LaneSums>{8, 8, tokens, bias}, tokens == 50);
    add(LinearOp<LaneSums>{1, 1, 5, bias});
    add(LinearOp<LaneSums>{7, 3, 17, bias});
    add(LinearOp<LaneSums>{24, 8, 50, bias}, true);
    add(LinearOp<RowSums>{24, 8, 50, bias}, true);
    add(LinearOp<RowSums>{1, 1, 1, bias});
    add(LinearOp<RowSums>{7, 13, 33, bias});
  }
  // As the output of 20 classes, of 2 and of 1.
  add(LinearOp<LaneSums>{20, 8, 50}, true);
  add(LinearOp<LaneSums>{2, 3, 5});
  add(LinearOp<LaneSums>{1, 2, 1});

  for (const char* name : {"none", "center", "layernorm", "rmsnorm", "unit", "published", "xsigma", "dyt",
                           "qknorm:2", "normals:1", "project:1", "project:2", "project:4"}) {
    for (const bool affine : {false, true}) {
      for (const double eps : {0.0, 1e-5}) {
        NormSpec spec = parse_norm(name);
        const bool scales = spec.scaling != Scaling::none && spec.scaling != Scaling::tanh;
        if (eps > 0 && !scales) continue;  // eps has no place in these
        spec.affine = affine;
        spec.eps = eps;
        add(NormOp{spec, 6, 5});
        add(NormOp{spec, 8, 50}, eps == 0);
        if (spec.projection == Projection::ones || spec.scaling == Scaling::standard_deviation) {
          add(NormOp{spec, 3, 17});
          // 41 and 49 are the first d with d·(1/d) ≠ 1 in float and in double.
          for (const std::size_t d : {2, 3, 8, 41, 49}) add(NormOp{spec, d, 17, true}, false, false);
        }
      }
    }
  }

  for (const std::size_t tokens : lengths) {
    for (const bool masked : {false, true}) add(SoftmaxOp{tokens, tokens, masked}, tokens == 50);
    for (const char* mask : {"full", "causal", "window:1", "star"}) {
      for (const std::size_t heads : {1, 2})
        add(AttentionOp{8, heads, tokens, mask}, tokens == 50 && heads == 1);
      if (tokens <= 17) add(AttentionOp{12, 4, tokens, mask});
      if (tokens <= 17) add(AttentionOp{3, 3, tokens, mask});
    }
    add(FeedForwardOp<false>{8, 8, tokens}, tokens == 50);
    add(CrossEntropyOp{20, tokens}, tokens == 50);
  }
  add(FeedForwardOp<false>{3, 7, 17});
  add(FeedForwardOp<false>{5, 1, 5});
  add(CrossEntropyOp{2, 17});
  add(CrossEntropyOp{1, 5});
  add(CrossEntropyOp{4, 50, true}, false, false);

  const auto encoder = [](const char* norm, std::size_t d, std::size_t heads, const char* mask) {
    EncoderSpec spec;
    spec.classes = 1;
    spec.dimension = d;
    spec.heads = heads;
    spec.feed_forward = d + (d == 8 ? 0 : 1);
    spec.norm1 = parse_norm(norm);
    spec.norm2 = parse_norm("layernorm");
    spec.norm2.affine = true;
    spec.mask = mask;
    return spec;
  };
  for (const char* norm : {"layernorm", "rmsnorm", "none"}) {
    add(EncoderLayerOp{encoder(norm, 8, 1, "full"), 50}, true, false);
    for (const std::size_t tokens : {1, 2, 17}) add(EncoderLayerOp{encoder(norm, 8, 1, "full"), tokens});
  }
  for (const char* norm : {"layernorm", "project:2", "dyt", "xsigma", "qknorm:2"}) {
    for (const char* mask : {"full", "causal", "onesided:2"})
      add(EncoderLayerOp{encoder(norm, 6, 2, mask), 9});
  }
  for (const Placement placement : {Placement::post, Placement::sandwich}) {
    for (const char* norm : {"layernorm", "rmsnorm", "none"}) {
      EncoderSpec spec = encoder(norm, 6, 2, "causal");
      spec.placement = placement;
      spec.temperature = 2;
      add(EncoderLayerOp{spec, 9});
    }
  }
}

std::int64_t target_of_layers() {
  return HWY_TARGET;
}

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normscope {

HWY_EXPORT(add_rows_of_layers);
HWY_EXPORT(target_of_layers);

std::vector<ops::Row> ops::layer_rows() {
  std::vector<Row> rows;
  HWY_DYNAMIC_DISPATCH(add_rows_of_layers)(&rows);
  return rows;
}

std::int64_t ops::layer_target() {
  return HWY_DYNAMIC_DISPATCH(target_of_layers)();
}

}  // namespace normscope
#endif

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
#include "train/layers-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normscope::HWY_NAMESPACE {
namespace {

struct ProductOp {
  std::size_t outputs, inputs, tokens;
  bool bias;

  std::string name() const { return bias ? "product+bias" : "product"; }
  std::string shape() const { return fmt::format("{}x{} T={}", outputs, inputs, tokens); }
  std::size_t input_rows() const { return inputs; }
  std::size_t output_rows() const { return outputs; }
  std::vector<Slot> parameters() const {
    std::vector<Slot> slots = {{"weight", outputs, inputs}};
    if (bias) slots.push_back({"bias", 1, outputs});
    return slots;
  }
  double operations() const { return ops::linear_operations(outputs, inputs, tokens); }
  Array reference(const Array& x, const Arrays& arrays) const {
    return ops::reference::linear(ops::at(arrays, "weight"), ops::find(arrays, "bias"), x);
  }

  template <class T>
  struct Layer {
    Layer(const ProductOp& op, Values<T> values, std::size_t)
        : weights(op.outputs * op.inputs),
          linear(values.first(weights), values.subspan(weights), op.outputs, op.inputs) {}
    void forward(const Block<T>& x, Block<T>& y) { linear.forward(x, y); }
    void backward(const Block<T>& x, Block<T>& dy, Block<T>& dx) { linear.backward(x, dy, dx); }
    void take_gradients(std::span<double> sums) const {
      linear.take_gradients(sums.first(weights), sums.subspan(weights));
    }
    std::size_t weights;
    Linear<T> linear;
  };
};

struct TiedOutputOp {
  std::size_t classes, d, tokens;

  std::string name() const { return "tied_output"; }
  std::string shape() const { return fmt::format("C={} d={} T={}", classes, d, tokens); }
  std::size_t input_rows() const { return d; }
  std::size_t output_rows() const { return classes; }
  std::vector<Slot> parameters() const { return {{"embedding", classes, d}}; }
  double operations() const { return ops::linear_operations(classes, d, tokens); }
  Array reference(const Array& x, const Arrays& arrays) const {
    return ops::reference::linear(ops::at(arrays, "embedding"), nullptr, x);
  }

  template <class T>
  struct Layer {
    Layer(const TiedOutputOp&, Values<T> values, std::size_t)
        : embedding(values), sums(values.size() * kLanes<T>, T(0)) {}
    void forward(const Block<T>& x, Block<T>& y) { tied_output(embedding.data(), x, y); }
    void backward(const Block<T>& x, Block<T>& dy, Block<T>& dx) {
      tied_output_backward(embedding.data(), x, dy, dx, sums.data());
    }
    void take_gradients(std::span<double> totals) const {
      reduce_lanes(sums.data(), totals.size(), totals.data());
    }
    Values<T> embedding;
    std::vector<T> sums;
  };
};

struct NormOp {
  NormSpec spec;
  std::size_t d, tokens;
  bool undefined = false;  // zero and constant columns, which scaling leaves undefined

  std::string name() const {
    return fmt::format("norm/{}{}{}", name_of(spec), spec.affine ? "+affine" : "",
                       undefined ? "/undefined" : "");
  }
  std::string shape() const { return fmt::format("d={} T={} eps={}", d, tokens, spec.eps); }
  std::size_t input_rows() const { return d; }
  std::size_t output_rows() const { return d; }
  std::vector<Slot> parameters() const {
    std::vector<Slot> slots;
    if (spec.affine) slots = {{"gain", 1, d}, {"bias", 1, d}};
    if (spec.projection == Projection::normals)
      slots.push_back({"normals", static_cast<std::size_t>(spec.normals), d});
    if (spec.scaling == Scaling::tanh) slots.push_back({"alpha", 1, 1});
    return slots;
  }
  double operations() const { return ops::norm_operations(d, tokens); }
  void adjust(Array& x) const {
    for (std::size_t c = 0; undefined && c < tokens; ++c) {
      const float level = c == 0 ? 0.0F : c == 1 ? 1.0F : static_cast<float>(x(0, c));
      for (std::size_t i = 0; i < d; ++i) x(i, c) = static_cast<double>(level);
    }
  }
  Array reference(const Array& x, const Arrays& arrays) const {
    return ops::reference::norm(spec, arrays, "", x);
  }

  template <class T>
  struct Layer {
    Layer(const NormOp& op, Values<T> values, std::size_t columns)
        : norm(op.spec, slice<const T>(op, values), op.d, columns), op_(op) {}
    void forward(const Block<T>& x, Block<T>& y) { norm.forward(x, y); }
    void backward(const Block<T>& x, Block<T>& dy, Block<T>& dx) {
      std::fill_n(dx.data(), dx.rows() * dx.columns(), T(0));
      norm.backward(x, dy, dx);
    }
    void take_gradients(std::span<double> sums) const { norm.take_gradients(slice<double>(op_, sums)); }

    template <class V>
    static NormSlices<V> slice(const NormOp& op, std::span<V> values) {
      NormSlices<V> slices;
      std::size_t offset = 0;
      for (const Slot& slot : op.parameters()) {
        const auto part = values.subspan(offset, slot.rows * slot.cols);
        offset += part.size();
        if (slot.name == "gain") slices.gain = part;
        if (slot.name == "bias") slices.bias = part;
        if (slot.name == "normals") slices.normals = part;
        if (slot.name == "alpha") slices.alpha = part.data();
      }
      return slices;
    }
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

  std::string name() const { return masked ? "softmax+mask" : "softmax"; }
  std::string shape() const { return fmt::format("keys={} T={}", keys, tokens); }
  std::size_t input_rows() const { return keys; }
  std::size_t output_rows() const { return keys; }
  std::vector<Slot> parameters() const { return {}; }
  double operations() const { return 8 * ops::real(keys) * ops::real(tokens); }
  double bias(std::size_t key, std::size_t c) const {
    return key > c ? kHiddenScore : 0.125 * ops::real(key);
  }
  Array reference(const Array& x, const Arrays&) const {
    Array scores = x;
    for (std::size_t j = 0; j < keys; ++j) {
      for (std::size_t c = 0; masked && c < tokens; ++c) scores(j, c) += bias(j, c);
    }
    return ops::reference::softmax(scores);
  }

  template <class T>
  struct Layer {
    Layer(const SoftmaxOp& op, Values<T>, std::size_t columns)
        : masked(op.masked), bias(op.keys, columns), weights(op.keys, columns) {
      for (std::size_t j = 0; j < op.keys; ++j) {
        for (std::size_t c = 0; c < op.tokens; ++c) bias.row(j)[c] = static_cast<T>(op.bias(j, c));
      }
    }
    void forward(const Block<T>& x, Block<T>& y) {
      weights = x;
      softmax_columns(x.rows(), weights.data(), x.columns(), masked ? bias.data() : nullptr, x.columns(),
                      x.columns());
      y = weights;
    }
    void backward(const Block<T>& x, Block<T>& dy, Block<T>& dx) {
      dx = dy;
      softmax_columns_backward(x.rows(), weights.data(), x.columns(), dx.data(), x.columns());
    }
    void take_gradients(std::span<double>) const {}
    bool masked;
    Block<T> bias, weights;
  };
};

template <class T>
std::vector<T> mask_values(const std::string& mask, std::size_t tokens, std::size_t columns) {
  std::vector<T> values;
  if (mask == "full") return values;
  values.assign(tokens * columns, T(0));
  const Mask allowed = parse_mask(mask, tokens);
  for (std::size_t key = 0; key < tokens; ++key) {
    for (std::size_t query = 0; query < tokens; ++query) {
      if (!allowed.attends(query, key)) values[key * columns + query] = static_cast<T>(kHiddenScore);
    }
  }
  return values;
}

struct AttentionOp {
  std::size_t d, heads, tokens;
  std::string mask;

  std::string name() const { return mask == "full" ? "attention" : "attention+" + mask; }
  std::string shape() const { return fmt::format("d={} heads={} T={}", d, heads, tokens); }
  std::size_t input_rows() const { return 3 * d; }
  std::size_t output_rows() const { return d; }
  std::vector<Slot> parameters() const { return {}; }
  double operations() const { return ops::attention_operations(d, heads, tokens); }
  Array reference(const Array& x, const Arrays&) const { return ops::reference::attention(heads, mask, x); }

  template <class T>
  struct Layer {
    Layer(const AttentionOp& op, Values<T>, std::size_t columns)
        : mask(mask_values<T>(op.mask, op.tokens, columns)),
          attention(op.d, op.heads, op.tokens, columns, mask.empty() ? nullptr : mask.data()) {}
    void forward(const Block<T>& x, Block<T>& y) { attention.forward(x, y); }
    void backward(const Block<T>& x, Block<T>& dy, Block<T>& dx) { attention.backward(x, dy, dx); }
    void take_gradients(std::span<double>) const {}
    std::vector<T> mask;
    Attention<T> attention;
  };
};

struct FeedForwardOp {
  std::size_t d, width, tokens;

  std::string name() const { return "feed_forward"; }
  std::string shape() const { return fmt::format("d={} F={} T={}", d, width, tokens); }
  std::size_t input_rows() const { return d; }
  std::size_t output_rows() const { return d; }
  std::vector<Slot> parameters() const {
    return {{"linear1.weight", width, d},
            {"linear1.bias", 1, width},
            {"linear2.weight", d, width},
            {"linear2.bias", 1, d}};
  }
  double operations() const { return 2 * ops::linear_operations(d, width, tokens); }
  Array reference(const Array& x, const Arrays& arrays) const {
    return ops::reference::feed_forward(arrays, "", x);
  }

  template <class T>
  struct Layer {
    Layer(const FeedForwardOp& op, Values<T> values, std::size_t columns)
        : op_(op), layer(slice(op, values), op.d, op.width, columns) {}
    void forward(const Block<T>& x, Block<T>& y) { layer.forward(x, y); }
    void backward(const Block<T>& x, Block<T>& dy, Block<T>& dx) { layer.backward(x, dy, dx); }
    void take_gradients(std::span<double> sums) const { layer.take_gradients(slice(op_, sums)); }

    template <class V>
    static LayerSlices<V> slice(const FeedForwardOp& op, std::span<V> values) {
      LayerSlices<V> slices;
      const std::size_t weights = op.d * op.width;
      slices.weight1 = values.first(weights);
      slices.bias1 = values.subspan(weights, op.width);
      slices.weight2 = values.subspan(weights + op.width, weights);
      slices.bias2 = values.subspan(2 * weights + op.width, op.d);
      return slices;
    }
    const FeedForwardOp& op_;
    FeedForward<T> layer;
  };
};

// The weights of the columns are ∂L/∂loss, so that those of the padding are 0.
struct CrossEntropyOp {
  std::size_t classes, tokens;
  bool ties = false;  // logits that are small whole numbers: the first of the highest counts

  std::string name() const { return ties ? "cross_entropy/ties" : "cross_entropy"; }
  std::string shape() const { return fmt::format("C={} T={}", classes, tokens); }
  std::size_t input_rows() const { return classes; }
  std::size_t output_rows() const { return 2; }
  std::vector<Slot> parameters() const { return {}; }
  double operations() const { return 8 * ops::real(classes) * ops::real(tokens); }
  void adjust(Array& x) const {
    for (std::size_t i = 0; ties && i < classes * tokens; ++i) x.data()[i] = std::round(x.data()[i]);
  }
  std::vector<std::uint16_t> labels() const {
    std::vector<std::uint16_t> values(tokens);
    for (std::size_t c = 0; c < tokens; ++c)
      values[c] = static_cast<std::uint16_t>((7 * c + classes - 1) % classes);
    return values;
  }
  Array reference(const Array& x, const Arrays&) const { return ops::reference::cross_entropy(x, labels()); }

  template <class T>
  struct Layer {
    Layer(const CrossEntropyOp& op, Values<T>, std::size_t columns)
        : labels(op.labels()), weights(1, columns) {
      labels.resize(columns, 0);
    }
    void forward(const Block<T>& x, Block<T>& y) {
      Block<T> spent = x;
      cross_entropy_columns(x.rows(), spent.data(), x.columns(), labels.data(), weights.data(),
                            {y.row(0), y.row(1)}, x.columns());
    }
    void backward(const Block<T>& x, Block<T>& dy, Block<T>& dx) {
      dx = x;
      Block<T> loss(1, x.columns());
      cross_entropy_columns(x.rows(), dx.data(), x.columns(), labels.data(), dy.row(0),
                            {loss.data(), nullptr}, x.columns());
    }
    void take_gradients(std::span<double>) const {}
    std::vector<std::uint16_t> labels;
    Block<T> weights;
  };
};

struct EncoderLayerOp {
  EncoderSpec spec;
  std::size_t tokens;

  std::string name() const {
    return fmt::format("encoder_layer/{}{}", name_of(spec.norm1), spec.mask == "full" ? "" : "+" + spec.mask);
  }
  std::string shape() const {
    return fmt::format("d={} F={} heads={} T={}", spec.dimension, spec.feed_forward, spec.heads, tokens);
  }
  std::size_t input_rows() const { return spec.dimension; }
  std::size_t output_rows() const { return spec.dimension; }
  std::vector<Slot> parameters() const {
    std::vector<Slot> result;
    for (const ParameterSlot& slot : parameter_slots(spec)) {
      if (slot.name != "embedding") result.push_back({slot.name, slot.rows, slot.cols});
    }
    return result;
  }
  double operations() const {
    const std::size_t d = spec.dimension;
    return ops::linear_operations(4 * d, d, tokens) + ops::attention_operations(d, spec.heads, tokens) +
           2 * ops::linear_operations(d, spec.feed_forward, tokens) + 2 * ops::norm_operations(d, tokens);
  }
  Array reference(const Array& x, const Arrays& arrays) const {
    return ops::reference::encoder_layer(spec, arrays, 0, x);
  }

  template <class T>
  struct Layer {
    Layer(const EncoderLayerOp& op, Values<T> parameters, std::size_t columns)
        : embedding(op.spec.classes * op.spec.dimension),
          op_(op),
          values(embedding, T(0)),
          mask(mask_values<T>(op.spec.mask, op.tokens, columns)) {
      values.insert(values.end(), parameters.begin(), parameters.end());
      layer.emplace(op_.spec, slices(op_.spec, Values<T>(values)).layers[0], op.tokens, columns,
                    mask.empty() ? nullptr : mask.data());
    }
    void forward(const Block<T>& x, Block<T>& y) {
      y = x;
      layer->forward(y);
    }
    void backward(const Block<T>&, Block<T>& dy, Block<T>& dx) {
      dx = dy;
      layer->backward(dx);
    }
    void take_gradients(std::span<double> sums) const {
      std::vector<double> all(values.size(), 0.0);
      layer->take_gradients(slices(op_.spec, std::span(all)).layers[0]);
      std::copy(all.begin() + static_cast<std::ptrdiff_t>(embedding), all.end(), sums.begin());
    }
    std::size_t embedding;
    const EncoderLayerOp& op_;
    std::vector<T> values, mask;
    std::optional<EncoderLayer<T>> layer;
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
    for (const std::size_t tokens : lengths) add(ProductOp{8, 8, tokens, bias}, tokens == 50);
    add(ProductOp{1, 1, 5, bias});
    add(ProductOp{7, 3, 17, bias});
    add(ProductOp{24, 8, 50, bias}, true);
  }
  add(TiedOutputOp{20, 8, 50}, true);
  add(TiedOutputOp{2, 3, 5});
  add(TiedOutputOp{1, 2, 1});

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
    add(FeedForwardOp{8, 8, tokens}, tokens == 50);
    add(CrossEntropyOp{20, tokens}, tokens == 50);
  }
  add(FeedForwardOp{3, 7, 17});
  add(FeedForwardOp{5, 1, 5});
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

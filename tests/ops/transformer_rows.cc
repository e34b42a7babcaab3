// The ops of the transformers that are trained, compiled once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/transformer_rows.cc"
#include <fmt/format.h>
// In this order, before highway.h.
// clang-format off
#include "core/targets.h"
#include <hwy/foreach_target.h>
// clang-format on

#include <cmath>
#include <numbers>

#include "ops/layer_work-inl.h"
#include "train/transformer_layers-inl.h"
#include "train/vocabulary_head.h"

HWY_BEFORE_NAMESPACE();
namespace normscope::HWY_NAMESPACE {
namespace {

struct DenseOp {
  static constexpr std::size_t kPadding = kTextColumns;
  std::size_t outputs, inputs, tokens;
  bool bias;

  std::string name() const { return bias ? "dense+bias" : "dense"; }
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
    Layer(const DenseOp& op, Values<T> values, std::size_t)
        : weights(op.outputs * op.inputs),
          dense(values.first(weights), values.subspan(weights), op.outputs, op.inputs) {}
    void forward(const Block<T>& x, Block<T>& y) { dense.forward(x, y); }
    void backward(const Block<T>& x, Block<T>& dy, Block<T>& dx) { dense.backward(x, dy, dx); }
    void take_gradients(std::span<double> sums) const {
      dense.take_gradients(sums.first(weights), sums.subspan(weights));
    }
    std::size_t weights;
    Dense<T> dense;
  };
};

struct StreamedAttentionOp {
  static constexpr std::size_t kPadding = kTextColumns;
  std::size_t d, heads, tokens;
  bool causal;

  std::string name() const { return causal ? "streamed_attention+causal" : "streamed_attention"; }
  std::string shape() const { return fmt::format("d={} heads={} T={}", d, heads, tokens); }
  std::size_t input_rows() const { return 3 * d; }
  std::size_t output_rows() const { return d; }
  std::vector<Slot> parameters() const { return {}; }
  double operations() const { return ops::attention_operations(d, heads, tokens) / (causal ? 2 : 1); }
  Array reference(const Array& x, const Arrays&) const {
    return ops::reference::attention(heads, causal ? "causal" : "full", x);
  }

  template <class T>
  struct Layer {
    Layer(const StreamedAttentionOp& op, Values<T>, std::size_t columns)
        : tokens(op.tokens), attention(op.d, op.heads, columns, op.causal), o(op.d, columns) {}
    void forward(const Block<T>& x, Block<T>& y) {
      attention.forward(x, tokens, nullptr, {}, o);
      y = o;
    }
    void backward(const Block<T>& x, Block<T>& dy, Block<T>& dx) {
      attention.backward(x, tokens, nullptr, {}, o, dy, dx);
    }
    void take_gradients(std::span<double>) const {}
    std::size_t tokens;
    StreamedAttention<T> attention;
    Block<T> o;
  };
};

struct FusedFeedForwardOp {
  static constexpr std::size_t kPadding = kTextColumns;
  std::size_t d, width, tokens;
  Activation activation;

  std::string name() const {
    return activation == Activation::gelu ? "fused_feed_forward/gelu" : "fused_feed_forward/gelu_tanh";
  }
  std::string shape() const { return fmt::format("d={} F={} T={}", d, width, tokens); }
  std::size_t input_rows() const { return d; }
  std::size_t output_rows() const { return d; }
  std::vector<Slot> parameters() const {
    return {{"up.weight", width, d}, {"up.bias", 1, width}, {"down.weight", d, width}, {"down.bias", 1, d}};
  }
  double operations() const { return 2 * ops::linear_operations(d, width, tokens); }
  Array reference(const Array& x, const Arrays& arrays) const {
    Array hidden = ops::reference::linear(ops::at(arrays, "up.weight"), &ops::at(arrays, "up.bias"), x);
    for (std::size_t i = 0; i < hidden.values().size(); ++i) {
      double& u = hidden.data()[i];
      if (activation == Activation::gelu) {
        u *= std::erfc(-u / std::numbers::sqrt2) / 2;
      } else {
        u *= (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (u + 0.044715 * u * u * u))) / 2;
      }
    }
    return ops::reference::linear(ops::at(arrays, "down.weight"), &ops::at(arrays, "down.bias"), hidden);
  }

  template <class T>
  struct Layer {
    Layer(const FusedFeedForwardOp& op, Values<T> values, std::size_t)
        : op_(op), parameters(slice(op, values)), layer(parameters, op.d, op.width, op.activation) {}
    void forward(const Block<T>& x, Block<T>& y) { layer.forward(x, y); }
    void backward(const Block<T>& x, Block<T>& dy, Block<T>& dx) { layer.backward(x, dy, dx); }
    void take_gradients(std::span<double> sums) const { layer.take_gradients(slice(op_, sums)); }

    template <class V>
    static LayerSlices<V> slice(const FusedFeedForwardOp& op, std::span<V> values) {
      LayerSlices<V> slices;
      const std::size_t weights = op.d * op.width;
      slices.weight1 = values.first(weights);
      slices.bias1 = values.subspan(weights, op.width);
      slices.weight2 = values.subspan(weights + op.width, weights);
      slices.bias2 = values.subspan(2 * weights + op.width, op.d);
      return slices;
    }
    const FusedFeedForwardOp& op_;
    LayerSlices<const T> parameters;
    FusedFeedForward<T> layer;
  };
};

// The loss of each token, without logits. The seed must weigh all tokens alike, as the head does:
// `adjust_seed`.
struct VocabularyHeadOp {
  static constexpr std::size_t kPadding = kTextColumns;
  std::size_t words, d, tokens;
  double size = 1;  // of x: large ones need the largest logit to be sought

  std::string name() const { return size == 1 ? "vocabulary_head" : "vocabulary_head/far"; }
  std::string shape() const { return fmt::format("V={} d={} T={}", words, d, tokens); }
  std::size_t input_rows() const { return d; }
  std::size_t output_rows() const { return 1; }
  std::vector<Slot> parameters() const { return {{"embedding", words, d}}; }
  double operations() const { return ops::linear_operations(words, d, tokens); }
  void adjust(Array& x) const {
    for (std::size_t i = 0; i < x.values().size(); ++i) x.data()[i] = static_cast<float>(x.data()[i] * size);
  }
  void adjust_seed(Array& seed) const { std::fill_n(seed.data(), seed.values().size(), 0.75); }
  std::uint32_t target(std::size_t c) const { return static_cast<std::uint32_t>((7 * c + 3) % words); }
  Array reference(const Array& x, const Arrays& arrays) const {
    const Array logits = ops::reference::linear(ops::at(arrays, "embedding"), nullptr, x);
    Array loss(1, x.cols());
    for (std::size_t c = 0; c < x.cols(); ++c) {
      double top = logits(0, c), sum = 0;
      for (std::size_t w = 0; w < words; ++w) top = std::max(top, logits(w, c));
      for (std::size_t w = 0; w < words; ++w) sum += std::exp(logits(w, c) - top);
      loss(0, c) = top + std::log(sum) - logits(target(c), c);
    }
    return loss;
  }

  template <class T>
  struct Layer {
    Layer(const VocabularyHeadOp& op, Values<T> values, std::size_t columns)
        : embedding(values), targets(columns, 0xffffffff), losses(columns), log_sums(columns) {
      for (std::size_t c = 0; c < op.tokens; ++c) targets[c] = op.target(c);
      head.vocabulary = op.words;
      head.width = op.d;
      head.tokens = columns;
      head.embedding = embedding.data();
      head.padded_words = (op.words + head.kWords - 1) / head.kWords * head.kWords;
      head.targets = targets.data();
      transposed.assign(op.d * head.padded_words, T(0));
      for (std::size_t w = 0; w < op.words; ++w) {
        T square = 0;
        for (std::size_t k = 0; k < op.d; ++k) {
          const T value = embedding[w * op.d + k];
          transposed[k * head.padded_words + w] = value;
          square += value * value;
        }
        head.longest = std::max(head.longest, static_cast<T>(std::sqrt(square) * T(1.000001)));
      }
      head.transposed = transposed.data();
    }
    void forward(const Block<T>& x, Block<T>& y) {
      head.x = x.data();
      for (std::size_t block = 0; block < x.columns() / head.kTokens; ++block)
        vocabulary_head_kernels<T>().tokens(head, block, losses.data(), nullptr, nullptr);
      for (std::size_t c = 0; c < x.columns(); ++c) y.row(0)[c] = static_cast<T>(losses[c]);
    }
    void backward(const Block<T>& x, Block<T>& dy, Block<T>& dx) {
      head.x = x.data();
      head.weight = dy.row(0)[0];
      for (std::size_t block = 0; block < x.columns() / head.kTokens; ++block)
        vocabulary_head_kernels<T>().tokens(head, block, losses.data(), log_sums.data(), dx.data());
      std::vector<T> weighted(x.rows() * x.columns(), T(0));
      for (std::size_t i = 0; i < weighted.size(); ++i)
        weighted[i] = targets[i % x.columns()] < head.vocabulary ? head.weight * x.data()[i] : T(0);
      gradient.resize(transposed.size());
      for (std::size_t block = 0; block < head.padded_words / head.kWords; ++block)
        vocabulary_head_kernels<T>().words(head, block, log_sums.data(), weighted.data(), gradient.data());
      for (std::size_t c = 0; c < x.columns(); ++c) {
        for (std::size_t k = 0; k < x.rows() && targets[c] < head.vocabulary; ++k)
          gradient[k * head.padded_words + targets[c]] -= weighted[k * x.columns() + c];
      }
    }
    void take_gradients(std::span<double> sums) const {
      for (std::size_t i = 0; i < sums.size(); ++i)
        sums[i] += static_cast<double>(gradient[i % head.width * head.padded_words + i / head.width]);
    }
    Values<T> embedding;
    std::vector<std::uint32_t> targets;
    std::vector<double> losses;
    std::vector<T> log_sums, transposed, gradient;
    VocabularyHead<T> head;
  };
};

// The published models have d = 8, 4 heads, 32 or 3072 hidden units: those shapes are timed.
void add_rows_of_transformers(std::vector<ops::Row>* rows) {
  const auto add = [&](const auto& op, bool perf = false, bool grad = true) {
    rows->push_back(make_row(op));
    rows->back().perf = perf;
    rows->back().grad = grad;
  };
  for (const bool bias : {false, true}) {
    add(DenseOp{24, 8, 50, bias}, true);
    add(DenseOp{1, 1, 1, bias});
    add(DenseOp{7, 13, 33, bias});
  }
  for (const bool causal : {false, true}) {
    for (const std::size_t tokens : {1, 2, 31, 32, 33, 70})
      add(StreamedAttentionOp{8, 4, tokens, causal}, false, tokens <= 33);
    add(StreamedAttentionOp{12, 1, 40, causal});
    add(StreamedAttentionOp{3, 3, 40, causal});
    add(StreamedAttentionOp{8, 4, 1024, causal}, true, false);
  }
  for (const Activation activation : {Activation::gelu, Activation::gelu_tanh}) {
    add(FusedFeedForwardOp{8, 32, 33, activation});
    add(FusedFeedForwardOp{5, 1, 1, activation});
    add(FusedFeedForwardOp{3, 130, 20, activation});
    add(FusedFeedForwardOp{8, 3072, 128, activation}, true, false);
  }
  add(VocabularyHeadOp{37, 5, 20});
  add(VocabularyHeadOp{2, 2, 3});
  add(VocabularyHeadOp{300, 8, 33}, false, false);
  add(VocabularyHeadOp{300, 8, 33, 12}, false, false);
  add(VocabularyHeadOp{50257, 8, 64}, true, false);
}

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normscope {

HWY_EXPORT(add_rows_of_transformers);

std::vector<ops::Row> ops::transformer_rows() {
  std::vector<Row> rows;
  HWY_DYNAMIC_DISPATCH(add_rows_of_transformers)(&rows);
  return rows;
}

}  // namespace normscope
#endif

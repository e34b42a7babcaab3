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

#include "ops/layer_work-inl.h"
#include "train/layers/attention-inl.h"
#include "train/layers/cross_entropy-inl.h"
#include "train/layers/dropout-inl.h"
#include "train/layers/feed_forward-inl.h"
#include "train/layers/linear-inl.h"
#include "train/layers/streamed_attention-inl.h"
#include "train/vocabulary_head.h"

HWY_BEFORE_NAMESPACE();
namespace normscope::HWY_NAMESPACE {
namespace {

struct DropoutOp {
  static constexpr std::size_t kPadding = kTextColumns;
  static constexpr DropoutPlace kPlace = {0x123456789abcdef, 17, 5};
  std::size_t d, tokens;
  double p;

  ops::Form form() const {
    return {"dropout", fmt::format("d={} T={} p={}", d, tokens, p), d, d,
            2 * ops::real(d) * ops::real(tokens)};
  }
  Array reference(const Array& x, Values<double>) const { return reference::dropout(p, kPlace, x); }

  template <class T>
  struct Layer {
    Layer(const DropoutOp& op, Values<T>, std::size_t) : dropout(op.p) {}
    void forward(const Columns<T>& x, Columns<T>& y) {
      y = x;
      dropout.apply(kPlace, y);
    }
    void backward(const Columns<T>&, Columns<T>& dy, Columns<T>& dx) { forward(dy, dx); }
    void take_gradients(std::span<double>) const {}
    ColumnDropout<T> dropout;
  };
};

struct StreamedAttentionOp {
  static constexpr std::size_t kPadding = kTextColumns;
  std::size_t d, heads, tokens;
  bool causal;

  ops::Form form() const {
    return {causal ? "streamed_attention+causal" : "streamed_attention",
            fmt::format("d={} heads={} T={}", d, heads, tokens), 3 * d, d,
            ops::attention_operations(d, heads, tokens) / (causal ? 2 : 1)};
  }
  Array reference(const Array& x, Values<double>) const {
    return reference::attention(x, heads, parse_mask(causal ? "causal" : "full", tokens));
  }

  template <class T>
  struct Layer {
    Layer(const StreamedAttentionOp& op, Values<T>, std::size_t columns)
        : tokens(op.tokens), attention(op.d, op.heads, columns, op.causal), o(op.d, columns) {}
    void forward(const Columns<T>& x, Columns<T>& y) {
      attention.forward(x, tokens, nullptr, {}, o);
      y = o;
    }
    void backward(const Columns<T>& x, Columns<T>& dy, Columns<T>& dx) {
      attention.backward(x, tokens, nullptr, {}, o, dy, dx);
    }
    void take_gradients(std::span<double>) const {}
    std::size_t tokens;
    StreamedAttention<T> attention;
    Columns<T> o;
  };
};

// The loss of each token, without logits. The seed must weigh all tokens alike, as the head does:
// `adjust_seed`.
struct VocabularyHeadOp {
  static constexpr std::size_t kPadding = kTextColumns;
  std::size_t words, d, tokens;
  double size = 1;  // of x: large ones need the largest logit to be sought

  ops::Form form() const {
    return {size == 1 ? "vocabulary_head" : "vocabulary_head/far",
            fmt::format("V={} d={} T={}", words, d, tokens),
            d,
            1,
            ops::linear_operations(words, d, tokens),
            {{"embedding", words, d}}};
  }
  void adjust(Array& x) const {
    for (std::size_t i = 0; i < x.values().size(); ++i) x.data()[i] = static_cast<float>(x.data()[i] * size);
  }
  void adjust_seed(Array& seed) const { std::fill_n(seed.data(), seed.values().size(), 0.75); }
  std::uint32_t target(std::size_t c) const { return static_cast<std::uint32_t>((7 * c + 3) % words); }
  Array reference(const Array& x, Values<double> embedding) const {
    std::vector<std::uint32_t> targets(tokens);
    for (std::size_t c = 0; c < tokens; ++c) targets[c] = target(c);
    const Array result = reference::cross_entropy(reference::linear(embedding, {}, x), targets);
    return Array(1, tokens, {result[0].begin(), result[0].end()});
  }

  template <class T>
  struct Layer {
    Layer(const VocabularyHeadOp& op, Values<T> embedding, std::size_t columns)
        : targets(columns, 0xffffffff), gradient(embedding.size()) {
      for (std::size_t c = 0; c < op.tokens; ++c) targets[c] = op.target(c);
      head.vocabulary = op.words;
      head.width = op.d;
      head.tokens = columns;
      head.embedding = embedding.data();
      head.targets = targets.data();
    }
    void forward(const Columns<T>& x, Columns<T>& y) {
      head.x = x.data();
      const std::vector<double> losses = vocabulary_losses<T>(head, nullptr, nullptr, Executor(1));
      std::copy(losses.begin(), losses.end(), y.data());
    }
    void backward(const Columns<T>& x, Columns<T>& dy, Columns<T>& dx) {
      head.x = x.data();
      head.weight = dy.data()[0];
      vocabulary_losses<T>(head, dx.data(), gradient.data(), Executor(1));
    }
    void take_gradients(std::span<double> sums) const {
      std::copy(gradient.begin(), gradient.end(), sums.begin());
    }
    std::vector<std::uint32_t> targets;
    std::vector<T> gradient;
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
  add(DropoutOp{8, 128, 0.1}, true);
  add(DropoutOp{5, 33, 0.5});
  add(DropoutOp{1, 1, 0});
  for (const bool causal : {false, true}) {
    for (const std::size_t tokens : {1, 2, 31, 32, 33, 70})
      add(StreamedAttentionOp{8, 4, tokens, causal}, false, tokens <= 33);
    add(StreamedAttentionOp{12, 1, 40, causal});
    add(StreamedAttentionOp{3, 3, 40, causal});
    add(StreamedAttentionOp{8, 4, 1024, causal}, true, false);
  }
  for (const Activation activation : {Activation::gelu, Activation::gelu_tanh}) {
    add(FeedForwardOp<true>{8, 32, 33, activation});
    add(FeedForwardOp<true>{5, 1, 1, activation});
    add(FeedForwardOp<true>{3, 130, 20, activation});
    add(FeedForwardOp<true>{8, 3072, 128, activation}, true, false);
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

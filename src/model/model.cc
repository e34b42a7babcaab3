#include "normscope/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/gemm.h"
#include "model/block_kernels.h"
#include "model/scratch_pool.h"
#include "normscope/error.h"

namespace normscope {
namespace {

// Rows of logits held at once.
constexpr std::size_t kLogitRows = 16;

void apply_norm(const NormSpec& spec, const NormWeights& weights, MatrixView<float> x) {
  NormParameters<float> parameters;
  parameters.gain = weights.gain;
  parameters.bias = weights.bias;
  norm_forward<float>(spec, parameters, x, x);
}

void add_bias(std::span<const float> bias, MatrixView<float> x) {
  if (bias.empty()) return;
  for (std::size_t i = 0; i < x.rows; ++i) {
    for (std::size_t j = 0; j < x.cols; ++j) x(i, j) += bias[j];
  }
}

void require_finite(MatrixView<const float> x, std::size_t layer) {
  for (std::size_t i = 0; i < x.rows; ++i) {
    for (const float value : x[i]) {
      if (std::isfinite(value)) continue;
      throw Error(fmt::format(
          "Token {} left the range of float32 in layer {}; the model, as changed, does not keep its "
          "tokens bounded.",
          i, layer));
    }
  }
}

// h₀ of one text; norm_in, if not null, receives what goes into the norm in front of the first layer.
Matrix<float> embedded(const ModelWeights& model, const EmbeddingWeights& weights, const NormSpec& norm,
                       std::span<const std::uint32_t> ids, Matrix<float>* norm_in) {
  Matrix<float> x = model.embeddings(ids);
  if (norm_in) *norm_in = x;
  apply_norm(norm, weights.norm, x.view());
  if (weights.map.rows() == 0) return x;
  Matrix<float> mapped(x.rows(), weights.map.cols());
  multiply<float>(1, x.view(), weights.map.view(), Transpose::no, 0, mapped.view());
  add_bias(weights.map_bias, mapped.view());
  // A norm in another space is not the one in front of attention.
  if (norm_in) *norm_in = mapped;
  return mapped;
}

void require_tokens(std::span<const std::vector<std::uint32_t>> texts) {
  for (std::size_t t = 0; t < texts.size(); ++t) {
    if (texts[t].empty()) throw InputError(fmt::format("Text {} has no tokens.", t));
  }
}

// One text on its way.
struct Passage {
  Matrix<float> x;
  Matrix<float> norm_in;  // what went into the norm that made x, where norms come after (post)
  Mask mask;
};

// The states of all texts between two layers.
class Passing {
 public:
  Passing(const ModelWeights& weights, std::span<const std::vector<std::uint32_t>> texts,
          const Executor& executor, const ForwardObserver& observer, const ForwardChanges& changes)
      : weights_(weights),
        spec_(weights.spec()),
        texts_(texts),
        executor_(executor),
        observer_(observer),
        changes_(changes),
        passages_(texts.size()) {}

  std::vector<Matrix<float>> run() {
    embed();
    for (std::size_t layer = 0; layer < spec_.layers; ++layer) pass(layer);
    return finish();
  }

 private:
  void embed() {
    const EmbeddingWeights weights = weights_.embedding();
    const NormSpec& norm = changes_.embedding_norm ? *changes_.embedding_norm : spec_.embedding_norm;
    executor_.for_each(texts_.size(), [&](std::size_t t) {
      Passage& passage = passages_[t];
      passage.x = embedded(weights_, weights, norm, texts_[t], watches_points() ? &passage.norm_in : nullptr);
      passage.mask = changes_.mask ? changes_.mask(texts_[t].size()) : model_mask(spec_, texts_[t].size());
    });
  }

  void pass(std::size_t layer) {
    const BlockSpec block = changes_.block ? changes_.block(layer) : spec_.block;
    const BlockWeights<float> weights = weights_.layer(layer);
    if (observer_.layer) observer_.layer(layer, block, weights);
    executor_.for_each(texts_.size(), [&](std::size_t t) {
      Passage& passage = passages_[t];
      scratch_.with_scratch([&](BlockForward<float>& forward) {
        forward.apply(block, weights, passage.mask, passage.x.view(), {}, watcher(t, layer, block.placement));
      });
      require_finite(passage.x.view(), layer);
    });
  }

  bool watches_points() const { return static_cast<bool>(observer_.point); }

  BlockObserver<float> watcher(std::size_t text, std::size_t layer, Placement placement) {
    BlockObserver<float> watcher;
    if (observer_.attention) {
      watcher.attention = [this, text, layer](const AttentionRows<float>& rows) {
        observer_.attention(text, layer, rows);
      };
    }
    if (!watches_points()) return watcher;
    const bool post = placement == Placement::post;
    watcher.point = [this, text, layer, post](BlockPoint point, MatrixView<const float> values) {
      Passage& passage = passages_[text];
      const auto show = [&](TracePoint as) { observer_.point(text, layer, as, values); };
      switch (point) {
        case BlockPoint::attention_in:
          if (!post) break;
          observer_.point(text, layer, TracePoint::norm_in, passage.norm_in.view());
          return show(TracePoint::norm_out);
        case BlockPoint::attention_norm_in:
          if (!post) show(TracePoint::norm_in);
          break;
        case BlockPoint::attention_norm_out:
          if (!post) show(TracePoint::norm_out);
          break;
        case BlockPoint::feed_forward_norm_in:
          if (post) copy(values, passage.norm_in);
          break;
        case BlockPoint::feed_forward_norm_out:
          break;
        case BlockPoint::query:
          return show(TracePoint::query);
        case BlockPoint::key:
          return show(TracePoint::key);
        case BlockPoint::value:
          return show(TracePoint::value);
        case BlockPoint::attention_out:
          return show(TracePoint::attention_out);
        case BlockPoint::out:
          return show(TracePoint::out);
      }
    };
    return watcher;
  }

  static void copy(MatrixView<const float> from, Matrix<float>& to) {
    if (to.rows() != from.rows || to.cols() != from.cols) to = Matrix<float>(from.rows, from.cols);
    for (std::size_t i = 0; i < from.rows; ++i) std::copy(from[i].begin(), from[i].end(), to[i].begin());
  }

  std::vector<Matrix<float>> finish() {
    const NormWeights weights = weights_.final_norm();
    const NormSpec& norm = changes_.final_norm ? *changes_.final_norm : spec_.final_norm;
    std::vector<Matrix<float>> result;
    for (Passage& passage : passages_) {
      apply_norm(norm, weights, passage.x.view());
      result.push_back(std::move(passage.x));
    }
    return result;
  }

  const ModelWeights& weights_;
  const ModelSpec& spec_;
  std::span<const std::vector<std::uint32_t>> texts_;
  const Executor& executor_;
  const ForwardObserver& observer_;
  const ForwardChanges& changes_;
  std::vector<Passage> passages_;
  ScratchPool<float> scratch_;
};

}  // namespace

Mask model_mask(const ModelSpec& spec, std::size_t tokens) {
  if (!spec.causal) return parse_mask("full", tokens);
  if (spec.window == 0 || spec.window > tokens) return parse_mask("causal", tokens);
  return parse_mask(fmt::format("onesided:{}", spec.window - 1), tokens);
}

std::span<const TracePoint> trace_points() {
  static constexpr TracePoint all[] = {TracePoint::norm_in, TracePoint::norm_out, TracePoint::query,
                                       TracePoint::key,     TracePoint::value,    TracePoint::attention_out,
                                       TracePoint::out};
  return all;
}

std::string name_of(TracePoint point, std::size_t layer) {
  const auto name = [&]() -> const char* {
    switch (point) {
      case TracePoint::norm_in:
        return "attn.norm.in";
      case TracePoint::norm_out:
        return "attn.norm.out";
      case TracePoint::query:
        return "attn.query";
      case TracePoint::key:
        return "attn.key";
      case TracePoint::value:
        return "attn.value";
      case TracePoint::attention_out:
        return "attn.out";
      case TracePoint::out:
        break;
    }
    return "out";
  };
  return fmt::format("layer.{}.{}", layer, name());
}

std::vector<Matrix<float>> forward(const ModelWeights& weights,
                                   std::span<const std::vector<std::uint32_t>> texts,
                                   const Executor& executor, const ForwardObserver& observer,
                                   const ForwardChanges& changes) {
  require_tokens(texts);
  const OneThreadPerProduct one_thread;
  return Passing(weights, texts, executor, observer, changes).run();
}

std::vector<Matrix<float>> embed(const ModelWeights& weights,
                                 std::span<const std::vector<std::uint32_t>> texts,
                                 const Executor& executor) {
  require_tokens(texts);
  const OneThreadPerProduct one_thread;
  const EmbeddingWeights around = weights.embedding();
  std::vector<Matrix<float>> result(texts.size());
  executor.for_each(texts.size(), [&](std::size_t t) {
    result[t] = embedded(weights, around, weights.spec().embedding_norm, texts[t], nullptr);
  });
  return result;
}

Matrix<float> logits(const ModelSpec& spec, const HeadWeights& head, MatrixView<const float> tokens) {
  Matrix<float> x(tokens.rows, tokens.cols);
  for (std::size_t i = 0; i < tokens.rows; ++i) std::copy(tokens[i].begin(), tokens[i].end(), x[i].begin());
  if (spec.head == ModelSpec::Head::transform) {
    Matrix<float> mapped(x.rows(), head.transform.cols());
    multiply<float>(1, x.view(), head.transform.view(), Transpose::no, 0, mapped.view());
    add_bias(head.transform_bias, mapped.view());
    activate(head.activation, mapped.data(), mapped.rows() * mapped.cols());
    NormSpec norm = parse_norm("layernorm");
    norm.affine = true;
    norm.eps = spec.embedding_norm.eps;
    apply_norm(norm, head.transform_norm, mapped.view());
    x = std::move(mapped);
  }
  Matrix<float> result(x.rows(), head.output.rows());
  multiply<float>(1, x.view(), head.output.view(), Transpose::yes, 0, result.view());
  add_bias(head.bias, result.view());
  return result;
}

std::vector<double> next_token_losses(const ModelSpec& spec, const HeadWeights& head,
                                      MatrixView<const float> tokens, std::span<const std::uint32_t> ids,
                                      const Executor& executor) {
  if (ids.size() != tokens.rows) throw InputError("A text has as many ids as tokens.");
  const OneThreadPerProduct one_thread;
  const std::size_t count = tokens.rows > 0 ? tokens.rows - 1 : 0;
  std::vector<double> losses(count);
  executor.for_each((count + kLogitRows - 1) / kLogitRows, [&](std::size_t piece) {
    const std::size_t first = piece * kLogitRows, rows = std::min(kLogitRows, count - first);
    const Matrix<float> scores =
        logits(spec, head, {tokens.data + first * tokens.stride, rows, tokens.cols, tokens.stride});
    for (std::size_t i = 0; i < rows; ++i) {
      const auto row = scores[i];
      const std::size_t next = ids[first + i + 1];
      if (next >= row.size()) throw InputError(fmt::format("Id {} is not in the vocabulary.", next));
      const double top = *std::max_element(row.begin(), row.end());
      double sum = 0;
      for (const float score : row) sum += std::exp(static_cast<double>(score) - top);
      losses[first + i] = top + std::log(sum) - static_cast<double>(row[next]);
    }
  });
  return losses;
}

std::vector<std::uint32_t> continue_greedily(const ModelWeights& weights, std::vector<std::uint32_t> ids,
                                             std::size_t count, std::optional<std::uint32_t> end,
                                             const Executor& executor) {
  const HeadWeights head = weights.head();
  for (std::size_t step = 0; step < count; ++step) {
    if (weights.spec().positions > 0 && ids.size() >= weights.spec().positions) break;
    const std::vector<Matrix<float>> states = forward(weights, std::span(&ids, 1), executor);
    const MatrixView<const float> all = states.front().view();
    const Matrix<float> last =
        logits(weights.spec(), head, {all.data + (all.rows - 1) * all.stride, 1, all.cols, all.stride});
    const auto best = std::max_element(last[0].begin(), last[0].end());
    ids.push_back(static_cast<std::uint32_t>(best - last[0].begin()));
    if (end && ids.back() == *end) break;
  }
  return ids;
}

}  // namespace normscope

#include "normscope/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>

#include "model/rotate.h"
#include "normscope/error.h"
#include "normscope/reachable.h"
#include "normscope/statistics.h"

namespace normscope {
namespace {

constexpr double kFloatRoundoff = 0x1p-24, kDoubleRoundoff = 0x1p-53;
constexpr double kWeightGap = 0.001;  // of the logarithm of largest weights

Matrix<double> columns(MatrixView<const float> from, std::size_t first, std::size_t count) {
  Matrix<double> result(from.rows, count);
  for (std::size_t i = 0; i < from.rows; ++i)
    std::copy_n(from[i].begin() + static_cast<std::ptrdiff_t>(first), count, result[i].begin());
  return result;
}

NormShare norm_share(MatrixView<const float> x) {
  NormShare share;
  std::vector<double> norms;
  std::size_t counted = 0;
  for (std::size_t i = 0; i < x.rows; ++i) {
    double sum = 0, squares = 0;
    for (const float value : x[i]) {
      sum += static_cast<double>(value);
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
    norms.push_back(std::sqrt(squares));
    if (squares == 0) continue;  // no direction
    share.along_ones += sum * sum / static_cast<double>(x.cols) / squares;
    ++counted;
  }
  if (counted > 0) share.along_ones /= static_cast<double>(counted);
  for (const double norm : norms) share.norm_mean += norm / static_cast<double>(norms.size());
  double variance = 0;
  for (const double norm : norms)
    variance += (norm - share.norm_mean) * (norm - share.norm_mean) / static_cast<double>(norms.size());
  share.norm_spread = share.norm_mean > 0 ? std::sqrt(variance) / share.norm_mean : 0;
  return share;
}

ScanSet set_of(const KeySet& decided, bool prefixes) {
  ScanSet set;
  set.rank = decided.rank;
  if (!prefixes) set.robust_unselectable = decided.robust_counts.unselectable;
  for (const KeyVerdict& key : decided.keys) {
    const bool earlier = prefixes && key.last_prefix && *key.last_prefix > 0;
    set.verdicts.emplace_back(earlier ? Verdict::selectable : key.verdict);
    set.margins.push_back(key.verdict == Verdict::selectable ? key.margin : 0);
  }
  return set;
}

ScanSet set_of(const ReachableSet& decided) {
  ScanSet set;
  set.rank = decided.rank;
  for (const ReachableVerdict& key : decided.keys) {
    set.verdicts.push_back(key.verdict);
    set.margins.push_back(key.verdict == Verdict::selectable ? key.margin : 0);
    if (key.max_weight) set.largest_weights.push_back(*key.max_weight);
  }
  return set;
}

// The norm whose output enters attention: ‖z‖ ≤ √d before its gain and bias.
struct NormInFront {
  NormSpec spec;
  std::vector<float> gain, bias;
  bool bounds() const { return spec.scaling == Scaling::root_dimension; }
};

// What a window left behind in one layer.
struct Captured {
  Matrix<float> norm_in, norm_out, key;
};

class Scan {
 public:
  Scan(const ModelWeights& weights, std::span<const std::vector<std::uint32_t>> windows,
       const ScanSettings& settings, const Executor& executor,
       const std::function<void(std::size_t, std::size_t)>& progress)
      : weights_(weights),
        spec_(weights.spec()),
        windows_(windows),
        settings_(settings),
        executor_(executor),
        progress_(progress),
        layers_(chosen(settings.layers, spec_.layers, "layer")),
        heads_(chosen(settings.heads, spec_.block.heads, "head")),
        captured_(windows.size()),
        result_(windows.size()) {
    for (std::size_t w = 0; w < windows.size(); ++w) result_[w].ids = windows[w];
    const EmbeddingWeights embedding = weights.embedding();
    if (embedding.map.rows() == 0)
      in_front_ = {spec_.embedding_norm, embedding.norm.gain, embedding.norm.bias};
  }

  std::vector<ScanWindow> run() {
    ForwardObserver observer;
    observer.layer = [&](std::size_t layer, const BlockSpec& block, const BlockWeights<float>& weights) {
      finish_layer();
      begin_layer(layer, block, weights);
      if (settings_.observer.layer) settings_.observer.layer(layer, block, weights);
    };
    observer.point = [&](std::size_t text, std::size_t layer, TracePoint point,
                         MatrixView<const float> values) {
      if (settings_.observer.point) settings_.observer.point(text, layer, point, values);
      if (!wanted_) return;
      if (point == TracePoint::norm_in) copy(values, captured_[text].norm_in);
      if (point == TracePoint::norm_out) copy(values, captured_[text].norm_out);
      if (point == TracePoint::key) copy(values, captured_[text].key);
    };
    observer.attention = [&](std::size_t text, std::size_t layer, const AttentionRows<float>& rows) {
      if (settings_.observer.attention) settings_.observer.attention(text, layer, rows);
      if (wanted_) watch_queries(result_[text].layers.back(), rows);
    };
    const std::vector<Matrix<float>> states = forward(weights_, windows_, executor_, observer);
    finish_layer();
    if (spec_.causal && spec_.head != ModelSpec::Head::none) {
      const HeadWeights head = weights_.head();
      for (std::size_t w = 0; w < windows_.size(); ++w)
        result_[w].losses = next_token_losses(spec_, head, states[w].view(), windows_[w], executor_);
    }
    return std::move(result_);
  }

 private:
  static std::vector<std::size_t> chosen(const std::vector<std::size_t>& given, std::size_t count,
                                         const char* what) {
    std::vector<std::size_t> result = given;
    if (result.empty()) {
      for (std::size_t i = 0; i < count; ++i) result.push_back(i);
    }
    for (const std::size_t each : result) {
      if (each < count) continue;
      throw InputError(
          fmt::format("There is no {} {}: the model has {}, counted from 0.", what, each, count));
    }
    return result;
  }

  bool asks_for(KeySpace space) const {
    return std::find(settings_.spaces.begin(), settings_.spaces.end(), space) != settings_.spaces.end();
  }

  static void copy(MatrixView<const float> from, Matrix<float>& to) {
    if (to.rows() != from.rows || to.cols() != from.cols) to = Matrix<float>(from.rows, from.cols);
    for (std::size_t i = 0; i < from.rows; ++i) std::copy(from[i].begin(), from[i].end(), to[i].begin());
  }

  void begin_layer(std::size_t layer, const BlockSpec& block, const BlockWeights<float>& weights) {
    block_ = block;
    wanted_ = std::find(layers_.begin(), layers_.end(), layer) != layers_.end();
    if (block.placement != Placement::post)
      in_front_ = {block.norm, weights.attention_gain, weights.attention_bias};
    if (wanted_) {
      query_weights_ = Matrix<double>(block.width, block.query_width());
      for (std::size_t i = 0; i < block.width; ++i)
        std::copy_n(weights.query_key_value[i].begin(), block.query_width(), query_weights_[i].begin());
      query_bias_.assign(block.query_width(), 0);
      for (std::size_t c = 0; c < block.query_width() && !weights.query_key_value_bias.empty(); ++c)
        query_bias_[c] = static_cast<double>(weights.query_key_value_bias[c]);
      relative_ = weights.relative;
      layer_in_front_ = in_front_;
      for (ScanWindow& window : result_) {
        ScanLayer& fresh = window.layers.emplace_back();
        fresh.layer = layer;
        fresh.reachable_known = in_front_.bounds();
        for (const std::size_t head : heads_) {
          fresh.heads.push_back({head, block.key_head_of(head), {}, {}, {}});
          fresh.heads.back().queries.wins.assign(window.ids.size(), 0);
        }
      }
    }
    // A norm after the block is the one in front of the next.
    if (block.placement == Placement::post)
      in_front_ = {block.feed_forward_norm ? *block.feed_forward_norm : block.norm, weights.feed_forward_gain,
                   weights.feed_forward_bias};
  }

  void watch_queries(ScanLayer& layer, const AttentionRows<float>& rows) const {
    const auto here = std::find_if(layer.heads.begin(), layer.heads.end(),
                                   [&](const ScanHead& head) { return head.head == rows.head; });
    if (here == layer.heads.end()) return;
    QueryShare& queries = here->queries;
    for (std::size_t i = 0; i < rows.weights.rows; ++i) {
      const auto row = rows.weights[i];
      const auto top = std::max_element(row.begin(), row.end());
      double entropy = 0;
      for (const float weight : row) {
        if (weight > 0) entropy -= static_cast<double>(weight) * std::log(static_cast<double>(weight));
      }
      ++queries.wins[rows.reach.first + static_cast<std::size_t>(top - row.begin())];
      queries.entropy += entropy;
      queries.largest_weight += static_cast<double>(*top);
      ++queries.queries;
    }
  }

  KeyOptions key_options(double unit_roundoff) const {
    KeyOptions options;
    options.unit_roundoff = unit_roundoff;
    options.margins = settings_.margins;
    options.certificates = false;
    options.prefix = settings_.prefixes;
    return options;
  }

  // Decides one set: a space of a window, or of one of its heads.
  using Question = std::function<void(const Executor& alone)>;

  void finish_layer() {
    if (!wanted_) return;
    std::vector<Question> questions;
    for (std::size_t w = 0; w < windows_.size(); ++w) {
      ScanLayer& layer = result_[w].layers.back();
      layer.norm_in = norm_share(captured_[w].norm_in.view());
      layer.norm_out = norm_share(captured_[w].norm_out.view());
      for (ScanHead& head : layer.heads) {
        if (head.queries.queries == 0) continue;
        head.queries.entropy /= static_cast<double>(head.queries.queries);
        head.queries.largest_weight /= static_cast<double>(head.queries.queries);
      }
      ask(captured_[w], layer, questions);
    }
    const std::size_t total = questions.size() * layers_.size();
    const Executor alone(1);
    executor_.for_each(questions.size(), [&](std::size_t q) {
      questions[q](alone);
      const std::size_t done = ++done_;
      if (progress_) progress_(done, total);
    });
    for (ScanWindow& window : result_) share_heads(window.layers.back());
    wanted_ = false;
  }

  // Heads of one group have the same keys.
  static void share_heads(ScanLayer& layer) {
    for (std::size_t h = 1; h < layer.heads.size(); ++h) {
      if (layer.heads[h].key_head == layer.heads[h - 1].key_head)
        layer.heads[h].keys = layer.heads[h - 1].keys;
    }
  }

  void ask(const Captured& captured, ScanLayer& layer, std::vector<Question>& questions) const {
    if (asks_for(KeySpace::before))
      questions.emplace_back([&](const Executor& alone) { layer.before = decide(captured.norm_in, alone); });
    if (asks_for(KeySpace::model))
      questions.emplace_back([&](const Executor& alone) { layer.model = decide(captured.norm_out, alone); });
    if (settings_.ideal_norms && layer_in_front_.bounds()) {
      NormSpec norm = layer_in_front_.spec;
      questions.emplace_back([&, norm](const Executor& alone) {
        layer.unrounded = decide_ideal(norm, captured.norm_in, alone);
      });
      norm.eps = 0;
      questions.emplace_back(
          [&, norm](const Executor& alone) { layer.sphere = decide_ideal(norm, captured.norm_in, alone); });
    }
    for (ScanHead& head : layer.heads) {
      const bool first_of_keys = &head == &layer.heads.front() || head.key_head != (&head - 1)->key_head;
      if (asks_for(KeySpace::head) && first_of_keys)
        questions.emplace_back(
            [&](const Executor& alone) { head.keys = decide_head(captured, head.head, alone); });
      if (asks_for(KeySpace::reachable) && layer_in_front_.bounds())
        questions.emplace_back(
            [&](const Executor& alone) { head.reachable = decide_reach(captured, head.head, alone); });
    }
  }

  ScanSet decide(const Matrix<float>& keys, const Executor& alone) const {
    return decide(columns(keys.view(), 0, keys.cols()), kFloatRoundoff, alone);
  }
  ScanSet decide(const Matrix<double>& keys, double unit_roundoff, const Executor& alone) const {
    return set_of(decide_keys(keys.view(), {}, key_options(unit_roundoff), alone), settings_.prefixes);
  }

  ScanSet decide_ideal(const NormSpec& norm, const Matrix<float>& norm_in, const Executor& alone) const {
    Matrix<double> keys = columns(norm_in.view(), 0, norm_in.cols());
    const std::vector<double> gain(layer_in_front_.gain.begin(), layer_in_front_.gain.end()),
        bias(layer_in_front_.bias.begin(), layer_in_front_.bias.end());
    norm_forward<double>(norm, {gain, bias, {}}, keys.view(), keys.view());
    return decide(keys, kDoubleRoundoff, alone);
  }

  Matrix<double> head_keys(const Captured& captured, std::size_t head) const {
    const std::size_t width = block_.width_of_head();
    return columns(captured.key.view(), block_.key_head_of(head) * width, width);
  }

  // Offsets of the scores for a query at `place`, in units of the dot product: divided by the score scale.
  std::vector<double> offsets_from(std::size_t place, std::size_t head, std::size_t n) const {
    std::vector<double> offsets;
    if (block_.relative.buckets == 0) return offsets;
    for (std::size_t j = 0; j < n; ++j)
      offsets.push_back(static_cast<double>(relative_(head, block_.relative.bucket(place, j))) /
                        block_.score_scale());
    return offsets;
  }

  ScanSet decide_head(const Captured& captured, std::size_t head, const Executor& alone) const {
    const Matrix<double> keys = head_keys(captured, head);
    if (block_.relative.buckets == 0) return decide(keys, kFloatRoundoff, alone);
    // From every place, until all are selectable; the best verdict counts.
    ScanSet best;
    for (std::size_t place = 0; place < keys.rows(); ++place) {
      const ScanSet here = set_of(decide_keys(keys.view(), offsets_from(place, head, keys.rows()),
                                              key_options(kFloatRoundoff), alone),
                                  settings_.prefixes);
      if (place == 0) {
        best = here;
      } else {
        for (std::size_t i = 0; i < keys.rows(); ++i) {
          if (*here.verdicts[i] < *best.verdicts[i]) best.verdicts[i] = here.verdicts[i];
          best.margins[i] = std::max(best.margins[i], here.margins[i]);
        }
        if (best.robust_unselectable)
          best.robust_unselectable = std::min(*best.robust_unselectable, *here.robust_unselectable);
      }
      if (best.count(Verdict::selectable) == keys.rows()) break;
    }
    return best;
  }

  // q = (g ⊙ z + β)W_Q + b at a place, turned as the model turns it: A and c of reachable.h.
  QueryEllipsoid queries_of(std::size_t head, std::size_t place) const {
    const std::size_t width = block_.width_of_head(), d = block_.width, first = head * width;
    const NormInFront& norm = layer_in_front_;
    const auto entry = [&](const std::vector<float>& of, std::size_t i, double otherwise) {
      return norm.spec.affine && !of.empty() ? static_cast<double>(of[i]) : otherwise;
    };
    Matrix<double> directions(d, width);  // Aᵀ: what each coordinate of z adds to the query
    std::vector<double> shift(query_bias_.begin() + static_cast<std::ptrdiff_t>(first),
                              query_bias_.begin() + static_cast<std::ptrdiff_t>(first + width));
    std::vector<double> mean(width);
    for (std::size_t i = 0; i < d; ++i) {
      for (std::size_t r = 0; r < width; ++r) {
        const double weight = query_weights_(i, first + r);
        directions(i, r) = weight * entry(norm.gain, i, 1);
        shift[r] += weight * entry(norm.bias, i, 0);
        mean[r] += directions(i, r) / static_cast<double>(d);
      }
    }
    Matrix<double> map(width, d);
    for (std::size_t i = 0; i < d; ++i) {
      // z is orthogonal to 1, so what all coordinates add alike does nothing.
      for (std::size_t r = 0; r < width && norm.spec.projection == Projection::ones; ++r)
        directions(i, r) -= mean[r];
      rotate<double>(block_.rotary, width, place, directions[i]);
      for (std::size_t r = 0; r < width; ++r) map(r, i) = directions(i, r);
    }
    rotate<double>(block_.rotary, width, place, shift);
    return QueryEllipsoid(map.view(), shift, std::sqrt(static_cast<double>(d)));
  }

  ScanSet decide_reach(const Captured& captured, std::size_t head, const Executor& alone) const {
    Matrix<double> keys = head_keys(captured, head);
    const std::size_t last = keys.rows() - 1;
    const QueryEllipsoid queries = queries_of(head, last);
    std::vector<double> offsets = queries.offsets(keys.view());
    const std::vector<double> by_distance = offsets_from(last, head, keys.rows());
    if (offsets.empty()) offsets.assign(by_distance.size(), 0);
    for (std::size_t j = 0; j < by_distance.size(); ++j) offsets[j] += by_distance[j];
    // In units of the scores, for the largest weights.
    Matrix<double> seen = queries.keys(keys.view());
    for (std::size_t i = 0; i < seen.rows(); ++i) {
      for (double& value : seen[i]) value *= block_.score_scale();
    }
    for (double& offset : offsets) offset *= block_.score_scale();
    ReachableOptions options;
    options.unit_roundoff = kFloatRoundoff;
    options.margins = settings_.margins;
    options.certificates = false;
    if (settings_.largest_weights) options.weight_gap = kWeightGap;
    return set_of(decide_reachable(seen.view(), offsets, queries.ball(), options, alone));
  }

  const ModelWeights& weights_;
  const ModelSpec& spec_;
  std::span<const std::vector<std::uint32_t>> windows_;
  const ScanSettings& settings_;
  const Executor& executor_;
  const std::function<void(std::size_t, std::size_t)>& progress_;
  std::vector<std::size_t> layers_, heads_;
  std::vector<Captured> captured_;
  std::vector<ScanWindow> result_;
  NormInFront in_front_;  // of the layer that comes
  // Of the layer that is passed.
  bool wanted_ = false;
  BlockSpec block_;
  NormInFront layer_in_front_;
  Matrix<double> query_weights_;
  std::vector<double> query_bias_;
  Matrix<float> relative_;
  std::atomic<std::size_t> done_ = 0;
};

}  // namespace

const char* name_of(KeySpace space) {
  switch (space) {
    case KeySpace::before:
      return "before";
    case KeySpace::model:
      return "model";
    case KeySpace::head:
      return "head";
    case KeySpace::reachable:
      break;
  }
  return "reachable";
}

KeySpace parse_key_space(std::string_view name) {
  for (const KeySpace space : kKeySpaces) {
    if (name == name_of(space)) return space;
  }
  throw InputError(
      fmt::format("There is no key space '{}'; there are before, model, head and reachable.", name));
}

std::size_t ScanSet::count(Verdict verdict) const {
  return static_cast<std::size_t>(std::count(verdicts.begin(), verdicts.end(), std::optional(verdict)));
}

double ScanSet::share(Verdict verdict) const {
  if (verdicts.empty()) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(count(verdict)) / static_cast<double>(verdicts.size());
}

namespace {

template <class Function>
void for_sets(const ScanWindow& window, KeySpace space, const Function& function) {
  const auto pass = [&](const ScanSet& set) {
    if (!set.verdicts.empty()) function(set);
  };
  for (const ScanLayer& layer : window.layers) {
    if (space == KeySpace::before) pass(layer.before);
    if (space == KeySpace::model) pass(layer.model);
    for (const ScanHead& head : layer.heads) {
      if (space == KeySpace::head) pass(head.keys);
      if (space == KeySpace::reachable) pass(head.reachable);
    }
  }
}

}  // namespace

std::size_t ScanWindow::unselectable(KeySpace space, std::size_t token) const {
  std::size_t count = 0;
  for_sets(*this, space, [&](const ScanSet& set) { count += set.verdicts[token] == Verdict::unselectable; });
  return count;
}

std::size_t ScanWindow::sets(KeySpace space) const {
  std::size_t count = 0;
  for_sets(*this, space, [&](const ScanSet&) { ++count; });
  return count;
}

std::vector<ScanWindow> scan(const ModelWeights& weights, std::span<const std::vector<std::uint32_t>> windows,
                             const ScanSettings& settings, const Executor& executor,
                             const std::function<void(std::size_t, std::size_t)>& progress) {
  if (windows.empty()) throw InputError("There is no text to scan.");
  return Scan(weights, windows, settings, executor, progress).run();
}

}  // namespace normscope

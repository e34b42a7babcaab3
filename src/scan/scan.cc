#include "normscope/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>

#include "core/run_pieces.h"
#include "model/rotate.h"
#include "normscope/error.h"
#include "normscope/reachable.h"
#include "normscope/statistics.h"
#include "scan/key_errors.h"
#include "scan/places.h"
#include "scan/space.h"
#include "scan/wins.h"

namespace normscope {
namespace {

constexpr double kFloatRoundoff = 0x1p-24, kDoubleRoundoff = 0x1p-53;
constexpr double kWeightGap = 0.001;  // of the logarithm of largest weights

// The norm whose output enters attention: ‖z‖ ≤ √d before its gain and bias.
struct NormInFront {
  NormSpec spec;
  std::vector<float> gain, bias;
  bool bounds() const { return spec.scaling == Scaling::root_dimension; }
};

// What a window left behind in one layer.
struct Captured {
  Matrix<float> norm_in, norm_out, query, key;
  // Of each head that is asked about: the token with the highest weight, per place.
  std::vector<std::vector<std::optional<std::size_t>>> winners;
};

// Who sees what in a window: in the pass, and as the verdicts have it.
struct WindowPlaces {
  Mask real;
  Places asked;
};

// The queries of a head before rotation, which a place then turns.
struct HeadQueries {
  QueryEllipsoid formed;
  // Every direction, in multiples: nothing but the keys seen matters to verdicts.
  bool free = false;
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
    for (std::size_t w = 0; w < windows.size(); ++w) {
      result_[w].ids = windows[w];
      const std::size_t n = windows[w].size();
      if (n == 0) throw InputError(fmt::format("Text {} has no tokens.", w));
      const Mask real = model_mask(spec_, n);
      const Mask asked = !settings.prefixes ? parse_mask("full", n)
                         : spec_.causal     ? real
                                            : parse_mask("causal", n);
      places_.push_back({real, Places(asked)});
    }
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
      if (point == TracePoint::query) copy(values, captured_[text].query);
      if (point == TracePoint::key) copy(values, captured_[text].key);
    };
    observer.attention = [&](std::size_t text, std::size_t layer, const AttentionRows<float>& rows) {
      if (settings_.observer.attention) settings_.observer.attention(text, layer, rows);
      if (wanted_) watch_queries(result_[text].layers.back(), captured_[text], rows);
    };
    const std::vector<Matrix<float>> states = forward(weights_, windows_, executor_, observer);
    finish_layer();
    if (settings_.losses && spec_.causal && spec_.head != ModelSpec::Head::none) {
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
      query_weights_ = columns(weights.query_key_value.view(), 0, block.query_width());
      key_weights_ = columns(weights.query_key_value.view(), block.query_width(), block.key_width());
      std::vector<float> bias = weights.query_key_value_bias;
      bias.resize(block.query_width() + block.key_width(), 0);
      const auto keys_from = bias.begin() + static_cast<std::ptrdiff_t>(block.query_width());
      query_bias_.assign(bias.begin(), keys_from);
      key_bias_.assign(keys_from, keys_from + static_cast<std::ptrdiff_t>(block.key_width()));
      relative_ = weights.relative;
      layer_in_front_ = in_front_;
      for (ScanWindow& window : result_) {
        ScanLayer& fresh = window.layers.emplace_back();
        fresh.layer = layer;
        // Scaled to norm 1 after the product (qknorm), queries are no ellipsoid.
        fresh.reachable_known = in_front_.bounds() && !block.normalize_query_key;
        for (const std::size_t head : heads_) {
          fresh.heads.push_back({head, block.key_head_of(head), {}, {}, {}});
          fresh.heads.back().queries.wins.assign(window.ids.size(), 0);
        }
      }
      for (std::size_t w = 0; w < windows_.size(); ++w)
        captured_[w].winners.assign(heads_.size(),
                                    std::vector<std::optional<std::size_t>>(windows_[w].size()));
    }
    // A norm after the block is the one in front of the next.
    if (block.placement == Placement::post)
      in_front_ = {block.feed_forward_norm ? *block.feed_forward_norm : block.norm, weights.feed_forward_gain,
                   weights.feed_forward_bias};
  }

  void watch_queries(ScanLayer& layer, Captured& captured, const AttentionRows<float>& rows) const {
    const auto here = std::find_if(layer.heads.begin(), layer.heads.end(),
                                   [&](const ScanHead& head) { return head.head == rows.head; });
    if (here == layer.heads.end()) return;
    auto& winners = captured.winners[static_cast<std::size_t>(here - layer.heads.begin())];
    for (std::size_t i = 0; i < rows.weights.rows; ++i)
      winners[rows.first + i] = add_query(rows.weights[i], rows.reach.first, here->queries);
  }

  // Decides one set: a space of a window, or of one of its heads.
  using Question = std::function<void(const Executor& alone)>;

  void finish_layer() {
    if (!wanted_) return;
    // What reachable queries do may follow from what any query does.
    std::vector<Question> questions, reachable;
    for (std::size_t w = 0; w < windows_.size(); ++w) {
      ScanLayer& layer = result_[w].layers.back();
      layer.norm_in = norm_share(captured_[w].norm_in.view());
      layer.norm_out = norm_share(captured_[w].norm_out.view());
      for (ScanHead& head : layer.heads) finish(head.queries);
      ask(w, layer, questions, reachable);
    }
    const std::size_t total = (questions.size() + reachable.size()) * layers_.size();
    const Executor alone(1);
    const auto answer = [&](const std::vector<Question>& asked) {
      executor_.for_each(asked.size(), [&](std::size_t q) {
        asked[q](alone);
        const std::size_t done = ++done_;
        if (progress_) progress_(done, total);
      });
    };
    answer(questions);
    for (ScanWindow& window : result_) share_heads(window.layers.back());
    answer(reachable);
    executor_.for_each(windows_.size(), [&](std::size_t w) { require_no_contradiction(w); });
    wanted_ = false;
  }

  // Heads of one group have the same keys.
  static void share_heads(ScanLayer& layer) {
    for (std::size_t h = 1; h < layer.heads.size(); ++h) {
      if (layer.heads[h].key_head == layer.heads[h - 1].key_head)
        layer.heads[h].keys = layer.heads[h - 1].keys;
    }
  }

  void ask(std::size_t w, ScanLayer& layer, std::vector<Question>& questions,
           std::vector<Question>& reachable) const {
    const Captured& captured = captured_[w];
    if (asks_for(settings_, KeySpace::before))
      questions.emplace_back(
          [&, w](const Executor& alone) { layer.before = decide(w, captured.norm_in, alone); });
    if (asks_for(settings_, KeySpace::model))
      questions.emplace_back(
          [&, w](const Executor& alone) { layer.model = decide(w, captured.norm_out, alone); });
    if (settings_.ideal_norms && layer_in_front_.bounds()) {
      NormSpec norm = layer_in_front_.spec;
      questions.emplace_back([&, w, norm](const Executor& alone) {
        layer.unrounded = decide_ideal(w, norm, captured.norm_in, alone);
      });
      norm.eps = 0;
      questions.emplace_back([&, w, norm](const Executor& alone) {
        layer.sphere = decide_ideal(w, norm, captured.norm_in, alone);
      });
    }
    for (ScanHead& head : layer.heads) {
      const bool first_of_keys = &head == &layer.heads.front() || head.key_head != (&head - 1)->key_head;
      const auto h = static_cast<std::size_t>(&head - layer.heads.data());
      if (asks_for(settings_, KeySpace::head) && first_of_keys)
        questions.emplace_back(
            [&, w, h](const Executor& alone) { head.keys = decide_head(w, h, head.head, alone); });
      if (asks_for(settings_, KeySpace::reachable) && layer.reachable_known)
        reachable.emplace_back(
            [&, w, h](const Executor& alone) { head.reachable = decide_reach(w, h, head, alone); });
    }
  }

  // Verdicts for any query; offsets_at: of the scores, from a place; empty: none.
  ScanSet decide(std::size_t w, const Matrix<double>& keys, const KeyOptions& options, Winners winners,
                 const OffsetsAt& offsets_at, const Executor& alone) const {
    return decide_space(places_[w].asked, keys, options, winners, offsets_at, alone);
  }

  ScanSet decide(std::size_t w, const Matrix<float>& keys, const Executor& alone) const {
    return decide(w, columns(keys.view(), 0, keys.cols()), key_options(settings_, kFloatRoundoff), {}, {},
                  alone);
  }

  ScanSet decide_ideal(std::size_t w, const NormSpec& norm, const Matrix<float>& norm_in,
                       const Executor& alone) const {
    return decide(w, normed(norm, norm_in.view()), key_options(settings_, kDoubleRoundoff), {}, {}, alone);
  }

  // What the norm in front leaves of tokens, in float64.
  Matrix<double> normed(const NormSpec& norm, MatrixView<const float> tokens) const {
    Matrix<double> result = columns(tokens, 0, tokens.cols);
    const std::vector<double> gain(layer_in_front_.gain.begin(), layer_in_front_.gain.end()),
        bias(layer_in_front_.bias.begin(), layer_in_front_.bias.end());
    norm_forward<double>(norm, {gain, bias, {}}, result.view(), result.view());
    return result;
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

  std::vector<double> errors_of(const Captured& captured, std::size_t head,
                                const Matrix<double>& keys) const {
    const std::size_t width = block_.width_of_head(), first = block_.key_head_of(head) * width;
    const MatrixView<const double> weights{key_weights_.view().data + first, key_weights_.rows(), width,
                                           key_weights_.view().stride};
    return key_errors(block_, captured.norm_out.view(), weights, std::span(key_bias_).subspan(first, width),
                      keys.view());
  }

  // h: which of the heads asked about.
  ScanSet decide_head(std::size_t w, std::size_t h, std::size_t head, const Executor& alone) const {
    const Captured& captured = captured_[w];
    const Matrix<double> keys = head_keys(captured, head);
    const std::vector<double> errors = errors_of(captured, head, keys);
    KeyOptions options = key_options(settings_, kFloatRoundoff);
    options.errors = errors;
    OffsetsAt offsets_at;
    if (block_.relative.buckets > 0)
      offsets_at = [&](std::size_t place) { return offsets_from(place, head, keys.rows()); };
    return decide(w, keys, options, captured.winners[h], offsets_at, alone);
  }

  // q = (g ⊙ z + β)W_Q + b before rotation: A and c of reachable.h.
  HeadQueries queries_of(std::size_t head) const {
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
      for (std::size_t r = 0; r < width; ++r) map(r, i) = directions(i, r);
    }
    HeadQueries queries{QueryEllipsoid(map.view(), shift, std::sqrt(static_cast<double>(d)))};
    double squares = 0;
    for (const double value : queries.formed.ball().centre) squares += value * value;
    queries.free = block_.relative.buckets == 0 && queries.formed.rank() == width &&
                   std::sqrt(squares) < (1 - 1e-9) * queries.formed.ball().radius;
    return queries;
  }

  ScanSet decide_reach(std::size_t w, std::size_t h, const ScanHead& head, const Executor& alone) const {
    const Captured& captured = captured_[w];
    const HeadQueries queries = queries_of(head.head);
    const Matrix<double> keys = head_keys(captured, head.head);
    const bool alike = block_.rotary.frequencies.empty() && block_.relative.buckets == 0;
    PlacesQuestion question{places_[w].asked, alike, false, captured.winners[h], queries.free, {}};
    question.decide = [&](std::size_t place, std::span<const std::size_t> seen,
                          std::span<const std::size_t> wanted, bool first) {
      return reach_from(place, head.head, keys, queries.formed, seen, wanted, first, alone);
    };
    ScanSet set = decide_from_places(question);
    if (!queries.free) return set;
    // Of every direction some multiple is a query, from any place: the verdicts are those of any query.
    const ScanSet any = head.keys.verdicts.empty() ? decide_head(w, h, head.head, alone) : head.keys;
    for (std::size_t i = 0; i < any.verdicts.size(); ++i) {
      if (set.verdicts[i] == any.verdicts[i] && set.places[i]) continue;
      set.verdicts[i] = any.verdicts[i];
      set.places[i] = any.places[i];
      set.margins[i] = 0;
    }
    return set;
  }

  PlacesQuestion::Answer reach_from(std::size_t place, std::size_t head, const Matrix<double>& all,
                                    const QueryEllipsoid& queries, std::span<const std::size_t> seen,
                                    std::span<const std::size_t> wanted, bool first,
                                    const Executor& alone) const {
    // Keys turned back score unturned queries as the keys score the queries turned.
    Matrix<double> keys = rows_of(all.view(), seen);
    for (std::size_t j = 0; j < keys.rows(); ++j)
      rotate<double>(block_.rotary, keys.cols(), -static_cast<double>(place), keys[j]);
    std::vector<double> offsets = queries.offsets(keys.view());
    const std::vector<double> by_distance = entries_of(offsets_from(place, head, all.rows()), seen);
    if (offsets.empty()) offsets.assign(by_distance.size(), 0);
    for (std::size_t j = 0; j < by_distance.size(); ++j) offsets[j] += by_distance[j];
    // In units of the scores, for the largest weights.
    Matrix<double> mapped = queries.keys(keys.view());
    for (std::size_t j = 0; j < mapped.rows(); ++j) {
      for (double& value : mapped[j]) value *= block_.score_scale();
    }
    for (double& offset : offsets) offset *= block_.score_scale();
    const std::vector<std::size_t> only = positions_in(seen, wanted);
    ReachableOptions options;
    options.unit_roundoff = kFloatRoundoff;
    options.margins = settings_.margins;
    options.certificates = false;
    options.only = only;
    if (settings_.largest_weights && first) options.weight_gap = kWeightGap;
    const ReachableSet found = decide_reachable(mapped.view(), offsets, queries.ball(), options, alone);
    PlacesQuestion::Answer answer;
    answer.rank = found.rank;
    for (const std::size_t k : only) {
      const ReachableVerdict& key = found.keys[k];
      answer.verdicts.push_back({decided(key.verdict), key.verdict == Verdict::selectable ? key.margin : 0,
                                 false, key.margin_bound < 0 || found.rank == mapped.cols(), key.max_weight});
    }
    return answer;
  }

  // Every query of the pass that put a token on top against every space that holds the query.
  void require_no_contradiction(std::size_t w) const {
    const ScanLayer& layer = result_[w].layers.back();
    const Captured& captured = captured_[w];
    const Places& places = places_[w].asked;
    // Without turning and offsets, scores are linear in what enters attention.
    const bool linear =
        block_.rotary.frequencies.empty() && block_.relative.buckets == 0 && !block_.normalize_query_key;
    const auto may_contradict = [](const ScanSet& set, std::size_t token) {
      return !set.verdicts.empty() &&
             (set.verdicts[token] == Verdict::tied || set.verdicts[token] == Verdict::unselectable);
    };
    for (std::size_t h = 0; h < layer.heads.size(); ++h) {
      const ScanHead& head = layer.heads[h];
      Matrix<double> keys;
      double error = 0;
      for (std::size_t place = 0; place < places.count(); ++place) {
        const auto winner = captured.winners[h][place];
        if (!winner) continue;
        const bool in_model = linear && may_contradict(layer.model, *winner),
                   in_head = may_contradict(head.keys, *winner),
                   in_reach = may_contradict(head.reachable, *winner);
        if (!(in_model || in_head || in_reach) || !holds_query(w, place, *winner)) continue;
        if (keys.rows() == 0) {
          keys = head_keys(captured, head.head);
          const std::vector<double> errors = errors_of(captured, head.head, keys);
          error = *std::max_element(errors.begin(), errors.end());
        }
        const std::vector<std::size_t> seen = places.seen_from(place);
        const std::vector<double> offsets = offsets_from(place, head.head, keys.rows());
        const auto require = [&](const ScanSet& set, KeySpace space, std::span<const double> query,
                                 const SeenKeys& from) {
          const double lead = certain_lead(query, from, *winner);
          if (lead > 0) require_selectable(set, *winner, space, layer.layer, head.head, place, lead);
        };
        const std::vector<double> query = real_query(captured, head.head, place);
        if (in_head) require(head.keys, KeySpace::head, query, {keys.view(), offsets, seen, error});
        if (in_reach)
          require(head.reachable, KeySpace::reachable, formed_query(captured, head.head, place),
                  {keys.view(), offsets, seen, error});
        if (in_model) {
          const Matrix<double> tokens = columns(captured.norm_out.view(), 0, captured.norm_out.cols());
          require(layer.model, KeySpace::model, query_on_tokens(query, head.head),
                  {tokens.view(), {}, seen, 0});
        }
      }
    }
  }

  // A query that put the token on top of all it saw did so among those the verdicts compare it with.
  bool holds_query(std::size_t w, std::size_t place, std::size_t token) const {
    const Places& places = places_[w].asked;
    if (!places.sees(place, token)) return false;
    const std::vector<std::size_t> seen = places.seen_from(place);
    return std::all_of(seen.begin(), seen.end(),
                       [&](std::size_t other) { return places_[w].real.attends(place, other); });
  }

  std::vector<double> real_query(const Captured& captured, std::size_t head, std::size_t place) const {
    const std::size_t width = block_.width_of_head();
    const auto from = captured.query[place].subspan(head * width, width);
    return {from.begin(), from.end()};
  }

  // The same query in float64, from the token before the norm: one of those the layer can form.
  std::vector<double> formed_query(const Captured& captured, std::size_t head, std::size_t place) const {
    const std::size_t width = block_.width_of_head();
    const MatrixView<const float> token{captured.norm_in[place].data(), 1, captured.norm_in.cols()};
    const Matrix<double> x = normed(layer_in_front_.spec, token);
    std::vector<double> query(width);
    for (std::size_t r = 0; r < width; ++r) {
      query[r] = query_bias_[head * width + r];
      for (std::size_t i = 0; i < x.cols(); ++i) query[r] += x(0, i) * query_weights_(i, head * width + r);
    }
    rotate<double>(block_.rotary, width, static_cast<double>(place), query);
    return query;
  }

  // q·(xW_K + b) = (W_K q)·x + q·b, the same for all tokens but for the first term.
  std::vector<double> query_on_tokens(std::span<const double> query, std::size_t head) const {
    const std::size_t first = block_.key_head_of(head) * block_.width_of_head();
    std::vector<double> result(block_.width, 0);
    for (std::size_t i = 0; i < block_.width; ++i) {
      for (std::size_t r = 0; r < query.size(); ++r) result[i] += key_weights_(i, first + r) * query[r];
    }
    return result;
  }

  const ModelWeights& weights_;
  const ModelSpec& spec_;
  std::span<const std::vector<std::uint32_t>> windows_;
  const ScanSettings& settings_;
  const Executor& executor_;
  const std::function<void(std::size_t, std::size_t)>& progress_;
  std::vector<std::size_t> layers_, heads_;
  std::vector<Captured> captured_;
  std::vector<WindowPlaces> places_;
  std::vector<ScanWindow> result_;
  NormInFront in_front_;  // of the layer that comes
  // Of the layer that is passed.
  bool wanted_ = false;
  BlockSpec block_;
  NormInFront layer_in_front_;
  Matrix<double> query_weights_, key_weights_;
  std::vector<double> query_bias_, key_bias_;
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

namespace {

// A piece of a scan: a window, and what is decided of it. Each passes the model on its own.
struct ScanPiece {
  std::size_t window = 0;
  bool norms = false;  // the spaces before and after the norm, and what the queries of all heads do
  std::vector<std::size_t> heads;  // whose keys are decided, for any query and for reachable ones
};

// Where windows are enough to keep many processes busy each is one piece. Fewer are cut by what is decided: each
// piece of a window costs a pass.
constexpr std::size_t kEnoughPieces = 256, kFewestOfWindow = 3, kMostOfWindow = 8;

std::vector<KeySpace> chosen_spaces(const ScanSettings& settings, bool norms) {
  std::vector<KeySpace> spaces;
  for (const KeySpace space : settings.spaces)
    if ((space == KeySpace::before || space == KeySpace::model) == norms) spaces.push_back(space);
  return spaces;
}

// Heads of one group have the same keys, and stay together.
std::vector<std::vector<std::size_t>> head_groups(const ModelSpec& spec, const ScanSettings& settings,
                                                  std::size_t most) {
  std::vector<std::size_t> heads = settings.heads;
  for (std::size_t head = 0; settings.heads.empty() && head < spec.block.heads; ++head) heads.push_back(head);
  std::vector<std::vector<std::size_t>> same_keys;
  for (const std::size_t head : heads) {
    const bool joins =
        !same_keys.empty() && spec.block.key_head_of(same_keys.back().back()) == spec.block.key_head_of(head);
    if (!joins) same_keys.emplace_back();
    same_keys.back().push_back(head);
  }
  const std::size_t count = std::min(most, same_keys.size());
  std::vector<std::vector<std::size_t>> groups(count);
  for (std::size_t k = 0; k < same_keys.size(); ++k) {
    auto& group = groups[k * count / same_keys.size()];
    group.insert(group.end(), same_keys[k].begin(), same_keys[k].end());
  }
  return groups;
}

// What another piece found of its heads.
void take_heads(const ScanWindow& from, ScanWindow& into) {
  for (std::size_t l = 0; l < into.layers.size(); ++l)
    for (const ScanHead& head : from.layers.at(l).heads)
      for (ScanHead& own : into.layers[l].heads)
        if (own.head == head.head) {
          own.keys = head.keys;
          own.reachable = head.reachable;
        }
}

std::vector<ScanWindow> scan_in_pieces(const ModelWeights& weights,
                                       std::span<const std::vector<std::uint32_t>> windows,
                                       const ScanSettings& settings, const Executor& executor,
                                       const std::function<void(std::size_t, std::size_t)>& progress) {
  const ModelSpec& spec = weights.spec();
  const auto of_heads = chosen_spaces(settings, false);
  const std::size_t parts = std::min(kMostOfWindow, kEnoughPieces / windows.size());
  const bool whole = parts < kFewestOfWindow;
  std::vector<ScanPiece> pieces;
  PieceWork work{"scan", {}, true, {}, {}};
  for (std::size_t w = 0; w < windows.size(); ++w) {
    const auto n = static_cast<double>(windows[w].size());
    pieces.push_back({w, true, {}});
    work.costs.push_back(n * n);
    if (of_heads.empty() || whole) continue;
    for (auto& group : head_groups(spec, settings, parts)) {
      work.costs.push_back(n * n * static_cast<double>(group.size()));
      pieces.push_back({w, false, std::move(group)});
    }
  }
  std::atomic<std::size_t> done = 0;
  work.finished = [&](std::size_t) {
    const std::size_t finished = ++done;
    if (progress) progress(finished, pieces.size());
  };
  auto found = run_pieces<ScanWindow>(executor, work, [&](std::size_t index, const Executor& inside) {
    const ScanPiece& piece = pieces[index];
    ScanSettings own = settings;
    if (!whole) own.spaces = chosen_spaces(settings, piece.norms);
    if (!piece.norms) {
      own.heads = piece.heads;
      own.ideal_norms = own.losses = false;
    }
    return std::move(Scan(weights, windows.subspan(piece.window, 1), own, inside, {}).run().front());
  });
  std::vector<ScanWindow> result;
  for (std::size_t index = 0; index < pieces.size(); ++index)
    pieces[index].norms ? result.push_back(std::move(found[index])) : take_heads(found[index], result.back());
  return result;
}

}  // namespace

std::vector<ScanWindow> scan(const ModelWeights& weights, std::span<const std::vector<std::uint32_t>> windows,
                             const ScanSettings& settings, const Executor& executor,
                             const std::function<void(std::size_t, std::size_t)>& progress) {
  if (windows.empty()) throw InputError("There is no text to scan.");
  // Who watches the pass must see all of it.
  const ForwardObserver& watched = settings.observer;
  if (executor.pieces() != nullptr && !watched.layer && !watched.point && !watched.attention)
    return scan_in_pieces(weights, windows, settings, executor, progress);
  return Scan(weights, windows, settings, executor, progress).run();
}

}  // namespace normscope

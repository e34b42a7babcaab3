// All cases side by side, layer by layer.
#include "normscope/collapse.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "collapse/theory.h"
#include "core/gemm.h"
#include "core/run_pieces.h"
#include "model/dropout.h"
#include "model/scratch_pool.h"
#include "normscope/error.h"
#include "normscope/random.h"

namespace normscope {
namespace {

// Tokens of all cases and samples held at once.
constexpr std::size_t kMostBytes = std::size_t{256} << 20;

// One case of one sample.
template <class T>
struct Lane {
  std::size_t which = 0, sample = 0;  // case; sample
  Matrix<T> x;
  Matrix<T> values;  // X₀W₁⋯W_t, for theorem 1; else empty
};

template <class T>
Matrix<T> rounded(const Matrix<double>& x) {
  Matrix<T> result(x.rows(), x.cols());
  std::transform(x.values().begin(), x.values().end(), result.data(),
                 [](double v) { return static_cast<T>(v); });
  return result;
}

template <class T>
Matrix<T> converted(const Matrix<float>& x) {
  return {x.rows(), x.cols(), std::vector<T>(x.values().begin(), x.values().end())};
}

// The weights of one layer of a model, in the precision of the run.
template <class T>
BlockWeights<T> converted(BlockWeights<float> from) {
  if constexpr (std::is_same_v<T, float>) {
    return from;
  } else {
    const auto numbers = [](const std::vector<float>& x) { return std::vector<T>(x.begin(), x.end()); };
    BlockWeights<T> to;
    to.query_key_value = converted<T>(from.query_key_value);
    to.output = converted<T>(from.output);
    to.up = converted<T>(from.up);
    to.down = converted<T>(from.down);
    to.gate = converted<T>(from.gate);
    to.relative = converted<T>(from.relative);
    to.query_key_value_bias = numbers(from.query_key_value_bias);
    to.output_bias = numbers(from.output_bias);
    to.up_bias = numbers(from.up_bias);
    to.gate_bias = numbers(from.gate_bias);
    to.down_bias = numbers(from.down_bias);
    to.attention_gain = numbers(from.attention_gain);
    to.attention_bias = numbers(from.attention_bias);
    to.feed_forward_gain = numbers(from.feed_forward_gain);
    to.feed_forward_bias = numbers(from.feed_forward_bias);
    return to;
  }
}

DropoutKey dropout_key(const CollapseSettings& settings, std::size_t sample, std::size_t layer) {
  return {settings.seed + 1, static_cast<std::uint64_t>(sample) << 14 | layer};
}

// What all samples of a run leave behind, before means are taken.
struct Recorded {
  CollapseCurve curve;
  std::vector<SampleTrace> traces;                                // samples
  std::vector<std::vector<std::vector<double>>> singular_values;  // layers + 1 × samples
  std::vector<std::vector<double>> entropy;                       // layers × samples
  std::vector<NormCounts> norm;                                   // samples
};

template <class T>
class Experiment {
 public:
  Experiment(const std::vector<CollapseCase>& cases, const CollapseSettings& settings,
             const Executor& executor, const std::function<void(std::size_t, std::size_t)>& progress)
      : cases_(cases), settings_(settings), executor_(executor), progress_(&progress) {
    for (const CollapseCase& each : cases) {
      facts_.push_back(facts_of(each, settings));
      feed_forward_ = std::max(feed_forward_, each.block.feed_forward);
      Recorded recorded;
      recorded.curve.group = each.group;
      recorded.curve.name = each.name;
      recorded.curve.layers.assign(settings.layers + 1, std::vector<TokenMeasures>(settings.samples));
      recorded.traces.resize(settings.samples);
      recorded.singular_values.assign(settings.layers + 1,
                                      std::vector<std::vector<double>>(settings.samples));
      recorded.entropy.assign(settings.layers, std::vector<double>(settings.samples));
      recorded.norm.resize(settings.samples);
      recorded_.push_back(std::move(recorded));
    }
  }

  std::vector<CollapseCurve> run() {
    if (executor_.pieces() != nullptr) {
      run_in_pieces();
    } else {
      const std::size_t lane_bytes = cases_.size() * settings_.tokens * width() * sizeof(T);
      const std::size_t fit = std::max<std::size_t>(1, kMostBytes / std::max<std::size_t>(1, lane_bytes));
      const std::size_t together = settings_.fresh_weights ? 1 : std::min(fit, settings_.samples);
      for (std::size_t first = 0; first < settings_.samples; first += together) {
        const std::size_t end = std::min(first + together, settings_.samples);
        run_lanes(first * cases_.size(), end * cases_.size(), executor_);
      }
    }
    std::vector<CollapseCurve> curves;
    for (std::size_t c = 0; c < cases_.size(); ++c) curves.push_back(finish(c));
    return curves;
  }

 private:
  std::size_t width() const { return cases_.front().block.width; }

  // What a lane leaves in recorded_.
  struct LaneRecord {
    std::vector<TokenMeasures> measures;               // layers + 1
    std::vector<std::vector<double>> singular_values;  // likewise
    std::vector<double> entropy;                       // layers
    SampleTrace trace;
    NormCounts norm;
  };

  LaneRecord record_of(std::size_t lane) const {
    const std::size_t sample = lane / cases_.size();
    const Recorded& recorded = recorded_[lane % cases_.size()];
    LaneRecord record;
    for (std::size_t layer = 0; layer <= settings_.layers; ++layer) {
      record.measures.push_back(recorded.curve.layers[layer][sample]);
      record.singular_values.push_back(recorded.singular_values[layer][sample]);
      if (layer > 0) record.entropy.push_back(recorded.entropy[layer - 1][sample]);
    }
    record.trace = recorded.traces[sample];
    record.norm = recorded.norm[sample];
    return record;
  }

  void put_record(std::size_t lane, LaneRecord record) {
    const std::size_t sample = lane / cases_.size();
    Recorded& recorded = recorded_[lane % cases_.size()];
    for (std::size_t layer = 0; layer <= settings_.layers; ++layer) {
      recorded.curve.layers[layer][sample] = record.measures.at(layer);
      recorded.singular_values[layer][sample] = std::move(record.singular_values.at(layer));
      if (layer > 0) recorded.entropy[layer - 1][sample] = record.entropy.at(layer - 1);
    }
    recorded.traces[sample] = std::move(record.trace);
    recorded.norm[sample] = record.norm;
  }

  // Some lanes to a piece, which draws the weights of every layer anew: more than a few, so that this is a small
  // part of its work.
  void run_in_pieces() {
    const std::size_t lanes = cases_.size() * settings_.samples;
    const std::size_t together = std::clamp<std::size_t>(lanes / 1024, 6, 64);
    std::vector<std::pair<std::size_t, std::size_t>> pieces;
    const std::size_t stretch =
        settings_.fresh_weights ? cases_.size() : lanes;  // over which weights are the same
    for (std::size_t first = 0; first < lanes; first += stretch)
      for (std::size_t begin = first; begin < first + stretch; begin += together)
        pieces.emplace_back(begin, std::min(begin + together, first + stretch));
    PieceWork work{"collapse", {}, true, {}, {}};
    for (const auto& [begin, end] : pieces) work.costs.push_back(cost_of(begin, end));
    const auto progress = std::exchange(progress_, nullptr);
    work.finished = [&](std::size_t piece) {
      const std::size_t layers = (pieces[piece].second - pieces[piece].first) * settings_.layers;
      const std::size_t done = done_.fetch_add(layers) + layers;
      if (progress != nullptr && *progress) (*progress)(done, lanes * settings_.layers);
    };
    auto records =
        run_pieces<std::vector<LaneRecord>>(executor_, work, [&](std::size_t piece, const Executor& inside) {
          const auto [begin, end] = pieces[piece];
          run_lanes(begin, end, inside);
          std::vector<LaneRecord> result;
          for (std::size_t lane = begin; lane < end; ++lane) result.push_back(record_of(lane));
          return result;
        });
    for (std::size_t piece = 0; piece < pieces.size(); ++piece)
      for (std::size_t lane = pieces[piece].first; lane < pieces[piece].second; ++lane)
        put_record(lane, std::move(records[piece].at(lane - pieces[piece].first)));
  }

  // Products of a layer, about: of projections and attention, and of the feed-forward where there is one.
  double cost_of(std::size_t begin, std::size_t end) const {
    const auto n = static_cast<double>(settings_.tokens), d = static_cast<double>(width());
    double cost = 0;
    for (std::size_t lane = begin; lane < end; ++lane)
      cost +=
          n * d * (4 * d + 2 * n + 2 * static_cast<double>(cases_[lane % cases_.size()].block.feed_forward));
    return cost;
  }

  // Lanes are numbered sample by sample, in each case by case.
  void run_lanes(std::size_t begin, std::size_t end, const Executor& executor) {
    const std::size_t count = cases_.size(), first = begin / count, samples = (end - 1) / count - first + 1;
    std::vector<Lane<T>> lanes(end - begin);
    std::vector<Matrix<float>> embedded;
    if (settings_.model)
      embedded = embed(*settings_.model, std::span(settings_.texts).subspan(first, samples), executor);
    executor.for_each(samples, [&](std::size_t s) {
      const Matrix<T> x = settings_.model ? converted<T>(embedded[s])
                                          : rounded<T>(draw_tokens(settings_.start, settings_.tokens, width(),
                                                                   first + s, settings_.seed));
      for (std::size_t c = 0; c < count; ++c) {
        const std::size_t lane = (first + s) * count + c;
        if (lane >= begin && lane < end) start(lanes[lane - begin], c, first + s, x);
      }
    });
    const std::uint64_t seed =
        settings_.fresh_weights ? Random(settings_.seed, ~std::uint64_t{first}).bits64() : settings_.seed;
    for (std::size_t layer = 0; layer < settings_.layers; ++layer) {
      const BlockWeights<T> weights =
          settings_.model ? converted<T>(settings_.model->layer(layer))
                          : draw_weights<T>(settings_.weights, width(), feed_forward_, layer, seed, executor);
      executor.for_each(lanes.size(), [&](std::size_t l) { advance(lanes[l], weights, layer); });
    }
  }

  void start(Lane<T>& lane, std::size_t which, std::size_t sample, const Matrix<T>& x) {
    lane.which = which;
    lane.sample = sample;
    lane.x = x;
    const double dropout = cases_[which].block.dropout;
    if ((settings_.model || embeds_words(settings_.start)) && dropout > 0) {
      Dropout drop(dropout, dropout_key(settings_, sample, 0), DropoutSite::embedding);
      for (std::size_t i = 0; i < x.rows(); ++i) drop.apply(lane.x[i]);
    }
    SampleTrace& trace = recorded_[which].traces[sample];
    trace = {};
    trace.equal_norms = equal_norms<T>(lane.x.view());
    if (facts_[which].theorem1) {
      lane.values = lane.x;
      trace.oscillation.push_back(oscillation<T>(lane.values.view()));
    }
    measure(lane, 0);
  }

  void advance(Lane<T>& lane, const BlockWeights<T>& weights, std::size_t layer) {
    const CollapseCase& each = cases_[lane.which];
    Recorded& recorded = recorded_[lane.which];
    SampleTrace& trace = recorded.traces[lane.sample];
    scratch_.with_scratch([&](BlockForward<T>& forward) {
      const BlockCounts counts = forward.apply(each.block, weights, each.mask, lane.x.view(),
                                               dropout_key(settings_, lane.sample, layer));
      trace.least_weight.push_back(counts.least_weight);
      recorded.entropy[layer][lane.sample] = counts.entropy;
      recorded.norm[lane.sample] += counts.norm;
    });
    if (facts_[lane.which].theorem1) {
      const std::size_t d = width();
      const MatrixView<const T> value{weights.query_key_value.data() + 2 * d, d, d, 3 * d};
      Matrix<T> inner(settings_.tokens, d);
      multiply<T>(1, lane.values.view(), value, Transpose::no, 0, inner.view());
      multiply<T>(1, inner.view(), weights.output.view(), Transpose::no, 0, lane.values.view());
      trace.oscillation.push_back(oscillation<T>(lane.values.view()));
    }
    measure(lane, layer + 1);
    if (progress_ != nullptr && *progress_) {
      (*progress_)(++done_, cases_.size() * settings_.samples * settings_.layers);
    }
  }

  void measure(const Lane<T>& lane, std::size_t layer) {
    Recorded& recorded = recorded_[lane.which];
    recorded.curve.layers[layer][lane.sample] =
        measure_tokens<T>(lane.x.view(), settings_.spectrum, &recorded.singular_values[layer][lane.sample]);
    if (std::isfinite(recorded.curve.layers[layer][lane.sample].norm)) return;
    if (layer == 0) {
      throw InputError(
          "The tokens at the start are too large: their squares leave the range of numbers. Scale them "
          "down.");
    }
    throw Error(fmt::format(
        "The tokens of '{}, {}' left the range of numbers at layer {}; use a norm, smaller weights, "
        "float64, or fewer layers.",
        cases_[lane.which].group, cases_[lane.which].name, layer));
  }

  CollapseCurve finish(std::size_t c) {
    Recorded& recorded = recorded_[c];
    CollapseCurve& curve = recorded.curve;
    curve.empty_rows = facts_[c].mask.empty_rows;
    for (const NormCounts& counts : recorded.norm) curve.norm += counts;
    for (std::size_t layer = 0; layer < settings_.layers; ++layer) {
      double least = 1;
      for (const SampleTrace& trace : recorded.traces) least = std::min(least, trace.least_weight[layer]);
      curve.least_weight.push_back(least);
      curve.entropy.push_back(mean_interval(recorded.entropy[layer]).mean);
    }
    if (settings_.spectrum == Spectrum::yes) {
      for (const auto& samples : recorded.singular_values) {
        std::vector<double> mean(samples.front().size());
        for (const auto& values : samples) {
          for (std::size_t i = 0; i < mean.size(); ++i)
            mean[i] += values[i] / static_cast<double>(samples.size());
        }
        curve.singular_values.push_back(std::move(mean));
      }
      curve.last_singular_values = recorded.singular_values.back();
    }
    curve.rate = fit_rate(curve);
    curve.theory = theory_of(cases_[c], settings_, facts_[c], curve, recorded.traces);
    return std::move(curve);
  }

  // Where log(relative) against the layer is no longer the tokens' but rounding's.
  static double floor() { return 1e2 * static_cast<double>(std::numeric_limits<T>::epsilon()); }

  CollapseRate fit_rate(const CollapseCurve& curve) const {
    CollapseRate rate;
    std::vector<Range> factors;
    for (std::size_t s = 0; s < settings_.samples; ++s) {
      std::vector<double> logs;
      for (const auto& layer : curve.layers) {
        const double value = layer[s].relative;
        // At least two points: collapse within one layer is a rate too.
        if (value <= floor() && logs.size() >= 2) break;
        logs.push_back(std::log(std::max(value, floor())));
        if (value <= floor()) break;
      }
      if (s == 0) rate.layers = logs.size() - 1;
      rate.samples.push_back(std::exp(line_slope(logs)));
      if (logs.size() >= 2) factors.push_back({rate.samples.back(), rate.samples.back()});
    }
    const RatioInterval over = ratio_interval(factors);
    rate.factor = over.estimate.low;
    rate.low = over.low;
    rate.high = over.high;
    return rate;
  }

  const std::vector<CollapseCase>& cases_;
  const CollapseSettings& settings_;
  const Executor& executor_;
  const std::function<void(std::size_t, std::size_t)>* progress_;  // null: told piece by piece
  std::vector<CaseFacts> facts_;
  std::vector<Recorded> recorded_;
  ScratchPool<T> scratch_;
  std::size_t feed_forward_ = 0;
  std::atomic<std::size_t> done_ = 0;
};

// A model's weights fit the blocks of its own shape only.
void require_shape(const BlockSpec& block, const BlockSpec& of_model) {
  const auto same = [](std::size_t is, std::size_t should, const char* what) {
    if (is == should) return;
    throw InputError(
        fmt::format("The block has {} {}; the model it takes its weights from has {}.", is, what, should));
  };
  same(block.width, of_model.width, "dimensions");
  same(block.heads, of_model.heads, "heads");
  same(block.key_head_count(), of_model.key_head_count(), "key heads");
  same(block.width_of_head(), of_model.width_of_head(), "dimensions in each head");
  if (block.feed_forward != 0) {
    same(block.feed_forward, of_model.feed_forward, "dimensions inside the feed-forward");
    if (block.gated != of_model.gated)
      throw InputError("A gate in the feed-forward is part of a model's weights; it cannot be switched.");
  }
  if (block.relative.buckets != 0)
    same(block.relative.buckets, of_model.relative.buckets, "buckets of distances");
}

void require_model_fits(const std::vector<CollapseCase>& cases, const CollapseSettings& settings) {
  const ModelSpec& spec = settings.model->spec();
  if (settings.layers > spec.layers) {
    throw InputError(fmt::format("The model has {} layers, not {}; ask for at most as many.", spec.layers,
                                 settings.layers));
  }
  if (settings.fresh_weights || settings.weights.normalize)
    throw InputError("The weights of a model are neither drawn afresh for each sample nor normalized.");
  if (settings.texts.size() < settings.samples) {
    throw InputError(fmt::format("There are {} texts for {} samples; each needs one.", settings.texts.size(),
                                 settings.samples));
  }
  for (const auto& text : settings.texts) {
    if (text.size() != settings.tokens) {
      throw InputError(fmt::format("A text has {} tokens; the run has {}.", text.size(), settings.tokens));
    }
  }
  for (const CollapseCase& each : cases) require_shape(each.block, spec.block);
}

void require_runnable(const std::vector<CollapseCase>& cases, const CollapseSettings& settings) {
  if (cases.empty()) throw InputError("There is no case to run.");
  if (settings.tokens == 0 || settings.layers == 0 || settings.samples == 0) {
    throw InputError("Tokens, layers and samples must be at least 1.");
  }
  if (settings.layers >= 1u << 14) throw InputError("At most 16383 layers fit one run.");
  if (settings.model) require_model_fits(cases, settings);
  for (const CollapseCase& each : cases) {
    require_valid(each.block);
    if (each.mask.n() != settings.tokens) {
      throw InputError(fmt::format("The mask of '{}' is for {} tokens; the run has {}.", each.name,
                                   each.mask.n(), settings.tokens));
    }
    if (each.block.width != cases.front().block.width) {
      throw InputError("All cases of a run share their weights, so their widths must be equal.");
    }
    if (each.block.feed_forward != 0 && each.block.feed_forward != cases.front().block.feed_forward) {
      for (const CollapseCase& other : cases) {
        if (other.block.feed_forward != 0 && other.block.feed_forward != each.block.feed_forward) {
          throw InputError(
              "All cases of a run share their weights, so their feed-forward widths must be equal.");
        }
      }
    }
  }
}

}  // namespace

std::vector<CollapseCurve> collapse(const std::vector<CollapseCase>& cases, const CollapseSettings& settings,
                                    const Executor& executor,
                                    const std::function<void(std::size_t, std::size_t)>& progress) {
  require_runnable(cases, settings);
  const OneThreadPerProduct one_thread;
  if (settings.precision == Precision::float32) {
    return Experiment<float>(cases, settings, executor, progress).run();
  }
  return Experiment<double>(cases, settings, executor, progress).run();
}

CollapseCurve::Summary CollapseCurve::summary(std::size_t layer) const {
  Summary result;
  const std::vector<TokenMeasures>& samples = layers[layer];
  const auto count = static_cast<double>(samples.size());
  for (const TokenMeasures& sample : samples) {
    const auto values = sample.values();
    for (std::size_t m = 0; m < values.size(); ++m) result.mean[m] += values[m] / count;
  }
  if (samples.size() < 2) {
    result.sd.fill(std::numeric_limits<double>::quiet_NaN());
    return result;
  }
  for (const TokenMeasures& sample : samples) {
    const auto values = sample.values();
    for (std::size_t m = 0; m < values.size(); ++m) {
      result.sd[m] += (values[m] - result.mean[m]) * (values[m] - result.mean[m]) / (count - 1);
    }
  }
  for (double& variance : result.sd) variance = std::sqrt(variance);
  return result;
}

std::vector<double> CollapseCurve::of(std::size_t layer, double TokenMeasures::*measure) const {
  std::vector<double> values;
  for (const TokenMeasures& each : layers[layer]) values.push_back(each.*measure);
  return values;
}

double CollapseCurve::mean(std::size_t layer, double TokenMeasures::*measure) const {
  return mean_interval(of(layer, measure)).mean;
}

double CollapseCurve::sd(std::size_t layer, double TokenMeasures::*measure) const {
  const std::vector<double> values = of(layer, measure);
  if (values.size() < 2) return std::numeric_limits<double>::quiet_NaN();
  const double middle = mean(layer, measure);
  double sum = 0;
  for (const double value : values) sum += (value - middle) * (value - middle);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

std::vector<double> CollapseCurve::singular_share(std::size_t i) const {
  std::vector<double> shares;
  for (const std::vector<double>& values : last_singular_values)
    shares.push_back(values.front() > 0 ? values[i] / values.front() : 0);
  return shares;
}

std::span<const std::string_view> variant_names() {
  static constexpr std::string_view names[] = {"san", "san+skip", "san+norm", "san+skip+norm", "full"};
  return names;
}

BlockSpec variant_of(std::string_view name, BlockSpec block) {
  const auto names = variant_names();
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    throw InputError(fmt::format(
        "There is no variant '{}'; there are san, san+skip, san+norm, san+skip+norm, full.", name));
  }
  block.skip = name == "san+skip" || name == "san+skip+norm" || name == "full";
  if (name == "san" || name == "san+skip") {
    block.norm = {};
    block.feed_forward_norm.reset();
  }
  if (name != "full") block.feed_forward = 0;
  return block;
}

}  // namespace normscope

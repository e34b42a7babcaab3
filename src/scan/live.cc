#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "normscope/error.h"
#include "normscope/scan.h"
#include "scan/places.h"
#include "scan/space.h"

namespace normscope {
namespace {

bool chosen(const std::vector<std::size_t>& asked, std::size_t which) {
  return asked.empty() || std::ranges::find(asked, which) != asked.end();
}

void require_finite(const Matrix<float>& values, const char* what, std::size_t layer) {
  for (std::size_t i = 0; i < values.rows(); ++i)
    for (const float value : values[i])
      if (!std::isfinite(value))
        throw InputError(fmt::format("The {} of layer {} is {} at token {} (counted from 0).", what, layer,
                                     std::isnan(value) ? "NaN" : "infinite", i));
}

void require_sound(const LiveWindow& window) {
  const std::size_t n = window.ids.size();
  if (n == 0) throw InputError("A window of the trace has no tokens.");
  for (const LiveLayer& layer : window.layers) {
    const auto fits = [&](const Matrix<float>& values) { return values.rows() == 0 || values.rows() == n; };
    const std::size_t width = layer.heads == 0 ? 0 : layer.query.cols() / layer.heads;
    if (layer.heads == 0 || layer.key_heads == 0 || layer.heads % layer.key_heads != 0 || width == 0 ||
        layer.query.rows() != n || layer.key.rows() != n || layer.query.cols() != layer.heads * width ||
        layer.key.cols() != layer.key_heads * width || !fits(layer.norm_in) || !fits(layer.norm_out) ||
        !std::isfinite(layer.scale) || layer.scale == 0 ||
        (layer.offsets.rows() != 0 &&
         (layer.offsets.rows() != layer.heads || layer.offsets.cols() != 2 * n - 1)))
      throw InputError(fmt::format(
          "Layer {} of the trace does not fit together: {} tokens, queries {} × {} of {} heads, keys {} × {} of {}.",
          layer.layer, n, layer.query.rows(), layer.query.cols(), layer.heads, layer.key.rows(),
          layer.key.cols(), layer.key_heads));
    require_finite(layer.norm_in, "input of the norm", layer.layer);
    require_finite(layer.norm_out, "output of the norm", layer.layer);
    require_finite(layer.query, "query", layer.layer);
    require_finite(layer.key, "key", layer.layer);
    require_finite(layer.offsets, "offset of the scores", layer.layer);
  }
}

// Of the scores of a head for the query at `place`, a number per key; none: nothing is added.
std::vector<double> offsets_from(const LiveLayer& layer, std::size_t head, std::size_t place) {
  if (layer.offsets.rows() == 0) return {};
  const std::size_t n = layer.key.rows();
  const auto from = layer.offsets[head].subspan(n - 1 - place, n);
  return {from.begin(), from.end()};
}

// softmax(scale·q·k + offset) over what each place sees, a row at a time.
QueryShare queries_of(const LiveLayer& layer, std::size_t head, const Mask& mask) {
  const std::size_t n = layer.query.rows(), width = layer.query.cols() / layer.heads,
                    key_head = head / (layer.heads / layer.key_heads);
  QueryShare queries;
  queries.wins.assign(n, 0);
  std::vector<float> weights;
  for (std::size_t i = 0; i < n; ++i) {
    const auto query = layer.query[i].subspan(head * width, width);
    const std::vector<double> offsets = offsets_from(layer, head, i);
    for (const Mask::Run& run : mask.row(i)) {  // causal, sliding and full masks have one
      std::vector<double> scores;
      for (std::size_t j = run.first; j < run.last; ++j) {
        const auto key = layer.key[j].subspan(key_head * width, width);
        double score = 0;
        for (std::size_t r = 0; r < width; ++r)
          score += static_cast<double>(query[r]) * static_cast<double>(key[r]);
        scores.push_back(layer.scale * score + (offsets.empty() ? 0 : offsets[j]));
      }
      const double top = *std::ranges::max_element(scores);
      double sum = 0;
      for (double& score : scores) sum += score = std::exp(score - top);
      weights.clear();
      for (const double score : scores) weights.push_back(static_cast<float>(score / sum));
      add_query(weights, run.first, queries);
    }
  }
  finish(queries);
  return queries;
}

// The same in units of q·k, in which keys are decided.
std::vector<double> in_dot_products(const LiveLayer& layer, std::size_t head, std::size_t place) {
  std::vector<double> offsets = offsets_from(layer, head, place);
  for (double& offset : offsets) offset /= layer.scale;
  return offsets;
}

class LiveScan {
 public:
  LiveScan(std::span<const LiveWindow> windows, const LiveMask& mask, const ScanSettings& settings)
      : settings_(settings) {
    ModelSpec spec;
    spec.causal = mask.causal;
    spec.window = mask.window;
    for (const LiveWindow& window : windows) {
      require_sound(window);
      const std::size_t n = window.ids.size();
      const Mask real = model_mask(spec, n);
      const Mask asked = !settings.prefixes ? parse_mask("full", n)
                         : mask.causal      ? real
                                            : parse_mask("causal", n);
      places_.push_back({real, Places(asked)});
    }
    for (std::size_t w = 0; w < windows.size(); ++w) begin(windows[w], w);
  }

  std::vector<ScanWindow> run(const Executor& executor,
                              const std::function<void(std::size_t, std::size_t)>& progress) {
    const Executor alone(1);
    std::atomic<std::size_t> done = 0;
    executor.for_each(questions_.size(), [&](std::size_t q) {
      questions_[q](alone);
      const std::size_t so_far = ++done;
      if (progress) progress(so_far, questions_.size());
    });
    for (ScanWindow& window : result_)
      for (ScanLayer& layer : window.layers)
        for (std::size_t h = 1; h < layer.heads.size(); ++h)
          if (layer.heads[h].keys.verdicts.empty() && layer.heads[h].key_head == layer.heads[h - 1].key_head)
            layer.heads[h].keys = layer.heads[h - 1].keys;
    return std::move(result_);
  }

 private:
  struct WindowPlaces {
    Mask real;
    Places asked;
  };

  void begin(const LiveWindow& window, std::size_t w) {
    ScanWindow& result = result_.emplace_back();
    result.ids = window.ids;
    result.layers.reserve(window.layers.size());
    for (const LiveLayer& layer : window.layers)
      if (chosen(settings_.layers, layer.layer)) begin(layer, w, result.layers.emplace_back());
  }

  void begin(const LiveLayer& from, std::size_t w, ScanLayer& layer) {
    constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
    const auto share = [&](const Matrix<float>& x) {
      return x.rows() == 0 ? NormShare{unknown, unknown, unknown} : norm_share(x.view());
    };
    layer.layer = from.layer;
    layer.reachable_known = false;
    layer.norm_in = share(from.norm_in);
    layer.norm_out = share(from.norm_out);
    const auto add = [&](ScanSet& set, const Matrix<float>& keys, std::size_t first, std::size_t count,
                         const OffsetsAt& offsets_at = {}) {
      questions_.emplace_back([this, w, &set, &keys, first, count, offsets_at, &from](const Executor& alone) {
        set = decide_space(places_[w].asked, columns(keys.view(), first, count),
                           key_options(settings_, from.unit_roundoff), {}, offsets_at, alone);
      });
    };
    if (asks_for(settings_, KeySpace::before) && from.norm_in.rows() > 0)
      add(layer.before, from.norm_in, 0, from.norm_in.cols());
    if (asks_for(settings_, KeySpace::model) && from.norm_out.rows() > 0)
      add(layer.model, from.norm_out, 0, from.norm_out.cols());
    const std::size_t width = from.query.cols() / from.heads;
    for (std::size_t h = 0; h < from.heads; ++h)
      if (chosen(settings_.heads, h)) {
        ScanHead& head = layer.heads.emplace_back();
        head.head = h;
        head.key_head = h / (from.heads / from.key_heads);
      }
    for (ScanHead& head : layer.heads) {
      questions_.emplace_back([this, w, &head, &from](const Executor&) {
        head.queries = queries_of(from, head.head, places_[w].real);
      });
      if (!asks_for(settings_, KeySpace::head)) continue;
      if (from.offsets.rows() > 0)  // a head has offsets of its own
        add(head.keys, from.key, head.key_head * width, width,
            [&from, h = head.head](std::size_t place) { return in_dot_products(from, h, place); });
      else if (&head == layer.heads.data() || head.key_head != (&head - 1)->key_head)
        add(head.keys, from.key, head.key_head * width, width);
    }
  }

  const ScanSettings& settings_;
  std::vector<WindowPlaces> places_;
  std::vector<ScanWindow> result_;
  std::vector<std::function<void(const Executor& alone)>> questions_;
};

}  // namespace

std::vector<ScanWindow> scan_live(std::span<const LiveWindow> windows, const LiveMask& mask,
                                  const ScanSettings& settings, const Executor& executor,
                                  const std::function<void(std::size_t, std::size_t)>& progress) {
  if (windows.empty()) throw InputError("There is no text to scan.");
  return LiveScan(windows, mask, settings).run(executor, progress);
}

}  // namespace normscope

// Anisotropy beside expressiveness, which Wu, Ajorlou, Wang, Jegelka, Jadbabaie 2024 leave as a question: how alike the
// tokens are that enter attention, and which of their keys its heads can select, by how much, layer by layer.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/number_text.h"
#include "normscope/random.h"
#include "normscope/scan.h"
#include "paper/wu_curves.h"

namespace normscope {
namespace {

// Of one layer of one window; of keys, means over heads. All keys of the window are one set.
struct Look {
  double cosine = 0;  // mean over pairs of the tokens that enter attention
  double share = 0;   // of keys that are selectable
  double margin =
      0;  // mean over keys, 0 of those that are not selectable, over the root mean square of their norms
  double spread_margin = 0;  // over that of their distances from their mean, which no shift of all changes
};
using Measured = double Look::*;
struct Looked {
  std::string name;
  std::vector<std::vector<Look>> windows;  // windows × layers
};

// Root mean squares of the norms of one head's keys, and of their distances from their mean.
struct Lengths {
  double norm = 0, spread = 0;
};
Lengths lengths_of(MatrixView<const float> keys, std::size_t first, std::size_t width) {
  double square = 0, mean_square = 0;
  const auto n = static_cast<double>(keys.rows);
  for (std::size_t j = first; j < first + width; ++j) {
    double mean = 0;
    for (std::size_t i = 0; i < keys.rows; ++i) {
      const double value = static_cast<double>(keys(i, j));
      mean += value / n;
      square += value * value / n;
    }
    mean_square += mean * mean;
  }
  return {std::sqrt(square), std::sqrt(std::max(0.0, square - mean_square))};
}

Looked look_at(const std::string& name, const ModelWeights& weights,
               std::span<const std::vector<std::uint32_t>> windows, const Evidence& evidence) {
  const ModelSpec& spec = weights.spec();
  const std::size_t key_heads = spec.block.key_head_count();
  Looked looked{name, std::vector(windows.size(), std::vector<Look>(spec.layers))};
  std::vector lengths(windows.size(), std::vector(spec.layers, std::vector<Lengths>(key_heads)));
  ScanSettings settings;
  settings.spaces = {KeySpace::head};
  settings.margins = Margins::exact;
  settings.observer.point = [&](std::size_t window, std::size_t layer, TracePoint point,
                                MatrixView<const float> values) {
    if (point == TracePoint::norm_out)
      looked.windows[window][layer].cosine = measure_tokens<float>(values, Spectrum::no).mean_cosine;
    if (point != TracePoint::key) return;
    const std::size_t width = values.cols / key_heads;
    for (std::size_t head = 0; head < key_heads; ++head)
      lengths[window][layer][head] = lengths_of(values, head * width, width);
  };
  const std::vector<ScanWindow> found =
      scan(weights, windows, settings, evidence.executor, evidence.progress(name, "sets of keys"));
  for (std::size_t w = 0; w < windows.size(); ++w) {
    for (const ScanLayer& layer : found[w].layers) {
      Look& look = looked.windows[w][layer.layer];
      const auto heads = static_cast<double>(layer.heads.size());
      for (const ScanHead& head : layer.heads) {
        const Lengths& of = lengths[w][layer.layer][head.key_head];
        double margin = 0;
        for (const double each : head.keys.margins)
          margin += each / static_cast<double>(head.keys.margins.size());
        look.share += head.keys.share(Verdict::selectable) / heads;
        look.margin += of.norm > 0 ? margin / of.norm / heads : 0;
        look.spread_margin += of.spread > 0 ? margin / of.spread / heads : 0;
      }
    }
  }
  return looked;
}

// --- Before training ---

constexpr std::size_t kFewTokens = 64, kWidth = 16, kHeads = 4, kLayers = 12, kVocabulary = 1000;
constexpr std::size_t kMostWindows = 16, kMostOfModel = 4;

struct Shape {
  const char* name;
  bool skip;
  const char* norm;
  Placement placement;
  bool feed_forward;
};
constexpr Shape kShapes[] = {{"attention + norm", false, "layernorm", Placement::post, false},
                             {"+ skip, post", true, "layernorm", Placement::post, false},
                             {"+ skip, pre", true, "layernorm", Placement::pre, false},
                             {"+ skip + feed-forward, post", true, "layernorm", Placement::post, true}};

ModelSpec spec_of_shape(const Shape& shape) {
  ModelSpec spec;
  spec.family = "random";
  spec.vocabulary = kVocabulary;
  spec.layers = kLayers;
  spec.positions = kFewTokens;
  spec.causal = true;
  spec.embedding_norm = parse_norm("layernorm");
  spec.initializer_range = 1 / std::sqrt(static_cast<double>(kWidth));
  spec.block.width = kWidth;
  spec.block.heads = kHeads;
  spec.block.feed_forward = shape.feed_forward ? 4 * kWidth : 0;
  spec.block.skip = shape.skip;
  spec.block.norm = parse_norm(shape.norm);
  spec.block.placement = shape.placement;
  return spec;
}

std::vector<Looked> before_training(const Evidence& evidence) {
  std::vector<std::vector<std::uint32_t>> windows;
  for (std::size_t w = 0; w < std::min(kMostWindows, evidence.plan.samples); ++w) {
    Random random(evidence.plan.seed, 2000 + w);
    std::vector<std::uint32_t>& ids = windows.emplace_back();
    for (std::size_t i = 0; i < kFewTokens; ++i)
      ids.push_back(static_cast<std::uint32_t>(random.below(kVocabulary)));
  }
  std::vector<Looked> all;
  for (const Shape& shape : kShapes) {
    const auto model = random_model(spec_of_shape(shape), evidence.plan.seed);
    all.push_back(look_at(shape.name, *model, windows, evidence));
  }
  return all;
}
std::vector<Looked> pretrained(const Evidence& evidence) {
  std::vector<Looked> all;
  for (const PretrainedModel& model : evidence.models)
    all.push_back(look_at(model.name, *model.weights,
                          std::span(model.texts).first(std::min(kMostOfModel, model.texts.size())),
                          evidence));
  return all;
}
const Looked& looked_at(const Evidence& evidence, const PretrainedModel& model) {
  const std::vector<Looked>& all = once<pretrained>(evidence);
  return *std::find_if(all.begin(), all.end(), [&](const Looked& each) { return each.name == model.name; });
}

// --- How they go together ---

std::vector<double> by_layer(const std::vector<Look>& window, Measured measured) {
  std::vector<double> values;
  values.reserve(window.size());
  for (const Look& look : window) values.push_back(look.*measured);
  return values;
}
// Rank correlation over the layers of mean cosine and a measure, window by window; those left out in which one of the
// two is the same in all layers.
std::vector<double> correlations(const Looked& looked, Measured measured) {
  std::vector<double> all;
  for (const std::vector<Look>& window : looked.windows) {
    const double each = rank_correlation(by_layer(window, &Look::cosine), by_layer(window, measured));
    if (std::isfinite(each)) all.push_back(each);
  }
  return all;
}
Interval correlation(const Evidence& evidence, const Looked& looked, Measured measured) {
  return mean_interval(correlations(looked, measured), level_of(evidence));
}
double mean_at(const Looked& looked, std::size_t layer, Measured measured) {
  std::vector<double> values;
  for (const std::vector<Look>& window : looked.windows) values.push_back(window[layer].*measured);
  return mean_interval(values).mean;
}

// What one may mean by expressiveness.
struct Expressiveness {
  Measured measured;
  const char* name;
  int digits;  // after the point
  double unit;
};
constexpr Expressiveness kShare{&Look::share, "selectable share, %", 1, 100};
constexpr Expressiveness kMargin{&Look::margin, "margin over key norm", 3, 1};

Answer falls(const Evidence& evidence, const Looked& looked, const Expressiveness& what) {
  // The same in every layer of every window: then it does not fall.
  if (correlations(looked, what.measured).empty()) return false;
  return below(evidence, correlation(evidence, looked, what.measured), 0,
               fmt::format("{}: rank correlation of mean cosine and {}", looked.name, what.name));
}
std::string told(const Evidence& evidence, const Looked& looked, const Expressiveness& what) {
  const std::size_t last = looked.windows.front().size() - 1;
  const auto number = [&](std::size_t layer) {
    return fixed(mean_at(looked, layer, what.measured) * what.unit, what.digits);
  };
  const std::string way =
      fmt::format("mean cosine {} to {}, {} {} to {}", fixed(mean_at(looked, 0, &Look::cosine), 2),
                  fixed(mean_at(looked, last, &Look::cosine), 2), what.name, number(0), number(last));
  if (correlations(looked, what.measured).empty()) return way + ", the same in all layers";
  return fmt::format("{}, rank correlation {}", way,
                     with_interval(correlation(evidence, looked, what.measured)));
}
// The same of what a shift of all keys does not change.
std::string without_shift(const Evidence& evidence, const Looked& looked) {
  const Interval found = correlation(evidence, looked, &Look::spread_margin);
  return fmt::format("{} {}", looked.name, found.count > 0 ? with_interval(found) : "none");
}

Text why_of(const std::vector<Looked>& (*all)(const Evidence&)) {
  return written(
      "Rank correlations over layers, {} of {}. Keys are those of the heads, of whole windows. A shift of all keys changes cosines and norms, but neither verdicts nor margins; over the spread of the keys, which it does not change either, margins have the rank correlation: {}.",
      [=](const Evidence& evidence) { return counted(all(evidence).front().windows.size(), "window"); },
      [=](const Evidence& evidence) { return all(evidence).size() == 1 ? "one model" : "each model"; },
      [=](const Evidence& evidence) {
        std::string text;
        for (const Looked& looked : all(evidence)) append(text, without_shift(evidence, looked));
        return text;
      });
}
const std::vector<Looked>& all_before(const Evidence& evidence) {
  return once<before_training>(evidence);
}
const std::vector<Looked>& all_pretrained(const Evidence& evidence) {
  return once<pretrained>(evidence);
}

Claim before(const char* sentence, const Expressiveness& what) {
  const auto names = [=](const Evidence& evidence) {
    std::string text;
    for (const Looked& looked : all_before(evidence)) {
      if (falls(evidence, looked, what) == true) append(text, looked.name, "; ");
    }
    return text;
  };
  return {.where = "Wu, future work, random init",
          .sentence = sentence,
          .published = "asked: how anisotropy and expressiveness go together",
          .measured =
              [=](const Evidence& evidence) {
                std::string text;
                for (const Looked& looked : all_before(evidence))
                  append(text, fmt::format("{}: {}", looked.name, told(evidence, looked, what)), "; ");
                return text;
              },
          .why = why_of(all_before),
          .asks = {{at_least([](const Evidence& evidence) { return evidence.plan.samples; }, 2),
                    " One window has no interval."}},
          .holds =
              [=](const Evidence& evidence) {
                return all_of(all_before(evidence),
                              [&](const Looked& looked) { return falls(evidence, looked, what); });
              },
          .holds_if = {{any_in(names), written("the model is one of {}", names)}},
          .topic = "selectability",
          .confounds = {"head-space"}};
}

Claim trained(const char* sentence, const Expressiveness& what) {
  return by_model({.where = "Wu, future work, pretrained",
                   .sentence = sentence,
                   .published = "asked: how anisotropy and expressiveness go together",
                   .otherwise = kNoModel,
                   .measured = over_models([=](const Evidence& evidence, const PretrainedModel& model) {
                     return told(evidence, looked_at(evidence, model), what);
                   }),
                   .why = why_of(all_pretrained),
                   .not_at_hand = "",
                   .topic = "selectability",
                   .confounds = {"head-space"}},
                  [=](const Evidence& evidence, const PretrainedModel& model) {
                    return falls(evidence, looked_at(evidence, model), what);
                  });
}

Findings shown(const Evidence& evidence) {
  struct Panel {
    Measured measured;
    const char *title, *label;
    bool log;
  };
  constexpr Panel panels[] = {
      {&Look::cosine, "How alike tokens are", "mean cosine of two tokens", false},
      {&Look::share, "Keys that heads can select", "selectable share", false},
      {&Look::margin, "By how much, over the norm of keys", "margin / norm", true},
      {&Look::spread_margin, "By how much, over their spread", "margin / spread", true}};
  std::vector<Looked> all = all_before(evidence);
  all.insert(all.end(), all_pretrained(evidence).begin(), all_pretrained(evidence).end());
  CurveFigure figure;
  for (const Panel& panel : panels) {
    CurveFigure::Panel& to = figure.panels.emplace_back();
    to.title = panel.title;
    to.x_label = "layer";
    to.whole_x = true;
    to.y_label = panel.label;
    to.log_y = panel.log;
    for (const Looked& looked : all) {
      CurveFigure::Curve& curve = to.curves.emplace_back();
      curve.name = looked.name;
      for (std::size_t layer = 0; layer < looked.windows.front().size(); ++layer) {
        curve.x.push_back(static_cast<double>(layer + 1));
        curve.y.push_back(mean_at(looked, layer, panel.measured));
      }
    }
  }
  figure.caption = fmt::format(
      "Tokens as they enter attention, keys of its heads, means over heads and windows. At random init {} tokens, {} dimensions, {} heads, causal.",
      kFewTokens, kWidth, kHeads);
  if (!evidence.models.empty()) figure.caption += " " + caption(evidence.models);
  ReportTable table{"Rank correlation over layers with the mean cosine of two tokens",
                    {{"model", "windows", "selectable share", "margin over norm", "margin over spread"}}};
  for (const Looked& looked : all) {
    std::vector<std::string>& row = table.rows.emplace_back();
    row = {looked.name, std::to_string(looked.windows.size())};
    for (const Measured measured : {&Look::share, &Look::margin, &Look::spread_margin}) {
      const Interval found = mean_interval(correlations(looked, measured));
      row.push_back(found.count > 0 ? with_interval(found) : "–");
    }
  }
  table.note = "–: the same in all layers.";
  return {.figures = {to_figure("anisotropy", "Anisotropy beside expressiveness, by layer", "", figure)},
          .tables = {table}};
}

}  // namespace

Exhibit wu_anisotropy() {
  return {
      {before("Layers with more alike tokens have fewer selectable keys", kShare),
       before("Layers with more alike tokens select keys by less of their norm", kMargin),
       trained("In trained models layers with more alike tokens have fewer selectable keys", kShare),
       trained("In trained models layers with more alike tokens select keys by less of their norm", kMargin)},
      shown};
}

}  // namespace normscope

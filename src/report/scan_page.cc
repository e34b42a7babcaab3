#include "report/scan_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/collapse_page.h"

namespace normscope {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kMostTexts = 4;  // windows shown on a page

double median(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.empty()) return kNone;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double undecided_share(const ScanSet& set) {
  if (set.verdicts.empty()) return kNone;
  const std::size_t decided =
      set.count(Verdict::selectable) + set.count(Verdict::tied) + set.count(Verdict::unselectable);
  return 1 - static_cast<double>(decided) / static_cast<double>(set.verdicts.size());
}

double median_margin(const ScanSet& set) {
  std::vector<double> margins;
  for (std::size_t i = 0; i < set.verdicts.size(); ++i) {
    if (set.verdicts[i] == Verdict::selectable) margins.push_back(set.margins[i]);
  }
  return median(std::move(margins));
}

// Mean over windows of what is known.
class Mean {
 public:
  void add(double value) {
    if (!std::isfinite(value)) return;
    sum_ += value;
    ++count_;
  }
  double value() const { return count_ == 0 ? kNone : sum_ / static_cast<double>(count_); }

 private:
  double sum_ = 0;
  std::size_t count_ = 0;
};

template <class Function>
double mean_of(const ScanRun& run, const Function& function) {
  Mean mean;
  for (const ScanWindow& window : run.scanned) mean.add(function(window));
  return mean.value();
}

std::string percent(double share) {
  if (!std::isfinite(share)) return "";
  return share > 0 && share < 0.0005 ? "< 0.1" : fmt::format("{:.1f}", 100 * share);
}

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{:.3g}", value) : "";
}

bool asks_for(const ScanRun& run, KeySpace space) {
  return std::find(run.spaces.begin(), run.spaces.end(), space) != run.spaces.end();
}

std::string shape_sentence(const ScanRun& run) {
  return fmt::format(
      "{} ({}): {} layers, {} heads of {} dimensions, width {}; {} tokens of {} in {} window{}.", run.model,
      run.family, run.layers, run.heads, run.head_width, run.width, run.tokens, run.text, run.scanned.size(),
      run.scanned.size() == 1 ? "" : "s");
}

// From where a token is looked at.
std::string places_sentence(const ScanRun& run) {
  const std::string seen = run.sliding_window > 0
                               ? fmt::format("itself and the {} tokens before it", run.sliding_window - 1)
                           : run.prefixes ? "the tokens up to itself"
                                          : "all tokens of its window";
  return fmt::format("A query sees {}{}; unselectable is a token that is so from every place that sees it.",
                     seen, run.as_model ? "" : ", unlike those of the model");
}

bool has_largest_weights(const ScanRun& run) {
  for (const ScanLayer& layer : run.scanned.front().layers) {
    for (const ScanHead& head : layer.heads) {
      if (!head.reachable.largest_weights.empty()) return true;
    }
  }
  return false;
}

// From which places largest weights are.
std::string weight_places_words(const ScanRun& run) {
  if (run.sliding_window == 0) return "at the last place";
  return fmt::format("at the last place of each stretch of {} tokens", run.sliding_window);
}

using Head = ScanSummary::Head;

Figure map_of(const ScanRun& run, const ScanSummary& summary, std::string name, std::string title,
              std::string caption, const std::vector<std::pair<std::string, double Head::*>>& panels,
              std::string scale, bool percent_scale) {
  LayerHeadFigure figure;
  figure.layers = run.layers;
  figure.heads = run.heads;
  figure.scale = std::move(scale);
  figure.percent = percent_scale;
  figure.low = 0;
  if (percent_scale) figure.high = 1;
  for (const auto& [panel_title, member] : panels) {
    LayerHeadFigure::Panel panel{panel_title, std::vector<double>(run.layers * run.heads, kNone)};
    for (std::size_t l = 0; l < summary.layers.size(); ++l) {
      const ScanSummary::Layer& layer = summary.layers[l];
      for (std::size_t h = 0; h < layer.heads.size(); ++h)
        panel.values[layer.layer * run.heads + run.scanned.front().layers[l].heads[h].head] =
            layer.heads[h].*member;
    }
    figure.panels.push_back(std::move(panel));
  }
  Figure result{std::move(name), std::move(title), std::move(caption)};
  result.svg = layer_head_svg(figure);
  result.csv = layer_head_csv(figure);
  return result;
}

CurveFigure::Curve curve(std::string name, const ScanSummary& summary,
                         const std::function<double(const ScanSummary::Layer&)>& value) {
  CurveFigure::Curve result;
  result.name = std::move(name);
  for (const ScanSummary::Layer& layer : summary.layers) {
    result.x.push_back(static_cast<double>(layer.layer));
    result.y.push_back(value(layer));
  }
  return result;
}

CurveFigure::Panel panel(std::string title, std::string label) {
  CurveFigure::Panel result;
  result.title = std::move(title);
  result.x_label = "layer";
  result.y_label = std::move(label);
  result.y_low = 0;
  return result;
}

Figure share_figure(const ScanRun& run, const ScanSummary& summary) {
  using Layer = ScanSummary::Layer;
  CurveFigure figure;
  CurveFigure::Panel shares = panel("Unselectable tokens", "share of tokens, %");
  if (asks_for(run, KeySpace::before))
    shares.curves.push_back(curve("before the norm", summary, [](const Layer& l) { return 100 * l.before; }));
  if (asks_for(run, KeySpace::model))
    shares.curves.push_back(curve("after the norm", summary, [](const Layer& l) { return 100 * l.model; }));
  if (asks_for(run, KeySpace::head))
    shares.curves.push_back(curve("head, mean over heads", summary,
                                  [](const Layer& l) { return 100 * l.mean(&Head::unselectable); }));
  if (asks_for(run, KeySpace::reachable))
    shares.curves.push_back(curve("reachable, mean over heads", summary, [](const Layer& l) {
      return 100 * l.mean(&Head::reachable_unselectable);
    }));
  CurveFigure::Panel weights = panel("Largest attention weight", "weight");
  weights.y_high = 1;
  if (asks_for(run, KeySpace::reachable))
    weights.curves.push_back(curve("reachable, median token", summary,
                                   [](const Layer& l) { return l.mean(&Head::median_largest_weight); }));
  weights.curves.push_back(curve("of the real queries, mean", summary,
                                 [](const Layer& l) { return l.mean(&Head::largest_weight); }));
  CurveFigure::Panel along = panel("What projection takes away", "energy along 1, %");
  along.curves = {
      curve("before the norm", summary, [](const Layer& l) { return 100 * l.norm_in.along_ones; }),
      curve("after the norm", summary, [](const Layer& l) { return 100 * l.norm_out.along_ones; })};
  CurveFigure::Panel spread = panel("What scaling takes away", "sd of norms / mean");
  spread.curves = {curve("before the norm", summary, [](const Layer& l) { return l.norm_in.norm_spread; }),
                   curve("after the norm", summary, [](const Layer& l) { return l.norm_out.norm_spread; })};
  figure.panels = {shares, weights, along, spread};
  return to_figure(
      "layers", "Layer by layer",
      "Gain and bias of the norm are part of 'after': they can turn the image of the norm away from "
      "the plane orthogonal to 1.",
      figure);
}

// In which layer most are tied.
std::string tied_sentence(const ScanSummary& summary, KeySpace space) {
  double most = 0;
  std::size_t at = 0;
  for (const ScanSummary::Layer& layer : summary.layers) {
    const double share = space == KeySpace::before  ? layer.before_tied
                         : space == KeySpace::model ? layer.model_tied
                         : space == KeySpace::head  ? layer.highest(&Head::tied)
                                                    : layer.highest(&Head::reachable_tied);
    if (!(share > most)) continue;
    most = share;
    at = layer.layer;
  }
  if (most == 0) return "";
  const bool heads = space == KeySpace::head || space == KeySpace::reachable;
  return fmt::format(" Tied, never on top alone: {} % {}layer {}.", percent(most),
                     heads ? "at most in a head, in " : "at most, in ", at);
}

// How many of the verdicts rounding could have caused.
std::string robust_sentence(const ScanRun& run, KeySpace space) {
  std::size_t unselectable = 0, robust = 0;
  bool known = true;
  for (const ScanWindow& window : run.scanned) {
    for (const ScanLayer& layer : window.layers) {
      const auto add = [&](const ScanSet& set) {
        unselectable += set.count(Verdict::unselectable);
        known = known && (set.verdicts.empty() || set.robust_unselectable);
        robust += set.robust_unselectable.value_or(0);
      };
      if (space == KeySpace::before) add(layer.before);
      if (space == KeySpace::model) add(layer.model);
      for (const ScanHead& head : layer.heads) {
        if (space == KeySpace::head) add(head.keys);
      }
    }
  }
  if (!known || space == KeySpace::reachable || robust == unselectable) return "";
  return fmt::format(" Of these {} verdicts {} stand whatever float32 rounded away.", unselectable, robust);
}

// Which head can give some token least: selectable is not yet attended to.
std::string weight_sentence(const ScanRun& run, const ScanSummary& summary) {
  const Head* least = nullptr;
  std::size_t layer = 0, head = 0;
  for (std::size_t l = 0; l < summary.layers.size(); ++l) {
    for (std::size_t h = 0; h < summary.layers[l].heads.size(); ++h) {
      const Head& here = summary.layers[l].heads[h];
      if (!std::isfinite(here.least_largest_weight)) continue;
      if (least != nullptr && here.least_largest_weight >= least->least_largest_weight) continue;
      least = &here;
      layer = summary.layers[l].layer;
      head = run.scanned.front().layers[l].heads[h].head;
    }
  }
  if (least == nullptr) return "";
  return fmt::format(
      " In layer {} head {} the best query the layer can form {} gives some token {:.2g} % of the attention "
      "and the median token {:.2g} %.",
      layer, head, weight_places_words(run), 100 * least->least_largest_weight,
      100 * least->median_largest_weight);
}

// "unselectable in layer 3 head 7, …"
std::string hint(const ScanWindow& window, KeySpace space, std::size_t token) {
  std::string text;
  std::size_t named = 0;
  const auto add = [&](const ScanSet& set, const std::string& name) {
    if (set.verdicts.empty() || set.verdicts[token] != Verdict::unselectable) return;
    if (++named <= 6) text += (text.empty() ? "" : ", ") + name;
  };
  for (const ScanLayer& layer : window.layers) {
    if (space == KeySpace::before) add(layer.before, fmt::format("layer {}", layer.layer));
    if (space == KeySpace::model) add(layer.model, fmt::format("layer {}", layer.layer));
    for (const ScanHead& head : layer.heads) {
      const std::string name = fmt::format("layer {} head {}", layer.layer, head.head);
      if (space == KeySpace::head) add(head.keys, name);
      if (space == KeySpace::reachable) add(head.reachable, name);
    }
  }
  if (named == 0) return "unselectable in none";
  if (named > 6) text += fmt::format(", and {} more", named - 6);
  return "unselectable in " + text;
}

}  // namespace

double ScanSummary::Layer::mean(double Head::*member) const {
  Mean mean;
  for (const Head& head : heads) mean.add(head.*member);
  return mean.value();
}

double ScanSummary::Layer::highest(double Head::*member) const {
  double highest = kNone;
  for (const Head& head : heads) {
    if (std::isfinite(head.*member) && !(head.*member <= highest)) highest = head.*member;
  }
  return highest;
}

ScanSummary summarize(const ScanRun& run) {
  ScanSummary summary;
  for (std::size_t l = 0; l < run.scanned.front().layers.size(); ++l) {
    const auto of = [&](const auto& function) {
      return mean_of(run, [&](const ScanWindow& window) { return function(window.layers[l]); });
    };
    ScanSummary::Layer layer;
    layer.layer = run.scanned.front().layers[l].layer;
    layer.before = of([](const ScanLayer& x) { return x.before.share(Verdict::unselectable); });
    layer.before_tied = of([](const ScanLayer& x) { return x.before.share(Verdict::tied); });
    layer.model = of([](const ScanLayer& x) { return x.model.share(Verdict::unselectable); });
    layer.model_tied = of([](const ScanLayer& x) { return x.model.share(Verdict::tied); });
    layer.median_margin_before = of([](const ScanLayer& x) { return median_margin(x.before); });
    layer.median_margin_model = of([](const ScanLayer& x) { return median_margin(x.model); });
    for (double NormShare::*member :
         {&NormShare::along_ones, &NormShare::norm_mean, &NormShare::norm_spread}) {
      layer.norm_in.*member = of([&](const ScanLayer& x) { return x.norm_in.*member; });
      layer.norm_out.*member = of([&](const ScanLayer& x) { return x.norm_out.*member; });
    }
    for (std::size_t h = 0; h < run.scanned.front().layers[l].heads.size(); ++h) {
      const auto of_head = [&](const auto& function) {
        return of([&](const ScanLayer& x) { return function(x.heads[h]); });
      };
      Head head;
      head.unselectable = of_head([](const ScanHead& x) { return x.keys.share(Verdict::unselectable); });
      head.tied = of_head([](const ScanHead& x) { return x.keys.share(Verdict::tied); });
      head.undecided = of_head([](const ScanHead& x) { return undecided_share(x.keys); });
      head.reachable_unselectable =
          of_head([](const ScanHead& x) { return x.reachable.share(Verdict::unselectable); });
      head.reachable_tied = of_head([](const ScanHead& x) { return x.reachable.share(Verdict::tied); });
      head.reachable_undecided = of_head([](const ScanHead& x) { return undecided_share(x.reachable); });
      head.median_margin = of_head([](const ScanHead& x) { return median_margin(x.keys); });
      head.median_largest_weight =
          of_head([](const ScanHead& x) { return median(x.reachable.largest_weights); });
      head.least_largest_weight = of_head([](const ScanHead& x) {
        const auto& weights = x.reachable.largest_weights;
        return weights.empty() ? kNone : *std::min_element(weights.begin(), weights.end());
      });
      head.entropy = of_head([](const ScanHead& x) { return x.queries.entropy; });
      head.largest_weight = of_head([](const ScanHead& x) { return x.queries.largest_weight; });
      head.never_won = of_head([](const ScanHead& x) {
        const auto never = std::count(x.queries.wins.begin(), x.queries.wins.end(), std::size_t{0});
        return static_cast<double>(never) / static_cast<double>(x.queries.wins.size());
      });
      layer.heads.push_back(head);
    }
    summary.layers.push_back(std::move(layer));
  }
  return summary;
}

const char* set_name(KeySpace space) {
  return space == KeySpace::before || space == KeySpace::model ? "layer" : "layer and head";
}

UnselectableTokens unselectable_tokens(const ScanRun& run, KeySpace space) {
  UnselectableTokens result;
  for (const ScanWindow& window : run.scanned) {
    result.sets = window.sets(space);
    if (result.sets == 0) continue;
    for (std::size_t i = 0; i < window.ids.size(); ++i) {
      const std::size_t count = window.unselectable(space, i);
      ++result.tokens;
      result.in_some += count > 0;
      result.in_all += count == result.sets;
    }
  }
  return result;
}

std::string scan_verdict(const ScanRun& run, const ScanSummary& summary) {
  std::string text;
  for (const KeySpace space : run.spaces) {
    const UnselectableTokens found = unselectable_tokens(run, space);
    if (found.tokens == 0) continue;
    const char* where = space == KeySpace::before  ? "Before the norm"
                        : space == KeySpace::model ? "After the norm"
                        : space == KeySpace::head  ? "By any query of a head"
                                                   : "By the queries a layer can form";
    text += text.empty() ? "" : " ";
    if (found.in_some == 0) {
      text += fmt::format("{}, no token is unselectable in any {}.", where, set_name(space));
    } else {
      text += fmt::format("{}, {} of {} tokens ({} %) are unselectable in at least one {}, {} in all {}.",
                          where, found.in_some, found.tokens,
                          percent(static_cast<double>(found.in_some) / static_cast<double>(found.tokens)),
                          set_name(space), found.in_all, found.sets);
    }
    text += tied_sentence(summary, space) + robust_sentence(run, space);
  }
  return text + weight_sentence(run, summary);
}

std::string scan_readings(const ScanRun& run) {
  std::string text = places_sentence(run);
  if (has_largest_weights(run)) text += fmt::format(" Max weight: by a query {}.", weight_places_words(run));
  return text + "\n";
}

ReportTable scan_table(const ScanRun& run, const ScanSummary& summary) {
  ReportTable table;
  table.title = "Unselectable tokens, per cent; what the norm takes away; what the queries did";
  const auto any = [&](const auto& share) {
    return std::any_of(summary.layers.begin(), summary.layers.end(),
                       [&](const ScanSummary::Layer& layer) { return share(layer) > 0; });
  };
  const bool reachable = asks_for(run, KeySpace::reachable);
  // Ties have a column only where there are any.
  const bool before_tied = any([](const auto&layer) { return layer.before_tied; }),
             model_tied = any([](const auto&layer) { return layer.model_tied; }),
             reachable_tied = any([](const auto&layer) { return layer.mean(&Head::reachable_tied); }),
             weights = any([](const auto&layer) { return layer.mean(&Head::median_largest_weight); }),
             head_tied = any([](const auto&layer) { return layer.mean(&Head::tied); });
  std::vector<std::string> header = {"layer"};
  const auto add = [&](bool wanted, std::initializer_list<const char*> names) {
    if (wanted) header.insert(header.end(), names.begin(), names.end());
  };
  add(asks_for(run, KeySpace::before), {"before"});
  add(before_tied, {"before tied"});
  add(asks_for(run, KeySpace::model), {"after"});
  add(model_tied, {"after tied"});
  add(asks_for(run, KeySpace::head), {"head", "worst head"});
  add(head_tied, {"head tied"});
  add(reachable, {"reachable", "worst head"});
  add(reachable_tied, {"reachable tied"});
  add(weights, {"max weight"});
  add(true, {"along 1 in", "out", "spread in", "out", "entropy", "never won"});
  table.rows.push_back(header);
  for (const ScanSummary::Layer& layer : summary.layers) {
    std::vector<std::string> row = {std::to_string(layer.layer)};
    if (asks_for(run, KeySpace::before)) row.push_back(percent(layer.before));
    if (before_tied) row.push_back(percent(layer.before_tied));
    if (asks_for(run, KeySpace::model)) row.push_back(percent(layer.model));
    if (model_tied) row.push_back(percent(layer.model_tied));
    if (asks_for(run, KeySpace::head))
      row.insert(row.end(),
                 {percent(layer.mean(&Head::unselectable)), percent(layer.highest(&Head::unselectable))});
    if (head_tied) row.push_back(percent(layer.mean(&Head::tied)));
    if (reachable)
      row.insert(row.end(), {percent(layer.mean(&Head::reachable_unselectable)),
                             percent(layer.highest(&Head::reachable_unselectable))});
    if (reachable_tied) row.push_back(percent(layer.mean(&Head::reachable_tied)));
    if (weights) row.push_back(number(layer.mean(&Head::median_largest_weight)));
    row.insert(row.end(), {percent(layer.norm_in.along_ones), percent(layer.norm_out.along_ones),
                           number(layer.norm_in.norm_spread), number(layer.norm_out.norm_spread),
                           number(layer.mean(&Head::entropy)), percent(layer.mean(&Head::never_won))});
    table.rows.push_back(std::move(row));
  }
  return table;
}

TextFigure scan_text(const ScanRun& run, std::size_t window, KeySpace space) {
  TextFigure figure;
  figure.value_name = fmt::format("share of {}s that cannot select it", set_name(space));
  const ScanWindow& from = run.scanned[window];
  const std::size_t sets = from.sets(space);
  for (std::size_t i = 0; i < from.ids.size(); ++i) {
    TextFigure::Token token{run.spelled[window][i]};
    const std::size_t count = sets == 0 ? 0 : from.unselectable(space, i);
    if (count > 0) {
      token.value = static_cast<double>(count) / static_cast<double>(sets);
      token.kind = count == sets ? "unselectable in all" : "unselectable in some";
    }
    token.hint = hint(from, space, i);
    figure.tokens.push_back(std::move(token));
  }
  return figure;
}

Page scan_page(const ScanRun& run, const ScanSummary& summary, const Provenance& provenance,
               std::string data) {
  Page page;
  page.title = fmt::format("Which tokens can {} select?", run.model);
  page.verdict = scan_verdict(run, summary);
  page.paragraphs = {
      shape_sentence(run),
      "A token is unselectable if every query that distinguishes the keys gives another key a higher score. "
      "Before and after: the keys are what enters and leaves the norm in front of attention. Head: the keys "
      "of one "
      "head, for any query. Reachable: the same keys, for the queries the layer can form from normalised "
      "tokens.",
      places_sentence(run)};
  page.paragraphs.insert(page.paragraphs.end(), run.notes.begin(), run.notes.end());
  page.figures.push_back(share_figure(run, summary));
  std::vector<std::pair<std::string, double Head::*>> shares;
  if (asks_for(run, KeySpace::head)) shares.emplace_back("any query", &Head::unselectable);
  if (asks_for(run, KeySpace::reachable))
    shares.emplace_back("reachable queries", &Head::reachable_unselectable);
  if (!shares.empty()) {
    page.figures.push_back(map_of(run, summary, "unselectable", "Unselectable tokens, by layer and head", "",
                                  shares, "share of tokens unselectable", true));
  }
  std::vector<std::pair<std::string, double Head::*>> weights;
  if (asks_for(run, KeySpace::reachable))
    weights = {{"reachable, median token", &Head::median_largest_weight},
               {"reachable, least token", &Head::least_largest_weight}};
  weights.emplace_back("real queries, mean", &Head::largest_weight);
  page.figures.push_back(
      map_of(run, summary, "largest-weight", "Largest attention weight, by layer and head",
             fmt::format("The largest weight that some query the layer can form {} gives a token, and what "
                         "the real queries gave their favourite.",
                         weight_places_words(run)),
             weights, "attention weight", true));
  page.figures.push_back(map_of(run, summary, "queries", "What the real queries did",
                                "Tokens that were the favourite of no query of the head.",
                                {{"never won", &Head::never_won}}, "share of tokens", true));
  page.figures.push_back(map_of(run, summary, "entropy", "Entropy of the attention weights", "",
                                {{"entropy", &Head::entropy}}, "nats, mean over queries", false));
  for (const KeySpace space : run.spaces) {
    if (unselectable_tokens(run, space).in_some == 0) continue;
    for (std::size_t w = 0; w < std::min(run.scanned.size(), kMostTexts); ++w) {
      const TextFigure text = scan_text(run, w, space);
      Figure figure{fmt::format("text-{}-{}", name_of(space), w),
                    fmt::format("Unselectable tokens, {}{}",
                                space == KeySpace::before  ? "before the norm"
                                : space == KeySpace::model ? "after the norm"
                                : space == KeySpace::head  ? "any query of a head"
                                                           : "reachable queries",
                                run.scanned.size() > 1 ? fmt::format(", window {}", w + 1) : ""),
                    ""};
      figure.html = text_html(text);
      figure.csv = text_csv(text);
      page.figures.push_back(std::move(figure));
    }
  }
  const std::string settings = settings_text(provenance, shape_sentence(run));
  for (Figure& figure : page.figures) figure.settings = settings;
  page.tables.push_back(scan_table(run, summary));
  page.footer = settings_text(provenance);
  page.data = std::move(data);
  return page;
}

}  // namespace normscope

#include "report/scan_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "normscope/error.h"
#include "report/curves.h"

namespace normscope {
namespace {

using Head = ScanSummary::Head;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kMostTexts = 4;        // windows shown on a page
constexpr std::size_t kMostCells = 1 << 14;  // layers × heads of a map

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{:.3g}", value) : "";
}

bool asks_for(const ScanResult& result, KeySpace space) {
  const auto& spaces = result.settings.spaces;
  return std::find(spaces.begin(), spaces.end(), space) != spaces.end();
}

std::string shape_sentence(const ScanAbout& about) {
  return fmt::format(
      "{} ({}): {} layers, {} heads of {} dimensions, width {}; {} tokens of {} in {} window{}.", about.model,
      about.family, about.layers, about.heads, about.head_width, about.width, about.tokens, about.text,
      about.windows, about.windows == 1 ? "" : "s");
}

// From where a token is looked at.
std::string places_sentence(const ScanResult& result, bool as_model) {
  const std::size_t window = sliding_window(result);
  const std::string seen = window > 0 ? fmt::format("itself and the {} tokens before it", window - 1)
                           : result.settings.mask == "causal" ? "the tokens up to itself"
                                                              : "all tokens of its window";
  return fmt::format("A query sees {}{}; unselectable is a token that is so from every place that sees it.",
                     seen, as_model ? "" : ", unlike those of the model");
}

bool has_largest_weights(const ScanResult& result) {
  for (const ScanLayerResult& layer : result.windows->front().layers) {
    for (const ScanHeadResult& head : layer.heads) {
      if (head.reachable && !head.reachable->largest_weights.empty()) return true;
    }
  }
  return false;
}

// Layers and heads of the maps: all of the model, whichever were asked for.
struct Shape {
  std::size_t layers = 0, heads = 0;
};

std::vector<RunView::Map> maps_of(const ScanResult& result, const ScanSummary& summary, const Shape& shape) {
  std::vector<RunView::Map> maps;
  using Panels = std::vector<std::pair<std::string, double Head::*>>;
  const auto add = [&](std::string name, std::string title, std::string caption, const Panels& panels,
                       std::string scale, bool percent) {
    if (panels.empty()) return;
    LayerHeadFigure figure;
    figure.layers = shape.layers;
    figure.heads = shape.heads;
    figure.scale = std::move(scale);
    figure.percent = percent;
    figure.low = 0;
    if (percent) figure.high = 1;
    for (const auto& [panel_title, member] : panels) {
      auto& panel = figure.panels.emplace_back();
      panel.title = panel_title;
      panel.values.assign(shape.layers * shape.heads, kNone);
      for (const ScanSummary::Layer& layer : summary.layers)
        for (const Head& head : layer.heads)
          panel.values[layer.layer * shape.heads + head.head] = head.*member;
    }
    maps.push_back({std::move(name), std::move(title), std::move(caption), std::move(figure)});
  };
  const bool reachable = asks_for(result, KeySpace::reachable);
  Panels shares, weights;
  if (asks_for(result, KeySpace::head)) shares.emplace_back("any query", &Head::unselectable);
  if (reachable) shares.emplace_back("reachable queries", &Head::reachable_unselectable);
  add("unselectable", "Unselectable tokens, by layer and head", "", shares, "share of tokens unselectable",
      true);
  if (reachable)
    weights = {{"reachable, median token", &Head::median_largest_weight},
               {"reachable, least token", &Head::least_largest_weight}};
  weights.emplace_back("real queries, mean", &Head::largest_weight);
  add("largest-weight", "Largest attention weight, by layer and head",
      fmt::format("The largest weight that some query the layer can form {} gives a token, and what "
                  "the real queries gave their favourite.",
                  weight_places_words(result)),
      weights, "attention weight", true);
  add("queries", "What the real queries did", "Tokens that were the favourite of no query of the head.",
      {{"never won", &Head::never_won}}, "share of tokens", true);
  add("entropy", "Entropy of the attention weights", "", {{"entropy", &Head::entropy}},
      "nats, mean over queries", false);
  return maps;
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

Figure share_figure(const ScanResult& result, const ScanSummary& summary) {
  using Layer = ScanSummary::Layer;
  CurveFigure figure;
  CurveFigure::Panel shares = panel("Unselectable tokens", "share of tokens, %");
  if (asks_for(result, KeySpace::before))
    shares.curves.push_back(curve("before the norm", summary, [](const Layer& l) { return 100 * l.before; }));
  if (asks_for(result, KeySpace::model))
    shares.curves.push_back(curve("after the norm", summary, [](const Layer& l) { return 100 * l.model; }));
  if (asks_for(result, KeySpace::head))
    shares.curves.push_back(curve("head, mean over heads", summary,
                                  [](const Layer& l) { return 100 * l.mean(&Head::unselectable); }));
  if (asks_for(result, KeySpace::reachable))
    shares.curves.push_back(curve("reachable, mean over heads", summary, [](const Layer& l) {
      return 100 * l.mean(&Head::reachable_unselectable);
    }));
  CurveFigure::Panel weights = panel("Largest attention weight", "weight");
  weights.y_high = 1;
  if (asks_for(result, KeySpace::reachable))
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

// "unselectable in layer 3 head 7, …"
std::string hint(const std::vector<ScanSetPlace>& sets, KeySpace space, std::size_t token) {
  constexpr std::size_t most = 6;
  const bool heads = space == KeySpace::head || space == KeySpace::reachable;
  std::string text;
  std::size_t named = 0;
  for (const ScanSetPlace& place : sets) {
    if (place.set->verdicts[token] != 'u' || ++named > most) continue;
    text += fmt::format("{}layer {}{}", text.empty() ? "" : ", ", place.layer,
                        heads ? fmt::format(" head {}", place.head) : "");
  }
  if (named == 0) return "unselectable in none";
  if (named > most) text += fmt::format(", and {} more", named - most);
  return "unselectable in " + text;
}

}  // namespace

std::string scan_readings(const ScanResult& result, const ScanAbout& about) {
  std::string text = places_sentence(result, about.as_model);
  if (has_largest_weights(result))
    text += fmt::format(" Max weight: by a query {}.", weight_places_words(result));
  return text + "\n";
}

ReportTable scan_table(const ScanResult& result, const ScanSummary& summary) {
  ReportTable table;
  table.title = "Unselectable tokens, per cent; what the norm takes away; what the queries did";
  const auto any = [&](const auto& share) {
    return std::any_of(summary.layers.begin(), summary.layers.end(),
                       [&](const ScanSummary::Layer& layer) { return share(layer) > 0; });
  };
  const bool reachable = asks_for(result, KeySpace::reachable);
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
  add(asks_for(result, KeySpace::before), {"before"});
  add(before_tied, {"before tied"});
  add(asks_for(result, KeySpace::model), {"after"});
  add(model_tied, {"after tied"});
  add(asks_for(result, KeySpace::head), {"head", "worst head"});
  add(head_tied, {"head tied"});
  add(reachable, {"reachable", "worst head"});
  add(reachable_tied, {"reachable tied"});
  add(weights, {"max weight"});
  add(true, {"along 1 in", "out", "spread in", "out", "entropy", "never won"});
  table.rows.push_back(header);
  for (const ScanSummary::Layer& layer : summary.layers) {
    std::vector<std::string> row = {std::to_string(layer.layer)};
    if (asks_for(result, KeySpace::before)) row.push_back(scan_percent(layer.before));
    if (before_tied) row.push_back(scan_percent(layer.before_tied));
    if (asks_for(result, KeySpace::model)) row.push_back(scan_percent(layer.model));
    if (model_tied) row.push_back(scan_percent(layer.model_tied));
    if (asks_for(result, KeySpace::head))
      row.insert(row.end(), {scan_percent(layer.mean(&Head::unselectable)),
                             scan_percent(layer.highest(&Head::unselectable))});
    if (head_tied) row.push_back(scan_percent(layer.mean(&Head::tied)));
    if (reachable)
      row.insert(row.end(), {scan_percent(layer.mean(&Head::reachable_unselectable)),
                             scan_percent(layer.highest(&Head::reachable_unselectable))});
    if (reachable_tied) row.push_back(scan_percent(layer.mean(&Head::reachable_tied)));
    if (weights) row.push_back(number(layer.mean(&Head::median_largest_weight)));
    row.insert(row.end(), {scan_percent(layer.norm_in.along_ones), scan_percent(layer.norm_out.along_ones),
                           number(layer.norm_in.norm_spread), number(layer.norm_out.norm_spread),
                           number(layer.mean(&Head::entropy)), scan_percent(layer.mean(&Head::never_won))});
    table.rows.push_back(std::move(row));
  }
  return table;
}

bool any_unselectable(const ScanResult& result, KeySpace space) {
  const auto found = std::find_if(result.spaces.begin(), result.spaces.end(),
                                  [&](const auto& each) { return each.first == name_of(space); });
  return found != result.spaces.end() && found->second.unselectable_in_some > 0;
}

TextFigure scan_text(const ScanResult& result, std::size_t window, KeySpace space) {
  TextFigure figure;
  figure.value_name = fmt::format("share of {}s that cannot select it", set_name(space));
  const ScanWindowResult& from = (*result.windows)[window];
  const auto sets = sets_of(from, space);
  for (std::size_t i = 0; i < from.ids.size(); ++i) {
    TextFigure::Token token{from.tokens[i]};
    const auto count = static_cast<std::size_t>(std::count_if(
        sets.begin(), sets.end(), [&](const ScanSetPlace& each) { return each.set->verdicts[i] == 'u'; }));
    if (count > 0) {
      token.value = static_cast<double>(count) / static_cast<double>(sets.size());
      token.kind = count == sets.size() ? "unselectable in all" : "unselectable in some";
    }
    token.hint = hint(sets, space, i);
    figure.tokens.push_back(std::move(token));
  }
  return figure;
}

Page scan_page(const ScanResult& result, const ScanSummary& summary, const ScanAbout& about,
               std::string data) {
  Page page;
  page.title = fmt::format("Which tokens can {} select?", about.model);
  page.verdict = result.verdict;
  page.paragraphs = {
      shape_sentence(about),
      "A token is unselectable if every query that distinguishes the keys gives another key a higher score. "
      "Before and after: the keys are what enters and leaves the norm in front of attention. Head: the keys "
      "of one head, for any query. Reachable: the same keys, for the queries the layer can form from "
      "normalised tokens.",
      places_sentence(result, about.as_model)};
  page.paragraphs.insert(page.paragraphs.end(), about.notes.begin(), about.notes.end());
  page.figures.push_back(share_figure(result, summary));
  for (const RunView::Map& map : maps_of(result, summary, {about.layers, about.heads}))
    page.figures.push_back(to_figure(map.name, map.title, map.caption, map.figure));
  const std::size_t windows = result.windows->size();
  for (const KeySpace space : result.settings.spaces) {
    if (!any_unselectable(result, space)) continue;
    for (std::size_t w = 0; w < std::min(windows, kMostTexts); ++w) {
      const TextFigure text = scan_text(result, w, space);
      Figure figure{fmt::format("text-{}-{}", name_of(space), w),
                    fmt::format("Unselectable tokens, {}{}",
                                space == KeySpace::before  ? "before the norm"
                                : space == KeySpace::model ? "after the norm"
                                : space == KeySpace::head  ? "any query of a head"
                                                           : "reachable queries",
                                windows > 1 ? fmt::format(", window {}", w + 1) : ""),
                    ""};
      figure.html = text_html(text);
      figure.csv = text_csv(text);
      page.figures.push_back(std::move(figure));
    }
  }
  const std::string settings = settings_text(result.made, shape_sentence(about));
  for (Figure& figure : page.figures) figure.settings = settings;
  page.tables.push_back(scan_table(result, summary));
  page.footer = settings_text(result.made);
  page.data = std::move(data);
  return page;
}

RunView scan_view(const ScanResult& result, const Provenance& made) {
  if (!result.windows) throw InputError("there is no window");
  const ScanSummary summary = summarize(*result.windows);
  std::size_t last_layer = 0, last_head = 0;
  for (const ScanSummary::Layer& layer : summary.layers) {
    last_layer = std::max(last_layer, layer.layer);
    for (const Head& head : layer.heads) last_head = std::max(last_head, head.head);
  }
  if (last_layer >= kMostCells || last_head >= kMostCells || (last_layer + 1) * (last_head + 1) > kMostCells)
    throw InputError("a model does not have such layers and heads");
  const Shape shape{last_layer + 1, last_head + 1};
  RunView view;
  PageSection& section = view.section;
  const TextSettings& text = result.settings.text;
  const std::string about =
      fmt::format("{} ({}) on {}: {} window{} of up to {} tokens", text.model, result.family, text.text,
                  text.windows, text.windows == 1 ? "" : "s", text.window);
  section.verdict = result.verdict;
  section.paragraphs = {about + ".", places_sentence(result, true)};
  view.maps = maps_of(result, summary, shape);
  section.figures.push_back(share_figure(result, summary));
  for (const RunView::Map& map : view.maps)
    section.figures.push_back(to_figure(map.name, map.title, map.caption, map.figure));
  for (Figure& figure : section.figures) figure.settings = settings_text(made, about);
  section.tables = {scan_table(result, summary)};
  view.beside = {"Tokens that cannot be selected, space by space",
                 {{"model", "text", "space", "tokens", "in some set", "in all sets", "sets"}}};
  for (const auto& each : result.spaces) {
    const std::string& space = each.first;
    const auto& found = each.second;
    const auto counted = [&](std::size_t tokens) {
      const double share = static_cast<double>(tokens) / static_cast<double>(found.tokens);
      return found.tokens == 0 ? "–" : fmt::format("{} ({} %)", tokens, scan_percent(share));
    };
    if (view.beside.rows.size() <= RunView::most_rows)
      view.beside.rows.push_back({text.model, text.text, space, std::to_string(found.tokens),
                                  counted(found.unselectable_in_some), counted(found.unselectable_in_all),
                                  std::to_string(found.sets)});
  }
  return view;
}

}  // namespace normscope

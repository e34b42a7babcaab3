#include "report/scan_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "core/number_text.h"
#include "normscope/error.h"
#include "report/curves.h"
#include "result/columns.h"

namespace normscope {
namespace {

using Head = ScanSummary::Head;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kMostTexts = 4;        // windows shown on a page
constexpr std::size_t kMostCells = 1 << 14;  // layers × heads of a map

std::string number(double value) {
  return significant(value, 3, "");
}

bool asks_for(const ScanResult& result, KeySpace space) {
  const auto& spaces = result.settings.spaces;
  return std::find(spaces.begin(), spaces.end(), space) != spaces.end();
}

std::string shape_sentence(const ScanAbout& about) {
  return fmt::format("{} ({}): {}, {} of {}, width {}; {} of {} in {}.", about.model, about.family,
                     counted(about.layers, "layer"), counted(about.heads, "head"),
                     counted(about.head_width, "dimension"), about.width, counted(about.tokens, "token"),
                     about.text, counted(about.windows, "window"));
}

// From where a token is looked at.
std::string places_sentence(const ScanResult& result, bool as_model) {
  const std::size_t window = sliding_window(result);
  const std::string seen = window > 0
                               ? fmt::format("itself and the {} before it", counted(window - 1, "token"))
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

// Which columns the table of layers has, and which curves and maps are drawn: ties, reachable queries and their weights only where there are any.
struct ScanColumns {
  bool before, after, head, reach, weight, before_tied, after_tied, head_tied, reach_tied;

  ScanColumns(const ScanResult& result, const ScanSummary& summary)
      : before(asks_for(result, KeySpace::before)),
        after(asks_for(result, KeySpace::model)),
        head(asks_for(result, KeySpace::head)),
        reach(asks_for(result, KeySpace::reachable) && any(summary, &Head::reachable_unselectable, -1)),
        weight(reach && any(summary, &Head::median_largest_weight, 0)),
        before_tied(before && any(summary, &ScanSummary::Layer::before_tied, 0)),
        after_tied(after && any(summary, &ScanSummary::Layer::model_tied, 0)),
        head_tied(head && any(summary, &Head::tied, 0)),
        reach_tied(reach && any(summary, &Head::reachable_tied, 0)) {}

 private:
  static double of(const ScanSummary::Layer& layer, double Head::*member) { return layer.mean(member); }
  static double of(const ScanSummary::Layer& layer, double ScanSummary::Layer::*member) {
    return layer.*member;
  }
  template <class Member>
  static bool any(const ScanSummary& summary, Member member, double above) {
    return std::any_of(summary.layers.begin(), summary.layers.end(),
                       [&](const ScanSummary::Layer& layer) { return of(layer, member) > above; });
  }
};

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
  const ScanColumns shown(result, summary);
  Panels shares, weights;
  if (shown.head) shares.emplace_back("any query", &Head::unselectable);
  if (shown.reach) shares.emplace_back("reachable queries", &Head::reachable_unselectable);
  add("unselectable", "Unselectable tokens, by layer and head", "", shares, "share of tokens unselectable",
      true);
  if (shown.weight)
    weights = {{"reachable, median token", &Head::median_largest_weight},
               {"reachable, least token", &Head::least_largest_weight}};
  weights.emplace_back("real queries, mean", &Head::largest_weight);
  add("largest-weight", "Largest attention weight, by layer and head",
      fmt::format("The largest weight that some query the layer can form {} gives a token, and what "
                  "the real queries gave their favourite.",
                  weight_places_words(result)),
      weights, "attention weight", true);
  add("queries", "What the real queries did",
      "Tokens that were the favourite of none of the text's queries, in that head.",
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
  result.whole_x = true;
  result.y_label = std::move(label);
  result.y_low = 0;
  return result;
}

Figure share_figure(const ScanResult& result, const ScanSummary& summary) {
  using Layer = ScanSummary::Layer;
  const ScanColumns shown(result, summary);
  CurveFigure figure;
  CurveFigure::Panel shares = panel("Unselectable tokens", "share of tokens, %");
  if (shown.before)
    shares.curves.push_back(curve("before the norm", summary, [](const Layer& l) { return 100 * l.before; }));
  if (shown.after)
    shares.curves.push_back(curve("after the norm", summary, [](const Layer& l) { return 100 * l.model; }));
  if (shown.head)
    shares.curves.push_back(curve("head, mean over heads", summary,
                                  [](const Layer& l) { return 100 * l.mean(&Head::unselectable); }));
  if (shown.reach)
    shares.curves.push_back(curve("reachable, mean over heads", summary, [](const Layer& l) {
      return 100 * l.mean(&Head::reachable_unselectable);
    }));
  CurveFigure::Panel weights = panel("Largest attention weight", "weight");
  weights.y_high = 1;
  if (shown.weight)
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

// " in layer 3 head 7, …": where a token has a verdict; nothing if nowhere.
std::string places_with(const std::vector<ScanSetPlace>& sets, KeySpace space, std::size_t token,
                        char verdict) {
  constexpr std::size_t most = 6;
  const bool heads = space == KeySpace::head || space == KeySpace::reachable;
  std::string text;
  std::size_t named = 0;
  for (const ScanSetPlace& place : sets) {
    if (place.set->verdicts[token] != verdict || ++named > most) continue;
    text += fmt::format("{}layer {}{}", text.empty() ? " in " : ", ", place.layer,
                        heads ? fmt::format(" head {}", place.head) : "");
  }
  return named > most ? text + fmt::format(", and {} more", named - most) : text;
}

// "unselectable in layer 3 head 7; tied in layer 0 head 1"
std::string hint(const std::vector<ScanSetPlace>& sets, KeySpace space, std::size_t token) {
  std::string text;
  for (const auto& [verdict, name] :
       {std::pair('u', "unselectable"), std::pair('t', "tied"), std::pair('?', "undecided")}) {
    const std::string places = places_with(sets, space, token, verdict);
    if (!places.empty()) text += fmt::format("{}{}{}", text.empty() ? "" : "; ", name, places);
  }
  return text.empty() ? fmt::format("selectable in all {} looked at", sets.size()) : text;
}

// No two columns have one name; the sentences are the legend below the table.
struct ScanRow {
  const ScanSummary::Layer& layer;
  const ScanColumns& shown;

  static void describe(auto& visit, auto& self) {
    const ScanSummary::Layer& layer = self.layer;
    const ScanColumns& shown = self.shown;
    const auto mean = [&](double Head::*member) { return share(layer.mean(member)); };
    const auto worst = [&](double Head::*member) { return share(layer.highest(member)); };
    const char *around = shown.before && shown.after ? "before, after: unselectable before and after the norm"
                         : shown.before              ? "before: unselectable before the norm"
                                                     : "after: unselectable after the norm",
               *tied = "tied: on top, never alone", *in_worst = "worst: in the worst head",
               *along = "along 1: energy along the vector of ones, in and out of the norm",
               *spread = "spread: sd of the norms over their mean, a ratio, in and out";
    visit("layer", layer.layer, "");
    visit.when(shown.before, "before", share(layer.before), around);
    visit.when(shown.before_tied, "before tied", share(layer.before_tied), tied);
    visit.when(shown.after, "after", share(layer.model), around);
    visit.when(shown.after_tied, "after tied", share(layer.model_tied), tied);
    visit.when(shown.head, "head", mean(&Head::unselectable),
               "head: unselectable by any query, mean over heads");
    visit.when(shown.head, "head worst", worst(&Head::unselectable), in_worst);
    visit.when(shown.head_tied, "head tied", mean(&Head::tied), tied);
    visit.when(shown.reach, "reach", mean(&Head::reachable_unselectable),
               "reach: by the queries the layer can form");
    visit.when(shown.reach, "reach worst", worst(&Head::reachable_unselectable), in_worst);
    visit.when(shown.reach_tied, "reach tied", mean(&Head::reachable_tied), tied);
    visit.when(shown.weight, "weight", mean(&Head::median_largest_weight),
               "weight: the most such a query can give the median token");
    visit("along 1 in", share(layer.norm_in.along_ones), along);
    visit("along 1 out", share(layer.norm_out.along_ones), along);
    visit("spread in", number(layer.norm_in.norm_spread), spread);
    visit("spread out", number(layer.norm_out.norm_spread), spread);
    visit("entropy", number(layer.mean(&Head::entropy)), "entropy: of the attention weights, in nats");
    visit("never won", mean(&Head::never_won), "never won: favourite of no query of the text");
  }
  static std::string share(double value) {
    const std::string text = scan_percent(value);
    return text.empty() ? std::string("–") : text;
  }
};

// A row of the table over runs.
struct SpaceRow {
  const TextSettings& text;
  std::string space;
  const ScanSpaceResult& found;

  static void describe(auto& visit, auto& self) {
    const ScanSpaceResult& found = self.found;
    const auto share_of = [&](std::size_t tokens) {
      const double share = static_cast<double>(tokens) / static_cast<double>(found.tokens);
      return found.tokens == 0 ? "–" : fmt::format("{} ({} %)", tokens, scan_percent(share));
    };
    visit("model", self.text.model, "as it was named");
    visit("text", self.text.text, "as it was named");
    visit("space", self.space, "whose keys they are");
    visit("tokens", found.tokens, "of all windows");
    visit("in some set", share_of(found.unselectable_in_some), "unselectable in a layer or head");
    visit("in all sets", share_of(found.unselectable_in_all), "unselectable in every one");
    visit("tied in some", share_of(found.tied_in_some), "on top, but never alone");
    visit("sets", found.sets, "layers or heads");
  }
};

// In which layers reachable queries were asked for and there is no answer.
std::string reachable_sentence(const ScanResult& result) {
  if (!asks_for(result, KeySpace::reachable)) return "";
  std::string without;
  std::size_t count = 0;
  const auto& layers = result.windows->front().layers;
  for (const ScanLayerResult& layer : layers) {
    const bool known = std::any_of(layer.heads.begin(), layer.heads.end(),
                                   [](const ScanHeadResult& head) { return head.reachable.has_value(); });
    if (known) continue;
    without += fmt::format("{}{}", count++ == 0 ? "" : ", ", layer.layer);
  }
  if (count == 0) return "";
  return fmt::format(
      "Reachable queries are not asked about in {}: nothing bounds the queries there (the norm in front of "
      "attention does not scale to √d, or queries are normed after the product).",
      count == layers.size() ? std::string("any layer")
                             : fmt::format("layer{} {}", count == 1 ? "" : "s", without));
}

}  // namespace

std::string scan_heading(const ScanResult& result) {
  const TextSettings& text = result.settings.text;
  std::size_t tokens = 0;
  for (const ScanWindowResult& window : *result.windows) tokens += window.ids.size();
  return fmt::format("{} ({}) on {}: {} in {} of up to {}; layer by layer, shares in per cent", text.model,
                     result.family, text.text, counted(tokens, "token"),
                     counted(result.windows->size(), "window"), text.window);
}

std::vector<std::string> scan_readings(const ScanResult& result, const ScanSummary& summary, bool as_model) {
  std::vector<std::string> meanings;
  const ScanSummary::Layer any;
  for (const Column& column : columns_of(ScanRow{any, ScanColumns(result, summary)})) {
    const std::string_view meaning = column.sentence;
    if (!meaning.empty() && std::find(meanings.begin(), meanings.end(), meaning) == meanings.end())
      meanings.emplace_back(meaning);
  }
  std::vector<std::string> sentences = {fmt::format("{}.", fmt::join(meanings, "; "))};
  if (std::string missing = reachable_sentence(result); !missing.empty())
    sentences.push_back(std::move(missing));
  sentences.push_back(places_sentence(result, as_model));
  if (has_largest_weights(result))
    sentences.back() += fmt::format(" Weights are of queries {}.", weight_places_words(result));
  return sentences;
}

ReportTable scan_table(const ScanResult& result, const ScanSummary& summary) {
  const ScanColumns shown(result, summary);
  std::vector<ScanRow> rows;
  for (const ScanSummary::Layer& layer : summary.layers) rows.push_back({layer, shown});
  return {"Unselectable tokens, per cent; what the norm takes away; what the queries did", table_of(rows)};
}

namespace {

// A character that several tokens make up is shown once, marked as the worst of them.
void join(TextFigure::Token& character, const TextFigure::Token& more) {
  constexpr std::string_view kinds[] = {"", kTiedInSome, kTiedInAll, kUnselectableInSome, kUnselectableInAll};
  const auto severity = [&](const TextFigure::Token& token) {
    return std::find(std::begin(kinds), std::end(kinds), token.kind) - std::begin(kinds);
  };
  if (severity(more) > severity(character)) character.kind = more.kind;
  character.value = std::max(character.value, more.value);
  character.hint += "\nnext token of the same character: " + more.hint;
}

const ScanSpaceResult* counts_of(const ScanResult& result, KeySpace space) {
  const auto found = std::find_if(result.spaces.begin(), result.spaces.end(),
                                  [&](const auto& each) { return each.first == name_of(space); });
  return found == result.spaces.end() ? nullptr : &found->second;
}

}  // namespace

bool any_unselectable(const ScanResult& result, KeySpace space) {
  const ScanSpaceResult* counts = counts_of(result, space);
  return counts != nullptr && counts->unselectable_in_some > 0;
}

bool any_marked(const ScanResult& result, KeySpace space) {
  const ScanSpaceResult* counts = counts_of(result, space);
  return counts != nullptr && counts->unselectable_in_some + counts->tied_in_some > 0;
}

TextFigure scan_text(const ScanResult& result, std::size_t window, KeySpace space) {
  TextFigure figure;
  figure.value_name = fmt::format("share of {}s that do not select it", set_name(space));
  const ScanWindowResult& from = (*result.windows)[window];
  const auto sets = sets_of(from, space);
  for (std::size_t i = 0; i < from.ids.size(); ++i) {
    TextFigure::Token token{from.tokens[i]};
    const std::size_t unselectable = sets_with(sets, i, 'u'), tied = sets_with(sets, i, 't'),
                      count = unselectable > 0 ? unselectable : tied;
    if (count > 0) {
      token.value = static_cast<double>(count) / static_cast<double>(sets.size());
      const bool all = count == sets.size();
      token.kind = unselectable > 0 ? (all ? kUnselectableInAll : kUnselectableInSome)
                                    : (all ? kTiedInAll : kTiedInSome);
    }
    token.hint = hint(sets, space, i);
    figure.tokens.push_back(std::move(token));
  }
  return figure;
}

TextFigure with_whole_characters(const TextFigure& figure) {
  TextFigure whole = figure;
  whole.tokens.clear();
  for (const TextFigure::Token& token : figure.tokens) {
    if (token.text.empty() && !whole.tokens.empty()) {
      join(whole.tokens.back(), token);
    } else {
      whole.tokens.push_back(token);
    }
  }
  return whole;
}

Page scan_page(const ScanResult& result, const ScanSummary& summary, const ScanAbout& about,
               std::string data) {
  Page page;
  page.title = fmt::format("Which tokens can {} select?", about.model);
  page.verdict = result.verdict;
  const std::vector<std::string> readings = scan_readings(result, summary, about.as_model);
  page.paragraphs = {
      shape_sentence(about),
      "A token is unselectable if every query that distinguishes the keys gives another key a higher score. "
      "Before and after: the keys are what enters and leaves the norm in front of attention. Head: the keys "
      "of one head, for any query. Reachable: the same keys, for the queries the layer can form from "
      "normalised tokens.",
      "Tied is a token that some query puts on top, but never alone."};
  for (const auto* sentences : {&readings, &about.notes})
    page.paragraphs.insert(page.paragraphs.end(), sentences->begin(), sentences->end());
  page.figures.push_back(share_figure(result, summary));
  for (const RunView::Map& map : maps_of(result, summary, {about.layers, about.heads}))
    page.figures.push_back(to_figure(map.name, map.title, map.caption, map.figure));
  const std::size_t windows = result.windows->size();
  for (const KeySpace space : result.settings.spaces) {
    if (!any_marked(result, space)) continue;
    for (std::size_t w = 0; w < std::min(windows, kMostTexts); ++w) {
      const TextFigure text = scan_text(result, w, space);
      Figure figure{
          fmt::format("text-{}-{}", name_of(space), w),
          fmt::format("{} tokens, {}{}", any_unselectable(result, space) ? "Unselectable and tied" : "Tied",
                      space == KeySpace::before  ? "before the norm"
                      : space == KeySpace::model ? "after the norm"
                      : space == KeySpace::head  ? "any query of a head"
                                                 : "reachable queries",
                      windows > 1 ? fmt::format(", window {}", w + 1) : ""),
          ""};
      figure.html = text_html(with_whole_characters(text));
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
  const std::string about = fmt::format("{} ({}) on {}: {} of up to {} tokens", text.model, result.family,
                                        text.text, counted(text.windows, "window"), text.window);
  section.verdict = result.verdict;
  section.paragraphs = scan_readings(result, summary, true);
  section.paragraphs.insert(section.paragraphs.begin(), about + ".");
  view.maps = maps_of(result, summary, shape);
  section.figures.push_back(share_figure(result, summary));
  for (const RunView::Map& map : view.maps)
    section.figures.push_back(to_figure(map.name, map.title, map.caption, map.figure));
  for (Figure& figure : section.figures) figure.settings = settings_text(made, about);
  section.tables = {scan_table(result, summary)};
  std::vector<SpaceRow> spaces;
  for (const auto& [space, found] : result.spaces)
    if (spaces.size() < RunView::most_rows) spaces.push_back({text, space, found});
  view.beside = {"Tokens that cannot be selected, space by space", table_of(spaces)};
  return view;
}

}  // namespace normscope

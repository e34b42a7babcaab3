#include "report/ablate_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/number_text.h"
#include "report/curves.h"
#include "result/columns.h"

namespace normscope {
namespace {

struct Effect {
  Interval AblateLayerResult::*value;
  const char *name, *title, *symbol;
  bool log = false;
};
constexpr Effect kEffects[] = {
    {&AblateLayerResult::change, "change", "Hidden states: relative change", "‖H′ − H‖/‖H‖", true},
    {&AblateLayerResult::cosine, "cosine", "Hidden states: cosine with those as trained", "cosine"},
    {&AblateLayerResult::entropy, "entropy", "Attention: entropy", "nats"},
    {&AblateLayerResult::largest_weight, "largest_weight", "Attention: highest weight", "weight"},
    {&AblateLayerResult::norm, "norm", "Norm of what enters attention", "‖h‖", true},
};

// A line of layers.csv.
struct EffectRow {
  Quoted row = {};
  std::size_t layer = 0;
  std::string measure = {};
  Interval value = {};

  static void describe(auto& visit, auto& self) {
    visit("row", self.row, "of the change");
    visit("layer", self.layer, "counted from 0");
    visit("measure", self.measure, "of hidden states or attention");
    visit("mean", self.value.mean, "over windows");
    visit("low", self.value.low, "lower end of the 95 % interval; nothing of one window");
    visit("high", self.value.high, "its upper end");
  }
};

std::string number(double value) {
  return std::isnan(value) ? "-" : fmt::format("{:.3g}", value);
}

// Mean over the layers, of each window.
Interval over_layers(const AblateRow& row, double LayerEffect::*effect) {
  std::vector<double> values;
  for (const auto& window : row.windows) {
    double sum = 0;
    for (const LayerEffect& layer : window) sum += layer.*effect;
    values.push_back(sum / static_cast<double>(window.size()));
  }
  return mean_interval(values);
}

const char* loss_name(Ablation::Loss loss) {
  return loss == Ablation::Loss::masked_token ? "masked-token loss" : "loss";
}

CurveFigure layer_figure(const AblateResult& result, std::span<const Effect> effects) {
  CurveFigure figure;
  for (const Effect& effect : effects) {
    CurveFigure::Panel& panel = figure.panels.emplace_back();
    panel.title = effect.title;
    panel.x_label = "layer";
    panel.whole_x = true;
    panel.y_label = effect.symbol;
    panel.log_y = effect.log;
    for (const AblateRowResult& row : result.rows) {
      if (!row.layers) continue;
      CurveFigure::Curve& curve = panel.curves.emplace_back();
      curve.name = row.name;
      for (const AblateLayerResult& layer : *row.layers) {
        const Interval& interval = layer.*effect.value;
        curve.x.push_back(static_cast<double>(layer.layer));
        curve.y.push_back(interval.mean);
        if (interval.count < 2) continue;
        const auto [low, high] = interval.drawn();
        curve.low.push_back(effect.log ? std::max(low, interval.mean / 10) : low);
        curve.high.push_back(high);
      }
    }
  }
  return figure;
}

// Hidden states, then attention.
std::vector<Figure> layer_figures(const AblateResult& result, const std::string& settings) {
  std::size_t windows = 0;
  for (const AblateRowResult& row : result.rows)
    if (row.layers && !row.layers->empty()) windows = std::max(windows, row.layers->front().change.count);
  const char* bands = windows > 2    ? "; bands are 95 % intervals over windows"
                      : windows == 2 ? "; bands reach from one window to the other"
                                     : "";
  const auto effects = std::span(kEffects);
  std::vector<Figure> figures = {
      to_figure("hidden", "Hidden states after each layer, beside those as trained",
                fmt::format("Means over {}{}.", counted(windows, "window"), bands),
                layer_figure(result, effects.first(2))),
      to_figure("attention", "Attention weights and what enters attention",
                fmt::format("Means over heads, tokens and {}{}.", counted(windows, "window"), bands),
                layer_figure(result, effects.subspan(2)))};
  for (Figure& figure : figures) figure.settings = settings;
  return figures;
}

const char* words_for(const std::string& measure) {
  if (measure == "gain") return "copy gain: loss of the first copy less that of the second, nats";
  if (measure == "copy") return "copy: the right token leads those of the prompt";
  if (measure == "lookup") return "lookup: the right value leads those of the prompt";
  return "the best head finds the token";
}

// "-" of a row that failed.
struct AblationRow {
  const Ablation& ablation;
  const AblateRow& row;

  static void describe(auto& visit, auto& self) {
    const AblateRow &row = self.row, &trained = self.ablation.rows.front();
    const bool loss = self.ablation.loss != Ablation::Loss::none, failed = !row.failure.empty();
    const bool gains = !trained.first_loss.empty(), asks = !trained.copy.choice.empty(),
               finds = !trained.finds.share.empty();
    const auto cell = [&](const Interval& interval) { return failed ? "-" : mean_text(interval); };
    const auto after_last = [&](double LayerEffect::*effect) {
      return failed ? "-" : mean_text(row.mean(effect, row.windows.front().size() - 1));
    };
    visit("norm before attention", row.name, "of the change");
    visit.when(loss, loss_name(self.ablation.loss), cell(mean_interval(row.losses)), "over windows");
    visit.when(
        loss, "change",
        failed || !row.change || !loss ? "-" : change_text(mean_difference(trained.losses, row.losses)),
        "of the loss, window by window");
    visit("hidden change", after_last(&LayerEffect::change), "after the last layer");
    visit("cosine", after_last(&LayerEffect::cosine), "with those as trained, after the last layer");
    visit("entropy", cell(over_layers(row, &LayerEffect::entropy)), "of attention weights");
    visit("highest weight", cell(over_layers(row, &LayerEffect::largest_weight)), "of attention");
    visit.when(gains, "copy gain", cell(gains ? mean_interval(row.copy_gain()) : Interval{}),
               "loss of the first copy less that of the second");
    visit.when(asks, "copy", cell(mean_interval(row.copy.choice)), "the right token leads");
    visit.when(asks, "lookup", cell(mean_interval(row.lookup.choice)), "the right value leads");
    visit.when(finds, "head finds",
               failed ? "-"
                      : fmt::format("{} ({}.{})", mean_text(mean_interval(row.finds.share)), row.finds.layer,
                                    row.finds.head),
               "the best head looks at the token");
  }
};

struct ClaimRow {
  const std::string& name;
  const RetrievalChange& change;
  const AblateResult::Settings& settings;

  static void describe(auto& visit, auto& self) {
    const RetrievalChange& change = self.change;
    visit("norm before attention", self.name, "of the change");
    visit("retrieval", words_for(change.measure), "what is measured");
    visit("chance", change.chance > 0 ? percent(change.chance, 1) : "0", "of a guess");
    visit("as trained", mean_text(change.trained), "over prompts");
    visit("changed", mean_text(change.changed), "over prompts");
    visit("difference (95 %)", change_text(change.difference), "prompt by prompt");
    visit("verdict", retrieval_words(change, self.settings),
          "whether retrieval got worse, and by what margin");
  }
};

// "Removing the norm degrades sharp retrieval", row by row.
void add_claims(ReportTable& table, const AblateRowResult& row, const AblateResult::Settings& settings) {
  table.title = "Claim: without the norm, retrieval that needs sharp attention gets worse";
  if (!row.retrieval) return;
  std::vector<ClaimRow> rows;
  rows.reserve(row.retrieval->size());
  for (const RetrievalChange& change : *row.retrieval) rows.push_back({row.name, change, settings});
  auto lines = table_of(rows);
  const bool headed = !table.rows.empty() && !lines.empty();
  table.rows.insert(table.rows.end(), lines.begin() + (headed ? 1 : 0), lines.end());
}

struct LayerRow {
  const std::string& name;
  const AblateLayerResult& layer;

  static void describe(auto& visit, auto& self) {
    visit("norm before attention", self.name, "of the change");
    visit("layer", self.layer.layer, "counted from 0");
    for (const Effect& effect : kEffects)
      visit(effect.title, mean_text(self.layer.*effect.value), effect.symbol);
    visit("constant", self.layer.constant ? number(*self.layer.constant) : "-", "of rescaling");
  }
};

ReportTable layer_table(const AblateResult& result) {
  std::vector<LayerRow> rows;
  for (const AblateRowResult& row : result.rows)
    if (row.layers)
      for (const AblateLayerResult& layer : *row.layers) rows.push_back({row.name, layer});
  return {"Layer by layer", table_of(rows)};
}

// A row of the table over runs.
struct BesideRow {
  const AblateResult& result;
  const AblateRowResult& row;

  static void describe(auto& visit, auto& self) {
    const AblateRowResult& row = self.row;
    const TextSettings& text = self.result.settings.text;
    const auto probe = row.probe.value_or(RetrievalProbeResult());
    const auto cell = [](const auto& interval) { return interval ? mean_text(*interval) : std::string("-"); };
    const auto choice = [](const auto& asked) { return asked ? mean_text(asked->choice) : std::string("-"); };
    visit("model", text.model, "as given");
    visit("text", text.text, "as given");
    visit("norm", row.name, "of the change");
    visit(loss_name(self.result.measured_loss), cell(row.loss), "over windows");
    visit("change", row.loss_change && row.norm ? change_text(*row.loss_change) : "-", "of the loss");
    visit("copy gain", cell(probe.copy ? probe.copy->gain : std::nullopt), "first copy less second");
    visit("copy", choice(probe.copy), "the right token leads");
    visit("lookup", choice(probe.lookup), "the right value leads");
    visit("head finds",
          probe.finds ? fmt::format("{} ({}.{})", mean_text(probe.finds->share), probe.finds->layer,
                                    probe.finds->head)
                      : "-",
          "the best head looks at the token");
  }
};

}  // namespace

std::vector<std::vector<std::string>> ablate_table(const Ablation& ablation) {
  std::vector<AblationRow> rows;
  for (const AblateRow& row : ablation.rows) rows.push_back({ablation, row});
  return table_of(rows);
}

std::string ablate_csv(const AblateResult& result) {
  Csv<EffectRow> csv;
  for (const AblateRowResult& row : result.rows) {
    for (const AblateLayerResult& layer : row.layers.value_or(std::vector<AblateLayerResult>())) {
      for (const Effect& effect : kEffects)
        csv.add({{row.name}, layer.layer, effect.name, layer.*effect.value});
    }
  }
  return std::move(csv).text();
}

Page ablate_page(const AblateResult& result, const Ablation& ablation, const ModelOnText& about,
                 std::string data) {
  Page page;
  page.title = fmt::format("{}: another norm in front of attention", about.model);
  page.verdict = result.verdict;
  page.paragraphs = result.notes;
  for (std::size_t r = 1; r < result.rows.size(); ++r)
    add_claims(page.claims, result.rows[r], result.settings);
  page.figures = layer_figures(result, settings_text(result.made, about.model + " on " + about.text));
  page.tables = {{"Summary (hidden states: last layer; attention: mean over layers)", ablate_table(ablation)},
                 layer_table(result)};
  page.footer = settings_text(result.made);
  page.data = std::move(data);
  return page;
}

RunView ablate_view(const AblateResult& result, const Provenance& made) {
  RunView view;
  PageSection& section = view.section;
  const TextSettings& text = result.settings.text;
  section.verdict = result.verdict;
  section.paragraphs = result.notes;
  std::vector<BesideRow> rows;
  for (const AblateRowResult& row : result.rows) {
    if (rows.size() < RunView::most_rows) rows.push_back({result, row});
    if (row.retrieval && section.claims.rows.size() <= RunView::most_rows)
      add_claims(section.claims, row, result.settings);
  }
  view.beside = {"Models with another norm in front of attention", table_of(rows)};
  section.figures = layer_figures(result, settings_text(made, text.model + " on " + text.text));
  section.tables = {view.beside, layer_table(result)};
  section.tables[1].rows.resize(std::min(section.tables[1].rows.size(), RunView::most_rows + 1));
  return view;
}

}  // namespace normscope

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
        curve.low.push_back(effect.log ? std::max(interval.low, interval.mean / 10) : interval.low);
        curve.high.push_back(interval.high);
      }
    }
  }
  return figure;
}

// Hidden states, then attention.
std::vector<Figure> layer_figures(const AblateResult& result, const std::string& settings) {
  const auto effects = std::span(kEffects);
  std::vector<Figure> figures = {
      to_figure("hidden", "Hidden states after each layer, beside those as trained",
                "Means over windows; bands are 95 % intervals.", layer_figure(result, effects.first(2))),
      to_figure("attention", "Attention weights and what enters attention",
                "Means over heads, tokens and windows; bands are 95 % intervals over windows.",
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

// "Removing the norm degrades sharp retrieval", row by row.
void add_claims(ReportTable& table, const std::string& name, const std::vector<RetrievalChange>& changes) {
  table.title = "Claim: without the norm, retrieval that needs sharp attention gets worse";
  if (table.rows.empty() && !changes.empty())
    table.rows.push_back({"norm before attention", "retrieval", "chance", "as trained", "changed",
                          "difference (95 %)", "verdict"});
  for (const RetrievalChange& change : changes)
    table.rows.push_back({name, words_for(change.measure),
                          change.chance > 0 ? percent(change.chance, 1) : "0", mean_text(change.trained),
                          mean_text(change.changed), change_text(change.difference),
                          name_of(change.verdict)});
}

ReportTable layer_table(const AblateResult& result) {
  ReportTable table{"Layer by layer", {{"norm before attention", "layer"}}};
  for (const Effect& effect : kEffects) table.rows[0].emplace_back(effect.title);
  table.rows[0].emplace_back("constant");
  for (const AblateRowResult& row : result.rows) {
    for (const AblateLayerResult& layer : row.layers.value_or(std::vector<AblateLayerResult>())) {
      std::vector<std::string> cells = {row.name, std::to_string(layer.layer)};
      for (const Effect& effect : kEffects) cells.push_back(mean_text(layer.*effect.value));
      cells.push_back(layer.constant ? number(*layer.constant) : "-");
      table.rows.push_back(std::move(cells));
    }
  }
  return table;
}

}  // namespace

std::vector<std::vector<std::string>> ablate_table(const Ablation& ablation) {
  const AblateRow& trained = ablation.rows.front();
  const bool loss = ablation.loss != Ablation::Loss::none, asks = !trained.copy.choice.empty(),
             gains = !trained.first_loss.empty(), probe = !trained.finds.share.empty();
  std::vector<std::vector<std::string>> rows = {{"norm before attention"}};
  const auto head = [&](const char* title) { rows[0].emplace_back(title); };
  if (loss) {
    head(loss_name(ablation.loss));
    head("change");
  }
  head("hidden change");
  head("cosine");
  head("entropy");
  head("highest weight");
  if (gains) head("copy gain");
  if (asks) {
    head("copy");
    head("lookup");
  }
  if (probe) head("head finds");
  for (const AblateRow& row : ablation.rows) {
    std::vector<std::string> cells = {row.name};
    const bool failed = !row.failure.empty();
    const auto add = [&](const Interval& interval) { cells.push_back(failed ? "-" : mean_text(interval)); };
    if (loss) {
      add(mean_interval(row.losses));
      cells.push_back(failed || !row.change ? "-" : change_text(mean_difference(trained.losses, row.losses)));
    }
    const std::size_t last = failed ? 0 : row.windows.front().size() - 1;
    add(failed ? Interval{} : row.mean(&LayerEffect::change, last));
    add(failed ? Interval{} : row.mean(&LayerEffect::cosine, last));
    add(over_layers(row, &LayerEffect::entropy));
    add(over_layers(row, &LayerEffect::largest_weight));
    if (gains) add(mean_interval(row.copy_gain()));
    if (asks) {
      add(mean_interval(row.copy.choice));
      add(mean_interval(row.lookup.choice));
    }
    if (probe) {
      cells.push_back(failed ? "-"
                             : fmt::format("{} ({}.{})", mean_text(mean_interval(row.finds.share)),
                                           row.finds.layer, row.finds.head));
    }
    rows.push_back(std::move(cells));
  }
  return rows;
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
  for (std::size_t r = 1; r < ablation.rows.size(); ++r)
    add_claims(page.claims, ablation.rows[r].name, retrieval_changes(ablation, r));
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
  view.beside = {"Models with another norm in front of attention",
                 {{"model", "text", "norm", loss_name(result.measured_loss), "change", "copy gain", "copy",
                   "lookup", "head finds"}}};
  for (const AblateRowResult& row : result.rows) {
    const auto cell = [](const auto& interval) { return interval ? mean_text(*interval) : std::string("-"); };
    const auto probe = row.probe.value_or(RetrievalProbeResult());
    const auto choice = [](const auto& asked) { return asked ? mean_text(asked->choice) : std::string("-"); };
    if (view.beside.rows.size() <= RunView::most_rows)
      view.beside.rows.push_back({text.model, text.text, row.name, cell(row.loss),
                                  row.loss_change && row.norm ? change_text(*row.loss_change) : "-",
                                  cell(probe.copy ? probe.copy->gain : std::nullopt), choice(probe.copy),
                                  choice(probe.lookup),
                                  probe.finds ? fmt::format("{} ({}.{})", mean_text(probe.finds->share),
                                                            probe.finds->layer, probe.finds->head)
                                              : "-"});
    if (row.retrieval && section.claims.rows.size() <= RunView::most_rows)
      add_claims(section.claims, row.name, *row.retrieval);
  }
  section.figures = layer_figures(result, settings_text(made, text.model + " on " + text.text));
  section.tables = {view.beside, layer_table(result)};
  section.tables[1].rows.resize(std::min(section.tables[1].rows.size(), RunView::most_rows + 1));
  return view;
}

}  // namespace normscope

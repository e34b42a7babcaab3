#include "report/collapse_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/number_text.h"
#include "normscope/error.h"
#include "result/columns.h"
#include "result/setting_words.h"

namespace normscope {
namespace {

// A line of curves.csv.
struct MeasureRow {
  Quoted group = {}, name = {};
  std::size_t layer = 0;
  std::string measure = {}, mean = {};  // "nan": not asked for
  double sd = 0;

  static void describe(auto& visit, auto& self) {
    visit("group", self.group, "the panel it is shown in");
    visit("name", self.name, "the mask");
    visit("layer", self.layer, "0: the start");
    visit("measure", self.measure, "of the tokens");
    visit("mean", self.mean, "over samples");
    visit("sd", self.sd, "standard deviation over samples; nothing of one sample");
  }
};

constexpr double kLeast = 1e-9;  // drawn on logarithmic axes; below, rounding is all there is

std::vector<double> layer_numbers(std::size_t count, bool from_one) {
  std::vector<double> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<double>(i + (from_one ? 1 : 0));
  return numbers;
}

CurveFigure::Panel& panel_of(CurveFigure& figure, const std::string& group) {
  for (auto& panel : figure.panels) {
    if (panel.title == group) return panel;
  }
  figure.panels.emplace_back().title = group;
  return figure.panels.back();
}

std::string number(double value) {
  return std::isnan(value) ? "-" : fmt::format("{:.3g}", value);
}

std::string rate(const CollapseRate& rate) {
  if (std::isnan(rate.factor)) return "-";
  // Of two samples both are told: their interval is more than ten times as wide as they are apart.
  if (rate.samples.size() == 2)
    return fmt::format("{:.3f} ({:.3f}, {:.3f})", rate.factor, rate.samples[0], rate.samples[1]);
  if (std::isnan(rate.low)) return fmt::format("{:.3f}", rate.factor);
  return fmt::format("{:.3f} ({:.3f} to {:.3f})", rate.factor, rate.low, rate.high);
}

struct CurveRow {
  const CollapseCurve& curve;

  static void describe(auto& visit, auto& self) {
    const CollapseCurve& curve = self.curve;
    const std::size_t last = curve.layers.size() - 1, samples = curve.layers.front().size();
    std::vector<std::size_t> shown = {0, 1, last / 2, last};
    std::sort(shown.begin(), shown.end());
    shown.erase(std::unique(shown.begin(), shown.end()), shown.end());
    Named<std::string> relative;
    for (const std::size_t layer : shown)
      relative.emplace_back(fmt::format("{} {}", layer == 0 ? "μ/‖X‖ at" : "at", layer),
                            number(curve.mean(layer, &TokenMeasures::relative)));
    visit("case", full_name(curve.group, curve.name), "variant and mask");
    visit("relative", relative, "distance from all being equal, free of scale");
    visit("μ at end", number(curve.mean(last, &TokenMeasures::mu)), "the same with its scale");
    visit("φ at end", number(curve.mean(last, &TokenMeasures::min_cosine)), "least cosine of two tokens");
    visit("rank %", number(100 * curve.mean(last, &TokenMeasures::rank_share)), "of the largest possible");
    visit(samples == 1   ? "kept per layer"
          : samples == 2 ? "kept per layer (both)"
                         : "kept per layer (95 %)",
          rate(curve.rate), "share of μ/‖X‖ that a layer leaves");
  }
};

// From results.json alone.
struct RateRow {
  const CollapseCurveResult& curve;

  static void describe(auto& visit, auto& self) {
    const CollapseRate& rate = self.curve.rate.rate;
    visit("case", self.curve.name, "variant and mask");
    visit("kept per layer", fixed(rate.factor, 3), "share of μ/‖X‖ that a layer leaves");
    visit("95 % interval",
          std::isfinite(rate.low) ? fmt::format("{} to {}", fixed(rate.low, 3), fixed(rate.high, 3))
                                  : "– (one sample)",
          "over samples");
  }
};

struct Theorem {
  const char* name;
  TheoremResult CollapseTheoryResult::*theorem;
  double TokenMeasures::*measure;
};
constexpr Theorem kTheorems[] = {
    {"Thm 1", &CollapseTheoryResult::theorem1, &TokenMeasures::mu},
    {"Thm 2, r = diameter", &CollapseTheoryResult::theorem2_diameter, &TokenMeasures::relative},
    {"Thm 2, r = radius", &CollapseTheoryResult::theorem2_radius, &TokenMeasures::relative},
    {"Cor 1", &CollapseTheoryResult::corollary1, &TokenMeasures::relative},
};

struct TheoremRow {
  const CollapseCurveResult& curve;
  const char* name;
  const TheoremResult& theorem;
  Theory shown;

  static void describe(auto& visit, auto& self) {
    const CollapseTheoryResult& theory = self.curve.theory;
    visit("case", self.curve.name, "variant and mask");
    visit("theorem", self.name, "of Wu et al.");
    visit.when(self.shown == Theory::all, "assumptions not met", missing(self.theorem),
               "what it asks in vain");
    visit("ε", number(theory.epsilon), "least attention weight");
    visit("radius", length(theory.radius), "of the mask");
    visit("diameter", length(theory.diameter), "of the mask");
    visit("bound", held(self.theorem), "whether it held");
  }
  static std::string length(const std::optional<std::size_t>& layers) {
    return layers ? std::to_string(*layers) : "-";
  }
  static std::string missing(const TheoremResult& theorem) {
    std::string words;
    for (const auto& [assumption] : theorem.assumptions) {
      if (assumption.met) continue;
      words += fmt::format("{}{}{}", words.empty() ? "" : "; ", assumption.name,
                           assumption.detail.empty() ? "" : " (" + assumption.detail + ")");
    }
    return words.empty() ? "none" : words;
  }
  static std::string held(const TheoremResult& theorem) {
    if (!theorem.bound) return "does not apply";
    return theorem.violations == 0u ? fmt::format("held in these samples, layer by layer; {:.3g} at the end",
                                                  theorem.bound->back())
                                    : fmt::format("exceeded {} times", theorem.violations.value_or(0));
  }
};

bool shows_anything(const CurveFigure& figure) {
  return std::any_of(figure.panels.begin(), figure.panels.end(), [](const auto& panel) {
    return std::any_of(panel.curves.begin(), panel.curves.end(), [](const auto& curve) {
      return std::any_of(curve.y.begin(), curve.y.end(), [](double value) { return std::isfinite(value); });
    });
  });
}

}  // namespace

std::span<const CollapseQuantity> collapse_quantities() {
  static constexpr CollapseQuantity quantities[] = {
      {&TokenMeasures::relative, "relative", "μ/‖X‖", "μ/‖X‖: distance from all tokens equal", true},
      {&TokenMeasures::mu, "mu", "μ", "μ: the same, not free of scale", true},
      {&TokenMeasures::min_cosine, "min_cosine", "φ", "φ: least cosine of two tokens", false},
      {&TokenMeasures::mean_abs_cosine, "mean_abs_cosine", "mean |cos|", "mean |cosine| of two tokens",
       false},
      {&TokenMeasures::rank_share, "rank_share", "rank", "rank, share of full", false},
      {&TokenMeasures::effective_rank, "effective_rank", "effective rank", "effective rank", true},
  };
  return quantities;
}

CurveFigure collapse_figure(const std::vector<CollapseCurve>& curves, const CollapseQuantity& quantity,
                            bool log_layers) {
  std::vector<CollapseCurveResult> results(curves.size());
  std::transform(curves.begin(), curves.end(), results.begin(),
                 [](const CollapseCurve& curve) { return result_of(curve); });
  return collapse_figure(results, quantity, log_layers);
}

CurveFigure collapse_figure(const std::vector<CollapseCurveResult>& curves, const CollapseQuantity& quantity,
                            bool log_layers) {
  CurveFigure figure;
  for (const CollapseCurveResult& curve : curves) {
    const auto measure = std::find_if(curve.measures.begin(), curve.measures.end(),
                                      [&](const auto& each) { return each.first == quantity.name; });
    if (measure == curve.measures.end()) continue;
    CurveFigure::Panel& panel = panel_of(figure, curve.group);
    panel.x_label = log_layers ? "layer + 1" : "layer";
    panel.whole_x = true;
    panel.y_label = quantity.symbol;
    panel.log_x = log_layers;
    panel.log_y = quantity.log;
    if (quantity.log) panel.y_low = kLeast;
    const auto& [mean, sd] = measure->second;
    CurveFigure::Curve line{curve.mask, layer_numbers(mean.size(), log_layers), mean, {}, {}};
    const bool band = sd.size() == mean.size() && !sd.empty() && std::isfinite(sd.front());
    for (std::size_t layer = 0; band && layer < mean.size(); ++layer) {
      const double low = mean[layer] - sd[layer];
      line.low.push_back(quantity.log ? std::max(low, mean[layer] / 10) : low);
      line.high.push_back(mean[layer] + sd[layer]);
    }
    panel.curves.push_back(std::move(line));
  }
  // After all curves, so that a mask has the same colour in every figure.
  for (const CollapseCurveResult& curve : curves) {
    for (const Theorem& theorem : kTheorems) {
      const auto& bound = (curve.theory.*theorem.theorem).bound;
      if (theorem.measure != quantity.measure || !bound || bound->empty()) continue;
      panel_of(figure, curve.group)
          .curves.push_back({fmt::format("{}, {}", theorem.name, curve.mask),
                             layer_numbers(bound->size(), log_layers),
                             *bound,
                             {},
                             {}});
    }
  }
  return figure;
}

CurveFigure singular_value_figure(const std::vector<CollapseCurve>& curves) {
  CurveFigure figure;
  for (const CollapseCurve& curve : curves) {
    if (curve.singular_values.empty() || curve.singular_values.front().size() < 2) continue;
    CurveFigure::Panel& panel = figure.panels.emplace_back();
    panel.title = full_name(curve.group, curve.name);
    panel.x_label = "layer";
    panel.whole_x = true;
    panel.y_label = "σᵢ/σ₁";
    panel.log_y = true;
    panel.y_low = kLeast;
    const std::size_t count = curve.singular_values.front().size();
    std::vector<std::size_t> shown = {1, count / 8, count / 4, count / 2, 3 * count / 4, count - 1};
    std::sort(shown.begin(), shown.end());
    shown.erase(std::unique(shown.begin(), shown.end()), shown.end());
    for (const std::size_t i : shown) {
      if (i == 0) continue;
      CurveFigure::Curve line;
      line.name = fmt::format("i = {}", i + 1);
      line.x = layer_numbers(curve.singular_values.size(), false);
      for (const auto& values : curve.singular_values)
        line.y.push_back(values[0] > 0 ? values[i] / values[0] : 0);
      panel.curves.push_back(std::move(line));
    }
  }
  return figure;
}

std::vector<std::vector<std::string>> collapse_table(const std::vector<CollapseCurve>& curves) {
  std::vector<CurveRow> rows;
  rows.reserve(curves.size());
  for (const CollapseCurve& curve : curves) rows.push_back({curve});
  return table_of(rows);
}

std::vector<std::vector<std::string>> theory_table(const std::vector<CollapseCurveResult>& curves,
                                                   Theory shown) {
  std::vector<TheoremRow> rows;
  for (const CollapseCurveResult& curve : curves) {
    for (const Theorem& each : kTheorems) {
      const TheoremResult& theorem = curve.theory.*each.theorem;
      if (shown == Theory::all || theorem.bound) rows.push_back({curve, each.name, theorem, shown});
    }
  }
  return table_of(rows);
}

std::string readings_note(const std::vector<CollapseCurve>& curves) {
  const bool any = std::any_of(curves.begin(), curves.end(), [](const CollapseCurve& curve) {
    return !curve.theory.bound2_diameter.empty();
  });
  if (!any) return {};
  return "Theorem 2 is shown with both readings of its r: with the diameter, after which every token is in "
         "every other, the bound is provable; with the radius, after which one token is in all, it is not. "
         "Which one is meant is not settled.";
}

std::string collapse_csv(const std::vector<CollapseCurve>& curves) {
  Csv<MeasureRow> csv;
  const auto names = TokenMeasures::names();
  for (const CollapseCurve& curve : curves) {
    for (std::size_t layer = 0; layer < curve.layers.size(); ++layer) {
      const CollapseCurve::Summary summary = curve.summary(layer);
      for (std::size_t m = 0; m < names.size(); ++m)
        csv.add({{curve.group},
                 {curve.name},
                 layer,
                 std::string(names[m]),
                 fmt::format("{}", summary.mean[m]),
                 summary.sd[m]});
    }
  }
  return std::move(csv).text();
}

RunView collapse_view(const CollapseResult& result, const Provenance& made) {
  constexpr std::size_t most_points = 600;
  if (result.curves.empty()) throw InputError("there is no curve");
  RunView view;
  PageSection& section = view.section;
  section.verdict = result.verdict;
  section.paragraphs = {"Bands are one standard deviation over samples."};
  const std::string settings = settings_text(made, setting_words(result.settings));
  for (const CollapseQuantity& quantity : collapse_quantities()) {
    CurveFigure figure = collapse_figure(result.curves, quantity, false);
    if (!shows_anything(figure)) continue;
    const std::size_t left_out = thin(figure, most_points);
    Figure& drawn = section.figures.emplace_back(to_figure(quantity.name, quantity.title, "", figure));
    if (left_out > 0)
      drawn.caption = fmt::format("{} points that pixels cannot show were left out.", left_out);
    drawn.settings = settings;
  }
  std::vector<RateRow> rows;
  for (const CollapseCurveResult& curve : result.curves)
    if (rows.size() < RunView::most_rows) rows.push_back({curve});
  section.tables.push_back({"Collapse", table_of(rows)});
  return view;
}

}  // namespace normscope

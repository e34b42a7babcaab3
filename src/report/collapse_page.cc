#include "report/collapse_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/number_text.h"
#include "normscope/error.h"
#include "report/training_page.h"
#include "result/json_writer.h"

namespace normscope {
namespace {

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

struct Theorem {
  const char* name;
  std::vector<Assumption> CollapseTheory::*assumptions;
  std::vector<double> CollapseTheory::*bound;
  std::size_t CollapseTheory::*violations;
  double TokenMeasures::*measure;
};
constexpr Theorem kTheorems[] = {
    {"Thm 1", &CollapseTheory::theorem1, &CollapseTheory::bound1, &CollapseTheory::violations1,
     &TokenMeasures::mu},
    {"Thm 2, r = diameter", &CollapseTheory::theorem2, &CollapseTheory::bound2_diameter,
     &CollapseTheory::violations2_diameter, &TokenMeasures::relative},
    {"Thm 2, r = radius", &CollapseTheory::theorem2, &CollapseTheory::bound2_radius,
     &CollapseTheory::violations2_radius, &TokenMeasures::relative},
    {"Cor 1", &CollapseTheory::corollary1, &CollapseTheory::bound_corollary,
     &CollapseTheory::violations_corollary, &TokenMeasures::relative},
};

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
  CurveFigure figure;
  for (const CollapseCurve& curve : curves) {
    CurveFigure::Panel& panel = panel_of(figure, curve.group);
    panel.x_label = log_layers ? "layer + 1" : "layer";
    panel.y_label = quantity.symbol;
    panel.log_x = log_layers;
    panel.log_y = quantity.log;
    if (quantity.log) panel.y_low = kLeast;
    CurveFigure::Curve line;
    line.name = curve.name;
    line.x = layer_numbers(curve.layers.size(), log_layers);
    const bool band = curve.layers.front().size() > 1;
    for (std::size_t layer = 0; layer < curve.layers.size(); ++layer) {
      const double mean = curve.mean(layer, quantity.measure), sd = curve.sd(layer, quantity.measure);
      line.y.push_back(mean);
      if (!band) continue;
      line.low.push_back(quantity.log ? std::max(mean - sd, mean / 10) : mean - sd);
      line.high.push_back(mean + sd);
    }
    panel.curves.push_back(std::move(line));
  }
  // After all curves, so that a mask has the same colour in every figure.
  for (const CollapseCurve& curve : curves) {
    CurveFigure::Panel& panel = panel_of(figure, curve.group);
    for (const Theorem& theorem : kTheorems) {
      const auto& bound = curve.theory.*theorem.bound;
      if (theorem.measure != quantity.measure || bound.empty()) continue;
      panel.curves.push_back({fmt::format("{}, {}", theorem.name, curve.name),
                              layer_numbers(bound.size(), log_layers),
                              bound,
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
    panel.title = full_name(curve);
    panel.x_label = "layer";
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
  const std::size_t last = curves.front().layers.size() - 1;
  std::vector<std::size_t> shown = {0, 1, last / 2, last};
  std::sort(shown.begin(), shown.end());
  shown.erase(std::unique(shown.begin(), shown.end()), shown.end());
  std::vector<std::vector<std::string>> rows = {{"case"}};
  for (const std::size_t layer : shown)
    rows[0].push_back(fmt::format("{} {}", layer == 0 ? "μ/‖X‖ at" : "at", layer));
  const std::size_t samples = curves.front().layers.front().size();
  for (const char* title : {"μ at end", "φ at end", "rank %",
                            samples == 1   ? "kept per layer"
                            : samples == 2 ? "kept per layer (both)"
                                           : "kept per layer (95 %)"})
    rows[0].emplace_back(title);
  for (const CollapseCurve& curve : curves) {
    std::vector<std::string> row = {full_name(curve)};
    for (const std::size_t layer : shown) row.push_back(number(curve.mean(layer, &TokenMeasures::relative)));
    row.push_back(number(curve.mean(last, &TokenMeasures::mu)));
    row.push_back(number(curve.mean(last, &TokenMeasures::min_cosine)));
    row.push_back(number(100 * curve.mean(last, &TokenMeasures::rank_share)));
    row.push_back(rate(curve.rate));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<std::vector<std::string>> theory_table(const std::vector<CollapseCurve>& curves) {
  std::vector<std::vector<std::string>> rows = {
      {"case", "theorem", "assumptions not met", "ε", "radius", "diameter", "bound"}};
  for (const CollapseCurve& curve : curves) {
    for (const Theorem& theorem : kTheorems) {
      std::string missing;
      for (const Assumption& assumption : curve.theory.*theorem.assumptions) {
        if (assumption.met) continue;
        missing += fmt::format("{}{}{}", missing.empty() ? "" : "; ", assumption.name,
                               assumption.detail.empty() ? "" : " (" + assumption.detail + ")");
      }
      const auto& bound = curve.theory.*theorem.bound;
      std::string held = "does not apply";
      if (!bound.empty()) {
        const std::size_t violations = curve.theory.*theorem.violations;
        held = violations == 0 ? fmt::format("held; {:.3g} at the end", bound.back())
                               : fmt::format("exceeded {} times", violations);
      }
      rows.push_back({full_name(curve), theorem.name, missing.empty() ? "none" : missing,
                      number(curve.theory.epsilon),
                      curve.theory.radius > 0 ? std::to_string(curve.theory.radius) : "-",
                      curve.theory.diameter > 0 ? std::to_string(curve.theory.diameter) : "-", held});
    }
  }
  return rows;
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
  std::string text = "group,name,layer,measure,mean,sd\n";
  const auto names = TokenMeasures::names();
  for (const CollapseCurve& curve : curves) {
    for (std::size_t layer = 0; layer < curve.layers.size(); ++layer) {
      const CollapseCurve::Summary summary = curve.summary(layer);
      for (std::size_t m = 0; m < names.size(); ++m) {
        text +=
            fmt::format("\"{}\",\"{}\",{},{},{},{}\n", curve.group, curve.name, layer, names[m],
                        summary.mean[m], std::isnan(summary.sd[m]) ? "" : fmt::format("{}", summary.sd[m]));
      }
    }
  }
  return text;
}

namespace {

struct StoredTheorem {
  const char* name;
  TheoremResult CollapseTheoryResult::*theorem;
  double TokenMeasures::*measure;
};
constexpr StoredTheorem kStored[] = {
    {"Thm 1", &CollapseTheoryResult::theorem1, &TokenMeasures::mu},
    {"Thm 2, r = diameter", &CollapseTheoryResult::theorem2_diameter, &TokenMeasures::relative},
    {"Thm 2, r = radius", &CollapseTheoryResult::theorem2_radius, &TokenMeasures::relative},
    {"Cor 1", &CollapseTheoryResult::corollary1, &TokenMeasures::relative},
};

CurveFigure stored_figure(const std::vector<CollapseCurveResult>& curves, const CollapseQuantity& quantity) {
  CurveFigure figure;
  for (const CollapseCurveResult& curve : curves) {
    const auto measure = std::find_if(curve.measures.begin(), curve.measures.end(),
                                      [&](const auto& each) { return each.first == quantity.name; });
    if (measure == curve.measures.end()) continue;
    CurveFigure::Panel& panel = panel_of(figure, curve.group);
    panel.x_label = "layer";
    panel.y_label = quantity.symbol;
    panel.log_y = quantity.log;
    if (quantity.log) panel.y_low = kLeast;
    const auto& [mean, sd] = measure->second;
    CurveFigure::Curve line{curve.name, layer_numbers(mean.size(), false), mean, {}, {}};
    if (sd.size() == mean.size() && std::any_of(sd.begin(), sd.end(), [](double each) { return each > 0; })) {
      for (std::size_t i = 0; i < sd.size(); ++i) {
        line.low.push_back(quantity.log ? std::max(mean[i] - sd[i], mean[i] / 10) : mean[i] - sd[i]);
        line.high.push_back(mean[i] + sd[i]);
      }
    }
    panel.curves.push_back(std::move(line));
    for (const StoredTheorem& stored : kStored) {
      const auto& bound = (curve.theory.*stored.theorem).bound;
      if (stored.measure != quantity.measure || !bound || bound->empty()) continue;
      panel.curves.push_back({fmt::format("{}, {}", stored.name, curve.name),
                              layer_numbers(bound->size(), false),
                              *bound,
                              {},
                              {}});
    }
  }
  return figure;
}

bool shows_anything(const CurveFigure& figure) {
  return std::any_of(figure.panels.begin(), figure.panels.end(), [](const auto& panel) {
    return std::any_of(panel.curves.begin(), panel.curves.end(), [](const auto& curve) {
      return std::any_of(curve.y.begin(), curve.y.end(), [](double value) { return std::isfinite(value); });
    });
  });
}

}  // namespace

RunView collapse_view(const CollapseResult& result, const Provenance& made) {
  constexpr std::size_t most_points = 600;
  if (result.curves.empty()) throw InputError("there is no curve");
  RunView view;
  PageSection& section = view.section;
  section.verdict = result.verdict;
  section.paragraphs = {"Bands are one standard deviation over samples."};
  const std::string settings =
      settings_text(made, settings_list(nlohmann::ordered_json::parse(json_of(result.settings))));
  for (const CollapseQuantity& quantity : collapse_quantities()) {
    CurveFigure figure = stored_figure(result.curves, quantity);
    if (!shows_anything(figure)) continue;
    const std::size_t left_out = thin(figure, most_points);
    Figure& drawn = section.figures.emplace_back(to_figure(quantity.name, quantity.title, "", figure));
    if (left_out > 0)
      drawn.caption = fmt::format("{} points that pixels cannot show were left out.", left_out);
    drawn.settings = settings;
  }
  ReportTable table{"Collapse", {{"case", "kept per layer", "95 % interval"}}};
  for (const CollapseCurveResult& curve : result.curves) {
    if (table.rows.size() > RunView::most_rows) break;
    const CollapseRate& rate = curve.rate.rate;
    table.rows.push_back({curve.group + ", " + curve.name, fixed(rate.factor, 3),
                          std::isfinite(rate.low)
                              ? fmt::format("{} to {}", fixed(rate.low, 3), fixed(rate.high, 3))
                              : "– (one sample)"});
  }
  section.tables.push_back(std::move(table));
  return view;
}

}  // namespace normscope

#include <fmt/format.h>

#include <algorithm>

#include "core/number_text.h"
#include "report/collapse_page.h"
#include "result/json_writer.h"
#include "run/finished.h"

namespace normscope {
namespace {

std::string inits_text(const CollapseModel& model) {
  std::string text;
  for (const CollapseModel::Weights& each : model.inits)
    text +=
        fmt::format("{}{}", text.empty() ? "" : " and ", each.init == "random" ? "random init" : each.init);
  return text;
}

// Of steps that are no whole layers.
std::string step_text(const CollapsePlan& plan) {
  const double h = plan.options.step_size;
  return h == 1 ? "" : fmt::format(" Steps of h = {}: layer l is at the time l·h.", h);
}

std::string model_sentence(const CollapsePlan& plan) {
  const CollapseModel& model = *plan.model;
  const BlockSpec& block = plan.cases.front().block;
  return fmt::format(
      "{} ({}, {}; {}, {}, {}), {} of {} of {}, {}. Its own mask is {}; layer 0 is what enters the first "
      "layer, and a norm after the last is left out.{}",
      model.name, model.family, inits_text(model), counted(plan.settings.layers, "layer"),
      counted(block.width, "dimension"), counted(block.heads, "head"),
      counted(plan.settings.samples, "window"), counted(plan.settings.tokens, "token"), model.source,
      name_of(plan.settings.precision), model.mask, step_text(plan));
}

}  // namespace

std::string policies_text(const CollapseStudy& study) {
  const std::vector<CollapseCurve>& curves = study.curves;
  std::size_t empty = 0, undefined = 0;
  for (const CollapseCurve& curve : curves) {
    empty = std::max(empty, curve.empty_rows);
    undefined += curve.norm.undefined_rows();
  }
  std::string text;
  if (empty > 0) {
    text += fmt::format("{} token{} to nothing; the softmax over no score is 0.\n", empty,
                        empty == 1 ? " attends" : "s attend");
  }
  if (undefined > 0) {
    text += fmt::format("{} 0 or constant where a norm had to scale {} 0.\n",
                        undefined == 1 ? "1 row was" : fmt::format("{} rows were", undefined),
                        undefined == 1 ? "it; it stays" : "them; they stay");
  }
  return text;
}

std::string settings_sentence(const CollapsePlan& plan) {
  if (plan.model) return model_sentence(plan);
  const CollapseOptions& options = plan.options;
  return fmt::format(
      "{} x {}, {}, {}, {}; weights {} (query and key {}, value {}, output {}), start {}, {}.{}",
      counted(plan.settings.tokens, "token"), counted(plan.cases.front().block.width, "dimension"),
      counted(plan.cases.front().block.heads, "head"), counted(plan.settings.layers, "layer"),
      counted(plan.settings.samples, "sample"), options.init, options.query_key, options.value,
      options.output, options.start, name_of(plan.settings.precision), step_text(plan));
}

Page page_of(const CollapseStudy& study) {
  const CollapsePlan& plan = study.plan;
  const std::vector<CollapseCurve>& curves = study.curves;
  const Provenance& provenance = study.result.made;
  Page page;
  page.title = "Collapse with depth";
  page.verdict = study.result.verdict;
  page.paragraphs = {
      settings_sentence(plan),
      "μ is the distance of the tokens from all being equal; μ/‖X‖ is free of scale. Bands are one "
      "standard deviation over samples."};
  const std::string text = policies_text(study);
  if (!text.empty()) page.paragraphs.push_back(text);
  if (const std::string readings = readings_note(curves); !readings.empty())
    page.paragraphs.push_back(readings);
  const std::string stamp = fmt::format("seed {} · normscope {} ({}, {})", provenance.seed,
                                        provenance.version, provenance.commit, provenance.isa);
  for (const CollapseQuantity& quantity : collapse_quantities()) {
    if (plan.settings.spectrum == Spectrum::no && (quantity.measure == &TokenMeasures::rank_share ||
                                                   quantity.measure == &TokenMeasures::effective_rank)) {
      continue;
    }
    CurveFigure figure = collapse_figure(curves, quantity, false);
    figure.caption = settings_sentence(plan) + " " + stamp;
    page.figures.push_back(to_figure(quantity.name, quantity.title, "", figure));
    page.figures.back().settings = settings_text(provenance, settings_sentence(plan));
  }
  page.tables.push_back({"Summary", collapse_table(curves)});
  page.tables.push_back({"Theory", theory_table(study.result.curves)});
  page.footer = stamp;
  page.data = json_of(study.result, -1);
  return page;
}

void write_run(const RunDirectory& directory, const CollapseStudy& study) {
  directory.write_config("collapse", study.result.made, json_of(study.result.settings));
  directory.write("results.json", json_of(study.result));
  directory.write("curves.csv", collapse_csv(study.curves));
  directory.write("relative.svg",
                  curves_svg(collapse_figure(study.curves, collapse_quantities().front(), false)));
  directory.write("report.html", render_html(page_of(study)));
}

}  // namespace normscope

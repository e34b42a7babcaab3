// normscope collapse: how fast tokens become alike with depth, under masks, norms, temperatures, value
// matrices.
#include "study/collapse.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/calls.h"
#include "cli/common.h"
#include "cli/options.h"
#include "core/number_text.h"
#include "report/collapse_page.h"
#include "result/json_writer.h"
#include "study/masks.h"
#include "study/model_text.h"

namespace normscope::cli {
namespace {

std::string policies(const std::vector<CollapseCurve>& curves) {
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
    text +=
        fmt::format("{} rows were 0 or constant where a norm had to scale them; they stay 0.\n", undefined);
  }
  return text;
}

std::string inits_text(const CollapseModel& model) {
  std::string text;
  for (const CollapseModel::Weights& each : model.inits)
    text +=
        fmt::format("{}{}", text.empty() ? "" : " and ", each.init == "random" ? "random init" : each.init);
  return text;
}

std::string model_sentence(const CollapsePlan& plan) {
  const CollapseModel& model = *plan.model;
  const BlockSpec& block = plan.cases.front().block;
  return fmt::format(
      "{} ({}, {}; {}, {}, {}), {} of {} of {}, {}. Its own mask is {}; layer 0 is what enters the first "
      "layer, and a norm after the last is left out.",
      model.name, model.family, inits_text(model), counted(plan.settings.layers, "layer"),
      counted(block.width, "dimension"), counted(block.heads, "head"),
      counted(plan.settings.samples, "window"), counted(plan.settings.tokens, "token"), model.source,
      name_of(plan.settings.precision), model.mask);
}

std::string settings_sentence(const CollapsePlan& plan) {
  if (plan.model) return model_sentence(plan);
  const CollapseOptions& options = plan.options;
  return fmt::format("{} x {}, {}, {}, {}; weights {} (query and key {}, value {}, output {}), start {}, {}.",
                     counted(plan.settings.tokens, "token"),
                     counted(plan.cases.front().block.width, "dimension"),
                     counted(plan.cases.front().block.heads, "head"), counted(plan.settings.layers, "layer"),
                     counted(plan.settings.samples, "sample"), options.init, options.query_key, options.value,
                     options.output, options.start, name_of(plan.settings.precision));
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
  const std::string text = policies(curves);
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

std::string screen(const CollapseStudy& study) {
  const std::vector<CollapseCurve>& curves = study.curves;
  std::string text = settings_sentence(study.plan) + "\n\n" + table(collapse_table(curves)) + "\n";
  // Those theorems that speak of the case; what the others lack is in the report and in --json.
  const auto theory = theory_table(study.result.curves, Theory::that_applies);
  if (!theory.empty()) {
    text += table(theory) + "\n";
    if (const std::string readings = readings_note(curves); !readings.empty()) text += readings + "\n";
  }
  return text + policies(curves) + study.result.verdict + "\n";
}

void write_run(const RunDirectory& directory, const CollapseStudy& study) {
  directory.write_config("collapse", study.result.made, json_of(study.result.settings));
  directory.write("results.json", json_of(study.result));
  directory.write("curves.csv", collapse_csv(study.curves));
  directory.write("relative.svg",
                  curves_svg(collapse_figure(study.curves, collapse_quantities().front(), false)));
  directory.write("report.html", render_html(page_of(study)));
}

std::optional<GivenModel> read_model(const std::string& name, const CollapseOptions& options) {
  if (name.empty()) return std::nullopt;
  require_goes_with_model(options);
  const Checkpoint checkpoint = open_checkpoint(name);
  ModelText text = read_model_text(checkpoint, TextOptions{name, options.text, options.ids, {}, {}, 1});
  return GivenModel{label_of_source(name), text.source, checkpoint.weights, std::move(text.tokens)};
}

void run_collapse(const CollapseCall& call, const Common& common) {
  CollapsePlan plan = plan_collapse(call.study, read_model(call.model, call.study), common.seed);
  const auto directory = replaceable_directory(common);
  const Executor executor(common.threads, common.stop);
  const CollapseStudy study = [&] {
    Progress progress(common, "collapse:", "layers");
    const Context context{executor, common.seed,
                          [&](std::size_t done, std::size_t total) { progress.update(done, total); }};
    return study_collapse(std::move(plan), context);
  }();
  if (directory) {
    write_run(*directory, study);
    note(common, "Wrote " + (directory->path() / "report.html").string());
  }
  common.json ? write_json(study.result, -1, print) : print(screen(study));
}

}  // namespace

void add_collapse(CLI::App& app, Common& common) {
  CLI::App* command = add_command(
      app, common, "collapse",
      "How fast tokens become alike with depth, under masks, norms, temperatures, weights",
      {"collapse", "collapse --shape bert-base --variant san san+norm --dropout 0 0.1 --out runs/bert",
       "collapse --variant san --mask full causal --value orthogonal --temperature 0.0156,1,64",
       "collapse --variant san+norm --norm unit,rmsnorm,dyt --mask window:1 star --layers 64",
       "collapse --variant san --query-key zero --value jordan:2 --mask my-mask.txt --tokens 16",
       "collapse minilm --text article.txt --samples 8 --init both --out runs/minilm"});
  auto call = std::make_shared<CollapseCall>();
  add_options(*command, *call);
  add_to_footer(*command, fmt::format("Masks: {}\nNorms: {}", mask_list(),
                                      fmt::join(norm_names_without_normals(), " ")));
  when_called(*command, [call, &common] { run_collapse(*call, common); });
}

}  // namespace normscope::cli

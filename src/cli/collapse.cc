// normscope collapse: how fast tokens become alike with depth, under masks, norms, temperatures, value
// matrices.
#include "normscope/collapse.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/collapse_plan.h"
#include "cli/common.h"
#include "record/json.h"
#include "report/collapse_page.h"
#include "study/masks.h"

namespace normscope::cli {
namespace {

using Json = nlohmann::ordered_json;

Json options_json(const CollapsePlan& plan) {
  const BlockSpec& block = plan.cases.front().block;
  std::size_t feed_forward = 0;
  for (const CollapseCase& each : plan.cases) feed_forward = std::max(feed_forward, each.block.feed_forward);
  const CollapseSettings& settings = plan.settings;
  Json options = {{"tokens", settings.tokens},
                  {"dim", block.width},
                  {"heads", block.heads},
                  {"feed_forward", feed_forward},
                  {"layers", settings.layers},
                  {"samples", settings.samples},
                  {"variants", plan.call.variants},
                  {"masks", plan.masks},
                  {"norms", plan.call.norms},
                  {"placements", plan.call.placements},
                  {"temperatures", plan.call.temperatures},
                  {"dropouts", plan.call.dropouts},
                  {"init", plan.call.init},
                  {"query_key", plan.call.query_key},
                  {"value", plan.call.value},
                  {"output", plan.call.output},
                  {"weight_norm", settings.weights.normalize},
                  {"fresh_weights", settings.fresh_weights},
                  {"qknorm", block.normalize_query_key},
                  {"start", plan.call.start},
                  {"precision", name_of(settings.precision)},
                  {"spectrum", settings.spectrum == Spectrum::yes},
                  {"eps", block.norm.eps}};
  if (!plan.model) return options;
  double eps = 0;
  for (const CollapseCase& each : plan.cases) eps = std::max(eps, each.block.norm.eps);
  options["eps"] = eps;
  options["model"] = plan.model->name;
  options["family"] = plan.model->family;
  options["own_mask"] = plan.model->mask;
  options["text"] = plan.model->text.source;
  options["stride"] = plan.model->text.stride;
  return options;
}

Json assumptions_json(const std::vector<Assumption>& assumptions) {
  Json list = Json::array();
  for (const Assumption& each : assumptions) {
    list.push_back({{"name", each.name}, {"met", each.met}, {"detail", each.detail}});
  }
  return list;
}

Json theory_json(const CollapseTheory& theory) {
  const auto one = [](const std::vector<Assumption>& assumptions, const std::vector<double>& bound,
                      std::size_t violations) {
    Json json = {{"assumptions", assumptions_json(assumptions)}, {"bound", nullptr}, {"violations", nullptr}};
    if (!bound.empty()) {
      json["bound"] = bound;
      json["violations"] = violations;
    }
    return json;
  };
  return {{"epsilon", theory.epsilon},
          {"radius", theory.radius > 0 ? Json(theory.radius) : Json(nullptr)},
          {"diameter", theory.diameter > 0 ? Json(theory.diameter) : Json(nullptr)},
          {"theorem1", one(theory.theorem1, theory.bound1, theory.violations1)},
          {"theorem2_diameter", one(theory.theorem2, theory.bound2_diameter, theory.violations2_diameter)},
          {"theorem2_radius", one(theory.theorem2, theory.bound2_radius, theory.violations2_radius)},
          {"corollary1", one(theory.corollary1, theory.bound_corollary, theory.violations_corollary)}};
}

Json curve_json(const CollapseCurve& curve, const CollapseCase& each) {
  Json measures = Json::object();
  const auto names = TokenMeasures::names();
  for (const std::string_view name : names)
    measures[std::string(name)] = {{"mean", Json::array()}, {"sd", Json::array()}};
  for (std::size_t layer = 0; layer < curve.layers.size(); ++layer) {
    const CollapseCurve::Summary summary = curve.summary(layer);
    for (std::size_t m = 0; m < names.size(); ++m) {
      Json& measure = measures[std::string(names[m])];
      measure["mean"].push_back(summary.mean[m]);
      measure["sd"].push_back(summary.sd[m]);
    }
  }
  return {{"group", curve.group},
          {"name", curve.name},
          {"skip", each.block.skip},
          {"norm", name_of(each.block.norm)},
          {"placement", name_of_placement(each.block.placement)},
          {"feed_forward", each.block.feed_forward},
          {"temperature", each.block.temperature > 0 ? each.block.temperature
                                                     : static_cast<double>(each.block.width_of_head())},
          {"dropout", each.block.dropout},
          {"rate",
           {{"factor", curve.rate.factor},
            {"low", curve.rate.low},
            {"high", curve.rate.high},
            {"samples", curve.rate.samples},
            {"layers", curve.rate.layers}}},
          {"measures", measures},
          {"singular_values", curve.singular_values},
          {"least_weight", curve.least_weight},
          {"entropy", curve.entropy},
          {"empty_rows", curve.empty_rows},
          {"undefined_rows", curve.norm.undefined_rows()},
          {"theory", theory_json(curve.theory)}};
}

Json results_json(const CollapsePlan& plan, const std::vector<CollapseCurve>& curves,
                  const Provenance& provenance, double seconds) {
  Json results = {{"command", "collapse"}};
  results.update(normscope::to_json(provenance));
  results["seconds"] = seconds;
  results["settings"] = options_json(plan);
  results["verdict"] = collapse_verdict(curves);
  results["curves"] = Json::array();
  for (std::size_t c = 0; c < curves.size(); ++c)
    results["curves"].push_back(curve_json(curves[c], plan.case_of_curve(c)));
  return results;
}

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

std::string counted(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
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
      counted(plan.settings.samples, "window"), counted(plan.settings.tokens, "token"), model.text.source,
      name_of(plan.settings.precision), model.mask);
}

std::string settings_sentence(const CollapsePlan& plan) {
  if (plan.model) return model_sentence(plan);
  const CollapseCall& call = plan.call;
  return fmt::format("{} x {}, {}, {}, {}; weights {} (query and key {}, value {}, output {}), start {}, {}.",
                     counted(plan.settings.tokens, "token"),
                     counted(plan.cases.front().block.width, "dimension"),
                     counted(plan.cases.front().block.heads, "head"), counted(plan.settings.layers, "layer"),
                     counted(plan.settings.samples, "sample"), call.init, call.query_key, call.value,
                     call.output, call.start, name_of(plan.settings.precision));
}

Page page_of(const CollapsePlan& plan, const std::vector<CollapseCurve>& curves, const Provenance& provenance,
             const Json& results) {
  Page page;
  page.title = "Collapse with depth";
  page.verdict = collapse_verdict(curves);
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
  page.tables.push_back({"Theory", theory_table(curves)});
  page.footer = stamp;
  page.data = results.dump();
  return page;
}

// All cases; of a model with each of its inits, which then stand before the names of the panels.
std::vector<CollapseCurve> curves_of(const CollapsePlan& plan, const Executor& executor, Progress& progress) {
  const auto run = [&](const CollapseSettings& settings, std::size_t which, std::size_t of) {
    return collapse(plan.cases, settings, executor, [&, which, of](std::size_t done, std::size_t total) {
      progress.update(which * total + done, of * total);
    });
  };
  if (!plan.model) return run(plan.settings, 0, 1);
  std::vector<CollapseCurve> all;
  const auto& inits = plan.model->inits;
  for (std::size_t i = 0; i < inits.size(); ++i) {
    CollapseSettings settings = plan.settings;
    settings.model = inits[i].weights;
    for (CollapseCurve& curve : run(settings, i, inits.size())) {
      if (inits.size() > 1) curve.group = fmt::format("{}, {}", inits[i].init, curve.group);
      all.push_back(std::move(curve));
    }
  }
  return all;
}

void run_collapse(const CollapseCall& call, const Common& common) {
  const CollapsePlan plan = resolve_collapse(call, common);
  const auto directory = replaceable_directory(common);
  const Executor executor(common.threads, common.stop);
  const auto start = std::chrono::steady_clock::now();
  std::vector<CollapseCurve> curves;
  {
    Progress progress(common, "collapse:", "layers");
    curves = curves_of(plan, executor, progress);
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const Provenance made = provenance(common.seed, executor.threads());
  const Json results = results_json(plan, curves, made, seconds);
  if (directory) {
    directory->write_config("collapse", made, options_json(plan).dump());
    directory->write("results.json", json_text(results));
    directory->write("curves.csv", collapse_csv(curves));
    directory->write("relative.svg",
                     curves_svg(collapse_figure(curves, collapse_quantities().front(), false)));
    directory->write("report.html", render_html(page_of(plan, curves, made, results)));
    note(common, "Wrote " + (directory->path() / "report.html").string());
  }
  if (common.json) return print(json_text(results, -1));
  std::string text = settings_sentence(plan) + "\n\n" + table(collapse_table(curves)) + "\n";
  // Those theorems that speak of the case; what the others lack is in the report and in --json.
  auto theory = theory_table(curves);
  std::erase_if(theory, [](const std::vector<std::string>& row) { return row.back() == "does not apply"; });
  if (theory.size() > 1) {
    for (std::vector<std::string>& row : theory) row.erase(row.begin() + 2);
    text += table(theory) + "\n";
    if (const std::string readings = readings_note(curves); !readings.empty()) text += readings + "\n";
  }
  print(text + policies(curves) + collapse_verdict(curves) + "\n");
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
  const auto option = [&](const char* name, std::string& value, const char* type, const char* description) {
    return command->add_option(name, value, description)->type_name(type);
  };
  const auto list = [&](const char* name, std::vector<std::string>& value, const char* type,
                        const char* description) {
    return command->add_option(name, value, description)->type_name(type);
  };
  option("model", call->model, "MODEL",
         "A trained model in place of weights drawn: a Hugging Face directory, an id in its local cache, a "
         "llama2.c file, or a model fetched by `normscope data get`; before all options");
  option("--text", call->text, "FILE", "The text a model reads, windows of --tokens one after the other");
  option("--ids", call->ids, "FILE", "Token ids in its place: numbers in a text file, or an .npy");
  option("--stride", call->stride, "N", "A window every so many tokens [one after the other]");
  list("--variant", call->variants, "NAME…", "san, san+skip, san+norm, san+skip+norm, full [all five]");
  list("--mask", call->masks, "SPEC…",
       "Masks, by name or file, separated by spaces [full causal window:1 onesided:1; a model's own first]");
  list("--norm", call->norms, "NAME…",
       "Norms, where the variant has one [layernorm; a model's own, which keeps its gain and bias]");
  list("--placement", call->placements, "NAME…", "post, pre, sandwich [post; the model's]");
  list("--temperature", call->temperatures, "D…",
       "d_QK, of which scores are divided by the root [dim/heads; the model's]");
  list("--dropout", call->dropouts, "P…", "Dropout of attention weights and outputs; 0 is eval mode [0]");
  option("--shape", call->shape, "NAME",
         "bert-base: 768 dimensions, 12 heads, BERT's weights and embeddings");
  option("--tokens", call->tokens, "N", "Tokens [128, or those of a mask file, of the start or of the text]");
  option("--dim", call->dim, "D", "Dimensions [64]");
  option("--heads", call->heads, "H", "Heads [1]");
  option("--feed-forward", call->feed_forward, "F", "Hidden width of the variant full [4 x dim]");
  option("--layers", call->layers, "L", "Layers [12; all of the model]");
  option("--samples", call->samples, "S", "Starts (windows of the text), all through the same weights")
      ->capture_default_str();
  option("--init", call->init, "INIT",
         "All weights: bert, gaussian, gaussian:S, xavier, orthogonal, identity [gaussian]; of a model: "
         "pretrained, random (its shape before training), both [pretrained]");
  option("--query-key", call->query_key, "INIT",
         "Query and key weights; zero makes attention uniform [--init]");
  option("--value", call->value, "INIT",
         "Value weights: also jordan:W, FILE, FILE:TENSOR, or orthogonal:FILE [--init]");
  option("--output", call->output, "INIT", "Output weights [--init; identity with one head]");
  option("--start", call->start, "NAME",
         "gaussian, sphere, bert (random embeddings of Zipf words), text:FILE (of its words), or FILE "
         "[gaussian]");
  option("--eps", call->eps, "E", "Of the norms [0; bert-base 1e-12; the model's]");
  option("--precision", call->precision, "NAME", "float32 or float64")->capture_default_str();
  command->add_flag("--weight-norm", call->weight_norm,
                    "Weight normalization: the weights of every unit have norm 1");
  command->add_flag("--qknorm", call->qknorm, "Queries and keys scaled to norm 1 in every head");
  command->add_flag("--fresh-weights", call->fresh_weights, "Every sample has weights of its own");
  command->add_flag("--no-spectrum", call->no_spectrum, "Without singular values and ranks, which take time");
  command->footer(fmt::format("{}\n\nMasks: {}\nNorms: {}", command->get_footer(), mask_list(),
                              fmt::join(norm_names_without_normals(), " ")));
  command->callback([call, &common] { run_collapse(*call, common); });
}

}  // namespace normscope::cli

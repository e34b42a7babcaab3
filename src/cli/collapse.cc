// normscope collapse: how fast tokens become alike with depth, under masks, norms, temperatures, value
// matrices.
#include "normscope/collapse.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/common.h"
#include "cli/masks.h"
#include "io/bytes.h"
#include "normscope/error.h"
#include "normscope/tensor_file.h"
#include "record/json.h"
#include "report/collapse_page.h"

namespace normscope::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostCases = 400;

struct CollapseCall {
  std::vector<std::string> variants = {"san", "san+skip", "san+norm", "san+skip+norm", "full"};
  std::vector<std::string> masks = {"full", "causal", "window:1", "onesided:1"};
  std::vector<std::string> norms = {"layernorm"}, placements = {"post"}, temperatures, dropouts = {"0"};
  std::string shape, tokens, dim, heads, feed_forward, layers = "12", samples = "1";
  std::string init, query_key, value, output, start, precision = "float32", eps;
  bool weight_norm = false, qknorm = false, no_spectrum = false, fresh_weights = false;
};

struct Plan {
  std::vector<CollapseCase> cases;
  std::vector<std::string> masks;  // as given
  CollapseSettings settings;
  CollapseCall call;  // with what was left open filled in
};

std::vector<std::string> pieces(const std::vector<std::string>& given, const char* what) {
  std::vector<std::string> all;
  for (const std::string& each : given) {
    for (const std::string_view piece : split(each, ',')) {
      if (piece.empty()) throw InputError(fmt::format("{} has an empty value.", what));
      if (std::find(all.begin(), all.end(), piece) == all.end()) all.emplace_back(piece);
    }
  }
  return all;
}

std::vector<double> numbers(const std::vector<std::string>& given, const char* what, double low,
                            double high) {
  std::vector<double> all;
  for (const std::string& piece : pieces(given, what)) all.push_back(parse_number(piece, what, low, high));
  return all;
}

Placement parse_placement(const std::string& name) {
  if (name == "post") return Placement::post;
  if (name == "pre") return Placement::pre;
  if (name == "sandwich") return Placement::sandwich;
  throw InputError(fmt::format("There is no placement '{}'; there are post, pre and sandwich.", name));
}

Matrix<double> read_matrix(const std::string& text, const char* what) {
  const TensorPlace place = tensor_place(text);
  Tensor tensor = read_tensor(place.path, place.tensor);
  if (tensor.shape.size() != 2) {
    throw InputError(
        fmt::format("{}: '{}' holds {} dimensions; a matrix has 2.", what, text, tensor.shape.size()));
  }
  for (std::size_t i = 0; i < tensor.values.size(); ++i) {
    if (!std::isfinite(tensor.values[i])) {
      throw InputError(fmt::format("{}: '{}' is not finite in row {}.", what, text, i / tensor.shape[1]));
    }
  }
  return {tensor.shape[0], tensor.shape[1], std::move(tensor.values)};
}

bool looks_like_file(const std::string& name) {
  return name.find('/') != std::string::npos || std::filesystem::is_regular_file(name) ||
         name.ends_with(".npy") || tensor_place(name).tensor || name.ends_with(".npz") ||
         name.ends_with(".safetensors");
}

// A way to draw weights, `FILE`, or `orthogonal:FILE`, which must be orthogonal.
MatrixInit resolve_matrix(const std::string& name, const char* what) {
  constexpr std::string_view prefix = "orthogonal:";
  const bool must = name.starts_with(prefix);
  const std::string path = must ? name.substr(prefix.size()) : name;
  if (!must && !looks_like_file(path)) return parse_matrix_init(name);
  MatrixInit init;
  init.kind = MatrixInit::Kind::given;
  init.given = read_matrix(path, what);
  if (must && !is_orthogonal(init.given.view())) {
    throw InputError(
        fmt::format("{}: the matrix of '{}' ({} x {}) is not orthogonal; give it without 'orthogonal:' to "
                    "use it as it is.",
                    what, path, init.given.rows(), init.given.cols()));
  }
  return init;
}

TokenStart resolve_start(const std::string& name) {
  constexpr std::string_view text = "text:";
  constexpr std::uint64_t most_bytes = 1u << 28;
  if (name.starts_with(text)) {
    const auto bytes = io::open_bytes(name.substr(text.size()), most_bytes);
    if (bytes->size() > most_bytes)
      throw InputError(fmt::format("--start: '{}' is larger than {} MiB.", name, most_bytes >> 20));
    std::string words(bytes->size(), '\0');
    bytes->read(0, std::as_writable_bytes(std::span(words)));
    return text_start(words);
  }
  if (!looks_like_file(name)) return parse_token_start(name);
  return {TokenStart::Kind::given, read_matrix(name, "--start"), {}};
}

// The published shape, and where its options were left open.
void apply_shape(CollapseCall& call) {
  const auto set = [](std::string& option, const char* value) {
    if (option.empty()) option = value;
  };
  if (call.shape == "bert-base") {
    set(call.dim, "768");
    set(call.heads, "12");
    set(call.init, "bert");
    set(call.start, "bert");
    set(call.eps, "1e-12");
  } else if (!call.shape.empty()) {
    throw InputError(fmt::format("There is no shape '{}'; there is bert-base.", call.shape));
  }
  set(call.dim, "64");
  set(call.heads, "1");
  set(call.init, "gaussian");
  set(call.start, "gaussian");
  set(call.eps, "0");
  set(call.query_key, call.init.c_str());
  set(call.value, call.init.c_str());
  // W_O belongs to several heads; with one it is the identity, as in the papers, unless asked for.
  set(call.output, call.heads == "1" && call.shape.empty() ? "identity" : call.init.c_str());
}

// Without --tokens and mask files: as many as the start has for each sample, at most those of the papers.
std::size_t tokens_of(const CollapseSettings& settings) {
  constexpr std::size_t papers = 128;
  const TokenStart& start = settings.start;
  const std::size_t given = start.kind == TokenStart::Kind::given  ? start.given.rows()
                            : start.kind == TokenStart::Kind::text ? start.words.size()
                                                                   : papers * settings.samples;
  return std::clamp<std::size_t>(given / settings.samples, 1, papers);
}

Plan resolve(CollapseCall call, const Common& common) {
  apply_shape(call);
  Plan plan;
  CollapseSettings& settings = plan.settings;
  settings.layers = parse_count(call.layers, "--layers", 1, 10'000);
  settings.samples = parse_count(call.samples, "--samples", 1, 1'000'000);
  settings.weights.query_key = resolve_matrix(call.query_key, "--query-key");
  settings.weights.value = resolve_matrix(call.value, "--value");
  settings.weights.output = resolve_matrix(call.output, "--output");
  settings.weights.feed_forward = parse_matrix_init(looks_like_file(call.init) ? "gaussian" : call.init);
  settings.weights.normalize = call.weight_norm;
  settings.fresh_weights = call.fresh_weights;
  settings.start = resolve_start(call.start);
  settings.precision = parse_precision(call.precision);
  settings.spectrum = call.no_spectrum ? Spectrum::no : Spectrum::yes;
  settings.seed = common.seed;
  plan.call = call;

  BlockSpec block;
  block.width = parse_count(call.dim, "--dim", 1, 1u << 16);
  block.heads = parse_count(call.heads, "--heads", 1, block.width);
  const std::pair<const char*, const MatrixInit&> given[] = {{"--query-key", settings.weights.query_key},
                                                             {"--value", settings.weights.value},
                                                             {"--output", settings.weights.output}};
  for (const auto& [option, init] : given) {
    if (init.kind != MatrixInit::Kind::given) continue;
    if (init.given.rows() == block.width && init.given.cols() == block.width) continue;
    throw InputError(fmt::format("{}: the matrix is {} x {}, but with --dim {} it must be {} x {}.", option,
                                 init.given.rows(), init.given.cols(), block.width, block.width,
                                 block.width));
  }
  if (settings.start.kind == TokenStart::Kind::given && settings.start.given.cols() != block.width) {
    throw InputError(fmt::format("--start: the tokens of '{}' have {} dimensions; give --dim {}.", call.start,
                                 settings.start.given.cols(), settings.start.given.cols()));
  }
  block.feed_forward = call.feed_forward.empty()
                           ? 4 * block.width
                           : parse_count(call.feed_forward, "--feed-forward", 1, 1u << 18);
  block.normalize_query_key = call.qknorm;
  const auto variants = pieces(call.variants, "--variant"), norms = pieces(call.norms, "--norm"),
             placements = pieces(call.placements, "--placement");
  auto temperatures = numbers(call.temperatures, "--temperature", 1e-30, 1e30);
  if (temperatures.empty()) temperatures = {0};
  const auto dropouts = numbers(call.dropouts, "--dropout", 0, 0.999);
  for (const std::string& mask : call.masks) {
    if (!names_mask_file(mask) && mask.find(',') != std::string::npos && is_list_of_masks(mask)) {
      throw InputError(
          fmt::format("--mask takes masks separated by spaces, since some hold a comma: "
                      "--mask {}.",
                      fmt::join(split(mask, ','), " ")));
    }
    if (std::find(plan.masks.begin(), plan.masks.end(), mask) == plan.masks.end()) plan.masks.push_back(mask);
  }
  const std::size_t count = variants.size() * norms.size() * placements.size() * temperatures.size() *
                            dropouts.size() * plan.masks.size();
  if (count > kMostCases) {
    throw InputError(fmt::format("The options ask for {} cases; at most {} fit one run.", count, kMostCases));
  }
  const std::optional<std::size_t> tokens =
      call.tokens.empty() ? std::nullopt : std::optional(parse_count(call.tokens, "--tokens", 1, 1u << 20));
  const std::vector<Mask> masks = resolve_masks(plan.masks, tokens, tokens_of(settings), common.seed);
  settings.tokens = masks.front().n();
  for (std::size_t m = 0; m < masks.size(); ++m) {
    if (masks[m].n() == settings.tokens) continue;
    throw InputError(fmt::format("--mask: '{}' has {} tokens and '{}' {}; one run has one number of tokens.",
                                 plan.masks[0], settings.tokens, plan.masks[m], masks[m].n()));
  }
  const double eps = parse_non_negative(call.eps, "--eps");
  for (const std::string& variant : variants) {
    // What a variant does not use does not make new cases.
    const bool normed = variant != "san" && variant != "san+skip";
    for (std::size_t n = 0; n < (normed ? norms.size() : 1); ++n) {
      for (std::size_t p = 0; p < (normed ? placements.size() : 1); ++p) {
        for (const double temperature : temperatures) {
          for (const double dropout : dropouts) {
            block.norm = parse_norm(norms[n], norm_names_without_normals());
            block.norm.eps = eps;
            block.placement = parse_placement(placements[p]);
            block.temperature = temperature;
            block.dropout = dropout;
            CollapseCase each;
            each.block = variant_of(variant, block);
            each.group = variant;
            if (normed && norms.size() > 1) each.group += " " + norms[n];
            if (normed && placements.size() > 1) each.group += " " + placements[p];
            if (temperatures.size() > 1) each.group += fmt::format(" d_QK={}", temperature);
            if (dropouts.size() > 1) each.group += fmt::format(" dropout={}", dropout);
            for (std::size_t m = 0; m < masks.size(); ++m) {
              each.name = plan.masks[m];
              each.mask = masks[m];
              plan.cases.push_back(each);
            }
          }
        }
      }
    }
  }
  return plan;
}

Json options_json(const Plan& plan) {
  const BlockSpec& block = plan.cases.front().block;
  std::size_t feed_forward = 0;
  for (const CollapseCase& each : plan.cases) feed_forward = std::max(feed_forward, each.block.feed_forward);
  const CollapseSettings& settings = plan.settings;
  return {{"tokens", settings.tokens},
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
}

const char* name_of_placement(Placement placement) {
  return placement == Placement::post ? "post" : placement == Placement::pre ? "pre" : "sandwich";
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
          {"theorem1", one(theory.theorem1, theory.bound1, theory.violations1)},
          {"theorem2", one(theory.theorem2, theory.bound2, theory.violations2)},
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
            {"layers", curve.rate.layers}}},
          {"measures", measures},
          {"singular_values", curve.singular_values},
          {"least_weight", curve.least_weight},
          {"entropy", curve.entropy},
          {"empty_rows", curve.empty_rows},
          {"undefined_rows", curve.norm.undefined_rows()},
          {"theory", theory_json(curve.theory)}};
}

Json results_json(const Plan& plan, const std::vector<CollapseCurve>& curves, const Provenance& provenance,
                  double seconds) {
  Json results = {{"command", "collapse"}};
  results.update(normscope::to_json(provenance));
  results["seconds"] = seconds;
  results["settings"] = options_json(plan);
  results["verdict"] = collapse_verdict(curves);
  results["curves"] = Json::array();
  for (std::size_t c = 0; c < curves.size(); ++c)
    results["curves"].push_back(curve_json(curves[c], plan.cases[c]));
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

std::string settings_sentence(const Plan& plan) {
  const CollapseCall& call = plan.call;
  return fmt::format("{} x {}, {}, {}, {}; weights {} (query and key {}, value {}, output {}), start {}, {}.",
                     counted(plan.settings.tokens, "token"),
                     counted(plan.cases.front().block.width, "dimension"),
                     counted(plan.cases.front().block.heads, "head"), counted(plan.settings.layers, "layer"),
                     counted(plan.settings.samples, "sample"), call.init, call.query_key, call.value,
                     call.output, call.start, name_of(plan.settings.precision));
}

Page page_of(const Plan& plan, const std::vector<CollapseCurve>& curves, const Provenance& provenance,
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

void run_collapse(const CollapseCall& call, const Common& common) {
  const Plan plan = resolve(call, common);
  const auto directory = common.out.empty() ? nullptr : std::make_unique<RunDirectory>(common.out);
  const Executor executor(common.threads);
  const auto start = std::chrono::steady_clock::now();
  std::vector<CollapseCurve> curves;
  {
    Progress progress(common, "collapse:", "layers");
    curves = collapse(plan.cases, plan.settings, executor,
                      [&](std::size_t done, std::size_t total) { progress.update(done, total); });
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
       "collapse --variant san --query-key zero --value jordan:2 --mask my-mask.txt --tokens 16"});
  auto call = std::make_shared<CollapseCall>();
  const auto option = [&](const char* name, std::string& value, const char* type, const char* description) {
    return command->add_option(name, value, description)->type_name(type);
  };
  const auto list = [&](const char* name, std::vector<std::string>& value, const char* type,
                        const char* description) {
    return command->add_option(name, value, description)->type_name(type);
  };
  list("--variant", call->variants, "NAME…", "san, san+skip, san+norm, san+skip+norm, full [all five]");
  list("--mask", call->masks, "SPEC…",
       "Masks, by name or file, separated by spaces [full causal window:1 onesided:1]");
  list("--norm", call->norms, "NAME…", "Norms, where the variant has one [layernorm]");
  list("--placement", call->placements, "NAME…", "post, pre, sandwich [post]");
  list("--temperature", call->temperatures, "D…",
       "d_QK, of which scores are divided by the root [dim/heads]");
  list("--dropout", call->dropouts, "P…", "Dropout of attention weights and outputs; 0 is eval mode [0]");
  option("--shape", call->shape, "NAME",
         "bert-base: 768 dimensions, 12 heads, BERT's weights and embeddings");
  option("--tokens", call->tokens, "N", "Tokens [128, or those of a mask file or of the start]");
  option("--dim", call->dim, "D", "Dimensions [64]");
  option("--heads", call->heads, "H", "Heads [1]");
  option("--feed-forward", call->feed_forward, "F", "Hidden width of the variant full [4 x dim]");
  option("--layers", call->layers, "L", "Layers")->capture_default_str();
  option("--samples", call->samples, "S", "Starts, all through the same weights")->capture_default_str();
  option("--init", call->init, "INIT",
         "All weights: bert, gaussian, gaussian:S, xavier, orthogonal, identity [gaussian]");
  option("--query-key", call->query_key, "INIT",
         "Query and key weights; zero makes attention uniform [--init]");
  option("--value", call->value, "INIT",
         "Value weights: also jordan:W, FILE, FILE:TENSOR, or orthogonal:FILE [--init]");
  option("--output", call->output, "INIT", "Output weights [--init; identity with one head]");
  option("--start", call->start, "NAME",
         "gaussian, sphere, bert (random embeddings of Zipf words), text:FILE (of its words), or FILE "
         "[gaussian]");
  option("--eps", call->eps, "E", "Of the norms [0; bert-base 1e-12]");
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

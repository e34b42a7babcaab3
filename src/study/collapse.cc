#include "study/collapse.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <span>

#include "core/printable.h"
#include "normscope/error.h"
#include "normscope/tensor_file.h"
#include "normscope/text_windows.h"
#include "study/masks.h"
#include "study/model_text.h"
#include "study/parse.h"

namespace normscope {
namespace {

constexpr std::size_t kMostCases = 400;

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
  if (name.starts_with(text)) return text_start(read_text_file(name.substr(text.size()), "--start"));
  if (!looks_like_file(name)) return parse_token_start(name);
  return {TokenStart::Kind::given, read_matrix(name, "--start"), {}};
}

// The published shape, and where its options were left open.
void apply_shape(CollapseOptions& options) {
  const auto set = [](std::string& option, const std::string& value) {
    if (option.empty()) option = value;
  };
  if (options.shape == "bert-base") {
    options.dim = options.dim.value_or(768);
    options.heads = options.heads.value_or(12);
    set(options.init, "bert");
    set(options.start, "bert");
    options.eps = options.eps.value_or(1e-12);
  } else if (!options.shape.empty()) {
    throw InputError(fmt::format("There is no shape '{}'; there is bert-base.", options.shape));
  }
  options.dim = options.dim.value_or(64);
  options.heads = options.heads.value_or(1);
  set(options.init, "gaussian");
  set(options.start, "gaussian");
  options.eps = options.eps.value_or(0);
  options.layers = options.layers.value_or(12);
  set(options.query_key, options.init);
  set(options.value, options.init);
  // W_O belongs to several heads; with one it is the identity, as in the papers, unless asked for.
  set(options.output, options.heads == 1 && options.shape.empty() ? "identity" : options.init);
}

// Without --tokens and mask files: as many as the start has for each sample, at most those of the papers.
constexpr std::size_t kTokensOfPapers = 128;
std::size_t tokens_of(const CollapseSettings& settings) {
  const TokenStart& start = settings.start;
  const std::size_t given = start.kind == TokenStart::Kind::given  ? start.given.rows()
                            : start.kind == TokenStart::Kind::text ? start.words.size()
                                                                   : kTokensOfPapers * settings.samples;
  return std::clamp<std::size_t>(given / settings.samples, 1, kTokensOfPapers);
}

// What every run has, whatever its weights come from.
CollapseSettings common_settings(const CollapseOptions& options, std::uint64_t seed) {
  CollapseSettings settings;
  settings.samples = options.samples;
  settings.precision = parse_precision(options.precision);
  settings.spectrum = options.no_spectrum ? Spectrum::no : Spectrum::yes;
  settings.seed = seed;
  return settings;
}

// Weights drawn: fills in the settings, and gives the block as wide as asked for, without its norm.
BlockSpec resolve_drawn(CollapseOptions& options, CollapseSettings& settings) {
  for (const auto& [name, given] : {std::pair("--text", !options.text.empty()),
                                    {"--ids", !options.ids.empty()},
                                    {"--stride", options.stride.has_value()}}) {
    if (!given) continue;
    throw InputError(
        fmt::format("{} is for a trained model: normscope collapse MODEL {} … (without a model: --start "
                    "text:FILE).",
                    name, name));
  }
  if (options.init == "pretrained" || options.init == "random" || options.init == "both") {
    throw InputError(
        fmt::format("--init {} needs a model, as in normscope collapse MODEL --text FILE --init {}.",
                    options.init, options.init));
  }
  apply_shape(options);
  settings.layers = *options.layers;
  settings.weights.query_key = resolve_matrix(options.query_key, "--query-key");
  settings.weights.value = resolve_matrix(options.value, "--value");
  settings.weights.output = resolve_matrix(options.output, "--output");
  settings.weights.feed_forward =
      parse_matrix_init(looks_like_file(options.init) ? "gaussian" : options.init);
  settings.weights.normalize = options.weight_norm;
  settings.fresh_weights = options.fresh_weights;
  settings.start = resolve_start(options.start);

  BlockSpec block;
  block.width = *options.dim;
  block.heads = *options.heads;
  if (block.heads > block.width) {
    throw InputError(
        fmt::format("--heads takes a whole number from 1 to {}, not '{}'.", block.width, block.heads));
  }
  const std::pair<const char*, const MatrixInit&> matrices[] = {{"--query-key", settings.weights.query_key},
                                                                {"--value", settings.weights.value},
                                                                {"--output", settings.weights.output}};
  for (const auto& [option, init] : matrices) {
    if (init.kind != MatrixInit::Kind::given) continue;
    if (init.given.rows() == block.width && init.given.cols() == block.width) continue;
    throw InputError(fmt::format("{}: the matrix is {} x {}, but with --dim {} it must be {} x {}.", option,
                                 init.given.rows(), init.given.cols(), block.width, block.width,
                                 block.width));
  }
  if (settings.start.kind == TokenStart::Kind::given && settings.start.given.cols() != block.width) {
    throw InputError(fmt::format("--start: the tokens of '{}' have {} dimensions; give --dim {}.",
                                 options.start, settings.start.given.cols(), settings.start.given.cols()));
  }
  block.feed_forward = options.feed_forward.value_or(4 * block.width);
  block.normalize_query_key = options.qknorm;
  return block;
}

// The masks of the papers, after the model's own.
std::vector<std::string> masks_with(const std::string& own) {
  std::vector<std::string> masks = {own};
  for (const char* mask : {"full", "causal", "window:1", "onesided:1"}) {
    if (mask != own) masks.emplace_back(mask);
  }
  return masks;
}

// Of at most that many tokens: a wider window cuts nothing off.
std::string name_of_own_mask(const ModelSpec& spec, std::size_t tokens) {
  if (!spec.causal) return "full";
  return spec.window == 0 || spec.window >= tokens ? "causal" : fmt::format("onesided:{}", spec.window - 1);
}

std::vector<CollapseModel::Weights> resolve_inits(const std::string& init,
                                                  const std::shared_ptr<const ModelWeights>& weights,
                                                  std::uint64_t seed) {
  std::vector<CollapseModel::Weights> inits;
  if (init == "pretrained" || init == "both") inits.push_back({"pretrained", weights});
  if (init == "random" || init == "both") inits.push_back({"random", random_model(weights->spec(), seed)});
  if (inits.empty()) {
    throw InputError(
        fmt::format("--init: a model is pretrained, random (the same shape before training) or both, not "
                    "'{}'.",
                    init));
  }
  return inits;
}

// Weights and shape of a model: fills in what the options left open, and gives the model's block.
BlockSpec resolve_model(const GivenModel& given, CollapseOptions& options, CollapsePlan& plan,
                        std::uint64_t seed) {
  require_goes_with_model(options);
  if (options.init.empty()) options.init = "pretrained";
  const ModelSpec& spec = given.weights->spec();
  CollapseModel model;
  model.name = given.name;
  model.source = given.source;
  model.family = spec.family;
  model.mask = name_of_own_mask(spec, options.tokens.value_or(kTokensOfPapers));
  model.inits = resolve_inits(options.init, given.weights, seed);
  if (options.layers.value_or(0) > spec.layers) {
    throw InputError(fmt::format("--layers: {} has {} layers, not {}; leave the option out for all of them.",
                                 model.name, spec.layers, *options.layers));
  }
  plan.settings.layers = options.layers.value_or(spec.layers);
  if (options.masks.empty()) options.masks = masks_with(model.mask);
  if (options.norms.empty()) options.norms = {name_of(spec.block.norm)};
  if (options.placements.empty()) options.placements = {name_of(spec.block.placement)};
  options.query_key = options.value = options.output = options.init;
  options.start = "text";
  plan.model = std::move(model);
  BlockSpec block = spec.block;
  block.normalize_query_key = block.normalize_query_key || options.qknorm;
  return block;
}

// How many tokens each sample has if neither an option nor a mask file says so: what the text allows, at most
// those of the papers.
std::size_t tokens_of(const GivenModel& model, const CollapseOptions& options) {
  const ModelSpec& spec = model.weights->spec();
  const std::size_t added = count_added(model.tokens), inner = model.tokens.size() - added;
  std::size_t fits = inner / options.samples;
  if (options.stride) {
    const std::size_t before = (options.samples - 1) * *options.stride;
    fits = inner > before ? inner - before : 1;
  }
  const std::size_t most = spec.positions > 0 ? std::min(kTokensOfPapers, spec.positions) : kTokensOfPapers;
  return std::clamp<std::size_t>(fits + added, 1, most);
}

// Cuts the text into as many windows as there are samples.
void take_windows(const GivenModel& given, const CollapseOptions& options, CollapsePlan& plan) {
  CollapseSettings& settings = plan.settings;
  CollapseModel& model = *plan.model;
  const ModelSpec& spec = given.weights->spec();
  if (spec.positions > 0 && settings.tokens > spec.positions) {
    throw InputError(fmt::format("{} has positions for {} tokens, not for {}; give --tokens {}.", model.name,
                                 spec.positions, settings.tokens, spec.positions));
  }
  const std::size_t added = count_added(given.tokens);
  const std::size_t inner = settings.tokens > added ? settings.tokens - added : 1;
  model.stride = options.stride.value_or(inner);
  const auto windows = text_windows(given.tokens, settings.tokens, model.stride, settings.samples);
  if (windows.size() < settings.samples || windows.front().tokens.size() != settings.tokens) {
    throw InputError(fmt::format(
        "The text of {} has {} tokens; {} sample{} of {} need {}{}. Give more text, fewer --samples or fewer "
        "--tokens.",
        model.source, given.tokens.size(), settings.samples, settings.samples == 1 ? "" : "s",
        settings.tokens, (settings.samples - 1) * model.stride + inner + added,
        added > 0 ? fmt::format(" ({} special ones in each)", added) : ""));
  }
  for (const TextWindow& window : windows) settings.texts.push_back(window.ids());
  settings.model = model.inits.front().weights;
}

// The model's own norm keeps its gain and bias; another one has none.
NormSpec resolve_norm(const std::string& name, const std::optional<double>& eps, const BlockSpec& base,
                      bool of_model) {
  NormSpec norm = parse_norm(name, norm_names_without_normals());
  if (of_model) {
    const bool own = norm.projection == base.norm.projection && norm.scaling == base.norm.scaling;
    if (own) norm = base.norm;
    norm.eps = base.norm.eps;
  }
  if (eps) norm.eps = *eps;
  return norm;
}

std::vector<CollapseCase> cases_of(const CollapsePlan& plan, const BlockSpec& base,
                                   const std::vector<Mask>& masks, const std::vector<double>& temperatures,
                                   const std::vector<double>& dropouts) {
  const CollapseOptions& options = plan.options;
  const auto variants = pieces(options.variants, "--variant"), norms = pieces(options.norms, "--norm"),
             placements = pieces(options.placements, "--placement");
  std::vector<CollapseCase> cases;
  for (const std::string& variant : variants) {
    // What a variant does not use does not make new cases.
    const bool normed = variant != "san" && variant != "san+skip";
    for (std::size_t n = 0; n < (normed ? norms.size() : 1); ++n) {
      for (std::size_t p = 0; p < (normed ? placements.size() : 1); ++p) {
        for (const double temperature : temperatures) {
          for (const double dropout : dropouts) {
            BlockSpec block = base;
            block.norm = resolve_norm(norms[n], options.eps, base, plan.model.has_value());
            if (!(block.norm == base.norm)) block.feed_forward_norm.reset();
            block.placement = parse_placement(placements[p]);
            if (temperature > 0) block.temperature = temperature;
            block.dropout = dropout;
            block.step = options.step_size;
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
              cases.push_back(each);
            }
          }
        }
      }
    }
  }
  return cases;
}

CollapseCurveResult result_of(const CollapseCurve& curve, const CollapseCase& each) {
  CollapseCurveResult result = result_of(curve);
  result.skip = each.block.skip;
  result.norm = name_of(each.block.norm);
  result.placement = name_of(each.block.placement);
  result.feed_forward = each.block.feed_forward;
  result.temperature =
      each.block.temperature > 0 ? each.block.temperature : static_cast<double>(each.block.width_of_head());
  result.dropout = each.block.dropout;
  return result;
}

// What was asked for twice is told apart by a number.
void name_apart(std::vector<CollapseCurveResult>& curves) {
  std::map<std::string, std::size_t> seen;
  for (CollapseCurveResult& curve : curves)
    if (const std::size_t times = ++seen[curve.name]; times > 1) curve.name += fmt::format(" ({})", times);
}

// All cases; of a model with each of its inits, which then stand before the names of the panels.
std::vector<CollapseCurve> curves_of(const CollapsePlan& plan, const Context& context) {
  const auto run = [&](const CollapseSettings& settings, std::size_t which, std::size_t of) {
    return collapse(plan.cases, settings, context.executor,
                    [&, which, of](std::size_t done, std::size_t total) {
                      if (context.progress) context.progress(which * total + done, of * total);
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

}  // namespace

void require_goes_with_model(const CollapseOptions& options) {
  const std::pair<const char*, bool> given_ones[] = {
      {"--shape", !options.shape.empty()},         {"--dim", options.dim.has_value()},
      {"--heads", options.heads.has_value()},      {"--feed-forward", options.feed_forward.has_value()},
      {"--query-key", !options.query_key.empty()}, {"--value", !options.value.empty()},
      {"--output", !options.output.empty()},       {"--start", !options.start.empty()},
      {"--weight-norm", options.weight_norm},      {"--fresh-weights", options.fresh_weights}};
  for (const auto& [name, given] : given_ones) {
    if (!given) continue;
    throw InputError(fmt::format(
        "{} does not go with a model, whose shape, weights and tokens are its own; leave out one of the two.",
        name));
  }
}

std::optional<GivenModel> read_collapse_model(const std::string& name, const CollapseOptions& options) {
  if (name.empty()) return std::nullopt;
  require_goes_with_model(options);
  const Checkpoint checkpoint = open_checkpoint(name);
  ModelText text =
      read_model_text(checkpoint, TextOptions{name, options.text, options.ids, {}, {}, 1, options.held});
  return GivenModel{label_of_source(name), text.source, checkpoint.weights, std::move(text.tokens)};
}

CollapsePlan plan_collapse(CollapseOptions options, const std::optional<GivenModel>& model,
                           std::uint64_t seed) {
  check_options(options);
  CollapsePlan plan;
  CollapseSettings& settings = plan.settings;
  settings = common_settings(options, seed);
  const BlockSpec base =
      model ? resolve_model(*model, options, plan, seed) : resolve_drawn(options, settings);
  if (!(options.step_size > 0))
    throw InputError(
        "--step-size is above 0: with steps of 0 no time goes on, and tokens stay where they are.");
  if (options.variants.empty()) options.variants.assign(variant_names().begin(), variant_names().end());
  if (options.dropouts.empty()) options.dropouts = {"0"};
  if (options.masks.empty()) options.masks = {"full", "causal", "window:1", "onesided:1"};
  if (options.norms.empty()) options.norms = {"layernorm"};
  if (options.placements.empty()) options.placements = {"post"};
  plan.options = options;
  auto temperatures = numbers(options.temperatures, "--temperature", 1e-30, 1e30);
  if (temperatures.empty()) temperatures = {0};
  const auto dropouts = numbers(options.dropouts, "--dropout", 0, 0.999);
  for (const std::string& mask : options.masks) {
    if (!names_mask_file(mask) && mask.find(',') != std::string::npos && is_list_of_masks(mask)) {
      throw InputError(
          fmt::format("--mask takes masks separated by spaces, since some hold a comma: "
                      "--mask {}.",
                      fmt::join(split(mask, ','), " ")));
    }
    if (std::find(plan.masks.begin(), plan.masks.end(), mask) == plan.masks.end()) plan.masks.push_back(mask);
  }
  const std::size_t count = pieces(options.variants, "--variant").size() *
                            pieces(options.norms, "--norm").size() *
                            pieces(options.placements, "--placement").size() * temperatures.size() *
                            dropouts.size() * plan.masks.size();
  if (count > kMostCases) {
    throw InputError(fmt::format("The options ask for {} cases; at most {} fit one run.", count, kMostCases));
  }
  const std::size_t otherwise = model ? tokens_of(*model, options) : tokens_of(settings);
  const std::vector<Mask> masks = resolve_masks(plan.masks, options.tokens, otherwise, seed);
  settings.tokens = masks.front().n();
  for (std::size_t m = 0; m < masks.size(); ++m) {
    if (masks[m].n() == settings.tokens) continue;
    throw InputError(fmt::format("--mask: '{}' has {} tokens and '{}' {}; one run has one number of tokens.",
                                 plan.masks[0], settings.tokens, plan.masks[m], masks[m].n()));
  }
  if (model) take_windows(*model, options, plan);
  plan.cases = cases_of(plan, base, masks, temperatures, dropouts);
  return plan;
}

CollapseUsed used_by(const CollapsePlan& plan) {
  const BlockSpec& block = plan.cases.front().block;
  const CollapseSettings& settings = plan.settings;
  const CollapseOptions& options = plan.options;
  CollapseUsed used;
  used.tokens = settings.tokens;
  used.dim = block.width;
  used.heads = block.heads;
  for (const CollapseCase& each : plan.cases)
    used.feed_forward = std::max(used.feed_forward, each.block.feed_forward);
  used.layers = settings.layers;
  used.samples = settings.samples;
  used.variants = options.variants;
  used.masks = plan.masks;
  used.norms = options.norms;
  used.placements = options.placements;
  used.temperatures = options.temperatures;
  used.dropouts = options.dropouts;
  used.init = options.init;
  used.query_key = options.query_key;
  used.value = options.value;
  used.output = options.output;
  used.weight_norm = settings.weights.normalize;
  used.fresh_weights = settings.fresh_weights;
  used.qknorm = block.normalize_query_key;
  used.start = options.start;
  used.precision = settings.precision;
  used.spectrum = settings.spectrum == Spectrum::yes;
  used.eps = block.norm.eps;
  used.step_size = options.step_size;
  if (!plan.model) return used;
  used.eps = 0;
  for (const CollapseCase& each : plan.cases) used.eps = std::max(used.eps, each.block.norm.eps);
  used.model = plan.model->name;
  used.family = plan.model->family;
  used.own_mask = plan.model->mask;
  used.text = plan.model->source;
  used.stride = plan.model->stride;
  return used;
}

CollapseStudy study_collapse(CollapsePlan plan, const Context& context) {
  CollapseStudy study;
  CollapseResult& result = study.result;
  const auto start = std::chrono::steady_clock::now();
  study.curves = curves_of(plan, context);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.made = provenance(context.seed, context.executor.threads());
  result.settings = used_by(plan);
  result.verdict = collapse_verdict(study.curves);
  for (std::size_t c = 0; c < study.curves.size(); ++c)
    result.curves.push_back(result_of(study.curves[c], plan.case_of_curve(c)));
  name_apart(result.curves);
  study.plan = std::move(plan);
  return study;
}

CollapseStudy study_collapse(const CollapseOptions& options, const Context& context) {
  return study_collapse(plan_collapse(options, std::nullopt, context.seed), context);
}

}  // namespace normscope

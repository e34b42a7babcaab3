#include "cli/collapse_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "normscope/error.h"
#include "normscope/tensor_file.h"
#include "study/masks.h"

namespace normscope::cli {
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
  set(call.layers, "12");
  set(call.query_key, call.init.c_str());
  set(call.value, call.init.c_str());
  // W_O belongs to several heads; with one it is the identity, as in the papers, unless asked for.
  set(call.output, call.heads == "1" && call.shape.empty() ? "identity" : call.init.c_str());
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
CollapseSettings common_settings(const CollapseCall& call, const Common& common) {
  CollapseSettings settings;
  settings.samples = parse_count(call.samples, "--samples", 1, 1'000'000);
  settings.precision = parse_precision(call.precision);
  settings.spectrum = call.no_spectrum ? Spectrum::no : Spectrum::yes;
  settings.seed = common.seed;
  return settings;
}

// Weights drawn: fills in the settings, and gives the block as wide as asked for, without its norm.
BlockSpec resolve_drawn(CollapseCall& call, CollapseSettings& settings) {
  for (const auto& [name, given] :
       {std::pair("--text", &call.text), {"--ids", &call.ids}, {"--stride", &call.stride}}) {
    if (given->empty()) continue;
    throw InputError(
        fmt::format("{} is for a trained model: normscope collapse MODEL {} … (without a model: --start "
                    "text:FILE).",
                    name, name));
  }
  if (call.init == "pretrained" || call.init == "random" || call.init == "both") {
    throw InputError(
        fmt::format("--init {} needs a model, as in normscope collapse MODEL --text FILE --init {}.",
                    call.init, call.init));
  }
  apply_shape(call);
  settings.layers = parse_count(call.layers, "--layers", 1, 10'000);
  settings.weights.query_key = resolve_matrix(call.query_key, "--query-key");
  settings.weights.value = resolve_matrix(call.value, "--value");
  settings.weights.output = resolve_matrix(call.output, "--output");
  settings.weights.feed_forward = parse_matrix_init(looks_like_file(call.init) ? "gaussian" : call.init);
  settings.weights.normalize = call.weight_norm;
  settings.fresh_weights = call.fresh_weights;
  settings.start = resolve_start(call.start);

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
  return block;
}

void refuse_with_model(const CollapseCall& call) {
  const std::pair<const char*, bool> options[] = {
      {"--shape", !call.shape.empty()},         {"--dim", !call.dim.empty()},
      {"--heads", !call.heads.empty()},         {"--feed-forward", !call.feed_forward.empty()},
      {"--query-key", !call.query_key.empty()}, {"--value", !call.value.empty()},
      {"--output", !call.output.empty()},       {"--start", !call.start.empty()},
      {"--weight-norm", call.weight_norm},      {"--fresh-weights", call.fresh_weights}};
  for (const auto& [name, given] : options) {
    if (!given) continue;
    throw InputError(fmt::format(
        "{} does not go with a model, whose shape, weights and tokens are its own; leave out one of the two.",
        name));
  }
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

// Weights and shape of a model: fills in what the call left open, and gives the model's block.
BlockSpec resolve_model(CollapseCall& call, CollapsePlan& plan, std::uint64_t seed) {
  refuse_with_model(call);
  if (call.init.empty()) call.init = "pretrained";
  const Checkpoint checkpoint = open_checkpoint(call.model);
  const ModelSpec& spec = checkpoint.weights->spec();
  CollapseModel model;
  model.name = label_of_source(call.model);
  model.family = spec.family;
  model.mask = name_of_own_mask(
      spec, call.tokens.empty() ? kTokensOfPapers : parse_count(call.tokens, "--tokens", 1, 1u << 20));
  model.inits = resolve_inits(call.init, checkpoint.weights, seed);
  if (!call.layers.empty() && parse_count(call.layers, "--layers", 1, 10'000) > spec.layers) {
    throw InputError(fmt::format("--layers: {} has {} layers, not {}; leave the option out for all of them.",
                                 model.name, spec.layers, call.layers));
  }
  plan.settings.layers = call.layers.empty() ? spec.layers : parse_count(call.layers, "--layers", 1, 10'000);
  model.text = read_model_text(checkpoint, {call.model, call.text, call.ids, "", "", ""});
  if (call.masks.empty()) call.masks = masks_with(model.mask);
  if (call.norms.empty()) call.norms = {name_of(spec.block.norm)};
  if (call.placements.empty()) call.placements = {name_of_placement(spec.block.placement)};
  call.query_key = call.value = call.output = call.init;
  call.start = "text";
  plan.model = std::move(model);
  BlockSpec block = spec.block;
  block.normalize_query_key = block.normalize_query_key || call.qknorm;
  return block;
}

// How many tokens each sample has if neither an option nor a mask file says so: what the text allows, at most
// those of the papers.
std::size_t tokens_of(const CollapseModel& model, const CollapseCall& call, std::size_t samples) {
  const ModelSpec& spec = model.inits.front().weights->spec();
  const std::size_t added = count_added(model.text.tokens), inner = model.text.tokens.size() - added;
  std::size_t fits = inner / samples;
  if (!call.stride.empty()) {
    const std::size_t before = (samples - 1) * parse_count(call.stride, "--stride", 1, Mask::most_tokens);
    fits = inner > before ? inner - before : 1;
  }
  const std::size_t most = spec.positions > 0 ? std::min(kTokensOfPapers, spec.positions) : kTokensOfPapers;
  return std::clamp<std::size_t>(fits + added, 1, most);
}

// Cuts the text into as many windows as there are samples.
void take_windows(const CollapseCall& call, CollapsePlan& plan) {
  CollapseSettings& settings = plan.settings;
  CollapseModel& model = *plan.model;
  const ModelSpec& spec = model.inits.front().weights->spec();
  if (spec.positions > 0 && settings.tokens > spec.positions) {
    throw InputError(fmt::format("{} has positions for {} tokens, not for {}; give --tokens {}.", model.name,
                                 spec.positions, settings.tokens, spec.positions));
  }
  const std::size_t added = count_added(model.text.tokens);
  const std::size_t inner = settings.tokens > added ? settings.tokens - added : 1;
  model.text.window = settings.tokens;
  model.text.stride =
      call.stride.empty() ? inner : parse_count(call.stride, "--stride", 1, Mask::most_tokens);
  model.text.windows = text_windows(model.text.tokens, settings.tokens, model.text.stride, settings.samples);
  if (model.text.windows.size() < settings.samples ||
      model.text.windows.front().tokens.size() != settings.tokens) {
    throw InputError(fmt::format(
        "The text of {} has {} tokens; {} sample{} of {} need {}{}. Give more text, fewer --samples or fewer "
        "--tokens.",
        model.text.source, model.text.tokens.size(), settings.samples, settings.samples == 1 ? "" : "s",
        settings.tokens, (settings.samples - 1) * model.text.stride + inner + added,
        added > 0 ? fmt::format(" ({} special ones in each)", added) : ""));
  }
  settings.texts = model.text.ids();
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
  const CollapseCall& call = plan.call;
  const auto variants = pieces(call.variants, "--variant"), norms = pieces(call.norms, "--norm"),
             placements = pieces(call.placements, "--placement");
  const std::optional<double> eps =
      call.eps.empty() ? std::nullopt : std::optional(parse_non_negative(call.eps, "--eps"));
  std::vector<CollapseCase> cases;
  for (const std::string& variant : variants) {
    // What a variant does not use does not make new cases.
    const bool normed = variant != "san" && variant != "san+skip";
    for (std::size_t n = 0; n < (normed ? norms.size() : 1); ++n) {
      for (std::size_t p = 0; p < (normed ? placements.size() : 1); ++p) {
        for (const double temperature : temperatures) {
          for (const double dropout : dropouts) {
            BlockSpec block = base;
            block.norm = resolve_norm(norms[n], eps, base, plan.model.has_value());
            if (!(block.norm == base.norm)) block.feed_forward_norm.reset();
            block.placement = parse_placement(placements[p]);
            if (temperature > 0) block.temperature = temperature;
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
              cases.push_back(each);
            }
          }
        }
      }
    }
  }
  return cases;
}

}  // namespace

const char* name_of_placement(Placement placement) {
  return placement == Placement::post ? "post" : placement == Placement::pre ? "pre" : "sandwich";
}

CollapsePlan resolve_collapse(CollapseCall call, const Common& common) {
  CollapsePlan plan;
  CollapseSettings& settings = plan.settings;
  settings = common_settings(call, common);
  const BlockSpec base =
      call.model.empty() ? resolve_drawn(call, settings) : resolve_model(call, plan, common.seed);
  if (call.masks.empty()) call.masks = {"full", "causal", "window:1", "onesided:1"};
  if (call.norms.empty()) call.norms = {"layernorm"};
  if (call.placements.empty()) call.placements = {"post"};
  plan.call = call;
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
  const std::size_t count = pieces(call.variants, "--variant").size() * pieces(call.norms, "--norm").size() *
                            pieces(call.placements, "--placement").size() * temperatures.size() *
                            dropouts.size() * plan.masks.size();
  if (count > kMostCases) {
    throw InputError(fmt::format("The options ask for {} cases; at most {} fit one run.", count, kMostCases));
  }
  const std::optional<std::size_t> tokens =
      call.tokens.empty() ? std::nullopt : std::optional(parse_count(call.tokens, "--tokens", 1, 1u << 20));
  const std::size_t otherwise =
      plan.model ? tokens_of(*plan.model, call, settings.samples) : tokens_of(settings);
  const std::vector<Mask> masks = resolve_masks(plan.masks, tokens, otherwise, common.seed);
  settings.tokens = masks.front().n();
  for (std::size_t m = 0; m < masks.size(); ++m) {
    if (masks[m].n() == settings.tokens) continue;
    throw InputError(fmt::format("--mask: '{}' has {} tokens and '{}' {}; one run has one number of tokens.",
                                 plan.masks[0], settings.tokens, plan.masks[m], masks[m].n()));
  }
  if (plan.model) take_windows(call, plan);
  plan.cases = cases_of(plan, base, masks, temperatures, dropouts);
  return plan;
}

}  // namespace normscope::cli

#include "study/ablate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/number_text.h"
#include "core/printable.h"
#include "normscope/error.h"
#include "study/parse.h"

namespace normscope {
namespace {

std::vector<NormChange> parse_changes(const AblateOptions& options) {
  std::vector<NormChange> changes;
  const auto add = [&](const NormChange& change) {
    const bool known = std::any_of(changes.begin(), changes.end(), [&](const NormChange& other) {
      return name_of(other) == name_of(change);
    });
    if (!known) changes.push_back(change);
  };
  for (const std::string& each : options.norms) {
    for (const std::string_view name : split(each, ',')) {
      const NormSpec norm = parse_norm(name, norm_names_without_normals());
      if (norm.projection == Projection::normals) {
        throw InputError(fmt::format(
            "--norm {}: its normals would have to be learned; a trained model has none.", printable(name)));
      }
      add({norm, options.drop_affine, false});
      if (options.rescale) add({norm, options.drop_affine, true});
    }
  }
  return changes;
}

// Special tokens that the tokenizer puts at either end: they stand there in every prompt too.
void take_special_tokens(const ModelText& text, AblateSettings& settings) {
  const std::vector<Token>& tokens = text.tokens;
  const auto word = [](const Token& token) { return !token.special; };
  const auto first = std::find_if(tokens.begin(), tokens.end(), word);
  const auto last = std::find_if(tokens.rbegin(), tokens.rend(), word).base();
  for (auto token = tokens.begin(); token != first; ++token) settings.before.push_back(token->id);
  for (auto token = std::max(first, last); token != tokens.end(); ++token)
    settings.after.push_back(token->id);
  for (const Token& token : tokens) {
    if (token.special &&
        std::find(settings.special.begin(), settings.special.end(), token.id) == settings.special.end())
      settings.special.push_back(token.id);
  }
}

// Of encoders: what hides a token.
void take_mask_token(const Checkpoint& checkpoint, std::optional<std::uint32_t> given,
                     AblateSettings& settings) {
  const ModelSpec& spec = checkpoint.weights->spec();
  if (given) {
    if (spec.causal) throw InputError("--mask-token is for encoders; this model predicts the next token.");
    require_count(*given, "--mask-token", 0, spec.vocabulary - 1);
    settings.mask_token = given;
    return;
  }
  if (!checkpoint.tokenizer || spec.causal) return;
  for (const char* name : {"[MASK]", "<mask>"}) {
    const auto id = checkpoint.tokenizer->id(name);
    if (id && *id < spec.vocabulary) settings.mask_token = id;
  }
}

void take_probe_tokens(const ModelText& text, std::size_t vocabulary, AblateSettings& settings) {
  std::vector<std::uint32_t>& tokens = settings.probe_tokens;
  for (const Token& token : text.tokens) tokens.push_back(token.id);
  if (tokens.size() <= vocabulary) return;
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
}

AblateResult::Settings told(const AblatePlan& plan, const AblateOptions& options) {
  AblateResult::Settings result;
  result.text = text_settings(options.text, plan.text);
  for (const NormChange& change : plan.settings.changes) result.norms.push_back(name_of(change));
  result.layers = plan.settings.layers;
  result.mask_token = plan.settings.mask_token;
  result.drop_affine = options.drop_affine;
  result.rescale = options.rescale;
  result.prompts = plan.settings.prompts;
  result.probe_length = plan.settings.probe_length;
  result.tolerated = plan.settings.tolerated;
  result.probe_tokens = options.probe_tokens;
  return result;
}

ProbeResult result_of(const ProbeScores& scores) {
  ProbeResult result;
  result.loss = mean_interval(scores.loss);
  result.accuracy = mean_interval(scores.accuracy);
  result.choice = mean_interval(scores.choice);
  result.chance = scores.chance;
  return result;
}

std::optional<RetrievalProbeResult> probe_of(const AblateRow& row) {
  RetrievalProbeResult probe;
  if (!row.copy.loss.empty()) {
    probe.copy = result_of(row.copy);
    if (!row.first_loss.empty()) {
      probe.copy->first_loss = mean_interval(row.first_loss);
      probe.copy->gain = mean_interval(row.copy_gain());
    }
    probe.lookup = result_of(row.lookup);
  }
  if (!row.finds.share.empty())
    probe.finds = {row.finds.layer, row.finds.head, mean_interval(row.finds.share),
                   mean_interval(row.finds.weight), row.finds.chance};
  if (!probe.copy && !probe.finds) return std::nullopt;
  return probe;
}

AblateRowResult result_of(const Ablation& ablation, std::size_t r) {
  const AblateRow& row = ablation.rows[r];
  AblateRowResult result;
  result.name = row.name;
  if (row.change) result.norm = name_of(row.change->norm);
  result.failure = row.failure;
  if (!row.failure.empty()) return result;
  if (!row.losses.empty()) {
    result.loss = mean_interval(row.losses);
    result.losses = row.losses;
    result.loss_change = mean_difference(ablation.rows.front().losses, row.losses);
  }
  result.layers.emplace();
  for (std::size_t layer = 0; layer < row.windows.front().size(); ++layer) {
    AblateLayerResult& each = result.layers->emplace_back();
    each.layer = layer;
    each.change = row.mean(&LayerEffect::change, layer);
    each.cosine = row.mean(&LayerEffect::cosine, layer);
    each.entropy = row.mean(&LayerEffect::entropy, layer);
    each.largest_weight = row.mean(&LayerEffect::largest_weight, layer);
    each.norm = row.mean(&LayerEffect::norm, layer);
    if (!row.rescale.empty()) each.constant = row.rescale[layer];
  }
  result.probe = probe_of(row);
  if (r > 0) result.retrieval = retrieval_changes(ablation, r);
  return result;
}

std::string range_of(const std::vector<std::size_t>& layers, std::size_t count) {
  if (layers.size() == count) return "all layers";
  return fmt::format("layer{} {}", layers.size() == 1 ? "" : "s", fmt::join(layers, ", "));
}

const char* over_windows(std::size_t windows) {
  return windows == 1   ? "one window has no interval"
         : windows == 2 ? "of two windows both values are shown"
                        : "mean ± 95 % interval over windows";
}

// What was done, what the loss and the probe are, and what to know.
std::vector<std::string> sentences_of(const AblatePlan& plan, const Ablation& ablation) {
  const ModelOnText& about = plan.about;
  const ModelSpec& spec = plan.checkpoint.weights->spec();
  std::vector<std::string> sentences;
  const NormSpec& norm = ablation.trained.front();
  const bool drops = ablation.rows.back().change && ablation.rows.back().change->drop_affine;
  sentences.push_back(fmt::format(
      "{} ({}, {} of {}, width {}) on {}: {}, {}. Its norm in front of attention is {}; replaced in {}{}.",
      about.model, about.family, counted(about.layers, "layer"), counted(about.heads, "head"), about.width,
      about.text, counted(about.windows, "window"), counted(about.tokens, "token"), name_of(norm),
      range_of(ablation.layers, about.layers),
      !norm.affine ? ""
      : drops      ? ", learned gain and bias dropped"
                   : ", learned gain and bias kept"));
  if (spec.block.placement == Placement::post) {
    sentences.emplace_back(
        "Norms come after a block here: the one in front of attention is the last of the layer before (of "
        "the embeddings, for layer 0), and the skip path takes what it leaves too.");
  }
  const bool rescaled = std::any_of(ablation.rows.begin(), ablation.rows.end(),
                                    [](const AblateRow& row) { return !row.rescale.empty(); });
  if (rescaled) {
    sentences.emplace_back(
        "Rescaled: one constant per layer gives what enters attention the mean norm (before the bias) that "
        "it has on this text as trained.");
  }
  if (ablation.loss != Ablation::Loss::none) {
    sentences.push_back(
        fmt::format("Loss: of {}, in nats; {}.",
                    ablation.loss == Ablation::Loss::next_token
                        ? "next tokens"
                        : "the 15 % of tokens that are hidden by the mask token, the same in every row",
                    over_windows(about.windows)));
  }
  if (ablation.probe_length > 0) {
    const bool asks = !ablation.rows.front().copy.choice.empty();
    sentences.push_back(fmt::format(
        "Probe: {} of each kind, up to {} random tokens {}, twice.{} Head finds: the share of tokens "
        "of the second copy from which the best head (layer.head, its own in every row) looks most, itself "
        "apart, at {}; chance {}.",
        counted(plan.settings.prompts, "prompt"), ablation.probe_length,
        ablation.probe_from_vocabulary ? "of the vocabulary" : "of the text",
        asks ? fmt::format(
                   "{} Copy and lookup: the right token leads those of the prompt; chance {} and {}.",
                   spec.causal ? " Copy gain: loss of first copies less that of second ones, in nats." : "",
                   percent(ablation.rows.front().copy.chance, 1),
                   percent(ablation.rows.front().lookup.chance, 1))
             : "",
        spec.causal ? "the token after its earlier copy" : "its earlier copy",
        percent(ablation.rows.front().finds.chance, 1)));
  }
  for (const AblateRow& row : ablation.rows) {
    if (!row.failure.empty()) sentences.push_back(fmt::format("{}: {}", row.name, row.failure));
  }
  for (const auto* notes : {&ablation.notes, &about.notes}) {
    sentences.insert(sentences.end(), notes->begin(), notes->end());
  }
  return sentences;
}

}  // namespace

AblatePlan plan_ablate(const AblateOptions& options, const Context& context) {
  check_options(options);
  AblatePlan plan;
  AblateSettings& settings = plan.settings;
  settings.changes = parse_changes(options);
  settings.prompts = options.prompts;
  settings.probe_length = options.probe_length;
  settings.tolerated = options.tolerated;
  settings.seed = context.seed;
  plan.checkpoint = open_checkpoint(options.text.model);
  const ModelSpec& spec = plan.checkpoint.weights->spec();
  if (!options.layers.empty())
    settings.layers = parse_range(options.layers, "--layers", 0, spec.layers - 1, spec.layers);
  plan.text = read_model_text(plan.checkpoint, options.text);
  plan.about = model_on_text(plan.checkpoint, options.text, plan.text);
  take_special_tokens(plan.text, settings);
  take_mask_token(plan.checkpoint, options.mask_token, settings);
  if (options.probe_tokens == ProbeTokens::text) take_probe_tokens(plan.text, spec.vocabulary, settings);
  plan.told = told(plan, options);
  return plan;
}

AblateStudy run_ablate(const AblatePlan& plan, const Context& context) {
  AblateStudy study;
  const auto start = std::chrono::steady_clock::now();
  study.ablation =
      ablate(*plan.checkpoint.weights, plan.text.ids(), plan.settings, context.executor, context.progress);
  const Ablation& ablation = study.ablation;
  AblateResult& result = study.result;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.made = provenance(context.seed, context.executor.threads());
  result.settings = plan.told;
  result.family = plan.about.family;
  result.norm = name_of(ablation.trained.front());
  result.changed_layers = ablation.layers;
  result.measured_loss = ablation.loss;
  result.notes = sentences_of(plan, ablation);
  for (std::size_t r = 0; r < ablation.rows.size(); ++r) result.rows.push_back(result_of(ablation, r));
  result.verdict = ablate_verdict(result);
  return study;
}

AblateStudy study_ablate(const AblateOptions& options, const Context& context) {
  return run_ablate(plan_ablate(options, context), context);
}

}  // namespace normscope

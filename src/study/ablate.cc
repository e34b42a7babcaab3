#include "study/ablate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

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

AblateRowResult result_of(const AblateRun& run, std::size_t r) {
  const Ablation& ablation = run.ablation;
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
  for (std::size_t layer = 0; layer < run.layers; ++layer) {
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

}  // namespace

AblatePlan plan_ablate(const AblateOptions& options, const Context& context) {
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
  const ModelSpec& spec = plan.checkpoint.weights->spec();
  AblateStudy study;
  AblateRun& run = study.run;
  static_cast<ModelOnText&>(run) = plan.about;
  run.prompts = plan.settings.prompts;
  run.causal = spec.causal;
  run.post = spec.block.placement == Placement::post;
  const auto start = std::chrono::steady_clock::now();
  run.ablation =
      ablate(*plan.checkpoint.weights, plan.text.ids(), plan.settings, context.executor, context.progress);
  AblateResult& result = study.result;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.made = provenance(context.seed, context.executor.threads());
  result.settings = plan.told;
  result.family = run.family;
  result.norm = name_of(run.ablation.trained.front());
  result.changed_layers = run.ablation.layers;
  result.measured_loss = run.ablation.loss;
  result.verdict = ablate_verdict(run);
  result.notes = ablate_sentences(run);
  for (std::size_t r = 0; r < run.ablation.rows.size(); ++r) result.rows.push_back(result_of(run, r));
  return study;
}

AblateStudy study_ablate(const AblateOptions& options, const Context& context) {
  return run_ablate(plan_ablate(options, context), context);
}

}  // namespace normscope

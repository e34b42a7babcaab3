// normscope ablate: a trained model with another norm, or none, in front of attention.
#include "normscope/ablate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/common.h"
#include "cli/model_text.h"
#include "normscope/error.h"
#include "record/json.h"
#include "report/ablate_page.h"

namespace normscope::cli {
namespace {

using Json = nlohmann::ordered_json;

struct AblateCall {
  TextCall text;
  std::vector<std::string> norms = {"none", "center", "rmsnorm", "layernorm"};
  std::string layers, mask_token, prompts = "32", length = "32", tolerated = "0.1", probe_tokens = "text";
  bool drop_affine = false, rescale = false;
};

struct Plan {
  Checkpoint checkpoint;
  ModelText text;
  AblateSettings settings;
};

std::vector<NormChange> parse_changes(const AblateCall& call) {
  std::vector<NormChange> changes;
  const auto add = [&](const NormChange& change) {
    const bool known = std::any_of(changes.begin(), changes.end(), [&](const NormChange& other) {
      return name_of(other) == name_of(change);
    });
    if (!known) changes.push_back(change);
  };
  for (const std::string& each : call.norms) {
    for (const std::string_view name : split(each, ',')) {
      const NormSpec norm = parse_norm(name, norm_names_without_normals());
      if (norm.projection == Projection::normals) {
        throw InputError(fmt::format(
            "--norm {}: its normals would have to be learned; a trained model has none.", printable(name)));
      }
      add({norm, call.drop_affine, false});
      if (call.rescale) add({norm, call.drop_affine, true});
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
void take_mask_token(const Checkpoint& checkpoint, const std::string& given, AblateSettings& settings) {
  const ModelSpec& spec = checkpoint.weights->spec();
  if (!given.empty()) {
    if (spec.causal) throw InputError("--mask-token is for encoders; this model predicts the next token.");
    settings.mask_token =
        static_cast<std::uint32_t>(parse_count(given, "--mask-token", 0, spec.vocabulary - 1));
    return;
  }
  if (!checkpoint.tokenizer || spec.causal) return;
  for (const char* name : {"[MASK]", "<mask>"}) {
    const auto id = checkpoint.tokenizer->id(name);
    if (id && *id < spec.vocabulary) settings.mask_token = id;
  }
}

Plan resolve(const AblateCall& call, const Common& common) {
  Plan plan;
  AblateSettings& settings = plan.settings;
  settings.changes = parse_changes(call);
  settings.prompts = parse_count(call.prompts, "--prompts", 0, 100'000);
  settings.probe_length = parse_count(call.length, "--probe-length", 4, 4096);
  settings.tolerated = parse_number(call.tolerated, "--tolerated", 1e-6, 1);
  settings.seed = common.seed;
  if (call.probe_tokens != "text" && call.probe_tokens != "vocabulary") {
    throw InputError(
        fmt::format("--probe-tokens {}: there are text (tokens of the text) and vocabulary (all).",
                    printable(call.probe_tokens)));
  }
  plan.checkpoint = open_checkpoint(call.text.model);
  const ModelSpec& spec = plan.checkpoint.weights->spec();
  if (!call.layers.empty())
    settings.layers = parse_range(call.layers, "--layers", 0, spec.layers - 1, spec.layers);
  plan.text = read_model_text(plan.checkpoint, call.text);
  take_special_tokens(plan.text, settings);
  take_mask_token(plan.checkpoint, call.mask_token, settings);
  if (call.probe_tokens == "text") {
    for (const Token& token : plan.text.tokens) settings.probe_tokens.push_back(token.id);
    if (settings.probe_tokens.size() > spec.vocabulary) {
      std::sort(settings.probe_tokens.begin(), settings.probe_tokens.end());
      settings.probe_tokens.erase(std::unique(settings.probe_tokens.begin(), settings.probe_tokens.end()),
                                  settings.probe_tokens.end());
    }
  }
  return plan;
}

AblateRun run_of(const Plan& plan, const AblateCall& call, Ablation ablation) {
  const ModelSpec& spec = plan.checkpoint.weights->spec();
  AblateRun run{describe(plan.checkpoint, call.text, plan.text), 0, false, false, {}};
  run.prompts = plan.settings.prompts;
  run.causal = spec.causal;
  run.post = spec.block.placement == Placement::post;
  run.ablation = std::move(ablation);
  return run;
}

Json options_json(const Plan& plan, const AblateCall& call) {
  Json norms = Json::array();
  for (const NormChange& change : plan.settings.changes) norms.push_back(name_of(change));
  Json options = text_options(call.text, plan.text);
  options.update(
      Json{{"norms", norms},
           {"layers", plan.settings.layers},
           {"mask_token", plan.settings.mask_token ? Json(*plan.settings.mask_token) : Json(nullptr)},
           {"drop_affine", call.drop_affine},
           {"rescale", call.rescale},
           {"prompts", plan.settings.prompts},
           {"probe_length", plan.settings.probe_length},
           {"tolerated", plan.settings.tolerated},
           {"probe_tokens", call.probe_tokens}});
  return options;
}

Json interval_json(const Interval& interval) {
  return {{"count", interval.count},
          {"mean", number_or_null(interval.mean)},
          {"low", number_or_null(interval.low)},
          {"high", number_or_null(interval.high)}};
}

Json scores_json(const ProbeScores& scores) {
  return {{"loss", interval_json(mean_interval(scores.loss))},
          {"accuracy", interval_json(mean_interval(scores.accuracy))},
          {"choice", interval_json(mean_interval(scores.choice))},
          {"chance", scores.chance}};
}

Json layers_json(const AblateRow& row, std::size_t layers) {
  Json list = Json::array();
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const auto mean = [&](double LayerEffect::*effect) { return interval_json(row.mean(effect, layer)); };
    Json json = {{"layer", layer},
                 {"change", mean(&LayerEffect::change)},
                 {"cosine", mean(&LayerEffect::cosine)},
                 {"entropy", mean(&LayerEffect::entropy)},
                 {"largest_weight", mean(&LayerEffect::largest_weight)},
                 {"norm", mean(&LayerEffect::norm)}};
    if (!row.rescale.empty()) json["constant"] = row.rescale[layer];
    list.push_back(std::move(json));
  }
  return list;
}

Json row_json(const AblateRun& run, std::size_t r) {
  const Ablation& ablation = run.ablation;
  const AblateRow &row = ablation.rows[r], &trained = ablation.rows.front();
  Json json = {{"name", row.name}, {"norm", row.change ? Json(name_of(row.change->norm)) : Json(nullptr)}};
  if (!row.failure.empty()) {
    json["failure"] = row.failure;
    return json;
  }
  if (!row.losses.empty()) {
    json["loss"] = interval_json(mean_interval(row.losses));
    json["losses"] = row.losses;
    json["loss_change"] = interval_json(mean_difference(trained.losses, row.losses));
  }
  json["layers"] = layers_json(row, run.layers);
  Json probe = Json::object();
  if (!row.copy.loss.empty()) {
    probe["copy"] = scores_json(row.copy);
    if (!row.first_loss.empty()) {
      probe["copy"]["first_loss"] = interval_json(mean_interval(row.first_loss));
      probe["copy"]["gain"] = interval_json(mean_interval(row.copy_gain()));
    }
    probe["lookup"] = scores_json(row.lookup);
  }
  if (!row.finds.share.empty()) {
    probe["finds"] = {{"layer", row.finds.layer},
                      {"head", row.finds.head},
                      {"share", interval_json(mean_interval(row.finds.share))},
                      {"weight", interval_json(mean_interval(row.finds.weight))},
                      {"chance", row.finds.chance}};
  }
  if (!probe.empty()) json["probe"] = probe;
  if (r == 0) return json;
  json["retrieval"] = Json::array();
  for (const RetrievalChange& change : retrieval_changes(ablation, r)) {
    json["retrieval"].push_back({{"measure", change.measure},
                                 {"chance", change.chance},
                                 {"trained", interval_json(change.trained)},
                                 {"changed", interval_json(change.changed)},
                                 {"difference", interval_json(change.difference)},
                                 {"verdict", name_of(change.verdict)}});
  }
  return json;
}

Json results_json(const Plan& plan, const AblateCall& call, const AblateRun& run, const Provenance& made,
                  double seconds) {
  const char* losses[] = {"none", "next token", "masked token"};
  Json results = {{"command", "ablate"}};
  results.update(normscope::to_json(made));
  results["seconds"] = seconds;
  results["settings"] = options_json(plan, call);
  results["family"] = run.family;
  results["norm"] = name_of(run.ablation.trained.front());
  results["changed_layers"] = run.ablation.layers;
  results["measured_loss"] = losses[static_cast<int>(run.ablation.loss)];
  results["verdict"] = ablate_verdict(run);
  results["notes"] = ablate_sentences(run);
  results["rows"] = Json::array();
  for (std::size_t r = 0; r < run.ablation.rows.size(); ++r) results["rows"].push_back(row_json(run, r));
  return results;
}

void run_ablate(const AblateCall& call, const Common& common) {
  const Plan plan = resolve(call, common);
  const auto directory = replaceable_directory(common);
  const Executor executor(common.threads, common.stop);
  const Provenance made = provenance(common.seed, executor.threads());
  if (directory) directory->write_config("ablate", made, options_json(plan, call).dump());
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::vector<std::uint32_t>> ids = plan.text.ids();
  Ablation ablation;
  {
    Progress progress(common, "ablate:", "layers");
    ablation = ablate(*plan.checkpoint.weights, ids, plan.settings, executor,
                      [&](std::size_t done, std::size_t total) { progress.update(done, total); });
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const AblateRun run = run_of(plan, call, std::move(ablation));
  const Json results = results_json(plan, call, run, made, seconds);
  if (directory) {
    directory->write("results.json", json_text(results));
    directory->write("layers.csv", ablate_csv(run));
    directory->write("report.html", render_html(ablate_page(run, made, results.dump())));
    note(common, "Wrote " + (directory->path() / "report.html").string());
  }
  if (common.json) return print(json_text(results, -1));
  std::string text = table(ablate_table(run)) + "\n";
  for (const std::string& sentence : ablate_sentences(run)) text += sentence + "\n";
  print(text + ablate_verdict(run) + fmt::format("\n{:.3g} s\n", seconds));
}

}  // namespace

void add_ablate(CLI::App& app, Common& common) {
  CLI::App* command =
      add_command(app, common, "ablate",
                  "A trained model with another norm, or none, in front of attention: what changes",
                  {"ablate minilm --text article.txt --window 128 --samples 16 --out runs/ablate",
                   "ablate stories15m --text story.txt --norm none center --rescale",
                   "ablate path/to/model --ids tokens.txt --norm rmsnorm --layers 0:2 --json"});
  auto call = std::make_shared<AblateCall>();
  add_model_option(*command, call->text);
  add_text_options(*command, call->text);
  const auto option = [&](const char* name, std::string& value, const char* type, const char* description) {
    return command->add_option(name, value, description)->type_name(type);
  };
  command
      ->add_option("--norm", call->norms,
                   fmt::format("In place of the model's: none, center (without scaling), rmsnorm (without "
                               "projection), layernorm, or another of {}",
                               fmt::join(norm_names_without_normals(), " ")))
      ->type_name("NAME…")
      ->capture_default_str();
  option("--layers", call->layers, "LIST", "Layers whose norm is replaced, such as 0,3 or 0:5 [all]");
  command->add_flag("--drop-affine", call->drop_affine,
                    "Without the learned gain and bias, which stay otherwise, also where the norm is none");
  command->add_flag("--rescale", call->rescale,
                    "Also with a constant per layer that keeps the mean norm of what enters attention");
  option("--mask-token", call->mask_token, "ID",
         "What hides tokens from an encoder with a head, whose loss is then measured [the tokenizer's]");
  option("--prompts", call->prompts, "N", "Prompts of each kind of the retrieval probe; 0: none")
      ->capture_default_str();
  option("--probe-length", call->length, "N", "Random tokens of a prompt, which come twice")
      ->capture_default_str();
  option(
      "--tolerated", call->tolerated, "SHARE",
      "Retrieval is called no worse if its interval excludes losing this share of what it has above chance")
      ->capture_default_str();
  option("--probe-tokens", call->probe_tokens, "NAME",
         "Drawn from the tokens of the text, or from the vocabulary")
      ->capture_default_str();
  command->callback([call, &common] { run_ablate(*call, common); });
}

}  // namespace normscope::cli

// The pretrained models of `normscope paper`, and the text they read.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "checkpoint/places.h"
#include "core/fetched.h"
#include "core/printable.h"
#include "normscope/error.h"
#include "study/ablate.h"
#include "study/model_text.h"
#include "study/paper_evidence.h"

namespace normscope {
namespace {

constexpr std::size_t kTokens = 128;  // of a window, as in the paper

// A model of the paper under the ids it is known by, and which one fetched by name is like it.
struct Published {
  std::array<const char*, 4> ids;
  const char* fetched;
};
constexpr Published kPublished[] = {
    {{"bert-base-uncased", "google-bert/bert-base-uncased", "", ""}, "minilm"},
    {{"gpt2", "openai-community/gpt2", "", ""}, "stories15m"},
    {{"t5-base", "google-t5/t5-base", "t5-small", "google-t5/t5-small"}, ""},
    {{"albert-base-v2", "albert/albert-base-v2", "", ""}, ""},
};

// As much of the text of a plan as so many tokens may need.
TextStart start_of_text(const PaperPlan& plan, std::size_t tokens, std::size_t bytes_per_token) {
  if (plan.text.empty()) return {std::string(builtin_text()), true};
  return read_text_start(plan.text, "--text", tokens * bytes_per_token);
}

PretrainedModel open_model(const std::string& name, const PaperPlan& plan) {
  const Checkpoint checkpoint = open_checkpoint(name);
  if (!checkpoint.tokenizer) throw InputError(checkpoint.no_tokenizer);
  const ModelSpec& spec = checkpoint.weights->spec();
  const std::size_t window = spec.positions > 0 ? std::min(kTokens, spec.positions) : kTokens;
  std::vector<Token> tokens;
  std::vector<TextWindow> windows;
  // Of a text of any size no more is read than the windows take, and one, in which it may be cut off.
  for (std::size_t bytes_per_token = 8;; bytes_per_token *= 2) {
    const TextStart start = start_of_text(plan, (plan.samples + 1) * window, bytes_per_token);
    tokens = checkpoint.tokenizer->encode(start.text);
    const std::size_t added = count_added(tokens);
    windows = text_windows(tokens, window, std::max(window, added + 1) - added, plan.samples + 1);
    if (start.whole || windows.size() > plan.samples) break;
  }
  windows.resize(std::min(windows.size(), plan.samples));
  PretrainedModel model{printable(name), checkpoint.weights, {}};
  for (const TextWindow& each : windows) model.texts.push_back(each.ids());
  if (model.texts.empty() || model.texts.front().size() < window) {
    throw InputError(fmt::format("--text: {} has {} tokens for {}; a window has {}.", text_source(plan),
                                 tokens.size(), model.name, window));
  }
  for (const auto& ids : model.texts) {
    if (std::any_of(ids.begin(), ids.end(), [&](std::uint32_t id) { return id >= spec.vocabulary; }))
      throw InputError(
          fmt::format("The tokenizer of {} has tokens that are not in its vocabulary.", model.name));
  }
  return model;
}

}  // namespace

std::vector<std::string> models_at_hand() {
  std::vector<std::string> names;
  for (const Published& each : kPublished) {
    const auto cached = std::find_if(each.ids.begin(), each.ids.end(), [](const std::string& id) {
      return !id.empty() && checkpoint::in_hugging_face_cache(id);
    });
    if (cached != each.ids.end()) names.emplace_back(*cached);
    if (const std::string fetched = each.fetched; !fetched.empty() && fetched_directory(fetched))
      names.push_back(fetched);
  }
  return names;
}

std::string text_source(const PaperPlan& plan) {
  return plan.text.empty() ? "the built-in text (22 short articles in the manner of an encyclopedia)"
                           : label_of_source(plan.text);
}

Ablation ablate_model(const PaperPlan& plan, const PretrainedModel& model, const Context& context) {
  AblateOptions options;
  for (const std::string& name : plan.models)
    if (printable(name) == model.name) options.text.model = name;
  options.text.text = plan.text.empty() ? "built-in" : plan.text;
  options.text.window = model.texts.front().size();
  options.text.held.text = start_of_text(plan, plan.samples * *options.text.window, 16).text;
  options.text.samples = plan.samples;
  options.norms = {"none"};
  options.rescale = true;
  try {
    return study_ablate(options, context).ablation;
  } catch (const InputError& error) {
    Ablation none;
    none.notes = {error.what()};
    return none;
  }
}

std::vector<PretrainedModel> open_models(const PaperPlan& plan) {
  std::vector<PretrainedModel> models;
  if (plan.models.empty()) return models;
  for (const std::string& name : plan.models) models.push_back(open_model(name, plan));
  return models;
}

}  // namespace normscope

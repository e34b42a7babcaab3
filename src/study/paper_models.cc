// The pretrained models of `normscope paper`, and the text they read.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "checkpoint/places.h"
#include "core/fetched.h"
#include "core/printable.h"
#include "normscope/error.h"
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

PretrainedModel open_model(const std::string& name, const PaperPlan& plan, std::string_view text) {
  const Checkpoint checkpoint = open_checkpoint(name);
  if (!checkpoint.tokenizer) throw InputError(checkpoint.no_tokenizer);
  const std::vector<Token> tokens = checkpoint.tokenizer->encode(text);
  const ModelSpec& spec = checkpoint.weights->spec();
  const std::size_t window = spec.positions > 0 ? std::min(kTokens, spec.positions) : kTokens;
  const std::size_t added = count_added(tokens);
  PretrainedModel model{printable(name), checkpoint.weights, {}};
  for (const TextWindow& each :
       text_windows(tokens, window, std::max(window, added + 1) - added, plan.samples))
    model.texts.push_back(each.ids());
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

std::vector<PretrainedModel> open_models(const PaperPlan& plan) {
  std::vector<PretrainedModel> models;
  if (plan.models.empty()) return models;
  const std::string given = plan.text.empty() ? "" : read_text_file(plan.text, "--text");
  for (const std::string& name : plan.models)
    models.push_back(open_model(name, plan, plan.text.empty() ? builtin_text() : given));
  return models;
}

}  // namespace normscope

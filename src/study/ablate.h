#pragma once
// A trained model with another norm, or none, in front of attention: what changes?
#include <optional>
#include <string>
#include <vector>

#include "result/ablate.h"
#include "result/model_on_text.h"
#include "result/options.h"
#include "study/context.h"
#include "study/model_text.h"

namespace normscope {

struct AblateOptions {
  TextOptions text;
  std::vector<std::string> norms = {"none", "center", "rmsnorm", "layernorm"};
  std::string layers;
  bool drop_affine = false, rescale = false;
  std::optional<std::uint32_t> mask_token;
  std::size_t prompts = 32, probe_length = 32;
  double tolerated = 0.1;
  ProbeTokens probe_tokens = ProbeTokens::text;

  static void describe(auto& visit, auto& self) {
    TextOptions::describe(visit, self.text);
    visit("norm", self.norms,
          "In place of the model's: none, center (without scaling), rmsnorm (without projection), layernorm, "
          "or another, see below");
    visit("layers", self.layers, "Layers whose norm is replaced, such as 0,1 or 0:3",
          OptionFacts{.type = "LIST", .otherwise = "all"});
    visit("drop-affine", self.drop_affine,
          "Without the learned gain and bias, which stay otherwise, also where the norm is none");
    visit("rescale", self.rescale,
          "Also with a constant per layer that keeps the mean norm of what enters attention");
    visit("mask-token", self.mask_token,
          "What hides tokens from an encoder with a head, whose loss is then measured",
          OptionFacts{.type = "ID", .otherwise = "the tokenizer's"});
    visit("prompts", self.prompts, "Prompts of each kind of the retrieval probe; 0: none",
          OptionFacts{.low = 0, .high = 1e5});
    visit("probe-length", self.probe_length, "Random tokens of a prompt, which come twice",
          OptionFacts{.low = 4, .high = 4096});
    visit("tolerated", self.tolerated,
          "Retrieval is called no worse if its interval excludes losing this share of what it has above "
          "chance",
          OptionFacts{.type = "SHARE", .low = 1e-6, .high = 1});
    visit("probe-tokens", self.probe_tokens, "Drawn from the tokens of the text, or from the vocabulary");
  }
};

// The model and the text, read, and what is to be done with them.
struct AblatePlan {
  Checkpoint checkpoint;
  ModelText text;
  ModelOnText about;
  AblateSettings settings;
  AblateResult::Settings told;  // the settings as results and config.json say them
};

// Throws InputError on what cannot be, and as open_checkpoint and read_model_text do.
AblatePlan plan_ablate(const AblateOptions& options, const Context& context);

struct AblateStudy {
  Ablation ablation;  // window by window and prompt by prompt
  AblateResult result;
};
AblateStudy run_ablate(const AblatePlan& plan, const Context& context);

// All of it.
AblateStudy study_ablate(const AblateOptions& options, const Context& context);

}  // namespace normscope

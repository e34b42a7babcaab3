#pragma once
// What the parts of `paper` look at: trainings in run directories of their own, inside that of the audit, and
// pretrained models.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "normscope/text_training.h"
#include "normscope/training_tokenizer.h"
#include "study/paper.h"

namespace normscope {

// Those of the paper that the local Hugging Face cache holds, and those fetched by `normscope data get`.
std::vector<std::string> models_at_hand();
// Opened, with a window of the text for each sample, or as many as the text has. Throws InputError if one
// cannot be opened, has no tokenizer, or the text is too short for one window.
std::vector<PretrainedModel> open_models(const PaperPlan& plan);
// What `ablate` finds of one of them with its norms removed.
Ablation ablate_model(const PaperPlan& plan, const PretrainedModel& model, const Context& context);
// Of the text of the pretrained models, for people.
std::string text_source(const PaperPlan& plan);

// Fills in what the text parts of the plan need, by what has been fetched.
void resolve_text(PaperPlan& plan, const PaperOptions& options);

// As much of the text parts as was published.
void publish_texts(PaperPlan& plan);

// A training on text, and what was seen of it.
struct PaperText {
  TextTraining training;
  std::vector<TextEvidence> runs;
  TextRecipe recipe;
  std::shared_ptr<const TrainingTokenizer> tokenizer;
};
// directory: where they are kept; only the first process of a job looks there.
PaperText paper_language(const PaperPlan& plan, const std::filesystem::path& directory,
                         const PaperContext& context);
PaperText paper_sentiment(const PaperPlan& plan, const std::filesystem::path& directory,
                          const PaperContext& context);
// Which words of the plan's sentences are unselectable.
void mark_sentences(PaperText& text, const PaperPlan& plan, const std::string& label,
                    const PaperContext& context);

}  // namespace normscope

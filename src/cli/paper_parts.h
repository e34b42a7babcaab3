#pragma once
// The parts of `normscope paper`. A part is a row of paper_parts() and a function, in a file paper_<what>.cc,
// that runs what it needs and adds claims and figures; what is claimed is decided in src/paper.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common.h"
#include "normscope/majority.h"
#include "normscope/text_training.h"
#include "normscope/training_tokenizer.h"
#include "paper/claim.h"
#include "paper/text_claims.h"
#include "paper/wu_pretrained.h"

namespace normscope::cli {

// How the language model of Fig. 4 and Tables 1 to 3 is trained and looked at.
struct LanguagePlan {
  std::string corpus, tokenizer;  // by name; a corpus may also be a file
  std::size_t seeds = 4;          // the first of the plan's
  std::size_t batch = 2, context = 1024;
  // 60 times the published rate over 800 in place of 50 000 steps: its sum over the steps, which is about
  // how far Adam can carry a parameter, is 1.2 in place of 1.25.
  std::uint64_t steps = 800, evaluate_every = 40;
  double learning_rate = 3e-3;
  std::uint64_t most_tokens = 0;  // of the corpus; 0: all
  std::size_t held_out = 8;       // windows to measure losses on
  std::size_t windows = 8;        // to decide keys of, after training
  std::size_t trend_windows = 4;  // and on the way
  std::size_t snapshots = 11;     // at so many evaluations, the first and the last among them
};
// The same of the sentiment model of Table 4.
struct SentimentPlan {
  std::string reviews, tokenizer;  // by name; reviews may also be a file
  std::size_t seeds = 3;
  // Of the published 128 tokens and 3072 hidden units: so wide, nothing is learned within minutes at any
  // rate.
  std::size_t batch = 32, most_tokens = 64, feed_forward = 32;
  std::size_t training_texts = 0, test_texts = 1000;  // evenly spaced; 0: all
  std::uint64_t steps = 1200, evaluate_every = 150;
  double learning_rate = 5e-3;
};
// Where the sentences of Tables 3 and 4 come from, and how many are looked at.
struct SentencePlan {
  std::string reviews;  // as above; unless the plan has a text
  std::size_t count = 200;
};

// As config.json holds it.
struct PaperPlan {
  std::vector<std::string> parts;
  std::vector<std::uint64_t> seeds;
  std::uint64_t steps = 0;          // of the majority runs in 8 dimensions
  std::uint64_t steps_3d = 0;       // at most, of those in 3
  std::size_t draws = 100;          // of the heat maps
  std::size_t samples = 8;          // of the collapse runs with 12 layers
  std::size_t deep_samples = 1;     // of those with 128
  std::uint64_t seed = 0;           // of the heat maps and the collapse runs
  std::vector<std::string> models;  // pretrained, by the names they are opened by
  std::string text;                 // file that they read, and sentences come from; empty: built in
  // Of the parts that need them.
  std::optional<LanguagePlan> language;
  std::optional<SentimentPlan> sentiment;
  std::optional<SentencePlan> sentences;

  bool has(std::string_view part) const;
};

// A text with words marked; kept as tokens, so that its markup is always our own.
struct TextFinding {
  std::string name, title, caption, settings;
  TextFigure text;
};

// What parts add to the report.
struct Findings {
  std::vector<Claim> claims;
  std::vector<Figure> figures;
  std::vector<TextFinding> texts;
  std::vector<ReportTable> tables;

  void add(std::vector<Claim> more);
};

// A training on text, and what was seen of it.
struct TextStudy {
  TextTraining training;
  std::vector<TextEvidence> runs;
  TextRecipe recipe;
  std::shared_ptr<const TrainingTokenizer> tokenizer;
};

// What every part is given.
struct Audit : Findings {
  const PaperPlan& plan;
  const std::filesystem::path& directory;  // a part keeps what takes long in a run directory inside
  const Common& common;
  const Executor& executor;
  const Whole& whole;

  // Of all parts that look at the majority task in 8 dimensions: trained by the first of them.
  std::optional<MajorityTraining> majority;
  // Of all parts that look at pretrained models: opened by the first of them.
  std::optional<std::vector<PretrainedModel>> models;
  // Of all parts that look at the language model: trained by the first of them; and of Table 4.
  std::optional<TextStudy> language;
};

using RunPart = void(Audit& audit);
struct PaperPart {
  const char* name;
  const char* description;
  RunPart* run;
  double (*seconds)(const PaperPlan& plan);        // about, on two cores: only for the time left
  std::string (*settings)(const PaperPlan& plan);  // of its figures
};
// In the order in which they are run.
std::span<const PaperPart> paper_parts();

// Whether a part, or one of those of a plan, looks at pretrained models.
bool needs_models(std::string_view part);
bool needs_models(const PaperPlan& plan);
// Those of the paper that the local Hugging Face cache holds, and those fetched by `normscope data get`.
std::vector<std::string> models_at_hand();
// Opened, with a window of the text for each sample, or as many as the text has. Throws InputError if one
// cannot be opened, has no tokenizer, or the text is too short for one window.
std::vector<PretrainedModel> open_models(const PaperPlan& plan);
// Of the text of the pretrained models, for people.
std::string text_source(const PaperPlan& plan);

// Trainings on text: a first look beside all other parts, minutes, or as published.
enum class TextScale { brief, reduced, published };
struct TextWishes {
  TextScale scale = TextScale::reduced;
  std::optional<std::uint64_t> steps;  // of both trainings
  std::optional<std::size_t> seeds;
  std::string corpus, reviews;  // names or files; empty: what was fetched
};
// Fills in what the text parts of the plan need, by what has been fetched.
void resolve_text(PaperPlan& plan, const TextWishes& wishes);
bool needs_text(const PaperPlan& plan);       // trains on text
bool needs_sentences(const PaperPlan& plan);  // Tables 3 and 4
nlohmann::ordered_json to_json(const LanguagePlan& plan);
nlohmann::ordered_json to_json(const SentimentPlan& plan);
nlohmann::ordered_json to_json(const SentencePlan& plan);
// Throw nlohmann::json::exception on what to_json does not write.
LanguagePlan language_plan(const nlohmann::ordered_json& json);
SentimentPlan sentiment_plan(const nlohmann::ordered_json& json);
SentencePlan sentence_plan(const nlohmann::ordered_json& json);
// What the page says of them.
std::string text_paragraph(const PaperPlan& plan);

RunPart run_fig4, run_table1, run_table2, run_table3, run_table4;
RunPart run_fig1ab, run_fig1cd, run_fig2, run_fig3, run_followups;
RunPart run_wu1, run_wu2, run_wu3, run_wu4, run_wu5, run_wu6, run_wu7, run_wu8, run_wu9, run_beyond;

}  // namespace normscope::cli

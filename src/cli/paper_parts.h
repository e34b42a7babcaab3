#pragma once
// The parts of `normscope paper`. A part is a row of paper_parts() and a function, in a file paper_<what>.cc,
// that runs what it needs and adds claims and figures; what is claimed is decided in src/paper.
#include <filesystem>
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
#include "result/paper.h"

namespace normscope::cli {

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
// What the page says of them.
std::string text_paragraph(const PaperPlan& plan);

RunPart run_fig4, run_table1, run_table2, run_table3, run_table4;
RunPart run_fig1ab, run_fig1cd, run_fig2, run_fig3, run_followups;
RunPart run_wu1, run_wu2, run_wu3, run_wu4, run_wu5, run_wu6, run_wu7, run_wu8, run_wu9, run_beyond;

}  // namespace normscope::cli

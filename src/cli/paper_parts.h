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
#include "paper/claim.h"
#include "paper/wu_pretrained.h"

namespace normscope::cli {

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
  std::string text;                 // file that they read; empty: the built-in one

  bool has(std::string_view part) const;
};

// What parts add to the report.
struct Findings {
  std::vector<Claim> claims;
  std::vector<Figure> figures;
  std::vector<ReportTable> tables;

  void add(std::vector<Claim> more);
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

RunPart run_fig1ab, run_fig1cd, run_fig2, run_fig3, run_followups;
RunPart run_wu1, run_wu2, run_wu3, run_wu4, run_wu5, run_wu6, run_wu7, run_wu8, run_wu9, run_beyond;

}  // namespace normscope::cli

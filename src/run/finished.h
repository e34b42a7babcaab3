#pragma once
// What a study that has ended leaves: its page, and the files of its run directory. The command line writes them for
// --out, Python for out= and save().
#include <initializer_list>
#include <memory>
#include <string>

#include "normscope/record.h"
#include "report/carded_page.h"
#include "study/ablate.h"
#include "study/collapse.h"
#include "study/equilibria.h"
#include "study/heatmap.h"
#include "study/keys.h"
#include "study/mask.h"
#include "study/paper.h"
#include "study/scan.h"
#include "study/train_majority.h"
#include "study/train_text.h"
#include "study/vocab.h"

namespace normscope {

// A directory for a run that takes the place of an earlier one. Throws InputError as RunDirectory, if it holds what can be
// resumed, a training or an audit of `paper`, and if one of the inputs, files with or without the name of a tensor,
// lies in it and would be gone with the earlier run.
std::unique_ptr<RunDirectory> replaceable_directory(const std::string& path,
                                                    std::initializer_list<std::string> inputs = {});

Page page_of(const KeysStudy& study);
// result: that of the study, with or without its single keys.
void write_run(const RunDirectory& directory, const KeysStudy& study, const KeysResult& result);

std::string source_of(const VocabStudy& study);  // what was read, for people
Page page_of(const VocabStudy& study);
void write_run(const RunDirectory& directory, const VocabStudy& study);

CardedPage page_of(const ScanPlan& plan, const ScanStudy& study);
// config.json, which says which traces will be there; to be written before them.
void begin_run(const RunDirectory& directory, const ScanPlan& plan, const Provenance& made);
void write_run(const RunDirectory& directory, const ScanPlan& plan, const ScanStudy& study);

CardedPage page_of(const AblatePlan& plan, const AblateStudy& study);
void write_run(const RunDirectory& directory, const AblatePlan& plan, const AblateStudy& study);

Page page_of(const HeatmapStudy& study);
void write_run(const RunDirectory& directory, const HeatmapStudy& study);

Page page_of(const MaskStudy& study);
void write_run(const RunDirectory& directory, const MaskStudy& study);

Page page_of(const EquilibriaStudy& study);
void write_run(const RunDirectory& directory, const EquilibriaStudy& study);

// The settings in a sentence; rows that masks and norms left without a value, in sentences or none.
std::string settings_sentence(const CollapsePlan& plan);
std::string policies_text(const CollapseStudy& study);
Page page_of(const CollapseStudy& study);
void write_run(const RunDirectory& directory, const CollapseStudy& study);

// The directory of an audit: a new one, which then has its config.json, or the one to go on with. Throws InputError if it
// holds a run already, or one of another command.
std::unique_ptr<RunDirectory> paper_directory(const std::filesystem::path& path, bool resume,
                                              const PaperPlan& plan, int threads);

// The command of a plan of texts: "train lm", "train sentiment".
const char* command_of(const TextPlan& plan);
inline constexpr const char* kTrainMajority = "train majority";
inline constexpr const char* kWrittenByAGrammar =
    "The text was written by a built-in grammar: these are not results on real text.";
// Of the files that a training has left in its directory.
CardedPage page_of(const RunDirectory& directory, const MajorityStudy& study);
CardedPage page_of(const RunDirectory& directory, const TextTrainingStudy& study, const TextPlan& plan,
                   const TextsRead& texts);
// results.json and report.html. Whether they were written: not if the training had ended before with both.
bool write_results(const RunDirectory& directory, const MajorityStudy& study);
bool write_results(const RunDirectory& directory, const TextTrainingStudy& study, const TextPlan& plan,
                   const TextsRead& texts);

}  // namespace normscope

#pragma once
// What the language and sentiment models say about §4.2 of Brody, Alon, Yahav 2023: Fig. 4 and Tables 1 to 4,
// and two things the paper did not look at: the keys of the heads, and how the shares come about in training.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "normscope/text_training.h"
#include "paper/claim.h"
#include "paper/text_selectability.h"
#include "report/text.h"

namespace normscope {

// The norms of the language model: with scaling, and projection only.
inline constexpr const char *kWithScaling = "layernorm", *kWithoutScaling = "center";

// One run, as far as the claims look at it.
struct TextEvidence {
  struct Snapshot {
    std::uint64_t step = 0;
    ModelTally tally;
  };
  TrainingRunId id;
  std::vector<TextRow> rows;
  std::vector<Snapshot> snapshots;  // ascending; the last is of the trained model
  MarkedText marked;                // sentences, by the trained model; may be empty
  bool broken = false;              // the loss left its course: the run is left out
};

// How the runs were trained and on what.
struct TextRecipe {
  std::string corpus, tokenizer;  // for people
  bool generated = false;         // texts by a grammar
  std::uint64_t steps = 0;
  std::size_t batch = 0, context = 0, feed_forward = 0;
  double learning_rate = 0, dropout = 0;
  double eps = 0;  // of the norm before attention
  std::size_t vocabulary = 0;
  std::size_t training_texts = 0;          // labelled; of a language model 0
  std::size_t classes = 0;                 // of labelled texts
  std::uint64_t training_tokens = 0;       // of the corpus, as far as it was read; of labelled texts 0
  std::size_t windows = 0, sentences = 0;  // that the trained models are looked at with
  std::string sentence_source;

  bool at_published_scale() const;  // steps and tokens of a step
};

// Runs of kWithScaling and kWithoutScaling with the same seeds.
std::vector<Claim> claims_of_figure4(std::span<const TextEvidence> runs, const TextRecipe& recipe);
std::vector<Claim> claims_of_table1(std::span<const TextEvidence> runs, const TextRecipe& recipe);
std::vector<Claim> claims_of_table2(std::span<const TextEvidence> runs, const TextRecipe& recipe);
std::vector<Claim> claims_of_table3(std::span<const TextEvidence> runs, const TextRecipe& recipe);
// Runs of the sentiment model without norms.
std::vector<Claim> claims_of_table4(std::span<const TextEvidence> runs, const TextRecipe& recipe);

Figure figure4(std::span<const TextEvidence> runs, const TextRecipe& recipe);
Figure selectability_trend(std::span<const TextEvidence> runs, const TextRecipe& recipe);
ReportTable table1(std::span<const TextEvidence> runs);
ReportTable table2(std::span<const TextEvidence> runs);
// Shares by layer over the sentences.
ReportTable table4(std::span<const TextEvidence> runs);
// What was published beside what was done.
ReportTable language_recipe(const TextRecipe& recipe);
ReportTable sentiment_recipe(const TextRecipe& recipe);

// Sentences of one model with their unselectable tokens marked, those with most first; at most `most`.
TextFigure marked_figure(std::span<const MarkedSentence> sentences, std::size_t most);
// The first run of the norm that was not broken; null: none.
const TextEvidence* first_run(std::span<const TextEvidence> runs, std::string_view norm);

}  // namespace normscope

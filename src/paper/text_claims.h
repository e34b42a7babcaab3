#pragma once
// What Fig. 4 and Tables 1 to 4 (§4.2 of Brody, Alon, Yahav 2023) share: what was seen of trainings on text,
// and how far they speak of the paper's.
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "normscope/statistics.h"
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
  double eps = 0;                          // of the norm before attention
  std::size_t training_texts = 0;          // labelled; of a language model 0
  std::size_t classes = 0;                 // of labelled texts
  std::uint64_t training_tokens = 0;       // of the corpus, as far as it was read; of labelled texts 0
  std::size_t windows = 0, sentences = 0;  // that the trained models are looked at with
  std::string sentence_source;

  bool at_published_scale() const;  // steps and tokens of a step
};

inline constexpr std::uint64_t kPublishedTextSteps = 50'000;
inline constexpr std::size_t kFewestTextSeeds = 3;
inline constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

using TextRuns = std::vector<const TextEvidence*>;
using RowValue = std::function<double(const TextRow&)>;
using LayerValue = std::function<double(const LayerTally&)>;

double held_out_loss(const TextRow& row);
// What is unselectable of the keys of a layer.
double before(const LayerTally& layer);
double after(const LayerTally& layer);
double in_heads(const LayerTally& layer);

// Without those that broke.
TextRuns sound_runs(std::span<const TextEvidence> runs, std::string_view norm);
std::uint64_t last_step(std::span<const TextEvidence> runs);
// A value of the last row of each run that has one.
std::vector<double> last_values(const TextRuns& runs, const RowValue& value);
// Of the trained model; null: it was not looked at.
const ModelTally* trained(const TextEvidence& run);
std::size_t layers_of(const TextRuns& runs);
// Keys of every layer of every trained model.
KeyTally trained_keys(const TextRuns& runs, KeyTally LayerTally::*keys);
// Over runs, of one layer of the trained models.
std::vector<double> values_over_runs(const TextRuns& runs, std::size_t layer, const LayerValue& value);
// "51.0 ± 2.1 / 32.2 ± 1.0 %"
std::string by_layer(const TextRuns& runs, const LayerValue& value);

// shown: what the runs say. Less training, or a text that is none, cannot refute.
void judge(Claim& claim, Answer shown, const TextRecipe& recipe);
// Whether the models have learned, so that what is seen of them is that of trained ones: empty if the
// interval of what they gained lies above what is asked for, `hardly` if it lies below, and otherwise that it
// cannot be told. so_far: what was gained beside what is asked for.
std::string unlearned(const Interval& gained, double asked, const std::string& hardly,
                      const std::string& so_far);

// "A substantial share in every layer": of the published, and of ours.
Claim share_claim(std::string where, std::string words, const TextRuns& runs,
                  std::span<const double> published, const LayerValue& value, const TextRecipe& recipe);
// After LayerNorm there is not one: points of a sphere are corners of their hull. Those that there are, eps
// and float32 have taken off it; which of the two, the same norm in float64 and without eps tells.
Claim zero_claim(std::string where, std::string words, const TextRuns& runs, const TextRecipe& recipe);
// Words that are unselectable in some layer are there, in every run.
Claim words_claim(std::string where, std::string words, const TextRuns& runs, const TextRecipe& recipe);
// Tokens that are unselectable in some layer, and sentences with such.
struct WordShares {
  std::vector<double> tokens, sentences;  // one per run
  std::size_t of_tokens = 0, of_sentences = 0;
};
WordShares word_shares(const TextRuns& runs);

// A point with its band; one value has no interval, and the band is then as thin as the line.
void add_point(CurveFigure::Curve& curve, std::uint64_t step, std::span<const double> values, double unit,
               double least, double most);
std::string scale_caption(const TextRecipe& recipe);
std::string seeds_caption(std::span<const TextEvidence> runs);

// Rows of a table with a column per layer.
using TableRow = std::vector<std::string>;
TableRow layer_header(std::size_t layers);
TableRow published_row(std::string name, std::span<const double> values, std::size_t layers);
TableRow measured_row(std::string name, const TextRuns& runs, std::size_t layers, const LayerValue& value);
// The mean over heads, and from the least to the most of the heads of all runs.
TableRow head_row(std::string name, const TextRuns& runs, std::size_t layers);

// Sentences of one model with their unselectable tokens marked, those with most first; at most `most`.
TextFigure marked_figure(std::span<const MarkedSentence> sentences, std::size_t most);

}  // namespace normscope

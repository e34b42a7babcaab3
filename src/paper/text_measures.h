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
  std::size_t batch = 0, context = 0, width = 0, feed_forward = 0;
  double learning_rate = 0, dropout = 0;
  double eps = 0;                          // of the norm before attention
  std::size_t training_texts = 0;          // labelled; of a language model 0
  std::size_t classes = 0;                 // of labelled texts
  std::uint64_t training_tokens = 0;       // of the corpus, as far as it was read; of labelled texts 0
  std::size_t windows = 0, sentences = 0;  // that the trained models are looked at with
  std::string window_source = "held out";
  std::string sentence_source;

  bool at_published_scale() const;  // steps and tokens of a step
};

inline constexpr std::uint64_t kPublishedTextSteps = 50'000;
inline constexpr std::size_t kFewestTextSeeds = 3;
inline constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

using TextRuns = std::vector<const TextEvidence*>;
using RowValue = std::function<double(const TextRow&)>;

double held_out_loss_of(const TextRow& row);

// Without those that broke.
TextRuns sound_runs(std::span<const TextEvidence> runs, std::string_view norm);
std::uint64_t last_step(std::span<const TextEvidence> runs);
// A value of the last row of each run that has one.
std::vector<double> last_values(const TextRuns& runs, const RowValue& value);

// What these runs are in the place of the paper's, whom the verdict is then about, and what those would have been;
// empty: they are as published.
std::string text_stand_in(const Evidence& evidence);
std::string text_not_at_hand(const Evidence& evidence);
// Empty of real text.
std::string generated_note(const Evidence& evidence);

// Seeds: how many, as a measure.
template <Measure M>
Ask enough_text_seeds(const M& seeds) {
  return {at_least(seeds, kFewestTextSeeds),
          fmt::format(" At least {} seeds are needed to tell.", kFewestTextSeeds)};
}
// That the models have learned, so that what is seen of them is that of trained ones: beyond doubt. hardly: said
// if they have not; so_far: what was gained beside what is asked for.
Ask learned(const Condition& condition, const Text& hardly, const Text& so_far);
// The same of the language models with a norm, by their held-out losses.
Ask language_learned(const std::string& norm);
inline Runs language_norms() {
  return {Need::language, {kWithScaling, kWithoutScaling}};
}

// A point with its band; one value has no interval, and the band is then as thin as the line.
void add_point(CurveFigure::Curve& curve, std::uint64_t step, std::span<const double> values, double unit,
               double least, double most);
std::string scale_caption(const TextRecipe& recipe);
std::string seeds_caption(std::span<const TextEvidence> runs);

}  // namespace normscope

#pragma once
// Training of transformers on text: a language model or a classifier, with several norms and seeds side by
// side.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "normscope/loss_watch.h"
#include "normscope/training.h"
#include "normscope/transformer.h"

namespace normscope {

struct TextTrainingSettings {
  TransformerSpec spec;  // of every run, apart from its norm
  AdamSettings adam;
  std::uint64_t steps = 50'000, evaluate_every = 500;
};
// AdamW 5e-5, linear to 0 over the 50 000 steps that are run.
TextTrainingSettings published_language_training();
TextTrainingSettings published_sentiment_training();
// Throws InputError that names what cannot be.
void check_text_training(const TextTrainingSettings& settings, std::span<const std::string> norms);

// The spec with the norm of a run: that before attention of a language model, as published; every norm of a
// classifier. The other settings of the norm (gain and bias, eps) stay; "none" has none.
TransformerSpec with_norm(const TransformerSpec& spec, const std::string& norm);

// Where batches come from.
struct TextBatches {
  // Of a run's seed and a step, and of nothing else; called from several threads at once.
  std::function<TokenBatch(std::uint64_t seed, std::uint64_t step)> train;
  std::vector<TokenBatch> held_out;  // may be empty
};

// What one evaluation records.
struct TextRow {
  std::uint64_t step = 0;
  double train_loss = 0;                    // mean over the steps since the last row (at step 0: NaN)
  std::optional<TransformerLoss> held_out;  // without dropout
};

struct TextRun {
  TrainingRunId id;
  TransformerSpec spec;
  std::vector<TextRow> rows;
  std::vector<float> parameters;
  std::uint64_t step = 0;  // of the parameters
  bool finished = false;
  // Why a run ended before its last step, if it did. Its parameters are then those of the last evaluation
  // before, when all was well; they never hold numbers that are not finite.
  std::optional<LossTrouble> trouble;
};

// Checkpoints also hold "loss_watch" and, of a run in trouble, "trouble".
struct TextTask {
  using Settings = TextTrainingSettings;
  using Run = TextRun;
  using Row = TextRow;
  using Source = TextBatches;
  using OnStep = std::function<void(std::size_t tokens)>;  // that the step saw
};
using TextTraining = Training<TextTask>;
extern template class Training<TextTask>;

}  // namespace normscope

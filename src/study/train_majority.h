#pragma once
// Does projection help to learn? The majority task, for any norm and many seeds at once.
#include <optional>
#include <string>

#include "study/training.h"

namespace normscope {

struct MajorityOptions : TrainingOptions {
  bool three_dimensional = false;
  // None: as published, or as published in three dimensions.
  std::optional<std::size_t> dimension = {}, classes = {}, length = {}, samples = {}, feed_forward = {};
  std::optional<std::uint64_t> steps = {}, decay_steps = {};
  std::optional<double> stop_accuracy = {};
  MajoritySettings other = {};  // what both have in common

  MajorityOptions() { norm = "layernorm"; }

  static void describe(auto& visit, auto& self) {
    visit("norm", self.norm, "Norm before attention, or several with commas", OptionFacts{.type = "NAME"});
    visit("dimension", self.dimension, "Width d of the encoder", counted("8", 1, "dim"));
    visit("classes", self.classes, "Token types", counted("20"));
    visit("length", self.length, "Tokens of a sequence", counted("50"));
    visit("samples", self.samples, "Sequences, 80 % of them to train on", counted("100000"));
    visit("margin", self.other.task.margin, "By how many tokens a majority leads at least", counted());
    visit("steps", self.steps, "Training steps", counted("17000", 0));
    visit("heads", self.other.heads, "Attention heads", counted());
    visit("layers", self.other.layers, "Layers", counted());
    visit("feed-forward", self.feed_forward, "Width of the feed-forward part", counted("as --dimension"));
    visit("mask", self.other.mask, "A mask by name, such as causal or window:2", OptionFacts{.type = "NAME"});
    visit("placement", self.other.placement, "Of the norms: pre, post or sandwich");
    visit("temperature", self.other.temperature, "d_QK, of which scores are divided by the root",
          OptionFacts{.type = "D", .low = 0, .high = 1e30, .otherwise = "the width of a head"});
    visit("keep-apart", self.other.keep_apart,
          "Weight of 1 − (μ/‖X‖)² in the loss, mean over all layers but the last, against collapse",
          OptionFacts{.type = "X", .low = 0, .high = 1e6});
    visit("batch", self.other.batch, "Sequences of a batch", counted());
    visit("learning-rate", self.other.adam.learning_rate, "Learning rate of Adam at the start",
          OptionFacts{.type = "X", .low = 1e-12, .high = 1e3, .old_name = "lr"});
    visit("decay-steps", self.decay_steps, "Steps over which it falls linearly to 0, where it stays",
          counted("170000"));
    visit("evaluate-every", self.other.evaluate_every, "Steps between two records", counted());
    visit("stop-accuracy", self.stop_accuracy, "End a run at this test accuracy, from 0 to 1",
          OptionFacts{.type = "X", .low = 0, .high = 1, .otherwise = "never"});
    visit("data-seed", self.other.data_seed, "Seed of the sequences",
          OptionFacts{.otherwise = "that of the run, as in the paper"});
    visit("path", self.other.path, "How gradients are computed: automatic, generic or bag");
    visit("uniform-attention", self.other.uniform_attention,
          "Attention frozen at equal weights over the keys that the mask leaves: exact averaging");
    visit("learned-matrix", self.other.learned_matrix,
          "A learned d × d matrix, the identity at first, in front of the norm before attention");
    visit("3d", self.three_dimensional,
          "The 3-D version of Fig. 1a/b: 10 classes, length 30, 6000 sequences, d 3, until accuracy 1");
    TrainingOptions::describe(visit, self);
  }
};

// The options as resolved. Throws InputError on what cannot be.
MajorityPlan plan_majority(const MajorityOptions& options);
// Of settings that were chosen by other means.
MajorityPlan plan_majority(const MajoritySettings& settings, std::vector<PlannedRun> runs);
void check_plan(const MajorityPlan& plan);
// The learning rate has a length of its own (--decay-steps), so that a training of fewer steps is the beginning
// of one of more.
inline MajorityUsed for_any_length(MajorityUsed settings) {
  settings.steps = 0;
  return settings;
}

MajorityMeasures<double> measures_of(const MajorityRow& row, const MajorityPlan& plan);
MajorityRow row_of(std::uint64_t step, const MajorityMeasures<double>& measures);

using MajorityRecord = PlanRecord<MajorityPlan>;

struct MajorityStudy {
  MajorityTraining training;
  TrainingTime time;
  MajorityResult result;
};
// Trains, from where `record` left it; geometry.safetensors in it then holds the keys and queries of every
// run. Null: nothing is kept. Progress: steps of all runs.
MajorityStudy study_majority(const MajorityPlan& plan, MajorityRecord* record, const Context& context);

}  // namespace normscope

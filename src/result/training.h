#pragma once
// What trainings answer (`train majority`, `train lm`, `train sentiment`), and what they follow from.
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "normscope/loss_watch.h"
#include "normscope/majority.h"
#include "normscope/provenance.h"
#include "normscope/statistics.h"
#include "normscope/text_training.h"
#include "result/describe.h"

namespace normscope {

inline std::span<const EncoderPath> values_of(EncoderPath) {
  static constexpr EncoderPath all[] = {EncoderPath::automatic, EncoderPath::generic, EncoderPath::bag};
  return all;
}
inline const char* name_of(EncoderPath path) {
  constexpr const char* names[] = {"automatic", "generic", "bag"};
  return names[static_cast<std::size_t>(path)];
}
inline std::span<const Schedule::Kind> values_of(Schedule::Kind) {
  static constexpr Schedule::Kind all[] = {Schedule::Kind::constant, Schedule::Kind::linear,
                                           Schedule::Kind::cosine};
  return all;
}
inline const char* name_of(Schedule::Kind kind) {
  constexpr const char* names[] = {"constant", "linear", "cosine"};
  return names[static_cast<std::size_t>(kind)];
}
inline std::span<const LossTrouble::Kind> values_of(LossTrouble::Kind) {
  static constexpr LossTrouble::Kind all[] = {LossTrouble::Kind::not_finite, LossTrouble::Kind::spike};
  return all;
}
inline const char* name_of(LossTrouble::Kind kind) {
  return kind == LossTrouble::Kind::spike ? "spike" : "not finite";
}

struct PlannedRun : TrainingRunId {
  static void describe(auto& visit, auto& self) {
    visit("norm", self.norm, "by name");
    visit("seed", self.seed, "of everything random in the run");
  }
};

// A line of metrics.jsonl: one evaluation of one run.
template <class Measures>
struct TrainingLine {
  std::uint64_t step = 0;
  PlannedRun run = {};
  Measures measures = {};

  static void describe(auto& visit, auto& self) {
    visit("step", self.step, "of the evaluation");
    PlannedRun::describe(visit, self.run);
    Measures::describe(visit, self.measures);
  }
};

// A mean over runs.
struct MeanResult : Interval {
  static void describe(auto& visit, auto& self) {
    visit("runs", self.count, "that have a value");
    visit("mean", self.mean, "over these runs");
    visit("low", self.low, "end of the 95 % interval");
    visit("high", self.high, "end of the 95 % interval");
  }
};

// What made a result, but for seeds, which the runs have themselves, and how long it took.
struct TrainingMade {
  Provenance made = {};
  double seconds = 0;

  static void describe(auto& visit, auto& self) {
    Provenance::describe_program(visit, self.made);
    visit("threads", self.made.threads, "used; results do not depend on it", {.low = 1});
    visit("seconds", self.seconds, "of training and evaluation", {.low = 0});
  }
};

// The settings of a majority training, as resolved.
struct MajorityUsed : MajoritySettings {
  static void describe(auto& visit, auto& self) {
    visit("classes", self.task.classes, "token types", {.low = 1});
    visit("length", self.task.length, "tokens of a sequence", {.low = 1});
    visit("samples", self.task.samples, "sequences", {.low = 1});
    visit("margin", self.task.margin, "least lead of the majority, in tokens", {.low = 1});
    visit("assignments", self.task.assignments, "sequences made of each partition", {.low = 1});
    visit("dim", self.dimension, "width d of the encoder", {.low = 1});
    visit("heads", self.heads, "of attention", {.low = 1});
    visit("layers", self.layers, "of the encoder", {.low = 1});
    visit("feed_forward", self.feed_forward, "width of the hidden part", {.low = 1});
    visit("mask", self.mask, "by name", {.pattern = "."});
    visit.when(self.placement != Placement::pre, "placement", self.placement, "of the norms; left out: pre");
    visit.when(self.temperature != 0, "temperature", self.temperature, "d_QK; left out: the width of a head",
               {.low = 0});
    visit.when(self.keep_apart != 0, "keep_apart", self.keep_apart,
               "weight of 1 − (μ/‖X‖)² in the loss; left out: 0", {.low = 0});
    visit("batch", self.batch, "sequences of a step", {.low = 1});
    visit("learning_rate", self.adam.learning_rate, "of Adam, at the start", {.low = 0});
    visit("decay_steps", self.adam.schedule.steps, "the step from which on the learning rate is 0");
    visit("weight_decay", self.adam.weight_decay, "decoupled", {.low = 0});
    visit("clip", self.adam.clip, "largest norm of the gradient; 0: no limit", {.low = 0});
    visit("steps", self.steps, "of training");
    visit("evaluate_every", self.evaluate_every, "steps between two records", {.low = 1});
    visit("stop_accuracy", self.stop_accuracy, "a run ends at this test accuracy; above 1: never",
          {.low = 0});
    visit("data_seed", self.data_seed, "of the sequences; null: that of the run");
    visit("path", self.path, "how gradients are computed");
    visit.when(self.uniform_attention, "uniform_attention", self.uniform_attention,
               "attention was frozen at equal weights");
    visit.when(self.learned_matrix, "learned_matrix", self.learned_matrix,
               "a learned d × d matrix stood in front of the norm");
  }
};

// One value for each measure of an evaluation: a number of a run, or a mean over runs.
template <class Value>
struct MajorityMeasures {
  Value train_loss{}, test_loss{}, accuracy{}, sequence_accuracy{}, angle_mean{}, angle_sd{},
      attention_entropy{}, attention_distance{};

  static void describe(auto& visit, auto& self) {
    visit("train_loss", self.train_loss, "mean cross-entropy since the evaluation before, in nats",
          {.low = 0, .or_null = true});
    visit("test_loss", self.test_loss, "mean cross-entropy of the held-out sequences", {.low = 0});
    visit("accuracy", self.accuracy, "share of positions that are right", {.low = 0, .high = 1});
    visit("sequence_accuracy", self.sequence_accuracy, "share of sequences right at every position",
          {.low = 0, .high = 1});
    visit("angle_mean", self.angle_mean, "of the first layer's queries to 1, in degrees",
          {.low = 0, .high = 90});
    visit("angle_sd", self.angle_sd, "its standard deviation over tokens and heads", {.low = 0, .high = 90});
    visit("attention_entropy", self.attention_entropy, "of the attention rows, in nats", {.low = 0});
    visit("attention_distance", self.attention_distance, "their total variation distance from uniform",
          {.low = 0, .high = 1});
  }
};

// As config.json holds it: plans that read the same are the same training.
struct MajorityPlan {
  using Training = MajorityTraining;
  using Row = MajorityRow;
  using Measures = MajorityMeasures<double>;

  MajorityUsed settings = {};
  std::vector<PlannedRun> runs = {};

  static void describe(auto& visit, auto& self) {
    visit("settings", self.settings, "what the numbers follow from, apart from norm and seed");
    visit("runs", self.runs, "each with its norm and seed");
  }
};

// Losses whose first step is told.
inline constexpr std::string_view kLossMarks[] = {"1.0", "0.5", "0.2"};

struct MajorityRunResult {
  PlannedRun run;
  std::size_t parameters = 0;
  std::uint64_t step = 0;
  MajorityMeasures<double> measures;
  bool diverged = false;
  double keys_out_of_plane = 0;
  Named<std::optional<std::uint64_t>> steps_to;

  static void describe(auto& visit, auto& self) {
    PlannedRun::describe(visit, self.run);
    visit("parameters", self.parameters, "their number", {.low = 1});
    visit("step", self.step, "of the last evaluation, which the measures are of");
    MajorityMeasures<double>::describe(visit, self.measures);
    visit.when(self.diverged, "diverged", self.diverged, "the loss became infinite");
    visit("keys_out_of_plane", self.keys_out_of_plane,
          "share of the keys' squared length outside their best hyperplane through the origin",
          {.low = 0, .high = 1});
    visit("steps_to", self.steps_to, "the first evaluation whose train_loss is at most this; null: none",
          {.members = kLossMarks});
  }
};

struct MajorityNormResult {
  std::string norm;
  std::size_t runs = 0;
  MajorityMeasures<MeanResult> measures;
  Named<MeanResult> steps_to;

  static void describe(auto& visit, auto& self) {
    visit("norm", self.norm, "by name");
    visit("runs", self.runs, "of this norm", {.low = 1});
    MajorityMeasures<MeanResult>::describe(visit, self.measures);
    visit("steps_to", self.steps_to, "of those that got there; a mean only if all did",
          {.members = kLossMarks});
  }
};

struct MajorityResult {
  TrainingMade made;
  double ms_per_step = 0;
  MajorityUsed settings;
  std::vector<MajorityRunResult> runs;
  std::vector<MajorityNormResult> norms;

  static void describe(auto& visit, auto& self) {
    std::string command = "train majority";
    visit("command", command, "train majority", {.always = "train majority"});
    TrainingMade::describe(visit, self.made);
    visit("ms_per_step", self.ms_per_step, "over the steps of all runs; null: there was none to do",
          {.low = 0, .or_null = true});
    visit("settings", self.settings, "every option as resolved");
    visit("runs", self.runs, "one for each norm and seed", {.least = 1});
    visit("norms", self.norms, "means over the seeds of each norm", {.least = 1});
  }
};

// Where texts come from, as far as it takes to read them again, and what was found there.
struct TextData {
  std::string source = {};              // "imdb", "gutenberg", "grammar", or "files"
  std::vector<std::string> files = {};  // of "files": texts of a language model, or one table
  std::string test = {};                // a table to test on; empty: a share is held out
  std::string text_column = {}, label_column = {};
  std::uint64_t seed = 0, most_tokens = 0;
  double held_out_share = 0.05;
  std::uint64_t most_test_texts = 0;
  std::string tokenizer = {};  // "bytes", "words", the name of a fetched one, or a directory
  std::string description = {}, tokenizer_description = {};
  bool generated = false;
  std::vector<std::string> classes = {};
  std::string content_hash = {};

  static void describe(auto& visit, auto& self) {
    visit("source", self.source, "a corpus by name, or files");
    visit("files", self.files, "that were named");
    visit("test", self.test, "a table to test on; empty: a share is held out");
    visit("text_column", self.text_column, "of the tables; empty: known by its name");
    visit("label_column", self.label_column, "of the tables; empty: known by its name");
    visit("seed", self.seed, "of a grammar, and of which part is held out");
    visit("most_tokens", self.most_tokens, "that are read; 0: all");
    visit("held_out_share", self.held_out_share, "that is not trained on");
    visit("most_test_texts", self.most_test_texts, "of labelled texts; 0: all");
    visit("tokenizer", self.tokenizer, "by name, or a directory");
    visit("description", self.description, "of the texts, for people");
    visit("tokenizer_description", self.tokenizer_description, "for people");
    visit("generated", self.generated, "by a grammar");
    visit("classes", self.classes, "of labelled texts");
    visit("content_hash", self.content_hash, "of the tokens");
  }
};

// The settings of a training on text, as resolved: what the numbers follow from, apart from norm and seed.
// Files are not named, for they may move.
struct TextUsed : TextTrainingSettings {
  std::size_t batch = 16, context = 1024;
  std::string text = {}, tokenizer = {}, content_hash = {};

  bool classifies() const { return spec.classes > 0; }

  static void describe(auto& visit, auto& self) {
    auto& model = self.spec.model;
    visit("model", model.family, "gpt2 or bert", {.always = self.classifies() ? "bert" : "gpt2"});
    if constexpr (!std::is_const_v<std::remove_reference_t<decltype(self)>>) self.take_as_published();
    visit("vocabulary", model.vocabulary, "tokens that the tokenizer knows", {.low = 1});
    visit("dim", model.block.width, "width d of the model", {.low = 1});
    visit("layers", model.layers, "of the model", {.low = 1});
    visit("heads", model.block.heads, "of attention", {.low = 1});
    visit("feed_forward", model.block.feed_forward, "width of the hidden part", {.low = 1});
    visit("positions", model.positions, "of the table of positions", {.low = 1});
    visit("dropout", model.block.dropout, "share of numbers that it leaves out", {.low = 0, .high = 1});
    visit("norm_affine", model.block.norm.affine, "gain and bias before attention are trained");
    visit("query_key_value_bias", self.spec.query_key_value_bias, "it is trained");
    visit("classes", self.spec.classes, "of a classifier; 0: a language model",
          {.low = self.classifies() ? 2.0 : 0, .high = self.classifies() ? 1000.0 : 0});
    visit("batch", self.batch, "texts of a step", {.low = 1});
    visit("context", self.context, "tokens of a text, or the most of one", {.low = 1});
    visit("learning_rate", self.adam.learning_rate, "of AdamW, at its peak", {.low = 0});
    visit("schedule", self.adam.schedule.kind, "of the learning rate, after warmup");
    visit("warmup", self.adam.schedule.warmup, "steps over which the learning rate rises from 0");
    visit("decay_steps", self.adam.schedule.steps, "the step from which on the learning rate is 0",
          {.low = 1});
    visit("weight_decay", self.adam.weight_decay, "decoupled", {.low = 0});
    visit("clip", self.adam.clip, "largest norm of the gradient; 0: no limit", {.low = 0});
    visit("steps", self.steps, "of training");
    visit("evaluate_every", self.evaluate_every, "steps between two records", {.low = 1});
    visit("text", self.text, "description of the texts, for people", {.pattern = "."});
    visit("tokenizer", self.tokenizer, "its description, for people", {.pattern = "."});
    visit("content_hash", self.content_hash, "of the tokens; a run goes on only with the same",
          {.pattern = self.classifies() ? "^[0-9a-f]{32}$" : "^[0-9a-f]{16}$"});
  }

 private:
  // What is not said of a model of this family is as published.
  void take_as_published() {
    const std::string family = spec.model.family;
    static_cast<TextTrainingSettings&>(*this) =
        family == "bert" ? published_sentiment_training() : published_language_training();
    spec.model.family = family;
  }
};

struct TextMeasures {
  double train_loss = 0, held_out_loss = 0, accuracy = 0;
  std::size_t held_out_targets = 0;            // 0: nothing is held out
  std::optional<std::uint64_t> texts, tokens;  // the first of a classifier, the second of a language model

  bool held_out() const { return held_out_targets > 0; }

  static void describe(auto& visit, auto& self) {
    visit("train_loss", self.train_loss, "mean cross-entropy since the evaluation before, in nats",
          {.low = 0, .or_null = true});
    visit.of_kind(true, self.held_out(), "held_out_loss", self.held_out_loss,
                  "the same of what is held out or tested",
                  {.low = 0, .or_null = true, .with = "held_out_targets"});
    visit.of_kind(self.texts.has_value(), self.held_out(), "accuracy", self.accuracy,
                  "share of texts whose class is right", {.low = 0, .high = 1});
    visit.of_kind(true, self.held_out(), "held_out_targets", self.held_out_targets,
                  "tokens or texts of that mean", {.low = 1, .with = "held_out_loss"});
    visit.of_kind(self.texts.has_value(), true, "texts", self.texts, "seen in training");
    visit.of_kind(self.tokens.has_value(), true, "tokens", self.tokens, "seen in training");
  }
};

// As config.json holds it: plans that read the same are the same training.
struct TextPlan {
  using Training = TextTraining;
  using Row = TextRow;
  using Measures = TextMeasures;

  TextUsed settings = {};
  std::vector<PlannedRun> runs = {};
  std::uint64_t save_every = 0;
  std::optional<std::uint64_t> checkpoint_every = {};
  TextData data = {};

  static void describe(auto& visit, auto& self) {
    visit("settings", self.settings, "what the numbers follow from, apart from norm and seed");
    visit("runs", self.runs, "each with its norm and seed");
    visit("save_every", self.save_every, "steps between two models that are kept; 0: only the last");
    visit("checkpoint_every", self.checkpoint_every, "steps, rounded up to a record; null: half a minute");
    visit("data", self.data, "where the texts come from");
  }
};

// The texts as they were read.
struct TextsFound {
  std::string source, description, tokenizer;
  bool generated = false;
  std::size_t training_tokens = 0, held_out_tokens = 0;
  std::uint64_t documents = 0, bytes = 0;
  bool whole = true;
  std::size_t training_texts = 0, test_texts = 0, cut_texts = 0, repeated_texts = 0;
  std::vector<std::string> classes;  // none: texts of a language model

  static void describe(auto& visit, auto& self) {
    const bool labelled = !self.classes.empty();
    visit("source", self.source, "a corpus by name, or files",
          {.pattern = labelled ? "^(imdb|grammar|files)$" : "^(imdb|gutenberg|grammar|files)$"});
    visit("description", self.description, "the same for people", {.pattern = "."});
    visit("generated", self.generated, "written by the grammar, not real text");
    visit("tokenizer", self.tokenizer, "for people: which, and how many tokens it has", {.pattern = "."});
    visit.of_kind(!labelled, true, "training_tokens", self.training_tokens, "tokens to train on", {.low = 2});
    visit.of_kind(!labelled, true, "held_out_tokens", self.held_out_tokens, "those at the end that are not");
    visit.of_kind(!labelled, true, "documents", self.documents, "of which something was read", {.low = 1});
    visit.of_kind(!labelled, true, "bytes", self.bytes, "of text that was read", {.low = 1});
    visit.of_kind(!labelled, true, "whole", self.whole, "false: the corpus has more");
    visit.of_kind(labelled, true, "training_texts", self.training_texts, "texts to train on", {.low = 1});
    visit.of_kind(labelled, true, "test_texts", self.test_texts, "texts that each record is tested on",
                  {.low = 1});
    visit.of_kind(labelled, true, "cut_texts", self.cut_texts, "of both, longer than context");
    visit.of_kind(labelled, true, "repeated_texts", self.repeated_texts,
                  "left out of training, for they are tested");
    visit.of_kind(labelled, true, "classes", self.classes, "the labels, in the order of the model's outputs",
                  {.least = 2, .most = 1000});
  }
};

struct TroubleResult : LossTrouble {
  static void describe(auto& visit, auto& self) {
    visit("kind", self.kind, "a number that is not finite, or a loss that rose and stayed high");
    visit("step", self.step, "where it began");
    visit("loss", self.loss, "there; null: not finite", {.low = 0, .or_null = true});
    visit("tensor", self.tensor, "not finite, or with the largest gradient; empty: only the loss is");
  }
};

struct TextRunResult {
  PlannedRun run;
  std::size_t parameters = 0;
  std::uint64_t step = 0;
  TextMeasures measures;
  double perplexity = 0;
  std::optional<TroubleResult> trouble;
  std::optional<std::string> model;

  static void describe(auto& visit, auto& self) {
    PlannedRun::describe(visit, self.run);
    visit("parameters", self.parameters, "their number", {.low = 1});
    visit("step", self.step, "of the last evaluation, which the measures are of");
    TextMeasures::describe(visit, self.measures);
    visit.of_kind(self.measures.tokens.has_value(), self.measures.held_out(), "perplexity", self.perplexity,
                  "exp of held_out_loss", {.low = 1, .or_null = true, .with = "held_out_loss"});
    visit.when(self.trouble.has_value(), "trouble", self.trouble, "why the run stopped before its end");
    visit.when(self.model.has_value(), "model", self.model, "where in the run directory the model is",
               {.pattern = "^models/.+-seed[0-9]+(-step[0-9]+)?$"});
  }
};

struct TextNormResult {
  std::string norm;
  std::size_t runs = 0;
  MeanResult train_loss, held_out_loss;
  std::optional<MeanResult> accuracy, perplexity;  // of a classifier; of a language model

  static void describe(auto& visit, auto& self) {
    visit("norm", self.norm, "by name");
    visit("runs", self.runs, "of this norm, without those with trouble");
    visit("train_loss", self.train_loss, "over these");
    visit("held_out_loss", self.held_out_loss, "over these");
    visit.of_kind(self.accuracy.has_value(), true, "accuracy", self.accuracy,
                  "over these; of one run with the interval of a share of texts");
    visit.of_kind(self.perplexity.has_value(), true, "perplexity", self.perplexity, "over these");
  }
};

struct TextResult {
  std::string command;
  TrainingMade made;
  double tokens_per_second = 0;
  TextUsed settings;
  TextsFound data;
  std::vector<TextRunResult> runs;
  std::vector<TextNormResult> norms;

  static void describe(auto& visit, auto& self) {
    visit("command", self.command, "train lm or train sentiment",
          {.always = self.settings.classifies() ? "train sentiment" : "train lm"});
    TrainingMade::describe(visit, self.made);
    visit("tokens_per_second", self.tokens_per_second, "of training; null: there was no step to do",
          {.low = 0, .or_null = true});
    visit("settings", self.settings, "every option as resolved");
    visit("data", self.data, "the texts");
    visit("runs", self.runs, "one for each norm and seed", {.least = 1});
    visit("norms", self.norms, "means over the seeds of each norm", {.least = 1});
  }

  // What a result of each kind has at least: what is trained on texts is held out only if that is asked for.
  static TextResult of_a_language_model() {
    TextResult result;
    result.runs.emplace_back().measures.tokens = 0;
    result.norms.emplace_back().perplexity.emplace();
    return result;
  }
  static TextResult of_a_classifier() {
    TextResult result;
    result.settings.spec.classes = 2;
    result.data.classes = {"no", "yes"};
    TextMeasures& measures = result.runs.emplace_back().measures;
    measures.texts = 0;
    measures.held_out_targets = 1;
    result.norms.emplace_back().accuracy.emplace();
    return result;
  }
};

}  // namespace normscope

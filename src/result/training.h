#pragma once
// What trainings answer (`train majority`, `train lm`, `train sentiment`), and what they follow from.
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
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
    visit("version", self.made.version, "of the program");
    visit("commit", self.made.commit, "it was built from");
    visit("isa", self.made.isa, "instruction set the kernels ran with");
    visit("threads", self.made.threads, "used; results do not depend on it");
    visit("seconds", self.seconds, "of training and evaluation");
  }
};

// The settings of a majority training, as resolved.
struct MajorityUsed : MajoritySettings {
  static void describe(auto& visit, auto& self) {
    visit("classes", self.task.classes, "token types");
    visit("length", self.task.length, "tokens of a sequence");
    visit("samples", self.task.samples, "sequences");
    visit("margin", self.task.margin, "least lead of the majority, in tokens");
    visit("assignments", self.task.assignments, "sequences made of each partition");
    visit("dim", self.dimension, "width d of the encoder");
    visit("heads", self.heads, "of attention");
    visit("layers", self.layers, "of the encoder");
    visit("feed_forward", self.feed_forward, "width of the hidden part");
    visit("mask", self.mask, "by name");
    visit("batch", self.batch, "sequences of a step");
    visit("learning_rate", self.adam.learning_rate, "of Adam, at the start");
    visit("decay_steps", self.adam.schedule.steps, "the step from which on the learning rate is 0");
    visit("weight_decay", self.adam.weight_decay, "decoupled");
    visit("clip", self.adam.clip, "largest norm of the gradient; 0: no limit");
    visit("steps", self.steps, "of training");
    visit("evaluate_every", self.evaluate_every, "steps between two records");
    visit("stop_accuracy", self.stop_accuracy, "a run ends at this test accuracy; above 1: never");
    visit("data_seed", self.data_seed, "of the sequences; null: that of the run");
    visit("path", self.path, "how gradients are computed");
  }
};

// One value for each measure of an evaluation: a number of a run, or a mean over runs.
template <class Value>
struct MajorityMeasures {
  Value train_loss{}, test_loss{}, accuracy{}, sequence_accuracy{}, angle_mean{}, angle_sd{},
      attention_entropy{}, attention_distance{};

  static void describe(auto& visit, auto& self) {
    visit("train_loss", self.train_loss, "mean cross-entropy since the evaluation before, in nats");
    visit("test_loss", self.test_loss, "mean cross-entropy of the held-out sequences");
    visit("accuracy", self.accuracy, "share of positions that are right");
    visit("sequence_accuracy", self.sequence_accuracy, "share of sequences right at every position");
    visit("angle_mean", self.angle_mean, "of the first layer's queries to 1, in degrees");
    visit("angle_sd", self.angle_sd, "its standard deviation over tokens and heads");
    visit("attention_entropy", self.attention_entropy, "of the attention rows, in nats");
    visit("attention_distance", self.attention_distance, "their total variation distance from uniform");
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
    visit("parameters", self.parameters, "their number");
    visit("step", self.step, "of the last evaluation, which the measures are of");
    MajorityMeasures<double>::describe(visit, self.measures);
    visit.when(self.diverged, "diverged", self.diverged, "the loss became infinite");
    visit("keys_out_of_plane", self.keys_out_of_plane,
          "share of the keys' squared length outside their best hyperplane through the origin");
    visit("steps_to", self.steps_to, "the first evaluation whose train_loss is at most this; null: none");
  }
};

struct MajorityNormResult {
  std::string norm;
  std::size_t runs = 0;
  MajorityMeasures<MeanResult> measures;
  Named<MeanResult> steps_to;

  static void describe(auto& visit, auto& self) {
    visit("norm", self.norm, "by name");
    visit("runs", self.runs, "of this norm");
    MajorityMeasures<MeanResult>::describe(visit, self.measures);
    visit("steps_to", self.steps_to, "of those that got there; a mean only if all did");
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
    visit("command", command, "train majority");
    TrainingMade::describe(visit, self.made);
    visit("ms_per_step", self.ms_per_step, "over the steps of all runs; null: there was none to do");
    visit("settings", self.settings, "every option as resolved");
    visit("runs", self.runs, "one for each norm and seed");
    visit("norms", self.norms, "means over the seeds of each norm");
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
    visit("model", model.family, "gpt2 or bert");
    if constexpr (!std::is_const_v<std::remove_reference_t<decltype(self)>>) self.take_as_published();
    visit("vocabulary", model.vocabulary, "tokens that the tokenizer knows");
    visit("dim", model.block.width, "width d of the model");
    visit("layers", model.layers, "of the model");
    visit("heads", model.block.heads, "of attention");
    visit("feed_forward", model.block.feed_forward, "width of the hidden part");
    visit("positions", model.positions, "of the table of positions");
    visit("dropout", model.block.dropout, "share of numbers that it leaves out");
    visit("norm_affine", model.block.norm.affine, "gain and bias before attention are trained");
    visit("query_key_value_bias", self.spec.query_key_value_bias, "it is trained");
    visit("classes", self.spec.classes, "of a classifier; 0: a language model");
    visit("batch", self.batch, "texts of a step");
    visit("context", self.context, "tokens of a text, or the most of one");
    visit("learning_rate", self.adam.learning_rate, "of AdamW, at its peak");
    visit("schedule", self.adam.schedule.kind, "of the learning rate, after warmup");
    visit("warmup", self.adam.schedule.warmup, "steps over which the learning rate rises from 0");
    visit("decay_steps", self.adam.schedule.steps, "the step from which on the learning rate is 0");
    visit("weight_decay", self.adam.weight_decay, "decoupled");
    visit("clip", self.adam.clip, "largest norm of the gradient; 0: no limit");
    visit("steps", self.steps, "of training");
    visit("evaluate_every", self.evaluate_every, "steps between two records");
    visit("text", self.text, "description of the texts, for people");
    visit("tokenizer", self.tokenizer, "its description, for people");
    visit("content_hash", self.content_hash, "of the tokens; a run goes on only with the same");
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
    visit("train_loss", self.train_loss, "mean cross-entropy since the evaluation before, in nats");
    visit.when(self.held_out(), "held_out_loss", self.held_out_loss,
               "the same of what is held out or tested");
    visit.when(self.held_out() && self.texts, "accuracy", self.accuracy,
               "share of texts whose class is right");
    visit.when(self.held_out(), "held_out_targets", self.held_out_targets, "tokens or texts of that mean");
    visit.when(self.texts.has_value(), "texts", self.texts, "seen in training");
    visit.when(self.tokens.has_value(), "tokens", self.tokens, "seen in training");
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
    visit("source", self.source, "a corpus by name, or files");
    visit("description", self.description, "the same for people");
    visit("generated", self.generated, "written by the grammar, not real text");
    visit("tokenizer", self.tokenizer, "for people: which, and how many tokens it has");
    visit.when(!labelled, "training_tokens", self.training_tokens, "tokens to train on");
    visit.when(!labelled, "held_out_tokens", self.held_out_tokens, "those at the end that are not");
    visit.when(!labelled, "documents", self.documents, "of which something was read");
    visit.when(!labelled, "bytes", self.bytes, "of text that was read");
    visit.when(!labelled, "whole", self.whole, "false: the corpus has more");
    visit.when(labelled, "training_texts", self.training_texts, "texts to train on");
    visit.when(labelled, "test_texts", self.test_texts, "texts that each record is tested on");
    visit.when(labelled, "cut_texts", self.cut_texts, "of both, longer than context");
    visit.when(labelled, "repeated_texts", self.repeated_texts, "left out of training, for they are tested");
    visit.when(labelled, "classes", self.classes, "the labels, in the order of the model's outputs");
  }
};

struct TroubleResult : LossTrouble {
  static void describe(auto& visit, auto& self) {
    visit("kind", self.kind, "a number that is not finite, or a loss that rose and stayed high");
    visit("step", self.step, "where it began");
    visit("loss", self.loss, "there; null: not finite");
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
    visit("parameters", self.parameters, "their number");
    visit("step", self.step, "of the last evaluation, which the measures are of");
    TextMeasures::describe(visit, self.measures);
    visit.when(self.measures.held_out() && self.measures.tokens, "perplexity", self.perplexity,
               "exp of held_out_loss");
    visit.when(self.trouble.has_value(), "trouble", self.trouble, "why the run stopped before its end");
    visit.when(self.model.has_value(), "model", self.model, "where in the run directory the model is");
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
    visit.when(self.accuracy.has_value(), "accuracy", self.accuracy,
               "over these; of one run with the interval of a share of texts");
    visit.when(self.perplexity.has_value(), "perplexity", self.perplexity, "over these");
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
    visit("command", self.command, "train lm or train sentiment");
    TrainingMade::describe(visit, self.made);
    visit("tokens_per_second", self.tokens_per_second, "of training; null: there was no step to do");
    visit("settings", self.settings, "every option as resolved");
    visit("data", self.data, "the texts");
    visit("runs", self.runs, "one for each norm and seed");
    visit("norms", self.norms, "means over the seeds of each norm");
  }
};

}  // namespace normscope

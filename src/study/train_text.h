#pragma once
// Which keys does training leave unselectable? Trainings of a language model (GPT-2) and of a classifier of
// texts (BERT), with any norms and seeds, by default as Brody et al. 2023 trained them.
#include <optional>
#include <string>
#include <vector>

#include "study/training.h"
#include "study/training_texts.h"

namespace normscope {

// What both have in common.
struct TextTrainingOptions : TrainingOptions {
  std::string corpus = {}, tokenizer = {};
  std::size_t batch = 16, context = 1024, dimension = 8, layers = 4, heads = 4;
  std::optional<std::size_t> feed_forward = {};
  double learning_rate = 5e-5, dropout = 0.1;
  std::uint64_t warmup = 0, steps = 50'000, data_seed = 0;
  std::optional<std::uint64_t> evaluate_every = {}, save_every = {};

  static void describe(auto& visit, auto& self) {
    visit("dimension", self.dimension, "Width d of the model", counted());
    visit("layers", self.layers, "Layers", counted());
    visit("heads", self.heads, "Attention heads", counted());
    visit("learning-rate", self.learning_rate,
          "Learning rate of AdamW, which falls linearly to 0 over the steps",
          OptionFacts{.type = "X", .low = 1e-12, .high = 1e38});
    visit("warmup", self.warmup, "Steps over which it first rises from 0", counted(nullptr, 0));
    visit("dropout", self.dropout, "Share of numbers that dropout leaves out",
          OptionFacts{.type = "P", .low = 0, .high = 1});
    visit("steps", self.steps, "Training steps", counted(nullptr, 0));
    visit("data-seed", self.data_seed,
          "Seed of text that a grammar writes, and of the choice of texts to test on");
    visit("save-every", self.save_every,
          "With --out: also keep the model every N steps, rounded up to a record", counted());
    visit("batch", self.batch, "Texts of a batch", counted());
    TrainingOptions::describe(visit, self);
  }
};

struct LanguageOptions : TextTrainingOptions {
  std::vector<std::string> text = {};
  std::string test = {};
  std::optional<std::uint64_t> tokens = {};
  std::optional<double> held_out = {};
  bool train_all = false;

  LanguageOptions() { norm = "layernorm"; }

  static void describe(auto& visit, auto& self) {
    visit("norm", self.norm, "Norm before attention, or several with commas", OptionFacts{.type = "NAME"});
    visit("text", self.text, "Text to train on: one or more files; - is standard input",
          OptionFacts{.type = "FILE"});
    visit("corpus", self.corpus, "Text to train on: imdb, gutenberg or grammar (generated)",
          OptionFacts{.type = "NAME", .otherwise = "the first that was fetched"});
    visit("tokens", self.tokens, "Most tokens of the text that are read", counted("all"));
    visit("tokenizer", self.tokenizer, "gpt2, bytes, or a directory with a tokenizer",
          OptionFacts{.type = "NAME", .otherwise = "gpt2 if it was fetched, else bytes"});
    visit("held-out", self.held_out, "Share of the text that is measured on, not trained on",
          OptionFacts{.type = "SHARE", .low = 0, .high = 0.99, .otherwise = "0.05; with --test none"});
    visit("test", self.test, "Another text to measure on, such as the contexts of SQuAD",
          OptionFacts{.type = "FILE", .otherwise = "what --held-out leaves"});
    visit("context", self.context, "Tokens of a text, the longest the model takes", counted());
    visit("feed-forward", self.feed_forward, "Width of the feed-forward part", counted("4 × --dimension"));
    visit("evaluate-every", self.evaluate_every, "Steps between two records", counted("100"));
    visit("train-all", self.train_all,
          "Also train what the paper froze: gain and bias of the norm before attention, and the bias of "
          "queries, keys and values");
    TextTrainingOptions::describe(visit, self);
  }
};

struct SentimentOptions : TextTrainingOptions {
  std::string data = {}, text_column = {}, label_column = {}, test = {};
  std::optional<double> test_share = {};
  std::uint64_t test_texts = 2500;

  SentimentOptions() {
    norm = "none";
    batch = 32;
    context = 128;
  }

  static void describe(auto& visit, auto& self) {
    visit("norm", self.norm, "Every norm of the model, or several to compare, with commas",
          OptionFacts{.type = "NAME"});
    visit("data", self.data, "Texts with labels to train on: .tsv, .csv, .json or .jsonl",
          OptionFacts{.type = "FILE"});
    visit("text-column", self.text_column, "Column of the texts",
          OptionFacts{.type = "NAME", .otherwise = "sentence, text, content or review"});
    visit("label-column", self.label_column, "Column of the labels",
          OptionFacts{.type = "NAME", .otherwise = "label, sentiment or class"});
    visit("test", self.test, "Texts to test on, with the same columns",
          OptionFacts{.type = "FILE", .otherwise = "a share of --data"});
    visit("test-share", self.test_share, "Share of --data to test on, of each class",
          OptionFacts{.type = "SHARE", .low = 1e-6, .high = 0.99, .otherwise = "0.2"});
    visit("test-texts", self.test_texts, "Most texts that each record is tested on, evenly spaced; 0: all",
          counted(nullptr, 0));
    visit("corpus", self.corpus, "Texts to train on: imdb or grammar (generated)",
          OptionFacts{.type = "NAME", .otherwise = "imdb if it was fetched"});
    visit("tokenizer", self.tokenizer, "bert, words (those of the texts), or a directory with a tokenizer",
          OptionFacts{.type = "NAME", .otherwise = "bert if it was fetched, else words"});
    visit("length", self.context, "Tokens of a text; longer texts are cut", counted());
    visit("feed-forward", self.feed_forward, "Width of the feed-forward part", counted("3072"));
    visit("evaluate-every", self.evaluate_every, "Steps between two records",
          counted("a twentieth of --steps, at most 500"));
    TextTrainingOptions::describe(visit, self);
  }
};

struct PlannedTexts {
  TextPlan plan;
  TextsRead texts;
};
// The options as resolved, by what was fetched (a note says so), and the texts. Throws InputError on what
// cannot be.
PlannedTexts plan_language(const LanguageOptions& options, const Context& context);
PlannedTexts plan_sentiment(const SentimentOptions& options, const Context& context);
// The plan with what was found in the texts.
TextPlan with_texts(TextPlan plan, const TextsRead& texts);
// The texts of an earlier plan. Throws InputError if they are not what it was begun with.
TextsRead read_again(const TextPlan& plan, const Executor& executor);
void require_same_data(const TextPlan& begun, const TextPlan& now);
void check_plan(const TextPlan& plan);

TextMeasures measures_of(const TextRow& row, const TextPlan& plan);
TextRow row_of(std::uint64_t step, const TextMeasures& measures);
// Means over the runs of a norm that are as good as their last row says.
TextNormResult norm_result(const std::string& norm, std::span<const TextRun> runs, bool classifies);

using TextRecord = PlanRecord<TextPlan>;

struct TextTrainingStudy {
  TextTraining training;
  TrainingTime time;
  TextResult result;
};
// Trains, from where `record` left it; its folder models/ then holds the trained models, and what
// `save_every` asks for. Null: nothing is kept. `evaluated` as in train_to_end. Progress: tokens of all runs.
TextTrainingStudy study_text(const TextPlan& plan, const TextsRead& texts, TextRecord* record,
                             const Context& context,
                             const std::function<void(const TextTraining&)>& evaluated = {});

// Every run that stopped before its end, in one sentence each.
std::vector<std::string> troubles(std::span<const TextRun> runs,
                                  const std::optional<std::filesystem::path>& checkpoint);

}  // namespace normscope

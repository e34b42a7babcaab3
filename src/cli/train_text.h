#pragma once
// What `train lm` and `train sentiment` share: options, the run from texts to tables, models in files.
#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/common.h"
#include "normscope/text_training.h"
#include "normscope/training_tokenizer.h"
#include "record/text_record.h"
#include "report/training_page.h"

namespace normscope::cli {

// As typed; empty: the default.
struct TrainTextCall {
  std::string norm, seeds, dimension, layers, heads, feed_forward, context, batch, learning_rate, warmup,
      weight_decay, clip, dropout, steps, evaluate_every, checkpoint_every, save_every, tokenizer, data_seed,
      held_out, resume;
  bool train_all = false;
  // Of language models.
  std::vector<std::string> text;
  std::string corpus, tokens;
  // Of classifiers.
  std::string data, test, text_column, label_column, test_texts;
};

// Texts as they were read: batches to train on, and what else is known of them.
struct ReadTexts {
  TextBatches batches;
  TrainingTokenizer tokenizer;
  nlohmann::ordered_json counts;  // tokens, documents, texts, …, for results.json
  std::string sentence;           // the same, for people
  std::string content_hash, description;
  bool generated = false;
  std::vector<std::string> classes;
};

// One of the two commands.
struct TextCommand {
  const char* name;  // "train lm"
  TextTrainingSettings defaults;
  std::size_t batch, context;
  const char* norm;
  // What the call says of the texts, with defaults that depend on what was fetched (a note says which).
  std::function<TextData(const TrainTextCall&, const TextPlan&, const Common&)> resolve;
  // The texts of a plan, read (anew).
  std::function<ReadTexts(const TextPlan&, const Executor&)> read;
  TrainingAbout about;
};

void add_text_options(CLI::App& command, TrainTextCall& call, const TextCommand& kind);
void run_text(const TextCommand& kind, const TrainTextCall& call, const Common& common,
              const CLI::App& command);

void add_train_lm(CLI::App& train, Common& common);
void add_train_sentiment(CLI::App& train, Common& common);

}  // namespace normscope::cli

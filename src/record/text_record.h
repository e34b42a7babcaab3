#pragma once
// A training on text as a run directory (training_record.h): metrics.jsonl has a line per run and evaluation,
// checkpoint.safetensors the parameters, moments and progress of every run. Texts are not part of it: they
// are read anew to go on, and must then be the same.
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "normscope/loss_watch.h"
#include "normscope/record.h"
#include "normscope/text_training.h"
#include "record/training_record.h"

namespace normscope {

// Where the texts come from, as far as it takes to read them again, and what was found there.
struct TextData {
  std::string source;              // "imdb", "gutenberg", "grammar", or "files"
  std::vector<std::string> files;  // of "files": texts of a language model, or one table of labelled texts
  std::string test;                // a table to test on; empty: a share is held out
  std::string text_column, label_column;  // empty: those known by their names
  std::uint64_t seed = 0;                 // of a grammar, and of which part is held out
  std::uint64_t most_tokens = 0;          // 0: all
  double held_out_share = 0.05;
  std::uint64_t most_test_texts = 0;  // of labelled texts; 0: all
  std::string tokenizer;              // "bytes", "words", the name of a fetched one, or a directory

  std::string description, tokenizer_description;  // for people
  bool generated = false;                          // by a grammar
  std::vector<std::string> classes;                // of labelled texts
  std::string content_hash;                        // of the tokens
};

struct TextPlan {
  TextTrainingSettings settings;
  std::vector<TrainingRunId> runs;
  std::size_t batch = 16;        // texts
  std::size_t context = 1024;    // tokens of a text, or the most of one
  std::uint64_t save_every = 0;  // steps between two models that are kept; 0: only the last
  // Steps between two checkpoints, rounded up to an evaluation; none: half a minute.
  std::optional<std::uint64_t> checkpoint_every = {};
  TextData data;
};
// What the numbers follow from, apart from norm and seed.
nlohmann::ordered_json settings_json(const TextPlan& plan);
// As config.json holds it: plans that read the same are the same training.
nlohmann::ordered_json to_json(const TextPlan& plan);
// Throws InputError on what to_json does not write.
TextPlan text_plan(const nlohmann::ordered_json& json);
// A row as a line of metrics.jsonl has it, without norm and seed.
nlohmann::ordered_json to_json(const TextRow& row, const TextPlan& plan);

// Throws InputError if what was read anew is not what the run was begun with.
void require_same_data(const TextPlan& plan, const std::string& content_hash, std::size_t vocabulary);

class TextRecord {
 public:
  // A new training. Throws InputError if the directory holds a run already.
  TextRecord(const std::filesystem::path& directory, std::string_view command, const Provenance& provenance,
             const TextPlan& plan);
  // An earlier training, to go on with. Throws InputError if it is not one of `command`, of another version,
  // or being written by another process.
  static TextRecord open(const std::filesystem::path& directory, std::string_view command);

  const RunDirectory& directory() const { return record_.directory(); }
  const TextPlan& plan() const { return plan_; }
  // Brings a training of plan() to where the checkpoint left it, if there is one.
  void restore(TextTraining& training);
  // In place of the plan's.
  void set_checkpoint_every(std::uint64_t steps) { record_.set_checkpoint_every(steps); }
  // The rows recorded since the last call, in the order of runs; a checkpoint, if it is time for one or the
  // training is done. Of a run in trouble it holds the last good state.
  void add(const TextTraining& training);
  // Where the checkpoint is, if there is one.
  std::optional<std::filesystem::path> checkpoint() const;

 private:
  TextRecord(TrainingRecord record, TextPlan plan)
      : record_(std::move(record)), plan_(std::move(plan)), written_(plan_.runs.size(), 0) {
    record_.set_checkpoint_every(plan_.checkpoint_every);
  }

  TrainingRecord record_;
  TextPlan plan_;
  std::vector<std::size_t> written_;  // rows of each run that the log holds
};

}  // namespace normscope

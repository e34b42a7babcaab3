#pragma once
// The files of earlier runs, read as if written by an enemy: within bounds of size, depth and number.
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace normscope {

// One run of a training: its rows of metrics.jsonl, in their order.
struct TrainingSeries {
  enum Measure { train_loss, accuracy, angle, attention_distance, held_out_loss };
  static constexpr std::array<const char*, 5> measures = {"train_loss", "accuracy", "angle_mean",
                                                          "attention_distance", "held_out_loss"};
  struct Row {
    double step;
    std::array<double, measures.size()> values;  // NaN: not there
  };
  std::string norm;
  std::uint64_t seed = 0;
  std::vector<Row> rows;

  double last_step() const { return rows.empty() ? -1 : rows.back().step; }
};

struct TrainingLog {
  static constexpr std::size_t most_rows = 400'000, most_series = 4096;
  std::vector<TrainingSeries> series;
  std::size_t left_out = 0;  // rows beyond most_rows: of every series each second one, as often as needed

  std::size_t rows() const;
  void halve();
};

struct RunFiles {
  std::filesystem::path directory;
  std::string name;  // as it was given
  std::string command;
  nlohmann::ordered_json config;   // an object
  nlohmann::ordered_json results;  // null: the run goes on, or is too large to be read
  bool finished = false;           // results.json is there
  std::string note;                // what a reader should know of the state of the files; may be empty
  TrainingLog log;                 // of trainings

  bool has_report() const;
};

// Throws InputError, in a sentence that names the directory, if it is not a run of normscope or if a file of
// it cannot be read.
RunFiles read_run(const std::filesystem::path& directory);

// Members of what may be anyone's: 0 or empty if they are not there or of another kind. Texts are cut at 2000
// bytes.
std::uint64_t count_of(const nlohmann::ordered_json& json, const char* name);
std::string text_of(const nlohmann::ordered_json& json, const char* name);
// The member if it is there and an object, or an empty one.
const nlohmann::ordered_json& object_of(const nlohmann::ordered_json& json, const char* name);

}  // namespace normscope

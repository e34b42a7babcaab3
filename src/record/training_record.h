#pragma once
// Any training as a run directory: config.json, metrics.jsonl (lines as the training gives them),
// checkpoint.safetensors (all that is needed to go on). After a kill at any moment the directory leads to the
// same bytes as an uninterrupted training: lines are synced before the checkpoint that knows them by length
// and hash, and on resuming what follows them is dropped.
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "normscope/record.h"
#include "normscope/tensor_file.h"

namespace normscope {

inline constexpr const char *kMetricsFile = "metrics.jsonl", *kCheckpointFile = "checkpoint.safetensors";

// What a checkpoint holds, while it is restored.
class TrainingState {
 public:
  TrainingState(const TensorFile& file, std::span<const std::string> lines) : file_(file), lines_(lines) {}

  std::span<const std::string> lines() const { return lines_; }  // that it knows
  std::vector<Tensor> tensors() const;
  // Throws InputError if there is no tensor of that name and size.
  void read(const std::string& name, std::span<float> into) const;
  // What write_checkpoint was given. Throws InputError if it was not.
  const std::string& metadata(const std::string& name) const;

 private:
  const TensorFile& file_;
  std::span<const std::string> lines_;
};

class TrainingRecord {
 public:
  using Metadata = std::map<std::string, std::string>;

  // A new training. `options`: a JSON object. `settings`: what its numbers follow from, in a form that is the
  // same for the same training; a checkpoint of others is refused. Throws InputError if the directory holds a
  // run already.
  TrainingRecord(const std::filesystem::path& directory, std::string_view command,
                 const Provenance& provenance, std::string_view options, std::string settings);
  // The options of an earlier training, an object. Throws InputError if it is not one of `command`, or of
  // another version.
  static nlohmann::ordered_json options(const std::filesystem::path& directory, std::string_view command);
  // That training, to go on with. Throws InputError if it is being written by another process.
  static TrainingRecord open(const std::filesystem::path& directory, std::string settings);

  // Says other options in config.json from now on; results that an earlier end left are gone then.
  void set_options(std::string_view command, std::string_view options);

  const RunDirectory& directory() const { return directory_; }
  std::filesystem::path checkpoint_path() const { return directory_.path() / kCheckpointFile; }
  std::filesystem::path log_path() const { return directory_.path() / kMetricsFile; }
  // Of the last checkpoint, which is the last good state; none: there is no checkpoint.
  std::optional<std::uint64_t> checkpoint_step() const { return checkpoint_step_; }

  // Shows `take` what the checkpoint holds, if there is one, and drops the lines after it. `take` returns the
  // step it has come to. Throws InputError if log, checkpoint and settings do not fit each other; what was
  // taken must not be resumed then.
  void restore(const std::function<std::uint64_t(const TrainingState&)>& take);

  // Whole lines, each with its newline.
  void append(std::string_view lines);
  // Steps between two checkpoints; none: half a minute.
  void set_checkpoint_every(std::optional<std::uint64_t> steps) { checkpoint_every_ = steps; }
  bool checkpoint_due(std::uint64_t step, bool done) const;
  void write_checkpoint(std::uint64_t step, std::span<const Tensor> tensors, Metadata metadata = {});
  // Without a copy of the values.
  void write_checkpoint(std::uint64_t step, std::span<const FloatTensor> tensors, Metadata metadata = {});

 private:
  TrainingRecord(RunDirectory directory, std::string settings)
      : directory_(std::move(directory)), settings_(std::move(settings)) {}
  template <class SomeTensor>
  void write(std::uint64_t step, std::span<const SomeTensor> tensors, Metadata metadata);
  void require_as_written(const TensorFile& file) const;

  RunDirectory directory_;
  std::string settings_;
  std::optional<LineLog> log_;
  std::uint64_t log_bytes_ = 0, log_hash_ = 0;
  std::optional<std::uint64_t> checkpoint_every_, checkpoint_step_;
  std::chrono::steady_clock::time_point checkpoint_time_ = std::chrono::steady_clock::now();
};

}  // namespace normscope

#pragma once
// A majority training as a run directory: config.json, metrics.jsonl (a line per run and evaluation),
// checkpoint.safetensors (parameters, moments and progress of every run). After a kill at any moment the
// directory leads to the same bytes as an uninterrupted training: lines are synced before the checkpoint that
// knows them by length and hash, and on resuming what follows them is dropped.
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "normscope/majority.h"
#include "normscope/record.h"

namespace normscope {

nlohmann::ordered_json to_json(const MajoritySettings& settings);
// Throws InputError on what to_json does not write.
MajoritySettings majority_settings(const nlohmann::ordered_json& json);
nlohmann::ordered_json to_json(const MajorityRow& row);

struct MajorityPlan {
  MajoritySettings settings;
  std::vector<MajorityRunId> runs;
};
// As config.json holds it: plans that read the same are the same training.
nlohmann::ordered_json to_json(const MajorityPlan& plan);

class MajorityRecord {
 public:
  // A new training. Throws InputError if the directory holds a run already.
  MajorityRecord(const std::filesystem::path& directory, std::string_view command,
                 const Provenance& provenance, const MajorityPlan& plan);
  // An earlier training, to go on with. Throws InputError if it is not one of `command`, of another version,
  // or being written by another process.
  static MajorityRecord open(const std::filesystem::path& directory, std::string_view command);

  const RunDirectory& directory() const { return directory_; }
  const MajorityPlan& plan() const { return plan_; }
  // Brings a training of plan() to where the checkpoint left it, if there is one.
  void restore(MajorityTraining& training);
  // Steps between two checkpoints, rounded up to an evaluation; none: half a minute.
  void set_checkpoint_every(std::optional<std::uint64_t> steps) { checkpoint_every_ = steps; }
  // The rows recorded since the last call, in the order of runs; a checkpoint, if it is time for one or the
  // training is done.
  void add(const MajorityTraining& training);

 private:
  MajorityRecord(RunDirectory directory, MajorityPlan plan)
      : directory_(std::move(directory)), plan_(std::move(plan)), written_(plan_.runs.size(), 0) {}
  void append(std::string_view lines);
  bool checkpoint_due(const MajorityTraining& training) const;
  void write_checkpoint(const MajorityTraining& training);

  RunDirectory directory_;
  MajorityPlan plan_;
  std::optional<LineLog> log_;
  std::uint64_t log_bytes_ = 0, log_hash_ = 0;
  std::vector<std::size_t> written_;  // rows of each run that the log holds
  std::optional<std::uint64_t> checkpoint_every_;
  std::uint64_t checkpoint_step_ = 0;
  std::chrono::steady_clock::time_point checkpoint_time_ = std::chrono::steady_clock::now();
};

}  // namespace normscope

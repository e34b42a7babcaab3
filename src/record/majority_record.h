#pragma once
// A majority training as a run directory: config.json, metrics.jsonl (a line per run and evaluation),
// checkpoint.safetensors (parameters, moments and progress of every run). After a kill at any moment the
// directory leads to the same bytes as an uninterrupted training: lines are synced before the checkpoint that
// counts them, and on resuming lines beyond the checkpoint are dropped.
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

// The plan of a training, as config.json holds it.
struct MajorityPlan {
  MajoritySettings settings;
  std::vector<MajorityRunId> runs;
};

class MajorityRecord {
 public:
  // A new training. Throws InputError if the directory holds a training already.
  MajorityRecord(const std::filesystem::path& directory, std::string_view command,
                 const Provenance& provenance, const MajorityPlan& plan);
  // An earlier training, to go on with. Throws InputError if it is not one of `command`, or of another
  // version.
  static MajorityRecord open(const std::filesystem::path& directory, std::string_view command);

  const RunDirectory& directory() const { return directory_; }
  const MajorityPlan& plan() const { return plan_; }
  // Brings a training of plan() to where the checkpoint left it, if there is one.
  void restore(MajorityTraining& training);
  // The rows recorded since the last call, in the order of runs. Every half minute, and when the training is
  // done, also a checkpoint.
  void add(const MajorityTraining& training);

 private:
  MajorityRecord(RunDirectory directory, MajorityPlan plan)
      : directory_(std::move(directory)), plan_(std::move(plan)) {}
  void write_checkpoint(const MajorityTraining& training);

  RunDirectory directory_;
  MajorityPlan plan_;
  std::optional<LineLog> log_;
  std::vector<std::size_t> written_;  // rows of each run that the log holds
  std::chrono::steady_clock::time_point last_checkpoint_ = std::chrono::steady_clock::now();
};

}  // namespace normscope

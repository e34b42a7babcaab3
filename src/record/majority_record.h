#pragma once
// A majority training as a run directory (training_record.h): metrics.jsonl has a line per run and
// evaluation, checkpoint.safetensors the parameters, moments and progress of every run.
#include <nlohmann/json.hpp>
#include <optional>

#include "normscope/majority.h"
#include "normscope/record.h"
#include "record/training_record.h"

namespace normscope {

nlohmann::ordered_json to_json(const MajoritySettings& settings);
// Throws InputError on what to_json does not write.
MajoritySettings majority_settings(const nlohmann::ordered_json& json);
nlohmann::ordered_json to_json(const MajorityRow& row);

struct MajorityPlan {
  MajoritySettings settings;
  std::vector<TrainingRunId> runs;
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

  const RunDirectory& directory() const { return record_.directory(); }
  const MajorityPlan& plan() const { return plan_; }
  // Brings a training of plan() to where the checkpoint left it, if there is one.
  void restore(MajorityTraining& training);
  // Steps between two checkpoints, rounded up to an evaluation; none: half a minute.
  void set_checkpoint_every(std::optional<std::uint64_t> steps) { record_.set_checkpoint_every(steps); }
  // The rows recorded since the last call, in the order of runs; a checkpoint, if it is time for one or the
  // training is done.
  void add(const MajorityTraining& training);

 private:
  MajorityRecord(TrainingRecord record, MajorityPlan plan)
      : record_(std::move(record)), plan_(std::move(plan)), written_(plan_.runs.size(), 0) {}

  TrainingRecord record_;
  MajorityPlan plan_;
  std::vector<std::size_t> written_;  // rows of each run that the log holds
};

}  // namespace normscope

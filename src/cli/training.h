#pragma once
// What the commands that train share.
#include <span>
#include <string>

#include "cli/common.h"
#include "normscope/majority.h"
#include "record/majority_record.h"

namespace normscope::cli {

struct TrainingTime {
  double seconds = 0;
  std::uint64_t steps = 0;  // over all runs
  double ms_per_step() const { return 1e3 * seconds / static_cast<double>(steps); }
};

// Whether --resume was given. Throws InputError if anything but `allowed` and the options that do not change
// results was given with it, or if an option was given an empty value, which would be taken for its default.
bool resumes(const CLI::App& command, std::initializer_list<std::string_view> allowed = {});

// Trains to the end, with progress on standard error; into `record` if there is one.
TrainingTime train(MajorityTraining& training, MajorityRecord* record, const std::string& label,
                   const Common& common, const Executor& executor, const Whole* whole = nullptr);

// geometry.safetensors: the keys and queries of every run.
void write_geometry(const RunDirectory& directory, std::span<const MajorityRun> runs);

}  // namespace normscope::cli

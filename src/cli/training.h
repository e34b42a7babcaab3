#pragma once
// What the commands that train share.
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cli/common.h"
#include "core/number_text.h"
#include "normscope/majority.h"
#include "normscope/text_training.h"
#include "record/majority_record.h"
#include "record/text_record.h"

namespace normscope::cli {

struct TrainingTime {
  double seconds = 0;
  std::uint64_t steps = 0;   // over all runs
  std::uint64_t tokens = 0;  // of texts, what fills them up to one length included
  double ms_per_step() const { return 1e3 * seconds / static_cast<double>(steps); }
  // NaN if there was no step to do.
  double tokens_per_second() const {
    return tokens == 0 ? std::nan("") : static_cast<double>(tokens) / seconds;
  }
};

// Absolute, so that a run can be resumed from anywhere; "-" stays.
std::string lasting_path(const std::string& path);

// Whether --resume was given. Throws InputError if anything but `allowed` and the options that do not change
// results was given with it, or if an option was given an empty value, which would be taken for its default.
bool resumes(const CLI::App& command, std::initializer_list<std::string_view> allowed = {});

// Trains to the end, with progress on standard error; into `record` if there is one.
TrainingTime train(MajorityTraining& training, MajorityRecord* record, const std::string& label,
                   const Common& common, const Executor& executor, const Whole* whole = nullptr);

// `evaluated` is called after every evaluation, before a checkpoint knows of it: what it writes is not
// missing after a kill.
TrainingTime train(TextTraining& training, TextRecord* record, const std::string& label, const Common& common,
                   const Executor& executor, const Whole* whole = nullptr,
                   const std::function<void()>& evaluated = {});

// A number of the paper's ten seeds, or a list of seeds; empty: that of --seed, or the paper's first.
std::vector<std::uint64_t> parse_seeds(const std::string& seeds, const Common& common, bool seed_given);
// Names of norms with commas, each once.
std::vector<std::string> parse_norms(const std::string& text);

// How a mean over seeds is written in a table on the screen.
inline constexpr IntervalStyle kOnScreen{.sign = " ±", .none = "-"};
// What such a table shows, given the number of runs of every norm: an interval, or both values of two.
std::string over_seeds(std::span<const std::size_t> runs);

// geometry.safetensors: the keys and queries of every run.
void write_geometry(const RunDirectory& directory, std::span<const MajorityRun> runs);

}  // namespace normscope::cli

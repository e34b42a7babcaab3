#pragma once
// The runs of a training, told apart by their norm.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "normscope/majority.h"

namespace normscope {

// Each norm once, in the order of its first run.
std::vector<std::string> norms_of(std::span<const MajorityRun> runs);
std::vector<const MajorityRun*> runs_of(std::span<const MajorityRun> runs, std::string_view norm);

}  // namespace normscope

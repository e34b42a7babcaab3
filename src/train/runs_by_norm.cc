#include "train/runs_by_norm.h"

#include <algorithm>

namespace normscope {

std::vector<std::string> norms_of(std::span<const MajorityRun> runs) {
  std::vector<std::string> norms;
  for (const MajorityRun& run : runs) {
    if (std::find(norms.begin(), norms.end(), run.id.norm) == norms.end()) norms.push_back(run.id.norm);
  }
  return norms;
}

std::vector<const MajorityRun*> runs_of(std::span<const MajorityRun> runs, std::string_view norm) {
  std::vector<const MajorityRun*> chosen;
  for (const MajorityRun& run : runs) {
    if (run.id.norm == norm) chosen.push_back(&run);
  }
  return chosen;
}

}  // namespace normscope

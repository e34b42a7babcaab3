#include "result/equilibria.h"

#include <fmt/core.h>

#include "core/number_text.h"
#include "normscope/statistics.h"

namespace normscope {

using Weight = EquilibriaRun::Weight;

std::string zero_row_policy(const EquilibriaRun& run) {
  std::size_t met = 0, all = 0;
  for (const Weight& weight : run.weights) {
    met += weight.coupled.zero_rows;
    all += weight.coupled.starts;
    if (run.n == 2 && run.d == 2) continue;
    met += weight.ranks.zero_rows;
    all += weight.ranks.starts;
  }
  std::string text = fmt::format(
      "Zero rows: a row that cancels stays zero in that layer and is counted; the next layer attends "
      "again. {} of {} random starts met one.",
      met, all);
  for (const Weight& weight : run.weights) {
    for (std::size_t i = 0; i < weight.paths.size(); ++i) {
      if (weight.paths[i].zero_rows > 0)
        text += fmt::format(" Trajectory {} at w = {:g} met {}.", i, weight.w, weight.paths[i].zero_rows);
    }
  }
  return text;
}

std::string equilibria_verdict(const EquilibriaRun& run) {
  std::string text;
  std::size_t mismatches = 0, angles = 0, unsettled = 0;
  for (const Weight& weight : run.weights) {
    mismatches += weight.arc.mismatches;
    angles += weight.arc.angles;
    unsettled += weight.arc.unsettled;
    text +=
        fmt::format("{}{} at w = {:g}, where a converged token 1 would make it {}", text.empty() ? "" : "; ",
                    percent(share_interval(weight.coupled.ranks[2], weight.coupled.starts).mean, 2), weight.w,
                    percent(weight.arc.formula, 2));
  }
  text = fmt::format("Share of random starts from which two tokens stay apart: {}. ", text);
  if (mismatches > 0)
    return text + fmt::format("Beside a converged token 1 the arcs do not tell {} of {} fates.", mismatches,
                              grouped(angles));
  return text + fmt::format("Beside a converged token 1 the arcs tell the fate of all {} angles tried{}.",
                            grouped(angles),
                            unsettled > 0 ? fmt::format(", but for {} that did not settle", unsettled) : "");
}

}  // namespace normscope

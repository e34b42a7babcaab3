#include "result/heatmap.h"

#include <fmt/core.h>

#include "core/number_text.h"
#include "normscope/statistics.h"

namespace normscope {

std::string heatmap_sentence(const HeatmapRun& run, const HeatmapRun::Grid& grid) {
  const HeatmapSummary summary = summarise(grid.heatmap);
  const std::string after = grid.norm == "none" ? "Without a norm" : "After " + grid.norm;
  if (summary.unselectable == 0) {
    // None of so many is not none: what share of such draws may still have one.
    const std::size_t draws = summary.cells * run.draws;
    return fmt::format(
        "{}: none of {} key{} is unselectable, in {}; at most {} of such draws have one (95 %).", after,
        grouped(summary.keys), summary.keys == 1 ? "" : "s",
        draws == 1 ? "one draw" : fmt::format("any of {} draws", grouped(draws)),
        short_percent(share_interval(0, draws).high));
  }
  const std::string robust = summary.robust_unselectable == 0 ? "none of them"
                             : summary.robust_unselectable == summary.unselectable
                                 ? "all of them"
                                 : grouped(summary.robust_unselectable) + " of them";
  return fmt::format(
      "{}: unselectable are {} of {} keys, in {} of {} cells; {} robust against the rounding of {}.", after,
      grouped(summary.unselectable), grouped(summary.keys), grouped(summary.cells - summary.clear_cells),
      grouped(summary.cells), robust, name_of(run.precision));
}

std::string heatmap_verdict(const HeatmapRun& run) {
  const auto layernorm = std::find_if(run.grids.begin(), run.grids.end(),
                                      [](const HeatmapRun::Grid& grid) { return grid.norm == "layernorm"; });
  if (layernorm == run.grids.end()) return run.grids.empty() ? "" : heatmap_sentence(run, run.grids.back());
  const HeatmapSummary summary = summarise(layernorm->heatmap);
  const std::string verdict =
      summary.unselectable == 0 ? "is not contradicted by these draws"
      : summary.robust_unselectable == 0
          ? fmt::format("is contradicted by {} rounding alone in these draws", name_of(run.precision))
          : "does not hold on this grid";
  return fmt::format("The claim \u201cafter LayerNorm 0 everywhere\u201d {}. {}", verdict,
                     heatmap_sentence(run, *layernorm));
}

}  // namespace normscope

#include "paper/heatmap_claims.h"

#include <fmt/core.h>

namespace normscope {

HeatmapOptions figure1cd_options(const std::string& norm, std::size_t draws, std::uint64_t seed) {
  HeatmapOptions options;
  for (std::size_t n = 3; n <= 60; ++n) options.n.push_back(n);
  for (std::size_t d = 3; d <= 15; ++d) options.d.push_back(d);
  options.draws = draws;
  options.norm = parse_norm(norm);
  options.seed = seed;
  return options;
}

Claim claim_of_figure1cd(const HeatmapRun& run) {
  const HeatmapSummary before = summarise(run.grids[0].heatmap), after = summarise(run.grids[1].heatmap);
  Claim claim = claim_of("Fig. 1c/d", "Random keys are often unselectable; after LayerNorm none is",
                         "heat map, 0 everywhere after LayerNorm");
  claim.measured = fmt::format(
      "up to {:.0f} % of keys and {:.0f} % of draws before; after LayerNorm {} of {} keys, {} of them "
      "beyond what float32 rounding can do",
      100 * before.most_fraction.fraction, 100 * before.most_any.any, after.unselectable, after.keys,
      after.robust_unselectable);
  claim.holds = before.unselectable > 0 && after.robust_unselectable == 0 ? Holds::yes : Holds::no;
  claim.why = heatmap_readings(run);
  return claim;
}

Figure figure1cd(const HeatmapRun& run) {
  return {"fig1cd", "Unselectable random keys", "", heatmap_svg(heatmap_figure(run)), heatmap_csv(run)};
}

}  // namespace normscope

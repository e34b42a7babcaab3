// Fig. 1c and 1d of Brody, Alon, Yahav 2023: random keys, without a norm and after LayerNorm.
#include <fmt/core.h>

#include "normscope/heatmap.h"
#include "paper/part.h"
#include "report/heatmap_page.h"

namespace normscope {
namespace {

Claim keys_claim(const HeatmapRun& run) {
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

}  // namespace

Findings brody_fig1cd(const Evidence& evidence) {
  HeatmapRun run;
  run.draws = evidence.plan.draws;
  run.provenance = provenance(evidence.plan.seed, evidence.executor.threads());
  HeatmapOptions options;
  for (std::size_t n = 3; n <= 60; ++n) options.n.push_back(n);
  for (std::size_t d = 3; d <= 15; ++d) options.d.push_back(d);
  options.draws = evidence.plan.draws;
  options.seed = evidence.plan.seed;
  for (const char* norm : {"none", "layernorm"}) {
    options.norm = parse_norm(norm);
    const Tell progress = evidence.progress(fmt::format("Fig. 1c/d, {}", norm), "cells");
    run.grids.push_back({norm, key_heatmap(options, evidence.executor, progress)});
  }
  return {{keys_claim(run)},
          {{"fig1cd", "Unselectable random keys", "", heatmap_svg(heatmap_figure(run)), heatmap_csv(run)}}};
}

}  // namespace normscope

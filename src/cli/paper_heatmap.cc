// Fig. 1c/d: heat maps of random keys, without a norm and after LayerNorm.
#include <fmt/core.h>

#include "cli/paper_parts.h"
#include "paper/heatmap_claims.h"

namespace normscope::cli {

void run_fig1cd(Audit& audit) {
  HeatmapRun run;
  run.draws = audit.plan.draws;
  run.provenance = provenance(audit.plan.seed, audit.executor.threads());
  for (const char* norm : {"none", "layernorm"}) {
    const HeatmapOptions options = figure1cd_options(norm, audit.plan.draws, audit.plan.seed);
    Progress progress(audit.common, fmt::format("Fig. 1c/d, {}", norm), "cells");
    run.grids.push_back({norm, key_heatmap(options, audit.executor, [&](std::size_t done, std::size_t total) {
                           progress.update(done, total);
                         })});
  }
  audit.claims.push_back(claim_of_figure1cd(run));
  audit.figures.push_back(figure1cd(run));
}

}  // namespace normscope::cli

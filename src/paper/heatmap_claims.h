#pragma once
// What random keys say about Fig. 1c and 1d of Brody, Alon, Yahav 2023.
#include "normscope/heatmap.h"
#include "paper/claim.h"
#include "report/heatmap_page.h"

namespace normscope {

// The published grid, n = 3…60 and d = 3…15, under a norm by name.
HeatmapOptions figure1cd_options(const std::string& norm, std::size_t draws, std::uint64_t seed);

// Two grids: without a norm, then after LayerNorm.
Claim claim_of_figure1cd(const HeatmapRun& run);
Figure figure1cd(const HeatmapRun& run);

}  // namespace normscope

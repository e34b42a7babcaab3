#pragma once
// Unselectable random keys, as figures and a page.
#include <string>

#include "report/heatmap.h"
#include "report/run_view.h"
#include "result/heatmap.h"

namespace normscope {

std::string heatmap_csv(const HeatmapRun& run);
HeatmapFigure heatmap_figure(const HeatmapRun& run);
// How the two readings differ, with their numbers.
std::string heatmap_readings(const HeatmapRun& run);
Page heatmap_page(const HeatmapRun& run, std::string data);
// From results.json alone. Throws InputError if that does not hold together.
RunView heatmap_view(const HeatmapResult& result, const Provenance& made);

}  // namespace normscope

#pragma once
// Unselectable random keys, as figures and a page.
#include <string>

#include "report/heatmap.h"
#include "report/run_view.h"
#include "result/heatmap.h"

namespace normscope {

std::string heatmap_csv(const HeatmapRun& run);
HeatmapFigure heatmap_figure(const HeatmapRun& run);
// One row of it, its first panel: a reading of the keys as drawn.
HeatmapFigure heatmap_reading(const HeatmapRun& run, std::size_t row);
// What cells are that are not 0, though no key in them is robustly unselectable; empty: there are none.
std::string rounding_sentence(const HeatmapRun& run);
// How the two readings differ, with their numbers.
std::string heatmap_readings(const HeatmapRun& run);
// A row for each norm.
ReportTable heatmap_summary(const HeatmapRun& run);
Page heatmap_page(const HeatmapRun& run, std::string data);
// From results.json alone. Throws InputError if that does not hold together.
RunView heatmap_view(const HeatmapResult& result, const Provenance& made);

}  // namespace normscope

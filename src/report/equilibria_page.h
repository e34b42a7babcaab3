#pragma once
// Where attention layers with a norm lead tokens, as figures and a page.
#include <string>
#include <vector>

#include "report/phase.h"
#include "report/run_view.h"
#include "result/equilibria.h"

namespace normscope {

// Colours mean the same in every figure of the system.
PhaseFigure phase_figure(const EquilibriaRun& run, const EquilibriaRun::Weight& weight);
std::string phase_name(Fate fate);
std::vector<std::string> phase_order();  // PhaseFigure::order
// w,trajectory,layer,x1,y1,x2,y2,zero_row
std::string trajectories_csv(const EquilibriaRun& run);
// What the screen and the page show.
struct EquilibriaTables {
  ReportTable points, arcs, coupled, trajectories, equilibria, ranks;
};
EquilibriaTables equilibria_tables(const EquilibriaRun& run);
Page equilibria_page(const EquilibriaRun& run, std::string data);
// From results.json alone, which has no map of all starts.
RunView equilibria_view(const EquilibriaResult& result, const Provenance& made);

}  // namespace normscope

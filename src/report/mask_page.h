#pragma once
// What masks are as graphs, as a table and a page.
#include <string>
#include <vector>

#include "report/mask.h"
#include "report/run_view.h"

namespace normscope {

// One row per mask under a header: tokens, edges, …, radius, diameter.
std::vector<std::vector<std::string>> mask_table(const MaskFigure& figure);
// "0, 1, 2 …" up to `most` of them.
std::string centre_list(const MaskProperties& properties, std::size_t most);
Page mask_page(const MaskFigure& figure, const Provenance& provenance, std::string data);
// From results.json alone: families can be built anew; of files only the graph's properties are known.
RunView mask_view(const MasksResult& result, const Provenance& made);

}  // namespace normscope

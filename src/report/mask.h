#pragma once
// Masks as matrices and graphs.
#include <string>
#include <vector>

#include "result/mask.h"

namespace normscope {

// Share of allowed pairs in each cell of a coarser grid, rows × columns; cell (r, c) holds the tokens from
// r·n/rows to (r + 1)·n/rows, and likewise across. rows, columns ≤ n.
std::vector<double> mask_shares(const Mask& mask, std::size_t rows, std::size_t columns);

// Masks side by side: as matrices, down-sampled if large, and the small ones also as graphs.
struct MaskFigure {
  using Panel = NamedMask;
  static constexpr std::size_t most_cells = 128;  // of a matrix, across and down
  static constexpr std::size_t most_nodes = 24;   // of a graph
  std::vector<Panel> panels;
  std::string caption;
};
std::string mask_svg(const MaskFigure& figure);
// mask,first_row,last_row,first_column,last_column,share: the cells as drawn, equal neighbours as one, those
// without an edge left out.
std::string mask_csv(const MaskFigure& figure);

}  // namespace normscope

#pragma once
// Cells over two axes, coloured.
#include <cstddef>
#include <string>
#include <vector>

namespace normscope {

// Panels of cells over common axes, one colour scale from 0 (dark) to 1 (light, viridis) per row of panels. A
// value of exactly 0 is grey: "never" must not look like "rarely".
struct HeatmapFigure {
  struct Panel {
    std::string title;
    std::vector<double> values;      // y.size() × x.size(), each in [0, 1]
    std::vector<std::string> hints;  // text shown on hover, one per value, or none
    std::string where = {};  // "column=value": rows of the figure's CSV that hold the cells; without hints
                             // the page takes them from there
  };
  struct Row {
    std::string title, scale;  // scale: what the colours count, with its unit
    std::vector<Panel> panels;
  };
  std::string x_label, y_label;
  std::vector<std::size_t> x, y;
  std::vector<Row> rows;
  std::string caption;
  std::string x_column = {}, y_column = {};  // of the CSV
};
std::string heatmap_svg(const HeatmapFigure& figure);

// red, green, blue from 0 to 255 of the palette above; share in [0, 1].
struct Colour {
  int red, green, blue;
};
Colour viridis(double share);

}  // namespace normscope

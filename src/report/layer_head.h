#pragma once
// Values over layers and heads.
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "report/page.h"

namespace normscope {

// Values over layers (down) and heads (across), in panels. What is not finite has no value: hatched, "n/a".
struct LayerHeadFigure {
  struct Panel {
    std::string title;
    std::vector<double> values;  // layers × heads
    std::size_t heads = 0;       // of its own model, where others have more; 0: as many as the figure
  };
  std::size_t layers = 0, heads = 0;  // the most of all panels
  std::string scale;                  // what the colours count, with its unit
  std::optional<double> low, high;    // ends of the colours; none: those of all values
  bool percent = false;               // values are shares, shown in per cent
  std::vector<Panel> panels;
  std::string caption;
};
std::string layer_head_svg(const LayerHeadFigure& figure);
// panel,layer,head,value; an empty value: n/a
std::string layer_head_csv(const LayerHeadFigure& figure);

// Drawn, with its numbers.
Figure to_figure(std::string name, std::string title, std::string caption, const LayerHeadFigure& figure);

}  // namespace normscope

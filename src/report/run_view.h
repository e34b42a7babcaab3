#pragma once
// One run in a report over several: its section, and what can be set beside that of other runs of the
// command.
#include <string>
#include <vector>

#include "report/layer_head.h"
#include "report/page.h"

namespace normscope {

struct RunView {
  // A run's layers and heads; figures of the same name are set beside each other.
  struct Map {
    std::string name, title, caption;
    LayerHeadFigure figure;
  };
  static constexpr std::size_t most_rows = 200;  // of a table

  PageSection section = {};  // its title is for the report to say
  std::vector<Map> maps = {};
  ReportTable beside = {};  // a header and rows; of the same columns for all runs of a command
};

}  // namespace normscope

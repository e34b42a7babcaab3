#pragma once
// Points in three dimensions.
#include <string>
#include <vector>

namespace normscope {

// Points in three dimensions, seen from where the plane orthogonal to (1, 1, 1) is nearly a line: points of
// that plane, LayerNorm's, look flat at a glance. Each panel is scaled to its largest point; nearer points
// are larger and darker. What is not finite is not drawn.
struct ScatterFigure {
  struct Point {
    double x, y, z;
    std::string hint;  // shown on hover; empty: name and coordinates
  };
  struct Group {
    std::string name;
    std::vector<Point> points;
    bool arrows = false;  // drawn from the origin: queries
  };
  struct Panel {
    std::string title;
    std::vector<Group> groups;
    bool ones_plane = false;  // draw the plane orthogonal to (1, 1, 1), and the axis along it
  };
  std::vector<Panel> panels;
  std::string caption;
};
std::string scatter_svg(const ScatterFigure& figure);
// panel,group,x,y,z
std::string scatter_csv(const ScatterFigure& figure);

}  // namespace normscope

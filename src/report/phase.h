#pragma once
// Dynamics on and around the unit circle.
#include <cstddef>
#include <string>
#include <vector>

namespace normscope {

// What a dynamical system does on and around the unit circle, in panels two per row, and maps over two angles
// after them. A name has the same colour everywhere. What is not finite is not drawn.
struct PhaseFigure {
  enum class MarkKind { attracting, repelling, singular };  // filled disc, filled diamond, hollow ring
  struct Mark {
    MarkKind kind;
    double x, y;
    std::string label, hint;
  };
  struct Arc {
    std::string name;
    double from, to;  // radians from the x axis, counter-clockwise
    std::string hint;
  };
  // One layer moves a point of the circle from the angle by the turn, radians; drawn outside the circle.
  struct Arrow {
    double angle, turn;
  };
  // A point step by step. Where it is (0, 0), a row that became zero, it has a hollow ring.
  struct Path {
    std::string name;
    std::vector<double> x, y;
    std::string hint;
  };
  struct Panel {
    std::string title;
    std::vector<Arc> arcs;
    std::vector<Arrow> arrows;
    std::vector<Mark> marks;
    std::vector<Path> paths;
    bool inwards =
        false;          // points of paths move towards the centre with every step, so that none hides another
    double extent = 1;  // largest |x| or |y| of the paths
  };
  // Angles from 0° to 360° on both axes.
  struct Map {
    std::string title, x_label, y_label;
    std::size_t cells = 0;            // per axis
    std::vector<std::size_t> values;  // cells × cells, from below; each an index of names
    std::vector<std::string> names;   // a name that contains "zero row" is drawn as hollow rings
    std::string note;                 // below the map
  };
  std::vector<Panel> panels;
  std::vector<Map> maps;
  std::vector<std::string> order;  // names that take the first colours, drawn or not
  std::string caption;
};
std::string phase_svg(const PhaseFigure& figure);
// panel,kind,name,step,x,y: marks, ends of arcs, paths; the cells of maps with their angles in degrees
std::string phase_csv(const PhaseFigure& figure);

}  // namespace normscope

#pragma once
// Curves with bands and marks.
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "report/page.h"

namespace normscope {

// Curves over common kinds of axes, panels two per row under one legend. A name has the same colour (safe for
// the colour-blind) and the same dashes in every panel. What is not finite, and on a logarithmic axis what is
// not positive, is not drawn and breaks the line.
struct CurveFigure {
  struct Curve {
    std::string name;
    std::vector<double> x, y;
    std::vector<double> low, high;  // a band, e.g. the 95 % interval over seeds; empty: none
    std::string run = {};           // "seed 2": tells curves of one name, and so of one colour, apart
    std::string full_name() const { return run.empty() ? name : name + ", " + run; }
  };
  // A published value, a hollow diamond in the colour of the curve of the same name.
  struct Mark {
    std::string name;
    double x, y;
    std::string hint;  // added to what is shown on hover
  };
  struct Panel {
    std::string title, x_label, y_label;
    bool log_x = false, log_y = false;
    bool whole_x = false, whole_y = false;  // counts something: no ticks between
    std::optional<double> y_low, y_high;    // ends of the axis; what lies beyond is cut off
    std::vector<Curve> curves;
    std::vector<Mark> marks;
  };
  std::vector<Panel> panels;
  std::string caption;
};
std::string curves_svg(const CurveFigure& figure);
// panel,curve,x,y,low,high; marks are the curve "published: name".
std::string curves_csv(const CurveFigure& figure);

// The same figure with at most `most` points per curve (at least 4): of each stretch the first, the least,
// the greatest and the last point stay, so that no peak is lost. Returns how many points were left out.
std::size_t thin(CurveFigure& figure, std::size_t most);

// Drawn, with its numbers.
Figure to_figure(std::string name, std::string title, std::string caption, const CurveFigure& curves);

}  // namespace normscope

// The numbers behind the figures of curves and of points.
#include <fmt/core.h>

#include <algorithm>

#include "core/number_text.h"
#include "report/curves.h"
#include "report/draw.h"
#include "report/scatter.h"

namespace normscope {
namespace {

using draw::csv_field;

}  // namespace

std::size_t draw::length(const CurveFigure::Curve& curve) {
  return std::min(curve.x.size(), curve.y.size());
}

bool draw::has_band(const CurveFigure::Curve& curve) {
  return std::min(curve.low.size(), curve.high.size()) >= std::max<std::size_t>(1, length(curve));
}

std::string curves_csv(const CurveFigure& figure) {
  std::string csv = "panel,curve,x,y,low,high\n";
  for (const auto& panel : figure.panels) {
    for (const auto& curve : panel.curves) {
      for (std::size_t i = 0; i < draw::length(curve); ++i) {
        csv += fmt::format("{},{},{},{},{},{}\n", csv_field(panel.title), csv_field(curve.full_name()),
                           all_digits(curve.x[i]), all_digits(curve.y[i]),
                           draw::has_band(curve) ? all_digits(curve.low[i]) : "",
                           draw::has_band(curve) ? all_digits(curve.high[i]) : "");
      }
    }
    for (const auto& mark : panel.marks) {
      csv += fmt::format("{},{},{},{},,\n", csv_field(panel.title), csv_field("published: " + mark.name),
                         all_digits(mark.x), all_digits(mark.y));
    }
  }
  return csv;
}

std::string scatter_csv(const ScatterFigure& figure) {
  std::string csv = "panel,group,x,y,z\n";
  for (const auto& panel : figure.panels) {
    for (const auto& group : panel.groups) {
      for (const auto& point : group.points) {
        csv += fmt::format("{},{},{},{},{}\n", csv_field(panel.title), csv_field(group.name),
                           all_digits(point.x), all_digits(point.y), all_digits(point.z));
      }
    }
  }
  return csv;
}

Figure to_figure(std::string name, std::string title, std::string caption, const CurveFigure& curves) {
  return {std::move(name), std::move(title), std::move(caption), curves_svg(curves), curves_csv(curves)};
}

}  // namespace normscope

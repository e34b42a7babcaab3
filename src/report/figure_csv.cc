// The numbers behind the figures of curves and of points.
#include <algorithm>
#include <optional>

#include "report/curves.h"
#include "report/draw.h"
#include "report/scatter.h"
#include "result/columns.h"

namespace normscope {
namespace {

// A line of the CSV of curves, and of one of points.
struct CurveRow {
  std::string panel = {}, curve = {};
  double x = 0, y = 0;
  std::optional<double> low = {}, high = {};

  static void describe(auto& visit, auto& self) {
    visit("panel", self.panel, "by its title");
    visit("curve", self.curve, "by its name");
    visit("x", self.x, "across");
    visit("y", self.y, "up");
    visit("low", self.low, "lower end of the band; nothing without one");
    visit("high", self.high, "its upper end");
  }
};
struct PointRow {
  std::string panel = {}, group = {};
  double x = 0, y = 0, z = 0;

  static void describe(auto& visit, auto& self) {
    visit("panel", self.panel, "by its title");
    visit("group", self.group, "by its name");
    visit("x", self.x, "place");
    visit("y", self.y, "place");
    visit("z", self.z, "place");
  }
};

}  // namespace

std::size_t draw::length(const CurveFigure::Curve& curve) {
  return std::min(curve.x.size(), curve.y.size());
}

bool draw::has_band(const CurveFigure::Curve& curve) {
  return std::min(curve.low.size(), curve.high.size()) >= std::max<std::size_t>(1, length(curve));
}

std::string curves_csv(const CurveFigure& figure) {
  Csv<CurveRow> csv;
  for (const auto& panel : figure.panels) {
    for (const auto& curve : panel.curves) {
      const bool band = draw::has_band(curve);
      for (std::size_t i = 0; i < draw::length(curve); ++i) {
        csv.add({panel.title, curve.full_name(), curve.x[i], curve.y[i],
                 band ? std::optional(curve.low[i]) : std::nullopt,
                 band ? std::optional(curve.high[i]) : std::nullopt});
      }
    }
    for (const auto& mark : panel.marks) csv.add({panel.title, "published: " + mark.name, mark.x, mark.y});
  }
  return std::move(csv).text();
}

std::string scatter_csv(const ScatterFigure& figure) {
  Csv<PointRow> csv;
  for (const auto& panel : figure.panels) {
    for (const auto& group : panel.groups) {
      for (const auto& point : group.points) csv.add({panel.title, group.name, point.x, point.y, point.z});
    }
  }
  return std::move(csv).text();
}

Figure to_figure(std::string name, std::string title, std::string caption, const CurveFigure& curves) {
  return {std::move(name), std::move(title), std::move(caption), curves_svg(curves), curves_csv(curves)};
}

}  // namespace normscope

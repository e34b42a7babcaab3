#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "report/draw.h"
#include "report/phase.h"
#include "result/columns.h"

namespace normscope {
namespace {

using Panel = PhaseFigure::Panel;
using Map = PhaseFigure::Map;
using MarkKind = PhaseFigure::MarkKind;

// Layout, in pixels.
constexpr double kHeight = 430, kColumn = draw::Sheet::kColumn;
constexpr double kRadius = 158, kArrows = kRadius + 15, kLabels = kRadius + 38;
constexpr double kMap = 340, kMapLeft = 84, kMapTop = 6;
constexpr double kTurn = 2 * std::numbers::pi, kPi = std::numbers::pi;

struct Spot {
  double x, y;
};

// A panel's plane on the page.
struct Frame {
  double x0, y0, unit;
  Spot at(double x, double y) const { return {x0 + unit * x, y0 - unit * y}; }
};

bool drawable(double x, double y) {
  return draw::drawable(x) && draw::drawable(y);
}

// Part of a circle, counter-clockwise from one angle to another for to > from. Two pieces, because an SVG arc
// with equal ends is none.
std::string arc_path(const Frame& frame, double radius, double from, double to) {
  std::string path;
  const double middle = (from + to) / 2;
  const auto point = [&](double angle) {
    return Spot{frame.x0 + radius * std::cos(angle), frame.y0 - radius * std::sin(angle)};
  };
  const Spot start = point(from);
  path += fmt::format("M{:.1f} {:.1f}", start.x, start.y);
  for (const double end : {middle, to}) {
    const Spot spot = point(end);
    path += fmt::format("A{0:.1f} {0:.1f} 0 {1} {2} {3:.1f} {4:.1f}", radius,
                        std::fabs(to - from) / 2 > kPi ? 1 : 0, to > from ? 0 : 1, spot.x, spot.y);
  }
  return path;
}

std::string arrow(const Frame& frame, const PhaseFigure::Arrow& arrow) {
  if (!drawable(arrow.angle, arrow.turn) || arrow.turn == 0) return "";
  // Short turns still need a length that shows where they go; long ones must not run into the next arrow.
  const double shown = std::clamp(std::fabs(arrow.turn), 0.06, 0.17), way = arrow.turn > 0 ? 1 : -1;
  const double from = arrow.angle - way * shown / 2, to = arrow.angle + way * shown / 2;
  const auto point = [&](double radius, double angle) {
    return Spot{frame.x0 + radius * std::cos(angle), frame.y0 - radius * std::sin(angle)};
  };
  const Spot tip = point(kArrows, to + way * 0.012), inner = point(kArrows - 4, to - way * 0.035),
             outer = point(kArrows + 4, to - way * 0.035);
  return fmt::format(
      "<path d=\"{}\" fill=\"none\" stroke=\"currentColor\" stroke-opacity=\"0.6\" stroke-width=\"1.4\"/>"
      "<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}L{:.1f} {:.1f}Z\" fill-opacity=\"0.7\"/>\n",
      arc_path(frame, kArrows, from, to), tip.x, tip.y, inner.x, inner.y, outer.x, outer.y);
}

const char* class_of(MarkKind kind) {
  return kind == MarkKind::attracting ? "attracting" : kind == MarkKind::repelling ? "repelling" : "hollow";
}

// ring: radius of a hollow one
std::string mark_shape(MarkKind kind, double x, double y, std::string_view inner, double ring = 6.5) {
  switch (kind) {
    case MarkKind::attracting:
      return fmt::format("<circle class=\"point attracting\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"6\">{}</circle>",
                         x, y, inner);
    case MarkKind::repelling:
      return fmt::format("<path class=\"point repelling\" d=\"M{:.1f} {:.1f}l7 7l-7 7l-7 -7Z\">{}</path>", x,
                         y - 7, inner);
    case MarkKind::singular:
      break;
  }
  return fmt::format(
      "<circle class=\"hollow\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"none\" "
      "pointer-events=\"all\" stroke=\"currentColor\" stroke-width=\"2\">{}</circle>",
      x, y, ring, inner);
}

std::string mark(const Frame& frame, const PhaseFigure::Mark& mark) {
  if (!drawable(mark.x, mark.y)) return "";
  const Spot at = frame.at(mark.x, mark.y);
  std::string words = fmt::format("{} ({:.4f}, {:.4f})", mark.label, mark.x, mark.y);
  if (!mark.hint.empty()) words += "\n" + mark.hint;
  std::string svg = mark_shape(mark.kind, at.x, at.y, draw::hint(words)) + "\n";
  const double length = std::hypot(mark.x, mark.y);
  if (length > 0) {
    const double right = mark.x / length;
    const char* anchor = right > 0.4 ? "start" : right < -0.4 ? "end" : "middle";
    svg += draw::text(frame.x0 + (kLabels - 8 * std::fabs(right)) * right,
                      frame.y0 - kLabels * mark.y / length + 4,
                      fmt::format("text-anchor=\"{}\" font-weight=\"600\"", anchor), mark.label);
  }
  return svg;
}

// Where a point of a path is drawn: with every step nearer to the centre, if asked for.
Spot shown_at(const Panel& panel, const PhaseFigure::Path& path, double step) {
  const auto before = static_cast<std::size_t>(step);
  const std::size_t after = std::min(before + 1, path.x.size() - 1);
  const double part = step - static_cast<double>(before);
  double x = path.x[before] + part * (path.x[after] - path.x[before]);
  double y = path.y[before] + part * (path.y[after] - path.y[before]);
  if (!panel.inwards) return {x, y};
  const double from = std::hypot(path.x[before], path.y[before]),
               to = std::hypot(path.x[after], path.y[after]);
  if (from > 0 && to > 0) {  // along the circle, the shorter way
    const double first = std::atan2(path.y[before], path.x[before]);
    const double turn = std::remainder(std::atan2(path.y[after], path.x[after]) - first, kTurn);
    const double radius = from + part * (to - from);
    x = radius * std::cos(first + part * turn);
    y = radius * std::sin(first + part * turn);
  }
  const double shrunk = 0.95 - 0.6 * step / (step + 7);
  return {shrunk * x, shrunk * y};
}

std::string path_svg(const Frame& frame, const Panel& panel, const PhaseFigure::Path& path,
                     std::size_t style) {
  const std::size_t size = std::min(path.x.size(), path.y.size());
  for (std::size_t i = 0; i < size; ++i) {
    if (!drawable(path.x[i], path.y[i])) return "";
  }
  if (size == 0) return "";
  const std::size_t pieces = panel.inwards ? 12 : 1;
  std::string line, dots, rings;
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t piece = 0; piece < (i + 1 < size ? pieces : 1); ++piece) {
      const Spot point = shown_at(
          panel, path, static_cast<double>(i) + static_cast<double>(piece) / static_cast<double>(pieces));
      const Spot at = frame.at(point.x, point.y);
      line += fmt::format("{}{:.1f} {:.1f}", line.empty() ? "M" : "L", at.x, at.y);
    }
    const Spot point = shown_at(panel, path, static_cast<double>(i));
    const Spot at = frame.at(point.x, point.y);
    std::string words = fmt::format("{}, layer {}: ({:.4f}, {:.4f})", path.name, i, path.x[i], path.y[i]);
    if (!path.hint.empty()) words += "\n" + path.hint;
    if (path.x[i] == 0 && path.y[i] == 0) {
      rings += mark_shape(MarkKind::singular, at.x, at.y, draw::hint(words + "\nthe row became zero")) + "\n";
    } else {
      dots += fmt::format(
          "<circle class=\"point\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\">{}</circle>\n", at.x,
          at.y, i == 0 ? 4 : 2, draw::colour(style), draw::hint(words));
    }
  }
  return fmt::format(
             "<g{}>\n<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.2\" "
             "stroke-opacity=\"0.75\"/>\n",
             draw::named(path.name), line, draw::colour(style)) +
         dots + rings + "</g>\n";
}

std::string panel_svg(const Panel& panel, draw::Names& names, double left, double top) {
  const bool wide = draw::drawable(panel.extent) && panel.extent > 1;
  const Frame frame{left + kColumn / 2, top + kHeight / 2, kRadius / (wide ? panel.extent : 1)};
  std::string svg = draw::fitted_text(left, top - 12, "font-size=\"13.5\"", panel.title, 13.5, kColumn);
  svg += fmt::format(
      "<path d=\"M{0:.1f} {1:.1f}H{2:.1f}M{3:.1f} {4:.1f}V{5:.1f}\" fill=\"none\" stroke=\"currentColor\" "
      "stroke-opacity=\"0.13\"/>\n<circle cx=\"{3:.1f}\" cy=\"{1:.1f}\" r=\"{6:.1f}\" fill=\"none\" "
      "stroke=\"currentColor\" stroke-opacity=\"0.35\"/>\n",
      frame.x0 - kRadius, frame.y0, frame.x0 + kRadius, frame.x0, frame.y0 - kRadius, frame.y0 + kRadius,
      frame.unit);
  for (const auto& arc : panel.arcs) {
    if (!drawable(arc.from, arc.to)) continue;
    svg += fmt::format(
        "<path class=\"arc\"{} d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"9\" "
        "stroke-opacity=\"0.45\">{}</path>\n",
        draw::named(arc.name), arc_path(frame, frame.unit, arc.from, arc.to),
        draw::colour(names.index_of(arc.name)),
        draw::hint(arc.hint.empty() ? arc.name : arc.name + "\n" + arc.hint));
  }
  for (const auto& each : panel.arrows) svg += arrow(frame, each);
  for (const auto& path : panel.paths) svg += path_svg(frame, panel, path, names.index_of(path.name));
  for (const auto& each : panel.marks) svg += mark(frame, each);
  return svg;
}

bool hollow(const std::string& name) {
  return name.find("zero row") != std::string::npos;
}

std::string map_cells(const Map& map, draw::Names& names, double x0, double y0) {
  const double side = kMap / static_cast<double>(map.cells);
  std::vector<std::string> shapes(map.names.size());  // one group per name, which the legend can hide
  std::string rings;
  for (std::size_t row = 0; row < map.cells; ++row) {
    const double y = y0 + kMap - side * static_cast<double>(row + 1);
    for (std::size_t column = 0; column < map.cells;) {
      const std::size_t value = map.values[row * map.cells + column], first = column;
      while (column < map.cells && map.values[row * map.cells + column] == value) ++column;
      if (value >= map.names.size()) continue;
      if (hollow(map.names[value])) {
        for (std::size_t c = first; c < column; ++c) {
          rings += mark_shape(MarkKind::singular, x0 + side * (static_cast<double>(c) + 0.5), y + side / 2,
                              draw::hint(map.names[value]), std::min(6.5, 0.6 * side));
        }
        continue;
      }
      shapes[value] +=
          fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"/>",
                      x0 + side * static_cast<double>(first), y, side * static_cast<double>(column - first),
                      side, draw::colour(names.index_of(map.names[value])));
    }
  }
  std::string svg;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (!shapes[i].empty()) svg += fmt::format("<g{}>{}</g>\n", draw::named(map.names[i]), shapes[i]);
  }
  // One opacity for all, or neighbours that share a pixel would show a seam.
  return "<g opacity=\"0.55\" shape-rendering=\"crispEdges\">\n" + svg + "</g>\n" + rings;
}

std::string map_svg(const Map& map, draw::Names& names, double left, double top) {
  const double x0 = left + kMapLeft, y0 = top + kMapTop;
  std::string svg = draw::fitted_text(left, top - 12, "font-size=\"13.5\"", map.title, 13.5, kColumn);
  if (map.cells > 0 && map.values.size() == map.cells * map.cells) svg += map_cells(map, names, x0, y0);
  svg += fmt::format(
      "<rect x=\"{0:.1f}\" y=\"{1:.1f}\" width=\"{2:.1f}\" height=\"{2:.1f}\" fill=\"none\" "
      "stroke=\"currentColor\" stroke-opacity=\"0.55\"/>\n",
      x0, y0, kMap);
  for (int quarter = 0; quarter <= 4; ++quarter) {
    const double at = kMap * quarter / 4;
    svg += draw::text(x0 + at, y0 + kMap + 18, "text-anchor=\"middle\"", fmt::format("{}°", 90 * quarter));
    svg += draw::text(x0 - 8, y0 + kMap - at + 4, "text-anchor=\"end\"", fmt::format("{}°", 90 * quarter));
  }
  const double label = x0 - 52, middle = y0 + kMap / 2;
  svg += draw::fitted_text(x0 + kMap / 2, y0 + kMap + 38, "text-anchor=\"middle\"", map.x_label, draw::kFont,
                           kMap);
  svg += draw::fitted_text(label, middle, draw::upwards(label, middle), map.y_label, draw::kFont, kMap);
  return svg + draw::fitted_text(x0 + kMap / 2, y0 + kMap + 60, "text-anchor=\"middle\" font-size=\"11.5\"",
                                 map.note, 11.5, kColumn);
}

// Bands and lines by colour, marks by shape.
std::vector<draw::LegendEntry> legend_of(const PhaseFigure& figure, draw::Names& names) {
  std::vector<draw::LegendEntry> entries;
  const auto add = [&](const std::string& name, bool band) {
    const auto known = [&](const draw::LegendEntry& entry) { return entry.name == name; };
    if (std::any_of(entries.begin(), entries.end(), known)) return;
    const std::string_view colour = draw::colour(names.index_of(name));
    entries.push_back(
        {band ? fmt::format("<path d=\"M0 0H30\" stroke=\"{}\" stroke-width=\"9\" stroke-opacity=\"0.55\"/>",
                            colour)
              : fmt::format("<path d=\"M0 0H30\" stroke=\"{0}\" stroke-width=\"1.5\"/>"
                            "<circle cx=\"4\" cy=\"0\" r=\"4\" fill=\"{0}\"/>",
                            colour),
         name});
  };
  const auto band = [&](const std::string& name) { add(name, true); };
  const auto line = [&](const std::string& name) { add(name, false); };
  bool marks[3] = {};
  for (const Panel& panel : figure.panels) {
    for (const auto& arc : panel.arcs) band(arc.name);
    for (const auto& mark : panel.marks) marks[static_cast<int>(mark.kind)] = true;
  }
  for (const Map& map : figure.maps) {
    for (std::size_t i = 0; i < map.names.size(); ++i) {
      if (!hollow(map.names[i]) && std::find(map.values.begin(), map.values.end(), i) != map.values.end())
        band(map.names[i]);
      if (hollow(map.names[i]) && std::find(map.values.begin(), map.values.end(), i) != map.values.end())
        marks[static_cast<int>(MarkKind::singular)] = true;
    }
  }
  for (const Panel& panel : figure.panels) {
    for (const auto& path : panel.paths) line(path.name);
  }
  const std::pair<MarkKind, const char*> kinds[] = {{MarkKind::attracting, "attracts"},
                                                    {MarkKind::repelling, "repels"},
                                                    {MarkKind::singular, "the row becomes zero"}};
  for (const auto& [kind, words] : kinds) {
    if (marks[static_cast<int>(kind)])
      entries.push_back({mark_shape(kind, 20, 0, ""), words, class_of(kind)});
  }
  return entries;
}

// A line of its CSV.
struct PhaseRow {
  std::string panel = {}, kind = {}, name = {};
  std::size_t step = 0;
  double x = 0, y = 0;

  static void describe(auto& visit, auto& self) {
    visit("panel", self.panel, "by its title");
    visit("kind", self.kind, "point, arc, path or cell");
    visit("name", self.name, "in the legend");
    visit("step", self.step, "of a path, or end of an arc");
    visit("x", self.x, "place");
    visit("y", self.y, "place");
  }
};

}  // namespace

std::string phase_svg(const PhaseFigure& figure) {
  draw::Names names;
  for (const std::string& name : figure.order) names.index_of(name);
  const std::size_t panels = figure.panels.size();
  return draw::sheet_svg({.legend = legend_of(figure, names),
                          .panels = panels + figure.maps.size(),
                          .height = kHeight,
                          .after = 8,
                          .caption = figure.caption},
                         [&](std::size_t i, double left, double top) {
                           return i < panels ? panel_svg(figure.panels[i], names, left, top)
                                             : map_svg(figure.maps[i - panels], names, left, top);
                         });
}

std::string phase_csv(const PhaseFigure& figure) {
  Csv<PhaseRow> csv;
  const auto row = [&](const std::string& panel, const char* kind, const std::string& name, std::size_t step,
                       double x, double y) {
    csv.add({panel, kind, name, step, x, y});
  };
  for (const Panel& panel : figure.panels) {
    for (const auto& mark : panel.marks) row(panel.title, "point", mark.label, 0, mark.x, mark.y);
    for (const auto& arc : panel.arcs) {
      row(panel.title, "arc", arc.name, 0, std::cos(arc.from), std::sin(arc.from));
      row(panel.title, "arc", arc.name, 1, std::cos(arc.to), std::sin(arc.to));
    }
    for (const auto& path : panel.paths) {
      for (std::size_t i = 0; i < std::min(path.x.size(), path.y.size()); ++i)
        row(panel.title, "path", path.name, i, path.x[i], path.y[i]);
    }
  }
  for (const Map& map : figure.maps) {
    const double side = 360 / static_cast<double>(std::max<std::size_t>(1, map.cells));
    for (std::size_t i = 0; i < map.values.size() && map.cells > 0; ++i) {
      if (map.values[i] >= map.names.size()) continue;
      const std::size_t down = i / map.cells, across = i % map.cells;
      row(map.title, "cell", map.names[map.values[i]], 0, side * (static_cast<double>(across) + 0.5),
          side * (static_cast<double>(down) + 0.5));
    }
  }
  return std::move(csv).text();
}

}  // namespace normscope

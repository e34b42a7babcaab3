#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "report/curves.h"
#include "report/draw.h"

namespace normscope {
namespace {

using draw::Axis, draw::has_band, draw::length, draw::Tick;
using Panel = CurveFigure::Panel;
using Curve = CurveFigure::Curve;

// Layout, in pixels.
constexpr double kHeight = 260, kBelow = 52, kRight = 26, kAxisTitle = 26, kTickGap = 8;
constexpr std::size_t kMostHints = 60;  // per curve: nearer ones could not be pointed at

struct Spot {
  double x, y;
};

// The name is what the legend switches; what a curve is called in the numbers is said where that differs.
std::string attributes(const Curve& curve) {
  return draw::named(curve.name) +
         (curve.run.empty() ? "" : draw::attribute("data-curve", curve.full_name()));
}

// Names of curves come first, those that only marks have after them.
struct Styles {
  draw::Names names;
  std::size_t curves = 0;
};

// A panel with its place and what is derived from its values.
struct Frame {
  const Panel& panel;
  Axis x, y;
  std::vector<Tick> x_ticks, y_ticks;
  bool empty;
  bool inside(double pixel) const { return pixel >= y.to - 0.01 && pixel <= y.from + 0.01; }
};

Frame frame_of(const Panel& panel, double width) {
  draw::Range x(panel.log_x), y(panel.log_y);
  const auto include = [&](double at_x, double at_y) {
    if (!x.shows(at_x) || !y.shows(at_y)) return false;
    x.include(at_x);
    y.include(at_y);
    return true;
  };
  for (const Curve& curve : panel.curves) {
    for (std::size_t i = 0; i < length(curve); ++i) {
      if (!include(curve.x[i], curve.y[i]) || !has_band(curve)) continue;
      y.include(curve.low[i]);
      y.include(curve.high[i]);
    }
  }
  for (const auto& mark : panel.marks) include(mark.x, mark.y);
  Frame frame{panel,
              draw::fit_axis(x, {}, {}, 0.02),
              draw::fit_axis(y, panel.y_low, panel.y_high, 0.05),
              {},
              {},
              x.low > x.high};
  frame.x.whole = panel.whole_x;
  frame.y.whole = panel.whole_y;
  frame.x.to = width;  // moved when the room for the labels of y is known
  frame.y.from = kHeight;
  frame.y.to = 0;
  frame.y_ticks = draw::ticks(frame.y, false);
  return frame;
}

// Indices of the points that can be drawn, one run for each unbroken piece.
template <typename Shown>
std::vector<std::vector<std::size_t>> runs(std::size_t size, const Shown& shown) {
  std::vector<std::vector<std::size_t>> found;
  bool open = false;
  for (std::size_t i = 0; i < size; ++i) {
    const bool is_shown = shown(i);
    if (is_shown && !open) found.emplace_back();
    if (is_shown) found.back().push_back(i);
    open = is_shown;
  }
  return found;
}

// The same line with a vertex wherever it enters or leaves the panel, so that cutting it off moves nothing.
std::vector<Spot> with_crossings(const std::vector<Spot>& line, const Axis& y) {
  std::vector<Spot> spots;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (i > 0) {
      const Spot &a = line[i - 1], &b = line[i];
      const bool falls = a.y < b.y;
      for (const double edge : {falls ? y.to : y.from, falls ? y.from : y.to}) {
        if ((a.y - edge) * (b.y - edge) >= 0) continue;
        spots.push_back({a.x + (b.x - a.x) * (edge - a.y) / (b.y - a.y), edge});
      }
    }
    spots.push_back(line[i]);
  }
  return spots;
}

// What pixels can show of a long line: of each half pixel across the first, the highest, the lowest and the
// last spot.
std::vector<Spot> thinned(const std::vector<Spot>& line, double width) {
  if (static_cast<double>(line.size()) <= 4 * width) return line;
  std::vector<Spot> spots;
  for (std::size_t begin = 0; begin < line.size();) {
    const double column = std::floor(2 * line[begin].x);
    std::size_t end = begin, low = begin, high = begin;
    for (; end < line.size() && std::floor(2 * line[end].x) == column; ++end) {
      if (line[end].y < line[low].y) low = end;
      if (line[end].y > line[high].y) high = end;
    }
    std::size_t last = line.size();
    for (const std::size_t i : {begin, std::min(low, high), std::max(low, high), end - 1}) {
      if (i != last) spots.push_back(line[i]);
      last = i;
    }
    begin = end;
  }
  return spots;
}

std::string line_path(const std::vector<Spot>& line, const Frame& frame) {
  std::string path;
  bool drawing = false;
  const std::vector<Spot> spots = with_crossings(line, frame.y);
  for (std::size_t i = 1; i < spots.size(); ++i) {
    const bool visible = frame.inside((spots[i - 1].y + spots[i].y) / 2);
    if (visible && !drawing) path += fmt::format("M{:.1f} {:.1f}", spots[i - 1].x, spots[i - 1].y);
    if (visible) path += fmt::format("L{:.1f} {:.1f}", spots[i].x, spots[i].y);
    drawing = visible;
  }
  return path;
}

std::string line_of(const Curve& curve, const Frame& frame, std::size_t style) {
  std::string path, dots;
  const auto shown = [&](std::size_t i) { return frame.x.shows(curve.x[i]) && frame.y.shows(curve.y[i]); };
  for (const auto& run : runs(length(curve), shown)) {
    std::vector<Spot> line;
    line.reserve(run.size());
    for (const std::size_t i : run) line.push_back({frame.x.at(curve.x[i]), frame.y.at(curve.y[i])});
    path += line_path(thinned(line, frame.x.to - frame.x.from), frame);
    if (line.size() == 1 && frame.inside(line[0].y)) {
      dots += fmt::format(
          "<circle class=\"dot\"{} data-x=\"{}\" data-y=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" "
          "fill=\"{}\"/>\n",
          attributes(curve), curve.x[run[0]], curve.y[run[0]], line[0].x, line[0].y, draw::colour(style));
    }
  }
  if (path.empty()) return dots;
  return fmt::format(
             "<path class=\"line\"{} d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\" "
             "stroke-linejoin=\"round\" stroke-dasharray=\"{}\"/>\n",
             attributes(curve), path, draw::colour(style), draw::dash(style)) +
         dots;
}

std::string band_of(const Curve& curve, const Frame& frame, std::size_t style) {
  if (!has_band(curve)) return "";
  const auto shown = [&](std::size_t i) {
    return frame.x.shows(curve.x[i]) && frame.y.shows(curve.y[i]) && draw::drawable(curve.low[i]) &&
           frame.y.shows(curve.high[i]);
  };
  std::string area, bars;
  for (const auto& run : runs(length(curve), shown)) {
    std::vector<Spot> upper, lower;
    for (const std::size_t i : run) {
      const double x = frame.x.at(curve.x[i]);
      upper.push_back({x, frame.y.at(curve.high[i])});
      // An interval that reaches 0 has no lower end on a logarithmic axis.
      lower.push_back({x, frame.y.shows(curve.low[i]) ? frame.y.at(curve.low[i]) : frame.y.from});
    }
    const auto clamped = [&](double y) { return std::clamp(y, frame.y.to, frame.y.from); };
    if (run.size() == 1) {
      bars += fmt::format("M{:.1f} {:.1f}V{:.1f}", upper[0].x, clamped(upper[0].y), clamped(lower[0].y));
      continue;
    }
    upper = with_crossings(thinned(upper, frame.x.to - frame.x.from), frame.y);
    lower = with_crossings(thinned(lower, frame.x.to - frame.x.from), frame.y);
    std::reverse(lower.begin(), lower.end());
    upper.insert(upper.end(), lower.begin(), lower.end());
    for (std::size_t i = 0; i < upper.size(); ++i) {
      area += fmt::format("{}{:.1f} {:.1f}", i == 0 ? "M" : "L", upper[i].x, clamped(upper[i].y));
    }
    area += "Z";
  }
  std::string svg;
  if (!area.empty()) {
    svg += fmt::format("<path class=\"band\"{} d=\"{}\" fill=\"{}\" fill-opacity=\"0.16\"/>\n",
                       attributes(curve), area, draw::colour(style));
  }
  if (!bars.empty()) {
    svg +=
        fmt::format("<path class=\"bars\"{} d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-opacity=\"0.5\"/>\n",
                    attributes(curve), bars, draw::colour(style));
  }
  return svg;
}

std::string hints_of(const Curve& curve, const Frame& frame) {
  std::vector<std::size_t> shown;
  for (std::size_t i = 0; i < length(curve); ++i) {
    if (frame.x.shows(curve.x[i]) && frame.y.shows(curve.y[i]) && frame.inside(frame.y.at(curve.y[i])))
      shown.push_back(i);
  }
  std::string svg;
  const std::size_t count = std::min(kMostHints, shown.size());
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t i = shown[shown.size() <= kMostHints ? k : k * (shown.size() - 1) / (kMostHints - 1)];
    std::string words = fmt::format("{}, x {:.6g}: y {:.4g}", curve.full_name(), curve.x[i], curve.y[i]);
    if (has_band(curve) && std::isfinite(curve.low[i]) && std::isfinite(curve.high[i]))
      words += fmt::format(" [{:.4g} … {:.4g}]", curve.low[i], curve.high[i]);
    svg += fmt::format("<circle class=\"point\"{} cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\">{}</circle>\n",
                       attributes(curve), frame.x.at(curve.x[i]), frame.y.at(curve.y[i]), draw::hint(words));
  }
  return svg;
}

// Dotted if it belongs to no curve: colours come round again, and a value must not pass for another's.
std::string diamond(double x, double y, std::string_view colour, bool dotted, std::string_view attributes,
                    std::string_view inner) {
  return fmt::format(
      "<path class=\"mark\"{} d=\"M{:.1f} {:.1f}l6 6l-6 6l-6 -6Z\" fill=\"none\" pointer-events=\"all\" "
      "stroke=\"{}\" stroke-width=\"2\"{}>{}</path>\n",
      attributes, x, y - 6, colour, dotted ? " stroke-dasharray=\"2 1.6\"" : "", inner);
}

std::string marks_of(const Frame& frame, Styles& styles) {
  std::string svg;
  for (const auto& mark : frame.panel.marks) {
    if (!frame.x.shows(mark.x) || !frame.y.shows(mark.y) || !frame.inside(frame.y.at(mark.y))) continue;
    std::string words = fmt::format("{}, in the paper, x {:.6g}: y {:.4g}", mark.name, mark.x, mark.y);
    if (!mark.hint.empty()) words += "\n" + mark.hint;
    const std::size_t style = styles.names.index_of(mark.name);
    svg += diamond(frame.x.at(mark.x), frame.y.at(mark.y), draw::colour(style), style >= styles.curves,
                   fmt::format("{} data-x=\"{}\" data-y=\"{}\"", draw::named(mark.name), mark.x, mark.y),
                   draw::hint(words));
  }
  return svg;
}

std::string axes(const Frame& frame, double widest) {
  std::string grid, labels;
  for (const Tick& tick : frame.x_ticks) {
    grid += fmt::format("M{:.1f} {:.1f}V{:.1f}", frame.x.at(tick.value), frame.y.from, frame.y.to);
    labels +=
        draw::marked_text(frame.x.at(tick.value), frame.y.from + 18, "text-anchor=\"middle\"", tick.markup);
  }
  for (const Tick& tick : frame.y_ticks) {
    grid += fmt::format("M{:.1f} {:.1f}H{:.1f}", frame.x.from, frame.y.at(tick.value), frame.x.to);
    labels += draw::marked_text(frame.x.from - kTickGap, frame.y.at(tick.value) + 4, "text-anchor=\"end\"",
                                tick.markup);
  }
  std::string svg = fmt::format(
      "<path class=\"grid\" d=\"{}\" fill=\"none\" stroke=\"currentColor\" "
      "stroke-opacity=\"0.13\"/>\n",
      grid.empty() ? "M0 0" : grid);
  svg += fmt::format(
      "<path d=\"M{:.1f} {:.1f}V{:.1f}H{:.1f}\" fill=\"none\" stroke=\"currentColor\" "
      "stroke-opacity=\"0.55\"/>\n",
      frame.x.from, frame.y.to, frame.y.from, frame.x.to);
  labels = "<g class=\"ticks\">\n" + labels + "</g>\n";
  const double middle = (frame.x.from + frame.x.to) / 2, height = (frame.y.from + frame.y.to) / 2;
  const double label = frame.x.from - kTickGap - widest - 10;
  labels += draw::fitted_text(middle, frame.y.from + 38, "text-anchor=\"middle\"", frame.panel.x_label,
                              draw::kFont, frame.x.to - frame.x.from);
  labels += draw::fitted_text(label, height, draw::upwards(label, height), frame.panel.y_label, draw::kFont,
                              kHeight);
  // Said in words too, or an empty panel might be taken for a broken one.
  if (frame.empty) labels += draw::text(middle, height, "text-anchor=\"middle\"", "nothing to draw");
  return svg + labels;
}

std::string panel_svg(const Frame& frame, Styles& styles, double widest) {
  const Panel& panel = frame.panel;
  std::string svg = fmt::format(
      "<g class=\"panel\" data-kind=\"xy\"{}{} data-frame=\"{:.1f} {:.1f} {:.1f} {:.1f}\" data-x=\"{} {}\" "
      "data-y=\"{} {}\" data-log=\"{}{}\"{}>\n",
      draw::attribute("data-title", panel.title),
      draw::attribute("data-axes", panel.x_label + "\n" + panel.y_label), frame.x.from, frame.y.to,
      frame.x.to, frame.y.from, frame.x.low, frame.x.high, frame.y.low, frame.y.high, panel.log_x ? "x" : "",
      panel.log_y ? "y" : "",
      panel.whole_x || panel.whole_y
          ? fmt::format(" data-whole=\"{}{}\"", panel.whole_x ? "x" : "", panel.whole_y ? "y" : "")
          : "");
  svg += draw::fitted_text(frame.x.from, frame.y.to - 12, "font-size=\"13.5\"", panel.title, 13.5,
                           frame.x.to - frame.x.from);
  svg += axes(frame, widest) + "<g class=\"plot\">\n";
  for (const Curve& curve : frame.panel.curves)
    svg += band_of(curve, frame, styles.names.index_of(curve.name));
  for (const Curve& curve : frame.panel.curves)
    svg += line_of(curve, frame, styles.names.index_of(curve.name));
  svg += "<g class=\"hints\" fill=\"none\" pointer-events=\"all\">\n";
  for (const Curve& curve : frame.panel.curves) svg += hints_of(curve, frame);
  return svg + "</g>\n" + marks_of(frame, styles) + "</g>\n</g>\n";
}

std::vector<draw::LegendEntry> legend_of(const CurveFigure& figure, Styles& styles) {
  draw::Names& names = styles.names;
  for (const Panel& panel : figure.panels) {
    for (const Curve& curve : panel.curves) names.index_of(curve.name);
  }
  styles.curves = names.all().size();
  bool marks = false;
  for (const Panel& panel : figure.panels) {
    marks = marks || !panel.marks.empty();
    for (const auto& mark : panel.marks) names.index_of(mark.name);
  }
  std::vector<draw::LegendEntry> entries;
  for (std::size_t i = 0; i < names.all().size(); ++i) {
    const std::string line = fmt::format(
        "<path d=\"M0 0H31\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\" stroke-dasharray=\"{}\"/>",
        draw::colour(i), draw::dash(i));
    entries.push_back(
        {i < styles.curves ? line : diamond(20, 0, draw::colour(i), true, "", ""), names.all()[i]});
  }
  if (marks) entries.push_back({diamond(20, 0, "currentColor", false, "", ""), "value in the paper", "mark"});
  return entries;
}

}  // namespace

std::string curves_svg(const CurveFigure& figure) {
  Styles styles;
  const draw::Sheet sheet{.legend = legend_of(figure, styles),
                          .panels = figure.panels.size(),
                          .height = kHeight + kBelow,
                          .wide_if_one = true,
                          .caption = figure.caption};
  const double column = sheet.panels == 1 ? draw::Sheet::kWidth - 2 * draw::kEdge : draw::Sheet::kColumn;
  std::vector<Frame> frames;
  double widest = 0;
  for (const Panel& panel : figure.panels) {
    frames.push_back(frame_of(panel, column));
    for (const Tick& tick : frames.back().y_ticks) widest = std::max(widest, tick.width);
  }
  return draw::sheet_svg(sheet, [&](std::size_t i, double left, double top) {
    Frame& frame = frames[i];
    frame.x.from = left + kAxisTitle + widest;
    frame.x.to = left + column - kRight;
    frame.y.from = top + kHeight;
    frame.y.to = top;
    frame.x_ticks = draw::ticks(frame.x, true);
    return panel_svg(frame, styles, widest);
  });
}

}  // namespace normscope

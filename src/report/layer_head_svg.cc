#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/number_text.h"
#include "report/draw.h"
#include "report/heatmap.h"
#include "report/layer_head.h"
#include "result/columns.h"

namespace normscope {
namespace {

using draw::kEdge, draw::text;
using Panel = LayerHeadFigure::Panel;

// Layout, in pixels: panels two per row.
constexpr double kLeft = 58, kTitle = 40, kBelow = 48, kGap = 40, kBar = 116;
constexpr double kMostWidth = 420, kMostHeight = 420, kLargestCell = 34, kNarrowestPanel = 150, kWritten = 26,
                 kTitleFont = 13.5;

struct Layout {
  double cell, panel_width, panel_height;
};

// Layers and heads of a panel.
struct Shape {
  std::size_t layers, heads;
};
Shape shape_of(const LayerHeadFigure& figure, const Panel& panel) {
  if (panel.heads == 0) return {figure.layers, figure.heads};
  return {std::min(figure.layers, panel.values.size() / panel.heads), std::min(figure.heads, panel.heads)};
}

Layout lay_out(const LayerHeadFigure& figure) {
  const auto across = static_cast<double>(std::max<std::size_t>(1, figure.heads));
  const auto down = static_cast<double>(std::max<std::size_t>(1, figure.layers));
  const double cell = std::min({kLargestCell, kMostWidth / across, kMostHeight / down});
  double width = std::max(kNarrowestPanel, cell * across);
  for (const Panel& panel : figure.panels)
    width = std::max(width, std::min(kMostWidth, draw::text_width(panel.title, kTitleFont)));
  return {cell, width, std::max(60.0, cell * down)};
}

struct Scale {
  double low = 0, high = 1;
  double share(double value) const { return high > low ? (value - low) / (high - low) : 0.5; }
};

Scale scale_of(const LayerHeadFigure& figure) {
  draw::Range range(false);
  for (const Panel& panel : figure.panels) {
    for (const double value : panel.values) {
      if (draw::drawable(value)) range.include(value);
    }
  }
  const bool empty = range.low > range.high;
  Scale scale{figure.low.value_or(empty ? 0 : range.low), figure.high.value_or(empty ? 1 : range.high)};
  if (scale.high < scale.low) std::swap(scale.low, scale.high);
  return scale;
}

std::string number(const LayerHeadFigure& figure, double value) {
  return figure.percent ? short_percent(value, 3) : fmt::format("{:.3g}", value);
}

// In a cell: as many digits as it has room for.
std::string written(const LayerHeadFigure& figure, double value) {
  if (figure.percent) return fmt::format("{:.0f}", 100 * value);
  const std::string digits = fmt::format("{:.2g}", value);
  return digits.size() <= 5 ? digits : fmt::format("{:.0e}", value);
}

std::size_t label_step(std::size_t count, double cell, double room) {
  std::size_t step = 1;
  while (static_cast<double>(step) * cell < room && step < count) step *= 2;
  return step;
}

std::string cells(const LayerHeadFigure& figure, const Panel& panel, const Layout& layout, const Scale& scale,
                  double left, double top) {
  std::string rects, labels;
  const Shape shape = shape_of(figure, panel);
  const std::size_t count = std::min(panel.values.size(), shape.layers * shape.heads);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t layer = i / shape.heads, head = i % shape.heads;
    const double value = panel.values[i];
    const bool known = draw::drawable(value);
    const Colour colour = viridis(known ? scale.share(value) : 0);
    rects += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"1.01\" height=\"1.01\" {}><title>{}</title></rect>\n", head, layer,
        known ? fmt::format("fill=\"#{:02x}{:02x}{:02x}\"", colour.red, colour.green, colour.blue)
              : std::string("class=\"zero\" fill=\"#dddddd\""),
        fmt::format("layer {}, head {}: {}", layer, head, known ? number(figure, value) : "n/a"));
    const double x = left + (static_cast<double>(head) + 0.5) * layout.cell,
                 y = top + (static_cast<double>(layer) + 0.5) * layout.cell;
    if (layout.cell >= kWritten) {
      const bool light = known && scale.share(value) > 0.5;
      const std::string ink = known ? (light ? "#1c1e21" : "#ffffff") : "currentColor";
      labels += text(
          x, y + 3.5,
          fmt::format("text-anchor=\"middle\" font-size=\"9.5\" pointer-events=\"none\" fill=\"{}\"", ink),
          known ? written(figure, value) : "n/a");
    } else if (!known) {  // a stroke across, since grey alone may be taken for a colour of the scale
      const double half = 0.3 * layout.cell;
      labels += fmt::format(
          "<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" stroke=\"currentColor\" stroke-opacity=\"0.6\" "
          "pointer-events=\"none\"/>\n",
          x - half, y + half, x + half, y - half);
    }
  }
  return fmt::format(
             "<g class=\"cells\"{} data-frame=\"{:.1f} {:.1f} {:.1f} {:.1f}\" data-columns=\"{}\" "
             "transform=\"translate({:.1f} {:.1f}) scale({:.6g})\" shape-rendering=\"crispEdges\">\n{}</g>\n",
             draw::attribute("data-title", panel.title), left, top,
             left + layout.cell * static_cast<double>(shape.heads),
             top + layout.cell * static_cast<double>(shape.layers), shape.heads, left, top, layout.cell,
             rects) +
         labels;
}

std::string axes(const Shape& shape, const Layout& layout, double left, double top) {
  std::string svg;
  const double width = layout.cell * static_cast<double>(shape.heads),
               height = layout.cell * static_cast<double>(shape.layers);
  for (std::size_t h = 0; h < shape.heads; h += label_step(shape.heads, layout.cell, 24)) {
    svg += text(left + (static_cast<double>(h) + 0.5) * layout.cell, top + height + 16,
                "text-anchor=\"middle\"", std::to_string(h));
  }
  for (std::size_t l = 0; l < shape.layers; l += label_step(shape.layers, layout.cell, 14)) {
    svg += text(left - 7, top + (static_cast<double>(l) + 0.5) * layout.cell + 4, "text-anchor=\"end\"",
                std::to_string(l));
  }
  const double x = left - 38, y = top + height / 2;
  return svg + text(left + width / 2, top + height + 35, "text-anchor=\"middle\"", "head") +
         text(x, y, draw::upwards(x, y), "layer");
}

std::string colour_bar(const LayerHeadFigure& figure, const Scale& scale, bool gaps, double left,
                       double top) {
  constexpr int steps = 50;
  constexpr double height = 160, step = height / steps;
  std::string svg = "<g shape-rendering=\"crispEdges\">\n";
  for (int i = 0; i < steps; ++i) {
    const Colour colour = viridis(1 - (i + 0.5) / steps);
    svg += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.2f}\" width=\"14\" height=\"{:.2f}\" fill=\"#{:02x}{:02x}{:02x}\"/>\n",
        left, top + i * step, step + 0.05, colour.red, colour.green, colour.blue);
  }
  svg += "</g>\n";
  const bool flat = scale.high <= scale.low;
  for (int quarter = 0; quarter <= 4; ++quarter) {
    if (flat && quarter != 2) continue;
    svg += text(left + 20, top + height * (4 - quarter) / 4 + 4, "",
                number(figure, scale.low + (scale.high - scale.low) * quarter / 4));
  }
  if (gaps) {
    svg +=
        fmt::format(
            "<rect class=\"zero\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"14\" fill=\"#dddddd\"/>\n",
            left, top + height + 14) +
        text(left + 20, top + height + 25, "", "n/a");
  }
  const double x = left + 98, y = top + height / 2;
  return svg + draw::fitted_text(x, y, draw::upwards(x, y), figure.scale, draw::kFont, height + 60);
}

// A line of its CSV.
struct HeadRow {
  std::string panel = {};
  std::size_t layer = 0, head = 0;
  double value = 0;

  static void describe(auto& visit, auto& self) {
    visit("panel", self.panel, "by its title");
    visit("layer", self.layer, "counted from 0");
    visit("head", self.head, "counted from 0");
    visit("value", self.value, "that is drawn");
  }
};

}  // namespace

std::string layer_head_svg(const LayerHeadFigure& figure) {
  const Layout layout = lay_out(figure);
  const Scale scale = scale_of(figure);
  const std::size_t columns = std::clamp<std::size_t>(figure.panels.size(), 1, 2);
  const double column = kLeft + layout.panel_width + kGap, row = kTitle + layout.panel_height + kBelow;
  const double width = std::max(560.0, kEdge + static_cast<double>(columns) * column + kBar);
  std::string svg;
  bool gaps = false;
  for (std::size_t p = 0; p < figure.panels.size(); ++p) {
    const Panel& panel = figure.panels[p];
    const std::size_t down = p / 2;
    const double left = kEdge + kLeft + static_cast<double>(p % 2) * column,
                 top = kEdge + kTitle + static_cast<double>(down) * row;
    svg +=
        draw::fitted_text(left, top - 12, "font-size=\"13.5\"", panel.title, kTitleFont, layout.panel_width);
    if (panel.values.empty() || figure.heads == 0) {
      svg += text(left, top + 24, "", "nothing to draw");
      continue;
    }
    gaps = gaps || !std::all_of(panel.values.begin(), panel.values.end(), draw::drawable);
    svg += cells(figure, panel, layout, scale, left, top) + axes(shape_of(figure, panel), layout, left, top);
  }
  svg += colour_bar(figure, scale, gaps, kEdge + static_cast<double>(columns) * column, kEdge + kTitle);
  const std::size_t rows = (figure.panels.size() + 1) / 2;
  const double bottom = kEdge + std::max(static_cast<double>(rows) * row, kTitle + 200);
  return draw::captioned(svg, figure.caption, width, bottom);
}

std::string layer_head_csv(const LayerHeadFigure& figure) {
  Csv<HeadRow> csv;
  for (const Panel& panel : figure.panels) {
    const Shape shape = shape_of(figure, panel);
    for (std::size_t i = 0; i < std::min(panel.values.size(), shape.layers * shape.heads); ++i)
      csv.add({panel.title, i / shape.heads, i % shape.heads, panel.values[i]});
  }
  return std::move(csv).text();
}

Figure to_figure(std::string name, std::string title, std::string caption, const LayerHeadFigure& figure) {
  return {std::move(name), std::move(title), std::move(caption), layer_head_svg(figure),
          layer_head_csv(figure)};
}

}  // namespace normscope

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "report/draw.h"
#include "report/heatmap.h"

namespace normscope {
namespace {

using draw::text;

// Layout, in pixels.
constexpr double kPanelWidth = 440, kPanelHeight = 240, kSmallestCell = 0.05, kLargestCell = 36;
constexpr double kLeft = 58, kGap = 64, kRight = 110, kTitle = 58, kBelow = 46, kCaption = 30;
constexpr double kDigit = 7.5, kNote = 100,
                 kNarrowest = 680;          // room for a digit, the note below, the caption
constexpr std::size_t kMostHints = 20'000;  // more would make the file larger than its use

struct Layout {
  double cell_width, cell_height, panel_width, panel_height;
  double panel_x(std::size_t column) const {
    return kLeft + static_cast<double>(column) * (panel_width + kGap);
  }
  double panel_y(std::size_t row) const {
    return kTitle + static_cast<double>(row) * (panel_height + kTitle + kBelow);
  }
};

Layout lay_out(const HeatmapFigure& figure) {
  const auto cell = [](double length, std::size_t count) {
    return std::clamp(length / static_cast<double>(std::max<std::size_t>(1, count)), kSmallestCell,
                      kLargestCell);
  };
  const double width = cell(kPanelWidth, figure.x.size()), height = cell(kPanelHeight, figure.y.size());
  // A narrow grid keeps a panel wide enough for its title.
  return {width, height, std::max(200.0, width * static_cast<double>(figure.x.size())),
          std::max(90.0, height * static_cast<double>(figure.y.size()))};
}

std::string hex(Colour colour) {
  return fmt::format("#{:02x}{:02x}{:02x}", colour.red, colour.green, colour.blue);
}

// Indices to label: multiples of the smallest round step that leaves `room` pixels between labels.
std::vector<std::size_t> ticks(const std::vector<std::size_t>& values, double cell, double room) {
  const auto far_enough = [&](const std::vector<std::size_t>& chosen) {
    for (std::size_t i = 1; i < chosen.size(); ++i) {
      if (static_cast<double>(chosen[i] - chosen[i - 1]) * cell < room) return false;
    }
    return true;
  };
  for (std::size_t decade = 1; decade <= 1'000'000; decade *= 10) {
    for (const std::size_t step : {decade, 2 * decade, 5 * decade}) {
      std::vector<std::size_t> chosen;
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] % step == 0) chosen.push_back(i);
      }
      if (chosen.size() < std::min<std::size_t>(2, values.size())) break;
      if (far_enough(chosen)) return chosen;
    }
  }
  std::vector<std::size_t> chosen;  // no round step fits: every few values
  const auto every = static_cast<std::size_t>(std::ceil(room / cell));
  for (std::size_t i = 0; i < values.size(); i += every) chosen.push_back(i);
  return chosen;
}

std::string axes(const HeatmapFigure& figure, const Layout& layout, double left, double top) {
  std::string svg;
  const double bottom = top + layout.cell_height * static_cast<double>(figure.y.size());
  const std::size_t largest = figure.x.empty() ? 0 : *std::max_element(figure.x.begin(), figure.x.end());
  const double room = kDigit * static_cast<double>(std::to_string(largest).size()) + 8;
  for (const std::size_t i : ticks(figure.x, layout.cell_width, room)) {
    const double x = left + (static_cast<double>(i) + 0.5) * layout.cell_width;
    svg += text(x, bottom + 16, "text-anchor=\"middle\"", std::to_string(figure.x[i]));
  }
  for (const std::size_t i : ticks(figure.y, layout.cell_height, 14)) {
    const double y = top + (static_cast<double>(i) + 0.5) * layout.cell_height;
    svg += text(left - 7, y + 4, "text-anchor=\"end\"", std::to_string(figure.y[i]));
  }
  const double middle = left + std::max(kNote, layout.cell_width * static_cast<double>(figure.x.size())) / 2;
  svg += text(middle, bottom + 35, "text-anchor=\"middle\"", figure.x_label);
  const double y = (top + bottom) / 2, x = left - 40;
  svg += text(x, y, draw::upwards(x, y), figure.y_label);
  return svg;
}

// Cells in units of one, scaled by their group. Without hints neighbours of a row that look alike are one
// shape.
std::string cells(const HeatmapFigure& figure, const HeatmapFigure::Panel& panel, const Layout& layout,
                  double left, double top) {
  const std::size_t across = figure.x.size(), count = panel.values.size();
  const bool hinted = panel.hints.size() == count && count <= kMostHints;
  const auto fill = [&](std::size_t i) {
    return panel.values[i] == 0 ? std::string("class=\"zero\" fill=\"#dddddd\"")
                                : fmt::format("fill=\"{}\"", hex(viridis(panel.values[i])));
  };
  std::string svg =
      fmt::format("<g class=\"cells\"{} data-frame=\"{:.1f} {:.1f} {:.1f} {:.1f}\" data-columns=\"{}\"",
                  draw::attribute("data-title", panel.title), left, top,
                  left + layout.cell_width * static_cast<double>(across),
                  top + layout.cell_height * static_cast<double>(figure.y.size()), across);
  if (!hinted && !panel.where.empty()) {
    svg += draw::attribute("data-where", panel.where) +
           draw::attribute("data-axes", figure.x_column + " " + figure.y_column) +
           fmt::format(" data-xs=\"{}\" data-ys=\"{}\"", fmt::join(figure.x, " "), fmt::join(figure.y, " "));
  }
  svg += fmt::format(
      " transform=\"translate({:.1f} {:.1f}) scale({:.6g} {:.6g})\" shape-rendering=\"crispEdges\">\n", left,
      top, layout.cell_width, layout.cell_height);
  for (std::size_t i = 0; i < count;) {
    const std::string colour = fill(i);
    std::size_t end = i + 1;
    while (!hinted && end < count && end % across != 0 && fill(end) == colour) ++end;
    // Neighbours overlap by a hair, or seams would show between them.
    svg += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}.01\" height=\"1.01\" {}", i % across, i / across,
                       end - i, colour);
    svg += hinted ? fmt::format("><title>{}</title></rect>\n", escape_markup(panel.hints[i])) : "/>\n";
    i = end;
  }
  return svg + "</g>\n";
}

// Said in words too, or an even grey panel might be taken for a missing one.
std::string zero_note(const HeatmapFigure& figure, const HeatmapFigure::Panel& panel, const Layout& layout,
                      double left, double top) {
  if (layout.cell_width * static_cast<double>(figure.x.size()) < kNote) return "";
  if (!std::all_of(panel.values.begin(), panel.values.end(), [](double value) { return value == 0; }))
    return "";
  const double x = left + layout.cell_width * static_cast<double>(figure.x.size()) / 2;
  const double y = top + layout.cell_height * static_cast<double>(figure.y.size()) / 2 + 5;
  return text(x, y, "text-anchor=\"middle\" font-size=\"14\" pointer-events=\"none\"",
              fmt::format("0 in all {} cells", panel.values.size()));
}

std::string colour_bar(const HeatmapFigure::Row& row, double left, double top, double height) {
  constexpr int steps = 50;
  std::string svg = "<g shape-rendering=\"crispEdges\">\n";
  const double bar = height - 24, step = bar / steps;  // below it, the box for exactly 0
  for (int i = 0; i < steps; ++i) {
    svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.2f}\" width=\"14\" height=\"{:.2f}\" fill=\"{}\"/>\n", left,
                       top + i * step, step + 0.05, hex(viridis(1 - (i + 0.5) / steps)));
  }
  svg += fmt::format(
      "<rect class=\"zero\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"14\" fill=\"#dddddd\"/>\n</g>\n",
      left, top + height - 14);
  for (const int percent : {100, 75, 50, 25, 0}) {
    const std::string label = percent == 0 ? "> 0 %" : fmt::format("{} %", percent);
    svg += text(left + 20, top + bar * (100 - percent) / 100.0 + 4, "", label);
  }
  svg += text(left + 20, top + height - 3, "", "none");
  const double x = left + 74, y = top + height / 2;
  return svg + text(x, y, draw::upwards(x, y), row.scale);
}

}  // namespace

Colour viridis(double share) {
  constexpr std::array<Colour, 9> anchors = {{{0x44, 0x01, 0x54},
                                              {0x47, 0x2d, 0x7b},
                                              {0x3b, 0x52, 0x8b},
                                              {0x2c, 0x72, 0x8e},
                                              {0x21, 0x91, 0x8c},
                                              {0x28, 0xae, 0x80},
                                              {0x5e, 0xc9, 0x62},
                                              {0xad, 0xdc, 0x30},
                                              {0xfd, 0xe7, 0x25}}};
  const double place = std::clamp(std::isnan(share) ? 0.0 : share, 0.0, 1.0) * 8;
  const auto low = std::min<std::size_t>(7, static_cast<std::size_t>(place));
  const double weight = place - static_cast<double>(low);
  const auto mix = [&](int a, int b) { return static_cast<int>(std::lround(a + weight * (b - a))); };
  const Colour &a = anchors[low], &b = anchors[low + 1];
  return {mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue)};
}

std::string heatmap_svg(const HeatmapFigure& figure) {
  const Layout layout = lay_out(figure);
  std::size_t columns = 1;
  for (const auto& row : figure.rows) columns = std::max(columns, row.panels.size());
  const double width = std::max(kNarrowest, layout.panel_x(columns) - kGap + kRight);
  const double height = layout.panel_y(figure.rows.size()) - kTitle + kCaption;
  std::string svg = draw::open_svg(width, height);
  for (std::size_t r = 0; r < figure.rows.size(); ++r) {
    const auto& row = figure.rows[r];
    const double top = layout.panel_y(r);
    svg += text(kLeft, top - 32, "font-size=\"15\" font-weight=\"bold\"", row.title);
    for (std::size_t c = 0; c < row.panels.size(); ++c) {
      const double left = layout.panel_x(c);
      svg += text(left, top - 10, "font-size=\"13.5\"", row.panels[c].title);
      svg += cells(figure, row.panels[c], layout, left, top) + axes(figure, layout, left, top) +
             zero_note(figure, row.panels[c], layout, left, top);
    }
    svg += colour_bar(row, layout.panel_x(columns) - kGap + 18, top, layout.panel_height);
  }
  svg += text(kLeft, height - 12, "font-size=\"11.5\"", figure.caption);
  return svg + "</svg>\n";
}

}  // namespace normscope

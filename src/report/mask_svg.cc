#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "report/draw.h"
#include "report/mask.h"
#include "result/columns.h"

namespace normscope {
namespace {

using draw::text;
using Panel = MaskFigure::Panel;

// Layout, in pixels: tiles, two in a row.
constexpr double kEdge = 16, kTile = 330, kGap = 64, kLeft = 58, kTitle = 50, kBelow = 50;
constexpr int kLevels = 16;  // of shading

struct Cells {
  std::size_t across;  // as many down
  std::vector<double> shares;
};

Cells cells_of(const Mask& mask) {
  const std::size_t across = std::min(mask.n(), MaskFigure::most_cells);
  return {across, mask_shares(mask, across, across)};
}

// 0 only for no edge at all, kLevels only for all.
int level_of(double share) {
  if (share <= 0) return 0;
  if (share >= 1) return kLevels;
  return std::clamp(static_cast<int>(share * kLevels), 1, kLevels - 1);
}

// One path per shade, with cells of a row drawn as one.
std::string cells_svg(const Cells& cells) {
  std::array<std::string, kLevels + 1> paths;
  for (std::size_t row = 0; row < cells.across; ++row) {
    for (std::size_t column = 0; column < cells.across;) {
      const int level = level_of(cells.shares[row * cells.across + column]);
      std::size_t end = column + 1;
      while (end < cells.across && level_of(cells.shares[row * cells.across + end]) == level) ++end;
      if (level > 0) paths[level] += fmt::format("M{} {}h{}v1h-{}z", column, row, end - column, end - column);
      column = end;
    }
  }
  std::string svg;
  for (int level = 1; level <= kLevels; ++level) {
    if (paths[level].empty()) continue;
    svg += fmt::format("<path d=\"{}\" fill=\"{}\" fill-opacity=\"{:.2f}\"/>\n", paths[level],
                       draw::colour(0), 0.15 + 0.85 * level / kLevels);
  }
  return svg;
}

// A round step that labels at most seven of n tokens.
std::size_t label_step(std::size_t n) {
  for (std::size_t decade = 1;; decade *= 10) {
    for (const std::size_t step : {decade, 2 * decade, 5 * decade}) {
      if ((n - 1) / step < 7) return step;
    }
  }
}

std::string matrix_svg(const Panel& panel, double left, double top) {
  const std::size_t n = panel.mask.n();
  const Cells cells = cells_of(panel.mask);
  const double scale = kTile / static_cast<double>(cells.across);
  std::string svg = fmt::format(
      "<g class=\"matrix\"{}{} data-frame=\"{:.1f} {:.1f} {:.1f} {:.1f}\" data-tokens=\"{}\" "
      "data-columns=\"{}\" transform=\"translate({:.1f} {:.1f}) scale({:.5f})\" "
      "shape-rendering=\"crispEdges\">\n{}</g>\n",
      draw::attribute("data-where", "mask=" + panel.name), draw::attribute("data-title", panel.name), left,
      top, left + kTile, top + kTile, n, cells.across, left, top, scale, cells_svg(cells));
  svg += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"none\" "
      "stroke=\"#8a8f98\"/>\n",
      left, top, kTile, kTile);
  const double token = kTile / static_cast<double>(n);
  for (std::size_t i = 0; i < n; i += label_step(n)) {
    const double at = (static_cast<double>(i) + 0.5) * token;
    svg += text(left + at, top - 6, "text-anchor=\"middle\" font-size=\"11\"", std::to_string(i));
    svg += text(left - 6, top + at + 4, "text-anchor=\"end\" font-size=\"11\"", std::to_string(i));
  }
  const double middle = top + kTile / 2;
  svg += text(left - 46, middle, draw::upwards(left - 46, middle), "token");
  const std::string shade = cells.across < n ? "; shade: share of the pairs in a cell" : "";
  return svg + text(left + kTile / 2, top + kTile + 18, "text-anchor=\"middle\"", "attends to" + shade);
}

struct Point {
  double x, y;
};

Point operator+(Point a, Point b) {
  return {a.x + b.x, a.y + b.y};
}
Point operator*(double factor, Point p) {
  return {factor * p.x, factor * p.y};
}

// Tokens on a circle, clockwise from the top; an arrow shows where information flows, from j to i if i
// attends to j.
class Graph {
 public:
  Graph(const Panel& panel, double left, double top)
      : panel_(panel), middle_{left + kTile / 2, top + kTile / 2}, n_(panel.mask.n()) {
    node_ = std::clamp(90.0 / static_cast<double>(n_), 9.0, 15.0);
  }

  std::string svg() const {
    std::string lines, heads, nodes;
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t j = 0; j < n_; ++j) {
        if (i != j && panel_.mask.attends(i, j)) add_arrow(j, i, lines, heads);
      }
      nodes += node(i);
    }
    const std::string key = panel_.properties.centres.empty() ? "no token reaches all" : "orange: centres";
    return fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"currentColor\" stroke-opacity=\"0.5\"/>\n",
                       lines) +
           fmt::format("<path d=\"{}\" fill-opacity=\"0.75\"/>\n", heads) + nodes +
           text(middle_.x, middle_.y + kTile / 2 + 18, "text-anchor=\"middle\"",
                "information flows along the arrows; " + key);
  }

 private:
  Point direction(std::size_t token) const {
    const double angle =
        2 * std::numbers::pi * static_cast<double>(token) / static_cast<double>(n_) - std::numbers::pi / 2;
    return {std::cos(angle), std::sin(angle)};
  }
  Point place(std::size_t token) const { return middle_ + (n_ == 1 ? 0 : kTile / 2 - 32) * direction(token); }

  // Bent to its left, so that the two arrows of a pair are apart.
  void add_arrow(std::size_t from, std::size_t to, std::string& lines, std::string& heads) const {
    const Point a = place(from), b = place(to), along{b.x - a.x, b.y - a.y};
    const double length = std::hypot(along.x, along.y);
    const Point bend = 0.5 * (a + b) + 0.1 * Point{along.y, -along.x};
    const auto towards = [&](Point start, double distance) {
      const Point way{bend.x - start.x, bend.y - start.y};
      return start + distance / std::hypot(way.x, way.y) * way;
    };
    const double rim = std::min(node_ + 1, 0.4 * length);
    const Point start = towards(a, rim), end = towards(b, rim), neck = towards(b, rim + 6);
    const Point side = 0.4 * Point{end.y - neck.y, neck.x - end.x};
    lines += fmt::format("M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}", start.x, start.y, bend.x, bend.y,
                         neck.x, neck.y);
    heads += fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}L{:.1f} {:.1f}Z", end.x, end.y, neck.x + side.x,
                         neck.y + side.y, neck.x - side.x, neck.y - side.y);
  }

  std::string node(std::size_t token) const {
    const auto& centres = panel_.properties.centres;
    const bool centre = std::binary_search(centres.begin(), centres.end(), token);
    const Point at = place(token);
    std::string svg;
    if (panel_.mask.attends(token, token)) {
      const Point loop = at + (node_ + 3) * direction(token);
      svg += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"6\" fill=\"none\" stroke=\"currentColor\" "
          "stroke-opacity=\"0.6\"/>\n",
          loop.x, loop.y);
    }
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\" stroke=\"#3d434b\">{}</circle>\n", at.x,
        at.y, node_, centre ? "#f3b562" : "#e8eaed",
        draw::hint(fmt::format("token {}{}", token, centre ? ", a centre" : "")));
    return svg + text(at.x, at.y + 4,
                      "text-anchor=\"middle\" font-size=\"11\" fill=\"#1c1e21\" pointer-events=\"none\"",
                      std::to_string(token));
  }

  const Panel& panel_;
  Point middle_;
  std::size_t n_;
  double node_;
};

// A line of its CSV: neighbouring cells of a row with the same share.
struct CellsRow {
  Quoted mask = {};
  std::size_t first_row = 0, last_row = 0, first_column = 0, last_column = 0;
  double share = 0;

  static void describe(auto& visit, auto& self) {
    visit("mask", self.mask, "by its name");
    visit("first_row", self.first_row, "token");
    visit("last_row", self.last_row, "token");
    visit("first_column", self.first_column, "token attended to");
    visit("last_column", self.last_column, "token attended to");
    visit("share", self.share, "of pairs that the mask allows");
  }
};

}  // namespace

std::vector<double> mask_shares(const Mask& mask, std::size_t rows, std::size_t columns) {
  const std::size_t n = mask.n();
  const auto begin_of = [n](std::size_t cell, std::size_t count) { return cell * n / count; };
  // The cell of a token: where its range begins at or before it and the next one after it.
  const auto cell_of = [&](std::size_t token, std::size_t count) { return ((token + 1) * count - 1) / n; };
  std::vector<double> shares(rows * columns);
  for (std::size_t r = 0; r < rows; ++r) {
    const std::size_t first_row = begin_of(r, rows), last_row = begin_of(r + 1, rows);
    // Runs that cover whole cells are counted where they begin and end.
    std::vector<std::uint64_t> parts(columns);
    std::vector<std::int64_t> whole(columns + 1);
    for (std::size_t i = first_row; i < last_row; ++i) {
      for (const Mask::Run& run : mask.row(i)) {
        const std::size_t from = cell_of(run.first, columns), to = cell_of(run.last - 1, columns);
        if (from == to) {
          parts[from] += run.last - run.first;
          continue;
        }
        parts[from] += begin_of(from + 1, columns) - run.first;
        parts[to] += run.last - begin_of(to, columns);
        ++whole[from + 1];
        --whole[to];
      }
    }
    std::int64_t covering = 0;
    for (std::size_t c = 0; c < columns; ++c) {
      covering += whole[c];
      const auto width = static_cast<double>(begin_of(c + 1, columns) - begin_of(c, columns));
      const auto height = static_cast<double>(last_row - first_row);
      shares[r * columns + c] =
          (static_cast<double>(parts[c]) + static_cast<double>(covering) * width) / (width * height);
    }
  }
  return shares;
}

std::string mask_svg(const MaskFigure& figure) {
  std::string body;
  std::size_t column = 0, columns = 1;
  double top = kEdge;
  const auto left = [&] { return kEdge + kLeft + static_cast<double>(column) * (kTile + kGap + kLeft); };
  const auto next_row = [&] {
    if (column > 0) top += kTitle + kTile + kBelow;
    column = 0;
  };
  for (const Panel& panel : figure.panels) {
    const bool graph = panel.mask.n() <= MaskFigure::most_nodes;
    if (graph || column == 2) next_row();
    body += draw::fitted_text(left(), top + 16, "font-size=\"15\" font-weight=\"bold\"",
                              fmt::format("{}, {} tokens", panel.name, panel.mask.n()), 15, kTile);
    body += matrix_svg(panel, left(), top + kTitle);
    ++column;
    columns = std::max(columns, column);
    if (!graph) continue;
    body += Graph(panel, left() - kLeft / 2, top + kTitle).svg();
    columns = ++column;
  }
  next_row();
  const double width = std::max(680.0, kEdge + static_cast<double>(columns) * (kTile + kGap + kLeft));
  return draw::open_svg(width, top + 26) + body +
         text(kEdge, top + 14, "font-size=\"11.5\"", figure.caption) + "</svg>\n";
}

std::string mask_csv(const MaskFigure& figure) {
  Csv<CellsRow> csv;
  for (const Panel& panel : figure.panels) {
    const Cells cells = cells_of(panel.mask);
    const auto begin_of = [&](std::size_t cell) { return cell * panel.mask.n() / cells.across; };
    for (std::size_t k = 0; k < cells.shares.size();) {
      const std::size_t row = k / cells.across, row_end = (row + 1) * cells.across;
      std::size_t end = k + 1;
      while (end < row_end && cells.shares[end] == cells.shares[k]) ++end;
      if (cells.shares[k] > 0) {
        csv.add({{panel.name},
                 begin_of(row),
                 begin_of(row + 1) - 1,
                 begin_of(k % cells.across),
                 begin_of((end - 1) % cells.across + 1) - 1,
                 cells.shares[k]});
      }
      k = end;
    }
  }
  return std::move(csv).text();
}

}  // namespace normscope

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "keys/picture.h"
#include "report/draw.h"
#include "report/key_plane.h"

namespace normscope {
namespace {

constexpr double kSide = 400;          // of the square that is drawn in, in pixels
constexpr double kRoom = 1.16;         // what is shown, in extents of the keys
constexpr std::size_t kNumbered = 40;  // more keys have no numbers beside them

// In the order of the legend; colours as in draw.h, told apart by shape as well.
struct Look {
  Verdict verdict;
  const char* name;
  std::size_t colour;
};
constexpr std::array<Look, 4> kLooks = {{{Verdict::selectable, "selectable", 0},
                                         {Verdict::tied, "tied: never alone on top", 4},
                                         {Verdict::unselectable, "unselectable", 1},
                                         {Verdict::undecided, "undecided", 6}}};

const Look& look_of(Verdict verdict) {
  return *std::find_if(kLooks.begin(), kLooks.end(),
                       [&](const Look& look) { return look.verdict == verdict; });
}

std::string mark(const Look& look, double x, double y) {
  const std::string_view colour = draw::colour(look.colour);
  switch (look.verdict) {
    case Verdict::selectable:
      return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"6\" fill=\"{}\"/>", x, y, colour);
    case Verdict::tied:
      return fmt::format("<path d=\"M{:.1f} {:.1f}h11v11h-11Z\" fill=\"{}\"/>", x - 5.5, y - 5.5, colour);
    default:  // a ring, crossed out
      return fmt::format(
          "<circle cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"6.5\" fill=\"none\" stroke=\"{4}\" stroke-width=\"2.2\"/>"
          "<path d=\"M{2:.1f} {3:.1f}l9.2 9.2m0 -9.2l-9.2 9.2\" fill=\"none\" stroke=\"{4}\" stroke-width=\"2.2\"/>",
          x, y, x - 4.6, y - 4.6, colour);
  }
}

// Where a plane is on the sheet.
struct Window {
  double x = 0, y = 0, half = 1;  // its middle, and from there to an edge
  double left = 0, top = 0;       // in pixels
  double across(double value) const { return left + kSide / 2 * (1 + (value - x) / half); }
  double down(double value) const { return top + kSide / 2 * (1 - (value - y) / half); }
};

bool drawable(MatrixView<const double> keys, std::size_t i) {
  return draw::drawable(keys(i, 0)) && draw::drawable(keys(i, 1));
}

// The length that all keys have, up to the rounding of their numbers; else 0.
double common_length(MatrixView<const double> keys) {
  double least = INFINITY, largest = 0;
  for (std::size_t i = 0; i < keys.rows; ++i) {
    if (!drawable(keys, i)) return 0;
    const double length = std::hypot(keys(i, 0), keys(i, 1));
    least = std::min(least, length), largest = std::max(largest, length);
  }
  return keys.rows > 2 && largest - least <= 1e-3 * largest ? largest : 0;
}

// The origin is always in sight.
Window window_of(MatrixView<const double> keys, double circle) {
  double low[2] = {-circle, -circle}, high[2] = {circle, circle};
  for (std::size_t i = 0; i < keys.rows; ++i)
    for (std::size_t c = 0; drawable(keys, i) && c < 2; ++c)
      low[c] = std::min(low[c], keys(i, c)), high[c] = std::max(high[c], keys(i, c));
  const double half = std::max(high[0] / 2 - low[0] / 2, high[1] / 2 - low[1] / 2) * kRoom;
  return {low[0] / 2 + high[0] / 2, low[1] / 2 + high[1] / 2, half > 0 ? half : 1};
}

std::string axes(const Window& window) {
  return fmt::format(
      "<path d=\"M{0:.1f} {2:.1f}H{1:.1f}M{3:.1f} {4:.1f}V{5:.1f}\" fill=\"none\" stroke=\"currentColor\" "
      "stroke-opacity=\"0.28\"/>\n",
      window.left, window.left + kSide, window.down(0), window.across(0), window.top, window.top + kSide);
}

std::string hull(const KeyPlaneFigure& figure, const Window& window) {
  std::string path;
  for (const WinnerArc& arc : winner_fan(figure.keys, figure.verdicts)) {
    const std::size_t key = arc.keys.front();
    if (!drawable(figure.keys, key)) return "";
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? 'M' : 'L', window.across(figure.keys(key, 0)),
                        window.down(figure.keys(key, 1)));
  }
  return fmt::format(
      "<path class=\"hull\" d=\"{}Z\" fill=\"{}\" fill-opacity=\"0.08\" stroke=\"{}\" stroke-opacity=\"0.7\"/>\n",
      path, draw::colour(0), draw::colour(0));
}

std::string panel(const KeyPlaneFigure& figure, double left, double top) {
  const double circle = common_length(figure.keys);
  Window window = window_of(figure.keys, circle);
  window.left = left + (draw::Sheet::kColumn - kSide) / 2;
  window.top = top;
  std::string svg =
      draw::fitted_text(left, top - 12, "font-size=\"13.5\"", figure.title, 13.5, draw::Sheet::kColumn);
  svg += axes(window);
  if (circle > 0)
    svg += fmt::format(
        "<circle class=\"length\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"none\" stroke=\"currentColor\" "
        "stroke-opacity=\"0.6\" stroke-dasharray=\"6 4\"/>\n",
        window.across(0), window.down(0), kSide / 2 * circle / window.half);
  svg += hull(figure, window);
  for (std::size_t i = 0; i < figure.keys.rows; ++i) {
    if (!drawable(figure.keys, i)) continue;
    const Look& look = look_of(figure.verdicts[i]);
    const double x = window.across(figure.keys(i, 0)), y = window.down(figure.keys(i, 1));
    svg += fmt::format("<g class=\"key\"{}>{}", draw::named(look.name), mark(look, x, y));
    svg += draw::hint(fmt::format("key {}: ({:.4g}, {:.4g}), {}", i, figure.keys(i, 0), figure.keys(i, 1),
                                  name_of(look.verdict)));
    if (figure.keys.rows <= kNumbered)
      svg += draw::text(x + 10, y - 8, "font-size=\"13.5\"", std::to_string(i));
    svg += "</g>\n";
  }
  return svg;
}

}  // namespace

std::string key_plane_svg(const KeyPlaneFigure& figure) {
  std::vector<draw::LegendEntry> legend;
  for (const Look& look : kLooks) {
    const auto count = std::count(figure.verdicts.begin(), figure.verdicts.end(), look.verdict);
    if (count > 0) legend.push_back({mark(look, 18, 0), look.name});
  }
  return draw::sheet_svg(
      {.legend = legend, .panels = 1, .height = kSide, .after = 8, .caption = figure.caption},
      [&](std::size_t, double left, double top) { return panel(figure, left, top); });
}

}  // namespace normscope

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "report/draw.h"
#include "report/scatter.h"

namespace normscope {
namespace {

using Panel = ScatterFigure::Panel;
using Group = ScatterFigure::Group;
using Point = ScatterFigure::Point;

// Layout, in pixels.
constexpr double kHeight = 430, kColumn = draw::Sheet::kColumn;
constexpr double kRadius = 168;  // of the largest point
constexpr double kTriad = 34;
constexpr double kAzimuth = 20, kElevation = 9;  // of the viewer, in degrees; page.js turns on from there
constexpr double kBeyond = 1.12;  // radius of the plane's disc and half the axis, in largest points

// Right and down are pixels for a unit length of one, near points at the viewer.
struct Projected {
  double right, down, near;
};

// Orthographic. With e₁ = (1, −1, 0)/√2, e₂ = (1, 1, −2)/√6, u = (1, 1, 1)/√3 and the azimuth a, the
// elevation h, the viewer is at cos h (cos a e₁ + sin a e₂) + sin h u and sees u upright. A low elevation
// shows the plane orthogonal to u nearly edge-on; the azimuth keeps the axes apart from u and from each
// other.
Projected project(double x, double y, double z) {
  static const double azimuth = kAzimuth * std::numbers::pi / 180,
                      elevation = kElevation * std::numbers::pi / 180;
  const double first = (x - y) / std::sqrt(2.0), second = (x + y - 2 * z) / std::sqrt(6.0);
  const double along = (x + y + z) / std::sqrt(3.0);
  const double right = -std::sin(azimuth) * first + std::cos(azimuth) * second;
  const double ahead = std::cos(azimuth) * first + std::sin(azimuth) * second;
  return {right, std::sin(elevation) * ahead - std::cos(elevation) * along,
          std::cos(elevation) * ahead + std::sin(elevation) * along};
}

bool drawable(const Point& point) {
  return draw::drawable(point.x) && draw::drawable(point.y) && draw::drawable(point.z);
}

double largest_norm(const Panel& panel) {
  double largest = 0;
  for (const Group& group : panel.groups) {
    for (const Point& point : group.points) {
      if (drawable(point)) largest = std::max(largest, std::hypot(point.x, point.y, point.z));
    }
  }
  return largest;
}

// The name's shape, since colour alone does not tell everyone; about the area of a circle of that radius.
std::string shape(std::size_t style, double x, double y, double radius) {
  switch (style % 4) {
    case 1:  // square
      return fmt::format("M{:.1f} {:.1f}h{:.1f}v{:.1f}h-{:.1f}Z", x - 0.89 * radius, y - 0.89 * radius,
                         1.78 * radius, 1.78 * radius, 1.78 * radius);
    case 2:  // triangle
      return fmt::format("M{:.1f} {:.1f}l{:.1f} {:.1f}h-{:.1f}Z", x, y - 1.4 * radius, 1.3 * radius,
                         2.2 * radius, 2.6 * radius);
    case 3:  // diamond
      return fmt::format("M{:.1f} {:.1f}l{:.1f} {:.1f}l-{:.1f} {:.1f}l-{:.1f} -{:.1f}Z", x, y - 1.35 * radius,
                         1.35 * radius, 1.35 * radius, 1.35 * radius, 1.35 * radius, 1.35 * radius,
                         1.35 * radius);
    default:  // circle
      return fmt::format("M{0:.1f} {1:.1f}a{2:.1f} {2:.1f} 0 1 1 {3:.1f} 0a{2:.1f} {2:.1f} 0 1 1 -{3:.1f} 0Z",
                         x - radius, y, radius, 2 * radius);
  }
}

// The tip of an arrow that comes from (x0, y0).
std::string arrow_head(double x0, double y0, double x, double y, double size) {
  const double length = std::hypot(x - x0, y - y0);
  // Towards the viewer an arrow has no direction on paper; it is then a dot.
  if (length < 1) return shape(0, x, y, size / 2);
  const double along_x = (x - x0) / length * size, along_y = (y - y0) / length * size;
  return fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}L{:.1f} {:.1f}Z", x, y, x - along_x - 0.4 * along_y,
                     y - along_y + 0.4 * along_x, x - along_x + 0.4 * along_y, y - along_y - 0.4 * along_x);
}

struct Styles {
  draw::Names names, arrows;  // arrows among themselves differ by dashes
};

struct Item {
  const Group* group;
  const Point* point;
  Projected at;
};

std::string item_svg(const Item& item, Styles& styles, double x0, double y0, double unit) {
  const Point& point = *item.point;
  const std::size_t style = styles.names.index_of(item.group->name);
  const double nearness = std::clamp((item.at.near + 1) / 2, 0.0, 1.0), opacity = 0.4 + 0.55 * nearness;
  const double x = x0 + kRadius * item.at.right, y = y0 + kRadius * item.at.down;
  const std::string words = !point.hint.empty() ? point.hint
                                                : fmt::format("{}: ({:.4g}, {:.4g}, {:.4g})",
                                                              item.group->name, point.x, point.y, point.z);
  // From these the page's script draws the point again when the scene is turned.
  const std::string place = fmt::format("{} data-at=\"{:.5g} {:.5g} {:.5g}\"", draw::named(item.group->name),
                                        point.x / unit, point.y / unit, point.z / unit);
  if (!item.group->arrows) {
    return fmt::format(
        "<path class=\"point\"{} data-shape=\"{}\" d=\"{}\" fill=\"{}\" fill-opacity=\"{:.2f}\">{}</path>\n",
        place, style % 4, shape(style, x, y, 2.6 + 2.6 * nearness), draw::colour(style), opacity,
        draw::hint(words));
  }
  return fmt::format(
      "<g{}><path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.1f}\" "
      "stroke-opacity=\"{:.2f}\" stroke-dasharray=\"{}\"/>\n"
      "<path class=\"point\" d=\"{}\" fill=\"{}\" fill-opacity=\"{:.2f}\">{}</path></g>\n",
      place, x0, y0, x, y, draw::colour(style), 1.2 + nearness, opacity,
      draw::dash(styles.arrows.index_of(item.group->name)), arrow_head(x0, y0, x, y, 8 + 4 * nearness),
      draw::colour(style), opacity, draw::hint(words));
}

std::string ones_plane(double x0, double y0) {
  const Projected top = project(1 / std::sqrt(3.0), 1 / std::sqrt(3.0), 1 / std::sqrt(3.0));
  const double half = kBeyond * kRadius, flat = std::sqrt(1 - top.down * top.down);
  return fmt::format(
             "<path class=\"ones\" d=\"M{0:.1f} {1:.1f}L{0:.1f} {2:.1f}\" fill=\"none\" "
             "stroke=\"currentColor\" "
             "stroke-opacity=\"0.6\" stroke-dasharray=\"6 4\"/>\n"
             "<ellipse class=\"plane\" cx=\"{0:.1f}\" cy=\"{3:.1f}\" rx=\"{4:.1f}\" ry=\"{5:.1f}\" "
             "fill-opacity=\"0.09\" stroke=\"currentColor\" stroke-opacity=\"0.35\"/>\n",
             x0, y0 - half * top.down, y0 + half * top.down, y0, half, half * flat) +
         draw::text(x0 + 7, y0 + half * top.down + 8, "class=\"ones-label\"", "(1, 1, 1)") +
         draw::text(x0 + half + 5, y0 + 4, "", "⟂ (1, 1, 1)");
}

std::string triad(double x0, double y0) {
  std::string svg = fmt::format("<g class=\"triad\" data-centre=\"{:.1f} {:.1f}\">\n", x0, y0);
  const Projected axes[] = {project(1, 0, 0), project(0, 1, 0), project(0, 0, 1)};
  for (std::size_t i = 0; i < 3; ++i) {
    const double x = x0 + kTriad * axes[i].right, y = y0 + kTriad * axes[i].down;
    svg += fmt::format(
        "<path d=\"M{0:.1f} {1:.1f}L{2:.1f} {3:.1f}\" fill=\"none\" stroke=\"currentColor\" "
        "stroke-opacity=\"0.7\"/>\n<path d=\"{4}\" fill-opacity=\"0.7\"/>\n",
        x0, y0, x, y, arrow_head(x0, y0, x, y, 6));
    svg += draw::text(x0 + (kTriad + 13) * axes[i].right, y0 + (kTriad + 13) * axes[i].down + 4,
                      "text-anchor=\"middle\"", std::string(1, "xyz"[i]));
  }
  return svg + "</g>\n";
}

std::string panel_svg(const Panel& panel, Styles& styles, double left, double top) {
  const double x0 = left + kColumn / 2, y0 = top + kHeight / 2, largest = largest_norm(panel);
  std::string svg = fmt::format(
      "<g class=\"panel\" data-kind=\"3d\"{} data-frame=\"{:.1f} {:.1f} {:.1f} {:.1f}\" "
      "data-centre=\"{:.1f} {:.1f}\" data-radius=\"{}\" data-beyond=\"{}\" data-view=\"{} {}\">\n",
      draw::attribute("data-title", panel.title), left, top, left + kColumn, top + kHeight, x0, y0, kRadius,
      kBeyond, kAzimuth, kElevation);
  svg += draw::fitted_text(left, top - 12, "font-size=\"13.5\"", panel.title, 13.5, kColumn);
  svg += fmt::format(
      "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"none\" stroke=\"currentColor\" "
      "stroke-opacity=\"0.13\"/>\n",
      x0, y0, kRadius);
  if (panel.ones_plane) svg += ones_plane(x0, y0);
  svg += triad(left + 48, top + kHeight - 22);
  std::vector<Item> items;
  const double unit = largest > 0 ? largest : 1;
  for (const Group& group : panel.groups) {
    for (const Point& point : group.points) {
      if (drawable(point))
        items.push_back({&group, &point, project(point.x / unit, point.y / unit, point.z / unit)});
    }
  }
  std::stable_sort(items.begin(), items.end(),
                   [](const Item& a, const Item& b) { return a.at.near < b.at.near; });
  svg += "<g class=\"items\">\n";
  for (const Item& item : items) svg += item_svg(item, styles, x0, y0, unit);
  const std::string note =
      items.empty() ? "nothing to draw" : fmt::format("circle: the largest norm, {:.4g}", largest);
  return svg + "</g>\n" +
         draw::text(left + kColumn, top + kHeight - 8, "text-anchor=\"end\" font-size=\"11.5\"", note) +
         "</g>\n";
}

std::vector<draw::LegendEntry> legend_of(const ScatterFigure& figure, Styles& styles) {
  std::vector<draw::LegendEntry> entries;
  for (const Panel& panel : figure.panels) {
    for (const Group& group : panel.groups) {
      const std::size_t style = styles.names.index_of(group.name);
      const std::size_t arrow = group.arrows ? styles.arrows.index_of(group.name) : 0;
      if (style < entries.size()) continue;  // known from an earlier panel
      const std::string line = fmt::format(
          "<path d=\"M0 0H24\" fill=\"none\" stroke=\"{0}\" stroke-width=\"2\" stroke-dasharray=\"{1}\"/>"
          "<path d=\"{2}\" fill=\"{0}\"/>",
          draw::colour(style), draw::dash(arrow), arrow_head(0, 0, 31, 0, 10));
      const std::string point =
          fmt::format("<path d=\"{}\" fill=\"{}\"/>", shape(style, 20, 0, 5), draw::colour(style));
      entries.push_back({group.arrows ? line : point, group.name});
    }
  }
  return entries;
}

}  // namespace

std::string scatter_svg(const ScatterFigure& figure) {
  Styles styles;
  return draw::sheet_svg(
      {.legend = legend_of(figure, styles),
       .panels = figure.panels.size(),
       .height = kHeight,
       .after = 8,
       .caption = figure.caption},
      [&](std::size_t i, double left, double top) { return panel_svg(figure.panels[i], styles, left, top); });
}

}  // namespace normscope

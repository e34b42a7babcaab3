#include "report/draw.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace normscope::draw {
namespace {

// The bytes of the first character; of text that is not UTF-8, any split is as good.
std::size_t first_character(std::string_view words) {
  std::size_t length = 1;
  while (length < words.size() && (static_cast<unsigned char>(words[length]) & 0xC0) == 0x80) ++length;
  return length;
}

double character_width(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  if (first >= 0xE3) return 1.05;  // from U+3000 on mostly full width
  if (first >= 0x80) return 0.65;
  if (std::string_view("mwMW@%").find(character.front()) != std::string_view::npos) return 0.95;
  if (first >= 'A' && first <= 'Z') return 0.74;
  return std::string_view(" .,:;'|!()[]ijlft").find(character.front()) != std::string_view::npos ? 0.36
                                                                                                 : 0.57;
}

// The longest beginning that fits, whole characters.
std::size_t fitting(std::string_view words, double size, double room) {
  std::size_t end = 0;
  for (double width = 0; end < words.size();) {
    const std::size_t length = first_character(words.substr(end));
    width += size * character_width(words.substr(end, length));
    if (width > room) break;
    end += length;
  }
  return end;
}

}  // namespace

std::string open_svg(double width, double height) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" color=\"#1c1e21\" fill=\"currentColor\" font-family=\"'Liberation Sans', 'DejaVu "
      "Sans', Arial, sans-serif\" font-size=\"{2}\">\n<rect class=\"paper\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" fill=\"#ffffff\"/>\n",
      width, height, kFont);
}

std::string marked_text(double x, double y, std::string_view attributes, std::string_view markup) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, attributes, markup);
}

std::string text(double x, double y, std::string_view attributes, std::string_view words) {
  return marked_text(x, y, attributes, escape_markup(words));
}

std::string fitted_text(double x, double y, std::string_view attributes, std::string_view words, double size,
                        double room) {
  if (text_width(words, size) <= room) return text(x, y, attributes, words);
  const std::string_view begin = words.substr(0, fitting(words, size, room - size));
  return marked_text(x, y, attributes, escape_markup(begin) + "…" + hint(words));
}

std::string upwards(double x, double y) {
  return fmt::format("text-anchor=\"middle\" transform=\"rotate(-90 {:.1f} {:.1f})\"", x, y);
}

double text_width(std::string_view words, double size) {
  double width = 0;
  while (!words.empty()) {
    const std::size_t length = first_character(words);
    width += character_width(words.substr(0, length));
    words.remove_prefix(length);
  }
  return width * size;
}

std::vector<std::string> wrapped(std::string_view words, double size, double room) {
  std::vector<std::string> lines;
  while (!words.empty()) {
    std::size_t end = fitting(words, size, room);
    if (end < words.size()) {
      const std::size_t space = words.rfind(' ', end);
      // A word longer than a line is cut, and a line has at least one character.
      if (space != std::string_view::npos && space > 0) end = space;
      end = std::max(end, first_character(words));
    }
    lines.emplace_back(words.substr(0, end));
    words.remove_prefix(end);
    if (!words.empty() && words.front() == ' ') words.remove_prefix(1);
  }
  return lines;
}

std::string hint(std::string_view words) {
  return words.empty() ? "" : fmt::format("<title>{}</title>", escape_markup(words));
}

std::string attribute(std::string_view name, std::string_view value) {
  return fmt::format(" {}=\"{}\"", name, escape_markup(value));
}

std::string named(std::string_view name) {
  return attribute("data-name", name);
}

std::size_t Names::index_of(std::string_view name) {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found != names_.end()) return static_cast<std::size_t>(found - names_.begin());
  names_.emplace_back(name);
  return names_.size() - 1;
}

std::string_view colour(std::size_t index) {
  constexpr std::array<std::string_view, 7> colours = {"#0072b2", "#d55e00", "#009e73",     "#cc79a7",
                                                       "#e69f00", "#56b4e9", "currentColor"};
  return colours[index % colours.size()];
}

std::string_view dash(std::size_t index) {
  constexpr std::array<std::string_view, 8> dashes = {"none", "8 3",         "2 2.5",   "9 3 2 3",
                                                      "15 4", "9 3 2 3 2 3", "4.5 4.5", "15 3 5 3"};
  return dashes[index % dashes.size()];
}

Legend legend(const std::vector<LegendEntry>& entries, double left, double top, double width) {
  constexpr double line = 21, sample = 38, gap = 22;
  Legend legend;
  double x = 0, y = 0;
  for (const LegendEntry& entry : entries) {
    const double room = std::min(text_width(entry.name, kFont), width - sample);
    if (x > 0 && x + sample + room > width) {
      x = 0;
      y += line;
    }
    // The rectangle takes clicks between the letters and shows the focus.
    legend.svg += fmt::format(
        "<g class=\"entry\"{}>\n<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" rx=\"3\" "
        "fill=\"none\" pointer-events=\"all\"/>\n<g transform=\"translate({:.1f} {:.1f})\">{}</g>\n",
        entry.of_class.empty() ? attribute("data-toggle", entry.name)
                               : attribute("data-toggle-class", entry.of_class),
        left + x - 4, top + y, sample + room + 8, line - 1, left + x, top + y + 10, entry.sample);
    legend.svg += fitted_text(left + x + sample, top + y + 14, "", entry.name, kFont, width - sample);
    legend.svg += "</g>\n";
    x += sample + room + gap;
  }
  legend.height = entries.empty() ? 0 : y + line;
  return legend;
}

std::string captioned(const std::string& body, std::string_view words, double width, double bottom) {
  constexpr double font = 11.5, line = 16;
  std::string caption;
  for (const std::string& part : wrapped(words, font, width - 2 * kEdge))
    caption += text(kEdge, bottom += line, fmt::format("font-size=\"{}\"", font), part);
  return open_svg(width, bottom + kEdge) + body + caption + "</svg>\n";
}

std::string sheet_svg(const Sheet& sheet,
                      const std::function<std::string(std::size_t, double, double)>& panel) {
  const double width = sheet.panels == 1 && !sheet.wide_if_one ? Sheet::kColumn + 2 * kEdge : Sheet::kWidth;
  const Legend above = legend(sheet.legend, kEdge, kEdge, width - 2 * kEdge);
  std::string svg = above.svg;
  double bottom = kEdge + above.height;
  for (std::size_t i = 0; i < sheet.panels; ++i) {
    const double left = kEdge + (i % 2 == 0 ? 0 : Sheet::kColumn + Sheet::kColumnGap);
    const std::size_t row = i / 2;
    const double top =
        kEdge + above.height + Sheet::kTitle + static_cast<double>(row) * (Sheet::kTitle + sheet.height);
    svg += panel(i, left, top);
    bottom = top + sheet.height + sheet.after;
  }
  return captioned(svg, sheet.caption, width, bottom);
}

}  // namespace normscope::draw

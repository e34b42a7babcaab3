#pragma once
// What the figures share: text that fits, colours told apart by everyone, legends, axes with round ticks.
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/curves.h"

namespace normscope::draw {

inline constexpr double kFont = 12.5;  // pixels, as all lengths here

std::string open_svg(double width, double height);
// An SVG <text>; markup is used as it is, words are escaped.
std::string marked_text(double x, double y, std::string_view attributes, std::string_view markup);
std::string text(double x, double y, std::string_view attributes, std::string_view words);
// As text(), shortened to the room there is; the whole is then the hint.
std::string fitted_text(double x, double y, std::string_view attributes, std::string_view words, double size,
                        double room);

// Attributes of a text that is read upwards, with its middle at (x, y).
std::string upwards(double x, double y);

// Estimated, rather too wide than too narrow: the reader's font is not known.
double text_width(std::string_view words, double size);
std::vector<std::string> wrapped(std::string_view words, double size, double room);

// <title>…</title>, shown on hover; nothing for no words.
std::string hint(std::string_view words);
// ` data-name="…"`, from which the page's script knows what an element belongs to.
std::string named(std::string_view name);
// ` name="…"`, escaped.
std::string attribute(std::string_view name, std::string_view value);

// One style per name, in the order of first use: the same name looks the same in every panel.
class Names {
 public:
  std::size_t index_of(std::string_view name);  // adds the name if it is new
  const std::vector<std::string>& all() const { return names_; }

 private:
  std::vector<std::string> names_;
};
// Okabe and Ito's palette, safe for the colour-blind, without its yellow, which is lost on white; its black
// is the ink of the page.
std::string_view colour(std::size_t index);
// Value of stroke-dasharray. Their number and that of the colours have no common divisor, so that 56 names
// differ.
std::string_view dash(std::size_t index);

struct LegendEntry {
  std::string sample;  // markup within 30 × 0 pixels around the origin's right
  std::string name;
  std::string of_class = {};  // what the entry stands for: elements of this class; empty: those named so
};
struct Legend {
  std::string svg;
  double height = 0;
};
Legend legend(const std::vector<LegendEntry>& entries, double left, double top, double width);

inline constexpr double kEdge = 12;  // around a figure
// A figure of what is drawn down to `bottom`, and small words below.
std::string captioned(const std::string& body, std::string_view words, double width, double bottom);

// Panels two per row under one legend, with a caption below.
struct Sheet {
  static constexpr double kWidth = 1100, kColumnGap = 20, kTitle = 34;  // kTitle: above a panel
  static constexpr double kColumn = (kWidth - 2 * kEdge - kColumnGap) / 2;

  std::vector<LegendEntry> legend;
  std::size_t panels = 0;
  double height = 0;         // of a panel
  double after = 0;          // the last row
  bool wide_if_one = false;  // a panel alone is as wide as two, rather than the sheet half as wide
  std::string caption;
};
// panel(i, left, top): the markup of a panel whose title stands above `top`.
std::string sheet_svg(const Sheet& sheet,
                      const std::function<std::string(std::size_t, double, double)>& panel);

// Finite, and far enough from overflow that differences and squares of shares stay finite.
bool drawable(double value);

struct Range {
  double low, high;
  bool log;
  explicit Range(bool logarithmic);  // empty
  bool shows(double value) const { return drawable(value) && (!log || value >= 1e-300); }
  void include(double value);
};

// Values from low to high lie from `from` to `to` pixels.
struct Axis {
  double low = 0, high = 1;
  bool log = false;
  double from = 0, to = 1;
  bool whole = false;  // has ticks at whole numbers only; not with log
  bool shows(double value) const { return drawable(value) && (!log || value >= 1e-300); }
  double at(double value) const;  // of a value that it shows; beyond the ends, at most a million lengths
};
// Covers the range and a margin, a share of its length; a limit that makes sense is kept exactly.
Axis fit_axis(const Range& range, std::optional<double> low, std::optional<double> high, double margin);

struct Tick {
  double value;
  std::string markup;
  double width;
};
// As many round values, 1, 2 or 5 times a power of ten, as fit without their labels touching; on long
// logarithmic axes powers of ten.
std::vector<Tick> ticks(const Axis& axis, bool horizontal);

// The points of a curve; what one of its vectors has beyond the others is left out.
std::size_t length(const CurveFigure::Curve& curve);
bool has_band(const CurveFigure::Curve& curve);

}  // namespace normscope::draw

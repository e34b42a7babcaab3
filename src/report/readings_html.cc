#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "core/number_text.h"
#include "report/card.h"
#include "report/draw.h"
#include "report/page.h"

namespace normscope {
namespace {

constexpr double kWidth = 360, kEdge = 8;  // pixels, as all lengths here: hardly shrunk on a telephone
constexpr double kTop = 5, kTrack = 12, kBelow = 19, kSmall = 11.5;
constexpr std::size_t kMostUnfolded = 4;  // readings
constexpr double kWideRatio = 20;         // values further apart than that are shown by their logarithms

const char* answer_class(const std::optional<bool>& answer) {
  return !answer ? "open" : *answer ? "holds" : "fails";
}

std::string plain(double value) {
  std::string text = significant(value, 3);
  if (text.starts_with('-')) text.replace(0, 1, "−");
  return text;
}

std::string with_unit(const std::string& number, const std::string& unit) {
  const bool joined = unit == "×" || unit == "°" || unit.empty();
  return number + (joined ? "" : "\u00a0") + unit;
}

std::string_view side_of(const Reading& reading) {
  return reading.itself ? (reading.above ? "at least" : "at most") : (reading.above ? "above" : "below");
}

// What is drawn as a dot.
std::vector<double> values_of(const Reading& reading) {
  return reading.both ? std::vector(reading.both->begin(), reading.both->end()) : std::vector{reading.value};
}

// An axis that holds everything with this unit.
draw::Axis axis_of(std::span<const Reading> readings, const std::string& unit) {
  std::vector<double> shown;
  for (const Reading& reading : readings) {
    if (reading.unit != unit) continue;
    std::vector<double> drawn = values_of(reading);
    if (!reading.both) drawn.insert(drawn.end(), {reading.low, reading.high});
    drawn.insert(drawn.end(), {reading.threshold.value_or(NAN), reading.published.value_or(NAN)});
    std::copy_if(drawn.begin(), drawn.end(), std::back_inserter(shown), draw::drawable);
  }
  const auto [least, most] = std::minmax_element(shown.begin(), shown.end());
  const bool log = !shown.empty() && *least > 0 && *most > kWideRatio * *least;
  draw::Range range(log);
  for (const double value : shown) range.include(value);
  draw::Axis axis = draw::fit_axis(range, {}, {}, 0.08);
  axis.from = kEdge;
  axis.to = kWidth - kEdge;
  return axis;
}

struct Label {
  double at;
  std::string words;
  const char* of_class;
};

// Labels below a track, moved apart and inside.
std::string labels_svg(std::vector<Label> labels, double y) {
  std::sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) { return a.at < b.at; });
  std::vector<double> left;
  double end = 0;
  for (const Label& label : labels) {
    const double width = draw::text_width(label.words, kSmall);
    left.push_back(std::max(end, std::clamp(label.at - width / 2, 0.0, std::max(0.0, kWidth - width))));
    end = left.back() + width + 8;
  }
  double limit = kWidth;
  for (std::size_t i = labels.size(); i-- > 0;) {
    const double width = draw::text_width(labels[i].words, kSmall);
    left[i] = std::max(0.0, std::min(left[i], limit - width));
    limit = left[i] - 8;
  }
  std::string svg;
  for (std::size_t i = 0; i < labels.size(); ++i)
    svg += draw::text(left[i], y, fmt::format("class=\"{}\"", labels[i].of_class), labels[i].words);
  return svg;
}

std::string track(const Reading& reading, const draw::Axis& axis, double top) {
  const double middle = top + kTrack / 2;
  std::string svg =
      fmt::format("<rect class=\"track\" x=\"{}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" rx=\"3\"/>\n",
                  kEdge, top, kWidth - 2 * kEdge, kTrack);
  std::vector<Label> labels;
  if (reading.threshold && axis.shows(*reading.threshold)) {
    const double at = axis.at(*reading.threshold), begin = reading.above ? at : kEdge,
                 end = reading.above ? kWidth - kEdge : at;
    svg += fmt::format("<rect class=\"side\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\"/>\n",
                       begin, top, std::max(0.0, end - begin), kTrack);
    svg += fmt::format("<path class=\"threshold\" d=\"M{0:.1f} {1:.1f}V{2:.1f}\"/>\n", at, top - 4,
                       top + kTrack + 4);
    labels.push_back(
        {at, fmt::format("{} {}", side_of(reading), with_unit(plain(*reading.threshold), reading.unit)),
         "at-threshold"});
  }
  // Without an interval the number alone; an end beyond everything reaches the edge.
  if (!reading.both && !std::isnan(reading.low) && !std::isnan(reading.high)) {
    const auto end = [&](double value, double beyond) { return axis.shows(value) ? axis.at(value) : beyond; };
    const double low = end(reading.low, kEdge), high = end(reading.high, kWidth - kEdge);
    svg += fmt::format("<path class=\"interval {}\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>\n",
                       answer_class(reading.answer), low, middle, std::max(high, low + 0.1));
  }
  if (reading.published && axis.shows(*reading.published)) {
    const double at = axis.at(*reading.published);
    svg += fmt::format("<path class=\"published\" d=\"M{:.1f} {:.1f}l6 6l-6 6l-6 -6z\"/>\n", at, middle - 6);
    labels.push_back({at, "published " + with_unit(plain(*reading.published), reading.unit), "at-published"});
  }
  for (const double value : values_of(reading))
    if (axis.shows(value))
      svg += fmt::format("<circle class=\"value {}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4.5\"/>\n",
                         answer_class(reading.answer), axis.at(value), middle);
  return svg + labels_svg(std::move(labels), top + kTrack + 15);
}

}  // namespace

std::string words_of(const Reading& reading) {
  if (std::isnan(reading.value) && std::isnan(reading.low)) return "nothing";
  if (reading.both)
    return fmt::format("{}, {}", plain((*reading.both)[0]),
                       with_unit(plain((*reading.both)[1]), reading.unit));
  std::string text = with_unit(plain(reading.value), reading.unit);
  if (!std::isnan(reading.low) && !std::isnan(reading.high) && reading.low != reading.high) {
    text += std::isinf(reading.high)  ? fmt::format(" (more than {})", plain(reading.low))
            : std::isinf(reading.low) ? fmt::format(" (less than {})", plain(reading.high))
                                      : fmt::format(" ({} to {})", plain(reading.low), plain(reading.high));
  }
  return text;
}

namespace {

std::string reading_html(const Reading& reading, const draw::Axis& axis) {
  const std::string words = words_of(reading);
  const double height = kTop + kTrack + (reading.threshold || reading.published ? kBelow : kTop);
  std::string spoken = words;
  if (reading.published) spoken += fmt::format(", published {}", plain(*reading.published));
  if (reading.threshold) spoken += fmt::format(", wanted {} {}", side_of(reading), plain(*reading.threshold));
  return fmt::format(
      "<div class=\"reading {}\"><p><span>{}</span> <b>{}</b></p>\n<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} "
      "{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\" role=\"img\"{}>\n{}</svg></div>\n",
      answer_class(reading.answer), escape_markup(reading.name), escape_markup(words), kWidth, height, kWidth,
      height, draw::attribute("aria-label", spoken), track(reading, axis, kTop));
}

}  // namespace

std::string readings_html(std::span<const Reading> readings) {
  std::string shown, folded;
  std::size_t count = 0;
  for (const Reading& reading : readings) {
    if (!draw::drawable(reading.value) && !draw::drawable(reading.low) && !draw::drawable(reading.high))
      continue;
    (++count > kMostUnfolded ? folded : shown) += reading_html(reading, axis_of(readings, reading.unit));
  }
  if (!folded.empty())
    shown +=
        fmt::format("<details><summary>{} more</summary>\n{}</details>\n", count - kMostUnfolded, folded);
  return shown;
}

}  // namespace normscope

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "report/draw.h"

namespace normscope::draw {
namespace {

constexpr double kLargest = 1e300;    // a range of such values still has a length
constexpr double kShortest = 1e-9;    // of a range, as share of its values: fewer digits are left for ticks
constexpr double kSmallest = 1e-290;  // of a range: below, powers of ten lose their digits

double magnitude(double low, double high) {
  return std::max(std::abs(low), std::abs(high));
}

bool too_short(double low, double high, bool log) {
  if (!(low < high)) return true;
  if (log) return std::log10(high) - std::log10(low) < kShortest;
  return high - low < std::max(kSmallest, kShortest * magnitude(low, high));
}

// "1,234.50"; the minus is a minus, not a hyphen.
std::string plain(double value, int decimals) {
  std::string digits = fmt::format("{:.{}f}", std::abs(value), std::max(0, decimals));
  const std::size_t point = std::min(digits.find('.'), digits.size());
  for (std::size_t end = point; end > 3; end -= 3) digits.insert(end - 3, 1, ',');
  return value < 0 ? "−" + digits : digits;
}

Tick plain_tick(double value, int decimals) {
  std::string label = plain(value, decimals);
  const double width = text_width(label, kFont);
  return {value, std::move(label), width};
}

// mantissa × 10^exponent. Raised by tspan, since few fonts have all raised digits.
Tick power_tick(double value, const std::string& mantissa, int exponent) {
  const std::string base = mantissa == "1" ? "10" : mantissa + "×10";
  const std::string power = plain(exponent, 0);
  return {value, fmt::format("{}<tspan dy=\"-5\" font-size=\"9.5\">{}</tspan>", base, power),
          text_width(base, kFont) + text_width(power, 9.5)};
}

// index · step with step = factor · 10^exponent.
Tick linear_tick(double index, int factor, int exponent, double largest) {
  const double step = factor * std::pow(10.0, exponent), value = index * step;
  if (index == 0) return plain_tick(0, 0);
  if (exponent >= -4 && largest < 1e7) return plain_tick(value, -exponent);
  const int power = static_cast<int>(std::floor(std::log10(largest)));
  return power_tick(value, plain(value / std::pow(10.0, power), power - exponent), power);
}

using Fits = std::function<bool(const std::vector<Tick>&)>;

std::vector<Tick> linear_ticks(const Axis& axis, const Fits& fit) {
  const double largest = magnitude(axis.low, axis.high);
  const int first = static_cast<int>(std::floor(std::log10((axis.high - axis.low) / 20)));
  for (int exponent = first; exponent < first + 4; ++exponent) {
    for (const int factor : {1, 2, 5}) {
      const double step = factor * std::pow(10.0, exponent);
      if (axis.whole && step < 1) continue;
      std::vector<Tick> found;
      const double last = std::floor(axis.high / step + 1e-6);
      for (double index = std::ceil(axis.low / step - 1e-6); index <= last; ++index) {
        found.push_back(linear_tick(index, factor, exponent, largest));
      }
      if (fit(found)) return found;
    }
  }
  return {};
}

std::vector<Tick> log_ticks(const Axis& axis, const Fits& fit) {
  const double low = std::log10(axis.low), high = std::log10(axis.high);
  const bool short_labels = low > -4.5 && high < 6.5;
  const auto every = [&](int decades, std::initializer_list<int> factors) {
    std::vector<Tick> found;
    const int step = decades;
    for (int power = step * static_cast<int>(std::floor(low / step)); power <= high; power += step) {
      for (const int factor : factors) {
        const double place = power + std::log10(factor), value = factor * std::pow(10.0, power);
        if (place < low - 1e-9 || place > high + 1e-9) continue;
        found.push_back(short_labels ? plain_tick(value, -power)
                                     : power_tick(value, std::to_string(factor), power));
      }
    }
    return found;
  };
  if (high - low < 0.7) return linear_ticks(axis, fit);  // too short for round numbers to be near
  if (high - low < 3) {
    std::vector<Tick> found = every(1, {1, 2, 5});
    if (fit(found)) return found;
  }
  for (const int decades : {1, 2, 5, 10, 20, 50, 100, 200, 500}) {
    std::vector<Tick> found = every(decades, {1});
    if (fit(found)) return found;
  }
  return {};
}

}  // namespace

bool drawable(double value) {
  return std::abs(value) <= kLargest;  // false for NaN
}

Range::Range(bool logarithmic) : low(std::numeric_limits<double>::infinity()), high(-low), log(logarithmic) {}

void Range::include(double value) {
  if (!shows(value)) return;
  low = std::min(low, value);
  high = std::max(high, value);
}

double Axis::at(double value) const {
  const double share = log ? (std::log10(value) - std::log10(low)) / (std::log10(high) - std::log10(low))
                           : (value - low) / (high - low);
  return from + std::clamp(share, -1e6, 1e6) * (to - from);
}

Axis fit_axis(const Range& range, std::optional<double> low, std::optional<double> high, double margin) {
  const bool empty = range.low > range.high, log = range.log;
  if (low && !range.shows(*low)) low.reset();
  if (high && !range.shows(*high)) high.reset();
  if (low && high && too_short(*low, *high, log)) low = high = std::nullopt;
  double first = low.value_or(empty ? (log ? 1 : 0) : range.low);
  double last = high.value_or(empty ? (log ? 10 : 1) : range.high);
  if (first > last) (low ? last : first) = low ? first : last;  // a limit beyond all values
  const bool alone = too_short(first, last, log);
  Axis axis{.low = first, .high = last, .log = log};
  if (log) {
    const double more = alone ? 0.5 : margin * (std::log10(last) - std::log10(first));
    if (!low) axis.low = std::pow(10, std::max(-305.0, std::log10(first) - more));
    if (!high) axis.high = std::pow(10, std::min(305.0, std::log10(last) + more));
  } else {
    const double size = magnitude(first, last);
    const double more = !alone ? margin * (last - first) : size > kSmallest ? 0.1 * size : 1;
    if (!low) axis.low = first - more;
    if (!high) axis.high = last + more;
    // What is never negative has no negative ticks.
    if (!low && first >= 0) axis.low = std::max(0.0, axis.low);
  }
  return axis;
}

std::vector<Tick> ticks(const Axis& axis, bool horizontal) {
  return (axis.log ? log_ticks : linear_ticks)(axis, [&](const std::vector<Tick>& found) {
    for (std::size_t i = 1; i < found.size(); ++i) {
      const double labels = (found[i - 1].width + found[i].width) / 2 + 14;
      const double room = horizontal ? std::max(48.0, labels) : 30;
      if (std::abs(axis.at(found[i].value) - axis.at(found[i - 1].value)) < room) return false;
    }
    return true;
  });
}

}  // namespace normscope::draw

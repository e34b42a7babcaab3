#include "core/number_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace normscope {

std::string fixed(double value, int digits, std::string_view none) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, digits) : std::string(none);
}

std::string significant(double value, int digits, std::string_view none) {
  return std::isfinite(value) ? fmt::format("{:.{}g}", value, digits) : std::string(none);
}

std::string all_digits(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : std::string();
}

namespace {

// Of 100 times a share, which is none, all or something between, by more than rounding.
std::string percent_text(double hundredfold, bool between, int digits) {
  std::string text = fmt::format("{:.{}f}", hundredfold, digits);
  if (!between) return text;
  const double step = std::pow(10.0, -digits);
  if (text == fmt::format("{:.{}f}", 0.0, digits)) return fmt::format("< {:.{}f}", step, digits);
  if (text == fmt::format("{:.{}f}", 100.0, digits)) return fmt::format("> {:.{}f}", 100 - step, digits);
  return text;
}

bool is_between(double share) {
  constexpr double rounding = 1e-12;
  return share > 0 && share < 1 - rounding;
}

}  // namespace

std::string percent(double share, int digits, std::string_view none) {
  if (!std::isfinite(share)) return std::string(none);
  return percent_text(100 * share, is_between(share), digits) + " %";
}

std::string grouped(std::size_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t end = digits.size(); end > 3; end -= 3) digits.insert(end - 3, 1, ',');
  return digits;
}

std::string percent_of(std::size_t part, std::size_t whole, int digits) {
  // Multiplied first, so that 3 of 80 are 3.75 % exactly.
  return percent_text(100.0 * static_cast<double>(part) / static_cast<double>(whole),
                      part > 0 && part < whole, digits) +
         " %";
}

std::string short_percent(double share, int digits, std::string_view none) {
  if (!std::isfinite(share)) return std::string(none);
  const double size = std::abs(100 * share);
  if (size > 0 && size < 1e-3) return fmt::format("{:.{}g} %", 100 * share, digits);
  const int power = size > 0 ? static_cast<int>(std::floor(std::log10(size))) : 0;
  std::string text = percent_text(100 * share, is_between(share), std::max(0, digits - 1 - power));
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text + " %";
}

std::string counted(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string with_interval(const Interval& interval, int digits, double unit, IntervalStyle style) {
  if (interval.count == 0) return std::string(style.none);
  if (!std::isfinite(interval.mean)) return std::string(kNotMeasurable);
  if (const auto both = interval.both())
    return fmt::format("{:.{}f}, {:.{}f}", unit * (*both)[0], digits, unit * (*both)[1], digits);
  std::string mean = fmt::format("{:.{}f}", unit * interval.mean, digits);
  if (!std::isfinite(interval.half_width())) return mean;
  return fmt::format("{}{}{:.{}f}", mean, style.sign, unit * interval.half_width(), digits);
}

std::string with_interval(const Interval& interval) {
  const double half = interval.half_width();
  if (const auto both = interval.both())
    return fmt::format("{}, {}", significant((*both)[0], 3), significant((*both)[1], 3));
  if (interval.count < 2 || !std::isfinite(half)) return significant(interval.mean, 2, kNotMeasurable);
  const double size = std::abs(interval.mean);
  if (!(half > 0) || size < 1e-3 || size >= 1e5) return fmt::format("{:.2g} ± {:.1g}", interval.mean, half);
  const int digits = std::clamp(static_cast<int>(-std::floor(std::log10(half))), 0, 4);
  return fmt::format("{:.{}f} ± {:.{}f}", interval.mean, digits, half, digits);
}

namespace {

// sign: also of what is above 0.
std::string mean_with(const Interval& interval, bool sign) {
  if (interval.count == 0 || std::isnan(interval.mean)) return "-";
  const auto number = [&](double value) {
    return (sign && value > 0 ? "+" : "") + fmt::format("{:.3g}", value);
  };
  if (const auto both = interval.both()) return fmt::format("{}, {}", number((*both)[0]), number((*both)[1]));
  if (std::isnan(interval.low)) return number(interval.mean);
  return fmt::format("{} ± {:.2g}", number(interval.mean), interval.half_width());
}

}  // namespace

std::string mean_text(const Interval& interval) {
  return mean_with(interval, false);
}

std::string change_text(const Interval& interval) {
  return mean_with(interval, true);
}

std::string with_interval(const RatioInterval& ratio) {
  if (ratio.count == 0) return "not run";
  if (ratio.both) return fmt::format("{:.2f}×, {:.2f}×", (*ratio.both)[0], (*ratio.both)[1]);
  // What lies from low to high, if either may be unknown.
  const auto range = [](double low, double high, const char* times) {
    if (low == high) return fmt::format("{:.2f}{}", low, times);
    if (low > 0 && std::isfinite(high)) return fmt::format("{:.2f}{} to {:.2f}{}", low, times, high, times);
    if (low > 0) return fmt::format("more than {:.2f}{}", low, times);
    return std::isfinite(high) ? fmt::format("less than {:.2f}{}", high, times) : std::string("unknown");
  };
  std::string text =
      (ratio.censored > 0 ? "median " : "") + range(ratio.estimate.low, ratio.estimate.high, "×");
  if (ratio.low > 0 || std::isfinite(ratio.high))
    text += fmt::format(" ({})", range(ratio.low, ratio.high, ""));
  if (ratio.censored > 0) {
    text +=
        fmt::format(", {} of {} seed{} censored", ratio.censored, ratio.count, ratio.count == 1 ? "" : "s");
    if (ratio.low == 0 && !std::isfinite(ratio.high)) text += ", no interval";
  }
  return text;
}

std::string factor_text(const RatioInterval& factor) {
  if (factor.both)
    return fmt::format("{}, {}", significant((*factor.both)[0], 3), significant((*factor.both)[1], 3));
  std::string mean = significant(factor.estimate.low, 2, kNotMeasurable);
  if (!std::isfinite(factor.high - factor.low)) return mean;
  return fmt::format("{} ({:.2g} to {:.2g})", mean, factor.low, factor.high);
}

}  // namespace normscope

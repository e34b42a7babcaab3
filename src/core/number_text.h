#pragma once
// Numbers, shares and intervals as people read them: in tables, pages and on the screen.
#include <cstddef>
#include <string>
#include <string_view>

#include "normscope/statistics.h"

namespace normscope {

// With so many digits after the point, or so many in all ("1.2e-07" where that is shorter); `none` for what
// is not finite.
std::string fixed(double value, int digits, std::string_view none = "–");
std::string significant(double value, int digits, std::string_view none = "–");
// With as many digits as tell it from every other double; nothing for what is not finite: a field of a CSV
// file.
std::string all_digits(double value);

// "12.5 %" of 0.125, with so many digits after the point; what is neither none nor all is not rounded to it, but
// "< 0.1 %" or "> 99.9 %".
std::string percent(double share, int digits, std::string_view none = "–");
std::string percent_of(std::size_t part, std::size_t whole, int digits);
// With so many digits in all, but never as a power of ten where that can be helped: "100 %", "1.1 %".
std::string short_percent(double share, int digits = 2, std::string_view none = "–");

// "1 token", "2 tokens": of words that take an s.
std::string counted(std::size_t count, std::string_view what);

// 1234567 as "1,234,567".
std::string grouped(std::size_t count);
// A value that there is, but that is not finite: a ratio to nothing, the logarithm of nothing.
inline constexpr std::string_view kNotMeasurable = "not measurable";

struct IntervalStyle {
  std::string_view sign = " ± ", none = "nothing";
};
// "0.97 ± 0.01" with so many digits, in multiples of 1/unit; of two values both, "0.95, 0.99"; without an interval,
// such as one value, the mean alone; without a value `none`.
std::string with_interval(const Interval& interval, int digits, double unit = 1, IntervalStyle style = {});
// With as many digits as the interval leaves.
std::string with_interval(const Interval& interval);

// "0.823 ± 0.02": three digits of the mean, two of the interval, or both of two values; a change with its sign,
// "+0.02 ± 0.01"; "-" without a value.
std::string mean_text(const Interval& interval);
std::string change_text(const Interval& interval);

// "1.30× (1.10 to 1.54)"; of two "1.30×, 1.42×"; "median more than 2.00× (more than 1.40), 3 of 10 seeds censored".
std::string with_interval(const RatioInterval& ratio);
// "0.31 (0.30 to 0.32)", of two "0.30, 0.32": of samples or windows, all known, and possibly far from 1.
std::string factor_text(const RatioInterval& factor);

}  // namespace normscope

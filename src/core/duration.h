#pragma once
// How long something takes, as people say it.
#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace normscope {

// Roughly: "40 s", "3 min", "2.5 h", "4 days".
inline std::string rough_duration(double seconds) {
  constexpr double minute = 60, hour = 60 * minute, day = 24 * hour;
  if (seconds < 1.5 * minute) return fmt::format("{:.0f} s", std::max(1.0, seconds));
  if (seconds < 1.5 * hour) return fmt::format("{:.0f} min", seconds / minute);
  const bool days = seconds >= 1.5 * day;
  const double count = seconds / (days ? day : hour);
  return fmt::format("{:.{}f} {}", count, count < 10 ? 1 : 0, days ? "days" : "h");
}

}  // namespace normscope

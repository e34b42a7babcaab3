#include "paper/schedule.h"

#include <algorithm>
#include <cmath>

namespace normscope {

double promise_of(const ClaimResult& claim, double growth) {
  if (claim.holds != Holds::open) return 0;
  double promise = 1;
  bool undecided = false;
  for (const ComparisonResult& each : claim.comparisons) {
    if (each.answer != "not yet") continue;
    undecided = true;
    if (each.count < 2) continue;
    // An interval shrinks with the root of the values; it is to be as wide as the way to its threshold.
    const double reach = (each.high - each.low) / 2, way = std::fabs(each.value - each.threshold);
    const double needed = reach / way * (reach / way);
    promise = std::min(promise, std::isfinite(needed) ? std::min(1.0, growth / needed) : 0.01);
  }
  return undecided ? promise : 0;
}

std::optional<std::size_t> next_line(std::span<const Line> lines, double left) {
  std::optional<std::size_t> best;
  double most = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Line& line = lines[i];
    if (line.level == line.levels) continue;
    // What it waits for is run first, in its place.
    const bool waits = line.after && lines[*line.after].level <= line.level;
    const std::size_t turn = waits ? *line.after : i;
    if (waits && lines[turn].level == lines[turn].levels) continue;
    double worth = 0;
    if (line.level == 0) {
      constexpr double first = 1e6;
      worth = waits ? 0 : first * static_cast<double>(line.waiting);
    } else {
      for (const ClaimResult& claim : line.claims) worth += promise_of(claim, line.growth);
    }
    double seconds = line.seconds[line.level];
    if (waits) seconds += lines[turn].seconds[lines[turn].level];
    worth /= std::max(seconds, 1e-3);
    if (seconds > left) worth *= 1e-12;
    if (worth > most) best = turn, most = worth;
  }
  return best;
}

}  // namespace normscope

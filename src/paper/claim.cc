#include "paper/claim.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace normscope {

Claim claim_of(std::string where, std::string claim, std::string published) {
  Claim result;
  result.where = std::move(where);
  result.claim = std::move(claim);
  result.published = std::move(published);
  return result;
}

std::string with_interval(const Interval& interval, int digits, double unit) {
  if (interval.count == 0) return "nothing";
  if (interval.count == 1) return fmt::format("{:.{}f}", unit * interval.mean, digits);
  return fmt::format("{:.{}f} ± {:.{}f}", unit * interval.mean, digits, unit * interval.half_width(), digits);
}

std::string with_interval(const Interval& interval) {
  const double half = interval.half_width();
  if (interval.count < 2 || !std::isfinite(half)) return fmt::format("{:.2g}", interval.mean);
  const double size = std::abs(interval.mean);
  if (!(half > 0) || size < 1e-3 || size >= 1e5) return fmt::format("{:.2g} ± {:.1g}", interval.mean, half);
  const int digits = std::clamp(static_cast<int>(-std::floor(std::log10(half))), 0, 4);
  return fmt::format("{:.{}f} ± {:.{}f}", interval.mean, digits, half, digits);
}

std::string with_interval(const RatioInterval& ratio) {
  if (ratio.count == 0) return "not run";
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
  if (factor.count < 2) return fmt::format("{:.2g}", factor.estimate.low);
  return fmt::format("{:.2g} ({:.2g} to {:.2g})", factor.estimate.low, factor.low, factor.high);
}

std::string verdict_of(const Claim& claim) {
  switch (claim.holds) {
    case Holds::yes:
      return "holds";
    case Holds::conditionally:
      return "holds only if " + claim.condition;
    case Holds::no:
      return "does not hold";
    case Holds::answered:
      return claim.condition;
    case Holds::open:
      break;
  }
  return "open";
}

ReportTable claims_table(const std::vector<Claim>& claims) {
  ReportTable table{"Claims", {{"where", "claim", "published", "measured", "verdict", "why"}}};
  for (const Claim& claim : claims) {
    table.rows.push_back(
        {claim.where, claim.claim, claim.published, claim.measured, verdict_of(claim), claim.why});
  }
  return table;
}

}  // namespace normscope

#include "paper/wu_dynamics.h"

#include <fmt/core.h>

#include <cmath>
#include <numbers>

#include "core/number_text.h"
#include "normscope/random.h"
#include "paper/part.h"

namespace normscope {

constexpr double kPi = std::numbers::pi;

TokenPair circle_start(double one, double two) {
  return {std::cos(one), std::sin(one), std::cos(two), std::sin(two)};
}

TokenPair random_start(std::uint64_t seed, std::uint64_t stream) {
  Random random(seed, stream);
  const double one = 2 * kPi * random.uniform();
  return circle_start(one, 2 * kPi * random.uniform());
}

std::vector<TokenPair> shown_starts() {
  constexpr std::pair<double, double> degrees[] = {{85, 200}, {60, 230}, {20, 215}};
  std::vector<TokenPair> starts;
  for (const auto& [one, two] : degrees) starts.push_back(circle_start(one * kPi / 180, two * kPi / 180));
  return starts;
}

const WuSettings& dynamics(const Evidence& evidence) {
  return evidence.dynamics;
}

FinalRanks coupled(const Evidence& evidence, double w) {
  return final_ranks({2, 2, w, evidence.dynamics.starts, evidence.dynamics.layers, evidence.plan.seed},
                     evidence.executor);
}

Interval apart(const FinalRanks& ranks, double level) {
  return share_interval(ranks.ranks[2], ranks.starts, level);
}

std::string with_brackets(const Interval& share) {
  return fmt::format("{} [{}, {}]", percent(share.mean, 2), fixed(100 * share.low, 2),
                     fixed(100 * share.high, 2));
}

}  // namespace normscope

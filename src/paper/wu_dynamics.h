#pragma once
// What Fig. 1 and 5 of Wu, Ajorlou, Wang, Jegelka, Jadbabaie 2024 share: two tokens on the circle under the
// dynamics of Theorem 3.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "normscope/equilibria.h"
#include "normscope/statistics.h"

namespace normscope {

struct Evidence;

struct WuSettings {
  std::size_t starts = 10'000, layers = 2'000;  // random starts of both tokens
  std::size_t angles = 3'600;                   // of token 2 beside a token 1 that has converged
  std::size_t cells = 91;                       // of the figure's map, per axis
  double w = 2;                                 // of the figures and of Fig. 1
  std::vector<double> all_w = {1.1, 1.5, 2, 5, 10};
};

using TokenPair = std::array<double, 4>;
TokenPair circle_start(double one, double two);
TokenPair random_start(std::uint64_t seed, std::uint64_t stream);
// Starts of the figures: token 2 is in the arc of B; the last collapses all the same.
std::vector<TokenPair> shown_starts();

const WuSettings& dynamics(const Evidence& evidence);
// Where random starts of both tokens end, and the share that stays apart.
FinalRanks coupled(const Evidence& evidence, double w);
Interval apart(const FinalRanks& ranks, double level);
// "12.34 % [11.70, 13.01]"
std::string with_brackets(const Interval& share);

}  // namespace normscope

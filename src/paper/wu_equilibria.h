#pragma once
// What the dynamics of Theorem 3 of Wu, Ajorlou, Wang, Jegelka, Jadbabaie 2024 say about its Fig. 1 and 5 and
// about the theorem itself.
#include <cstdint>
#include <vector>

#include "normscope/equilibria.h"
#include "paper/claim.h"

namespace normscope {

struct WuSettings {
  std::uint64_t seed = 0;
  std::size_t starts = 10'000, layers = 2'000;  // random starts of both tokens
  std::size_t angles = 3'600;                   // of token 2 beside a token 1 that has converged
  std::size_t cells = 91;                       // of the figure's map, per axis
  double w = 2;                                 // of the figures and of Fig. 1
  std::vector<double> all_w = {1.1, 1.5, 2, 5, 10};
};

// Fig. 1: without LayerNorm the tokens collapse, with it they need not.
std::vector<Claim> claims_of_wu1(const WuSettings& settings, const Executor& executor);
Figure wu1_figure(const WuSettings& settings, const Executor& executor);
// Fig. 5: the phase portrait of N = 2, d = 2.
std::vector<Claim> claims_of_wu5(const WuSettings& settings, const Executor& executor);
Figure wu5_figure(const WuSettings& settings, const Executor& executor);
// Theorem 3: equilibria of every rank up to 6 tokens in 6 dimensions, their stable rank and linear stability.
std::vector<Claim> claims_of_wu_theorem3(const WuSettings& settings, const Executor& executor);

}  // namespace normscope

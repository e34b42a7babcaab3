#pragma once
// Which keys can attention select? What every competitor is asked, and what it answers.
//
// All competitors get the same keys in the same run, use one thread, and say for the keys they looked at
// whether some query gives that key the highest score. A pass is one round of deciding (all keys, or the
// sample); times are of the calling thread's CPU, so that a busy machine does not count against whoever
// happens to run last.
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "clock.h"
#include "normscope/matrix.h"

namespace normscope::bench {

struct Question {
  MatrixView<const double> keys;        // n × d
  std::span<const std::size_t> sample;  // the keys to ask about where asking about all takes too long
  std::size_t passes = 3;               // for those who take milliseconds per key
};

struct Answer {
  std::string competitor;
  std::string absent;             // why there is no answer; empty if there is one
  std::vector<std::size_t> keys;  // the keys it decided …
  std::vector<bool> selectable;   // … and how
  std::size_t keys_per_pass = 0;
  std::vector<Duration> passes;
};

// Of a competitor without which this was built.
inline Answer not_installed(std::string competitor, const std::string& package) {
  Answer answer;
  answer.competitor = std::move(competitor);
  answer.absent = "not installed when this was built (" + package + ")";
  return answer;
}

// LP verdicts. The published test asks for a radius r ≥ 1e-8, which is below the feasibility tolerance of
// both solvers (1e-7): a radius has to exceed ten tolerances to count. With |x| ≤ 100 those of random keys
// are far above.
inline constexpr double kBox = 100, kLeastRadius = 1e-6;

Answer ask_normscope(const Question& question);  // certified verdicts: the answer all others are held to
Answer ask_normscope_margins(const Question& question);  // and the exact margin of every selectable key
// The Chebyshev LP of Grivas et al. (2022), one per key: max r s.t. (k_j − k_i)·x + ‖k_j − k_i‖ r ≤ 0, |x| ≤
// 100.
Answer ask_highs_chebyshev(const Question& question);
Answer ask_clp_chebyshev(const Question& question);
// Its leaner relative: are there λ ≥ 0 with Σ λ_j = 1, Σ λ_j (k_j − k_i) = 0? d + 1 rows in place of n − 1.
Answer ask_highs_membership(const Question& question);
Answer ask_clp_membership(const Question& question);
Answer ask_qhull(const Question& question);         // all vertices at once
Answer ask_extremalrays(const Question& question);  // the same
// Forms K·Kᵀ and decides nothing, but a key that has the highest score under q = k_i must be selectable.
Answer ask_openblas(const Question& question);

}  // namespace normscope::bench

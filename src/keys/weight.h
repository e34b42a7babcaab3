#pragma once
// The largest softmax weight a query of bounded norm can give a key: maximise over ‖q‖ ≤ R
//   exp(q·k_i + b_i) / Σ_j exp(q·k_j + b_j),
// that is, minimise the convex f(q) = log Σ_j exp(q·(k_j − k_i) + b_j − b_i).
#include <cstddef>
#include <span>

#include "normscope/matrix.h"

namespace normscope {

struct LargestWeight {
  double attained;  // by a query of norm ≤ R that was found
  double bound;     // no query of norm ≤ R gives more: convexity gives f* ≥ f(q) − (g·q + R‖g‖)
};

// points: n × rank orthonormal coordinates of the keys. start: a promising direction, or empty.
LargestWeight largest_weight(MatrixView<const double> points, std::span<const double> offsets,
                             std::size_t key, double radius, std::span<const double> start);

}  // namespace normscope

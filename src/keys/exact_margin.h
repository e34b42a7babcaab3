#pragma once
// Margins in exact arithmetic, for keys that stand out by less than doubles resolve.
#include "keys/exact.h"

namespace normscope {

// The nearest point of the hull of the other keys (with offsets: and everything below it) to a selectable
// key, by Wolfe's method in rationals.
// metric: what makes a dot product of the points' coordinates (rank × rank, row-major; empty: the identity).
// hint: where to start.
struct ExactMargin {
  double margin;
  // The witness that attains it, on the points' coordinates: with offsets a query, else a direction. Empty if
  // its offset part is 0 (then every large multiple of a direction wins).
  std::vector<Rational> query;
};
ExactMargin exact_margin(MatrixView<const double> points, std::span<const double> offsets, std::size_t key,
                         std::span<const double> metric, std::span<const std::size_t> hint);

}  // namespace normscope

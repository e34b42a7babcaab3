#pragma once
// Margins in exact arithmetic, for keys that stand out by less than doubles resolve.
#include "keys/exact.h"

namespace normscope {

// The nearest point of the hull of the other keys (with offsets: and everything below it) to a selectable
// key, by Wolfe's method in rationals.
// lift: what takes the points' coordinates to orthonormal ones (rank × rank, row-major; empty: the identity).
// hint: the keys that are likely to hold the nearest point between them. Throws BeyondEffort.
struct ExactMargin {
  double margin;
  // The witness that attains it, on the points' coordinates: with offsets a query, else a direction. Empty if
  // its offset part is 0 (then every large multiple of a direction wins).
  std::vector<Rational> query;
};
ExactMargin exact_margin(MatrixView<const double> points, std::span<const double> offsets, std::size_t key,
                         std::span<const double> lift, std::span<const std::size_t> hint, Effort& effort);

}  // namespace normscope

#pragma once
// What pictures of keys show beside their verdicts: attention weights, who wins in which direction, the
// outline of the hull. For small sets.
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "normscope/keys.h"
#include "normscope/matrix.h"

namespace normscope {

// Scores q·k_i, and weights softmax(q·k_i / temperature). Throws InputError unless the temperature is
// positive.
struct Attention {
  std::vector<double> scores, weights;
};
Attention attention_to(MatrixView<const double> keys, std::span<const double> query, double temperature);

// The key with the highest score in each direction (rows of `directions`); kShared where several have it.
inline constexpr std::size_t kShared = static_cast<std::size_t>(-1);
std::vector<std::size_t> winners(MatrixView<const double> keys, MatrixView<const double> directions);

// Which keys win between two directions of the plane, in radians, to ≥ from. Keys at one place win together.
struct WinnerArc {
  std::vector<std::size_t> keys;
  double from, to;
};
// The corners of the hull of keys in the plane (n × 2), against the clock. They come from the verdicts, so
// that the picture cannot contradict them; the arc of a corner runs between the outward normals of its two
// edges.
std::vector<WinnerArc> winner_fan(MatrixView<const double> keys, std::span<const Verdict> verdicts);

// Edges of the hull of keys in space (n × 3) or in a plane of it, as pairs of keys, by trying every plane
// through three keys: O(n⁴).
std::vector<std::pair<std::size_t, std::size_t>> hull_edges(MatrixView<const double> keys);

// Coordinates along the directions in which the keys spread most, n × shown, and their share of the variance.
struct PrincipalPicture {
  Matrix<double> coordinates;
  double share = 1;
};
PrincipalPicture principal_picture(MatrixView<const double> keys, std::size_t shown);

}  // namespace normscope

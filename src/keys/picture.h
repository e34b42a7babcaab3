#pragma once
// What pictures of keys show beside their verdicts: attention weights, who wins in which direction, the
// outline of the hull. For small sets.
#include <array>
#include <cstddef>
#include <cstdint>
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
  std::vector<std::size_t> ranks;  // 1 + the keys with a higher score
  Matrix<double> shadows;  // n × d: of each key on the line of the query, (q·k / ‖q‖²) q; 0 for q = 0
};
Attention attention_to(MatrixView<const double> keys, std::span<const double> query, double temperature);

// The key with the highest score in each direction (rows of `directions`); kShared where several have it.
inline constexpr std::size_t kShared = static_cast<std::size_t>(-1);
std::vector<std::size_t> winners(MatrixView<const double> keys, MatrixView<const double> directions);

// The best rank that key `key` has under `tries` random queries, uniform over the directions.
std::size_t best_rank(MatrixView<const double> keys, std::size_t key, std::size_t tries, std::uint64_t seed);

// The sphere of directions as it is seen from far away, row by row from its top, size × size: the winner of the direction
// under the middle of each pixel, kNobody outside the disc, kSeveral where keys share the highest score. right, up and
// towards the reader: an orthonormal frame of the space. At most 250 keys.
inline constexpr std::uint8_t kNobody = 255, kSeveral = 254;
struct SphereView {
  std::array<double, 3> right, up, towards;
};
std::vector<std::uint8_t> winners_on_sphere(MatrixView<const double> keys, const SphereView& view,
                                            std::size_t size);

// Keys on their way through a norm: `projected` of the way along 1 onto the hyperplane orthogonal to it, then `scaled` of
// the way along their own line to norm √d. At 1 what the norm itself gives; zero rows stay.
Matrix<double> partly_normed(MatrixView<const double> keys, double projected, double scaled);

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

#pragma once
// Scores by products in single precision that are never below the scores themselves: what rounding and left-out
// coordinates may take is added to them (docs/theory.md, "Partial products"). Most scores are far from deciding
// anything; the few that are not are computed in double precision.
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "keys/search.h"
#include "normscope/executor.h"

namespace normscope {

// Under a point's own direction from the centre, q = u_i, most pairs need only a part of their coordinates. Over a
// leading slice of an orthonormal frame
//   u_i·u_j ≤ Σ_slice u_ic u_jc + ‖rest of u_i‖·‖rest of u_j‖,
// and what that leaves far below u_i·u_i and u_j·u_j is settled for both points.
//
// A pair counts as settled if its score is below this share of the squared length of both: then that is the bound
// of the score. A key whose rivals come closer has the score itself.
inline constexpr double kSettledShare = 1 - 0x1p-4;

// Points as the products take them: panels of kWidth points in the order given, longest first; in each the upper
// bounds of the rests, then the slice's coordinates, row by row. Scaled by a power of two to a largest norm near 1.
struct SlicedPoints {
  static constexpr std::size_t kWidth = 48;
  std::size_t count = 0, slice = 0;
  double scale = 1;               // of the points
  SharedArray<float> values;      // panel p: (slice + 1) × kWidth
  std::vector<float> settled_at;  // by position: pairs with no higher score are settled; ∞ beyond the last
  std::vector<std::size_t> key;   // by position

  std::size_t panels() const { return (count + kWidth - 1) / kWidth; }
  const float* panel(std::size_t p) const { return values.data() + p * (slice + 1) * kWidth; }
};

// Columns: an orthonormal frame, the leading coordinates first; `error` bounds |x·y − (Fᵀx)·(Fᵀy)|, computed in
// doubles, in shares of ‖x‖‖y‖. Empty: the coordinates themselves in the order of `coordinates`.
struct LeadingFrame {
  std::vector<std::size_t> coordinates;
  Matrix<double> columns;
  double error = 0;
};

// The first `slice` coordinates of points, in the frame. order: all points, longest first.
SlicedPoints slice_points(const SharedMatrix& points, const LeadingFrame& frame, std::size_t slice,
                          std::span<const std::size_t> order, const Executor& executor);

// All of them, in the order they have.
SlicedPoints whole_points(const SharedMatrix& points);

// Upper bounds of the scores between two runs of panels, as they come out of the products: of every point of either
// run the highest over the points of the other, and the pairs (by position) above what settles the shorter.
struct PairBounds {
  std::vector<float> first, second;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> open;
};
PairBounds bound_pairs(const SlicedPoints& points, std::size_t first_begin, std::size_t first_end,
                       std::size_t second_begin, std::size_t second_end);

// By point: no other point scores higher under it. In many dimensions that query is a witness of nearly every key.
// order: all points, longest first. Where all products together are fewer than `whole_below`, coordinates are not
// left out: bounds are then the scores up to rounding.
inline constexpr double kWholeProducts = 0x1p32;  // a tenth of a second or so
std::vector<double> highest_centre_scores(const FramedKeys& keys, std::span<const std::size_t> order,
                                          const Executor& executor, double whole_below = kWholeProducts);

// A pass of up to kWidth queries over all points, whole (slice = dimension): the points that may score above a
// query's limit. bound: no less than the score.
struct ListedScore {
  std::size_t position;
  double bound;
};
std::vector<std::vector<ListedScore>> scores_above(const SlicedPoints& points,
                                                   MatrixView<const double> queries,
                                                   std::span<const double> limits);

// Scores of some of the points under a query, in double precision.
void score_points(const SharedMatrix& points, std::span<const double> query,
                  std::span<const std::size_t> keys, std::span<double> scores);

}  // namespace normscope

#pragma once
// The affine hull in which a set of keys is decided (the rank policy).
//
// A direction in which the keys spread no more than the rounding of their dtype holds only noise, yet it
// counts in full in a hull test. The numerical hull leaves such directions out, and does so exactly: it keeps
// `rank` of the d coordinates, chosen so that they parametrise the hull well. Dropping coordinates rounds
// nothing, so a set that is exactly flat keeps its exact verdicts, and a query on the kept coordinates means
// the same on the original keys.
#include <Eigen/Core>
#include <cstddef>
#include <span>
#include <vector>

#include "normscope/keys.h"
#include "normscope/matrix.h"

namespace normscope {

struct AffineHull {
  std::size_t rank = 0;
  double tolerance = 0;         // rms spread below which one direction is noise, in the keys' units
  double weakest = 0;           // the same measure of the weakest direction kept, where it was measured
  double left_out = 0;          // and of the strongest direction left out
  std::size_t matrix_rank = 0;  // what NumPy's matrix_rank makes of the centred keys
  double unit = 1;              // power of two; frame coordinates are in units of it
  std::vector<std::size_t>
      kept;                 // coordinates that parametrise the hull, ascending; all d if nothing is noise
  Eigen::VectorXd centre;   // mean of the keys (d)
  Eigen::MatrixXd basis;    // d × rank, orthonormal; unused if rank = d (then the frame is k − centre)
  Eigen::MatrixXd lift;     // rank × rank: kept coordinates → frame coordinates; unused if rank = d
  double length_error = 0;  // of lift: lengths in the frame are those in the hull to so much of them
  Eigen::VectorXd off;      // distance of each key from its place in the hull, in the keys' units
  double noise = 0;         // the largest of them
  double finest = 0;        // rms rounding of the column that is rounded most finely, in the keys' units

  bool reduced() const { return rank < static_cast<std::size_t>(centre.size()); }
  // Orthonormal coordinates of a key in the hull, in units of `unit`.
  void frame(std::span<const double> key, double* out) const;
  // Bound on the distance of what `frame` computes from the exact place.
  double frame_error(std::span<const double> key) const;
  // The query on the original keys that scores them (up to noise) as `frame_query` scores frame coordinates.
  std::vector<double> query(std::span<const double> frame_query) const;
  // The same, supported on the kept coordinates only: no noise enters, whatever the margin.
  std::vector<double> kept_query(std::span<const double> frame_query) const;
};

AffineHull affine_hull(MatrixView<const double> keys, RankPolicy policy, double unit_roundoff,
                       double smallest_rounding);

}  // namespace normscope

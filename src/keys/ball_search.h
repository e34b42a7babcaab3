#pragma once
// The search for one key's margin over a ball of queries around 0: min over convex λ of
//   φ(λ) = R‖Σ λ_j p_j‖ − Σ λ_j c_j,   p_j = k_j − k_i, c_j = b_j − b_i,
// by Wolfe's active sets. Over the affine hull of a corral φ has a closed-form minimiser (see the source), so
// Wolfe's cycles carry over from the nearest point, which is R = 1, c = 0.
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "keys/panels.h"
#include "normscope/keys.h"
#include "normscope/matrix.h"

namespace normscope {

// Distinct keys; the last coordinate is the offset, and a query's last coordinate is 1.
struct ScoredKeys {
  std::size_t dimension = 0;  // without the offset
  Matrix<double> points;      // count × (dimension + 1)
  Panels all;
  double radius = 0;
  double score_error = 0;  // bound on the error of a score difference, computed, for any query of the ball
};

struct BallFound {
  double lower = 0, upper = 0;   // the margin lies between: proven
  std::vector<double> query;     // that attains `lower`; empty: none was tried
  std::vector<CoverTerm> cover;  // that proves `upper`
};

class BallSearch {
 public:
  // Keeps a reference to `keys`.
  explicit BallSearch(const ScoredKeys& keys);
  ~BallSearch();
  // start: a rival of the key. Margins::bound: ends once the margin's sign is proven.
  BallFound decide(std::size_t key, std::size_t start, Margins margins);

 private:
  class Corral;
  const ScoredKeys& keys_;
  std::unique_ptr<Corral> corral_;
};

}  // namespace normscope

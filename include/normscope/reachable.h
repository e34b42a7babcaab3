#pragma once
// Which keys can the queries a layer really forms select?
//
// A head's queries are q = A z + c: z is the normalised token, ‖z‖ ≤ R (√d after layer norm or RMS norm), A
// the query weights with the norm's gain folded in, c what the biases add. They fill an ellipsoid around c,
// and in coordinates that turn it into a ball (QueryEllipsoid) the question is, over q in the ball ‖q − g‖ ≤
// R, with scores q·k_j + b_j,
//
//   margin_i = max_q min_{j≠i} q·(k_i − k_j) + b_i − b_j
//            = min over convex λ of R‖k_i − Σ λ_j k_j‖ + g·(k_i − Σ λ_j k_j) + b_i − Σ λ_j b_j :
//
//   selectable    margin > 0: some query of the ball gives the key the strictly highest score;
//   tied          some query puts it on top, but never alone: equal keys, or as decide_keys calls it;
//   unselectable  margin < 0: every query of the ball gives another key a strictly higher score.
//
// Where the offsets are equal and the ball holds 0 inside, every direction is a query: the verdicts, exact,
// and the covers are those of decide_keys, and the margin of what is not selectable is 0. Elsewhere floating
// point proposes a query or weights and an error bound accepts them; a margin so near 0 that no bound tells
// its sign is undecided. Queries that score all keys alike count only where offsets or the ball's place
// matter. Below full rank (keys.h, the rank policy) verdicts and margins are those of the keys' places in their
// flat; largest weights and their bounds hold for the keys as given.
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "normscope/executor.h"
#include "normscope/keys.h"
#include "normscope/matrix.h"

namespace normscope {

struct QueryBall {
  std::vector<double> centre;  // g, d numbers; empty: 0
  double radius = 0;           // R
};

struct ReachableVerdict {
  std::optional<Verdict> verdict;  // none: undecided
  // The margin lies between the two: what the best query found is proven to reach, and what the weights
  // `cover` prove that none exceeds. Infinite for a key alone.
  double margin = 0, margin_bound = 0;
  // The best query found, ‖q − g‖ ≤ R but for rounding. Selectable: it gives the key the strictly highest
  // score.
  std::vector<double> witness;
  // Convex weights λ of other keys. Unselectable: every query of the ball scores Σ λ_j k_j, with its offset,
  // above the key, hence one of them. Empty where none were needed.
  std::vector<CoverTerm> cover;
  // Largest softmax weight a query of the ball can give the key: attained, and a proven upper bound.
  std::optional<double> max_weight, max_weight_bound;
};

struct ReachableOptions {
  RankPolicy rank = RankPolicy::numerical;
  double unit_roundoff = 0x1p-53, smallest_rounding = 0;  // as in KeyOptions, for the rank policy
  // bound: the search for a key ends as soon as its verdict is proven, and the margins are bounds on either
  // side, possibly wide; exact: it goes on until they meet but for rounding, which
  // weight_gap implies.
  Margins margins = Margins::bound;
  bool certificates = true;
  // If given, only these keys (by index, ascending or not) are decided; the others, which they are compared
  // with, have no verdict.
  std::span<const std::size_t> only = {};
  // If given, largest weights are sought until their logarithm is known to within this.
  std::optional<double> weight_gap;
};

struct ReachableSet {
  std::size_t n = 0, d = 0, rank = 0;
  KeyCounts counts;
  std::size_t undecided = 0;
  std::vector<ReachableVerdict> keys;
};

// keys: n × d, finite; offsets: empty, or n finite numbers. Throws InputError as decide_keys does, and on a
// centre of the wrong length, a radius that is negative or not finite, or an index in `only` that is no
// key's.
ReachableSet decide_reachable(MatrixView<const double> keys, std::span<const double> offsets,
                              const QueryBall& queries, const ReachableOptions& options,
                              const Executor& executor);

// The queries A z + c, ‖z‖ ≤ R, as a ball: with A = L Qᵀ (Q orthonormal columns, as many as A has rank)
//   (A z + c)·k = (Qᵀz + g)·(Lᵀk) + r·k,   c = L g + r:
// keys Lᵀk, centre g, offsets r·k, which are none where A has full rank. A = 0: L is a column of zeros.
class QueryEllipsoid {
 public:
  // map: A, d × model width, finite. shift: c, empty or d numbers. Throws InputError if it is neither.
  QueryEllipsoid(MatrixView<const double> map, std::span<const double> shift, double radius);

  const QueryBall& ball() const { return ball_; }
  std::size_t rank() const { return factor_.cols(); }
  Matrix<double> keys(MatrixView<const double> keys) const;          // n × rank
  std::vector<double> offsets(MatrixView<const double> keys) const;  // empty: none
  // The query of the head (d numbers) that a query of the ball stands for.
  std::vector<double> query(std::span<const double> of_ball) const;

 private:
  Matrix<double> factor_;     // L, d × rank
  std::vector<double> rest_;  // r; empty: 0
  QueryBall ball_;
};

}  // namespace normscope

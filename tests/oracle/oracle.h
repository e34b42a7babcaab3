#pragma once
// The verdict of a key, decided in query space and in exact arithmetic on the doubles given.
//
// For key i the queries with k_i on top form, with offsets homogenised by t ≥ 0, the cone
//   C = { (q, t) :  y_j = q·(k_i − k_j) + t·(b_i − b_j) ≥ 0 for all j ≠ i,  t ≥ 0 }       (t absent without
//   offsets).
// Sums of points of C lie in C, so one point makes positive every y_j (and t) that any point makes positive:
// the *support*. Its size is the optimum of  max Σ s_j  subject to  y_j ≥ s_j, 0 ≤ s_j ≤ 1.  With t in the
// support, that point divided by t is a query of the original problem. Hence
//   t not in the support             no query at all puts i on top: unselectable;
//   every j in the support           selectable (in particular n = 1);
//   some j in the support            tied: that query distinguishes the keys, and no query beats the j left
//   out; no j in the support              only queries that score all keys alike put i on top: unselectable,
//                                    except when all keys and offsets are equal, which is tied by definition.
// A point with t = 0 and all y_j > 0 is no gap in this: a small t > 0 keeps it in C, so t is in the support.
#include <cstddef>
#include <span>
#include <vector>

#include "normscope/keys.h"
#include "oracle/exact.h"

namespace normscope::oracle {

struct Support {
  bool on_top = false;     // some query scores the key at least as high as all others
  std::size_t others = 0;  // keys compared with
  std::size_t beaten = 0;  // of these, how many some query with the key on top puts strictly below it
  bool all_equal = true;   // the others have the same key and the same offset
};

// Support of key i against `others` (i itself is skipped).
Support support_of(const ExactKeys& keys, std::size_t i, std::span<const std::size_t> others);

Verdict verdict_of(const Support& support);
Verdict oracle_verdict(const ExactKeys& keys, std::size_t i);
Verdict oracle_verdict(MatrixView<const double> keys, std::span<const double> offsets, std::size_t i);

// The keys on some of their coordinates.
Matrix<double> on_coordinates(const Matrix<double>& keys, std::span<const std::size_t> kept);

// Tallies add up field by field.
template <class Tally, class... Fields>
void add_fields(Tally& sum, const Tally& other, Fields... fields) {
  ((sum.*fields += other.*fields), ...);
}

}  // namespace normscope::oracle

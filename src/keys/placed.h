#pragma once
// A set of keys as it is decided: equal keys taken together, the distinct ones placed in their affine hull.
#include <cstddef>
#include <span>
#include <vector>

#include "keys/hull.h"
#include "keys/search.h"
#include "normscope/keys.h"
#include "normscope/matrix.h"

namespace normscope {

// Throws InputError on 0 × d, NaN or Inf (by row and column), or offsets of the wrong length.
void check_key_input(MatrixView<const double> keys, std::span<const double> offsets);

// Groups of equal keys (in the coordinates that matter, and with equal offsets).
struct KeyGroups {
  std::vector<std::size_t> first;                 // distinct key → its first index in the set, ascending
  std::vector<std::size_t> distinct_of;           // index → distinct key
  std::vector<std::vector<std::size_t>> members;  // distinct key → indices
};

struct PlacedKeys {
  // Keeps references to the first three. executor: of a job whose processes all come here, which hold what is large
  // once on each machine; null: this process alone.
  PlacedKeys(MatrixView<const double> given, std::span<const double> given_offsets,
             const KeyOptions& key_options, const Executor* executor = nullptr);
  PlacedKeys(const PlacedKeys&) = delete;
  PlacedKeys& operator=(const PlacedKeys&) = delete;

  std::size_t distinct() const { return groups.first.size(); }
  double distance(std::size_t key) const;  // from the centre of the set, in units of hull.unit
  // A margin or depth beyond this, in units of hull.unit, no rounding can undo.
  double robust_beyond(std::size_t key) const { return wobble[key] + largest_wobble; }
  // Of a length in the frame: what it is at least, or at most, in the keys' units; at most: 0 if that is unknown.
  double at_least(double framed) const { return framed * hull.unit / (1 + hull.length_error); }
  double at_most(double framed) const {
    return hull.length_error < 1 ? framed * hull.unit / (1 - hull.length_error) : 0;
  }
  // Whether a verdict without a witness, proven by that much depth, stands whatever rounding did.
  bool cover_can_be_robust() const { return !rounded_equal_offsets && !keys_leave_flat; }

  MatrixView<const double> keys;
  std::span<const double> offsets;     // empty also if they are all equal
  bool rounded_equal_offsets = false;  // which may have differed before they were rounded
  // The keys meant need not lie in the flat: noise was asked about that is more than rounding, errors are
  // known that no projection confines to it, or a key is farther from it than its own rounding.
  bool keys_leave_flat = false;
  const KeyOptions& options;
  AffineHull hull;
  KeyGroups groups;
  // Of the distinct keys: frame coordinates for the search, kept coordinates, as given, for exact arithmetic.
  FramedKeys frame;
  MatrixView<const double> exact_points() const { return all_kept() ? keys : kept_points_.view(); }
  std::vector<double> exact_offsets;
  // How far rounding of the dtype (or what is known of the errors, or the noise asked about) can move the
  // place of each in the hull, in units of hull.unit.
  std::vector<double> wobble;
  double largest_wobble = 0;

 private:
  // Whether the distinct keys on their kept coordinates are the keys as given.
  bool all_kept() const { return distinct() == keys.rows && hull.kept.size() == keys.cols; }
  Matrix<double> framed(double middle) const;
  void place(const Executor* executor);
  void measure_wobble();

  SharedMatrix kept_points_;
};

}  // namespace normscope

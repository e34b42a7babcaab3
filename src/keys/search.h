#pragma once
// The floating-point search for one key's certificate: Wolfe's nearest point of {k_j − k_i}, with Clarkson's outer
// loop (scan the likely vertices first, all keys only to confirm). Whatever it claims is proven by an error bound;
// what it cannot prove it calls unclear.
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "keys/corral.h"
#include "keys/panels.h"
#include "normscope/keys.h"
#include "normscope/matrix.h"

namespace normscope {

// Distinct keys in an orthonormal frame of their affine hull; with offsets the last coordinate is the offset.
struct FramedKeys {
  std::size_t dimension = 0;
  bool offsets = false;
  Matrix<double> points;    // count × dimension
  Panels all;
  double largest_norm = 0;
  double point_error = 0;   // bound on the distance of a frame point from its exact place
};

// Keys scanned first. Every key it lists is also in FramedKeys.
struct LikelyVertices {
  Panels panels;
  std::vector<std::size_t> key_at;      // position → key
  std::vector<std::size_t> position_of;  // key → position, kNone if absent
  void add(std::size_t key, const FramedKeys& keys);
};

struct Found {
  enum class Kind { selectable, unselectable, unclear } kind = Kind::unclear;
  std::vector<double> query;      // selectable: unit witness in the frame (with offsets its last entry is ≥ 0)
  double margin = 0;              // selectable: proven lower bound of the margin
  double radius = 0;              // unselectable: proven radius of a ball inside the cover
  std::vector<CoverTerm> cover;   // unselectable: weights sum to 1, the ray left out
  std::vector<std::size_t> hint;  // unclear: where the search stopped
};

class KeySearch {
 public:
  KeySearch(const FramedKeys& keys, Margins margins);

  // key: which key to decide, among the first `count` keys. likely: may be null. enough: a margin that settles
  // the question when only a bound is asked for. start: a first witness direction to improve on, or empty.
  Found decide(std::size_t key, std::size_t count, const LikelyVertices* likely, double enough,
               std::span<const double> start);
  // The same for a place other than the key's own (depth is measured by moving the key).
  Found decide_at(std::span<const double> place, std::size_t skip, std::size_t count, const LikelyVertices* likely,
                  double enough, std::span<const double> start);

  // Keys that beat a query the likely vertices had confirmed; they belong among the likely vertices.
  std::vector<std::size_t>& discovered() { return discovered_; }

 private:
  struct Rival {
    std::size_t key;
    double advantage;  // nearest·(k_j − place), the least over the keys scanned; kNone's is +∞
  };
  Rival rival(std::span<const double> place, std::size_t skip, std::size_t count, const LikelyVertices* likely,
              bool& confirmed);
  void offset_of(std::size_t key, std::span<const double> place);

  const FramedKeys& keys_;
  Margins margins_;
  Corral corral_;
  std::vector<double> query_, difference_;
  std::vector<std::size_t> discovered_;
};

// Bound on the error of a score difference q·(u_i − u_j) computed from frame points, for ‖q‖ = 1.
double score_error(const FramedKeys& keys, double place_norm);

}  // namespace normscope

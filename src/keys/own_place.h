#pragma once
// The floating-point search once more, from a key's own place: for keys that lie closer to others than the frame,
// in which all keys are rounded alike, can tell.
//
// Differences k_j − k_i are taken before anything is rounded away: each is known to 2⁻⁵³ of itself. And whether
// some query is negative on all of them, or convex weights make 0 of them, does not depend on how long they are:
// they enter as w_j = (k_j − k_i)/s_j with lengths near 1, and count a_j = s/s_j in the sum of the weights, s the
// least s_j (docs/theory.md, "From the key's own place").
#include <cstddef>
#include <span>
#include <vector>

#include "keys/panels.h"
#include "keys/placed.h"
#include "keys/search.h"
#include "keys/wide.h"

namespace normscope {

// What a key sees of the others.
struct Directions {
  std::size_t dimension = 0,
              own = kNone;  // of w, offsets included; position of the key itself, which has no direction
  bool offsets = false;
  Panels points;               // (w_j, what a_j has to be at least)
  std::vector<double> counts;  // a_j as the search takes it
  std::vector<int> exponents;  // of s_j, a power of two
  int least = 0;               // of s
  double error = 0;            // bound on the distance of a w_j from its exact place
  double wide_error() const { return 0x1p-48 * error; }  // of those of wide_direction
};

// Points that are far away count so much at least: a hull is then held to be a little nearer than it is, which
// proves a little less, but leaves room for rounding where far points meet the nearest face, and for far points that
// lie in one direction but for so much: half of it is enough for those that are not in the corral. The search tries
// one after the other.
inline constexpr double kLeastCounts[] = {0x1p-33, 0x1p-26, 0x1p-20};
// A margin this close to its upper bound is the widest, at the first try and at the last.
inline constexpr double kWidestShare = 1 - 1e-9, kLastWidestShare = 1 - 1e-6;

// Of the first `count` keys. No points where doubles cannot hold the differences, or that would take too long.
Directions directions_from(const PlacedKeys& set, std::size_t key, std::size_t count,
                           double least_count = kLeastCounts[0]);

// w_j once more, of the keys that doubles leave open.
std::vector<Wide> wide_direction(const PlacedKeys& set, const Directions& directions, std::size_t key);

// hint: keys likely to hold the nearest point between them. Margins and radius are in units of the frame.
Found search_from_own_place(const PlacedKeys& set, std::size_t key, std::size_t count, Margins margins,
                            std::span<const std::size_t> hint);

}  // namespace normscope

#pragma once
// From what a search found to a verdict with its certificate, for one of the distinct keys of a set; whatever
// such a verdict names by index are distinct keys too.
#include <cstddef>

#include "keys/placed.h"
#include "keys/search.h"

namespace normscope {

// Fills `result` from what the search proved. False if rational arithmetic was asked for and disagrees, or if
// doubles cannot hold the witness.
bool certify(const PlacedKeys& set, std::size_t key, const Found& found, KeyVerdict& result);

// The widest margin and its witness in rational arithmetic, for a key that `certify` settled but whose search
// broke off. What lies beyond its effort stays between two bounds.
void widen(const PlacedKeys& set, std::size_t key, const Found& found, KeyVerdict& result);

// In rational arithmetic, for what the search could not prove: `found` says where it stopped, and `search`
// measures the depth of a key that turns out unselectable.
KeyVerdict certify_exactly(const PlacedKeys& set, std::size_t key, const Found& found, KeySearch& search,
                           const LikelyVertices* likely);

}  // namespace normscope

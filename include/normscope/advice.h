#pragma once
// What would make a key selectable that is not?
//
// Change one number of the set and ask again. Key i is tied or unselectable, so that convex weights over the
// others reproduce it (a cover), with at least its offset:
//
//   scale   k_i becomes t·k_i. With t* the largest t for which the others cover t·k_i, the key is selectable for
//           every t > t* and for none from 1 to t*. By duality t* = min over queries with q·k_i = 1 of the highest
//           score of the others: the query that attains it selects the key at every t > t*.
//   offset  b_i becomes b_i + c. With c* the largest Σλ_j b_j − b_i over all covers, the key is selectable for
//           every c > c* and for no c ≤ c*; c* = min over queries of the others' lead over it. Without offsets c* is
//           0: any lead at all is enough, under the query of zeros.
//
// For a whole set, the offsets c_i ≥ 0 that make all keys selectable have a least element in every place:
// max(0, c*_i), approached but not attained. c_i + ε·s(k_i) is enough for every ε > 0, with s strictly concave;
// here s(k) = 1 − ‖k − m‖²/max_j ‖k_j − m‖², m the mean. Equal keys tie whatever is done for both.
//
// Thresholds are found in rational arithmetic on the coordinates on which the set was decided (KeySet::kept),
// and rounded once. If these keys lie in a flat beside the origin, every factor above 1 takes a key out of it: t* is 1,
// and the query is the normal of the flat.
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "normscope/executor.h"
#include "normscope/keys.h"
#include "normscope/matrix.h"

namespace normscope {

struct KeyThreshold {
  double least = 0;   // t* or c*, rounded: no smaller value helps, every larger one does
  double enough = 0;  // a value above it
  // At `enough`, and at every larger value, this query gives the key the strictly highest score (checked in
  // rational arithmetic). Empty: no doubles were found that pass.
  std::vector<double> witness;
  // Convex weights over other keys that reproduce the key as `least` changes it: none selects it there.
  std::vector<CoverTerm> cover;

  static void describe(auto& visit, auto& self) {
    visit("least", self.least, "no value up to this one makes the key selectable, every larger one does");
    visit("enough", self.enough, "a value above it, at which the witness selects the key");
    visit.when(!self.witness.empty(), "witness", self.witness,
               "a query that selects the key there and at every larger value", {.finite = true, .least = 1});
    visit.when(!self.cover.empty(), "cover", self.cover,
               "other keys whose convex combination reproduces the key as `least` changes it", {.least = 1});
  }
};

// A norm, applied to all keys, under which the key is selectable.
struct NormAdvice {
  std::string norm;
  std::vector<double> witness;  // on the keys after the norm

  static void describe(auto& visit, auto& self) {
    visit("norm", self.norm, "applied to all keys, in place of the one they have");
    visit.when(!self.witness.empty(), "witness", self.witness, "a query that selects the key after it",
               {.finite = true, .least = 1});
  }
};

struct KeyAdvice {
  std::optional<KeyThreshold> scale, offset;  // none: see `without`
  std::vector<NormAdvice> norms;              // for the caller to fill: norms need more than the numbers
  std::string without;                        // why a threshold is missing

  static void describe(auto& visit, auto& self) {
    visit.when(self.scale.has_value(), "scale", self.scale, "factors of the key alone");
    visit.when(self.offset.has_value(), "offset", self.offset, "what is added to its score alone");
    visit("norms", self.norms, "norms, applied to all keys, under which it is selectable");
    visit.when(!self.without.empty(), "without", self.without, "why there is no threshold");
  }
};

// Offsets under which every key is selectable that can be beside the others.
struct OffsetsForAll {
  std::vector<double> least;    // per key, as above; what is added to its offset
  double bend = 0;              // ε
  std::vector<double> offsets;  // least + ε·s(k): what is to be added
  KeyCounts counts;             // of the set with these, decided anew

  static void describe(auto& visit, auto& self) {
    visit("least", self.least,
          "per key: what has to be added to its offset at least, and never quite suffices", {.low = 0});
    visit("bend", self.bend,
          "how much is added at the centre of the keys beyond that, less towards the outside", {.low = 0});
    visit("offsets", self.offsets, "per key: what to add to its offset");
    visit("counts", self.counts, "keys by verdict with these offsets");
  }
};

struct SetAdvice {
  std::vector<std::optional<KeyAdvice>> keys;  // of the tied and the unselectable
  // None: a threshold was beyond the effort of rational arithmetic, an offset beyond doubles, or no key is in need.
  std::optional<OffsetsForAll> all;
};

// decided: what decide_keys said of these keys, with the same options.
SetAdvice advise(MatrixView<const double> keys, std::span<const double> offsets, const KeySet& decided,
                 const KeyOptions& options, const Executor& executor);

}  // namespace normscope

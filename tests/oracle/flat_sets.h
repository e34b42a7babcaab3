#pragma once
// Keys that lie in a flat of known dimension, up to the rounding of the arithmetic that made them: what
// attention computes (products of two and three matrices, centred rows, LayerNorm with gain and bias), in
// every dtype, and the same flat sets without any rounding. The engine must find the dimension and the
// verdicts of the flat.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "normscope/keys.h"

namespace normscope::oracle {

struct FlatSet {
  std::string name;  // family and dtype
  Matrix<double> keys;
  double unit_roundoff = 0x1p-53, smallest_rounding = 0;
  std::size_t rank = 0;  // of the flat
  Matrix<double> truth;  // the keys meant, in coordinates of the flat; empty: on a sphere, all selectable
  std::vector<double> errors;  // distance of each key from the one meant
  bool rounded_once = false;   // every entry is the nearest number of its dtype
};

// A function of (seed, index) alone. largest: of the dimension, 2 … 512.
FlatSet draw_flat_set(std::uint64_t seed, std::uint64_t index, std::size_t largest);

struct FlatTally {
  std::size_t sets = 0, keys = 0;
  std::size_t wrong_rank = 0;     // sets
  std::size_t wrong = 0;          // verdicts that the errors cannot excuse: called robust against them
  std::size_t within_errors = 0;  // verdicts that differ, and say that they may
  std::size_t not_robust = 0;     // keys whose verdict the errors might change
  std::size_t invalid = 0;        // certificates, weight bounds
  std::vector<std::string> failures;

  FlatTally& operator+=(FlatTally&& other);
};
FlatTally compare_flat_set(std::uint64_t seed, std::uint64_t index, std::size_t largest);

}  // namespace normscope::oracle

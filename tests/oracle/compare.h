#pragma once
// One draw of a key set, decided by the engine and judged by the oracle.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "normscope/keys.h"
#include "oracle/families.h"

namespace normscope::oracle {

// Everything a draw consists of, as a function of (seed, index) alone. Families take turns; exact and
// floating-point certificates take turns after each round; one draw in four uses the numerical rank policy.
struct Draw {
  std::size_t family = 0;
  OffsetKind offset_kind = OffsetKind::none;
  Matrix<double> keys;
  std::vector<double> offsets;
  KeyOptions options;
  // Sets too large for the oracle, where the engine takes its paths for many keys and many dimensions: the
  // verdicts are judged by their certificates alone, which prove them.
  bool large = false;
};
Draw make_draw(std::uint64_t seed, std::uint64_t index);

struct Tally {
  std::size_t keys = 0, selectable = 0, tied = 0, unselectable = 0;  // verdicts of the oracle
  std::size_t wrong = 0, invalid = 0;                                // engine's verdicts and certificates
  std::size_t exact_path = 0;  // keys that floating point left undecided
  std::size_t rounded = 0;     // certificates that hold only up to the rounding of their witness
  std::size_t reduced = 0;     // keys of sets that lost directions to rounding: compared on those kept

  Tally& operator+=(const Tally& other);
};

struct Comparison {
  std::size_t family = 0;
  Tally tally;
  std::vector<std::string> failures;  // each with all that is needed to reproduce it
};
Comparison compare_draw(std::uint64_t seed, std::uint64_t index);

}  // namespace normscope::oracle

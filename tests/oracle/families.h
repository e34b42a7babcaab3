#pragma once
// Families of key sets: what models produce, what geometry makes hard, and what rounding makes of it.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "normscope/matrix.h"
#include "normscope/random.h"

namespace normscope::oracle {

struct KeyFamily {
  const char* name;
  // Groups share a property test: random, norms, polytopes, degenerate, scales.
  const char* group;
  // n and d are wishes: a family whose shape is fixed (cube, simplex, …) may return another number of keys.
  Matrix<double> (*draw)(Random& random, std::size_t n, std::size_t d);
  double unit_roundoff = 0x1p-53;  // of the dtype the keys are exact in
};

std::span<const KeyFamily> key_families();

// affine: exactly an affine function of the keys, so that one query scores all keys alike. equal: one number.
enum class OffsetKind { none, random, integer, affine, equal };
const char* name_of(OffsetKind kind);
std::vector<double> draw_offsets(Random& random, MatrixView<const double> keys, OffsetKind kind);

// Mostly n in 1…16 and d in 1…5; one in 64 has n up to 40 and d up to 8.
struct Shape {
  std::size_t n, d;
};
Shape draw_shape(Random& random);
// n in 193…500 and d in 2…8, or now and then d in 24…27.
Shape draw_large_shape(Random& random);

}  // namespace normscope::oracle

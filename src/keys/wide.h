#pragma once
// Numbers of some 106 bits: the exact sum of two doubles, the second no more than half a unit in the last place of
// the first (T. J. Dekker, 1971). For the few differences that doubles cannot tell from nothing.
#include <cstddef>
#include <span>

namespace normscope {

struct Wide {
  double high = 0, low = 0;
};

// Of one sum or product, in shares of the result; the algorithms err by at most 5·2⁻¹⁰⁶ of it (M. Joldes, J.-M. Muller
// and V. Popescu, Tight and rigorous error bounds for basic building blocks of double-word arithmetic, 2017), where
// nothing underflows.
inline constexpr double kWideError = 0x1p-103;

Wide wide_difference(double a, double b);  // exactly
Wide operator+(Wide a, Wide b);
Wide operator-(Wide a, Wide b);
Wide operator*(Wide a, Wide b);
Wide operator*(Wide a, double b);
inline Wide operator-(Wide a) {
  return {-a.high, -a.low};
}

// Errs by no more than (n + 2)·2·kWideError times the sum of the terms' magnitudes.
Wide dot(std::span<const Wide> a, std::span<const Wide> b);
// sum += factor · a
void add_multiple(Wide factor, std::span<const Wide> a, std::span<Wide> sum);

}  // namespace normscope

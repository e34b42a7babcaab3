#pragma once
#include <cmath>
#include <cstddef>
#include <span>

#include "normscope/block.h"

namespace normscope {

// Turns every head of one token's queries or keys as at `position`, which may be negative: that turns back.
template <class T>
void rotate(const Rotary& rotary, std::size_t head_width, double position, std::span<T> token) {
  const std::size_t pairs = rotary.frequencies.size(), apart = rotary.neighbours ? 1 : pairs;
  for (std::size_t m = 0; m < pairs; ++m) {
    const double angle = position * rotary.frequencies[m];
    const auto cosine = static_cast<T>(std::cos(angle)), sine = static_cast<T>(std::sin(angle));
    T* first = token.data() + (rotary.neighbours ? 2 * m : m);
    for (std::size_t head = 0; head < token.size() / head_width; ++head, first += head_width) {
      const T a = first[0], b = first[apart];
      first[0] = a * cosine - b * sine;
      first[apart] = a * sine + b * cosine;
    }
  }
}

}  // namespace normscope

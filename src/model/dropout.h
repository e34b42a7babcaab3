#pragma once
// Dropout from counter-based random numbers: each value is dropped with probability p, what stays is divided
// by 1 − p. Sites (places in the model) have random streams of their own.
#include <cmath>
#include <cstdint>
#include <span>

#include "normscope/block.h"
#include "normscope/random.h"

namespace normscope {

enum class DropoutSite : std::uint64_t { attention, attention_output, feed_forward_output, embedding };

class Dropout {
 public:
  // part: tells calls at one site apart; below 2²⁴.
  Dropout(double p, DropoutKey key, DropoutSite site, std::uint64_t part = 0)
      : random_(key.seed, (key.stream * 4 + static_cast<std::uint64_t>(site)) << 24 | part),
        threshold_(static_cast<std::uint64_t>(std::llround(p * 0x1p32))),
        factor_(1 / (1 - p)) {}

  template <class T>
  void apply(std::span<T> values) {
    const T factor = static_cast<T>(factor_);
    for (T& value : values) value = random_.bits32() < threshold_ ? T(0) : value * factor;
  }

 private:
  Random random_;
  std::uint64_t threshold_;
  double factor_;
};

}  // namespace normscope

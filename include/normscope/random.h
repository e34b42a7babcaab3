#pragma once
// Counter-based random numbers (Philox4x32-10, Salmon et al. 2011): the i-th number of a stream depends only
// on (seed, stream, i), so results are the same for any number of threads or ranks.
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace normscope {

// The numbers of one counter: 10 rounds, or fewer where speed matters more (7 still pass every test of the authors').
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> x, std::uint64_t key, int rounds) {
  auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * x[0], p1 = std::uint64_t{0xCD9E8D57} * x[2];
    x = {static_cast<std::uint32_t>(p1 >> 32) ^ x[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ x[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return x;
}

class Random {
 public:
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  std::uint32_t bits32() {
    if (used_ == 4) {
      block_ = philox({static_cast<std::uint32_t>(counter_), static_cast<std::uint32_t>(counter_ >> 32),
                       static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)},
                      seed_, 10);
      ++counter_;
      used_ = 0;
    }
    return block_[used_++];
  }
  std::uint64_t bits64() {
    const std::uint64_t high = bits32();
    return high << 32 | bits32();
  }
  // Uniform in [0, 1), 53 bits.
  double uniform() { return static_cast<double>(bits64() >> 11) * 0x1p-53; }
  // Standard normal by Box-Muller; both values of a pair are used.
  double normal() {
    if (have_spare_) {
      have_spare_ = false;
      return spare_;
    }
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    const double angle = 2.0 * std::numbers::pi * uniform();
    spare_ = radius * std::sin(angle);
    have_spare_ = true;
    return radius * std::cos(angle);
  }
  // Uniform in {0, …, bound − 1} without modulo bias; bound ≥ 1.
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t reject = (0 - bound) % bound;
    std::uint64_t value = bits64();
    while (value < reject) value = bits64();
    return value % bound;
  }

 private:
  std::uint64_t seed_, stream_, counter_ = 0;
  std::array<std::uint32_t, 4> block_{};
  int used_ = 4;
  bool have_spare_ = false;
  double spare_ = 0;
};

}  // namespace normscope

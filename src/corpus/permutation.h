#pragma once
// A random order of 0 … size − 1 of which any place can be computed on its own: a Feistel network on the next
// power of four, walked until it is back inside (Black and Rogaway 2002).
#include <array>
#include <cstdint>

namespace normscope::corpus {

class Permutation {
 public:
  // size ≥ 1. Different for each (seed, stream).
  Permutation(std::uint64_t size, std::uint64_t seed, std::uint64_t stream);
  // What stands at place `index` < size.
  std::uint64_t operator()(std::uint64_t index) const;

 private:
  static constexpr int kRounds = 6;
  std::uint64_t size_;
  int half_bits_ = 0;
  std::array<std::uint64_t, kRounds> keys_{};
};

// Place `place` of an endless order: permutations of 0 … size − 1, one after the other.
std::uint64_t endless_order(std::uint64_t size, std::uint64_t seed, std::uint64_t place);

}  // namespace normscope::corpus

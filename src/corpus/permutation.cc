#include "corpus/permutation.h"

#include <bit>

#include "normscope/random.h"

namespace normscope::corpus {
namespace {

// Streams of a run's seed that no other use of it has: "order", and the epoch below.
constexpr std::uint64_t kOrderStream = 0x6f72646572000000;

}  // namespace

Permutation::Permutation(std::uint64_t size, std::uint64_t seed, std::uint64_t stream) : size_(size) {
  half_bits_ = (std::bit_width(size - 1) + 1) / 2;
  Random random(seed, stream);
  for (std::uint64_t& key : keys_) key = random.bits64();
}

std::uint64_t Permutation::operator()(std::uint64_t index) const {
  if (half_bits_ == 0) return 0;
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t place = index;
  // The network maps a domain of less than 4·size places onto itself, so the walk is short and comes back.
  do {
    std::uint64_t left = place >> half_bits_, right = place & mask;
    for (const std::uint64_t key : keys_) {
      const std::uint64_t mixed = left ^ (Random(key, right).bits64() & mask);
      left = right;
      right = mixed;
    }
    place = left << half_bits_ | right;
  } while (place >= size_);
  return place;
}

std::uint64_t endless_order(std::uint64_t size, std::uint64_t seed, std::uint64_t place) {
  return Permutation(size, seed, kOrderStream + place / size)(place % size);
}

}  // namespace normscope::corpus

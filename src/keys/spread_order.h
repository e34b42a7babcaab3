#pragma once
// An order of work in which every stretch is like the whole.
#include <cstddef>
#include <numeric>
#include <vector>

namespace normscope {

// 0 … count − 1, each once: multiples of a step near count over the golden ratio, so that the first k of them,
// for any k, lie nearly evenly over all. If what is near takes alike long, the share that is done is the share
// of the work.
inline std::vector<std::size_t> spread_order(std::size_t count) {
  auto step = static_cast<std::size_t>(0.6180339887498949 * static_cast<double>(count));
  while (step > 1 && std::gcd(step, count) != 1) --step;
  std::vector<std::size_t> order(count);
  for (std::size_t i = 1; i < count; ++i) order[i] = (order[i - 1] + (step == 0 ? 1 : step)) % count;
  return order;
}

}  // namespace normscope

#pragma once
// In which order to do pieces of work.
#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

namespace normscope {

// 0 … count − 1, each once, so that every stretch is like the whole: multiples of a step near count over the golden
// ratio, of which the first k, for any k, lie nearly evenly over all. If what is near takes alike long, the share that
// is done is the share of the work.
inline std::vector<std::size_t> spread_order(std::size_t count) {
  auto step = static_cast<std::size_t>(0.6180339887498949 * static_cast<double>(count));
  while (step > 1 && std::gcd(step, count) != 1) --step;
  std::vector<std::size_t> order(count);
  for (std::size_t i = 1; i < count; ++i) order[i] = (order[i - 1] + (step == 0 ? 1 : step)) % count;
  return order;
}

// First pieces that are so large that one at the end would keep all other workers waiting, the largest before; then the
// rest, spread, since a cost is a guess and time left is told from the share that is done.
inline std::vector<std::size_t> working_order(std::span<const double> costs, std::size_t workers) {
  constexpr double pieces_of_a_worker = 64;
  const double large = std::accumulate(costs.begin(), costs.end(), 0.0) /
                       (pieces_of_a_worker * static_cast<double>(std::max<std::size_t>(1, workers)));
  std::vector<std::size_t> order, rest;
  for (std::size_t piece = 0; piece < costs.size(); ++piece)
    (costs[piece] > large ? order : rest).push_back(piece);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
  for (const std::size_t turn : spread_order(rest.size())) order.push_back(rest[turn]);
  return order;
}

}  // namespace normscope

#include "core/spelling.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace normscope {
namespace {

// Levenshtein distance.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t change = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({change, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::optional<std::string> nearest_spelling(std::string_view word,
                                            const std::vector<std::string>& candidates) {
  std::optional<std::string> best;
  std::size_t fewest = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    // Who stopped early meant the rest.
    const bool begun = word.size() >= 3 && candidate.starts_with(word);
    const std::size_t distance = begun ? 0 : edits(word.substr(0, 64), candidate);
    if (distance < fewest && distance < candidate.size()) {
      fewest = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace normscope

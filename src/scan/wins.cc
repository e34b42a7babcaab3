#include "scan/wins.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "normscope/error.h"

namespace normscope {
namespace {

double squares(std::span<const double> values) {
  return std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
}

}  // namespace

double certain_lead(std::span<const double> query, const SeenKeys& from, std::size_t token) {
  double lead = std::numeric_limits<double>::infinity(), longest = squares(from.keys[token]);
  for (const std::size_t j : from.seen) {
    if (j == token) continue;
    longest = std::max(longest, squares(from.keys[j]));
    double by = 0, offset_error = 0;
    for (std::size_t c = 0; c < query.size(); ++c) by += query[c] * (from.keys(token, c) - from.keys(j, c));
    if (!from.offsets.empty()) {
      by += from.offsets[token] - from.offsets[j];
      offset_error = 0x1p-48 * (std::abs(from.offsets[token]) + std::abs(from.offsets[j]));
    }
    lead = std::min(lead, by - offset_error);
  }
  const double grain = 8 * 0x1p-24 * std::sqrt(static_cast<double>(query.size()) * longest);
  return lead - 2 * std::sqrt(squares(query)) * (from.error + grain);
}

void require_selectable(const ScanSet& set, std::size_t token, KeySpace space, std::size_t layer,
                        std::size_t head, std::size_t place, double lead) {
  const std::optional<Verdict> verdict = set.verdicts[token];
  if (verdict != Verdict::tied && verdict != Verdict::unselectable) return;
  throw Error(fmt::format(
      "The scan contradicts the model: in layer {} head {} the query of token {} gives token {} the "
      "highest score, by {:.3g}, but in the {} space it came out {}. This is a defect of the "
      "program, so that no result is given; please report it with the model and the text.",
      layer, head, place, token, lead, name_of(space), name_of(*verdict)));
}

}  // namespace normscope

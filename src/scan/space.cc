#include "scan/space.h"

#include <algorithm>
#include <cmath>

namespace normscope {

bool asks_for(const ScanSettings& settings, KeySpace space) {
  return std::find(settings.spaces.begin(), settings.spaces.end(), space) != settings.spaces.end();
}

KeyOptions key_options(const ScanSettings& settings, double unit_roundoff) {
  KeyOptions options;
  options.unit_roundoff = unit_roundoff;
  options.margins = settings.margins;
  options.certificates = false;
  return options;
}

Matrix<double> columns(MatrixView<const float> from, std::size_t first, std::size_t count) {
  Matrix<double> result(from.rows, count);
  for (std::size_t i = 0; i < from.rows; ++i)
    std::copy_n(from[i].begin() + static_cast<std::ptrdiff_t>(first), count, result[i].begin());
  return result;
}

NormShare norm_share(MatrixView<const float> x) {
  NormShare share;
  std::vector<double> norms;
  std::size_t counted = 0;
  for (std::size_t i = 0; i < x.rows; ++i) {
    double sum = 0, squares = 0;
    for (const float value : x[i]) {
      sum += static_cast<double>(value);
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
    norms.push_back(std::sqrt(squares));
    if (squares == 0) continue;  // no direction
    share.along_ones += sum * sum / static_cast<double>(x.cols) / squares;
    ++counted;
  }
  if (counted > 0) share.along_ones /= static_cast<double>(counted);
  for (const double norm : norms) share.norm_mean += norm / static_cast<double>(norms.size());
  double variance = 0;
  for (const double norm : norms)
    variance += (norm - share.norm_mean) * (norm - share.norm_mean) / static_cast<double>(norms.size());
  share.norm_spread = share.norm_mean > 0 ? std::sqrt(variance) / share.norm_mean : 0;
  return share;
}

Matrix<double> rows_of(MatrixView<const double> from, std::span<const std::size_t> which) {
  Matrix<double> result(which.size(), from.cols);
  for (std::size_t k = 0; k < which.size(); ++k) {
    const auto row = from[which[k]];
    std::copy(row.begin(), row.end(), result[k].begin());
  }
  return result;
}

std::vector<double> entries_of(std::span<const double> from, std::span<const std::size_t> which) {
  std::vector<double> result;
  if (from.empty()) return result;
  for (const std::size_t i : which) result.push_back(from[i]);
  return result;
}

std::vector<std::size_t> positions_in(std::span<const std::size_t> seen,
                                      std::span<const std::size_t> wanted) {
  std::vector<std::size_t> result;
  for (const std::size_t token : wanted)
    result.push_back(
        static_cast<std::size_t>(std::lower_bound(seen.begin(), seen.end(), token) - seen.begin()));
  return result;
}

namespace {

ScanSet set_of(const KeySet& found, bool prefixes) {
  ScanSet set;
  set.rank = found.rank;
  for (std::size_t i = 0; i < found.n; ++i) {
    const KeyVerdict& key = found.keys[i];
    const std::optional<Verdict> verdict = decided(prefixes ? key.prefix_verdict : key.verdict);
    set.verdicts.push_back(verdict);
    set.margins.push_back(key.verdict == Verdict::selectable ? key.margin : 0);
    set.robust.push_back(verdict == Verdict::unselectable &&
                         (prefixes ? key.robust_in_prefixes : key.robust));
    std::optional<std::size_t>& place = set.places.emplace_back();
    if (verdict && *verdict != Verdict::unselectable) place = (prefixes ? key.verdict_prefix : found.n) - 1;
  }
  set.robust_unselectable = static_cast<std::size_t>(std::count(set.robust.begin(), set.robust.end(), true));
  return set;
}

}  // namespace

ScanSet decide_space(const Places& places, const Matrix<double>& keys, const KeyOptions& options,
                     Winners winners, const OffsetsAt& offsets_at, const Executor& alone) {
  if (!offsets_at && (places.one_set() || places.nested())) {
    KeyOptions whole = options;
    whole.prefix = !places.one_set();
    return set_of(decide_keys(keys.view(), {}, whole, alone), whole.prefix);
  }
  PlacesQuestion question{places, !offsets_at, true, winners, false, {}};
  question.decide = [&](std::size_t place, std::span<const std::size_t> seen,
                        std::span<const std::size_t> wanted, bool) {
    const Matrix<double> here = rows_of(keys.view(), seen);
    const std::vector<double> errors = entries_of(options.errors, seen);
    const std::vector<double> offsets =
        offsets_at ? entries_of(offsets_at(place), seen) : std::vector<double>();
    KeyOptions of_seen = options;
    of_seen.errors = errors;
    const KeySet found = decide_keys(here.view(), offsets, of_seen, alone);
    PlacesQuestion::Answer answer;
    answer.rank = found.rank;
    for (const std::size_t k : positions_in(seen, wanted)) {
      const KeyVerdict& key = found.keys[k];
      answer.verdicts.push_back({decided(key.verdict), key.verdict == Verdict::selectable ? key.margin : 0,
                                 key.robust, found.rank == keys.cols(), std::nullopt});
    }
    return answer;
  };
  return decide_from_places(question);
}

std::optional<std::size_t> add_query(std::span<const float> weights, std::size_t first, QueryShare& queries) {
  const auto top = std::max_element(weights.begin(), weights.end());
  double entropy = 0;
  for (const float weight : weights) {
    if (weight > 0) entropy -= static_cast<double>(weight) * std::log(static_cast<double>(weight));
  }
  const std::size_t winner = first + static_cast<std::size_t>(top - weights.begin());
  ++queries.wins[winner];
  queries.entropy += entropy;
  queries.largest_weight += static_cast<double>(*top);
  ++queries.queries;
  return winner;
}

void finish(QueryShare& queries) {
  if (queries.queries == 0) return;
  queries.entropy /= static_cast<double>(queries.queries);
  queries.largest_weight /= static_cast<double>(queries.queries);
}

}  // namespace normscope

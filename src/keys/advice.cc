#include "normscope/advice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "keys/exact.h"
#include "keys/hull.h"

namespace normscope {
namespace {

constexpr double kGap = 0x1p-20;  // of a value that is enough above the threshold, as share of its size
constexpr int kTries = 20;        // each with four times the gap

// The keys on the coordinates on which they were decided, and the question about one of them.
struct Given {
  Matrix<double> points;
  std::vector<std::size_t> kept;
  std::span<const double> offsets;  // empty also if they are all equal
  std::size_t dimensions;           // of the keys as given
};

// Whether multiples of a key stay in the flat in which the set was decided: a key of zeros adds no direction to it.
bool holds_origin(MatrixView<const double> keys, const KeySet& decided, const KeyOptions& options) {
  Matrix<double> with_zero(keys.rows + 1, keys.cols);
  for (std::size_t i = 0; i < keys.rows; ++i) std::copy(keys[i].begin(), keys[i].end(), with_zero[i].begin());
  return affine_hull(with_zero.view(), options.rank, options.unit_roundoff, options.smallest_rounding).rank ==
         decided.rank;
}

Given given_as_decided(MatrixView<const double> keys, std::span<const double> offsets,
                       const KeySet& decided) {
  Given given{{}, decided.kept, offsets, keys.cols};
  if (std::all_of(offsets.begin(), offsets.end(), [&](double b) { return b == offsets[0]; }))
    given.offsets = {};
  // A set of equal keys was decided on no coordinate at all; a key that is changed leaves it on any.
  if (decided.rank == 0 || decided.rank == keys.cols) {
    given.kept.resize(keys.cols);
    for (std::size_t c = 0; c < keys.cols; ++c) given.kept[c] = c;
  }
  given.points = Matrix<double>(keys.rows, given.kept.size());
  for (std::size_t i = 0; i < keys.rows; ++i)
    for (std::size_t c = 0; c < given.kept.size(); ++c) given.points(i, c) = keys(i, given.kept[c]);
  return given;
}

// Where the set was decided in a flat beside the origin: every factor above 1 takes a key out of it, to the side on
// which it is alone. All coordinates count then.
struct BesideOrigin {
  Given whole;
  std::vector<double> normal;  // scores every key about 1
  double gap = 0;              // a factor so much above 1 takes a key beyond what counts as rounding
};

std::optional<BesideOrigin> beside_origin(MatrixView<const double> keys, const Given& given,
                                          const KeySet& decided, const KeyOptions& options) {
  if (decided.rank == keys.cols || holds_origin(keys, decided, options)) return std::nullopt;
  const AffineHull hull = affine_hull(keys, options.rank, options.unit_roundoff, options.smallest_rounding);
  Eigen::VectorXd normal = hull.centre / hull.unit;
  for (int pass = 0; pass < 2; ++pass) normal -= hull.basis * (hull.basis.transpose() * normal);
  const double distance = normal.norm();
  BesideOrigin beside{{Matrix<double>(keys.rows, keys.cols), {}, given.offsets, keys.cols}, {}, 0};
  for (std::size_t i = 0; i < keys.rows; ++i)
    std::copy(keys[i].begin(), keys[i].end(), beside.whole.points[i].begin());
  for (std::size_t c = 0; c < keys.cols; ++c) beside.whole.kept.push_back(c);
  normal /= distance * distance * hull.unit;
  beside.normal.assign(normal.begin(), normal.end());
  constexpr double clearly = 4;
  beside.gap = clearly * hull.tolerance * std::sqrt(static_cast<double>(keys.rows)) / (distance * hull.unit);
  return beside;
}

// Sign of q·(t·k_i − k_j) + (b_i + c − b_j), with every number as it is: screened, exact where unclear.
int lead_sign(const Given& given, std::span<const double> query, std::size_t i, double t, double c,
              std::size_t j) {
  double sum = c, size = std::abs(c);
  const auto add = [&](double value) { sum += value, size += std::abs(value); };
  for (std::size_t k = 0; k < query.size(); ++k) {
    add(query[k] * (t * given.points(i, k)));
    add(-query[k] * given.points(j, k));
  }
  if (!given.offsets.empty()) add(given.offsets[i]), add(-given.offsets[j]);
  const double error = size * static_cast<double>(2 * query.size() + 6) * 0x1p-51 + 1e-290;
  if (std::isfinite(size) && std::abs(sum) > error) return sum > 0 ? 1 : -1;
  Rational exact = rational(c);
  for (std::size_t k = 0; k < query.size(); ++k)
    exact += rational(query[k]) * (rational(t) * rational(given.points(i, k)) - rational(given.points(j, k)));
  if (!given.offsets.empty()) exact += rational(given.offsets[i]) - rational(given.offsets[j]);
  return exact.sign();
}

bool gains_with_scale(const Given& given, std::span<const double> query, std::size_t i) {
  Rational along = 0;
  for (std::size_t k = 0; k < query.size(); ++k) along += rational(query[k]) * rational(given.points(i, k));
  return along > 0;
}

// Whether the query selects key i once it is changed, and at every larger change.
bool selects(const Given& given, std::span<const double> query, std::size_t i, Change change, double value) {
  if (!std::all_of(query.begin(), query.end(), [](double q) { return std::isfinite(q); })) return false;
  const double t = change == Change::scale ? value : 1, c = change == Change::scale ? 0 : value;
  for (std::size_t j = 0; j < given.points.rows(); ++j)
    if (j != i && lead_sign(given, query, i, t, c, j) <= 0) return false;
  return change == Change::offset || gains_with_scale(given, query, i);
}

// The query, and, where only large multiples of a direction win, so many times it.
std::vector<std::vector<double>> multiples(std::vector<double> query, std::span<const double> offsets) {
  std::vector<std::vector<double>> queries = {std::move(query)};
  if (offsets.empty()) return queries;
  for (int power = 4; power <= 60; power += 4) {
    queries.push_back(queries.front());
    for (double& q : queries.back()) q = std::ldexp(q, power);
  }
  return queries;
}

// The dual in doubles: a direction scaled to about unit size, or multiples of it; with offsets the query itself.
std::vector<std::vector<double>> candidate_queries(const Given& given, const ExactReach& reach) {
  std::vector<Rational> exact(reach.query.begin(), reach.query.end());
  const auto in_doubles = [&](const Rational& unit) {
    std::vector<double> query;
    query.reserve(exact.size());
    for (const Rational& q : exact) query.push_back(Rational(q / unit).convert_to<double>());
    return query;
  };
  if (reach.offset_factor > 0) return {in_doubles(Rational(reach.offset_factor))};
  return multiples(in_doubles(power_of_two_below(exact)), given.offsets);
}

std::vector<double> on_all_coordinates(const Given& given, const std::vector<double>& query) {
  std::vector<double> all(given.dimensions, 0.0);
  for (std::size_t k = 0; k < query.size(); ++k) all[given.kept[k]] = query[k];
  return all;
}

// A value above the threshold at which one of the queries selects the key.
void find_enough(const Given& given, std::size_t i, Change change,
                 const std::vector<std::vector<double>>& queries, double gap, KeyThreshold& threshold) {
  for (int attempt = 0; attempt < kTries; ++attempt, gap *= 4) {
    threshold.enough = threshold.least + gap;
    for (const std::vector<double>& query : queries) {
      if (!selects(given, query, i, change, threshold.enough)) continue;
      threshold.witness = on_all_coordinates(given, query);
      return;
    }
  }
}

// size: of what the threshold is compared with.
KeyThreshold threshold_of(const Given& given, std::size_t i, Change change, const ExactReach& reach,
                          double size) {
  KeyThreshold threshold;
  const Rational least = change == Change::scale ? Rational(reach.value + 1) : reach.value;
  threshold.least = least.convert_to<double>();
  for (const ExactTerm& term : reach.cover)
    threshold.cover.push_back({term.index, term.weight.convert_to<double>()});
  find_enough(given, i, change, candidate_queries(given, reach),
              kGap * std::max(std::abs(threshold.least), size), threshold);
  return threshold;
}

KeyThreshold threshold_of(const BesideOrigin& beside, std::size_t i, const KeyVerdict& decided) {
  KeyThreshold threshold{1, 1, {}, decided.cover};
  find_enough(beside.whole, i, Change::scale, multiples(beside.normal, beside.whole.offsets),
              std::max(kGap, beside.gap), threshold);
  return threshold;
}

double spread(std::span<const double> values) {
  if (values.empty()) return 0;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return *high - *low;
}

KeyAdvice advice_for(const Given& given, const std::optional<BesideOrigin>& beside, std::size_t i,
                     const KeyVerdict& decided, const KeyOptions& options) {
  KeyAdvice advice;
  std::vector<std::size_t> hint;
  for (const auto* terms : {&decided.cover, &decided.interior})
    for (const CoverTerm& term : *terms) hint.push_back(term.index);
  const auto point = given.points[i];
  const auto add_reason = [&](const char* reason) {
    advice.without += (advice.without.empty() ? "" : " ") + std::string(reason);
  };
  const auto reach = [&](Change change) -> std::optional<ExactReach> {
    try {
      Effort effort(options.exact_effort);
      return exact_reach(given.points.view(), given.offsets, i, change, hint, effort);
    } catch (const BeyondEffort&) {
      add_reason(change == Change::scale ? "The scale is beyond the effort of rational arithmetic."
                                         : "The offset is beyond the effort of rational arithmetic.");
      return std::nullopt;
    }
  };
  if (beside) {
    advice.scale = threshold_of(*beside, i, decided);
  } else if (std::all_of(point.begin(), point.end(), [](double x) { return x == 0; })) {
    add_reason("No factor moves a key of zeros.");
  } else if (const auto scale = reach(Change::scale)) {
    advice.scale = threshold_of(given, i, Change::scale, *scale, 1);
  }
  if (given.offsets.empty()) {
    // Under the query of zeros every lead wins.
    double largest = 0;
    for (std::size_t j = 0; j < given.points.rows(); ++j)
      for (const double value : given.points[j]) largest = std::max(largest, std::abs(value));
    advice.offset = KeyThreshold{0, kGap * (largest > 0 ? largest : 1),
                                 std::vector<double>(given.dimensions, 0.0), decided.cover};
  } else if (const auto offset = reach(Change::offset)) {
    advice.offset = threshold_of(given, i, Change::offset, *offset, spread(given.offsets));
  }
  return advice;
}

// Keys of which no other is equal, on the coordinates that matter: offsets can make no others selectable.
std::size_t keys_without_equal(const Given& given) {
  std::map<std::vector<double>, std::size_t> seen;
  for (std::size_t i = 0; i < given.points.rows(); ++i) {
    const auto point = given.points[i];
    std::vector<double> key(point.begin(), point.end());
    for (double& x : key) x += 0.0;  // −0 is 0
    ++seen[std::move(key)];
  }
  return static_cast<std::size_t>(
      std::count_if(seen.begin(), seen.end(), [](const auto& each) { return each.second == 1; }));
}

// 1 − ‖k − m‖²/max: strictly concave, 1 at the mean of the keys, 0 at the farthest.
std::vector<double> bowl(const Given& given) {
  const std::size_t n = given.points.rows(), d = given.points.cols();
  std::vector<double> mean(d, 0.0), squares(n, 0.0);
  double largest = 0;  // lest squares overflow or vanish
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t c = 0; c < d; ++c) largest = std::max(largest, std::abs(given.points(i, c)));
  if (largest == 0) return squares;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t c = 0; c < d; ++c) mean[c] += given.points(i, c) / largest / static_cast<double>(n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t c = 0; c < d; ++c) squares[i] += std::pow(given.points(i, c) / largest - mean[c], 2);
  const double most = *std::max_element(squares.begin(), squares.end());
  for (double& square : squares) square = most > 0 ? 1 - square / most : 0;
  return squares;
}

// None where offsets would be larger than doubles.
std::optional<OffsetsForAll> offsets_for_all(const Given& given, MatrixView<const double> keys,
                                             std::span<const double> offsets, std::vector<double> least,
                                             const KeyOptions& options, const Executor& executor) {
  OffsetsForAll result;
  result.least = std::move(least);
  std::vector<double> lifted(offsets.begin(), offsets.end());
  lifted.resize(keys.rows, 0.0);
  for (std::size_t i = 0; i < keys.rows; ++i) lifted[i] += result.least[i];
  const std::vector<double> shape = bowl(given);
  const std::size_t wanted = keys_without_equal(given);
  KeyOptions plain = options;
  plain.exact = plain.prefix = plain.certificates = false;
  plain.query_norm.reset();
  plain.margins = Margins::bound;
  plain.progress = {};
  const double size = spread(lifted);
  result.bend = 0x1p-10 * (size > 0 ? size : 1);
  // Numbers as given are rounded: a bend that is lost in that is made larger.
  for (int attempt = 0; attempt < kTries; ++attempt) {
    if (attempt > 0) result.bend *= 4;
    result.offsets = result.least;
    std::vector<double> changed(offsets.begin(), offsets.end());
    changed.resize(keys.rows, 0.0);
    for (std::size_t i = 0; i < keys.rows; ++i) {
      result.offsets[i] += result.bend * shape[i];
      changed[i] += result.offsets[i];
      if (!std::isfinite(changed[i])) return std::nullopt;
    }
    result.counts = decide_keys(keys, changed, plain, executor).counts;
    if (result.counts.selectable >= wanted) break;
  }
  return result;
}

}  // namespace

SetAdvice advise(MatrixView<const double> keys, std::span<const double> offsets, const KeySet& decided,
                 const KeyOptions& options, const Executor& executor) {
  SetAdvice advice;
  advice.keys.resize(keys.rows);
  std::vector<std::size_t> needed;
  for (std::size_t i = 0; i < decided.keys.size(); ++i) {
    const Verdict verdict = decided.keys[i].verdict;
    if (verdict == Verdict::tied || verdict == Verdict::unselectable) needed.push_back(i);
  }
  if (needed.empty()) return advice;
  const Given given = given_as_decided(keys, offsets, decided);
  const auto beside = beside_origin(keys, given, decided, options);
  executor.for_each(needed.size(), [&](std::size_t k) {
    advice.keys[needed[k]] = advice_for(given, beside, needed[k], decided.keys[needed[k]], options);
  });
  std::vector<double> least(keys.rows, 0.0);
  for (const std::size_t i : needed) {
    if (!advice.keys[i]->offset) return advice;
    least[i] = std::max(0.0, advice.keys[i]->offset->least);
  }
  if (decided.counts.undecided == 0)
    advice.all = offsets_for_all(given, keys, offsets, std::move(least), options, executor);
  return advice;
}

}  // namespace normscope

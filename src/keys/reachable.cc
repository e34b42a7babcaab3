#include "normscope/reachable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/decompose.h"
#include "keys/ball_search.h"
#include "keys/exact.h"
#include "keys/placed.h"
#include "keys/weight.h"
#include "normscope/error.h"

namespace normscope {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::size_t kPiece = 16;  // keys decided by one task

double norm(std::span<const double> values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

void check_queries(MatrixView<const double> keys, const QueryBall& queries, const ReachableOptions& options) {
  if (!queries.centre.empty() && queries.centre.size() != keys.cols)
    throw InputError(
        fmt::format("the centre of the queries has {} coordinates, the keys have {}: they must agree",
                    queries.centre.size(), keys.cols));
  for (std::size_t c = 0; c < queries.centre.size(); ++c)
    if (!std::isfinite(queries.centre[c]))
      throw InputError(
          fmt::format("coordinate {} (counted from 0) of the centre of the queries is {}: it must be finite",
                      c, std::isnan(queries.centre[c]) ? "NaN" : "infinite"));
  const auto check = [](double value, const char* what) {
    if (!(value >= 0 && std::isfinite(value)))
      throw InputError(fmt::format("{} is {}: it must be a finite number of at least 0", what, value));
  };
  check(queries.radius, "the radius of the queries");
  check(options.weight_gap.value_or(0), "weight_gap");
  for (const std::size_t i : options.only)
    if (i >= keys.rows)
      throw InputError(
          fmt::format("key {} (counted from 0) is asked about, of a set of {} keys", i, keys.rows));
}

KeyOptions key_options(const ReachableOptions& options) {
  KeyOptions result;
  result.rank = options.rank;
  result.unit_roundoff = options.unit_roundoff;
  result.smallest_rounding = options.smallest_rounding;
  result.margins = Margins::bound;
  return result;
}

// Answers for the keys of a set, in the frame of their hull, where the ball is one around `centre_`.
class ReachableDecider {
 public:
  ReachableDecider(MatrixView<const double> keys, std::span<const double> offsets, const QueryBall& queries,
                   const ReachableOptions& options, const Executor& executor)
      : queries_(queries),
        options_(options),
        executor_(executor),
        margins_(options.weight_gap ? Margins::exact : options.margins),
        key_options_(key_options(options)),
        placed_(keys, offsets, key_options_),
        asked_(placed_.distinct(), options.only.empty()) {
    for (const std::size_t i : options.only) asked_[placed_.groups.distinct_of[i]] = true;
    place();
  }

  ReachableSet run() {
    ReachableSet set;
    const std::size_t n = placed_.keys.rows;
    set.n = n;
    set.d = placed_.keys.cols;
    set.rank = placed_.hull.rank;
    set.keys.resize(n);
    distinct_.resize(placed_.distinct());
    if (placed_.distinct() == 1) {
      distinct_[0] = {Verdict::selectable, kInfinity, kInfinity, query_of({}), {}, {}, {}};
    } else if (queries_.radius == 0) {
      compare_under_centre();
    } else if (every_direction_counts()) {
      follow_unbounded();
    } else {
      in_pieces([&](std::span<const std::size_t> keys) { decide(keys); });
    }
    for (std::size_t i = 0; i < n; ++i) {
      if (asked_[placed_.groups.distinct_of[i]]) set.keys[i] = spread(i);
    }
    if (options_.weight_gap) add_largest_weights(set);
    for (std::size_t i = 0; i < n; ++i) {
      const ReachableVerdict& key = set.keys[i];
      if (!asked_[placed_.groups.distinct_of[i]]) continue;
      if (!key.verdict)
        ++set.undecided;
      else if (*key.verdict == Verdict::selectable)
        ++set.counts.selectable;
      else if (*key.verdict == Verdict::tied)
        ++set.counts.tied;
      else
        ++set.counts.unselectable;
    }
    return set;
  }

 private:
  // Scores in units of hull.unit: w·x_j + β_j + g·x_j over ‖w‖ ≤ R.
  void place() {
    const std::size_t m = placed_.distinct(), rank = placed_.hull.rank;
    centre_.assign(rank, 0.0);
    if (!queries_.centre.empty()) {
      if (placed_.hull.reduced()) {
        const Eigen::Map<const Eigen::VectorXd> g(queries_.centre.data(),
                                                  static_cast<Eigen::Index>(queries_.centre.size()));
        Eigen::Map<Eigen::VectorXd>(centre_.data(), static_cast<Eigen::Index>(rank)) =
            placed_.hull.basis.transpose() * g;
      } else {
        centre_ = queries_.centre;
      }
    }
    scored_.dimension = rank;
    scored_.radius = queries_.radius;
    scored_.points = Matrix<double>(m, rank + 1);
    scored_.all = Panels(rank + 1);
    scored_.all.reserve(m);
    double largest_offset = 0, largest_norm = 0;
    for (std::size_t k = 0; k < m; ++k) {
      const auto from = placed_.frame.points[k].first(rank);
      auto to = scored_.points[k];
      std::copy(from.begin(), from.end(), to.begin());
      const double offset = placed_.frame.offsets ? placed_.frame.points(k, rank) : 0.0;
      to[rank] = offset + std::inner_product(from.begin(), from.end(), centre_.begin(), 0.0);
      largest_offset = std::max(largest_offset, std::abs(offset));
      largest_norm = std::max(largest_norm, norm(from));
      scored_.all.push(to);
    }
    // A query of the ball is no longer than this; dot products of rank + 1 terms err by (rank + 1)·u of the
    // product of norms, points stand point_error from their exact place, and what the hull leaves out of the
    // keys is seen by the centre alone. Twice for the two keys, twice again for λ-means and cut queries.
    const double longest = norm(queries_.centre) + queries_.radius;
    const double rounding = static_cast<double>(rank + 10) * 0x1p-53;
    scored_.score_error = 4 * rounding * (longest * largest_norm + largest_offset) +
                          4 * longest * placed_.frame.point_error +
                          4 * norm(queries_.centre) * placed_.hull.noise / placed_.hull.unit;
  }

  // No offsets, and 0 inside the ball: some multiple of every direction is a query.
  bool every_direction_counts() const {
    return !placed_.frame.offsets && norm(queries_.centre) < (1 - 1e-9) * queries_.radius;
  }

  template <class Body>
  void in_pieces(const Body& body) const {
    const std::size_t m = placed_.distinct();
    executor_.for_each((m + kPiece - 1) / kPiece, [&](std::size_t piece) {
      std::vector<std::size_t> keys;
      for (std::size_t k = piece * kPiece; k < std::min(m, (piece + 1) * kPiece); ++k)
        if (asked_[k]) keys.push_back(k);
      if (!keys.empty()) body(keys);
    });
  }

  // A query of the frame's ball around 0, on the keys as given.
  std::vector<double> query_of(std::span<const double> frame_query) const {
    std::vector<double> query =
        frame_query.empty() ? std::vector<double>(placed_.keys.cols, 0.0) : placed_.hull.query(frame_query);
    for (std::size_t c = 0; c < queries_.centre.size(); ++c) query[c] += queries_.centre[c];
    return query;
  }

  // One query, whose scores rational arithmetic compares.
  void compare_under_centre() {
    const std::vector<double> query = query_of({});
    const auto compare = [&](std::size_t a, std::size_t b) {
      return exact_score_difference_sign(query, placed_.keys, placed_.offsets, placed_.groups.first[a],
                                         placed_.groups.first[b]);
    };
    std::size_t best = 0, second = kNone;
    for (std::size_t k = 1; k < placed_.distinct(); ++k) {
      if (compare(k, best) > 0)
        second = best, best = k;
      else if (second == kNone || compare(k, second) > 0)
        second = k;
    }
    const std::size_t rank = scored_.dimension;
    for (std::size_t k = 0; k < placed_.distinct(); ++k) {
      const std::size_t rival = k == best ? second : best;
      const int sign = compare(k, rival);
      ReachableVerdict& result = distinct_[k];
      result.verdict = sign > 0 ? Verdict::selectable : sign == 0 ? Verdict::tied : Verdict::unselectable;
      const double difference = scored_.points(k, rank) - scored_.points(rival, rank);
      result.margin = sign == 0 ? 0 : (difference - scored_.score_error) * placed_.hull.unit;
      result.margin_bound = sign == 0 ? 0 : (difference + scored_.score_error) * placed_.hull.unit;
      result.witness = query;
      if (options_.certificates && sign <= 0) result.cover = {{rival, 1.0}};
    }
  }

  // Every direction is a query: exact verdicts without bounds on the queries, then margins in the ball.
  void follow_unbounded() {
    const KeySet set = decide_keys(placed_.keys, {}, key_options_, executor_);
    in_pieces([&](std::span<const std::size_t> keys) {
      std::vector<std::size_t> vertices;
      for (const std::size_t k : keys) {
        const KeyVerdict& unbounded = set.keys[placed_.groups.first[k]];
        if (is_vertex(k, unbounded)) {
          vertices.push_back(k);
          continue;
        }
        distinct_[k].verdict = unbounded.verdict;
        if (!unbounded.witness.empty()) distinct_[k].witness = scaled(unbounded.witness);
        if (!options_.certificates) continue;
        distinct_[k].cover = unbounded.cover;
        for (CoverTerm& term : distinct_[k].cover) term.index = placed_.groups.distinct_of[term.index];
      }
      decide(vertices);
      for (const std::size_t k : vertices) {
        if (distinct_[k].verdict) continue;
        // Proven, though by a margin that doubles do not resolve.
        distinct_[k].verdict = Verdict::selectable;
        distinct_[k].margin = std::max(0.0, distinct_[k].margin);
        distinct_[k].witness = scaled(set.keys[placed_.groups.first[k]].witness);
      }
    });
  }

  // Selectable but for its copies.
  bool is_vertex(std::size_t k, const KeyVerdict& unbounded) const {
    return unbounded.verdict == Verdict::selectable ||
           (unbounded.verdict == Verdict::tied && unbounded.cover.size() == 1 &&
            placed_.groups.distinct_of[unbounded.cover[0].index] == k);
  }

  // The multiple of a direction that leaves the ball: s²‖u‖² − 2s u·g + ‖g‖² = R².
  std::vector<double> scaled(std::span<const double> direction) const {
    std::vector<double> query(direction.begin(), direction.end());
    const double length = norm(direction);
    if (!(length > 0)) return query;
    double along = 0;
    for (std::size_t c = 0; c < queries_.centre.size(); ++c)
      along += queries_.centre[c] * (direction[c] / length);
    const double squares = norm(queries_.centre) * norm(queries_.centre);
    const double reach = along + std::sqrt(along * along + queries_.radius * queries_.radius - squares);
    // A power of two keeps a witness exact; half the way out at least.
    const double factor = std::ldexp(1.0, std::ilogb(reach / length));
    for (double& q : query) q *= factor;
    return query;
  }

  // From the keys' middle to the key.
  std::vector<double> first_query(std::size_t key) const {
    const std::size_t rank = scored_.dimension;
    std::vector<double> query(rank + 1, 1.0);
    const auto point = scored_.points[key].first(rank);
    const double length = norm(point);
    for (std::size_t c = 0; c < rank; ++c) query[c] = length > 0 ? point[c] / length * scored_.radius : 0.0;
    return query;
  }

  // One pass over all keys asks for the whole piece how far the first queries carry.
  void decide(std::span<const std::size_t> keys) {
    if (keys.empty()) return;
    const std::size_t f = scored_.dimension + 1;
    std::vector<double> queries;
    for (const std::size_t k : keys) {
      const std::vector<double> query = first_query(k);
      queries.insert(queries.end(), query.begin(), query.end());
    }
    std::vector<TopScore> top(keys.size());
    top_scores(scored_.all, scored_.all.size(), queries.data(), f, keys, top);
    BallSearch search(scored_);
    for (std::size_t s = 0; s < keys.size(); ++s) {
      const std::size_t k = keys[s];
      const std::span<const double> query(queries.data() + s * f, f);
      const auto point = scored_.points[k];
      const double lower = std::inner_product(point.begin(), point.end(), query.begin(), 0.0) - top[s].score -
                           scored_.score_error;
      if (margins_ == Margins::bound && lower > 0) {
        distinct_[k].verdict = Verdict::selectable;
        distinct_[k].margin = lower * placed_.hull.unit;
        distinct_[k].margin_bound = farthest_from(k, top[s].index);
        distinct_[k].witness = query_of(query.first(f - 1));
      } else {
        take(search.decide(k, top[s].index, margins_), k);
      }
    }
  }

  // No query lifts the key above this one rival by more.
  double farthest_from(std::size_t key, std::size_t rival) const {
    const auto here = scored_.points[key];
    const std::size_t rank = scored_.dimension;
    double squares = 0;
    for (std::size_t c = 0; c < rank; ++c)
      squares += (here[c] - scored_.points(rival, c)) * (here[c] - scored_.points(rival, c));
    return (queries_.radius * std::sqrt(squares) + here[rank] - scored_.points(rival, rank) +
            scored_.score_error) *
           placed_.hull.unit;
  }

  void take(const BallFound& found, std::size_t key) {
    ReachableVerdict& result = distinct_[key];
    result.verdict.reset();
    if (found.lower > 0) result.verdict = Verdict::selectable;
    if (found.upper < 0) result.verdict = Verdict::unselectable;
    result.margin = found.lower * placed_.hull.unit;
    result.margin_bound = found.upper * placed_.hull.unit;
    if (!found.query.empty()) result.witness = query_of(found.query);
    if (options_.certificates) result.cover = found.cover;
  }

  // The verdict of index i from that of its distinct key: equal keys tie.
  ReachableVerdict spread(std::size_t i) const {
    const std::size_t own = placed_.groups.distinct_of[i];
    const auto& equals = placed_.groups.members[own];
    ReachableVerdict result = distinct_[own];
    for (CoverTerm& term : result.cover) term.index = placed_.groups.first[term.index];
    if (equals.size() > 1) {
      if (result.verdict == Verdict::selectable) {
        result.verdict = Verdict::tied;
        if (options_.certificates) result.cover = {{equals[0] == i ? equals[1] : equals[0], 1.0}};
      }
      result.margin = std::min(result.margin, 0.0);
      result.margin_bound = std::min(result.margin_bound, 0.0);
    }
    return result;
  }

  void add_largest_weights(ReachableSet& set) const {
    // All keys count in the softmax, equal ones too.
    const std::size_t n = placed_.keys.rows, rank = scored_.dimension;
    const double unit = placed_.hull.unit;
    Matrix<double> points(n, rank);
    std::vector<double> offsets(n);
    for (std::size_t j = 0; j < n; ++j) {
      const auto from = scored_.points[placed_.groups.distinct_of[j]];
      for (std::size_t c = 0; c < rank; ++c) points(j, c) = from[c] * unit;
      offsets[j] = from[rank] * unit;
    }
    const WeightSearch weights(points.view(), offsets);
    // Scores in the frame are those of the keys but for their rounding and what the hull leaves out, of which a query of the
    // ball can make something, too.
    const double apart = std::exp(scored_.score_error * unit + 2 * queries_.radius * placed_.hull.noise);
    in_pieces([&](std::span<const std::size_t> keys) {
      std::vector<double> start(rank);
      for (const std::size_t k : keys) {
        const auto& members = placed_.groups.members[k];
        const std::vector<double>& witness = set.keys[members[0]].witness;
        if (!witness.empty()) start = ball_query(witness);
        const LargestWeight weight =
            weights.largest(members[0], queries_.radius,
                            witness.empty() ? std::span<const double>{} : std::span<const double>(start),
                            *options_.weight_gap);
        for (const std::size_t i : members) {
          set.keys[i].max_weight = weight.attained / apart;
          set.keys[i].max_weight_bound = std::min(1.0, weight.bound * apart);
          if (!options_.certificates) set.keys[i].witness.clear();
        }
      }
    });
  }

  // The inverse of query_of.
  std::vector<double> ball_query(std::span<const double> query) const {
    std::vector<double> shifted(query.begin(), query.end());
    for (std::size_t c = 0; c < queries_.centre.size(); ++c) shifted[c] -= queries_.centre[c];
    if (!placed_.hull.reduced()) return shifted;
    std::vector<double> result(scored_.dimension);
    Eigen::Map<Eigen::VectorXd>(result.data(), static_cast<Eigen::Index>(result.size())) =
        placed_.hull.basis.transpose() *
        Eigen::Map<const Eigen::VectorXd>(shifted.data(), static_cast<Eigen::Index>(shifted.size()));
    return result;
  }

  const QueryBall& queries_;
  const ReachableOptions& options_;
  const Executor& executor_;
  // The query of the widest margin is the best place to look for the largest weight from.
  const Margins margins_;
  const KeyOptions key_options_;
  const PlacedKeys placed_;
  std::vector<bool> asked_;     // of the distinct keys
  std::vector<double> centre_;  // in the frame
  ScoredKeys scored_;
  std::vector<ReachableVerdict> distinct_;
};

}  // namespace

ReachableSet decide_reachable(MatrixView<const double> keys, std::span<const double> offsets,
                              const QueryBall& queries, const ReachableOptions& options,
                              const Executor& executor) {
  check_key_input(keys, offsets);
  check_queries(keys, queries, options);
  return ReachableDecider(keys, offsets, queries, options, executor).run();
}

QueryEllipsoid::QueryEllipsoid(MatrixView<const double> map, std::span<const double> shift, double radius) {
  if (map.rows == 0 || map.cols == 0)
    throw InputError(fmt::format("the map of the queries is {} × {}: it has no entry", map.rows, map.cols));
  if (!shift.empty() && shift.size() != map.rows)
    throw InputError(
        fmt::format("the shift of the queries has {} coordinates, their map has {} rows: they "
                    "must agree",
                    shift.size(), map.rows));
  const auto d = static_cast<Eigen::Index>(map.rows), width = static_cast<Eigen::Index>(map.cols);
  Eigen::MatrixXd transposed(width, d);  // Aᵀ
  for (Eigen::Index i = 0; i < d; ++i)
    for (Eigen::Index c = 0; c < width; ++c)
      transposed(c, i) = map(static_cast<std::size_t>(i), static_cast<std::size_t>(c));
  Eigen::VectorXd c = Eigen::VectorXd::Zero(d);
  if (!shift.empty()) c = Eigen::Map<const Eigen::VectorXd>(shift.data(), d);
  if (!transposed.allFinite() || !c.allFinite())
    throw InputError("the map or the shift of the queries holds NaN or an infinite number");
  // Aᵀ P = Q R with falling diagonal, so A = P Rᵀ Qᵀ.
  const PivotedQr qr = pivoted_qr(transposed);
  const Eigen::Index rank = qr.rank(1e-10);
  ball_.radius = radius;
  if (rank == 0) {
    // One query only, c. Keys need a coordinate: it is 0.
    factor_ = Matrix<double>(map.rows, 1);
    rest_.assign(shift.begin(), shift.end());
    return;
  }
  const Eigen::MatrixXd factor = qr.permutation * qr.r(rank).transpose();
  factor_ = Matrix<double>(map.rows, static_cast<std::size_t>(rank));
  for (Eigen::Index i = 0; i < d; ++i)
    for (Eigen::Index k = 0; k < rank; ++k)
      factor_(static_cast<std::size_t>(i), static_cast<std::size_t>(k)) = factor(i, k);
  if (shift.empty()) return;
  const Eigen::VectorXd centre = solve_least_squares(factor, c);
  ball_.centre.assign(centre.data(), centre.data() + rank);
  if (rank == d) return;
  const Eigen::VectorXd rest = c - factor * centre;
  rest_.assign(rest.data(), rest.data() + d);
}

Matrix<double> QueryEllipsoid::keys(MatrixView<const double> keys) const {
  Matrix<double> mapped(keys.rows, rank());
  for (std::size_t i = 0; i < keys.rows; ++i)
    for (std::size_t c = 0; c < keys.cols; ++c)
      for (std::size_t k = 0; k < rank(); ++k) mapped(i, k) += keys(i, c) * factor_(c, k);
  return mapped;
}

std::vector<double> QueryEllipsoid::offsets(MatrixView<const double> keys) const {
  if (rest_.empty()) return {};
  std::vector<double> result(keys.rows);
  for (std::size_t i = 0; i < keys.rows; ++i)
    result[i] = std::inner_product(rest_.begin(), rest_.end(), keys[i].begin(), 0.0);
  return result;
}

std::vector<double> QueryEllipsoid::query(std::span<const double> of_ball) const {
  std::vector<double> result = rest_.empty() ? std::vector<double>(factor_.rows()) : rest_;
  for (std::size_t c = 0; c < result.size(); ++c)
    result[c] += std::inner_product(of_ball.begin(), of_ball.end(), factor_[c].begin(), 0.0);
  return result;
}

}  // namespace normscope

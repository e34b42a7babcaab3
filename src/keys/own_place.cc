#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "keys/own_place.cc"
#include "keys/own_place.h"

// In this order, before highway.h.
// clang-format off
#include "core/targets.h"
#include <hwy/foreach_target.h>
// clang-format on

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "keys/corral-inl.h"
#include "keys/panels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normscope::HWY_NAMESPACE {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kUnit = 0x1p-53;

// In wide numbers: what a key may stand lower, in shares of the distance, before it is a rival; and the distance, beside
// that of the members, below which it is taken for nothing.
constexpr double kRivalShare = 1e-11, kNothing = 0x1p-90;
constexpr double kEnoughForBound = 0.01;  // of the distance
constexpr double kRefined = 0x1p-90;      // of the weights: what they are off, at most

// Wolfe's method among directions. Lengths are in units of s, but for those of w itself. First in doubles, then, where
// that proves nothing, by the same steps with the nearest point in wide numbers.
class Nearest {
 public:
  Nearest(const PlacedKeys& set, const Directions& directions, Margins margins)
      : set_(set),
        directions_(directions),
        dimension_(directions.dimension),
        margins_(margins),
        corral_(dimension_),
        point_(dimension_ + 1),
        query_(dimension_ + 1) {
    const double steps = 2.1 * static_cast<double>(dimension_ + 4) * kUnit;
    error_ = steps + 1.01 * directions.error;  // of w·q for |q| ≤ 1, with what rounding adds; |w| < 2
  }

  Found run(std::span<const std::size_t> hint) {
    Found found;
    start(hint);
    const std::size_t most_steps = 200 + 20 * (dimension_ + 2);
    bool repaired = false;
    for (std::size_t step = 0; step < most_steps; ++step) {
      if (corral_.spans()) {
        if (enclosed(found)) return found;
        break;
      }
      const double distance = std::sqrt(corral_.squared_distance());
      if (!(distance > error_)) break;
      const std::size_t rival = lowest(distance);
      if (rival == kNone) break;
      if (!corral_.contains(rival) && add(rival)) {
        repaired = false;
        continue;
      }
      if (repaired || !corral_.repair()) break;
      repaired = true;
    }
    prove_margin(found);
    const bool open = found.kind == Found::Kind::unclear || (margins_ == Margins::exact && !found.widest);
    if (open && !directions_.offsets) look_wide(most_steps, found);
    found.hint.clear();
    for (const std::size_t member : corral_.members())
      if (member != kRay) found.hint.push_back(member);
    return found;
  }

 private:
  const double* panel(std::size_t key) const {
    return directions_.points.panel(key / Panels::kWidth) + Panels::kWidth + key % Panels::kWidth;
  }
  double counted(std::size_t key) const { return key == kRay ? 0 : directions_.counts[key]; }
  // What it has to count at least.
  double wanted(std::size_t key) const { return panel(key)[dimension_ * Panels::kWidth]; }
  void take_point(std::size_t key) {
    if (key == kRay) {
      std::fill(point_.begin(), point_.end(), 0.0);
      point_[dimension_ - 1] = -1;
      return;
    }
    const double* from = panel(key);
    for (std::size_t c = 0; c <= dimension_; ++c) point_[c] = from[c * Panels::kWidth];
  }

  bool add(std::size_t key) {
    take_point(key);
    return corral_.add(key, std::span(point_).first(dimension_), counted(key));
  }

  // From the nearest key, then those of the hint that stand lower than the point reached.
  void start(std::span<const std::size_t> hint) {
    std::size_t first = directions_.own == 0 ? 1 : 0;
    for (std::size_t j = 0; j < directions_.points.size(); ++j)
      if (j != directions_.own && counted(j) > counted(first)) first = j;
    take_point(first);
    corral_.start(first, std::span(point_).first(dimension_), counted(first));
    for (const std::size_t key : hint) {
      if (key >= directions_.points.size() || key == directions_.own || corral_.contains(key)) continue;
      if (corral_.spans()) return;
      take_point(key);
      const auto x = corral_.nearest();
      const double advantage = dot(point_.data(), x.data(), dimension_);
      if (advantage < (1 - 1e-9) * counted(key) * corral_.squared_distance() -
                          error_ * std::sqrt(corral_.squared_distance()))
        corral_.add(key, std::span(point_).first(dimension_), counted(key));
    }
  }

  // What stands lower, in the direction of the nearest point x, than it would at the distance of x: w·x < a x·x. For
  // a bound it is enough that nothing stands beyond the key, w·x < 0.
  std::size_t lowest(double distance) {
    const auto x = corral_.nearest();
    for (std::size_t c = 0; c < dimension_; ++c) query_[c] = -x[c];
    query_[dimension_] = margins_ == Margins::exact ? corral_.squared_distance() : 0;
    if (directions_.offsets && query_[dimension_ - 1] < 0 && !corral_.contains(kRay)) return kRay;
    const TopScore top = top_score_in<double>(directions_.points, directions_.points.size(), 0,
                                              directions_.points.panels(), query_.data(), directions_.own);
    const double least = margins_ == Margins::exact ? error_ * distance : -error_ * distance;
    return top.index != kNone && top.score > least ? top.index : kNone;
  }

  bool enclosed(Found& found) {
    const Corral::Enclosure enclosure = corral_.enclosure(directions_.error, 0);
    return enclosure.proven && take_cover(corral_.weights(), enclosure.radius, found);
  }

  bool take_cover(std::span<const double> weights, double radius, Found& found) const {
    std::vector<CoverTerm> cover;
    double total = 0;
    for (std::size_t a = 0; a < corral_.size(); ++a) total += true_weight(a, weights[a]);
    for (std::size_t a = 0; a < corral_.size(); ++a) {
      if (corral_.members()[a] == kRay) continue;
      const double weight = true_weight(a, weights[a]) / total;
      if (!(weight >= std::numeric_limits<double>::min())) return false;  // more decades than doubles have
      cover.push_back({corral_.members()[a], weight});
    }
    std::sort(cover.begin(), cover.end(), [](const auto& a, const auto& b) { return a.index < b.index; });
    found = {};
    found.kind = Found::Kind::unselectable;
    found.cover = std::move(cover);
    found.radius = radius;
    return true;
  }

  // Of k_j, where the corral has that of w_j, and counts far keys for more than they do.
  double true_weight(std::size_t a, double weight) const {
    const std::size_t key = corral_.members()[a];
    return key == kRay ? 0 : std::ldexp(weight, directions_.least - directions_.exponents[key]);
  }

  // Both sides of the margin: under the unit query towards the key every other key is looked at once more; and the
  // members' hull holds a point no farther than its upper bound.
  void prove_margin(Found& found) {
    const double distance = std::sqrt(corral_.squared_distance());
    double total = 0, size = 0;
    std::vector<double> point(dimension_, 0.0);
    for (std::size_t a = 0; a < corral_.size(); ++a) {
      const double weight = corral_.weights()[a];
      if (!(weight > 0)) continue;
      take_point(corral_.members()[a]);
      for (std::size_t c = 0; c < dimension_; ++c) point[c] += weight * point_[c];
      size += weight;
      total += true_weight(a, weight);
    }
    if (total > 0) {
      const double rounding =
          3 * static_cast<double>(dimension_ + corral_.size() + 4) * kUnit + 2 * directions_.error;
      const double most = std::sqrt(dot(point.data(), point.data(), dimension_)) + size * rounding;
      found.at_most = most / total * (1 + 8 * kUnit);
    }
    if (!(distance > 0)) return;
    const auto x = corral_.nearest();
    for (std::size_t c = 0; c < dimension_; ++c) query_[c] = -x[c] / distance;
    if (directions_.offsets) query_[dimension_ - 1] = std::max(query_[dimension_ - 1], 0.0);
    const double length = std::sqrt(dot(query_.data(), query_.data(), dimension_)) *
                          (1 + static_cast<double>(dimension_ + 8) * kUnit);
    const double least = least_advantage(1.01 * error_) / length * (1 - 8 * kUnit);
    if (!(least > 0)) return;
    found.kind = Found::Kind::selectable;
    found.margin = least;
    found.query.assign(query_.begin(), query_.begin() + static_cast<std::ptrdiff_t>(dimension_));
    found.widest = found.margin >= kWidestShare * found.at_most;
  }

  // No key stands nearer under the query than this, in units of s.
  double least_advantage(double error) const {
    double least = kInfinity;
    for_scores([&](std::size_t key, double score) {
      least = std::min(least, std::ldexp(score - error, directions_.exponents[key] - directions_.least));
    });
    return least;
  }

  // The nearest point of the members' affine hull, and its weights, to some 100 bits: what the inverse in doubles makes of
  // the residual is taken off the weights until nothing is left. False if that does not end, or if a weight is not
  // positive after all (`leaving`).
  bool refine(std::size_t& leaving) {
    const std::size_t c = corral_.size();
    wide_weights_.assign(c, {});
    for (std::size_t a = 0; a < c; ++a) wide_weights_[a].high = corral_.weights()[a];
    std::vector<Wide> along(c);
    std::vector<double> column(c + 24);
    double before = kInfinity;
    bool exact = false;
    for (int round = 0; round < 8 && !exact; ++round) {
      Wide total;
      for (std::size_t a = 0; a < c; ++a) total = total + wide_weights_[a] * counted(corral_.members()[a]);
      const Wide factor = Wide{2, 0} - total;  // 1/total, but for its square
      for (Wide& weight : wide_weights_) weight = weight * factor;
      nearest_.assign(dimension_, {});
      for (std::size_t a = 0; a < c; ++a)
        add_multiple(wide_weights_[a], wide(corral_.members()[a]), nearest_);
      Wide mean;
      for (std::size_t a = 0; a < c; ++a) {
        along[a] = dot(wide(corral_.members()[a]), nearest_);
        mean = mean + wide_weights_[a] * along[a];
      }
      for (std::size_t a = 0; a < c; ++a) column[a] = (along[a] - mean * counted(corral_.members()[a])).high;
      const std::span<const double> off = corral_.correction({column.data(), c});
      double largest = 0, size = 0;
      for (std::size_t a = 0; a < c; ++a) {
        wide_weights_[a] = wide_weights_[a] - Wide{off[a], 0};
        largest = std::max(largest, std::abs(off[a])), size = std::max(size, wide_weights_[a].high);
      }
      exact = largest < kRefined * size;
      if (!exact && !(largest < 0.5 * before)) break;
      before = largest;
    }
    if (!exact) return false;
    leaving = kNone;
    for (std::size_t a = 0; a < c; ++a)
      if (!(wide_weights_[a].high > 0) &&
          (leaving == kNone || wide_weights_[a].high < wide_weights_[leaving].high))
        leaving = a;
    nearest_.assign(dimension_, {});
    for (std::size_t a = 0; a < c; ++a) add_multiple(wide_weights_[a], wide(corral_.members()[a]), nearest_);
    return leaving == kNone;
  }

  const std::vector<Wide>& wide(std::size_t key) {
    auto& direction = wides_[key];
    if (direction.empty()) direction = wide_direction(set_, directions_, key);
    return direction;
  }

  double wide_distance() const {
    double largest = 0, squares = 0;
    for (const Wide& x : nearest_) largest = std::max(largest, std::abs(x.high));
    if (!(largest > 0)) return 0;
    for (const Wide& x : nearest_) squares += (x.high / largest) * (x.high / largest);
    return largest * std::sqrt(squares);
  }
  // Σ μ, and what the nearest point may be off.
  double sum_of_weights() const {
    double sum = 0;
    for (const Wide& weight : wide_weights_) sum += weight.high;
    return sum;
  }
  double wide_error_of_nearest() const {
    const double steps = 4 * static_cast<double>(corral_.size() + 4) * kWideError;
    return 1.01 * sum_of_weights() *
           (std::sqrt(static_cast<double>(dimension_)) * 2 * steps + directions_.wide_error());
  }
  // Of w·q for |q| ≤ 1.01.
  double wide_error_of_score() const {
    return 5 * static_cast<double>(dimension_ + 4) * kWideError + 1.02 * directions_.wide_error();
  }

  void look_wide(std::size_t most_steps, Found& found) {
    double least = kInfinity;
    for (std::size_t step = 0; step < most_steps; ++step) {
      std::size_t leaving = kNone;
      if (!refine(leaving)) {
        if (leaving == kNone || !corral_.drop(leaving)) return;
        continue;
      }
      if (corral_.spans()) {
        enclosed_wide(found);
        return;
      }
      const double distance = wide_distance();
      if (!(distance > kNothing * sum_of_weights()) || !(distance < least)) return;
      least = distance;
      for (std::size_t c = 0; c < dimension_; ++c) {
        const Wide q = nearest_[c] * (-1 / distance);
        wide_query_.resize(dimension_);
        wide_query_[c] = q;
        query_[c] = q.high;
      }
      const std::size_t rival = wide_rival(distance);
      if (rival == kNone) {
        prove_wide_margin(distance, found);
        return;
      }
      take_point(rival);
      if (corral_.contains(rival) ||
          !corral_.push(rival, std::span(point_).first(dimension_), counted(rival))) {
        prove_wide_margin(distance, found);
        return;
      }
    }
  }

  // Doubles tell of most keys that they stand higher.
  std::size_t wide_rival(double distance) {
    const double enough = margins_ == Margins::exact ? 1 - kRivalShare : kEnoughForBound;
    query_[dimension_] = enough * distance;
    const TopScore top = top_score_in<double>(directions_.points, directions_.points.size(), 0,
                                              directions_.points.panels(), query_.data(), directions_.own);
    if (top.index == kNone) return kNone;
    if (top.score > error_) return top.index;
    std::size_t rival = kNone;
    double lowest = 0;
    for_scores([&](std::size_t key, double score) {
      if (score - enough * distance * wanted(key) > error_) return;
      const Wide exact = -dot(wide(key), wide_query_);
      const double above = (exact - Wide{enough * distance, 0} * wanted(key)).high;
      if (above < lowest) rival = key, lowest = above;
    });
    return rival;
  }

  void prove_wide_margin(double distance, Found& found) {
    double total = 0;
    for (std::size_t a = 0; a < corral_.size(); ++a)
      total +=
          std::ldexp(wide_weights_[a].high, directions_.least - directions_.exponents[corral_.members()[a]]);
    const double most =
        total > 0 ? (distance * (1 + 0x1p-40) + wide_error_of_nearest()) / total * (1 + 0x1p-40) : 0;
    if (most > 0 && (!(found.at_most > 0) || most < found.at_most)) found.at_most = most;
    const double length = std::sqrt(dot(query_.data(), query_.data(), dimension_)) * (1 + 0x1p-40);
    double least = kInfinity;
    for_scores([&](std::size_t key, double score) {
      double sure = score - 1.01 * error_;
      const int exponent = directions_.exponents[key] - directions_.least;
      if (!(std::ldexp(sure, exponent) > 2 * distance))
        sure = std::max(sure, (-dot(wide(key), wide_query_)).high * (1 - 0x1p-50) - wide_error_of_score());
      least = std::min(least, std::ldexp(sure, exponent));
    });
    least = least / length * (1 - 8 * kUnit);
    if (!(least > found.margin)) return;
    found.kind = Found::Kind::selectable;
    found.margin = least;
    found.query.resize(dimension_), found.query_rest.resize(dimension_);
    for (std::size_t c = 0; c < dimension_; ++c)
      found.query[c] = wide_query_[c].high, found.query_rest[c] = wide_query_[c].low;
    found.widest = found.margin >= kWidestShare * found.at_most;
  }

  void enclosed_wide(Found& found) {
    std::vector<double> weights;
    for (const Wide& weight : wide_weights_) weights.push_back(weight.high);
    const double off = 2 * (wide_distance() + wide_error_of_nearest() + 4 * kRefined * sum_of_weights());
    const Corral::Enclosure enclosure = corral_.enclosure(directions_.error, 0, weights, off);
    if (enclosure.proven) take_cover(weights, enclosure.radius, found);
  }

  // body(key, q·(key's direction) from the key's side: the score of the key itself above that of the other)
  template <class Body>
  void for_scores(const Body& body) const {
    double scores[Panels::kWidth];
    const Panels& points = directions_.points;
    for (std::size_t p = 0; p < points.panels(); ++p) {
      const double* row = points.panel(p) + Panels::kWidth;
      std::fill(scores, scores + Panels::kWidth, 0.0);
      for (std::size_t c = 0; c < dimension_; ++c, row += Panels::kWidth)
        for (std::size_t lane = 0; lane < Panels::kWidth; ++lane) scores[lane] -= query_[c] * row[lane];
      const std::size_t first = p * Panels::kWidth, size = std::min(Panels::kWidth, points.size() - first);
      for (std::size_t lane = 0; lane < size; ++lane)
        if (first + lane != directions_.own) body(first + lane, scores[lane]);
    }
  }

  const PlacedKeys& set_;
  const Directions& directions_;
  std::size_t dimension_;
  Margins margins_;
  Corral corral_;
  std::vector<double> point_, query_;  // with the count in the last place
  double error_ = 0;
  std::vector<Wide> wide_weights_, nearest_, wide_query_;
  std::map<std::size_t, std::vector<Wide>> wides_;
};

Found nearest_of(const PlacedKeys& set, const Directions& directions, Margins margins,
                 std::span<const std::size_t> hint) {
  return Nearest(set, directions, margins).run(hint);
}

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normscope {
namespace {

HWY_EXPORT(nearest_of);

constexpr double kMostProducts = 0x1p28;  // that it may take to make the directions of one key
constexpr std::size_t kMostNumbers = std::size_t{1} << 25;
// Of 2⁻⁵³ in a direction's length; beyond it nothing would be proven.
constexpr double kMostError = 1e-10;

double scaled_by(double value, int exponent) {
  return std::abs(exponent) < 1000 ? value * std::ldexp(1.0, exponent) : std::ldexp(value, exponent);
}

}  // namespace

Directions directions_from(const PlacedKeys& set, std::size_t key, std::size_t count, double least_count) {
  const MatrixView<const double> points = set.exact_points();
  const std::size_t rank = points.cols;
  const bool reduced = set.hull.reduced();
  Directions out;
  out.own = key;
  out.offsets = set.frame.offsets;
  out.dimension = rank + (out.offsets ? 1 : 0);
  const double products =
      static_cast<double>(count) * static_cast<double>(rank) * (reduced ? static_cast<double>(rank) : 1.0);
  if (count < 2 || rank == 0 || products > kMostProducts || count * (out.dimension + 1) > kMostNumbers)
    return out;
  Matrix<double> directions(count, out.dimension + 1);
  out.exponents.assign(count, std::numeric_limits<int>::max());
  const double lift_size = reduced ? set.hull.lift.norm() : 0;
  Eigen::VectorXd difference(static_cast<Eigen::Index>(rank)), lifted(static_cast<Eigen::Index>(rank));
  out.error = 8 * 0x1p-53;
  for (std::size_t j = 0; j < count; ++j) {
    if (j == key) continue;
    double largest = 0;
    for (std::size_t c = 0; c < rank; ++c) {
      difference[static_cast<Eigen::Index>(c)] = points(j, c) - points(key, c);
      largest = std::max(largest, std::abs(difference[static_cast<Eigen::Index>(c)]));
    }
    const double offset = out.offsets ? set.exact_offsets[j] - set.exact_offsets[key] : 0;
    largest = std::max(largest, std::abs(offset));
    if (!(largest > 0 && std::isfinite(largest))) return out;
    const int size = std::ilogb(largest);
    const auto w = directions[j];
    for (std::size_t c = 0; c < rank; ++c)
      difference[static_cast<Eigen::Index>(c)] = scaled_by(difference[static_cast<Eigen::Index>(c)], -size);
    if (reduced) lifted.noalias() = set.hull.lift * difference;
    const Eigen::VectorXd& place = reduced ? lifted : difference;
    for (std::size_t c = 0; c < rank; ++c) w[c] = place[static_cast<Eigen::Index>(c)];
    if (out.offsets) w[rank] = scaled_by(offset, -size);
    double squares = 0;
    for (std::size_t c = 0; c < out.dimension; ++c) squares += w[c] * w[c];
    if (!(squares > 0)) return out;
    const int length = std::ilogb(std::sqrt(squares));
    for (std::size_t c = 0; c < out.dimension; ++c) w[c] = std::ldexp(w[c], -length);
    out.exponents[j] = size + length;
    if (reduced)
      out.error = std::max(out.error, 1.01 * static_cast<double>(rank + 8) * 0x1p-53 *
                                          std::ldexp(lift_size * difference.norm() + 1, -length));
  }
  if (!(out.error < kMostError)) return out;
  out.least = *std::min_element(out.exponents.begin(), out.exponents.end());
  out.points = Panels(out.dimension + 1);
  out.points.reserve(count);
  out.counts.assign(count, 0);
  for (std::size_t j = 0; j < count; ++j) {
    if (j != key) {
      const double exact = std::ldexp(1.0, std::max(out.least - out.exponents[j], -1000));
      out.counts[j] = std::max(exact, least_count);
      directions(j, out.dimension) = std::max(exact, least_count / 2);
    }
    out.points.push(std::as_const(directions)[j]);
  }
  return out;
}

std::vector<Wide> wide_direction(const PlacedKeys& set, const Directions& directions, std::size_t key) {
  const MatrixView<const double> points = set.exact_points();
  const std::size_t rank = points.cols;
  const int exponent = -directions.exponents[key];
  std::vector<Wide> difference(rank);
  for (std::size_t c = 0; c < rank; ++c) {
    const Wide whole = wide_difference(points(key, c), points(directions.own, c));
    difference[c] = {scaled_by(whole.high, exponent), scaled_by(whole.low, exponent)};
  }
  if (!set.hull.reduced()) return difference;
  std::vector<Wide> lifted(rank);
  for (std::size_t c = 0; c < rank; ++c)
    for (std::size_t k = 0; k < rank; ++k)
      lifted[c] = lifted[c] +
                  difference[k] * set.hull.lift(static_cast<Eigen::Index>(c), static_cast<Eigen::Index>(k));
  return lifted;
}

namespace {

Found search_directions(const PlacedKeys& set, const Directions& directions, Margins margins,
                        std::span<const std::size_t> hint) {
  if (directions.points.size() == 0) return {};
  Found found = HWY_DYNAMIC_DISPATCH(nearest_of)(set, directions, margins, hint);
  found.own_place = true;
  // Units of the frame are powers of two, too.
  const int unit = directions.least - std::ilogb(set.hull.unit);
  for (double* length : {&found.margin, &found.at_most, &found.radius}) {
    *length = std::ldexp(*length, unit);
    // Rounded to none, or to fewer digits.
    if (*length != 0 && *length < std::numeric_limits<double>::min()) return {};
    if (!std::isfinite(*length)) return {};
  }
  return found;
}

}  // namespace

Found search_from_own_place(const PlacedKeys& set, std::size_t key, std::size_t count, Margins margins,
                            std::span<const std::size_t> hint) {
  Found best;
  std::vector<std::size_t> from(hint.begin(), hint.end());
  for (const double least_count : kLeastCounts) {
    const Directions directions = directions_from(set, key, count, least_count);
    Found found = search_directions(set, directions, margins, from);
    if (found.kind == Found::Kind::unselectable) return found;
    if (!found.hint.empty()) from = found.hint;
    if (found.at_most > 0 && best.at_most > 0) found.at_most = std::min(found.at_most, best.at_most);
    if (found.kind == Found::Kind::selectable ? found.margin > best.margin
                                              : best.kind == Found::Kind::unclear)
      best = std::move(found);
    else if (found.at_most > 0)
      best.at_most = found.at_most;
    best.widest = best.margin > 0 && best.margin >= kWidestShare * best.at_most;
    const bool wanted = best.kind == Found::Kind::selectable && (margins == Margins::bound || best.widest);
    // Where no key is so far away another try would be the same.
    const bool far = directions.points.size() > 0 &&
                     std::any_of(directions.exponents.begin(), directions.exponents.end(), [&](int exponent) {
                       return exponent != std::numeric_limits<int>::max() &&
                              directions.least - exponent < std::ilogb(kLeastCounts[2]);
                     });
    if (wanted || !far) return best;
  }
  best.widest = best.margin > 0 && best.margin >= kLastWidestShare * best.at_most;
  return best;
}

}  // namespace normscope
#endif

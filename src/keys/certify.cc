#include "keys/certify.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/decompose.h"
#include "keys/exact.h"
#include "keys/exact_margin.h"
#include "normscope/random.h"

namespace normscope {
namespace {

// The frame's witness on the original keys.
std::vector<double> witness(const PlacedKeys& set, std::span<const double> frame_query, double margin,
                            std::size_t key) {
  const std::size_t rank = set.hull.rank;
  std::vector<double> query(frame_query.begin(), frame_query.begin() + static_cast<std::ptrdiff_t>(rank));
  if (set.frame.offsets) {
    // The query proper is q/t. If t is (nearly) 0 the key wins for every large multiple of q: t may rise
    // until the offsets eat half the margin.
    double spread = 0;
    for (std::size_t k = 0; k < set.frame.points.rows(); ++k)
      spread = std::max(spread, std::abs(set.frame.points(k, rank)));
    const double t = std::max(frame_query[rank], margin / (8 * spread));
    for (double& q : query) q /= t;
  }
  // Off the hull keys differ by noise; a query along the hull is the natural one while its margin drowns
  // that. Keys that are equal but for noise tie only under a query that does not see the noise.
  const bool along_hull = margin * set.hull.unit > 4 * set.hull.noise && set.groups.members[key].size() == 1;
  return along_hull ? set.hull.query(query) : set.hull.kept_query(query);
}

// A key that scores no lower than this one under the query, `suspect` if that does; kNone: this one wins.
std::size_t winner(const PlacedKeys& set, std::span<const double> query, std::size_t key,
                   std::size_t suspect = kNone) {
  const auto beats = [&](std::size_t k) {
    return exact_score_difference_sign(query, set.keys, set.offsets, set.groups.first[key],
                                       set.groups.first[k]) <= 0;
  };
  if (suspect != kNone && beats(suspect)) return suspect;
  for (std::size_t k = 0; k < set.groups.first.size(); ++k)
    if (k != key && beats(k)) return k;
  return kNone;
}

bool wins(const PlacedKeys& set, std::span<const double> query, std::size_t key) {
  return winner(set, query, key) == kNone;
}

bool ties_exactly(const PlacedKeys& set, std::span<const double> query, std::size_t key,
                  std::span<const std::size_t> others) {
  for (std::size_t k = 0; k < set.groups.first.size(); ++k) {
    if (k == key) continue;
    const int sign =
        exact_score_difference_sign(query, set.keys, set.offsets, set.groups.first[key], set.groups.first[k]);
    if (sign != (std::binary_search(others.begin(), others.end(), k) ? 0 : 1)) return false;
  }
  return true;
}

// On all coordinates; a direction is scaled by a power of two to about unit size, a query is not.
std::vector<double> rounded_query(const PlacedKeys& set, const std::vector<Rational>& on_kept) {
  constexpr double largest = std::numeric_limits<double>::max();
  std::vector<double> query(set.keys.cols, 0.0);
  const Rational scale = set.exact_offsets.empty() ? power_of_two_below(on_kept) : Rational(1);
  for (std::size_t c = 0; c < on_kept.size(); ++c)
    query[set.hull.kept[c]] =
        std::clamp(Rational(on_kept[c] / scale).convert_to<double>(), -largest, largest);
  return query;
}

// The witness in doubles: of the exact witnesses at hand the first whose rounding passes the exact test.
// The cone of witnesses can be narrower than an ulp; then multiples of it are rounded, which lands
// elsewhere each time, and if that does not help either the exact numbers themselves are the certificate.
void take_witness(const PlacedKeys& set, const ExactVerdict& exact, const std::vector<Rational>& widest,
                  std::size_t key, KeyVerdict& result) {
  constexpr int kTries = 3000;
  const bool tied = exact.verdict == Verdict::tied;
  const auto passes = [&](const std::vector<Rational>& on_kept) {
    result.witness = rounded_query(set, on_kept);
    return tied ? ties_exactly(set, result.witness, key, exact.tied_with) : wins(set, result.witness, key);
  };
  if (!widest.empty() && passes(widest)) return;
  const std::vector<Rational> query = exact_query(exact, set.exact_points(), set.exact_offsets, key);
  if (passes(query)) return;
  const std::vector<double> nearest = rounded_query(set, query);
  if (!tied && set.exact_offsets.empty()) {  // with offsets multiples are other queries
    Random random(key);
    const Rational scale = power_of_two_below(query);
    std::vector<double> rest(set.keys.cols, 0.0);
    for (std::size_t c = 0; c < query.size(); ++c)
      rest[set.hull.kept[c]] =
          Rational(query[c] / scale - rational(nearest[set.hull.kept[c]])).convert_to<double>();
    std::size_t rival = kNone;  // that beat the last one: it is asked first
    for (int attempt = 0; attempt < kTries; ++attempt) {
      const double factor = random.bits32() | 1U;
      for (std::size_t c = 0; c < nearest.size(); ++c)
        result.witness[c] = std::fma(nearest[c], factor, rest[c] * factor);
      rival = winner(set, result.witness, key, rival);
      if (rival == kNone) return;
    }
  }
  result.witness = nearest;
  result.exact_witness.assign(set.keys.cols, "0");
  for (std::size_t c = 0; c < query.size(); ++c) result.exact_witness[set.hull.kept[c]] = query[c].str();
}

// From kept coordinates to orthonormal ones, row by row; empty: the identity.
std::vector<double> lift_of(const PlacedKeys& set) {
  if (!set.hull.reduced()) return {};
  const Eigen::MatrixXd rows = set.hull.lift.transpose();  // Eigen keeps columns together
  return {rows.data(), rows.data() + rows.size()};
}

constexpr double kExact = 1e-6;  // of a margin: what a search may be short of it

// Where columns differ so much in size that lengths in the frame are not those of the keys. framed: what the margin
// is there at most.
void say_if_inexact(const PlacedKeys& set, double framed, KeyVerdict& result) {
  result.margin_at_most.reset();
  if (set.options.margins != Margins::exact || set.hull.length_error < kExact) return;
  const double most = set.at_most(framed);
  result.margin_at_most = most > 0 ? most : std::numeric_limits<double>::max();
}

// The widest margin; where that is beyond the effort, what the search knows of it.
ExactMargin widest_margin(const PlacedKeys& set, std::size_t key, const Found& found, KeyVerdict& result) {
  try {
    Effort effort(set.options.exact_effort);
    ExactMargin margin =
        exact_margin(set.exact_points(), set.exact_offsets, key, lift_of(set), found.hint, effort);
    const double framed = margin.margin / set.hull.unit;
    margin.margin = set.at_least(framed);
    say_if_inexact(set, framed * (1 + 1e-12), result);
    return margin;
  } catch (const BeyondEffort&) {
    if (const double most = set.at_most(found.at_most); most > 0) result.margin_at_most = most;
    return {set.at_least(found.margin), {}};
  }
}

Eigen::MatrixXd random_axes(std::size_t dimension, std::size_t stream) {
  const auto f = static_cast<Eigen::Index>(dimension);
  Random random(1, stream);
  Eigen::MatrixXd gaussian(f, f);
  for (Eigen::Index c = 0; c < f * f; ++c) gaussian.data()[c] = random.normal();
  return householder_qr(gaussian).thin_q();
}

// A ball around the key inside the hull: if the key, moved by ρ√f along every axis either way, stays
// covered, the ball of radius ρ does too. ρ is halved from the size of the set until that is proven. The
// axes are drawn at random, since sets that need this are often symmetric about the coordinate axes.
double measured_depth(const PlacedKeys& set, std::size_t key, KeySearch& search,
                      const LikelyVertices* likely) {
  const std::size_t f = set.frame.dimension;
  const Eigen::MatrixXd axes = random_axes(f, key);
  const auto point = set.frame.points[key];
  std::vector<double> place(f);
  const double root = std::sqrt(static_cast<double>(f));
  double radius = set.frame.largest_norm / root;
  for (int halving = 0; halving < 30 && radius > set.frame.point_error; ++halving, radius *= 0.5) {
    bool covered = true;
    for (std::size_t move = 0; move < 2 * f && covered; ++move) {
      const double step = (move % 2 == 0 ? 1 : -1) * radius * root;
      for (std::size_t c = 0; c < f; ++c)
        place[c] = point[c] + step * axes(static_cast<Eigen::Index>(c), static_cast<Eigen::Index>(move / 2));
      covered = search.decide({place, key, set.distinct(), likely, 0}).kind == Found::Kind::unselectable;
    }
    if (covered) return radius;
  }
  return 0;
}

}  // namespace

bool certify(const PlacedKeys& set, std::size_t key, const Found& found, KeyVerdict& result) {
  const double needed = set.robust_beyond(key);
  if (found.kind == Found::Kind::selectable) {
    result.verdict = Verdict::selectable;
    result.margin = set.at_least(found.margin);
    say_if_inexact(set, found.at_most > 0 ? found.at_most : found.margin / (1 - kExact), result);
    result.robust = found.margin > needed;
    if (set.options.certificates || set.options.exact || set.options.query_norm)
      result.witness = witness(set, found.query, found.margin, key);
    // Offsets far larger than the keys can ask for queries beyond the range of doubles.
    if (!std::all_of(result.witness.begin(), result.witness.end(), [](double q) { return std::isfinite(q); }))
      return false;
    if (!set.options.exact && !((set.frame.offsets || found.own_place) && set.options.certificates))
      return true;
    // With offsets a query has a size, which doubles may fail to hold: 1e-300 times a key of 1e300. And one found
    // from the key's own place may lose by its last rounding what it wins by.
    const bool holds = wins(set, result.witness, key);
    result.verified = holds && set.options.exact;
    return holds;
  }
  result.verdict = Verdict::unselectable;
  result.depth = set.at_least(found.radius);
  result.robust = found.radius > needed && set.cover_can_be_robust();
  if (set.options.certificates || set.options.exact) result.cover = found.cover;
  if (!set.options.exact) return true;
  std::vector<std::size_t> members;
  for (const CoverTerm& term : found.cover) members.push_back(term.index);
  std::vector<Rational> weights;
  try {
    Effort effort(set.options.exact_effort);
    weights = barycentric_coordinates(set.exact_points(), key, members, effort);
  } catch (const BeyondEffort&) {
    return true;  // proven by the error bound, not verified
  }
  Rational offset = 0;
  for (std::size_t a = 0; a < weights.size(); ++a) {
    if (weights[a] <= 0) return false;
    result.cover[a].weight = weights[a].convert_to<double>();
    if (!set.exact_offsets.empty()) offset += weights[a] * Rational(set.exact_offsets[members[a]]);
  }
  result.verified =
      !weights.empty() && (set.exact_offsets.empty() || offset >= Rational(set.exact_offsets[key]));
  return result.verified;
}

void widen(const PlacedKeys& set, std::size_t key, const Found& found, KeyVerdict& result) {
  const ExactMargin widest = widest_margin(set, key, found, result);
  result.margin = widest.margin;
  if (widest.query.empty()) return;
  result.exact_path = true;
  result.robust = result.margin > set.robust_beyond(key) * set.hull.unit;
  std::vector<double> query = rounded_query(set, widest.query);
  if (!result.witness.empty() && wins(set, query, key)) result.witness = std::move(query);
}

namespace {

// What is proven by a query that doubles do not hold, on the kept coordinates; without offsets.
ExactVerdict verdict_by_query(const PlacedKeys& set, const Found& found) {
  const std::size_t rank = set.hull.rank;
  std::vector<Rational> frame, on_kept(rank);
  for (std::size_t c = 0; c < rank; ++c)
    frame.push_back(rational(found.query[c]) + rational(found.query_rest[c]));
  if (set.hull.reduced()) {
    for (std::size_t c = 0; c < rank; ++c)
      for (std::size_t k = 0; k < rank; ++k)
        on_kept[c] +=
            rational(set.hull.lift(static_cast<Eigen::Index>(k), static_cast<Eigen::Index>(c))) * frame[k];
  } else {
    on_kept = std::move(frame);
  }
  Integer common = 1;  // of powers of two
  for (const Rational& q : on_kept) common = std::max(common, Integer(denominator(q)));
  ExactVerdict verdict;
  for (const Rational& q : on_kept)
    verdict.query.push_back(Integer(numerator(Rational(q * Rational(common)))));
  return verdict;
}

// Whether it wins exactly; doubles tell of most keys.
bool query_wins(const PlacedKeys& set, std::span<const Integer> query, std::size_t key) {
  const MatrixView<const double> points = set.exact_points();
  const int lowest = lowest_exponent(points.first_rows(set.distinct()));
  long top = 0;
  for (const Integer& q : query) top = std::max(top, bits(q));
  std::vector<double> rough;
  for (const Integer& q : query) rough.push_back(rounded(q, top));
  for (std::size_t j = 0; j < set.distinct(); ++j) {
    if (j == key) continue;
    double sum = 0, size = 0;
    for (std::size_t c = 0; c < rough.size(); ++c) {
      const double product = rough[c] * (points(key, c) - points(j, c));
      sum += product;
      size += std::abs(product);
    }
    if (sum > size * static_cast<double>(rough.size() + 6) * 0x1p-51 + 1e-290) continue;
    Integer exact = 0;
    for (std::size_t c = 0; c < rough.size(); ++c)
      exact += query[c] * (scaled(points(key, c), lowest) - scaled(points(j, c), lowest));
    if (exact <= 0) return false;
  }
  return true;
}

}  // namespace

KeyVerdict certify_exactly(const PlacedKeys& set, std::size_t key, const Found& found, KeySearch& search,
                           const LikelyVertices* likely) {
  ExactVerdict exact;
  bool by_query = found.kind == Found::Kind::selectable && !found.query_rest.empty();
  if (by_query) {
    exact = verdict_by_query(set, found);
    by_query = query_wins(set, exact.query, key);
  }
  try {
    Effort effort(set.options.exact_effort);
    if (!by_query)
      exact = decide_exactly(set.exact_points(), set.exact_offsets, set.distinct(), key, found.hint, effort);
  } catch (const BeyondEffort&) {
    KeyVerdict unknown;
    unknown.verdict = Verdict::undecided;
    if (const double most = set.at_most(found.at_most); most > 0) unknown.margin_at_most = most;
    return unknown;
  }
  KeyVerdict result;
  result.verdict = exact.verdict;
  result.exact_path = true;
  result.verified = true;
  const auto rounded_terms = [](const std::vector<ExactTerm>& terms) {
    std::vector<CoverTerm> out;
    out.reserve(terms.size());
    for (const ExactTerm& term : terms) out.push_back({term.index, term.weight.convert_to<double>()});
    return out;
  };
  if (set.options.certificates) {
    result.cover = rounded_terms(exact.cover);
    result.interior = rounded_terms(exact.interior);
    result.tied_with = exact.tied_with;
  }
  // Without certificates, where bounds of margins will do, 0 is one: the widest margin takes far longer in
  // rational arithmetic than the verdict.
  const KeyOptions& options = set.options;
  const bool bare =
      !options.certificates && !options.exact && !options.query_norm && options.margins == Margins::bound;
  if (by_query) result.margin = set.at_least(found.margin);
  if (exact.verdict != Verdict::unselectable && !bare) {
    ExactMargin widest{result.margin, {}};
    if (by_query && found.at_most == 0)
      say_if_inexact(set, found.margin / (1 - kExact), result);
    else if (exact.verdict == Verdict::selectable)
      widest = widest_margin(set, key, found, result);
    result.margin = widest.margin;
    take_witness(set, exact, widest.query, key, result);
  } else if (exact.verdict == Verdict::unselectable) {
    result.depth = set.at_least(measured_depth(set, key, search, likely));
  }
  const double needed = set.robust_beyond(key) * set.hull.unit;
  result.robust =
      (exact.verdict == Verdict::selectable && result.margin > needed) ||
      (exact.verdict == Verdict::unselectable && result.depth > needed && set.cover_can_be_robust());
  if (!set.options.certificates) result.witness.clear();
  return result;
}

}  // namespace normscope

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>

#include "keys/exact.h"
#include "keys/exact_margin.h"
#include "keys/hull.h"
#include "keys/search.h"
#include "keys/weight.h"
#include "normscope/error.h"
#include "normscope/keys.h"
#include "normscope/random.h"

namespace normscope {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::size_t kSmallSet = 192;       // up to here all keys are scanned every time
constexpr std::size_t kPiece = 16;           // keys decided by one task
constexpr std::size_t kManyDimensions = 24;  // from here on a key's rivals are its own, not the whole set's
constexpr std::size_t kBlocks = 32;          // each offers its best rival in a pass over all keys
constexpr std::size_t kFirstRound = 64, kLargestRound = 4096;

void check_input(MatrixView<const double> keys, std::span<const double> offsets) {
  if (keys.rows == 0 || keys.cols == 0)
    throw InputError(fmt::format("the set of keys is {} × {}: at least one key with one coordinate is needed",
                                 keys.rows, keys.cols));
  for (std::size_t i = 0; i < keys.rows; ++i)
    for (std::size_t c = 0; c < keys.cols; ++c)
      if (!std::isfinite(keys(i, c)))
        throw InputError(
            fmt::format("key {} (row {}, column {}, counted from 0) is {}: keys must be finite numbers", i, i,
                        c, std::isnan(keys(i, c)) ? "NaN" : "infinite"));
  if (offsets.empty()) return;
  if (offsets.size() != keys.rows)
    throw InputError(fmt::format("{} score offsets were given for {} keys: one per key is needed",
                                 offsets.size(), keys.rows));
  for (std::size_t i = 0; i < offsets.size(); ++i)
    if (!std::isfinite(offsets[i]))
      throw InputError(fmt::format("score offset {} (counted from 0) is {}: offsets must be finite numbers",
                                   i, std::isnan(offsets[i]) ? "NaN" : "infinite"));
}

void check_options(const KeyOptions& options) {
  const auto check = [](double value, const char* what) {
    if (!(value >= 0 && std::isfinite(value)))
      throw InputError(fmt::format("{} is {}: it must be a finite number of at least 0", what, value));
  };
  check(options.noise.value_or(0), "noise");
  check(options.query_norm.value_or(0), "query_norm");
  check(options.unit_roundoff, "unit_roundoff");
  check(options.offset_roundoff, "offset_roundoff");
  check(options.smallest_rounding, "smallest_rounding");
}

double norm(std::span<const double> v) {
  return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
}

// Groups of equal keys (in the coordinates that matter, and with equal offsets).
struct Groups {
  std::vector<std::size_t> first;                 // distinct key → its first index in the set, ascending
  std::vector<std::size_t> distinct_of;           // index → distinct key
  std::vector<std::vector<std::size_t>> members;  // distinct key → indices
};

Groups group_equal_keys(MatrixView<const double> keys, std::span<const double> offsets,
                        std::span<const std::size_t> kept) {
  const auto compare = [&](std::size_t a, std::size_t b) {
    for (std::size_t c : kept)
      if (keys(a, c) != keys(b, c)) return keys(a, c) < keys(b, c) ? -1 : 1;
    if (!offsets.empty() && offsets[a] != offsets[b]) return offsets[a] < offsets[b] ? -1 : 1;
    return 0;
  };
  std::vector<std::size_t> order(keys.rows);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const int sign = compare(a, b);
    return sign != 0 ? sign < 0 : a < b;
  });
  std::vector<std::size_t> leader(keys.rows);
  for (std::size_t k = 0; k < order.size(); ++k)
    leader[order[k]] = k > 0 && compare(order[k], order[k - 1]) == 0 ? leader[order[k - 1]] : order[k];
  Groups groups;
  groups.distinct_of.resize(keys.rows);
  groups.first.reserve(keys.rows);
  groups.members.reserve(keys.rows);
  for (std::size_t i = 0; i < keys.rows; ++i) {
    if (leader[i] == i) {
      groups.distinct_of[i] = groups.first.size();
      groups.first.push_back(i);
      groups.members.push_back({i});
    } else {
      groups.distinct_of[i] = groups.distinct_of[leader[i]];
      groups.members[groups.distinct_of[i]].push_back(i);
    }
  }
  return groups;
}

class SetDecider {
 public:
  SetDecider(MatrixView<const double> keys, std::span<const double> offsets, const KeyOptions& options,
             const Executor& executor)
      : keys_(keys), options_(options), executor_(executor) {
    // Equal offsets move all scores alike: no offsets at all.
    if (!std::all_of(offsets.begin(), offsets.end(), [&](double b) { return b == offsets[0]; }))
      offsets_ = offsets;
    // Yet if they are rounded numbers, a covered key may owe its verdict to that.
    rounded_equal_offsets_ = offsets_.empty() && !offsets.empty() && offsets[0] != 0 && !options.noise;
    hull_ = affine_hull(keys, options.rank, options.unit_roundoff, options.smallest_rounding);
    groups_ = group_equal_keys(keys, offsets_, hull_.kept);
  }

  KeySet run() {
    KeySet set;
    set.n = keys_.rows;
    set.d = keys_.cols;
    set.rank = hull_.rank;
    set.rank_tolerance = hull_.tolerance;
    set.keys.resize(keys_.rows);
    distinct_.resize(groups_.first.size());
    place_keys();
    if (distinct_.size() > 1) {
      decide_distinct();
    } else {
      distinct_[0].verdict = Verdict::selectable;
      distinct_[0].margin = kInfinity;
      distinct_[0].robust = true;
      distinct_[0].witness.assign(keys_.cols, 0.0);
      distinct_[0].verified = options_.exact;
    }
    for (std::size_t i = 0; i < keys_.rows; ++i) set.keys[i] = spread(i);
    if (options_.prefix || options_.query_norm) {
      executor_.for_each((keys_.rows + kPiece - 1) / kPiece, [&](std::size_t piece) {
        const auto search = make_key_search(frame_, Margins::bound);
        for (std::size_t i = piece * kPiece; i < std::min(keys_.rows, (piece + 1) * kPiece); ++i) {
          if (options_.prefix) set.keys[i].last_prefix = last_prefix(i, *search);
          if (options_.query_norm) add_largest_weight(i, set.keys[i]);
        }
      });
    }
    for (const KeyVerdict& key : set.keys) {
      count(set.counts, key.verdict);
      if (key.robust) count(set.robust_counts, key.verdict);
      set.exact_path += key.exact_path ? 1 : 0;
    }
    return set;
  }

 private:
  static void count(KeyCounts& counts, Verdict verdict) {
    switch (verdict) {
      case Verdict::selectable:
        ++counts.selectable;
        break;
      case Verdict::tied:
        ++counts.tied;
        break;
      case Verdict::unselectable:
        ++counts.unselectable;
        break;
    }
  }

  // Distinct keys: frame coordinates for the search, kept coordinates for exact arithmetic.
  void place_keys() {
    const std::size_t m = groups_.first.size(), rank = hull_.rank;
    frame_.offsets = !offsets_.empty();
    frame_.dimension = rank + (frame_.offsets ? 1 : 0);
    frame_.points = Matrix<double>(m, frame_.dimension);
    frame_.all = Panels(frame_.dimension);
    frame_.all.reserve(m);
    exact_points_ = Matrix<double>(m, hull_.kept.size());
    double middle = 0;
    if (frame_.offsets) {
      for (std::size_t i : groups_.first) middle += offsets_[i] / static_cast<double>(m);
      double spread = 0;
      for (std::size_t i : groups_.first) spread = std::max(spread, std::abs(offsets_[i] - middle));
      hull_.unit = std::max(hull_.unit, spread > 0 ? std::ldexp(1.0, std::ilogb(spread)) : 0.0);
    }
    for (std::size_t k = 0; k < m; ++k) {
      const std::size_t i = groups_.first[k];
      auto point = frame_.points[k];
      hull_.frame(keys_[i], point.data());
      if (frame_.offsets) {
        exact_offsets_.push_back(offsets_[i]);
        point[rank] = (offsets_[i] - middle) / hull_.unit;
      }
      frame_.all.push(point);
      frame_.largest_norm = std::max(frame_.largest_norm, norm(point));
      for (std::size_t c = 0; c < hull_.kept.size(); ++c) exact_points_(k, c) = keys_(i, hull_.kept[c]);
    }
    frame_.point_error = hull_.frame_error * frame_.largest_norm;
    // What rounding of the dtype (or the noise asked about) can do to one key, in frame units.
    wobble_.resize(m);
    const double root_d = std::sqrt(static_cast<double>(keys_.cols));
    for (std::size_t k = 0; k < m; ++k) {
      const std::size_t i = groups_.first[k];
      double squares = 0;  // in units, lest large keys overflow
      for (double value : keys_[i]) squares += (value / hull_.unit) * (value / hull_.unit);
      wobble_[k] =
          options_.unit_roundoff * std::sqrt(squares) + options_.smallest_rounding * root_d / hull_.unit;
      if (frame_.offsets)
        wobble_[k] = std::hypot(wobble_[k], options_.offset_roundoff * offsets_[i] / hull_.unit);
      if (options_.noise) wobble_[k] = *options_.noise / hull_.unit;
    }
    largest_wobble_ = *std::max_element(wobble_.begin(), wobble_.end());
  }

  void decide_distinct() {
    const std::size_t m = distinct_.size();
    if (m <= kSmallSet) {
      executor_.for_each((m + kPiece - 1) / kPiece, [&](std::size_t piece) {
        const auto search = make_key_search(frame_, options_.margins);
        for (std::size_t k = piece * kPiece; k < std::min(m, (piece + 1) * kPiece); ++k)
          decide_one(k, *search, nullptr);
      });
      return;
    }
    // Far keys first: they are likely vertices, and vertices are what near keys are covered by.
    std::vector<double> size(m);
    for (std::size_t k = 0; k < m; ++k) size[k] = norm(frame_.points[k]);
    std::vector<std::size_t> order(m);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return size[a] != size[b] ? size[a] > size[b] : a < b; });
    LikelyVertices likely;
    likely.panels = RoughPanels(frame_.dimension);
    likely.position_of.assign(m, kNone);
    add_extremes_along_axes(likely);

    std::vector<std::vector<std::size_t>> discovered;
    for (std::size_t begin = 0, round = kFirstRound; begin < m;
         begin += round, round = std::min(2 * round, kLargestRound)) {
      const std::size_t end = std::min(m, begin + round), pieces = (end - begin + kPiece - 1) / kPiece;
      discovered.assign(pieces, {});
      executor_.for_each(pieces, [&](std::size_t piece) {
        decide_piece(
            std::span(order).subspan(begin + piece * kPiece, std::min(kPiece, end - begin - piece * kPiece)),
            likely, discovered[piece]);
      });
      if (end == m) break;
      for (const auto& keys : discovered)
        for (std::size_t k : keys) likely.add(k, frame_);
      for (std::size_t k = begin; k < end; ++k)
        if (distinct_[order[k]].verdict == Verdict::selectable) likely.add(order[k], frame_);
    }
  }

  void add_extremes_along_axes(LikelyVertices& likely) const {
    const std::size_t f = frame_.dimension;
    std::vector<double> query(f);
    for (std::size_t c = 0; c < f; ++c)
      for (double sign : {1.0, -1.0}) {
        std::fill(query.begin(), query.end(), 0.0);
        query[c] = sign;
        likely.add(top_score(frame_.all, frame_.all.size(), query.data(), kNone).index, frame_);
      }
  }

  void decide_piece(std::span<const std::size_t> keys, const LikelyVertices& likely,
                    std::vector<std::size_t>& discovered) {
    if (frame_.dimension >= kManyDimensions) return decide_together(keys);
    // Many keys are settled by q = k_i − centre; one pass over all keys serves the whole piece.
    std::vector<bool> settled(keys.size(), false);
    if (options_.margins == Margins::bound && !frame_.offsets)
      settle_from_centre(keys, likely, settled, discovered);
    if (std::all_of(settled.begin(), settled.end(), [](bool done) { return done; })) return;
    const auto search = make_key_search(frame_, options_.margins);
    for (std::size_t k = 0; k < keys.size(); ++k)
      if (!settled[k]) decide_one(keys[k], *search, &likely);
    discovered.insert(discovered.end(), search->discovered.begin(), search->discovered.end());
  }

  // In many dimensions nearly every key is a vertex, and a key's nearest face is made of its own rivals. Each
  // key keeps a list of those; the searches of a piece run side by side on their lists and share the passes
  // over all keys.
  void decide_together(std::span<const std::size_t> keys) {
    const std::size_t f = frame_.dimension;
    struct Running {
      std::size_t key;
      LikelyVertices rivals;
      std::unique_ptr<KeySearch> search;
    };
    std::vector<std::unique_ptr<Running>> running;  // searches point at their rivals: these must not move
    std::vector<double> queries;
    std::vector<std::size_t> skips;
    for (std::size_t key : keys) {
      const auto point = frame_.points[key];
      queries.insert(queries.end(), point.begin(), point.end());
      if (frame_.offsets) queries.back() = std::max(queries.back(), 0.0);
      skips.push_back(key);
    }
    std::vector<TopScore> top(kBlocks * keys.size());
    top_scores_by_block(frame_.all, queries.data(), f, skips, kBlocks, top);
    for (std::size_t k = 0; k < keys.size(); ++k) {
      const TopScore best = best_of_blocks(top, k, keys.size());
      if (options_.margins == Margins::bound && !frame_.offsets && settle(keys[k], best.score)) continue;
      running.push_back(std::make_unique<Running>());
      Running& each = *running.back();
      each.key = keys[k];
      each.rivals.panels = RoughPanels(f);
      add_rivals(top, k, keys.size(), -kInfinity, each.rivals);
      each.search = make_key_search(frame_, options_.margins);
      each.search->start(question(each.key, &each.rivals, wobble_[each.key] + largest_wobble_));
    }
    while (true) {
      std::erase_if(running, [&](const std::unique_ptr<Running>& each) {
        if (!each->search->run()) return false;
        settle(each->key, each->search->take(), *each->search, nullptr);
        return true;
      });
      if (running.empty()) return;
      queries.clear(), skips.clear();
      for (const auto& each : running) {
        const auto query = each->search->query();
        queries.insert(queries.end(), query.begin(), query.end());
        skips.push_back(each->key);
      }
      top.resize(kBlocks * running.size());
      top_scores_by_block(frame_.all, queries.data(), f, skips, kBlocks, top);
      for (std::size_t k = 0; k < running.size(); ++k) {
        add_rivals(top, k, running.size(), running[k]->search->passing_score(), running[k]->rivals);
        running[k]->search->answer(best_of_blocks(top, k, running.size()));
      }
    }
  }

  static TopScore best_of_blocks(std::span<const TopScore> top, std::size_t k, std::size_t queries) {
    TopScore best = top[k];
    for (std::size_t b = 1; b < kBlocks; ++b)
      if (top[b * queries + k].score > best.score) best = top[b * queries + k];
    return best;
  }

  // The blocks' winners that score above `passing`, the best first, a dozen at most.
  void add_rivals(std::span<const TopScore> top, std::size_t k, std::size_t queries, double passing,
                  LikelyVertices& rivals) const {
    std::vector<TopScore> above;
    for (std::size_t b = 0; b < kBlocks; ++b)
      if (const TopScore& winner = top[b * queries + k]; winner.index != kNone && winner.score > passing)
        above.push_back(winner);
    std::sort(above.begin(), above.end(), [](const TopScore& a, const TopScore& b) {
      return a.score != b.score ? a.score > b.score : a.index < b.index;
    });
    if (above.size() > 12) above.resize(12);
    for (const TopScore& winner : above) rivals.add(winner.index, frame_);
  }

  void settle_from_centre(std::span<const std::size_t> keys, const LikelyVertices& likely,
                          std::vector<bool>& settled, std::vector<std::size_t>& discovered) {
    const std::size_t f = frame_.dimension;
    std::vector<std::size_t> slots, skips;
    std::vector<TopScore> top;
    for (std::size_t slot = 0; slot < keys.size(); ++slot) slots.push_back(slot);
    // Asking the likely vertices first pays only while they are few.
    if (4 * likely.panels.size() < frame_.all.size()) {
      std::vector<float> queries;
      for (std::size_t key : keys) {
        queries.insert(queries.end(), frame_.points[key].begin(), frame_.points[key].end());
        skips.push_back(likely.position(key));
      }
      top.resize(keys.size());
      top_scores(likely.panels, likely.panels.size(), queries.data(), f, skips, top);
      std::erase_if(slots, [&](std::size_t slot) {
        const auto point = frame_.points[keys[slot]];
        return std::inner_product(point.begin(), point.end(), point.begin(), 0.0) <= top[slot].score;
      });
      if (slots.empty()) return;
    }
    std::vector<double> queries;
    skips.clear();
    for (std::size_t slot : slots) {
      const auto point = frame_.points[keys[slot]];
      queries.insert(queries.end(), point.begin(), point.end());
      skips.push_back(keys[slot]);
    }
    top.resize(slots.size());
    top_scores(frame_.all, frame_.all.size(), queries.data(), f, skips, top);
    for (std::size_t s = 0; s < slots.size(); ++s) {
      settled[slots[s]] = settle(keys[slots[s]], top[s].score);
      if (!settled[slots[s]]) discovered.push_back(top[s].index);
    }
  }

  // Settles a key by q = k_i − centre, given the best score of the others under it.
  bool settle(std::size_t key, double best_score) {
    const auto point = frame_.points[key];
    const double squares = std::inner_product(point.begin(), point.end(), point.begin(), 0.0),
                 size = std::sqrt(squares);
    const double bound = (squares - best_score) / size - score_error(frame_, size);
    if (!(bound > wobble_[key] + largest_wobble_)) return false;
    Found found;
    found.kind = Found::Kind::selectable;
    found.margin = bound;
    found.query.assign(point.begin(), point.end());
    for (double& q : found.query) q /= size;
    return take(key, found);
  }

  Question question(std::size_t key, const LikelyVertices* likely, double enough) const {
    return {frame_.points[key], key, distinct_.size(), likely, enough};
  }

  void decide_one(std::size_t key, KeySearch& search, const LikelyVertices* likely) {
    settle(key, search.decide(question(key, likely, wobble_[key] + largest_wobble_)), search, likely);
  }

  void settle(std::size_t key, const Found& found, KeySearch& search, const LikelyVertices* likely) {
    if (found.kind == Found::Kind::unclear || !take(key, found)) take_exact(key, found, search, likely);
  }

  // Turns what the search proved into a verdict. False if rational arithmetic is asked for and disagrees.
  bool take(std::size_t key, const Found& found) {
    KeyVerdict& result = distinct_[key];
    const double needed = wobble_[key] + largest_wobble_;
    if (found.kind == Found::Kind::selectable) {
      result.verdict = Verdict::selectable;
      result.margin = found.margin * hull_.unit;
      result.robust = found.margin > needed;
      if (options_.certificates || options_.exact || options_.query_norm)
        result.witness = witness(found.query, found.margin, key);
      // Offsets far larger than the keys can ask for queries beyond the range of doubles.
      if (!std::all_of(result.witness.begin(), result.witness.end(),
                       [](double q) { return std::isfinite(q); }))
        return false;
      if (!options_.exact && !(frame_.offsets && options_.certificates)) return true;
      // With offsets a query has a size, which doubles may fail to hold: 1e-300 times a key of 1e300.
      const bool holds = wins(result.witness, key);
      result.verified = holds && options_.exact;
      return holds;
    }
    result.verdict = Verdict::unselectable;
    result.depth = found.radius * hull_.unit;
    result.robust = found.radius > needed && !rounded_equal_offsets_;
    if (options_.certificates || options_.exact) result.cover = found.cover;
    if (!options_.exact) return true;
    std::vector<std::size_t> members;
    for (const CoverTerm& term : found.cover) members.push_back(term.index);
    const std::vector<Rational> weights = barycentric_coordinates(exact_points_.view(), key, members);
    Rational offset = 0;
    for (std::size_t a = 0; a < weights.size(); ++a) {
      if (weights[a] <= 0) return false;
      result.cover[a].weight = weights[a].convert_to<double>();
      if (!exact_offsets_.empty()) offset += weights[a] * Rational(exact_offsets_[members[a]]);
    }
    result.verified = !weights.empty() && (exact_offsets_.empty() || offset >= Rational(exact_offsets_[key]));
    return result.verified;
  }

  // The frame's witness on the original keys.
  std::vector<double> witness(std::span<const double> frame_query, double margin, std::size_t key) const {
    const std::size_t rank = hull_.rank;
    std::vector<double> query(frame_query.begin(), frame_query.begin() + static_cast<std::ptrdiff_t>(rank));
    if (frame_.offsets) {
      // The query proper is q/t. If t is (nearly) 0 the key wins for every large multiple of q: t may rise
      // until the offsets eat half the margin.
      double spread = 0;
      for (std::size_t k = 0; k < frame_.points.rows(); ++k)
        spread = std::max(spread, std::abs(frame_.points(k, rank)));
      const double t = std::max(frame_query[rank], margin / (8 * spread));
      for (double& q : query) q /= t;
    }
    // Off the hull keys differ by noise; a query along the hull is the natural one while its margin drowns
    // that. Keys that are equal but for noise tie only under a query that does not see the noise.
    const bool along_hull = margin * hull_.unit > 4 * hull_.noise && groups_.members[key].size() == 1;
    return along_hull ? hull_.query(query) : hull_.kept_query(query);
  }

  bool wins(std::span<const double> query, std::size_t key) const {
    for (std::size_t k = 0; k < groups_.first.size(); ++k)
      if (k != key &&
          exact_score_difference_sign(query, keys_, offsets_, groups_.first[key], groups_.first[k]) <= 0)
        return false;
    return true;
  }

  bool ties_exactly(std::span<const double> query, std::size_t key,
                    std::span<const std::size_t> others) const {
    for (std::size_t k = 0; k < groups_.first.size(); ++k) {
      if (k == key) continue;
      const int sign =
          exact_score_difference_sign(query, keys_, offsets_, groups_.first[key], groups_.first[k]);
      if (sign != (std::binary_search(others.begin(), others.end(), k) ? 0 : 1)) return false;
    }
    return true;
  }

  void take_exact(std::size_t key, const Found& found, KeySearch& search, const LikelyVertices* likely) {
    const ExactVerdict exact =
        decide_exactly(exact_points_.view(), exact_offsets_, distinct_.size(), key, found.hint);
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
    if (options_.certificates) {
      result.cover = rounded_terms(exact.cover);
      result.interior = rounded_terms(exact.interior);
      result.tied_with = exact.tied_with;
    }
    if (exact.verdict != Verdict::unselectable) {
      ExactMargin widest{0, {}};
      if (exact.verdict == Verdict::selectable)
        widest = exact_margin(exact_points_.view(), exact_offsets_, key, metric(), found.hint);
      result.margin = widest.margin;
      take_witness(exact, widest.query, key, result);
    } else {
      result.depth = measured_depth(key, search, likely) * hull_.unit;
    }
    const double needed = (wobble_[key] + largest_wobble_) * hull_.unit;
    result.robust =
        (exact.verdict == Verdict::selectable && result.margin > needed) ||
        (exact.verdict == Verdict::unselectable && result.depth > needed && !rounded_equal_offsets_);
    if (!options_.certificates) result.witness.clear();
    distinct_[key] = std::move(result);
  }

  // The witness in doubles: of the exact witnesses at hand the first whose rounding passes the exact test.
  // The cone of witnesses can be narrower than an ulp; then multiples of it are rounded, which lands
  // elsewhere each time, and if that does not help either the exact numbers themselves are the certificate.
  void take_witness(const ExactVerdict& exact, const std::vector<Rational>& widest, std::size_t key,
                    KeyVerdict& result) const {
    constexpr int kTries = 3000;
    const bool tied = exact.verdict == Verdict::tied;
    const auto passes = [&](const std::vector<Rational>& on_kept) {
      result.witness = rounded_query(on_kept);
      return tied ? ties_exactly(result.witness, key, exact.tied_with) : wins(result.witness, key);
    };
    if (!widest.empty() && passes(widest)) return;
    const std::vector<Rational> query = exact_query(exact, exact_points_.view(), exact_offsets_, key);
    if (passes(query)) return;
    if (!tied && exact_offsets_.empty()) {  // with offsets multiples are other queries
      Random random(key);
      std::vector<Rational> multiple = query;
      for (int attempt = 0; attempt < kTries; ++attempt) {
        const Rational factor = random.bits32() | 1U;
        for (std::size_t c = 0; c < query.size(); ++c) multiple[c] = query[c] * factor;
        if (passes(multiple)) return;
      }
    }
    result.witness = rounded_query(query);
    result.exact_witness.assign(keys_.cols, "0");
    for (std::size_t c = 0; c < query.size(); ++c) result.exact_witness[hull_.kept[c]] = query[c].str();
  }

  // On all coordinates; a direction is scaled by a power of two to about unit size, a query is not.
  std::vector<double> rounded_query(const std::vector<Rational>& on_kept) const {
    constexpr double largest = std::numeric_limits<double>::max();
    std::vector<double> query(keys_.cols, 0.0);
    const Rational scale = exact_offsets_.empty() ? power_of_two_below(on_kept) : Rational(1);
    for (std::size_t c = 0; c < on_kept.size(); ++c)
      query[hull_.kept[c]] = std::clamp(Rational(on_kept[c] / scale).convert_to<double>(), -largest, largest);
    return query;
  }

  // What makes a dot product of kept coordinates that of the keys in their hull; empty: the identity.
  std::vector<double> metric() const {
    if (!hull_.reduced()) return {};
    const Eigen::MatrixXd product = hull_.lift.transpose() * hull_.lift;
    return {product.data(), product.data() + product.size()};
  }

  // A ball around the key inside the hull: if the key, moved by ρ√f along every axis either way, stays
  // covered, the ball of radius ρ does too. ρ is halved from the size of the set until that is proven. The
  // axes are drawn at random, since sets that need this are often symmetric about the coordinate axes.
  double measured_depth(std::size_t key, KeySearch& search, const LikelyVertices* likely) const {
    const std::size_t f = frame_.dimension;
    const Eigen::MatrixXd axes = random_axes(f, key);
    const auto point = frame_.points[key];
    std::vector<double> place(f);
    const double root = std::sqrt(static_cast<double>(f));
    double radius = frame_.largest_norm / root;
    for (int halving = 0; halving < 30 && radius > frame_.point_error; ++halving, radius *= 0.5) {
      bool covered = true;
      for (std::size_t move = 0; move < 2 * f && covered; ++move) {
        const double step = (move % 2 == 0 ? 1 : -1) * radius * root;
        for (std::size_t c = 0; c < f; ++c)
          place[c] =
              point[c] + step * axes(static_cast<Eigen::Index>(c), static_cast<Eigen::Index>(move / 2));
        covered = search.decide({place, key, distinct_.size(), likely, 0}).kind == Found::Kind::unselectable;
      }
      if (covered) return radius;
    }
    return 0;
  }

  static Eigen::MatrixXd random_axes(std::size_t dimension, std::size_t stream) {
    const auto f = static_cast<Eigen::Index>(dimension);
    Random random(1, stream);
    Eigen::MatrixXd gaussian(f, f);
    for (Eigen::Index c = 0; c < f * f; ++c) gaussian.data()[c] = random.normal();
    return Eigen::HouseholderQR<Eigen::MatrixXd>(gaussian).householderQ() * Eigen::MatrixXd::Identity(f, f);
  }

  // The verdict of index i from that of its distinct key: equal keys tie.
  KeyVerdict spread(std::size_t i) {
    const std::size_t own = groups_.distinct_of[i];
    const auto& equals = groups_.members[own];
    KeyVerdict result = equals.back() == i ? std::move(distinct_[own]) : distinct_[own];
    for (CoverTerm& term : result.cover) term.index = groups_.first[term.index];
    for (CoverTerm& term : result.interior) term.index = groups_.first[term.index];
    std::vector<std::size_t> ties;
    for (std::size_t k : result.tied_with)
      ties.insert(ties.end(), groups_.members[k].begin(), groups_.members[k].end());
    if (equals.size() > 1 && result.verdict != Verdict::unselectable) {
      if (result.verdict == Verdict::selectable) {
        result.verdict = Verdict::tied;
        result.margin = 0;
        result.robust = false;
        if (options_.certificates) result.cover = {{equals[0] == i ? equals[1] : equals[0], 1.0}};
      }
      if (options_.certificates)
        for (std::size_t j : equals)
          if (j != i) ties.push_back(j);
    }
    std::sort(ties.begin(), ties.end());
    result.tied_with = std::move(ties);
    return result;
  }

  // Selectability only shrinks as keys are added, so the last prefix is found by bisection.
  std::size_t last_prefix(std::size_t i, KeySearch& search) const {
    const auto& equals = groups_.members[groups_.distinct_of[i]];
    if (equals[0] != i) return 0;
    const std::size_t limit = equals.size() > 1 ? equals[1] : keys_.rows;
    std::size_t low = i + 1, high = limit;  // prefix lengths
    const auto selectable = [&](std::size_t length) {
      return selectable_in_prefix(groups_.distinct_of[i], length, search);
    };
    if (!selectable(low)) return 0;
    if (selectable(high)) return high;
    while (high - low > 1) {
      const std::size_t middle = low + (high - low) / 2;
      (selectable(middle) ? low : high) = middle;
    }
    return low;
  }

  bool selectable_in_prefix(std::size_t key, std::size_t length, KeySearch& search) const {
    // Distinct keys are in order of first appearance, so a prefix of the keys is a prefix of them.
    const auto end = std::lower_bound(groups_.first.begin(), groups_.first.end(), length);
    const auto count = static_cast<std::size_t>(end - groups_.first.begin());
    if (count == 1) return true;
    const Found found = search.decide({frame_.points[key], key, count, nullptr, 0});
    if (found.kind != Found::Kind::unclear) return found.kind == Found::Kind::selectable;
    return decide_exactly(exact_points_.view(), exact_offsets_, count, key, found.hint).verdict ==
           Verdict::selectable;
  }

  void add_largest_weight(std::size_t i, KeyVerdict& key) const {
    // All keys count in the softmax, equal ones too; orthonormal frame coordinates keep ‖q‖ and q·(k_j −
    // k_i).
    const std::size_t rank = hull_.rank;
    Matrix<double> points(keys_.rows, rank);
    std::vector<double> start(rank);
    for (std::size_t j = 0; j < keys_.rows; ++j)
      for (std::size_t c = 0; c < rank; ++c)
        points(j, c) = frame_.points(groups_.distinct_of[j], c) * hull_.unit;
    if (!key.witness.empty())
      for (std::size_t c = 0; c < rank; ++c) {
        if (!hull_.reduced()) {
          start[c] = key.witness[c];
          continue;
        }
        for (std::size_t e = 0; e < keys_.cols; ++e)
          start[c] +=
              hull_.basis(static_cast<Eigen::Index>(e), static_cast<Eigen::Index>(c)) * key.witness[e];
      }
    const LargestWeight weight = largest_weight(points.view(), offsets_, i, *options_.query_norm, start);
    key.max_weight = weight.attained;
    key.max_weight_bound = weight.bound;
    if (!options_.certificates) key.witness.clear();
  }

  MatrixView<const double> keys_;
  std::span<const double> offsets_;
  const KeyOptions& options_;
  const Executor& executor_;
  AffineHull hull_;
  Groups groups_;
  FramedKeys frame_;
  Matrix<double> exact_points_;  // distinct × kept coordinates, as given
  std::vector<double> exact_offsets_;
  std::vector<double> wobble_;
  double largest_wobble_ = 0;
  bool rounded_equal_offsets_ = false;
  std::vector<KeyVerdict> distinct_;
};

}  // namespace

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::selectable:
      return "selectable";
    case Verdict::tied:
      return "tied";
    case Verdict::unselectable:
      return "unselectable";
  }
  return "";
}

KeySet decide_keys(MatrixView<const double> keys, std::span<const double> offsets, const KeyOptions& options,
                   const Executor& executor) {
  check_options(options);
  check_input(keys, offsets);
  return SetDecider(keys, offsets, options, executor).run();
}

std::vector<KeySet> decide_key_sets(std::span<const MatrixView<const double>> sets,
                                    std::span<const std::span<const double>> offsets,
                                    const KeyOptions& options, const Executor& executor) {
  if (!offsets.empty() && offsets.size() != sets.size())
    throw InputError(
        fmt::format("{} lists of score offsets were given for {} sets of keys: one per set is needed",
                    offsets.size(), sets.size()));
  check_options(options);
  const auto offsets_of = [&](std::size_t s) {
    return offsets.empty() ? std::span<const double>{} : offsets[s];
  };
  for (std::size_t s = 0; s < sets.size(); ++s) {
    try {
      check_input(sets[s], offsets_of(s));
    } catch (const InputError& error) {
      throw InputError(sets.size() == 1 ? error.what()
                                        : fmt::format("set {} of {}: {}", s, sets.size(), error.what()));
    }
  }
  std::vector<KeySet> results(sets.size());
  // Many sets: one task each. Few: the threads share the keys of one set. The results are the same.
  if (sets.size() >= 2 * static_cast<std::size_t>(executor.threads())) {
    const Executor alone(1);
    executor.for_each(sets.size(), [&](std::size_t s) {
      results[s] = SetDecider(sets[s], offsets_of(s), options, alone).run();
    });
  } else {
    for (std::size_t s = 0; s < sets.size(); ++s)
      results[s] = SetDecider(sets[s], offsets_of(s), options, executor).run();
  }
  return results;
}

}  // namespace normscope

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>

#include "core/run_pieces.h"
#include "core/working_order.h"
#include "keys/certify.h"
#include "keys/exact.h"
#include "keys/own_place.h"
#include "keys/placed.h"
#include "keys/products.h"
#include "keys/search.h"
#include "keys/weight.h"
#include "normscope/error.h"
#include "normscope/keys.h"

namespace normscope {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::size_t kSmallSet = 192;       // up to here all keys are scanned every time
constexpr std::size_t kPiece = 16;           // keys decided by one task
constexpr std::size_t kManyDimensions = 24;  // from here on a key's rivals are its own, not the whole set's
// Rivals taken from a pass over all keys: the longer it takes, the more it should bring.
constexpr std::size_t kLargeSet = 2048, kOffers = 12, kOffersOfLarge = 48;
constexpr double kWeightGap = 1e-12;   // of the logarithm of a largest weight
constexpr double kClosed = 1 - 1e-12;  // a margin this close to its upper bound needs no second look
constexpr std::size_t kFirstRound = 64, kLargestRound = 4096;
constexpr std::size_t kMostTies = std::size_t{1} << 23, kFewestTies = 16;  // listed, of all keys; of each

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
  check(options.exact_effort, "exact_effort");
}

void check_errors(std::span<const double> errors, std::size_t keys) {
  if (!errors.empty() && errors.size() != keys)
    throw InputError(
        fmt::format("{} errors were given for {} keys: one per key is needed", errors.size(), keys));
  for (std::size_t i = 0; i < errors.size(); ++i)
    if (!(errors[i] >= 0 && std::isfinite(errors[i])))
      throw InputError(fmt::format(
          "error {} (counted from 0) is {}: it must be a finite number of at least 0", i, errors[i]));
}

// Decides the distinct keys of a set, in an order and in pieces that suit it, and answers for all keys.
class SetDecider {
 public:
  SetDecider(MatrixView<const double> keys, std::span<const double> offsets, const KeyOptions& options,
             const Executor& executor)
      : placed_(keys, offsets, options, &executor),
        executor_(executor),
        distinct_(placed_.distinct()),
        offers_(placed_.distinct() < kLargeSet ? kOffers : kOffersOfLarge) {}

  KeySet run() {
    KeySet set;
    set.n = placed_.keys.rows;
    set.d = placed_.keys.cols;
    set.rank = placed_.hull.rank;
    set.rank_tolerance = placed_.hull.tolerance;
    set.matrix_rank = placed_.hull.matrix_rank;
    set.weakest_spread = placed_.hull.weakest;
    if (placed_.hull.reduced()) {
      set.kept = placed_.hull.kept;
      set.left_out = placed_.hull.noise;
    }
    set.keys.resize(placed_.keys.rows);
    if (distinct_.size() > 1) {
      decide_distinct();
    } else {
      distinct_[0].verdict = Verdict::selectable;
      distinct_[0].margin = kInfinity;
      distinct_[0].robust = true;
      distinct_[0].witness.assign(placed_.keys.cols, 0.0);
      distinct_[0].verified = placed_.options.exact;
    }
    for (std::size_t i = 0; i < placed_.keys.rows; ++i) set.keys[i] = spread(i);
    if (placed_.options.prefix || placed_.options.query_norm) {
      std::optional<WeightSearch> weights;
      if (placed_.options.query_norm) weights.emplace(weights_of_keys());
      const std::vector<std::size_t> all = in_order(placed_.keys.rows);
      for_pieces({"prefixes and weights", all}, set.keys,
                 [&](std::size_t, std::span<const std::size_t> keys) {
                   const auto search = make_key_search(placed_.frame, Margins::bound);
                   for (const std::size_t i : keys) {
                     if (placed_.options.prefix) look_at_prefixes(i, *search, set.keys[i]);
                     if (weights) add_largest_weight(*weights, i, set.keys[i]);
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
      case Verdict::undecided:
        ++counts.undecided;
        break;
    }
  }

  static std::vector<std::size_t> in_order(std::size_t count) {
    std::vector<std::size_t> all(count);
    std::iota(all.begin(), all.end(), std::size_t{0});
    return all;
  }

  void decide_distinct() {
    const std::size_t m = distinct_.size();
    if (m <= kSmallSet) {
      const std::vector<std::size_t> all = in_order(m);
      for_pieces({"keys", all, {}, true}, distinct_, [&](std::size_t, std::span<const std::size_t> keys) {
        const auto search = make_key_search(placed_.frame, placed_.options.margins);
        for (const std::size_t k : keys) decide_one(k, *search, nullptr);
      });
      return;
    }
    // Far keys first: they are likely vertices, and vertices are what near keys are covered by.
    std::vector<double> size(m);
    for (std::size_t k = 0; k < m; ++k) size[k] = placed_.distance(k);
    std::vector<std::size_t> order = in_order(m);
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return size[a] != size[b] ? size[a] > size[b] : a < b; });
    if (placed_.options.margins == Margins::bound && !placed_.frame.offsets &&
        placed_.frame.dimension >= kManyDimensions)
      centre_scores_ = highest_centre_scores(placed_.frame, order, executor_);
    if (placed_.frame.dimension >= kManyDimensions) {
      share_points_for_passes();
      return decide_alone(order);
    }
    LikelyVertices likely;
    likely.panels = RoughPanels(placed_.frame.dimension);
    likely.position_of.assign(m, kNone);
    add_extremes_along_axes(likely);

    std::vector<std::vector<std::size_t>> discovered;
    for (std::size_t begin = 0, round = kFirstRound; begin < m;
         begin += round, round = std::min(2 * round, kLargestRound)) {
      const std::size_t end = std::min(m, begin + round);
      discovered.assign((end - begin + kPiece - 1) / kPiece, {});
      for_pieces({"keys", std::span(order).subspan(begin, end - begin), {}, true, &discovered}, distinct_,
                 [&](std::size_t piece, std::span<const std::size_t> keys) {
                   decide_piece(keys, likely, discovered[piece]);
                 });
      if (end == m) break;
      for (const auto& keys : discovered)
        for (std::size_t k : keys) likely.add(k, placed_.frame);
      for (std::size_t k = begin; k < end; ++k)
        if (distinct_[order[k]].verdict == Verdict::selectable) likely.add(order[k], placed_.frame);
    }
  }

  // In many dimensions no key helps another (decide_together), and near keys take many times as long as far
  // ones. Pieces are of like keys, and spread over the work, so that progress tells how much of it is done.
  void decide_alone(std::span<const std::size_t> order) {
    for_pieces({"keys", order, spread_order((order.size() + kPiece - 1) / kPiece), true}, distinct_,
               [&](std::size_t, std::span<const std::size_t> keys) { decide_together(keys); });
  }

  // Keys to be decided, kPiece at a time.
  struct Cut {
    const char* name;
    std::span<const std::size_t> keys;
    std::vector<std::size_t> turns =
        {};             // the order in which threads take pieces; empty: one after the other
    bool told = false;  // whether progress is
    std::vector<std::vector<std::size_t>>* discovered = nullptr;  // by each piece, besides verdicts
  };
  // What comes back of a piece from another process.
  struct DecidedPiece {
    std::vector<KeyVerdict> verdicts;
    std::vector<std::size_t> discovered;
  };

  // body(piece, keys) writes verdicts[key] of these keys, on threads of this process or in others.
  template <class Body>
  void for_pieces(const Cut& cut, std::vector<KeyVerdict>& verdicts, const Body& body) {
    const std::size_t pieces = (cut.keys.size() + kPiece - 1) / kPiece;
    if (cut.told) report(0);  // what was prepared by now says nothing of the pace
    const auto keys_of = [&](std::size_t piece) {
      return cut.keys.subspan(piece * kPiece, std::min(kPiece, cut.keys.size() - piece * kPiece));
    };
    if (executor_.pieces() == nullptr) {
      executor_.for_each(pieces, [&](std::size_t turn) {
        const std::size_t piece = cut.turns.empty() ? turn : cut.turns[turn];
        body(piece, keys_of(piece));
        if (cut.told) report(keys_of(piece).size());
      });
      return;
    }
    PieceWork work{cut.name, {}, true, {}, {}};
    // Keys that come late are near the centre, where nothing is settled at a glance.
    for (std::size_t piece = 0; piece < pieces; ++piece)
      work.costs.push_back(static_cast<double>(keys_of(piece).size()) *
                           (1 + static_cast<double>(piece) / static_cast<double>(pieces)));
    work.finished = [&](std::size_t piece) {
      if (cut.told) report(keys_of(piece).size());
    };
    auto decided = run_pieces<DecidedPiece>(executor_, work, [&](std::size_t piece, const Executor&) {
      body(piece, keys_of(piece));
      DecidedPiece result;
      for (const std::size_t key : keys_of(piece)) result.verdicts.push_back(std::move(verdicts[key]));
      if (cut.discovered != nullptr) result.discovered = (*cut.discovered)[piece];
      return result;
    });
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      for (std::size_t k = 0; k < keys_of(piece).size(); ++k)
        verdicts[keys_of(piece)[k]] = std::move(decided[piece].verdicts.at(k));
      if (cut.discovered != nullptr) (*cut.discovered)[piece] = std::move(decided[piece].discovered);
    }
  }

  void report(std::size_t keys) {
    const std::size_t done = done_ += keys;
    if (placed_.options.progress) placed_.options.progress(done, distinct_.size());
  }

  void add_extremes_along_axes(LikelyVertices& likely) const {
    const std::size_t f = placed_.frame.dimension;
    std::vector<double> query(f);
    for (std::size_t c = 0; c < f; ++c)
      for (double sign : {1.0, -1.0}) {
        std::fill(query.begin(), query.end(), 0.0);
        query[c] = sign;
        likely.add(top_score(placed_.frame.all(), placed_.distinct(), query.data(), kNone).index,
                   placed_.frame);
      }
  }

  void decide_piece(std::span<const std::size_t> keys, const LikelyVertices& likely,
                    std::vector<std::size_t>& discovered) {
    // Many keys are settled by q = k_i − centre; one pass over all keys serves the whole piece.
    std::vector<bool> settled(keys.size(), false);
    if (placed_.options.margins == Margins::bound && !placed_.frame.offsets)
      settle_from_centre(keys, likely, settled, discovered);
    if (std::all_of(settled.begin(), settled.end(), [](bool done) { return done; })) return;
    const auto search = make_key_search(placed_.frame, placed_.options.margins);
    for (std::size_t k = 0; k < keys.size(); ++k)
      if (!settled[k]) decide_one(keys[k], *search, &likely);
    discovered.insert(discovered.end(), search->discovered.begin(), search->discovered.end());
  }

  // In many dimensions nearly every key is a vertex, and a key's nearest face is made of its own rivals. Each
  // key keeps a list of those; the searches of a piece run side by side on their lists and share the passes
  // over all keys.
  void decide_together(std::span<const std::size_t> keys) {
    const std::size_t f = placed_.frame.dimension;
    struct Running {
      std::size_t key;
      LikelyVertices rivals;
      std::unique_ptr<KeySearch> search;
    };
    std::vector<std::unique_ptr<Running>> running;  // searches point at their rivals: these must not move
    std::vector<double> queries, limits;
    for (std::size_t key : keys) {
      if (!centre_scores_.empty() && settle(key, centre_scores_[key])) continue;
      running.push_back(std::make_unique<Running>());
      running.back()->key = key;
      running.back()->rivals.panels = RoughPanels(f);
      const auto point = placed_.frame.points[key];
      queries.insert(queries.end(), point.begin(), point.end());
      if (placed_.frame.offsets) queries.back() = std::max(queries.back(), 0.0);
      limits.push_back(level_of_rivals(std::span(queries).last(f)));
    }
    if (running.empty()) return;
    const SlicedPoints& all = points_for_passes();
    for (bool first = true; true; first = false) {
      auto listed = scores_above(all, {queries.data(), running.size(), f}, limits);
      for (std::size_t k = 0; k < running.size(); ++k) {
        Running& each = *running[k];
        const double passing = first ? -kInfinity : each.search->passing_score();
        const auto query = std::span(queries).subspan(k * f, f);
        const TopScore top = take_rivals(listed[k], query, limits[k], passing, each.key, each.rivals);
        if (!first) {
          each.search->answer(top);
          continue;
        }
        each.search = borrow_search();
        each.search->start(question(each.key, &each.rivals, placed_.robust_beyond(each.key)));
      }
      std::erase_if(running, [&](std::unique_ptr<Running>& each) {
        if (!each->search->run()) return false;
        settle(each->key, each->search->take(), *each->search, nullptr);
        give_back(std::move(each->search));
        return true;
      });
      if (running.empty()) return;
      queries.clear(), limits.clear();
      for (const auto& each : running) {
        const auto query = each->search->query();
        queries.insert(queries.end(), query.begin(), query.end());
        limits.push_back(each->search->level_score());
      }
    }
  }

  // A score that some of the keys exceed under the query, about twice as many as are taken as rivals, as far as
  // keys spread over all of them tell.
  double level_of_rivals(std::span<const double> query) const {
    const std::size_t n = distinct_.size(), sample = std::min(n, std::max<std::size_t>(128, n / 16)),
                      rank = std::min(sample - 1, std::max<std::size_t>(4, 2 * offers_ * sample / n));
    std::vector<std::size_t> some(sample);
    for (std::size_t k = 0; k < sample; ++k) some[k] = k * n / sample;
    std::vector<double> scores(sample);
    score_points(placed_.frame.points, query, some, scores);
    std::nth_element(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(rank), scores.end(),
                     std::greater<>());
    return scores[rank];
  }

  // Before pieces, where all processes come together.
  void share_points_for_passes() {
    if (!shares_memory(executor_) || placed_.frame.points.values().size() < kWorthSharing) return;
    SlicedPoints points = whole_points(placed_.frame.points);
    points.values = once_per_machine<float>(executor_, [&] { return points.values; });
    std::call_once(passes_once_, [&] { passes_ = std::move(points); });
  }

  // All keys, for passes in single precision; made when the first is needed.
  const SlicedPoints& points_for_passes() {
    std::call_once(passes_once_, [&] { passes_ = whole_points(placed_.frame.points); });
    return passes_;
  }

  // The highest score of those listed, or the limit that all others are below, and which key has it. The best
  // that exceed `passing` become rivals; where some do, what was not looked at counts with its bound.
  TopScore take_rivals(std::vector<ListedScore>& listed, std::span<const double> query, double limit,
                       double passing, std::size_t own, LikelyVertices& rivals) const {
    TopScore top{limit, kNone};
    std::vector<TopScore> above;
    std::vector<std::size_t> keys;
    std::vector<double> scores;
    std::erase_if(listed, [&](const ListedScore& each) { return each.position == own; });
    const auto look_at = [&](std::span<const ListedScore> some) {
      keys.clear();
      for (const ListedScore& each : some) keys.push_back(each.position);
      scores.resize(keys.size());
      score_points(placed_.frame.points, query, keys, scores);
      for (std::size_t k = 0; k < keys.size(); ++k) {
        if (scores[k] > top.score || (scores[k] == top.score && keys[k] < top.index))
          top = {scores[k], keys[k]};
        if (scores[k] > passing) above.push_back({scores[k], keys[k]});
      }
    };
    const std::size_t look = std::min(listed.size(), 2 * offers_);
    std::nth_element(listed.begin(), listed.begin() + static_cast<std::ptrdiff_t>(look), listed.end(),
                     [](const ListedScore& a, const ListedScore& b) {
                       return a.bound != b.bound ? a.bound > b.bound : a.position < b.position;
                     });
    look_at(std::span(listed).first(look));
    if (above.empty()) {
      look_at(std::span(listed).subspan(look));
    } else {
      for (const ListedScore& each : std::span(listed).subspan(look))
        top.score = std::max(top.score, each.bound);
    }
    std::sort(above.begin(), above.end(), [](const TopScore& a, const TopScore& b) {
      return a.score != b.score ? a.score > b.score : a.index < b.index;
    });
    if (above.size() > offers_) above.resize(offers_);
    for (const TopScore& each : above) rivals.add(each.index, placed_.frame);
    return top;
  }

  // In many dimensions a search holds megabytes, which cost more to get from the system than a key takes.
  std::unique_ptr<KeySearch> borrow_search() {
    {
      const std::lock_guard lock(idle_mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<KeySearch> search = std::move(idle_.back());
        idle_.pop_back();
        return search;
      }
    }
    return make_key_search(placed_.frame, placed_.options.margins);
  }

  void give_back(std::unique_ptr<KeySearch> search) {
    search->forget();
    const std::lock_guard lock(idle_mutex_);
    idle_.push_back(std::move(search));
  }

  void settle_from_centre(std::span<const std::size_t> keys, const LikelyVertices& likely,
                          std::vector<bool>& settled, std::vector<std::size_t>& discovered) {
    const std::size_t f = placed_.frame.dimension;
    std::vector<std::size_t> slots, skips;
    std::vector<TopScore> top;
    for (std::size_t slot = 0; slot < keys.size(); ++slot) slots.push_back(slot);
    // Asking the likely vertices first pays only while they are few.
    if (4 * likely.panels.size() < placed_.distinct()) {
      std::vector<float> queries;
      for (std::size_t key : keys) {
        queries.insert(queries.end(), placed_.frame.points[key].begin(), placed_.frame.points[key].end());
        skips.push_back(likely.position(key));
      }
      top.resize(keys.size());
      top_scores(likely.panels, likely.panels.size(), queries.data(), f, skips, top);
      std::erase_if(slots, [&](std::size_t slot) {
        const auto point = placed_.frame.points[keys[slot]];
        return std::inner_product(point.begin(), point.end(), point.begin(), 0.0) <= top[slot].score;
      });
      if (slots.empty()) return;
    }
    std::vector<double> queries;
    skips.clear();
    for (std::size_t slot : slots) {
      const auto point = placed_.frame.points[keys[slot]];
      queries.insert(queries.end(), point.begin(), point.end());
      skips.push_back(keys[slot]);
    }
    top.resize(slots.size());
    top_scores(placed_.frame.all(), placed_.distinct(), queries.data(), f, skips, top);
    for (std::size_t s = 0; s < slots.size(); ++s) {
      settled[slots[s]] = settle(keys[slots[s]], top[s].score);
      if (!settled[slots[s]]) discovered.push_back(top[s].index);
    }
  }

  // What q = k_i − centre shows of a key, given the best score of the others under it.
  Found from_centre(std::size_t key, double best_score) const {
    const auto point = placed_.frame.points[key];
    const double squares = std::inner_product(point.begin(), point.end(), point.begin(), 0.0),
                 size = std::sqrt(squares);
    Found found;
    found.margin = (squares - best_score) / size - score_error(placed_.frame, size);
    if (!(found.margin > 0)) return found;
    found.kind = Found::Kind::selectable;
    found.query.assign(point.begin(), point.end());
    for (double& q : found.query) q /= size;
    return found;
  }

  // Settles a key by q = k_i − centre.
  bool settle(std::size_t key, double best_score) {
    const Found found = from_centre(key, best_score);
    return found.margin > placed_.robust_beyond(key) && certify(placed_, key, found, distinct_[key]);
  }

  // The way to the widest margin may lead where doubles see nothing, past margins wide enough to decide. What a search
  // that ended so has found, or what shorter ways find, whichever is more.
  Found best_known(std::size_t key, Found found) const {
    const auto take = [&](Found other) {
      if (other.kind != Found::Kind::selectable || !(other.margin > found.margin)) return;
      other.at_most = found.at_most;
      other.hint = std::move(found.hint);
      found = std::move(other);
    };
    take(make_key_search(placed_.frame, Margins::bound)
             ->decide(question(key, nullptr, placed_.robust_beyond(key))));
    if (!placed_.frame.offsets)
      take(from_centre(key, top_score(placed_.frame.all(), placed_.frame.all().size(),
                                      placed_.frame.points[key].data(), key)
                                .score));
    return found;
  }

  Question question(std::size_t key, const LikelyVertices* likely, double enough) const {
    return {placed_.frame.points[key], key, distinct_.size(), likely, enough};
  }

  void decide_one(std::size_t key, KeySearch& search, const LikelyVertices* likely) {
    settle(key, search.decide(question(key, likely, placed_.robust_beyond(key))), search, likely);
  }

  // What the search from the frame left open, as the search from the key's own place sees it.
  Found look_closer(std::size_t key, Found found) const {
    Found closer = search_from_own_place(placed_, key, distinct_.size(), placed_.options.margins, found.hint);
    if (closer.kind == Found::Kind::unselectable) return closer;
    const bool closer_widest = closer.widest;
    const double at_most = found.at_most > 0 && closer.at_most > 0 ? std::min(found.at_most, closer.at_most)
                                                                   : std::max(found.at_most, closer.at_most);
    if (!closer.hint.empty()) found.hint = closer.hint;
    if (closer.kind == Found::Kind::selectable && closer.margin >= found.margin) {
      closer.hint = std::move(found.hint);
      found = std::move(closer);
    }
    found.at_most = at_most;
    if (found.kind != Found::Kind::selectable) return found;
    found.widest = found.margin >= (closer_widest ? kLastWidestShare : kWidestShare) * at_most;
    if (found.widest && placed_.options.margins == Margins::exact && found.margin < kClosed * at_most) {
      found = best_known(key, std::move(found));
      found.widest = true;
    }
    if (found.widest || placed_.options.margins == Margins::bound) found.at_most = 0;
    return found;
  }

  void settle(std::size_t key, Found found, KeySearch& search, const LikelyVertices* likely) {
    const bool widest_wanted = placed_.options.margins == Margins::exact;
    const auto open = [&] {
      return found.kind == Found::Kind::unclear ||
             (widest_wanted && found.kind == Found::Kind::selectable && !found.widest);
    };
    if (open()) found = look_closer(key, std::move(found));
    if (widest_wanted && open()) found = best_known(key, std::move(found));
    if (found.kind == Found::Kind::unclear || !certify(placed_, key, found, distinct_[key]))
      distinct_[key] = certify_exactly(placed_, key, found, search, likely);
    else if (found.at_most > 0)
      widen(placed_, key, found, distinct_[key]);
  }

  // The verdict of index i from that of its distinct key: equal keys tie.
  KeyVerdict spread(std::size_t i) {
    const std::size_t own = placed_.groups.distinct_of[i];
    const auto& equals = placed_.groups.members[own];
    KeyVerdict result = equals.back() == i ? std::move(distinct_[own]) : distinct_[own];
    for (CoverTerm& term : result.cover) term.index = placed_.groups.first[term.index];
    for (CoverTerm& term : result.interior) term.index = placed_.groups.first[term.index];
    // Lists of all would take the square of the keys where many are equal.
    const std::size_t most = std::max(kFewestTies, kMostTies / placed_.keys.rows);
    std::vector<std::size_t> ties;
    const auto add = [&](const std::vector<std::size_t>& members) {  // ascending; one may be the key itself
      const auto end = members.begin() + static_cast<std::ptrdiff_t>(std::min(members.size(), most + 1));
      std::copy_if(members.begin(), end, std::back_inserter(ties), [&](std::size_t j) { return j != i; });
    };
    for (std::size_t k : result.tied_with) add(placed_.groups.members[k]);
    if (equals.size() > 1 && result.verdict != Verdict::unselectable &&
        result.verdict != Verdict::undecided) {
      if (result.verdict == Verdict::selectable) {
        result.verdict = Verdict::tied;
        result.margin = 0;
        result.margin_at_most.reset();
        result.robust = false;
        if (placed_.options.certificates) result.cover = {{equals[0] == i ? equals[1] : equals[0], 1.0}};
      }
      if (placed_.options.certificates) add(equals);
    }
    std::sort(ties.begin(), ties.end());
    if (ties.size() > most) ties.resize(most);
    result.tied_with = std::move(ties);
    return result;
  }

  // Some prefix selects it: its own, of the keys up to itself. None does: a tie may be found in any, but not
  // once the keys of a prefix are proven to surround it, for then those of every longer one do.
  void look_at_prefixes(std::size_t i, KeySearch& search, KeyVerdict& key) const {
    key.last_prefix = last_prefix(i, search);
    key.prefix_verdict = !key.last_prefix       ? Verdict::undecided
                         : *key.last_prefix > 0 ? Verdict::selectable
                                                : key.verdict;
    key.verdict_prefix = key.last_prefix.value_or(0) > 0 ? *key.last_prefix : placed_.keys.rows;
    if (key.prefix_verdict != Verdict::unselectable) return;
    const std::size_t own = placed_.groups.distinct_of[i], shortest = distinct_keys_of(i + 1);
    for (std::size_t count = shortest; count <= distinct_.size(); ++count) {
      key.verdict_prefix = count == shortest ? i + 1 : placed_.groups.first[count - 1] + 1;
      Verdict here = Verdict::selectable;  // among distinct keys, of which it may have equals
      if (count > 1) {
        const Found found = search.decide({placed_.frame.points[own], own, count, nullptr, 0});
        if (found.kind == Found::Kind::unselectable) {
          key.robust_in_prefixes =
              count == shortest && found.radius > placed_.robust_beyond(own) && placed_.cover_can_be_robust();
          return;
        }
        if (found.kind == Found::Kind::unclear) here = verdict_among(count, own, found);
      }
      if (here == Verdict::unselectable) continue;
      key.prefix_verdict = here == Verdict::selectable ? Verdict::tied : here;
      return;
    }
  }

  // In rational arithmetic, among the first distinct keys.
  Verdict verdict_among(std::size_t count, std::size_t key, const Found& found) const {
    const Found closer = search_from_own_place(placed_, key, count, Margins::bound, found.hint);
    if (closer.kind == Found::Kind::selectable) return Verdict::selectable;
    if (closer.kind == Found::Kind::unselectable) return Verdict::unselectable;
    try {
      Effort effort(placed_.options.exact_effort);
      return decide_exactly(placed_.exact_points(), placed_.exact_offsets, count, key, found.hint, effort)
          .verdict;
    } catch (const BeyondEffort&) {
      return Verdict::undecided;
    }
  }

  // Selectability only shrinks as keys are added, so the last prefix is found by bisection. None if rational
  // arithmetic cannot tell within its effort.
  std::optional<std::size_t> last_prefix(std::size_t i, KeySearch& search) const {
    const auto& equals = placed_.groups.members[placed_.groups.distinct_of[i]];
    if (equals[0] != i) return 0;
    const std::size_t limit = equals.size() > 1 ? equals[1] : placed_.keys.rows;
    std::size_t low = i + 1, high = limit;  // prefix lengths
    bool decided = true;
    const auto selectable = [&](std::size_t length) {
      const Verdict verdict = verdict_in_prefix(placed_.groups.distinct_of[i], length, search);
      decided &= verdict != Verdict::undecided;
      return verdict == Verdict::selectable;
    };
    if (!selectable(low)) return decided ? std::optional<std::size_t>(0) : std::nullopt;
    if (selectable(high)) return high;
    while (high - low > 1) {
      const std::size_t middle = low + (high - low) / 2;
      (selectable(middle) ? low : high) = middle;
    }
    return decided ? std::optional(low) : std::nullopt;
  }

  // Distinct keys are in order of first appearance, so a prefix of the keys is a prefix of them.
  std::size_t distinct_keys_of(std::size_t length) const {
    const auto end = std::lower_bound(placed_.groups.first.begin(), placed_.groups.first.end(), length);
    return static_cast<std::size_t>(end - placed_.groups.first.begin());
  }

  Verdict verdict_in_prefix(std::size_t key, std::size_t length, KeySearch& search) const {
    const std::size_t count = distinct_keys_of(length);
    if (count == 1) return Verdict::selectable;
    const Found found = search.decide({placed_.frame.points[key], key, count, nullptr, 0});
    if (found.kind == Found::Kind::unclear) return verdict_among(count, key, found);
    return found.kind == Found::Kind::selectable ? Verdict::selectable : Verdict::unselectable;
  }

  // Whether queries of the norm asked about can make something of what the hull leaves out, or have another norm
  // there.
  bool weights_see_noise() const {
    return placed_.hull.reduced() && (2 * *placed_.options.query_norm * placed_.hull.noise > kWeightGap ||
                                      placed_.hull.length_error > kWeightGap);
  }

  // All keys count in the softmax, equal ones too; orthonormal frame coordinates keep ‖q‖ and q·(k_j − k_i),
  // up to noise. Where that matters the keys are taken as given.
  WeightSearch weights_of_keys() const {
    const bool as_given = weights_see_noise();
    Matrix<double> points(placed_.keys.rows, as_given ? placed_.keys.cols : placed_.hull.rank);
    for (std::size_t j = 0; j < points.rows(); ++j)
      for (std::size_t c = 0; c < points.cols(); ++c)
        points(j, c) = as_given ? placed_.keys(j, c) - placed_.hull.centre[static_cast<Eigen::Index>(c)]
                                : placed_.frame.points(placed_.groups.distinct_of[j], c) * placed_.hull.unit;
    const bool as_keys = as_given || !placed_.hull.reduced();
    return {points.view(), placed_.offsets, as_keys ? placed_.keys : MatrixView<const double>()};
  }

  void add_largest_weight(const WeightSearch& weights, std::size_t i, KeyVerdict& key) const {
    std::vector<double> start = key.witness;
    const bool in_frame = placed_.hull.reduced() && !weights_see_noise();
    if (in_frame && !start.empty()) {
      start.resize(placed_.hull.rank);
      Eigen::Map<Eigen::VectorXd>(start.data(), static_cast<Eigen::Index>(start.size())) =
          placed_.hull.basis.transpose() *
          Eigen::Map<const Eigen::VectorXd>(key.witness.data(),
                                            static_cast<Eigen::Index>(key.witness.size()));
    }
    const LargestWeight weight = weights.largest(i, *placed_.options.query_norm, start, kWeightGap);
    const double noise =
        in_frame ? std::exp(2 * *placed_.options.query_norm *
                            (placed_.hull.noise +
                             placed_.hull.unit * (2 * placed_.frame.point_error +
                                                  placed_.hull.length_error * placed_.frame.largest_norm)))
                 : 1;
    // Scores beyond the range of doubles leave nothing to tell.
    key.max_weight = weight.attained >= 0 ? weight.attained / noise : 0.0;
    // No weight is 0: one below all doubles is bounded by the least of them.
    const double bound = weight.bound * noise;
    key.max_weight_bound = bound < 1 ? std::max(bound, std::numeric_limits<double>::denorm_min()) : 1.0;
    if (!placed_.options.certificates) key.witness.clear();
  }

  const PlacedKeys placed_;
  const Executor& executor_;
  std::vector<KeyVerdict> distinct_;
  const std::size_t offers_;
  std::once_flag passes_once_;
  SlicedPoints passes_;
  std::vector<double> centre_scores_;  // no other key scores higher under q = k_i − centre; empty: not known
  std::atomic<std::size_t> done_ = 0;
  std::mutex idle_mutex_;
  std::vector<std::unique_ptr<KeySearch>> idle_;
};

}  // namespace

std::span<const Verdict> values_of(Verdict) {
  static constexpr Verdict all[] = {Verdict::selectable, Verdict::tied, Verdict::unselectable,
                                    Verdict::undecided};
  return all;
}

const char* name_of(Margins margins) {
  return margins == Margins::exact ? "exact" : "bound";
}
std::span<const Margins> values_of(Margins) {
  static constexpr Margins all[] = {Margins::exact, Margins::bound};
  return all;
}

const char* name_of(RankPolicy policy) {
  return policy == RankPolicy::full ? "full" : "numerical";
}
std::span<const RankPolicy> values_of(RankPolicy) {
  static constexpr RankPolicy all[] = {RankPolicy::numerical, RankPolicy::full};
  return all;
}

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::selectable:
      return "selectable";
    case Verdict::tied:
      return "tied";
    case Verdict::unselectable:
      return "unselectable";
    case Verdict::undecided:
      break;
  }
  return "undecided";
}

void check_key_input(MatrixView<const double> keys, std::span<const double> offsets) {
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

KeySet decide_keys(MatrixView<const double> keys, std::span<const double> offsets, const KeyOptions& options,
                   const Executor& executor) {
  check_options(options);
  check_key_input(keys, offsets);
  check_errors(options.errors, keys.rows);
  return SetDecider(keys, offsets, options, executor).run();
}

std::vector<KeySet> decide_key_sets(std::span<const MatrixView<const double>> sets,
                                    std::span<const std::span<const double>> offsets,
                                    const KeyOptions& options, const Executor& executor,
                                    const std::string& set_name) {
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
      check_key_input(sets[s], offsets_of(s));
    } catch (const InputError& error) {
      throw InputError(sets.size() == 1
                           ? error.what()
                           : fmt::format(fmt::runtime(set_name), s, sets.size()) + ": " + error.what());
    }
  }
  std::vector<KeyOptions> options_of(options.errors.empty() ? 1 : sets.size(), options);
  if (!options.errors.empty()) {
    std::size_t keys = 0;
    for (const auto& set : sets) keys += set.rows;
    check_errors(options.errors, keys);
    std::size_t first = 0;
    for (std::size_t s = 0; s < sets.size(); first += sets[s].rows, ++s)
      options_of[s].errors = options.errors.subspan(first, sets[s].rows);
  }
  const auto decided = [&](std::size_t s, const Executor& threads) {
    return SetDecider(sets[s], offsets_of(s), options_of[options.errors.empty() ? 0 : s], threads).run();
  };
  std::vector<KeySet> results(sets.size());
  // Processes must cut alike, whatever their threads.
  constexpr std::size_t many = 8;
  if (executor.pieces() != nullptr && sets.size() >= many) {
    PieceWork work{"sets of keys", {}, true, {}, {}};
    for (const auto& set : sets) work.costs.push_back(static_cast<double>(set.rows * set.cols));
    return run_pieces<KeySet>(executor, work, decided);
  }
  // Many sets: one task each. Few: the threads share the keys of one set. The results are the same.
  if (executor.pieces() == nullptr && sets.size() >= 2 * static_cast<std::size_t>(executor.threads())) {
    const Executor alone(1);
    executor.for_each(sets.size(), [&](std::size_t s) { results[s] = decided(s, alone); });
  } else {
    for (std::size_t s = 0; s < sets.size(); ++s) results[s] = decided(s, executor);
  }
  return results;
}

}  // namespace normscope

#include "scan/places.h"

#include <algorithm>
#include <utility>

namespace normscope {
namespace {

bool rises(const Mask& mask) {
  for (std::size_t p = 0; p < mask.n(); ++p) {
    if (mask.row(p).size() != 1) return false;
    if (p > 0 &&
        (mask.row(p)[0].first < mask.row(p - 1)[0].first || mask.row(p)[0].last < mask.row(p - 1)[0].last))
      return false;
  }
  return true;
}

}  // namespace

Places::Places(Mask mask) : mask_(std::move(mask)), ascending_(rises(mask_)) {}

std::vector<std::size_t> Places::seen_from(std::size_t place) const {
  std::vector<std::size_t> tokens;
  for (const Mask::Run run : mask_.row(place)) {
    for (std::size_t token = run.first; token < run.last; ++token) tokens.push_back(token);
  }
  return tokens;
}

bool Places::is_least(std::size_t place, std::size_t token) const {
  if (!ascending_) return true;
  // Both ends never fall from place to place: a set lies in that of an earlier place only if it ends there
  // too, and in that of a later place only if it begins there too, and then so do all in between.
  const Mask::Run here = mask_.row(place)[0];
  if (place > 0 && sees(place - 1, token) && mask_.row(place - 1)[0].first == here.first) return false;
  if (place + 1 == count() || !sees(place + 1, token)) return true;
  const Mask::Run next = mask_.row(place + 1)[0];
  return next.last != here.last || next.first == here.first;
}

bool Places::one_set() const {
  for (std::size_t p = 0; p < count(); ++p) {
    if (mask_.row(p).size() != 1 || mask_.row(p)[0].first != 0 || mask_.row(p)[0].last != count())
      return false;
  }
  return true;
}

bool Places::nested() const {
  if (!ascending_) return false;
  for (std::size_t p = 0; p < count(); ++p) {
    if (mask_.row(p)[0].first != 0 || mask_.row(p)[0].last != p + 1) return false;
  }
  return true;
}

std::vector<std::size_t> Places::covering() const {
  std::vector<std::size_t> chosen;
  std::vector<bool> covered(count(), false);
  for (std::size_t token = count(); token-- > 0;) {
    if (covered[token]) continue;
    // Most that are new, of these least that is not, of these the last.
    std::size_t best = count(), most = 0, least = 0;
    for (std::size_t p = count(); p-- > 0;) {
      if (!sees(p, token)) continue;
      std::size_t fresh = 0, all = 0;
      for (const Mask::Run run : mask_.row(p)) {
        fresh += static_cast<std::size_t>(
            std::count(covered.begin() + run.first, covered.begin() + run.last, false));
        all += run.last - run.first;
      }
      if (fresh < most || (fresh == most && all >= least)) continue;
      most = fresh;
      least = all;
      best = p;
    }
    if (best == count()) continue;  // nobody sees it
    chosen.push_back(best);
    for (const std::size_t seen : seen_from(best)) covered[seen] = true;
  }
  return chosen;
}

std::optional<Verdict> decided(std::optional<Verdict> verdict) {
  if (verdict == Verdict::selectable || verdict == Verdict::tied || verdict == Verdict::unselectable)
    return verdict;
  return std::nullopt;
}

std::optional<Verdict> better(std::optional<Verdict> a, std::optional<Verdict> b) {
  a = decided(a);
  b = decided(b);
  for (const std::optional<Verdict> each :
       {std::optional(Verdict::selectable), std::optional<Verdict>(), std::optional(Verdict::tied)}) {
    if (a == each || b == each) return each;
  }
  return Verdict::unselectable;
}

ScanSet decide_from_places(const PlacesQuestion& question) {
  const Places& places = question.places;
  const std::size_t n = places.count();
  ScanSet set;
  set.verdicts.assign(n, std::nullopt);
  set.margins.assign(n, 0);
  set.places.assign(n, std::nullopt);
  std::vector<bool> seen_before(n, false), least_suffices(n, false), robust(n, question.robust),
      asked(n, false);
  const auto matters = [&](std::size_t place, std::size_t token) {
    if (set.verdicts[token] == Verdict::selectable) return false;
    return !least_suffices[token] || places.is_least(place, token);
  };
  const auto ask = [&](std::size_t place, bool first) {
    if (asked[place]) return;
    asked[place] = true;
    const std::vector<std::size_t> seen = places.seen_from(place);
    std::vector<std::size_t> wanted;
    for (const std::size_t token : seen) {
      if (first || matters(place, token)) wanted.push_back(token);
    }
    if (wanted.empty()) return;
    const PlacesQuestion::Answer answer = question.decide(place, seen, wanted, first);
    set.rank = std::max(set.rank, answer.rank);
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      const std::size_t token = wanted[k];
      const PlaceVerdict& here = answer.verdicts[k];
      const bool unselectable = here.verdict == Verdict::unselectable;
      robust[token] = robust[token] && unselectable && here.robust;
      if (question.alike && unselectable && here.lasting && places.is_least(place, token))
        least_suffices[token] = true;
      if (here.largest_weight) {
        set.largest_weights.resize(n, 0);
        if (!seen_before[token]) set.largest_weights[token] = *here.largest_weight;
      }
      const std::optional<Verdict> best =
          seen_before[token] ? better(set.verdicts[token], here.verdict) : decided(here.verdict);
      // The place that the verdict is from; unselectable is a verdict from all of them.
      if (!seen_before[token] || best != set.verdicts[token]) {
        const bool from_here = best && *best != Verdict::unselectable;
        set.places[token] = from_here ? std::optional(place) : std::nullopt;
        set.margins[token] = best == Verdict::selectable ? here.margin : 0;
      }
      set.verdicts[token] = best;
      seen_before[token] = true;
    }
  };
  set.weight_places = places.covering();
  for (const std::size_t place : set.weight_places) ask(place, true);
  if (question.covering_only) return set;
  // Under causal masks a token's own place sees the least.
  for (std::size_t token = 0; token < n && question.alike; ++token) {
    if (places.sees(token, token) && places.is_least(token, token) && matters(token, token))
      ask(token, false);
  }
  // A query that won is a witness, so that most tokens end here.
  for (std::size_t place = question.winners.size(); place-- > 0;) {
    const auto winner = question.winners[place];
    if (winner && places.sees(place, *winner) && matters(place, *winner)) ask(place, false);
  }
  for (std::size_t place = n; place-- > 0;) {
    const std::vector<std::size_t> seen = places.seen_from(place);
    if (std::any_of(seen.begin(), seen.end(), [&](std::size_t token) { return matters(place, token); }))
      ask(place, false);
  }
  if (question.robust) {
    set.robust.assign(n, false);
    for (std::size_t token = 0; token < n; ++token)
      set.robust[token] = robust[token] && set.verdicts[token] == Verdict::unselectable;
    set.robust_unselectable =
        static_cast<std::size_t>(std::count(set.robust.begin(), set.robust.end(), true));
  }
  return set;
}

}  // namespace normscope

#include "keys/search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace normscope {
namespace {

double norm(std::span<const double> v) { return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0)); }
double dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// A margin is reported once the proven lower bound reaches this share of the upper bound.
constexpr double kOptimal = 1 - 1e-10;

}  // namespace

double score_error(const FramedKeys& keys, double place_norm) {
  // A dot product of f terms errs by at most f·u·|q||k|; subtraction and query rounding add a few u more.
  const double rounding = 2 * static_cast<double>(keys.dimension + 8) * 0x1p-53;
  return rounding * (keys.largest_norm + place_norm) + 4 * keys.point_error;
}

void LikelyVertices::add(std::size_t key, const FramedKeys& keys) {
  if (position_of[key] != kNone) return;
  position_of[key] = key_at.size();
  key_at.push_back(key);
  panels.push(keys.points[key]);
}

KeySearch::KeySearch(const FramedKeys& keys, Margins margins)
    : keys_(keys), margins_(margins), corral_(keys.dimension), query_(keys.dimension), difference_(keys.dimension) {}

void KeySearch::offset_of(std::size_t key, std::span<const double> place) {
  if (key == Corral::kRay) {
    std::fill(difference_.begin(), difference_.end(), 0.0);
    difference_.back() = -1;
    return;
  }
  const auto point = keys_.points[key];
  for (std::size_t c = 0; c < difference_.size(); ++c) difference_[c] = point[c] - place[c];
}

// The key (or the ray) that stands lowest in the direction of the corral's nearest point. Likely vertices answer
// alone while they object; only what they let pass is put to all keys.
KeySearch::Rival KeySearch::rival(std::span<const double> place, std::size_t skip, std::size_t count,
                                  const LikelyVertices* likely, bool& confirmed) {
  const auto x = corral_.nearest();
  for (std::size_t c = 0; c < x.size(); ++c) query_[c] = -x[c];
  const double here = dot(query_, place);
  Rival lowest{kNone, std::numeric_limits<double>::infinity()};
  confirmed = false;
  if (keys_.offsets && -x.back() < 0 && !corral_.contains(Corral::kRay)) {
    // The ray's advantage is x·(0, −1) and must not be negative; it has no length to compare with others, so it
    // is taken in as soon as it objects.
    return {Corral::kRay, -x.back()};
  }
  if (likely != nullptr) {
    const std::size_t own = skip == kNone ? kNone : likely->position_of[skip];
    const TopScore top = top_score(likely->panels, likely->panels.size(), query_.data(), own);
    if (top.index != kNone) lowest = {likely->key_at[top.index], here - top.score};
    const double limit = corral_.squared_distance();
    const bool passes = margins_ == Margins::exact ? lowest.advantage >= kOptimal * limit : lowest.advantage > 0;
    if (!passes && !corral_.contains(lowest.key)) return lowest;
  }
  const TopScore top = top_score(keys_.all, count, query_.data(), skip);
  confirmed = true;
  const Rival of_all{top.index, here - top.score};
  if (likely != nullptr && top.index != kNone && of_all.advantage < lowest.advantage &&
      likely->position_of[top.index] == kNone)
    discovered_.push_back(top.index);
  return of_all;
}

Found KeySearch::decide(std::size_t key, std::size_t count, const LikelyVertices* likely, double enough,
                        std::span<const double> start) {
  return decide_at(keys_.points[key], key, count, likely, enough, start);
}

Found KeySearch::decide_at(std::span<const double> place, std::size_t skip, std::size_t count,
                           const LikelyVertices* likely, double enough, std::span<const double> start) {
  Found found;
  const double error = score_error(keys_, norm(place));
  // First member: the winner under the start direction (default: away from the centre).
  const bool has_start = !start.empty();
  for (std::size_t c = 0; c < query_.size(); ++c) query_[c] = has_start ? start[c] : place[c];
  if (keys_.offsets) query_.back() = std::max(query_.back(), 0.0);
  const TopScore first = [&] {
    if (likely != nullptr && likely->panels.size() > 1) {
      TopScore top = top_score(likely->panels, likely->panels.size(), query_.data(),
                               skip == kNone ? kNone : likely->position_of[skip]);
      if (top.index != kNone) top.index = likely->key_at[top.index];
      return top;
    }
    return top_score(keys_.all, count, query_.data(), skip);
  }();
  if (first.index == kNone) return found;
  offset_of(first.index, place);
  corral_.start(first.index, difference_);

  const std::size_t most_steps = 200 + 20 * (keys_.dimension + 2);
  for (std::size_t step = 0; step < most_steps; ++step) {
    const double distance = std::sqrt(corral_.squared_distance());
    if (corral_.spans()) {
      const Corral::Enclosure enclosure = corral_.enclosure(2 * keys_.point_error + error);
      if (!enclosure.proven) break;
      found.kind = Found::Kind::unselectable;
      found.radius = enclosure.radius;
      double total = 0;
      for (std::size_t a = 0; a < corral_.size(); ++a)
        if (corral_.members()[a] != Corral::kRay) total += corral_.weights()[a];
      for (std::size_t a = 0; a < corral_.size(); ++a)
        if (corral_.members()[a] != Corral::kRay)
          found.cover.push_back({corral_.members()[a], corral_.weights()[a] / total});
      std::sort(found.cover.begin(), found.cover.end(),
                [](const auto& a, const auto& b) { return a.index < b.index; });
      return found;
    }
    if (!(distance > error)) break;
    bool confirmed = false;
    const Rival lowest = rival(place, skip, count, likely, confirmed);
    // A query's offset part must not be negative; where rounding made it so, cutting it off costs this much.
    const double cut = keys_.offsets ? std::max(0.0, -query_.back()) / distance * 2 * keys_.largest_norm : 0.0;
    const double bound = lowest.advantage / distance - cut;
    const bool optimal = lowest.advantage >= kOptimal * corral_.squared_distance();
    const bool done = optimal || (margins_ == Margins::bound && bound > enough);
    if (confirmed && bound > error && bound - error > found.margin) {
      found.kind = Found::Kind::selectable;
      found.margin = bound - error;
      found.query.resize(query_.size());
      for (std::size_t c = 0; c < query_.size(); ++c) found.query[c] = query_[c] / distance;
      if (keys_.offsets) found.query.back() = std::max(found.query.back(), 0.0);
    }
    if (confirmed && done && bound > error) return found;
    if (lowest.key == kNone || corral_.contains(lowest.key)) break;
    offset_of(lowest.key, place);
    if (!corral_.add(lowest.key, difference_)) break;
  }
  if (found.kind == Found::Kind::unclear)
    for (std::size_t member : corral_.members())
      if (member != Corral::kRay) found.hint.push_back(member);
  return found;
}

}  // namespace normscope

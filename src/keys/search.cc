#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "keys/search.cc"
#include "keys/search.h"

// In this order, before highway.h.
// clang-format off
#include "core/targets.h"
#include <hwy/foreach_target.h>
// clang-format on

#include <algorithm>
#include <cmath>
#include <limits>

#include "keys/corral-inl.h"
#include "keys/panels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normscope::HWY_NAMESPACE {
namespace {

// A margin is final once the proven lower bound reaches this share of the upper bound, or rounding hides the
// rest.
constexpr double kOptimal = 1 - 1e-13;
// What rounding hides is far less than this.
constexpr double kBrokenOff = 1 - 1e-6;
// Weights of a cover that are known to so much can be printed.
constexpr double kKnownWeight = 1e-10;
// Panels of likely vertices priced at a time: any key beyond the origin will do to go on, it need not be the
// best.
constexpr std::size_t kChunk = 12;

class Search final : public KeySearch {
 public:
  Search(const FramedKeys& keys, Margins margins)
      : keys_(keys),
        margins_(margins),
        corral_(keys.dimension),
        query_(keys.dimension),
        difference_(keys.dimension),
        rough_query_(keys.dimension) {}

  Found decide(const Question& question) override {
    start(question);
    while (!run()) answer(scan_all());
    return take();
  }

  void start(const Question& question) override {
    question_ = question;
    place_ = question.place;
    found_ = {};
    step_ = 0;
    answered_ = repaired_ = false;
    error_ = score_error(keys_, std::sqrt(dot(place_.data(), place_.data(), keys_.dimension)));
    const std::size_t first = first_rival();
    started_ = first != kNone;
    if (!started_) return;
    take_difference(first);
    corral_.start(first, difference_, 1);
  }

  bool run() override {
    const std::size_t most_steps = 200 + 20 * (keys_.dimension + 2);
    for (; started_ && step_ < most_steps; ++step_) {
      if (corral_.spans()) {
        if (enclosed(2 * keys_.point_error + error_)) return true;
        break;
      }
      const double distance = std::sqrt(corral_.squared_distance());
      if (!(distance > error_)) break;
      if (!answered_ && !rival_among_likely()) return false;
      const bool confirmed = answered_;
      answered_ = false;
      // A query's offset part must not be negative; where rounding made it so, cutting it off costs this
      // much.
      const double cut =
          keys_.offsets ? std::max(0.0, -query_.back()) / distance * 2 * keys_.largest_norm : 0.0;
      const double bound = rival_.advantage / distance - cut;
      if (confirmed && bound > error_) {
        if (bound - error_ > found_.margin) take_witness(bound - error_, distance);
        if (margins_ == Margins::bound && bound > question_.enough) return true;
        if (bound * distance >= optimal()) {
          found_.widest = found_.margin >= kBrokenOff * bound;
          if (found_.widest) return true;
          break;  // as wide as doubles can tell, of keys far larger than it
        }
      }
      if (rival_.key == kNone) break;
      if (!corral_.contains(rival_.key)) {
        take_difference(rival_.key);
        if (corral_.add(rival_.key, difference_, rival_.key == kRay ? 0 : 1)) {
          repaired_ = false;
          continue;
        }
      }
      // No progress: either the end of what doubles resolve, or of what the updated inverse still knows.
      if (repaired_ || !corral_.repair()) break;
      repaired_ = true;
    }
    // A search that broke off far from the widest margin has proven the verdict, not the margin.
    const double distance = started_ ? distance_to_members() : 0;
    const bool broken_off = started_ && found_.kind == Found::Kind::selectable &&
                            margins_ == Margins::exact && found_.margin < kBrokenOff * distance;
    if (started_ && (broken_off || found_.kind == Found::Kind::unclear)) {
      found_.at_most = distance * (1 + 1e-12) + 2 * error_;
      for (std::size_t member : corral_.members())
        if (member != kRay) found_.hint.push_back(member);
    }
    return true;
  }

  void answer(TopScore of_all) override {
    const double advantage = here_ - of_all.score;
    if (question_.likely != nullptr && of_all.index != kNone && advantage < rival_.advantage)
      discovered.push_back(of_all.index);
    rival_ = {of_all.index, advantage};
    answered_ = true;
  }

  std::span<const double> query() const override { return {query_.data(), keys_.dimension}; }
  double passing_score() const override { return here_ - passing(); }
  double level_score() const override {
    // The members' advantages are the squared distance up to rounding, theirs and that of the weights.
    const double squared = corral_.squared_distance();
    return here_ - squared - 1e-6 * squared - error_ * std::sqrt(squared);
  }
  Found take() override { return std::move(found_); }
  void forget() override { next_chunk_ = 0, discovered.clear(); }

 private:
  struct Rival {
    std::size_t key;
    double advantage;  // nearest·(k_j − place), the least over the keys scanned
  };

  // The winner under the direction away from the centre.
  std::size_t first_rival() {
    std::copy(place_.begin(), place_.end(), query_.begin());
    if (keys_.offsets) query_.back() = std::max(query_.back(), 0.0);
    if (const LikelyVertices* likely = question_.likely; likely != nullptr && likely->panels.size() > 1) {
      std::copy(query_.begin(), query_.end(), rough_query_.begin());
      const TopScore top = top_score_in<float>(likely->panels, likely->panels.size(), 0,
                                               std::min(likely->panels.panels(), 2 * kChunk),
                                               rough_query_.data(), own_position());
      if (top.index != kNone) return likely->key_at[top.index];
    }
    return scan_all().index;
  }

  std::size_t own_position() const {
    return question_.skip == kNone ? kNone : question_.likely->position(question_.skip);
  }

  TopScore scan_all() const {
    const std::size_t panels = (question_.count + Panels::kWidth - 1) / Panels::kWidth;
    return top_score_in<double>(keys_.all(), question_.count, 0, panels, query_.data(), question_.skip);
  }

  double optimal() const {
    const double squared = corral_.squared_distance();
    return std::min(kOptimal * squared, squared - error_ * std::sqrt(squared));
  }

  // A key with less advantage than this brings the search on.
  double passing() const { return margins_ == Margins::exact ? optimal() : 0.0; }

  // The key (or the ray) that stands low in the direction of the corral's nearest point. Likely vertices
  // answer alone while they object, chunk after chunk; only what they all let pass is put to all keys
  // (false).
  bool rival_among_likely() {
    const auto x = corral_.nearest();
    for (std::size_t c = 0; c < x.size(); ++c) query_[c] = -x[c];
    here_ = dot(query_.data(), place_.data(), query_.size());
    // The ray has no length to compare with the keys' advantages, so it is taken in as soon as it objects.
    if (keys_.offsets && query_.back() < 0 && !corral_.contains(kRay)) {
      rival_ = {kRay, query_.back()};
      return true;
    }
    rival_ = {kNone, std::numeric_limits<double>::infinity()};
    const LikelyVertices* likely = question_.likely;
    if (likely == nullptr) return false;
    // Chunks are taken in turn, so that a search does not ask the same keys over and over. Single precision
    // picks the candidates; what they are worth is computed in double.
    std::copy(query_.begin(), query_.end(), rough_query_.begin());
    const std::size_t own = own_position(), panels = likely->panels.panels();
    const std::size_t chunks = (panels + kChunk - 1) / kChunk;
    if (next_chunk_ >= chunks) next_chunk_ = 0;
    for (std::size_t k = 0; k < chunks; ++k) {
      const std::size_t begin = (next_chunk_ + k) % chunks * kChunk;
      const TopScore top = top_score_in<float>(likely->panels, likely->panels.size(), begin,
                                               std::min(panels, begin + kChunk), rough_query_.data(), own);
      if (top.index == kNone) continue;
      const std::size_t key = likely->key_at[top.index];
      const double advantage = here_ - dot(query_.data(), keys_.points[key].data(), query_.size());
      if (advantage < rival_.advantage) rival_ = {key, advantage};
      if (rival_.advantage < 0) {
        next_chunk_ = (next_chunk_ + k + 1) % chunks;
        break;
      }
    }
    return rival_.advantage < passing() && !corral_.contains(rival_.key);
  }

  // Of the place to a point of the hull of the corral's members, found anew from weights that are surely
  // convex: an upper bound of the margin, whatever the updated inverse has come to.
  double distance_to_members() {
    std::vector<double> point(difference_.size(), 0.0);
    double total = 0;
    for (std::size_t a = 0; a < corral_.size(); ++a) {
      const double weight = corral_.weights()[a];
      if (!(weight > 0)) continue;
      take_difference(corral_.members()[a]);
      for (std::size_t c = 0; c < point.size(); ++c) point[c] += weight * difference_[c];
      if (corral_.members()[a] != kRay) total += weight;
    }
    return total > 0 ? std::sqrt(dot(point.data(), point.data(), point.size())) / total
                     : std::numeric_limits<double>::infinity();
  }

  void take_difference(std::size_t key) {
    if (key == kRay) {
      std::fill(difference_.begin(), difference_.end(), 0.0);
      difference_.back() = -1;
      return;
    }
    const auto point = keys_.points[key];
    for (std::size_t c = 0; c < difference_.size(); ++c) difference_[c] = point[c] - place_[c];
  }

  void take_witness(double margin, double distance) {
    Found& found = found_;
    found.kind = Found::Kind::selectable;
    found.margin = margin;
    found.query.resize(query_.size());
    for (std::size_t c = 0; c < query_.size(); ++c) found.query[c] = query_[c] / distance;
    if (keys_.offsets) found.query.back() = std::max(found.query.back(), 0.0);
  }

  bool enclosed(double error) {
    Found& found = found_;
    const Corral::Enclosure enclosure = corral_.enclosure(error, kKnownWeight);
    if (!enclosure.proven) return false;
    found.kind = Found::Kind::unselectable;
    found.radius = enclosure.radius;
    double total = 0;
    for (std::size_t a = 0; a < corral_.size(); ++a)
      if (corral_.members()[a] != kRay) total += corral_.weights()[a];
    found.cover.reserve(corral_.size());
    for (std::size_t a = 0; a < corral_.size(); ++a)
      if (corral_.members()[a] != kRay)
        found.cover.push_back({corral_.members()[a], corral_.weights()[a] / total});
    std::sort(found.cover.begin(), found.cover.end(),
              [](const auto& a, const auto& b) { return a.index < b.index; });
    return true;
  }

  const FramedKeys& keys_;
  Margins margins_;
  Corral corral_;
  std::span<const double> place_;
  Question question_;
  std::vector<double> query_, difference_;
  std::vector<float> rough_query_;
  std::size_t next_chunk_ = 0, step_ = 0;
  double error_ = 0, here_ = 0;  // here_: score of the place under query_
  Rival rival_{kNone, 0};
  bool started_ = false, answered_ = false, repaired_ = false;
  Found found_;
};

KeySearch* new_search(const FramedKeys& keys, Margins margins) {
  return new Search(keys, margins);
}

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normscope {

double score_error(const FramedKeys& keys, double place_norm) {
  // A dot product of f terms errs by at most f·u·|q||k|; subtraction and query rounding add a few u more.
  const double rounding = 2 * static_cast<double>(keys.dimension + 8) * 0x1p-53;
  return rounding * (keys.largest_norm + place_norm) + 4 * keys.point_error;
}

void LikelyVertices::add(std::size_t key, const FramedKeys& keys) {
  if (position(key) != kNone) return;
  if (!position_of.empty()) position_of[key] = key_at.size();
  key_at.push_back(key);
  panels.push(keys.points[key]);
}

std::size_t LikelyVertices::position(std::size_t key) const {
  if (!position_of.empty()) return position_of[key];
  const auto at = std::find(key_at.begin(), key_at.end(), key);
  return at == key_at.end() ? kNone : static_cast<std::size_t>(at - key_at.begin());
}

HWY_EXPORT(new_search);

std::unique_ptr<KeySearch> make_key_search(const FramedKeys& keys, Margins margins) {
  return std::unique_ptr<KeySearch>(HWY_DYNAMIC_DISPATCH(new_search)(keys, margins));
}

}  // namespace normscope
#endif

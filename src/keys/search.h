#pragma once
// The floating-point search for one key's certificate: Wolfe's nearest point of {k_j − k_i}, with Clarkson's
// outer loop (scan the likely vertices first, all keys only to confirm). Whatever it claims is proven by an
// error bound; what it cannot prove it calls unclear.
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/shared_array.h"
#include "keys/panels.h"
#include "normscope/keys.h"

namespace normscope {

// Stands for the downward ray of the problem with offsets among the keys.
inline constexpr std::size_t kRay = static_cast<std::size_t>(-2);

// Panels of points, made when they are first asked for: in many dimensions they seldom are. Copies share them.
class LazyPanels {
 public:
  const Panels& of(const SharedMatrix& points) const {
    if (!made_->ready.load(std::memory_order_acquire))
      std::call_once(made_->once, [&] {
        made_->panels = Panels(points.cols());
        made_->panels.reserve(points.rows());
        for (std::size_t k = 0; k < points.rows(); ++k) made_->panels.push(points[k]);
        made_->ready.store(true, std::memory_order_release);
      });
    return made_->panels;
  }

 private:
  struct Made {
    std::once_flag once;
    std::atomic<bool> ready = false;
    Panels panels;
  };
  std::shared_ptr<Made> made_ = std::make_shared<Made>();
};

// Distinct keys in an orthonormal frame of their affine hull; with offsets the last coordinate is the offset.
struct FramedKeys {
  std::size_t dimension = 0;
  bool offsets = false;
  SharedMatrix points;  // count × dimension
  LazyPanels panels;
  double largest_norm = 0;
  double point_error = 0;  // bound on the distance of a frame point from its exact place

  const Panels& all() const { return panels.of(points); }
};

// Bound on the error of a score difference q·(u_i − u_j) computed from frame points, for ‖q‖ = 1.
double score_error(const FramedKeys& keys, double place_norm);

// Keys scanned first. Every key it lists is also in FramedKeys.
struct LikelyVertices {
  RoughPanels panels;
  std::vector<std::size_t> key_at;       // position → key
  std::vector<std::size_t> position_of;  // key → position, kNone if absent; empty: positions are looked up
  void add(std::size_t key, const FramedKeys& keys);
  std::size_t position(std::size_t key) const;
};

struct Found {
  enum class Kind { selectable, unselectable, unclear } kind = Kind::unclear;
  std::vector<double> query;  // selectable: unit witness in the frame (with offsets its last entry is ≥ 0)
  double margin = 0;          // selectable: proven lower bound of the margin
  bool widest =
      false;  // selectable: the search ended where no key allows a wider margin that doubles could tell
  double at_most = 0;              // its upper bound, where the search broke off before the two met; else 0
  double radius = 0;               // unselectable: proven radius of a ball inside the cover
  std::vector<CoverTerm> cover;    // unselectable: weights sum to 1, the ray left out
  std::vector<std::size_t> hint;   // unclear, or broken off: where the search stopped
  bool own_place = false;          // found from the key's own place, by less than the frame may resolve
  std::vector<double> query_rest;  // where doubles do not hold the query found: what is to be added to it
};

// What is asked about one place.
struct Question {
  std::span<const double> place;           // usually a key's own point; depth is measured by moving it
  std::size_t skip = kNone;                // the key itself, not to be compared with
  std::size_t count = 0;                   // only the first `count` keys exist
  const LikelyVertices* likely = nullptr;  // none: all keys are scanned every time
  double enough = 0;  // a margin that settles the question when only a bound is asked for
};

class KeySearch {
 public:
  virtual ~KeySearch() = default;
  virtual Found decide(const Question& question) = 0;

  // The same in steps, so that searches for several keys can share their passes over all keys: start, then
  // run until it returns true; while it returns false it waits for the top score of all keys under query().
  virtual void start(const Question& question) = 0;
  virtual bool run() = 0;
  virtual void answer(TopScore of_all) = 0;
  virtual std::span<const double> query() const = 0;
  // Keys whose score exceeds this (of the key's own place under query()) would bring the search on.
  virtual double passing_score() const = 0;
  // No higher than the scores of the keys that hold the nearest point: the top score is not below it.
  virtual double level_score() const = 0;
  virtual Found take() = 0;
  // What the next search finds no longer depends on those before.
  virtual void forget() = 0;

  // Keys that beat a query the likely vertices had confirmed; they belong among the likely vertices.
  std::vector<std::size_t> discovered;
};

// For the instruction set of this machine. The search keeps a reference to `keys`.
std::unique_ptr<KeySearch> make_key_search(const FramedKeys& keys, Margins margins);

}  // namespace normscope

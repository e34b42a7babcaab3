#pragma once
// Points packed for scanning: panels of 8 doubles or 16 floats, each holding its coordinates row by row, so
// that one scan streams memory once and every load feeds a full vector. Padding lanes score −∞.
#include <cstddef>
#include <span>
#include <vector>

namespace normscope {

template <class T>
class PanelsOf {
 public:
  static constexpr std::size_t kWidth = 64 / sizeof(T);  // a row is a cache line

  PanelsOf() = default;
  explicit PanelsOf(std::size_t dimension) : dimension_(dimension) {}

  void reserve(std::size_t points);
  void push(std::span<const double> point);
  void clear() { size_ = 0, values_.clear(); }

  std::size_t size() const { return size_; }
  std::size_t panels() const { return (size_ + kWidth - 1) / kWidth; }
  std::size_t dimension() const { return dimension_; }
  // Panel p: one row of base scores (0, or −∞ for padding), then dimension() rows of kWidth coordinates.
  const T* panel(std::size_t p) const { return values_.data() + p * stride(); }
  std::size_t stride() const { return (dimension_ + 1) * kWidth; }

 private:
  std::size_t dimension_ = 0, size_ = 0;
  std::vector<T> values_;
};

using Panels = PanelsOf<double>;
// Half the memory to stream; for choosing keys to look at, not for proofs.
using RoughPanels = PanelsOf<float>;

inline constexpr std::size_t kNone = static_cast<std::size_t>(-1);

struct TopScore {
  double score;       // −∞ if there is no point to score
  std::size_t index;  // lowest index among equal scores; kNone if there is none
};

// Highest score query·point over the first `count` points, leaving out the point at position `skip` (kNone:
// none).
TopScore top_score(const Panels& points, std::size_t count, const double* query, std::size_t skip);

// The same for several queries at once (queries + k·query_stride is query k): one pass over the points per
// group of queries, which is what makes large sets compute-bound.
void top_scores(const Panels& points, std::size_t count, const double* queries, std::size_t query_stride,
                std::span<const std::size_t> skips, std::span<TopScore> best);
void top_scores(const RoughPanels& points, std::size_t count, const float* queries, std::size_t query_stride,
                std::span<const std::size_t> skips, std::span<TopScore> best);

}  // namespace normscope

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "keys/panels.cc"
// In this order, before highway.h.
// clang-format off
#include "core/targets.h"
#include <hwy/foreach_target.h>
// clang-format on

#include "keys/panels-inl.h"

#if HWY_ONCE
namespace normscope {

template <class T>
void PanelsOf<T>::reserve(std::size_t points) {
  values_.reserve((points + kWidth - 1) / kWidth * stride());
}

template <class T>
void PanelsOf<T>::push(std::span<const double> point) {
  const std::size_t lane = size_ % kWidth;
  if (lane == 0) {
    const std::size_t start = values_.size();
    values_.resize(start + stride(), T(0));
    std::fill_n(values_.begin() + static_cast<std::ptrdiff_t>(start), kWidth,
                -std::numeric_limits<T>::infinity());
  }
  T* panel = values_.data() + size_ / kWidth * stride();
  panel[lane] = 0;
  for (std::size_t c = 0; c < dimension_; ++c) panel[(c + 1) * kWidth + lane] = static_cast<T>(point[c]);
  ++size_;
}

template class PanelsOf<double>;
template class PanelsOf<float>;

HWY_EXPORT(exact_top_scores);
HWY_EXPORT(rough_top_scores);

void top_scores(const RoughPanels& points, std::size_t count, const float* queries, std::size_t query_stride,
                std::span<const std::size_t> skips, std::span<TopScore> best) {
  HWY_DYNAMIC_DISPATCH(rough_top_scores)
  (points, count, queries, query_stride, skips.data(), best.data(), best.size());
}

void top_scores(const Panels& points, std::size_t count, const double* queries, std::size_t query_stride,
                std::span<const std::size_t> skips, std::span<TopScore> best) {
  HWY_DYNAMIC_DISPATCH(exact_top_scores)
  (points, count, queries, query_stride, skips.data(), best.data(), best.size());
}

TopScore top_score(const Panels& points, std::size_t count, const double* query, std::size_t skip) {
  TopScore best;
  HWY_DYNAMIC_DISPATCH(exact_top_scores)(points, count, query, points.dimension(), &skip, &best, 1);
  return best;
}

}  // namespace normscope
#endif

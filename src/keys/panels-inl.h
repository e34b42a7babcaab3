// Scan kernels, compiled once per instruction set (included by files that use foreach_target.h).
#if defined(NORMSCOPE_KEYS_PANELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMSCOPE_KEYS_PANELS_INL_H_
#undef NORMSCOPE_KEYS_PANELS_INL_H_
#else
#define NORMSCOPE_KEYS_PANELS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "keys/panels.h"

HWY_BEFORE_NAMESPACE();
namespace normscope::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
template <class T>
using Tag = hn::CappedTag<T, PanelsOf<T>::kWidth>;
template <class T>
using Vec = hn::Vec<Tag<T>>;
template <class T>
constexpr std::size_t kLanes = hn::MaxLanes(Tag<T>());
template <class T>
constexpr std::size_t kParts = PanelsOf<T>::kWidth / kLanes<T>;

template <class T>
constexpr T kMinusInfinity = -std::numeric_limits<T>::infinity();

HWY_INLINE double dot(const double* HWY_RESTRICT a, const double* HWY_RESTRICT b, std::size_t count) {
  const Tag<double> tag;
  auto sum = hn::Zero(tag);
  std::size_t c = 0;
  for (; c + kLanes<double> <= count; c += kLanes<double>)
    sum = hn::MulAdd(hn::LoadU(tag, a + c), hn::LoadU(tag, b + c), sum);
  double total = hn::GetLane(hn::SumOfLanes(tag, sum));
  for (; c < count; ++c) total += a[c] * b[c];
  return total;
}

// Scores of one panel under kQueries queries: score[k][part], part-th vector of the panel's lanes.
template <std::size_t kQueries, class T>
HWY_INLINE void score_panel(const T* HWY_RESTRICT panel, std::size_t dimension, const T* HWY_RESTRICT queries,
                            std::size_t stride, Vec<T> (&score)[kQueries][kParts<T>]) {
  const Tag<T> tag;
  for (std::size_t part = 0; part < kParts<T>; ++part) {
    const Vec<T> base = hn::LoadU(tag, panel + part * kLanes<T>);
    for (std::size_t k = 0; k < kQueries; ++k) score[k][part] = base;
  }
  const T* row = panel + PanelsOf<T>::kWidth;
  for (std::size_t c = 0; c < dimension; ++c, row += PanelsOf<T>::kWidth) {
    Vec<T> coordinate[kParts<T>];
    for (std::size_t part = 0; part < kParts<T>; ++part)
      coordinate[part] = hn::LoadU(tag, row + part * kLanes<T>);
    for (std::size_t k = 0; k < kQueries; ++k) {
      const Vec<T> q = hn::Set(tag, queries[k * stride + c]);
      for (std::size_t part = 0; part < kParts<T>; ++part)
        score[k][part] = hn::MulAdd(q, coordinate[part], score[k][part]);
    }
  }
}

// Removes lanes of a panel's scores from the contest.
template <class T>
HWY_INLINE void drop_lanes(Vec<T> (&score)[kParts<T>], std::size_t from, std::size_t to) {
  const Tag<T> tag;
  HWY_ALIGN T lanes[PanelsOf<T>::kWidth];
  for (std::size_t part = 0; part < kParts<T>; ++part) hn::Store(score[part], tag, lanes + part * kLanes<T>);
  for (std::size_t lane = from; lane < to; ++lane) lanes[lane] = kMinusInfinity<T>;
  for (std::size_t part = 0; part < kParts<T>; ++part) score[part] = hn::Load(tag, lanes + part * kLanes<T>);
}

// Folds the panels [begin, end) into the best scores so far. Panel numbers are kept in lanes of T: floats
// count to 2^24 panels, 268 million points.
template <std::size_t kQueries, class T>
void fold_top_scores(const PanelsOf<T>& points, std::size_t count, std::size_t begin, std::size_t end,
                     const T* queries, std::size_t stride, const std::size_t* skips, TopScore* out) {
  constexpr std::size_t width = PanelsOf<T>::kWidth;
  const Tag<T> tag;
  Vec<T> best[kQueries][kParts<T>], where[kQueries][kParts<T>];
  for (std::size_t k = 0; k < kQueries; ++k)
    for (std::size_t part = 0; part < kParts<T>; ++part) {
      best[k][part] = hn::Set(tag, kMinusInfinity<T>);
      where[k][part] = hn::Set(tag, T(-1));
    }
  for (std::size_t p = begin; p < end; ++p) {
    Vec<T> score[kQueries][kParts<T>];
    score_panel<kQueries, T>(points.panel(p), points.dimension(), queries, stride, score);
    const std::size_t first = p * width;
    const Vec<T> panel_index = hn::Set(tag, static_cast<T>(p));
    for (std::size_t k = 0; k < kQueries; ++k) {
      if (HWY_UNLIKELY(skips[k] - first < width))
        drop_lanes<T>(score[k], skips[k] - first, skips[k] - first + 1);
      if (HWY_UNLIKELY(count - first < width)) drop_lanes<T>(score[k], count - first, width);
      for (std::size_t part = 0; part < kParts<T>; ++part) {
        const auto higher = hn::Gt(score[k][part], best[k][part]);
        best[k][part] = hn::IfThenElse(higher, score[k][part], best[k][part]);
        where[k][part] = hn::IfThenElse(higher, panel_index, where[k][part]);
      }
    }
  }
  // The highest lane, and the lowest point among equals; without branches, since which lane wins is anyone's
  // guess.
  for (std::size_t k = 0; k < kQueries; ++k) {
    Vec<T> top = best[k][0];
    for (std::size_t part = 1; part < kParts<T>; ++part) top = hn::Max(top, best[k][part]);
    top = hn::MaxOfLanes(tag, top);
    const T score = hn::GetLane(top);
    if (score == kMinusInfinity<T>) continue;
    Vec<T> lowest = hn::Set(tag, std::numeric_limits<T>::infinity());
    for (std::size_t part = 0; part < kParts<T>; ++part) {
      const Vec<T> index = hn::MulAdd(where[k][part], hn::Set(tag, static_cast<T>(width)),
                                      hn::Iota(tag, static_cast<T>(part * kLanes<T>)));
      lowest = hn::Min(lowest, hn::IfThenElse(hn::Eq(best[k][part], top), index,
                                              hn::Set(tag, std::numeric_limits<T>::infinity())));
    }
    const auto index = static_cast<std::size_t>(hn::GetLane(hn::MinOfLanes(tag, lowest)));
    if (score > out[k].score || (score == out[k].score && index < out[k].index)) out[k] = {score, index};
  }
}

// Folds the panels [begin, end) for any number of queries.
template <class T>
HWY_MAYBE_UNUSED void fold_queries(const PanelsOf<T>& points, std::size_t count, std::size_t begin,
                                   std::size_t end, const T* queries, std::size_t stride,
                                   const std::size_t* skips, TopScore* best, std::size_t query_count) {
  constexpr std::size_t kGroup = 4;
  std::size_t k = 0;
  for (; k + kGroup <= query_count; k += kGroup)
    fold_top_scores<kGroup, T>(points, count, begin, end, queries + k * stride, stride, skips + k, best + k);
  for (; k < query_count; ++k)
    fold_top_scores<1, T>(points, count, begin, end, queries + k * stride, stride, skips + k, best + k);
}

// Points are walked in steps that stay in cache while all queries pass over them.
template <class T>
HWY_MAYBE_UNUSED void many_top_scores(const PanelsOf<T>& points, std::size_t count, const T* queries,
                                      std::size_t stride, const std::size_t* skips, TopScore* best,
                                      std::size_t query_count) {
  constexpr std::size_t kCacheBytes = std::size_t{256} << 10, width = PanelsOf<T>::kWidth;
  const std::size_t panels = (count + width - 1) / width;
  const std::size_t cached = std::max<std::size_t>(1, kCacheBytes / (points.stride() * sizeof(T)));
  std::fill_n(best, query_count, TopScore{-std::numeric_limits<double>::infinity(), kNone});
  for (std::size_t begin = 0; begin < panels; begin += cached)
    fold_queries<T>(points, count, begin, std::min(panels, begin + cached), queries, stride, skips, best,
                    query_count);
}

HWY_MAYBE_UNUSED void exact_top_scores(const Panels& points, std::size_t count, const double* queries,
                                       std::size_t stride, const std::size_t* skips, TopScore* best,
                                       std::size_t query_count) {
  many_top_scores<double>(points, count, queries, stride, skips, best, query_count);
}

HWY_MAYBE_UNUSED void rough_top_scores(const RoughPanels& points, std::size_t count, const float* queries,
                                       std::size_t stride, const std::size_t* skips, TopScore* best,
                                       std::size_t query_count) {
  many_top_scores<float>(points, count, queries, stride, skips, best, query_count);
}

// The best of the panels [begin, end) for one query.
template <class T>
HWY_MAYBE_UNUSED TopScore top_score_in(const PanelsOf<T>& points, std::size_t count, std::size_t begin,
                                       std::size_t end, const T* query, std::size_t skip) {
  TopScore best{-std::numeric_limits<double>::infinity(), kNone};
  fold_top_scores<1, T>(points, count, begin, end, query, 0, &skip, &best);
  return best;
}

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // NORMSCOPE_KEYS_PANELS_INL_H_

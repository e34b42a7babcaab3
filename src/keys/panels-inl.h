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
using Tag = hn::CappedTag<double, Panels::kWidth>;
using Vec = hn::Vec<Tag>;
constexpr std::size_t kLanes = hn::MaxLanes(Tag());
constexpr std::size_t kParts = Panels::kWidth / kLanes;

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// Scores of one panel under kQueries queries: score[k][part], part-th vector of the panel's lanes.
template <std::size_t kQueries>
HWY_INLINE void score_panel(const double* HWY_RESTRICT panel, std::size_t dimension,
                            const double* HWY_RESTRICT queries, std::size_t stride,
                            Vec (&score)[kQueries][kParts]) {
  const Tag tag;
  for (std::size_t part = 0; part < kParts; ++part) {
    const Vec base = hn::LoadU(tag, panel + part * kLanes);
    for (std::size_t k = 0; k < kQueries; ++k) score[k][part] = base;
  }
  const double* row = panel + Panels::kWidth;
  for (std::size_t c = 0; c < dimension; ++c, row += Panels::kWidth) {
    Vec coordinate[kParts];
    for (std::size_t part = 0; part < kParts; ++part) coordinate[part] = hn::LoadU(tag, row + part * kLanes);
    for (std::size_t k = 0; k < kQueries; ++k) {
      const Vec q = hn::Set(tag, queries[k * stride + c]);
      for (std::size_t part = 0; part < kParts; ++part)
        score[k][part] = hn::MulAdd(q, coordinate[part], score[k][part]);
    }
  }
}

// Removes one lane of a panel's scores from the contest.
HWY_INLINE void drop_lanes(Vec (&score)[kParts], std::size_t from, std::size_t to) {
  const Tag tag;
  HWY_ALIGN double lanes[Panels::kWidth];
  for (std::size_t part = 0; part < kParts; ++part) hn::Store(score[part], tag, lanes + part * kLanes);
  for (std::size_t lane = from; lane < to; ++lane) lanes[lane] = kMinusInfinity;
  for (std::size_t part = 0; part < kParts; ++part) score[part] = hn::Load(tag, lanes + part * kLanes);
}

// Folds the panels [begin, end) into the best scores so far.
template <std::size_t kQueries>
void fold_top_scores(const Panels& points, std::size_t count, std::size_t begin, std::size_t end,
                     const double* queries, std::size_t stride, const std::size_t* skips, TopScore* out) {
  const Tag tag;
  Vec best[kQueries][kParts], where[kQueries][kParts];
  for (std::size_t k = 0; k < kQueries; ++k)
    for (std::size_t part = 0; part < kParts; ++part) {
      best[k][part] = hn::Set(tag, kMinusInfinity);
      where[k][part] = hn::Set(tag, -1.0);
    }
  for (std::size_t p = begin; p < end; ++p) {
    Vec score[kQueries][kParts];
    score_panel<kQueries>(points.panel(p), points.dimension(), queries, stride, score);
    const std::size_t first = p * Panels::kWidth;
    const Vec panel_index = hn::Set(tag, static_cast<double>(p));
    for (std::size_t k = 0; k < kQueries; ++k) {
      if (HWY_UNLIKELY(skips[k] - first < Panels::kWidth))
        drop_lanes(score[k], skips[k] - first, skips[k] - first + 1);
      if (HWY_UNLIKELY(count - first < Panels::kWidth)) drop_lanes(score[k], count - first, Panels::kWidth);
      for (std::size_t part = 0; part < kParts; ++part) {
        const auto higher = hn::Gt(score[k][part], best[k][part]);
        best[k][part] = hn::IfThenElse(higher, score[k][part], best[k][part]);
        where[k][part] = hn::IfThenElse(higher, panel_index, where[k][part]);
      }
    }
  }
  for (std::size_t k = 0; k < kQueries; ++k) {
    HWY_ALIGN double lanes[Panels::kWidth], panel_of[Panels::kWidth];
    for (std::size_t part = 0; part < kParts; ++part) {
      hn::Store(best[k][part], tag, lanes + part * kLanes);
      hn::Store(where[k][part], tag, panel_of + part * kLanes);
    }
    for (std::size_t lane = 0; lane < Panels::kWidth; ++lane) {
      if (panel_of[lane] < 0) continue;
      const std::size_t index = static_cast<std::size_t>(panel_of[lane]) * Panels::kWidth + lane;
      if (lanes[lane] > out[k].score || (lanes[lane] == out[k].score && index < out[k].index))
        out[k] = {lanes[lane], index};
    }
  }
}

// Folds the panels [begin, end) for any number of queries.
HWY_MAYBE_UNUSED void fold_queries(const Panels& points, std::size_t count, std::size_t begin,
                                   std::size_t end, const double* queries, std::size_t stride,
                                   const std::size_t* skips, TopScore* best, std::size_t query_count) {
  constexpr std::size_t kGroup = 4;
  std::size_t k = 0;
  for (; k + kGroup <= query_count; k += kGroup)
    fold_top_scores<kGroup>(points, count, begin, end, queries + k * stride, stride, skips + k, best + k);
  for (; k < query_count; ++k)
    fold_top_scores<1>(points, count, begin, end, queries + k * stride, stride, skips + k, best + k);
}

// Points are walked in steps that stay in cache while all queries pass over them.
HWY_MAYBE_UNUSED void many_top_scores(const Panels& points, std::size_t count, const double* queries,
                                      std::size_t stride, const std::size_t* skips, TopScore* best,
                                      std::size_t query_count, std::size_t blocks) {
  constexpr std::size_t kCacheBytes = std::size_t{256} << 10;
  const std::size_t panels = (count + Panels::kWidth - 1) / Panels::kWidth;
  const std::size_t cached = std::max<std::size_t>(1, kCacheBytes / (points.stride() * sizeof(double)));
  std::fill_n(best, blocks * query_count, TopScore{kMinusInfinity, kNone});
  for (std::size_t b = 0; b < blocks; ++b) {
    const std::size_t block_end = panels * (b + 1) / blocks;
    for (std::size_t begin = panels * b / blocks; begin < block_end; begin += cached)
      fold_queries(points, count, begin, std::min(block_end, begin + cached), queries, stride, skips,
                   best + b * query_count, query_count);
  }
}

// The best of the panels [begin, end) for one query.
HWY_MAYBE_UNUSED TopScore top_score_in(const Panels& points, std::size_t count, std::size_t begin,
                                       std::size_t end, const double* query, std::size_t skip) {
  TopScore best{kMinusInfinity, kNone};
  fold_top_scores<1>(points, count, begin, end, query, 0, &skip, &best);
  return best;
}

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // NORMSCOPE_KEYS_PANELS_INL_H_

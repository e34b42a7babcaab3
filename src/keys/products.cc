#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "keys/products.cc"
#include "keys/products.h"

// In this order, before highway.h.
// clang-format off
#include "core/targets.h"
#include <hwy/foreach_target.h>
// clang-format on

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "keys/panels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normscope::HWY_NAMESPACE {
namespace {

constexpr std::size_t kPanel = SlicedPoints::kWidth;
using PairTag = hn::CappedTag<float, 16>;
using PairVec = hn::Vec<PairTag>;
constexpr std::size_t kPairLanes = hn::MaxLanes(PairTag());
// A tile of sums that stays in registers: AVX-512 8 points × 48, AVX2 4 × 24, SSE2 2 × 24.
constexpr std::size_t kTileRows = kPairLanes == 1 ? 1 : kPairLanes / 2, kTileParts = kPairLanes < 8 ? 6 : 3,
                      kTileColumns = kTileParts * kPairLanes;
static_assert(kPanel % kTileColumns == 0 && kPanel % kTileRows == 0);

template <class Mask>
HWY_INLINE unsigned mask_bits(Mask mask) {
  std::uint8_t bytes[8] = {};
  hn::StoreMaskBits(PairTag(), mask, bytes);
  return bytes[0] | static_cast<unsigned>(bytes[1]) << 8;
}

// sum[r][part]: upper bounds of the scores of points `row` + r of one panel and all of `second`'s columns.
HWY_INLINE void multiply_tile(const float* HWY_RESTRICT first, const float* HWY_RESTRICT second,
                              std::size_t depth, PairVec (&sum)[kTileRows][kTileParts]) {
  const PairTag tag;
  for (std::size_t part = 0; part < kTileParts; ++part) {
    const PairVec rest = hn::LoadU(tag, second + part * kPairLanes);
    for (std::size_t r = 0; r < kTileRows; ++r) sum[r][part] = hn::Mul(hn::Set(tag, first[r]), rest);
  }
  for (std::size_t c = 1; c < depth; ++c) {
    first += kPanel, second += kPanel;
    PairVec column[kTileParts];
    for (std::size_t part = 0; part < kTileParts; ++part)
      column[part] = hn::LoadU(tag, second + part * kPairLanes);
    for (std::size_t r = 0; r < kTileRows; ++r) {
      const PairVec row = hn::Set(tag, first[r]);
      for (std::size_t part = 0; part < kTileParts; ++part)
        sum[r][part] = hn::MulAdd(row, column[part], sum[r][part]);
    }
  }
}

// Two different panels; tops are of this panel pair's points, those of the rows a vector each.
void bound_panels(const SlicedPoints& points, std::size_t p, std::size_t q, float* HWY_RESTRICT row_tops,
                  float* HWY_RESTRICT column_tops,
                  std::vector<std::pair<std::uint32_t, std::uint32_t>>& open) {
  const PairTag tag;
  const float* settled_at = points.settled_at.data() + q * kPanel;
  for (std::size_t column = 0; column < kPanel; column += kTileColumns)
    for (std::size_t row = 0; row < kPanel; row += kTileRows) {
      PairVec sum[kTileRows][kTileParts];
      multiply_tile(points.panel(p) + row, points.panel(q) + column, points.slice + 1, sum);
      for (std::size_t r = 0; r < kTileRows; ++r) {
        PairVec top = sum[r][0];
        for (std::size_t part = 1; part < kTileParts; ++part) top = hn::Max(top, sum[r][part]);
        float* at = row_tops + (row + r) * kPairLanes;
        hn::StoreU(hn::Max(top, hn::LoadU(tag, at)), tag, at);
      }
      bool all_settled = true;
      for (std::size_t part = 0; part < kTileParts; ++part) {
        PairVec top = sum[0][part];
        for (std::size_t r = 1; r < kTileRows; ++r) top = hn::Max(top, sum[r][part]);
        float* at = column_tops + column + part * kPairLanes;
        hn::StoreU(hn::Max(top, hn::LoadU(tag, at)), tag, at);
        all_settled = all_settled &&
                      hn::AllFalse(tag, hn::Gt(top, hn::LoadU(tag, settled_at + column + part * kPairLanes)));
      }
      if (HWY_LIKELY(all_settled)) continue;
      for (std::size_t part = 0; part < kTileParts; ++part) {
        const std::size_t at = column + part * kPairLanes;
        const PairVec limit = hn::LoadU(tag, settled_at + at);
        for (std::size_t r = 0; r < kTileRows; ++r) {
          for (unsigned bits = mask_bits(hn::Gt(sum[r][part], limit)); bits != 0; bits &= bits - 1)
            open.emplace_back(static_cast<std::uint32_t>(p * kPanel + row + r),
                              static_cast<std::uint32_t>(q * kPanel + at) +
                                  static_cast<std::uint32_t>(std::countr_zero(bits)));
        }
      }
    }
}

// A panel with itself, each pair once.
void bound_panel(const SlicedPoints& points, std::size_t p, float* tops,
                 std::vector<std::pair<std::uint32_t, std::uint32_t>>& open) {
  const PairTag tag;
  HWY_ALIGN float scores[kTileColumns];
  for (std::size_t row = 0; row < kPanel; row += kTileRows)
    for (std::size_t column = row / kTileColumns * kTileColumns; column < kPanel; column += kTileColumns) {
      PairVec sum[kTileRows][kTileParts];
      multiply_tile(points.panel(p) + row, points.panel(p) + column, points.slice + 1, sum);
      for (std::size_t r = 0; r < kTileRows; ++r) {
        const std::size_t i = row + r;
        for (std::size_t part = 0; part < kTileParts; ++part)
          hn::Store(sum[r][part], tag, scores + part * kPairLanes);
        for (std::size_t j = std::max(i + 1, column);
             j < std::min(column + kTileColumns, points.count - p * kPanel); ++j) {
          const float score = scores[j - column];
          tops[i] = std::max(tops[i], score);
          tops[j] = std::max(tops[j], score);
          if (score > points.settled_at[p * kPanel + j])
            open.emplace_back(static_cast<std::uint32_t>(p * kPanel + i),
                              static_cast<std::uint32_t>(p * kPanel + j));
        }
      }
    }
}

HWY_MAYBE_UNUSED void bound_runs(const SlicedPoints& points, std::size_t first_begin, std::size_t first_end,
                                 std::size_t second_begin, std::size_t second_end, PairBounds& out) {
  const float least = -std::numeric_limits<float>::infinity();
  out.first.assign((first_end - first_begin) * kPanel, least);
  out.second.assign((second_end - second_begin) * kPanel, least);
  out.open.clear();
  std::vector<float> row_tops(out.first.size() * kPairLanes, least);
  for (std::size_t q = second_begin; q < second_end; ++q) {
    float* column_tops = out.second.data() + (q - second_begin) * kPanel;
    for (std::size_t p = first_begin; p < std::min(first_end, q); ++p)
      bound_panels(points, p, q, row_tops.data() + (p - first_begin) * kPanel * kPairLanes, column_tops,
                   out.open);
    if (q >= first_begin && q < first_end) bound_panel(points, q, column_tops, out.open);
  }
  for (std::size_t i = 0; i < out.first.size(); ++i)
    out.first[i] = *std::max_element(row_tops.begin() + static_cast<std::ptrdiff_t>(i * kPairLanes),
                                     row_tops.begin() + static_cast<std::ptrdiff_t>((i + 1) * kPairLanes));
}

// What may score above its query's limit, panel by panel. queries: a panel of `count` of them.
HWY_MAYBE_UNUSED void list_above(const SlicedPoints& points, const float* queries, std::size_t count,
                                 const float* limits, std::vector<std::vector<ListedScore>>& listed) {
  const PairTag tag;
  for (std::size_t q = 0; q < points.panels(); ++q)
    for (std::size_t column = 0; column < kPanel; column += kTileColumns)
      for (std::size_t row = 0; row < count; row += kTileRows) {
        PairVec sum[kTileRows][kTileParts];
        multiply_tile(queries + row, points.panel(q) + column, points.slice + 1, sum);
        for (std::size_t r = 0; r < kTileRows; ++r) {
          const PairVec limit = hn::Set(tag, limits[row + r]);
          PairVec top = sum[r][0];
          for (std::size_t part = 1; part < kTileParts; ++part) top = hn::Max(top, sum[r][part]);
          if (HWY_LIKELY(hn::AllFalse(tag, hn::Gt(top, limit)))) continue;
          HWY_ALIGN float scores[kPairLanes];
          for (std::size_t part = 0; part < kTileParts; ++part) {
            unsigned above = mask_bits(hn::Gt(sum[r][part], limit));
            if (above != 0) hn::Store(sum[r][part], tag, scores);
            for (; above != 0; above &= above - 1) {
              const auto lane = static_cast<std::size_t>(std::countr_zero(above));
              listed[row + r].push_back({q * kPanel + column + part * kPairLanes + lane, scores[lane]});
            }
          }
        }
      }
}

// scores[k] = the score of the k-th pair, in doubles.
HWY_MAYBE_UNUSED void score_pairs(const SharedMatrix& points, std::span<const std::size_t> key,
                                  std::span<const std::pair<std::uint32_t, std::uint32_t>> pairs,
                                  double* scores) {
  for (std::size_t k = 0; k < pairs.size(); ++k)
    scores[k] = dot(points[key[pairs[k].first]].data(), points[key[pairs[k].second]].data(), points.cols());
}

HWY_MAYBE_UNUSED void score_some(const SharedMatrix& points, std::span<const double> query,
                                 std::span<const std::size_t> keys, double* scores) {
  for (std::size_t k = 0; k < keys.size(); ++k)
    scores[k] = dot(query.data(), points[keys[k]].data(), points.cols());
}

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <numeric>

#include "core/decompose.h"
#include "core/gemm.h"
#include "core/run_pieces.h"

namespace normscope {
namespace {

constexpr double kSingle = 0x1p-24, kDouble = 0x1p-53;
// Above all that underflow takes from a sum of fewer than 2^20 products of numbers up to 2.
constexpr double kUnderflow = 0x1p-100;
// In multiply-adds of the products: one pair in double precision, besides those of its coordinates, each of which
// takes so many.
constexpr double kOpenPair = 400, kOpenCoordinate = 5;
constexpr std::size_t kSampledPairs = 4096;
// Panels of a piece at most, and of those that are passed over again and again, bytes.
constexpr std::size_t kPiecePanels = 100, kCacheBytes = std::size_t{384} << 10;

// What the rests must add so that computed sums are upper bounds, in shares of ‖x‖‖y‖: two roundings of each term
// and partial sum, one of each coordinate, and the norms' own.
double rounding_share(std::size_t slice, std::size_t dimension, double frame_error) {
  const double steps = 2 * static_cast<double>(slice + 2) * kSingle;
  return 1.01 * (steps + 2 * kSingle) + frame_error + 4 * static_cast<double>(dimension + 8) * kDouble;
}

float rounded_up(double value) {
  const auto single = static_cast<float>(value);
  return static_cast<double>(single) >= value
             ? single
             : std::nextafter(single, std::numeric_limits<float>::infinity());
}

float rounded_down(double value) {
  return -rounded_up(-value);
}

// Points of `keys`, scaled, in the frame: a row each.
Matrix<double> lead(const SharedMatrix& points, const LeadingFrame& frame, double scale,
                    std::span<const std::size_t> keys) {
  const std::size_t d = points.cols();
  Matrix<double> rows(keys.size(), d);
  for (std::size_t k = 0; k < keys.size(); ++k)
    for (std::size_t c = 0; c < d; ++c)
      rows(k, c) = scale * points(keys[k], frame.columns.rows() == 0 ? frame.coordinates[c] : c);
  if (frame.columns.rows() == 0) return rows;
  Matrix<double> turned(keys.size(), d);
  multiply<double>(1, rows.view(), frame.columns.view(), Transpose::no, 0, turned.view());
  return turned;
}

// A power of two that takes the longest to about 1.
double scale_of(const SharedMatrix& points) {
  double most = 0;
  for (std::size_t k = 0; k < points.rows(); ++k)
    most = std::max(most, std::inner_product(points[k].begin(), points[k].end(), points[k].begin(), 0.0));
  return most > 0 ? std::ldexp(1.0, -std::ilogb(std::sqrt(most))) : 1.0;
}

// Coordinates in the order of their spread.
LeadingFrame widest_coordinates(const SharedMatrix& points) {
  LeadingFrame frame;
  std::vector<double> squares(points.cols());
  for (std::size_t k = 0; k < points.rows(); ++k)
    for (std::size_t c = 0; c < points.cols(); ++c) squares[c] += points(k, c) * points(k, c);
  frame.coordinates.resize(points.cols());
  std::iota(frame.coordinates.begin(), frame.coordinates.end(), std::size_t{0});
  std::sort(frame.coordinates.begin(), frame.coordinates.end(), [&](std::size_t a, std::size_t b) {
    return squares[a] != squares[b] ? squares[a] > squares[b] : a < b;
  });
  return frame;
}

// The principal axes of some of the points, spread over all.
LeadingFrame principal_frame(const SharedMatrix& points, double scale) {
  const std::size_t d = points.cols(), rows = std::min(points.rows(), 8 * d);
  Matrix<double> some(d, rows), gram(d, d);
  for (std::size_t k = 0; k < rows; ++k)
    for (std::size_t c = 0; c < d; ++c) some(c, k) = scale * points(k * points.rows() / rows, c);
  multiply<double>(1, some.view(), some.view(), Transpose::yes, 0, gram.view());
  const auto size = static_cast<Eigen::Index>(d);
  const SymmetricEigen axes = symmetric_eigen(Eigen::Map<const RowMatrix>(gram.data(), size, size));
  LeadingFrame frame;
  frame.columns = Matrix<double>(d, d);
  Matrix<double> rows_of(d, d);
  for (std::size_t c = 0; c < d; ++c)
    for (std::size_t a = 0; a < d; ++a)  // eigenvalues rise
      frame.columns(c, a) = rows_of(a, c) =
          axes.vectors(static_cast<Eigen::Index>(c), static_cast<Eigen::Index>(d - 1 - a));
  multiply<double>(1, rows_of.view(), rows_of.view(), Transpose::yes, 0, gram.view());
  double squares = 0;  // of FᵀF − 1
  for (std::size_t a = 0; a < d; ++a)
    for (std::size_t b = 0; b < d; ++b) squares += std::pow(gram(a, b) - (a == b ? 1 : 0), 2);
  // An inner product errs by (d + 2)u of the product of norms; there are d² here, and d of each turned point.
  const auto terms = static_cast<double>(d);
  frame.error = std::sqrt(squares) + (terms + 2) * kDouble * (1.01 * terms + 2.2 * std::sqrt(terms));
  return frame;
}

struct Choice {
  std::size_t slice;
  double cost;  // of a pair, in multiply-adds of the products
};

// The slice that promises least work, judged by pairs spread over all.
Choice choose_slice(const SharedMatrix& points, const LeadingFrame& frame, double scale,
                    std::span<const std::size_t> order) {
  const std::size_t d = points.cols(), n = order.size();
  constexpr std::size_t kSteps = 16;
  std::vector<std::size_t> ends;
  for (std::size_t k = 1; k <= kSteps; ++k)
    if (const std::size_t end = (k * d + kSteps - 1) / kSteps; ends.empty() || end > ends.back())
      ends.push_back(end);
  const std::size_t side = std::min<std::size_t>(n, static_cast<std::size_t>(std::sqrt(2.0 * kSampledPairs)));
  std::vector<std::size_t> sample(side);
  for (std::size_t k = 0; k < side; ++k) sample[k] = order[k * n / side];
  const Matrix<double> rows = lead(points, frame, scale, sample);
  Matrix<double> rests(side, ends.size());  // squared, from each end on
  std::vector<double> squares(side);
  for (std::size_t k = 0; k < side; ++k) {
    double sum = 0;
    std::size_t c = d;
    for (std::size_t e = ends.size(); e-- > 0;) {
      for (; c > ends[e]; --c) sum += rows(k, c - 1) * rows(k, c - 1);
      rests(k, e) = sum;
    }
    for (; c > 0; --c) sum += rows(k, c - 1) * rows(k, c - 1);
    squares[k] = sum;
    for (std::size_t e = 0; e < ends.size(); ++e)
      rests(k, e) = std::sqrt(rests(k, e) + rounding_share(ends[e], d, frame.error) * sum);
  }
  std::vector<std::size_t> open(ends.size());
  for (std::size_t i = 0; i < side; ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const double limit = kSettledShare * std::min(squares[i], squares[j]);
      double sum = 0;
      for (std::size_t e = 0, c = 0; e < ends.size(); ++e) {
        for (; c < ends[e]; ++c) sum += rows(i, c) * rows(j, c);
        open[e] += sum + rests(i, e) * rests(j, e) > limit ? 1 : 0;
      }
    }
  Choice best{d, std::numeric_limits<double>::infinity()};
  const double pairs = std::max(1.0, static_cast<double>(side) * static_cast<double>(side - 1) / 2);
  for (std::size_t e = 0; e < ends.size(); ++e) {
    const double cost =
        static_cast<double>(ends[e] + 4) +
        static_cast<double>(open[e]) / pairs * (kOpenPair + kOpenCoordinate * static_cast<double>(d));
    if (cost < best.cost) best = {ends[e], cost};
  }
  return best;
}

HWY_EXPORT(bound_runs);
HWY_EXPORT(score_pairs);
HWY_EXPORT(list_above);
HWY_EXPORT(score_some);

struct PanelRun {
  std::size_t begin, end;
};
// By point of a run of panels.
struct TopsOfRun {
  std::vector<float> bounds;
  std::vector<double> scores;  // of pairs that were left open
};

TopsOfRun no_tops(PanelRun run) {
  const std::size_t size = (run.end - run.begin) * SlicedPoints::kWidth;
  return {std::vector<float>(size, -std::numeric_limits<float>::infinity()),
          std::vector<double>(size, -std::numeric_limits<double>::infinity())};
}

template <class T>
void merge(std::vector<T>& all, std::size_t panel, const std::vector<T>& some) {
  for (std::size_t k = 0, at = panel * SlicedPoints::kWidth; k < some.size(); ++k)
    all[at + k] = std::max(all[at + k], some[k]);
}
void merge(TopsOfRun& all, std::size_t panel, const TopsOfRun& some) {
  merge(all.bounds, panel, some.bounds);
  merge(all.scores, panel, some.scores);
}

// Of the points of each run the tops over the points of the other.
std::array<TopsOfRun, 2> tops_of_runs(const SharedMatrix& rows, const SlicedPoints& points, PanelRun first,
                                      PanelRun second) {
  constexpr std::size_t width = SlicedPoints::kWidth;
  const std::size_t panel_bytes = (points.slice + 1) * width * sizeof(float),
                    step = std::max<std::size_t>(1, kCacheBytes / panel_bytes);
  std::array<TopsOfRun, 2> tops = {no_tops(first), no_tops(second)};
  PairBounds bounds;
  std::vector<double> scores;
  for (std::size_t p = first.begin; p < first.end; p += step)
    for (std::size_t q = second.begin; q < second.end; q += step) {
      HWY_DYNAMIC_DISPATCH(bound_runs)
      (points, p, std::min(first.end, p + step), q, std::min(second.end, q + step), bounds);
      merge(tops[0].bounds, p - first.begin, bounds.first);
      merge(tops[1].bounds, q - second.begin, bounds.second);
      scores.resize(bounds.open.size());
      HWY_DYNAMIC_DISPATCH(score_pairs)(rows, points.key, bounds.open, scores.data());
      for (std::size_t k = 0; k < scores.size(); ++k) {
        double& one = tops[0].scores[bounds.open[k].first - first.begin * width];
        double& other = tops[1].scores[bounds.open[k].second - second.begin * width];
        one = std::max(one, scores[k]);
        other = std::max(other, scores[k]);
      }
    }
  return tops;
}

}  // namespace

SlicedPoints slice_points(const SharedMatrix& points, const LeadingFrame& frame, std::size_t slice,
                          std::span<const std::size_t> order, const Executor& executor) {
  constexpr std::size_t width = SlicedPoints::kWidth;
  const std::size_t d = points.cols();
  SlicedPoints out;
  out.count = order.size();
  out.slice = slice;
  out.scale = scale_of(points);
  out.key.assign(order.begin(), order.end());
  std::vector<float> all(out.panels() * (slice + 1) * width);
  out.settled_at.assign(out.panels() * width, std::numeric_limits<float>::infinity());
  const double share = rounding_share(slice, d, frame.error);
  executor.for_each(out.panels(), [&](std::size_t p) {
    const std::size_t size = std::min(width, out.count - p * width);
    const Matrix<double> rows = lead(points, frame, out.scale, order.subspan(p * width, size));
    float* values = all.data() + p * (slice + 1) * width;
    for (std::size_t lane = 0; lane < width; ++lane) {
      if (lane >= size) {  // scores of no point are −∞
        values[lane] = -std::numeric_limits<float>::infinity();
        for (std::size_t c = 0; c < slice; ++c) values[(c + 1) * width + lane] = 0;
        continue;
      }
      double leading = 0, rest = 0;
      for (std::size_t c = 0; c < slice; ++c) {
        leading += rows(lane, c) * rows(lane, c);
        values[(c + 1) * width + lane] = static_cast<float>(rows(lane, c));
      }
      for (std::size_t c = slice; c < d; ++c) rest += rows(lane, c) * rows(lane, c);
      values[lane] = rounded_up((1 + share) * std::sqrt(rest + share * (leading + rest) + kUnderflow));
      out.settled_at[p * width + lane] = static_cast<float>(kSettledShare * (leading + rest));
    }
  });
  out.values = std::move(all);
  // In the order of lengths up to rounding; what settles a point settles every pair with one before it.
  for (std::size_t k = 1; k < out.count; ++k)
    out.settled_at[k] = std::min(out.settled_at[k], out.settled_at[k - 1]);
  return out;
}

SlicedPoints whole_points(const SharedMatrix& points) {
  LeadingFrame frame;
  frame.coordinates.resize(points.cols());
  std::iota(frame.coordinates.begin(), frame.coordinates.end(), std::size_t{0});
  std::vector<std::size_t> order(points.rows());
  std::iota(order.begin(), order.end(), std::size_t{0});
  return slice_points(points, frame, points.cols(), order, Executor(1));
}

PairBounds bound_pairs(const SlicedPoints& points, std::size_t first_begin, std::size_t first_end,
                       std::size_t second_begin, std::size_t second_end) {
  PairBounds bounds;
  HWY_DYNAMIC_DISPATCH(bound_runs)(points, first_begin, first_end, second_begin, second_end, bounds);
  return bounds;
}

std::vector<std::vector<ListedScore>> scores_above(const SlicedPoints& points,
                                                   MatrixView<const double> queries,
                                                   std::span<const double> limits) {
  constexpr std::size_t width = SlicedPoints::kWidth;
  const std::size_t d = points.slice;
  const double share = rounding_share(d, d, 0);
  std::vector<float> panel((d + 1) * width);
  std::vector<float> scaled_limits(width, std::numeric_limits<float>::infinity());
  std::vector<double> scales(queries.rows, 1.0);
  for (std::size_t k = 0; k < queries.rows; ++k) {
    const auto query = queries[k];
    const double squares = std::inner_product(query.begin(), query.end(), query.begin(), 0.0);
    const double scale = squares > 0 ? std::ldexp(1.0, -std::ilogb(std::sqrt(squares))) : 1.0;
    for (std::size_t c = 0; c < d; ++c) panel[(c + 1) * width + k] = static_cast<float>(scale * query[c]);
    panel[k] = rounded_up((1 + share) * std::sqrt(share * squares * scale * scale + kUnderflow));
    scales[k] = scale * points.scale;
    scaled_limits[k] = rounded_down(limits[k] * scales[k]);
  }
  std::vector<std::vector<ListedScore>> listed(queries.rows);
  HWY_DYNAMIC_DISPATCH(list_above)(points, panel.data(), queries.rows, scaled_limits.data(), listed);
  for (std::size_t k = 0; k < queries.rows; ++k)
    for (ListedScore& each : listed[k]) each.bound /= scales[k];
  return listed;
}

void score_points(const SharedMatrix& points, std::span<const double> query,
                  std::span<const std::size_t> keys, std::span<double> scores) {
  HWY_DYNAMIC_DISPATCH(score_some)(points, query, keys, scores.data());
}

std::vector<double> highest_centre_scores(const FramedKeys& keys, std::span<const std::size_t> order,
                                          const Executor& executor, double whole_below) {
  const std::size_t n = order.size(), d = keys.dimension;
  const double scale = scale_of(keys.points), size = static_cast<double>(n),
               dimension = static_cast<double>(d);
  const OneThreadPerProduct one_thread;
  LeadingFrame frame = widest_coordinates(keys.points);
  Choice choice{d, 0};
  if (size * size / 2 * dimension >= whole_below) choice = choose_slice(keys.points, frame, scale, order);
  // Turning the points to their principal axes costs as much as products of d coordinates of d points, some times
  // over for the axes.
  if (size * size / 2 * choice.cost > 4 * (size + 40 * dimension) * dimension * dimension) {
    LeadingFrame principal = principal_frame(keys.points, scale);
    if (const Choice turned = choose_slice(keys.points, principal, scale, order); turned.cost < choice.cost) {
      choice = turned;
      frame = std::move(principal);
    }
  }
  const SlicedPoints points = slice_points(keys.points, frame, choice.slice, order, executor);

  // Pieces: pairs of runs of panels.
  const std::size_t panels = points.panels(), run = std::clamp<std::size_t>(panels / 12, 5, kPiecePanels);
  std::vector<PanelRun> runs;
  for (std::size_t begin = 0; begin < panels; begin += run)
    runs.push_back({begin, std::min(panels, begin + run)});
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  PieceWork work{"centre scores", {}, true, {}, {}};
  for (std::size_t a = 0; a < runs.size(); ++a)
    for (std::size_t b = a; b < runs.size(); ++b) {
      pairs.emplace_back(a, b);
      work.costs.push_back(a == b ? 0.5 : 1.0);
    }
  const auto of_pieces =
      run_pieces<std::array<TopsOfRun, 2>>(executor, work, [&](std::size_t piece, const Executor&) {
        return tops_of_runs(keys.points, points, runs[pairs[piece].first], runs[pairs[piece].second]);
      });
  TopsOfRun all = no_tops({0, panels});
  for (std::size_t piece = 0; piece < pairs.size(); ++piece) {
    merge(all, runs[pairs[piece].first].begin, of_pieces[piece][0]);
    merge(all, runs[pairs[piece].second].begin, of_pieces[piece][1]);
  }
  std::vector<double> result(n);
  for (std::size_t k = 0; k < n; ++k) {
    // Pairs that were not left open are below what settles this point; the bound may be of one that was.
    const double settled = std::min(all.bounds[k], points.settled_at[k]);
    result[order[k]] = std::max(settled / (points.scale * points.scale), all.scores[k]);
  }
  return result;
}

}  // namespace normscope
#endif

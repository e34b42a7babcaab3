// Products of matrices, compiled once per instruction set (included by files that use foreach_target.h).
#if defined(NORMSCOPE_TRAIN_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMSCOPE_TRAIN_PRODUCTS_INL_H_
#undef NORMSCOPE_TRAIN_PRODUCTS_INL_H_
#else
#define NORMSCOPE_TRAIN_PRODUCTS_INL_H_
#endif

#include <cstddef>
#include <type_traits>

#include "train/columns.h"
#include "train/functions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normscope::HWY_NAMESPACE {
namespace {

// A matrix of weights read with any strides, so that a transpose costs nothing: (m, k) is data[m·row +
// k·col].
template <class T>
struct Weights {
  const T* data;
  std::size_t row, col;
};

// What a product is added to: nothing, bias[m], bias[column], what stands there.
enum class Start { zero, bias, columns, add };
// What is stored of it: itself, or 2 to its power.
enum class Finish { plain, exp2 };

template <Start kStart, Finish kFinish, std::size_t kRows, std::size_t kVectors, class T>
HWY_INLINE void product_tile(std::size_t depth, Weights<T> weights, const T* HWY_RESTRICT bias,
                             const T* HWY_RESTRICT in, std::size_t in_stride, T* HWY_RESTRICT out,
                             std::size_t out_stride) {
  Vec<T> sum[kRows][kVectors];
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      if constexpr (kStart == Start::zero) sum[r][v] = zero<T>();
      if constexpr (kStart == Start::bias) sum[r][v] = splat(bias[r]);
      if constexpr (kStart == Start::columns) sum[r][v] = load(bias + v * kLanes<T>);
      if constexpr (kStart == Start::add) sum[r][v] = load(out + r * out_stride + v * kLanes<T>);
    }
  }
  for (std::size_t k = 0; k < depth; ++k) {
    Vec<T> x[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) x[v] = load(in + k * in_stride + v * kLanes<T>);
    for (std::size_t r = 0; r < kRows; ++r) {
      const Vec<T> w = splat(weights.data[r * weights.row + k * weights.col]);
      for (std::size_t v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(w, x[v], sum[r][v]);
    }
  }
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      if constexpr (kFinish == Finish::exp2) sum[r][v] = exp2_of<T>(sum[r][v]);
      store(sum[r][v], out + r * out_stride + v * kLanes<T>);
    }
  }
}

// Calls body(std::integral_constant vectors, first column) over `columns` in tiles of four vectors and fewer.
template <class T, class Body>
HWY_INLINE void for_column_tiles(std::size_t columns, const Body& body) {
  std::size_t c = 0;
  for (; c + 4 * kLanes<T> <= columns; c += 4 * kLanes<T>) body(std::integral_constant<std::size_t, 4>(), c);
  switch ((columns - c) / kLanes<T>) {
    case 3:
      return body(std::integral_constant<std::size_t, 3>(), c);
    case 2:
      return body(std::integral_constant<std::size_t, 2>(), c);
    case 1:
      return body(std::integral_constant<std::size_t, 1>(), c);
    default:
      return;
  }
}

// Of a product: M × N = (M × K) · (K × N).
struct Shape {
  std::size_t M, K, N;
};

// out (M × N) = start + weights (M × K) · in (K × N). `bias` is read where the start is one.
template <Start kStart, Finish kFinish = Finish::plain, class T>
HWY_INLINE void product(Shape shape, std::type_identity_t<Weights<T>> weights,
                        std::type_identity_t<Strided<const T>> in, Strided<T> out,
                        std::type_identity_t<const T*> bias = nullptr) {
  for_column_tiles<T>(shape.N, [&](auto vectors, std::size_t c) HWY_ATTR {
    constexpr std::size_t kVectors = decltype(vectors)::value;
    // About a dozen sums at once hide the time a multiply-add takes.
    constexpr std::size_t kTile = kVectors > 2 ? 3 : kVectors == 2 ? 4 : 8;
    const auto tile = [&](std::size_t m, auto rows_of_tile) HWY_ATTR {
      constexpr std::size_t kRows = decltype(rows_of_tile)::value;
      const Weights<T> of_rows = {weights.data + m * weights.row, weights.row, weights.col};
      const std::size_t of_bias = kStart == Start::bias ? m : kStart == Start::columns ? c : 0;
      product_tile<kStart, kFinish, kRows, kVectors>(shape.K, of_rows, bias + of_bias, in.data + c, in.stride,
                                                     out.data + m * out.stride + c, out.stride);
    };
    std::size_t m = 0;
    for (; m + kTile <= shape.M; m += kTile) tile(m, std::integral_constant<std::size_t, kTile>());
    for (; m + 2 <= shape.M; m += 2) tile(m, std::integral_constant<std::size_t, 2>());
    for (; m < shape.M; ++m) tile(m, std::integral_constant<std::size_t, 1>());
  });
}

// Products of two sets of rows, summed over columns but not yet over the lanes of a vector:
// sums[(m·count_b + k)·lanes + l] += Σ over columns of lane l of a[m]·b[k].
template <std::size_t kRows, std::size_t kVectors, class T>
HWY_INLINE void add_outer_tile(const T* HWY_RESTRICT a, std::size_t a_stride, std::size_t count_b,
                               const T* HWY_RESTRICT b, std::size_t b_stride, T* HWY_RESTRICT sums) {
  Vec<T> left[kRows][kVectors];
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t v = 0; v < kVectors; ++v) left[r][v] = load(a + r * a_stride + v * kLanes<T>);
  }
  for (std::size_t k = 0; k < count_b; ++k) {
    Vec<T> sum[kRows];
    for (std::size_t r = 0; r < kRows; ++r) sum[r] = load(sums + (r * count_b + k) * kLanes<T>);
    for (std::size_t v = 0; v < kVectors; ++v) {
      const Vec<T> right = load(b + k * b_stride + v * kLanes<T>);
      for (std::size_t r = 0; r < kRows; ++r) sum[r] = hn::MulAdd(left[r][v], right, sum[r]);
    }
    for (std::size_t r = 0; r < kRows; ++r) store(sum[r], sums + (r * count_b + k) * kLanes<T>);
  }
}

// a is M × columns, b K × columns.
template <class T>
HWY_INLINE void add_outer(std::size_t M, std::type_identity_t<Strided<const T>> a, std::size_t K,
                          std::type_identity_t<Strided<const T>> b, T* sums, std::size_t columns) {
  for_column_tiles<T>(columns, [&](auto vectors, std::size_t c) HWY_ATTR {
    constexpr std::size_t kVectors = decltype(vectors)::value;
    const auto tile = [&](std::size_t m, auto rows_of_tile) HWY_ATTR {
      add_outer_tile<decltype(rows_of_tile)::value, kVectors>(a.data + m * a.stride + c, a.stride, K,
                                                              b.data + c, b.stride, sums + m * K * kLanes<T>);
    };
    std::size_t m = 0;
    for (; m + 2 <= M; m += 2) tile(m, std::integral_constant<std::size_t, 2>());
    if (m < M) tile(m, std::integral_constant<std::size_t, 1>());
  });
}

// sums[m·lanes + l] += Σ over columns of lane l of a[m].
template <class T>
HWY_INLINE void add_rows(std::size_t count, const T* HWY_RESTRICT a, T* HWY_RESTRICT sums,
                         std::size_t columns) {
  for (std::size_t m = 0; m < count; ++m) {
    Vec<T> sum = load(sums + m * kLanes<T>);
    for (std::size_t c = 0; c < columns; c += kLanes<T>) sum = hn::Add(sum, load(a + m * columns + c));
    store(sum, sums + m * kLanes<T>);
  }
}

// The sum of `count` lane sums into one number each, added to `totals`.
template <class T>
HWY_INLINE void reduce_lanes(const T* sums, std::size_t count, double* totals) {
  for (std::size_t i = 0; i < count; ++i) {
    double total = 0;
    for (std::size_t l = 0; l < kLanes<T>; ++l) total += static_cast<double>(sums[i * kLanes<T> + l]);
    totals[i] += total;
  }
}

// sum = a + b; may be one of them.
template <class T>
HWY_INLINE void add(const Columns<T>& a, const Columns<T>& b, Columns<T>& sum) {
  for (std::size_t i = 0; i < a.size(); i += kLanes<T>)
    store(hn::Add(load(a.data() + i), load(b.data() + i)), sum.data() + i);
}

// x by rows: column c of x becomes row c, filled up with 0 to `out_stride`.
template <class T>
HWY_INLINE void transpose(const T* x, std::size_t stride, std::size_t rows, std::size_t columns, T* out,
                          std::size_t out_stride) {
  for (std::size_t c = 0; c < columns; ++c) {
    for (std::size_t i = 0; i < rows; ++i) out[c * out_stride + i] = x[i * stride + c];
    for (std::size_t i = rows; i < out_stride; ++i) out[c * out_stride + i] = T(0);
  }
}

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

// The arithmetic that training shares, compiled once per instruction set (included by files that use
// foreach_target.h).
//
// Matrices are feature-major here: row = feature (or class, or key), column = token, so that every operation
// on tokens runs along the vector, and sums over features need no sum across its lanes. The number of columns
// is a multiple of kColumns; columns beyond the tokens are padding, with zero gradients.
#if defined(NORMSCOPE_TRAIN_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMSCOPE_TRAIN_KERNELS_INL_H_
#undef NORMSCOPE_TRAIN_KERNELS_INL_H_
#else
#define NORMSCOPE_TRAIN_KERNELS_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

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

template <Start kStart, Finish kFinish, std::size_t kVectors, class T>
HWY_INLINE void product_columns(std::size_t rows, std::size_t depth, Weights<T> weights, const T* bias,
                                const T* in, std::size_t in_stride, T* out, std::size_t out_stride) {
  // About a dozen sums at once hide the time a multiply-add takes.
  constexpr std::size_t kTile = kVectors > 2 ? 3 : kVectors == 2 ? 4 : 8;
  const auto tile = [&](std::size_t m, auto rows_of_tile) HWY_ATTR {
    constexpr std::size_t kRows = decltype(rows_of_tile)::value;
    const Weights<T> of_rows = {weights.data + m * weights.row, weights.row, weights.col};
    product_tile<kStart, kFinish, kRows, kVectors>(depth, of_rows, bias + (kStart == Start::bias ? m : 0), in,
                                                   in_stride, out + m * out_stride, out_stride);
  };
  std::size_t m = 0;
  for (; m + kTile <= rows; m += kTile) tile(m, std::integral_constant<std::size_t, kTile>());
  for (; m + 2 <= rows; m += 2) tile(m, std::integral_constant<std::size_t, 2>());
  for (; m < rows; ++m) tile(m, std::integral_constant<std::size_t, 1>());
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

// out (rows × columns) = start + weights (rows × depth) · in (depth × columns).
template <Start kStart, Finish kFinish = Finish::plain, class T>
HWY_INLINE void product(std::size_t rows, std::size_t depth, Weights<T> weights, const T* bias, const T* in,
                        std::size_t in_stride, T* out, std::size_t out_stride, std::size_t columns) {
  for_column_tiles<T>(columns, [&](auto vectors, std::size_t c) HWY_ATTR {
    product_columns<kStart, kFinish, decltype(vectors)::value>(rows, depth, weights,
                                                               bias + (kStart == Start::columns ? c : 0),
                                                               in + c, in_stride, out + c, out_stride);
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

template <class T>
HWY_INLINE void add_outer(std::size_t count_a, const T* a, std::size_t a_stride, std::size_t count_b,
                          const T* b, std::size_t b_stride, T* sums, std::size_t columns) {
  for_column_tiles<T>(columns, [&](auto vectors, std::size_t c) HWY_ATTR {
    constexpr std::size_t kVectors = decltype(vectors)::value;
    std::size_t m = 0;
    for (; m + 2 <= count_a; m += 2) {
      add_outer_tile<2, kVectors>(a + m * a_stride + c, a_stride, count_b, b + c, b_stride,
                                  sums + m * count_b * kLanes<T>);
    }
    if (m < count_a) {
      add_outer_tile<1, kVectors>(a + m * a_stride + c, a_stride, count_b, b + c, b_stride,
                                  sums + m * count_b * kLanes<T>);
    }
  });
}

// sums[m·lanes + l] += Σ over columns of lane l of a[m].
template <class T>
HWY_INLINE void add_rows(std::size_t count, const T* HWY_RESTRICT a, std::size_t stride, T* HWY_RESTRICT sums,
                         std::size_t columns) {
  for (std::size_t m = 0; m < count; ++m) {
    Vec<T> sum = load(sums + m * kLanes<T>);
    for (std::size_t c = 0; c < columns; c += kLanes<T>) sum = hn::Add(sum, load(a + m * stride + c));
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

// dots[m·stride + k] = Σ over columns of a[m]·b[k].
template <class T>
HWY_INLINE void row_products(std::size_t count_a, const T* HWY_RESTRICT a, std::size_t a_stride,
                             std::size_t count_b, const T* HWY_RESTRICT b, std::size_t b_stride, T* dots,
                             std::size_t dots_stride, std::size_t columns) {
  for (std::size_t m = 0; m < count_a; ++m) {
    for (std::size_t k = 0; k < count_b; ++k) {
      Vec<T> sum = zero<T>();
      for (std::size_t c = 0; c < columns; c += kLanes<T>) {
        sum = hn::MulAdd(load(a + m * a_stride + c), load(b + k * b_stride + c), sum);
      }
      dots[m * dots_stride + k] = hn::GetLane(hn::SumOfLanes(Tag<T>(), sum));
    }
  }
}

// Softmax down each column of `rows` scores, in place. `bias`, if not null, is added to the scores first.
template <class T>
HWY_INLINE void softmax_columns(std::size_t rows, T* HWY_RESTRICT scores, std::size_t stride, const T* bias,
                                std::size_t bias_stride, std::size_t columns) {
  const Tag<T> tag;
  for (std::size_t c = 0; c < columns; c += kLanes<T>) {
    Vec<T> top = splat(-hwy::HighestValue<T>());
    for (std::size_t j = 0; j < rows; ++j) {
      Vec<T> score = load(scores + j * stride + c);
      if (bias != nullptr) {
        score = hn::Add(score, load(bias + j * bias_stride + c));
        store(score, scores + j * stride + c);
      }
      top = hn::Max(top, score);
    }
    Vec<T> sum = zero<T>();
    for (std::size_t j = 0; j < rows; ++j) {
      const Vec<T> weight = hn::Exp(tag, hn::Sub(load(scores + j * stride + c), top));
      sum = hn::Add(sum, weight);
      store(weight, scores + j * stride + c);
    }
    const Vec<T> share = hn::Div(splat(T(1)), sum);
    for (std::size_t j = 0; j < rows; ++j) {
      store(hn::Mul(load(scores + j * stride + c), share), scores + j * stride + c);
    }
  }
}

// Backward of softmax_columns: from weights and ∂L/∂weights, ∂L/∂scores in place of the latter.
template <class T>
HWY_INLINE void softmax_columns_backward(std::size_t rows, const T* HWY_RESTRICT weights, std::size_t stride,
                                         T* HWY_RESTRICT gradient, std::size_t columns) {
  for (std::size_t c = 0; c < columns; c += kLanes<T>) {
    Vec<T> mean = zero<T>();
    for (std::size_t j = 0; j < rows; ++j) {
      mean = hn::MulAdd(load(weights + j * stride + c), load(gradient + j * stride + c), mean);
    }
    for (std::size_t j = 0; j < rows; ++j) {
      const Vec<T> g = hn::Sub(load(gradient + j * stride + c), mean);
      store(hn::Mul(load(weights + j * stride + c), g), gradient + j * stride + c);
    }
  }
}

// What the columns of logits say about their labels.
template <class T>
struct ColumnLoss {
  T* loss;   // −log softmax at the label, per column
  T* right;  // 1 where the highest logit is the label's, else 0; or null
};

// Cross-entropy of `classes` logits per column against labels[column]. Puts the
// gradient weight·(softmax − [class = label]) in place of the logits.
template <class T>
HWY_INLINE void cross_entropy_columns(std::size_t classes, T* HWY_RESTRICT logits, std::size_t stride,
                                      const std::uint16_t* HWY_RESTRICT labels, const T* HWY_RESTRICT weights,
                                      ColumnLoss<T> result, std::size_t columns) {
  const Tag<T> tag;
  // What concerns the label only is done number by number: one of `classes` rows.
  for (std::size_t c = 0; c < columns; ++c) result.loss[c] = -logits[labels[c] * stride + c];
  for (std::size_t c = 0; c < columns; c += kLanes<T>) {
    Vec<T> top = load(logits + c), winner = zero<T>();
    for (std::size_t k = 1; k < classes; ++k) {
      const Vec<T> logit = load(logits + k * stride + c);
      if (result.right != nullptr) {
        winner = hn::IfThenElse(hn::Gt(logit, top), splat(static_cast<T>(k)), winner);
      }
      top = hn::Max(top, logit);
    }
    if (result.right != nullptr) store(winner, result.right + c);
    Vec<T> sum = zero<T>();
    for (std::size_t k = 0; k < classes; ++k) {
      const Vec<T> e = hn::Exp(tag, hn::Sub(load(logits + k * stride + c), top));
      sum = hn::Add(sum, e);
      store(e, logits + k * stride + c);
    }
    store(hn::Add(hn::Log(tag, sum), hn::Add(top, load(result.loss + c))), result.loss + c);
    const Vec<T> share = hn::Div(load(weights + c), sum);
    for (std::size_t k = 0; k < classes; ++k) {
      store(hn::Mul(load(logits + k * stride + c), share), logits + k * stride + c);
    }
  }
  for (std::size_t c = 0; c < columns; ++c) logits[labels[c] * stride + c] -= weights[c];
  if (result.right == nullptr) return;
  for (std::size_t c = 0; c < columns; ++c) result.right[c] = result.right[c] == static_cast<T>(labels[c]);
}

// relu in place.
template <class T>
HWY_INLINE void relu(std::size_t rows, T* values, std::size_t stride, std::size_t columns) {
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; c += kLanes<T>) {
      store(hn::Max(load(values + r * stride + c), zero<T>()), values + r * stride + c);
    }
  }
}

// ∂L/∂(before relu) in place of ∂L/∂(after), from the values after.
template <class T>
HWY_INLINE void relu_backward(std::size_t rows, const T* values, T* gradient, std::size_t stride,
                              std::size_t columns) {
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; c += kLanes<T>) {
      const auto on = hn::Gt(load(values + r * stride + c), zero<T>());
      store(hn::IfThenElseZero(on, load(gradient + r * stride + c)), gradient + r * stride + c);
    }
  }
}

// The norms whose projection is none or ones and whose scaling is one number per token. Two rounds of
// centring, as in the norm room: the second makes a constant row exactly 0.
template <class T>
struct ColumnNorm {
  bool centre = false;     // projection orthogonal to 1
  bool scale = false;      // z = target·y/r, r² = ‖w‖² + d·eps
  bool deviation = false;  // w is y centred (σ), though y is not
  T target = 1, eps = 0;
};

// A division, since d·(1/d) is not 1 for every d (41 in float, 49 in double): a constant row would never
// become 0.
template <class T>
HWY_INLINE Vec<T> column_mean(std::size_t d, const T* x, std::size_t stride) {
  Vec<T> sum = zero<T>();
  for (std::size_t i = 0; i < d; ++i) sum = hn::Add(sum, load(x + i * stride));
  return hn::Div(sum, splat(static_cast<T>(d)));
}

// z = norm(x) before its affine part; `inverse` keeps 1/r of each column (0 where r = 0). For σ, `centred`
// keeps w.
template <class T>
HWY_INLINE void norm_columns(const ColumnNorm<T>& norm, std::size_t d, const T* HWY_RESTRICT x,
                             T* HWY_RESTRICT z, T* HWY_RESTRICT centred, T* HWY_RESTRICT inverse,
                             std::size_t stride, std::size_t columns) {
  for (std::size_t c = 0; c < columns; c += kLanes<T>) {
    const auto centre = [&](T* y) HWY_ATTR {
      for (int round = 0; round < 2; ++round) {
        const Vec<T> mean = column_mean(d, y + c, stride);
        for (std::size_t i = 0; i < d; ++i)
          store(hn::Sub(load(y + i * stride + c), mean), y + i * stride + c);
      }
    };
    for (std::size_t i = 0; i < d; ++i) store(load(x + i * stride + c), z + i * stride + c);
    if (norm.centre) centre(z);
    if (!norm.scale) continue;
    const T* w = z;
    if (norm.deviation) {
      for (std::size_t i = 0; i < d; ++i) store(load(x + i * stride + c), centred + i * stride + c);
      centre(centred);
      w = centred;
    }
    Vec<T> square = splat(norm.eps * static_cast<T>(d));
    for (std::size_t i = 0; i < d; ++i) {
      square = hn::MulAdd(load(w + i * stride + c), load(w + i * stride + c), square);
    }
    const Vec<T> one_over =
        hn::IfThenElseZero(hn::Gt(square, zero<T>()), hn::Div(splat(T(1)), hn::Sqrt(square)));
    store(one_over, inverse + c);
    const Vec<T> factor = hn::Mul(splat(norm.target), one_over);
    for (std::size_t i = 0; i < d; ++i) {
      store(hn::Mul(load(z + i * stride + c), factor), z + i * stride + c);
    }
  }
}

// From g = ∂L/∂z adds ∂L/∂x to dx; g is spent.
template <class T>
HWY_INLINE void norm_columns_backward(const ColumnNorm<T>& norm, std::size_t d, const T* HWY_RESTRICT z,
                                      const T* HWY_RESTRICT centred, const T* HWY_RESTRICT inverse,
                                      T* HWY_RESTRICT g, T* HWY_RESTRICT dx, std::size_t stride,
                                      std::size_t columns) {
  for (std::size_t c = 0; c < columns; c += kLanes<T>) {
    if (norm.scale) {
      // ∂L/∂y = (target/r)(g − w (y·g)/r²), with y·g = z·g r/target: w (z·g)/(target·r).
      const Vec<T> one_over = load(inverse + c), factor = hn::Mul(splat(norm.target), one_over);
      Vec<T> along = zero<T>();
      for (std::size_t i = 0; i < d; ++i) {
        along = hn::MulAdd(load(z + i * stride + c), load(g + i * stride + c), along);
      }
      along = hn::Mul(along, splat(T(1) / norm.target));
      // w/r is z/target unless w is its own vector.
      const Vec<T> per_w =
          norm.deviation ? hn::Mul(along, one_over) : hn::Mul(along, splat(T(1) / norm.target));
      const T* w = norm.deviation ? centred : z;
      for (std::size_t i = 0; i < d; ++i) {
        const Vec<T> rest = hn::NegMulAdd(load(w + i * stride + c), per_w, load(g + i * stride + c));
        store(hn::Mul(rest, factor), g + i * stride + c);
      }
    }
    const Vec<T> mean = norm.centre ? column_mean(d, g + c, stride) : zero<T>();
    for (std::size_t i = 0; i < d; ++i) {
      const Vec<T> rest = hn::Sub(load(g + i * stride + c), mean);
      store(hn::Add(load(dx + i * stride + c), rest), dx + i * stride + c);
    }
  }
}

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

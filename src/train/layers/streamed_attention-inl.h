// Attention on whole texts; the equation and its plain version are those of attention-inl.h.
#if defined(NORMSCOPE_TRAIN_LAYERS_STREAMED_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMSCOPE_TRAIN_LAYERS_STREAMED_ATTENTION_INL_H_
#undef NORMSCOPE_TRAIN_LAYERS_STREAMED_ATTENTION_INL_H_
#else
#define NORMSCOPE_TRAIN_LAYERS_STREAMED_ATTENTION_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "train/layers/dropout-inl.h"
#include "train/products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normscope::HWY_NAMESPACE {
namespace {

// With dropout of the weights, kTextColumns queries at a time: the scores of a block of queries are all that
// is held, and backward they are computed again from log Σ e^score.
template <class T>
class StreamedAttention {
 public:
  StreamedAttention(std::size_t d, std::size_t heads, std::size_t columns, bool causal)
      : width_(d / heads),
        heads_(heads),
        causal_(causal),
        scale_(1 / std::sqrt(static_cast<T>(width_))),
        log_sums_(heads, columns),
        scores_(columns),
        slopes_(columns),
        query_(width_),
        dkey_(columns * width_ * kLanes<T>),
        dvalue_(columns * width_ * kLanes<T>) {
    for (std::size_t key = 0; key < kTextColumns; ++key) {
      for (std::size_t query = 0; query < kTextColumns; ++query)
        seen_[key * kTextColumns + query] = query >= key ? T(1) : T(0);
    }
  }

  // Keys from `length` on are padding. `place`: of the first head; the others follow.
  void forward(const Columns<T>& qkv, std::size_t length, const ColumnDropout<T>* dropout, DropoutPlace place,
               Columns<T>& o) {
    for_blocks(qkv, length, place, [&](const Part& part) HWY_ATTR {
      product<Start::zero>({part.keys, width_, kTextColumns}, {part.k, 1, part.columns}, query_.from(),
                           scores_.from());
      softmax(part, log_sums_.row(part.head) + part.first);
      if (dropout != nullptr) {
        for_rows(*dropout, part, [&](T* HWY_RESTRICT row, T*, const T* HWY_RESTRICT factors) HWY_ATTR {
          for (std::size_t c = 0; c < kTextColumns; c += kLanes<T>)
            store(hn::Mul(load(row + c), load(factors + c)), row + c);
        });
      }
      product<Start::zero>({width_, part.keys, kTextColumns}, {part.v, part.columns, 1}, scores_.from(),
                           o.from(part.head * width_, part.first));
    });
  }

  // Of each head and query, log₂ Σ 2^score: what backward needs of forward beside o.
  Columns<T>& log_sums() { return log_sums_; }
  const Columns<T>& log_sums() const { return log_sums_; }

  // dqkv is written.
  void backward(const Columns<T>& qkv, std::size_t length, const ColumnDropout<T>* dropout,
                DropoutPlace place, const Columns<T>& o, const Columns<T>& dout, Columns<T>& dqkv) {
    const std::size_t d = width_ * heads_, columns = qkv.columns();
    for_blocks(qkv, length, place, [&](const Part& part) HWY_ATTR {
      if (part.first == 0) {
        std::fill(dkey_.begin(), dkey_.end(), T(0));
        std::fill(dvalue_.begin(), dvalue_.end(), T(0));
      }
      HWY_ALIGN T minus[kTextColumns], along[kTextColumns] = {};
      const Strided<const T> g = dout.from(part.head * width_, part.first);
      const T* const out = o.row(part.head * width_) + part.first;
      for (std::size_t c = 0; c < kTextColumns; ++c) {
        minus[c] = -log_sums_.row(part.head)[part.first + c];
        for (std::size_t k = 0; k < width_; ++k) along[c] += g.data[k * columns + c] * out[k * columns + c];
      }
      const Shape by_keys = {part.keys, width_, kTextColumns};
      product<Start::columns, Finish::exp2>(by_keys, {part.k, 1, columns}, query_.from(), scores_.from(),
                                            minus);
      hide(part);
      product<Start::zero>(by_keys, {part.v, 1, columns}, g, slopes_.from());
      // ∂L/∂score = weight·(factor·∂L/∂(factor·weight) − Σ of the same over keys), and the sum is o·∂L/∂o.
      const Vec<T> scale = splat(scale_);
      const auto slope = [&](T* HWY_RESTRICT row, T* HWY_RESTRICT slopes, const T* factors) HWY_ATTR {
        for (std::size_t c = 0; c < kTextColumns; c += kLanes<T>) {
          const Vec<T> weight = load(row + c);
          Vec<T> slope_of = load(slopes + c);
          if (factors != nullptr) {
            slope_of = hn::Mul(slope_of, load(factors + c));
            store(hn::Mul(weight, load(factors + c)), row + c);
          }
          store(hn::Mul(hn::Mul(weight, scale), hn::Sub(slope_of, load(along + c))), slopes + c);
        }
      };
      if (dropout != nullptr) {
        for_rows(*dropout, part, slope);
      } else {
        for (std::size_t j = 0; j < part.keys; ++j) slope(scores_.row(j), slopes_.row(j), nullptr);
      }
      product<Start::zero>({width_, part.keys, kTextColumns}, {part.k, columns, 1}, slopes_.from(),
                           dqkv.from(part.head * width_, part.first));
      add_outer(part.keys, slopes_.from(), width_, {part.q, columns}, dkey_.data(), kTextColumns);
      add_outer(part.keys, scores_.from(), width_, g, dvalue_.data(), kTextColumns);
      if (part.first + kTextColumns == columns) {
        take_keys(dkey_, dqkv.row(d + part.head * width_), columns);
        take_keys(dvalue_, dqkv.row(2 * d + part.head * width_), columns);
      }
    });
  }

 private:
  // One head's block of queries.
  struct Part {
    std::size_t head, first, columns, keys;  // queries from `first` on; keys they may see
    const T *q, *k, *v;                      // q from `first` on
    DropoutPlace place;
  };

  template <class Body>
  HWY_INLINE void for_blocks(const Columns<T>& qkv, std::size_t length, DropoutPlace place,
                             const Body& body) {
    const std::size_t d = width_ * heads_, columns = qkv.columns();
    for (std::size_t h = 0; h < heads_; ++h, ++place.place) {
      for (std::size_t first = 0; first < columns; first += kTextColumns) {
        const std::size_t keys = causal_ ? std::min(first + kTextColumns, length) : length;
        const Part part = {h,
                           first,
                           columns,
                           keys,
                           qkv.row(h * width_) + first,
                           qkv.row(d + h * width_),
                           qkv.row(2 * d + h * width_),
                           place};
        // In units of log 2.
        const Vec<T> scale = splat(scale_ * std::numbers::log2e_v<T>);
        for (std::size_t k = 0; k < width_; ++k) {
          for (std::size_t c = 0; c < kTextColumns; c += kLanes<T>)
            store(hn::Mul(load(part.q + k * columns + c), scale), query_.row(k) + c);
        }
        body(part);
      }
    }
  }

  // Calls body(row of scores, row of slopes, factors) for every key.
  template <class Body>
  HWY_INLINE void for_rows(const ColumnDropout<T>& dropout, const Part& part, const Body& body) {
    HWY_ALIGN T factors[ColumnDropout<T>::kRows * kTextColumns];
    for (std::size_t j = 0; j < part.keys; ++j) {
      if (j % ColumnDropout<T>::kRows == 0)
        dropout.draw(part.place, part.first / kTextColumns, j / ColumnDropout<T>::kRows, factors);
      body(scores_.row(j), slopes_.row(j), factors + j % ColumnDropout<T>::kRows * kTextColumns);
    }
  }

  // Keys after their query: only the last kTextColumns keys can be.
  HWY_INLINE std::size_t first_hidden(const Part& part) const {
    return causal_ ? std::min(part.first, part.keys) : part.keys;
  }
  HWY_INLINE void hide(const Part& part) {
    for (std::size_t j = first_hidden(part); j < part.keys; ++j) {
      T* const row = scores_.row(j);
      const T* const seen = seen_.data() + (j - part.first) * kTextColumns;
      for (std::size_t c = 0; c < kTextColumns; c += kLanes<T>)
        store(hn::IfThenElseZero(hn::Gt(load(seen + c), zero<T>()), load(row + c)), row + c);
    }
  }

  // Scores in powers of two become weights; log₂ of their sum is kept.
  HWY_INLINE void softmax(const Part& part, T* HWY_RESTRICT log_sums) {
    const std::size_t hidden = first_hidden(part);
    const Vec<T> lowest = splat(-hwy::HighestValue<T>());
    for (std::size_t c = 0; c < kTextColumns; c += kLanes<T>) {
      const T* const seen = seen_.data() + c;
      T* const column = scores_.data() + c;
      Vec<T> top = lowest;
      for (std::size_t j = 0; j < hidden; ++j) top = hn::Max(top, load(column + j * kTextColumns));
      for (std::size_t j = hidden; j < part.keys; ++j) {
        const auto sees = hn::Gt(load(seen + (j - part.first) * kTextColumns), zero<T>());
        top = hn::Max(top, hn::IfThenElse(sees, load(column + j * kTextColumns), lowest));
      }
      Vec<T> sum = zero<T>();
      for (std::size_t j = 0; j < hidden; ++j) {
        const Vec<T> weight = exp2_of<T>(hn::Sub(load(column + j * kTextColumns), top));
        sum = hn::Add(sum, weight);
        store(weight, column + j * kTextColumns);
      }
      for (std::size_t j = hidden; j < part.keys; ++j) {
        const auto sees = hn::Gt(load(seen + (j - part.first) * kTextColumns), zero<T>());
        const Vec<T> weight =
            hn::IfThenElseZero(sees, exp2_of<T>(hn::Sub(load(column + j * kTextColumns), top)));
        sum = hn::Add(sum, weight);
        store(weight, column + j * kTextColumns);
      }
      const Vec<T> share = hn::Div(splat(T(1)), sum);
      for (std::size_t j = 0; j < part.keys; ++j)
        store(hn::Mul(load(column + j * kTextColumns), share), column + j * kTextColumns);
      const Vec<T> log = hn::Mul(hn::Log(Tag<T>(), sum), splat(std::numbers::log2e_v<T>));
      store(hn::Add(top, log), log_sums + c);
    }
  }

  void take_keys(const Aligned<T>& sums, T* gradient, std::size_t columns) const {
    for (std::size_t j = 0; j < columns; ++j) {
      for (std::size_t k = 0; k < width_; ++k) {
        T total = 0;
        for (std::size_t l = 0; l < kLanes<T>; ++l) total += sums[(j * width_ + k) * kLanes<T> + l];
        gradient[k * columns + j] = total;
      }
    }
  }

  std::size_t width_, heads_;
  bool causal_;
  T scale_;
  Columns<T> log_sums_;  // of each head
  Columns<T, kTextColumns> scores_, slopes_, query_;
  Aligned<T> dkey_, dvalue_;  // of one head, per lane
  std::array<T, kTextColumns * kTextColumns> seen_;
};

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

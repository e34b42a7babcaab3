// The parts of a transformer as forward/backward pairs on one text at a time, compiled once per instruction
// set. Shapes as in layers-inl.h: features × columns; columns are a multiple of kTextColumns.
#if defined(NORMSCOPE_TRAIN_TRANSFORMER_LAYERS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMSCOPE_TRAIN_TRANSFORMER_LAYERS_INL_H_
#undef NORMSCOPE_TRAIN_TRANSFORMER_LAYERS_INL_H_
#else
#define NORMSCOPE_TRAIN_TRANSFORMER_LAYERS_INL_H_
#endif

#include <array>

#include "normscope/block.h"
#include "train/dropout_place.h"
#include "train/layers-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normscope::HWY_NAMESPACE {
namespace {

// Dropout of blocks of kTextColumns columns. A factor depends on (seed, step, place, row, column) only:
// Philox 4×32 with 7 rounds (Salmon et al. 2011), a 16-bit number per factor, so that the probability is a
// multiple of 2⁻¹⁶; what stays is divided by 1 − p for that very p.
template <class T>
class Dropout {
 public:
  static constexpr std::size_t kRows = 2;  // drawn at once

  explicit Dropout(double p)
      : threshold_(static_cast<std::uint32_t>(std::lround(p * 65'536))),
        factor_(static_cast<T>(1 / (1 - static_cast<double>(threshold_) / 65'536))) {}

  bool active() const { return threshold_ > 0; }

  // Factors of rows 2·pair and 2·pair + 1, one row after the other.
  void draw(const DropoutPlace& place, std::size_t block, std::size_t pair, T* HWY_RESTRICT factors) const {
    constexpr std::size_t kGroup = 8;  // columns that share a word's position in Philox's output
    const hn::CappedTag<std::uint32_t, kGroup> tag;
    using V = hn::Vec<decltype(tag)>;
    for (std::size_t l = 0; l < kGroup; l += hn::Lanes(tag)) {
      V x0 = hn::Iota(tag, static_cast<std::uint32_t>(pair * kGroup + l));
      V x1 = hn::Set(tag, static_cast<std::uint32_t>(block)), x2 = hn::Set(tag, place.place),
        x3 = hn::Set(tag, place.step);
      auto k0 = static_cast<std::uint32_t>(place.seed), k1 = static_cast<std::uint32_t>(place.seed >> 32);
      for (int round = 0; round < 7; ++round) {
        const auto [high0, low0] = multiply(tag, x0, 0xD2511F53);
        const auto [high1, low1] = multiply(tag, x2, 0xCD9E8D57);
        x0 = hn::Xor(hn::Xor(high1, x1), hn::Set(tag, k0));
        x1 = low1;
        x2 = hn::Xor(hn::Xor(high0, x3), hn::Set(tag, k1));
        x3 = low0;
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
      }
      const V words[] = {x0, x1, x2, x3};
      for (std::size_t w = 0; w < 4; ++w) {
        keep(tag, hn::And(words[w], hn::Set(tag, 0xffff)), factors + w * kGroup + l);
        keep(tag, hn::ShiftRight<16>(words[w]), factors + kTextColumns + w * kGroup + l);
      }
    }
  }

  // x ← x ⊙ factors; backward is the same.
  void apply(const DropoutPlace& place, Block<T>& x) const {
    if (!active()) return;
    HWY_ALIGN T factors[kRows * kTextColumns];
    for (std::size_t c = 0; c < x.columns(); c += kTextColumns) {
      for (std::size_t row = 0; row < x.rows(); ++row) {
        if (row % kRows == 0) draw(place, c / kTextColumns, row / kRows, factors);
        const T* const of_row = factors + row % kRows * kTextColumns;
        for (std::size_t i = 0; i < kTextColumns; i += kLanes<T>)
          store(hn::Mul(load(x.row(row) + c + i), load(of_row + i)), x.row(row) + c + i);
      }
    }
  }

 private:
  template <class V>
  struct Halves {
    V high, low;
  };
  template <class D, class V>
  static HWY_INLINE Halves<V> multiply(D tag, V a, std::uint32_t b) {
#if HWY_TARGET == HWY_SCALAR
    const std::uint64_t product = std::uint64_t{hn::GetLane(a)} * b;
    return {hn::Set(tag, static_cast<std::uint32_t>(product >> 32)),
            hn::Set(tag, static_cast<std::uint32_t>(product))};
#else
    const hn::RepartitionToWide<D> wide;
    const V factor = hn::Set(tag, b);
    const auto even = hn::MulEven(a, factor);
    const auto odd = hn::MulEven(hn::BitCast(tag, hn::ShiftRight<32>(hn::BitCast(wide, a))), factor);
    return {hn::OddEven(hn::BitCast(tag, odd), hn::BitCast(tag, hn::ShiftRight<32>(even))),
            hn::OddEven(hn::BitCast(tag, hn::ShiftLeft<32>(odd)), hn::BitCast(tag, even))};
#endif
  }

  template <class D, class V>
  HWY_INLINE void keep(D tag, V numbers, T* to) const {
    if constexpr (sizeof(T) == 4) {
      const hn::RebindToFloat<D> real;
      const auto kept =
          hn::Not(hn::Lt(hn::BitCast(hn::RebindToSigned<D>(), numbers),
                         hn::Set(hn::RebindToSigned<D>(), static_cast<std::int32_t>(threshold_))));
      hn::StoreU(hn::IfThenElseZero(hn::RebindMask(real, kept), hn::Set(real, factor_)), real, to);
    } else {
      HWY_ALIGN std::uint32_t values[hn::MaxLanes(D())];
      hn::Store(numbers, tag, values);
      for (std::size_t i = 0; i < hn::Lanes(tag); ++i) to[i] = values[i] < threshold_ ? T(0) : factor_;
    }
  }

  std::uint32_t threshold_;
  T factor_;
};

// x by rows: column c of x becomes row c, filled up with 0 to a multiple of kColumns.
template <class T>
HWY_INLINE void transpose(const T* x, std::size_t stride, std::size_t rows, std::size_t columns, T* out,
                          std::size_t out_stride) {
  for (std::size_t c = 0; c < columns; ++c) {
    for (std::size_t i = 0; i < rows; ++i) out[c * out_stride + i] = x[i * stride + c];
    for (std::size_t i = rows; i < out_stride; ++i) out[c * out_stride + i] = T(0);
  }
}

// y = W x + b on whole texts. Unlike Linear, sums of gradients take no more room than the weights.
template <class T>
class Dense {
 public:
  Dense(std::span<const T> weight, std::span<const T> bias, std::size_t outputs, std::size_t inputs)
      : weight_(weight),
        bias_(bias),
        outputs_(outputs),
        inputs_(inputs),
        stride_(padded_columns(inputs)),
        sums_(outputs * stride_, T(0)),
        bias_sums_(bias.size() * kLanes<T>, T(0)) {}

  void forward(const Block<T>& x, Block<T>& y) const {
    const Weights<T> weights = {weight_.data(), inputs_, 1};
    if (bias_.empty()) {
      product<Start::zero>(outputs_, inputs_, weights, x.data(), x.data(), x.columns(), y.data(), y.columns(),
                           x.columns());
    } else {
      product<Start::bias>(outputs_, inputs_, weights, bias_.data(), x.data(), x.columns(), y.data(),
                           y.columns(), x.columns());
    }
  }
  // dx is written.
  void backward(const Block<T>& x, const Block<T>& dy, Block<T>& dx) {
    const std::size_t columns = dy.columns();
    product<Start::zero>(inputs_, outputs_, Weights<T>{weight_.data(), 1, inputs_}, dy.data(), dy.data(),
                         columns, dx.data(), columns, columns);
    transposed_.resize(columns * stride_);
    transpose(x.data(), columns, inputs_, columns, transposed_.data(), stride_);
    product<Start::add>(outputs_, columns, Weights<T>{dy.data(), columns, 1}, dy.data(), transposed_.data(),
                        stride_, sums_.data(), stride_, stride_);
    if (!bias_.empty()) add_rows(outputs_, dy.data(), columns, bias_sums_.data(), columns);
  }
  void take_gradients(std::span<double> weight, std::span<double> bias) const {
    for (std::size_t o = 0; o < outputs_; ++o) {
      for (std::size_t i = 0; i < inputs_; ++i)
        weight[o * inputs_ + i] += static_cast<double>(sums_[o * stride_ + i]);
    }
    reduce_lanes(bias_sums_.data(), bias.size(), bias.data());
  }

 private:
  std::span<const T> weight_, bias_;
  std::size_t outputs_, inputs_, stride_;
  Aligned<T> sums_, bias_sums_, transposed_;
};

// softmax(q kᵀ/√w) v per head of width w, with dropout of the weights, for kTextColumns queries at a time:
// the scores of a block of queries are all that is held, and backward they are computed again from log Σ
// e^score.
template <class T>
class StreamedAttention {
 public:
  StreamedAttention(std::size_t d, std::size_t heads, std::size_t columns, bool causal)
      : width_(d / heads),
        heads_(heads),
        causal_(causal),
        scale_(1 / std::sqrt(static_cast<T>(width_))),
        log_sums_(heads, columns),
        scores_(columns * kTextColumns),
        slopes_(columns * kTextColumns),
        query_(width_ * kTextColumns),
        dkey_(columns * width_ * kLanes<T>),
        dvalue_(columns * width_ * kLanes<T>) {
    for (std::size_t key = 0; key < kTextColumns; ++key) {
      for (std::size_t query = 0; query < kTextColumns; ++query)
        seen_[key * kTextColumns + query] = query >= key ? T(1) : T(0);
    }
  }

  // qkv: 3d × columns; o: d × columns. Keys from `length` on are padding. `place`: of the first head; the
  // others follow.
  void forward(const Block<T>& qkv, std::size_t length, const Dropout<T>* dropout, DropoutPlace place,
               Block<T>& o) {
    for_blocks(qkv, length, place, [&](const Part& part) HWY_ATTR {
      product<Start::zero>(part.keys, width_, Weights<T>{part.k, 1, part.columns}, query_.data(),
                           query_.data(), kTextColumns, scores_.data(), kTextColumns, kTextColumns);
      softmax(part, log_sums_.row(part.head) + part.first);
      if (dropout != nullptr) {
        for_rows(*dropout, part, [&](T* HWY_RESTRICT row, T*, const T* HWY_RESTRICT factors) HWY_ATTR {
          for (std::size_t c = 0; c < kTextColumns; c += kLanes<T>)
            store(hn::Mul(load(row + c), load(factors + c)), row + c);
        });
      }
      T* const out = o.row(part.head * width_) + part.first;
      product<Start::zero>(width_, part.keys, Weights<T>{part.v, part.columns, 1}, scores_.data(),
                           scores_.data(), kTextColumns, out, part.columns, kTextColumns);
    });
  }

  // Of each head and query, log₂ Σ 2^score: what backward needs of forward beside o.
  Block<T>& log_sums() { return log_sums_; }
  const Block<T>& log_sums() const { return log_sums_; }

  // dqkv is written.
  void backward(const Block<T>& qkv, std::size_t length, const Dropout<T>* dropout, DropoutPlace place,
                const Block<T>& o, const Block<T>& dout, Block<T>& dqkv) {
    const std::size_t d = width_ * heads_, columns = qkv.columns();
    for_blocks(qkv, length, place, [&](const Part& part) HWY_ATTR {
      if (part.first == 0) {
        std::fill(dkey_.begin(), dkey_.end(), T(0));
        std::fill(dvalue_.begin(), dvalue_.end(), T(0));
      }
      HWY_ALIGN T minus[kTextColumns], along[kTextColumns] = {};
      const T* const g = dout.row(part.head * width_) + part.first;
      const T* const out = o.row(part.head * width_) + part.first;
      for (std::size_t c = 0; c < kTextColumns; ++c) {
        minus[c] = -log_sums_.row(part.head)[part.first + c];
        for (std::size_t k = 0; k < width_; ++k) along[c] += g[k * columns + c] * out[k * columns + c];
      }
      product<Start::columns, Finish::exp2>(part.keys, width_, Weights<T>{part.k, 1, columns}, minus,
                                            query_.data(), kTextColumns, scores_.data(), kTextColumns,
                                            kTextColumns);
      hide(part);
      product<Start::zero>(part.keys, width_, Weights<T>{part.v, 1, columns}, g, g, columns, slopes_.data(),
                           kTextColumns, kTextColumns);
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
        for (std::size_t j = 0; j < part.keys; ++j)
          slope(scores_.data() + j * kTextColumns, slopes_.data() + j * kTextColumns, nullptr);
      }
      product<Start::zero>(width_, part.keys, Weights<T>{part.k, columns, 1}, slopes_.data(), slopes_.data(),
                           kTextColumns, dqkv.row(part.head * width_) + part.first, columns, kTextColumns);
      add_outer(part.keys, slopes_.data(), kTextColumns, width_, part.q, columns, dkey_.data(), kTextColumns);
      add_outer(part.keys, scores_.data(), kTextColumns, width_, g, columns, dvalue_.data(), kTextColumns);
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
  HWY_INLINE void for_blocks(const Block<T>& qkv, std::size_t length, DropoutPlace place, const Body& body) {
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
            store(hn::Mul(load(part.q + k * columns + c), scale), query_.data() + k * kTextColumns + c);
        }
        body(part);
      }
    }
  }

  // Calls body(row of scores, row of slopes, factors) for every key.
  template <class Body>
  HWY_INLINE void for_rows(const Dropout<T>& dropout, const Part& part, const Body& body) {
    HWY_ALIGN T factors[Dropout<T>::kRows * kTextColumns];
    for (std::size_t j = 0; j < part.keys; ++j) {
      if (j % Dropout<T>::kRows == 0)
        dropout.draw(part.place, part.first / kTextColumns, j / Dropout<T>::kRows, factors);
      body(scores_.data() + j * kTextColumns, slopes_.data() + j * kTextColumns,
           factors + j % Dropout<T>::kRows * kTextColumns);
    }
  }

  // Keys after their query: only the last kTextColumns keys can be.
  HWY_INLINE std::size_t first_hidden(const Part& part) const {
    return causal_ ? std::min(part.first, part.keys) : part.keys;
  }
  HWY_INLINE void hide(const Part& part) {
    for (std::size_t j = first_hidden(part); j < part.keys; ++j) {
      T* const row = scores_.data() + j * kTextColumns;
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
  Block<T> log_sums_;  // of each head
  Aligned<T> scores_, slopes_, query_;
  Aligned<T> dkey_, dvalue_;  // of one head, per lane
  std::array<T, kTextColumns * kTextColumns> seen_;
};

// a(W₁ x + b₁), then W₂ · + b₂, kUnits hidden units and kTextColumns columns at a time: the hidden layer,
// which may be hundreds of times wider than x, is never held, and computed again backward.
template <class T>
class FusedFeedForward {
 public:
  FusedFeedForward(const LayerSlices<const T>& parameters, std::size_t d, std::size_t hidden,
                   Activation activation)
      : parameters_(parameters),
        d_(d),
        hidden_(hidden),
        stride_(padded_columns(d)),
        activation_(activation),
        down_weight_(hidden * d),
        x_(kTextColumns * stride_),
        dy_(kTextColumns * stride_),
        values_(kUnits * kTextColumns),
        slopes_(kUnits * kTextColumns) {
    transpose(parameters.weight2.data(), hidden, d, hidden, down_weight_.data(), d);
  }

  void forward(const Block<T>& x, Block<T>& y) {
    const std::size_t columns = x.columns();
    for_blocks(columns, [&](std::size_t c, std::size_t unit, std::size_t count) HWY_ATTR {
      if (unit == 0) {
        for (std::size_t k = 0; k < d_; ++k) std::fill_n(y.row(k) + c, kTextColumns, parameters_.bias2[k]);
      }
      raise(x, c, unit, count);
      activate(count);
      product<Start::add>(d_, count, Weights<T>{down_weight_.data() + unit * d_, 1, d_}, values_.data(),
                          values_.data(), kTextColumns, y.data() + c, columns, kTextColumns);
    });
  }

  // dx is written.
  void backward(const Block<T>& x, const Block<T>& dy, Block<T>& dx) {
    if (up_.empty()) {
      up_.assign(hidden_ * stride_, T(0));
      down_.assign(hidden_ * stride_, T(0));
      up_bias_.assign(hidden_ * kLanes<T>, T(0));
      down_bias_.assign(d_ * kLanes<T>, T(0));
    }
    const std::size_t columns = x.columns();
    for_blocks(columns, [&](std::size_t c, std::size_t unit, std::size_t count) HWY_ATTR {
      if (unit == 0) {
        for (std::size_t k = 0; k < d_; ++k) std::fill_n(dx.row(k) + c, kTextColumns, T(0));
        transpose(x.data() + c, columns, d_, kTextColumns, x_.data(), stride_);
        transpose(dy.data() + c, columns, d_, kTextColumns, dy_.data(), stride_);
      }
      raise(x, c, unit, count);
      product<Start::zero>(count, d_, Weights<T>{down_weight_.data() + unit * d_, d_, 1}, dy.data(),
                           dy.data() + c, columns, slopes_.data(), kTextColumns, kTextColumns);
      activate_backward(count);
      product<Start::add>(d_, count, Weights<T>{parameters_.weight1.data() + unit * d_, 1, d_},
                          slopes_.data(), slopes_.data(), kTextColumns, dx.data() + c, columns, kTextColumns);
      product<Start::add>(count, kTextColumns, Weights<T>{slopes_.data(), kTextColumns, 1}, x_.data(),
                          x_.data(), stride_, up_.data() + unit * stride_, stride_, stride_);
      product<Start::add>(count, kTextColumns, Weights<T>{values_.data(), kTextColumns, 1}, dy_.data(),
                          dy_.data(), stride_, down_.data() + unit * stride_, stride_, stride_);
      add_rows(count, slopes_.data(), kTextColumns, up_bias_.data() + unit * kLanes<T>, kTextColumns);
    });
    add_rows(d_, dy.data(), columns, down_bias_.data(), columns);
  }

  // After backward.
  void take_gradients(const LayerSlices<double>& gradient) const {
    for (std::size_t unit = 0; unit < hidden_; ++unit) {
      for (std::size_t k = 0; k < d_; ++k) {
        gradient.weight1[unit * d_ + k] += static_cast<double>(up_[unit * stride_ + k]);
        gradient.weight2[k * hidden_ + unit] += static_cast<double>(down_[unit * stride_ + k]);
      }
    }
    reduce_lanes(up_bias_.data(), hidden_, gradient.bias1.data());
    reduce_lanes(down_bias_.data(), d_, gradient.bias2.data());
  }

 private:
  static constexpr std::size_t kUnits = 64;

  template <class Body>
  HWY_INLINE void for_blocks(std::size_t columns, const Body& body) {
    for (std::size_t c = 0; c < columns; c += kTextColumns) {
      for (std::size_t unit = 0; unit < hidden_; unit += kUnits)
        body(c, unit, std::min(kUnits, hidden_ - unit));
    }
  }

  // W₁ x + b₁ of some units.
  HWY_INLINE void raise(const Block<T>& x, std::size_t c, std::size_t unit, std::size_t count) {
    product<Start::bias>(count, d_, Weights<T>{parameters_.weight1.data() + unit * d_, d_, 1},
                         parameters_.bias1.data() + unit, x.data() + c, x.columns(), values_.data(),
                         kTextColumns, kTextColumns);
  }

  // a(values) in their place.
  HWY_INLINE void activate(std::size_t count) {
    const auto replace = [&](const auto& function) HWY_ATTR {
      for (std::size_t i = 0; i < count * kTextColumns; i += kLanes<T>)
        store(function(load(values_.data() + i)), values_.data() + i);
    };
    if (activation_ == Activation::gelu) {
      replace([](Vec<T> x) HWY_ATTR { return gelu_value<T>(x); });
    } else {
      replace([](Vec<T> x) HWY_ATTR { return gelu_tanh<T>(x).value; });
    }
  }

  // The same, and the slopes, which hold ∂L/∂a, times a′.
  HWY_INLINE void activate_backward(std::size_t count) {
    const auto replace = [&](const auto& function) HWY_ATTR {
      for (std::size_t i = 0; i < count * kTextColumns; i += kLanes<T>) {
        const WithSlope<T> result = function(load(values_.data() + i));
        store(result.value, values_.data() + i);
        store(hn::Mul(result.slope, load(slopes_.data() + i)), slopes_.data() + i);
      }
    };
    if (activation_ == Activation::gelu) {
      replace([](Vec<T> x) HWY_ATTR { return gelu<T>(x); });
    } else {
      replace([](Vec<T> x) HWY_ATTR { return gelu_tanh<T>(x); });
    }
  }

  const LayerSlices<const T>& parameters_;
  std::size_t d_, hidden_, stride_;
  Activation activation_;
  Aligned<T> down_weight_;  // W₂, unit by unit: rows `hidden` apart share few lines of a cache
  Aligned<T> up_, down_, up_bias_, down_bias_;  // gradients: hidden × d both; per lane; empty: none yet
  Aligned<T> x_, dy_, values_, slopes_;
};

// One block of block.h, pre or post.
template <class T>
class TransformerLayer {
 public:
  // Sites of dropout within a layer: the heads' weights, then what attention and feed-forward add.
  static std::size_t sites(const BlockSpec& spec) { return spec.heads + 2; }

  TransformerLayer(const TransformerSpec& spec, const LayerSlices<const T>& parameters, std::size_t columns)
      : pre_(spec.model.block.placement == Placement::pre),
        norm2_is_none_(spec.model.block.feed_forward_norm.value_or(spec.model.block.norm) == NormSpec()),
        heads_(spec.model.block.heads),
        norm1_(spec.model.block.norm, parameters.norm1, spec.model.block.width, columns),
        norm2_(spec.model.block.feed_forward_norm.value_or(spec.model.block.norm), parameters.norm2,
               spec.model.block.width, columns),
        in_(parameters.in_proj, parameters.in_bias, 3 * spec.model.block.width, spec.model.block.width),
        out_(parameters.out_weight, parameters.out_bias, spec.model.block.width, spec.model.block.width),
        attention_(spec.model.block.width, heads_, columns, spec.model.causal),
        feed_forward_(parameters, spec.model.block.width, spec.model.block.feed_forward,
                      spec.model.block.activation),
        x_(spec.model.block.width, columns),
        h_(x_),
        o_(x_),
        sum1_(x_),
        x1_(x_),
        g_(x_),
        sum2_(x_),
        part_(x_),
        dsum_(x_),
        qkv_(3 * spec.model.block.width, columns),
        dqkv_(qkv_) {}

  // x ← block(x). `place`: of the layer's first site.
  void forward(Block<T>& x, std::size_t length, const Dropout<T>* dropout, DropoutPlace place) {
    x_ = x;
    enter_attention();
    attention_.forward(qkv_, length, dropout, place, o_);
    leave_attention(dropout, place, true);
    if (pre_) {
      x = sum2_;
    } else {
      norm2_.forward(sum2_, x);
    }
  }

  // What is kept of forward for recall, kept_rows_of_layer: what entered the block, what attention made of
  // it, and its log sums. The rest is computed again.
  void keep(T* to) const {
    for (const Block<T>* block : {&x_, &o_, &attention_.log_sums()})
      to = std::copy_n(block->data(), block->rows() * block->columns(), to);
  }
  void recall(const T* kept, const Dropout<T>* dropout, DropoutPlace place) {
    for (Block<T>* block : {&x_, &o_, &attention_.log_sums()}) {
      const std::size_t size = block->rows() * block->columns();
      std::copy_n(kept, size, block->data());
      kept += size;
    }
    enter_attention();
    leave_attention(dropout, place, !pre_ && !norm2_is_none_);
    if (!pre_ && !norm2_is_none_) norm2_.forward(sum2_, part_);
  }

  // After recall: ∂L/∂(block's output) in dx becomes ∂L/∂(its input).
  void backward(Block<T>& dx, std::size_t length, const Dropout<T>* dropout, DropoutPlace place) {
    through_norm(norm2_, sum2_, dx);
    part_ = dx;
    drop(dropout, place, 1, part_);
    feed_forward_.backward(pre_ ? g_ : x1_, part_, dsum_);
    join(norm2_, sum1_, dx);
    through_norm(norm1_, sum1_, dx);
    part_ = dx;
    drop(dropout, place, 0, part_);
    out_.backward(o_, part_, dsum_);
    attention_.backward(qkv_, length, dropout, place, o_, dsum_, dqkv_);
    in_.backward(pre_ ? h_ : x_, dqkv_, dsum_);
    join(norm1_, x_, dx);
  }

  void take_gradients(const LayerSlices<double>& gradient) const {
    norm1_.take_gradients(gradient.norm1);
    norm2_.take_gradients(gradient.norm2);
    in_.take_gradients(gradient.in_proj, gradient.in_bias);
    out_.take_gradients(gradient.out_weight, gradient.out_bias);
    feed_forward_.take_gradients(gradient);
  }

 private:
  void enter_attention() {
    if (pre_) norm1_.forward(x_, h_);
    in_.forward(pre_ ? h_ : x_, qkv_);
  }
  void leave_attention(const Dropout<T>* dropout, DropoutPlace place, bool with_feed_forward) {
    out_.forward(o_, part_);
    drop(dropout, place, 0, part_);
    add(x_, part_, sum1_);
    if (!pre_) norm1_.forward(sum1_, x1_);
    const Block<T>& middle = pre_ ? sum1_ : x1_;
    if (pre_) norm2_.forward(middle, g_);
    if (!with_feed_forward) return;
    feed_forward_.forward(pre_ ? g_ : middle, part_);
    drop(dropout, place, 1, part_);
    add(middle, part_, sum2_);
  }
  void drop(const Dropout<T>* dropout, DropoutPlace place, std::size_t site, Block<T>& part) const {
    place.place += static_cast<std::uint32_t>(heads_ + site);
    if (dropout != nullptr) dropout->apply(place, part);
  }
  static void add(const Block<T>& a, const Block<T>& b, Block<T>& sum) {
    for (std::size_t i = 0; i < a.rows() * a.columns(); i += kLanes<T>)
      store(hn::Add(load(a.data() + i), load(b.data() + i)), sum.data() + i);
  }
  // post: dx before the norm that comes after the sum.
  void through_norm(Norm<T>& norm, const Block<T>& input, Block<T>& dx) {
    if (pre_) return;
    std::fill_n(part_.data(), part_.rows() * part_.columns(), T(0));
    norm.backward(input, dx, part_);
    std::swap(part_, dx);
  }
  // dx += what comes back through the part's own branch, in dsum_: through its norm (pre) or as it is.
  void join(Norm<T>& norm, const Block<T>& input, Block<T>& dx) {
    if (pre_) {
      norm.backward(input, dsum_, dx);
    } else {
      add(dx, dsum_, dx);
    }
  }

  bool pre_, norm2_is_none_;
  std::size_t heads_;
  Norm<T> norm1_, norm2_;
  Dense<T> in_, out_;
  StreamedAttention<T> attention_;
  FusedFeedForward<T> feed_forward_;
  Block<T> x_, h_, o_, sum1_, x1_, g_, sum2_, part_, dsum_, qkv_, dqkv_;
};

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

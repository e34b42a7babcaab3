// x ⊙ factors, each 0 with probability p and otherwise 1/(1 − p); backward is the same.   x: (d, T)
//
// A factor depends on (seed, step, place, row, column) only: Philox 4×32 with 7 rounds (Salmon et al. 2011),
// a 16-bit number per factor, so that the probability is a multiple of 2⁻¹⁶; what stays is divided by 1 − p
// for that very p. Not the stream of model/dropout.h, in which the n-th number is the n-th value of a row: here
// any tile is drawn by itself, in backward as in forward, and half as many words are drawn in fewer rounds.
#ifndef NORMSCOPE_TRAIN_LAYERS_DROPOUT_REFERENCE
#define NORMSCOPE_TRAIN_LAYERS_DROPOUT_REFERENCE
#include <cmath>
#include <cstdint>

#include "normscope/random.h"
#include "train/columns.h"

namespace normscope {

// Where in a training dropout takes place.
struct DropoutPlace {
  std::uint64_t seed = 0;
  std::uint32_t step = 0, place = 0;  // place: of a text, a layer and a part of it
};

namespace reference {

// Of two rows and four columns eight apart, the numbers are the halves of Philox's four words.
inline double dropout_factor(double p, const DropoutPlace& place, std::size_t row, std::size_t column) {
  const auto x = philox({static_cast<std::uint32_t>(row / 2 * 8 + column % 8),
                         static_cast<std::uint32_t>(column / 32), place.place, place.step},
                        place.seed, 7);
  const std::uint32_t number = x[column % 32 / 8] >> (row % 2 * 16) & 0xffff;
  const double threshold = std::round(p * 65'536);
  return number < threshold ? 0 : 1 / (1 - threshold / 65'536);
}

inline Array dropout(double p, const DropoutPlace& place, Array x) {
  for (std::size_t i = 0; i < x.rows(); ++i) {
    for (std::size_t t = 0; t < x.cols(); ++t) x(i, t) *= dropout_factor(p, place, i, t);
  }
  return x;
}

}  // namespace reference
}  // namespace normscope
#endif

#if defined(NORMSCOPE_TRAIN_LAYERS_DROPOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMSCOPE_TRAIN_LAYERS_DROPOUT_INL_H_
#undef NORMSCOPE_TRAIN_LAYERS_DROPOUT_INL_H_
#else
#define NORMSCOPE_TRAIN_LAYERS_DROPOUT_INL_H_
#endif

#include "train/functions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normscope::HWY_NAMESPACE {
namespace {

// kTextColumns columns at a time.
template <class T>
class ColumnDropout {
 public:
  static constexpr std::size_t kRows = 2;  // drawn at once

  explicit ColumnDropout(double p)
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
  void apply(const DropoutPlace& place, Columns<T>& x) const {
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

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

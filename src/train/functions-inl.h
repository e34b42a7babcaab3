// Vectors of training, and functions on them: powers of two, GELU. Compiled once per instruction set.
#if defined(NORMSCOPE_TRAIN_FUNCTIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMSCOPE_TRAIN_FUNCTIONS_INL_H_
#undef NORMSCOPE_TRAIN_FUNCTIONS_INL_H_
#else
#define NORMSCOPE_TRAIN_FUNCTIONS_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

#include "train/columns.h"

HWY_BEFORE_NAMESPACE();
namespace normscope::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
template <class T>
using Tag = hn::CappedTag<T, kColumns>;
template <class T>
using Vec = hn::Vec<Tag<T>>;
template <class T>
constexpr std::size_t kLanes = hn::MaxLanes(Tag<T>());

template <class T>
HWY_INLINE Vec<T> load(const T* from) {
  return hn::LoadU(Tag<T>(), from);
}
template <class T>
HWY_INLINE void store(Vec<T> value, T* to) {
  hn::StoreU(value, Tag<T>(), to);
}
template <class T>
HWY_INLINE Vec<T> splat(T value) {
  return hn::Set(Tag<T>(), value);
}
template <class T>
HWY_INLINE Vec<T> zero() {
  return hn::Zero(Tag<T>());
}

// c₀ + c₁x + c₂x² + …, the coefficients from the highest on.
template <class T, class... Coefficients>
HWY_INLINE Vec<T> polynomial(Vec<T> x, double highest, Coefficients... others) {
  Vec<T> sum = splat(static_cast<T>(highest));
  ((sum = hn::MulAdd(sum, x, splat(static_cast<T>(others)))), ...);
  return sum;
}

// 2^x. For float, of x ≤ 0 down to −126 (below: as −126): at most 3 units in the last place off (seen over
// 375 million x: 2.04), 2⁰ is 1. A polynomial of degree 5 around the nearest integer (relative error 1.1e-7
// before rounding); a third of the instructions of a general exp. NaN may become a number: callers carry it
// in what they subtract from x.
template <class T>
HWY_INLINE Vec<T> exp2_of(Vec<T> x) {
  const Tag<T> tag;
  if constexpr (sizeof(T) == 4) {
    const hn::RebindToSigned<Tag<T>> integer;
    x = hn::Max(x, splat(T(-126)));
    const Vec<T> shifter = splat(T(12'582'912));  // 1.5·2²³: the sum's low bits are x rounded to an integer
    const Vec<T> shifted = hn::Add(x, shifter);
    const Vec<T> rest = hn::Sub(x, hn::Sub(shifted, shifter));
    const Vec<T> power = polynomial<T>(rest, 0.0013264715119014926, 0.00967151277509342, 0.05550733773194477,
                                       0.24022242083722425, 0.6931469775865399, 1);
    const auto exponent = hn::ShiftLeft<23>(hn::BitCast(integer, shifted));
    return hn::BitCast(tag, hn::Add(hn::BitCast(integer, power), exponent));
  } else {
    return hn::Exp(tag, hn::Mul(hn::Max(x, splat(T(-1000))), splat(std::numbers::ln2_v<T>)));
  }
}

template <class T>
struct WithSlope {
  Vec<T> value, slope;
};

// x·Φ(x) and its derivative Φ(x) + xφ(x). For float, Φ by erfc(|z|) = t·P(t)·exp(−z²), t = 1/(1 + pz)
// (Abramowitz and Stegun 7.1.26): at most 1.5e-7 off. For double, by std::erf.
template <class T>
HWY_INLINE WithSlope<T> gelu(Vec<T> x) {
  const Tag<T> tag;
  const Vec<T> bell = exp2_of<T>(hn::Mul(hn::Mul(x, x), splat(T(-0.5 * std::numbers::log2e))));  // e^(−x²/2)
  Vec<T> below;                                                                                  // Φ(x)
  if constexpr (sizeof(T) == 4) {
    const Vec<T> t =
        hn::Div(splat(T(1)), hn::MulAdd(hn::Abs(x), splat(T(0.3275911 / std::numbers::sqrt2)), splat(T(1))));
    const Vec<T> half_sum = polynomial<T>(t, 0.5 * 1.061405429, -0.5 * 1.453152027, 0.5 * 1.421413741,
                                          -0.5 * 0.284496736, 0.5 * 0.254829592);
    const Vec<T> tail = hn::Mul(hn::Mul(half_sum, t), bell);  // Φ(−|x|)
    below = hn::IfThenElse(hn::Lt(x, zero<T>()), tail, hn::Sub(splat(T(1)), tail));
  } else {
    HWY_ALIGN T values[kLanes<T>];
    hn::Store(x, tag, values);
    for (T& value : values) value = std::erfc(-value / std::numbers::sqrt2_v<T>) / 2;
    below = hn::Load(tag, values);
  }
  constexpr double kDensity = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return {hn::Mul(x, below), hn::MulAdd(hn::Mul(x, bell), splat(T(kDensity)), below)};
}

// Only x·Φ(x), without the exponential that its derivative takes. For float, Φ − 1/2 = x·P(x²)/Q(x²) for
// |x| ≤ 5.4 and beyond as there, of degrees 5 and 5 (5.5e-9 off before rounding): at most 2e-7 off.
template <class T>
HWY_INLINE Vec<T> gelu_value(Vec<T> x) {
  if constexpr (sizeof(T) == 4) {
    const Vec<T> near = hn::Min(hn::Max(x, splat(T(-5.4))), splat(T(5.4))), square = hn::Mul(near, near);
    const Vec<T> above =
        polynomial<T>(square, 2.3386722609140455e-08, 6.360027128165552e-06, 0.00016432222391395067,
                      0.004650854433686552, 0.033372276611269236, 0.39894224536483863);
    const Vec<T> below = polynomial<T>(square, 1.216591160171665e-06, 7.240037286724206e-05,
                                       0.0018589844747545173, 0.02837871571520799, 0.25031798106469116, 1);
    // Far below 0, Φ is 0 and not a rounding error of 1/2 − 1/2, which x may be large enough to show.
    const Vec<T> beyond_half = hn::Max(hn::Div(hn::Mul(near, above), below), splat(T(-0.5)));
    return hn::Mul(x, hn::Add(beyond_half, splat(T(0.5))));
  } else {
    return gelu<T>(x).value;
  }
}

// x/2·(1 + tanh u), u = √(2/π)(x + 0.044715x³), and its derivative. (1 + tanh u)/2 = 1/(1 + e^(−2u)).
template <class T>
HWY_INLINE WithSlope<T> gelu_tanh(Vec<T> x) {
  constexpr double kRoot = 0.7978845608028654, kCubic = 0.044715;
  // Beyond ±30 nothing changes any more, and a cube could overflow.
  const Vec<T> near = hn::Min(hn::Max(x, splat(T(-30))), splat(T(30))), square = hn::Mul(near, near);
  // e^(−2|u|) ≤ 1, and 1/(1 + e^(2|u|)) = e^(−2|u|)/(1 + e^(−2|u|)) on the other side of 0.
  const Vec<T> u = hn::Mul(x, hn::MulAdd(square, splat(T(kRoot * kCubic)), splat(T(kRoot))));
  const Vec<T> small = exp2_of<T>(hn::Mul(hn::Abs(u), splat(T(-2 * std::numbers::log2e))));
  const Vec<T> share = hn::Div(splat(T(1)), hn::Add(splat(T(1)), small));
  const Vec<T> half = hn::IfThenElse(hn::Lt(u, zero<T>()), hn::Mul(small, share), share);
  const Vec<T> du = hn::MulAdd(square, splat(T(3 * kRoot * kCubic)), splat(T(kRoot)));
  // d half/du = 2·half·(1 − half) = 2·small·share².
  const Vec<T> slope = hn::Mul(hn::Mul(splat(T(2)), small), hn::Mul(share, share));
  return {hn::Mul(x, half), hn::MulAdd(hn::Mul(x, slope), du, half)};
}

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

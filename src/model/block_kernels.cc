#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/block_kernels.cc"
#include "model/block_kernels.h"

// In this order.
// clang-format off
#include "core/targets.h"
#include <hwy/foreach_target.h>
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>
// clang-format on

#include <algorithm>
#include <cmath>
#include <numbers>

HWY_BEFORE_NAMESPACE();
namespace normscope::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
SoftmaxRow softmax(T* HWY_RESTRICT scores, std::size_t width, std::size_t first, const Mask::Run* runs,
                   std::size_t count) {
  const hn::ScalableTag<T> tag;
  const std::size_t lanes = hn::Lanes(tag);
  using V = hn::Vec<decltype(tag)>;
  V tops = hn::Set(tag, -hwy::HighestValue<T>());
  T top = -hwy::HighestValue<T>();
  for (std::size_t r = 0; r < count; ++r) {
    std::size_t j = runs[r].first - first;
    const std::size_t end = runs[r].last - first;
    for (; j + lanes <= end; j += lanes) tops = hn::Max(tops, hn::LoadU(tag, scores + j));
    for (; j < end; ++j) top = std::max(top, scores[j]);
  }
  top = std::max(top, hn::GetLane(hn::MaxOfLanes(tag, tops)));
  const V shift = hn::Set(tag, top);
  V sums = hn::Zero(tag), products = hn::Zero(tag), leasts = hn::Set(tag, T(1));
  T sum = 0, product = 0, least = 1;
  std::size_t clear = 0;
  for (std::size_t r = 0; r < count; ++r) {
    std::size_t j = runs[r].first - first;
    const std::size_t end = runs[r].last - first;
    std::fill(scores + clear, scores + j, T(0));
    for (; j + lanes <= end; j += lanes) {
      const V score = hn::Sub(hn::LoadU(tag, scores + j), shift);
      const V weight = hn::Exp(tag, score);
      sums = hn::Add(sums, weight);
      // exp may be 0 where the score is −∞ of rounding: 0·score is 0 as long as the score is finite.
      products = hn::MulAdd(weight, score, products);
      leasts = hn::Min(leasts, weight);
      hn::StoreU(weight, tag, scores + j);
    }
    for (; j < end; ++j) {
      const T score = scores[j] - top, weight = std::exp(score);
      sum += weight;
      product += weight * score;
      least = std::min(least, weight);
      scores[j] = weight;
    }
    clear = end;
  }
  std::fill(scores + clear, scores + width, T(0));
  if (count == 0) return {};
  sum += hn::GetLane(hn::SumOfLanes(tag, sums));
  product += hn::GetLane(hn::SumOfLanes(tag, products));
  least = std::min(least, hn::GetLane(hn::MinOfLanes(tag, leasts)));
  const T share = T(1) / sum;
  const V shares = hn::Set(tag, share);
  for (std::size_t r = 0; r < count; ++r) {
    std::size_t j = runs[r].first - first;
    const std::size_t end = runs[r].last - first;
    for (; j + lanes <= end; j += lanes) {
      hn::StoreU(hn::Mul(hn::LoadU(tag, scores + j), shares), tag, scores + j);
    }
    for (; j < end; ++j) scores[j] *= share;
  }
  const double entropy =
      std::log(static_cast<double>(sum)) - static_cast<double>(product) / static_cast<double>(sum);
  return {static_cast<double>(least * share), std::max(0.0, entropy)};
}

}  // namespace

SoftmaxRow softmax_float(float* scores, std::size_t width, std::size_t first, const Mask::Run* runs,
                         std::size_t count) {
  return softmax(scores, width, first, runs, count);
}
SoftmaxRow softmax_double(double* scores, std::size_t width, std::size_t first, const Mask::Run* runs,
                          std::size_t count) {
  return softmax(scores, width, first, runs, count);
}

namespace {

// erf(z) = z·P(z²)/Q(z²) on [0, 3.925], fitted to relative error 1.9e-8; beyond, erf is 1 in float.
template <class D>
HWY_INLINE hn::Vec<D> gelu_of(D tag, hn::Vec<D> x) {
  const auto set = [&](float value) HWY_ATTR { return hn::Set(tag, value); };
  const auto limit = set(3.925F);
  const auto z = hn::Max(hn::Min(hn::Mul(x, set(0.70710678F)), limit), hn::Neg(limit)), u = hn::Mul(z, z);
  auto p = set(2.046151587e-06F);
  for (const float c : {0.0002848332795F, 0.003771997298F, 0.05276758338F, 0.1905805509F, 1.128379146F}) {
    p = hn::MulAdd(p, u, set(c));
  }
  auto q = set(3.804854201e-05F);
  for (const float c : {0.001163728289F, 0.01498208283F, 0.1141772936F, 0.5022303478F, 1.0F}) {
    q = hn::MulAdd(q, u, set(c));
  }
  const auto erf = hn::Mul(z, hn::Div(p, q));
  return hn::Mul(hn::Mul(x, set(0.5F)), hn::Add(set(1.0F), erf));
}

// x/(1 + e⁻ʸ); e⁻ʸ is kept finite.
template <class D>
HWY_INLINE hn::Vec<D> gated_by_sigmoid(D tag, hn::Vec<D> x, hn::Vec<D> y) {
  const auto decay = hn::Exp(tag, hn::Min(hn::Neg(y), hn::Set(tag, 87.0F)));
  return hn::Div(x, hn::Add(hn::Set(tag, 1.0F), decay));
}

// x(1 + tanh u)/2 = x/(1 + e⁻²ᵘ), u = √(2/π)(x + 0.044715x³).
template <class D>
HWY_INLINE hn::Vec<D> gelu_tanh_of(D tag, hn::Vec<D> x) {
  const auto cubic = hn::MulAdd(hn::Mul(x, x), hn::Set(tag, 0.044715F), hn::Set(tag, 1.0F));
  return gated_by_sigmoid(tag, x, hn::Mul(hn::Mul(x, cubic), hn::Set(tag, 1.5957691216F)));
}

template <class Function>
HWY_INLINE void map_values(float* HWY_RESTRICT values, std::size_t count, const Function& function) {
  const hn::ScalableTag<float> tag;
  const std::size_t lanes = hn::Lanes(tag);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(function(tag, hn::LoadU(tag, values + i)), tag, values + i);
  const hn::CappedTag<float, 1> one;
  for (; i < count; ++i) hn::StoreU(function(one, hn::LoadU(one, values + i)), one, values + i);
}

}  // namespace

void activate_float(Activation activation, float* values, std::size_t count) {
  switch (activation) {
    case Activation::gelu:
      return map_values(values, count, [](auto tag, auto x) HWY_ATTR { return gelu_of(tag, x); });
    case Activation::gelu_tanh:
      return map_values(values, count, [](auto tag, auto x) HWY_ATTR { return gelu_tanh_of(tag, x); });
    case Activation::relu:
      return map_values(values, count, [](auto tag, auto x) HWY_ATTR { return hn::Max(x, hn::Zero(tag)); });
    case Activation::silu:
      return map_values(values, count, [](auto tag, auto x) HWY_ATTR { return gated_by_sigmoid(tag, x, x); });
  }
}

}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normscope {

HWY_EXPORT(softmax_float);
HWY_EXPORT(softmax_double);
HWY_EXPORT(activate_float);

template <>
SoftmaxRow softmax_runs<float>(float* scores, std::size_t width, std::size_t first,
                               std::span<const Mask::Run> runs) {
  return HWY_DYNAMIC_DISPATCH(softmax_float)(scores, width, first, runs.data(), runs.size());
}
template <>
SoftmaxRow softmax_runs<double>(double* scores, std::size_t width, std::size_t first,
                                std::span<const Mask::Run> runs) {
  return HWY_DYNAMIC_DISPATCH(softmax_double)(scores, width, first, runs.data(), runs.size());
}

namespace {

double activated(Activation activation, double x) {
  switch (activation) {
    case Activation::gelu:
      return x * 0.5 * std::erfc(-x * std::sqrt(0.5));
    case Activation::gelu_tanh:
      return x * 0.5 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case Activation::relu:
      return std::max(x, 0.0);
    case Activation::silu:
      break;
  }
  return x / (1 + std::exp(-x));
}

}  // namespace

void activate(Activation activation, float* values, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(activate_float)(activation, values, count);
}
void activate(Activation activation, double* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] = activated(activation, values[i]);
}

}  // namespace normscope
#endif

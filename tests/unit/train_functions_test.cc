// Functions of training against those of the standard library, on every instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "unit/train_functions_test.cc"
#include <gtest/gtest.h>
// In this order, before highway.h.
// clang-format off
#include "core/targets.h"
#include <hwy/foreach_target.h>
// clang-format on

#include <bit>
#include <cmath>
#include <vector>

#include "train/functions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normscope::HWY_NAMESPACE {
namespace {

void powers_of_two(const std::vector<float>* x, std::vector<float>* y) {
  for (std::size_t i = 0; i + kColumns <= x->size(); i += kLanes<float>)
    store<float>(exp2_of<float>(load(x->data() + i)), y->data() + i);
}

// Value and slope of both kinds, one after the other, then the value alone.
void gelus(const std::vector<float>* x, std::vector<float>* y) {
  const std::size_t n = x->size();
  for (std::size_t i = 0; i + kColumns <= n; i += kLanes<float>) {
    const auto exact = gelu<float>(load(x->data() + i)), by_tanh = gelu_tanh<float>(load(x->data() + i));
    store<float>(exact.value, y->data() + i);
    store<float>(exact.slope, y->data() + n + i);
    store<float>(by_tanh.value, y->data() + 2 * n + i);
    store<float>(by_tanh.slope, y->data() + 3 * n + i);
    store<float>(gelu_value<float>(load(x->data() + i)), y->data() + 4 * n + i);
  }
}

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normscope {
namespace {

HWY_EXPORT(powers_of_two);
HWY_EXPORT(gelus);

template <class Body>
void on_every_target(const Body& body) {
  for (std::int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1) {
    SCOPED_TRACE(hwy::TargetName(rest & -rest));
    hwy::SetSupportedTargetsForTest(rest & -rest);
    body();
    hwy::SetSupportedTargetsForTest(0);
  }
}

TEST(TrainFunctions, PowersOfTwoAreWithinThreeUnitsInTheLastPlace) {
  std::vector<float> x;
  const auto last = std::bit_cast<std::uint32_t>(-126.0F);
  for (auto bits = std::bit_cast<std::uint32_t>(-0.0F); bits <= last; bits += 9973)
    x.push_back(std::bit_cast<float>(bits));
  x.insert(x.end(), {-126, -125.5F, -0.5F, -1, -2});
  x.resize(x.size() / kColumns * kColumns + kColumns, 0);
  std::vector<float> y(x.size());
  on_every_target([&] {
    HWY_DYNAMIC_DISPATCH(powers_of_two)(&x, &y);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double expected = std::exp2(static_cast<double>(x[i]));
      int exponent = 0;
      std::frexp(expected, &exponent);
      ASSERT_LE(std::fabs(y[i] - expected), 3 * std::ldexp(1.0, exponent - 24)) << x[i];
    }
    EXPECT_EQ(y.back(), 1);
  });
}

TEST(TrainFunctions, PowersBelowTheRangeOfNormalNumbersAreTiny) {
  std::vector<float> x(kColumns, -1e30F), y(kColumns);
  on_every_target([&] {
    HWY_DYNAMIC_DISPATCH(powers_of_two)(&x, &y);
    EXPECT_LE(y[0], 1.2e-38F);
    EXPECT_GE(y[0], 0);
  });
}

TEST(TrainFunctions, GelusAndTheirSlopesAreTheEquations) {
  std::vector<float> x;
  for (int i = -12'000; i < 12'000; ++i) x.push_back(static_cast<float>(i) * 1e-3F);
  // Far out the functions are x and 0, NaN stays NaN.
  x.insert(x.end(), {-1e15F, -1e5F, -14.0F, 14.0F, 1e5F, 1e15F, -0.0F, std::nanf("")});
  std::vector<float> y(5 * x.size());
  constexpr double kTolerance = 4e-7;
  const std::size_t n = x.size();
  on_every_target([&] {
    HWY_DYNAMIC_DISPATCH(gelus)(&x, &y);
    for (std::size_t kind = 0; kind < 5; ++kind) EXPECT_TRUE(std::isnan(y[kind * n + n - 1])) << kind;
    EXPECT_EQ(y[4 * n + n - 8], 0);
    for (std::size_t i = 0; i + 1 < n; ++i) {
      const auto at = static_cast<double>(x[i]);
      const double below = std::erfc(-at / std::numbers::sqrt2) / 2,
                   density = std::exp(-at * at / 2) / std::sqrt(2 * std::numbers::pi);
      const double size = std::max(1.0, std::fabs(at)), root = std::sqrt(2 / std::numbers::pi);
      const double tanh = std::tanh(root * (at + 0.044715 * at * at * at));
      ASSERT_NEAR(y[i], at * below, kTolerance * size) << at;
      ASSERT_NEAR(y[4 * n + i], at * below, kTolerance * size) << at;
      ASSERT_NEAR(y[n + i], below + at * density, kTolerance) << at;
      ASSERT_NEAR(y[2 * n + i], at * (1 + tanh) / 2, kTolerance * size) << at;
      ASSERT_NEAR(y[3 * n + i],
                  (1 + tanh) / 2 + at / 2 * (1 - tanh * tanh) * root * (1 + 3 * 0.044715 * at * at),
                  kTolerance)
          << at;
    }
  });
}

}  // namespace
}  // namespace normscope
#endif

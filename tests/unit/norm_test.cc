// Names, policies, ranges and errors of the norms, on rows small enough to check by hand.
#include "normscope/norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "normscope/error.h"
#include "normscope/random.h"

namespace normscope {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Output {
  std::vector<double> y;
  NormCounts counts;
};

Output apply(const NormSpec& spec, std::vector<double> x, const NormParameters<double>& parameters = {}) {
  Output out;
  out.y.resize(x.size());
  out.counts = norm_forward(spec, parameters, {x.data(), 1, x.size()}, {out.y.data(), 1, x.size()});
  return out;
}

std::vector<double> gradient(const NormSpec& spec, std::vector<double> x, std::vector<double> dy,
                             const NormParameters<double>& parameters = {}) {
  std::vector<double> dx(x.size(), kNaN);
  norm_backward(spec, parameters, {x.data(), 1, x.size()}, {dy.data(), 1, x.size()}, {dx.data(), 1, x.size()},
                {});
  return dx;
}

double norm_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], tolerance) << "entry " << i;
}

std::string message_of(std::string_view name) {
  try {
    parse_norm(name);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(NormName, NamesEachHalfAndTheirCompositions) {
  const auto spec = [](Projection projection, Scaling scaling) {
    return NormSpec{.projection = projection, .scaling = scaling};
  };
  EXPECT_EQ(parse_norm("none"), spec(Projection::none, Scaling::none));
  EXPECT_EQ(parse_norm("center"), spec(Projection::ones, Scaling::none));
  EXPECT_EQ(parse_norm("rmsnorm"), spec(Projection::none, Scaling::root_dimension));
  EXPECT_EQ(parse_norm("layernorm"), spec(Projection::ones, Scaling::root_dimension));
  EXPECT_EQ(parse_norm("unit"), spec(Projection::none, Scaling::unit));
  EXPECT_EQ(parse_norm("xsigma"), spec(Projection::none, Scaling::standard_deviation));
  EXPECT_EQ(parse_norm("published"), spec(Projection::none, Scaling::inverse_root_dimension));
  EXPECT_EQ(parse_norm("dyt"), spec(Projection::none, Scaling::tanh));
  EXPECT_EQ(parse_norm("qknorm"), spec(Projection::none, Scaling::unit_per_head));
  EXPECT_EQ(parse_norm("qknorm:12").heads, 12);
  EXPECT_EQ(parse_norm("project:3").normals, 3);
  EXPECT_EQ(parse_norm("project:3").scaling, Scaling::root_dimension);
  EXPECT_EQ(parse_norm("normals:3").scaling, Scaling::none);
  EXPECT_EQ(parse_norm("center+rmsnorm"), parse_norm("layernorm"));
  EXPECT_EQ(parse_norm("normals:3+rmsnorm"), parse_norm("project:3"));
}

TEST(NormName, RoundTripsForEveryComposition) {
  for (const Projection projection : {Projection::none, Projection::ones, Projection::normals}) {
    for (const Scaling scaling :
         {Scaling::none, Scaling::root_dimension, Scaling::unit, Scaling::inverse_root_dimension,
          Scaling::standard_deviation, Scaling::unit_per_head, Scaling::tanh}) {
      NormSpec spec{.projection = projection, .scaling = scaling};
      if (projection == Projection::normals) spec.normals = 5;
      if (scaling == Scaling::unit_per_head) spec.heads = 4;
      EXPECT_EQ(parse_norm(name_of(spec)), spec) << name_of(spec);
    }
  }
}

TEST(NormName, IsReadBackAsWritten) {
  for (const char* name :
       {"none", "layernorm", "rmsnorm", "center", "unit", "xsigma", "published", "dyt", "qknorm", "qknorm:4",
        "project:1", "project:7", "normals:2", "center+unit", "normals:2+dyt"}) {
    EXPECT_EQ(name_of(parse_norm(name)), name);
  }
}

TEST(NormName, UnknownNamesAreAnsweredWithTheKnownOnes) {
  for (const char* name : {"", "LayerNorm", "batchnorm", "project", "rmsnorm+center", "center+", "+unit",
                           "center+unit+unit", "layernorm+unit", "center+layernorm", "layernorm "}) {
    const std::string message = message_of(name);
    for (const std::string_view known : norm_names()) {
      EXPECT_NE(message.find(known), std::string::npos) << "'" << name << "': " << message;
    }
  }
}

TEST(NormName, CountsMustBeWholeNumbersOfAtLeastOne) {
  for (const char* name : {"project:0", "project:-1", "project:x", "project:", "project:2x", "project:1.5",
                           "project:99999999999999999999", "normals:0", "center+qknorm:0", "qknorm:"}) {
    EXPECT_NE(message_of(name).find("whole number of at least 1"), std::string::npos) << name;
  }
}

TEST(NormName, AMisspeltNameIsToldWhatWasMeant) {
  EXPECT_NE(message_of("layernrom").find("did you mean 'layernorm'?"), std::string::npos);
  EXPECT_NE(message_of("centre").find("did you mean 'center'?"), std::string::npos);
  EXPECT_EQ(message_of("batchstatistics").find("did you mean"), std::string::npos);
}

TEST(LayerNorm, IsTheTextbookFormula) {
  // x = (1, 2, 3, 6): mean 3, σ² = (4 + 1 + 0 + 9)/4 = 3.5.
  NormSpec spec = parse_norm("layernorm");
  for (const double eps : {0.0, 1e-5, 0.5}) {
    spec.eps = eps;
    const double s = 1 / std::sqrt(3.5 + eps);
    expect_near(apply(spec, {1, 2, 3, 6}).y, {-2 * s, -s, 0, 3 * s}, 1e-15);
  }
}

TEST(LayerNorm, GainAndBiasComeLastAndCanBeSwitchedOff) {
  const std::vector<double> gain = {2, 3, 4, 5}, bias = {1, -1, 2, -2};
  const NormParameters<double> parameters{.gain = gain, .bias = bias, .normals = {}};
  NormSpec spec = parse_norm("layernorm");
  const double s = 1 / std::sqrt(3.5);
  expect_near(apply(spec, {1, 2, 3, 6}, parameters).y, {-2 * s, -s, 0, 3 * s}, 1e-15);
  spec.affine = true;
  expect_near(apply(spec, {1, 2, 3, 6}, parameters).y, {-4 * s + 1, -3 * s - 1, 2, 15 * s - 2}, 1e-14);
}

TEST(LayerNorm, UndefinedAtAlphaZeroFollowsThePolicy) {
  const NormSpec spec = parse_norm("layernorm");
  // 0.1 and 1/3 have means that round: only an exact treatment sees σ = 0.
  for (const double beta : {0.0, 0.1, 1.0 / 3, -7e200, 3e-310}) {
    for (const std::size_t d : {2u, 3u, 7u, 10u, 768u}) {
      const Output out = apply(spec, std::vector<double>(d, beta));
      EXPECT_EQ(out.y, std::vector<double>(d, 0.0)) << "β = " << beta << ", d = " << d;
      EXPECT_EQ(out.counts.zero_rows, beta == 0 ? 1u : 0u);
      EXPECT_EQ(out.counts.constant_rows, beta == 0 ? 0u : 1u);
      EXPECT_EQ(gradient(spec, std::vector<double>(d, beta), std::vector<double>(d, 1.5)),
                std::vector<double>(d, 0.0));
    }
  }
}

TEST(LayerNorm, UndefinedRowsStillGetTheBias) {
  const std::vector<double> gain = {2, 3}, bias = {1, -1};
  NormSpec spec = parse_norm("layernorm");
  spec.affine = true;
  const NormParameters<double> parameters{.gain = gain, .bias = bias, .normals = {}};
  EXPECT_EQ(apply(spec, {4, 4}, parameters).y, bias);
  std::vector<double> x = {4, 4}, dy = {5, 6}, dgain(2), dbias(2);
  norm_backward(spec, parameters, {x.data(), 1, 2}, {dy.data(), 1, 2}, {},
                NormGradients<double>{dgain, dbias, {}});
  EXPECT_EQ(dgain, (std::vector<double>{0, 0}));
  EXPECT_EQ(dbias, dy);
}

TEST(LayerNorm, EpsDefinesConstantRowsAndTheyAreStillCounted) {
  NormSpec spec = parse_norm("layernorm");
  spec.eps = 1e-4;
  const Output out = apply(spec, {2, 2, 2, 2});
  EXPECT_EQ(out.y, std::vector<double>(4, 0.0));
  EXPECT_EQ(out.counts.constant_rows, 1u);
  // ∂y/∂x = P/√eps at σ = 0.
  expect_near(gradient(spec, {2, 2, 2, 2}, {4, 0, 0, 0}), {300, -100, -100, -100}, 1e-10);
}

TEST(LayerNorm, InOneDimensionIsZero) {
  const NormSpec spec = parse_norm("layernorm");
  for (const double x : {5.0, -1e300, 1e-300}) {
    EXPECT_EQ(apply(spec, {x}).y, std::vector<double>{0});
    EXPECT_EQ(apply(spec, {x}).counts.constant_rows, 1u);
  }
}

TEST(LayerNorm, CountsUndefinedRowsOfABatch) {
  std::vector<double> x = {1, 2, 3, 0, 0, 0, 5, 5, 5, -1, 0, 1, 0, 0, 0}, y(15);
  const NormCounts counts =
      norm_forward(parse_norm("layernorm"), NormParameters<double>{}, {x.data(), 5, 3}, {y.data(), 5, 3});
  EXPECT_EQ(counts.rows, 5u);
  EXPECT_EQ(counts.zero_rows, 2u);
  EXPECT_EQ(counts.constant_rows, 1u);
  NormCounts twice = counts;
  twice += counts;
  EXPECT_EQ(twice.rows, 10u);
  EXPECT_EQ(twice.undefined_rows(), 6u);
}

TEST(RmsNorm, MapsZeroToZeroAndDefinesConstantRows) {
  const NormSpec spec = parse_norm("rmsnorm");
  const Output zero = apply(spec, {0, 0, 0});
  EXPECT_EQ(zero.y, std::vector<double>(3, 0.0));
  EXPECT_EQ(zero.counts.zero_rows, 1u);
  EXPECT_EQ(gradient(spec, {0, 0, 0}, {1, 2, 3}), std::vector<double>(3, 0.0));
  const Output constant = apply(spec, {-4, -4, -4});
  expect_near(constant.y, {-1, -1, -1}, 1e-15);
  EXPECT_EQ(constant.counts.undefined_rows(), 0u);
}

TEST(RmsNorm, OfOneDimensionIsTheSign) {
  expect_near(apply(parse_norm("rmsnorm"), {-1e-308}).y, {-1}, 1e-15);
  expect_near(apply(parse_norm("rmsnorm"), {1e308}).y, {1}, 1e-15);
}

TEST(Center, HasNoUndefinedRow) {
  const Output out = apply(parse_norm("center"), {3, 3, 3});
  EXPECT_EQ(out.y, std::vector<double>(3, 0.0));
  EXPECT_EQ(out.counts.undefined_rows(), 0u);
  expect_near(gradient(parse_norm("center"), {3, 3, 3}, {3, 0, 0}), {2, -1, -1}, 1e-15);
}

TEST(Published, NormIsOneOverSqrtD) {
  const Output out = apply(parse_norm("published"), {3, 4, 0, 0});
  expect_near(out.y, {0.3, 0.4, 0, 0}, 1e-15);
}

TEST(XSigma, NumeratorIsNotCentred) {
  // σ = √3.5 as above, but x keeps its mean.
  const double s = 1 / std::sqrt(3.5);
  expect_near(apply(parse_norm("xsigma"), {1, 2, 3, 6}).y, {s, 2 * s, 3 * s, 6 * s}, 1e-15);
}

TEST(XSigma, SigmaZeroFollowsThePolicy) {
  const NormSpec spec = parse_norm("xsigma");
  const Output out = apply(spec, {0.1, 0.1, 0.1});
  EXPECT_EQ(out.y, std::vector<double>(3, 0.0));
  EXPECT_EQ(out.counts.constant_rows, 1u);
  EXPECT_EQ(gradient(spec, {0.1, 0.1, 0.1}, {1, 2, 3}), std::vector<double>(3, 0.0));
}

TEST(DyT, IsTanhOfAlphaX) {
  NormSpec spec = parse_norm("dyt");
  expect_near(apply(spec, {0, 2, -1e300}).y, {0, std::tanh(1.0), -1}, 1e-15);
  const std::vector<double> gain = {1, 2, 3}, bias = {0, 1, 2};
  spec.affine = true;
  NormParameters<double> parameters{.gain = gain, .bias = bias, .normals = {}, .alpha = 2};
  expect_near(apply(spec, {0.1, 0.2, 0.3}, parameters).y,
              {std::tanh(0.2), 2 * std::tanh(0.4) + 1, 3 * std::tanh(0.6) + 2}, 1e-15);
}

TEST(QkNorm, EachHeadHasUnitNorm) {
  expect_near(apply(parse_norm("qknorm:2"), {3, 4, -5, 12}).y, {0.6, 0.8, -5.0 / 13, 12.0 / 13}, 1e-15);
}

TEST(QkNorm, HeadsOfOppositeMagnitudeDoNotDisturbEachOther) {
  expect_near(apply(parse_norm("qknorm:2"), {3e300, 4e300, 3e-300, 4e-300}).y, {0.6, 0.8, 0.6, 0.8}, 1e-15);
}

TEST(QkNorm, ZeroHeadIsZeroAndCountedOnce) {
  const Output out = apply(parse_norm("qknorm:3"), {0, 0, 3, 4, 0, 0});
  expect_near(out.y, {0, 0, 0.6, 0.8, 0, 0}, 1e-15);
  EXPECT_EQ(out.counts.zero_rows, 1u);
  EXPECT_EQ(gradient(parse_norm("qknorm:2"), {0, 0, 3, 4}, {1, 1, 4, -3})[0], 0);
}

TEST(QkNorm, GainMayBeSharedByTheHeads) {
  NormSpec spec = parse_norm("qknorm:2");
  spec.affine = true;
  const std::vector<double> shared = {10, 20}, one = {5};
  expect_near(apply(spec, {3, 4, 4, 3}, {.gain = shared, .bias = {}, .normals = {}}).y, {6, 16, 8, 12},
              1e-14);
  expect_near(apply(spec, {3, 4, 4, 3}, {.gain = one, .bias = {}, .normals = {}}).y, {3, 4, 4, 3}, 1e-14);
}

TEST(NormRange, ScalingKeepsDirectionFromTinyToHuge) {
  for (const char* name : {"layernorm", "rmsnorm", "unit", "published", "xsigma", "qknorm", "project:1"}) {
    const NormSpec spec = parse_norm(name);
    const std::vector<double> normal = {1, 2, -1};
    const NormParameters<double> parameters{.gain = {}, .bias = {}, .normals = {normal.data(), 1, 3}};
    const std::vector<double> expected = apply(spec, {1, -2, 5}, parameters).y;
    for (const double magnitude : {1e-307, 1e-300, 1e-160, 1e160, 1e300, 3e307}) {
      const Output out = apply(spec, {magnitude, -2 * magnitude, 5 * magnitude}, parameters);
      expect_near(out.y, expected, 1e-14);
      EXPECT_EQ(out.counts.undefined_rows(), 0u) << name << " at " << magnitude;
    }
  }
}

TEST(NormRange, EpsDominatesTinyRowsWithoutLosingThem) {
  NormSpec spec = parse_norm("rmsnorm");
  spec.eps = 1e-4;  // y = x/√(mean square + eps) → 100 x
  for (const double magnitude : {1e-310, 1e-300, 1e-160}) {
    const Output out = apply(spec, {magnitude, -2 * magnitude});
    EXPECT_NEAR(out.y[0] / magnitude, 100, 1e-9);
    EXPECT_NEAR(out.y[1] / magnitude, -200, 1e-9);
  }
}

TEST(NormRange, GradientScalesInverselyWithTheRow) {
  for (const char* name : {"layernorm", "rmsnorm", "xsigma", "project:1"}) {
    const NormSpec spec = parse_norm(name);
    const std::vector<double> normal = {1, 2, -1};
    const NormParameters<double> parameters{.gain = {}, .bias = {}, .normals = {normal.data(), 1, 3}};
    const auto expected = gradient(spec, {1, -2, 5}, {1, 0, 0}, parameters);
    for (const double magnitude : {1e-300, 1e300}) {
      auto actual = gradient(spec, {magnitude, -2 * magnitude, 5 * magnitude}, {1, 0, 0}, parameters);
      for (double& value : actual) value *= magnitude;
      expect_near(actual, expected, 1e-13);
    }
  }
}

TEST(NormRange, NanAndInfPropagateWithinTheirRow) {
  for (const char* name : {"layernorm", "rmsnorm", "unit", "published", "xsigma", "qknorm", "project:1",
                           "center", "normals:1"}) {
    const NormSpec spec = parse_norm(name);
    const std::vector<double> normal = {1, 2, -1};
    const NormParameters<double> parameters{.gain = {}, .bias = {}, .normals = {normal.data(), 1, 3}};
    for (const double bad : {kNaN, kInfinity, -kInfinity}) {
      std::vector<double> x = {1, bad, 3, 1, 2, 4}, y(6), dy(6, 1.0), dx(6);
      const NormCounts counts = norm_forward(spec, parameters, {x.data(), 2, 3}, {y.data(), 2, 3});
      norm_backward(spec, parameters, {x.data(), 2, 3}, {dy.data(), 2, 3}, {dx.data(), 2, 3}, {});
      EXPECT_FALSE(std::isfinite(y[1])) << name << " of " << bad;
      EXPECT_EQ(counts.undefined_rows(), 0u) << name << " of " << bad;
      for (std::size_t i = 3; i < 6; ++i) EXPECT_TRUE(std::isfinite(y[i]) && std::isfinite(dx[i])) << name;
    }
  }
}

TEST(NormRange, AllNanRowIsNotTakenForAZeroRow) {
  const Output out = apply(parse_norm("rmsnorm"), {kNaN, kNaN});
  EXPECT_TRUE(std::isnan(out.y[0]) && std::isnan(out.y[1]));
  EXPECT_EQ(out.counts.undefined_rows(), 0u);
}

TEST(NormViews, InPlaceAndStridedRowsGiveTheSame) {
  const NormSpec spec = parse_norm("layernorm");
  std::vector<double> packed = {1, 2, 3, 6, -1, 5}, expected(6);
  norm_forward(spec, NormParameters<double>{}, {packed.data(), 2, 3}, {expected.data(), 2, 3});
  std::vector<double> strided = {1, 2, 3, 99, 6, -1, 5, 99};
  const MatrixView<double> view(strided.data(), 2, 3, 4);
  norm_forward(spec, NormParameters<double>{}, view, view);
  EXPECT_EQ(strided, (std::vector<double>{expected[0], expected[1], expected[2], 99, expected[3], expected[4],
                                          expected[5], 99}));
  std::vector<double> dy = {1, 0, 2, 3, -1, 1}, dx(6);
  norm_backward(spec, NormParameters<double>{}, {packed.data(), 2, 3}, {dy.data(), 2, 3}, {dx.data(), 2, 3},
                {});
  norm_backward(spec, NormParameters<double>{}, {packed.data(), 2, 3}, {dy.data(), 2, 3}, {dy.data(), 2, 3},
                {});
  EXPECT_EQ(dy, dx);
}

TEST(NormViews, ParameterGradientsAreAddedNotOverwritten) {
  NormSpec spec = parse_norm("dyt");
  spec.affine = true;
  std::vector<double> x = {1, 2}, dy = {3, 4}, once_gain(2), once_bias(2), twice_gain(2), twice_bias(2);
  double once_alpha = 0, twice_alpha = 0;
  const auto run = [&](std::vector<double>& gain, std::vector<double>& bias, double& alpha) {
    norm_backward(spec, NormParameters<double>{}, {x.data(), 1, 2}, {dy.data(), 1, 2}, {},
                  NormGradients<double>{gain, bias, {}, &alpha});
  };
  run(once_gain, once_bias, once_alpha);
  run(twice_gain, twice_bias, twice_alpha);
  run(twice_gain, twice_bias, twice_alpha);
  EXPECT_NE(once_alpha, 0);
  EXPECT_EQ(twice_alpha, 2 * once_alpha);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(once_bias[i], dy[i]);
    EXPECT_EQ(twice_bias[i], 2 * once_bias[i]);
    EXPECT_EQ(twice_gain[i], 2 * once_gain[i]);
  }
}

TEST(NormErrors, ShapesMustFitTogether) {
  std::vector<double> x(6, 1.0), y(6);
  const NormParameters<double> none;
  const auto forward = [&](const NormSpec& spec, const NormParameters<double>& parameters) {
    norm_forward(spec, parameters, {x.data(), 2, 3}, {y.data(), 2, 3});
  };
  EXPECT_THROW(norm_forward(parse_norm("unit"), none, {x.data(), 2, 3}, {y.data(), 3, 2}), InputError);
  EXPECT_THROW(norm_forward(parse_norm("unit"), none, {x.data(), 2, 0}, {y.data(), 2, 0}), InputError);
  EXPECT_THROW(forward(parse_norm("qknorm:2"), none), InputError);
  EXPECT_THROW(forward(parse_norm("project:1"), none), InputError);
  EXPECT_THROW(forward({.scaling = Scaling::unit_per_head, .heads = 0}, none), InputError);
  EXPECT_THROW(forward({.projection = Projection::normals}, none), InputError);
  NormSpec affine = parse_norm("layernorm");
  affine.affine = true;
  const std::vector<double> two = {1, 2};
  EXPECT_THROW(forward(affine, {.gain = two, .bias = {}, .normals = {}}), InputError);
  EXPECT_THROW(forward(affine, {.gain = {}, .bias = two, .normals = {}}), InputError);
  std::vector<double> gradient_of_two(2);
  EXPECT_THROW(norm_backward(affine, none, {x.data(), 2, 3}, {y.data(), 2, 3}, {},
                             NormGradients<double>{gradient_of_two, {}, {}}),
               InputError);
}

TEST(NormErrors, EpsMustBeFiniteAndNotNegative) {
  for (const double eps : {-1e-9, kNaN, kInfinity}) {
    NormSpec spec = parse_norm("layernorm");
    spec.eps = eps;
    EXPECT_THROW(apply(spec, {1, 2}), InputError) << eps;
  }
}

TEST(NormErrors, NormalsMustBeFiniteAndIndependent) {
  const NormSpec two = parse_norm("project:2");
  const auto project = [&](std::vector<double> normals) {
    return apply(two, {1, 2, 3}, {.gain = {}, .bias = {}, .normals = {normals.data(), 2, 3}});
  };
  EXPECT_THROW(project({1, 2, 3, 2, 4, 6}), InputError);
  EXPECT_THROW(project({1, 2, 3, 0, 0, 0}), InputError);
  EXPECT_THROW(project({1, 2, 3, kNaN, 0, 0}), InputError);
  EXPECT_THROW(project({1, 2, 3, kInfinity, 0, 0}), InputError);
  // Independence does not depend on the normals' lengths.
  EXPECT_NEAR(norm_of(project({1e-200, 0, 0, 0, 1e200, 0}).y), std::sqrt(3.0), 1e-15);
  const std::vector<double> three_in_two_dimensions = {1, 0, 0, 1, 1, 1};
  EXPECT_THROW(apply(parse_norm("project:3"), {1, 2},
                     {.gain = {}, .bias = {}, .normals = {three_in_two_dimensions.data(), 3, 2}}),
               InputError);
}

TEST(PlaneImage, NeedsAVectorThatIsNotParallelToOnes) {
  EXPECT_THROW(plane_image(std::vector<double>{}), InputError);
  EXPECT_THROW(plane_image(std::vector<double>{2, 2, 2}), InputError);
  EXPECT_THROW(plane_image(std::vector<double>{1, kNaN, 2}), InputError);
  const auto image = plane_image(std::vector<double>{1, -1});
  expect_near(image[0], {1, -1}, 1e-15);
  expect_near(image[1], {-1, 1}, 1e-15);
}

TEST(ImageHyperplane, OfUnitGainIsOrthogonalToOnes) {
  const Hyperplane plane = image_hyperplane(std::vector<double>{1, 1, 1, 1});
  expect_near(plane.normal, {0.5, 0.5, 0.5, 0.5}, 1e-15);
  EXPECT_EQ(plane.offset, 0);
}

TEST(ImageHyperplane, ZeroGainPinsItsCoordinateToTheBias) {
  const Hyperplane plane = image_hyperplane(std::vector<double>{2, 0, 3}, std::vector<double>{1, -7, 2});
  EXPECT_EQ(plane.normal, (std::vector<double>{0, 1, 0}));
  EXPECT_EQ(plane.offset, -7);
}

TEST(ImageHyperplane, RejectsWhatHasNoHyperplane) {
  EXPECT_THROW(image_hyperplane(std::vector<double>{}), InputError);
  EXPECT_THROW(image_hyperplane(std::vector<double>{1, kNaN}), InputError);
  EXPECT_THROW(image_hyperplane(std::vector<double>{1, 2}, std::vector<double>{1}), InputError);
}

TEST(ProjectionMatrix, NeedsADimensionAndANormal) {
  EXPECT_THROW(projection_matrix(std::size_t{0}), InputError);
  EXPECT_THROW(projection_matrix_by_change_of_basis(0), InputError);
  const double number = 1;
  EXPECT_THROW(projection_matrix(MatrixView<const double>(&number, 0, 1)), InputError);
}

TEST(NormErrors, BoundWhatRoundingOfTheInputDoes) {
  Random random(77);
  for (const std::string_view name :
       {"none", "center", "layernorm", "rmsnorm", "unit", "published", "xsigma", "dyt", "qknorm:2"})
    for (const double eps : {0.0, 1e-3})
      for (const double mean : {0.0, 3.0, 500.0}) {
        NormSpec spec = parse_norm(name);
        spec.eps = eps;
        double closest = 0;  // share of the bound that was reached
        for (int draw = 0; draw < 60; ++draw) {
          Matrix<double> meant(1, 8), rounded(1, 8);
          for (std::size_t c = 0; c < 8; ++c) {
            meant(0, c) = mean + random.normal();
            const double step = std::ldexp(1.0, std::ilogb(meant(0, c)) - 10);
            rounded(0, c) = std::nearbyint(meant(0, c) / step) * step;
          }
          const double bound = norm_errors(spec, rounded.view(), 0x1p-11, 0, 0x1p-53)[0];
          norm_forward<double>(spec, {}, meant.view(), meant.view());
          norm_forward<double>(spec, {}, rounded.view(), rounded.view());
          double squares = 0;
          for (std::size_t c = 0; c < 8; ++c) squares += std::pow(meant(0, c) - rounded(0, c), 2);
          EXPECT_LE(std::sqrt(squares), bound) << name << ", eps " << eps << ", mean " << mean;
          closest = std::max(closest, std::sqrt(squares) / bound);
        }
        if (name == "dyt" && mean > 100) continue;  // tanh has nothing left there
        EXPECT_GT(closest, 0.01) << name << ", eps " << eps << ", mean " << mean;
      }
}

// (4, 0, 0) of the least numbers may have been (3.5, 0.5, 0.5), whose mean is 1.5 and not 4/3.
TEST(NormErrors, OfTheLeastNumbersAreStepsOfThem) {
  const struct {
    double step, roundoff, smallest;
  } cases[] = {{0x1p-149, 0x1p-24, 0x1p-150}, {0x1p-1074, 0x1p-53, 0}};
  for (const auto& [step, roundoff, smallest] : cases) {
    Matrix<double> row(1, 3);
    row(0, 0) = 4 * step;
    EXPECT_GE(norm_errors(parse_norm("center"), row.view(), roundoff, smallest, roundoff)[0], step);
  }
}

TEST(NormErrors, OfARowWithoutDirectionAreAnything) {
  const Matrix<double> zero(1, 3);
  EXPECT_NEAR(norm_errors(parse_norm("unit"), zero.view(), 0x1p-24, 0x1p-150, 0)[0], 2.0, 1e-12);
  EXPECT_GT(norm_errors(parse_norm("xsigma"), zero.view(), 0x1p-24, 0x1p-150, 0)[0], 1e299);
  EXPECT_EQ(norm_errors(parse_norm("center"), zero.view(), 0x1p-24, 0, 0)[0], 0);
}

}  // namespace
}  // namespace normscope

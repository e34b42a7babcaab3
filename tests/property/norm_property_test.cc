// The claims about norms of Brody, Alon, Yahav 2023 (§2, App. B, C) and Riechers 2024, over dimensions and
// random draws; gradients against finite differences; float against double.
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "normscope/error.h"
#include "normscope/norm.h"
#include "normscope/random.h"

namespace normscope {
namespace {

constexpr std::size_t kDimensions[] = {2, 3, 4, 8, 15, 64, 768};
constexpr std::size_t kRows = 20;

Matrix<double> normal_matrix(std::size_t rows, std::size_t cols, std::uint64_t seed) {
  Random random(seed);
  Matrix<double> matrix(rows, cols);
  for (std::size_t i = 0; i < rows * cols; ++i) matrix.data()[i] = random.normal();
  return matrix;
}

Matrix<double> apply(const NormSpec& spec, const Matrix<double>& x,
                     const NormParameters<double>& parameters = {}) {
  Matrix<double> y(x.rows(), x.cols());
  norm_forward(spec, parameters, x.view(), y.view());
  return y;
}

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double length(std::span<const double> a) {
  return std::sqrt(dot(a, a));
}

double mean(std::span<const double> a) {
  double sum = 0;
  for (const double value : a) sum += value;
  return sum / static_cast<double>(a.size());
}

double largest_difference(const Matrix<double>& a, const Matrix<double>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.values().size(); ++i) {
    largest = std::max(largest, std::fabs(a.values()[i] - b.values()[i]));
  }
  return largest;
}

Matrix<double> scaled(Matrix<double> matrix, double factor) {
  for (std::size_t i = 0; i < matrix.values().size(); ++i) matrix.data()[i] *= factor;
  return matrix;
}

Matrix<double> product(const Matrix<double>& a, const Matrix<double>& b) {
  Matrix<double> c(a.rows(), b.cols());
  for (std::size_t i = 0; i < a.rows(); ++i) {
    for (std::size_t k = 0; k < a.cols(); ++k) {
      for (std::size_t j = 0; j < b.cols(); ++j) c(i, j) += a(i, k) * b(k, j);
    }
  }
  return c;
}

TEST(LayerNorm, OutputIsOrthogonalToOnes) {
  for (const std::size_t d : kDimensions) {
    const Matrix<double> y = apply(parse_norm("layernorm"), normal_matrix(kRows, d, d));
    // |y·1| is a sum of d entries of rms 1, each wrong by a few roundoffs.
    for (std::size_t r = 0; r < kRows; ++r) EXPECT_NEAR(mean(y[r]), 0, 1e-15) << "d = " << d;
  }
}

TEST(LayerNorm, StaysOrthogonalToOnesUnderALargeCommonOffset) {
  for (const std::size_t d : kDimensions) {
    Matrix<double> x = normal_matrix(kRows, d, d);
    for (std::size_t i = 0; i < kRows * d; ++i) x.data()[i] += 1e9;
    const Matrix<double> y = apply(parse_norm("layernorm"), x);
    for (std::size_t r = 0; r < kRows; ++r) {
      EXPECT_NEAR(mean(y[r]), 0, 1e-14) << "d = " << d;
      EXPECT_NEAR(length(y[r]), std::sqrt(static_cast<double>(d)), 1e-13);
    }
  }
}

TEST(LayerNorm, NormIsExactlySqrtD) {
  for (const std::size_t d : kDimensions) {
    const Matrix<double> y = apply(parse_norm("layernorm"), normal_matrix(kRows, d, d + 100));
    const double root = std::sqrt(static_cast<double>(d));
    for (std::size_t r = 0; r < kRows; ++r) EXPECT_NEAR(length(y[r]) / root, 1, 1e-14) << "d = " << d;
  }
}

TEST(LayerNorm, NormWithEpsFallsShortOfSqrtDByTheFormula) {
  NormSpec spec = parse_norm("layernorm");
  spec.eps = 0.3;
  for (const std::size_t d : kDimensions) {
    const Matrix<double> x = normal_matrix(kRows, d, d + 200), y = apply(spec, x);
    const auto size = static_cast<double>(d);
    for (std::size_t r = 0; r < kRows; ++r) {
      double variance = 0;
      for (const double value : x[r]) variance += (value - mean(x[r])) * (value - mean(x[r])) / size;
      EXPECT_NEAR(length(y[r]), std::sqrt(size * variance / (variance + 0.3)), 1e-12);
    }
  }
}

TEST(LayerNorm, EveryConstantRowIsSeenAsSigmaZero) {
  Random random(9);
  for (const std::size_t d : {1u, 2u, 3u, 7u, 10u, 768u, 4097u}) {
    Matrix<double> x(200, d), y(200, d);
    for (std::size_t r = 0; r < x.rows(); ++r) {
      const double beta = random.normal() * std::pow(10.0, 600 * random.uniform() - 300);
      std::fill(x[r].begin(), x[r].end(), beta);
    }
    for (const char* name : {"layernorm", "xsigma"}) {
      const NormCounts counts = norm_forward(parse_norm(name), NormParameters<double>{}, x.view(), y.view());
      EXPECT_EQ(counts.constant_rows, x.rows()) << name << ", d = " << d;
      EXPECT_EQ(largest_difference(y, Matrix<double>(200, d)), 0) << name << ", d = " << d;
    }
  }
}

TEST(LayerNorm, IsIdempotent) {
  for (const std::size_t d : kDimensions) {
    const Matrix<double> once = apply(parse_norm("layernorm"), normal_matrix(kRows, d, d + 300));
    EXPECT_LT(largest_difference(apply(parse_norm("layernorm"), once), once), 1e-13) << "d = " << d;
  }
}

TEST(LayerNorm, MapsEachPlaneToTwoPoints) {
  Random random(7);
  for (const std::size_t d : kDimensions) {
    const Matrix<double> v = apply(parse_norm("center+unit"), normal_matrix(1, d, d + 400));
    const auto image = plane_image(v[0]);
    for (int draw = 0; draw < 30; ++draw) {
      const double alpha = random.normal(), beta = 3 * random.normal();
      Matrix<double> x(1, d);
      for (std::size_t i = 0; i < d; ++i) x(0, i) = alpha * v(0, i) + beta;
      const Matrix<double> y = apply(parse_norm("layernorm"), x);
      const auto& expected = image[alpha > 0 ? 0 : 1];
      // x was rounded at the size of β; scaling to √d magnifies that by √d/|α|.
      const double tolerance = 4e-16 * (std::fabs(beta) + std::fabs(alpha)) *
                               std::sqrt(static_cast<double>(d)) * (2 + 1 / std::fabs(alpha)) * 4;
      for (std::size_t i = 0; i < d; ++i) EXPECT_NEAR(y(0, i), expected[i], tolerance) << "α = " << alpha;
    }
  }
}

TEST(LayerNorm, TwoImagePointsArePlusMinusSqrtDTimesV) {
  for (const std::size_t d : kDimensions) {
    const Matrix<double> v = apply(parse_norm("center+unit"), normal_matrix(1, d, d + 500));
    const auto image = plane_image(v[0]);
    const double root = std::sqrt(static_cast<double>(d));
    for (std::size_t i = 0; i < d; ++i) {
      EXPECT_NEAR(image[0][i], root * v(0, i), 1e-13);
      EXPECT_EQ(image[1][i], -image[0][i]);
    }
  }
}

TEST(LayerNorm, WithGainLiesInTheHyperplaneWithNormalOneOverG) {
  NormSpec spec = parse_norm("layernorm");
  spec.affine = true;
  for (const std::size_t d : kDimensions) {
    const Matrix<double> gain = normal_matrix(1, d, d + 600), bias = normal_matrix(1, d, d + 700);
    const NormParameters<double> with_bias{.gain = gain[0], .bias = bias[0], .normals = {}};
    const NormParameters<double> without{.gain = gain[0], .bias = {}, .normals = {}};
    const Hyperplane plane = image_hyperplane(gain[0], bias[0]), central = image_hyperplane(gain[0]);
    EXPECT_NEAR(length(plane.normal), 1, 1e-14);
    EXPECT_EQ(central.offset, 0);
    for (std::size_t i = 1; i < d; ++i) {  // ∝ 1/g: nᵢ gᵢ is the same for all i
      EXPECT_NEAR(plane.normal[i] * gain(0, i) / (plane.normal[0] * gain(0, 0)), 1, 1e-14);
    }
    const Matrix<double> x = normal_matrix(kRows, d, d + 800);
    const Matrix<double> y = apply(spec, x, with_bias), z = apply(spec, x, without);
    for (std::size_t r = 0; r < kRows; ++r) {
      EXPECT_NEAR(dot(plane.normal, y[r]), plane.offset, 1e-13 * length(y[r])) << "d = " << d;
      EXPECT_NEAR(dot(central.normal, z[r]), 0, 1e-13 * length(z[r])) << "d = " << d;
    }
  }
}

TEST(LayerNorm, WithGainLiesOnTheEllipsoidWithAxesSqrtDTimesG) {
  NormSpec spec = parse_norm("layernorm");
  spec.affine = true;
  for (const std::size_t d : kDimensions) {
    const Matrix<double> gain = normal_matrix(1, d, d + 900);
    const Matrix<double> y =
        apply(spec, normal_matrix(kRows, d, d + 950), {.gain = gain[0], .bias = {}, .normals = {}});
    for (std::size_t r = 0; r < kRows; ++r) {
      double sum = 0;
      for (std::size_t i = 0; i < d; ++i) sum += y(r, i) / gain(0, i) * (y(r, i) / gain(0, i));
      EXPECT_NEAR(sum / static_cast<double>(d), 1, 1e-13);
    }
  }
}

TEST(Projection, ByChangeOfBasisEqualsIdentityMinusOnes) {
  for (const std::size_t d : {1u, 2u, 3u, 4u, 8u, 15u, 64u, 200u}) {
    EXPECT_LT(largest_difference(projection_matrix_by_change_of_basis(d), projection_matrix(d)), 1e-15)
        << "d = " << d;
  }
}

TEST(Projection, IsIdempotentAndSymmetric) {
  for (const std::size_t d : {1u, 2u, 3u, 8u, 64u, 200u}) {
    for (const Matrix<double>& p : {projection_matrix(d), projection_matrix_by_change_of_basis(d)}) {
      // Each entry of P² is a sum of d terms, rounded d times.
      EXPECT_LT(largest_difference(product(p, p), p), static_cast<double>(d) * 0x1p-52);
      double trace = 0;
      for (std::size_t i = 0; i < d; ++i) {
        trace += p(i, i);
        for (std::size_t j = 0; j < d; ++j) EXPECT_EQ(p(i, j), p(j, i));
      }
      EXPECT_NEAR(trace, static_cast<double>(d) - 1, 1e-12);  // the rank of a projection
    }
  }
}

TEST(Projection, MatrixTimesXIsCenter) {
  for (const std::size_t d : {1u, 2u, 3u, 8u, 64u, 200u}) {
    const Matrix<double> x = normal_matrix(kRows, d, d + 1000);
    EXPECT_LT(largest_difference(product(x, projection_matrix(d)), apply(parse_norm("center"), x)), 1e-13);
  }
}

TEST(Projection, RemovesExactlyTheNormals) {
  for (const std::size_t d : {2u, 3u, 8u, 64u}) {
    for (std::size_t k = 1; k <= std::min<std::size_t>(d, 5); ++k) {
      const Matrix<double> v = normal_matrix(k, d, d + 50 * k);
      const Matrix<double> p = projection_matrix(v.view());
      EXPECT_LT(largest_difference(product(v, p), Matrix<double>(k, d)), 1e-13) << "P V = 0, d = " << d;
      EXPECT_LT(largest_difference(product(p, p), p), 1e-13);
      double trace = 0;
      for (std::size_t i = 0; i < d; ++i) trace += p(i, i);
      EXPECT_NEAR(trace, static_cast<double>(d - k), 1e-12);
    }
  }
}

TEST(Projection, EqualsItsFormulaForIllConditionedNormals) {
  const std::size_t d = 8;
  Matrix<double> v = normal_matrix(2, d, 5);
  const Matrix<double> other = normal_matrix(1, d, 6);
  for (std::size_t i = 0; i < d; ++i) v(1, i) = v(0, i) + 1e-5 * other(0, i);
  // The reference by Gram-Schmidt in long double: 2⁻⁶⁴ times the condition 1e5. (VVᵀ)⁻¹ would square the
  // latter.
  const Eigen::Map<const Eigen::Matrix<double, 2, 8, Eigen::RowMajor>> map(v.data());
  const Eigen::Matrix<long double, 2, 8> wide = map.cast<long double>();
  using Vector = Eigen::Matrix<long double, 8, 1>;
  const Vector first = wide.row(0).normalized(), difference = wide.row(1) - wide.row(0);
  const Vector second = (difference - first * first.dot(difference)).normalized();
  const Matrix<double> actual = projection_matrix(v.view());
  for (std::size_t i = 0; i < d; ++i) {
    for (std::size_t j = 0; j < d; ++j) {
      const auto a = static_cast<Eigen::Index>(i), b = static_cast<Eigen::Index>(j);
      const long double expected = (i == j) - first(a) * first(b) - second(a) * second(b);
      EXPECT_NEAR(actual(i, j), static_cast<double>(expected), 1e-10);
    }
  }
}

TEST(ProjectNormals, WithTheOnesNormalIsLayerNorm) {
  for (const std::size_t d : kDimensions) {
    const Matrix<double> x = normal_matrix(kRows, d, d + 1100);
    const std::vector<double> ones(d, 0.3);
    const NormParameters<double> parameters{.gain = {}, .bias = {}, .normals = {ones.data(), 1, d}};
    EXPECT_LT(
        largest_difference(apply(parse_norm("project:1"), x, parameters), apply(parse_norm("layernorm"), x)),
        1e-12);
  }
}

TEST(ProjectNormals, OutputIsOrthogonalToEachNormalWithNormSqrtD) {
  for (const std::size_t d : {8u, 64u, 768u}) {
    for (const std::size_t k : {1u, 2u, 5u}) {
      const Matrix<double> v = normal_matrix(k, d, d + k);
      NormSpec spec = parse_norm("project:1");
      spec.normals = static_cast<int>(k);
      const Matrix<double> y =
          apply(spec, normal_matrix(kRows, d, d + 1200), {.gain = {}, .bias = {}, .normals = v.view()});
      for (std::size_t r = 0; r < kRows; ++r) {
        EXPECT_NEAR(length(y[r]), std::sqrt(static_cast<double>(d)), 1e-12);
        for (std::size_t i = 0; i < k; ++i) EXPECT_NEAR(dot(v[i], y[r]) / length(v[i]), 0, 1e-12);
      }
    }
  }
}

TEST(ProjectNormals, RowsInTheSpanFollowThePolicy) {
  Random random(3);
  for (const std::size_t d : {2u, 8u, 64u, 768u}) {
    const std::size_t k = 2;
    const Matrix<double> v = normal_matrix(k, d, d + 1300);
    Matrix<double> x(kRows, d), y(kRows, d), dx(kRows, d);
    for (std::size_t r = 0; r < kRows; ++r) {
      const double a = random.normal(), b = random.normal();
      for (std::size_t i = 0; i < d; ++i) x(r, i) = a * v(0, i) + b * v(1, i);
    }
    const NormParameters<double> parameters{.gain = {}, .bias = {}, .normals = v.view()};
    const NormCounts counts = norm_forward(parse_norm("project:2"), parameters, x.view(), y.view());
    EXPECT_EQ(counts.constant_rows, kRows) << "d = " << d;
    EXPECT_EQ(largest_difference(y, Matrix<double>(kRows, d)), 0);
    norm_backward(parse_norm("project:2"), parameters, x.view(), x.view(), dx.view(), {});
    EXPECT_EQ(largest_difference(dx, Matrix<double>(kRows, d)), 0);
  }
}

TEST(Composition, LayerNormIsSqrtDTimesUnitAfterCenter) {
  for (const std::size_t d : kDimensions) {
    const Matrix<double> x = normal_matrix(kRows, d, d + 1400);
    const Matrix<double> composed =
        scaled(apply(parse_norm("unit"), apply(parse_norm("center"), x)), std::sqrt(static_cast<double>(d)));
    EXPECT_LT(largest_difference(apply(parse_norm("layernorm"), x), composed), 1e-13) << "d = " << d;
  }
}

TEST(Composition, EachHalfSwitchedOffGivesTheNamedVariant) {
  const Matrix<double> x = normal_matrix(kRows, 12, 1);
  NormSpec spec = parse_norm("layernorm");
  spec.projection = Projection::none;
  EXPECT_EQ(name_of(spec), "rmsnorm");
  EXPECT_EQ(apply(spec, x).values(), apply(parse_norm("rmsnorm"), x).values());
  spec.scaling = Scaling::none;
  EXPECT_EQ(name_of(spec), "none");
  EXPECT_EQ(apply(spec, x).values(), x.values());
  spec.projection = Projection::ones;
  EXPECT_EQ(name_of(spec), "center");
  EXPECT_EQ(apply(spec, x).values(), apply(parse_norm("center"), x).values());
}

TEST(Composition, ScalingAfterProjectionEqualsTheTwoStepsForEveryPair) {
  const std::size_t d = 12;
  const Matrix<double> x = normal_matrix(kRows, d, 2), v = normal_matrix(3, d, 3);
  const NormParameters<double> parameters{.gain = {}, .bias = {}, .normals = v.view(), .alpha = 0.8};
  for (const std::string projection : {"center", "normals:3"}) {
    const Matrix<double> projected = apply(parse_norm(projection), x, parameters);
    for (const std::string scaling : {"rmsnorm", "unit", "published", "xsigma", "dyt", "qknorm:4"}) {
      for (const double eps : {0.0, 0.1}) {
        NormSpec both = parse_norm(projection + "+" + scaling), second = parse_norm(scaling);
        both.eps = second.eps = eps;
        EXPECT_LT(largest_difference(apply(both, x, parameters), apply(second, projected, parameters)), 1e-14)
            << projection << "+" << scaling;
      }
    }
  }
}

TEST(Scaling, SetsTheNormAndKeepsTheDirection) {
  for (const std::size_t d : kDimensions) {
    const auto root = std::sqrt(static_cast<double>(d));
    const Matrix<double> x = normal_matrix(kRows, d, d + 1500);
    const std::pair<const char*, double> cases[] = {{"rmsnorm", root}, {"unit", 1}, {"published", 1 / root}};
    for (const auto& [name, target] : cases) {
      const Matrix<double> y = apply(parse_norm(name), x);
      for (std::size_t r = 0; r < kRows; ++r) {
        EXPECT_NEAR(length(y[r]) / target, 1, 1e-14) << name;
        EXPECT_NEAR(dot(x[r], y[r]) / (length(x[r]) * length(y[r])), 1, 1e-14) << name;
      }
    }
  }
}

TEST(Published, NormIsDTimesSmallerThanRmsNorm) {
  for (const std::size_t d : kDimensions) {
    const Matrix<double> x = normal_matrix(kRows, d, d + 1600);
    EXPECT_LT(largest_difference(scaled(apply(parse_norm("published"), x), static_cast<double>(d)),
                                 apply(parse_norm("rmsnorm"), x)),
              1e-13);
  }
}

TEST(XSigma, ExceedsLayerNormByTheMeanOverSigma) {
  // x/σ = (x − μ)/σ + (μ/σ)·1: the same point of the hyperplane, moved along 1.
  for (const std::size_t d : kDimensions) {
    const Matrix<double> x = normal_matrix(kRows, d, d + 1700);
    const Matrix<double> y = apply(parse_norm("xsigma"), x), layernorm = apply(parse_norm("layernorm"), x);
    for (std::size_t r = 0; r < kRows; ++r) {
      const double shift = y(r, 0) - layernorm(r, 0);
      for (std::size_t i = 0; i < d; ++i)
        EXPECT_NEAR(y(r, i) - layernorm(r, i), shift, 1e-11 * (1 + std::fabs(shift)));
      EXPECT_NEAR(mean(y[r]), shift, 1e-11 * (1 + std::fabs(shift)));
    }
  }
}

TEST(QkNorm, IsUnitPerHeadAndUnitForOneHead) {
  const std::size_t d = 24;
  const Matrix<double> x = normal_matrix(kRows, d, 8);
  EXPECT_EQ(apply(parse_norm("qknorm"), x).values(), apply(parse_norm("unit"), x).values());
  for (const std::size_t heads : {2u, 3u, 12u, 24u}) {
    const Matrix<double> y = apply(parse_norm("qknorm:" + std::to_string(heads)), x);
    const std::size_t width = d / heads;
    for (std::size_t r = 0; r < kRows; ++r) {
      for (std::size_t h = 0; h < heads; ++h) EXPECT_NEAR(length(y[r].subspan(h * width, width)), 1, 1e-15);
    }
  }
}

TEST(DyT, IsBoundedByGainAroundBias) {
  NormSpec spec = parse_norm("dyt");
  spec.affine = true;
  const std::size_t d = 16;
  const Matrix<double> gain = normal_matrix(1, d, 10), bias = normal_matrix(1, d, 11);
  const Matrix<double> x = scaled(normal_matrix(kRows, d, 12), 100);
  const Matrix<double> y = apply(spec, x, {.gain = gain[0], .bias = bias[0], .normals = {}});
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t i = 0; i < d; ++i) {
      EXPECT_NEAR(y(r, i), gain(0, i) * std::tanh(0.5 * x(r, i)) + bias(0, i), 1e-15);
      EXPECT_LE(std::fabs(y(r, i) - bias(0, i)), std::fabs(gain(0, i)) * (1 + 1e-15) + 1e-15);
    }
  }
}

// Everything the loss L = Σ w ⊙ norm(x) depends on, in one place so that each number can be nudged.
struct Problem {
  NormSpec spec;
  Matrix<double> x, weight, gain, bias, normals;
  double alpha = 0.7;

  NormParameters<double> parameters() const {
    return {.gain = gain[0], .bias = bias[0], .normals = normals.view(), .alpha = alpha};
  }
  double loss() const { return dot(weight.values(), apply(spec, x, parameters()).values()); }
};

Problem make_problem(const NormSpec& spec, std::size_t gains) {
  const std::size_t rows = 3, d = 6;
  return {spec,
          normal_matrix(rows, d, 21),
          normal_matrix(rows, d, 22),
          normal_matrix(1, gains, 23),
          normal_matrix(1, d, 24),
          normal_matrix(static_cast<std::size_t>(std::max(spec.normals, 1)), d, 25)};
}

// Central differences with step h err by h²|f'''|/6 + 2⁻⁵³|L|/h: about 1e-9 for numbers near 1.
void expect_derivative(Problem& problem, double& number, double gradient, const std::string& of) {
  const double h = 1e-5, start = number;
  number = start + h;
  const double above = problem.loss();
  number = start - h;
  const double below = problem.loss();
  number = start;
  EXPECT_NEAR((above - below) / (2 * h), gradient, 2e-7 * (1 + std::fabs(gradient))) << of;
}

void check_gradients(Problem problem) {
  Matrix<double> dx(problem.x.rows(), problem.x.cols()), dgain(1, problem.gain.cols()),
      dbias(1, problem.bias.cols()), dnormals(problem.normals.rows(), problem.normals.cols());
  double dalpha = 0;
  norm_backward(problem.spec, problem.parameters(), problem.x.view(), problem.weight.view(), dx.view(),
                NormGradients<double>{dgain[0], dbias[0], dnormals.view(), &dalpha});
  const std::string name = name_of(problem.spec) + (problem.spec.affine ? " affine" : "") + " eps " +
                           std::to_string(problem.spec.eps) + " ∂";
  const auto check = [&](Matrix<double>& numbers, const Matrix<double>& gradient, const char* of) {
    for (std::size_t i = 0; i < numbers.values().size(); ++i) {
      expect_derivative(problem, numbers.data()[i], gradient.values()[i], name + of + std::to_string(i));
    }
  };
  check(problem.x, dx, "x");
  check(problem.gain, dgain, "gain");
  check(problem.bias, dbias, "bias");
  check(problem.normals, dnormals, "normals");
  expect_derivative(problem, problem.alpha, dalpha, name + "alpha");
}

class NormGradient : public testing::TestWithParam<const char*> {};

TEST_P(NormGradient, MatchesFiniteDifferencesInEveryInputAndParameter) {
  for (const bool affine : {false, true}) {
    for (const double eps : {0.0, 1e-5, 0.1}) {
      NormSpec spec = parse_norm(GetParam());
      spec.affine = affine;
      spec.eps = eps;
      check_gradients(make_problem(spec, 6));
    }
  }
}

TEST_P(NormGradient, IsOrthogonalToWhatTheNormIgnores) {
  // Scaling with eps = 0 ignores the length of y, projection ignores its normals: dx has no part along
  // either.
  const Problem problem = make_problem(parse_norm(GetParam()), 6);
  Matrix<double> dx(problem.x.rows(), problem.x.cols());
  norm_backward(problem.spec, problem.parameters(), problem.x.view(), problem.weight.view(), dx.view(), {});
  EXPECT_GT(length(dx.values()), 0.01);
  const bool scales = problem.spec.scaling != Scaling::none && problem.spec.scaling != Scaling::tanh;
  for (std::size_t r = 0; r < dx.rows(); ++r) {
    const double size = length(dx[r]) + 1e-300;
    if (scales) {
      EXPECT_NEAR(dot(dx[r], problem.x[r]) / size, 0, 1e-13);
    }
    if (problem.spec.projection == Projection::ones) {
      EXPECT_NEAR(mean(dx[r]) / size, 0, 1e-15);
    }
    for (std::size_t k = 0; problem.spec.projection == Projection::normals && k < problem.normals.rows();
         ++k) {
      EXPECT_NEAR(dot(dx[r], problem.normals[k]) / size, 0, 1e-14);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryNorm, NormGradient,
                         testing::Values("none", "layernorm", "rmsnorm", "center", "unit", "xsigma",
                                         "published", "dyt", "qknorm", "qknorm:3", "project:1", "project:2",
                                         "project:4", "normals:2", "center+unit", "center+dyt",
                                         "center+qknorm:2", "normals:2+xsigma", "normals:2+dyt",
                                         "normals:3+qknorm:2"),
                         [](const auto& norm) {
                           std::string name = norm.param;
                           for (char& c : name) c = c == '+' || c == ':' ? '_' : c;
                           return name;
                         });

TEST(QkNorm, GradientOfASharedGainIsTheSumOverHeads) {
  for (const std::size_t gains : {1u, 3u}) {
    NormSpec spec = parse_norm("qknorm:2");
    spec.affine = true;
    check_gradients(make_problem(spec, gains));
  }
}

TEST(NormInFloat, AgreesWithDoubleToItsRounding) {
  const std::size_t d = 24, rows = 10;
  const auto narrow = [](const Matrix<double>& from) {
    return Matrix<float>(from.rows(), from.cols(), {from.values().begin(), from.values().end()});
  };
  const auto widen = [](const Matrix<float>& from) {
    return Matrix<double>(from.rows(), from.cols(), {from.values().begin(), from.values().end()});
  };
  const Matrix<float> x = narrow(normal_matrix(rows, d, 31)), dy = narrow(normal_matrix(rows, d, 32)),
                      gain = narrow(normal_matrix(1, d, 33)), bias = narrow(normal_matrix(1, d, 34)),
                      normals = narrow(normal_matrix(2, d, 35));
  const Matrix<double> wide_gain = widen(gain), wide_bias = widen(bias), wide_normals = widen(normals);
  const NormParameters<float> single{gain[0], bias[0], normals.view(), 0.75f};
  const NormParameters<double> wide{wide_gain[0], wide_bias[0], wide_normals.view(), 0.75};
  for (const char* name : {"none", "layernorm", "rmsnorm", "center", "unit", "xsigma", "published", "dyt",
                           "qknorm:4", "project:2"}) {
    NormSpec spec = parse_norm(name);
    spec.affine = true;
    spec.eps = 1e-5;
    Matrix<float> y(rows, d), dx(rows, d), dgain(1, d), dbias(1, d), dnormals(2, d);
    Matrix<double> wide_dx(rows, d), wide_dgain(1, d), wide_dbias(1, d), wide_dnormals(2, d);
    float dalpha = 0;
    double wide_dalpha = 0;
    norm_forward(spec, single, x.view(), y.view());
    norm_backward(spec, single, x.view(), dy.view(), dx.view(),
                  NormGradients<float>{dgain[0], dbias[0], dnormals.view(), &dalpha});
    norm_backward(spec, wide, widen(x).view(), widen(dy).view(), wide_dx.view(),
                  NormGradients<double>{wide_dgain[0], wide_dbias[0], wide_dnormals.view(), &wide_dalpha});
    // Arithmetic is in double, so only the stored result rounds: half an ulp of 2⁻²³.
    const auto expect_rounded = [&](const Matrix<float>& actual, const Matrix<double>& exact,
                                    const char* of) {
      for (std::size_t i = 0; i < exact.values().size(); ++i) {
        EXPECT_EQ(actual.values()[i], static_cast<float>(exact.values()[i])) << name << " " << of << " " << i;
      }
    };
    expect_rounded(y, apply(spec, widen(x), wide), "y");
    expect_rounded(dx, wide_dx, "dx");
    expect_rounded(dgain, wide_dgain, "dgain");
    expect_rounded(dbias, wide_dbias, "dbias");
    expect_rounded(dnormals, wide_dnormals, "dnormals");
    EXPECT_EQ(dalpha, static_cast<float>(wide_dalpha)) << name;
  }
}

TEST(NormInFloat, NormalsThatDifferOnlyByRoundingAreDependent) {
  std::vector<float> normals = {1, 2, 3, 1, 2, std::nextafter(3.0f, 4.0f)}, x = {1, 0, 0}, y(3);
  const NormParameters<float> parameters{.gain = {}, .bias = {}, .normals = {normals.data(), 2, 3}};
  EXPECT_THROW(norm_forward(parse_norm("project:2"), parameters, {x.data(), 1, 3}, {y.data(), 1, 3}),
               InputError);
}

}  // namespace
}  // namespace normscope

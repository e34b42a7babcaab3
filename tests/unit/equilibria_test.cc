#include "normscope/equilibria.h"

#include <gtest/gtest.h>

#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "normscope/error.h"
#include "normscope/random.h"
#include "paper/part.h"
#include "report/equilibria_page.h"
#include "unit/markup.h"

namespace normscope {
namespace {

constexpr double kPi = std::numbers::pi;

std::vector<int> signs_of(unsigned pattern, std::size_t rank) {
  std::vector<int> signs;
  for (std::size_t i = 0; i < rank; ++i) signs.push_back((pattern >> i & 1) != 0 ? -1 : 1);
  return signs;
}

Matrix<double> random_tokens(std::size_t n, std::size_t d, std::uint64_t seed) {
  Random random(seed);
  Matrix<double> x(n, d);
  for (std::size_t i = 0; i < n; ++i) {
    double squares = 0;
    for (double& value : x[i]) {
      value = random.normal();
      squares += value * value;
    }
    for (double& value : x[i]) value /= std::sqrt(squares);
  }
  return x;
}

// D A X W as the equation has it, dense.
Matrix<double> plain_layer(double w, const Matrix<double>& x) {
  const auto n = static_cast<Eigen::Index>(x.rows()), d = static_cast<Eigen::Index>(x.cols());
  Eigen::MatrixXd tokens(n, d), attention = Eigen::MatrixXd::Zero(n, n),
                                value = Eigen::MatrixXd::Identity(d, d);
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index j = 0; j < d; ++j)
      tokens(i, j) = x(static_cast<std::size_t>(i), static_cast<std::size_t>(j));
    for (Eigen::Index j = 0; j <= i; ++j) attention(i, j) = 1.0 / static_cast<double>(i + 1);
  }
  for (Eigen::Index j = 0; j + 1 < d; ++j) value(j, j + 1) = w;
  const Eigen::MatrixXd next = (attention * tokens * value).rowwise().normalized();
  Matrix<double> result(x.rows(), x.cols());
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index j = 0; j < d; ++j)
      result(static_cast<std::size_t>(i), static_cast<std::size_t>(j)) = next(i, j);
  }
  return result;
}

TEST(Equilibria, ALayerIsWhatTheEquationSays) {
  for (const auto& [n, d, w] : {std::tuple{1, 1, 2.0}, {2, 2, 1.1}, {5, 3, 7.0}, {3, 6, 0.5}}) {
    Matrix<double> x = random_tokens(static_cast<std::size_t>(n), static_cast<std::size_t>(d), 3);
    const Matrix<double> expected = plain_layer(w, x);
    EXPECT_EQ(equilibrium_layer(w, x.view()), 0u);
    for (std::size_t i = 0; i < x.values().size(); ++i)
      EXPECT_NEAR(x.values()[i], expected.values()[i], 1e-14);
  }
}

TEST(Equilibria, RowsThatCancelStayZeroForThatLayerAndAreCounted) {
  const TokenPath path = token_path(2, {0, 1, 0, -1}, 3);
  EXPECT_EQ(path.zero_rows, 1u);
  EXPECT_EQ(path.fate, Fate::zero_row);
  EXPECT_EQ(path.steps[1], (std::array<double, 4>{0, 1, 0, 0}));
  EXPECT_EQ(path.steps[2], (std::array<double, 4>{0, 1, 0, 1}));  // the next layer attends to token 1 again
  EXPECT_EQ(fate_beside_fixed_token(2, 1, -kPi / 2), Fate::zero_row);
  EXPECT_EQ(fate_beside_fixed_token(2, -1, kPi / 2), Fate::zero_row);
}

TEST(Equilibria, TheFourPointsAreWhatTheyAreSaidToBe) {
  for (const double w : {1.0001, 1.1, 2.0, 10.0, 1e5}) {
    for (const int sign : {1, -1}) {
      for (const FixedPoint& point : fixed_points(w, sign)) {
        const auto moved = [&](double turn) {
          const double angle = std::atan2(point.y, point.x) + turn;
          std::array<double, 4> tokens = {0, static_cast<double>(sign), std::cos(angle), std::sin(angle)};
          equilibrium_layer(w, {tokens.data(), 2, 2});
          return std::remainder(std::atan2(tokens[3], tokens[2]) - std::atan2(point.y, point.x), 2 * kPi);
        };
        EXPECT_NEAR(std::hypot(point.x, point.y), 1, 1e-15);
        if (point.kind == PointKind::singular) {
          EXPECT_TRUE(std::isnan(point.multiplier));
          continue;
        }
        EXPECT_NEAR(moved(0), 0, 1e-10) << point.name << " at w = " << w;
        const double turn = 1e-4 / w;
        EXPECT_NEAR((moved(turn) - moved(-turn)) / (2 * turn), point.multiplier, 1e-3) << point.name << w;
        EXPECT_EQ(point.kind == PointKind::attracting, point.multiplier < 1);
      }
    }
  }
}

TEST(Equilibria, TheArcTellsEveryFateBesideAConvergedTokenExecutor) {
  const Executor executor(2);
  for (const double w : {1.1, 1.5, 2.0, 5.0, 10.0}) {
    const ArcBasin basin = arc_basin(w, 3600, executor);
    EXPECT_EQ(basin.mismatches, 0u) << w;
    EXPECT_EQ(basin.apart + basin.collapsed, 3600u) << w;
    EXPECT_NEAR(basin.share, 0.5 - std::asin(1 / w) / (2 * kPi), 1e-3) << w;
    for (int i = 0; i < 100; ++i) {  // the mirror image
      const double angle = 2 * kPi * (i + 0.37) / 100;
      EXPECT_EQ(fate_beside_fixed_token(w, -1, angle + kPi), fate_beside_fixed_token(w, 1, angle));
      EXPECT_EQ(in_arc_of_b(w, -1, angle + kPi), in_arc_of_b(w, 1, angle));
    }
  }
}

// The shares were measured over 400 000 starts, to ± 0.0005 (0.001 at w = 10); a grid of angles, which owes
// nothing to random numbers, agrees.
TEST(Equilibria, FewRandomStartsStayApartExecutor) {
  const Executor executor(2);
  for (const auto& [w, share] : {std::pair{1.1, 0.0258}, {2.0, 0.0772}, {10.0, 0.1155}}) {
    const FinalRanks ranks = final_ranks({2, 2, w, 10'000, 600, 1}, executor);
    EXPECT_EQ(ranks.starts, 10'000u);
    EXPECT_EQ(ranks.ranks[1] + ranks.ranks[2] + ranks.zero_rows + ranks.unsettled, ranks.starts);
    EXPECT_LE(ranks.unsettled, 20u);
    const double error = std::sqrt(share * (1 - share) / 10'000);
    EXPECT_NEAR(static_cast<double>(ranks.ranks[2]) / 10'000, share, 4 * error) << w;
    EXPECT_LT(static_cast<double>(ranks.ranks[2]) / 10'000, arc_share(w) / 2) << w;
    const auto map = coupled_map(w, 101, 400, executor);
    const auto apart = static_cast<double>(std::count(map.begin(), map.end(), Fate::apart));
    EXPECT_NEAR(apart / static_cast<double>(map.size()), share, 0.003) << w;
  }
}

TEST(Equilibria, RandomStartsAreTheSameForAnyNumberOfThreads) {
  const FinalRanks one = final_ranks({3, 3, 3, 300, 200, 5}, Executor(1));
  for (const int threads : {2, 7}) {
    const FinalRanks other = final_ranks({3, 3, 3, 300, 200, 5}, Executor(threads));
    EXPECT_EQ(one.ranks, other.ranks);
    EXPECT_EQ(one.unsettled, other.unsettled);
  }
  EXPECT_EQ(coupled_map(2, 12, 200, Executor(1)), coupled_map(2, 12, 200, Executor(3)));
}

TEST(Equilibria, AStartThatHasNotEndedIsNotSettled) {
  EXPECT_GT(final_ranks({2, 2, 1.1, 200, 4, 0}, Executor(1)).unsettled, 100u);
}

TEST(Equilibria, TheMapAgreesWithTheFixedPointsNearConvergence) {
  // Token 1 nearly at (0, 1), on the side from which it goes there: cell 29 of 121 is at 87.8°.
  const auto map = coupled_map(2, 121, 300, Executor(2));
  std::size_t apart = 0;
  for (std::size_t row = 0; row < 121; ++row) apart += map[row * 121 + 29] == Fate::apart;
  EXPECT_NEAR(static_cast<double>(apart) / 121, arc_share(2), 0.05);
  EXPECT_EQ(std::count(map.begin(), map.end(), Fate::zero_row), 0);
  const auto even = coupled_map(2, 12, 1000, Executor(2));  // opposite tokens
  EXPECT_EQ(std::count(even.begin(), even.end(), Fate::zero_row), 12);
}

TEST(Equilibria, ThereAreTwoToTheKOfRankK) {
  const Executor executor(2);
  for (std::size_t n = 1; n <= 6; ++n) {
    for (std::size_t d = 1; d <= 6; ++d) {
      for (const double w :
           {static_cast<double>(std::max<std::size_t>(n, 2)), 1.7 * static_cast<double>(n) + 1, 60.0}) {
        const auto ranks = equilibria_by_rank(n, d, w, executor);
        ASSERT_EQ(ranks.size(), std::min(n, d));
        for (const RankSummary& rank : ranks) {
          EXPECT_EQ(rank.count, std::uint64_t{1} << rank.rank) << n << d << w;
          EXPECT_TRUE(rank.enumerated);
          EXPECT_LT(rank.residual, 1e-14) << n << d << w;
          EXPECT_EQ(rank.least_rank, rank.rank);
          EXPECT_EQ(rank.largest_rank, rank.rank);
          EXPECT_LE(rank.stable_rank, rank.own_bound * (1 + 1e-14)) << n << d << w;
          if (rank.rank == n) {
            EXPECT_LE(rank.stable_rank, rank.published_bound * (1 + 1e-14));
          }
        }
      }
    }
  }
}

TEST(Equilibria, AreDifferentAndHaveTheirRank) {
  for (std::size_t rank = 1; rank <= 4; ++rank) {
    std::set<std::vector<double>> seen;
    for (unsigned pattern = 0; pattern < 1u << rank; ++pattern) {
      const auto signs = signs_of(pattern, rank);
      const Matrix<double> x = equilibrium(5, 4, 5, signs);
      EXPECT_TRUE(seen.insert(x.values()).second);
      Eigen::MatrixXd copy(5, 4);
      for (Eigen::Index i = 0; i < 5; ++i) {
        for (Eigen::Index j = 0; j < 4; ++j)
          copy(i, j) = x(static_cast<std::size_t>(i), static_cast<std::size_t>(j));
      }
      Eigen::ColPivHouseholderQR<Eigen::MatrixXd> qr(copy);
      qr.setThreshold(1e-10);
      EXPECT_EQ(static_cast<std::size_t>(qr.rank()), rank);
    }
  }
}

// Found here: between rank 1 and full rank the published bound is too small.
TEST(Equilibria, ThePublishedStableRankBoundHoldsForFullRankOnly) {
  const Matrix<double> x = equilibrium(3, 3, 3, std::vector<int>{1, -1});
  EXPECT_LT(residual(3, x.view()), 1e-15);
  EXPECT_NEAR(stable_rank(x.view()), 1.125, 1e-12);
  EXPECT_NEAR(published_bound(3, 3), 1.08, 1e-12);
  EXPECT_NEAR(own_bound(3, 3, 2), 3 / (3 - 4.0 / 9), 1e-12);
}

TEST(Equilibria, WithoutTheFactorOfTheEqualTokensThereIsNoEquilibrium) {
  Matrix<double> x = equilibrium(3, 2, 4, std::vector<int>{1, -1});
  EXPECT_LT(residual(4, x.view()), 1e-15);
  x(2, 0) = -1.0 / 4;  // 1/w in the place of 2/w
  x(2, 1) = -std::sqrt(1 - 1.0 / 16);
  EXPECT_GT(residual(4, x.view()), 0.1);
}

TEST(Equilibria, BelowNThoseOfLowRankAreMissing) {
  const auto ranks = equilibria_by_rank(4, 4, 2.5, Executor(1));
  EXPECT_EQ(ranks[0].count, 2u);
  EXPECT_EQ(ranks[1].count, 0u);  // 3 equal tokens
  EXPECT_NEAR(ranks[1].second_entry_squared, 1 - 9 / 6.25, 1e-15);
  EXPECT_FALSE(ranks[1].enumerated);
  EXPECT_EQ(ranks[2].count, 8u);  // 2 equal tokens
  EXPECT_EQ(ranks[3].count, 16u);
  EXPECT_LT(ranks[2].residual, 1e-14);
  EXPECT_THROW(equilibrium(4, 4, 2.5, std::vector<int>{1, 1}), InputError);
  // At m = w two signs are one.
  const auto half = equilibria_by_rank(4, 4, 3, Executor(1));
  EXPECT_EQ(half[1].count, 2u);
  EXPECT_EQ(half[1].count, equilibrium_count(4, 4, 3, 2));
  EXPECT_LT(half[1].residual, 1e-14);
}

TEST(Equilibria, TooManyAreCountedAndNotBuilt) {
  const auto ranks = equilibria_by_rank(40, 40, 26, Executor(2));
  EXPECT_EQ(ranks.back().count, std::uint64_t{1} << 40);
  EXPECT_FALSE(ranks.back().enumerated);
  EXPECT_TRUE(std::isnan(ranks.back().residual));
  EXPECT_EQ(equilibrium_count(60, 60, 60, 60), std::uint64_t{1} << 60);
}

// They are not all equilibria: a third token in the plane may also have λ = ‖S₃W‖ ≠ 1, where
// (λ − 1)X₃ = w·(X₃ moved right) + X₂ and ‖X₃‖ = 1.
TEST(Equilibria, OthersExistThanThoseOfTheTheorem) {
  const double w = 3;
  Matrix<double> x(3, 2, {0, 1, -1 / w, std::sqrt(1 - 1 / (w * w)), 0, 0});
  const auto third = [&](double shift) {
    return std::array{x(1, 0) / shift, x(1, 1) / shift + w * x(1, 0) / (shift * shift)};
  };
  double low = 0.3, high = 2;  // the norm falls from above 1 to below
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (std::hypot(third(middle)[0], third(middle)[1]) > 1 ? low : high) = middle;
  }
  x(2, 0) = third(low)[0];
  x(2, 1) = third(low)[1];
  EXPECT_LT(residual(w, x.view()), 1e-14);
  for (unsigned pattern = 0; pattern < 4; ++pattern) {
    const Matrix<double> known = equilibrium(3, 2, w, signs_of(pattern, 2));
    EXPECT_GT(std::fabs(known(2, 0) - x(2, 0)) + std::fabs(known(2, 1) - x(2, 1)), 0.01);
  }
}

TEST(Equilibria, TheJacobianAgreesWithFiniteDifferences) {
  constexpr double step = 1e-6;
  for (const auto& [n, d, w] : {std::tuple{2, 2, 2.0}, {3, 3, 3.0}, {4, 3, 1.5}, {3, 5, 10.0}}) {
    const Matrix<double> x = random_tokens(static_cast<std::size_t>(n), static_cast<std::size_t>(d), 11);
    const Matrix<double> jacobian = layer_jacobian(w, x.view());
    for (std::size_t column = 0; column < x.values().size(); ++column) {
      Matrix<double> up = x, down = x;
      up.data()[column] += step;
      down.data()[column] -= step;
      equilibrium_layer(w, up.view());
      equilibrium_layer(w, down.view());
      for (std::size_t row = 0; row < x.values().size(); ++row) {
        EXPECT_NEAR(jacobian(row, column), (up.values()[row] - down.values()[row]) / (2 * step), 1e-5)
            << n << d << " at " << row << ", " << column;
      }
    }
  }
  const Matrix<double> cancelling(2, 2, {0, 1, 0, -1});
  EXPECT_THROW(layer_jacobian(2, cancelling.view()), InputError);
}

// The whole derivative, restricted to the tangent space, has the spectrum that is put together token by
// token.
TEST(Equilibria, StabilityIsTheSpectrumOfTheJacobian) {
  for (const auto& [n, d, w] : {std::tuple{2, 2, 1.5}, {3, 3, 3.0}, {4, 2, 5.0}, {3, 4, 2.5}}) {
    const auto size = static_cast<std::size_t>(n), width = static_cast<std::size_t>(d);
    for (std::size_t rank = 1; rank <= std::min(size, width); ++rank) {
      for (unsigned pattern = 0; pattern < 1u << rank; ++pattern) {
        const Matrix<double> x = equilibrium(size, width, w, signs_of(pattern, rank));
        const Matrix<double> jacobian = layer_jacobian(w, x.view());
        const auto all = static_cast<Eigen::Index>(size * width);
        Eigen::MatrixXd full(all, all),
            basis = Eigen::MatrixXd::Zero(all, static_cast<Eigen::Index>(size * (width - 1)));
        for (Eigen::Index i = 0; i < all; ++i) {
          for (Eigen::Index j = 0; j < all; ++j)
            full(i, j) = jacobian(static_cast<std::size_t>(i), static_cast<std::size_t>(j));
        }
        for (std::size_t i = 0; i < size; ++i) {
          const Eigen::Map<const Eigen::VectorXd> row(x[i].data(), d);
          const Eigen::MatrixXd q =
              Eigen::HouseholderQR<Eigen::MatrixXd>(Eigen::MatrixXd(row)).householderQ();
          basis.block(static_cast<Eigen::Index>(i) * d, static_cast<Eigen::Index>(i) * (d - 1), d, d - 1) =
              q.rightCols(d - 1);
        }
        const Eigen::VectorXcd values =
            Eigen::EigenSolver<Eigen::MatrixXd>(basis.transpose() * full * basis).eigenvalues();
        const Stability linear = stability(w, x.view());
        std::size_t marginal = 0;
        double radius = 0;
        for (Eigen::Index i = 0; i < values.size(); ++i) {
          // Defective eigenvalues 1 are found to the third root of the rounding.
          if (std::abs(values(i) - 1.0) < 1e-3) {
            ++marginal;
          } else {
            radius = std::max(radius, std::abs(values(i)));
          }
        }
        EXPECT_EQ(linear.marginal, marginal) << n << d << w << " rank " << rank << " pattern " << pattern;
        EXPECT_NEAR(linear.radius, radius, 1e-5) << n << d << w << " rank " << rank << " pattern " << pattern;
      }
    }
  }
}

TEST(Equilibria, OfFullRankOnlyTheAlternatingOnesOfTwoAndThreeTokensAreStable) {
  const Executor executor(2);
  for (const double w : {1.05, 1.1, 1.5, 2.0, 3.0, 6.0, 10.0, 30.0}) {
    for (std::size_t n = 2; n <= 6; ++n) {
      const RankSummary rank = equilibria_by_rank(n, n, w, executor).back();
      ASSERT_EQ(rank.rank, n);
      EXPECT_EQ(rank.stable, n <= 3 ? 2u : 0u) << "N = " << n << ", w = " << w;
      if (n <= 3) {
        const std::vector<int> expected = n == 2 ? std::vector<int>{1, -1} : std::vector<int>{1, -1, 1};
        EXPECT_EQ(rank.least_signs, expected) << w;
        EXPECT_LT(rank.least_radius, 1);
      } else {
        EXPECT_GT(rank.least_radius, 1.2) << "N = " << n << ", w = " << w;
      }
    }
  }
  EXPECT_NEAR(equilibria_by_rank(2, 2, 2, executor).back().least_radius, 1 - std::sqrt(0.75), 1e-12);
  EXPECT_EQ(equilibria_by_rank(2, 2, 2, executor).back().marginal, 1u);
}

// A push of token 1 shows what its marginal direction does: from one side it comes back, from the other it
// goes round to the opposite equilibrium.
TEST(Equilibria, LinearlyStableOnesAreHalfStable) {
  const FixedPoint b = fixed_points(2)[1];
  for (const double push : {1e-3, -1e-3}) {
    const auto end = token_path(2, {push, std::sqrt(1 - push * push), b.x, b.y}, 20'000).steps.back();
    EXPECT_NEAR(end[1], push > 0 ? 1 : -1, 1e-3);
  }
  EXPECT_EQ(token_path(2, {1e-3, std::sqrt(1 - 1e-6), b.x, b.y}, 20'000).fate, Fate::apart);
}

TEST(Equilibria, CollapseIsAlwaysLinearlyStable) {
  for (std::size_t n = 2; n <= 5; ++n) {
    const RankSummary rank = equilibria_by_rank(n, 3, 2, Executor(1)).front();
    EXPECT_EQ(rank.stable, 2u);
    EXPECT_EQ(rank.marginal, 2u);
    EXPECT_NEAR(rank.least_radius, 0.5, 1e-15);
  }
}

TEST(Equilibria, WrongCallsAreSentences) {
  const Executor executor(1);
  EXPECT_THROW(fixed_points(1), InputError);
  EXPECT_THROW(fixed_points(NAN), InputError);
  EXPECT_THROW(fixed_points(1e7), InputError);
  EXPECT_THROW(fixed_points(2, 0), InputError);
  EXPECT_THROW(arc_basin(2, 0, executor), InputError);
  EXPECT_THROW(equilibria_by_rank(0, 2, 2, executor), InputError);
  EXPECT_THROW(equilibria_by_rank(2, 0, 2, executor), InputError);
  EXPECT_THROW(equilibria_by_rank(61, 2, 2, executor), InputError);
  EXPECT_THROW(equilibrium(2, 2, 2, std::vector<int>{}), InputError);
  EXPECT_THROW(equilibrium(2, 2, 2, std::vector<int>{1, 1, 1}), InputError);
  EXPECT_THROW(equilibrium(2, 2, 2, std::vector<int>{1, 0}), InputError);
  EXPECT_THROW(final_ranks({2, 2, 2, 0, 10, 0}, executor), InputError);
  EXPECT_THROW(final_ranks({2, 2, 2, 1, 1, 0}, executor), InputError);
}

EquilibriaRun small_run() {
  const Executor executor(1);
  EquilibriaRun run;
  run.starts = 50;
  run.layers = 50;
  run.cells = 7;
  EquilibriaRun::Weight weight;
  weight.w = 2;
  weight.arc = arc_basin(2, 36, executor);
  weight.coupled = weight.ranks = final_ranks({2, 2, 2, 50, 50, 0}, executor);
  weight.by_rank = equilibria_by_rank(2, 2, 2, executor);
  weight.map = coupled_map(2, 7, 50, executor);
  weight.paths = {token_path(2, {0, 1, 0, -1}, 20), token_path(2, {1, 0, 0.6, 0.8}, 20)};
  run.weights = {weight};
  return run;
}

TEST(PhasePortrait, DrawsPointsArcsAndZeroRows) {
  const EquilibriaRun run = small_run();
  const PhaseFigure figure = phase_figure(run, run.weights[0]);
  const std::string svg = phase_svg(figure);
  EXPECT_TRUE(balanced(svg));
  EXPECT_EQ(count(svg, "nan"), 0u);
  EXPECT_EQ(count(svg, "class=\"arc\""), 4u);
  // Two singular points, the row of the trajectory that became zero, and the legend.
  EXPECT_EQ(count(svg, "<circle class=\"hollow\""), 4u);
  for (const char* label : {">A<", ">B<", ">C<", ">S<"}) EXPECT_EQ(count(svg, label), 2u) << label;
  EXPECT_NE(svg.find("the row became zero"), std::string::npos);
  EXPECT_NE(zero_row_policy(run).find("Trajectory 0 at w = 2 met 1."), std::string::npos);
  const std::string csv = phase_csv(figure);
  EXPECT_EQ(count(csv, ",cell,"), 49u);
  EXPECT_EQ(count(trajectories_csv(run), "\n"), 1 + 2 * 21u);
  EXPECT_EQ(count(trajectories_csv(run), ",1\n"), 1u);
}

TEST(PhasePortrait, SurvivesStrangeInput) {
  PhaseFigure figure;
  EXPECT_TRUE(balanced(phase_svg(figure)));
  figure.panels.resize(1);
  figure.panels[0].title = "</text><script>";
  figure.panels[0].arcs = {{"a", NAN, 1, ""}, {"b", 0, 2 * kPi, "<"}};
  figure.panels[0].arrows = {{0, INFINITY}, {1, 0}, {1, -3}};
  figure.panels[0].marks = {{PhaseFigure::MarkKind::singular, 0, 0, "&", ""}};
  figure.panels[0].paths = {{"p", {1, NAN}, {0, 0}, ""}, {"q", {}, {}, ""}, {"r", {1}, {1, 2}, ""}};
  figure.panels[0].extent = INFINITY;
  figure.maps.resize(2);
  figure.maps[0].cells = 2;
  figure.maps[0].values = {0, 1, 9, 0};
  figure.maps[0].names = {"x", "meets a zero row"};
  figure.maps[1].cells = 5;  // with too few values
  const std::string svg = phase_svg(figure);
  EXPECT_TRUE(balanced(svg));
  EXPECT_EQ(count(svg, "<script>"), 0u);
  EXPECT_EQ(count(svg, "nan"), 0u);
  EXPECT_EQ(count(svg, "inf"), 0u);
}

Findings found_quickly(MakeExhibit* part) {
  const PaperPlan plan;
  const Executor executor(2);
  Evidence evidence{plan, executor};
  evidence.dynamics.starts = 2'000;
  evidence.dynamics.layers = 500;
  evidence.dynamics.angles = 360;
  evidence.dynamics.cells = 10;
  return judge(part(), evidence);
}

TEST(WuClaims, OfTheFiguresHoldAndOneOnlyBesideAConvergedToken) {
  const Findings first = found_quickly(wu_fig1), fifth = found_quickly(wu_fig5);
  ASSERT_EQ(first.claims.size(), 2u);
  for (const Judgement& claim : first.claims)
    EXPECT_EQ(claim.holds, Holds::yes) << claim.claim << ": " << claim.measured;
  ASSERT_EQ(fifth.claims.size(), 3u);
  EXPECT_EQ(fifth.claims[0].holds, Holds::yes) << fifth.claims[0].measured;
  // Every start once, whatever the number of w.
  EXPECT_NE(fifth.claims[0].measured.find("of 2000 starts"), std::string::npos) << fifth.claims[0].measured;
  EXPECT_NE(fifth.claims[0].measured.find("at each of 5 w"), std::string::npos) << fifth.claims[0].measured;
  EXPECT_EQ(fifth.claims[1].holds, Holds::yes) << fifth.claims[1].why;
  EXPECT_EQ(fifth.claims[2].holds, Holds::conditionally) << fifth.claims[2].measured;
  for (const Figure& figure : {first.figures.at(0), fifth.figures.at(0)}) {
    EXPECT_TRUE(balanced(figure.svg)) << figure.name;
    EXPECT_GT(count(figure.csv, "\n"), 50u) << figure.name;
  }
}

TEST(WuClaims, OfTheTheoremHoldButTheStableRankBoundForFullRankOnly) {
  const auto claims = found_quickly(wu_theorem3).claims;
  ASSERT_EQ(claims.size(), 3u);
  EXPECT_EQ(claims[0].holds, Holds::yes) << claims[0].measured;
  EXPECT_EQ(claims[1].holds, Holds::conditionally) << claims[1].measured;
  EXPECT_EQ(claims[2].condition, "only (+, −) for N = 2, (+, −, +) for N = 3, and their negatives");
}

}  // namespace
}  // namespace normscope

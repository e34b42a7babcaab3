// What pictures of keys show must agree with their verdicts.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <tuple>

#include "keys/picture.h"
#include "normscope/error.h"
#include "normscope/norm.h"
#include "support/key_sets.h"

namespace normscope {
namespace {

std::vector<Verdict> verdicts_of(const Matrix<double>& keys) {
  std::vector<Verdict> verdicts;
  for (const KeyVerdict& key : decide(keys).keys) verdicts.push_back(key.verdict);
  return verdicts;
}

TEST(KeyPicture, OnlyCornersOwnAnArcAndTheArcsFillTheCircle) {
  const Matrix<double> keys = matrix({{1, 1}, {-1, 1}, {-1, -1}, {1, -1}, {0, 0}, {1, 0}, {1, 1}});
  const auto arcs = winner_fan(keys.view(), verdicts_of(keys));
  ASSERT_EQ(arcs.size(), 4u);
  double turn = 0;
  for (const WinnerArc& arc : arcs) {
    EXPECT_NEAR(arc.to - arc.from, std::numbers::pi / 2, 1e-12);
    turn += arc.to - arc.from;
    for (const std::size_t key : arc.keys) EXPECT_TRUE(key < 4 || key == 6);
    if (arc.keys.front() == 0) {
      EXPECT_EQ(arc.keys, (std::vector<std::size_t>{0, 6}));
    }
  }
  EXPECT_NEAR(turn, 2 * std::numbers::pi, 1e-12);
}

TEST(KeyPicture, TheOwnerOfAnArcWinsInsideIt) {
  Random random(4, 1);
  for (int round = 0; round < 100; ++round) {
    const Matrix<double> keys = gaussian(random, 3 + random.below(10), 2);
    for (const WinnerArc& arc : winner_fan(keys.view(), verdicts_of(keys))) {
      const double middle = (arc.from + arc.to) / 2;
      const Matrix<double> direction = matrix({{std::cos(middle), std::sin(middle)}});
      EXPECT_EQ(winners(keys.view(), direction.view())[0], arc.keys.front());
    }
  }
}

TEST(KeyPicture, OneKeyWinsEverywhereAndEqualKeysShare) {
  const Matrix<double> one = matrix({{2, 3}}), equal = matrix({{2, 3}, {2, 3}});
  const auto arcs = winner_fan(one.view(), verdicts_of(one));
  ASSERT_EQ(arcs.size(), 1u);
  EXPECT_NEAR(arcs[0].to - arcs[0].from, 2 * std::numbers::pi, 1e-12);
  EXPECT_EQ(winners(equal.view(), one.view())[0], kShared);
  EXPECT_EQ(winner_fan(equal.view(), verdicts_of(equal)).size(), 1u);
}

TEST(KeyPicture, ACubeHasTwelveEdgesAndASquareInSpaceFour) {
  Matrix<double> cube(9, 3);
  for (std::size_t i = 0; i < 8; ++i)
    for (std::size_t c = 0; c < 3; ++c) cube(i, c) = (i >> c & 1) != 0 ? 1 : -1;
  const auto edges = hull_edges(cube.view());  // its last key is the centre
  EXPECT_EQ(edges.size(), 12u);
  for (const auto& [a, b] : edges) {
    double squared = 0;
    for (std::size_t c = 0; c < 3; ++c) squared += std::pow(cube(a, c) - cube(b, c), 2);
    EXPECT_DOUBLE_EQ(squared, 4);
  }
  EXPECT_EQ(hull_edges(matrix({{1, 1, 2}, {1, -1, 2}, {-1, -1, 2}, {-1, 1, 2}}).view()).size(), 4u);
}

TEST(KeyPicture, WeightsAreASoftmaxAtTheTemperature) {
  const Matrix<double> keys = matrix({{1, 0}, {0, 1}, {1000, 0}});
  const double query[] = {2, 1};
  const Attention found = attention_to(keys.view(), query, 500);
  EXPECT_EQ(found.scores, (std::vector<double>{2, 1, 2000}));
  const double sum = std::exp(2.0 / 500) + std::exp(1.0 / 500) + std::exp(4.0);
  EXPECT_NEAR(found.weights[2], std::exp(4.0) / sum, 1e-14);
  EXPECT_NEAR(found.weights[0] + found.weights[1] + found.weights[2], 1, 1e-14);
  EXPECT_EQ(attention_to(keys.view(), query, 1e-3).weights[2], 1);
  EXPECT_THROW(attention_to(keys.view(), query, 0), InputError);
}

TEST(KeyPicture, RanksCountTheKeysAboveAndShadowsLieOnTheLineOfTheQuery) {
  const Matrix<double> keys = matrix({{1, 0}, {0, 1}, {3, 4}, {1, 0}});
  const double query[] = {2, 0};
  const Attention found = attention_to(keys.view(), query, 1);
  EXPECT_EQ(found.ranks, (std::vector<std::size_t>{2, 4, 1, 2}));
  EXPECT_EQ(found.shadows.values(), (std::vector<double>{1, 0, 0, 0, 3, 0, 1, 0}));
  const double zero[] = {0, 0};
  EXPECT_EQ(attention_to(keys.view(), zero, 1).shadows.values(), std::vector<double>(8));
}

TEST(KeyPicture, NoRandomQueryPutsAHiddenKeyFirst) {
  Random random(8, 2);
  for (int round = 0; round < 20; ++round) {
    const Matrix<double> keys = gaussian(random, 4 + random.below(6), 3);
    const auto verdicts = verdicts_of(keys);
    for (std::size_t i = 0; i < keys.rows(); ++i) {
      const std::size_t rank = best_rank(keys.view(), i, 2000, 1);
      EXPECT_GE(rank, verdicts[i] == Verdict::unselectable ? 2u : 1u);
      if (rank == 1) {
        EXPECT_EQ(verdicts[i], Verdict::selectable);
      }
    }
  }
  EXPECT_THROW(best_rank(matrix({{1, 0}}).view(), 1, 1, 0), InputError);
}

TEST(KeyPicture, TheSphereShowsTheWinnerOfTheDirectionUnderEachPixel) {
  Random random(5, 3);
  const Matrix<double> keys = gaussian(random, 7, 3);
  constexpr std::size_t size = 24;
  const SphereView view{{0, 1, 0}, {0, 0, 1}, {1, 0, 0}};  // the first axis points at the reader
  const auto won = winners_on_sphere(keys.view(), view, size);
  ASSERT_EQ(won.size(), size * size);
  std::size_t inside = 0;
  for (std::size_t row = 0; row < size; ++row) {
    for (std::size_t column = 0; column < size; ++column) {
      const double y = (static_cast<double>(column) + 0.5) / 12 - 1,
                   z = 1 - (static_cast<double>(row) + 0.5) / 12;
      const double squared = 1 - y * y - z * z;
      const std::uint8_t winner = won[row * size + column];
      if (squared < 0) {
        EXPECT_EQ(winner, kNobody);
        continue;
      }
      ++inside;
      const Matrix<double> direction = matrix({{std::sqrt(squared), y, z}});
      EXPECT_EQ(winner, winners(keys.view(), direction.view())[0]);
    }
  }
  EXPECT_GT(inside, 400u);
  const Matrix<double> equal = matrix({{1, 2, 3}, {1, 2, 3}});
  EXPECT_EQ(winners_on_sphere(equal.view(), view, 1), std::vector<std::uint8_t>{kSeveral});
}

TEST(KeyPicture, KeysOnTheirWayEndWhereTheNormPutsThem) {
  Random random(6, 4);
  const Matrix<double> keys = gaussian(random, 9, 3);
  EXPECT_EQ(partly_normed(keys.view(), 0, 0).values(), keys.values());
  for (const auto& [name, projected, scaled] :
       {std::tuple{"center", 1.0, 0.0}, std::tuple{"rmsnorm", 0.0, 1.0}, std::tuple{"layernorm", 1.0, 1.0}}) {
    Matrix<double> end(9, 3);
    norm_forward<double>(parse_norm(name), {}, keys.view(), end.view());
    const Matrix<double> found = partly_normed(keys.view(), projected, scaled);
    for (std::size_t i = 0; i < found.values().size(); ++i)
      EXPECT_NEAR(found.values()[i], end.values()[i], 1e-14) << name;
  }
  // Half of the way: half of the mean is left.
  const Matrix<double> half = partly_normed(keys.view(), 0.5, 0);
  for (std::size_t i = 0; i < 9; ++i) {
    const auto mean = [&](const Matrix<double>& of) { return (of(i, 0) + of(i, 1) + of(i, 2)) / 3; };
    EXPECT_NEAR(mean(half), mean(keys) / 2, 1e-15);
  }
  EXPECT_THROW(partly_normed(keys.view(), 1.5, 0), InputError);
}

TEST(KeyPicture, KeysOfAPlaneAreShownWhole) {
  Matrix<double> keys(5, 4);  // along (1, 1, 0, 0) and (0, 0, 1, -1)
  for (std::size_t i = 0; i < 5; ++i) {
    keys(i, 0) = keys(i, 1) = static_cast<double>(i);
    keys(i, 2) = i % 2 == 0 ? 0.3 : -0.3;
    keys(i, 3) = -keys(i, 2);
  }
  const PrincipalPicture plane = principal_picture(keys.view(), 2);
  EXPECT_NEAR(plane.share, 1, 1e-12);
  for (std::size_t i = 1; i < 5; ++i) {
    double shown = 0, real = 0;
    for (std::size_t c = 0; c < 2; ++c)
      shown += std::pow(plane.coordinates(i, c) - plane.coordinates(0, c), 2);
    for (std::size_t c = 0; c < 4; ++c) real += std::pow(keys(i, c) - keys(0, c), 2);
    EXPECT_NEAR(shown, real, 1e-12);
  }
  EXPECT_LT(principal_picture(keys.view(), 1).share, 1);
}

}  // namespace
}  // namespace normscope

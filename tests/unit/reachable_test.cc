// Which keys a ball of queries can select: certificates are checked by plain code, verdicts by trying queries
// all around.
#include "normscope/reachable.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "normscope/error.h"
#include "normscope/random.h"
#include "normscope/tensor_file.h"
#include "support/key_sets.h"
#include "support/message.h"
#include "support/paths.h"

namespace normscope {
namespace {

double score(const Matrix<double>& keys, std::span<const double> offsets, std::span<const double> query,
             std::size_t i) {
  double sum = offsets.empty() ? 0 : offsets[i];
  for (std::size_t c = 0; c < keys.cols(); ++c) sum += query[c] * keys(i, c);
  return sum;
}

// By how much the key stands above the best other.
double lead(const Matrix<double>& keys, std::span<const double> offsets, std::span<const double> query,
            std::size_t i) {
  double best = -INFINITY;
  for (std::size_t j = 0; j < keys.rows(); ++j)
    if (j != i) best = std::max(best, score(keys, offsets, query, j));
  return score(keys, offsets, query, i) - best;
}

// R‖k_i − Σ λ k‖ + g·(k_i − Σ λ k) + b_i − Σ λ b
double dual_value(const Matrix<double>& keys, std::span<const double> offsets, const QueryBall& ball,
                  const std::vector<CoverTerm>& cover, std::size_t i) {
  std::vector<double> rest(keys[i].begin(), keys[i].end());
  double value = offsets.empty() ? 0 : offsets[i];
  for (const CoverTerm& term : cover) {
    for (std::size_t c = 0; c < rest.size(); ++c) rest[c] -= term.weight * keys(term.index, c);
    if (!offsets.empty()) value -= term.weight * offsets[term.index];
  }
  double squares = 0;
  for (std::size_t c = 0; c < rest.size(); ++c) {
    squares += rest[c] * rest[c];
    if (!ball.centre.empty()) value += ball.centre[c] * rest[c];
  }
  return value + ball.radius * std::sqrt(squares);
}

double distance_from_centre(const QueryBall& ball, std::span<const double> query) {
  double squares = 0;
  for (std::size_t c = 0; c < query.size(); ++c) {
    const double rest = query[c] - (ball.centre.empty() ? 0 : ball.centre[c]);
    squares += rest * rest;
  }
  return std::sqrt(squares);
}

void expect_certificates(const Matrix<double>& keys, std::span<const double> offsets, const QueryBall& ball,
                         const ReachableSet& set) {
  ASSERT_EQ(set.keys.size(), keys.rows());
  EXPECT_EQ(set.counts.selectable + set.counts.tied + set.counts.unselectable + set.undecided, keys.rows());
  for (std::size_t i = 0; i < keys.rows(); ++i) {
    SCOPED_TRACE(i);
    const ReachableVerdict& key = set.keys[i];
    EXPECT_LE(key.margin, key.margin_bound);
    if (!key.witness.empty()) {
      EXPECT_LE(distance_from_centre(ball, key.witness), ball.radius * (1 + 1e-12) + 1e-15);
      EXPECT_GE(lead(keys, offsets, key.witness, i), std::min(key.margin, 0.0) - 1e-12);
    }
    double total = 0;
    for (const CoverTerm& term : key.cover) {
      EXPECT_GE(term.weight, 0);
      EXPECT_NE(term.index, i);
      total += term.weight;
    }
    if (!key.cover.empty()) {
      EXPECT_NEAR(total, 1, 1e-12);
    }
    if (key.verdict == Verdict::selectable && keys.rows() > 1) {
      ASSERT_FALSE(key.witness.empty());
      EXPECT_GT(lead(keys, offsets, key.witness, i), 0);
    }
    if (key.verdict == Verdict::unselectable) {
      ASSERT_FALSE(key.cover.empty());
      EXPECT_LE(dual_value(keys, offsets, ball, key.cover, i), 1e-12);
    }
  }
}

ReachableSet decide_in(const Matrix<double>& keys, std::span<const double> offsets, const QueryBall& ball,
                       Margins margins = Margins::exact) {
  ReachableOptions options;
  options.margins = margins;
  return decide_reachable(keys.view(), offsets, ball, options, Executor(1));
}

TEST(Reachable, MarginsAreThoseOfQueriesTriedAllAround) {
  Random random(1);
  std::size_t lost = 0, kept = 0;
  for (int round = 0; round < 40; ++round) {
    const Matrix<double> keys = gaussian(random, 12, 2);
    const std::vector<double> offsets = gaussian_list(random, 12, 1);
    const QueryBall ball{gaussian_list(random, 2, round % 2), 0.3 + 0.1 * round};
    const ReachableSet set = decide_in(keys, offsets, ball);
    expect_certificates(keys, offsets, ball, set);
    EXPECT_EQ(set.undecided, 0u);
    for (std::size_t i = 0; i < keys.rows(); ++i) {
      double best = -INFINITY;
      for (int ring = 0; ring <= 60; ++ring)
        for (int turn = 0; turn < 360; ++turn) {
          const double r = ball.radius * ring / 60, angle = turn * std::numbers::pi / 180;
          const std::vector<double> query = {ball.centre[0] + r * std::cos(angle),
                                             ball.centre[1] + r * std::sin(angle)};
          best = std::max(best, lead(keys, offsets, query, i));
        }
      EXPECT_LE(best, set.keys[i].margin_bound + 1e-12);
      EXPECT_NEAR(best, set.keys[i].margin, 0.1 * ball.radius);
      EXPECT_NEAR(set.keys[i].margin, set.keys[i].margin_bound, 1e-11);
      ++(set.keys[i].verdict == Verdict::selectable ? kept : lost);
    }
  }
  EXPECT_GT(lost, 100u);
  EXPECT_GT(kept, 100u);
}

TEST(Reachable, ManyDimensionsComeWithCertificatesForEveryKeyAndMargins) {
  Random random(2);
  for (const std::size_t d : {1, 3, 8, 17}) {
    for (const std::size_t n : {2, 5, 9, 40, 150}) {
      for (const double radius : {0.05, 1.0, 20.0}) {
        const Matrix<double> keys = gaussian(random, n, d);
        const std::vector<double> offsets = gaussian_list(random, n, 2);
        const QueryBall ball{gaussian_list(random, d, 1), radius};
        for (const Margins margins : {Margins::exact, Margins::bound}) {
          const ReachableSet set = decide_in(keys, offsets, ball, margins);
          expect_certificates(keys, offsets, ball, set);
          EXPECT_EQ(set.undecided, 0u) << n << " × " << d << ", radius " << radius;
          if (margins == Margins::bound) continue;
          for (const ReachableVerdict& key : set.keys)
            EXPECT_NEAR(key.margin, key.margin_bound, 1e-9) << n << " × " << d << ", radius " << radius;
        }
      }
    }
  }
}

TEST(Reachable, WithoutOffsetsVerdictsAreThoseOfUnboundedQueriesWhereverZeroLiesInTheBall) {
  Random random(3);
  for (int round = 0; round < 20; ++round) {
    const Matrix<double> keys = gaussian(random, 60, 4);
    const KeySet unbounded = decide_keys(keys.view(), {}, {}, Executor(1));
    const QueryBall ball{{0.5, -0.5, 0.5, 0.4}, 1};
    const ReachableSet set = decide_in(keys, {}, ball);
    expect_certificates(keys, {}, ball, set);
    EXPECT_EQ(set.counts.unselectable, unbounded.counts.unselectable);
    const ReachableSet around_zero = decide_in(keys, {}, {{}, 3});
    for (std::size_t i = 0; i < keys.rows(); ++i) {
      EXPECT_EQ(set.keys[i].verdict, unbounded.keys[i].verdict);
      EXPECT_NEAR(around_zero.keys[i].margin, 3 * unbounded.keys[i].margin, 1e-11);
    }
  }
}

TEST(Reachable, ABallAwayFromZeroLosesKeysThatUnboundedQueriesSelect) {
  const Matrix<double> keys(4, 1, {-1, 0, 1, 0.5});
  const ReachableSet set = decide_in(keys, {}, {{2}, 1});
  EXPECT_EQ(set.keys[2].verdict, Verdict::selectable);
  EXPECT_EQ(set.keys[0].verdict, Verdict::unselectable);
  EXPECT_NEAR(set.keys[2].margin, 1.5, 1e-12);
  EXPECT_NEAR(set.keys[0].margin, -2, 1e-12);  // q = 1 is the kindest to −1
  EXPECT_EQ(decide_in(keys, {}, {{2}, 3}).keys[0].verdict, Verdict::selectable);
}

TEST(Reachable, EqualKeysTieAndCoverEachOther) {
  const Matrix<double> keys(4, 2, {1, 0, 1, 0, -1, 0.5, -1, -0.5});
  for (const QueryBall& ball : {QueryBall{{}, 2}, QueryBall{{3, 0}, 1}}) {
    const ReachableSet set = decide_in(keys, {}, ball);
    for (const std::size_t i : {0, 1}) {
      EXPECT_EQ(set.keys[i].verdict, Verdict::tied);
      EXPECT_EQ(set.keys[i].margin, 0);
      ASSERT_EQ(set.keys[i].cover.size(), 1u);
      EXPECT_EQ(set.keys[i].cover[0].index, 1 - i);
      EXPECT_GT(score(keys, {}, set.keys[i].witness, i), score(keys, {}, set.keys[i].witness, 2));
    }
  }
}

TEST(Reachable, EqualKeysWithDifferentOffsetsAreToldApart) {
  const Matrix<double> keys(3, 1, {1, 1, -1});
  const std::vector<double> offsets = {0.5, 0, 0};
  const ReachableSet set = decide_in(keys, offsets, {{}, 10});
  EXPECT_EQ(set.keys[0].verdict, Verdict::selectable);
  EXPECT_EQ(set.keys[1].verdict, Verdict::unselectable);
  EXPECT_NEAR(set.keys[0].margin, 0.5, 1e-12);
  EXPECT_NEAR(set.keys[1].margin, -0.5, 1e-12);
}

TEST(Reachable, OneKeyIsSelectableAndKeysThatAreAllEqualTie) {
  const Matrix<double> one(1, 3, {1, 2, 3}), equal(2, 1, {4, 4});
  const ReachableSet alone = decide_in(one, {}, {{1, 1, 1}, 2});
  EXPECT_EQ(alone.keys[0].verdict, Verdict::selectable);
  EXPECT_TRUE(std::isinf(alone.keys[0].margin));
  const ReachableSet both = decide_in(equal, {}, {{}, 2});
  EXPECT_EQ(both.counts.tied, 2u);
  EXPECT_EQ(both.keys[0].margin, 0);
}

TEST(Reachable, RadiusZeroComparesScoresUnderTheCentreExactly) {
  const Matrix<double> keys(4, 2, {1, 0, 0, 1, 0.5, 0.5, -1, -1});
  const ReachableSet tied = decide_in(keys, {}, {{1, 1}, 0});
  for (const std::size_t i : {0, 1, 2}) EXPECT_EQ(tied.keys[i].verdict, Verdict::tied);
  EXPECT_EQ(tied.keys[3].verdict, Verdict::unselectable);
  const std::vector<double> offsets = {0, 0x1p-60, 0, 0};
  const ReachableSet told_apart = decide_in(keys, offsets, {{1, 1}, 0});
  EXPECT_EQ(told_apart.keys[1].verdict, Verdict::selectable);
  EXPECT_EQ(told_apart.keys[0].verdict, Verdict::unselectable);
}

TEST(Reachable, AMarginThatRoundingHidesIsCalledUndecided) {
  // Offsets that lie on a line but for rounding, and the ball ends where 0 would be the best query.
  const Matrix<double> keys(3, 1, {-1, 0.1, 1});
  const std::vector<double> offsets = {-1, 0.1, 1};
  const ReachableSet set = decide_in(keys, offsets, {{}, 2});
  EXPECT_FALSE(set.keys[1].verdict.has_value());
  EXPECT_EQ(set.undecided, 1u);
  EXPECT_LE(set.keys[1].margin, 0);
  EXPECT_GE(set.keys[1].margin_bound, 0);
  EXPECT_EQ(set.counts.selectable, 2u);
}

TEST(Reachable, LargestWeightsAreNotExceededByQueriesOfTheBall) {
  Random random(5);
  const Matrix<double> keys = gaussian(random, 50, 6);
  const std::vector<double> offsets = gaussian_list(random, 50, 1);
  const QueryBall ball{gaussian_list(random, 6, 0.5), 2};
  ReachableOptions options;
  options.weight_gap = 1e-6;
  const ReachableSet set = decide_reachable(keys.view(), offsets, ball, options, Executor(1));
  const auto weight = [&](std::span<const double> query, std::size_t i) {
    double sum = 0;
    for (std::size_t j = 0; j < keys.rows(); ++j)
      sum += std::exp(score(keys, offsets, query, j) - score(keys, offsets, query, i));
    return 1 / sum;
  };
  for (std::size_t i = 0; i < keys.rows(); ++i) {
    ASSERT_TRUE(set.keys[i].max_weight && set.keys[i].max_weight_bound);
    EXPECT_LE(*set.keys[i].max_weight, *set.keys[i].max_weight_bound);
    EXPECT_NEAR(std::log(*set.keys[i].max_weight_bound / *set.keys[i].max_weight), 0, 2e-6);
    EXPECT_GE(*set.keys[i].max_weight * (1 + 1e-9), weight(ball.centre, i));
    EXPECT_GE(*set.keys[i].max_weight_bound, weight(set.keys[i].witness, i));
    for (int attempt = 0; attempt < 200; ++attempt) {
      std::vector<double> query = gaussian_list(random, 6, 1);
      double squares = 0;
      for (const double q : query) squares += q * q;
      for (std::size_t c = 0; c < 6; ++c)
        query[c] = ball.centre[c] + query[c] * ball.radius / std::sqrt(squares);
      EXPECT_LE(weight(query, i), *set.keys[i].max_weight_bound);
    }
  }
}

TEST(Reachable, ThreadsAndPiecesDoNotChangeTheAnswer) {
  Random random(6);
  const Matrix<double> keys = gaussian(random, 200, 5);
  const std::vector<double> offsets = gaussian_list(random, 200, 1);
  ReachableOptions options;
  options.weight_gap = 1e-3;
  const ReachableSet one = decide_reachable(keys.view(), offsets, {{}, 2}, options, Executor(1));
  const ReachableSet three = decide_reachable(keys.view(), offsets, {{}, 2}, options, Executor(3));
  for (std::size_t i = 0; i < keys.rows(); ++i) {
    EXPECT_EQ(one.keys[i].verdict, three.keys[i].verdict);
    EXPECT_EQ(one.keys[i].margin, three.keys[i].margin);
    EXPECT_EQ(one.keys[i].witness, three.keys[i].witness);
    EXPECT_EQ(one.keys[i].max_weight, three.keys[i].max_weight);
  }
}

TEST(Reachable, AnswersForSomeKeysAreThoseForAll) {
  Random random(41);
  for (int draw = 0; draw < 30; ++draw) {
    const std::size_t n = 2 + random.below(40), d = 1 + random.below(4);
    Matrix<double> keys = gaussian(random, n, d);
    if (draw % 3 == 0) std::ranges::copy(keys[0], keys[n - 1].begin());
    const QueryBall ball{draw % 2 == 0 ? gaussian_list(random, d, 1.5) : std::vector<double>(), 1.0};
    const std::vector<double> offsets = draw % 4 < 2 ? gaussian_list(random, n, 0.3) : std::vector<double>();
    ReachableOptions options;
    options.weight_gap = 0.01;
    const ReachableSet all = decide_reachable(keys.view(), offsets, ball, options, Executor(1));
    const std::vector<std::size_t> only = {n - 1, n / 2};
    options.only = only;
    const ReachableSet some = decide_reachable(keys.view(), offsets, ball, options, Executor(1));
    for (const std::size_t i : only) {
      EXPECT_EQ(some.keys[i].verdict, all.keys[i].verdict);
      EXPECT_EQ(some.keys[i].margin, all.keys[i].margin);
      EXPECT_EQ(some.keys[i].max_weight, all.keys[i].max_weight);
    }
    std::size_t answered = 0;
    for (const ReachableVerdict& key : some.keys) answered += key.max_weight.has_value();
    EXPECT_LE(answered, 3u);  // those asked about, and their equals
  }
  const std::vector<std::size_t> wrong = {5};
  ReachableOptions options;
  options.only = wrong;
  EXPECT_THROW(decide_reachable(gaussian(random, 5, 2).view(), {}, {{}, 1}, options, Executor(1)),
               InputError);
}

TEST(Reachable, KeysOfLowerRankAreDecidedInTheirHull) {
  Random random(7);
  const Matrix<double> flat = gaussian(random, 40, 3);
  Matrix<double> keys(40, 6);
  for (std::size_t i = 0; i < 40; ++i)
    for (std::size_t c = 0; c < 6; ++c) keys(i, c) = c < 3 ? flat(i, c) : 2.0;
  const std::vector<double> offsets = gaussian_list(random, 40, 1);
  const QueryBall ball{{1, 0, -1, 5, 5, 5}, 1.5};
  const ReachableSet set = decide_in(keys, offsets, ball),
                     inside = decide_in(flat, offsets, {{1, 0, -1}, 1.5});
  EXPECT_EQ(set.rank, 3u);
  expect_certificates(keys, offsets, ball, set);
  for (std::size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(set.keys[i].verdict, inside.keys[i].verdict);
    EXPECT_NEAR(set.keys[i].margin, inside.keys[i].margin, 1e-10);
  }
}

TEST(Reachable, LargestWeightsBelowFullRankHoldForTheKeysAsGiven) {
  // Float16, nearly zero-sum: what rounding left along 1 moves scores by a tenth at this norm.
  const Tensor tensor = TensorFile::open(source_path() + "/tests/golden/keys/weight_bound_f16.npy").read();
  const Matrix<double> keys(tensor.shape[0], tensor.shape[1], tensor.values);
  ReachableOptions options;
  options.unit_roundoff = 0x1p-11;
  options.weight_gap = 1e-6;
  const ReachableSet set = decide_reachable(keys.view(), {}, {{}, 100}, options, Executor(1));
  ASSERT_EQ(set.rank, 3u);
  for (const double along : {50.0, -50.0}) {  // of norm 100
    const std::vector<double> query(4, along);
    double sum = 0;
    for (std::size_t j = 0; j < keys.rows(); ++j) sum += std::exp(score(keys, {}, query, j));
    for (std::size_t i = 0; i < keys.rows(); ++i) {
      EXPECT_LE(std::exp(score(keys, {}, query, i)) / sum, *set.keys[i].max_weight_bound) << i;
      EXPECT_LE(*set.keys[i].max_weight, *set.keys[i].max_weight_bound) << i;
    }
  }
}

TEST(Reachable, AnEllipsoidOfQueriesIsABallForTheMappedKeys) {
  Random random(8);
  for (const bool full : {true, false}) {
    Matrix<double> map = gaussian(random, 4, 9);
    if (!full)
      for (std::size_t c = 0; c < 9; ++c) map(3, c) = map(0, c) - map(1, c);
    const std::vector<double> shift = gaussian_list(random, 4, 1);
    const Matrix<double> keys = gaussian(random, 7, 4);
    const QueryEllipsoid ellipsoid(map.view(), shift, 3);
    EXPECT_EQ(ellipsoid.rank(), full ? 4u : 3u);
    EXPECT_EQ(ellipsoid.ball().radius, 3);
    const Matrix<double> mapped = ellipsoid.keys(keys.view());
    const std::vector<double> offsets = ellipsoid.offsets(keys.view());
    EXPECT_EQ(offsets.empty(), full);
    // A z + c for z on the sphere, and the same query of the ball: Qᵀz + g, which query() takes back.
    const ReachableSet set = decide_in(mapped, offsets, ellipsoid.ball());
    for (std::size_t i = 0; i < keys.rows(); ++i) {
      const std::vector<double> query = ellipsoid.query(set.keys[i].witness);
      EXPECT_NEAR(lead(keys, {}, query, i), lead(mapped, offsets, set.keys[i].witness, i), 1e-10);
      // No token does better than the best query of the ball.
      for (int attempt = 0; attempt < 300; ++attempt) {
        std::vector<double> z = gaussian_list(random, 9, 1), formed = shift;
        double squares = 0;
        for (const double value : z) squares += value * value;
        for (std::size_t r = 0; r < 4; ++r)
          for (std::size_t c = 0; c < 9; ++c) formed[r] += map(r, c) * z[c] * 3 / std::sqrt(squares);
        EXPECT_LE(lead(keys, {}, formed, i), set.keys[i].margin_bound + 1e-9);
      }
    }
  }
}

TEST(Reachable, WrongInputIsASentence) {
  const Matrix<double> keys(2, 2, {1, 2, 3, 4});
  const auto refused = [&](std::vector<double> centre, double radius, std::vector<double> offsets) {
    return message_of([&] { decide_in(keys, offsets, {std::move(centre), radius}); });
  };
  EXPECT_NE(refused({1}, 1, {}).find("has 1 coordinates, the keys have 2"), std::string::npos);
  EXPECT_NE(refused({}, -1, {}).find("radius of the queries is -1"), std::string::npos);
  EXPECT_NE(refused({}, NAN, {}).find("radius"), std::string::npos);
  EXPECT_NE(refused({1, INFINITY}, 1, {}).find("coordinate 1"), std::string::npos);
  EXPECT_NE(refused({}, 1, {1}).find("1 score offsets were given for 2 keys"), std::string::npos);
}

TEST(QueryEllipsoid, OfAZeroMapIsOneQueryThatDecides) {
  const Matrix<double> map(2, 5);
  const std::vector<double> shift = {1, -2};
  const Matrix<double> keys(3, 2, {1, 0, 0, -1, 3, 1});  // scores 1, 2, 1
  const QueryEllipsoid queries(map.view(), shift, 2);
  const ReachableSet set = decide_reachable(queries.keys(keys.view()).view(), queries.offsets(keys.view()),
                                            queries.ball(), {}, Executor(1));
  EXPECT_EQ(set.keys[0].verdict, Verdict::unselectable);
  EXPECT_EQ(set.keys[1].verdict, Verdict::selectable);
  EXPECT_EQ(set.keys[2].verdict, Verdict::unselectable);
  EXPECT_EQ(queries.query(set.keys[1].witness), shift);
  // Without a shift the query is 0, and all keys score alike.
  const QueryEllipsoid none(map.view(), {}, 2);
  const ReachableSet tied = decide_reachable(none.keys(keys.view()).view(), none.offsets(keys.view()),
                                             none.ball(), {}, Executor(1));
  EXPECT_EQ(tied.counts.tied, 3u);
}

}  // namespace
}  // namespace normscope

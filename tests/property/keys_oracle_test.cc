// The engine's verdicts and certificates against the exact oracle, and the oracle against sets known by hand
// and against plain enumeration of queries.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "normscope/keys.h"
#include "oracle/certificate.h"
#include "oracle/compare.h"
#include "oracle/families.h"
#include "oracle/oracle.h"

namespace normscope::oracle {
namespace {

using enum Verdict;

Matrix<double> rows(std::initializer_list<std::vector<double>> list) {
  Matrix<double> keys(list.size(), list.begin()->size());
  std::size_t j = 0;
  for (const auto& row : list) std::ranges::copy(row, keys[j++].begin());
  return keys;
}

std::vector<Verdict> verdicts(const Matrix<double>& keys, const std::vector<double>& offsets = {}) {
  const ExactKeys exact(keys.view(), offsets);
  std::vector<Verdict> result;
  for (std::size_t i = 0; i < keys.rows(); ++i) result.push_back(oracle_verdict(exact, i));
  return result;
}

using Verdicts = std::vector<Verdict>;

TEST(KeyOracle, SquareWithCentreAndEdgeMidpoints) {
  EXPECT_EQ(verdicts(rows({{0, 0}, {2, 0}, {0, 2}, {2, 2}, {1, 1}, {1, 0}, {0, 1}})),
            (Verdicts{selectable, selectable, selectable, selectable, unselectable, tied, tied}));
}

TEST(KeyOracle, OneKeyAloneIsSelectable) {
  EXPECT_EQ(verdicts(rows({{3, 4}})), Verdicts{selectable});
  EXPECT_EQ(verdicts(rows({{0}}), {-7}), Verdicts{selectable});
}

TEST(KeyOracle, EqualKeysAreTied) {
  EXPECT_EQ(verdicts(rows({{3, 4}, {3, 4}, {3, 4}})), (Verdicts{tied, tied, tied}));
  EXPECT_EQ(verdicts(rows({{0.0}, {-0.0}}), {2, 2}), (Verdicts{tied, tied}));
}

TEST(KeyOracle, EqualKeysAtAVertexAreTiedAndInTheInteriorUnselectable) {
  EXPECT_EQ(verdicts(rows({{0}, {4}, {4}, {2}, {2}})),
            (Verdicts{selectable, tied, tied, unselectable, unselectable}));
}

TEST(KeyOracle, FlatSetsAreDecidedInTheirAffineHull) {
  EXPECT_EQ(verdicts(rows({{3, 0, 0}, {0, 3, 0}, {0, 0, 3}, {1, 1, 1}})),
            (Verdicts{selectable, selectable, selectable, unselectable}));
  EXPECT_EQ(verdicts(rows({{0, 0}, {1, 1}, {2, 2}})), (Verdicts{selectable, unselectable, selectable}));
}

TEST(KeyOracle, OneUlpDecides) {
  const double above = std::nextafter(0.0, 1.0);
  EXPECT_EQ(verdicts(rows({{0, 0}, {2, 0}, {1, -1}, {1, 0}}))[3], tied);
  EXPECT_EQ(verdicts(rows({{0, 0}, {2, 0}, {1, -1}, {1, above}}))[3], selectable);
  EXPECT_EQ(verdicts(rows({{0, 0}, {2, 0}, {1, -1}, {1, -above}}))[3], unselectable);
}

TEST(KeyOracle, OffsetLiftsAnInteriorKey) {
  const Matrix<double> line = rows({{0}, {1}, {2}});
  EXPECT_EQ(verdicts(line, {0, 1, 0}), (Verdicts{selectable, selectable, selectable}));
  EXPECT_EQ(verdicts(line, {0, -1, 0}), (Verdicts{selectable, unselectable, selectable}));
}

TEST(KeyOracle, OffsetsAffineInTheKeysChangeNothing) {
  const Matrix<double> line = rows({{0}, {1}, {2}});
  // The only query that puts the middle key on top scores all three alike, which does not count.
  EXPECT_EQ(verdicts(line, {5, 8, 11}), (Verdicts{selectable, unselectable, selectable}));
}

TEST(KeyOracle, TieOnTheUpperHullCountsWhenAKeyLiesBelow) {
  EXPECT_EQ(verdicts(rows({{-1}, {0}, {1}, {0}}), {0, 0, 0, -1}),
            (Verdicts{selectable, tied, selectable, unselectable}));
}

TEST(KeyOracle, EqualKeysWithALowerOffsetAreUnselectable) {
  EXPECT_EQ(verdicts(rows({{1}, {1}}), {0, -1}), (Verdicts{selectable, unselectable}));
  EXPECT_EQ(verdicts(rows({{1}, {1}, {1}}), {0, 0, -1}), (Verdicts{tied, tied, unselectable}));
}

TEST(KeyOracle, AVertexIsSelectableWhateverItsOffset) {
  EXPECT_EQ(verdicts(rows({{0}, {1}, {5}}), {0, 0, -1e6})[2], selectable);
}

// The definition itself over an exhaustive list of queries with scores[q][j].
Verdict verdict_by_enumeration(const std::vector<std::vector<long>>& scores, std::size_t i) {
  const std::size_t n = scores.front().size();
  bool on_top = false, any_distinguishes = false;
  for (const auto& score : scores) {
    const bool alike = std::ranges::all_of(score, [&](long s) { return s == score[i]; });
    any_distinguishes = any_distinguishes || !alike;
    if (static_cast<std::size_t>(std::ranges::count_if(score, [&](long s) { return s < score[i]; })) ==
        n - 1) {
      return selectable;
    }
    if (!alike && std::ranges::all_of(score, [&](long s) { return s <= score[i]; })) on_top = true;
  }
  return on_top || !any_distinguishes ? tied : unselectable;
}

TEST(KeyOracle, AgreesWithEnumerationInThePlane) {
  // Keys in {−2, …, 2}²: every facet normal has entries up to 4, every open cone between two normals contains
  // their sum, so the queries with entries up to 8 meet every cell.
  Random random(11);
  for (int draw = 0; draw < 400; ++draw) {
    const std::size_t n = 1 + random.below(9);
    Matrix<double> keys(n, 2);
    for (std::size_t j = 0; j < n; ++j) {
      for (double& x : keys[j]) x = static_cast<double>(random.below(5)) - 2;
    }
    std::vector<std::vector<long>> scores;
    for (long x = -8; x <= 8; ++x) {
      for (long y = -8; y <= 8; ++y) {
        scores.emplace_back();
        for (std::size_t j = 0; j < n; ++j) {
          scores.back().push_back(x * static_cast<long>(keys(j, 0)) + y * static_cast<long>(keys(j, 1)));
        }
      }
    }
    const Verdicts decided = verdicts(keys);
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(decided[i], verdict_by_enumeration(scores, i)) << draw;
  }
}

TEST(KeyOracle, AgreesWithEnumerationOnALineWithOffsets) {
  // Keys in {−2, …, 2}, offsets in {−3, …, 3}: two scores cross at multiples of 1/12 up to 6, so multiples of
  // 1/24 meet every crossing and every gap between two.
  Random random(12);
  for (int draw = 0; draw < 400; ++draw) {
    const std::size_t n = 1 + random.below(7);
    Matrix<double> keys(n, 1);
    std::vector<double> offsets(n);
    for (std::size_t j = 0; j < n; ++j) {
      keys(j, 0) = static_cast<double>(random.below(5)) - 2;
      offsets[j] = static_cast<double>(random.below(7)) - 3;
    }
    std::vector<std::vector<long>> scores;
    for (long q = -7 * 24; q <= 7 * 24; ++q) {
      scores.emplace_back();
      for (std::size_t j = 0; j < n; ++j) {
        scores.back().push_back(q * static_cast<long>(keys(j, 0)) + 24 * static_cast<long>(offsets[j]));
      }
    }
    const Verdicts decided = verdicts(keys, offsets);
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(decided[i], verdict_by_enumeration(scores, i)) << draw;
  }
}

TEST(KeyOracle, OffsetsAreOneMoreDimensionInWhichOnlyUpIsASelectingDirection) {
  // With a copy of each point (k_j, b_j) below it, only queries with a positive last coordinate can select
  // a point: selectable with offsets is selectable among these, one dimension up, without.
  for (std::uint64_t index = 0; index < 600; ++index) {
    const Draw draw = make_draw(13, index);
    const std::size_t n = draw.keys.rows(), d = draw.keys.cols();
    if (draw.offsets.empty() || n > 16) continue;
    Matrix<double> lifted(2 * n, d + 1);
    for (std::size_t j = 0; j < 2 * n; ++j) {
      std::ranges::copy(draw.keys[j % n], lifted[j].begin());
      lifted(j, d) = j < n ? draw.offsets[j] : 2 * std::min(draw.offsets[j - n], -1.0);
    }
    const Verdicts decided = verdicts(draw.keys, draw.offsets), reference = verdicts(lifted);
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_EQ(decided[i] == selectable, reference[i] == selectable) << "draw " << index << ", key " << i;
    }
  }
}

TEST(KeyOracle, ZeroOffsetsChangeNothing) {
  for (std::uint64_t index = 0; index < 600; ++index) {
    const Draw draw = make_draw(14, index);
    if (draw.keys.rows() > 16) continue;
    ASSERT_EQ(verdicts(draw.keys), verdicts(draw.keys, std::vector<double>(draw.keys.rows(), 0.0))) << index;
  }
}

TEST(KeyOracle, FamiliesProduceEveryVerdict) {
  std::set<Verdict> with_offsets, without;
  for (std::uint64_t index = 0; index < 600; ++index) {
    const Draw draw = make_draw(15, index);
    if (draw.keys.rows() > 16) continue;
    for (Verdict verdict : verdicts(draw.keys, draw.offsets)) {
      (draw.offsets.empty() ? without : with_offsets).insert(verdict);
    }
  }
  EXPECT_EQ(without.size(), 3U);
  EXPECT_EQ(with_offsets.size(), 3U);
}

KeyVerdict make(Verdict verdict, std::vector<double> witness, std::vector<CoverTerm> cover,
                std::vector<std::size_t> tied_with = {}, std::vector<CoverTerm> interior = {}) {
  KeyVerdict result;
  result.verdict = verdict;
  result.witness = std::move(witness);
  result.cover = std::move(cover);
  result.tied_with = std::move(tied_with);
  result.interior = std::move(interior);
  return result;
}

class KeyCertificate : public testing::Test {
 protected:
  // 0–3 corners, 4 centre, 5 midpoint of 0 and 1.
  Matrix<double> square = rows({{0, 0}, {2, 0}, {0, 2}, {2, 2}, {1, 1}, {1, 0}});

  std::string check(std::size_t i, const KeyVerdict& verdict, const std::vector<double>& offsets = {}) {
    return check_certificate(square.view(), offsets, i, verdict);
  }
};

TEST_F(KeyCertificate, WitnessMustBeatEveryOtherKeyStrictly) {
  EXPECT_EQ(check(3, make(selectable, {1, 1}, {})), "");
  EXPECT_NE(check(3, make(selectable, {1, 0}, {})), "");
  EXPECT_NE(check(3, make(selectable, {-1, -1}, {})), "");
  EXPECT_NE(check(3, make(selectable, {1}, {})), "");
  EXPECT_NE(check(3, make(selectable, {1, std::nan("")}, {})), "");
}

TEST_F(KeyCertificate, TiedKeyNeedsAWitnessItsCompanionsAndACover) {
  const std::vector<CoverTerm> cover = {{0, 0.5}, {1, 0.5}};
  EXPECT_EQ(check(5, make(tied, {0, -1}, cover, {0, 1})), "");
  EXPECT_NE(check(5, make(tied, {0, -1}, cover, {0})), "");
  EXPECT_NE(check(5, make(tied, {0, -1}, cover, {0, 1, 2})), "");
  EXPECT_NE(check(5, make(tied, {0, -1}, cover, {})), "");
  EXPECT_NE(check(5, make(tied, {0, 0}, cover, {0, 1, 2, 3, 4})), "");
  EXPECT_NE(check(5, make(tied, {0, 1}, cover, {0, 1})), "");
  EXPECT_NE(check(5, make(tied, {0, -1}, {}, {0, 1})), "");
}

TEST_F(KeyCertificate, CoverMustReproduceTheKey) {
  const std::vector<double> witness = {0, -1};
  EXPECT_NE(check(5, make(tied, witness, {{0, 0.4}, {1, 0.6}}, {0, 1})), "");
  EXPECT_NE(check(5, make(tied, witness, {{0, 0.5}, {1, 0.6}}, {0, 1})), "");
  EXPECT_NE(check(5, make(tied, witness, {{5, 1}}, {0, 1})), "");
  EXPECT_NE(check(5, make(tied, witness, {{0, 0.5}, {0, 0.5}}, {0, 1})), "");
  EXPECT_NE(check(5, make(tied, witness, {{0, 0.5}, {2, 0.5}}, {0, 1})), "");
  EXPECT_NE(check(5, make(tied, witness, {{0, 1.5}, {1, -0.5}}, {0, 1})), "");
  EXPECT_NE(check(5, make(tied, witness, {{0, 0.5}, {9, 0.5}}, {0, 1})), "");
}

TEST_F(KeyCertificate, CoverThatSpansLessThanTheHullNeedsAnInterior) {
  const std::vector<CoverTerm> diagonal = {{0, 0.5}, {3, 0.5}};
  EXPECT_NE(check(4, make(unselectable, {}, diagonal)), "");
  const std::vector<CoverTerm> corners = {{0, 0.25}, {1, 0.25}, {2, 0.25}, {3, 0.25}};
  EXPECT_EQ(check(4, make(unselectable, {}, diagonal, {}, corners)), "");
  EXPECT_NE(check(4, make(unselectable, {}, diagonal, {}, diagonal)), "");
  EXPECT_NE(check(4, make(unselectable, {}, diagonal, {}, {{0, 0.4}, {1, 0.1}, {2, 0.1}, {3, 0.4001}})), "");
  EXPECT_EQ(check(4, make(unselectable, {}, {{2, 0.25}, {3, 0.25}, {5, 0.5}})), "");
  // Key 1 has the exact weight 0: the triangle 0, 1, 3 holds the centre only on its boundary.
  EXPECT_NE(check(4, make(unselectable, {}, {{0, 0.5}, {1, 1e-12}, {3, 0.5}})), "");
  // The midpoint is tied; no certificate may prove otherwise.
  EXPECT_NE(check(5, make(unselectable, {}, {{0, 0.5}, {1, 0.5}})), "");
}

TEST_F(KeyCertificate, CoverMustReachTheOffset) {
  const std::vector<CoverTerm> diagonal = {{0, 0.5}, {3, 0.5}};
  EXPECT_EQ(check(4, make(unselectable, {}, diagonal), {0, 0, 0, 0, -1, 0}), "");
  EXPECT_NE(check(4, make(unselectable, {}, diagonal), {0, 0, 0, 0, 1, 0}), "");
  EXPECT_NE(check(4, make(unselectable, {}, diagonal), {1, 0, 0, 1, 1, 0}), "");  // on the upper hull: tied
  EXPECT_EQ(check(4, make(tied, {0, 0}, diagonal, {0, 3}), {1, 0, 0, 1, 1, 0}), "");
}

class EngineAgainstOracle : public testing::TestWithParam<const char*> {};

TEST_P(EngineAgainstOracle, EveryVerdictAgreesAndEveryCertificateHolds) {
  constexpr std::uint64_t seed = 2024, rounds = 40;
  const auto families = key_families();
  Tally total;
  std::string first_failure;
  for (std::uint64_t index = 0; index < rounds * families.size(); ++index) {
    if (std::strcmp(families[index % families.size()].group, GetParam()) != 0) continue;
    const Comparison comparison = compare_draw(seed, index);
    total += comparison.tally;
    if (first_failure.empty() && !comparison.failures.empty()) first_failure = comparison.failures.front();
  }
  EXPECT_GT(total.keys, 500U);
  EXPECT_EQ(total.wrong, 0U) << first_failure;
  EXPECT_EQ(total.invalid, 0U) << first_failure;
}

INSTANTIATE_TEST_SUITE_P(Families, EngineAgainstOracle,
                         testing::Values("random", "norms", "polytopes", "degenerate", "scales"),
                         [](const auto& group) { return std::string(group.param); });

}  // namespace
}  // namespace normscope::oracle

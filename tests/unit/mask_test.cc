// Masks against plain references: every family by its definition on pairs of tokens, properties by Floyd and
// Warshall.
#include "normscope/mask.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <string>

#include "normscope/error.h"
#include "normscope/random.h"

namespace normscope {
namespace {

using Dense = Matrix<std::uint8_t>;
using Rule = std::function<bool(std::size_t i, std::size_t j)>;

Dense dense(const Mask& mask) {
  Dense result(mask.n(), mask.n());
  for (std::size_t i = 0; i < mask.n(); ++i) {
    for (std::size_t j = 0; j < mask.n(); ++j) result(i, j) = mask.attends(i, j) ? 1 : 0;
  }
  return result;
}

Dense dense(std::size_t n, const Rule& rule) {
  Dense result(n, n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) result(i, j) = rule(i, j) ? 1 : 0;
  }
  return result;
}

std::size_t gap(std::size_t i, std::size_t j) {
  return i > j ? i - j : j - i;
}

void expect_normal(const Mask& mask, const std::string& name) {
  for (std::size_t i = 0; i < mask.n(); ++i) {
    const auto runs = mask.row(i);
    for (std::size_t k = 0; k < runs.size(); ++k) {
      EXPECT_LT(runs[k].first, runs[k].last) << name;
      EXPECT_LE(runs[k].last, mask.n()) << name;
      if (k == 0) continue;
      EXPECT_GT(runs[k].first, runs[k - 1].last) << name;
    }
  }
}

void expect_rule(const std::string& name, std::size_t n, const Rule& rule) {
  const Mask mask = parse_mask(name, n);
  EXPECT_EQ(dense(mask).values(), dense(n, rule).values()) << name << ", n = " << n;
  EXPECT_EQ(mask, Mask::from_dense(dense(n, rule).view())) << name << ", n = " << n;
  expect_normal(mask, name);
}

TEST(Mask, EveryFamilyIsItsDefinition) {
  const auto causal = [](std::size_t i, std::size_t j) { return j <= i; };
  for (const std::size_t n : {1, 2, 3, 7, 16, 33}) {
    expect_rule("full", n, [](auto, auto) { return true; });
    expect_rule("causal", n, causal);
    expect_rule("self", n, [](auto i, auto j) { return i == j; });
    expect_rule("star", n, [](auto i, auto j) { return i == j || i == 0 || j == 0; });
    for (const std::size_t w : {0, 1, 2, 5, 40}) {
      const std::string number = std::to_string(w);
      expect_rule("window:" + number, n, [w](auto i, auto j) { return gap(i, j) <= w; });
      expect_rule("onesided:" + number, n, [w](auto i, auto j) { return j <= i && i - j <= w; });
      for (const std::size_t s : {1, 2, 3, 50}) {
        expect_rule("dilated:" + number + "," + std::to_string(s), n,
                    [w, s](auto i, auto j) { return gap(i, j) % s == 0 && gap(i, j) / s <= w; });
      }
    }
    for (const std::size_t s : {1, 2, 3, 8, 100}) {
      const std::string number = std::to_string(s);
      expect_rule("strided:" + number, n,
                  [s](auto i, auto j) { return j <= i && (i - j < s || (i - j) % s == 0); });
      expect_rule("block:" + number, n, [s](auto i, auto j) { return i / s == j / s; });
    }
    for (std::size_t k = 0; k <= std::min<std::size_t>(n, 4); ++k) {
      expect_rule("prefix:" + std::to_string(k), n, [k](auto i, auto j) { return j <= i || j < k; });
      if (k == 0) continue;
      expect_rule("global:" + std::to_string(k), n, [k](auto i, auto j) { return i == j || i < k || j < k; });
    }
    expect_rule("random:0", n, [](auto i, auto j) { return i == j; });
    expect_rule("random:1", n, [](auto, auto) { return true; });
  }
}

TEST(Mask, IntersectionBindsTighterThanUnion) {
  for (const std::size_t n : {1, 9}) {
    expect_rule("self+window:2&causal", n, [](auto i, auto j) { return j <= i && i - j <= 2; });
    expect_rule("causal & window:2 + star", n,
                [](auto i, auto j) { return (j <= i && i - j <= 2) || i == 0 || j == 0; });
    expect_rule("dilated:9,2+window:1", n,
                [](auto i, auto j) { return gap(i, j) % 2 == 0 || gap(i, j) == 1; });
    EXPECT_EQ(parse_mask("global+window", n), parse_mask("global:1+window:1", n));
    EXPECT_EQ(parse_mask("self+global+window", n), parse_mask("window:1+star", n));
  }
}

TEST(Mask, RandomHasItsDensityItsSeedAndItsSelfLoops) {
  for (const double p : {0.001, 0.1, 0.5, 0.97}) {
    const std::size_t n = 600;
    const std::string name = "random:" + std::to_string(p);
    const Mask mask = parse_mask(name, n, 5);
    expect_normal(mask, name);
    EXPECT_EQ(mask, parse_mask(name, n, 5));
    EXPECT_NE(mask, parse_mask(name, n, 6));
    const auto pairs = static_cast<double>(n * (n - 1));
    const double others = static_cast<double>(mask.edges() - n);
    EXPECT_NEAR(others, p * pairs, 5 * std::sqrt(p * (1 - p) * pairs)) << p;
    for (std::size_t i = 0; i < n; ++i) EXPECT_TRUE(mask.attends(i, i));
  }
  // A part of the first draw; the second draw is another one.
  EXPECT_EQ(parse_mask("causal&random:0.2", 50, 3),
            intersect(parse_mask("causal", 50), parse_mask("random:0.2", 50, 3)));
  EXPECT_NE(parse_mask("random:0.2+random:0.2", 50, 3), parse_mask("random:0.2", 50, 3));
}

Dense random_dense(std::size_t n, double p, Random& random) {
  return dense(n, [&](auto, auto) { return random.uniform() < p; });
}

TEST(Mask, RunsAreSortedMergedAndClipped) {
  const Mask mask({{{2, 9}, {0, 1}, {1, 2}}, {}, {{3, 3}, {5, 2}, {1, 2}, {0, 4}}, {{7, 9}}});
  ASSERT_EQ(mask.n(), 4u);
  EXPECT_EQ(mask.row(0).size(), 1u);
  EXPECT_EQ(mask.row(0)[0], (Mask::Run{0, 4}));
  EXPECT_TRUE(mask.row(1).empty());
  EXPECT_EQ(mask.row(2).size(), 1u);
  EXPECT_TRUE(mask.row(3).empty());
  EXPECT_EQ(mask.edges(), 8u);
  EXPECT_EQ(mask.reach(1, 2), (Mask::Run{0, 0}));
  EXPECT_EQ(parse_mask("window:1", 9).reach(3, 5), (Mask::Run{2, 6}));
  EXPECT_EQ(mask.reach(0, 4), (Mask::Run{0, 4}));
}

TEST(Mask, SetOperationsAreThoseOfPairs) {
  Random random(11);
  for (int round = 0; round < 200; ++round) {
    const std::size_t n = 1 + random.below(40);
    const Dense a = random_dense(n, random.uniform(), random), b = random_dense(n, random.uniform(), random);
    const Mask x = Mask::from_dense(a.view()), y = Mask::from_dense(b.view());
    EXPECT_EQ(dense(x).values(), a.values());
    const auto expect = [&](const Mask& mask, const Rule& rule) {
      EXPECT_EQ(mask, Mask::from_dense(dense(n, rule).view()));
      expect_normal(mask, "combined");
    };
    expect(unite(x, y), [&](auto i, auto j) { return a(i, j) || b(i, j); });
    expect(intersect(x, y), [&](auto i, auto j) { return a(i, j) && b(i, j); });
    expect(transpose(x), [&](auto i, auto j) { return a(j, i); });
    EXPECT_EQ(transpose(transpose(x)), x);
  }
  EXPECT_THROW(unite(parse_mask("full", 3), parse_mask("full", 4)), InputError);
  EXPECT_THROW(intersect(parse_mask("full", 3), parse_mask("full", 4)), InputError);
}

std::string message_of(const std::string& name, std::size_t n) {
  try {
    parse_mask(name, n);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Mask, WrongNamesAreSaidWithWhatIsExpected) {
  for (const std::string name : {"",
                                 "fool",
                                 "full:1",
                                 "causal:",
                                 "window",
                                 "window:",
                                 "window:-1",
                                 "window:x",
                                 "window:1.5",
                                 "window:1,2",
                                 "window:1 2",
                                 "onesided:",
                                 "prefix:9",
                                 "prefix:-1",
                                 "global:0",
                                 "global:9",
                                 "global",
                                 "dilated:1",
                                 "dilated:1,0",
                                 "dilated:1,",
                                 "dilated:,1",
                                 "strided:0",
                                 "strided",
                                 "block:0",
                                 "block:",
                                 "random:-0.1",
                                 "random:1.01",
                                 "random:nan",
                                 "random",
                                 "random:inf",
                                 "self:1",
                                 "star:2",
                                 "full+",
                                 "+full",
                                 "full&",
                                 "full&&full",
                                 "full++full",
                                 "window:99999999999999999999",
                                 "Full",
                                 "window+global"}) {
    EXPECT_NE(message_of(name, 8), "") << name;
  }
  EXPECT_NE(message_of("casual", 8).find("did you mean 'causal'?"), std::string::npos);
  EXPECT_NE(message_of("windw:3", 8).find("did you mean 'window'?"), std::string::npos);
  EXPECT_NE(message_of("full+onsided:1", 8).find("did you mean 'onesided'?"), std::string::npos);
  EXPECT_NE(message_of("full+&causal", 8).find("A mask, or a part of one beside + or &, has no name"),
            std::string::npos);
  EXPECT_EQ(
      message_of("prefix:9", 8),
      "Mask 'prefix:9' is not of the form prefix:k: k is a whole number of at least 0 and at most 8, the "
      "tokens.");
  EXPECT_NE(message_of("dilated:1,0", 8).find("s is a whole number of at least 1"), std::string::npos);
  EXPECT_NE(message_of("full", 0), "");
  EXPECT_NE(message_of("full", Mask::most_tokens + 1), "");
  for (const char* name : {"strided:2", "dilated:2000,2", "random:0.5"})
    EXPECT_NE(message_of(name, 200'000).find("too large"), std::string::npos) << name;
  EXPECT_THROW(Mask(std::vector<std::vector<Mask::Run>>{}), InputError);
  EXPECT_THROW(Mask::from_dense(Dense(2, 3).view()), InputError);
  for (const std::string_view name : mask_names()) EXPECT_FALSE(name.empty());
}

// Floyd and Warshall on edges j → i.
Matrix<std::uint32_t> all_distances(const Mask& mask) {
  constexpr std::uint32_t far = UINT32_MAX / 2;
  const std::size_t n = mask.n();
  Matrix<std::uint32_t> d(n, n);
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t i = 0; i < n; ++i) d(j, i) = i == j ? 0 : mask.attends(i, j) ? 1 : far;
  }
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t i = 0; i < n; ++i) d(j, i) = std::min(d(j, i), d(j, k) + d(k, i));
    }
  }
  for (std::size_t j = 0; j < n; ++j) {
    for (auto& entry : d[j]) {
      if (entry >= far) entry = UINT32_MAX;
    }
  }
  return d;
}

void expect_properties(const Mask& mask, const std::string& name) {
  const std::size_t n = mask.n();
  const auto d = all_distances(mask);
  MaskProperties expected;
  std::size_t loops = 0, empty = 0;
  std::vector<std::uint32_t> centres;
  std::uint32_t least = UINT32_MAX, greatest = 0;
  for (std::size_t j = 0; j < n; ++j) {
    const std::uint32_t eccentricity = *std::max_element(d[j].begin(), d[j].end());
    if (eccentricity != UINT32_MAX) centres.push_back(static_cast<std::uint32_t>(j));
    least = std::min(least, eccentricity);
    greatest = std::max(greatest, eccentricity);
    loops += mask.attends(j, j);
    empty += mask.row(j).empty();
    // A component is counted at its first token.
    bool first = true;
    for (std::size_t i = 0; i < j; ++i) first = first && (d(i, j) == UINT32_MAX || d(j, i) == UINT32_MAX);
    expected.components += first;
  }
  const MaskProperties found = mask_properties(mask);
  EXPECT_EQ(found.n, n) << name;
  EXPECT_EQ(found.edges, mask.edges()) << name;
  EXPECT_DOUBLE_EQ(found.density, static_cast<double>(mask.edges()) / static_cast<double>(n * n)) << name;
  EXPECT_EQ(found.self_loops, loops) << name;
  EXPECT_EQ(found.empty_rows, empty) << name;
  EXPECT_EQ(found.components, expected.components) << name;
  EXPECT_EQ(found.centres, centres) << name;
  EXPECT_EQ(found.radius.value_or(UINT32_MAX), least) << name;
  EXPECT_EQ(found.diameter.value_or(UINT32_MAX), greatest) << name;
  EXPECT_EQ(found.strongly_connected(), greatest != UINT32_MAX) << name;
  EXPECT_EQ(found.quasi_strongly_connected(), least != UINT32_MAX) << name;
  for (const std::size_t from : {std::size_t{0}, n / 2, n - 1}) {
    const auto row = d[from];
    EXPECT_EQ(distances_from(mask, from), std::vector<std::uint32_t>(row.begin(), row.end())) << name;
  }
}

TEST(MaskProperties, AgreeWithFloydAndWarshallOnRandomMasks) {
  Random random(3);
  for (int round = 0; round < 800; ++round) {
    const std::size_t n = 1 + random.below(round < 400 ? 8 : 45);
    // From hardly any edge, where most is disconnected, to dense; with or without self-loops.
    const double p = std::pow(random.uniform(), 3);
    expect_properties(Mask::from_dense(random_dense(n, p, random).view()), "round " + std::to_string(round));
  }
}

TEST(MaskProperties, AgreeWithFloydAndWarshallOnRandomBands) {
  Random random(4);
  for (int round = 0; round < 400; ++round) {
    const std::size_t n = 1 + random.below(40);
    // Ends that ascend, and a few that do not.
    std::vector<std::vector<Mask::Run>> rows(n);
    std::uint32_t first = 0, last = 1;
    for (std::size_t i = 0; i < n; ++i) {
      const auto token = static_cast<std::uint32_t>(i);
      first = std::min(token, first + static_cast<std::uint32_t>(random.below(3)));
      last = std::max(token + 1, last + static_cast<std::uint32_t>(random.below(3)));
      rows[i] = {{first, last}};
      if (round % 4 == 0 && random.below(8) == 0) rows[i] = {{token, token + 1}};
    }
    expect_properties(Mask(rows), "round " + std::to_string(round));
    expect_properties(transpose(Mask(rows)), "transposed round " + std::to_string(round));
  }
}

TEST(MaskProperties, AgreeWithFloydAndWarshallOnEveryFamily) {
  for (const std::size_t n : {1, 2, 3, 5, 24, 50}) {
    for (const std::string name : {"full",
                                   "causal",
                                   "window:0",
                                   "window:1",
                                   "window:3",
                                   "onesided:1",
                                   "onesided:4",
                                   "prefix:0",
                                   "prefix:1",
                                   "dilated:1,2",
                                   "dilated:1,3+window:1",
                                   "strided:4",
                                   "global:1",
                                   "random:0.02",
                                   "random:0.2",
                                   "block:4",
                                   "block:4+window:1",
                                   "star",
                                   "self",
                                   "global+window",
                                   "causal&random:0.3",
                                   "star&causal",
                                   "dilated:2,5+onesided:1"}) {
      expect_properties(parse_mask(name, n), name + ", n = " + std::to_string(n));
    }
  }
}

// Random masks of some density look alike from everywhere: more searches than bounds are given, after which
// eccentricities are counted many tokens at once.
TEST(MaskProperties, AgreeWithFloydAndWarshallWhereBoundsSayLittle) {
  for (const std::uint64_t seed : {1, 2}) {
    const Mask dense = parse_mask("random:0.03", 400, seed);
    expect_properties(dense, "random " + std::to_string(seed));
    // The last tokens only take: the others are the centres.
    const Mask sink = intersect(dense, Mask::from_rows(400, [](std::size_t i, std::vector<Mask::Run>& runs) {
                                  runs.push_back({0, i < 350 ? 350u : 400u});
                                }));
    expect_properties(sink, "random with sinks " + std::to_string(seed));
  }
}

TEST(MaskProperties, AtThePapersSizeRadiiAreThePapers) {
  const auto radius = [](const char* name) { return mask_properties(parse_mask(name, 128)).radius; };
  EXPECT_EQ(radius("full"), 1u);
  EXPECT_EQ(radius("causal"), 1u);
  EXPECT_EQ(radius("window:1"), 64u);
  EXPECT_EQ(radius("onesided:1"), 127u);
  EXPECT_EQ(mask_properties(parse_mask("causal", 128)).centres, std::vector<std::uint32_t>{0});
  EXPECT_EQ(mask_properties(parse_mask("window:1", 128)).diameter, 127u);
}

TEST(MaskProperties, OneTokenIsItsOwnCentre) {
  for (const Mask& mask : {parse_mask("full", 1), Mask(std::vector<std::vector<Mask::Run>>(1))}) {
    const MaskProperties found = mask_properties(mask);
    EXPECT_EQ(found.radius, 0u);
    EXPECT_EQ(found.diameter, 0u);
    EXPECT_TRUE(found.strongly_connected());
  }
  EXPECT_EQ(mask_properties(Mask()).n, 0u);
  EXPECT_THROW(distances_from(parse_mask("full", 3), 3), InputError);
}

TEST(MaskProperties, LargeBandsHaveTheirClosedForms) {
  constexpr std::size_t n = 100'000, none = SIZE_MAX;
  struct Case {
    const char* name;
    std::size_t components, centres, radius, diameter;
  };
  const auto start = std::chrono::steady_clock::now();
  for (const Case& expected : {Case{"full", 1, n, 1, 1},
                               {"causal", n, 1, 1, none},
                               {"window:1", 1, n, n / 2, n - 1},
                               {"window:1000", 1, n, 50, 100},
                               {"onesided:1", n, 1, n - 1, none},
                               {"onesided:7", n, 1, (n - 1 + 6) / 7, none},
                               {"prefix:100", n - 99, 100, 1, none},
                               {"block:1000", 100, 0, none, none},
                               {"star", 1, n, 1, 2},
                               {"global:16", 1, n, 1, 2},
                               {"global+window", 1, n, 1, 2},
                               {"global:1+onesided:4", 1, n, 1, 2},
                               {"dilated:2,100", 100, 0, none, none},
                               {"dilated:1,4+window:1", 1, n, 12'501, 25'001},
                               {"self", n, 0, none, none},
                               {"strided:1000", n, 1, 2, none}}) {
    const MaskProperties found = mask_properties(parse_mask(expected.name, n));
    EXPECT_EQ(found.components, expected.components) << expected.name;
    EXPECT_EQ(found.centres.size(), expected.centres) << expected.name;
    EXPECT_EQ(found.radius.value_or(none), expected.radius) << expected.name;
    EXPECT_EQ(found.diameter.value_or(none), expected.diameter) << expected.name;
  }
  // Seconds on a busy machine, minutes under sanitizers; one search per token would take hours.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::minutes(5));
}

}  // namespace
}  // namespace normscope

// What a verdict from all places rests on: which places matter, how far keys are off, what a win proves.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/rotate.h"
#include "normscope/error.h"
#include "normscope/random.h"
#include "scan/key_errors.h"
#include "scan/places.h"
#include "scan/wins.h"
#include "support/message.h"

namespace normscope {
namespace {

TEST(Places, TheLeastSetsLieInAllOthersAndInNoneOfEachOther) {
  for (const char* name : {"full", "causal", "onesided:0", "onesided:3", "window:2", "prefix:4"}) {
    const Places places(parse_mask(name, 11));
    const auto holds = [&](std::size_t larger, std::size_t smaller) {
      const auto of_larger = places.seen_from(larger), of_smaller = places.seen_from(smaller);
      return std::ranges::includes(of_larger, of_smaller);
    };
    for (std::size_t token = 0; token < 11; ++token) {
      std::vector<std::size_t> least;
      for (std::size_t place = 0; place < 11; ++place) {
        if (places.sees(place, token) && places.is_least(place, token)) least.push_back(place);
      }
      for (std::size_t place = 0; place < 11; ++place) {
        if (!places.sees(place, token)) continue;
        EXPECT_TRUE(std::ranges::any_of(least, [&](std::size_t p) { return holds(place, p); }))
            << name << ", token " << token << ", place " << place;
      }
      for (const std::size_t a : least) {
        for (const std::size_t b : least)
          EXPECT_TRUE(a == b || !holds(a, b)) << name << ": " << a << ", " << b;
      }
    }
  }
}

TEST(Places, AFewSeeEveryToken) {
  EXPECT_EQ(Places(parse_mask("full", 9)).covering(), (std::vector<std::size_t>{8}));
  EXPECT_EQ(Places(parse_mask("causal", 9)).covering(), (std::vector<std::size_t>{8}));
  EXPECT_EQ(Places(parse_mask("onesided:2", 8)).covering(), (std::vector<std::size_t>{7, 4, 1}));
  EXPECT_TRUE(Places(parse_mask("full", 9)).one_set());
  EXPECT_FALSE(Places(parse_mask("causal", 9)).one_set());
  EXPECT_TRUE(Places(parse_mask("causal", 9)).nested());
  EXPECT_FALSE(Places(parse_mask("onesided:2", 9)).nested());
}

TEST(Places, TheBestVerdictCountsAndWhatIsUndecidedIsNotCalledUnselectable) {
  const auto s = std::optional(Verdict::selectable), t = std::optional(Verdict::tied),
             u = std::optional(Verdict::unselectable);
  const std::optional<Verdict> none, unknown = static_cast<Verdict>(17);
  EXPECT_EQ(better(u, s), s);
  EXPECT_EQ(better(none, s), s);
  EXPECT_EQ(better(t, none), none);
  EXPECT_EQ(better(unknown, u), none);
  EXPECT_EQ(better(u, t), t);
  EXPECT_EQ(better(u, u), u);
}

// Scores the decider is asked for, and what it says, from a table: verdicts[place][token].
TEST(Places, EveryPlaceThatMattersIsAskedOnceUntilATokenIsSelectable) {
  const Places places(parse_mask("causal", 4));
  std::vector<std::vector<std::size_t>> asked(4);
  PlacesQuestion question{places, false, true, {}, false, {}};
  question.decide = [&](std::size_t place, std::span<const std::size_t> seen,
                        std::span<const std::size_t> wanted, bool) {
    EXPECT_EQ(seen.size(), place + 1);
    EXPECT_TRUE(asked[place].empty());
    asked[place].assign(wanted.begin(), wanted.end());
    PlacesQuestion::Answer answer;
    for (const std::size_t token : wanted) {
      // Token 0 from place 1 only; token 1 never, robustly but from place 2; token 2 never; token 3 at once.
      const bool selectable = (token == 0 && place == 1) || token == 3;
      answer.verdicts.push_back({selectable ? Verdict::selectable : Verdict::unselectable,
                                 selectable ? 0.5 : 0, token == 2 || place != 2, true, std::nullopt});
    }
    return answer;
  };
  const ScanSet each = decide_from_places(question);
  EXPECT_EQ(each.verdicts, (std::vector<std::optional<Verdict>>{Verdict::selectable, Verdict::unselectable,
                                                                Verdict::unselectable, Verdict::selectable}));
  EXPECT_EQ(each.places, (std::vector<std::optional<std::size_t>>{1, std::nullopt, std::nullopt, 3}));
  EXPECT_EQ(each.robust, (std::vector<bool>{false, false, true, false}));
  EXPECT_EQ(each.robust_unselectable, 1u);
  EXPECT_EQ(asked[0], (std::vector<std::size_t>{}));  // all settled before
  EXPECT_EQ(asked[1], (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(asked[2], (std::vector<std::size_t>{0, 1, 2}));
  // With the same queries everywhere, a token's own place has the last word.
  asked.assign(4, {});
  question.alike = true;
  decide_from_places(question);
  EXPECT_EQ(asked[0], (std::vector<std::size_t>{0}));
  EXPECT_EQ(asked[1], (std::vector<std::size_t>{1}));
  EXPECT_EQ(asked[2], (std::vector<std::size_t>{2}));
}

struct HeadOfKeys {
  BlockSpec block;
  Matrix<float> in, computed;
  Matrix<double> weights, keys;
  std::vector<double> bias;
};

// Keys in float32, summed one after the other, as no product of matrices would do worse.
HeadOfKeys random_head(Random& random, std::size_t n, std::size_t d, std::size_t width, bool turned,
                       bool unit) {
  HeadOfKeys head;
  head.block.width = d;
  head.block.head_width = width;
  head.block.normalize_query_key = unit;
  if (turned) {
    for (std::size_t m = 0; 2 * m + 1 < width; ++m) head.block.rotary.frequencies.push_back(std::pow(0.3, m));
  }
  head.in = Matrix<float>(n, d);
  head.weights = Matrix<double>(d, width);
  head.computed = Matrix<float>(n, width);
  head.keys = Matrix<double>(n, width);
  for (std::size_t i = 0; i < n; ++i)
    for (float& value : head.in[i]) value = static_cast<float>(3 * random.normal());
  for (std::size_t i = 0; i < d; ++i)
    for (double& value : head.weights[i]) value = static_cast<double>(static_cast<float>(random.normal()));
  for (std::size_t c = 0; c < width; ++c)
    head.bias.push_back(static_cast<double>(static_cast<float>(5 * random.normal())));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t c = 0; c < width; ++c) {
      float sum = 0;
      for (std::size_t k = 0; k < d; ++k) sum += head.in(i, k) * static_cast<float>(head.weights(k, c));
      head.computed(i, c) = sum + static_cast<float>(head.bias[c]);
    }
    if (unit) {
      float squares = 0;
      for (const float value : head.computed[i]) squares += value * value;
      for (float& value : head.computed[i]) value /= std::sqrt(squares);
    }
    rotate<float>(head.block.rotary, width, static_cast<double>(i), head.computed[i]);
    std::copy(head.computed[i].begin(), head.computed[i].end(), head.keys[i].begin());
  }
  return head;
}

TEST(KeyErrors, BoundTheDistanceToTheProductInMorePrecisionClosely) {
  Random random(51);
  for (int draw = 0; draw < 24; ++draw) {
    const std::size_t n = 12, d = draw % 2 == 0 ? 16 : 300, width = 6;
    const bool turned = draw % 4 >= 2, unit = draw % 3 == 2;
    const HeadOfKeys head = random_head(random, n, d, width, turned, unit);
    const std::vector<double> errors =
        key_errors(head.block, head.in.view(), head.weights.view(), head.bias, head.keys.view());
    ASSERT_EQ(errors.size(), n);
    double most = 0;
    for (std::size_t i = 0; i < n; ++i) {
      std::vector<long double> meant(head.bias.begin(), head.bias.end());
      long double squares = 0, apart = 0;
      for (std::size_t c = 0; c < width; ++c) {
        for (std::size_t k = 0; k < d; ++k)
          meant[c] += static_cast<long double>(head.in(i, k)) * static_cast<long double>(head.weights(k, c));
        squares += meant[c] * meant[c];
      }
      if (unit) {
        for (long double& value : meant) value /= std::sqrt(squares);
      }
      const std::size_t pairs = head.block.rotary.frequencies.size();
      for (std::size_t m = 0; m < pairs; ++m) {
        const long double angle =
            static_cast<long double>(i) * static_cast<long double>(head.block.rotary.frequencies[m]);
        const long double a = meant[m], b = meant[m + pairs];
        meant[m] = a * std::cos(angle) - b * std::sin(angle);
        meant[m + pairs] = a * std::sin(angle) + b * std::cos(angle);
      }
      for (std::size_t c = 0; c < width; ++c) {
        const long double off = static_cast<long double>(head.keys(i, c)) - meant[c];
        apart += off * off;
      }
      const auto distance = static_cast<double>(std::sqrt(apart));
      const double norm = unit ? 1 : static_cast<double>(std::sqrt(squares));
      EXPECT_LE(distance, errors[i]) << draw;
      EXPECT_LE(errors[i], distance + 1e-11 * norm) << draw;
      most = std::max(most, distance / (0x1p-24 * norm));
    }
    // One rounding of the key is not all that happened to it.
    if (d == 300) {
      EXPECT_GT(most, 1.5);
    }
  }
}

TEST(RealQueries, ALeadCountsBeyondWhatRoundingExplains) {
  const Matrix<double> keys(3, 2, {1, 0, 0, 1, 0.5, 0.5});
  const std::vector<std::size_t> all = {0, 1, 2}, two = {0, 2};
  const std::vector<double> query = {2, 1}, offsets = {0, 0, 3};
  EXPECT_NEAR(certain_lead(query, {keys.view(), {}, all, 0}, 0), 0.5, 1e-5);
  EXPECT_LT(certain_lead(query, {keys.view(), {}, all, 0}, 0), 0.5);
  EXPECT_NEAR(certain_lead(query, {keys.view(), {}, all, 0.05}, 0), 0.5 - 2 * std::sqrt(5) * 0.05, 1e-5);
  EXPECT_LT(certain_lead(query, {keys.view(), {}, all, 0}, 1), 0);
  EXPECT_LT(certain_lead(query, {keys.view(), offsets, two, 0}, 0), 0);
  EXPECT_GT(certain_lead(query, {keys.view(), offsets, two, 0}, 2), 0);
  // Equal keys, and a difference of one rounding.
  const Matrix<double> close(2, 1, {1, 1 + 0x1p-23});
  const std::vector<std::size_t> both = {0, 1};
  EXPECT_LT(certain_lead(std::vector<double>{1000}, {close.view(), {}, both, 0}, 1), 0);
}

TEST(RealQueries, AVerdictAgainstAWinIsAnErrorThatNamesIt) {
  ScanSet set;
  set.verdicts = {Verdict::selectable, Verdict::unselectable, Verdict::tied, std::nullopt};
  EXPECT_NO_THROW(require_selectable(set, 0, KeySpace::head, 1, 2, 3, 0.5));
  EXPECT_NO_THROW(require_selectable(set, 3, KeySpace::head, 1, 2, 3, 0.5));
  EXPECT_THROW(require_selectable(set, 2, KeySpace::head, 1, 2, 3, 0.5), Error);
  expect_mentions(message_of<Error>([&] { require_selectable(set, 1, KeySpace::reachable, 4, 5, 6, 0.5); }),
                  {"layer 4", "head 5", "token 6", "token 1", "0.5", "reachable", "unselectable"});
}

}  // namespace
}  // namespace normscope

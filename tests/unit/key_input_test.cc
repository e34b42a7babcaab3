// Keys that cannot be decided are refused by name.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "normscope/keys.h"
#include "support/key_sets.h"
#include "support/message.h"

namespace normscope {
namespace {

// One line that holds the facts.
void expect_facts(const std::string& message, const std::vector<std::string>& facts) {
  expect_mentions(message, facts);
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

TEST(KeyInput, NeedsAtLeastOneKeyWithOneCoordinate) {
  const double none = 0;
  for (auto [n, d] : {std::pair<std::size_t, std::size_t>{0, 5}, {4, 0}, {0, 0}}) {
    const MatrixView<const double> keys(&none, n, d);
    expect_facts(message_of([&] { decide_keys(keys, {}, {}, Executor(1)); }),
                 {std::to_string(n) + " × " + std::to_string(d)});
  }
}

TEST(KeyInput, ThatIsNotFiniteIsNamedByRowAndColumn) {
  Matrix<double> keys(4, 3);
  for (auto [value, name] : {std::pair<double, std::string>{std::nan(""), "NaN"},
                             {kInfinity, "infinite"},
                             {-kInfinity, "infinite"}}) {
    keys(2, 1) = value;
    expect_facts(message_of([&] { decide(keys); }), {"row 2", "column 1", name});
  }
}

TEST(KeyInput, OffsetsMustBeOneFiniteNumberPerKey) {
  const Matrix<double> keys = matrix({{0, 1}, {1, 0}, {2, 2}});
  for (std::size_t length : {1, 2, 4})
    expect_facts(message_of([&] { decide(keys, std::vector<double>(length, 1.0)); }),
                 {std::to_string(length), "3"});
  expect_facts(message_of([&] {
                 decide(keys, std::vector<double>{1, 2, std::nan("")});
               }),
               {"offset 2", "NaN"});
  expect_facts(message_of([&] {
                 decide(keys, std::vector<double>{1, kInfinity, 0});
               }),
               {"offset 1", "infinite"});
}

TEST(KeyInput, OptionsMustBeFiniteAndNotNegative) {
  const Matrix<double> keys = matrix({{0}, {1}});
  for (double wrong : {-1.0, std::nan(""), kInfinity}) {
    KeyOptions noise, query_norm, roundoff;
    noise.noise = wrong, query_norm.query_norm = wrong, roundoff.unit_roundoff = wrong;
    expect_facts(message_of([&] { decide(keys, {}, noise); }), {"noise"});
    expect_facts(message_of([&] { decide(keys, {}, query_norm); }), {"query_norm"});
    expect_facts(message_of([&] { decide(keys, {}, roundoff); }), {"unit_roundoff"});
    const std::vector<MatrixView<const double>> sets = {keys.view(), keys.view()};
    expect_facts(message_of([&] { decide_key_sets(sets, {}, noise, Executor(1)); }), {"noise"});
  }
}

TEST(KeyInput, OfABatchIsNamedByItsSet) {
  const Matrix<double> good = matrix({{0, 1}, {1, 0}});
  Matrix<double> bad = good;
  bad(1, 0) = std::nan("");
  const std::vector<MatrixView<const double>> views = {good.view(), good.view(), bad.view()};
  expect_facts(message_of([&] { decide_key_sets(views, {}, {}, Executor(2)); }),
               {"set 2", "row 1", "column 0", "NaN"});
  const std::vector<double> two = {0, 1}, three = {0, 1, 2};
  const std::vector<std::span<const double>> few = {two, two};
  expect_facts(message_of([&] { decide_key_sets(views, few, {}, Executor(2)); }), {"2", "3"});
  const std::vector<std::span<const double>> uneven = {two, three};
  expect_facts(message_of([&] { decide_key_sets(std::span(views).first(2), uneven, {}, Executor(2)); }),
               {"set 1", "3", "2"});
}

}  // namespace
}  // namespace normscope

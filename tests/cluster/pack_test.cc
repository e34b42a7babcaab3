// Values as bytes and back: nothing is lost, and bytes that were cut off or changed are refused or harmless.
#include "core/pack.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "keys/hull.h"
#include "normscope/keys.h"
#include "normscope/scan.h"

namespace normscope {
namespace {

KeyVerdict some_verdict() {
  KeyVerdict verdict;
  verdict.verdict = Verdict::tied;
  verdict.margin = -0.0;
  verdict.depth = std::numeric_limits<double>::denorm_min();
  verdict.witness = {1.5, -2, std::numeric_limits<double>::quiet_NaN()};
  verdict.exact_witness = {"1/3", ""};
  verdict.cover = {{7, 0.25}, {9, 0.75}};
  verdict.max_weight = 0.5;
  verdict.prefix_verdict = Verdict::undecided;
  verdict.verdict_prefix = 11;
  verdict.verified = true;
  return verdict;
}

TEST(Pack, BringsBackEveryMemberOfAStruct) {
  const std::string bytes = packed(some_verdict());
  const auto back = unpacked<KeyVerdict>(bytes);
  EXPECT_EQ(back.verdict, Verdict::tied);
  EXPECT_TRUE(std::signbit(back.margin));
  EXPECT_EQ(back.depth, std::numeric_limits<double>::denorm_min());
  EXPECT_TRUE(std::isnan(back.witness.at(2)));
  EXPECT_EQ(back.exact_witness, (std::vector<std::string>{"1/3", ""}));
  EXPECT_EQ(back.cover.at(1).index, 9u);
  EXPECT_EQ(back.cover.at(1).weight, 0.75);
  EXPECT_EQ(back.max_weight, 0.5);
  EXPECT_FALSE(back.max_weight_bound.has_value());
  EXPECT_EQ(back.prefix_verdict, Verdict::undecided);
  EXPECT_EQ(back.verdict_prefix, 11u);
  EXPECT_TRUE(back.verified);
  // The last member, too, and no more: bytes are the same again.
  EXPECT_EQ(packed(back), bytes);
}

TEST(Pack, TakesListsOfFlagsAndOfNothing) {
  ScanSet set;
  set.verdicts = {Verdict::unselectable, std::nullopt};
  set.robust = {true, false, true};
  const auto back = unpacked<ScanSet>(packed(set));
  EXPECT_EQ(back.verdicts, set.verdicts);
  EXPECT_EQ(back.robust, set.robust);
}

TEST(Pack, BringsBackEveryMemberOfAHull) {
  AffineHull hull;
  hull.rank = 2;
  hull.tolerance = 0.25;
  hull.matrix_rank = 3;
  hull.kept = {0, 2};
  hull.centre = Eigen::Vector3d(1, 2, 3);
  hull.basis = Eigen::MatrixXd::Random(3, 2);
  hull.lift.resize(5, 0);
  hull.off = Eigen::Vector2d(7, 8);
  hull.finest = 0.5;
  const std::string bytes = packed(hull);
  const auto back = unpacked<AffineHull>(bytes);
  EXPECT_EQ(back.rank, 2u);
  EXPECT_EQ(back.kept, hull.kept);
  EXPECT_EQ(back.centre, hull.centre);
  EXPECT_EQ(back.basis, hull.basis);
  EXPECT_EQ(back.lift.rows(), 5);
  EXPECT_EQ(back.lift.cols(), 0);
  EXPECT_EQ(back.off, hull.off);
  EXPECT_EQ(back.finest, 0.5);
  EXPECT_EQ(packed(back), bytes);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(unpacked<AffineHull>(std::string_view(bytes).substr(0, size)), Error) << size;
}

TEST(Pack, RefusesEveryTextThatIsCutOff) {
  const std::string bytes = packed(some_verdict());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(unpacked<KeyVerdict>(std::string_view(bytes).substr(0, size)), Error) << size;
  EXPECT_THROW(unpacked<KeyVerdict>(bytes + "x"), Error);
}

TEST(Pack, BelievesNoSizeBeforeItHasSeenTheBytes) {
  std::string bytes;
  pack(bytes, std::uint64_t{1} << 60);
  EXPECT_THROW(unpacked<std::vector<double>>(bytes), Error);
  EXPECT_THROW(unpacked<std::vector<std::string>>(bytes), Error);
  EXPECT_THROW(unpacked<std::string>(bytes), Error);
}

}  // namespace
}  // namespace normscope

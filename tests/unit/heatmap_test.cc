#include "normscope/heatmap.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <numbers>

#include "normscope/error.h"
#include "normscope/keys.h"
#include "normscope/pieces.h"

namespace normscope {
namespace {

HeatmapOptions grid(std::vector<std::size_t> n, std::vector<std::size_t> d, std::size_t draws) {
  HeatmapOptions options;
  options.n = std::move(n);
  options.d = std::move(d);
  options.draws = draws;
  options.seed = 42;
  return options;
}

const HeatmapCell& cell_at(const Heatmap& heatmap, std::size_t n, std::size_t d) {
  for (const HeatmapCell& cell : heatmap.cells) {
    if (cell.n == n && cell.d == d) return cell;
  }
  throw Error("the grid has no such cell");
}

void expect_same(const HeatmapCell& a, const HeatmapCell& b) {
  EXPECT_EQ(a.unselectable, b.unselectable);
  EXPECT_EQ(a.robust_unselectable, b.robust_unselectable);
  EXPECT_EQ(a.fraction, b.fraction);
  EXPECT_EQ(a.fraction_sd, b.fraction_sd);
  EXPECT_EQ(a.any, b.any);
  EXPECT_EQ(a.tied, b.tied);
}

TEST(KeyHeatmap, ACellIsTheSameInEveryGridForAnyNumberOfThreads) {
  const Heatmap alone = key_heatmap(grid({12}, {4}, 30), Executor(1));
  ASSERT_GT(alone.cells[0].unselectable, 0u);
  for (const int threads : {1, 2, 8}) {
    expect_same(alone.cells[0], key_heatmap(grid({12}, {4}, 30), Executor(threads)).cells[0]);
    expect_same(alone.cells[0],
                cell_at(key_heatmap(grid({3, 12, 40}, {3, 4, 9}, 30), Executor(threads)), 12, 4));
  }
}

TEST(KeyHeatmap, MoreDrawsBeginWithTheSameOnes) {
  const auto few = key_heatmap(grid({15}, {3}, 5), Executor(1)).cells[0];
  const auto more = key_heatmap(grid({15}, {3}, 6), Executor(1)).cells[0];
  EXPECT_LE(few.unselectable, more.unselectable);
  EXPECT_LE(more.unselectable, few.unselectable + 15);
}

TEST(KeyHeatmap, TheKeysOfADrawAreThoseThatWereDecided) {
  HeatmapOptions options = grid({12}, {3}, 8);
  options.norm = parse_norm("center");
  std::size_t unselectable = 0;
  for (std::size_t draw = 0; draw < options.draws; ++draw) {
    const Matrix<double> keys = heatmap_keys(options, 12, 3, draw);
    KeyOptions deciding;
    deciding.unit_roundoff = 0x1p-24;
    unselectable += decide_keys(keys.view(), {}, deciding, Executor(1)).counts.unselectable;
  }
  EXPECT_EQ(unselectable, key_heatmap(options, Executor(1)).cells.front().unselectable);
  EXPECT_THROW(heatmap_keys(options, 0, 3, 0), InputError);
  EXPECT_THROW(heatmap_keys(options, 12, 3, HeatmapOptions::most_draws), InputError);
}

TEST(KeyHeatmap, OtherSeedsGiveOtherDraws) {
  HeatmapOptions options = grid({20}, {5}, 50);
  const auto first = key_heatmap(options, Executor(1)).cells[0];
  options.seed = 43;
  EXPECT_NE(first.unselectable, key_heatmap(options, Executor(1)).cells[0].unselectable);
}

TEST(KeyHeatmap, OneOrTwoKeysAreAlwaysSelectable) {
  for (const HeatmapCell& cell : key_heatmap(grid({1, 2}, {1, 2, 3, 8}, 20), Executor(2)).cells) {
    EXPECT_EQ(cell.unselectable, 0u) << cell.n << " keys, d = " << cell.d;
    EXPECT_EQ(cell.tied, 0) << cell.n << " keys, d = " << cell.d;
  }
}

// On a line only the two ends are vertices: n − 2 of n keys are unselectable in every draw.
TEST(KeyHeatmap, OnALineAllButTheEndsAreUnselectable) {
  const HeatmapCell cell = key_heatmap(grid({10}, {1}, 50), Executor(1)).cells[0];
  EXPECT_EQ(cell.fraction, 0.8);
  EXPECT_EQ(cell.any, 1);
  EXPECT_NEAR(cell.fraction_sd, 0, 1e-7);
}

// Sylvester's four-point problem: of four points of the plane at most one lies inside, and for normal points
// one does with probability (6/π)·arcsec 3 − 2 ≈ 0.351.
TEST(KeyHeatmap, FourKeysInThePlaneFollowSylvester) {
  const HeatmapCell cell = key_heatmap(grid({4}, {2}, 4000), Executor(2)).cells[0];
  const double exact = 6 / std::numbers::pi * std::acos(1.0 / 3) - 2;
  EXPECT_NEAR(cell.any, exact, 4 * std::sqrt(exact * (1 - exact) / 4000));
  EXPECT_NEAR(cell.fraction, cell.any / 4, 1e-12);
}

TEST(KeyHeatmap, ReadingsAreSharesAndAnyIsTheLarger) {
  for (const KeyInit init : {KeyInit::normal, KeyInit::uniform, KeyInit::xavier}) {
    HeatmapOptions options = grid({3, 10, 30}, {2, 3, 6}, 20);
    options.init = init;
    for (const HeatmapCell& cell : key_heatmap(options, Executor(2)).cells) {
      EXPECT_GE(cell.fraction, 0);
      EXPECT_LE(cell.fraction, cell.any);
      EXPECT_LE(cell.any, 1);
      EXPECT_LE(cell.robust_fraction, cell.fraction);
      EXPECT_LE(cell.robust_any, cell.any);
      EXPECT_LE(cell.fraction_se, cell.fraction_sd);
    }
  }
}

// Selectability does not depend on scale: xavier keys are uniform keys made smaller. Rounding to float32
// apart, both come from the same numbers.
TEST(KeyHeatmap, XavierKeysAreUniformKeysScaled) {
  HeatmapOptions options = grid({20}, {4}, 40);
  options.init = KeyInit::uniform;
  const auto uniform = key_heatmap(options, Executor(1)).cells[0];
  options.init = KeyInit::xavier;
  EXPECT_EQ(uniform.unselectable, key_heatmap(options, Executor(1)).cells[0].unselectable);
}

TEST(KeyHeatmap, NoKeyIsUnselectableAfterLayerNorm) {
  for (const char* norm : {"layernorm", "rmsnorm", "unit", "published"}) {
    HeatmapOptions options = grid({3, 10, 30, 60}, {3, 4, 8, 15}, 25);
    options.norm = parse_norm(norm);
    for (const HeatmapCell& cell : key_heatmap(options, Executor(2)).cells) {
      EXPECT_EQ(cell.unselectable, 0u) << norm << " n = " << cell.n << " d = " << cell.d;
    }
  }
}

// n = 60 keys on a circle: three of them come so close that float32 puts the middle one inside once in a few
// hundred draws. No such verdict is robust, and in float64 there is none.
TEST(KeyHeatmap, OnlyRoundingMakesKeysOnACircleUnselectable) {
  HeatmapOptions options = grid({60}, {3}, 2000);
  options.norm = parse_norm("layernorm");
  const HeatmapCell rounded = key_heatmap(options, Executor(2)).cells[0];
  EXPECT_GT(rounded.unselectable, 0u);
  EXPECT_EQ(rounded.robust_unselectable, 0u);
  options.precision = Precision::float64;
  EXPECT_EQ(key_heatmap(options, Executor(2)).cells[0].unselectable, 0u);
}

TEST(KeyHeatmap, ProjectionAloneDoesNotMakeKeysSelectable) {
  HeatmapOptions options = grid({30}, {4}, 20);
  options.norm = parse_norm("center");
  EXPECT_EQ(key_heatmap(options, Executor(1)).cells[0].any, 1);
}

// LayerNorm in two dimensions has only the two images ±(1, −1): equal keys at a vertex are tied.
TEST(KeyHeatmap, LayerNormInTwoDimensionsTiesKeys) {
  HeatmapOptions options = grid({10}, {2}, 20);
  options.norm = parse_norm("layernorm");
  const HeatmapCell cell = key_heatmap(options, Executor(1)).cells[0];
  EXPECT_GT(cell.tied, 0.9);
  EXPECT_EQ(cell.unselectable, 0u);
}

TEST(KeyHeatmap, LearnedNormalsStartRandom) {
  HeatmapOptions options = grid({20}, {6}, 10);
  options.norm = parse_norm("project:2");
  EXPECT_EQ(key_heatmap(options, Executor(1)).cells[0].robust_unselectable, 0u);
  options.norm = parse_norm("normals:2");
  EXPECT_GT(key_heatmap(options, Executor(1)).cells[0].unselectable, 0u);
}

TEST(KeyHeatmap, ASingleDrawHasNoStandardError) {
  const HeatmapCell cell = key_heatmap(grid({9}, {3}, 1), Executor(1)).cells[0];
  EXPECT_TRUE(std::isnan(cell.fraction_sd));
  EXPECT_TRUE(std::isnan(cell.fraction_se));
  EXPECT_TRUE(std::isnan(cell.any_se));
}

TEST(KeyHeatmap, ReportsEveryDraw) {
  std::atomic<std::size_t> calls = 0, largest = 0;
  key_heatmap(grid({3, 4}, {2, 3}, 10), Executor(2), [&](std::size_t done, std::size_t total) {
    EXPECT_EQ(total, 40u);
    ++calls;
    if (done == total) largest = done;
  });
  EXPECT_EQ(calls, 40u);
  EXPECT_EQ(largest, 40u);
}

// Keeps the works it is given, and does them.
class RememberedWorks final : public Pieces {
 public:
  std::size_t processes() const override { return 1; }
  bool first() const override { return true; }
  std::vector<HeldBytes> run(const PieceWork& work, const Executor& executor) override {
    costs.push_back(work.costs);
    const Executor inside(executor.threads());  // of a piece, whose own works are nobody else's
    std::vector<HeldBytes> results;
    for (std::size_t piece = 0; piece < work.costs.size(); ++piece) {
      auto bytes = std::make_shared<const std::string>(work.result(piece, inside));
      results.push_back({bytes, *bytes});
      work.finished(piece);
    }
    return results;
  }
  void enter(const std::string&) override {}
  void leave() override {}
  std::string from_first(const std::function<std::string()>& make) override { return make(); }
  HeldBytes once_per_machine(const std::function<HeldBytes()>& make) override { return make(); }

  std::vector<std::vector<double>> costs;
};

// LayerNorm's draws take twice as long as those without a norm. Only if they are taken in turn (working_order, of one
// work) is the share that is done the share of the time.
TEST(KeyHeatmap, DrawsOfSeveralNormsAreOneWork) {
  const std::vector<NormSpec> norms{parse_norm("none"), parse_norm("layernorm"), parse_norm("center")};
  const HeatmapOptions options = grid({3, 40}, {3, 9}, 30);
  RememberedWorks works;
  const Executor executor(1, nullptr, &works);
  std::size_t last = 0, total = 0;
  const std::vector<Heatmap> maps =
      key_heatmaps(options, norms, executor, [&](std::size_t done, std::size_t of) {
        EXPECT_GT(done, last);
        last = done, total = of;
      });
  EXPECT_EQ(total, norms.size() * 4 * 30);
  EXPECT_EQ(last, total);
  ASSERT_EQ(works.costs.size(), 1u);
  EXPECT_EQ(works.costs.front().size() % norms.size(), 0u);
  ASSERT_EQ(maps.size(), norms.size());
  for (std::size_t map = 0; map < maps.size(); ++map) {
    HeatmapOptions one = options;
    one.norm = norms[map];
    const Heatmap alone = key_heatmap(one, Executor(2));
    ASSERT_EQ(maps[map].cells.size(), alone.cells.size());
    for (std::size_t cell = 0; cell < alone.cells.size(); ++cell)
      expect_same(maps[map].cells[cell], alone.cells[cell]);
  }
  EXPECT_TRUE(key_heatmaps(options, {}, executor).empty());
}

TEST(KeyHeatmap, RefusesGridsThatMakeNoSense) {
  const Executor executor(1);
  EXPECT_THROW(key_heatmap(grid({}, {3}, 1), executor), InputError);
  EXPECT_THROW(key_heatmap(grid({3}, {}, 1), executor), InputError);
  EXPECT_THROW(key_heatmap(grid({0}, {3}, 1), executor), InputError);
  EXPECT_THROW(key_heatmap(grid({3}, {0}, 1), executor), InputError);
  EXPECT_THROW(key_heatmap(grid({3}, {3}, 0), executor), InputError);
  EXPECT_THROW(key_heatmap(grid({HeatmapOptions::most_keys + 1}, {3}, 1), executor), InputError);
  HeatmapOptions options = grid({3}, {3}, 1);
  options.norm = parse_norm("qknorm:2");
  EXPECT_THROW(key_heatmap(options, executor), InputError);
  options.norm = parse_norm("project:4");
  EXPECT_THROW(key_heatmap(options, executor), InputError);
  EXPECT_THROW(parse_key_init("gaussian"), InputError);
  EXPECT_THROW(parse_precision("float16"), InputError);
}

TEST(KeyHeatmap, TheSummaryFindsTheExtremes) {
  const Heatmap heatmap = key_heatmap(grid({2, 10, 40}, {2, 12}, 20), Executor(2));
  const HeatmapSummary summary = summarise(heatmap);
  EXPECT_EQ(summary.cells, 6u);
  EXPECT_GE(summary.clear_cells, 2u);
  EXPECT_EQ(summary.keys, 2u * 20 * (2 + 10 + 40));
  EXPECT_EQ(summary.most_fraction.n, 40u);
  EXPECT_EQ(summary.most_fraction.d, 2u);
  EXPECT_EQ(summary.most_any.any, 1);
}

}  // namespace
}  // namespace normscope

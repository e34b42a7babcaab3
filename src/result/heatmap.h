#pragma once
// What `heatmap` answers.
#include <string>
#include <vector>

#include "normscope/heatmap.h"
#include "normscope/provenance.h"
#include "result/describe.h"

namespace normscope {

inline std::span<const KeyInit> values_of(KeyInit) {
  static constexpr KeyInit all[] = {KeyInit::normal, KeyInit::uniform, KeyInit::xavier};
  return all;
}

struct HeatmapCellResult {
  HeatmapCell cell;

  static void describe(auto& visit, auto& self) {
    auto& cell = self.cell;
    visit("n", cell.n, "keys", {.low = 1});
    visit("d", cell.d, "their dimension", {.low = 1});
    visit("draws", cell.draws, "random sets of keys", {.low = 1});
    visit("fraction", cell.fraction, "mean over draws of the share of unselectable keys",
          {.low = 0, .high = 1});
    visit("fraction_sd", cell.fraction_sd, "standard deviation of a draw's share; null: of one draw",
          {.low = 0, .or_null = true});
    visit("fraction_se", cell.fraction_se, "standard error of fraction; null: of one draw",
          {.low = 0, .or_null = true});
    visit("any", cell.any, "share of draws with at least one unselectable key", {.low = 0, .high = 1});
    visit("any_se", cell.any_se, "standard error of any; null: of one draw", {.low = 0, .or_null = true});
    visit("tied", cell.tied, "mean share of tied keys", {.low = 0, .high = 1});
    visit("unselectable", cell.unselectable, "unselectable keys of all draws");
    visit("robust_unselectable", cell.robust_unselectable,
          "those that stay so whatever rounding did to the coordinates");
    visit("robust_fraction", cell.robust_fraction, "fraction, over those only", {.low = 0, .high = 1});
    visit("robust_any", cell.robust_any, "any, over those only", {.low = 0, .high = 1});
  }
};

struct HeatmapGridResult {
  std::string norm;
  std::vector<HeatmapCellResult> cells;

  static void describe(auto& visit, auto& self) {
    visit("norm", self.norm, "applied to the keys");
    visit("cells", self.cells, "every d with every n, n running faster", {.least = 1});
  }
};

struct HeatmapSettings {
  std::vector<std::size_t> n, d;
  std::size_t draws = 0;
  KeyInit init = KeyInit::normal;
  Precision precision = Precision::float32;
  std::string norm;
  std::vector<std::string> norms;
  double eps = 0;
  bool affine = false;

  static void describe(auto& visit, auto& self) {
    visit("n", self.n, "numbers of keys");
    visit("d", self.d, "dimensions");
    visit("draws", self.draws, "random draws per cell");
    visit("init", self.init, "the distribution of the coordinates");
    visit("precision", self.precision, "what the keys are held in");
    visit("norm", self.norm, "of the cells that stand outside grids");
    visit("norms", self.norms, "of the grids");
    visit("eps", self.eps, "of the norms");
    visit("affine", self.affine, "whether the norms have a gain and a bias");
  }
};

struct HeatmapResult {
  std::string command = "heatmap";
  Provenance made;
  double seconds = 0;
  KeyInit init = KeyInit::normal;
  Precision precision = Precision::float32;
  std::size_t draws = 0;
  std::vector<std::size_t> n, d;
  std::string verdict, norm;
  std::vector<HeatmapCellResult> cells;
  std::vector<HeatmapGridResult> grids;

  static void describe(auto& visit, auto& self) {
    visit("command", self.command, "the command this answers", {.always = "heatmap"});
    Provenance::describe(visit, self.made);
    visit("seconds", self.seconds, "time to compute all grids, without writing", {.low = 0});
    visit("init", self.init, "the distribution of the coordinates");
    visit("precision", self.precision, "what the keys are held in");
    visit("draws", self.draws, "random draws per cell", {.low = 1});
    visit("n", self.n, "numbers of keys, across", {.low = 1, .least = 1});
    visit("d", self.d, "dimensions, down", {.low = 1, .least = 1});
    visit("verdict", self.verdict, "what the grids say of the paper's claim, in a sentence");
    visit("norm", self.norm, "of cells: the one asked for, or none");
    visit("cells", self.cells, "the grid of that norm again", {.least = 1});
    visit("grids", self.grids, "one grid per norm, over the same keys", {.least = 1, .most = 2});
  }
};

// Unselectable random keys, n × d, under one or more norms (Fig. 1c and 1d of Brody et al. 2023).
struct HeatmapRun {
  struct Grid {
    std::string norm;
    Heatmap heatmap;
  };
  std::vector<Grid> grids;  // over the same n and d
  KeyInit init = KeyInit::normal;
  Precision precision = Precision::float32;
  std::size_t draws = 0;
  Provenance provenance;
};
// Sentences, with their numbers: what one grid holds, and the claim "after LayerNorm 0 everywhere".
std::string heatmap_sentence(const HeatmapRun& run, const HeatmapRun::Grid& grid);
std::string heatmap_verdict(const HeatmapRun& run);

}  // namespace normscope

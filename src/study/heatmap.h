#pragma once
// How often are random keys unselectable, over their number n and dimension d, with and without a norm
// (Fig. 1c and 1d of Brody et al.)?
#include <string>
#include <vector>

#include "result/heatmap.h"
#include "result/options.h"
#include "study/context.h"

namespace normscope {

struct HeatmapStudyOptions {
  std::string n = "3:60", d = "3:15";
  std::size_t draws = 100;
  std::string init = "normal", norm = {}, precision = "float32";

  static void describe(auto& visit, auto& self) {
    visit("n", self.n,
          "Numbers of keys, up to 1048575: 3:60, 3:60:5, 3,5,8 or 20; with --d at most 100000 cells",
          OptionFacts{.type = "RANGE"});
    visit("d", self.d, "Dimensions, up to 1048575, written like --n", OptionFacts{.type = "RANGE"});
    visit("draws", self.draws, "Random draws per cell, up to 16777216",
          OptionFacts{.low = 1, .high = HeatmapOptions::most_draws});
    visit("init", self.init, "normal N(0,1), uniform U(-1,1) or xavier U(±sqrt(6/(n+d)))",
          OptionFacts{.type = "NAME"});
    visit("norm", self.norm, "Norm of the second grid [layernorm]; if given, its cells are those of --json",
          OptionFacts{.type = "NAME"});
    visit("precision", self.precision, "What the keys are held in: float32 or float64",
          OptionFacts{.type = "NAME"});
  }
};

// The options as resolved: one grid per norm, in the order shown. Throws InputError on what cannot be.
HeatmapSettings plan_heatmap(const HeatmapStudyOptions& options);

struct HeatmapStudy {
  HeatmapSettings settings;
  HeatmapRun run;  // for figures and pages
  HeatmapResult result;
};
// Progress: draws of all grids.
HeatmapStudy study_heatmap(const HeatmapSettings& settings, const Context& context);
HeatmapStudy study_heatmap(const HeatmapStudyOptions& options, const Context& context);

}  // namespace normscope

#pragma once
// Where do attention layers with a norm lead tokens (Wu et al. 2024, Theorem 3, Fig. 1 and 5)?
#include <string>

#include "result/equilibria.h"
#include "result/options.h"
#include "study/context.h"

namespace normscope {

struct EquilibriaOptions {
  static constexpr std::size_t most_angles = 10'000'000;

  std::string w = "2";
  std::size_t tokens = 2, dim = 2, starts = 10'000, steps = 2'000, angles = 3'600;
  std::string trajectory = {};

  static void describe(auto& visit, auto& self) {
    visit("w", self.w,
          "Entry above the diagonal of the value matrix, above 1 and up to 1e6; up to 100 values",
          OptionFacts{.type = "LIST"});
    visit("tokens", self.tokens, "Tokens of the equilibria and final ranks, up to 60",
          OptionFacts{.low = 1, .high = EquilibriumLimits::most_size});
    visit("dim", self.dim, "Their dimensions, up to 60; equilibria of rank above 12 are counted, not built",
          OptionFacts{.low = 1, .high = EquilibriumLimits::most_size});
    visit("starts", self.starts, "Random starts, up to 1073741824",
          OptionFacts{.low = 1, .high = RankOptions::most_starts});
    visit("steps", self.steps, "Layers from each start, 2 to 16777216",
          OptionFacts{.low = 2, .high = RankOptions::most_layers});
    visit("angles", self.angles, "Angles of token 2 beside a fixed token 1, up to 10000000",
          OptionFacts{.low = 1, .high = most_angles});
    visit("trajectory", self.trajectory,
          "Two tokens to follow: x1,y1,x2,y2, or two angles in degrees; up to 20, with ';' between",
          OptionFacts{.type = "STARTS"});
  }
};

// The options as resolved. Throws InputError on what cannot be.
EquilibriaSettings plan_equilibria(const EquilibriaOptions& options);

struct EquilibriaStudy {
  EquilibriaSettings settings;
  EquilibriaRun run;  // for figures and pages
  EquilibriaResult result;
};
// Fates over both angles, for the figures of a page, which are not part of the result.
enum class FateMaps { no, yes };
// Progress: starts of all weights.
EquilibriaStudy study_equilibria(const EquilibriaSettings& settings, const Context& context,
                                 FateMaps maps = FateMaps::no);
EquilibriaStudy study_equilibria(const EquilibriaOptions& options, const Context& context);

}  // namespace normscope

#pragma once
// What attention masks are as graphs (Wu et al. 2024, §3).
#include <optional>
#include <string>
#include <vector>

#include "result/mask.h"
#include "result/options.h"
#include "study/context.h"

namespace normscope {

struct MaskOptions {
  std::vector<std::string> masks;
  std::optional<std::size_t> n = {};
  std::string tensor = {};

  static void describe(auto& visit, auto& self) {
    visit.input("SPEC", self.masks, "Masks: families by name, or files; several are compared in one table");
    visit("n", self.n, "Tokens, up to 16777216",
          OptionFacts{.low = 1, .high = Mask::most_tokens, .otherwise = "128, or those of the first file"});
    visit("tensor", self.tensor, "Which tensor of a file; needed if it holds several",
          OptionFacts{.type = "NAME"});
  }
};

struct MaskPlan {
  MaskSettings settings;
  std::vector<Mask> masks;
};
// Reads the files, makes the families. Files have their own number of tokens; without `n`, families take that
// of the first file. seed: of random families. Throws InputError on what cannot be.
MaskPlan plan_masks(const MaskOptions& options, std::uint64_t seed);

struct MaskStudy {
  MaskSettings settings;
  std::vector<NamedMask> masks;
  MasksResult result;
};
MaskStudy study_masks(MaskPlan plan, const Context& context);
MaskStudy study_masks(const MaskOptions& options, const Context& context);

}  // namespace normscope

#pragma once
// The options of `normscope collapse`, and the cases and settings they mean.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/common.h"
#include "cli/model_text.h"
#include "normscope/collapse.h"

namespace normscope::cli {

struct CollapseCall {
  std::vector<std::string> variants = {"san", "san+skip", "san+norm", "san+skip+norm", "full"};
  std::vector<std::string> masks, norms, placements, temperatures, dropouts = {"0"};
  std::string shape, tokens, dim, heads, feed_forward, layers, samples = "1";
  std::string init, query_key, value, output, start, precision = "float32", eps;
  bool weight_norm = false, qknorm = false, no_spectrum = false, fresh_weights = false;
  std::string model, text, ids, stride;
};

// A trained model and the text it reads.
struct CollapseModel {
  std::string name, family, mask;  // mask: its own
  ModelText text;
  struct Weights {
    std::string init;  // "pretrained", "random"
    std::shared_ptr<const ModelWeights> weights;
  };
  std::vector<Weights> inits;  // all cases pass through each
};

struct CollapsePlan {
  std::vector<CollapseCase> cases;
  std::vector<std::string> masks;  // as given
  CollapseSettings settings;
  CollapseCall call;  // with what was left open filled in
  std::optional<CollapseModel> model;

  // As many curves as there are cases, for each of the model's inits one after the other.
  const CollapseCase& case_of_curve(std::size_t curve) const { return cases[curve % cases.size()]; }
};

const char* name_of_placement(Placement placement);

// Throws InputError on what cannot be, and as open_checkpoint and read_model_text do.
CollapsePlan resolve_collapse(CollapseCall call, const Common& common);

}  // namespace normscope::cli

#pragma once
// What `collapse` answers.
#include <optional>
#include <string>
#include <vector>

#include "normscope/collapse.h"
#include "normscope/provenance.h"
#include "result/describe.h"

namespace normscope {

// The options as resolved.
struct CollapseUsed {
  std::size_t tokens = 0, dim = 0, heads = 0, feed_forward = 0, layers = 0, samples = 0;
  std::vector<std::string> variants, masks, norms, placements, temperatures, dropouts;
  std::string init, query_key, value, output;
  bool weight_norm = false, fresh_weights = false, qknorm = false;
  std::string start;
  Precision precision = Precision::float32;
  bool spectrum = true;
  double eps = 0, step_size = 1;
  std::optional<std::string> model, family, own_mask, text;
  std::optional<std::size_t> stride;

  static void describe(auto& visit, auto& self) {
    visit("tokens", self.tokens, "N, of every sample", {.low = 1});
    visit("dim", self.dim, "dimensions of a token", {.low = 1});
    visit("heads", self.heads, "of attention", {.low = 1});
    visit("feed_forward", self.feed_forward, "hidden width where a variant has that part; 0: none has");
    visit("layers", self.layers, "passed through", {.low = 1});
    visit("samples", self.samples, "starts, or windows of the text", {.low = 1});
    visit("variants", self.variants, "which parts of a block are on");
    visit("masks", self.masks, "as given");
    visit("norms", self.norms, "as given");
    visit("placements", self.placements, "of the norms");
    visit("temperatures", self.temperatures, "d_QK, as given; empty: the width of a head");
    visit("dropouts", self.dropouts, "of attention weights and outputs, as given");
    visit("init", self.init, "of all weights for which nothing else is said");
    visit("query_key", self.query_key, "query and key weights");
    visit("value", self.value, "value weights");
    visit("output", self.output, "output weights");
    visit("weight_norm", self.weight_norm, "the weights of every unit have norm 1");
    visit("fresh_weights", self.fresh_weights, "every sample has weights of its own");
    visit("qknorm", self.qknorm, "queries and keys have norm 1 in every head");
    visit("start", self.start, "where the tokens start");
    visit("precision", self.precision, "of the forward pass");
    visit("spectrum", self.spectrum, "singular values and ranks were computed");
    visit("eps", self.eps, "of the norms", {.low = 0});
    visit.when(self.step_size != 1, "step_size", self.step_size, "h: layer l is at the time l·h; left out: 1",
               {.low = 0, .high = 1});
    visit.when(self.model.has_value(), "model", self.model, "the trained model");
    visit.when(self.family.has_value(), "family", self.family, "of the model");
    visit.when(self.own_mask.has_value(), "own_mask", self.own_mask, "the mask the model was trained with");
    visit.when(self.text.has_value(), "text", self.text, "the file that the model read");
    visit.when(self.stride.has_value(), "stride", self.stride, "tokens from one window to the next",
               {.low = 1});
  }
};

struct CollapseRateResult {
  CollapseRate rate;

  static void describe(auto& visit, auto& self) {
    auto& rate = self.rate;
    visit("factor", rate.factor, "share of μ/‖X‖ left after each layer, geometric mean over samples");
    visit("low", rate.low, "lower end of its 95 % interval; null: one sample has none");
    visit("high", rate.high, "its upper end");
    visit("samples", rate.samples, "the factor of each sample", {.least = 1});
    visit("layers", rate.layers, "of the first sample that were fitted, down to rounding");
  }
};

// One measure over the layers.
struct MeasureByLayer {
  std::vector<double> mean, sd;

  static void describe(auto& visit, auto& self) {
    visit("mean", self.mean, "over samples, layer 0 (the start) first");
    visit("sd", self.sd, "standard deviation over samples; null: of one sample");
  }
};

struct AssumptionResult {
  Assumption assumption;

  static void describe(auto& visit, auto& self) {
    visit("name", self.assumption.name, "what the theorem asks");
    visit("met", self.assumption.met, "whether it was so");
    visit("detail", self.assumption.detail, "how far");
  }
};

struct TheoremResult {
  std::vector<AssumptionResult> assumptions;
  std::optional<std::vector<double>> bound;
  std::optional<std::size_t> violations;

  static void describe(auto& visit, auto& self) {
    visit("assumptions", self.assumptions, "what the theorem asks of the run", {.least = 1});
    visit("bound", self.bound,
          "per layer, mean over samples: of μ for theorem 1, of μ/‖X‖ for the others; null: it does not "
          "speak of this curve");
    visit("violations", self.violations,
          "layers and samples above what the bound allows, by more than rounding explains");
  }
};

struct CollapseTheoryResult {
  double epsilon = 0;
  std::optional<std::size_t> radius, diameter;
  TheoremResult theorem1, theorem2_diameter, theorem2_radius, corollary1;

  static void describe(auto& visit, auto& self) {
    visit("epsilon", self.epsilon, "least attention weight of all layers and samples", {.finite = true});
    visit("radius", self.radius, "of the mask; null: it has no centre", {.low = 1});
    visit("diameter", self.diameter, "of the mask; null: not strongly connected", {.low = 1});
    visit("theorem1", self.theorem1, "of Wu et al.: without norms");
    visit("theorem2_diameter", self.theorem2_diameter, "with norms; r is the diameter, which is provable");
    visit("theorem2_radius", self.theorem2_radius, "with norms; r is the radius, as one may read it");
    visit("corollary1", self.corollary1, "with norms, if no angle is obtuse at the start");
  }
};

struct CollapseCurveResult {
  std::string name, group, mask;
  bool skip = false;
  std::string norm, placement;
  std::size_t feed_forward = 0;
  double temperature = 0, dropout = 0;
  CollapseRateResult rate;
  Named<MeasureByLayer> measures;
  std::vector<std::vector<double>> singular_values;
  std::vector<double> least_weight, entropy;
  std::size_t empty_rows = 0, undefined_rows = 0;
  CollapseTheoryResult theory;

  static void describe(auto& visit, auto& self) {
    visit("name", self.name, "of the curve, as no other has it: group and mask");
    visit("group", self.group, "the panel it is shown in: the variant, and what else distinguishes panels");
    visit("mask", self.mask, "as given, or of the model");
    visit("skip", self.skip, "with skip connections");
    visit("norm", self.norm, "by name; none: without");
    visit("placement", self.placement, "of the norm: post, pre or sandwich");
    visit("feed_forward", self.feed_forward, "hidden width; 0: attention only");
    visit("temperature", self.temperature, "d_QK, of which scores are divided by the root", {.low = 0});
    visit("dropout", self.dropout, "of attention weights and outputs", {.low = 0, .high = 1});
    visit("rate", self.rate, "how fast the tokens become alike");
    visit("measures", self.measures, "of the tokens after every layer, by name",
          {.members = TokenMeasures::names()});
    visit("singular_values", self.singular_values,
          "of the tokens, per layer, mean over samples; empty: not asked for", {.low = 0});
    visit("least_weight", self.least_weight, "least attention weight of each layer", {.finite = true});
    visit("entropy", self.entropy, "mean entropy of the attention weights of each layer", {.finite = true});
    visit("empty_rows", self.empty_rows, "tokens that the mask lets attend to nothing");
    visit("undefined_rows", self.undefined_rows, "rows that a norm could not scale; they stay 0");
    visit("theory", self.theory, "what the theorems say of it");
  }
};

struct CollapseResult {
  std::string command = "collapse";
  Provenance made;
  double seconds = 0;
  CollapseUsed settings;
  std::string verdict;
  std::vector<CollapseCurveResult> curves;

  static void describe(auto& visit, auto& self) {
    visit("command", self.command, "the command this answers", {.always = "collapse"});
    Provenance::describe(visit, self.made);
    visit("seconds", self.seconds, "time to compute all curves, without reading and writing", {.low = 0});
    visit("settings", self.settings, "the options as resolved");
    visit("verdict", self.verdict, "which curve collapses fastest and which slowest, in a sentence");
    visit("curves", self.curves, "one per case; of a model, for each of its inits", {.least = 1});
  }
};

// What was measured of a curve; its block is for the study to tell.
CollapseCurveResult result_of(const CollapseCurve& curve);
std::string full_name(const std::string& group, const std::string& name);
// One sentence: which curve collapses fastest, which slowest.
std::string collapse_verdict(const std::vector<CollapseCurve>& curves);

}  // namespace normscope

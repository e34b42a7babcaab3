#pragma once
// How fast do tokens become alike with depth, under masks, norms, temperatures, weights?
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "normscope/collapse.h"
#include "normscope/tokenizer.h"
#include "result/collapse.h"
#include "result/options.h"
#include "study/context.h"
#include "study/model_text.h"

namespace normscope {

struct CollapseOptions {
  std::string text = {}, ids = {};  // what a model reads; who opens the model reads them too
  HeldText held = {};
  std::optional<std::size_t> stride = {};
  std::vector<std::string> variants = {}, masks = {}, norms = {}, placements = {}, temperatures = {},
                           dropouts = {};
  std::string shape = {};
  std::optional<std::size_t> tokens = {}, dim = {}, heads = {}, feed_forward = {}, layers = {};
  std::size_t samples = 1;
  std::string init = {}, query_key = {}, value = {}, output = {}, start = {};
  std::optional<double> eps = {};
  double step_size = 1;
  std::string precision = "float32";
  bool weight_norm = false, qknorm = false, fresh_weights = false, no_spectrum = false;

  static void describe(auto& visit, auto& self) {
    visit("text", self.text, "The text a model reads, windows of --tokens one after the other",
          OptionFacts{.type = "FILE"});
    visit("ids", self.ids, "Token ids in its place: numbers in a text file, or an .npy",
          OptionFacts{.type = "FILE"});
    visit("stride", self.stride, "A window every so many tokens",
          OptionFacts{.low = 1, .high = Mask::most_tokens, .otherwise = "one after the other"});
    visit("variant", self.variants, "san, san+skip, san+norm, san+skip+norm, full",
          OptionFacts{.otherwise = "all five"});
    visit("mask", self.masks, "Masks, by name or file, separated by spaces",
          OptionFacts{.type = "SPEC…", .otherwise = "full causal window:1 onesided:1; a model's own first"});
    visit("norm", self.norms, "Norms, where the variant has one",
          OptionFacts{.otherwise = "layernorm; a model's own, which keeps its gain and bias"});
    visit("placement", self.placements, "post, pre, sandwich", OptionFacts{.otherwise = "post; the model's"});
    visit("temperature", self.temperatures, "d_QK, of which scores are divided by the root",
          OptionFacts{.type = "D…", .otherwise = "dim/heads; the model's"});
    visit("dropout", self.dropouts, "Dropout of attention weights and outputs; 0 is eval mode",
          OptionFacts{.type = "P…", .otherwise = "0"});
    visit("shape", self.shape, "bert-base: 768 dimensions, 12 heads, BERT's weights and embeddings",
          OptionFacts{.type = "NAME"});
    visit("tokens", self.tokens, "Tokens",
          OptionFacts{.low = 1,
                      .high = 1u << 20,
                      .otherwise = "128, or those of a mask file, of the start or of the text"});
    visit("dim", self.dim, "Dimensions",
          OptionFacts{.type = "D", .low = 1, .high = 1u << 16, .otherwise = "64"});
    visit("heads", self.heads, "Heads",
          OptionFacts{.type = "H", .low = 1, .high = 1u << 16, .otherwise = "1"});
    visit("feed-forward", self.feed_forward, "Hidden width of the variant full",
          OptionFacts{.type = "F", .low = 1, .high = 1u << 18, .otherwise = "4 x dim"});
    visit("layers", self.layers, "Layers",
          OptionFacts{.type = "L", .low = 1, .high = 10'000, .otherwise = "12; all of the model"});
    visit("samples", self.samples, "Starts (windows of the text), all through the same weights",
          OptionFacts{.type = "S", .low = 1, .high = 1'000'000});
    visit("init", self.init,
          "All weights: bert, gaussian, gaussian:S, xavier, orthogonal, identity [gaussian]; of a model: "
          "pretrained, random (its shape before training), both",
          OptionFacts{.type = "INIT", .otherwise = "pretrained"});
    visit("query-key", self.query_key, "Query and key weights; zero makes attention uniform",
          OptionFacts{.type = "INIT", .otherwise = "--init"});
    visit("value", self.value, "Value weights: also jordan:W, FILE, FILE:TENSOR, or orthogonal:FILE",
          OptionFacts{.type = "INIT", .otherwise = "--init"});
    visit("output", self.output, "Output weights",
          OptionFacts{.type = "INIT", .otherwise = "--init; identity with one head"});
    visit("start", self.start,
          "gaussian, sphere, bert (random embeddings of Zipf words), text:FILE (of its words), or FILE",
          OptionFacts{.type = "NAME", .otherwise = "gaussian"});
    visit("eps", self.eps, "Of the norms",
          OptionFacts{.type = "E", .low = 0, .otherwise = "0; bert-base 1e-12; the model's"});
    visit(
        "step-size", self.step_size,
        "Of every layer, above 0: X + h·f(X), without skip (1 − h)X + h·f(X); 1 is a whole layer, and towards 0 time is continuous",
        OptionFacts{.type = "H", .low = 0, .high = 1});
    visit("precision", self.precision, "float32 or float64", OptionFacts{.type = "NAME"});
    visit("weight-norm", self.weight_norm, "Weight normalization: the weights of every unit have norm 1");
    visit("qknorm", self.qknorm, "Queries and keys scaled to norm 1 in every head");
    visit("fresh-weights", self.fresh_weights, "Every sample has weights of its own");
    visit("no-spectrum", self.no_spectrum, "Without singular values and ranks, which take time");
  }
};

// A trained model and the text it reads, as opened and read by the caller.
struct GivenModel {
  std::string name, source;  // of the model and of the text, for people
  std::shared_ptr<const ModelWeights> weights;
  std::vector<Token> tokens;
};

// That of a name as of open_checkpoint, and the text or ids of the options; none: no name. Throws InputError as these do,
// and on options that do not go with a model.
std::optional<GivenModel> read_collapse_model(const std::string& name, const CollapseOptions& options);

// The same, planned.
struct CollapseModel {
  std::string name, source, family, mask;  // mask: its own
  std::size_t stride = 0;
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
  CollapseOptions options;  // with what was left open filled in
  std::optional<CollapseModel> model;

  // As many curves as there are cases, for each of the model's inits one after the other.
  const CollapseCase& case_of_curve(std::size_t curve) const { return cases[curve % cases.size()]; }
};

// Throws InputError if an option says what a model says itself; to be asked before one is opened.
void require_goes_with_model(const CollapseOptions& options);
// Reads the files of weights, starts and masks. Throws InputError on what cannot be.
CollapsePlan plan_collapse(CollapseOptions options, const std::optional<GivenModel>& model,
                           std::uint64_t seed);
// Its options, for config.json.
CollapseUsed used_by(const CollapsePlan& plan);

struct CollapseStudy {
  CollapsePlan plan;
  std::vector<CollapseCurve> curves;  // for figures, tables and pages
  CollapseResult result;
};
// Progress: layers of all cases, samples and inits.
CollapseStudy study_collapse(CollapsePlan plan, const Context& context);
CollapseStudy study_collapse(const CollapseOptions& options, const Context& context);

}  // namespace normscope

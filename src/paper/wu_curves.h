#pragma once
// What the figures of collapse of Wu, Ajorlou, Wang, Jegelka, Jadbabaie 2024 share: runs at BERT-base shape
// and random init, in eval mode and with dropout, and of pretrained models. The paper has bert-base-uncased
// (Fig. 2, 3, 8), gpt2, t5-base and albert-base-v2 beside it (4), and BERT and ALBERT (9); any model of a
// like kind stands in for them, and it is said which.
#include <array>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "normscope/collapse.h"
#include "normscope/statistics.h"
#include "paper/part.h"
#include "report/collapse_page.h"

namespace normscope {

inline constexpr std::array<const char*, 4> kMasks = {"full", "causal", "window:1", "onesided:1"};
inline constexpr std::array<const char*, 2> kGlobalMasks = {"full", "causal"},
                                            kLocalMasks = {"window:1", "onesided:1"};
using OfMask = std::function<std::vector<double>(const char* mask)>;  // a value per sample
using TextOfMask = std::function<std::string(const char* mask)>;
// "full …, causal …, window:1 …, onesided:1 …"
std::string over_masks(const TextOfMask& text);
// "Radii at 128 tokens: full 1, …."
std::string radii_text(std::size_t tokens);

using Curves = std::vector<CollapseCurve>;
const CollapseCurve& find(const Curves& curves, std::string_view group, std::string_view name);
// μ/‖X‖ of every sample.
std::vector<double> relative_at(const CollapseCurve& curve, std::size_t layer);
// The last layer at which there are tokens: weights that shrink them take them below float32's range in the
// end.
std::size_t last_layer(const CollapseCurve& curve);
std::vector<double> relative_at_end(const CollapseCurve& curve);
// Of μ/‖X‖ at the start, what is left at the end: more than a hundredth, or less. what: whose.
Answer stays_apart(const Evidence& evidence, const CollapseCurve& curve, const std::string& what);
Answer collapsed(const Evidence& evidence, const CollapseCurve& curve, const std::string& what);
// More of it under each local than under each global mask, sample by sample.
Answer more_under_local(const Evidence& evidence, const OfMask& left, const std::string& what);
// The share kept per layer, by the curve's fit.
RatioInterval rate_of(const Evidence& evidence, const CollapseCurve& curve);

// What sharp attention leaves over what flat attention leaves, μ/‖X‖ at d_QK = 1/64 over that at 64, sample
// by sample.
struct Gains {
  std::function<const CollapseCurve&(const char* mask, const char* temperature)> curve;
  const Evidence& evidence;
  std::string whose = {};  // before what is noted

  static constexpr std::array<double, 3> temperatures = {1.0 / 64, 1.0, 64.0};
  static constexpr std::array<const char*, 3> labels = {"d_QK = 1/64", "d_QK = 1", "d_QK = 64"};

  static constexpr const char* why = "Scores are divided by √d_QK, so that a small one sharpens attention.";
  static constexpr const char* where = "The effect is greatest under global masks and in early layers";
  static constexpr const char* published_where =
      "complete and causal gain more than windows; layers 1 to 3 more than later ones";

  std::vector<double> of(const char* mask, std::size_t layer) const;
  RatioInterval mean(const char* mask, std::size_t layer) const;
  std::string text(std::size_t layer) const;  // of all masks
  // A gain of the first layer under a mask.
  Answer gains(const char* mask) const;
  // The global mask that gains most in the first layer against both local ones.
  Answer most_under_global() const;
  // The first layer gains more than is left of it after another, by a factor.
  Answer fades(const char* mask, std::size_t layer, const Threshold& factor) const;
};

// Unit tokens without an obtuse angle: rows of |N(0, 1)|, one window after the other.
TokenStart acute_start(std::size_t samples, std::size_t tokens, std::size_t dimensions, std::uint64_t seed);

// At random init: BERT-base shape, 768 dimensions, 12 heads, 128 tokens, N(0, 0.02²).
inline constexpr std::size_t kTokens = 128;
inline constexpr double kDropout = 0.1;
inline constexpr const char* kRandomInit =
    "Random init: N(0, 0.02²) weights, LayerNorm'd random embeddings of Zipf-distributed words in place of "
    "Wikipedia text.";
BlockSpec bert_base(double dropout);
CollapseSettings bert_settings(std::size_t layers, std::size_t samples, std::uint64_t seed);
// "san, eval", "san, dropout 0.1"
std::string in_mode(std::string_view variant, double dropout);
std::string samples_note(const Curves& curves);
std::string samples_count(const Curves& curves);
const CollapseQuantity& quantity_of(double TokenMeasures::*measure);
// A figure of one measure.
Figure curve_figure(const Curves& curves, double TokenMeasures::*measure, const std::string& name,
                    const std::string& title, bool log_layers, const std::string& caption);

// Pretrained.
using Models = std::span<const PretrainedModel>;
inline constexpr const char* kNoModel =
    "not run: no pretrained model is on this machine (normscope data get minilm brings one)";
Models models_of(const Evidence& evidence);
std::string model_samples_note(const Evidence& evidence);
const ModelSpec& spec_of(const PretrainedModel& model);
std::size_t tokens_of(const PretrainedModel& model);
const char* own_mask_name(const PretrainedModel& model);
// Cases of every model, one model after the other; their groups get its name before them.
using CasesOfModel = std::function<std::vector<CollapseCase>(const PretrainedModel&)>;
Curves run_models(const Evidence& evidence, const char* label, const CasesOfModel& cases_of,
                  Spectrum spectrum = Spectrum::no, std::size_t most_samples = ~std::size_t{0});
const CollapseCurve& find(const Curves& curves, const PretrainedModel& model, std::string_view group,
                          std::string_view name);
// The model of the paper that one of this family is like: "bert-base-uncased", "gpt2", …; empty: none.
std::string published_model(std::string_view family);
std::string stands_in(const PretrainedModel& model);
std::string caption(Models models);
// One figure per model, so that its panels stand together.
void add_figures(Findings& found, Models models, const Curves& curves, double TokenMeasures::*measure,
                 const std::string& name, const std::string& title);

using OfModel = std::function<Answer(const Evidence&, const PretrainedModel&)>;
using OfModelAndMask = std::function<Answer(const Evidence&, const PretrainedModel&, const char* mask)>;
// Those that a claim is about and holds for, by name.
std::string models_where(const Evidence& evidence, const OfModel& holds,
                         bool (*about)(const PretrainedModel&));
inline bool any_model(const PretrainedModel&) {
  return true;
}
// Of the paper's models, those that are not looked at, by name.
Text absent(std::vector<std::string> published);
// A claim about pretrained models: holds for all, for none, or for some, which a condition names; open if of one
// it cannot be told. Of models that stand in for the paper's it is told as that.
Claim by_model(Claim claim, const OfModel& holds, bool (*about)(const PretrainedModel&) = any_model);
// The same under all masks; those that hold in all models are a condition, too.
Claim by_model_and_mask(Claim claim, const OfModelAndMask& holds);
// "minilm: …; stories15m: …"
Text over_models(std::function<std::string(const Evidence&, const PretrainedModel&)> text);

}  // namespace normscope

#pragma once
// How fast do tokens collapse with depth? Tokens X (N × d) pass through layer after layer of a block whose
// parts are switched on and off, and every layer is measured (Wu et al. 2024; Dong et al. 2021).
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "normscope/block.h"
#include "normscope/executor.h"
#include "normscope/mask.h"
#include "normscope/model.h"
#include "normscope/precision.h"
#include "normscope/statistics.h"

namespace normscope {

// Numbers of one set of tokens. Cosines are over pairs of different tokens, and those with a zero token are
// 0; with fewer than two tokens cosines are NaN. All in double.
struct TokenMeasures {
  double mu = 0;        // ‖X − 11ᵀX/N‖_F: distance from all tokens equal; not free of scale
  double norm = 0;      // ‖X‖_F
  double relative = 0;  // μ/‖X‖_F, in [0, 1]; 0 for X = 0
  double residual = 0;  // Dong et al.: √(‖R‖₁‖R‖_∞)/√(‖X‖₁‖X‖_∞), R = X − 11ᵀX/N
  double min_cosine = 0;  // φ
  double mean_cosine = 0, mean_abs_cosine = 0;
  double difference_cosine =
      0;  // mean |cos| of differences x₂ₘ − x₂ₘ₊₁: unlike cosines, the same if all tokens shift
  double near_share = 0;  // pairs with cosine > 0.999
  double clusters = 0;    // sets of tokens joined by such pairs
  // From the singular values σ₁ ≥ σ₂ ≥ …; NaN if they were not asked for.
  double rank = 0;         // of σ > σ₁·max(N, d)·(machine epsilon of the tokens' type), PyTorch's rule
  double rank_share = 0;   // rank / min(N, d)
  double stable_rank = 0;  // ‖X‖_F²/σ₁²
  double effective_rank = 0;  // exp of the entropy of σ/Σσ (Roy & Vetterli 2007)
  double least_singular = 0;

  // Names and values in one order, for tables and files.
  static constexpr std::size_t count = 15;
  static std::span<const std::string_view, count> names();
  std::array<double, count> values() const;
};

enum class Spectrum { no, yes };

// singular_values, if not null, receives the min(N, d) singular values, falling.
template <class T>
TokenMeasures measure_tokens(std::type_identity_t<MatrixView<const T>> x, Spectrum spectrum,
                             std::vector<double>* singular_values = nullptr);

// How a matrix of weights is drawn: `bert` = gaussian:0.02; `gaussian:s` (N(0, s²); s = 1/√(rows) if left
// out); `xavier`; `orthogonal` (Haar; rows or columns orthonormal if not square), `identity`, `zero`,
// `jordan:w` (1 on the diagonal, w above it), or given.
struct MatrixInit {
  enum class Kind { gaussian, xavier, orthogonal, identity, zero, jordan, given };
  Kind kind = Kind::gaussian;
  double number = 0.02;  // s or w; s = 0: 1/√(rows)
  Matrix<double> given;

  bool operator==(const MatrixInit& other) const { return kind == other.kind && number == other.number; }
};
MatrixInit parse_matrix_init(std::string_view name);
std::string name_of(const MatrixInit& init);
// ‖WᵀW − I‖_max ≤ 1e-6.
bool is_orthogonal(MatrixView<const double> w);

struct WeightInit {
  MatrixInit query_key, value, output, feed_forward;  // biases are 0, gains 1
  bool normalize = false;  // weight normalization: the weights of every output unit have norm 1
};

// Where the tokens start.
//   gaussian  N(0, 1)      sphere  uniform, norm 1
//   bert      LayerNorm(word + position + type), each N(0, 0.02²), words of a sample drawn from Zipf's law
//   over 30522:
//             a random-init BERT on text, with dropout where the block has it
//   text      the same with the words of a text, windows of N one after the other
//   given     rows of `tokens`, windows of N one after the other
struct TokenStart {
  enum class Kind { gaussian, sphere, bert, given, text };
  Kind kind = Kind::gaussian;
  Matrix<double> given;
  std::vector<std::size_t> words;  // of the text; equal words have equal numbers
};
TokenStart parse_token_start(std::string_view name);
// A word is a run of letters and digits (any byte above 127 counts as a letter), upper and lower case alike;
// any other visible character is a word of its own. Words are numbered as they first occur.
TokenStart text_start(std::string_view text);
const char* name_of(TokenStart::Kind kind);
bool embeds_words(const TokenStart& start);  // bert and text, whose embeddings have dropout too

// One curve: a block and a mask.
struct CollapseCase {
  std::string group, name;  // "san+norm", "window:1": the panel and the curve it is shown in
  BlockSpec block;
  Mask mask;
};

struct CollapseSettings {
  std::size_t tokens = 128, layers = 12, samples = 1;
  WeightInit weights;
  bool fresh_weights = false;  // every sample has weights of its own; otherwise all pass through one model
  TokenStart start;
  // A model in place of weights drawn and of `start`: layer l of the run has the weights of its layer l, and
  // sample s starts from h₀ of texts[s], which has as many ids as the run has tokens. Norms with an affine
  // part have the model's gains and biases. What follows the last layer, a final norm and the head, is left
  // out.
  std::shared_ptr<const ModelWeights> model;
  std::vector<std::vector<std::uint32_t>> texts;
  Precision precision = Precision::float32;
  Spectrum spectrum = Spectrum::yes;
  bool theory = true;  // bounds, where a theorem speaks of the case
  std::uint64_t seed = 0;
};

// Straight line through log(relative) against the layer, down to where rounding takes over: the share of the
// distance left after each layer, factor = exp(slope), the geometric mean over samples. Its 95 % interval is
// Student's of the samples' slopes; one sample has none, and low and high are NaN. It is about other starts
// and, unless every sample has weights of its own, only this draw of the weights.
struct CollapseRate {
  double factor = 1, low = 1, high = 1;
  std::vector<double> samples;  // the factor of each
  std::size_t layers = 0;       // of the first sample that were fitted

  RatioInterval interval() const { return {samples.size(), 0, {factor, factor}, low, high}; }
};

// What a theorem asks of a run, and whether it was so.
struct Assumption {
  std::string name;  // "self-loops"
  bool met = false;
  std::string detail;
};

// Bounds of Wu et al. with explicit constants, from the ε, radius and diameter of the run; empty where none
// speaks of it. T is the first layer without an obtuse angle, from which on φ never falls.
//   Thm 1      μ(t) ≤ (√N/2)(1 − ε^r)^⌊t/r⌋ ‖osc(X₀W₁⋯W_t)‖₂, osc: greatest minus least entry of each column
//   Cor 1      1 − φ(t) ≤ (1 − ε^{2r})^⌊t/r⌋ (1 − φ(0)), so μ/‖X‖_F ≤ √((N−1)/N·(1 − φ(t)))
//   Thm 2      1 − φ(t) ≤ (1 − Nε^{2r})^⌊(t−T)/r⌋ (1 − φ(T)); before T only μ/‖X‖_F ≤ 1. With r the diameter
//              this is provable, with r the radius it fails on a star: docs/theory.md. Both are computed.
struct CollapseTheory {
  std::vector<Assumption> theorem1, theorem2, corollary1;
  double epsilon = 0;                    // least attention weight of all layers and samples
  std::size_t radius = 0, diameter = 0;  // 0: no centre; not strongly connected
  // Per layer 0 … layers, mean over samples, in units of μ (theorem 1) and of μ/‖X‖_F (the others).
  std::vector<double> bound1, bound2_diameter, bound2_radius, bound_corollary;
  // Layers and samples where μ (theorem 1) or 1 − φ (the others) was above what the bound allows, by more
  // than rounding explains.
  std::size_t violations1 = 0, violations2_diameter = 0, violations2_radius = 0, violations_corollary = 0;
};

struct CollapseCurve {
  std::string group, name;
  std::vector<std::vector<TokenMeasures>> layers;    // layers + 1 (0: the start) × samples
  std::vector<std::vector<double>> singular_values;  // layers + 1, mean over samples; empty if not asked for
  std::vector<std::vector<double>> last_singular_values;  // after the last layer, of every sample; likewise
  std::vector<double> least_weight, entropy;              // per layer 1 …: ε of the layer, mean entropy
  std::size_t empty_rows = 0;                             // of the mask
  NormCounts norm;                                        // over all layers and samples
  CollapseRate rate;
  CollapseTheory theory;

  // Over samples, of every measure, in the order of TokenMeasures::names; sd is NaN for one sample.
  struct Summary {
    std::array<double, TokenMeasures::count> mean{}, sd{};
  };
  Summary summary(std::size_t layer) const;
  std::vector<double> of(std::size_t layer, double TokenMeasures::*measure) const;
  double mean(std::size_t layer, double TokenMeasures::*measure) const;
  double sd(std::size_t layer, double TokenMeasures::*measure) const;  // NaN for one sample
  // σᵢ/σ₁ after the last layer, i from 0, of every sample; 0 where all are 0.
  std::vector<double> singular_share(std::size_t i) const;
};

// All cases over the same weights and starts, layer by layer: weights are drawn (or read from the model) when
// their layer comes, and never all held. The same bytes for any number of threads. progress is called with
// (case, sample, layer)s done and total. Throws InputError on sizes that are 0, a mask of another size, what
// require_valid refuses, and a model that has fewer layers, another shape or no text for each sample.
std::vector<CollapseCurve> collapse(
    const std::vector<CollapseCase>& cases, const CollapseSettings& settings, const Executor& executor,
    const std::function<void(std::size_t done, std::size_t total)>& progress = {});

// The blocks of Wu et al. by name: `san`, `san+skip`, `san+norm`, `san+skip+norm`, `full`.
std::span<const std::string_view> variant_names();
// Sets skip, norm and feed-forward of `block` (whose norm and feed_forward are those to use where on); all
// else, such as rotation, grouped keys and offsets by distance, stays.
BlockSpec variant_of(std::string_view name, BlockSpec block);

// The weights of one layer (streams of the seed); also what `collapse` uses.
template <class T>
BlockWeights<T> draw_weights(const WeightInit& init, std::size_t width, std::size_t feed_forward,
                             std::size_t layer, std::uint64_t seed, const Executor& executor);
// Tokens × width of one sample.
Matrix<double> draw_tokens(const TokenStart& start, std::size_t tokens, std::size_t width, std::size_t sample,
                           std::uint64_t seed);

}  // namespace normscope

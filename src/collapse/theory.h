#pragma once
// The bounds of Wu et al. beside a run.
#include "normscope/collapse.h"

namespace normscope {

// What is known of a case before it runs.
struct CaseFacts {
  MaskProperties mask;
  bool theorem1 = false, corollary1 = false, theorem2 = false;  // whether its bound is computed
};
CaseFacts facts_of(const CollapseCase& each, const CollapseSettings& settings);

// Greatest minus least entry of each column, as one number: ‖osc(X)‖₂.
template <class T>
double oscillation(MatrixView<const T> x);

// Whether all rows have the same norm, up to rounding, and none is 0.
template <class T>
bool equal_norms(MatrixView<const T> x);

// One sample of one case: measures and ε per layer, and ‖osc(X₀W₁⋯W_t)‖₂ if theorem 1 speaks of it.
struct SampleTrace {
  std::vector<double> least_weight;  // layers
  std::vector<double> oscillation;   // layers + 1, or empty
  bool equal_norms = false;          // of the tokens at the start
};

CollapseTheory theory_of(const CollapseCase& each, const CollapseSettings& settings, const CaseFacts& facts,
                         const CollapseCurve& curve, std::span<const SampleTrace> traces);

}  // namespace normscope

#pragma once
// Curves of collapse as figures, tables and a page.
#include <vector>

#include "report/curves.h"
#include "report/run_view.h"
#include "result/collapse.h"

namespace normscope {

// A quantity to draw over the layers.
struct CollapseQuantity {
  double TokenMeasures::*measure;
  const char* name;  // of files
  const char* symbol;
  const char* title;
  bool log = false;
};
std::span<const CollapseQuantity> collapse_quantities();

// One panel per group, one curve per name; mean ± sd over samples, log-log if asked for. Bounds that speak of
// the quantity are curves of their own, "bound, name".
CurveFigure collapse_figure(const std::vector<CollapseCurve>& curves, const CollapseQuantity& quantity,
                            bool log_layers);
CurveFigure collapse_figure(const std::vector<CollapseCurveResult>& curves, const CollapseQuantity& quantity,
                            bool log_layers);
// σᵢ/σ₁ over the layers: first, second, middle and last.
CurveFigure singular_value_figure(const std::vector<CollapseCurve>& curves);

// A header and a row per curve.
std::vector<std::vector<std::string>> collapse_table(const std::vector<CollapseCurve>& curves);
// What each theorem asks, met or not, and whether its bound held: a header, and rows for every curve; or only those that
// speak of the curve, which lack nothing.
enum class Theory { all, that_applies };
std::vector<std::vector<std::string>> theory_table(const std::vector<CollapseCurveResult>& curves,
                                                   Theory shown = Theory::all);
// What the two readings of theorem 2 mean; empty if it speaks of no curve.
std::string readings_note(const std::vector<CollapseCurve>& curves);
// group,name,layer,measure,mean,sd; no sd of one sample
std::string collapse_csv(const std::vector<CollapseCurve>& curves);

// From results.json alone. Throws InputError if that does not hold together.
RunView collapse_view(const CollapseResult& result, const Provenance& made);

}  // namespace normscope

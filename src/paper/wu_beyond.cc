// Beyond Wu, Ajorlou, Wang, Jegelka, Jadbabaie 2024: other norms, placements and weights; masks of equal
// sparsity.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "core/decompose.h"
#include "core/number_text.h"
#include "paper/wu_curves.h"

namespace normscope {
namespace {

// Layer at which μ/‖X‖ first falls below a tenth of its start; one after the last if never.
double layers_to_tenth(const CollapseCurve& curve) {
  for (std::size_t layer = 0; layer < curve.layers.size(); ++layer) {
    if (curve.mean(layer, &TokenMeasures::relative) < 0.1 * curve.mean(0, &TokenMeasures::relative))
      return static_cast<double>(layer);
  }
  return static_cast<double>(curve.layers.size());
}

// Nine edges per token, or as near to it as the family allows.
constexpr std::array kEqualMasks = {"window:4",          "onesided:8",   "dilated:4,4",
                                    "global:2+window:2", "random:0.063", "block:9"};
constexpr const char* kWeightNorm = "layernorm + weight norm";

std::vector<CollapseCase> cases_of(const Evidence& evidence) {
  BlockSpec base = bert_base(0);
  base.width = 192;
  base.heads = 3;
  base.feed_forward = 0;
  std::vector<CollapseCase> cases;
  const auto add = [&](const std::string& group, const std::string& name, BlockSpec block, const char* mask) {
    block.skip = false;
    cases.push_back({group, name, block, parse_mask(mask, kTokens, evidence.plan.seed)});
  };
  struct Variant {
    const char* name;
    const char* norm;
    Placement placement;
    bool qknorm;
  };
  constexpr Variant variants[] = {{"none", "none", Placement::post, false},
                                  {"layernorm", "layernorm", Placement::post, false},
                                  {"rmsnorm", "rmsnorm", Placement::post, false},
                                  {"center", "center", Placement::post, false},
                                  {"dyt", "dyt", Placement::post, false},
                                  {"layernorm, pre", "layernorm", Placement::pre, false},
                                  {"layernorm, sandwich", "layernorm", Placement::sandwich, false},
                                  {"layernorm + qknorm", "layernorm", Placement::post, true}};
  for (const char* mask : {"causal", "window:4"}) {
    for (const Variant& variant : variants) {
      BlockSpec block = base;
      block.norm = parse_norm(variant.norm);
      block.placement = variant.placement;
      block.normalize_query_key = variant.qknorm;
      add(fmt::format("norms under {}", mask), variant.name, block, mask);
    }
  }
  for (const char* norm : {"none", "layernorm"}) {
    for (const char* mask : kEqualMasks) {
      BlockSpec block = base;
      block.norm = parse_norm(norm);
      add(fmt::format("masks of equal sparsity, norm {}", norm), mask, block, mask);
    }
  }
  return cases;
}

Curves run(const Evidence& evidence) {
  const std::vector<CollapseCase> cases = cases_of(evidence);
  CollapseSettings settings = bert_settings(24, evidence.plan.samples, evidence.plan.seed);
  const std::string init = "gaussian";
  settings.weights.query_key = settings.weights.value = settings.weights.output =
      settings.weights.feed_forward = parse_matrix_init(init);
  Curves curves = evidence.collapse("Beyond", cases, settings);
  // Weight normalization changes the weights, so it is a run of its own.
  std::vector<CollapseCase> normalized;
  for (const CollapseCase& each : cases) {
    if (each.name == "layernorm") normalized.push_back(each);
  }
  for (CollapseCase& each : normalized) each.name = kWeightNorm;
  settings.weights.normalize = true;
  for (CollapseCurve& curve : evidence.collapse("Beyond", normalized, settings))
    curves.push_back(std::move(curve));
  return curves;
}

// Those of equal sparsity without norm, the one with most left at the end first.
std::vector<const CollapseCurve*> by_end(const Evidence& evidence) {
  std::vector<const CollapseCurve*> order;
  order.reserve(kEqualMasks.size());
  for (const char* mask : kEqualMasks)
    order.push_back(&find(once<run>(evidence), "masks of equal sparsity, norm none", mask));
  std::stable_sort(order.begin(), order.end(), [](const CollapseCurve* a, const CollapseCurve* b) {
    return a->mean(24, &TokenMeasures::relative) > b->mean(24, &TokenMeasures::relative);
  });
  return order;
}
std::string at_24(const Evidence& evidence, const CollapseCurve& curve) {
  return fmt::format("{} {}", curve.name,
                     with_interval(mean_interval(relative_at(curve, 24), level_of(evidence))));
}
// The mask with most left, and those that these samples cannot tell from it.
std::string best(const Evidence& evidence) {
  const auto order = by_end(evidence);
  std::string names = order.front()->name;
  for (auto other = order.begin() + 1; other != order.end(); ++other) {
    if (above(mean_difference(relative_at(**other, 24), relative_at(*order.front(), 24), level_of(evidence)),
              0) != true)
      names += " or " + (*other)->name;
  }
  return names;
}

// What may explain how much a mask leaves: a number per mask of kEqualMasks, none where it has none.
struct Explanation {
  const char* name;
  std::vector<std::optional<double>> values;
};
// 1 − |λ₂| of attention that is uniform over what a mask allows: how fast it mixes by itself.
double spectral_gap(const Mask& mask) {
  const auto n = static_cast<Eigen::Index>(mask.n());
  Eigen::MatrixXd attention = Eigen::MatrixXd::Zero(n, n);
  for (Eigen::Index i = 0; i < n; ++i) {
    for (const Mask::Run& run : mask.row(static_cast<std::size_t>(i)))
      attention.row(i).segment(run.first, run.last - run.first).setOnes();
    if (const double sum = attention.row(i).sum(); sum > 0) attention.row(i) /= sum;
  }
  Eigen::VectorXd moduli = eigenvalue_moduli(attention);
  std::sort(moduli.begin(), moduli.end(), std::greater());
  return n > 1 ? 1 - moduli[1] : 1;
}
std::vector<Explanation> explanations(const Evidence& evidence) {
  Explanation radius{"the radius", {}}, gap{"the spectral gap of uniform attention", {}},
      edges{"edges per token", {}};
  for (const char* name : kEqualMasks) {
    const Mask mask = parse_mask(name, kTokens, evidence.plan.seed);
    const MaskProperties properties = mask_properties(mask);
    radius.values.push_back(properties.radius ? std::optional<double>(*properties.radius) : std::nullopt);
    gap.values.emplace_back(spectral_gap(mask));
    edges.values.emplace_back(static_cast<double>(properties.edges) / static_cast<double>(kTokens));
  }
  return {radius, gap, edges};
}
// "radius: −0.90 (5 masks), …": rank correlations with what is left at layer 24.
std::string correlations(const Evidence& evidence) {
  std::string text;
  for (const Explanation& each : explanations(evidence)) {
    std::vector<double> of_mask, left;
    for (std::size_t m = 0; m < kEqualMasks.size(); ++m) {
      if (!each.values[m]) continue;
      of_mask.push_back(*each.values[m]);
      left.push_back(find(once<run>(evidence), "masks of equal sparsity, norm none", kEqualMasks[m])
                         .mean(24, &TokenMeasures::relative));
    }
    append(text, fmt::format("with {} {:.2f} ({})", each.name, rank_correlation(of_mask, left),
                             counted(of_mask.size(), "mask")));
  }
  return text;
}
// Where the masks without a centre stand: they have none that all tokens draw towards.
std::string without_centre(const Evidence& evidence) {
  const auto order = by_end(evidence);
  std::string text;
  for (std::size_t place = 0; place < order.size(); ++place) {
    if (mask_properties(parse_mask(order[place]->name, kTokens, evidence.plan.seed)).centres.empty())
      append(text, fmt::format("{} in place {}", order[place]->name, place + 1));
  }
  return text.empty() ? "All masks have a centre." : "Without a centre: " + text + ".";
}
std::string ranking(const Evidence& evidence) {
  std::string text;
  for (const CollapseCurve* curve : by_end(evidence)) append(text, at_24(evidence, *curve));
  return text;
}

Claim which_mask() {
  return {
      .where = "beyond Wu et al.",
      .sentence = "Which mask slows collapse most at equal sparsity (about nine edges per token)?",
      .published = "not asked",
      .measured = written(
          "μ/‖X‖ at layer 24 without norm: {} (most), {} (least; {})",
          [](const Evidence& evidence) { return at_24(evidence, *by_end(evidence).front()); },
          [](const Evidence& evidence) { return at_24(evidence, *by_end(evidence).back()); },
          of(once<run>, samples_note)),
      .why = written("From most to least: {}. {} Rank correlation of what is left: {}.", ranking,
                     without_centre, correlations),
      .asks = {{at_least(
          [](const Evidence& evidence) { return once<run>(evidence).front().layers.front().size(); }, 2)}},
      .answer = written("{}", best),
      .topic = "masks"};
}

Findings shown(const Evidence& evidence) {
  const std::vector<CollapseCase> cases = cases_of(evidence);
  const Curves& curves = once<run>(evidence);
  std::vector<std::vector<std::string>> rows = {{"group", "case", "edges per token", "radius",
                                                 "layers to a tenth", "μ/‖X‖ at 4", "at 24",
                                                 "kept per layer"}};
  for (const CollapseCurve& curve : curves) {
    const auto found = std::find_if(cases.begin(), cases.end(), [&](const CollapseCase& each) {
      return each.group == curve.group && (each.name == curve.name || curve.name == kWeightNorm);
    });
    const MaskProperties mask = mask_properties(found->mask);
    const double to_tenth = layers_to_tenth(curve);
    rows.push_back({curve.group, curve.name,
                    fmt::format("{:.1f}", static_cast<double>(mask.edges) / static_cast<double>(mask.n)),
                    mask.radius ? std::to_string(*mask.radius) : "none",
                    to_tenth > 24 ? "more than 24" : fmt::format("{:.0f}", to_tenth),
                    with_interval(mean_interval(relative_at(curve, 4))),
                    with_interval(mean_interval(relative_at(curve, 24))),
                    fmt::format("{:.3f}", curve.rate.factor)});
  }
  return {
      .figures = {curve_figure(curves, &TokenMeasures::relative, "beyond",
                               "Norms, placements, weights and masks beyond the paper: μ/‖X‖ by layer", false,
                               fmt::format("N(0, 1/d) weights, eval mode, {}.", samples_count(curves)))},
      .tables = {{"Which norms and masks slow collapse? 192 dimensions, 3 heads, 24 layers of attention only",
                  rows}}};
}

}  // namespace

Exhibit wu_beyond() {
  return {{which_mask()}, shown};
}

}  // namespace normscope

// Beyond Wu, Ajorlou, Wang, Jegelka, Jadbabaie 2024: other norms, placements and weights; masks of equal
// sparsity.
#include <fmt/format.h>

#include <algorithm>
#include <array>

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
std::string at_24(const CollapseCurve& curve) {
  return fmt::format("{} {}", curve.name, with_interval(mean_interval(relative_at(curve, 24))));
}
// The mask with most left, and those that these samples cannot tell from it.
std::string best(const Evidence& evidence) {
  const auto order = by_end(evidence);
  std::string names = order.front()->name;
  for (auto other = order.begin() + 1; other != order.end(); ++other) {
    if (above(mean_difference(relative_at(**other, 24), relative_at(*order.front(), 24)), 0) != true)
      names += " or " + (*other)->name;
  }
  return names;
}

Claim which_mask() {
  return {
      .where = "beyond Wu et al.",
      .sentence = "Which mask slows collapse most at equal sparsity (about nine edges per token)?",
      .published = "not asked",
      .measured = written(
          "μ/‖X‖ at layer 24 without norm: {} (most), {} (least; {})",
          [](const Evidence& evidence) { return at_24(*by_end(evidence).front()); },
          [](const Evidence& evidence) { return at_24(*by_end(evidence).back()); },
          of(once<run>, samples_note)),
      .why =
          "A mask without a centre (block) never mixes its blocks; among the others a greater radius means slower mixing.",
      .asks = {{at_least(
          [](const Evidence& evidence) { return once<run>(evidence).front().layers.front().size(); }, 2)}},
      .answer =
          written("{}, then those with the greatest radius; random and global edges mix fastest", best)};
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

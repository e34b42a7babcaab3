#include "paper/wu_collapse.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/number_text.h"
#include "report/collapse_page.h"

namespace normscope {
namespace {

constexpr std::size_t kTokens = 128;
constexpr double kDropout = 0.1;
constexpr std::array<const char*, 4> kMasks = {"full", "causal", "window:1", "onesided:1"};
constexpr const char* kRandomInit =
    "Random init: N(0, 0.02²) weights, LayerNorm'd random embeddings of Zipf-distributed words in place "
    "of "
    "Wikipedia text.";

BlockSpec bert_base(double dropout) {
  BlockSpec block;
  block.width = 768;
  block.heads = 12;
  block.feed_forward = 3072;
  block.norm = parse_norm("layernorm");
  block.norm.eps = 1e-12;
  block.dropout = dropout;
  return block;
}

CollapseSettings bert_settings(std::size_t layers, std::size_t samples, std::uint64_t seed) {
  CollapseSettings settings;
  settings.tokens = kTokens;
  settings.layers = layers;
  settings.samples = samples;
  settings.weights.query_key = settings.weights.value = settings.weights.output =
      settings.weights.feed_forward = parse_matrix_init("bert");
  settings.start = parse_token_start("bert");
  settings.spectrum = Spectrum::no;
  settings.theory = false;
  settings.seed = seed;
  return settings;
}

std::string mode(double dropout) {
  return dropout > 0 ? "dropout 0.1" : "eval";
}

// Every variant under every mask, in eval mode and with dropout.
std::vector<CollapseCase> all_variants() {
  std::vector<CollapseCase> cases;
  for (const std::string_view variant : variant_names()) {
    for (const double dropout : {0.0, kDropout}) {
      for (const char* mask : kMasks) {
        cases.push_back({fmt::format("{}, {}", variant, mode(dropout)), mask,
                         variant_of(variant, bert_base(dropout)), parse_mask(mask, kTokens)});
      }
    }
  }
  return cases;
}

const CollapseCurve& find(const std::vector<CollapseCurve>& curves, std::string_view group,
                          std::string_view name) {
  return *std::find_if(curves.begin(), curves.end(), [&](const CollapseCurve& curve) {
    return curve.group == group && curve.name == name;
  });
}

std::vector<double> relative_at(const CollapseCurve& curve, std::size_t layer) {
  return curve.of(layer, &TokenMeasures::relative);
}

// The last layer at which there are tokens: weights that shrink them take them below float32's range in the
// end.
std::size_t last_layer(const CollapseCurve& curve) {
  std::size_t layer = curve.layers.size() - 1;
  while (layer > 0 && !(curve.mean(layer, &TokenMeasures::norm) > 1e-30)) --layer;
  return layer;
}

std::vector<double> relative_at_end(const CollapseCurve& curve) {
  return relative_at(curve, last_layer(curve));
}

// Share of μ left after each layer, first to last, where μ is above what float32 resolves: a factor for every
// sample.
RatioInterval mu_factor(const CollapseCurve& curve) {
  std::size_t layer = 1;
  while (layer < last_layer(curve) && curve.mean(layer + 1, &TokenMeasures::relative) > 1e-5) ++layer;
  std::vector<double> start = curve.of(0, &TokenMeasures::mu), end = curve.of(layer, &TokenMeasures::mu);
  for (std::vector<double>* values : {&start, &end}) {
    for (double& value : *values) value = std::pow(value, 1 / static_cast<double>(layer));
  }
  return mean_ratio(start, end);
}

std::string over_masks(const std::vector<CollapseCurve>& curves, std::string_view group,
                       const std::function<std::string(const CollapseCurve&)>& text_of) {
  std::string text;
  for (const char* mask : kMasks) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", mask, text_of(find(curves, group, mask)));
  }
  return text;
}

std::string end_text(const CollapseCurve& curve) {
  return with_interval(mean_interval(relative_at_end(curve)));
}

bool for_all_masks(const std::vector<CollapseCurve>& curves, std::string_view group,
                   const std::function<bool(const CollapseCurve&)>& holds) {
  return std::all_of(kMasks.begin(), kMasks.end(),
                     [&](const char* mask) { return holds(find(curves, group, mask)); });
}
bool for_a_mask(const std::vector<CollapseCurve>& curves, std::string_view group,
                const std::function<bool(const CollapseCurve&)>& holds) {
  return std::any_of(kMasks.begin(), kMasks.end(),
                     [&](const char* mask) { return holds(find(curves, group, mask)); });
}

// μ/‖X‖ at the end beyond a hundredth of where it began, sample by sample: collapsed if below, apart if
// above. One sample has no interval and is neither.
Interval beyond_a_hundredth(const CollapseCurve& curve) {
  std::vector<double> limit = relative_at(curve, 0);
  for (double& value : limit) value *= 0.01;
  return mean_difference(limit, relative_at_end(curve));
}
bool collapsed(const CollapseCurve& curve) {
  return beyond_a_hundredth(curve).below(0);
}
bool stays_apart(const CollapseCurve& curve) {
  return beyond_a_hundredth(curve).above(0);
}

std::string samples_note(const std::vector<CollapseCurve>& curves) {
  const std::size_t samples = curves.front().layers.front().size();
  return samples == 1 ? "1 sample, which has no interval"
                      : fmt::format("± and brackets: 95 % intervals over {} samples of one model", samples);
}

std::string samples_count(const std::vector<CollapseCurve>& curves) {
  const std::size_t samples = curves.front().layers.front().size();
  return fmt::format("{} sample{}", samples, samples == 1 ? "" : "s");
}

Claim pure_attention_collapses(const char* where, const std::vector<CollapseCurve>& curves) {
  Claim claim = claim_of(where, "Without LayerNorm, pure attention collapses exponentially under every mask",
                         "μ falls along a line under all four masks");
  const auto factor = [](const CollapseCurve& curve) { return factor_text(curve.rate.interval()); };
  claim.measured =
      fmt::format("share of μ kept per layer: {}; of μ/‖X‖: {} ({})",
                  over_masks(curves, "san, eval",
                             [](const CollapseCurve& curve) { return factor_text(mu_factor(curve)); }),
                  over_masks(curves, "san, eval", factor), samples_note(curves));
  const bool falls =
      for_all_masks(curves, "san, eval", [](const CollapseCurve& c) { return mu_factor(c).below(0.9); });
  const bool does_not =
      for_a_mask(curves, "san, eval", [](const CollapseCurve& c) { return mu_factor(c).above(0.9); });
  claim.holds = does_not                                        ? Holds::no
                : !falls                                        ? Holds::open
                : for_all_masks(curves, "san, eval", collapsed) ? Holds::yes
                : for_a_mask(curves, "san, eval", stays_apart)  ? Holds::conditionally
                                                                : Holds::open;
  claim.condition = "μ is read without its scale: μ/‖X‖ falls slowly under local masks";
  claim.why =
      "BERT's weights (standard deviation 0.02) shrink μ to about 0.31 per layer by scale alone, whatever "
      "the mask; "
      "μ/‖X‖ tells how alike the tokens become.";
  return claim;
}

Claim local_is_slower(const char* where, const std::vector<CollapseCurve>& curves) {
  Claim claim = claim_of(where, "Collapse is slower under local masks",
                         "complete and causal fall first, windows later");
  const std::size_t layer = last_layer(curves.front());
  const bool underflows = layer + 1 < curves.front().layers.size();
  claim.measured = fmt::format("μ/‖X‖ at layer {}{}: {}", layer,
                               underflows ? " (the last before the tokens underflow float32)" : "",
                               over_masks(curves, "san, eval", end_text));
  const auto at = [&](const char* mask) { return relative_at_end(find(curves, "san, eval", mask)); };
  bool all = true, any_not = false;
  for (const char* global : {"full", "causal"}) {
    for (const char* local : {"window:1", "onesided:1"}) {
      const Interval more = mean_difference(at(global), at(local));
      all = all && more.above(0);
      any_not = any_not || more.below(0);
    }
  }
  claim.holds = all ? Holds::yes : any_not ? Holds::no : Holds::open;
  claim.why = fmt::format(
      "Radii at 128 tokens are 1, 1, 64 and 127. Judged by the differences of each local and each global "
      "mask, sample by sample ({}).",
      samples_note(curves));
  return claim;
}

// The question of dropout: in which mode does LayerNorm alone keep tokens apart?
Claim norm_prevents_collapse(const char* where, const std::vector<CollapseCurve>& curves) {
  Claim claim = claim_of(where, "LayerNorm alone keeps μ from falling to 0 at random init",
                         "μ stays level for SAN+LN under all four masks");
  claim.measured = fmt::format("SAN+LN, μ/‖X‖ at layer {}: eval: {}; dropout 0.1: {} ({})",
                               last_layer(find(curves, "san+norm, eval", "full")),
                               over_masks(curves, "san+norm, eval", end_text),
                               over_masks(curves, "san+norm, dropout 0.1", end_text), samples_note(curves));
  const auto all_stay = [&](const char* group) { return for_all_masks(curves, group, stays_apart); };
  const auto one_collapses = [&](const char* group) { return for_a_mask(curves, group, collapsed); };
  claim.holds = all_stay("san+norm, eval")               ? Holds::yes
                : !one_collapses("san+norm, eval")       ? Holds::open
                : all_stay("san+norm, dropout 0.1")      ? Holds::conditionally
                : one_collapses("san+norm, dropout 0.1") ? Holds::no
                                                         : Holds::open;
  claim.condition = "dropout is left on";
  claim.why =
      "At random init attention is nearly uniform. In eval mode the complete mask then averages all tokens "
      "to one, and "
      "LayerNorm only rescales what is left (until rounding noise is all there is); dropout gives every "
      "token noise of "
      "its own, which LayerNorm scales up again.";
  return claim;
}

Claim skip_keeps_apart(const char* where, const std::vector<CollapseCurve>& curves) {
  Claim claim =
      claim_of(where, "Do skip connections keep tokens apart at random init?", "drawn, not claimed");
  const std::size_t layer = last_layer(find(curves, "san+skip, eval", "full"));
  claim.measured = fmt::format("μ/‖X‖ at layer {}, eval: SAN+skip: {}; SAN+skip+LN: {}; full: {}", layer,
                               over_masks(curves, "san+skip, eval", end_text),
                               over_masks(curves, "san+skip+norm, eval", end_text),
                               over_masks(curves, "full, eval", end_text));
  bool all = true, any_not = false;
  for (const char* group : {"san+skip, eval", "san+skip+norm, eval", "full, eval"}) {
    all = all && for_all_masks(curves, group, stays_apart);
    any_not = any_not || for_a_mask(curves, group, collapsed);
  }
  claim.holds = all || any_not ? Holds::answered : Holds::open;
  claim.condition =
      all ? fmt::format("yes, over {} layers", layer)
          : fmt::format(
                "under local masks; under some global ones less than a hundredth is left after {} layers",
                layer);
  claim.why =
      "What attention adds is small beside the tokens at this weight scale, but it adds up, and under global "
      "masks it is "
      "nearly the same for all tokens.";
  return claim;
}

void add_mu_figures(WuPart& part, const std::vector<CollapseCurve>& curves, const std::string& name,
                    const std::string& title, bool log_layers) {
  // What is left of tokens below the range of float32 is noise.
  std::vector<CollapseCurve> shown = curves;
  bool cut = false;
  for (CollapseCurve& curve : shown) {
    const std::size_t layers = last_layer(curve) + 1;
    cut = cut || layers < curve.layers.size();
    curve.layers.resize(layers);
  }
  for (const CollapseQuantity& quantity : collapse_quantities()) {
    if (quantity.measure != &TokenMeasures::relative && quantity.measure != &TokenMeasures::mu) continue;
    CurveFigure figure = collapse_figure(shown, quantity, log_layers);
    figure.caption =
        fmt::format("{} Bands: one standard deviation over {}.{}", kRandomInit, samples_count(curves),
                    cut ? " Curves end where tokens underflow float32." : "");
    part.figures.push_back(to_figure(fmt::format("{}_{}", name, quantity.name),
                                     fmt::format("{}: {}", title, quantity.title), "", figure));
  }
}

WuPart depth_part(const char* where, const char* name, const std::string& title, std::size_t layers,
                  std::size_t samples, const WuCollapseSettings& settings, const RunCollapse& run) {
  const auto curves = run(all_variants(), bert_settings(layers, samples, settings.seed));
  WuPart part;
  part.claims = {pure_attention_collapses(where, curves), local_is_slower(where, curves),
                 norm_prevents_collapse(where, curves), skip_keeps_apart(where, curves)};
  add_mu_figures(part, curves, name, title, true);
  return part;
}

// Layer at which μ/‖X‖ first falls below a tenth of its start; one after the last if never.
double layers_to_tenth(const CollapseCurve& curve) {
  for (std::size_t layer = 0; layer < curve.layers.size(); ++layer) {
    if (curve.mean(layer, &TokenMeasures::relative) < 0.1 * curve.mean(0, &TokenMeasures::relative))
      return static_cast<double>(layer);
  }
  return static_cast<double>(curve.layers.size());
}

}  // namespace

WuPart wu_figure2(const WuCollapseSettings& settings, const RunCollapse& run) {
  return depth_part("Wu Fig. 2", "wu2", "12 layers at random init", 12, settings.samples, settings, run);
}

WuPart wu_figure6(const WuCollapseSettings& settings, const RunCollapse& run) {
  return depth_part("Wu Fig. 6", "wu6", "128 layers at random init", 128, settings.deep_samples, settings,
                    run);
}

WuPart wu_figure7(const WuCollapseSettings& settings, const RunCollapse& run) {
  constexpr std::array temperatures = {1.0 / 64, 1.0, 64.0};
  constexpr std::array labels = {"1/64", "1", "64"};
  std::vector<CollapseCase> cases;
  for (const char* variant : {"san", "san+norm"}) {
    for (const double dropout : {0.0, kDropout}) {
      for (const char* mask : kMasks) {
        for (std::size_t t = 0; t < temperatures.size(); ++t) {
          BlockSpec block = variant_of(variant, bert_base(dropout));
          block.temperature = temperatures[t];
          cases.push_back({fmt::format("{}, {}, {}", variant, mask, mode(dropout)),
                           fmt::format("d_QK = {}", labels[t]), block, parse_mask(mask, kTokens)});
        }
      }
    }
  }
  const auto curves = run(cases, bert_settings(12, settings.samples, settings.seed));
  // How much longer tokens stay apart: μ/‖X‖ at d_QK = 1/64 over that at 64, sample by sample.
  const auto gains = [&](const char* mask, std::size_t layer) {
    const std::string group = fmt::format("san, {}, eval", mask);
    std::vector<double> sharp = relative_at(find(curves, group, "d_QK = 1/64"), layer);
    const std::vector<double> flat = relative_at(find(curves, group, "d_QK = 64"), layer);
    for (std::size_t s = 0; s < sharp.size(); ++s) sharp[s] /= flat[s];
    return sharp;
  };
  const auto gain = [&](const char* mask, std::size_t layer) {
    const std::vector<double> values = gains(mask, layer);
    return mean_ratio(std::vector<double>(values.size(), 1), values);
  };
  const auto gains_text = [&](std::size_t layer) {
    std::string text;
    for (const char* mask : kMasks)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", mask, factor_text(gain(mask, layer)));
    return text;
  };
  WuPart part;
  Claim slows = claim_of("Wu Fig. 7", "A smaller d_QK slows collapse at random init",
                         "the curve of 1/64 lies above those of 1 and 64");
  bool all = true, any_not = false;
  for (const char* mask : kMasks) {
    all = all && gain(mask, 1).above(1);
    any_not = any_not || gain(mask, 1).below(1);
  }
  slows.measured =
      fmt::format("μ/‖X‖ after layer 1, d_QK = 1/64 over 64: {} ({})", gains_text(1), samples_note(curves));
  slows.holds = all ? Holds::yes : any_not ? Holds::no : Holds::open;
  slows.why = "Scores are divided by √d_QK, so that a small one sharpens attention.";
  Claim where = claim_of("Wu Fig. 7", "The effect is greatest under global masks and in early layers",
                         "complete and causal gain more than windows; layers 1 to 3 more than later ones");
  where.measured = fmt::format("gain after layer 1: {}; after layer 12: {}", gains_text(1), gains_text(12));
  // The global mask that gains most against both local ones, sample by sample.
  const char* most = gain("full", 1).estimate.low > gain("causal", 1).estimate.low ? "full" : "causal";
  bool global = true, not_global = false;
  for (const char* local : {"window:1", "onesided:1"}) {
    const RatioInterval more = mean_ratio(gains(local, 1), gains(most, 1));
    global = global && more.above(1);
    not_global = not_global || more.below(1);
  }
  const auto fading = [&](const char* mask) { return mean_ratio(gains(mask, 12), gains(mask, 1)); };
  const auto fades = [&](const char* mask) { return fading(mask).above(1.02); };
  const auto does_not_fade = [&](const char* mask) { return fading(mask).below(1.02); };
  where.holds = not_global || does_not_fade("full") || does_not_fade("causal") ? Holds::no
                : !(global && fades("full") && fades("causal"))                ? Holds::open
                : fades("window:1") && fades("onesided:1")                     ? Holds::yes
                                                                               : Holds::conditionally;
  where.condition = "early layers are those of global masks; under windows the gain of the first layer stays";
  where.why =
      "SAN shrinks the tokens with every layer, and their scores with its square: after a few layers "
      "attention is uniform "
      "at any of these temperatures. What was kept before that remains in the ratio.";
  part.claims = {slows, where};
  for (const CollapseQuantity& quantity : collapse_quantities()) {
    if (quantity.measure != &TokenMeasures::relative) continue;
    CurveFigure figure = collapse_figure(curves, quantity, true);
    figure.caption = kRandomInit;
    part.figures.push_back(to_figure("wu7", "Temperature: μ/‖X‖ by layer", "", figure));
  }
  return part;
}

WuPart wu_figure8(const WuCollapseSettings& settings, const RunCollapse& run) {
  std::vector<CollapseCase> cases;
  for (const char* variant : {"san", "san+norm", "full"}) {
    for (const double dropout : {0.0, kDropout}) {
      for (const char* mask : {"full", "window:1"}) {
        cases.push_back({fmt::format("{}, {}", variant, mode(dropout)), mask,
                         variant_of(variant, bert_base(dropout)), parse_mask(mask, kTokens)});
      }
    }
  }
  CollapseSettings collapse_settings =
      bert_settings(12, std::min<std::size_t>(settings.samples, 4), settings.seed);
  collapse_settings.spectrum = Spectrum::yes;
  const auto curves = run(cases, collapse_settings);
  const auto share = [&](const char* group, const char* mask) {
    return mean_interval(find(curves, group, mask).singular_share(1));
  };
  const auto text = [&](const char* group, const char* mask) { return with_interval(share(group, mask)); };
  WuPart part;
  Claim claim = claim_of(
      "Wu Fig. 8",
      "Without LayerNorm all singular values but the first vanish; with it they persist at random init",
      "singular values by layer, random init");
  claim.measured = fmt::format(
      "σ₂/σ₁ at layer 12, complete mask: SAN {}, SAN+LN {} in eval mode, {} with dropout; full model {}. "
      "Window: SAN {}, SAN+LN {} ({})",
      text("san, eval", "full"), text("san+norm, eval", "full"), text("san+norm, dropout 0.1", "full"),
      text("full, eval", "full"), text("san, eval", "window:1"), text("san+norm, eval", "window:1"),
      samples_note(curves));
  constexpr double vanished = 1e-2, there = 1e-3;
  const Interval san = share("san, eval", "full"), eval = share("san+norm, eval", "full"),
                 dropout = share("san+norm, dropout 0.1", "full");
  claim.holds = san.above(vanished)    ? Holds::no
                : !san.below(vanished) ? Holds::open
                : eval.above(there)    ? Holds::yes
                : !eval.below(there)   ? Holds::open
                : dropout.above(there) ? Holds::conditionally
                : dropout.below(there) ? Holds::no
                                       : Holds::open;
  claim.condition = "dropout is left on";
  claim.why =
      "The same question as in Fig. 2: what is left of the tokens' differences is rounding noise in eval "
      "mode.";
  part.claims = {claim};
  CurveFigure figure = singular_value_figure(curves);
  figure.caption = kRandomInit;
  part.figures.push_back(to_figure("wu8", "Singular values by layer, over the first", "", figure));
  return part;
}

WuPart wu_figure9(const WuCollapseSettings& settings) {
  std::vector<double> least, mean;
  for (std::size_t sample = 0; sample < settings.samples; ++sample) {
    const Matrix<double> x = draw_tokens(parse_token_start("bert"), kTokens, 768, sample, settings.seed);
    const TokenMeasures measures = measure_tokens<double>(x.view(), Spectrum::no);
    least.push_back(measures.min_cosine);
    mean.push_back(measures.mean_cosine);
  }
  const double lowest = *std::min_element(least.begin(), least.end());
  const Interval middle = mean_interval(mean);
  Claim claim = claim_of("Wu Fig. 9, random init",
                         "Cosines of the initial embeddings are at least 0 (what Cor. 1 asks)",
                         "shown for pretrained BERT and ALBERT only: all ≥ 0");
  claim.measured = fmt::format("random init: least {:.3f}, mean {:.3f} over {} sample{} of {} tokens", lowest,
                               middle.mean, middle.count, middle.count == 1 ? "" : "s", kTokens);
  claim.holds = lowest >= 0 ? Holds::conditionally : Holds::no;
  claim.condition = "the embeddings share a part, here the token type";
  claim.why =
      "Word, position and type embeddings have equal variance and the type is common to all tokens, so that "
      "cosines lie "
      "around 1/3 already at random init: the figure is no effect of training alone.";
  return {{claim}, {}, {}};
}

WuPart wu_beyond(const WuCollapseSettings& settings, const RunCollapse& run) {
  BlockSpec base = bert_base(0);
  base.width = 192;
  base.heads = 3;
  base.feed_forward = 0;
  std::vector<CollapseCase> cases;
  const auto add = [&](const std::string& group, const std::string& name, BlockSpec block, const char* mask) {
    block.skip = false;
    cases.push_back({group, name, block, parse_mask(mask, kTokens, settings.seed)});
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
  // Nine edges per token, or as near to it as the family allows.
  constexpr std::array masks = {"window:4",          "onesided:8",   "dilated:4,4",
                                "global:2+window:2", "random:0.063", "block:9"};
  for (const char* norm : {"none", "layernorm"}) {
    for (const char* mask : masks) {
      BlockSpec block = base;
      block.norm = parse_norm(norm);
      add(fmt::format("masks of equal sparsity, norm {}", norm), mask, block, mask);
    }
  }
  CollapseSettings collapse_settings = bert_settings(24, settings.samples, settings.seed);
  const std::string init = "gaussian";
  collapse_settings.weights.query_key = collapse_settings.weights.value = collapse_settings.weights.output =
      collapse_settings.weights.feed_forward = parse_matrix_init(init);
  auto curves = run(cases, collapse_settings);
  // Weight normalization changes the weights, so it is a run of its own.
  std::vector<CollapseCase> normalized;
  for (CollapseCase& each : cases) {
    if (each.name == "layernorm") normalized.push_back(each);
  }
  for (CollapseCase& each : normalized) each.name = "layernorm + weight norm";
  collapse_settings.weights.normalize = true;
  for (CollapseCurve& curve : run(normalized, collapse_settings)) curves.push_back(std::move(curve));

  WuPart part;
  std::vector<std::vector<std::string>> rows = {{"group", "case", "edges per token", "radius",
                                                 "layers to a tenth", "μ/‖X‖ at 4", "at 24",
                                                 "kept per layer"}};
  for (const CollapseCurve& curve : curves) {
    const auto found = std::find_if(cases.begin(), cases.end(), [&](const CollapseCase& each) {
      return each.group == curve.group &&
             (each.name == curve.name || curve.name == "layernorm + weight norm");
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
  part.tables.push_back(
      {"Which norms and masks slow collapse? 192 dimensions, 3 heads, 24 layers of attention only", rows});
  const std::string group = "masks of equal sparsity, norm none";
  std::vector<const CollapseCurve*> by_end;
  by_end.reserve(masks.size());
  for (const char* mask : masks) by_end.push_back(&find(curves, group, mask));
  std::stable_sort(by_end.begin(), by_end.end(), [](const CollapseCurve* a, const CollapseCurve* b) {
    return a->mean(24, &TokenMeasures::relative) > b->mean(24, &TokenMeasures::relative);
  });
  // The mask with most left, and those that these samples cannot tell from it.
  std::string best = by_end.front()->name;
  for (auto other = by_end.begin() + 1; other != by_end.end(); ++other) {
    if (!mean_difference(relative_at(**other, 24), relative_at(*by_end.front(), 24)).above(0))
      best += " or " + (*other)->name;
  }
  const auto at_24 = [](const CollapseCurve* curve) {
    return fmt::format("{} {}", curve->name, with_interval(mean_interval(relative_at(*curve, 24))));
  };
  Claim claim =
      claim_of("beyond Wu et al.",
               "Which mask slows collapse most at equal sparsity (about nine edges per token)?", "not asked");
  claim.measured = fmt::format("μ/‖X‖ at layer 24 without norm: {} (most), {} (least; {})",
                               at_24(by_end.front()), at_24(by_end.back()), samples_note(curves));
  claim.holds = curves.front().layers.front().size() > 1 ? Holds::answered : Holds::open;
  claim.condition =
      fmt::format("{}, then those with the greatest radius; random and global edges mix fastest", best);
  claim.why =
      "A mask without a centre (block) never mixes its blocks; among the others a greater radius means "
      "slower mixing.";
  part.claims = {claim};
  for (const CollapseQuantity& quantity : collapse_quantities()) {
    if (quantity.measure != &TokenMeasures::relative) continue;
    CurveFigure figure = collapse_figure(curves, quantity, false);
    figure.caption = fmt::format("N(0, 1/d) weights, eval mode, {}.", samples_count(curves));
    part.figures.push_back(to_figure(
        "beyond", "Norms, placements, weights and masks beyond the paper: μ/‖X‖ by layer", "", figure));
  }
  return part;
}

}  // namespace normscope

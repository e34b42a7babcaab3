// Fig. 2 of Wu, Ajorlou, Wang, Jegelka, Jadbabaie 2024: μ by layer, five variants under four masks, 12 layers
// at random init and in pretrained models; and Fig. 6, the same over 128 layers at random init.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/number_text.h"
#include "paper/wu_curves.h"

namespace normscope {
namespace {

// Every variant under every mask, in eval mode and with dropout.
std::vector<CollapseCase> all_variants() {
  std::vector<CollapseCase> cases;
  for (const std::string_view variant : variant_names()) {
    for (const double dropout : {0.0, kDropout}) {
      for (const char* mask : kMasks) {
        cases.push_back({in_mode(variant, dropout), mask, variant_of(variant, bert_base(dropout)),
                         parse_mask(mask, kTokens)});
      }
    }
  }
  return cases;
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

// The curves of one group, mask by mask.
struct Group {
  const Curves& curves;
  const char* name;

  const CollapseCurve& under(const char* mask) const { return find(curves, name, mask); }
  std::string ends() const {
    return over_masks(
        [&](const char* mask) { return with_interval(mean_interval(relative_at_end(under(mask)))); });
  }
  Answer stay_apart() const {
    return all_of(kMasks, [&](const char* mask) { return stays_apart(under(mask)); });
  }
};

Claim pure_attention_collapses(const char* where, const Curves& curves) {
  Claim claim = claim_of(where, "Without LayerNorm, pure attention collapses exponentially under every mask",
                         "μ falls along a line under all four masks");
  const Group san{curves, "san, eval"};
  claim.measured =
      fmt::format("share of μ kept per layer: {}; of μ/‖X‖: {} ({})",
                  over_masks([&](const char* mask) { return factor_text(mu_factor(san.under(mask))); }),
                  over_masks([&](const char* mask) { return factor_text(san.under(mask).rate.interval()); }),
                  samples_note(curves));
  const Answer falls =
      all_of(kMasks, [&](const char* mask) { return below(mu_factor(san.under(mask)), 0.9); });
  const Answer alike = all_of(kMasks, [&](const char* mask) { return collapsed(san.under(mask)); });
  claim.holds = judged(all_of({falls, alike}), falls);
  claim.condition = "μ is read without its scale: μ/‖X‖ falls slowly under local masks";
  claim.why =
      "BERT's weights (standard deviation 0.02) shrink μ to about 0.31 per layer by scale alone, whatever "
      "the "
      "mask; μ/‖X‖ tells how alike the tokens become.";
  return claim;
}

Claim local_is_slower(const char* where, const Curves& curves) {
  Claim claim = claim_of(where, "Collapse is slower under local masks",
                         "complete and causal fall first, windows later");
  const Group san{curves, "san, eval"};
  const std::size_t layer = last_layer(curves.front());
  const bool underflows = layer + 1 < curves.front().layers.size();
  claim.measured =
      fmt::format("μ/‖X‖ at layer {}{}: {}", layer,
                  underflows ? " (the last before the tokens underflow float32)" : "", san.ends());
  claim.holds = judged(more_under_local([&](const char* mask) { return relative_at_end(san.under(mask)); }));
  claim.why = fmt::format(
      "Radii at 128 tokens are 1, 1, 64 and 127. Judged by the differences of each local and each global "
      "mask, sample by sample ({}).",
      samples_note(curves));
  return claim;
}

// The question of dropout: in which mode does LayerNorm alone keep tokens apart?
Claim norm_prevents_collapse(const char* where, const Curves& curves) {
  Claim claim = claim_of(where, "LayerNorm alone keeps μ from falling to 0 at random init",
                         "μ stays level for SAN+LN under all four masks");
  const Group eval{curves, "san+norm, eval"}, dropout{curves, "san+norm, dropout 0.1"};
  claim.measured =
      fmt::format("SAN+LN, μ/‖X‖ at layer {}: eval: {}; dropout 0.1: {} ({})", last_layer(eval.under("full")),
                  eval.ends(), dropout.ends(), samples_note(curves));
  claim.holds = judged(eval.stay_apart(), dropout.stay_apart());
  claim.condition = "dropout is left on";
  claim.why =
      "At random init attention is nearly uniform. In eval mode the complete mask then averages all tokens "
      "to "
      "one, and LayerNorm only rescales what is left (until rounding noise is all there is); dropout gives "
      "every token noise of its own, which LayerNorm scales up again.";
  return claim;
}

Claim skip_keeps_apart(const char* where, const Curves& curves) {
  Claim claim =
      claim_of(where, "Do skip connections keep tokens apart at random init?", "drawn, not claimed");
  const Group skip{curves, "san+skip, eval"}, with_norm{curves, "san+skip+norm, eval"},
      full{curves, "full, eval"};
  const std::size_t layer = last_layer(skip.under("full"));
  claim.measured = fmt::format("μ/‖X‖ at layer {}, eval: SAN+skip: {}; SAN+skip+LN: {}; full: {}", layer,
                               skip.ends(), with_norm.ends(), full.ends());
  const Answer apart = all_of({skip.stay_apart(), with_norm.stay_apart(), full.stay_apart()});
  claim.holds = apart ? Holds::answered : Holds::open;
  claim.condition = apart == true
                        ? fmt::format("yes, over {} layers", layer)
                        : fmt::format(
                              "under local masks; under some global ones less than a hundredth is left "
                              "after {} layers",
                              layer);
  claim.why =
      "What attention adds is small beside the tokens at this weight scale, but it adds up, and under global "
      "masks it is nearly the same for all tokens.";
  return claim;
}

Findings at_depth(const Evidence& evidence, const char* where, const char* name, std::size_t layers,
                  std::size_t samples) {
  const Curves curves =
      evidence.collapse(where, all_variants(), bert_settings(layers, samples, evidence.plan.seed));
  Findings found;
  found.claims = {pure_attention_collapses(where, curves), local_is_slower(where, curves),
                  norm_prevents_collapse(where, curves), skip_keeps_apart(where, curves)};
  // What is left of tokens below the range of float32 is noise.
  Curves shown = curves;
  bool cut = false;
  for (CollapseCurve& curve : shown) {
    const std::size_t kept = last_layer(curve) + 1;
    cut = cut || kept < curve.layers.size();
    curve.layers.resize(kept);
  }
  const std::string text =
      fmt::format("{} Bands: one standard deviation over {}.{}", kRandomInit, samples_count(curves),
                  cut ? " Curves end where tokens underflow float32." : "");
  for (const auto measure : {&TokenMeasures::relative, &TokenMeasures::mu}) {
    const CollapseQuantity& quantity = quantity_of(measure);
    found.figures.push_back(curve_figure(shown, measure, fmt::format("{}_{}", name, quantity.name),
                                         fmt::format("{} layers at random init: {}", layers, quantity.title),
                                         true, text));
  }
  return found;
}

std::string end_text(const CollapseCurve& curve) {
  return with_interval(mean_interval(relative_at(curve, curve.layers.size() - 1)));
}

Claim pretrained_attention(Models models, const Curves& curves) {
  Claim claim = claim_of("Wu Fig. 2, pretrained",
                         "Without LayerNorm, pure attention collapses exponentially under every mask",
                         "μ falls along a line under all four masks, pretrained BERT");
  const auto over_san = [&](const std::function<std::string(const CollapseCurve&)>& text) {
    return over_models(models, [&](const PretrainedModel& model) {
      return over_masks([&](const char* mask) { return text(find(curves, model, "san", mask)); });
    });
  };
  claim.measured =
      fmt::format("share of μ/‖X‖ kept per layer, {}; μ after the last layer over μ at the start, {}",
                  over_san([](const CollapseCurve& curve) { return factor_text(curve.rate.interval()); }),
                  over_san([](const CollapseCurve& curve) {
                    return factor_text(mean_ratio(curve.of(0, &TokenMeasures::mu),
                                                  curve.of(curve.layers.size() - 1, &TokenMeasures::mu)));
                  }));
  judge_by_mask(claim, models, [&](const PretrainedModel& model, const char* mask) {
    return below(find(curves, model, "san", mask).rate.interval(), 0.9);
  });
  claim.why =
      "Counted as collapse: a fitted factor whose interval lies below 0.9 per layer. μ itself also has the "
      "scale of the value matrices in it.";
  return claim;
}

// μ/‖X‖ after the last layer of a variant.
std::string ends_of(Models models, const Curves& curves, const char* variant) {
  return over_models(models, [&](const PretrainedModel& model) {
    return over_masks([&](const char* mask) { return end_text(find(curves, model, variant, mask)); });
  });
}

Claim pretrained_local_is_slower(Models models, const Curves& curves) {
  Claim claim = claim_of("Wu Fig. 2, pretrained", "Collapse of pure attention is slower under local masks",
                         "complete and causal fall first, windows later");
  claim.measured = fmt::format("SAN, μ/‖X‖ after the last layer, {} ({})", ends_of(models, curves, "san"),
                               samples_note(models));
  judge(claim, models, [&](const PretrainedModel& model) {
    return more_under_local(
        [&](const char* mask) { return relative_at_end(find(curves, model, "san", mask)); });
  });
  claim.why =
      "Radii at 128 tokens are 1, 1, 64 and 127. Judged by the differences of each local and each global "
      "mask, window by window.";
  return claim;
}

Claim parts_together(Models models, const Curves& curves) {
  Claim claim =
      claim_of("Wu Fig. 2, pretrained",
               "In pretrained models LayerNorm, together with the other parts, keeps tokens from collapse",
               "μ of the full model stays level under all four masks");
  claim.measured = fmt::format("full model, μ/‖X‖ after the last layer, {} ({})",
                               ends_of(models, curves, "full"), samples_note(models));
  judge(claim, models, [&](const PretrainedModel& model) {
    return all_of(kMasks, [&](const char* mask) { return stays_apart(find(curves, model, "full", mask)); });
  });
  claim.why = "Counted as collapse: less than a hundredth of μ/‖X‖ at the start.";
  return claim;
}

Claim which_part(Models models, const Curves& curves) {
  Claim claim = claim_of("Wu Fig. 2, pretrained", "Which part keeps the tokens of a pretrained model apart?",
                         "drawn, not claimed");
  const auto own = [&](const PretrainedModel& model, std::string_view variant) -> const CollapseCurve& {
    return find(curves, model, variant, own_mask_name(model));
  };
  claim.measured =
      fmt::format("μ/‖X‖ after the last layer under its own mask, {}",
                  over_models(models, [&](const PretrainedModel& model) {
                    std::string text;
                    for (const char* variant : {"san", "san+norm", "san+skip", "san+skip+norm", "full"})
                      append(text, fmt::format("{} {}", variant, end_text(own(model, variant))));
                    return text;
                  }));
  claim.holds = Holds::answered;
  claim.condition = over_models(models, [&](const PretrainedModel& model) {
    const auto kept = [&](const char* variant) {
      const CollapseCurve& curve = own(model, variant);
      const RatioInterval share = mean_ratio(relative_at(curve, 0), relative_at_end(curve));
      const std::string mean = percent(share.estimate.low, 0, kNotMeasurable);
      return !std::isfinite(share.high - share.low)
                 ? mean
                 : fmt::format("{} ({:.0f} to {:.0f})", mean, 100 * share.low, 100 * share.high);
    };
    return fmt::format(
        "of μ/‖X‖ at the start, attention alone keeps {}, with its norm {}, with its skip {}, with both {}, "
        "the full model {}",
        kept("san"), kept("san+norm"), kept("san+skip"), kept("san+skip+norm"), kept("full"));
  });
  claim.why =
      "Parts are taken out of a model that was trained with all of them, so that weights meet tokens of a "
      "scale they never saw.";
  return claim;
}

Findings pretrained(const Evidence& evidence) {
  const Models models = evidence.models;
  if (models.empty()) return {};
  const Curves curves = run_models(evidence, "Wu Fig. 2, pretrained", [](const PretrainedModel& model) {
    std::vector<CollapseCase> cases;
    for (const std::string_view variant : variant_names()) {
      for (const char* mask : kMasks) {
        cases.push_back({std::string(variant), mask, variant_of(variant, spec_of(model).block),
                         parse_mask(mask, tokens_of(model))});
      }
    }
    return cases;
  });
  Findings found;
  found.claims = {pretrained_attention(models, curves), pretrained_local_is_slower(models, curves),
                  parts_together(models, curves), which_part(models, curves)};
  add_figures(found, models, curves, &TokenMeasures::relative, "wu2_pretrained", "μ/‖X‖ by layer");
  add_figures(found, models, curves, &TokenMeasures::mu, "wu2_pretrained", "μ by layer, not free of scale");
  return found;
}

}  // namespace

Findings wu_fig2(const Evidence& evidence) {
  Findings found = at_depth(evidence, "Wu Fig. 2", "wu2", 12, evidence.plan.samples);
  found.add(pretrained(evidence));
  return found;
}

Findings wu_fig6(const Evidence& evidence) {
  return at_depth(evidence, "Wu Fig. 6", "wu6", 128, evidence.plan.deep_samples);
}

}  // namespace normscope

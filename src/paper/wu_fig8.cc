// Fig. 8 of Wu, Ajorlou, Wang, Jegelka, Jadbabaie 2024: all singular values by layer.
#include <fmt/format.h>

#include <algorithm>

#include "core/number_text.h"
#include "paper/wu_curves.h"

namespace normscope {
namespace {

Findings random_init(const Evidence& evidence) {
  std::vector<CollapseCase> cases;
  for (const char* variant : {"san", "san+norm", "full"}) {
    for (const double dropout : {0.0, kDropout}) {
      for (const char* mask : {"full", "window:1"}) {
        cases.push_back({in_mode(variant, dropout), mask, variant_of(variant, bert_base(dropout)),
                         parse_mask(mask, kTokens)});
      }
    }
  }
  CollapseSettings collapse_settings =
      bert_settings(12, std::min<std::size_t>(evidence.plan.samples, 4), evidence.plan.seed);
  collapse_settings.spectrum = Spectrum::yes;
  const Curves curves = evidence.collapse("Wu Fig. 8", cases, collapse_settings);
  const auto share = [&](const char* group, const char* mask) {
    return mean_interval(find(curves, group, mask).singular_share(1));
  };
  const auto text = [&](const char* group, const char* mask) { return with_interval(share(group, mask)); };
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
  const Answer vanish = below(share("san, eval", "full"), vanished);
  claim.holds = vanish == true ? judged(above(share("san+norm, eval", "full"), there),
                                        above(share("san+norm, dropout 0.1", "full"), there))
                               : judged(vanish);
  claim.condition = "dropout is left on";
  claim.why =
      "The same question as in Fig. 2: what is left of the tokens' differences is rounding noise in eval "
      "mode.";
  CurveFigure figure = singular_value_figure(curves);
  figure.caption = kRandomInit;
  return {{claim}, {to_figure("wu8", "Singular values by layer, over the first", "", figure)}};
}

Findings pretrained(const Evidence& evidence) {
  const Models models = evidence.models;
  if (models.empty()) return {};
  const auto cases_of = [](const PretrainedModel& model) {
    std::vector<CollapseCase> cases;
    for (const char* variant : {"san", "san+norm", "full"}) {
      cases.push_back({variant, own_mask_name(model), variant_of(variant, spec_of(model).block),
                       model_mask(spec_of(model), tokens_of(model))});
    }
    return cases;
  };
  const Curves curves = run_models(evidence, "Wu Fig. 8, pretrained", cases_of, Spectrum::yes, 4);
  // σ₂/σ₁ or, of the last, σ/σ₁.
  const auto share = [&](const PretrainedModel& model, const char* variant, bool last) {
    const CollapseCurve& curve = find(curves, model, variant, own_mask_name(model));
    const std::size_t count = curve.singular_values.back().size();
    return mean_interval(curve.singular_share(last ? count - 1 : std::min<std::size_t>(1, count - 1)));
  };
  const auto text = [&](const PretrainedModel& model, const char* variant, bool last) {
    return with_interval(share(model, variant, last));
  };
  Claim claim =
      claim_of("Wu Fig. 8, pretrained",
               "Without LayerNorm all singular values but the first vanish; in the full model they persist",
               "singular values by layer, pretrained BERT");
  claim.measured = over_models(models, [&](const PretrainedModel& model) {
    return fmt::format(
        "σ₂/σ₁ after the last layer SAN {}, SAN+norm {}, full {}; the last σ/σ₁ SAN {}, full {}",
        text(model, "san", false), text(model, "san+norm", false), text(model, "full", false),
        text(model, "san", true), text(model, "full", true));
  });
  const auto persist = [&](const PretrainedModel& model) {
    return all_of({above(share(model, "full", false), 1e-2), above(share(model, "full", true), 1e-5)});
  };
  judge(claim, models, [&](const PretrainedModel& model) {
    return all_of({below(share(model, "san", false), 1e-2), persist(model)});
  });
  if (claim.holds == Holds::no && all_of(models, persist) == true) {
    claim.holds = Holds::conditionally;
    claim.condition =
        "vanish is read over many more layers than these models have; in the full models they persist";
  }
  claim.why =
      "Vanish: the interval of σ₂/σ₁ below a hundredth; persist: above it, and that of the last above 1e-5. "
      "At most 4 windows, each model under its own mask.";
  CurveFigure figure = singular_value_figure(curves);
  figure.caption = caption(models);
  return {{claim},
          {to_figure("wu8_pretrained", "Pretrained: singular values by layer, over the first", "", figure)}};
}

}  // namespace

Findings wu_fig8(const Evidence& evidence) {
  Findings found = random_init(evidence);
  found.add(pretrained(evidence));
  return found;
}

}  // namespace normscope

// Fig. 8 of Wu, Ajorlou, Wang, Jegelka, Jadbabaie 2024: all singular values by layer.
#include <fmt/format.h>

#include <algorithm>

#include "paper/wu_curves.h"

namespace normscope {
namespace {

constexpr std::size_t kMostSamples = 16;  // with their spectra
constexpr Threshold kVanished{1e-2, "a hundredth of the first: below the width of a line in the figure"},
    kLast{1e-5, "what float32 resolves, with a digit to spare"},
    kThere{1e-3, "what rounding leaves of equal tokens is far less"};

Curves run_random(const Evidence& evidence) {
  std::vector<CollapseCase> cases;
  for (const char* variant : {"san", "san+norm", "full"}) {
    for (const double dropout : {0.0, kDropout}) {
      for (const char* mask : {"full", "window:1"}) {
        cases.push_back({in_mode(variant, dropout), mask, variant_of(variant, bert_base(dropout)),
                         parse_mask(mask, kTokens)});
      }
    }
  }
  CollapseSettings settings =
      bert_settings(12, std::min(evidence.plan.samples, kMostSamples), evidence.plan.seed);
  settings.spectrum = Spectrum::yes;
  return evidence.collapse("Wu Fig. 8", cases, settings);
}

Curves run_pretrained(const Evidence& evidence) {
  const auto cases_of = [](const PretrainedModel& model) {
    std::vector<CollapseCase> cases;
    for (const char* variant : {"san", "san+norm", "full"}) {
      cases.push_back({variant, own_mask_name(model), variant_of(variant, spec_of(model).block),
                       model_mask(spec_of(model), tokens_of(model))});
    }
    return cases;
  };
  return run_models(evidence, "Wu Fig. 8, pretrained", cases_of, Spectrum::yes, kMostSamples);
}

Claim random_init() {
  // σ₂/σ₁
  const auto share = [](const char* group, const char* mask) {
    return [=](const Evidence& evidence) {
      return mean_interval(find(once<run_random>(evidence), group, mask).singular_share(1),
                           level_of(evidence));
    };
  };
  const auto eval = share("san+norm, eval", "full"), dropout = share("san+norm, dropout 0.1", "full");
  const Condition vanish = below(share("san, eval", "full"), kVanished, "SAN, eval: σ₂/σ₁");
  return {
      .where = "Wu Fig. 8",
      .sentence =
          "Without LayerNorm all singular values but the first vanish; with it they persist at random init",
      .published = "singular values by layer, random init",
      .measured = written(
          "σ₂/σ₁ at layer 12, complete mask: SAN {}, SAN+LN {} in eval mode, {} with dropout; full model {}. Window: SAN {}, SAN+LN {} ({})",
          share("san, eval", "full"), eval, dropout, share("full, eval", "full"),
          share("san, eval", "window:1"), share("san+norm, eval", "window:1"),
          of(once<run_random>, samples_note)),
      .why = "The same question as in Fig. 2." +
             when(below(eval, kThere),
                  " In eval mode what is left of the tokens' differences is rounding noise."),
      .holds = all_of({vanish, above(eval, kThere, "SAN+LN, eval: σ₂/σ₁")}),
      .holds_if = {{all_of({vanish, above(dropout, kThere, "SAN+LN, dropout: σ₂/σ₁")}),
                    "dropout is left on"}},
      .topic = "collapse",
      .confounds = {"dropout"}};
}

// σ₂/σ₁ or, of the last, σ/σ₁.
Interval share(const Evidence& evidence, const PretrainedModel& model, const char* variant, bool last) {
  const CollapseCurve& curve = find(once<run_pretrained>(evidence), model, variant, own_mask_name(model));
  const std::size_t count = curve.singular_values.back().size();
  return mean_interval(curve.singular_share(last ? count - 1 : std::min<std::size_t>(1, count - 1)),
                       level_of(evidence));
}
Answer persist(const Evidence& evidence, const PretrainedModel& model) {
  return all_of(
      {above(evidence, share(evidence, model, "full", false), kVanished, model.name + ", full: σ₂/σ₁"),
       above(evidence, share(evidence, model, "full", true), kLast, model.name + ", full: the last σ/σ₁")});
}

Claim pretrained() {
  Claim claim = by_model(
      {.where = "Wu Fig. 8, pretrained",
       .sentence =
           "Without LayerNorm all singular values but the first vanish; in the full model they persist",
       .published = "singular values by layer, pretrained BERT",
       .measured = over_models([](const Evidence& evidence, const PretrainedModel& model) {
         const auto text = [&](const char* variant, bool last) {
           return with_interval(share(evidence, model, variant, last));
         };
         return fmt::format(
             "σ₂/σ₁ after the last layer SAN {}, SAN+norm {}, full {}; the last σ/σ₁ SAN {}, full {}",
             text("san", false), text("san+norm", false), text("full", false), text("san", true),
             text("full", true));
       }),
       .why =
           "Vanish: the interval of σ₂/σ₁ below a hundredth; persist: above it, and that of the last above 1e-5. At most 16 windows, each model under its own mask.",
       .topic = "collapse"},
      [](const Evidence& evidence, const PretrainedModel& model) {
        return all_of(
            {below(evidence, share(evidence, model, "san", false), kVanished, model.name + ", SAN: σ₂/σ₁"),
             persist(evidence, model)});
      });
  claim.holds_if.push_back(
      {[](const Evidence& evidence) {
         return all_of(evidence.models,
                       [&](const PretrainedModel& model) { return persist(evidence, model); });
       },
       "vanish is read over many more layers than these models have; in the full models they persist"});
  return claim;
}

Figure figure_of(const Curves& curves, const char* name, const char* title, const std::string& caption) {
  CurveFigure figure = singular_value_figure(curves);
  figure.caption = caption;
  return to_figure(name, title, "", figure);
}
Findings shown(const Evidence& evidence) {
  Findings found{.figures = {figure_of(once<run_random>(evidence), "wu8",
                                       "Singular values by layer, over the first", kRandomInit)}};
  if (!evidence.models.empty())
    found.figures.push_back(figure_of(once<run_pretrained>(evidence), "wu8_pretrained",
                                      "Pretrained: singular values by layer, over the first",
                                      caption(evidence.models)));
  return found;
}

}  // namespace

Exhibit wu_fig8() {
  return {{random_init(), pretrained()}, shown};
}

}  // namespace normscope

// Fig. 2 of Wu, Ajorlou, Wang, Jegelka, Jadbabaie 2024: μ by layer, five variants under four masks, 12 layers
// at random init and in pretrained models; and Fig. 6, the same over 128 layers at random init.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/number_text.h"
#include "paper/wu_curves.h"

namespace normscope {
namespace {

constexpr double kWidth = 768, kDeviation = 0.02;  // of bert_base and bert_settings
constexpr Threshold kExponential{
    0.9, "a tenth per layer: what falls less is hardly told from level over twelve layers", 1};

// Every variant under every mask, in eval mode and with dropout; of the deep ones with dropout only the one that it
// is a question of.
std::vector<CollapseCase> all_variants(bool deep) {
  std::vector<CollapseCase> cases;
  for (const std::string_view variant : variant_names()) {
    for (const double dropout : {0.0, kDropout}) {
      if (deep && dropout > 0 && variant != "san+norm") continue;
      for (const char* mask : kMasks) {
        cases.push_back({in_mode(variant, dropout), mask, variant_of(variant, bert_base(dropout)),
                         parse_mask(mask, kTokens)});
      }
    }
  }
  return cases;
}

// Share of a measure, such as μ, left after each layer, first to last, where μ is above what float32 resolves: a
// factor for every sample.
RatioInterval kept_per_layer(const Evidence& evidence, const CollapseCurve& curve,
                             double TokenMeasures::*measure) {
  std::size_t layer = 1;
  while (layer < last_layer(curve) && curve.mean(layer + 1, &TokenMeasures::relative) > 1e-5) ++layer;
  std::vector<double> start = curve.of(0, measure), end = curve.of(layer, measure);
  for (std::vector<double>* values : {&start, &end}) {
    for (double& value : *values) value = std::pow(value, 1 / static_cast<double>(layer));
  }
  return mean_ratio(start, end, level_of(evidence));
}
RatioInterval mu_factor(const Evidence& evidence, const CollapseCurve& curve) {
  return kept_per_layer(evidence, curve, &TokenMeasures::mu);
}

// Curves at random init, to a depth.
struct Depth {
  const char* where;
  const Curves& (*curves)(const Evidence&);
};

// The curves of one group, mask by mask.
struct Group {
  Depth depth;
  const char* name;

  const CollapseCurve& under(const Evidence& evidence, const char* mask) const {
    return find(depth.curves(evidence), name, mask);
  }
  // Something of each, as text.
  Text over(std::string (*text)(const Evidence&, const CollapseCurve&)) const {
    return [*this, text](const Evidence& evidence) {
      return over_masks([&](const char* mask) { return text(evidence, under(evidence, mask)); });
    };
  }
  // Whether it is so of all.
  Condition all(Answer (*holds)(const Evidence&, const CollapseCurve&, const std::string& what)) const {
    return [*this, holds](const Evidence& evidence) {
      return all_of(kMasks, [&](const char* mask) {
        return holds(evidence, under(evidence, mask), fmt::format("{}, {}", name, mask));
      });
    };
  }
  Text ends() const {
    return over([](const Evidence& evidence, const CollapseCurve& curve) {
      return with_interval(mean_interval(relative_at_end(curve), level_of(evidence)));
    });
  }
  // Of what is shown at the end.
  auto layer() const {
    return [*this](const Evidence& evidence) { return last_layer(under(evidence, "full")); };
  }
};

Claim pure_attention_collapses(const Depth& depth) {
  const Group san{depth, "san, eval"};
  const Condition falls =
      san.all([](const Evidence& evidence, const CollapseCurve& curve, const std::string& what) {
        return below(evidence, mu_factor(evidence, curve), kExponential,
                     {what + ": share of μ kept per layer", "×"});
      });
  return {
      .where = depth.where,
      .sentence = "Without LayerNorm, pure attention collapses exponentially under every mask",
      .published = "μ falls along a line under all four masks",
      .measured = written("share of μ kept per layer: {}; of μ/‖X‖: {} ({})",
                          san.over([](const Evidence& evidence, const CollapseCurve& curve) {
                            return factor_text(mu_factor(evidence, curve));
                          }),
                          san.over([](const Evidence& evidence, const CollapseCurve& curve) {
                            return factor_text(rate_of(evidence, curve));
                          }),
                          of(depth.curves, samples_note)),
      .why = written(
          "Weights of standard deviation {:g} in {} dimensions, two matrices a layer, multiply the length of a vector by about {:.2f}, whatever the mask; share of ‖X‖ kept per layer: {}. μ/‖X‖ tells how alike the tokens become.",
          kDeviation, kWidth, kDeviation * kDeviation * kWidth,
          san.over([](const Evidence& evidence, const CollapseCurve& curve) {
            return factor_text(kept_per_layer(evidence, curve, &TokenMeasures::norm));
          })),
      .holds = all_of({falls, san.all(collapsed)}),
      .holds_if = {{falls, "μ is read without its scale: μ/‖X‖ falls slowly under local masks"}},
      .topic = "collapse",
      .confounds = {"mu-scale"}};
}

Claim local_is_slower(const Depth& depth) {
  const Group san{depth, "san, eval"};
  const auto last = [=](const Evidence& evidence) { return last_layer(depth.curves(evidence).front()); };
  const Condition underflows = [=](const Evidence& evidence) {
    return last(evidence) + 1 < depth.curves(evidence).front().layers.size();
  };
  return {
      .where = depth.where,
      .sentence = "Collapse is slower under local masks",
      .published = "complete and causal fall first, windows later",
      .measured = written("μ/‖X‖ at layer {}{}: {}", last,
                          when(underflows, " (the last before the tokens underflow float32)"), san.ends()),
      .why =
          written("{} Judged by the differences of each local and each global mask, sample by sample ({}).",
                  radii_text(kTokens), of(depth.curves, samples_note)),
      .holds =
          [=](const Evidence& evidence) {
            return more_under_local(
                evidence, [&](const char* mask) { return relative_at_end(san.under(evidence, mask)); },
                "SAN");
          },
      .topic = "masks"};
}

// The question of dropout: in which mode does LayerNorm alone keep tokens apart?
Claim norm_prevents_collapse(const Depth& depth) {
  const Group eval{depth, "san+norm, eval"}, dropout{depth, "san+norm, dropout 0.1"};
  return {
      .where = depth.where,
      .sentence = "LayerNorm alone keeps μ from falling to 0 at random init",
      .published = "μ stays level for SAN+LN under all four masks",
      .measured = written("SAN+LN, μ/‖X‖ at layer {}: eval: {}; dropout 0.1: {} ({})", eval.layer(),
                          eval.ends(), dropout.ends(), of(depth.curves, samples_note)),
      .why =
          when(
              [=](const Evidence& evidence) { return Answer(!eval.under(evidence, "full").entropy.empty()); },
              written(
                  "Entropy of attention in the first layer, complete mask, eval: {:.4f} nats, {:.4f} if it were uniform.",
                  [=](const Evidence& evidence) { return eval.under(evidence, "full").entropy.front(); },
                  std::log(static_cast<double>(kTokens)))) +
          when(
              [=](const Evidence& evidence) { return collapsed(evidence, eval.under(evidence, "full"), ""); },
              " In eval mode the complete mask averages the tokens to one, and LayerNorm only rescales what is left.") +
          when(dropout.all(stays_apart),
               " Dropout gives every token noise of its own, which LayerNorm scales up again."),
      .holds = eval.all(stays_apart),
      .holds_if = {{dropout.all(stays_apart), "dropout is left on"}},
      .topic = "collapse",
      .confounds = {"dropout"}};
}

Claim skip_keeps_apart(const Depth& depth) {
  const Group skip{depth, "san+skip, eval"}, with_norm{depth, "san+skip+norm, eval"},
      full{depth, "full, eval"};
  const auto apart_under = [=](const Evidence& evidence, const char* mask) {
    return all_of(std::initializer_list<Group>{skip, with_norm, full}, [&](const Group& group) {
      return stays_apart(evidence, group.under(evidence, mask), fmt::format("{}, {}", group.name, mask));
    });
  };
  const auto masks_where = [=](bool apart) {
    return [=](const Evidence& evidence) {
      std::string names;
      for (const char* mask : kMasks) {
        if (apart_under(evidence, mask) == apart) append(names, mask);
      }
      return names;
    };
  };
  const Condition apart = [=](const Evidence& evidence) {
    return all_of(kMasks, [&](const char* mask) { return apart_under(evidence, mask); });
  };
  return {.where = depth.where,
          .sentence = "Do skip connections keep tokens apart at random init?",
          .published = "drawn, not claimed",
          .measured = written("μ/‖X‖ at layer {}, eval: SAN+skip: {}; SAN+skip+LN: {}; full: {}",
                              skip.layer(), skip.ends(), with_norm.ends(), full.ends()),
          .why = written("Of μ/‖X‖ at the start SAN+skip keeps after the first layer: {}.",
                         skip.over([](const Evidence&, const CollapseCurve& curve) {
                           return percent(curve.mean(1, &TokenMeasures::relative) /
                                              curve.mean(0, &TokenMeasures::relative),
                                          1, kNotMeasurable);
                         })),
          .holds = apart,
          .answer = when(apart, written("yes, over {} layers", skip.layer())) +
                    when(negation(apart),
                         when(any_in(masks_where(true)), written("under {}, ", masks_where(true))) +
                             written("not under {}: less than a hundredth is left after {} layers",
                                     masks_where(false), skip.layer())),
          .topic = "collapse"};
}

std::vector<Claim> claims_at(const Depth& depth) {
  return {pure_attention_collapses(depth), local_is_slower(depth), norm_prevents_collapse(depth),
          skip_keeps_apart(depth)};
}

Findings shown_at(const Curves& curves, const char* name, std::size_t layers) {
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
  Findings found;
  for (const auto measure : {&TokenMeasures::relative, &TokenMeasures::mu}) {
    const CollapseQuantity& quantity = quantity_of(measure);
    found.figures.push_back(curve_figure(shown, measure, fmt::format("{}_{}", name, quantity.name),
                                         fmt::format("{} layers at random init: {}", layers, quantity.title),
                                         true, text));
  }
  return found;
}

Curves run_twelve(const Evidence& evidence) {
  return evidence.collapse("Wu Fig. 2", all_variants(false),
                           bert_settings(12, evidence.plan.samples, evidence.plan.seed));
}
Curves run_many(const Evidence& evidence) {
  return evidence.collapse("Wu Fig. 6", all_variants(true),
                           bert_settings(128, evidence.plan.deep_samples, evidence.plan.seed));
}
constexpr Depth kTwelve{"Wu Fig. 2", once<run_twelve>};
constexpr Depth kMany{"Wu Fig. 6", once<run_many>};

Curves run_pretrained(const Evidence& evidence) {
  return run_models(evidence, "Wu Fig. 2, pretrained", [](const PretrainedModel& model) {
    std::vector<CollapseCase> cases;
    for (const std::string_view variant : variant_names()) {
      for (const char* mask : kMasks) {
        cases.push_back({std::string(variant), mask, variant_of(variant, spec_of(model).block),
                         parse_mask(mask, tokens_of(model))});
      }
    }
    return cases;
  });
}
const CollapseCurve& pretrained(const Evidence& evidence, const PretrainedModel& model,
                                std::string_view variant, std::string_view mask) {
  return find(once<run_pretrained>(evidence), model, variant, mask);
}

std::string end_text(const Evidence& evidence, const CollapseCurve& curve) {
  return with_interval(mean_interval(relative_at(curve, curve.layers.size() - 1), level_of(evidence)));
}
// Something of a variant of every model under every mask.
Text over_pretrained(const char* variant, std::string (*text)(const Evidence&, const CollapseCurve&)) {
  return over_models([=](const Evidence& evidence, const PretrainedModel& model) {
    return over_masks(
        [&](const char* mask) { return text(evidence, pretrained(evidence, model, variant, mask)); });
  });
}

Claim pretrained_attention() {
  return by_model_and_mask(
      {.where = "Wu Fig. 2, pretrained",
       .sentence = "Without LayerNorm, pure attention collapses exponentially under every mask",
       .published = "μ falls along a line under all four masks, pretrained BERT",
       .measured = written(
           "share of μ/‖X‖ kept per layer, {}; μ after the last layer over μ at the start, {}",
           over_pretrained("san",
                           [](const Evidence& evidence, const CollapseCurve& curve) {
                             return factor_text(rate_of(evidence, curve));
                           }),
           over_pretrained("san",
                           [](const Evidence& evidence, const CollapseCurve& curve) {
                             return factor_text(mean_ratio(
                                 curve.of(0, &TokenMeasures::mu),
                                 curve.of(curve.layers.size() - 1, &TokenMeasures::mu), level_of(evidence)));
                           })),
       .why =
           "Counted as collapse: a fitted factor whose interval lies below 0.9 per layer. μ itself also has the scale of the value matrices in it.",
       .topic = "collapse",
       .confounds = {"mu-scale"}},
      [](const Evidence& evidence, const PretrainedModel& model, const char* mask) {
        return below(evidence, rate_of(evidence, pretrained(evidence, model, "san", mask)), kExponential,
                     {fmt::format("{}, {}: share of μ/‖X‖ kept per layer", model.name, mask), "×"});
      });
}

Claim pretrained_local_is_slower() {
  return by_model(
      {.where = "Wu Fig. 2, pretrained",
       .sentence = "Collapse of pure attention is slower under local masks",
       .published = "complete and causal fall first, windows later",
       .measured = written("SAN, μ/‖X‖ after the last layer, {} ({})", over_pretrained("san", end_text),
                           model_samples_note),
       .why =
           written("{} Judged by the differences of each local and each global mask, window by window.",
                   [](const Evidence& evidence) { return radii_text(tokens_of(evidence.models.front())); }),
       .topic = "masks"},
      [](const Evidence& evidence, const PretrainedModel& model) {
        return more_under_local(
            evidence,
            [&](const char* mask) { return relative_at_end(pretrained(evidence, model, "san", mask)); },
            model.name);
      });
}

Claim parts_together() {
  return by_model(
      {.where = "Wu Fig. 2, pretrained",
       .sentence =
           "In pretrained models LayerNorm, together with the other parts, keeps tokens from collapse",
       .published = "μ of the full model stays level under all four masks",
       .measured = written("full model, μ/‖X‖ after the last layer, {} ({})",
                           over_pretrained("full", end_text), model_samples_note),
       .why = "Counted as collapse: less than a hundredth of μ/‖X‖ at the start.",
       .topic = "collapse"},
      [](const Evidence& evidence, const PretrainedModel& model) {
        return all_of(kMasks, [&](const char* mask) {
          return stays_apart(evidence, pretrained(evidence, model, "full", mask),
                             fmt::format("{}, {}", model.name, mask));
        });
      });
}

// Of μ/‖X‖ at the start, what a variant keeps under the model's own mask.
std::string kept(const Evidence& evidence, const PretrainedModel& model, const char* variant) {
  const CollapseCurve& curve = pretrained(evidence, model, variant, own_mask_name(model));
  const RatioInterval share = mean_ratio(relative_at(curve, 0), relative_at_end(curve), level_of(evidence));
  const std::string mean = percent(share.estimate.low, 0, kNotMeasurable);
  return !std::isfinite(share.high - share.low)
             ? mean
             : fmt::format("{} ({:.0f} to {:.0f})", mean, 100 * share.low, 100 * share.high);
}

Claim which_part() {
  return {
      .where = "Wu Fig. 2, pretrained",
      .sentence = "Which part keeps the tokens of a pretrained model apart?",
      .published = "drawn, not claimed",
      .needs = {{Need::models}},
      .there = any_in(models_of),
      .measured = written(
          "μ/‖X‖ after the last layer under its own mask, {}",
          over_models([](const Evidence& evidence, const PretrainedModel& model) {
            std::string text;
            for (const char* variant : {"san", "san+norm", "san+skip", "san+skip+norm", "full"})
              append(text, fmt::format("{} {}", variant,
                                       end_text(evidence,
                                                pretrained(evidence, model, variant, own_mask_name(model)))));
            return text;
          })),
      .why =
          "Parts are taken out of a model that was trained with all of them, so that weights meet tokens of a scale they never saw.",
      .answer = over_models([](const Evidence& evidence, const PretrainedModel& model) {
        return fmt::format(
            "of μ/‖X‖ at the start, attention alone keeps {}, with its norm {}, with its skip {}, with both {}, the full model {}",
            kept(evidence, model, "san"), kept(evidence, model, "san+norm"),
            kept(evidence, model, "san+skip"), kept(evidence, model, "san+skip+norm"),
            kept(evidence, model, "full"));
      }),
      .topic = "collapse"};
}

Findings shown_pretrained(const Evidence& evidence) {
  Findings found;
  if (evidence.models.empty()) return found;
  const Curves& curves = once<run_pretrained>(evidence);
  add_figures(found, evidence.models, curves, &TokenMeasures::relative, "wu2_pretrained", "μ/‖X‖ by layer");
  add_figures(found, evidence.models, curves, &TokenMeasures::mu, "wu2_pretrained",
              "μ by layer, not free of scale");
  return found;
}

// What one group of curves says of one measure.
Figure reading(const Curves& curves, const std::string& group, double TokenMeasures::*measure,
               const char* name, const char* title) {
  Curves chosen;
  for (const CollapseCurve& curve : curves) {
    if (curve.group != group) continue;
    chosen.push_back(curve);
    chosen.back().layers.resize(last_layer(curve) + 1);
  }
  return curve_figure(chosen, measure, name, title, false, "");
}

std::vector<Figure> confounds_of(const Curves& curves) {
  return {reading(curves, in_mode("san+norm", 0), &TokenMeasures::relative, "confound-dropout-eval",
                  "SAN+LN in eval mode"),
          reading(curves, in_mode("san+norm", kDropout), &TokenMeasures::relative, "confound-dropout-on",
                  "SAN+LN with dropout 0.1"),
          reading(curves, in_mode("san", 0), &TokenMeasures::mu, "confound-mu-scale-mu",
                  "SAN: μ, with its scale"),
          reading(curves, in_mode("san", 0), &TokenMeasures::relative, "confound-mu-scale-relative",
                  "SAN: μ/‖X‖, free of scale")};
}

}  // namespace

Exhibit wu_fig2() {
  std::vector<Claim> claims = claims_at(kTwelve);
  for (const Claim& claim :
       {pretrained_attention(), pretrained_local_is_slower(), parts_together(), which_part()})
    claims.push_back(claim);
  return {claims, [](const Evidence& evidence) {
            const Curves& curves = kTwelve.curves(evidence);
            Findings found = shown_at(curves, "wu2", 12);
            for (Figure& figure : confounds_of(curves)) found.figures.push_back(std::move(figure));
            found.add(shown_pretrained(evidence));
            return found;
          }};
}

Exhibit wu_fig6() {
  return {claims_at(kMany),
          [](const Evidence& evidence) { return shown_at(kMany.curves(evidence), "wu6", 128); }};
}

}  // namespace normscope

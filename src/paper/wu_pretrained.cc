#include "paper/wu_pretrained.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "core/number_text.h"
#include "paper_texts.h"
#include "report/collapse_page.h"

namespace normscope {
namespace {

constexpr std::array<const char*, 4> kMasks = {"full", "causal", "window:1", "onesided:1"};
constexpr const char* kNoModel =
    "not run: no pretrained model is on this machine (normscope data get minilm brings one)";

const ModelSpec& spec_of(const PretrainedModel& model) {
  return model.weights->spec();
}

std::size_t tokens_of(const PretrainedModel& model) {
  return model.texts.front().size();
}

CollapseSettings settings_of(const PretrainedModel& model, std::size_t most_samples = ~std::size_t{0}) {
  CollapseSettings settings;
  settings.tokens = tokens_of(model);
  settings.layers = spec_of(model).layers;
  settings.samples = std::min(model.texts.size(), most_samples);
  settings.model = model.weights;
  settings.texts = model.texts;
  settings.spectrum = Spectrum::no;
  settings.theory = false;
  return settings;
}

std::string own_mask_name(const PretrainedModel& model) {
  return spec_of(model).causal ? "causal" : "full";
}

// All curves of all models, groups with the model's name before.
struct Curves {
  std::vector<CollapseCurve> all;
  const CollapseCurve& of(const PretrainedModel& model, std::string_view group, std::string_view name) const {
    const std::string full = fmt::format("{}: {}", model.name, group);
    return *std::find_if(all.begin(), all.end(), [&](const CollapseCurve& curve) {
      return curve.group == full && curve.name == name;
    });
  }
};

CollapseCase case_of(const PretrainedModel& model, const std::string& group, const std::string& name,
                     const BlockSpec& block, Mask mask) {
  return {fmt::format("{}: {}", model.name, group), name, block, std::move(mask)};
}

void append(Curves& to, std::vector<CollapseCurve> more) {
  for (CollapseCurve& curve : more) to.all.push_back(std::move(curve));
}

Interval relative(const CollapseCurve& curve, std::size_t layer) {
  return mean_interval(curve.of(layer, &TokenMeasures::relative));
}

std::vector<double> at_end(const CollapseCurve& curve) {
  return curve.of(curve.layers.size() - 1, &TokenMeasures::relative);
}

// Whether something is so, is not, or cannot be told: one window has no interval.
using Finding = std::optional<bool>;
Finding finding(bool so, bool not_so) {
  return so ? Finding(true) : not_so ? Finding(false) : std::nullopt;
}

// Farther from all equal than a hundredth of where it began, window by window, as at random init.
Finding stays_apart(const CollapseCurve& curve) {
  std::vector<double> limit = curve.of(0, &TokenMeasures::relative);
  for (double& value : limit) value *= 0.01;
  const Interval beyond = mean_difference(limit, at_end(curve));
  return finding(beyond.above(0), beyond.below(0));
}

std::string over_masks(const std::function<std::string(const char* mask)>& text) {
  std::string all;
  for (const char* mask : kMasks) all += fmt::format("{}{} {}", all.empty() ? "" : ", ", mask, text(mask));
  return all;
}

// "minilm: …; stories15m: …"
std::string over_models(const std::vector<PretrainedModel>& models,
                        const std::function<std::string(const PretrainedModel&)>& text) {
  std::string all;
  for (const PretrainedModel& model : models)
    all += fmt::format("{}{}: {}", all.empty() ? "" : "; ", model.name, text(model));
  return all;
}

std::string names_of(const std::vector<PretrainedModel>& models) {
  std::string all;
  for (const PretrainedModel& model : models) all += fmt::format("{}{}", all.empty() ? "" : ", ", model.name);
  return all;
}

// Holds for all models, for none, or for some, which the condition names; open if of one it cannot be told.
void judge(Claim& claim, const std::vector<PretrainedModel>& models,
           const std::function<Finding(const PretrainedModel&)>& holds) {
  std::vector<PretrainedModel> holding;
  bool told = !models.empty();
  for (const PretrainedModel& model : models) {
    const Finding found = holds(model);
    told = told && found;
    if (found == true) holding.push_back(model);
  }
  claim.holds = !told                             ? Holds::open
                : holding.empty()                 ? Holds::no
                : holding.size() == models.size() ? Holds::yes
                                                  : Holds::conditionally;
  claim.condition = fmt::format("the model is {}", names_of(holding));
}

// Whether it is so under all masks.
Finding of_all_masks(const PretrainedModel& model,
                     const std::function<Finding(const PretrainedModel&, const char* mask)>& holds) {
  bool all = true, any_not = false;
  for (const char* mask : kMasks) {
    const Finding found = holds(model, mask);
    all = all && found == true;
    any_not = any_not || found == false;
  }
  return finding(all, any_not);
}

// The same for masks: those that hold in all models are the condition.
void judge_by_mask(Claim& claim, const std::vector<PretrainedModel>& models,
                   const std::function<Finding(const PretrainedModel&, const char* mask)>& holds) {
  judge(claim, models, [&](const PretrainedModel& model) { return of_all_masks(model, holds); });
  if (claim.holds != Holds::no && claim.holds != Holds::conditionally) return;
  std::vector<std::string> masks;
  for (const char* mask : kMasks) {
    const bool in_all = std::all_of(models.begin(), models.end(),
                                    [&](const PretrainedModel& model) { return holds(model, mask) == true; });
    if (in_all) masks.emplace_back(mask);
  }
  if (masks.empty()) return;
  claim.condition = fmt::format("{}the mask is one of {}",
                                claim.holds == Holds::conditionally ? claim.condition + " or " : "",
                                fmt::join(masks, ", "));
  claim.holds = Holds::conditionally;
}

std::string samples_note(const std::vector<PretrainedModel>& models) {
  const std::size_t windows = models.front().texts.size();
  return windows == 1
             ? fmt::format("one window of {} tokens, which has no interval", tokens_of(models.front()))
             : fmt::format("± 95 % interval over {} windows of {} tokens", windows,
                           tokens_of(models.front()));
}

std::string stands_in(const PretrainedModel& model) {
  const std::string published = published_model(spec_of(model).family);
  if (published.empty()) return "like none of the paper's";
  return model.name == published || model.name.ends_with("/" + published) ? "the paper's own" : published;
}

std::string caption(const std::vector<PretrainedModel>& models) {
  std::string text = "Pretrained, eval mode.";
  for (const PretrainedModel& model : models) {
    text += fmt::format(
        " {} ({} layers; its own mask {}): {}.", model.name, spec_of(model).layers, own_mask_name(model),
        stands_in(model) == "the paper's own" || published_model(spec_of(model).family).empty()
            ? stands_in(model)
            : "in place of " + stands_in(model));
  }
  return text + fmt::format(" Mean over {} windows of {} tokens; bands: one standard deviation.",
                            models.front().texts.size(), tokens_of(models.front()));
}

// The axis ends at the decade below what is drawn, or flat curves all lie at the top.
void end_axes(CurveFigure& figure) {
  double least = 1;
  for (const auto& panel : figure.panels) {
    for (const auto& curve : panel.curves) {
      for (const double y : curve.y) {
        if (y > 0) least = std::min(least, y);
      }
    }
  }
  const double low = std::pow(10, std::floor(std::log10(least)));
  for (auto& panel : figure.panels) {
    if (panel.log_y) panel.y_low = std::max(low, panel.y_low.value_or(0));
  }
}

// One figure per model, so that its panels stand together.
void add_figures(WuPart& part, const std::vector<PretrainedModel>& models, const Curves& curves,
                 double TokenMeasures::*measure, const std::string& name, const std::string& title) {
  const auto quantities = collapse_quantities();
  const auto quantity = std::find_if(quantities.begin(), quantities.end(),
                                     [&](const CollapseQuantity& each) { return each.measure == measure; });
  for (const PretrainedModel& model : models) {
    const std::string prefix = model.name + ": ";
    std::vector<CollapseCurve> own;
    for (const CollapseCurve& curve : curves.all) {
      if (!curve.group.starts_with(prefix)) continue;
      own.push_back(curve);
      own.back().group.erase(0, prefix.size());
    }
    CurveFigure figure = collapse_figure(own, *quantity, false);
    end_axes(figure);
    figure.caption = caption({model});
    part.figures.push_back(to_figure(fmt::format("{}_{}", name, part.figures.size()),
                                     fmt::format("{}, pretrained: {}", model.name, title), "", figure));
  }
}

Claim pure_attention(const std::vector<PretrainedModel>& models, const Curves& curves) {
  Claim claim = claim_of("Wu Fig. 2, pretrained",
                         "Without LayerNorm, pure attention collapses exponentially under every mask",
                         "μ falls along a line under all four masks, pretrained BERT");
  claim.measured = fmt::format(
      "share of μ/‖X‖ kept per layer, {}; μ after the last layer over μ at the start, {}",
      over_models(models,
                  [&](const PretrainedModel& model) {
                    return over_masks([&](const char* mask) {
                      return factor_text(curves.of(model, "san", mask).rate.interval());
                    });
                  }),
      over_models(models, [&](const PretrainedModel& model) {
        return over_masks([&](const char* mask) {
          const CollapseCurve& curve = curves.of(model, "san", mask);
          const RatioInterval left = mean_ratio(curve.of(0, &TokenMeasures::mu),
                                                curve.of(curve.layers.size() - 1, &TokenMeasures::mu));
          return factor_text(left);
        });
      }));
  judge_by_mask(claim, models, [&](const PretrainedModel& model, const char* mask) {
    const CollapseRate& rate = curves.of(model, "san", mask).rate;
    return finding(rate.high<0.9, rate.low> 0.9);
  });
  claim.why =
      "Counted as collapse: a fitted factor whose interval lies below 0.9 per layer. μ itself also has the "
      "scale of the value matrices in it.";
  return claim;
}

Claim local_is_slower(const std::vector<PretrainedModel>& models, const Curves& curves) {
  Claim claim = claim_of("Wu Fig. 2, pretrained", "Collapse of pure attention is slower under local masks",
                         "complete and causal fall first, windows later");
  claim.measured = fmt::format("SAN, μ/‖X‖ after the last layer, {} ({})",
                               over_models(models,
                                           [&](const PretrainedModel& model) {
                                             return over_masks([&](const char* mask) {
                                               const CollapseCurve& curve = curves.of(model, "san", mask);
                                               return with_interval(relative(curve, curve.layers.size() - 1));
                                             });
                                           }),
                               samples_note(models));
  judge(claim, models, [&](const PretrainedModel& model) {
    const auto end = [&](const char* mask) { return at_end(curves.of(model, "san", mask)); };
    bool all = true, any_not = false;
    for (const char* global : {"full", "causal"}) {
      for (const char* local : {"window:1", "onesided:1"}) {
        const Interval more = mean_difference(end(global), end(local));
        all = all && more.above(0);
        any_not = any_not || more.below(0);
      }
    }
    return finding(all, any_not);
  });
  claim.why =
      "Radii at 128 tokens are 1, 1, 64 and 127. Judged by the differences of each local and each global "
      "mask, window by window.";
  return claim;
}

std::string of_variants(const PretrainedModel& model, const Curves& curves,
                        std::initializer_list<const char*> variants) {
  std::string text;
  for (const char* variant : variants) {
    const CollapseCurve& curve = curves.of(model, variant, own_mask_name(model));
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", variant,
                        with_interval(relative(curve, curve.layers.size() - 1)));
  }
  return text;
}

Claim parts_together(const std::vector<PretrainedModel>& models, const Curves& curves) {
  Claim claim =
      claim_of("Wu Fig. 2, pretrained",
               "In pretrained models LayerNorm, together with the other parts, keeps tokens from collapse",
               "μ of the full model stays level under all four masks");
  claim.measured = fmt::format("full model, μ/‖X‖ after the last layer, {} ({})",
                               over_models(models,
                                           [&](const PretrainedModel& model) {
                                             return over_masks([&](const char* mask) {
                                               const CollapseCurve& curve = curves.of(model, "full", mask);
                                               return with_interval(relative(curve, curve.layers.size() - 1));
                                             });
                                           }),
                               samples_note(models));
  judge(claim, models, [&](const PretrainedModel& model) {
    return of_all_masks(model, [&](const PretrainedModel& each, const char* mask) {
      return stays_apart(curves.of(each, "full", mask));
    });
  });
  claim.why = "Counted as collapse: less than a hundredth of μ/‖X‖ at the start.";
  return claim;
}

Claim which_part(const std::vector<PretrainedModel>& models, const Curves& curves) {
  Claim claim = claim_of("Wu Fig. 2, pretrained", "Which part keeps the tokens of a pretrained model apart?",
                         "drawn, not claimed");
  claim.measured = fmt::format(
      "μ/‖X‖ after the last layer under its own mask, {}",
      over_models(models, [&](const PretrainedModel& model) {
        return of_variants(model, curves, {"san", "san+norm", "san+skip", "san+skip+norm", "full"});
      }));
  claim.holds = Holds::answered;
  claim.condition = over_models(models, [&](const PretrainedModel& model) {
    const auto kept = [&](const char* variant) {
      const CollapseCurve& curve = curves.of(model, variant, own_mask_name(model));
      const RatioInterval share = mean_ratio(curve.of(0, &TokenMeasures::relative), at_end(curve));
      return share.count == 1 ? fmt::format("{:.0f} %", 100 * share.estimate.low)
                              : fmt::format("{:.0f} % ({:.0f} to {:.0f})", 100 * share.estimate.low,
                                            100 * share.low, 100 * share.high);
    };
    return fmt::format(
        "of μ/‖X‖ at the start, attention alone keeps {}, with its norm {}, with its skip {}, with both {}, "
        "the full model {}",
        kept("san"), kept("san+norm"), kept("san+skip"), kept("san+skip+norm"), kept("full"));
  });
  claim.why =
      "Parts are taken out of a model that was trained with all of them, so that weights meet tokens of a "
      "scale "
      "they never saw.";
  return claim;
}

}  // namespace

std::string published_model(std::string_view family) {
  if (family == "bert" || family == "roberta" || family == "distilbert") return "bert-base-uncased";
  if (family == "gpt2" || family == "llama" || family == "mistral" || family == "qwen2") return "gpt2";
  if (family == "t5") return "t5-base";
  if (family == "albert") return "albert-base-v2";
  return "";
}

std::string_view builtin_text() {
  return embedded::encyclopedia_txt;
}

ReportTable pretrained_table(const std::vector<PretrainedModel>& models, const std::string& source) {
  ReportTable table{fmt::format("Pretrained models; text: {}", source),
                    {{"model", "family", "layers", "dimensions", "heads", "norm", "own mask", "in place of",
                      "windows", "tokens in each"}}};
  for (const PretrainedModel& model : models) {
    const ModelSpec& spec = spec_of(model);
    table.rows.push_back({model.name, spec.family, std::to_string(spec.layers),
                          std::to_string(spec.block.width), std::to_string(spec.block.heads),
                          fmt::format("{}, {}", name_of(spec.block.norm),
                                      spec.block.placement == Placement::post ? "post" : "pre"),
                          own_mask_name(model), stands_in(model), std::to_string(model.texts.size()),
                          std::to_string(tokens_of(model))});
  }
  return table;
}

WuPart wu_figure2_pretrained(const std::vector<PretrainedModel>& models, const RunCollapse& run) {
  WuPart part;
  if (models.empty()) return part;
  Curves curves;
  for (const PretrainedModel& model : models) {
    std::vector<CollapseCase> cases;
    for (const std::string_view variant : variant_names()) {
      for (const char* mask : kMasks) {
        cases.push_back(case_of(model, std::string(variant), mask, variant_of(variant, spec_of(model).block),
                                parse_mask(mask, tokens_of(model))));
      }
    }
    append(curves, run(cases, settings_of(model)));
  }
  part.claims = {pure_attention(models, curves), local_is_slower(models, curves),
                 parts_together(models, curves), which_part(models, curves)};
  add_figures(part, models, curves, &TokenMeasures::relative, "wu2_pretrained", "μ/‖X‖ by layer");
  add_figures(part, models, curves, &TokenMeasures::mu, "wu2_pretrained", "μ by layer, not free of scale");
  return part;
}

WuPart wu_figure3(const std::vector<PretrainedModel>& models, const RunCollapse& run) {
  constexpr std::array temperatures = {1.0 / 64, 1.0, 64.0};
  constexpr std::array labels = {"d_QK = 1/64", "d_QK = 1", "d_QK = 64"};
  Claim slows = claim_of("Wu Fig. 3", "A smaller d_QK slows collapse in pretrained models",
                         "the curve of 1/64 lies above those of 1 and 64");
  Claim where = claim_of("Wu Fig. 3", "The effect is greatest under global masks and in early layers",
                         "complete and causal gain more than windows; layers 1 to 3 more than later ones");
  slows.measured = where.measured = kNoModel;
  if (models.empty()) return {{slows, where}, {}, {}};
  Curves curves;
  for (const PretrainedModel& model : models) {
    std::vector<CollapseCase> cases;
    for (const char* mask : kMasks) {
      for (std::size_t t = 0; t < temperatures.size(); ++t) {
        BlockSpec block = variant_of("san", spec_of(model).block);
        block.temperature = temperatures[t];
        cases.push_back(case_of(model, fmt::format("san, {}", mask), labels[t], block,
                                parse_mask(mask, tokens_of(model))));
      }
    }
    append(curves, run(cases, settings_of(model)));
  }
  // How much more is left: μ/‖X‖ at d_QK = 1/64 over that at 64, window by window.
  const auto gains = [&](const PretrainedModel& model, const char* mask, std::size_t layer) {
    const std::string group = fmt::format("san, {}", mask);
    std::vector<double> sharp = curves.of(model, group, labels[0]).of(layer, &TokenMeasures::relative);
    const std::vector<double> flat = curves.of(model, group, labels[2]).of(layer, &TokenMeasures::relative);
    for (std::size_t s = 0; s < sharp.size(); ++s) sharp[s] /= flat[s];
    return sharp;
  };
  const auto gain = [&](const PretrainedModel& model, const char* mask, std::size_t layer) {
    const std::vector<double> values = gains(model, mask, layer);
    return mean_ratio(std::vector<double>(values.size(), 1), values);
  };
  slows.measured = fmt::format(
      "SAN, μ/‖X‖ at d_QK = 1/64 over that at 64, after layer 1, {} ({})",
      over_models(models,
                  [&](const PretrainedModel& model) {
                    return over_masks([&](const char* mask) { return factor_text(gain(model, mask, 1)); });
                  }),
      samples_note(models));
  judge_by_mask(slows, models, [&](const PretrainedModel& model, const char* mask) {
    const RatioInterval found = gain(model, mask, 1);
    return finding(found.above(1), found.below(1));
  });
  slows.why = "Scores are divided by √d_QK, so that a small one sharpens attention.";
  where.measured =
      fmt::format("the same after the last layer, {}", over_models(models, [&](const PretrainedModel& model) {
                    return over_masks([&](const char* mask) {
                      return factor_text(gain(model, mask, spec_of(model).layers));
                    });
                  }));
  // The global mask that gains most against both local ones.
  const auto global = [&](const PretrainedModel& model) {
    const char* most =
        gain(model, "full", 1).estimate.low > gain(model, "causal", 1).estimate.low ? "full" : "causal";
    bool all = true, any_not = false;
    for (const char* local : {"window:1", "onesided:1"}) {
      const RatioInterval more = mean_ratio(gains(model, local, 1), gains(model, most, 1));
      all = all && more.above(1);
      any_not = any_not || more.below(1);
    }
    return finding(all, any_not);
  };
  const auto early = [&](const PretrainedModel& model) {
    bool all = true, any_not = false;
    for (const char* mask : {"full", "causal"}) {
      const RatioInterval more = mean_ratio(gains(model, mask, spec_of(model).layers), gains(model, mask, 1));
      all = all && more.above(1);
      any_not = any_not || more.below(1);
    }
    return finding(all, any_not);
  };
  judge(where, models, [&](const PretrainedModel& model) {
    return finding(global(model) == true && early(model) == true,
                   global(model) == false || early(model) == false);
  });
  const bool all_global = std::all_of(models.begin(), models.end(),
                                      [&](const PretrainedModel& model) { return global(model) == true; });
  if ((where.holds == Holds::no || where.holds == Holds::conditionally) && all_global) {
    where.condition = fmt::format("layers are left aside{}: all gain most under global masks",
                                  where.holds == Holds::conditionally ? ", or " + where.condition : "");
    where.holds = Holds::conditionally;
  }
  where.why =
      "Early: the ratio of what both temperatures leave is greater after the first layer than after the "
      "last, "
      "under both global masks. It grows without end where only the flat one collapses.";
  WuPart part;
  part.claims = {slows, where};
  add_figures(part, models, curves, &TokenMeasures::relative, "wu3", "temperature, μ/‖X‖ by layer");
  return part;
}

WuPart wu_figure4(const std::vector<PretrainedModel>& models, const RunCollapse& run) {
  Claim rank = claim_of("Wu Fig. 4", "Tokens of trained models keep full rank in all layers",
                        "rank about 100 % in bert-base-uncased, gpt2, t5-base, albert-base-v2");
  Claim cosine = claim_of("Wu Fig. 4", "Tokens of trained models grow anisotropic with depth",
                          "mean |cosine| rises with the layer; the least singular value stays above 0");
  rank.measured = cosine.measured = kNoModel;
  if (models.empty()) return {{rank, cosine}, {}, {}};
  Curves curves;
  for (const PretrainedModel& model : models) {
    CollapseSettings settings = settings_of(model);
    settings.spectrum = Spectrum::yes;
    append(curves, run({{"the models as they are", model.name, spec_of(model).block,
                         model_mask(spec_of(model), tokens_of(model))}},
                       settings));
  }
  const auto of = [&](const PretrainedModel& model) -> const CollapseCurve& {
    return *std::find_if(curves.all.begin(), curves.all.end(),
                         [&](const CollapseCurve& curve) { return curve.name == model.name; });
  };
  const auto least_rank = [&](const PretrainedModel& model) {
    double least = 1;
    for (std::size_t layer = 1; layer <= spec_of(model).layers; ++layer) {
      for (const double share : of(model).of(layer, &TokenMeasures::rank_share))
        least = std::min(least, share);
    }
    return least;
  };
  const auto value = [&](const PretrainedModel& model, std::size_t layer, double TokenMeasures::*measure) {
    return mean_interval(of(model).of(layer, measure));
  };
  rank.measured = over_models(models, [&](const PretrainedModel& model) {
    return fmt::format("{:.1f} % at the start, least {:.1f} % in layers 1 to {}",
                       100 * value(model, 0, &TokenMeasures::rank_share).mean, 100 * least_rank(model),
                       spec_of(model).layers);
  });
  judge(rank, models, [&](const PretrainedModel& model) { return least_rank(model) >= 0.99; });
  rank.why =
      "Singular values above σ₁·max(N, d)·ε of float32, of windows shorter than the width. Where a model "
      "adds no "
      "positions to its embeddings, equal words start as equal rows, and the first layer tells them apart.";
  cosine.measured = over_models(models, [&](const PretrainedModel& model) {
    const std::size_t last = spec_of(model).layers;
    std::size_t top = 0;
    for (std::size_t layer = 1; layer <= last; ++layer) {
      if (value(model, layer, &TokenMeasures::mean_abs_cosine).mean >
          value(model, top, &TokenMeasures::mean_abs_cosine).mean)
        top = layer;
    }
    return fmt::format("mean |cos| {} at the start, {} after layer {}, most {} after layer {}; σ_min {}",
                       with_interval(value(model, 0, &TokenMeasures::mean_abs_cosine)),
                       with_interval(value(model, last, &TokenMeasures::mean_abs_cosine)), last,
                       with_interval(value(model, top, &TokenMeasures::mean_abs_cosine)), top,
                       with_interval(value(model, last, &TokenMeasures::least_singular)));
  });
  judge(cosine, models, [&](const PretrainedModel& model) {
    const CollapseCurve& curve = of(model);
    const Interval more = mean_difference(curve.of(0, &TokenMeasures::mean_abs_cosine),
                                          curve.of(spec_of(model).layers, &TokenMeasures::mean_abs_cosine));
    return finding(more.above(0), more.below(0));
  });
  cosine.why =
      "Judged by the differences of last layer and start, window by window. Layer 0 is what enters the first "
      "layer; a norm after the last one is left out.";
  WuPart part;
  part.claims = {rank, cosine};
  CurveFigure figure;
  const CollapseQuantity quantities[] = {
      {&TokenMeasures::rank_share, "rank_share", "rank", "rank, share of full", false},
      {&TokenMeasures::mean_abs_cosine, "mean_abs_cosine", "mean |cos|", "mean |cosine| of two tokens",
       false},
      {&TokenMeasures::least_singular, "least_singular", "σ_min", "least singular value", true}};
  for (const CollapseQuantity& quantity : quantities) {
    CurveFigure one = collapse_figure(curves.all, quantity, false);
    one.panels.front().title = quantity.title;
    if (!quantity.log) one.panels.front().y_low = 0;
    figure.panels.push_back(std::move(one.panels.front()));
  }
  figure.caption = caption(models);
  part.figures.push_back(
      to_figure("wu4", "Pretrained models as they are: rank, cosines, least singular value", "", figure));
  return part;
}

WuPart wu_figure8_pretrained(const std::vector<PretrainedModel>& models, const RunCollapse& run) {
  WuPart part;
  if (models.empty()) return part;
  Curves curves;
  for (const PretrainedModel& model : models) {
    std::vector<CollapseCase> cases;
    for (const char* variant : {"san", "san+norm", "full"}) {
      cases.push_back(case_of(model, variant, own_mask_name(model), variant_of(variant, spec_of(model).block),
                              model_mask(spec_of(model), tokens_of(model))));
    }
    CollapseSettings settings = settings_of(model, 4);
    settings.spectrum = Spectrum::yes;
    append(curves, run(cases, settings));
  }
  // σ₂/σ₁ or, of the last, σ/σ₁.
  const auto share = [&](const PretrainedModel& model, const char* variant, bool last) {
    const CollapseCurve& curve = curves.of(model, variant, own_mask_name(model));
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
    const Interval second = share(model, "full", false), last = share(model, "full", true);
    return finding(second.above(1e-2) && last.above(1e-5), second.below(1e-2) || last.below(1e-5));
  };
  const auto persists = [&](const PretrainedModel& model) { return persist(model) == true; };
  judge(claim, models, [&](const PretrainedModel& model) {
    const Interval san = share(model, "san", false);
    return finding(san.below(1e-2) && persists(model), san.above(1e-2) || persist(model) == false);
  });
  if (claim.holds == Holds::no && std::all_of(models.begin(), models.end(), persists)) {
    claim.holds = Holds::conditionally;
    claim.condition =
        "vanish is read over many more layers than these models have; in the full models they persist";
  }
  claim.why =
      "Vanish: the interval of σ₂/σ₁ below a hundredth; persist: above it, and that of the last above 1e-5. "
      "At "
      "most 4 windows, each model under its own mask.";
  part.claims = {claim};
  CurveFigure figure = singular_value_figure(curves.all);
  figure.caption = caption(models);
  part.figures.push_back(
      to_figure("wu8_pretrained", "Pretrained: singular values by layer, over the first", "", figure));
  return part;
}

WuPart wu_figure9_pretrained(const std::vector<PretrainedModel>& models, const Executor& executor) {
  Claim claim =
      claim_of("Wu Fig. 9, pretrained", "Cosines of the initial embeddings are at least 0 (what Cor. 1 asks)",
               "all ≥ 0 for pretrained BERT and ALBERT");
  claim.measured = kNoModel;
  if (models.empty()) return {{claim}, {}, {}};
  struct Cosines {
    std::vector<double> least, mean;
  };
  std::vector<Cosines> of(models.size());
  std::vector<PretrainedModel> meant;
  for (std::size_t m = 0; m < models.size(); ++m) {
    for (const Matrix<float>& x : embed(*models[m].weights, models[m].texts, executor)) {
      const TokenMeasures measures = measure_tokens<float>(x.view(), Spectrum::no);
      of[m].least.push_back(measures.min_cosine);
      of[m].mean.push_back(measures.mean_cosine);
    }
    const std::string published = published_model(spec_of(models[m]).family);
    if (published == "bert-base-uncased" || published == "albert-base-v2") meant.push_back(models[m]);
  }
  const auto cosines = [&](const PretrainedModel& model) -> const Cosines& {
    return of[static_cast<std::size_t>(
        std::find_if(models.begin(), models.end(),
                     [&](const PretrainedModel& each) { return each.name == model.name; }) -
        models.begin())];
  };
  const auto lowest = [&](const PretrainedModel& model) {
    const auto& least = cosines(model).least;
    return *std::min_element(least.begin(), least.end());
  };
  claim.measured = over_models(models, [&](const PretrainedModel& model) {
    return fmt::format("least {:.2f}, mean {}", lowest(model),
                       with_interval(mean_interval(cosines(model).mean)));
  });
  judge(claim, meant, [&](const PretrainedModel& model) { return lowest(model) >= 0; });
  const bool own = std::any_of(meant.begin(), meant.end(), [](const PretrainedModel& model) {
    return stands_in(model) == "the paper's own";
  });
  claim.why = fmt::format(
      "The verdict is over models like BERT and ALBERT ({}), which the figure is about; the others stand "
      "beside "
      "them.{}",
      meant.empty() ? "none here" : names_of(meant),
      own ? "" : " The paper's own two are not here, so nothing is said of them.");
  return {{claim}, {}, {}};
}

}  // namespace normscope

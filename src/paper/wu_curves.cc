#include "paper/wu_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/number_text.h"
#include "normscope/norm.h"
#include "normscope/random.h"
#include "paper_texts.h"

namespace normscope {
namespace {

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

// A difference of the start's hundredth rather than a ratio, which has no size where nothing is left: the share
// that is left, sample by sample.
Interval share_left(const Evidence& evidence, const CollapseCurve& curve) {
  const std::vector<double> start = relative_at(curve, 0);
  std::vector<double> share = relative_at_end(curve);
  for (std::size_t s = 0; s < share.size(); ++s) share[s] = share[s] == 0 ? 0 : share[s] / start[s];
  return mean_interval(share, level_of(evidence));
}
constexpr Threshold kCollapsed{
    0.01, "two orders of magnitude: what falls exponentially is far below after twelve layers"};

}  // namespace

std::string over_masks(const TextOfMask& text) {
  std::string all;
  for (const char* mask : kMasks) append(all, fmt::format("{} {}", mask, text(mask)));
  return all;
}

std::string radii_text(std::size_t tokens) {
  return fmt::format("Radii at {} tokens: {}.", tokens, over_masks([&](const char* mask) {
                       const auto radius = mask_properties(parse_mask(mask, tokens)).radius;
                       return radius ? std::to_string(*radius) : "none";
                     }));
}

const CollapseCurve& find(const Curves& curves, std::string_view group, std::string_view name) {
  return *std::find_if(curves.begin(), curves.end(), [&](const CollapseCurve& curve) {
    return curve.group == group && curve.name == name;
  });
}

std::vector<double> relative_at(const CollapseCurve& curve, std::size_t layer) {
  return curve.of(layer, &TokenMeasures::relative);
}

std::size_t last_layer(const CollapseCurve& curve) {
  std::size_t layer = curve.layers.size() - 1;
  while (layer > 0 && !(curve.mean(layer, &TokenMeasures::norm) > 1e-30)) --layer;
  return layer;
}

std::vector<double> relative_at_end(const CollapseCurve& curve) {
  return relative_at(curve, last_layer(curve));
}

Answer stays_apart(const Evidence& evidence, const CollapseCurve& curve, const std::string& what) {
  return above(evidence, share_left(evidence, curve), kCollapsed, what + ": share of μ/‖X‖ left at the end");
}
Answer collapsed(const Evidence& evidence, const CollapseCurve& curve, const std::string& what) {
  return below(evidence, share_left(evidence, curve), kCollapsed, what + ": share of μ/‖X‖ left at the end");
}

Answer more_under_local(const Evidence& evidence, const OfMask& left, const std::string& what) {
  return all_of(kGlobalMasks, [&](const char* global) {
    return all_of(kLocalMasks, [&](const char* local) {
      return above(evidence, mean_difference(left(global), left(local), level_of(evidence)), 0,
                   fmt::format("{}: μ/‖X‖ at the end, {} − {}", what, local, global));
    });
  });
}

RatioInterval rate_of(const Evidence& evidence, const CollapseCurve& curve) {
  const std::vector<double>& factors = curve.rate.samples;
  return mean_ratio(std::vector<double>(factors.size(), 1), factors, level_of(evidence));
}

std::vector<double> Gains::of(const char* mask, std::size_t layer) const {
  std::vector<double> sharp = relative_at(curve(mask, labels[0]), layer);
  const std::vector<double> flat = relative_at(curve(mask, labels[2]), layer);
  for (std::size_t s = 0; s < sharp.size(); ++s) sharp[s] /= flat[s];
  return sharp;
}

RatioInterval Gains::mean(const char* mask, std::size_t layer) const {
  const std::vector<double> values = of(mask, layer);
  return mean_ratio(std::vector<double>(values.size(), 1), values, level_of(evidence));
}

std::string Gains::text(std::size_t layer) const {
  return over_masks([&](const char* mask) { return factor_text(mean(mask, layer)); });
}

Answer Gains::gains(const char* mask) const {
  return above(evidence, mean(mask, 1), 1, {fmt::format("{}{}: gain of layer 1", whose, mask), "×"});
}

Answer Gains::most_under_global() const {
  const char* most = mean("full", 1).estimate.low > mean("causal", 1).estimate.low ? "full" : "causal";
  return all_of(kLocalMasks, [&](const char* local) {
    return above(evidence, mean_ratio(of(local, 1), of(most, 1), level_of(evidence)), 1,
                 {fmt::format("{}gain of layer 1, {} over {}", whose, most, local), "×"});
  });
}

Answer Gains::fades(const char* mask, std::size_t layer, const Threshold& factor) const {
  return above(evidence, mean_ratio(of(mask, layer), of(mask, 1), level_of(evidence)), factor,
               {fmt::format("{}{}: gain of layer 1 over that of layer {}", whose, mask, layer), "×"});
}

TokenStart acute_start(std::size_t samples, std::size_t tokens, std::size_t dimensions, std::uint64_t seed) {
  TokenStart start;
  start.kind = TokenStart::Kind::given;
  start.given = Matrix<double>(samples * tokens, dimensions);
  for (std::size_t i = 0; i < start.given.rows(); ++i) {
    Random random(seed, 1000 + i);
    for (double& x : start.given[i]) x = std::fabs(random.normal());
  }
  norm_forward<double>(parse_norm("unit"), {}, start.given.view(), start.given.view());
  return start;
}

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

std::string in_mode(std::string_view variant, double dropout) {
  return fmt::format("{}, {}", variant, dropout > 0 ? "dropout 0.1" : "eval");
}

std::string samples_note(const Curves& curves) {
  const std::size_t samples = curves.front().layers.front().size();
  return samples == 1 ? "1 sample, which has no interval"
                      : fmt::format("± and brackets: intervals over {} samples of one model", samples);
}

std::string samples_count(const Curves& curves) {
  return counted(curves.front().layers.front().size(), "sample");
}

const CollapseQuantity& quantity_of(double TokenMeasures::*measure) {
  const auto quantities = collapse_quantities();
  return *std::find_if(quantities.begin(), quantities.end(),
                       [&](const CollapseQuantity& each) { return each.measure == measure; });
}

Figure curve_figure(const Curves& curves, double TokenMeasures::*measure, const std::string& name,
                    const std::string& title, bool log_layers, const std::string& caption) {
  CurveFigure figure = collapse_figure(curves, quantity_of(measure), log_layers);
  figure.caption = caption;
  return to_figure(name, title, "", figure);
}

Models models_of(const Evidence& evidence) {
  return evidence.models;
}

const ModelSpec& spec_of(const PretrainedModel& model) {
  return model.weights->spec();
}

std::size_t tokens_of(const PretrainedModel& model) {
  return model.texts.front().size();
}

const char* own_mask_name(const PretrainedModel& model) {
  return spec_of(model).causal ? "causal" : "full";
}

Curves run_models(const Evidence& evidence, const char* label, const CasesOfModel& cases_of,
                  Spectrum spectrum, std::size_t most_samples) {
  Curves curves;
  for (const PretrainedModel& model : evidence.models) {
    std::vector<CollapseCase> cases = cases_of(model);
    for (CollapseCase& each : cases) each.group = fmt::format("{}: {}", model.name, each.group);
    CollapseSettings settings;
    settings.tokens = tokens_of(model);
    settings.layers = spec_of(model).layers;
    settings.samples = std::min(model.texts.size(), most_samples);
    settings.model = model.weights;
    settings.texts = model.texts;
    settings.spectrum = spectrum;
    settings.theory = false;
    Curves own = evidence.collapse(label, cases, settings);
    std::move(own.begin(), own.end(), std::back_inserter(curves));
  }
  return curves;
}

const CollapseCurve& find(const Curves& curves, const PretrainedModel& model, std::string_view group,
                          std::string_view name) {
  return find(curves, fmt::format("{}: {}", model.name, group), name);
}

std::string published_model(std::string_view family) {
  constexpr std::pair<const char*, const char*> like[] = {{"bert", "bert-base-uncased"},
                                                          {"roberta", "bert-base-uncased"},
                                                          {"distilbert", "bert-base-uncased"},
                                                          {"gpt2", "gpt2"},
                                                          {"llama", "gpt2"},
                                                          {"mistral", "gpt2"},
                                                          {"qwen2", "gpt2"},
                                                          {"t5", "t5-base"},
                                                          {"albert", "albert-base-v2"}};
  for (const auto& [name, published] : like) {
    if (family == name) return published;
  }
  return "";
}

std::string stands_in(const PretrainedModel& model) {
  const std::string published = published_model(spec_of(model).family);
  if (published.empty()) return "like none of the paper's";
  return model.name == published || model.name.ends_with("/" + published) ? "the paper's own" : published;
}

std::string model_samples_note(const Evidence& evidence) {
  const PretrainedModel& model = evidence.models.front();
  const std::size_t windows = model.texts.size(), tokens = tokens_of(model);
  return windows == 1 ? fmt::format("one window of {} tokens, which has no interval", tokens)
                      : fmt::format("± interval over {} windows of {} tokens", windows, tokens);
}

std::string caption(Models models) {
  std::string text = "Pretrained, eval mode.";
  for (const PretrainedModel& model : models) {
    const std::string like = stands_in(model);
    text += fmt::format(" {} ({} layers; its own mask {}): {}{}.", model.name, spec_of(model).layers,
                        own_mask_name(model),
                        like == published_model(spec_of(model).family) ? "in place of " : "", like);
  }
  return text + fmt::format(" Mean over {} windows of {} tokens; bands: one standard deviation.",
                            models.front().texts.size(), tokens_of(models.front()));
}

void add_figures(Findings& found, Models models, const Curves& curves, double TokenMeasures::*measure,
                 const std::string& name, const std::string& title) {
  for (const PretrainedModel& model : models) {
    const std::string prefix = model.name + ": ";
    Curves own;
    for (const CollapseCurve& curve : curves) {
      if (!curve.group.starts_with(prefix)) continue;
      own.push_back(curve);
      own.back().group.erase(0, prefix.size());
    }
    CurveFigure figure = collapse_figure(own, quantity_of(measure), false);
    end_axes(figure);
    figure.caption = caption({&model, 1});
    found.figures.push_back(to_figure(fmt::format("{}_{}", name, found.figures.size()),
                                      fmt::format("{}, pretrained: {}", model.name, title), "", figure));
  }
}

std::string models_where(const Evidence& evidence, const OfModel& holds,
                         bool (*about)(const PretrainedModel&)) {
  std::string names;
  for (const PretrainedModel& model : evidence.models) {
    if (about(model) && holds(evidence, model) == true) append(names, model.name);
  }
  return names;
}

Text absent(std::vector<std::string> published) {
  return [published = std::move(published)](const Evidence& evidence) {
    std::string names;
    for (const std::string& name : published) {
      const bool here = std::any_of(evidence.models.begin(), evidence.models.end(), [&](const auto& model) {
        return stands_in(model) == "the paper's own" && published_model(spec_of(model).family) == name;
      });
      if (!here) append(names, name);
    }
    return names;
  };
}

Claim by_model(Claim claim, const OfModel& holds, bool (*about)(const PretrainedModel&)) {
  claim.needs = {{Need::models}};
  if (!claim.not_at_hand) claim.not_at_hand = absent({"bert-base-uncased"});
  // The verdict is about all models, as soon as one of them stands in for another.
  claim.stand_in = [=](const Evidence& evidence) {
    std::string names;
    bool own = true;
    for (const PretrainedModel& model : evidence.models) {
      if (!about(model)) continue;
      append(names, model.name);
      own = own && stands_in(model) == "the paper's own";
    }
    return own ? "" : names;
  };
  claim.there = any_in(models_of);
  claim.holds = [=](const Evidence& evidence) {
    std::vector<Answer> answers;
    for (const PretrainedModel& model : evidence.models) {
      if (about(model)) answers.push_back(holds(evidence, model));
    }
    const bool told =
        !answers.empty() && std::find(answers.begin(), answers.end(), std::nullopt) == answers.end();
    return told ? all_of(answers, [](const Answer& answer) { return answer; }) : std::nullopt;
  };
  const auto names = [=](const Evidence& evidence) { return models_where(evidence, holds, about); };
  claim.holds_if.push_back({any_in(names), written("the model is {}", names)});
  return claim;
}

Claim by_model_and_mask(Claim claim, const OfModelAndMask& holds) {
  claim = by_model(std::move(claim), [=](const Evidence& evidence, const PretrainedModel& model) {
    return all_of(kMasks, [&](const char* mask) { return holds(evidence, model, mask); });
  });
  const auto masks = [=](const Evidence& evidence) {
    std::string names;
    for (const char* mask : kMasks) {
      const auto under = [&](const PretrainedModel& model) { return holds(evidence, model, mask); };
      if (all_of(evidence.models, under) == true) append(names, mask);
    }
    return names;
  };
  const Granted some_models = claim.holds_if.back();
  const Condition some_masks = any_in(masks);
  claim.holds_if.back() = {any_of({some_models.holds, some_masks}),
                           when(some_models.holds, some_models.words) +
                               when(all_of({some_models.holds, some_masks}), " or ") +
                               when(some_masks, written("the mask is one of {}", masks))};
  return claim;
}

Text over_models(std::function<std::string(const Evidence&, const PretrainedModel&)> text) {
  return [=](const Evidence& evidence) {
    std::string all;
    for (const PretrainedModel& model : evidence.models)
      append(all, fmt::format("{}: {}", model.name, text(evidence, model)), "; ");
    return all;
  };
}

std::string_view builtin_text() {
  return embedded::encyclopedia_txt;
}

ReportTable pretrained_table(Models models, const std::string& source) {
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

}  // namespace normscope

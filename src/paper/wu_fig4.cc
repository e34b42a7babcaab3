// Fig. 4 of Wu, Ajorlou, Wang, Jegelka, Jadbabaie 2024: rank, least singular value and mean |cosine| of
// pretrained models as they are.
#include <fmt/format.h>

#include <algorithm>

#include "core/number_text.h"
#include "paper/wu_curves.h"

namespace normscope {
namespace {

constexpr const char* kAsTheyAre = "the models as they are";

Curves as_they_are(const Evidence& evidence) {
  const auto as_it_is = [](const PretrainedModel& model) -> std::vector<CollapseCase> {
    return {{"as it is", model.name, spec_of(model).block, model_mask(spec_of(model), tokens_of(model))}};
  };
  Curves curves = run_models(evidence, "Wu Fig. 4", as_it_is, Spectrum::yes);
  for (CollapseCurve& curve : curves) curve.group = kAsTheyAre;  // in one panel
  return curves;
}
const CollapseCurve& curve_of(const Evidence& evidence, const PretrainedModel& model) {
  return find(once<as_they_are>(evidence), kAsTheyAre, model.name);
}

// Of every window, its least rank over the layers.
Interval least_rank(const Evidence& evidence, const PretrainedModel& model) {
  std::vector<double> least(model.texts.size(), 1);
  for (std::size_t layer = 1; layer <= spec_of(model).layers; ++layer) {
    const std::vector<double> shares = curve_of(evidence, model).of(layer, &TokenMeasures::rank_share);
    for (std::size_t window = 0; window < shares.size(); ++window)
      least[window] = std::min(least[window], shares[window]);
  }
  return mean_interval(least, level_of(evidence));
}
constexpr Threshold kFull{0.99, "a window of 128 tokens may repeat one word", 1};

Claim full_rank() {
  return by_model(
      {.where = "Wu Fig. 4",
       .sentence = "Tokens of trained models keep full rank in all layers",
       .published = "rank about 100 % in bert-base-uncased, gpt2, t5-base, albert-base-v2",
       .otherwise = kNoModel,
       .measured = over_models([](const Evidence& evidence, const PretrainedModel& model) {
         return fmt::format("{:.1f} % at the start, least {} % in layers 1 to {}",
                            100 * curve_of(evidence, model).mean(0, &TokenMeasures::rank_share),
                            with_interval(least_rank(evidence, model), 1, 100), spec_of(model).layers);
       }),
       .why = written("Singular values above σ₁·max(N, d)·ε of float32.{}",
                      [](const Evidence& evidence) {
                        std::string rises;
                        for (const PretrainedModel& model : evidence.models) {
                          const CollapseCurve& curve = curve_of(evidence, model);
                          const double start = curve.mean(0, &TokenMeasures::rank_share),
                                       first = curve.mean(1, &TokenMeasures::rank_share);
                          if (start < first)
                            append(rises, fmt::format("{} from {:.1f} to {:.1f} %", model.name, 100 * start,
                                                      100 * first));
                        }
                        return rises.empty() ? rises
                                             : fmt::format(
                                                   " The first layer tells rows apart that start equal, "
                                                   "such as equal words without positions: {}.",
                                                   rises);
                      }),
       .not_at_hand = absent({"bert-base-uncased", "gpt2", "t5-base", "albert-base-v2"}),
       .topic = "collapse"},
      [](const Evidence& evidence, const PretrainedModel& model) {
        return at_least(evidence, least_rank(evidence, model), kFull,
                        {model.name + ": least rank over the layers, share of full", "", 1});
      });
}

std::string cosines(const Evidence& evidence, const PretrainedModel& model) {
  const CollapseCurve& curve = curve_of(evidence, model);
  const auto value = [&](std::size_t layer, double TokenMeasures::*measure) {
    return mean_interval(curve.of(layer, measure), level_of(evidence));
  };
  const std::size_t last = spec_of(model).layers;
  std::size_t top = 0;
  for (std::size_t layer = 1; layer <= last; ++layer) {
    if (value(layer, &TokenMeasures::mean_abs_cosine).mean > value(top, &TokenMeasures::mean_abs_cosine).mean)
      top = layer;
  }
  return fmt::format("mean |cos| {} at the start, {} after layer {}, most {} after layer {}; σ_min {}",
                     with_interval(value(0, &TokenMeasures::mean_abs_cosine)),
                     with_interval(value(last, &TokenMeasures::mean_abs_cosine)), last,
                     with_interval(value(top, &TokenMeasures::mean_abs_cosine)), top,
                     with_interval(value(last, &TokenMeasures::least_singular)));
}

Claim anisotropic() {
  return by_model(
      {.where = "Wu Fig. 4",
       .sentence = "Tokens of trained models grow anisotropic with depth",
       .published = "mean |cosine| rises with the layer; the least singular value stays above 0",
       .otherwise = kNoModel,
       .measured = over_models(cosines),
       .why =
           "Judged by the differences of last layer and start, window by window. Layer 0 is what enters the first layer; a norm after the last one is left out.",
       .not_at_hand = absent({"bert-base-uncased", "gpt2", "t5-base", "albert-base-v2"}),
       .topic = "collapse"},
      [](const Evidence& evidence, const PretrainedModel& model) {
        const CollapseCurve& curve = curve_of(evidence, model);
        return above(evidence,
                     mean_difference(curve.of(0, &TokenMeasures::mean_abs_cosine),
                                     curve.of(spec_of(model).layers, &TokenMeasures::mean_abs_cosine),
                                     level_of(evidence)),
                     0, model.name + ": mean |cosine|, last layer − start");
      });
}

Claim least_singular_falls() {
  const auto over_first = [](const Evidence& evidence, const PretrainedModel& model) {
    const CollapseCurve& curve = curve_of(evidence, model);
    return mean_difference(curve.of(1, &TokenMeasures::least_singular),
                           curve.of(spec_of(model).layers, &TokenMeasures::least_singular),
                           level_of(evidence));
  };
  return by_model(
      {.where = "Wu Fig. 4",
       .sentence = "Their least singular value falls with depth",
       .published = "falls with the layer, and stays above 0",
       .otherwise = kNoModel,
       .measured = over_models([=](const Evidence& evidence, const PretrainedModel& model) {
         const CollapseCurve& curve = curve_of(evidence, model);
         std::size_t least = 1;
         for (std::size_t layer = 2; layer <= spec_of(model).layers; ++layer) {
           if (curve.mean(layer, &TokenMeasures::least_singular) <
               curve.mean(least, &TokenMeasures::least_singular))
             least = layer;
         }
         const auto value = [&](std::size_t layer) {
           return with_interval(
               mean_interval(curve.of(layer, &TokenMeasures::least_singular), level_of(evidence)));
         };
         return fmt::format(
             "σ_min {} after layer 1, {} after layer {}, least {} after layer {}; last − first {}", value(1),
             value(spec_of(model).layers), spec_of(model).layers, value(least), least,
             with_interval(over_first(evidence, model)));
       }),
       .why = written("Judged by the differences of the last layer and the first, window by window ({}).",
                      model_samples_note),
       .not_at_hand = absent({"bert-base-uncased", "gpt2", "t5-base", "albert-base-v2"}),
       .topic = "collapse"},
      [=](const Evidence& evidence, const PretrainedModel& model) {
        return below(evidence, over_first(evidence, model), 0,
                     model.name + ": least singular value, last layer − first");
      });
}

Findings shown(const Evidence& evidence) {
  if (evidence.models.empty()) return {};
  CurveFigure figure;
  const CollapseQuantity quantities[] = {
      {&TokenMeasures::rank_share, "rank_share", "rank", "rank, share of full", false},
      {&TokenMeasures::mean_abs_cosine, "mean_abs_cosine", "mean |cos|", "mean |cosine| of two tokens",
       false},
      {&TokenMeasures::least_singular, "least_singular", "σ_min", "least singular value", true}};
  for (const CollapseQuantity& quantity : quantities) {
    CurveFigure one = collapse_figure(once<as_they_are>(evidence), quantity, false);
    one.panels.front().title = quantity.title;
    if (!quantity.log) one.panels.front().y_low = 0;
    figure.panels.push_back(std::move(one.panels.front()));
  }
  figure.caption = caption(evidence.models);
  return {.figures = {to_figure("wu4", "Pretrained models as they are: rank, cosines, least singular value",
                                "", figure)}};
}

}  // namespace

Exhibit wu_fig4() {
  return {{full_rank(), anisotropic(), least_singular_falls()}, shown};
}

}  // namespace normscope

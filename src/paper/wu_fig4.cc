// Fig. 4 of Wu, Ajorlou, Wang, Jegelka, Jadbabaie 2024: rank, least singular value and mean |cosine| of
// pretrained models as they are.
#include <fmt/format.h>

#include <algorithm>

#include "core/number_text.h"
#include "paper/wu_curves.h"

namespace normscope {

Findings wu_fig4(const Evidence& evidence) {
  Claim rank = claim_of("Wu Fig. 4", "Tokens of trained models keep full rank in all layers",
                        "rank about 100 % in bert-base-uncased, gpt2, t5-base, albert-base-v2");
  Claim cosine = claim_of("Wu Fig. 4", "Tokens of trained models grow anisotropic with depth",
                          "mean |cosine| rises with the layer; the least singular value stays above 0");
  rank.measured = cosine.measured = kNoModel;
  const Models models = evidence.models;
  if (models.empty()) return {{rank, cosine}};
  const auto as_it_is = [](const PretrainedModel& model) -> std::vector<CollapseCase> {
    return {{"as it is", model.name, spec_of(model).block, model_mask(spec_of(model), tokens_of(model))}};
  };
  Curves curves = run_models(evidence, "Wu Fig. 4", as_it_is, Spectrum::yes);
  for (CollapseCurve& curve : curves) curve.group = "the models as they are";  // in one panel
  const auto of = [&](const PretrainedModel& model) -> const CollapseCurve& {
    return find(curves, "the models as they are", model.name);
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
      "adds no positions to its embeddings, equal words start as equal rows, and the first layer tells them "
      "apart.";
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
    return above(more, 0);
  });
  cosine.why =
      "Judged by the differences of last layer and start, window by window. Layer 0 is what enters the first "
      "layer; a norm after the last one is left out.";
  CurveFigure figure;
  const CollapseQuantity quantities[] = {
      {&TokenMeasures::rank_share, "rank_share", "rank", "rank, share of full", false},
      {&TokenMeasures::mean_abs_cosine, "mean_abs_cosine", "mean |cos|", "mean |cosine| of two tokens",
       false},
      {&TokenMeasures::least_singular, "least_singular", "σ_min", "least singular value", true}};
  for (const CollapseQuantity& quantity : quantities) {
    CurveFigure one = collapse_figure(curves, quantity, false);
    one.panels.front().title = quantity.title;
    if (!quantity.log) one.panels.front().y_low = 0;
    figure.panels.push_back(std::move(one.panels.front()));
  }
  figure.caption = caption(models);
  return {
      {rank, cosine},
      {to_figure("wu4", "Pretrained models as they are: rank, cosines, least singular value", "", figure)}};
}

}  // namespace normscope

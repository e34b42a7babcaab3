// Fig. 3 of Wu, Ajorlou, Wang, Jegelka, Jadbabaie 2024: d_QK of 1/64, 1, 64 in pretrained models.
#include <fmt/format.h>

#include "paper/wu_curves.h"

namespace normscope {
namespace {

Curves temperatures(const Evidence& evidence) {
  return run_models(evidence, "Wu Fig. 3", [](const PretrainedModel& model) {
    std::vector<CollapseCase> cases;
    for (const char* mask : kMasks) {
      for (std::size_t t = 0; t < Gains::labels.size(); ++t) {
        BlockSpec block = variant_of("san", spec_of(model).block);
        block.temperature = Gains::temperatures[t];
        cases.push_back(
            {fmt::format("san, {}", mask), Gains::labels[t], block, parse_mask(mask, tokens_of(model))});
      }
    }
    return cases;
  });
}
Gains gains(const Evidence& evidence, const PretrainedModel& model) {
  return {[&](const char* mask, const char* temperature) -> const CollapseCurve& {
            return find(once<temperatures>(evidence), model, fmt::format("san, {}", mask), temperature);
          },
          evidence, model.name + ", "};
}

Claim slows_collapse() {
  return by_model_and_mask(
      {.where = "Wu Fig. 3",
       .sentence = "A smaller d_QK slows collapse in pretrained models",
       .published = "the curve of 1/64 lies above those of 1 and 64",
       .otherwise = kNoModel,
       .measured = written("SAN, μ/‖X‖ at d_QK = 1/64 over that at 64, after layer 1, {} ({})",
                           over_models([](const Evidence& evidence, const PretrainedModel& model) {
                             return gains(evidence, model).text(1);
                           }),
                           model_samples_note),
       .why = Gains::why,
       .topic = "temperature"},
      [](const Evidence& evidence, const PretrainedModel& model, const char* mask) {
        return gains(evidence, model).gains(mask);
      });
}

Claim global_and_early() {
  const OfModel global = [](const Evidence& evidence, const PretrainedModel& model) {
    return gains(evidence, model).most_under_global();
  };
  const OfModel both = [=](const Evidence& evidence, const PretrainedModel& model) {
    const Answer early = all_of(kGlobalMasks, [&](const char* mask) {
      return gains(evidence, model).fades(mask, spec_of(model).layers, 1);
    });
    return all_of({global(evidence, model), early});
  };
  const auto for_some = [=](const Evidence& evidence) {
    const std::string names = models_where(evidence, both, any_model);
    return names.empty() ? "" : ", or the model is " + names;
  };
  return by_model(
      {.where = "Wu Fig. 3",
       .sentence = Gains::where,
       .published = Gains::published_where,
       .otherwise = kNoModel,
       .measured = written("the same after the last layer, {}",
                           over_models([](const Evidence& evidence, const PretrainedModel& model) {
                             return gains(evidence, model).text(spec_of(model).layers);
                           })),
       .why =
           "Early: the ratio of what both temperatures leave is greater after the first layer than after the last, under both global masks. It grows without end where only the flat one collapses.",
       .holds_if = {{[=](const Evidence& evidence) {
                       return all_of(evidence.models,
                                     [&](const PretrainedModel& model) { return global(evidence, model); });
                     },
                     written("layers are left aside{}: all gain most under global masks", for_some)}},
       .topic = "temperature"},
      both);
}

Findings shown(const Evidence& evidence) {
  Findings found;
  if (!evidence.models.empty())
    add_figures(found, evidence.models, once<temperatures>(evidence), &TokenMeasures::relative, "wu3",
                "temperature, μ/‖X‖ by layer");
  return found;
}

}  // namespace

Exhibit wu_fig3() {
  return {{slows_collapse(), global_and_early()}, shown};
}

}  // namespace normscope

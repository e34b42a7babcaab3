// Fig. 3 of Wu, Ajorlou, Wang, Jegelka, Jadbabaie 2024: d_QK of 1/64, 1, 64 in pretrained models.
#include <fmt/format.h>

#include "core/number_text.h"
#include "paper/wu_curves.h"

namespace normscope {

Findings wu_fig3(const Evidence& evidence) {
  Claim slows = claim_of("Wu Fig. 3", "A smaller d_QK slows collapse in pretrained models",
                         "the curve of 1/64 lies above those of 1 and 64");
  Claim where = claim_of("Wu Fig. 3", "The effect is greatest under global masks and in early layers",
                         "complete and causal gain more than windows; layers 1 to 3 more than later ones");
  slows.measured = where.measured = kNoModel;
  const Models models = evidence.models;
  if (models.empty()) return {{slows, where}};
  const Curves curves = run_models(evidence, "Wu Fig. 3", [](const PretrainedModel& model) {
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
  const auto gains = [&](const PretrainedModel& model) {
    return Gains{[&](const char* mask, const char* temperature) -> const CollapseCurve& {
      return find(curves, model, fmt::format("san, {}", mask), temperature);
    }};
  };
  slows.measured =
      fmt::format("SAN, μ/‖X‖ at d_QK = 1/64 over that at 64, after layer 1, {} ({})",
                  over_models(models, [&](const PretrainedModel& model) { return gains(model).text(1); }),
                  samples_note(models));
  judge_by_mask(slows, models, [&](const PretrainedModel& model, const char* mask) {
    return above(gains(model).mean(mask, 1), 1);
  });
  slows.why = "Scores are divided by √d_QK, so that a small one sharpens attention.";
  where.measured =
      fmt::format("the same after the last layer, {}", over_models(models, [&](const PretrainedModel& model) {
                    return gains(model).text(spec_of(model).layers);
                  }));
  const auto global = [&](const PretrainedModel& model) { return gains(model).most_under_global(); };
  const auto early = [&](const PretrainedModel& model) {
    return all_of(kGlobalMasks, [&](const char* mask) {
      return above(gains(model).fading(mask, spec_of(model).layers), 1);
    });
  };
  judge(where, models, [&](const PretrainedModel& model) { return all_of({global(model), early(model)}); });
  if ((where.holds == Holds::no || where.holds == Holds::conditionally) && all_of(models, global) == true) {
    where.condition = fmt::format("layers are left aside{}: all gain most under global masks",
                                  where.holds == Holds::conditionally ? ", or " + where.condition : "");
    where.holds = Holds::conditionally;
  }
  where.why =
      "Early: the ratio of what both temperatures leave is greater after the first layer than after the "
      "last, "
      "under both global masks. It grows without end where only the flat one collapses.";
  Findings found{{slows, where}};
  add_figures(found, models, curves, &TokenMeasures::relative, "wu3", "temperature, μ/‖X‖ by layer");
  return found;
}

}  // namespace normscope

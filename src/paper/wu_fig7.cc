// Fig. 7 of Wu, Ajorlou, Wang, Jegelka, Jadbabaie 2024: d_QK of 1/64, 1, 64 at random init.
#include <fmt/format.h>

#include "paper/wu_curves.h"

namespace normscope {

Findings wu_fig7(const Evidence& evidence) {
  std::vector<CollapseCase> cases;
  for (const char* variant : {"san", "san+norm"}) {
    for (const double dropout : {0.0, kDropout}) {
      for (const char* mask : kMasks) {
        for (std::size_t t = 0; t < Gains::labels.size(); ++t) {
          BlockSpec block = variant_of(variant, bert_base(dropout));
          block.temperature = Gains::temperatures[t];
          cases.push_back({in_mode(fmt::format("{}, {}", variant, mask), dropout), Gains::labels[t], block,
                           parse_mask(mask, kTokens)});
        }
      }
    }
  }
  const Curves curves =
      evidence.collapse("Wu Fig. 7", cases, bert_settings(12, evidence.plan.samples, evidence.plan.seed));
  const Gains gains{[&](const char* mask, const char* temperature) -> const CollapseCurve& {
    return find(curves, fmt::format("san, {}, eval", mask), temperature);
  }};
  Claim slows = claim_of("Wu Fig. 7", "A smaller d_QK slows collapse at random init",
                         "the curve of 1/64 lies above those of 1 and 64");
  slows.measured =
      fmt::format("μ/‖X‖ after layer 1, d_QK = 1/64 over 64: {} ({})", gains.text(1), samples_note(curves));
  slows.holds = judged(all_of(kMasks, [&](const char* mask) { return above(gains.mean(mask, 1), 1); }));
  slows.why = "Scores are divided by √d_QK, so that a small one sharpens attention.";
  Claim where = claim_of("Wu Fig. 7", "The effect is greatest under global masks and in early layers",
                         "complete and causal gain more than windows; layers 1 to 3 more than later ones");
  where.measured = fmt::format("gain after layer 1: {}; after layer 12: {}", gains.text(1), gains.text(12));
  const auto fades = [&](const char* mask) { return above(gains.fading(mask, 12), 1.02); };
  where.holds = judged(all_of({gains.most_under_global(), all_of(kGlobalMasks, fades)}));
  if (where.holds == Holds::yes && all_of(kLocalMasks, fades) != true) where.holds = Holds::conditionally;
  where.condition = "early layers are those of global masks; under windows the gain of the first layer stays";
  where.why =
      "SAN shrinks the tokens with every layer, and their scores with its square: after a few layers "
      "attention "
      "is uniform at any of these temperatures. What was kept before that remains in the ratio.";
  return {{slows, where},
          {curve_figure(curves, &TokenMeasures::relative, "wu7", "Temperature: μ/‖X‖ by layer", true,
                        kRandomInit)}};
}

}  // namespace normscope

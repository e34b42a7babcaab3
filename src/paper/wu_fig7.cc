// Fig. 7 of Wu, Ajorlou, Wang, Jegelka, Jadbabaie 2024: d_QK of 1/64, 1, 64 at random init.
#include <fmt/format.h>

#include <cmath>

#include "paper/wu_curves.h"

namespace normscope {
namespace {

Curves temperatures(const Evidence& evidence) {
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
  return evidence.collapse("Wu Fig. 7", cases, bert_settings(12, evidence.plan.samples, evidence.plan.seed));
}
Gains gains(const Evidence& evidence) {
  return {[&](const char* mask, const char* temperature) -> const CollapseCurve& {
            return find(once<temperatures>(evidence), fmt::format("san, {}, eval", mask), temperature);
          },
          evidence};
}
template <std::size_t layer>
std::string gain_after(const Evidence& evidence) {
  return gains(evidence).text(layer);
}

Claim slows_collapse() {
  return {.where = "Wu Fig. 7",
          .sentence = "A smaller d_QK slows collapse at random init",
          .published = "the curve of 1/64 lies above those of 1 and 64",
          .measured = written("μ/‖X‖ after layer 1, d_QK = 1/64 over 64: {} ({})", gain_after<1>,
                              of(once<temperatures>, samples_note)),
          .why = Gains::why,
          .holds =
              [](const Evidence& evidence) {
                return all_of(kMasks, [&](const char* mask) { return gains(evidence).gains(mask); });
              },
          .topic = "temperature"};
}

Claim global_and_early() {
  static constexpr Threshold visible{1.02, "two per cent: what is less cannot be seen in the figure", 1};
  const auto fades = [=](auto masks) -> Condition {
    return [=](const Evidence& evidence) {
      return all_of(masks, [&](const char* mask) { return gains(evidence).fades(mask, 12, visible); });
    };
  };
  const Condition global = all_of(
      {[](const Evidence& evidence) { return gains(evidence).most_under_global(); }, fades(kGlobalMasks)});
  return {
      .where = "Wu Fig. 7",
      .sentence = Gains::where,
      .published = Gains::published_where,
      .measured = written("gain after layer 1: {}; after layer 12: {}", gain_after<1>, gain_after<12>),
      .why = when(
          [](const Evidence& evidence) {
            return Answer(!gains(evidence).curve("full", Gains::labels[0]).entropy.empty());
          },
          written(
              "Mean entropy of attention at d_QK = 1/64, complete mask: {:.3f} nats in the first layer, {:.3f} in the last, {:.3f} if it were uniform. What was kept before that remains in the ratio.",
              [](const Evidence& evidence) {
                return gains(evidence).curve("full", Gains::labels[0]).entropy.front();
              },
              [](const Evidence& evidence) {
                return gains(evidence).curve("full", Gains::labels[0]).entropy.back();
              },
              std::log(static_cast<double>(kTokens)))),
      .holds = all_of({global, fades(kLocalMasks)}),
      .holds_if = {{global, written("early layers are those of global masks{}",
                                    when(
                                        [](const Evidence& evidence) {
                                          return all_of(kLocalMasks, [&](const char* mask) {
                                            const Answer fading = gains(evidence).fades(mask, 12, visible);
                                            return fading ? Answer(!*fading) : fading;
                                          });
                                        },
                                        "; under windows the gain of the first layer stays"))}},
      .topic = "temperature"};
}

Findings shown(const Evidence& evidence) {
  return {.figures = {curve_figure(once<temperatures>(evidence), &TokenMeasures::relative, "wu7",
                                   "Temperature: μ/‖X‖ by layer", true, kRandomInit)}};
}

}  // namespace

Exhibit wu_fig7() {
  return {{slows_collapse(), global_and_early()}, shown};
}

}  // namespace normscope

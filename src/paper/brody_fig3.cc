// Fig. 3 of Brody, Alon, Yahav 2023: test accuracy of the majority task.
#include "paper/majority_measures.h"
#include "paper/part.h"
#include "report/collapse_page.h"

namespace normscope {
namespace {

constexpr PublishedValue kAccuracies[] = {{"layernorm", 1000, 0.74},
                                          {"layernorm", 5000, 0.93},
                                          {"published", 1000, 0.52},
                                          {"published", 5000, 0.85}};
constexpr PublishedCurve kAccuracyCurve{kAccuracies, kAccuracy.value, 0.02, 2, false};
constexpr Quantity kSequenceAccuracy{[](const MajorityRow& row) { return row.test.sequence_accuracy; }, 0, 1};

Findings shown(const Evidence& evidence) {
  const auto runs = without_learned_normals(evidence.majority);
  return {.figures = {to_figure("fig3", "Majority: test accuracy", "",
                                {{majority_panel(runs, "Test accuracy per position (Fig. 3)", "share right",
                                                 kAccuracy, kAccuracies),
                                  majority_panel(runs, "Test sequences right at every position",
                                                 "share right", kSequenceAccuracy)},
                                 "Diamonds are the published values. " + seeds_caption(runs)})}};
}

}  // namespace

std::span<const PublishedValue> published_accuracies() {
  return kAccuracies;
}

Exhibit brody_fig3() {
  return {curve_claims(kAccuracyCurve, "Fig. 3", "Test accuracy"), shown};
}

}  // namespace normscope

// Fig. 3 of Brody, Alon, Yahav 2023: test accuracy of the majority task.
#include "paper/majority_measures.h"
#include "paper/part.h"
#include "report/collapse_page.h"

namespace normscope {
namespace {

constexpr PublishedCurve kAccuracyCurve{
    kPublishedAccuracies,
    kAccuracy.value,
    0.02,
    2,
    {0.05, "seeds differ by a few hundredths at a step; what is within five is called the same curve"}};
constexpr Quantity kSequenceAccuracy{[](const MajorityRow& row) { return row.test.sequence_accuracy; }, 0, 1};

Findings shown(const Evidence& evidence) {
  const auto runs = without_learned_normals(evidence.majority);
  return {.figures = {to_figure("fig3", "Majority: test accuracy", "",
                                {{majority_panel(runs, "Test accuracy per position (Fig. 3)", "share right",
                                                 kAccuracy, kPublishedAccuracies),
                                  majority_panel(runs, "Test sequences right at every position",
                                                 "share right", kSequenceAccuracy)},
                                 "Diamonds are the published values. " + seeds_caption(runs)})}};
}

}  // namespace

Exhibit brody_fig3() {
  return {curve_claims(kAccuracyCurve, "Fig. 3", "Test accuracy"), shown};
}

}  // namespace normscope

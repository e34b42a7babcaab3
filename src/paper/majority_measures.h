#pragma once
// What the figures of the majority task (§4.1 of Brody, Alon, Yahav 2023) share: runs by norm, values over
// seeds, published curves and the claim that ours are like them.
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "normscope/majority.h"
#include "normscope/statistics.h"
#include "paper/claim.h"
#include "paper/published_majority.h"

namespace normscope {

using MajorityRuns = std::vector<const MajorityRun*>;
using MajorityValue = double (*)(const MajorityRow&);

// What a curve shows, and the values it can have: Student's interval of a mean may reach beyond them, and
// there is nothing there.
struct Quantity {
  MajorityValue value;
  double least, most;
  bool whole = true;  // the axis shows all of them
};
inline constexpr Quantity kTrainLoss{[](const MajorityRow& row) { return row.train_loss; }, 0,
                                     std::numeric_limits<double>::infinity(), false};
inline constexpr Quantity kAccuracy{[](const MajorityRow& row) { return row.test.accuracy; }, 0, 1};
inline constexpr Quantity kAngle{[](const MajorityRow& row) { return row.angle_mean; }, 0, 90};  // folded
inline constexpr Quantity kDistance{[](const MajorityRow& row) { return row.test.attention_distance; }, 0, 1,
                                    false};

// Of the trainings in more dimensions, at most.
inline constexpr std::uint64_t kWideSteps = 1500;
// And of those in many layers.
inline constexpr std::uint64_t kDeepSteps = 1500;

// Without those that diverged.
MajorityRuns sound_runs(std::span<const MajorityRun> runs, std::string_view norm);
// Those of the paper's own norms, which come first.
std::span<const MajorityRun> without_learned_normals(std::span<const MajorityRun> runs);
// One value per run that was recorded at this step.
std::vector<double> values_at(const MajorityRuns& runs, std::uint64_t step, MajorityValue value);
std::vector<double> last_values(const MajorityRuns& runs, MajorityValue value);

// A published curve: what it shows, to what its figure can be read, and what is called the same curve: a factor,
// counted from 1, or a difference.
struct PublishedCurve {
  std::span<const PublishedValue> points;
  MajorityValue value;
  double reading;
  int digits;
  Threshold same;
};
// With projection and without, each on the paper's own axis, or if it fails there and holds on the corrected
// one, on that condition. what: "Training loss".
std::vector<Claim> curve_claims(const PublishedCurve& curve, const char* where, const char* what);

// What Fig. 2 and 3 show, the norm without projection in three forms.
Runs figure_norms();
// Steps to a loss of one norm over those of another, seed by seed. A run that has not got there, because it
// ended before or diverged, would need more steps than it made.
std::function<RatioInterval(const Evidence&)> steps_ratio(std::string of, std::string over, double loss);
RatioInterval steps_ratio(const MajorityRuns& of, const MajorityRuns& over, double loss, double level);
// The factor between two things, whichever is greater.
RatioInterval factor_apart(RatioInterval ratio);
// At the end, over seeds.
std::function<Interval(const Evidence&)> at_end(std::string norm, const Quantity& quantity, double unit = 1);

CurveFigure::Panel majority_panel(std::span<const MajorityRun> runs, const std::string& title,
                                  const std::string& y_label, const Quantity& quantity,
                                  std::span<const PublishedValue> published = {}, bool log_y = false);
std::string seeds_caption(std::span<const MajorityRun> runs);

}  // namespace normscope

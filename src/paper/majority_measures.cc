#include "paper/majority_measures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/number_text.h"
#include "paper/part.h"
#include "report/curves.h"
#include "report/scatter.h"
#include "train/runs_by_norm.h"

namespace normscope {
namespace {

// The paper counts 17 steps per epoch, but 80 000 sequences in batches of 6000 are 14: if its figures were
// drawn over epochs, a step of theirs is this many of ours.
constexpr double kStepsPerPublishedStep = 14.0 / 17.0;

// The evaluation nearest to a published step.
std::uint64_t step_of(const MajorityRuns& runs, double step) {
  std::uint64_t best = 0;
  for (const MajorityRow& row : runs.front()->rows) {
    if (std::fabs(static_cast<double>(row.step) - step) < std::fabs(static_cast<double>(best) - step))
      best = row.step;
  }
  return best;
}

// How far the mean over seeds is from a published value, which a figure can be read to ± reading: a factor of a
// curve whose values are compared by ratios, otherwise a difference.
ComparisonResult distance_to(const PublishedCurve& curve, double published, std::vector<double> values,
                             double level) {
  const bool factors = curve.same.neutral == 1;
  if (factors) {
    for (double& value : values) value = std::log(value);
  }
  Interval mean = mean_interval(values, level);
  if (factors) {
    for (double* end : {&mean.mean, &mean.low, &mean.high}) *end = std::exp(*end);
  }
  const double least = published - curve.reading, most = published + curve.reading;
  const auto distance = [&](double value) {
    const double nearest = std::clamp(value, least, most);
    return factors ? std::max(value / nearest, nearest / value) : std::fabs(value - nearest);
  };
  ComparisonResult result = measured_of(mean);
  result.value = distance(mean.mean);
  result.low = mean.low <= most && mean.high >= least ? curve.same.neutral
                                                      : std::min(distance(mean.low), distance(mean.high));
  result.high = std::max(distance(mean.low), distance(mean.high));
  if (!(mean.low <= mean.high)) result.low = result.high = std::numeric_limits<double>::quiet_NaN();
  return result;
}

std::string step_text(std::uint64_t step) {
  return step < 1000 ? fmt::format("step {}", step) : fmt::format("{}K", step / 1000);
}

std::vector<PublishedValue> points_of(const PublishedCurve& curve, std::string_view norm) {
  std::vector<PublishedValue> points(curve.points.begin(), curve.points.end());
  std::erase_if(points, [&](const PublishedValue& point) { return point.norm != norm; });
  return points;
}

// Whether our curve is the published one, if a published step is `scale` steps: at every published point the mean
// over seeds lies near the value. A part of the curve is not enough; a miss is a miss.
struct CurveLook {
  std::string measured = {}, why = {};
  Answer meets = true;
};
CurveLook look_at(const Evidence& evidence, const PublishedCurve& curve, const std::string& norm,
                  double scale) {
  CurveLook look;
  const MajorityRuns chosen = sound_runs(evidence.majority, norm);
  const std::vector<PublishedValue> points = points_of(curve, norm);
  const bool factors = curve.same.neutral == 1;
  std::size_t near = 0, reached_all = 0;
  std::string misses;
  for (const PublishedValue& point : points) {
    const std::string at = step_text(point.step);
    const double step = scale * static_cast<double>(point.step);
    const bool reached = std::any_of(chosen.begin(), chosen.end(), [&](const MajorityRun* run) {
      return static_cast<double>(run->step) >= step;
    });
    const auto values =
        reached ? values_at(chosen, step_of(chosen, step), curve.value) : std::vector<double>();
    const double level = level_of(evidence);
    if (!values.empty())
      append(look.measured,
             fmt::format("{} @{}", with_interval(mean_interval(values, level), curve.digits), at));
    const ComparisonResult distance = distance_to(curve, point.value, values, level);
    const Answer meets = noted(evidence, Side::at_most, distance, curve.same,
                               {fmt::format("{} @{}{}, distance from the published value", norm, at,
                                            scale == 1 ? "" : " on the corrected axis"),
                                factors ? "×" : ""});
    look.meets = all_of({look.meets, meets});
    reached_all += !values.empty();
    near += meets == true;
    if (meets == false)
      append(misses, fmt::format("{} (by {:.2f}{})", at, distance.value, factors ? "×" : ""));
  }
  if (look.measured.empty()) look.measured = "not run so far";
  look.why =
      reached_all == 0
          ? "These steps were not run."
          : fmt::format(
                "{} of the {} published values were reached, {} of them lie near the mean of {}, "
                "read to ±{}: {}{} apart at most, with the whole interval{}.",
                reached_all, points.size(), near, counted(chosen.size(), "seed"), curve.reading,
                factors ? "a factor of " : "", curve.same.value, misses.empty() ? "" : "; away: " + misses);
  return look;
}

Claim curve_claim(const PublishedCurve& curve, const char* where, const std::string& sentence,
                  const std::string& norm) {
  const auto look = [=](double scale) {
    return [=](const Evidence& evidence) { return look_at(evidence, curve, norm, scale); };
  };
  const auto ours = look(1), corrected = look(kStepsPerPublishedStep);
  std::string published;
  for (const PublishedValue& point : points_of(curve, norm))
    append(published, fmt::format("{:.{}f} @{}", point.value, curve.digits, step_text(point.step)));
  return {
      .where = where,
      .sentence = sentence,
      .published = published,
      .needs = {figure_norms()},
      .measured = of(ours, &CurveLook::measured),
      .why = of(ours, &CurveLook::why),
      .holds = of(ours, &CurveLook::meets),
      .holds_if =
          {{of(corrected, &CurveLook::meets),
            "the paper's axis counts 17 steps per epoch, where 80 000 sequences in batches of 6000 are 14",
            written(" On a second look, at 14/17 of the published steps: {}. {}",
                    of(corrected, &CurveLook::measured), of(corrected, &CurveLook::why))}},
      .undecided = " More seeds are needed to tell.",
      .topic = "training"};
}

CurveFigure::Curve curve_of(const MajorityRuns& runs, const std::string& name, const Quantity& quantity) {
  CurveFigure::Curve result;
  result.name = name;
  for (const MajorityRow& row : runs.front()->rows) {
    const Interval interval = mean_interval(values_at(runs, row.step, quantity.value));
    if (interval.count == 0) continue;
    result.x.push_back(static_cast<double>(row.step));
    result.y.push_back(interval.mean);
    const auto [low, high] = interval.drawn();
    result.low.push_back(std::clamp(low, quantity.least, quantity.most));
    result.high.push_back(std::clamp(high, quantity.least, quantity.most));
  }
  if (runs.size() < 2) result.low.clear(), result.high.clear();
  return result;
}

}  // namespace

MajorityRuns sound_runs(std::span<const MajorityRun> runs, std::string_view norm) {
  MajorityRuns chosen = runs_of(runs, norm);
  std::erase_if(chosen, [](const MajorityRun* run) { return run->diverged; });
  return chosen;
}

std::span<const MajorityRun> without_learned_normals(std::span<const MajorityRun> runs) {
  const auto learned = std::find_if(
      runs.begin(), runs.end(), [](const MajorityRun& run) { return run.id.norm.starts_with("project:"); });
  return runs.first(static_cast<std::size_t>(learned - runs.begin()));
}

std::vector<double> values_at(const MajorityRuns& runs, std::uint64_t step, MajorityValue value) {
  std::vector<double> values;
  for (const MajorityRun* run : runs) {
    const auto row = std::find_if(run->rows.begin(), run->rows.end(),
                                  [&](const MajorityRow& each) { return each.step == step; });
    if (row != run->rows.end() && std::isfinite(value(*row))) values.push_back(value(*row));
  }
  return values;
}

std::vector<double> last_values(const MajorityRuns& runs, MajorityValue value) {
  std::vector<double> values;
  for (const MajorityRun* run : runs) values.push_back(value(run->rows.back()));
  return values;
}

std::vector<Claim> curve_claims(const PublishedCurve& curve, const char* where, const char* what) {
  return {curve_claim(curve, where, fmt::format("{}, with projection (layernorm)", what), "layernorm"),
          curve_claim(curve, where,
                      fmt::format("{}, without, as the published code computes it (published)", what),
                      "published")};
}

Runs figure_norms() {
  return {Need::majority, {"layernorm", "rmsnorm", "xsigma", "published"}};
}

RatioInterval steps_ratio(const MajorityRuns& of, const MajorityRuns& over, double loss, double level) {
  constexpr double never = std::numeric_limits<double>::infinity();
  const auto steps_of = [=](const MajorityRun& run) -> Range {
    const auto steps = run.steps_to(loss);
    return steps ? Range{static_cast<double>(*steps), static_cast<double>(*steps)}
                 : Range{static_cast<double>(run.step), never};
  };
  std::vector<Range> ratios;
  for (const MajorityRun* lower : over) {
    for (const MajorityRun* upper : of) {
      if (upper->id.seed != lower->id.seed) continue;
      const Range a = steps_of(*upper), b = steps_of(*lower);
      ratios.push_back({a.low / b.high, b.low > 0 ? a.high / b.low : never});
    }
  }
  return ratio_interval(ratios, level);
}
std::function<RatioInterval(const Evidence&)> steps_ratio(std::string of, std::string over, double loss) {
  return [=](const Evidence& evidence) {
    return steps_ratio(runs_of(evidence.majority, of), runs_of(evidence.majority, over), loss,
                       level_of(evidence));
  };
}

std::function<Interval(const Evidence&)> at_end(std::string norm, const Quantity& quantity, double unit) {
  return [=](const Evidence& evidence) {
    std::vector<double> values = last_values(sound_runs(evidence.majority, norm), quantity.value);
    for (double& value : values) value *= unit;
    return mean_interval(values, level_of(evidence));
  };
}

RatioInterval factor_apart(RatioInterval ratio) {
  const double low = ratio.low, high = ratio.high;
  ratio.estimate.low = std::max(ratio.estimate.low, 1 / ratio.estimate.low);
  ratio.low = low > 1 ? low : high < 1 ? 1 / high : std::isnan(low) ? low : 1;
  ratio.high = std::max(high, 1 / low);
  return ratio;
}

CurveFigure::Panel majority_panel(std::span<const MajorityRun> runs, const std::string& title,
                                  const std::string& y_label, const Quantity& quantity,
                                  std::span<const PublishedValue> published, bool log_y) {
  CurveFigure::Panel result = step_panel(title, y_label);
  result.log_y = log_y;
  if (quantity.whole) result.y_low = quantity.least, result.y_high = quantity.most;
  std::uint64_t last = 0;
  for (const std::string& norm : norms_of(runs)) {
    const MajorityRuns chosen = sound_runs(runs, norm);
    if (chosen.empty()) continue;
    result.curves.push_back(curve_of(chosen, norm, quantity));
    for (const MajorityRun* run : chosen) last = std::max(last, run->step);
  }
  for (const PublishedValue& point : published) {
    if (point.step <= last) {
      result.marks.push_back(
          {point.norm, static_cast<double>(point.step), point.value, "read off the paper's figure"});
    }
  }
  return result;
}

std::string seeds_caption(std::span<const MajorityRun> runs) {
  std::vector<std::uint64_t> seeds;
  for (const MajorityRun& run : runs) seeds.push_back(run.id.seed);
  return seeds_caption(seeds);
}

}  // namespace normscope

// Discrete against continuous time: layers of Wu, Ajorlou, Wang, Jegelka, Jadbabaie 2024 as Euler's steps of length
// h of dX/dt = f(X) − X, for h from 1, their layer, towards 0, where earlier work on attention is.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/number_text.h"
#include "paper/wu_curves.h"

namespace normscope {
namespace {

constexpr std::size_t kFewTokens = 8, kFewDimensions = 8;
constexpr std::array kSteps = {1.0, 0.5, 0.1, 0.02, 0.01};
constexpr double kWhole = kSteps.front(), kNext = kSteps[kSteps.size() - 2], kSmallest = kSteps.back();
constexpr std::size_t kTime = 24;
constexpr std::array kTwoMasks = {"full", "causal"};
constexpr const char *kWithout = "without norm", *kWith = "with norm";

// The same in every layer: time goes on, the equation stays.
struct ValueMatrix {
  const char* name;
  MatrixInit init;
  bool orthogonal;
};
MatrixInit given(Matrix<double> matrix) {
  MatrixInit init;
  init.kind = MatrixInit::Kind::given;
  init.given = std::move(matrix);
  return init;
}
// A random rotation or reflection, and −I.
Matrix<double> drawn_orthogonal(std::uint64_t seed) {
  WeightInit weights;
  weights.value = parse_matrix_init("orthogonal");
  const BlockWeights<double> layer = draw_weights<double>(weights, kFewDimensions, 0, 0, seed, Executor(1));
  Matrix<double> value(kFewDimensions, kFewDimensions);
  for (std::size_t i = 0; i < kFewDimensions; ++i) {
    for (std::size_t j = 0; j < kFewDimensions; ++j)
      value(i, j) = layer.query_key_value(i, 2 * kFewDimensions + j);
  }
  return value;
}
Matrix<double> minus_identity() {
  Matrix<double> value(kFewDimensions, kFewDimensions);
  for (std::size_t i = 0; i < kFewDimensions; ++i) value(i, i) = -1;
  return value;
}
std::vector<ValueMatrix> value_matrices(std::uint64_t seed) {
  return {{"I", parse_matrix_init("identity"), true},
          {"random orthogonal", given(drawn_orthogonal(seed)), true},
          {"−I", given(minus_identity()), true},
          {"Jordan block, w = 2", parse_matrix_init("jordan:2"), false}};
}

std::string group_of(const char* norm, const char* mask) {
  return fmt::format("{}, {}", mask, norm);
}

// Curves by step size; groups are mask and norm, names those of value matrices. All run for the same time.
struct AtStep {
  double h = 1;
  Curves curves;
};
std::vector<AtStep> run(const Evidence& evidence) {
  CollapseSettings settings;
  settings.tokens = kFewTokens;
  settings.samples = evidence.plan.samples;
  settings.weights.query_key = settings.weights.output = parse_matrix_init("identity");
  settings.start = acute_start(settings.samples, kFewTokens, kFewDimensions, evidence.plan.seed);
  settings.precision = Precision::float64;
  settings.spectrum = Spectrum::no;
  settings.theory = false;
  settings.seed = evidence.plan.seed;
  std::vector<AtStep> all;
  for (const double h : kSteps) {
    settings.layers = static_cast<std::size_t>(std::lround(kTime / h));
    AtStep& at = all.emplace_back(AtStep{h, {}});
    for (const ValueMatrix& value : value_matrices(evidence.plan.seed)) {
      settings.weights.value = value.init;
      std::vector<CollapseCase> cases;
      for (const char* mask : kTwoMasks) {
        for (const char* norm : {kWithout, kWith}) {
          BlockSpec block;
          block.width = kFewDimensions;
          block.skip = false;
          block.step = h;
          block.norm = parse_norm(norm == kWith ? "unit" : "none");
          cases.push_back(
              {group_of(norm, mask), value.name, block, parse_mask(mask, kFewTokens, evidence.plan.seed)});
        }
      }
      for (CollapseCurve& curve : evidence.collapse(fmt::format("Steps of {}", h), cases, settings))
        at.curves.push_back(std::move(curve));
    }
  }
  return all;
}
const Curves& curves_at(const Evidence& evidence, double h) {
  const std::vector<AtStep>& all = once<run>(evidence);
  return std::find_if(all.begin(), all.end(), [&](const AtStep& at) { return at.h == h; })->curves;
}

// A curve that every step size has.
struct Case {
  std::string group, name;
  std::string text() const { return fmt::format("{}, {}", name, group); }
};
std::vector<Case> all_cases(const Evidence& evidence) {
  std::vector<Case> cases;
  for (const CollapseCurve& curve : curves_at(evidence, kWhole)) cases.push_back({curve.group, curve.name});
  return cases;
}
// The share of μ/‖X‖ that one unit of time leaves, sample by sample: 1/h layers.
std::vector<double> kept(const Evidence& evidence, const Case& which, double h) {
  std::vector<double> shares = find(curves_at(evidence, h), which.group, which.name).rate.samples;
  for (double& share : shares) share = std::pow(share, 1 / h);
  return shares;
}
// That of steps h over that of the smallest steps.
RatioInterval over_limit(const Evidence& evidence, const Case& which, double h) {
  return mean_ratio(kept(evidence, which, kSmallest), kept(evidence, which, h), level_of(evidence));
}
Answer within(const Evidence& evidence, const Case& which, double h, const Threshold& low,
              const Threshold& high) {
  const RatioInterval ratio = over_limit(evidence, which, h);
  const Aspect aspect(
      fmt::format("{}: kept per unit of time, h = {:g} over h = {:g}", which.text(), h, kSmallest), "×");
  return all_of({at_least(evidence, ratio, low, aspect), at_most(evidence, ratio, high, aspect)});
}

constexpr const char* kHalved =
    "half the step moves a rate by about as much again: so much is left to the limit";
constexpr Threshold kLimitLow{0.95, kHalved, 1}, kLimitHigh{1.05, kHalved, 1};
Answer near_limit(const Evidence& evidence, const Case& which) {
  return within(evidence, which, kNext, kLimitLow, kLimitHigh);
}
constexpr const char* kSameRate = "a tenth: what a figure shows as one curve";
constexpr Threshold kSameLow{0.9, kSameRate, 1}, kSameHigh{1.1, kSameRate, 1};
Answer same_rate(const Evidence& evidence, const Case& which) {
  return within(evidence, which, kWhole, kSameLow, kSameHigh);
}

// Cases of which something is so, by name.
std::string cases_where(const Evidence& evidence, Answer (*holds)(const Evidence&, const Case&)) {
  std::string names;
  for (const Case& each : all_cases(evidence)) {
    if (holds(evidence, each) == true) append(names, each.text(), "; ");
  }
  return names;
}
Claim by_case(Claim claim, Answer (*holds)(const Evidence&, const Case&)) {
  claim.holds = [=](const Evidence& evidence) {
    return all_of(all_cases(evidence), [&](const Case& each) { return holds(evidence, each); });
  };
  const auto names = [=](const Evidence& evidence) { return cases_where(evidence, holds); };
  claim.holds_if = {{any_in(names), written("the case is one of {}", names)}};
  return claim;
}

std::size_t case_count(const Evidence& evidence) {
  return all_cases(evidence).size();
}
// Cases in which a whole layer leaves less than the limit does, or more, by more than the samples differ.
template <bool less>
std::size_t faster_or_slower(const Evidence& evidence) {
  std::size_t count = 0;
  for (const Case& each : all_cases(evidence)) {
    const RatioInterval ratio = over_limit(evidence, each, kWhole);
    count += (less ? below(ratio, kSameLow.value) : above(ratio, kSameHigh.value)) == true;
  }
  return count;
}
// The case whose ratio is farthest from 1.
std::string farthest(const Evidence& evidence, double h) {
  std::string text;
  double most = -1;
  for (const Case& each : all_cases(evidence)) {
    const RatioInterval ratio = over_limit(evidence, each, h);
    const double distance = std::fabs(std::log(ratio.estimate.low));
    if (!(distance > most)) continue;
    most = distance;
    text = fmt::format("{} in {}", factor_text(ratio), each.text());
  }
  return text;
}

Ask two_samples() {
  return {at_least([](const Evidence& evidence) { return evidence.plan.samples; }, 2),
          " One sample has no interval."};
}

Claim has_a_limit() {
  return by_case(
      {.where = "Wu, discrete dynamics",
       .sentence = "With smaller and smaller steps the rate of collapse per unit of time has a limit",
       .published = "not looked at: layers are whole; earlier work is in continuous time",
       .measured = written(
           "share of μ/‖X‖ kept per unit of time, steps of {:g} over steps of {:g}, farthest from 1: {}",
           kNext, kSmallest, [](const Evidence& evidence) { return farthest(evidence, kNext); }),
       .why = written(
           "{} cases: {} tokens in {} dimensions, W_Q = W_K = I, the same value matrix in every layer, time {}, {}. X ← (1 − h)X + h·f(X), then the norm; time is layer × h.",
           case_count, kFewTokens, kFewDimensions, kTime,
           of([](const Evidence& evidence) { return curves_at(evidence, kWhole); }, samples_count)),
       .asks = {two_samples()},
       .topic = "collapse"},
      near_limit);
}

Claim whole_layers_have_it() {
  return by_case(
      {.where = "Wu, discrete dynamics",
       .sentence = "Whole layers collapse at the rate of continuous time",
       .published = "dynamics are discrete, unlike those of earlier work; rates are not compared",
       .measured = written(
           "in {} of {} cases whole layers keep less of μ/‖X‖ per unit of time, in {} more; farthest: {}",
           faster_or_slower<true>, case_count, faster_or_slower<false>,
           [](const Evidence& evidence) { return farthest(evidence, kWhole); }),
       .why = written(
           "Continuous time is h = {:g}. With W_V = I, of what attention multiplies by λ a whole layer leaves λ and one unit of continuous time e^(λ − 1), which is never less.",
           kSmallest),
       .asks = {two_samples()},
       .topic = "collapse"},
      same_rate);
}

// --- What collapses ---

Interval left(const Evidence& evidence, const Case& which, double h) {
  const CollapseCurve& curve = find(curves_at(evidence, h), which.group, which.name);
  const std::vector<double> start = relative_at(curve, 0);
  std::vector<double> share = relative_at(curve, curve.layers.size() - 1);
  for (std::size_t s = 0; s < share.size(); ++s) share[s] = start[s] > 0 ? share[s] / start[s] : 0;
  return mean_interval(share, level_of(evidence));
}
constexpr Threshold kCollapsed{0.01, "two orders of magnitude, as of the other claims on collapse"};
// With a norm, under both masks.
Answer collapses(const Evidence& evidence, const ValueMatrix& value, double h) {
  return all_of(kTwoMasks, [&](const char* mask) {
    const Case which{group_of(kWith, mask), value.name};
    return below(evidence, left(evidence, which, h), kCollapsed,
                 fmt::format("{}, h = {:g}: share of μ/‖X‖ left", which.text(), h));
  });
}
std::vector<ValueMatrix> orthogonal_ones(const Evidence& evidence) {
  std::vector<ValueMatrix> all = value_matrices(evidence.plan.seed);
  std::erase_if(all, [](const ValueMatrix& value) { return !value.orthogonal; });
  return all;
}
Condition all_collapse(double h) {
  return [=](const Evidence& evidence) {
    return all_of(orthogonal_ones(evidence),
                  [&](const ValueMatrix& value) { return collapses(evidence, value, h); });
  };
}
Condition collapse_with(const char* name, double h) {
  return [=](const Evidence& evidence) {
    return all_of(orthogonal_ones(evidence), [&](const ValueMatrix& value) {
      return value.name == std::string_view(name) ? collapses(evidence, value, h) : Answer(true);
    });
  };
}
std::string collapsing(const Evidence& evidence) {
  std::string names;
  for (const ValueMatrix& value : orthogonal_ones(evidence)) {
    if (collapses(evidence, value, kSmallest) == true) append(names, value.name);
  }
  return names;
}
std::string ends(const Evidence& evidence, double h) {
  std::string text;
  for (const ValueMatrix& value : orthogonal_ones(evidence)) {
    std::string masks;
    for (const char* mask : kTwoMasks)
      append(masks, fmt::format("{} {}", mask,
                                with_interval(left(evidence, {group_of(kWith, mask), value.name}, h))));
    append(text, fmt::format("{}: {}", value.name, masks), "; ");
  }
  return text;
}

Claim orthogonal_values() {
  return {
      .where = "Wu Thm 2, Cor. 1",
      .sentence = "With a norm and orthogonal value matrices tokens collapse in continuous time, too",
      .published = "for whole layers: under every orthogonal value matrix",
      .measured = written("share of μ/‖X‖ left at time {}, steps of {:g}: {}", kTime, kSmallest,
                          [](const Evidence& evidence) { return ends(evidence, kSmallest); }),
      .why =
          written("Whole layers leave: {}.",
                  [](const Evidence& evidence) { return ends(evidence, kWhole); }) +
          when(
              all_of({collapse_with("−I", kWhole), negation(collapse_with("−I", kSmallest))}),
              " Whole layers under −I collapse, since how alike tokens are does not depend on the sign of all; a small step leads away from what they agree on."),
      .asks = {two_samples()},
      .holds = all_collapse(kSmallest),
      .holds_if = {{any_in(collapsing), written("the value matrix is one of {}", collapsing)}},
      .topic = "collapse"};
}

// --- Two tokens under Theorem 3 ---

constexpr std::array kDynamicSteps = {1.0, 0.5, 0.1, 0.02};
constexpr double kSmallestDynamic = kDynamicSteps.back();
constexpr std::size_t kStarts = 2000, kLongTime = 400;

// The token that comes next, on the circle; false if it has no length.
bool step_towards(double h, double sum_x, double sum_y, double weight, double w, double& x, double& y) {
  const double to_x = weight * sum_x, to_y = weight * (sum_y + w * sum_x);
  const double next_x = (1 - h) * x + h * to_x, next_y = (1 - h) * y + h * to_y;
  const double length = std::hypot(next_x, next_y);
  if (!(length > 0)) return false;
  x = next_x / length;
  y = next_y / length;
  return true;
}
// Whether two tokens are apart at the end: their cosine is below 0.99.
bool ends_apart(double h, double w, TokenPair tokens) {
  auto& [x1, y1, x2, y2] = tokens;
  const auto layers = static_cast<std::size_t>(std::lround(static_cast<double>(kLongTime) / h));
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const double sum_x = x1 + x2, sum_y = y1 + y2;
    if (!step_towards(h, x1, y1, 1, w, x1, y1) || !step_towards(h, sum_x, sum_y, 0.5, w, x2, y2))
      return false;
  }
  return x1 * x2 + y1 * y2 < 0.99;
}
std::vector<std::size_t> apart_by_step(const Evidence& evidence) {
  std::vector<std::size_t> counts;
  for (const double h : kDynamicSteps) {
    std::vector<char> apart(kStarts);
    evidence.executor.for_each(kStarts / 100, [&](std::size_t piece) {
      for (std::size_t s = 100 * piece; s < 100 * (piece + 1); ++s)
        apart[s] = ends_apart(h, dynamics(evidence).w, random_start(evidence.plan.seed, s));
    });
    counts.push_back(static_cast<std::size_t>(std::count(apart.begin(), apart.end(), 1)));
  }
  return counts;
}
Interval share_apart(const Evidence& evidence, double h) {
  const auto at = static_cast<std::size_t>(std::find(kDynamicSteps.begin(), kDynamicSteps.end(), h) -
                                           kDynamicSteps.begin());
  return share_interval(once<apart_by_step>(evidence)[at], kStarts, level_of(evidence));
}

Claim theorem3() {
  constexpr Threshold some_starts{0.01, "one start in a hundred"};
  return {
      .where = "Wu Thm 3",
      .sentence = "That a norm with a suitable value matrix keeps tokens apart holds in continuous time, too",
      .published = "for whole layers: equilibria of every rank, reached from a range of starts",
      .measured =
          [](const Evidence& evidence) {
            std::string text;
            for (const double h : kDynamicSteps)
              append(text, fmt::format("h = {:g}: {}", h, with_brackets(share_apart(evidence, h))));
            return fmt::format("share of starts that stay apart at time {}: {}", kLongTime, text);
          },
      .why = written(
          "Two tokens in the plane, w = {:g}, {} random starts, the same for every step size. A step keeps the equilibria: (1 − h)X + h·f(X) has the direction of X where f(X) has it.",
          of(dynamics, &WuSettings::w), kStarts),
      .holds = above([](const Evidence& evidence) { return share_apart(evidence, kSmallestDynamic); },
                     some_starts, Aspect("share of starts that stay apart, smallest step")),
      .topic = "dynamics"};
}

Findings shown(const Evidence& evidence) {
  CurveFigure figure;
  ReportTable rates{"Share of μ/‖X‖ kept per unit of time, by step size",
                    {{"value matrix", "mask and norm"}}};
  for (const double h : kSteps) rates.rows.front().push_back(fmt::format("h = {:g}", h));
  for (const Case& which : all_cases(evidence)) {
    std::vector<std::string>& row = rates.rows.emplace_back();
    row = {which.name, which.group};
    CurveFigure::Panel& panel = figure.panels.emplace_back();
    panel.title = which.text();
    panel.x_label = "time, layer × h";
    panel.y_label = "μ/‖X‖";
    panel.log_y = true;
    panel.y_low = 1e-8;
    for (const double h : kSteps) {
      const std::vector<double> shares = kept(evidence, which, h);
      row.push_back(factor_text(mean_ratio(std::vector<double>(shares.size(), 1), shares)));
      const CollapseCurve& curve = find(curves_at(evidence, h), which.group, which.name);
      CurveFigure::Curve line;
      line.name = fmt::format("h = {:g}", h);
      // Every half unit of time, or every layer.
      const auto stride = std::max<std::size_t>(1, static_cast<std::size_t>(std::lround(0.5 / h)));
      for (std::size_t layer = 0; layer < curve.layers.size(); layer += stride) {
        line.x.push_back(h * static_cast<double>(layer));
        line.y.push_back(curve.mean(layer, &TokenMeasures::relative));
      }
      panel.curves.push_back(std::move(line));
    }
  }
  figure.caption = fmt::format(
      "{} tokens in {} dimensions, one head, W_Q = W_K = I, float64, {}. h = 1 is a whole layer without skip; with the "
      "norm h = 1/2 is one with skip.",
      kFewTokens, kFewDimensions, samples_count(curves_at(evidence, kWhole)));
  return {.figures = {to_figure("steps", "Discrete against continuous time: μ/‖X‖ by time", "", figure)},
          .tables = {rates}};
}

}  // namespace

Exhibit wu_steps() {
  return {{has_a_limit(), whole_layers_have_it(), orthogonal_values(), theorem3()}, shown};
}

}  // namespace normscope

// §6 of Brody, Alon, Yahav 2023, the limitations: effects that are said to fade in larger models, and projection as
// a matrix before the norm, given and learned.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/decompose.h"
#include "core/number_text.h"
#include "normscope/heatmap.h"
#include "normscope/norm.h"
#include "normscope/random.h"
#include "paper/majority_measures.h"
#include "paper/part.h"
#include "report/collapse_page.h"
#include "report/heatmap_page.h"
#include "train/runs_by_norm.h"

namespace normscope {
namespace {

constexpr std::array<std::size_t, 4> kWidths = {8, 16, 32, 64};
constexpr double kLoss = 0.5;
constexpr const char *kProjected = "layernorm", *kScaled = "rmsnorm", *kNone = "none";

struct AtWidth {
  std::size_t width = 0;
  std::vector<MajorityRun> runs;
};
std::vector<AtWidth> at_widths(const Evidence& evidence) {
  std::vector<AtWidth> all;
  for (const std::size_t width : kWidths) {
    MajoritySettings settings;
    settings.dimension = width;
    settings.steps = std::min(evidence.plan.steps, kWideSteps);
    settings.evaluate_every =
        std::min<std::uint64_t>(settings.evaluate_every, std::max<std::uint64_t>(1, settings.steps / 30));
    all.push_back({width, evidence.train_majority(fmt::format("majority-d{}", width), settings,
                                                  {kProjected, kScaled, kNone})});
  }
  return all;
}

// NaN of a run that has not got there.
double steps_of(const MajorityRun& run) {
  const auto steps = run.steps_to(kLoss);
  return steps ? static_cast<double>(*steps) : std::numeric_limits<double>::quiet_NaN();
}

// Of all widths and norms, runs that did not reach the loss.
std::size_t left_out(const Evidence& evidence) {
  std::size_t count = 0;
  for (const AtWidth& at : once<at_widths>(evidence)) {
    count +=
        static_cast<std::size_t>(std::count_if(at.runs.begin(), at.runs.end(), [](const MajorityRun& run) {
          return run.diverged || !std::isfinite(steps_of(run));
        }));
  }
  return count;
}

// Seed by seed, the steps of a norm over those of LayerNorm; only where both arrived.
std::map<std::uint64_t, double> ratios(const AtWidth& at, const char* norm) {
  std::map<std::uint64_t, double> found;
  for (const MajorityRun* one : sound_runs(at.runs, kProjected)) {
    for (const MajorityRun* other : sound_runs(at.runs, norm)) {
      const double ratio = steps_of(*other) / steps_of(*one);
      if (one->id.seed == other->id.seed && std::isfinite(ratio) && ratio > 0) found[one->id.seed] = ratio;
    }
  }
  return found;
}
RatioInterval ratio_at(const Evidence& evidence, const AtWidth& at, const char* norm) {
  std::vector<double> ones, values;
  for (const auto& [seed, ratio] : ratios(at, norm)) {
    ones.push_back(1);
    values.push_back(ratio);
  }
  return mean_ratio(ones, values, level_of(evidence));
}
std::string ratio_text(const Evidence& evidence, const AtWidth& at, const char* norm) {
  const RatioInterval ratio = ratio_at(evidence, at, norm);
  return ratio.count == 0 ? "not reached by both" : with_interval(ratio);
}
// Of what sets a norm apart from LayerNorm, whichever is slower, how much less it is at the last width than at the
// first: logarithms of ratios, seed by seed.
Interval fading(const Evidence& evidence, const char* norm) {
  const std::vector<AtWidth>& all = once<at_widths>(evidence);
  const auto first = ratios(all.front(), norm), last = ratios(all.back(), norm);
  std::vector<double> at_last, at_first;
  for (const auto& [seed, ratio] : first) {
    const auto found = last.find(seed);
    if (found == last.end()) continue;
    at_first.push_back(std::fabs(std::log(ratio)));
    at_last.push_back(std::fabs(std::log(found->second)));
  }
  return mean_difference(at_last, at_first, level_of(evidence));
}

Answer fades(const Evidence& evidence, const char* norm) {
  return above(evidence, fading(evidence, norm), 0,
               fmt::format("{}: steps apart from LayerNorm's, logarithm, d {} − d {}", norm, kWidths.front(),
                           kWidths.back()));
}

Claim majority_fades() {
  const auto seeds = [](const Evidence& evidence) {
    return std::min(fading(evidence, kScaled).count, fading(evidence, kNone).count);
  };
  return {
      .where = "§6",
      .sentence = "What the norm does for majority fades in larger models",
      .published = "less evident for larger models; no numbers",
      .measured =
          [](const Evidence& evidence) {
            std::string text;
            for (const AtWidth& at : once<at_widths>(evidence)) {
              append(text,
                     fmt::format("d {}: rmsnorm {}, none {}", at.width, ratio_text(evidence, at, kScaled),
                                 ratio_text(evidence, at, kNone)),
                     "; ");
            }
            return fmt::format("steps to loss {} over LayerNorm's: {}", kLoss, text);
          },
      .why =
          [](const Evidence& evidence) {
            std::string text;
            for (const AtWidth& at : once<at_widths>(evidence)) {
              std::string angles;
              for (const char* norm : {kProjected, kScaled, kNone}) {
                const MajorityRuns chosen = sound_runs(at.runs, norm);
                if (!chosen.empty())
                  append(angles, fmt::format("{} {}", norm,
                                             with_interval(mean_interval(last_values(chosen, kAngle.value),
                                                                         level_of(evidence)),
                                                           1)));
              }
              append(text, fmt::format("d {}: {}", at.width, angles), "; ");
            }
            return fmt::format(
                "Judged by how far the steps are apart, at d {} and at d {}, seed by seed; runs that did not reach the loss are left out: {}. Angle of the queries to 1 at the end, degrees: {}.",
                kWidths.front(), kWidths.back(), left_out(evidence), text);
          },
      .asks = {{at_least(seeds, 2),
                " Fewer than two seeds reached the loss at both widths: more seeds or steps are needed."}},
      .holds =
          [](const Evidence& evidence) {
            return all_of({fades(evidence, kScaled), fades(evidence, kNone)});
          },
      .holds_if = {{[](const Evidence& evidence) { return fades(evidence, kScaled); },
                    "the projection alone is meant: rmsnorm beside layernorm"},
                   {[](const Evidence& evidence) { return fades(evidence, kNone); },
                    "the whole norm is meant: none beside layernorm"}},
      .topic = "projection"};
}

// By how much the queries of a run turned to 1, from start to end: in more dimensions random ones are farther from it.
std::vector<double> turned(const AtWidth& at) {
  std::vector<double> all;
  for (const MajorityRun* run : sound_runs(at.runs, kProjected))
    all.push_back(run->rows.front().angle_mean - run->rows.back().angle_mean);
  return all;
}

Claim turning_fades() {
  const auto more = [](const Evidence& evidence) {
    const std::vector<AtWidth>& all = once<at_widths>(evidence);
    return mean_difference(turned(all.front()), turned(all.back()), level_of(evidence));
  };
  return {.where = "§6",
          .sentence = "In larger models queries depend less on the projection: they turn less to 1",
          .published = "supposed: a larger model can find other solutions",
          .there =
              [](const Evidence& evidence) {
                const std::vector<AtWidth>& all = once<at_widths>(evidence);
                return all_of(all, [&](const AtWidth& at) -> Answer {
                  return turned(at).size() == turned(all.front()).size();
                });
              },
          .otherwise = "not run with as many seeds at every width",
          .measured =
              [](const Evidence& evidence) {
                std::string text;
                for (const AtWidth& at : once<at_widths>(evidence))
                  append(text, fmt::format("d {}: {}°", at.width,
                                           with_interval(mean_interval(turned(at), level_of(evidence)), 1)));
                return fmt::format("queries turned to 1 with LayerNorm in {} steps by: {}",
                                   std::min(evidence.plan.steps, kWideSteps), text);
              },
          .why = written("Angle at the start less that at the end. Last width − first, seed by seed: {}°.",
                         digits(1, more)),
          .holds = below(more, 0, Aspect("layernorm: turned to 1, last width − first", "°")),
          .topic = "projection"};
}

HeatmapRun maps(const Evidence& evidence) {
  HeatmapRun run;
  run.draws = std::min<std::size_t>(evidence.plan.draws, 10);
  run.provenance = provenance(evidence.plan.seed, evidence.executor.threads());
  HeatmapOptions options;
  options.n = {16, 64, 256, 1024};
  options.d = {3, 8, 16, 32, 64};
  options.draws = run.draws;
  options.seed = evidence.plan.seed;
  options.norm = parse_norm("none");
  run.grids.push_back(
      {"none", key_heatmap(options, evidence.executor, evidence.progress("Random keys", "draws"))});
  return run;
}
const Heatmap& map_of(const Evidence& evidence) {
  return once<maps>(evidence).grids.front().heatmap;
}
double share(const Heatmap& map, std::size_t row, std::size_t column) {
  return map.cells[row * map.n.size() + column].fraction;
}
// Cells with a larger share than the cell of as many keys in fewer dimensions.
std::size_t rises(const Evidence& evidence) {
  const Heatmap& map = map_of(evidence);
  std::size_t count = 0;
  for (std::size_t row = 1; row < map.d.size(); ++row) {
    for (std::size_t column = 0; column < map.n.size(); ++column)
      count += share(map, row, column) > share(map, row - 1, column);
  }
  return count;
}
double share_in_most(const Evidence& evidence) {
  const Heatmap& map = map_of(evidence);
  return share(map, map.d.size() - 1, map.n.size() - 1);
}

Claim scaling_fades() {
  constexpr Threshold seldom{0.01, "one key in a hundred"};
  return {
      .where = "§6",
      .sentence = "In more dimensions keys are less likely to lie in the hull of the others",
      .published = "believed; no numbers",
      .measured =
          [](const Evidence& evidence) {
            const Heatmap& map = map_of(evidence);
            std::string text;
            for (std::size_t row = 0; row < map.d.size(); ++row)
              append(text,
                     fmt::format("d {}: {}", map.d[row], percent(share(map, row, map.n.size() - 1), 1)));
            return fmt::format("unselectable of {} random keys: {}", map.n.back(), text);
          },
      .why = written(
          "{} draws of N(0, 1) keys per cell, {} to {} keys, no norm; in {} of the cells the share is above that of fewer dimensions. In a head the dimensions are those of the head.",
          [](const Evidence& evidence) { return once<maps>(evidence).draws; },
          [](const Evidence& evidence) { return map_of(evidence).n.front(); },
          [](const Evidence& evidence) { return map_of(evidence).n.back(); }, rises),
      .holds = all_of(
          {none(rises), below(share_in_most, seldom, "share of the most keys in the most dimensions")}),
      .topic = "selectability",
      .confounds = {"head-space"}};
}

// LayerNorm(x) beside RMSNorm(Px): the largest difference, over √d.
double apart_from_linear(const Evidence& evidence) {
  double largest = 0;
  for (const std::size_t d : kWidths) {
    const Matrix<double> projection = projection_matrix(d);
    const double root = std::sqrt(static_cast<double>(d));
    for (std::size_t s = 0; s < evidence.plan.draws; ++s) {
      Random random(evidence.plan.seed, s);
      Matrix<double> x(1, d), projected(1, d);
      for (double& entry : x[0]) entry = random.normal();
      for (std::size_t i = 0; i < d; ++i) {
        for (std::size_t j = 0; j < d; ++j) projected(0, i) += projection(i, j) * x(0, j);
      }
      norm_forward<double>(parse_norm("layernorm"), {}, x.view(), x.view());
      norm_forward<double>(parse_norm("rmsnorm"), {}, projected.view(), projected.view());
      for (std::size_t i = 0; i < d; ++i)
        largest = std::max(largest, std::fabs(x(0, i) - projected(0, i)) / root);
    }
  }
  return largest;
}

Claim linear_layer() {
  constexpr Threshold rounding{1e-13, "some hundred roundings of float64"};
  return {
      .where = "§6, App. C",
      .sentence = "A linear layer before a norm that only scales can express the projection",
      .published = "clearly",
      .measured =
          written("LayerNorm(x) and RMSNorm(Px) differ by at most {:.1e} of √d", once<apart_from_linear>),
      .why = written(
          "P = I − 11ᵀ/d, {} vectors in 8 to 64 dimensions. Whether such a layer is learned is the next question.",
          [](const Evidence& evidence) { return evidence.plan.draws; }),
      .holds = at_most(once<apart_from_linear>, rounding, "largest difference over √d"),
      .topic = "projection"};
}

// RMSNorm behind a learned matrix, the identity at first, and LayerNorm.
struct Learned {
  std::vector<MajorityRun> matrix, layernorm;
};
Learned learned(const Evidence& evidence) {
  MajoritySettings settings;
  settings.steps = evidence.plan.steps;
  Learned found;
  found.layernorm = evidence.train_majority("majority-layernorm", settings, {kProjected});
  settings.learned_matrix = true;
  found.matrix = evidence.train_majority("majority-matrix", settings, {kScaled});
  return found;
}

// What a matrix M takes away, whatever its scale.
struct Taken {
  double residual =
      0;  // of M from the nearest multiple of I − 11ᵀ/d, over ‖M‖ (Frobenius); the identity has 1/√d
  double along_ones = 0;  // ‖M 1‖/√d over the root mean square of the singular values; the identity has 1
  double least = 0;       // least singular value over the root mean square
  double angle = 0;       // of the direction that M takes away most to 1, degrees
};
Taken taken_by(std::span<const float> values, std::size_t d) {
  const auto width = static_cast<Eigen::Index>(d);
  const Eigen::MatrixXd matrix =
      Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(values.data(),
                                                                                              width, width)
          .cast<double>();
  const double root = std::sqrt(static_cast<double>(d)), norm = matrix.norm(), usual = norm / root;
  const Eigen::VectorXd ones = Eigen::VectorXd::Constant(width, 1 / root);
  // ⟨M, P⟩ with ‖P‖² = d − 1.
  const double inner = matrix.trace() - ones.dot(matrix * ones);
  const RightSvd svd = right_svd(matrix);
  const double cosine = std::min(1.0, std::fabs(svd.v.col(width - 1).dot(ones)));
  return {std::sqrt(std::max(0.0, 1 - inner * inner / (norm * norm * static_cast<double>(d - 1)))),
          (matrix * ones).norm() / usual, svd.values(width - 1) / usual,
          std::acos(cosine) * 180 / std::numbers::pi};
}
std::vector<Taken> taken(const Evidence& evidence) {
  std::vector<Taken> all;
  for (const MajorityRun* run : sound_runs(once<learned>(evidence).matrix, kScaled)) {
    for (const ParameterSlot& slot : parameter_slots(run->spec)) {
      if (slot.name == "layers.0.matrix")
        all.push_back(taken_by(std::span(run->parameters).subspan(slot.offset, slot.size()), slot.rows));
    }
  }
  return all;
}
auto over_seeds(double Taken::*value) {
  return [=](const Evidence& evidence) {
    std::vector<double> values;
    for (const Taken& each : once<taken>(evidence)) values.push_back(each.*value);
    return mean_interval(values, level_of(evidence));
  };
}
// Of the runs behind a matrix at the end, or of LayerNorm.
auto at_last(std::vector<MajorityRun> Learned::*runs, const char* norm, const Quantity& quantity) {
  return [=](const Evidence& evidence) {
    return mean_interval(last_values(sound_runs(once<learned>(evidence).*runs, norm), quantity.value),
                         level_of(evidence));
  };
}
std::size_t learned_seeds(const Evidence& evidence) {
  return once<taken>(evidence).size();
}
std::vector<Ask> two_seeds() {
  return {{at_least(learned_seeds, 2), " Fewer than two seeds were run."}};
}

Claim learns_to_project() {
  constexpr Threshold tenth{0.1, "a tenth of what a matrix of that size takes"};
  const auto residual = over_seeds(&Taken::residual), along = over_seeds(&Taken::along_ones),
             least = over_seeds(&Taken::least);
  return {
      .where = "§6, asked here",
      .sentence = "A learned matrix before a norm that only scales becomes the projection orthogonal to 1",
      .published = "can be expressed by a linear layer; whether it is learned is not said",
      .measured = written(
          "matrix, from the identity, to the nearest multiple of the projection: residual {} of its size (at the start {:.2f}); it leaves {} of a vector along 1; what it takes away most, to {}, lies at {}° to 1",
          residual,
          [](const Evidence&) { return 1 / std::sqrt(static_cast<double>(MajoritySettings().dimension)); },
          along, least, digits(1, over_seeds(&Taken::angle))),
      .why = written(
          "RMSNorm behind a learned {} × {} matrix, {} steps of the majority task, {}. Shares are of the root mean square of the singular values. Angle of the queries to 1 at the end: {}°, with LayerNorm {}°.",
          MajoritySettings().dimension, MajoritySettings().dimension,
          [](const Evidence& evidence) { return evidence.plan.steps; }, counted(learned_seeds, "seed"),
          digits(1, at_last(&Learned::matrix, kScaled, kAngle)),
          digits(1, at_last(&Learned::layernorm, kProjected, kAngle))),
      .asks = two_seeds(),
      .holds = below(residual, tenth, "residual from the projection"),
      .holds_if = {{below(along, tenth, "share left of a vector along 1"),
                    "what is left of the space may be mapped onto itself by any matrix"},
                   {below(least, tenth, "share left of the direction taken away most"),
                    "another direction may stand in the place of 1"}},
      .topic = "projection"};
}

Claim learns_as_layernorm() {
  constexpr Threshold alike{1.25, "seeds differ by about a fifth in the loss at a step, as of Fig. 2a", 1};
  const auto ratio = [](const Evidence& evidence) {
    std::vector<double> of_layernorm, of_matrix;
    for (const MajorityRun* one : sound_runs(once<learned>(evidence).layernorm, kProjected)) {
      for (const MajorityRun* other : sound_runs(once<learned>(evidence).matrix, kScaled)) {
        if (one->id.seed != other->id.seed) continue;
        of_layernorm.push_back(one->rows.back().train_loss);
        of_matrix.push_back(other->rows.back().train_loss);
      }
    }
    return mean_ratio(of_layernorm, of_matrix, level_of(evidence));
  };
  const auto apart = of(ratio, factor_apart);
  return {
      .where = "§6, asked here",
      .sentence = "With a learned matrix before a norm that only scales majority gets to LayerNorm's loss",
      .published = "not said; the explicit projection is called a benefit all the same",
      .measured = written("loss at the end over LayerNorm's: {}", ratio),
      .why = written(
          "Training loss after {} steps: {} behind the matrix, {} with LayerNorm; ratios seed by seed. Steps to loss {} over LayerNorm's: {}.",
          [](const Evidence& evidence) { return evidence.plan.steps; },
          at_last(&Learned::matrix, kScaled, kTrainLoss),
          at_last(&Learned::layernorm, kProjected, kTrainLoss), kLoss,
          [](const Evidence& evidence) {
            return steps_ratio(runs_of(once<learned>(evidence).matrix, kScaled),
                               runs_of(once<learned>(evidence).layernorm, kProjected), kLoss,
                               level_of(evidence));
          }),
      .asks = two_seeds(),
      .holds = at_most(apart, alike, Aspect("loss behind a learned matrix beside LayerNorm's", "×")),
      .holds_if = {{at_most(ratio, alike, Aspect("loss behind a learned matrix over LayerNorm's", "×")),
                    "a lower loss counts as well"}},
      .topic = "projection"};
}

// Both, under one legend.
Figure learned_figure(const Evidence& evidence) {
  std::vector<MajorityRun> runs = once<learned>(evidence).layernorm;
  for (MajorityRun run : once<learned>(evidence).matrix) {
    run.id.norm = "rmsnorm behind a learned matrix";
    runs.push_back(std::move(run));
  }
  CurveFigure figure;
  figure.panels = {majority_panel(runs, "Training loss", "cross-entropy, nats", kTrainLoss, {}, true),
                   majority_panel(runs, "Angle of the queries to 1", "degrees", kAngle)};
  figure.caption = "The matrix is the identity at first. " + seeds_caption(runs);
  return to_figure("limits-matrix", "Majority behind a learned matrix, and with LayerNorm", "", figure);
}

Findings shown(const Evidence& evidence) {
  CurveFigure losses, angles;
  std::vector<MajorityRun> last;
  for (const AtWidth& at : once<at_widths>(evidence)) {
    losses.panels.push_back(majority_panel(at.runs, fmt::format("d = {}: training loss", at.width),
                                           "cross-entropy, nats", kTrainLoss, {}, true));
    angles.panels.push_back(majority_panel(
        at.runs, fmt::format("d = {}: angle of the queries to 1", at.width), "degrees", kAngle));
    last = at.runs;
  }
  losses.caption = angles.caption =
      "layernorm projects and scales, rmsnorm scales, none does neither. " + seeds_caption(last);
  const HeatmapRun& run = once<maps>(evidence);
  return {
      .figures = {to_figure("limits-loss", "Majority in more dimensions: training loss", "", losses),
                  to_figure("limits-angle", "Majority in more dimensions: do queries turn to 1?", "", angles),
                  {"limits-keys", "Unselectable random keys in more dimensions", "",
                   heatmap_svg(heatmap_figure(run)), heatmap_csv(run)},
                  learned_figure(evidence)}};
}

}  // namespace

Exhibit brody_limits() {
  return {{majority_fades(), turning_fades(), scaling_fades(), linear_layer(), learns_to_project(),
           learns_as_layernorm()},
          shown};
}

}  // namespace normscope

// Fig. 2 of Brody, Alon, Yahav 2023: does projection speed up training, and do queries turn to 1?
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/number_text.h"
#include "paper/majority_measures.h"
#include "paper/part.h"
#include "report/collapse_page.h"
#include "train/runs_by_norm.h"

namespace normscope {
namespace {

constexpr PublishedCurve kLossCurve{
    kPublishedLosses,
    kTrainLoss.value,
    0.03,
    2,
    {1.25,
     "seeds differ by about a fifth in the loss at a step; what is within a quarter is called the same curve",
     1}};

// The claim is that removing the projection costs much: at least half as much again, beyond doubt.
Claim three_times() {
  constexpr double loss = 0.5;
  constexpr Threshold much{1.5,
                           "the claim is that it costs much; half as much again is the least called that", 1};
  const auto named = [](const char* norm) {
    return Aspect(fmt::format("steps to loss 0.5, {} over layernorm", norm), "×", 3);
  };
  const auto code = steps_ratio("published", "layernorm", loss),
             equal = steps_ratio("rmsnorm", "layernorm", loss),
             literal = steps_ratio("xsigma", "layernorm", loss);
  const auto seeds = [=](const Evidence& evidence) {
    return std::min(code(evidence).count, equal(evidence).count);
  };
  const auto at_equal_scale = [=](const Evidence& evidence) {
    const Answer helps = above(equal(evidence), 1.0);
    return !helps   ? std::string("makes no difference that these seeds can show")
           : *helps ? fmt::format("helps by {}, not by {}", with_interval(equal(evidence)),
                                  with_interval(code(evidence)))
                    : "makes training slower, not faster";
  };
  return {
      .where = "Fig. 2a, §4.1",
      .sentence = "Without projection, training takes 3× as many steps",
      .published = "3×",
      .needs = {figure_norms()},
      .measured = written(
          "steps to loss {}, without over with projection: {} as in the published code (norm 1/√d), {} at equal scale (norm √d), {} for x/σ",
          loss, code, equal, literal),
      .why = when(
          at_least(seeds, 2),
          written(
              "Ratios seed by seed, {}: geometric mean with Student's interval of the logarithms; with runs that never got there (censored) the median with that of the sign test, which needs six seeds.",
              counted(of(equal, &RatioInterval::count), "seed"))),
      .asks = {{at_least(seeds, 2), "Fewer than two seeds were run."}},
      .holds = above(equal, much, named("rmsnorm")),
      .holds_if =
          {{above(code, much, named("published")),
            "the norm without projection also makes its output d times smaller, as the published code does by mistake",
            written(
                " The code divides by √d where it should multiply, so that keys and values enter attention d times smaller. At equal scale the projection {}.",
                at_equal_scale),
            true}},
      .undecided = " These seeds leave both open, less than 1.5× and more.",
      .topic = "projection",
      .confounds = {"scale"}};
}

// Of the norms without projection, those that were run.
std::vector<std::string> unprojected(const Evidence& evidence) {
  std::vector<std::string> norms = norms_of(without_learned_normals(evidence.majority));
  std::erase_if(norms, [&](const std::string& norm) {
    return norm == "layernorm" || sound_runs(evidence.majority, norm).empty();
  });
  return norms;
}

// "layernorm: 70° → 20.1 ± 0.4° @6000; …"
std::string angles(const Evidence& evidence) {
  std::string text;
  for (const std::string& norm : norms_of(without_learned_normals(evidence.majority))) {
    const MajorityRuns chosen = sound_runs(evidence.majority, norm);
    if (chosen.empty()) continue;
    append(text,
           fmt::format("{}: {:.0f}° → {}° @{}", norm, mean_interval(values_at(chosen, 0, kAngle.value)).mean,
                       with_interval(at_end(norm, kAngle)(evidence), 1), chosen.front()->step),
           "; ");
  }
  return text;
}

// Seed by seed, of the norms without projection: "rmsnorm 61.2 ± 3.0°, …"
std::string differences(const Evidence& evidence) {
  std::string text;
  for (const std::string& norm : unprojected(evidence)) {
    std::vector<double> a, b;
    for (const MajorityRun* one : sound_runs(evidence.majority, "layernorm")) {
      for (const MajorityRun* other : sound_runs(evidence.majority, norm)) {
        if (one->id.seed != other->id.seed) continue;
        a.push_back(kAngle.value(one->rows.back()));
        b.push_back(kAngle.value(other->rows.back()));
      }
    }
    if (a.size() > 1)
      append(text, fmt::format("{} {}°", norm, with_interval(mean_difference(a, b, level_of(evidence)), 1)));
  }
  return text.empty() ? "" : fmt::format(" More than with projection, seed by seed: {}.", text);
}

Claim queries_turn() {
  constexpr Threshold aligned{30, "half of the 60° that random directions have in 8 dimensions, or less"},
      apart{60, "at least as far from 1 as a random direction, on average"};
  constexpr std::uint64_t published_steps = 17'000;
  const auto projected = [](const Evidence& evidence) { return sound_runs(evidence.majority, "layernorm"); };
  const auto seeds = of(projected, [](const MajorityRuns& runs) { return runs.size(); });
  const auto steps = of(projected, [](const MajorityRuns& runs) { return runs.front()->step; });
  const Condition with =
      below(at_end("layernorm", kAngle), aligned, Aspect("layernorm: angle at the end", "°", 11));
  const Condition without = [=](const Evidence& evidence) {
    return all_of(unprojected(evidence), [&](const std::string& norm) {
      return above(
          evidence, at_end(norm, kAngle)(evidence), apart,
          Aspect(norm + ": angle at the end", "°", norm == "published" ? std::optional(83.0) : std::nullopt));
    });
  };
  return {
      .where = "Fig. 2b",
      .sentence = "With projection the queries turn to 1, without they do not",
      .published = "with: 70° → 20° @6K → 11° @17K; without: 70–75° → 83° @17K",
      .needs = {figure_norms()},
      .there = all_of({any_in(projected), any_in(unprojected)}),
      .otherwise = angles,
      .measured = angles,
      .why =
          written(
              "Mean angle of the test tokens' queries to 1, {}; an interval below {:g}° counts as aligned, above {:g}° as not.{}",
              counted(seeds, "seed"), aligned.value, apart.value, differences) +
          when(below(seeds, 2), " One seed has no interval."),
      .asks = {{any_of({with, at_least(steps, published_steps)}),
                " Published for 17 000 steps; fewer were run."}},
      .holds = all_of({with, without}),
      .topic = "projection"};
}

// LayerNorm with attention frozen at equal weights, trained beside the others: exact averaging, of which the rest is
// learned.
std::vector<MajorityRun> frozen(const Evidence& evidence) {
  if (!evidence.train_majority) return {};
  MajoritySettings settings;
  settings.steps = evidence.plan.steps;
  settings.uniform_attention = true;
  return evidence.train_majority("majority-uniform", settings, {"layernorm"});
}
RatioInterval over_frozen(const Evidence& evidence, const char* norm, double loss) {
  return steps_ratio(runs_of(evidence.majority, norm), runs_of(once<frozen>(evidence), "layernorm"), loss,
                     level_of(evidence));
}

Claim as_by_averaging() {
  constexpr double loss = 0.5;
  constexpr Threshold alike{
      1.5,
      "half as much again is the least called much more, as where the steps without projection are judged",
      1};
  const auto with = [](const Evidence& evidence) { return over_frozen(evidence, "layernorm", loss); };
  const auto without = [](const Evidence& evidence) { return over_frozen(evidence, "rmsnorm", loss); };
  const auto frozen_end = [](const Evidence& evidence) {
    return mean_interval(last_values(sound_runs(once<frozen>(evidence), "layernorm"), kTrainLoss.value),
                         level_of(evidence));
  };
  return {
      .where = "§3.1, §4.1",
      .sentence = "With projection majority is learned as by attention that averages all keys",
      .published =
          "the projection lets attention give all keys the same weight, which makes majority easy; no numbers",
      .there = [](const Evidence& evidence) -> Answer { return !once<frozen>(evidence).empty(); },
      .measured = written(
          "steps to loss {} over those with attention frozen at equal weights: {} with projection, {} without (rmsnorm)",
          loss, with, without),
      .why = written(
          "Ratios seed by seed, {}. Training loss at the end: {} frozen, {} with projection, {} without.",
          counted(of(with, &RatioInterval::count), "seed"), frozen_end, at_end("layernorm", kTrainLoss),
          at_end("rmsnorm", kTrainLoss)),
      .asks = {{at_least(of(with, &RatioInterval::count), 2), " Fewer than two seeds were run."}},
      .holds = at_most(with, alike,
                       Aspect("steps to loss 0.5, layernorm over attention frozen at equal weights", "×")),
      .topic = "projection"};
}

// The solution made by hand, over the test sequences of the seeds.
struct ByHand {
  std::size_t dimension = 0;
  std::vector<double> loss, accuracy;  // in the dimensions of the figure
  double wide_accuracy = 0;            // least, in as many as there are types and one more
  double distance = 0,
         unprojected = 0;  // of attention from uniform: most after LayerNorm, least after RMSNorm
};
ByHand by_hand(const Evidence& evidence) {
  ByHand found;
  found.wide_accuracy = found.unprojected = 1;
  for (const std::uint64_t seed : evidence.plan.seeds) {
    MajoritySettings settings;
    found.dimension = settings.dimension;
    const MajorityData data = make_majority_data(settings.task, seed);
    const auto measured = [&](const char* norm) {
      AveragingSolution solution = averaging_solution(settings, data.train);
      solution.spec.norm1 = parse_norm(norm);
      return make_encoder_gradient<float>(solution.spec)
          ->measure(data.test, solution.parameters, evidence.executor);
    };
    const EncoderMeasures projected = measured("layernorm");
    found.loss.push_back(projected.loss);
    found.accuracy.push_back(projected.accuracy);
    found.distance = std::max(found.distance, projected.attention_distance);
    found.unprojected = std::min(found.unprojected, measured("rmsnorm").attention_distance);
    settings.dimension = settings.task.classes + 1;
    found.wide_accuracy = std::min(found.wide_accuracy, measured("layernorm").accuracy);
  }
  return found;
}

Claim averaging_solves() {
  constexpr Threshold rounding{1e-4, "a thousand roundings of float32"};
  const auto distance = of(once<by_hand>, &ByHand::distance),
             wide = of(once<by_hand>, &ByHand::wide_accuracy);
  const auto accuracies = of(once<by_hand>, &ByHand::accuracy);
  const auto least = of(accuracies, [](const std::vector<double>& values) {
    return *std::min_element(values.begin(), values.end());
  });
  const Condition equal = at_most(distance, rounding, "attention of a query along 1, distance from uniform");
  return {
      .where = "§3.1",
      .sentence = "A query along 1 weighs all projected keys equally, and their average tells the majority",
      .published = "enough to compute majority",
      .there = [](const Evidence& evidence) -> Answer {
        return evidence.train_majority && !evidence.plan.seeds.empty();
      },
      .measured = written(
          "a solution made by hand: attention {:.1e} from uniform; in {} dimensions test accuracy {:.3f}, loss {:.3f}; in {} dimensions accuracy {:.3f}",
          distance, of(once<by_hand>, &ByHand::dimension),
          of(accuracies, [](const std::vector<double>& values) { return mean_interval(values).mean; }),
          of(once<by_hand>, [](const ByHand& found) { return mean_interval(found.loss).mean; }),
          MajorityTask().classes + 1, wide),
      .why = written(
          "W_K reads along 1 only, which LayerNorm leaves empty: whatever the embeddings have along 1, all scores are 0. With RMSNorm in its place the same weights give attention {:.2f} from uniform. The average of directions tells {} types apart in every sequence only where these have a dimension each. Sharpness is fitted to sequences of the training set, {}.",
          of(once<by_hand>, &ByHand::unprojected), MajorityTask().classes,
          counted([](const Evidence& evidence) { return evidence.plan.seeds.size(); }, "seed")),
      .holds = all_of({equal, at_least(least, 1, "least test accuracy, 8 dimensions")}),
      .holds_if = {{all_of({equal, at_least(wide, 1, "least test accuracy, a dimension for every type")}),
                    "there is a dimension for every type"}},
      .topic = "projection"};
}

// Exact averaging, as curves beside those of the norms.
void add_references(const Evidence& evidence, CurveFigure::Panel& losses) {
  const std::vector<MajorityRun>& runs = once<frozen>(evidence);
  if (runs.empty() || losses.curves.empty()) return;
  CurveFigure::Panel trained = majority_panel(runs, "", "", kTrainLoss);
  for (CurveFigure::Curve& curve : trained.curves) {
    curve.name = "attention frozen at equal weights";
    losses.curves.push_back(std::move(curve));
  }
  const CurveFigure::Curve& first = losses.curves.front();
  const double loss = mean_interval(once<by_hand>(evidence).loss).mean;
  losses.curves.push_back({.name = "averaging made by hand",
                           .x = {first.x.front(), first.x.back()},
                           .y = {loss, loss},
                           .low = {},
                           .high = {}});
}

// The loss with projection and that of one norm without it.
Figure loss_beside(std::span<const MajorityRun> runs, const char* norm, const char* title) {
  CurveFigure figure;
  figure.panels = {majority_panel(runs, title, "cross-entropy, nats", kTrainLoss, kPublishedLosses, true)};
  const auto other = [&](const auto& each) { return each.name != "layernorm" && each.name != norm; };
  std::erase_if(figure.panels[0].curves, other);
  std::erase_if(figure.panels[0].marks, other);
  return to_figure(fmt::format("confound-scale-{}", norm), title, "", figure);
}

Findings shown(const Evidence& evidence) {
  const auto runs = without_learned_normals(evidence.majority);
  CurveFigure figure;
  figure.panels = {
      majority_panel(runs, "Training loss (Fig. 2a)", "cross-entropy, nats", kTrainLoss, kPublishedLosses,
                     true),
      majority_panel(runs, "Angle of the queries to 1 (Fig. 2b)", "degrees", kAngle, kPublishedAngles),
      majority_panel(runs, "Attention: distance from uniform", "total variation", kDistance)};
  add_references(evidence, figure.panels.front());
  figure.caption =
      "Diamonds are the published values; published and xsigma are the norm without projection as the paper's code and its formula have it, rmsnorm the one at LayerNorm's scale. " +
      std::string(
          once<frozen>(evidence).empty()
              ? ""
              : "For reference, exact averaging: LayerNorm trained with attention frozen at equal weights, and the test loss of weights made by hand. ") +
      seeds_caption(runs);
  return {
      .figures = {to_figure("fig2", "Majority: does projection speed up training, and do queries turn to 1?",
                            "", figure),
                  loss_beside(runs, "published", "Without projection and d times smaller, as published"),
                  loss_beside(runs, "rmsnorm", "Without projection, at equal scale")}};
}

}  // namespace

Exhibit brody_fig2() {
  std::vector<Claim> claims = curve_claims(kLossCurve, "Fig. 2a", "Training loss");
  claims.insert(claims.begin(), three_times());
  claims.insert(claims.end(), {queries_turn(), as_by_averaging(), averaging_solves()});
  return {claims, shown};
}

}  // namespace normscope

// Training deep models against collapse, which Wu, Ajorlou, Wang, Jegelka, Jadbabaie 2024 leave for later: the majority
// task in many layers, norms before, after or on both sides, sharper attention, and a penalty on tokens that are alike.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include "core/number_text.h"
#include "normscope/statistics.h"
#include "paper/majority_measures.h"
#include "paper/part.h"

namespace normscope {
namespace {

constexpr double kSharp = 1.0 / 8, kKeepApart = 0.3;
constexpr const char* kNorm = "layernorm";

// What is done against collapse.
struct Remedy {
  std::string_view name;
  double temperature, keep_apart;
};
constexpr Remedy kNothing{"nothing", 0, 0}, kSharper{"sharper attention", kSharp, 0},
    kPenalty{"the penalty", 0, kKeepApart};
constexpr std::array kRemedies = {kNothing, kSharper, kPenalty};

struct Shape {
  std::size_t layers = 12;
  Placement placement = Placement::pre;
  std::string text() const { return fmt::format("{}, {} layers", name_of(placement), layers); }
};
std::vector<Shape> shapes(const Evidence& evidence) {
  const bool full = evidence.plan.asked && evidence.plan.asked->full;
  std::vector<Shape> all;
  for (const std::size_t layers :
       full ? std::vector<std::size_t>{12, 24, 32} : std::vector<std::size_t>{12}) {
    for (const Placement placement : kPlacements) all.push_back({layers, placement});
  }
  return all;
}

MajoritySettings settings_of(const Evidence& evidence, const Shape& shape, const Remedy& remedy) {
  MajoritySettings settings;
  settings.task = {.classes = 10, .length = 20, .samples = 8000, .margin = 4};
  settings.layers = shape.layers;
  settings.placement = shape.placement;
  settings.temperature = remedy.temperature;
  settings.keep_apart = remedy.keep_apart;
  settings.batch = 32;
  settings.steps = std::min(evidence.plan.steps, kDeepSteps);
  settings.evaluate_every = std::max<std::uint64_t>(1, settings.steps / 10);
  return settings;
}

// Of one run.
struct Ended {
  double loss =
      0;  // of held-out sequences, without the penalty, mean over the evaluations after the first: at the
          // end all may have learned it
  double apart = 0;  // at the end: μ/‖X‖, mean over what leaves all layers but the last
  double last = 0;   // of what leaves the last
};
double mean_loss(const MajorityRun& run) {
  std::vector<double> losses;
  for (const MajorityRow& row : run.rows) {
    if (row.step > 0) losses.push_back(row.test.loss);
  }
  return mean_interval(losses).mean;
}
struct Trained {
  Shape shape;
  Remedy remedy;
  std::vector<MajorityRun> runs;
  std::map<std::uint64_t, Ended> ends;  // by seed; without those that diverged
};
std::vector<Trained> trained(const Evidence& evidence) {
  std::vector<Trained> all;
  std::map<std::uint64_t, SequenceSet> tests;
  for (const Shape& shape : shapes(evidence)) {
    for (const Remedy& remedy : kRemedies) {
      const MajoritySettings settings = settings_of(evidence, shape, remedy);
      const auto index = static_cast<std::size_t>(&remedy - kRemedies.data());
      Trained& one = all.emplace_back(Trained{shape, remedy, {}, {}});
      one.runs = evidence.train_majority(
          fmt::format("deep{}-{}-{}", shape.layers, name_of(shape.placement), index), settings, {kNorm});
      for (const MajorityRun& run : one.runs) {
        if (run.diverged) continue;
        // All ways to train draw the same sequences for a seed.
        const auto [held_out, fresh] = tests.try_emplace(run.id.seed);
        if (fresh) held_out->second = make_majority_data(settings.task, run.id.seed).test;
        const std::vector<double> spread =
            encoder_spread<float>(run.spec, run.parameters, held_out->second, evidence.executor);
        Ended& end = one.ends[run.id.seed];
        end.loss = mean_loss(run);
        end.last = spread.back();
        for (std::size_t l = 1; l < shape.layers; ++l)
          end.apart += spread[l] / static_cast<double>(shape.layers - 1);
      }
    }
  }
  return all;
}
const Trained& find(const Evidence& evidence, const Shape& shape, const Remedy& remedy) {
  const std::vector<Trained>& all = once<trained>(evidence);
  return *std::find_if(all.begin(), all.end(), [&](const Trained& each) {
    return each.shape.layers == shape.layers && each.shape.placement == shape.placement &&
           each.remedy.name == remedy.name;
  });
}

// Without a remedy and with it, seed by seed.
struct Pairs {
  std::vector<double> without, with;
};
Pairs pairs(const Evidence& evidence, const Shape& shape, const Remedy& remedy, double Ended::*what) {
  const Trained &without = find(evidence, shape, kNothing), &with = find(evidence, shape, remedy);
  Pairs found;
  for (const auto& [seed, end] : without.ends) {
    const auto other = with.ends.find(seed);
    if (other == with.ends.end()) continue;
    found.without.push_back(end.*what);
    found.with.push_back(other->second.*what);
  }
  return found;
}
Interval gained(const Evidence& evidence, const Shape& shape, const Remedy& remedy) {
  const Pairs apart = pairs(evidence, shape, remedy, &Ended::apart);
  return mean_difference(apart.without, apart.with, level_of(evidence));
}
RatioInterval loss_ratio(const Evidence& evidence, const Shape& shape, const Remedy& remedy) {
  const Pairs loss = pairs(evidence, shape, remedy, &Ended::loss);
  return mean_ratio(loss.without, loss.with, level_of(evidence));
}
Answer raises(const Evidence& evidence, const Shape& shape, const Remedy& remedy) {
  return above(evidence, gained(evidence, shape, remedy), 0,
               fmt::format("{}, with {}: μ/‖X‖, with − without", shape.text(), remedy.name));
}
constexpr Threshold kLower{0.95, "a twentieth: less is no reason to train in another way", 1};
Answer lowers(const Evidence& evidence, const Shape& shape, const Remedy& remedy) {
  return below(evidence, loss_ratio(evidence, shape, remedy), kLower,
               {fmt::format("{}, with {}: loss over that without", shape.text(), remedy.name), "×"});
}
// It keeps the tokens apart, and the loss is lower.
Answer helps(const Evidence& evidence, const Shape& shape, const Remedy& remedy) {
  return all_of({raises(evidence, shape, remedy), lowers(evidence, shape, remedy)});
}
std::string shapes_where(const Evidence& evidence, const Remedy& remedy,
                         Answer (*holds)(const Evidence&, const Shape&, const Remedy&)) {
  std::string names;
  for (const Shape& shape : shapes(evidence)) {
    if (holds(evidence, shape, remedy) == true) append(names, shape.text(), "; ");
  }
  return names;
}

std::size_t diverged(const Evidence& evidence) {
  std::size_t count = 0;
  for (const Trained& each : once<trained>(evidence)) count += each.runs.size() - each.ends.size();
  return count;
}
std::size_t seeds(const Evidence& evidence) {
  return evidence.plan.seeds.size();
}
// Where norms stand, as far as the remedy keeps tokens apart there.
Text where_it_raises(const Remedy& remedy) {
  const auto names = [=](const Evidence& evidence) { return shapes_where(evidence, remedy, raises); };
  return when(any_in(names), written(" It keeps μ/‖X‖ up with norms {}.", names)) +
         when(negation(any_in(names)), " It is not seen to keep μ/‖X‖ up.");
}

// What all ways to train share.
MajoritySettings common(const Evidence& evidence) {
  return settings_of(evidence, {}, kNothing);
}

constexpr const char* kAsked = "asked: whether deep models trained against collapse do better; no numbers";

Claim remedy_helps(const char* sentence, const Remedy& remedy) {
  const auto names = [=](const Evidence& evidence) { return shapes_where(evidence, remedy, helps); };
  return {
      .where = "Wu, future work",
      .sentence = sentence,
      .published = kAsked,
      .measured =
          [=](const Evidence& evidence) {
            std::string text;
            for (const Shape& shape : shapes(evidence))
              append(text,
                     fmt::format("{}: μ/‖X‖ {}, loss {}", shape.text(),
                                 change_text(gained(evidence, shape, remedy)),
                                 factor_text(loss_ratio(evidence, shape, remedy))),
                     "; ");
            return fmt::format(
                "with {} beside without, seed by seed, μ/‖X‖ as a difference, loss as a ratio: {}",
                remedy.name, text);
          },
      .why =
          written(
              "Majority of {} tokens of {} types, d = {}, {} steps of {} sequences, {}; held-out loss without the penalty, mean over the evaluations after the first; μ/‖X‖ at the end, mean over what leaves all layers but the last; {} diverged. Both must be so: tokens farther apart, and a lower loss.",
              of(common, [](const MajoritySettings& each) { return each.task.length; }),
              of(common, [](const MajoritySettings& each) { return each.task.classes; }),
              of(common, &MajoritySettings::dimension), of(common, &MajoritySettings::steps),
              of(common, &MajoritySettings::batch), counted(seeds, "seed"), counted(diverged, "run")) +
          where_it_raises(remedy),
      .asks = {{at_least(seeds, 2), " One seed has no interval."}},
      .holds =
          [=](const Evidence& evidence) {
            return all_of(shapes(evidence),
                          [&](const Shape& shape) { return helps(evidence, shape, remedy); });
          },
      .holds_if = {{any_in(names), written("norms are placed {}", names)}},
      .topic = "collapse"};
}

// Over all ways to train, seed by seed: rank correlation of μ/‖X‖ and loss.
Interval correlation(const Evidence& evidence) {
  std::vector<double> all;
  for (const std::uint64_t seed : evidence.plan.seeds) {
    std::vector<double> apart, loss;
    for (const Trained& each : once<trained>(evidence)) {
      const auto found = each.ends.find(seed);
      if (found == each.ends.end()) continue;
      apart.push_back(found->second.apart);
      loss.push_back(found->second.loss);
    }
    if (const double value = rank_correlation(apart, loss); std::isfinite(value)) all.push_back(value);
  }
  return mean_interval(all, level_of(evidence));
}

Claim farther_apart_is_better() {
  return {
      .where = "Wu, future work",
      .sentence = "Of deep models, those whose tokens stay farther apart have the lower loss",
      .published = kAsked,
      .measured = written(
          "rank correlation of μ/‖X‖ at the end and test loss on the way over {} ways to train, seed by seed: {}",
          [](const Evidence& evidence) { return once<trained>(evidence).size(); }, correlation),
      .why = written(
          "{} placements of the norms, each with nothing, sharper attention (d_QK = {:g}) and the penalty ({:g} × (1 − (μ/‖X‖)²)), {}. In majority every position has the same label, so that tokens which leave the last layer should be alike; it is left out. Placements differ in more than how far apart tokens stay: the other claims compare runs that differ in one thing.",
          [](const Evidence& evidence) { return shapes(evidence).size(); }, kSharp, kKeepApart,
          counted(seeds, "seed")),
      .asks = {{at_least(seeds, 2), " One seed has no interval."}},
      .holds = below(correlation, 0, Aspect("rank correlation of μ/‖X‖ and loss")),
      .topic = "collapse"};
}

Findings shown(const Evidence& evidence) {
  ReportTable table{"Majority in many layers",
                    {{"norms", "against collapse", "test loss on the way", "μ/‖X‖ inside", "μ/‖X‖ at the end",
                      "diverged"}}};
  CurveFigure figure;
  std::vector<std::uint64_t> shown_seeds;
  for (const Trained& each : once<trained>(evidence)) {
    std::vector<double> loss, apart, last;
    for (const auto& [seed, end] : each.ends) {
      loss.push_back(end.loss);
      apart.push_back(end.apart);
      last.push_back(end.last);
    }
    table.rows.push_back({each.shape.text(), std::string(each.remedy.name),
                          with_interval(mean_interval(loss)), with_interval(mean_interval(apart)),
                          with_interval(mean_interval(last)),
                          std::to_string(each.runs.size() - each.ends.size())});
    if (each.remedy.name == kNothing.name) {
      figure.panels.push_back(step_panel(each.shape.text(), "test loss, nats"));
      figure.panels.back().log_y = true;
    }
    CurveFigure::Curve curve;
    curve.name = each.remedy.name;
    const MajorityRuns sound = sound_runs(each.runs, kNorm);
    for (std::size_t row = 0; !sound.empty() && row < sound.front()->rows.size(); ++row) {
      const std::uint64_t step = sound.front()->rows[row].step;
      const Interval at =
          mean_interval(values_at(sound, step, [](const MajorityRow& of) { return of.test.loss; }));
      curve.x.push_back(static_cast<double>(step));
      curve.y.push_back(at.mean);
      if (at.count < 2) continue;
      const auto [low, high] = at.drawn();
      curve.low.push_back(std::max(low, at.mean / 10));
      curve.high.push_back(high);
    }
    figure.panels.back().curves.push_back(std::move(curve));
    for (const MajorityRun& run : each.runs) shown_seeds.push_back(run.id.seed);
  }
  figure.caption = seeds_caption(std::span<const std::uint64_t>(shown_seeds));
  return {.figures = {to_figure("deep", "Majority in many layers, with and without what keeps tokens apart",
                                "", figure)},
          .tables = {table}};
}

}  // namespace

Exhibit wu_deep() {
  return {
      {remedy_helps("Deep models whose tokens a penalty keeps apart have a lower loss", kPenalty),
       remedy_helps("Sharper attention keeps the tokens of deep models apart, and lowers the loss", kSharper),
       farther_apart_is_better()},
      shown};
}

}  // namespace normscope

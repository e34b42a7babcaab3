// Table 1 of Brody, Alon, Yahav 2023: unselectable keys of the language model with and without scaling; and
// two things the paper did not look at: the keys of the heads, and how the shares come about in training.
#include <fmt/format.h>

#include <algorithm>

#include "core/number_text.h"
#include "paper/brody_tables.h"
#include "report/collapse_page.h"

namespace normscope {
namespace {

double after_robust(const LayerTally& layer) {
  return layer.after.robust_share();
}
double unrounded(const LayerTally& layer) {
  return layer.unrounded.share();
}

std::size_t heads_in_layer(const TextRuns& runs) {
  for (const TextEvidence* run : runs) {
    if (!run->snapshots.empty() && !run->snapshots.back().tally.layers.empty())
      return run->snapshots.back().tally.layers.front().heads.size();
  }
  return 0;
}

Claim every_key_selectable() {
  const auto with = [](const Evidence& evidence) { return sound_runs(evidence.texts, kWithScaling); };
  const auto model = [=](const Evidence& evidence) {
    return trained_keys(with(evidence), &LayerTally::after);
  };
  const auto heads = [=](const Evidence& evidence) { return heads_of_trained(with(evidence)); };
  const auto scaled = [=](const Evidence& evidence) {
    return trained_keys(with(evidence), &LayerTally::sphere);
  };
  return {
      .where = "§1, §4.2",
      .sentence = "LayerNorm makes every key selectable",
      .published = "0 % unselectable with LayerNorm; keys of heads were not looked at",
      .needs = {language_norms(), {Need::keys}},
      .there = some(of(model, &KeyTally::keys)),
      .otherwise = "not run",
      .measured = written(
          "after the norm {} of {} keys; in the heads, mean over heads, {} with LayerNorm, {} without scaling",
          of(model, &KeyTally::unselectable), of(model, &KeyTally::keys),
          [=](const Evidence& evidence) { return by_layer(with(evidence), in_heads); },
          [](const Evidence& evidence) {
            return by_layer(sound_runs(evidence.texts, kWithoutScaling), in_heads);
          }),
      .why = written(
          "Of {} keys of heads {} are unselectable with LayerNorm, for any query whatever. A head compares them in {}, and only the corners of their hull there can be on top.",
          of(heads, &KeyTally::keys), of(heads, &KeyTally::unselectable),
          [=](const Evidence& evidence) {
            const std::size_t heads_of_a_layer = heads_in_layer(with(evidence));
            return counted(heads_of_a_layer == 0 ? 0 : evidence.recipe.width / heads_of_a_layer, "dimension");
          }),
      .holds = any_of({none(of(model, &KeyTally::unselectable), kUnselectableTrained),
                       all_of({some(of(scaled, &KeyTally::keys)),
                               none(of(scaled, &KeyTally::unselectable), kUnselectableSphere)})}),
      .granted =
          when(
              some(of(heads, &KeyTally::unselectable)),
              written(
                  "keys are what leaves the norm; a head compares kW_K in its own few dimensions, where {} of {} cannot be selected",
                  of(heads, &KeyTally::unselectable), of(heads, &KeyTally::keys))) +
          when(all_of({some(of(heads, &KeyTally::unselectable)), some(of(model, &KeyTally::unselectable))}),
               "; and ") +
          when(some(of(model, &KeyTally::unselectable)), "the norm has no eps"),
      .topic = "selectability",
      .confounds = {"head-space", "eps"}};
}

CurveFigure::Panel trend_panel(std::span<const TextEvidence> runs, const char* norm, const std::string& title,
                               LayerValue value, std::span<const double> published) {
  CurveFigure::Panel panel = step_panel(title, "unselectable keys, %");
  panel.y_low = 0;
  panel.y_high = 100;
  const TextRuns chosen = sound_runs(runs, norm);
  for (std::size_t l = 0; l < layers_of(chosen); ++l) {
    CurveFigure::Curve curve;
    curve.name = fmt::format("layer {}", l + 1);
    for (const TextEvidence::Snapshot& snapshot : chosen.front()->snapshots) {
      std::vector<double> values;
      for (const TextEvidence* run : chosen) {
        for (const TextEvidence::Snapshot& each : run->snapshots) {
          if (each.step == snapshot.step && l < each.tally.layers.size())
            values.push_back(value(each.tally.layers[l]));
        }
      }
      add_point(curve, snapshot.step, values, 100, 0, 1);
    }
    panel.curves.push_back(std::move(curve));
    if (l < published.size() && last_step(runs) >= kPublishedTextSteps)
      panel.marks.push_back({fmt::format("layer {}", l + 1), static_cast<double>(kPublishedTextSteps),
                             published[l], "published; another corpus"});
  }
  return panel;
}

Figure trend(std::span<const TextEvidence> runs, const TextRecipe& recipe) {
  CurveFigure figure;
  figure.panels = {
      trend_panel(runs, kWithoutScaling, "Without scaling: after the norm (Table 1)", after, kTable1),
      trend_panel(runs, kWithScaling, "With LayerNorm: before the norm (Table 2)", before, kTable2),
      trend_panel(runs, kWithScaling, "With LayerNorm: after the norm (Tables 1, 2)", after, kZeros),
      trend_panel(runs, kWithScaling, "With LayerNorm: by projection and scaling alone", sphere, {}),
      trend_panel(runs, kWithScaling, "With LayerNorm: in the heads, mean over heads", in_heads, {}),
      trend_panel(runs, kWithoutScaling, "Without scaling: in the heads, mean over heads", in_heads, {})};
  figure.caption =
      scale_caption(recipe) +
      "The paper shows the end of training only. What is unselectable after LayerNorm is decided again "
      "without eps, in the panel beside it. " +
      seeds_caption(runs);
  return to_figure("selectability", "Unselectable keys while the language model learns", "", figure);
}

// One panel of the trend, to be set beside another.
Figure reading(std::span<const TextEvidence> runs, const char* name, const char* title, LayerValue value) {
  CurveFigure figure;
  figure.panels = {trend_panel(runs, kWithScaling, title, value, {})};
  return to_figure(name, title, "", figure);
}

ReportTable table_of(std::span<const TextEvidence> runs) {
  const TextRuns with = sound_runs(runs, kWithScaling), without = sound_runs(runs, kWithoutScaling);
  const std::size_t layers = std::max(layers_of(with), layers_of(without));
  return {"Table 1: unselectable keys, per cent, in trained language models with and without scaling",
          {layer_header(layers), published_row("without scaling, after the norm: published", kTable1, layers),
           measured_row("measured", without, layers, after),
           published_row("with scaling, after the norm: published", kZeros, layers),
           measured_row("measured: projection and scaling alone", with, layers, sphere),
           measured_row("with the model's eps", with, layers, unrounded),
           measured_row("with eps, in float32, as the model computes it", with, layers, after),
           measured_row("of these robust: no rounding to float32 can have caused them", with, layers,
                        after_robust),
           head_row("without scaling, in the heads: mean (least to most head); not in the paper", without,
                    layers),
           head_row("with scaling, in the heads: the same", with, layers)}};
}

Findings shown(const Evidence& evidence) {
  const auto& runs = evidence.texts;
  return {
      .figures = {trend(runs, evidence.recipe),
                  reading(runs, "confound-eps-computed", "LayerNorm as computed: float32, with eps", after),
                  reading(runs, "confound-eps-alone", "Projection and scaling alone, without eps", sphere),
                  reading(runs, "confound-head-space-model", "What leaves LayerNorm", after),
                  reading(runs, "confound-head-space-heads", "In the heads, mean over heads", in_heads)},
      .tables = {table_of(runs)}};
}

}  // namespace

Exhibit brody_table1() {
  return {
      {share_claim("Table 1", "Without scaling, a substantial share of keys is unselectable in every layer",
                   kWithoutScaling, kTable1, after),
       zero_claim("Table 1", "With scaling, no key is unselectable"), every_key_selectable()},
      shown};
}

}  // namespace normscope

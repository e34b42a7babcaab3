#include "paper/text_claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "core/number_text.h"
#include "normscope/statistics.h"
#include "report/curves.h"

namespace normscope {
namespace {

using Runs = std::vector<const TextEvidence*>;
using LayerValue = std::function<double(const LayerTally&)>;
using RowValue = std::function<double(const TextRow&)>;

constexpr std::uint64_t kPublishedSteps = 50'000;
constexpr std::size_t kFewestSeeds = 3;
// Of keys: what is less in some layer is not called substantial.
constexpr double kSubstantial = 0.1;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Read off Fig. 4, at the end.
struct PublishedLoss {
  const char* what;
  double with, without;
};
constexpr PublishedLoss kTrain{"training", 7.28, 7.33}, kTest{"test", 7.33, 7.38};
constexpr double kTable1[] = {51.0, 32.2, 34.7, 36.8}, kTable2[] = {44.8, 28.5, 22.3, 26.1};

Runs of_norm(std::span<const TextEvidence> runs, std::string_view norm) {
  Runs chosen;
  for (const TextEvidence& run : runs) {
    if (run.id.norm == norm && !run.broken) chosen.push_back(&run);
  }
  return chosen;
}

std::string over_seeds(std::size_t count) {
  return fmt::format("{} seed{}", count, count == 1 ? "" : "s");
}

double train_loss(const TextRow& row) {
  return row.train_loss;
}
double held_out_loss(const TextRow& row) {
  return row.held_out ? row.held_out->loss : kNone;
}
double before(const LayerTally& layer) {
  return layer.before.share();
}
double after(const LayerTally& layer) {
  return layer.after.share();
}
double after_robust(const LayerTally& layer) {
  return layer.after.robust_share();
}
double unrounded(const LayerTally& layer) {
  return layer.unrounded.share();
}
double sphere(const LayerTally& layer) {
  return layer.sphere.share();
}
double in_heads(const LayerTally& layer) {
  return layer.head_mean();
}

bool classifies(const TextRecipe& recipe) {
  return recipe.training_texts > 0;
}
std::size_t published_batch(const TextRecipe& recipe) {
  return classifies(recipe) ? 32 : 16;
}
std::size_t published_context(const TextRecipe& recipe) {
  return classifies(recipe) ? 128 : 1024;
}

// What must be granted for these runs to speak about the paper's; empty: nothing.
std::string granted(const TextRecipe& recipe) {
  std::string text;
  if (recipe.generated) text = "text written by a grammar stands for real text";
  if (!recipe.at_published_scale())
    text += fmt::format("{}{} steps of {} × {} tokens stand for the published {} of {} × {}",
                        text.empty() ? "" : ", and ", recipe.steps, recipe.batch, recipe.context,
                        kPublishedSteps, published_batch(recipe), published_context(recipe));
  return text;
}

// shown: what the runs say; none: they do not tell. Less training, or a text that is none, cannot refute.
void judge(Claim& claim, std::optional<bool> shown, const TextRecipe& recipe) {
  const std::string condition = granted(recipe);
  if (!shown) {
    claim.holds = Holds::open;
  } else if (condition.empty()) {
    claim.holds = *shown ? Holds::yes : Holds::no;
  } else if (*shown) {
    claim.holds = Holds::conditionally;
    claim.condition = condition;
  } else {
    claim.holds = Holds::open;
    claim.why += " These runs speak against it, but they are not those of the paper: it stays open unless " +
                 condition + ".";
  }
  if (recipe.generated)
    claim.why += " GENERATED TEXT: the corpus was written by a built-in grammar and is not language.";
}

// What a language model must have learned for its keys to be those of a trained one, in nats.
constexpr double kLearned = 0.5;
// Empty: the models have learned, as far as can be told.
std::string hardly_learned(const Runs& runs) {
  std::vector<double> gains;
  for (const TextEvidence* run : runs) {
    if (run->rows.empty()) continue;
    const double gain = held_out_loss(run->rows.front()) - held_out_loss(run->rows.back());
    if (std::isfinite(gain)) gains.push_back(gain);
  }
  if (gains.empty() || mean_interval(gains).mean >= kLearned) return "";
  return fmt::format(
      " The models have hardly learned: their held-out loss fell by {:.2f} nats, and {} are asked for. More "
      "steps are needed.",
      mean_interval(gains).mean, kLearned);
}

// A value of the last row of each run that has one.
std::vector<double> last_values(const Runs& runs, const RowValue& value) {
  std::vector<double> values;
  for (const TextEvidence* run : runs) {
    if (!run->rows.empty() && std::isfinite(value(run->rows.back())))
      values.push_back(value(run->rows.back()));
  }
  return values;
}

// Without minus with scaling of the same seed, where both have the step.
std::vector<double> differences_at(std::span<const TextEvidence> runs, std::uint64_t step,
                                   const RowValue& value) {
  const auto at = [&](const TextEvidence& run) {
    for (const TextRow& row : run.rows) {
      if (row.step == step) return value(row);
    }
    return kNone;
  };
  std::vector<double> differences;
  for (const TextEvidence* with : of_norm(runs, kWithScaling)) {
    for (const TextEvidence* without : of_norm(runs, kWithoutScaling)) {
      if (with->id.seed != without->id.seed) continue;
      const double difference = at(*without) - at(*with);
      if (std::isfinite(difference)) differences.push_back(difference);
    }
  }
  return differences;
}

std::uint64_t last_step(std::span<const TextEvidence> runs) {
  std::uint64_t last = 0;
  for (const TextEvidence& run : runs) {
    if (!run.broken && !run.rows.empty()) last = std::max(last, run.rows.back().step);
  }
  return last;
}

Claim loss_claim(std::span<const TextEvidence> runs, const TextRecipe& recipe, const PublishedLoss& published,
                 const RowValue& value) {
  Claim claim =
      claim_of("Fig. 4", fmt::format("Scaling lowers the {} loss of the language model", published.what),
               fmt::format("{:.2f} with, {:.2f} without, after {} steps (read off the figure)",
                           published.with, published.without, kPublishedSteps));
  const std::uint64_t step = last_step(runs);
  const auto differences = differences_at(runs, step, value);
  if (differences.empty()) {
    claim.measured = "not run with both norms and one seed to the end";
    judge(claim, std::nullopt, recipe);
    return claim;
  }
  const Interval difference = mean_interval(differences);
  claim.measured =
      fmt::format("{} with, {} without, after {} steps; without − with, seed by seed: {}",
                  with_interval(mean_interval(last_values(of_norm(runs, kWithScaling), value)), 3),
                  with_interval(mean_interval(last_values(of_norm(runs, kWithoutScaling), value)), 3), step,
                  with_interval(difference, 4));
  claim.why = fmt::format("Nats, {}, same batches, initial numbers and dropout with and without.",
                          over_seeds(difference.count));
  std::optional<bool> shown;
  if (difference.count < kFewestSeeds) {
    claim.why += fmt::format(" At least {} seeds are needed to tell.", kFewestSeeds);
  } else if (difference.low > 0) {
    shown = true;
  } else if (difference.high < 0) {
    shown = false;
  } else {
    claim.why += " The 95 % interval of the difference holds 0: these runs show none.";
    const double gain = published.without - published.with;
    if (gain > difference.high)
      claim.why += fmt::format(" The published difference, {:.2f}, lies beyond it.", gain);
  }
  claim.why +=
      " The losses themselves compare only at the published scale, on the published corpus "
      "(Wikipedia) and in its tokens.";
  judge(claim, shown, recipe);
  return claim;
}

const ModelTally* trained(const TextEvidence& run) {
  return run.snapshots.empty() ? nullptr : &run.snapshots.back().tally;
}

std::size_t layers_of(const Runs& runs) {
  std::size_t layers = 0;
  for (const TextEvidence* run : runs) {
    if (const ModelTally* tally = trained(*run)) layers = std::max(layers, tally->layers.size());
  }
  return layers;
}

// Over runs, of one layer of the trained models.
std::vector<double> values_over_runs(const Runs& runs, std::size_t layer, const LayerValue& value) {
  std::vector<double> values;
  for (const TextEvidence* run : runs) {
    const ModelTally* tally = trained(*run);
    if (tally != nullptr && layer < tally->layers.size()) values.push_back(value(tally->layers[layer]));
  }
  return values;
}
Interval over_runs(const Runs& runs, std::size_t layer, const LayerValue& value) {
  return mean_interval(values_over_runs(runs, layer, value));
}

std::string by_layer(const Runs& runs, const LayerValue& value) {
  std::string text;
  for (std::size_t l = 0; l < layers_of(runs); ++l)
    text += fmt::format("{}{}", l == 0 ? "" : " / ", with_interval(over_runs(runs, l, value), 1, 100));
  return text.empty() ? "not run" : text + " %";
}

std::string percentages(std::span<const double> values) {
  std::string text;
  for (const double value : values) text += fmt::format("{}{:.1f}", text.empty() ? "" : " / ", value);
  return text + " %";
}

// Keys of every layer of every run: of the trained models, or of every snapshot.
KeyTally trained_of(const Runs& runs, KeyTally LayerTally::*keys) {
  KeyTally all;
  for (const TextEvidence* run : runs) {
    if (const ModelTally* tally = trained(*run))
      for (const LayerTally& layer : tally->layers) all += layer.*keys;
  }
  return all;
}
KeyTally all_of(const Runs& runs, KeyTally LayerTally::*keys) {
  KeyTally all;
  for (const TextEvidence* run : runs) {
    for (const TextEvidence::Snapshot& snapshot : run->snapshots)
      for (const LayerTally& layer : snapshot.tally.layers) all += layer.*keys;
  }
  return all;
}

// "A substantial share in every layer": of the published, and of ours.
Claim share_claim(std::string where, std::string words, const Runs& runs, std::span<const double> published,
                  const LayerValue& value, const TextRecipe& recipe) {
  Claim claim = claim_of(std::move(where), std::move(words), percentages(published) + " in layers 1 to 4");
  claim.measured = by_layer(runs, value);
  const std::size_t layers = layers_of(runs);
  std::size_t substantial = 0, below = 0, inside = 0;
  std::size_t seeds = runs.size();
  for (std::size_t l = 0; l < layers; ++l) {
    const Interval interval = over_runs(runs, l, value);
    seeds = std::min(seeds, interval.count);
    substantial += interval.low >= kSubstantial;
    below += interval.high < kSubstantial;
    if (l >= published.size()) continue;
    // Where one more model would lie, so that all layers do with 95 %.
    const Interval further = prediction_interval(values_over_runs(runs, l, value),
                                                 1 - 0.05 / static_cast<double>(published.size()));
    inside += further.low <= published[l] / 100 && published[l] / 100 <= further.high;
  }
  if (layers == 0) {
    judge(claim, std::nullopt, recipe);
    return claim;
  }
  claim.why = fmt::format("{} windows of {} tokens that were held out, {}.", recipe.windows, recipe.context,
                          over_seeds(seeds));
  if (seeds > 1) {
    claim.why += fmt::format(
        " Substantial is called what is at least {:.0f} % with the whole interval: {} of {} layers. {} of "
        "the "
        "{} published values lie where these seeds predict one more (95 % for all layers together); they are "
        "of another corpus.",
        100 * kSubstantial, substantial, layers, inside, published.size());
  }
  std::optional<bool> shown;
  if (seeds < kFewestSeeds) {
    claim.why += fmt::format(" At least {} seeds are needed to tell.", kFewestSeeds);
  } else if (substantial == layers) {
    shown = true;
  } else if (below > 0) {
    shown = false;
  }
  if (const std::string untrained = hardly_learned(runs); !untrained.empty()) {
    shown.reset();
    claim.why += untrained;
  }
  judge(claim, shown, recipe);
  return claim;
}

// After LayerNorm there is not one: points of a sphere are corners of their hull. Those that there are, eps
// and float32 have taken off it; which of the two, the same norm in float64 and without eps tells.
Claim zero_claim(std::string where, std::string words, const Runs& runs, const TextRecipe& recipe) {
  Claim claim = claim_of(std::move(where), std::move(words), "0 % in every layer");
  const KeyTally end = trained_of(runs, &LayerTally::after), all = all_of(runs, &LayerTally::after);
  if (end.keys == 0) {
    claim.measured = "not run";
    return claim;
  }
  claim.why = fmt::format(
      "Every key of every window in every layer, {}. Points of a sphere are corners of their hull, whatever "
      "the model has learned.",
      over_seeds(runs.size()));
  claim.measured = fmt::format("{} of {} keys of the trained models", end.unselectable, end.keys);
  if (end.tied > 0) {
    claim.measured += fmt::format(", {} tied", end.tied);
    claim.why += " Tied are keys that are equal to others, so that none is on top alone.";
  }
  if (all.unselectable == 0) {
    claim.holds = Holds::yes;
    return claim;
  }
  const KeyTally with_eps = all_of(runs, &LayerTally::unrounded), scaled = all_of(runs, &LayerTally::sphere);
  claim.measured += fmt::format(
      "; at all stages of training {} of {} as the model computes them, in float32 ({} robust): {} with its "
      "eps, {:g}, in float64, {} by projection and scaling alone",
      all.unselectable, all.keys, all.robust, with_eps.unselectable, recipe.eps, scaled.unselectable);
  if (scaled.keys == 0 || scaled.unselectable > 0) {
    claim.holds = Holds::no;
  } else if (end.unselectable == 0) {
    claim.holds = Holds::yes;
  } else {
    claim.holds = Holds::conditionally;
    claim.condition = with_eps.unselectable == 0
                          ? "keys are not rounded to float32"
                          : "the norm has no eps, or tokens are long enough for it not to matter";
  }
  claim.why +=
      " Only eps and float32 take keys off it, which shows while keys lie close together and what enters the "
      "norm is short: eps shortens a short token more than a long one, and by more than the sphere bends "
      "between neighbours. The same norm of the same tokens is decided three times: in float64 without eps, "
      "in float64 with it, and as the model computes it; robust is what no rounding to float32 can have "
      "caused.";
  return claim;
}

Claim head_claim(std::span<const TextEvidence> runs) {
  Claim claim = claim_of("§1, §4.2", "LayerNorm makes every key selectable",
                         "0 % unselectable with LayerNorm; keys of heads were not looked at");
  const Runs with = of_norm(runs, kWithScaling), without = of_norm(runs, kWithoutScaling);
  const KeyTally model = trained_of(with, &LayerTally::after);
  if (model.keys == 0) {
    claim.measured = "not run";
    return claim;
  }
  KeyTally heads;
  for (const TextEvidence* run : with) {
    for (const LayerTally& layer : trained(*run) ? trained(*run)->layers : std::vector<LayerTally>()) {
      for (const KeyTally& head : layer.heads) heads += head;
    }
  }
  claim.measured = fmt::format(
      "after the norm {} of {} keys; in the heads, mean over heads, {} with LayerNorm, {} without scaling",
      model.unselectable, model.keys, by_layer(with, in_heads), by_layer(without, in_heads));
  const KeyTally scaled = trained_of(with, &LayerTally::sphere);
  if (model.unselectable > 0 && (scaled.keys == 0 || scaled.unselectable > 0)) {
    claim.holds = Holds::no;
  } else if (model.unselectable == 0 && heads.unselectable == 0) {
    claim.holds = Holds::yes;
  } else {
    claim.holds = Holds::conditionally;
    if (heads.unselectable > 0)
      claim.condition =
          "keys are what leaves the norm; a head compares kW_K in its own few dimensions, where most cannot "
          "be selected, with LayerNorm as without";
    if (model.unselectable > 0)
      claim.condition += fmt::format("{}the norm has no eps", claim.condition.empty() ? "" : "; and ");
  }
  claim.why = fmt::format(
      "Of {} keys of heads {} are unselectable with LayerNorm, for any query whatever. A head of 2 "
      "dimensions "
      "sees the keys as points of a plane, and only the corners of their hull can be on top.",
      heads.keys, heads.unselectable);
  return claim;
}

struct WordShares {
  std::vector<double> tokens, sentences;  // shares, one per run
  std::size_t of_tokens = 0, of_sentences = 0;
};

WordShares word_shares(const Runs& runs) {
  WordShares shares;
  for (const TextEvidence* run : runs) {
    std::size_t tokens = 0, marked = 0, hit = 0;
    for (const MarkedSentence& sentence : run->marked.sentences) {
      tokens += sentence.tokens.size();
      marked += sentence.marked();
      hit += sentence.marked() > 0;
    }
    if (tokens == 0) continue;
    shares.tokens.push_back(static_cast<double>(marked) / static_cast<double>(tokens));
    shares.sentences.push_back(static_cast<double>(hit) / static_cast<double>(run->marked.sentences.size()));
    shares.of_tokens = tokens;
    shares.of_sentences = run->marked.sentences.size();
  }
  return shares;
}

// Words that are unselectable in some layer are there, in every run.
Claim words_claim(std::string where, std::string words, const Runs& runs, const TextRecipe& recipe) {
  Claim claim = claim_of(std::move(where), std::move(words), "sentences with such words marked");
  const WordShares shares = word_shares(runs);
  if (shares.tokens.empty()) {
    claim.measured = "not run";
    judge(claim, std::nullopt, recipe);
    return claim;
  }
  claim.measured = fmt::format("{} % of the tokens, in {} % of the sentences",
                               with_interval(mean_interval(shares.tokens), 1, 100),
                               with_interval(mean_interval(shares.sentences), 1, 100));
  claim.why = fmt::format("{} sentences ({}), {} tokens, each sentence a set of keys of its own; {}.",
                          shares.of_sentences, recipe.sentence_source, shares.of_tokens,
                          over_seeds(shares.tokens.size()));
  std::optional<bool> shown;
  const auto none = [](double share) { return share == 0; };
  if (std::all_of(shares.tokens.begin(), shares.tokens.end(), none)) {
    shown = false;
  } else if (std::none_of(shares.tokens.begin(), shares.tokens.end(), none)) {
    shown = true;
  }
  if (const std::string untrained = hardly_learned(runs); !untrained.empty() && !classifies(recipe)) {
    shown.reset();
    claim.why += untrained;
  }
  judge(claim, shown, recipe);
  return claim;
}

std::string curve_name(std::string_view norm) {
  return norm == kWithScaling      ? "with scaling (layernorm)"
         : norm == kWithoutScaling ? "without scaling (center)"
                                   : std::string(norm);
}

void add_point(CurveFigure::Curve& curve, std::uint64_t step, std::span<const double> values, double unit,
               double least, double most) {
  const Interval interval = mean_interval(values);
  if (interval.count == 0) return;
  curve.x.push_back(static_cast<double>(step));
  curve.y.push_back(unit * interval.mean);
  // One value has no interval; the band is then as thin as the line.
  const bool band = interval.count > 1;
  curve.low.push_back(unit * std::clamp(band ? interval.low : interval.mean, least, most));
  curve.high.push_back(unit * std::clamp(band ? interval.high : interval.mean, least, most));
}

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

CurveFigure::Panel loss_panel(std::span<const TextEvidence> runs, const std::string& title,
                              const RowValue& value, const PublishedLoss& published) {
  CurveFigure::Panel panel;
  panel.title = title;
  panel.x_label = "training step";
  panel.y_label = "cross-entropy, nats";
  for (const char* norm : {kWithScaling, kWithoutScaling}) {
    const Runs chosen = of_norm(runs, norm);
    if (chosen.empty()) continue;
    CurveFigure::Curve curve;
    curve.name = curve_name(norm);
    for (const TextRow& row : chosen.front()->rows) {
      std::vector<double> values;
      for (const TextEvidence* run : chosen) {
        for (const TextRow& each : run->rows) {
          if (each.step == row.step && std::isfinite(value(each))) values.push_back(value(each));
        }
      }
      add_point(curve, row.step, values, 1, 0, kUnbounded);
    }
    panel.curves.push_back(std::move(curve));
    if (last_step(runs) >= kPublishedSteps)
      panel.marks.push_back({curve_name(norm), static_cast<double>(kPublishedSteps),
                             norm == kWithScaling ? published.with : published.without,
                             "read off the paper's figure; another corpus"});
  }
  return panel;
}

CurveFigure::Panel difference_panel(std::span<const TextEvidence> runs) {
  CurveFigure::Panel panel;
  panel.title = "What scaling gains: loss without − with, same seed";
  panel.x_label = "training step";
  panel.y_label = "nats";
  for (const auto& [name, value] :
       {std::pair<const char*, RowValue>{"training loss", train_loss}, {"held-out loss", held_out_loss}}) {
    CurveFigure::Curve curve;
    curve.name = name;
    const Runs with = of_norm(runs, kWithScaling);
    if (with.empty()) continue;
    for (const TextRow& row : with.front()->rows)
      add_point(curve, row.step, differences_at(runs, row.step, value), 1, -kUnbounded, kUnbounded);
    panel.curves.push_back(std::move(curve));
  }
  return panel;
}

CurveFigure::Panel trend_panel(std::span<const TextEvidence> runs, const char* norm, const std::string& title,
                               const LayerValue& value, std::span<const double> published) {
  CurveFigure::Panel panel;
  panel.title = title;
  panel.x_label = "training step";
  panel.y_label = "unselectable keys, %";
  panel.y_low = 0;
  panel.y_high = 100;
  const Runs chosen = of_norm(runs, norm);
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
    if (l < published.size() && last_step(runs) >= kPublishedSteps)
      panel.marks.push_back({fmt::format("layer {}", l + 1), static_cast<double>(kPublishedSteps),
                             published[l], "published; another corpus"});
  }
  return panel;
}

std::string seeds_caption(std::span<const TextEvidence> runs) {
  std::vector<std::uint64_t> seeds;
  std::size_t broken = 0;
  for (const TextEvidence& run : runs) {
    broken += run.broken;
    if (!run.broken && std::find(seeds.begin(), seeds.end(), run.id.seed) == seeds.end())
      seeds.push_back(run.id.seed);
  }
  std::string text = fmt::format("Seed{} {}{}.", seeds.size() == 1 ? "" : "s", fmt::join(seeds, ", "),
                                 seeds.size() > 1 ? "; bands are 95 % intervals of the mean over seeds" : "");
  if (broken > 0) text += fmt::format(" Left out: {} whose loss left its course.", broken);
  return text;
}

std::string scale_caption(const TextRecipe& recipe) {
  std::string text = recipe.generated ? "GENERATED TEXT, not language: " : "";
  text +=
      fmt::format("{}, {}; {} steps of {} × {} tokens{}. ", recipe.corpus, recipe.tokenizer, recipe.steps,
                  recipe.batch, recipe.context,
                  recipe.at_published_scale() ? "" : ", a reduced recipe (published: 50 000 of 16 × 1024)");
  return text;
}

Figure curves(const std::string& name, const std::string& title, const CurveFigure& figure) {
  return {name, title, "", curves_svg(figure), curves_csv(figure)};  // the caption is inside the picture
}

std::vector<std::string> header_of(std::size_t layers, const char* first) {
  std::vector<std::string> header = {first};
  for (std::size_t l = 0; l < layers; ++l) header.push_back(fmt::format("layer {}", l + 1));
  return header;
}

std::vector<std::string> published_row(std::string name, std::span<const double> values, std::size_t layers) {
  std::vector<std::string> row = {std::move(name)};
  for (std::size_t l = 0; l < layers; ++l)
    row.push_back(l < values.size() ? fmt::format("{:.1f}", values[l]) : "");
  return row;
}

std::vector<std::string> measured_row(std::string name, const Runs& runs, std::size_t layers,
                                      const LayerValue& value) {
  std::vector<std::string> row = {std::move(name)};
  for (std::size_t l = 0; l < layers; ++l) {
    const Interval share = over_runs(runs, l, value);
    // Few are not none.
    row.push_back(share.mean > 0 && share.mean < 5e-4 ? "< 0.05" : with_interval(share, 1, 100));
  }
  return row;
}

// The mean over heads, and from the least to the most of the heads of all runs.
std::vector<std::string> head_row(std::string name, const Runs& runs, std::size_t layers) {
  std::vector<std::string> row = {std::move(name)};
  for (std::size_t l = 0; l < layers; ++l) {
    double least = kUnbounded, most = -kUnbounded;
    for (const TextEvidence* run : runs) {
      const ModelTally* tally = trained(*run);
      if (tally == nullptr || l >= tally->layers.size()) continue;
      least = std::min(least, tally->layers[l].head_least());
      most = std::max(most, tally->layers[l].head_most());
    }
    row.push_back(least > most ? "nothing"
                               : fmt::format("{} ({:.1f} to {:.1f})",
                                             with_interval(over_runs(runs, l, in_heads), 1, 100), 100 * least,
                                             100 * most));
  }
  return row;
}

// The sentences as if they were windows, for the rows of a table.
std::vector<TextEvidence> of_sentences(std::span<const TextEvidence> runs) {
  std::vector<TextEvidence> result;
  for (const TextEvidence& run : runs) {
    TextEvidence each;
    each.id = run.id;
    each.broken = run.broken;
    each.snapshots.push_back({run.rows.empty() ? 0 : run.rows.back().step, run.marked.tally});
    result.push_back(std::move(each));
  }
  return result;
}

constexpr double kZeros[] = {0, 0, 0, 0};

}  // namespace

bool TextRecipe::at_published_scale() const {
  return steps >= kPublishedSteps && batch >= published_batch(*this) && context >= published_context(*this);
}

const TextEvidence* first_run(std::span<const TextEvidence> runs, std::string_view norm) {
  const Runs chosen = of_norm(runs, norm);
  return chosen.empty() ? nullptr : chosen.front();
}

std::vector<Claim> claims_of_figure4(std::span<const TextEvidence> runs, const TextRecipe& recipe) {
  return {loss_claim(runs, recipe, kTrain, train_loss), loss_claim(runs, recipe, kTest, held_out_loss)};
}

std::vector<Claim> claims_of_table1(std::span<const TextEvidence> runs, const TextRecipe& recipe) {
  return {
      share_claim("Table 1", "Without scaling, a substantial share of keys is unselectable in every layer",
                  of_norm(runs, kWithoutScaling), kTable1, after, recipe),
      zero_claim("Table 1", "With scaling, no key is unselectable", of_norm(runs, kWithScaling), recipe),
      head_claim(runs)};
}

std::vector<Claim> claims_of_table2(std::span<const TextEvidence> runs, const TextRecipe& recipe) {
  return {share_claim("Table 2", "With LayerNorm, a substantial share of what enters it is unselectable",
                      of_norm(runs, kWithScaling), kTable2, before, recipe),
          zero_claim("Table 2", "Of what leaves it, nothing is", of_norm(runs, kWithScaling), recipe)};
}

std::vector<Claim> claims_of_table3(std::span<const TextEvidence> runs, const TextRecipe& recipe) {
  Claim claim = words_claim(
      "Table 3", "Words are unselectable in at least one layer of the language model without scaling",
      of_norm(runs, kWithoutScaling), recipe);
  const WordShares with = word_shares(of_norm(runs, kWithScaling));
  if (!with.tokens.empty())
    claim.why += fmt::format(" With scaling, the same sentences: {} %.",
                             with_interval(mean_interval(with.tokens), 1, 100));
  return {claim};
}

std::vector<Claim> claims_of_table4(std::span<const TextEvidence> runs, const TextRecipe& recipe) {
  const Runs chosen = of_norm(runs, "none");
  Claim claim = words_claim(
      "Table 4", "Words are unselectable in at least one layer of a BERT without norms, trained on sentiment",
      chosen, recipe);
  const auto accuracy =
      last_values(chosen, [](const TextRow& row) { return row.held_out ? row.held_out->accuracy : kNone; });
  if (!accuracy.empty()) {
    constexpr double learned = 0.05;  // above chance
    const Interval right = mean_interval(accuracy);
    const double chance = recipe.classes > 0 ? 1 / static_cast<double>(recipe.classes) : 0;
    claim.measured += fmt::format("; test accuracy {} %", with_interval(right, 1, 100));
    if (right.mean < chance + learned) {
      claim.holds = Holds::open;
      claim.why += fmt::format(
          " The models have hardly learned the task (chance is {:.0f} %): without a norm, small initial "
          "weights "
          "take long to grow. More steps are needed for these to be the words of a trained model.",
          100 * chance);
    }
  }
  claim.why += " Keys are read where the norm in front of each attention used to be.";
  return {claim};
}

Figure figure4(std::span<const TextEvidence> runs, const TextRecipe& recipe) {
  CurveFigure figure;
  figure.panels.push_back(loss_panel(runs, "Training loss (Fig. 4)", train_loss, kTrain));
  figure.panels.push_back(loss_panel(runs, "Held-out loss (Fig. 4)", held_out_loss, kTest));
  figure.panels.push_back(difference_panel(runs));
  figure.caption = scale_caption(recipe) +
                   "Published after 50 000 steps on Wikipedia: training 7.28 with and 7.33 without scaling, "
                   "test 7.33 and 7.38; losses compare only at that scale and on that corpus. " +
                   seeds_caption(runs);
  return curves("fig4", "Language model: does scaling lower the loss?", figure);
}

Figure selectability_trend(std::span<const TextEvidence> runs, const TextRecipe& recipe) {
  CurveFigure figure;
  figure.panels.push_back(
      trend_panel(runs, kWithoutScaling, "Without scaling: after the norm (Table 1)", after, kTable1));
  figure.panels.push_back(
      trend_panel(runs, kWithScaling, "With LayerNorm: before the norm (Table 2)", before, kTable2));
  figure.panels.push_back(
      trend_panel(runs, kWithScaling, "With LayerNorm: after the norm (Tables 1, 2)", after, kZeros));
  figure.panels.push_back(trend_panel(runs, kWithScaling,
                                      "With LayerNorm: the same by projection and scaling alone, without eps",
                                      sphere, {}));
  figure.panels.push_back(
      trend_panel(runs, kWithScaling, "With LayerNorm: in the heads, mean over heads", in_heads, {}));
  figure.panels.push_back(
      trend_panel(runs, kWithoutScaling, "Without scaling: in the heads, mean over heads", in_heads, {}));
  figure.caption = scale_caption(recipe) +
                   "The paper shows the end of training only. What is unselectable after LayerNorm, its eps "
                   "has taken off the sphere. " +
                   seeds_caption(runs);
  return curves("selectability", "Unselectable keys while the language model learns", figure);
}

ReportTable table1(std::span<const TextEvidence> runs) {
  const Runs with = of_norm(runs, kWithScaling), without = of_norm(runs, kWithoutScaling);
  const std::size_t layers = std::max(layers_of(with), layers_of(without));
  return {"Table 1: unselectable keys, per cent, in trained language models with and without scaling",
          {header_of(layers, "keys"),
           published_row("without scaling, after the norm: published", kTable1, layers),
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

ReportTable table2(std::span<const TextEvidence> runs) {
  const Runs with = of_norm(runs, kWithScaling);
  const std::size_t layers = layers_of(with);
  return {"Table 2: unselectable keys, per cent, before and after LayerNorm of the trained language model",
          {header_of(layers, "keys"), published_row("before: published", kTable2, layers),
           measured_row("before: measured", with, layers, before),
           published_row("after: published", kZeros, layers),
           measured_row("after: measured, projection and scaling alone", with, layers, sphere),
           measured_row("after: with eps, in float32, as the model computes it", with, layers, after)}};
}

ReportTable table4(std::span<const TextEvidence> runs) {
  const std::vector<TextEvidence> sentences = of_sentences(runs);
  const Runs chosen = of_norm(sentences, "none");
  const std::size_t layers = layers_of(chosen);
  return {"Table 4: unselectable tokens of the sentences, per cent, in BERT without norms",
          {header_of(layers, "keys"), measured_row("where the norm used to be", chosen, layers, after),
           head_row("in the heads: mean (least to most head); not in the paper", chosen, layers)}};
}

ReportTable language_recipe(const TextRecipe& recipe) {
  const std::uint64_t seen = recipe.steps * recipe.batch * recipe.context;
  return {"Recipe of the language model",
          {{"setting", "published", "here"},
           {"corpus", "Wikipedia, 20220301.en", recipe.corpus},
           {"tokenizer", "GPT-2's BPE, 50257 tokens", recipe.tokenizer},
           {"steps", "50000", std::to_string(recipe.steps)},
           {"texts × tokens of a step", "16 × 1024", fmt::format("{} × {}", recipe.batch, recipe.context)},
           {"tokens seen", "819200000",
            fmt::format("{} ({:.2g} times the {} of the corpus that were read)", seen,
                        static_cast<double>(seen) /
                            static_cast<double>(std::max<std::uint64_t>(1, recipe.training_tokens)),
                        recipe.training_tokens)},
           {"AdamW, linear to 0 from", "5e-05", significant(recipe.learning_rate, 6)},
           {"learning rates of all steps, summed", "1.25",
            fmt::format("{:.3g}", recipe.learning_rate * static_cast<double>(recipe.steps) / 2)},
           {"dropout", "0.1", significant(recipe.dropout, 6)},
           {"eps of LayerNorm", "GPT-2's, 1e-05", significant(recipe.eps, 6)},
           {"windows looked at", "1000 of 768 to 1024 tokens (SQuAD)",
            fmt::format("{} of {} tokens, held out", recipe.windows, recipe.context)}}};
}

ReportTable sentiment_recipe(const TextRecipe& recipe) {
  return {
      "Recipe of the sentiment model",
      {{"setting", "published", "here"},
       {"texts", "SST-2", fmt::format("{}; {} to train on", recipe.corpus, recipe.training_texts)},
       {"tokenizer", "BERT's, cased, 28996 tokens", recipe.tokenizer},
       {"steps", "50000", std::to_string(recipe.steps)},
       {"texts of a step, tokens at most", "32 × 128", fmt::format("{} × {}", recipe.batch, recipe.context)},
       {"hidden units of a feed-forward part", "3072", std::to_string(recipe.feed_forward)},
       {"AdamW, linear to 0 from", "5e-05", significant(recipe.learning_rate, 6)},
       {"dropout", "0.1", significant(recipe.dropout, 6)},
       {"sentences looked at", "a dozen shown",
        fmt::format("{} ({})", recipe.sentences, recipe.sentence_source)}}};
}

TextFigure marked_figure(std::span<const MarkedSentence> sentences, std::size_t most) {
  std::vector<const MarkedSentence*> order;
  for (const MarkedSentence& sentence : sentences) order.push_back(&sentence);
  std::stable_sort(order.begin(), order.end(), [](const MarkedSentence* a, const MarkedSentence* b) {
    return a->marked() > b->marked();
  });
  order.resize(std::min(order.size(), most));
  TextFigure figure;
  figure.value_name = "share of layers that cannot select it";
  for (const MarkedSentence* sentence : order) {
    for (std::size_t i = 0; i < sentence->tokens.size(); ++i) {
      TextFigure::Token token{sentence->tokens[i]};
      const std::vector<std::size_t>& layers = sentence->layers[i];
      if (!layers.empty()) {
        token.value = static_cast<double>(layers.size()) / static_cast<double>(sentence->of_layers);
        token.kind = layers.size() == sentence->of_layers ? "unselectable in all layers"
                                                          : "unselectable in at least one layer";
        for (const std::size_t layer : layers)
          token.hint += fmt::format("{}layer {}", token.hint.empty() ? "" : ", ", layer + 1);
      }
      figure.tokens.push_back(std::move(token));
    }
    figure.tokens.push_back({"\n"});
  }
  return figure;
}

}  // namespace normscope

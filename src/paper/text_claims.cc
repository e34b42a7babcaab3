#include "paper/text_claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/number_text.h"
#include "normscope/statistics.h"
#include "report/curves.h"

namespace normscope {
namespace {

// Of keys: what is less in some layer is not called substantial.
constexpr double kSubstantial = 0.1;
// What a language model must have learned for its keys to be those of a trained one, in nats.
constexpr double kLearned = 0.5;

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
    append(text,
           fmt::format("{} steps of {} × {} tokens stand for the published {} of {} × {}", recipe.steps,
                       recipe.batch, recipe.context, kPublishedTextSteps, published_batch(recipe),
                       published_context(recipe)),
           ", and ");
  return text;
}

// Of language models, by their held-out losses.
std::string unlearned(const TextRuns& runs) {
  std::vector<double> gains;
  for (const TextEvidence* run : runs) {
    if (run->rows.empty()) continue;
    const double gain = held_out_loss(run->rows.front()) - held_out_loss(run->rows.back());
    if (std::isfinite(gain)) gains.push_back(gain);
  }
  const Interval gained = mean_interval(gains);
  return unlearned(
      gained, kLearned,
      fmt::format(
          " The models have hardly learned: their held-out loss fell by {:.2f} nats, and {} are asked "
          "for. More steps are needed.",
          gained.mean, kLearned),
      fmt::format("their held-out loss fell by {} nats, and {} are asked for", with_interval(gained, 2),
                  kLearned));
}

Interval over_runs(const TextRuns& runs, std::size_t layer, const LayerValue& value) {
  return mean_interval(values_over_runs(runs, layer, value));
}

std::string percentages(std::span<const double> values) {
  std::string text;
  for (const double value : values) append(text, fmt::format("{:.1f}", value), " / ");
  return text + " %";
}

// Keys of every layer of every run, of every snapshot.
KeyTally keys_of_all_stages(const TextRuns& runs, KeyTally LayerTally::*keys) {
  KeyTally all;
  for (const TextEvidence* run : runs) {
    for (const TextEvidence::Snapshot& snapshot : run->snapshots)
      for (const LayerTally& layer : snapshot.tally.layers) all += layer.*keys;
  }
  return all;
}

}  // namespace

bool TextRecipe::at_published_scale() const {
  return steps >= kPublishedTextSteps && batch >= published_batch(*this) &&
         context >= published_context(*this);
}

double held_out_loss(const TextRow& row) {
  return row.held_out ? row.held_out->loss : kNoValue;
}
double before(const LayerTally& layer) {
  return layer.before.share();
}
double after(const LayerTally& layer) {
  return layer.after.share();
}
double in_heads(const LayerTally& layer) {
  return layer.head_mean();
}

TextRuns sound_runs(std::span<const TextEvidence> runs, std::string_view norm) {
  TextRuns chosen;
  for (const TextEvidence& run : runs) {
    if (run.id.norm == norm && !run.broken) chosen.push_back(&run);
  }
  return chosen;
}

std::uint64_t last_step(std::span<const TextEvidence> runs) {
  std::uint64_t last = 0;
  for (const TextEvidence& run : runs) {
    if (!run.broken && !run.rows.empty()) last = std::max(last, run.rows.back().step);
  }
  return last;
}

std::vector<double> last_values(const TextRuns& runs, const RowValue& value) {
  std::vector<double> values;
  for (const TextEvidence* run : runs) {
    if (!run->rows.empty() && std::isfinite(value(run->rows.back())))
      values.push_back(value(run->rows.back()));
  }
  return values;
}

const ModelTally* trained(const TextEvidence& run) {
  return run.snapshots.empty() ? nullptr : &run.snapshots.back().tally;
}

std::size_t layers_of(const TextRuns& runs) {
  std::size_t layers = 0;
  for (const TextEvidence* run : runs) {
    if (const ModelTally* tally = trained(*run)) layers = std::max(layers, tally->layers.size());
  }
  return layers;
}

KeyTally trained_keys(const TextRuns& runs, KeyTally LayerTally::*keys) {
  KeyTally all;
  for (const TextEvidence* run : runs) {
    if (const ModelTally* tally = trained(*run))
      for (const LayerTally& layer : tally->layers) all += layer.*keys;
  }
  return all;
}

std::vector<double> values_over_runs(const TextRuns& runs, std::size_t layer, const LayerValue& value) {
  std::vector<double> values;
  for (const TextEvidence* run : runs) {
    const ModelTally* tally = trained(*run);
    if (tally != nullptr && layer < tally->layers.size()) values.push_back(value(tally->layers[layer]));
  }
  return values;
}

std::string by_layer(const TextRuns& runs, const LayerValue& value) {
  std::string text;
  for (std::size_t l = 0; l < layers_of(runs); ++l)
    append(text, with_interval(over_runs(runs, l, value), 1, 100), " / ");
  return text.empty() ? "not run" : text + " %";
}

void judge(Claim& claim, Answer shown, const TextRecipe& recipe) {
  const std::string condition = granted(recipe);
  claim.holds = judged(shown);
  if (shown == true && !condition.empty()) {
    claim.holds = Holds::conditionally;
    claim.condition = condition;
  } else if (shown == false && !condition.empty()) {
    claim.holds = Holds::open;
    claim.why += " These runs speak against it, but they are not those of the paper: it stays open unless " +
                 condition + ".";
  }
  if (recipe.generated)
    claim.why += " GENERATED TEXT: the corpus was written by a built-in grammar and is not language.";
}

std::string unlearned(const Interval& gained, double asked, const std::string& hardly,
                      const std::string& so_far) {
  const Answer learned = above(gained, asked);
  if (learned) return *learned ? "" : hardly;
  return fmt::format(
      " Whether the models have learned cannot be told from these seeds: {}. More seeds or steps are needed.",
      so_far);
}

Claim share_claim(std::string where, std::string words, const TextRuns& runs,
                  std::span<const double> published, const LayerValue& value, const TextRecipe& recipe) {
  Claim claim = claim_of(std::move(where), std::move(words), percentages(published) + " in layers 1 to 4");
  claim.measured = by_layer(runs, value);
  const std::size_t layers = layers_of(runs);
  if (layers == 0) {
    judge(claim, std::nullopt, recipe);
    return claim;
  }
  std::size_t substantial = 0, inside = 0, seeds = runs.size();
  Answer shown = true;
  for (std::size_t l = 0; l < layers; ++l) {
    const Interval interval = over_runs(runs, l, value);
    seeds = std::min(seeds, interval.count);
    const Answer enough = at_least(interval, kSubstantial);
    substantial += enough == true;
    shown = all_of({shown, enough});
    if (l >= published.size()) continue;
    // Where one more model would lie, so that all layers do with 95 %.
    const Interval further = prediction_interval(values_over_runs(runs, l, value),
                                                 1 - 0.05 / static_cast<double>(published.size()));
    inside += further.low <= published[l] / 100 && published[l] / 100 <= further.high;
  }
  claim.why = fmt::format("{} windows of {} tokens that were held out, {}.", recipe.windows, recipe.context,
                          counted(seeds, "seed"));
  if (seeds > 1) {
    claim.why += fmt::format(
        " Substantial is called what is at least {:.0f} % with the whole interval: {} of {} layers. {} of "
        "the {} published values lie where these seeds predict one more (95 % for all layers together); they "
        "are of another corpus.",
        100 * kSubstantial, substantial, layers, inside, published.size());
  }
  if (seeds < kFewestTextSeeds) {
    shown.reset();
    claim.why += fmt::format(" At least {} seeds are needed to tell.", kFewestTextSeeds);
  }
  if (const std::string untrained = unlearned(runs); !untrained.empty()) {
    shown.reset();
    claim.why += untrained;
  }
  judge(claim, shown, recipe);
  return claim;
}

Claim zero_claim(std::string where, std::string words, const TextRuns& runs, const TextRecipe& recipe) {
  Claim claim = claim_of(std::move(where), std::move(words), "0 % in every layer");
  const KeyTally end = trained_keys(runs, &LayerTally::after),
                 all = keys_of_all_stages(runs, &LayerTally::after);
  if (end.keys == 0) {
    claim.measured = "not run";
    return claim;
  }
  claim.why = fmt::format(
      "Every key of every window in every layer, {}. Points of a sphere are corners of their hull, whatever "
      "the model has learned.",
      counted(runs.size(), "seed"));
  claim.measured = fmt::format("{} of {} keys of the trained models", end.unselectable, end.keys);
  if (end.tied > 0) {
    claim.measured += fmt::format(", {} tied", end.tied);
    claim.why += " Tied are keys that are equal to others, so that none is on top alone.";
  }
  if (all.unselectable == 0) {
    claim.holds = Holds::yes;
    return claim;
  }
  const KeyTally with_eps = keys_of_all_stages(runs, &LayerTally::unrounded),
                 scaled = keys_of_all_stages(runs, &LayerTally::sphere);
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

WordShares word_shares(const TextRuns& runs) {
  WordShares shares;
  for (const TextEvidence* run : runs) {
    const std::vector<MarkedSentence>& sentences = run->marked.sentences;
    std::size_t tokens = 0, marked = 0, hit = 0;
    for (const MarkedSentence& sentence : sentences) {
      tokens += sentence.tokens.size();
      marked += sentence.marked();
      hit += sentence.marked() > 0;
    }
    if (tokens == 0) continue;
    shares.tokens.push_back(static_cast<double>(marked) / static_cast<double>(tokens));
    shares.sentences.push_back(static_cast<double>(hit) / static_cast<double>(sentences.size()));
    shares.of_tokens = tokens;
    shares.of_sentences = sentences.size();
  }
  return shares;
}

Claim words_claim(std::string where, std::string words, const TextRuns& runs, const TextRecipe& recipe) {
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
                          counted(shares.tokens.size(), "seed"));
  const auto none = static_cast<std::size_t>(std::count(shares.tokens.begin(), shares.tokens.end(), 0.0));
  Answer shown = none == 0 ? Answer(true) : none == shares.tokens.size() ? Answer(false) : std::nullopt;
  if (const std::string untrained = unlearned(runs); !untrained.empty() && !classifies(recipe)) {
    shown.reset();
    claim.why += untrained;
  }
  judge(claim, shown, recipe);
  return claim;
}

void add_point(CurveFigure::Curve& curve, std::uint64_t step, std::span<const double> values, double unit,
               double least, double most) {
  const Interval interval = mean_interval(values);
  if (interval.count == 0) return;
  curve.x.push_back(static_cast<double>(step));
  curve.y.push_back(unit * interval.mean);
  const bool band = interval.count > 1;
  curve.low.push_back(unit * std::clamp(band ? interval.low : interval.mean, least, most));
  curve.high.push_back(unit * std::clamp(band ? interval.high : interval.mean, least, most));
}

std::string scale_caption(const TextRecipe& recipe) {
  return fmt::format(
      "{}{}, {}; {} steps of {} × {} tokens{}. ", recipe.generated ? "GENERATED TEXT, not language: " : "",
      recipe.corpus, recipe.tokenizer, recipe.steps, recipe.batch, recipe.context,
      recipe.at_published_scale() ? "" : ", a reduced recipe (published: 50 000 of 16 × 1024)");
}

std::string seeds_caption(std::span<const TextEvidence> runs) {
  std::vector<std::uint64_t> seeds;
  for (const TextEvidence& run : runs) {
    if (!run.broken) seeds.push_back(run.id.seed);
  }
  std::string text = seeds_caption(seeds);
  if (seeds.size() < runs.size())
    text += fmt::format(" Left out: {} whose loss left its course.", runs.size() - seeds.size());
  return text;
}

TableRow layer_header(std::size_t layers) {
  TableRow header = {"keys"};
  for (std::size_t l = 0; l < layers; ++l) header.push_back(fmt::format("layer {}", l + 1));
  return header;
}

TableRow published_row(std::string name, std::span<const double> values, std::size_t layers) {
  TableRow row = {std::move(name)};
  for (std::size_t l = 0; l < layers; ++l)
    row.push_back(l < values.size() ? fmt::format("{:.1f}", values[l]) : "");
  return row;
}

TableRow measured_row(std::string name, const TextRuns& runs, std::size_t layers, const LayerValue& value) {
  TableRow row = {std::move(name)};
  for (std::size_t l = 0; l < layers; ++l) {
    const Interval share = over_runs(runs, l, value);
    // Few are not none.
    row.push_back(share.mean > 0 && share.mean < 5e-4 ? "< 0.05" : with_interval(share, 1, 100));
  }
  return row;
}

TableRow head_row(std::string name, const TextRuns& runs, std::size_t layers) {
  TableRow row = {std::move(name)};
  for (std::size_t l = 0; l < layers; ++l) {
    double least = std::numeric_limits<double>::infinity(), most = -least;
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

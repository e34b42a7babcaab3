#include "paper/brody_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/number_text.h"

namespace normscope {
namespace {

// Of keys.
constexpr Threshold kSubstantial{
    0.1, "half of the least share that the paper's tables show in a layer, 22.3 %, in round figures"};

// Of the trained model; null: it was not looked at.
const ModelTally* trained(const TextEvidence& run) {
  return run.snapshots.empty() ? nullptr : &run.snapshots.back().tally;
}

// Over runs, of one layer of the trained models.
std::vector<double> values_over_runs(const TextRuns& runs, std::size_t layer, LayerValue value) {
  std::vector<double> values;
  for (const TextEvidence* run : runs) {
    const ModelTally* tally = trained(*run);
    if (tally != nullptr && layer < tally->layers.size()) values.push_back(value(tally->layers[layer]));
  }
  return values;
}
Interval over_runs(const TextRuns& runs, std::size_t layer, LayerValue value, double level = kUsualLevel) {
  return mean_interval(values_over_runs(runs, layer, value), level);
}

std::string percentages(std::span<const double> values) {
  std::string text;
  for (const double value : values) append(text, fmt::format("{:.1f}", value), " / ");
  return text + " %";
}

KeyTally keys_of_all_stages(const TextRuns& runs, KeyTally LayerTally::*keys) {
  KeyTally all;
  for (const TextEvidence* run : runs) {
    for (const TextEvidence::Snapshot& snapshot : run->snapshots)
      for (const LayerTally& layer : snapshot.tally.layers) all += layer.*keys;
  }
  return all;
}

// What the runs of a norm say of substantial shares.
struct Shares {
  std::size_t seeds = 0, layers = 0;
  std::size_t substantial = 0;  // layers
  std::size_t inside = 0;       // published values that lie where one more model would, all with 95 %
  Answer all_substantial = true;
};
Shares shares_of(const Evidence& evidence, const TextRuns& runs, std::span<const double> published,
                 LayerValue value) {
  Shares shares;
  shares.seeds = runs.size();
  shares.layers = layers_of(runs);
  for (std::size_t l = 0; l < shares.layers; ++l) {
    Interval interval = over_runs(runs, l, value, level_of(evidence));
    for (double* end : {&interval.low, &interval.high}) *end = std::clamp(*end, 0.0, 1.0);  // a share
    shares.seeds = std::min(shares.seeds, interval.count);
    const Answer enough = at_least(evidence, interval, kSubstantial,
                                   {fmt::format("layer {}: unselectable share", l + 1), "",
                                    l < published.size() ? std::optional(published[l] / 100) : std::nullopt});
    shares.substantial += enough == true;
    shares.all_substantial = all_of({shares.all_substantial, enough});
    if (l >= published.size()) continue;
    const Interval further = prediction_interval(values_over_runs(runs, l, value),
                                                 1 - 0.05 / static_cast<double>(published.size()));
    shares.inside += further.low <= published[l] / 100 && published[l] / 100 <= further.high;
  }
  return shares;
}

}  // namespace

double before(const LayerTally& layer) {
  return layer.before.share();
}
double after(const LayerTally& layer) {
  return layer.after.share();
}
double sphere(const LayerTally& layer) {
  return layer.sphere.share();
}
double in_heads(const LayerTally& layer) {
  return layer.head_mean();
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

KeyTally heads_of_trained(const TextRuns& runs) {
  KeyTally heads;
  for (const TextEvidence* run : runs) {
    for (const LayerTally& layer : trained(*run) ? trained(*run)->layers : std::vector<LayerTally>()) {
      for (const KeyTally& head : layer.heads) heads += head;
    }
  }
  return heads;
}

std::string by_layer(const TextRuns& runs, LayerValue value) {
  std::string text;
  for (std::size_t l = 0; l < layers_of(runs); ++l)
    append(text, with_interval(over_runs(runs, l, value), 1, 100), " / ");
  return text.empty() ? "not run" : text + " %";
}

Claim share_claim(const char* where, const char* sentence, const char* norm,
                  std::span<const double> published, LayerValue value) {
  const auto shares = [=](const Evidence& evidence) {
    return shares_of(evidence, sound_runs(evidence.texts, norm), published, value);
  };
  const auto seeds = of(shares, &Shares::seeds);
  return {
      .where = where,
      .sentence = sentence,
      .published = percentages(published) + " in layers 1 to 4",
      .needs = {language_norms(), {Need::keys}},
      .there = some(of(shares, &Shares::layers)),
      .otherwise = "not run",
      .measured = [=](const Evidence& evidence) { return by_layer(sound_runs(evidence.texts, norm), value); },
      .why =
          [=](const Evidence& evidence) {
            const Shares found = shares(evidence);
            std::string text = fmt::format("{} windows of {} tokens, {}, {}.", evidence.recipe.windows,
                                           evidence.recipe.context, evidence.recipe.window_source,
                                           counted(found.seeds, "seed"));
            if (found.seeds > 1)
              text += fmt::format(
                  " Substantial is called what is at least {:.0f} % with the whole interval: {} of {} layers. {} of the {} published values lie where these seeds predict one more (95 % for all layers together); they are of another corpus.",
                  100 * kSubstantial.value, found.substantial, found.layers, found.inside, published.size());
            return text;
          },
      .asks = {enough_text_seeds(seeds), language_learned(norm)},
      .holds = of(shares, &Shares::all_substantial),
      .stand_in = text_stand_in,
      .not_at_hand = text_not_at_hand,
      .afterword = generated_note,
      .topic = "selectability"};
}

Claim zero_claim(const char* where, const char* sentence) {
  using Keys = std::function<KeyTally(const Evidence&)>;
  const auto tally = [](auto of, KeyTally LayerTally::*keys) -> Keys {
    return [=](const Evidence& evidence) { return of(sound_runs(evidence.texts, kWithScaling), keys); };
  };
  const Keys end = tally(trained_keys, &LayerTally::after),
             all = tally(keys_of_all_stages, &LayerTally::after),
             with_eps = tally(keys_of_all_stages, &LayerTally::unrounded),
             scaled = tally(keys_of_all_stages, &LayerTally::sphere);
  const Condition on_the_sphere = all_of({some(of(scaled, &KeyTally::keys)),
                                          none(of(scaled, &KeyTally::unselectable), kUnselectableSphere)}),
                  any = some(of(all, &KeyTally::unselectable)), tied = some(of(end, &KeyTally::tied));
  return {
      .where = where,
      .sentence = sentence,
      .published = "0 % in every layer",
      .needs = {language_norms(), {Need::keys}},
      .there = some(of(end, &KeyTally::keys)),
      .otherwise = "not run",
      .measured =
          written("{} of {} keys of the trained models", of(end, &KeyTally::unselectable),
                  of(end, &KeyTally::keys)) +
          when(tied, written(", {} tied", of(end, &KeyTally::tied))) +
          when(
              any,
              written(
                  "; at all stages of training {} of {} as the model computes them, in float32 ({} robust): {} with its eps, {:g}, in float64, {} by projection and scaling alone",
                  of(all, &KeyTally::unselectable), of(all, &KeyTally::keys), of(all, &KeyTally::robust),
                  of(with_eps, &KeyTally::unselectable),
                  [](const Evidence& evidence) { return evidence.recipe.eps; },
                  of(scaled, &KeyTally::unselectable))),
      .why =
          written(
              "Every key of every window in every layer, {}. Points of a sphere are corners of their hull, whatever the model has learned.",
              [](const Evidence& evidence) {
                return counted(sound_runs(evidence.texts, kWithScaling).size(), "seed");
              }) +
          when(tied, " Tied are keys that are equal to others, so that none is on top alone.") +
          when(
              all_of({any, on_the_sphere}),
              " Only eps and float32 take keys off it, which shows while keys lie close together and what enters the norm is short: eps shortens a short token more than a long one, and by more than the sphere bends between neighbours. The same norm of the same tokens is decided three times: in float64 without eps, in float64 with it, and as the model computes it; robust is what no rounding to float32 can have caused."),
      .holds =
          any_of({none(of(all, &KeyTally::unselectable), kUnselectableAll),
                  all_of({on_the_sphere, none(of(end, &KeyTally::unselectable), kUnselectableTrained)})}),
      .holds_if = {{all_of({on_the_sphere, none(of(with_eps, &KeyTally::unselectable), kUnselectableEps)}),
                    "keys are not rounded to float32"},
                   {on_the_sphere, "the norm has no eps, or tokens are long enough for it not to matter"}},
      .topic = "selectability",
      .confounds = {"eps"}};
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

Claim words_claim(const char* where, const char* sentence, const char* norm, Runs needs) {
  const auto shares = [=](const Evidence& evidence) { return word_shares(sound_runs(evidence.texts, norm)); };
  const auto share_of = [=](auto what) { return digits(1, mean_of(of(shares, what)), 100); };
  return {.where = where,
          .sentence = sentence,
          .published = "sentences with such words marked",
          .needs = {std::move(needs), {Need::sentences}},
          .there = any_in(of(shares, &WordShares::tokens)),
          .otherwise = "not run",
          .measured = written("{} % of the tokens, in {} % of the sentences", share_of(&WordShares::tokens),
                              share_of(&WordShares::sentences)),
          .why =
              [=](const Evidence& evidence) {
                const WordShares found = shares(evidence);
                return fmt::format(
                    "{} sentences ({}), {} tokens, each sentence a set of keys of its own; {}.",
                    found.of_sentences, evidence.recipe.sentence_source, found.of_tokens,
                    counted(found.tokens.size(), "seed"));
              },
          .holds = [=](const Evidence& evidence) -> Answer {
            const std::vector<double> tokens = shares(evidence).tokens;
            // None in any run is no; a mean above 0 with its interval is yes.
            if (std::ranges::max(tokens) == 0)
              return at_least(evidence, 0.0, std::numeric_limits<double>::min(),
                              "unselectable share of the tokens");
            return above(evidence, mean_interval(tokens, level_of(evidence)), 0,
                         "unselectable share of the tokens");
          },
          .stand_in = text_stand_in,
          .not_at_hand = text_not_at_hand,
          .afterword = generated_note,
          .topic = "selectability"};
}

Ask sentences_long_enough(const std::string& norm) {
  struct Lengths {
    std::size_t sentences = 0, too_short = 0;
  };
  const auto lengths = [=](const Evidence& evidence) {
    Lengths found;
    for (const TextEvidence* run : sound_runs(evidence.texts, norm)) {
      const MarkedText& text = run->marked;
      if (text.sentences.empty() || text.tally.layers.empty()) continue;
      // Tokens that are not of the text, [CLS] and [SEP], are keys too, as many in each sentence.
      std::size_t tokens = 0;
      for (const MarkedSentence& sentence : text.sentences) tokens += sentence.tokens.size();
      const std::size_t added = (text.tally.layers.front().after.keys - tokens) / text.sentences.size();
      for (const MarkedSentence& sentence : text.sentences) {
        ++found.sentences;
        found.too_short += sentence.tokens.size() + added <= evidence.recipe.width + 1;
      }
    }
    return found;
  };
  return {
      [=](const Evidence& evidence) {
        const WordShares shares = word_shares(sound_runs(evidence.texts, norm));
        const bool seen = std::ranges::any_of(shares.tokens, [](double share) { return share > 0; });
        const Lengths found = lengths(evidence);
        return Answer(seen || 2 * found.too_short <= found.sentences);
      },
      [=](const Evidence& evidence) {
        const Lengths found = lengths(evidence);
        return fmt::format(
            " No power: {} of {} sentences have at most {} tokens, and so many keys in general position are all selectable in {} dimensions. Longer sentences (--text), or a tokenizer with shorter tokens, are needed.",
            found.too_short, found.sentences, evidence.recipe.width + 1, evidence.recipe.width);
      }};
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

TableRow measured_row(std::string name, const TextRuns& runs, std::size_t layers, LayerValue value) {
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

std::vector<TextFinding> shown_sentences(const Evidence& evidence, const TextRuns& runs, const char* name,
                                         const char* title) {
  constexpr std::size_t most = 12;
  if (runs.empty()) return {};
  const TextEvidence& run = *runs.front();
  const TextRecipe& recipe = evidence.recipe;
  return {{name, title,
           fmt::format("{}Of {} sentences ({}) those with the most unselectable tokens, a line each; "
                       "underlined is what no query can put on top, among the tokens of its sentence, in at "
                       "least one layer. Tokens: {}. Seed {}.",
                       recipe.generated ? "GENERATED TEXT, not language. " : "", run.marked.sentences.size(),
                       recipe.sentence_source, recipe.tokenizer, run.id.seed),
           "", marked_figure(run.marked.sentences, most)}};
}

}  // namespace normscope

#pragma once
// What Tables 1 to 4 of Brody, Alon, Yahav 2023 share: shares of unselectable keys by layer, of words, and what
// is claimed of them.
#include "paper/part.h"
#include "report/text.h"

namespace normscope {

// Published shares of unselectable keys, per cent, in layers 1 to 4.
inline constexpr double kTable1[] = {51.0, 32.2, 34.7, 36.8};  // without scaling, after the norm
inline constexpr double kTable2[] = {44.8, 28.5, 22.3, 26.1};  // with LayerNorm, before it
inline constexpr double kZeros[] = {0, 0, 0, 0};               // after it

// What is unselectable of the keys of a layer; sphere: by projection and scaling alone.
using LayerValue = double (*)(const LayerTally& layer);
double before(const LayerTally& layer);
double after(const LayerTally& layer);
double sphere(const LayerTally& layer);
double in_heads(const LayerTally& layer);

std::size_t layers_of(const TextRuns& runs);
// Keys of every layer of every trained model, or of every snapshot.
KeyTally trained_keys(const TextRuns& runs, KeyTally LayerTally::*keys);
KeyTally heads_of_trained(const TextRuns& runs);
// What is counted of keys that have been normed, as comparisons name it.
inline constexpr const char *kUnselectableTrained = "unselectable keys of the trained models",
                            *kUnselectableSphere = "unselectable keys by projection and scaling alone",
                            *kUnselectableEps = "unselectable keys with eps, in float64",
                            *kUnselectableAll = "unselectable keys at all stages of training";
// "51.0 ± 2.1 / 32.2 ± 1.0 %"
std::string by_layer(const TextRuns& runs, LayerValue value);

// "A substantial share in every layer": of the published, and of ours.
Claim share_claim(const char* where, const char* sentence, const char* norm,
                  std::span<const double> published, LayerValue value);
// After LayerNorm there is not one: points of a sphere are corners of their hull. Those that there are, eps
// and float32 have taken off it; which of the two, the same norm in float64 and without eps tells.
Claim zero_claim(const char* where, const char* sentence);
// Words that are unselectable in some layer are there, in every run.
Claim words_claim(const char* where, const char* sentence, const char* norm, Runs needs);
// Tokens that are unselectable in some layer, and sentences with such.
struct WordShares {
  std::vector<double> tokens, sentences;  // one per run
  std::size_t of_tokens = 0, of_sentences = 0;
};
WordShares word_shares(const TextRuns& runs);
// That words are unselectable, or could be: that most sentences have more tokens than d + 1, for so many in
// general position are all selectable.
Ask sentences_long_enough(const std::string& norm);

// Rows of a table with a column per layer.
using TableRow = std::vector<std::string>;
TableRow layer_header(std::size_t layers);
TableRow published_row(std::string name, std::span<const double> values, std::size_t layers);
TableRow measured_row(std::string name, const TextRuns& runs, std::size_t layers, LayerValue value);
// The mean over heads, and from the least to the most of the heads of all runs.
TableRow head_row(std::string name, const TextRuns& runs, std::size_t layers);

// Sentences of one model with their unselectable tokens marked, those with most first; at most `most`.
TextFigure marked_figure(std::span<const MarkedSentence> sentences, std::size_t most);
// Those of the first run.
std::vector<TextFinding> shown_sentences(const Evidence& evidence, const TextRuns& runs, const char* name,
                                         const char* title);

}  // namespace normscope

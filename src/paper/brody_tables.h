#pragma once
// What Tables 1 to 4 of Brody, Alon, Yahav 2023 show of one another.
#include "paper/part.h"
#include "paper/text_claims.h"

namespace normscope {

// Published shares of unselectable keys, per cent, in layers 1 to 4.
inline constexpr double kTable1[] = {51.0, 32.2, 34.7, 36.8};  // without scaling, after the norm
inline constexpr double kTable2[] = {44.8, 28.5, 22.3, 26.1};  // with LayerNorm, before it
inline constexpr double kZeros[] = {0, 0, 0, 0};               // after it

// By projection and scaling alone.
inline double sphere(const LayerTally& layer) {
  return layer.sphere.share();
}

// Sentences of the first run, those with most unselectable tokens.
std::vector<TextFinding> shown_sentences(const Evidence& evidence, const TextRuns& runs, const char* name,
                                         const char* title);

}  // namespace normscope

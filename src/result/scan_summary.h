#pragma once
// What the windows of a scan say together: means by layer and head, and a verdict in sentences.
#include <string>
#include <vector>

#include "result/scan.h"

namespace normscope {

// Means over windows.
struct ScanSummary {
  struct Head {
    std::size_t head = 0;
    double unselectable = 0, tied = 0;  // shares; NaN: not asked for
    double reachable_unselectable = 0, reachable_tied = 0;
    double median_largest_weight = 0, least_largest_weight = 0;
    double entropy = 0, largest_weight = 0;  // of the real queries
    double never_won = 0;                    // share of tokens that were no query's favourite
  };
  struct Layer {
    std::size_t layer = 0;
    double before = 0, before_tied = 0, model = 0, model_tied = 0;
    NormShare norm_in, norm_out;
    std::vector<Head> heads;
    // Over the heads that were asked for.
    double mean(double Head::*member) const;
    double highest(double Head::*member) const;
  };
  std::vector<Layer> layers;
};
// Windows must agree in their layers and heads: throws InputError if they do not, or if there is none.
ScanSummary summarize(const std::vector<ScanWindowResult>& windows);

// A space's sets of a window, in order, with the layer and head of each.
struct ScanSetPlace {
  const ScanSetResult* set;
  std::size_t layer, head;
};
std::vector<ScanSetPlace> sets_of(const ScanWindowResult& window, KeySpace space);
// In how many of a space's sets a token has the verdict of a letter (ScanSetResult::verdicts).
std::size_t sets_with(const std::vector<ScanSetPlace>& sets, std::size_t token, char verdict);
// Tokens by how many of a space's sets cannot select them.
ScanSpaceResult unselectable_tokens(const std::vector<ScanWindowResult>& windows, KeySpace space);
// What a set of the space is, in words: "layer", "layer and head".
const char* set_name(KeySpace space);
// How many tokens a place sees, itself included, where the mask is a sliding window; 0: it is none.
std::size_t sliding_window(const ScanResult& result);
// From which places largest weights are.
std::string weight_places_words(const ScanResult& result);

// Rests on settings, spaces and windows of the result.
std::string scan_verdict(const ScanResult& result, const ScanSummary& summary);

// "< 0.1" or one digit after the point, of 100; nothing for what is not finite.
std::string scan_percent(double share);

}  // namespace normscope

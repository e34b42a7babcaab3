#pragma once
// What `scan` answers.
#include <optional>
#include <string>
#include <vector>

#include "normscope/provenance.h"
#include "normscope/scan.h"
#include "result/describe.h"
#include "result/text_settings.h"

namespace normscope {

// One set of keys: a space of a layer (and head) over one window.
struct ScanSetResult {
  std::size_t selectable = 0, tied = 0, unselectable = 0, undecided = 0;
  std::optional<std::size_t> robust_unselectable;
  std::size_t rank = 0;
  std::string verdicts;
  std::vector<std::optional<std::size_t>> places;
  std::vector<double> margins;
  std::string robust;
  std::vector<double> largest_weights;
  std::vector<std::size_t> weight_places;

  static void describe(auto& visit, auto& self) {
    visit("selectable", self.selectable, "tokens that some query gives the strictly highest score");
    visit("tied", self.tied, "tokens that some query puts on top, but never alone");
    visit("unselectable", self.unselectable,
          "tokens that no query puts on top, from every place that sees them");
    visit("undecided", self.undecided, "tokens whose margin is within rounding of 0");
    visit("robust_unselectable", self.robust_unselectable,
          "of the unselectable: those that no rounding of the keys can have made so; null: not known");
    visit("rank", self.rank, "of the largest set decided");
    visit("verdicts", self.verdicts,
          "a letter per token: s selectable, t tied, u unselectable, ? not decided",
          {.pattern = "^[stu?]+$"});
    visit("places", self.places, "a place with that verdict; null: every place that sees the token");
    visit("margins", self.margins, "of the selectable, from that place; 0: not measured there",
          {.low = 0, .or_null = true});
    visit.when(!self.robust.empty(), "robust", self.robust,
               "a letter per token: u unselectable whatever the rounding of the keys, - not so",
               {.pattern = "^[u-]+$"});
    visit.when(!self.largest_weights.empty(), "largest_weights", self.largest_weights,
               "softmax weight that a reachable query can give each token, from below, to within 0.1 %",
               {.low = 0, .high = 1});
    visit.when(!self.largest_weights.empty(), "weight_places", self.weight_places,
               "the places that weights are from: the last, or one for each stretch of a sliding window",
               {.with = "largest_weights"});
  }
};

struct ScanHeadResult {
  std::size_t head = 0, key_head = 0;
  std::vector<std::size_t> wins;
  double entropy = 0, largest_weight = 0;
  std::optional<ScanSetResult> keys, reachable;

  static void describe(auto& visit, auto& self) {
    visit("head", self.head, "counted from 0");
    visit("key_head", self.key_head, "whose keys it uses");
    visit("wins", self.wins, "per token: queries that gave it the highest weight");
    visit("entropy", self.entropy, "of the attention weights, nats, mean over queries", {.low = 0});
    visit("largest_weight", self.largest_weight, "highest weight of a query, mean over queries",
          {.low = 0, .high = 1});
    visit.when(self.keys.has_value(), "keys", self.keys, "the head space: any query");
    visit.when(self.reachable.has_value(), "reachable", self.reachable,
               "the same keys, for the queries the layer can form");
  }
};

struct ScanLayerResult {
  std::size_t layer = 0;
  NormShare norm_in, norm_out;
  std::optional<ScanSetResult> before, model;
  std::vector<ScanHeadResult> heads;

  static void describe(auto& visit, auto& self) {
    visit("layer", self.layer, "counted from 0");
    visit("norm_in", self.norm_in, "tokens before the norm in front of attention");
    visit("norm_out", self.norm_out, "tokens after it");
    visit.when(self.before.has_value(), "before", self.before, "keys before the norm");
    visit.when(self.model.has_value(), "model", self.model, "keys after the norm");
    visit("heads", self.heads, "one entry per head that was asked for");
  }
};

struct ScanWindowResult {
  std::size_t first = 0;
  std::vector<std::uint32_t> ids;
  std::vector<std::string> tokens;
  std::vector<ScanLayerResult> layers;
  std::vector<double> losses;

  static void describe(auto& visit, auto& self) {
    visit("first", self.first, "of its tokens, in the text");
    visit("ids", self.ids, "of the tokens");
    visit(
        "tokens", self.tokens,
        "as the text has them, with what the tokenizer left out before each; of a character that several make up "
        "the first has it, and others may be empty");
    visit("layers", self.layers, "one entry per layer that was asked for");
    visit.when(!self.losses.empty(), "losses", self.losses, "of next tokens, nats");
  }
};

// Tokens of one key space.
struct ScanSpaceResult {
  std::size_t tokens = 0, sets = 0, unselectable_in_some = 0, unselectable_in_all = 0;
  std::size_t tied_in_some = 0, undecided_in_some = 0;

  static void describe(auto& visit, auto& self) {
    visit("tokens", self.tokens, "of all windows");
    visit("sets", self.sets, "a token was looked at in");
    visit("unselectable_in_some", self.unselectable_in_some, "tokens");
    visit("unselectable_in_all", self.unselectable_in_all, "tokens");
    visit.when(self.tied_in_some > 0, "tied_in_some", self.tied_in_some, "tokens that are tied in some set",
               {.low = 1});
    visit.when(self.undecided_in_some > 0, "undecided_in_some", self.undecided_in_some,
               "tokens that are not decided in some set", {.low = 1});
  }
};

struct ScanResult {
  struct Settings {
    TextSettings text;
    std::vector<std::size_t> layers, heads;
    std::vector<KeySpace> spaces;
    std::string mask;
    Margins margin = Margins::bound;
    bool largest_weights = true;
    std::string trace;

    static void describe(auto& visit, auto& self) {
      TextSettings::describe(visit, self.text);
      visit("layers", self.layers, "scanned; empty: all");
      visit("heads", self.heads, "scanned; empty: all");
      visit("spaces", self.spaces, "key spaces asked about");
      visit("mask", self.mask, "what the places of a window see, as `normscope mask` names it");
      visit("margin", self.margin, "exact, or certified lower bounds");
      visit("largest_weights", self.largest_weights, "of reachable queries were asked for");
      visit("trace", self.trace, "activations written, as given; empty: none");
    }
  };

  std::string command = "scan";
  Provenance made;
  double seconds = 0;
  Settings settings;
  std::string family, verdict;
  Named<ScanSpaceResult> spaces;
  std::optional<std::vector<ScanWindowResult>> windows;

  static void describe(auto& visit, auto& self) {
    visit("command", self.command, "scan", {.always = "scan"});
    Provenance::describe(visit, self.made);
    visit("seconds", self.seconds, "time of the pass and of the verdicts, without reading", {.low = 0});
    visit("settings", self.settings, "the options as resolved");
    visit("family", self.family, "of the model");
    visit("verdict", self.verdict, "in a sentence");
    visit("spaces", self.spaces, "by name: tokens that cannot be selected");
    visit.when(self.windows.has_value(), "windows", self.windows, "one entry per window of the text",
               {.least = 1});
  }
};

}  // namespace normscope

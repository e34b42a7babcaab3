#pragma once
// A trained model on a text: which tokens can each layer and head select, and what did its queries do?
//
// In every layer, the keys of a window of text are decided in four key spaces:
//
//   before     what enters the norm in front of attention, n × d
//   model      what leaves it and enters attention (the papers' keys), n × d
//   head       kW_K + b of each head, rotated where the model rotates; any query; offsets of the scores (T5's
//              by distance) are part of the question
//   reachable  the same keys for the queries the layer can form: q = norm(x)W_Q + b, ‖norm(x)‖ bounded
//
// Places: a query at place p of the window is compared with the keys that p sees under the model's mask, with
// the rotation and the offsets of p. A token has the best verdict of the places that see it: selectable if it
// is from any, unselectable only if it is from all. Heads that share keys (grouped) share the verdicts of
// their head space.
//
// A token that a query of the pass put on top, by more than rounding explains, is selectable in every space
// that holds the query; a scan that finds otherwise throws Error.
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "normscope/executor.h"
#include "normscope/keys.h"
#include "normscope/model.h"

namespace normscope {

enum class KeySpace { before, model, head, reachable };
inline constexpr std::array kKeySpaces = {KeySpace::before, KeySpace::model, KeySpace::head,
                                          KeySpace::reachable};
const char* name_of(KeySpace space);
inline std::span<const KeySpace> values_of(KeySpace) {
  return kKeySpaces;
}
// Throws InputError that lists the names.
KeySpace parse_key_space(std::string_view name);

struct ScanSettings {
  std::vector<std::size_t> layers, heads;  // empty: all
  std::vector<KeySpace> spaces{kKeySpaces.begin(), kKeySpaces.end()};
  // True: a place sees what it does under the model's mask (a model that is not causal: the tokens up to
  // itself). False: every place sees all keys of the window, whatever the model's queries saw.
  bool prefixes = false;
  Margins margins = Margins::bound;
  bool largest_weights = true;  // in the reachable space
  // Where the norm in front of attention scales to √d: also decide what it would leave without the rounding
  // of float32, and without eps besides. Points of a sphere are vertices of their hull, so that unselectable
  // keys of the model space come from these two.
  bool ideal_norms = false;
  bool losses = true;        // of the next token, where the model tells it
  ForwardObserver observer;  // is shown what the pass shows, beside the scan
};

// One set of keys: a space of a layer (and head) over one window.
struct ScanSet {
  std::vector<std::optional<Verdict>> verdicts;  // none: not decided (its margin is within rounding of 0)
  // Of the selectable and the tied: a place from which they are. Of the others none: from every place.
  std::vector<std::optional<std::size_t>> places;
  std::vector<double> margins;  // of the selectable, from that place (0: not measured there); others 0
  // Reachable only: that any query can give the token from one of weight_places, the last that sees it, from
  // below, to within 0.1 %.
  std::vector<double> largest_weights;
  std::vector<std::size_t> weight_places;  // the last place; sliding windows: one for each stretch of tokens
  // Per token: unselectable from every place, and no rounding of the keys can have caused it; empty where
  // that is not known (reachable). With their number.
  std::vector<bool> robust;
  std::optional<std::size_t> robust_unselectable;
  std::size_t rank = 0;  // of the largest set decided

  std::size_t count(Verdict verdict) const;
  double share(Verdict verdict) const;  // of all tokens; NaN for an empty set
};

// What the halves of a norm have to do: of tokens before and after it.
struct NormShare {
  double along_ones = 0;  // share of the energy ‖x‖² along 1, mean over tokens: what projection takes away
  double norm_mean = 0;    // mean of ‖x‖
  double norm_spread = 0;  // sd of ‖x‖ over its mean: what scaling takes away

  static void describe(auto& visit, auto& self) {
    visit("along_ones", self.along_ones, "share of the energy along the vector of ones, mean over tokens");
    visit("norm_mean", self.norm_mean, "mean norm");
    visit("norm_spread", self.norm_spread, "standard deviation of the norms over their mean");
  }
};

// What the queries of one head did in one window.
struct QueryShare {
  std::vector<std::size_t> wins;  // per token: how many queries gave it the highest weight
  double entropy = 0;             // of the attention weights, nats, mean over queries
  double largest_weight = 0;      // mean over queries of the highest weight
  std::size_t queries = 0;
};

struct ScanHead {
  std::size_t head = 0, key_head = 0;
  ScanSet keys, reachable;  // without verdicts if not asked for
  QueryShare queries;
};

struct ScanLayer {
  std::size_t layer = 0;
  ScanSet before, model;
  // With ideal_norms, from what entered the norm: in float64, and so without eps.
  ScanSet unrounded, sphere;
  NormShare norm_in, norm_out;
  bool reachable_known = true;  // false: no norm bounds what enters attention
  std::vector<ScanHead> heads;
};

struct ScanWindow {
  std::vector<std::uint32_t> ids;
  std::vector<ScanLayer> layers;
  std::vector<double> losses;  // of next tokens, where the model is causal and has a head

  // In how many of the sets of a space the token is unselectable; of how many.
  std::size_t unselectable(KeySpace space, std::size_t token) const;
  std::size_t sets(KeySpace space) const;
};

// progress: sets done, of how many.
std::vector<ScanWindow> scan(const ModelWeights& weights, std::span<const std::vector<std::uint32_t>> windows,
                             const ScanSettings& settings, const Executor& executor,
                             const std::function<void(std::size_t, std::size_t)>& progress = {});

// A pass that somebody else has run, of whose model no weights are known: what one layer showed of a window's tokens.
struct LiveLayer {
  std::size_t layer = 0, heads = 1, key_heads = 1;
  double scale = 1;                // of the scores q·k
  double unit_roundoff = 0x1p-24;  // of what was computed in
  Matrix<float> norm_in,
      norm_out;              // n × d, around the norm in front of attention; no rows: they were not seen
  Matrix<float> query, key;  // n × heads·width, n × key_heads·width, as they were scored
  // heads × (2n − 1): what was added to the score of key j for the query at i, at column j − i + n − 1; no rows: nothing.
  Matrix<float> offsets;
};
struct LiveWindow {
  std::vector<std::uint32_t> ids;
  std::vector<LiveLayer> layers;
};
// Who saw whom in it.
struct LiveMask {
  bool causal = false;
  std::size_t window = 0;  // as ModelSpec
};
// The spaces before, model and head, without losses; of `settings` those that need no weights count. A set that was not seen
// has no verdicts. Throws InputError if shapes do not fit together or a number is not finite.
std::vector<ScanWindow> scan_live(std::span<const LiveWindow> windows, const LiveMask& mask,
                                  const ScanSettings& settings, const Executor& executor,
                                  const std::function<void(std::size_t, std::size_t)>& progress = {});

}  // namespace normscope

#pragma once
// How many keys of a trained model are unselectable, layer by layer: before the norm in front of attention,
// after it (the paper's keys), and in each head; and which words of a sentence. Where a model has no norm,
// before and after are the same, which is where the norm would be.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "normscope/executor.h"
#include "normscope/model.h"
#include "normscope/scan.h"

namespace normscope {

// Counted rather than averaged, so that "none at all" is exact.
struct KeyTally {
  std::size_t keys = 0, tied = 0, unselectable = 0;
  std::size_t robust = 0;  // of the unselectable, those that no rounding of the activations can have caused

  double share() const;         // unselectable; NaN of no keys
  double robust_share() const;  // robust; NaN of no keys
  void add(const ScanSet& set);
  KeyTally& operator+=(const KeyTally& other);
  bool operator==(const KeyTally&) const = default;
  static void describe(auto& visit, auto& self) {
    visit("keys", self.keys, "");
    visit("tied", self.tied, "");
    visit("unselectable", self.unselectable, "");
    visit("robust", self.robust, "of the unselectable");
  }
};

struct LayerTally {
  KeyTally before, after;
  std::vector<KeyTally> heads;
  // Of a norm that scales, from what entered it: in float64, and so without eps. Other norms: no keys.
  KeyTally unrounded, sphere;

  // Over heads, of the share unselectable; NaN without heads.
  double head_mean() const, head_least() const, head_most() const;
  bool operator==(const LayerTally&) const = default;
  static void describe(auto& visit, auto& self) {
    visit("before", self.before, "the norm");
    visit("after", self.after, "the norm, as the model computes it");
    visit("unrounded", self.unrounded, "the same in float64");
    visit("sphere", self.sphere, "and without eps");
    visit("heads", self.heads, "of each head");
  }
};

struct ModelTally {
  std::size_t windows = 0;
  std::vector<LayerTally> layers;

  bool operator==(const ModelTally&) const = default;
  static void describe(auto& visit, auto& self) {
    visit("windows", self.windows, "of text");
    visit("layers", self.layers, "from the first");
  }
};

// All keys of a window are one set; windows of one length weigh alike.
ModelTally tally_keys(const ModelWeights& weights, std::span<const std::vector<std::uint32_t>> windows,
                      const Executor& executor,
                      const std::function<void(std::size_t, std::size_t)>& progress = {});

struct Sentence {
  std::vector<std::uint32_t> ids;
  std::vector<std::string> spelled;  // as the text has each; empty: not of the text ([CLS], [SEP])
};

// Which tokens of a sentence are unselectable, after the norm, among the tokens of the sentence.
struct MarkedSentence {
  std::vector<std::string> tokens;               // those of the text
  std::vector<std::vector<std::size_t>> layers;  // of each, those that cannot select it, from 0
  std::size_t of_layers = 0;
  // Of each, by how much the loss of the class that a classifier gives the sentence rises without it; empty: not measured.
  std::vector<double> importance = {};

  std::size_t marked() const;  // tokens that are unselectable in at least one layer
  bool operator==(const MarkedSentence&) const = default;
};
struct MarkedText {
  std::vector<MarkedSentence> sentences;
  ModelTally tally;  // over all sentences, with the tokens that are not of the text
};
MarkedText mark_sentences(const ModelWeights& weights, std::span<const Sentence> sentences,
                          const Executor& executor,
                          const std::function<void(std::size_t, std::size_t)>& progress = {});

// The sentences of a text that are long enough to be looked at and short enough to be shown: of 30 to 240
// bytes, at least 4 words, on one line. At most `most`.
std::vector<std::string> short_sentences(std::string_view text, std::size_t most);

}  // namespace normscope

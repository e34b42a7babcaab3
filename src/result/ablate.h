#pragma once
// What `ablate` answers.
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "normscope/ablate.h"
#include "normscope/provenance.h"
#include "result/describe.h"
#include "result/text_settings.h"

namespace normscope {

enum class ProbeTokens { text, vocabulary };
inline const char* name_of(ProbeTokens tokens) {
  return tokens == ProbeTokens::text ? "text" : "vocabulary";
}
inline std::span<const ProbeTokens> values_of(ProbeTokens) {
  static constexpr ProbeTokens all[] = {ProbeTokens::text, ProbeTokens::vocabulary};
  return all;
}

// Means over windows.
struct AblateLayerResult {
  std::size_t layer = 0;
  Interval change, cosine, entropy, largest_weight, norm;
  std::optional<double> constant;

  static void describe(auto& visit, auto& self) {
    visit("layer", self.layer, "counted from 0");
    visit("change", self.change,
          "of the hidden states beside those as trained, relative to these (Frobenius)");
    visit("cosine", self.cosine, "of each token with itself as trained");
    visit("entropy", self.entropy, "of attention weights, nats, mean over heads and tokens");
    visit("largest_weight", self.largest_weight, "highest attention weight, mean over heads and tokens");
    visit("norm", self.norm, "mean norm of what enters attention");
    visit.when(self.constant.has_value(), "constant", self.constant, "what rescaling multiplied with");
  }
};

// One kind of prompt.
struct ProbeResult {
  Interval loss, accuracy, choice;
  double chance = 0;
  std::optional<Interval> first_loss, gain;

  static void describe(auto& visit, auto& self) {
    visit("loss", self.loss, "of the token to be found, nats");
    visit("accuracy", self.accuracy, "share of questions where it is the likeliest of all tokens");
    visit("choice", self.choice, "share where it is the likeliest of those the prompt asks for");
    visit("chance", self.chance, "of choice");
    visit.when(self.first_loss.has_value(), "first_loss", self.first_loss,
               "of first copies, where there is nothing to retrieve");
    visit.when(self.gain.has_value(), "gain", self.gain,
               "by how much the loss of a second copy is lower than that of the first");
  }
};

struct ProbeFindsResult {
  std::size_t layer = 0, head = 0;
  Interval share, weight;
  double chance = 0;

  static void describe(auto& visit, auto& self) {
    visit("layer", self.layer, "of the best head");
    visit("head", self.head, "that looks most often at the token to be found");
    visit("share", self.share, "of tokens from which it does");
    visit("weight", self.weight, "mean weight on the token to be found");
    visit("chance", self.chance, "of the share");
  }
};

struct RetrievalProbeResult {
  std::optional<ProbeResult> copy, lookup;
  std::optional<ProbeFindsResult> finds;

  static void describe(auto& visit, auto& self) {
    visit.when(self.copy.has_value(), "copy", self.copy, "random tokens, twice: is the next one known?");
    visit.when(self.lookup.has_value(), "lookup", self.lookup, "pairs, twice: is the value of a key known?");
    visit.when(self.finds.has_value(), "finds", self.finds, "does a head look at the token to be found?");
  }
};

// What was measured, of a row that did not fail.
struct AblateRowResult {
  std::string name;
  std::optional<std::string> norm;
  std::string failure;
  std::optional<Interval> loss, loss_change;
  std::vector<double> losses;
  std::optional<std::vector<AblateLayerResult>> layers;
  std::optional<RetrievalProbeResult> probe;
  std::optional<std::vector<RetrievalChange>> retrieval;

  static void describe(auto& visit, auto& self) {
    visit("name", self.name, "of the change");
    visit("norm", self.norm, "in place of the model's; null: as trained");
    visit.when(!self.failure.empty(), "failure", self.failure, "why nothing was measured");
    visit.when(self.loss.has_value(), "loss", self.loss, "mean over windows");
    visit.when(self.loss.has_value(), "losses", self.losses, "mean of each window, nats");
    visit.when(self.loss_change.has_value(), "loss_change", self.loss_change,
               "beside the model as trained, window by window");
    visit.when(self.layers.has_value(), "layers", self.layers, "one entry per layer");
    visit.when(self.probe.has_value(), "probe", self.probe, "sharp retrieval from prompts of random tokens");
    visit.when(self.retrieval.has_value(), "retrieval", self.retrieval,
               "beside the model as trained, with verdicts");
  }
};

struct AblateResult {
  struct Settings {
    TextSettings text;
    std::vector<std::string> norms;
    std::vector<std::size_t> layers;
    std::optional<std::uint32_t> mask_token;
    bool drop_affine = false, rescale = false;
    std::size_t prompts = 0, probe_length = 0;
    double tolerated = 0;
    ProbeTokens probe_tokens = ProbeTokens::text;

    static void describe(auto& visit, auto& self) {
      TextSettings::describe(visit, self.text);
      visit("norms", self.norms, "the changes, in order");
      visit("layers", self.layers, "whose norm was to be replaced; empty: all");
      visit("mask_token", self.mask_token, "what hides tokens from an encoder; null: none is known");
      visit("drop_affine", self.drop_affine, "learned gain and bias were dropped");
      visit("rescale", self.rescale, "each change also with a constant per layer");
      visit("prompts", self.prompts, "of each kind of the retrieval probe");
      visit("probe_length", self.probe_length, "random tokens of a prompt, which come twice");
      visit("tolerated", self.tolerated,
            "share of the retrieval above chance that 'not worse' must exclude losing",
            {.low = 0, .high = 1});
      visit("probe_tokens", self.probe_tokens, "where random tokens were drawn from");
    }
  };

  std::string command = "ablate";
  Provenance made;
  double seconds = 0;
  Settings settings;
  std::string family, norm;
  std::vector<std::size_t> changed_layers;
  Ablation::Loss measured_loss = Ablation::Loss::none;
  std::string verdict;
  std::vector<std::string> notes;
  std::vector<AblateRowResult> rows;

  static void describe(auto& visit, auto& self) {
    visit("command", self.command, "ablate", {.always = "ablate"});
    Provenance::describe(visit, self.made);
    visit("seconds", self.seconds, "time of the passes, without reading and writing", {.low = 0});
    visit("settings", self.settings, "the options as resolved");
    visit("family", self.family, "of the model");
    visit("norm", self.norm, "in front of attention, as trained");
    visit("changed_layers", self.changed_layers, "whose norm was replaced");
    visit("measured_loss", self.measured_loss, "of which tokens");
    visit("verdict", self.verdict, "in a sentence");
    visit("notes", self.notes, "what was done and what to know, in sentences");
    visit("rows", self.rows, "the model as trained first, then one entry per change", {.least = 1});
  }
};

// What the verdict on a change says, with the margin that it is held against: "no worse by 10 % of what it has above
// chance", "no difference these 8 prompts can show".
std::string retrieval_words(const RetrievalChange& change, const AblateResult::Settings& settings);
// What each change does to retrieval, in sentences.
std::string ablate_verdict(const AblateResult& result);

}  // namespace normscope

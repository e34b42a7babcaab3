#pragma once
// The norm in front of attention, replaced or removed in a trained model: what changes?
//
// Where a block's norm comes first (pre), attention reads norm(x) and only attention changes. Where it comes
// last (post), attention of layer l reads what the last norm of layer l − 1 (of the embeddings, for l = 0)
// left, and the skip path takes the same tokens: it changes with it. Learned gain and bias stay, unless
// dropped; eps stays.
//
// A norm without scaling changes how large tokens are, which by itself sharpens or flattens attention.
// Rescaled, one constant per layer makes up for it: g ⊙ c_l·changed(x) + b enters attention, and c_l keeps
// the mean of ‖g ⊙ c_l·changed(x)‖ over the tokens of the text what it is as trained, to 0.1 %. What is left
// of the change is that of shape.
//
// Measured of every row: the loss (of next tokens, where the model is causal; of masked tokens, where it has
// a head and a mask token), hidden states beside those as trained, what attention weights look like, and a
// probe of sharp retrieval that needs no tokenizer:
//
//   copy    r₁ … r_m r₁ … r_m of distinct random tokens: in the second copy, is the next token known?
//   lookup  k₁ v₁ … k_p v_p, then the same pairs in another order: after a key, is its value known?
//   finds   the share of tokens of a second copy from which the model's best head gives the highest weight,
//           itself apart, to the token to be found: the one after the earlier copy if the model is causal
//           (induction), the earlier copy if not. This needs no head of output.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "normscope/executor.h"
#include "normscope/model.h"
#include "normscope/norm.h"
#include "normscope/statistics.h"

namespace normscope {

struct NormChange {
  NormSpec norm;  // projection and scaling; affine and eps are the model's
  bool drop_affine = false;
  bool rescale = false;
};
// "center", "center, rescaled", "center, without gain and bias"
std::string name_of(const NormChange& change);

// The norm in front of attention as trained, in most families the same in all layers. None: a map stands
// between the norm of the embeddings and the first layer (ALBERT).
std::optional<NormSpec> norm_before_attention(const ModelSpec& spec, std::size_t layer);

struct AblateSettings {
  std::vector<NormChange> changes;
  std::vector<std::size_t> layers;  // whose norm changes; empty: all that have one
  // Of encoders with a head: this id hides 15 % of the tokens, always the same, and their loss is measured.
  std::optional<std::uint32_t> mask_token;
  std::vector<std::uint32_t> special;  // ids that are never hidden, nor drawn for the probe

  std::size_t prompts = 32;                  // of each kind; 0: no probe
  double tolerated = 0.1;                    // see RetrievalVerdict::not_worse; above 0, at most 1
  std::size_t probe_length = 32;             // m = 2p, at least 4; shorter if the model has too few positions
  std::vector<std::uint32_t> probe_tokens;   // to draw from; empty: the vocabulary
  std::vector<std::uint32_t> before, after;  // special tokens at either end of a prompt
  std::uint64_t seed = 0;
};

// One layer in one window.
struct LayerEffect {
  double change = 0;          // ‖H′ − H‖/‖H‖ (Frobenius) of what the layer puts out, H as trained
  double cosine = 1;          // of each token with itself as trained, mean
  double entropy = 0;         // of attention weights, nats, mean over heads and tokens
  double largest_weight = 0;  // mean over heads and tokens of the highest weight
  double norm = 0;            // mean over tokens of ‖what enters attention‖
};

// One kind of prompt: means over the questions of each prompt.
struct ProbeScores {
  std::vector<double> loss;      // of the token to be found, nats
  std::vector<double> accuracy;  // share of questions where it is the likeliest of all tokens
  std::vector<double> choice;    // where it is the likeliest of those the prompt asks for
  double chance = 0;             // of choice
};

struct ProbeFinds {
  std::vector<double> share, weight;  // of the best head, per prompt: found, and the mean weight on it
  std::size_t layer = 0, head = 0;
  double chance = 0;
};

struct AblateRow {
  std::string name;
  std::optional<NormChange> change;               // none: as trained
  std::string failure;                            // a sentence; then nothing after it was measured
  std::vector<double> rescale;                    // c_l; 1 where nothing changes; empty: not rescaled
  std::vector<std::vector<LayerEffect>> windows;  // windows × layers
  std::vector<double> losses;                     // mean of each window; empty: not measured
  std::vector<double> first_loss;                 // of first copies (copy, causal): nothing to retrieve
  ProbeScores copy, lookup;                       // empty without a head
  ProbeFinds finds;                               // empty without prompts

  Interval mean(double LayerEffect::*effect, std::size_t layer) const;  // over windows
  // By how much the loss of a second copy is lower than that of the first, per prompt; empty unless causal.
  // Knowing which tokens come back, in any order, counts as well.
  std::vector<double> copy_gain() const;
};

struct Ablation {
  enum class Loss { none, next_token, masked_token };
  Loss loss = Loss::none;
  std::vector<std::size_t> layers;  // whose norm changes
  std::vector<NormSpec> trained;    // the norm of each of them
  std::size_t probe_length = 0;     // as used; 0: no probe
  bool probe_from_vocabulary = true;
  double tolerated = 0.1;       // share of the retrieval above chance that "not worse" must not lose
  std::vector<AblateRow> rows;  // as trained first
  std::vector<std::string> notes;
};

// "none", "next token", "masked token"
const char* name_of(Ablation::Loss loss);
std::span<const Ablation::Loss> values_of(Ablation::Loss);

// The windows: ids as the model takes them. Same result for any number of threads. Held at once: the hidden
// states of all layers of some windows (at most 256 MiB unless one alone is larger), and what forward holds.
// Throws InputError if there is no window, a layer does not exist or has no norm in front of attention, a
// change is named twice, or an id is not in the vocabulary. A changed model whose tokens leave the range of
// float32 is no error: its row says so.
Ablation ablate(const ModelWeights& weights, std::span<const std::vector<std::uint32_t>> windows,
                const AblateSettings& settings, const Executor& executor,
                const std::function<void(std::size_t, std::size_t)>& progress = {});

// "Removing the norm degrades sharp retrieval", of one row: judged by the measures of retrieval whose value
// as trained is above chance.
enum class RetrievalVerdict {
  worse,       // the interval of the change lies below 0
  not_worse,   // it excludes a loss of `tolerated`, a share of what the model as trained has above chance
  not_shown,   // neither: these prompts show no difference, nor that there is none
  untestable,  // the model as trained does not retrieve on the probe, or one prompt cannot tell
  failed,      // the row has no values
};
const char* name_of(RetrievalVerdict verdict);
std::span<const RetrievalVerdict> values_of(RetrievalVerdict);

struct RetrievalChange {
  std::string measure;  // "gain" (of copies, in nats), "copy" and "lookup" (choice), "finds"
  Interval trained, changed, difference;
  double chance = 0;
  RetrievalVerdict verdict = RetrievalVerdict::untestable;

  static void describe(auto& visit, auto& self) {
    visit("measure", self.measure, "gain (of copies, in nats), copy, lookup or finds (shares)");
    visit("chance", self.chance, "what guessing would reach");
    visit("trained", self.trained, "of the model as trained");
    visit("changed", self.changed, "with the norm replaced");
    visit("difference", self.difference, "changed less trained, prompt by prompt");
    visit("verdict", self.verdict, "whether retrieval got worse");
  }
};
std::vector<RetrievalChange> retrieval_changes(const Ablation& ablation, std::size_t row);
// The same, prompt by prompt.
struct RetrievalValues {
  const char* measure;
  std::vector<double> trained, changed;
  double chance = 0;
};
std::vector<RetrievalValues> retrieval_values(const Ablation& ablation, std::size_t row);

}  // namespace normscope

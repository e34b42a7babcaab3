#pragma once
// Which keys can attention select?
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "normscope/norm.h"
#include "result/keys.h"
#include "result/options.h"
#include "study/context.h"

namespace normscope {

struct KeysOptions {
  std::string file, tensor, norm = "none", bias, bias_tensor;
  RankPolicy rank = RankPolicy::numerical;
  Margins margin = Margins::exact;
  std::optional<double> noise, query_norm, effort;
  std::optional<std::size_t> heads;
  bool prefix = false, exact = false, advice = false, summary = false;

  static void describe(auto& visit, auto& self) {
    visit.input(
        "FILE", self.file,
        "A .npy, .npz or .safetensors file with n × d keys, a batch of them, or batch × heads × n × d; "
        "- is standard input");
    visit("tensor", self.tensor, "Which tensor of the file");
    visit("heads", self.heads, "Each row holds the keys of so many heads, one after the other: n × (H·d)",
          OptionFacts{.type = "H", .low = 1, .high = 1u << 20, .otherwise = "what a trace says, else 1"});
    visit("norm", self.norm, "Norm applied to the keys first, see below");
    visit("bias", self.bias, "File with one score offset per key: scores are q·k + b");
    visit("bias-tensor", self.bias_tensor, "Which tensor of the --bias file");
    visit("rank", self.rank,
          "numerical: decide in the numerical affine hull; full: take every digit at face value");
    visit("margin", self.margin, "exact, or bound: a certified lower bound, much faster in high dimension");
    visit("noise", self.noise, "Robust means: against any change of each key of this norm",
          OptionFacts{.type = "EPS", .low = 0, .otherwise = "rounding of the dtype"});
    visit("query-norm", self.query_norm,
          "Also the largest softmax weight a query of norm at most R can give each key",
          OptionFacts{.type = "R", .low = 0});
    visit("effort", self.effort,
          "How many products of 64-bit words rational arithmetic may take for one key that floating point "
          "cannot decide; what lies beyond is undecided",
          OptionFacts{.type = "N", .low = 0, .otherwise = "2^33, some seconds"});
    visit("prefix", self.prefix, "Also the longest prefix (causal mask) in which each key is selectable");
    visit("exact", self.exact, "Verify every certificate in rational arithmetic");
    visit(
        "advice", self.advice,
        "Also what would make each other key selectable: a factor, a score offset, a norm; and offsets for all");
    visit("summary", self.summary, "Leave the single keys out of the JSON");
  }
};

// The keys a question is about: one set (n × d), a batch (sets × n × d), or those of heads (batch × heads × n
// × d), one after the other in memory.
struct GivenKeys {
  std::string source;  // "file.npz: tensor "k""; for messages
  DType dtype = DType::float64, offset_dtype = DType::float64;
  std::size_t sets = 1, n = 0, d = 0;
  std::size_t heads = 0;                // set s is head s % heads of batch s / heads; 0: it is nobody's
  std::vector<double> values, offsets;  // offsets: none, one per key, or one per key of each set
  // What a norm did: how far each key may be from what the norm would have made of the numbers before they
  // were rounded to their dtype, and how many directions it projected out.
  std::vector<double> errors;
  std::size_t projected_out = 0;
  NormCounts norm_counts;
};

// Throws InputError that says what is wrong with which file, as all of these do.
GivenKeys read_keys(const KeysOptions& options);
// The same of arrays in memory, whose names are for messages; offsets: none is read from the file of --bias.
GivenKeys keys_of(const KeysOptions& options, Tensor keys, const std::optional<Tensor>& offsets = {});

// A norm by name. Throws InputError if it is none, or one that has to be learned.
NormSpec norm_without_normals(const std::string& name);

// As in models (norm_as_in_models), with what the rounding of the numbers given may have done to the result.
void apply_norm(const std::string& norm, GivenKeys& keys);

// Keys wherever they lie: sets × n × d numbers, and offsets: none, one per key of a set (they serve all
// sets), or one per key of each set.
struct KeyBatch {
  std::span<const double> values, offsets;
  std::size_t sets = 1, n = 0, d = 0;
};
std::vector<KeySet> decide_batch(const KeyBatch& batch, const KeyOptions& options, const Executor& executor,
                                 const std::string& set_name = "set {} of {}");

// The decision, as `options` ask for it. `keys` has been read and normed.
KeysResult decide(const GivenKeys& keys, const KeysOptions& options, const Context& context);

// The norms that advice tries, each in place of the one the keys have.
std::span<const char* const> advised_norms();
// Which of them make a key robustly selectable, with witnesses: one list per set, an entry per key. `raw` has been read and not normed.
std::vector<std::vector<std::vector<NormAdvice>>> advise_norms(const GivenKeys& raw,
                                                               const KeysOptions& options,
                                                               const Context& context);

// All of it.
struct KeysStudy {
  GivenKeys given;
  KeysResult result;
};
KeysStudy study_keys(const KeysOptions& options, const Context& context);
KeysStudy study_keys(GivenKeys given, const KeysOptions& options, const Context& context);

// The same without the single keys: what `summary` leaves.
KeysResult without_keys(const KeysResult& result);

}  // namespace normscope

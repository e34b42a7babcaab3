#pragma once
// What `keys` answers.
#include <string>

#include "normscope/advice.h"
#include "normscope/keys.h"
#include "normscope/provenance.h"
#include "normscope/tensor_file.h"
#include "result/describe.h"

namespace normscope {

struct KeyResult {
  std::size_t index = 0;
  KeyVerdict key;
  std::optional<bool> verified = {};  // none: nobody asked
  std::optional<KeyAdvice> advice = {};

  static void describe(auto& visit, auto& self) {
    visit("index", self.index, "row of the key in its set");
    KeyVerdict::describe(visit, self.key);
    visit.when(self.verified.has_value(), "verified", self.verified,
               "the certificate was checked in rational arithmetic");
    visit.when(self.advice.has_value(), "advice", self.advice, "what would make the key selectable");
  }
};

struct KeySetResult {
  KeySet set;  // without its keys
  std::optional<std::vector<KeyResult>> keys;
  std::optional<std::size_t> batch, head;
  std::optional<OffsetsForAll> for_all;

  static void describe(auto& visit, auto& self) {
    auto& set = self.set;
    visit.when(self.batch.has_value(), "batch", self.batch, "of the heads, counted from 0", {.with = "head"});
    visit.when(self.head.has_value(), "head", self.head, "whose keys these are, counted from 0");
    visit("n", set.n, "keys", {.low = 1});
    visit("d", set.d, "their dimension", {.low = 1});
    visit("rank", set.rank, "dimension of the affine hull the verdicts were decided in");
    visit("rank_tolerance", set.rank_tolerance,
          "a direction in which the keys spread less than this (root mean square, along a coordinate of "
          "average size) holds only rounding",
          {.low = 0});
    visit("matrix_rank", set.matrix_rank, "what NumPy's matrix_rank makes of the centred keys");
    visit("counts", set.counts, "keys by verdict");
    visit("robust_counts", set.robust_counts, "the same, only keys whose verdict is robust");
    visit("exact_path", set.exact_path,
          "keys that floating point could not decide, and rational arithmetic did");
    visit.when(set.rank < set.d, "kept", set.kept,
               "the coordinates on which keys were decided and certificates hold exactly");
    visit.when(set.rank < set.d, "left_out", set.left_out,
               "the largest distance of a key from the flat of these coordinates, judged to be rounding",
               {.low = 0});
    visit.when(self.for_all.has_value(), "offsets_for_all", self.for_all,
               "score offsets under which all keys are selectable, but for equal ones");
    visit.when(self.keys.has_value(), "keys", self.keys, "one entry per key, in the order given");
  }
};

// "set 3"; "head 1"; "batch 0, head 1"
inline std::string set_label(const KeySetResult& set, std::size_t index) {
  if (!set.head) return "set " + std::to_string(index);
  return (set.batch ? "batch " + std::to_string(*set.batch) + ", " : "") + "head " +
         std::to_string(*set.head);
}

struct KeysSettings {
  std::string file, tensor;
  std::size_t heads = 0;
  DType dtype = DType::float64;
  std::string norm, bias, bias_tensor;
  RankPolicy rank = RankPolicy::numerical;
  Margins margin = Margins::exact;
  bool exact = false, prefix = false, advice = false;
  std::optional<double> query_norm, noise;
  double effort = 0;

  static void describe(auto& visit, auto& self) {
    visit("file", self.file, "as given; - is standard input");
    visit("tensor", self.tensor, "as given; empty if none was named");
    visit.when(self.heads > 0, "heads", self.heads, "each has a set of its own", {.low = 1});
    visit("dtype", self.dtype, "of the file");
    visit("norm", self.norm, "applied to the keys first");
    visit("bias", self.bias, "the file with the score offsets; empty if none");
    visit("bias_tensor", self.bias_tensor,
          "the tensor of that file, as asked for; empty if it was not named");
    visit("rank_policy", self.rank,
          "numerical: decided in the numerical affine hull; full: every digit at face value");
    visit("margin", self.margin, "exact, or certified lower bounds");
    visit("exact", self.exact, "every certificate was verified in rational arithmetic");
    visit("prefix", self.prefix, "prefixes were asked about");
    visit.when(self.advice, "advice", self.advice, "what would help keys that are not selectable was asked");
    visit("query_norm", self.query_norm, "R: the largest norm of queries whose weights are told", {.low = 0});
    visit("noise", self.noise, "robust means: against any change of each key of this norm", {.low = 0});
    visit("effort", self.effort, "products of 64-bit words that rational arithmetic may take for one key",
          {.low = 0});
  }
};

struct KeysResult {
  Provenance made;
  double seconds = 0;
  KeysSettings settings;
  std::size_t undefined_rows = 0;
  std::vector<KeySetResult> sets;

  static void describe(auto& visit, auto& self) {
    visit("version", self.made.version, "of the program", {.pattern = "^[0-9]+\\.[0-9]+\\.[0-9]+"});
    visit("commit", self.made.commit,
          "it was built from; -dirty after changes, unknown outside a repository");
    visit("seconds", self.seconds, "time to decide all sets, without reading and writing", {.low = 0});
    visit("threads", self.made.threads, "used; results do not depend on it", {.low = 1});
    visit("isa", self.made.isa, "instruction set the kernels ran with");
    visit("settings", self.settings, "the options as resolved");
    visit.when(self.undefined_rows > 0, "undefined_rows", self.undefined_rows,
               "rows that the norm could not scale (zero rows, or σ = 0); they became 0", {.low = 1});
    visit(
        "sets", self.sets,
        "one entry per set: one for an n × d file, as many as the first axis says for a batch; of heads one "
        "for each, batch by batch",
        {.least = 1});
  }
};

}  // namespace normscope

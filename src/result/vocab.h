#pragma once
// What `vocab` answers.
#include <optional>
#include <string>
#include <vector>

#include "normscope/advice.h"
#include "normscope/keys.h"
#include "normscope/provenance.h"
#include "normscope/tensor_file.h"
#include "result/describe.h"

namespace normscope {

// A token of a mixture.
struct VocabTerm {
  std::size_t id = 0;
  double weight = 0;
  std::string token;

  static void describe(auto& visit, auto& self) {
    visit("id", self.id, "of the token");
    visit("weight", self.weight, "above 0", {.low = 0, .high = 1});
    visit.when(!self.token.empty(), "token", self.token, "as the vocabulary spells it");
  }
};

struct VocabToken {
  std::size_t id = 0;
  std::string token;
  Verdict verdict = Verdict::selectable;
  bool robust = false;
  double margin = 0, depth = 0;
  std::vector<std::string> exact_witness;
  std::vector<VocabTerm> cover, interior;
  std::vector<std::size_t> tied_with;
  std::optional<bool> verified;
  std::optional<KeyAdvice> advice;

  static void describe(auto& visit, auto& self) {
    visit("id", self.id, "row of the token");
    visit.when(!self.token.empty(), "token", self.token, "as the vocabulary spells it");
    visit("verdict", self.verdict, "what hidden states can do with the token");
    visit("robust", self.robust,
          "no change of the rows within the rounding of their dtype alters the verdict");
    visit.when(self.verdict == Verdict::selectable, "margin", self.margin,
               "distance to the hull of the others, or a lower bound of it",
               {.low = 0, .or_null = true, .only_if = {"verdict", "selectable"}});
    visit.when(self.verdict == Verdict::unselectable, "depth", self.depth,
               "a lower bound of the distance to the boundary of the others' hull",
               {.low = 0, .only_if = {"verdict", "unselectable"}});
    visit.when(
        !self.exact_witness.empty(), "exact_witness", self.exact_witness,
        "a hidden state that puts the token on top, as integers or fractions, when no doubles pass the "
        "exact test",
        {.pattern = "^-?[0-9]+(/[0-9]+)?$"});
    visit.when(!self.cover.empty(), "cover", self.cover,
               "other tokens whose convex combination reproduces the token's row");
    visit.when(!self.interior.empty(), "interior", self.interior,
               "tokens that reproduce the row and span the hull");
    visit.when(self.verdict == Verdict::tied, "tied_with", self.tied_with,
               "the other tokens that share the top score", {.least = 1, .only_if = {"verdict", "tied"}});
    visit.when(self.verified.has_value(), "verified", self.verified,
               "the certificate was checked in rational arithmetic");
    visit.when(self.advice.has_value(), "advice", self.advice, "what would make the token selectable");
  }
};

struct VocabResult {
  struct Settings {
    std::string source, bias, tokenizer;
    bool embeddings = false;
    Margins margin = Margins::bound;
    bool exact = false, advice = false;
    std::size_t limit = 0;
    DType dtype = DType::float32;

    static void describe(auto& visit, auto& self) {
      visit("source", self.source, "the model or the file, as given");
      visit("bias", self.bias, "the file with the score offsets; empty if none");
      visit("tokenizer", self.tokenizer, "the file that names the rows; empty if none was given");
      visit("embeddings", self.embeddings, "the word embeddings of a model were asked about");
      visit("margin", self.margin, "exact, or certified lower bounds");
      visit("exact", self.exact, "every certificate was verified in rational arithmetic");
      visit.when(self.advice, "advice", self.advice, "what would help tokens that never win alone was asked");
      visit("limit", self.limit, "tokens listed by rising margin, at most");
      visit("dtype", self.dtype, "of the file; of a model: the narrowest that holds its numbers");
    }
  };

  Provenance made;
  double seconds = 0;
  Settings settings;
  std::size_t tokens = 0, d = 0, rank = 0;
  bool bias = false;
  KeyCounts counts, robust_counts;
  std::size_t exact_path = 0;
  std::optional<std::size_t> verified;
  std::optional<OffsetsForAll> for_all;
  std::optional<std::vector<VocabToken>> smallest_margins, never_alone;

  static void describe(auto& visit, auto& self) {
    visit("version", self.made.version, "of the program", {.pattern = "^[0-9]+\\.[0-9]+\\.[0-9]+"});
    visit("commit", self.made.commit, "it was built from");
    visit("seconds", self.seconds, "time to decide, without reading and writing", {.low = 0});
    visit("threads", self.made.threads, "used; results do not depend on it", {.low = 1});
    visit("isa", self.made.isa, "instruction set the kernels ran with");
    visit("settings", self.settings, "the options as resolved");
    visit("tokens", self.tokens, "rows of the matrix", {.low = 1});
    visit("d", self.d, "their dimension", {.low = 1});
    visit("rank", self.rank, "dimension of the affine hull the verdicts were decided in");
    visit("bias", self.bias, "scores have an offset per token");
    visit("counts", self.counts, "tokens by verdict");
    visit("robust_counts", self.robust_counts, "the same, only tokens whose verdict is robust");
    visit("exact_path", self.exact_path,
          "tokens that floating point could not decide, and rational arithmetic did");
    visit.when(self.verified.has_value(), "verified", self.verified,
               "tokens whose certificate was checked in rational arithmetic");
    visit.when(self.for_all.has_value(), "offsets_for_all", self.for_all,
               "biases under which all tokens are selectable, but for those with equal rows");
    visit.when(self.smallest_margins.has_value(), "smallest_margins", self.smallest_margins,
               "selectable tokens by rising margin");
    visit.when(self.never_alone.has_value(), "never_alone", self.never_alone,
               "all tokens that no hidden state puts on top alone");
  }
};

}  // namespace normscope

#pragma once
// Which tokens of a vocabulary can a model put on top?
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/shared_array.h"
#include "normscope/tensor_file.h"
#include "normscope/tokenizer.h"
#include "result/options.h"
#include "result/vocab.h"
#include "study/context.h"

namespace normscope {

struct VocabOptions {
  std::string source, bias, tokenizer;
  bool embeddings = false, exact = false, advice = false;
  Margins margin = Margins::bound;
  std::size_t limit = 20;

  static void describe(auto& visit, auto& self) {
    visit.input("SOURCE", self.source,
                "A model (directory, name or id), or a matrix with a row per token: FILE or FILE:TENSOR");
    visit("embeddings", self.embeddings, "The word embeddings of a model instead of its head");
    visit("bias", self.bias, "One number per token, added to its scores: FILE or FILE:TENSOR");
    visit("tokenizer", self.tokenizer, "A tokenizer.json that names the rows of a FILE");
    visit("margin", self.margin,
          "bound (certified lower bounds), or exact, which takes much longer in many dimensions");
    visit("limit", self.limit, "Tokens to list, of each kind", OptionFacts{.low = 0, .high = 1e6});
    visit("exact", self.exact, "Verify every certificate in rational arithmetic");
    visit(
        "advice", self.advice,
        "Also what would let each other token win: a factor of its row, a bias, a norm of all rows; and biases "
        "for all. A decision for each norm");
  }
};

// The rows that score a hidden state, one per token.
struct Vocabulary {
  std::string source;  // for people
  DType dtype = DType::float32, offset_dtype = DType::float32;
  SharedMatrix rows;            // V × d
  std::vector<double> offsets;  // V, or none
  std::optional<Tokenizer> tokenizer;
  std::vector<std::string> notes;  // what a reader of a model's should know

  // A token, made printable; empty: not known.
  std::string text(std::size_t id) const;
};
// Throws InputError that says what is wrong with which file or model. executor: its processes on one machine hold the
// rows once.
Vocabulary read_vocabulary(const VocabOptions& options, const Executor& executor);
// The same of arrays in memory, whose names are for messages; bias: none is read from the file of --bias.
Vocabulary vocabulary_of(const VocabOptions& options, Tensor rows, const std::optional<Tensor>& bias = {});

struct VocabStudy {
  Vocabulary given;
  KeySet set;  // a verdict and a certificate for every token
  VocabResult result;
};
VocabStudy study_vocab(const VocabOptions& options, const Context& context);
VocabStudy study_vocab(Vocabulary given, const VocabOptions& options, const Context& context);

// Everything a verdict rests on, of every token, as .safetensors: witness rows where there is one, covers as
// lists.
void write_certificates(const std::filesystem::path& path, const KeySet& set);

}  // namespace normscope

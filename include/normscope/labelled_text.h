#pragma once
// Texts with a label each, to train a classifier on, and batches of them.
//
// Files: .tsv (a header; fields are taken as they are, as GLUE's files mean them), .csv (a header; quotes as
// RFC 4180 has them), .json (an array of objects), .jsonl or .ndjson (an object per line); of other names the
// content decides. Everything is UTF-8.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "normscope/executor.h"
#include "normscope/training_tokenizer.h"
#include "normscope/transformer.h"

namespace normscope {

struct LabelledText {
  std::string text;
  std::uint32_t label = 0;  // of `classes`
};

struct LabelledTexts {
  std::string name;         // "imdb", "grammar", or "files"
  std::string description;  // for people: "built-in grammar, generated, seed 3"
  bool generated = false;   // by the grammar: never to be taken for results on real text
  // Labels as they are written, sorted (as numbers if all are whole numbers): "0", "1".
  std::vector<std::string> classes;
  std::vector<LabelledText> rows;

  std::vector<std::string_view> texts() const;
};

struct LabelledColumns {
  std::optional<std::string> text;   // otherwise: sentence, text, content, review, t, in this order
  std::optional<std::string> label;  // otherwise: label, sentiment, s, class
};

// `classes`: those of the training set, if this is a test set; otherwise they are those of the file. Throws
// InputError that says where: no rows, columns missing (with those there are), a wrong number of fields,
// quotes that are never closed, a label that is not one of `classes`, fewer than 2 or more than 1000 classes.
LabelledTexts read_labelled(const std::string& path, const LabelledColumns& columns = {},
                            const std::vector<std::string>* classes = nullptr);

struct LabelledSplit {
  LabelledTexts training, test;
  std::size_t repeated = 0;  // rows left out of training since the test part has the same text
};
// A share of each class, chosen by the seed, is the test part. Throws InputError if a part would be empty.
LabelledSplit split_labelled(LabelledTexts texts, double test_share, std::uint64_t seed);

// `normscope data get imdb`: 25000 reviews to train on (less those that the test part has too), 25000 to
// test.
LabelledSplit imdb_reviews();

// Short reviews written by a grammar: praise and blame, negation that turns one into the other. As many of
// each class.
LabelledTexts grammar_reviews(std::size_t count, std::uint64_t seed);

// Token ids of every text, with the tokenizer's special tokens; longer texts are cut, the special tokens at
// the end kept.
struct EncodedTexts {
  std::vector<std::uint32_t> tokens;
  std::vector<std::size_t> begins;  // of each text, and the end of the last
  std::vector<std::uint32_t> labels;
  std::uint32_t padding = 0;
  std::size_t cut = 0;  // texts that were longer
  std::string content_hash;

  std::size_t size() const { return labels.size(); }
  std::span<const std::uint32_t> text(std::size_t i) const {
    return std::span(tokens).subspan(begins[i], begins[i + 1] - begins[i]);
  }
};
// The same for any number of threads. Throws InputError if `most_tokens` leaves no room for the text.
EncodedTexts encode_labelled(const LabelledTexts& texts, const TrainingTokenizer& tokenizer,
                             std::size_t most_tokens, const Executor& executor);

// Batch number `step` of an endless order, one permutation after the other (as language_batch), filled up to
// the longest of the batch; targets are labels.
TokenBatch text_batch(const EncodedTexts& texts, std::size_t batch, std::uint64_t seed, std::uint64_t step);
// All texts, in order.
std::vector<TokenBatch> text_batches(const EncodedTexts& texts, std::size_t batch);

}  // namespace normscope

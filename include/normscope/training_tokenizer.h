#pragma once
// Tokenizers to train with: found by name or made from the training texts, with what training needs to know
// of them, and the files that make a checkpoint readable.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "normscope/tokenizer.h"

namespace normscope {

struct TokenizerFile {
  std::string name;  // "tokenizer.json", "vocab.json", "merges.txt", "vocab.txt", "tokenizer_config.json"
  std::string content;
};

struct TrainingTokenizer {
  std::string name;         // as it was asked for
  std::string description;  // "GPT-2's BPE, 50257 tokens"
  Tokenizer tokenizer;
  std::optional<std::uint32_t> end_of_text;  // "<|endoftext|>", "</s>", …
  std::uint32_t padding = 0;                 // "[PAD]", "<pad>", else 0: lengths say what counts
  std::vector<TokenizerFile> files;          // to be put beside the weights

  std::size_t size() const { return tokenizer.size(); }
};

// "bytes" (a token for each of 256 bytes, and the end of text), "gpt2-bpe" or the name of a tokenizer of
// `normscope data get tokenizers` ("bert", "llama2", …), a directory with tokenizer.json, vocab.txt,
// vocab.json and merges.txt or encoder.json and vocab.bpe, or a tokenizer.json itself. Throws InputError with
// how to get it if there is none.
TrainingTokenizer training_tokenizer(const std::string& name);

// gpt2-bpe if it has been fetched, else bytes.
TrainingTokenizer default_language_tokenizer();

// The most frequent words of these texts, in lower case, and [PAD], [UNK], [CLS], [SEP]: at most `most`
// tokens.
TrainingTokenizer word_tokenizer(std::span<const std::string_view> texts, std::size_t most);

// BERT's if `tokenizers` has been fetched, else the words of the texts.
TrainingTokenizer default_text_tokenizer(std::span<const std::string_view> texts, std::size_t most = 30522);

}  // namespace normscope

#pragma once
// The tokenizer of a model's directory.
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "checkpoint/families.h"
#include "normscope/tokenizer.h"

namespace normscope::checkpoint {

struct FoundTokenizer {
  std::optional<Tokenizer> tokenizer;
  std::string reason;  // why there is none
};

// What `read` gives, or the sentence it throws.
FoundTokenizer tokenizer_or_reason(const std::function<Tokenizer()>& read);

// tokenizer.json, else, where these say all that it would, vocab.txt (BERT) or vocab.json and merges.txt
// (GPT-2). A model without a tokenizer can still be given ids, so nothing is thrown.
FoundTokenizer find_tokenizer(const std::filesystem::path& directory, Family::Vocabulary vocabulary);

}  // namespace normscope::checkpoint

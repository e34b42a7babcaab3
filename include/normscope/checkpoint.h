#pragma once
// Trained models in files: Hugging Face directories (config.json, safetensors, single or sharded, tokenizer),
// ids in the local Hugging Face cache, llama2.c files. Everything read is hostile until checked.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "normscope/model.h"
#include "normscope/tensor_file.h"
#include "normscope/tokenizer.h"

namespace normscope {

struct Checkpoint {
  std::string path;  // the directory or file
  std::shared_ptr<const ModelWeights> weights;
  std::optional<Tokenizer> tokenizer;
  std::string no_tokenizer;  // why there is none, as a sentence
  // What was read in one of two ways, in sentences for the reader.
  std::vector<std::string> notes = {};
};

// A directory, a llama2.c file (.bin, with tokenizer.bin beside it), the name of a model that
// `normscope data get` fetched ("minilm", "stories15m"), or an id ("org/name") in the local Hugging Face
// cache ($HF_HUB_CACHE, $HF_HOME/hub, ~/.cache/huggingface/hub); nothing is downloaded. Throws InputError if
// there is no such model (with how to get it), the family is unknown, a tensor is missing, of another shape
// than config.json says, or not finite.
Checkpoint open_checkpoint(const std::string& name);

// What a model's directory holds beside the weights of its layers; all may be left out.
struct CheckpointExtras {
  struct File {
    std::string name, bytes;
  };
  std::vector<File> files = {};  // as they are: tokenizer.json, or vocab.json and merges.txt, vocab.txt, …
  // Of a head of classes, by their whole names ("bert.pooler.dense.weight", "classifier.weight", …), stored
  // as float32; and what the classes are called. Labels make the model one that classifies texts.
  std::vector<Tensor> tensors = {};
  std::vector<std::string> labels = {};
  std::optional<std::uint32_t> end_of_text = {}, padding = {};  // ids
  double dropout = 0;                                           // to go on training with
};

// Writes the model as open_checkpoint reads it back, number for number, and as the Hugging Face library does,
// float32: config.json, model.safetensors and the extra files. Families: gpt2, bert, distilbert.
//
// Norms: where all are LayerNorm of one eps, the model is one of the family as it is; a norm without affine
// part gets gains 1 and biases 0. Any other norm is unknown to the Hugging Face library. The directory then
// says so, and only Normscope reads it: model_type is "normscope-gpt2", normscope_norms names each norm, and
// the tensors are in normscope.safetensors, so that no program takes them for those of another model.
//
// The directory is written whole or not at all: it takes the place of an older checkpoint of ours, or of an
// empty directory, when every byte is on the disk. Holds the weights of one layer, or the words, at a time.
// Throws InputError if the family's layout cannot hold the model, a weight is not finite, or the directory
// holds anything else; Error if the disk is full, with the older checkpoint intact.
void write_checkpoint(const std::filesystem::path& directory, const ModelWeights& weights,
                      const CheckpointExtras& extras = {});

}  // namespace normscope

#pragma once
// Files of llama2.c: seven int32 (dim, hidden, layers, heads, key heads, vocabulary, positions; a negative
// vocabulary: the classifier is not the word embedding), then float32:
//
//   token_embedding  V × d
//   rms_att L × d · wq L × d × d · wk, wv L × k × d · wo L × d × d
//   rms_ffn L × d · w1 (gate) L × f × d · w2 (down) L × d × f · w3 (up) L × f × d
//   rms_final d · tables of angles (passed over): 2 × positions × half a head · wcls V × d, if it is not
//   shared
//
// all out × in. What follows, if anything, is the tokenizer.bin that belongs to it.
#include <filesystem>
#include <memory>
#include <string>

#include "checkpoint/families.h"
#include "checkpoint/tensor_source.h"
#include "io/bytes.h"

namespace normscope::checkpoint {

struct Llama2c {
  ModelPlan plan;
  std::shared_ptr<const TensorSource> tensors;  // under the names of Llama
  std::string tokenizer;                        // what follows the weights; empty: nothing does
};

// Throws InputError if the file is not as long as its header says.
Llama2c open_llama2c(const std::filesystem::path& path);
Llama2c read_llama2c(std::unique_ptr<io::Bytes> bytes, const std::string& label);

}  // namespace normscope::checkpoint

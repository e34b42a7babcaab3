// Any bytes handed to the readers of config.json and of an index of shards are a model's shape or a list of
// files, or rejected with InputError. An index begins with 'i'.
#include <cmath>

#include "checkpoint/families.h"
#include "checkpoint/tensor_set.h"
#include "normscope/error.h"

namespace {

using namespace normscope;

void read_config(std::string_view text) {
  const ModelSpec spec = checkpoint::plan_of(checkpoint::Config(text, "'input'")).spec;
  const BlockSpec& block = spec.block;
  if (spec.layers == 0 || spec.vocabulary == 0 || block.width_of_head() == 0) __builtin_trap();
  if (block.heads % block.key_head_count() != 0) __builtin_trap();
  if (block.rotary.frequencies.size() * 2 > block.width_of_head()) __builtin_trap();
  for (const double frequency : block.rotary.frequencies)
    if (!std::isfinite(frequency)) __builtin_trap();
}

void read_index(std::string_view text) {
  for (const auto& [file, tensors] : checkpoint::read_index(text, "'input'"))
    if (tensors.empty() || file.empty() || file == ".." || file.find('/') != std::string::npos)
      __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    if (bytes.starts_with('i'))
      read_index(bytes.substr(1));
    else
      read_config(bytes);
  } catch (const InputError&) {
  }
  return 0;
}

// Any bytes handed to the reader of llama2.c files are a model whose weights can be read, or rejected with
// InputError.
#include <array>

#include "checkpoint/llama2c.h"
#include "checkpoint/weights.h"
#include "normscope/error.h"
#include "normscope/tokenizer.h"

namespace {

using namespace normscope;

void read_everything(std::vector<std::byte> bytes) {
  checkpoint::Llama2c file =
      checkpoint::read_llama2c(io::bytes_in_memory(std::move(bytes), "'input'"), "'input'");
  const auto weights = checkpoint::model_weights(std::move(file.plan), std::move(file.tensors), "its header");
  const ModelSpec& spec = weights->spec();
  for (std::size_t layer = 0; layer < spec.layers; ++layer)
    if (weights->layer(layer).down.rows() != spec.block.feed_forward) __builtin_trap();
  const std::array<std::uint32_t, 1> last = {static_cast<std::uint32_t>(spec.vocabulary - 1)};
  if (weights->embeddings(last).cols() != spec.block.width) __builtin_trap();
  if (weights->head().output.rows() != spec.vocabulary) __builtin_trap();
  if (!file.tokenizer.empty()) Tokenizer::from_llama2c(file.tokenizer);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  try {
    read_everything({begin, begin + size});
  } catch (const InputError&) {
  }
  return 0;
}

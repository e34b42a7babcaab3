// Any bytes handed to the .safetensors reader are read or rejected with InputError.
#include "fuzz_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return read_everything(normscope::io::open_safetensors, data, size);
}

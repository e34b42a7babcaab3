// Any bytes handed to the mask reader are a mask or rejected with InputError, and a mask reads back as
// itself.
#include "io/mask_file.h"
#include "normscope/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    const normscope::Mask mask = normscope::io::mask_from_bytes(bytes, "'input'", std::nullopt, 512);
    if (normscope::io::mask_from_bytes(normscope::io::edge_list(mask), "'edges'") != mask) __builtin_trap();
    const normscope::MaskProperties properties = normscope::mask_properties(mask);
    if (properties.quasi_strongly_connected() != properties.radius.has_value()) __builtin_trap();
    if (properties.strongly_connected() != properties.diameter.has_value()) __builtin_trap();
  } catch (const normscope::InputError&) {
  }
  return 0;
}

#include "normscope/version.h"

// In this order.
// clang-format off
#include "core/targets.h"
#include <hwy/targets.h>
// clang-format on

#include <algorithm>
#include <cctype>

namespace normscope {

std::string version() {
  return NORMSCOPE_VERSION;
}

std::string commit() {
  return NORMSCOPE_COMMIT;
}

std::string instruction_set() {
#ifdef __EMSCRIPTEN__  // one target, and no Highway library to ask
  return "wasm simd128";
#else
  const std::int64_t supported = hwy::SupportedTargets() & HWY_TARGETS;
  std::string name = hwy::TargetName(supported & -supported);  // the lowest set bit is the best target
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
#endif
}

}  // namespace normscope

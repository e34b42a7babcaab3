#pragma once
// What every number that leaves the program carries.
#include <string>

namespace normscope {

std::string version();          // "0.1.0"
std::string commit();           // "a1b2c3d", "a1b2c3d-dirty" or "unknown"
std::string instruction_set();  // the one the kernels run with here: "avx2", "avx3", "sse4", …

}  // namespace normscope

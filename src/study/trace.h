#pragma once
// What the files of `scan --trace` say of their tensors beside the numbers.
#include <string>

namespace normscope {

// Metadata of a tensor whose rows hold the queries, keys or values of several heads, one after the other: the
// name under which the number of heads stands.
inline std::string trace_heads(const std::string& tensor) {
  return tensor + ".heads";
}

}  // namespace normscope

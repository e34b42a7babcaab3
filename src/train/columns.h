#pragma once
#include <cstddef>

namespace normscope {

// Columns of feature-major matrices come in this multiple: one vector of float under AVX2; wider vectors are
// capped to it.
constexpr std::size_t kColumns = 8;
constexpr std::size_t padded_columns(std::size_t tokens) {
  return (tokens + kColumns - 1) / kColumns * kColumns;
}

}  // namespace normscope

#pragma once
// Elements as bytes: to double, exactly, and back, rounded to nearest even.
#include <cstddef>
#include <span>
#include <string>

#include "normscope/tensor_file.h"

namespace normscope::io {

// Converts values.size() elements. `first` is the index of the first of them in the tensor and `where` names
// the tensor, both for messages: a 64-bit integer that is not exact in double and a bool other than 0 or 1
// are rejected.
void decode(DType dtype, bool big_endian, std::span<const std::byte> bytes, std::span<double> values,
            std::size_t first, const std::string& where);

// Little endian, to float: rounded to nearest even where the dtype is wider, beyond the range to infinity.
void decode(DType dtype, std::span<const std::byte> bytes, std::span<float> values, std::size_t first,
            const std::string& where);

// Little endian. Rejects what the dtype cannot hold.
void encode(DType dtype, std::span<const double> values, std::span<std::byte> bytes, std::size_t first,
            const std::string& where);

}  // namespace normscope::io

#pragma once
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "io/replace_file.h"
#include "normscope/tensor_file.h"

namespace normscope::io {

std::string_view safetensors_name(DType dtype);  // "F32", "BF16", …

// What stands before the data of these tensors, which follow in this order. Throws InputError that names
// `path` if names are not distinct, not UTF-8 or "__metadata__".
std::string safetensors_header(const std::string& path, std::span<const TensorInfo> tensors,
                               const std::map<std::string, std::string>& metadata);
// Little endian.
void append_floats(const Append& append, std::span<const float> values);

}  // namespace normscope::io

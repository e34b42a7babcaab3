#pragma once
#include <string_view>

#include "normscope/tensor_file.h"

namespace normscope::io {

std::string_view safetensors_name(DType dtype);  // "F32", "BF16", …

}  // namespace normscope::io

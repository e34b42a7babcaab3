#pragma once
// What numbers are held in.
#include <span>
#include <string_view>

namespace normscope {

enum class Precision { float32, float64 };
const char* name_of(Precision precision);
std::span<const Precision> values_of(Precision);
// Throws InputError.
Precision parse_precision(std::string_view name);

}  // namespace normscope

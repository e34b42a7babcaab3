#include "normscope/precision.h"

#include <fmt/core.h>

#include "normscope/error.h"

namespace normscope {

const char* name_of(Precision precision) {
  return precision == Precision::float32 ? "float32" : "float64";
}

std::span<const Precision> values_of(Precision) {
  static constexpr Precision all[] = {Precision::float32, Precision::float64};
  return all;
}

Precision parse_precision(std::string_view name) {
  for (const Precision precision : values_of({})) {
    if (name == name_of(precision)) return precision;
  }
  throw InputError(fmt::format("There is no precision '{}'; use float32 or float64.", name));
}

}  // namespace normscope

#pragma once
// Members of a file that may be anyone's; what is missing or of another kind is said by its name.
#include <fmt/core.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

#include "normscope/error.h"

namespace normscope {

template <class T>
T member(const nlohmann::ordered_json& json, const char* name, const char* file = "config.json") {
  const auto found = json.find(name);
  if (found == json.end()) throw InputError(fmt::format("The run's {} has no '{}'.", file, name));
  const bool readable = std::is_same_v<T, bool>          ? found->is_boolean()
                        : std::is_unsigned_v<T>          ? found->is_number_unsigned()
                        : std::is_floating_point_v<T>    ? found->is_number()
                        : std::is_same_v<T, std::string> ? found->is_string()
                                                         : true;
  if (!readable) throw InputError(fmt::format("The run's {} holds a '{}' that cannot be read.", file, name));
  return found->template get<T>();
}

// What is not finite is written as null.
inline double measure_member(const nlohmann::ordered_json& json, const char* name, const char* file) {
  const auto found = json.find(name);
  if (found != json.end() && found->is_null()) return std::numeric_limits<double>::quiet_NaN();
  return member<double>(json, name, file);
}

}  // namespace normscope

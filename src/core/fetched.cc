#include "core/fetched.h"

#include <algorithm>
#include <cstdlib>
#include <system_error>

namespace normscope {

std::optional<std::filesystem::path> path_in_environment(const char* variable) {
  const char* value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): nothing here sets variables
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::filesystem::path>(value);
}

std::optional<std::filesystem::path> data_directory() {
  if (auto own = path_in_environment("NORMSCOPE_DATA")) return own;
  // The XDG specification has relative paths ignored.
  if (const auto data = path_in_environment("XDG_DATA_HOME"); data && data->is_absolute())
    return *data / "normscope";
  if (const auto home = path_in_environment("HOME")) return *home / ".local" / "share" / "normscope";
  return std::nullopt;
}

bool is_plain_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= 96 && name.front() != '.' && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), allowed);
}

std::optional<std::string> fetched_directory(const std::string& name) {
  const auto data = data_directory();
  if (!data || !is_plain_name(name)) return std::nullopt;
  const std::filesystem::path directory = *data / name;
  std::error_code ignored;
  return std::filesystem::is_directory(directory, ignored) ? std::optional(directory.string()) : std::nullopt;
}

}  // namespace normscope

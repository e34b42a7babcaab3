#include "checkpoint/fetched.h"

#include "checkpoint/places.h"
#include "checkpoint/small_file.h"

namespace normscope::checkpoint {

std::optional<std::filesystem::path> data_directory() {
  if (auto own = path_in_environment("NORMSCOPE_DATA")) return own;
  // The XDG specification has relative paths ignored.
  if (const auto data = path_in_environment("XDG_DATA_HOME"); data && data->is_absolute())
    return *data / "normscope";
  if (const auto home = path_in_environment("HOME")) return *home / ".local" / "share" / "normscope";
  return std::nullopt;
}

std::optional<std::string> fetched_model(const std::string& name) {
  const auto data = data_directory();
  if (!data || !is_model_id(name) || name.find('/') != std::string::npos) return std::nullopt;
  const std::filesystem::path directory = *data / name;
  return is_folder(directory) ? std::optional(directory.string()) : std::nullopt;
}

}  // namespace normscope::checkpoint

#include "checkpoint/places.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "checkpoint/small_file.h"

namespace normscope::checkpoint {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> hugging_face_cache() {
  if (auto hub = path_in_environment("HF_HUB_CACHE")) return hub;
  if (const auto home = path_in_environment("HF_HOME")) return *home / "hub";
  if (const auto cache = path_in_environment("XDG_CACHE_HOME")) return *cache / "huggingface" / "hub";
  if (const auto home = path_in_environment("HOME")) return *home / ".cache" / "huggingface" / "hub";
  return std::nullopt;
}

bool is_part_of_id(std::string_view part) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !part.empty() && part.size() <= 96 && part.front() != '.' && part.front() != '-' &&
         std::all_of(part.begin(), part.end(), allowed);
}

std::optional<fs::path> main_snapshot(const fs::path& model) {
  constexpr std::uint64_t kLongestRef = 256;
  if (!is_file(model / "refs" / "main")) return std::nullopt;
  std::string commit = read_small_file(model / "refs" / "main", kLongestRef);
  commit.erase(std::min(commit.find_last_not_of(" \t\r\n") + 1, commit.size()));
  const fs::path snapshot = model / "snapshots" / commit;
  return is_part_of_id(commit) && is_folder(snapshot) ? std::optional(snapshot) : std::nullopt;
}

std::optional<fs::path> only_snapshot(const fs::path& model) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(model / "snapshots", error), end; !error && entry != end;
       entry.increment(error))
    if (is_folder(entry->path())) found.push_back(entry->path());
  return found.size() == 1 ? std::optional(found.front()) : std::nullopt;
}

}  // namespace

std::optional<fs::path> path_in_environment(const char* variable) {
  const char* value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): nothing here sets variables
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<fs::path>(value);
}

bool is_model_id(std::string_view name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) return is_part_of_id(name);
  return is_part_of_id(name.substr(0, slash)) && is_part_of_id(name.substr(slash + 1));
}

std::optional<fs::path> in_hugging_face_cache(std::string_view id) {
  const auto cache = hugging_face_cache();
  if (!cache || !is_model_id(id)) return std::nullopt;
  std::string folder = "models--" + std::string(id);
  const std::size_t slash = folder.find('/');
  if (slash != std::string::npos) folder.replace(slash, 1, "--");
  const auto main = main_snapshot(*cache / folder);
  return main ? main : only_snapshot(*cache / folder);
}

}  // namespace normscope::checkpoint

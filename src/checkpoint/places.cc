#include "checkpoint/places.h"

#include <algorithm>
#include <vector>

#include "checkpoint/small_file.h"
#include "core/fetched.h"

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

std::optional<fs::path> main_snapshot(const fs::path& model) {
  constexpr std::uint64_t kLongestRef = 256;
  if (!is_file(model / "refs" / "main")) return std::nullopt;
  std::string commit = read_small_file(model / "refs" / "main", kLongestRef);
  commit.erase(std::min(commit.find_last_not_of(" \t\r\n") + 1, commit.size()));
  const fs::path snapshot = model / "snapshots" / commit;
  return is_plain_name(commit) && is_folder(snapshot) ? std::optional(snapshot) : std::nullopt;
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

bool is_model_id(std::string_view name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) return is_plain_name(name);
  return is_plain_name(name.substr(0, slash)) && is_plain_name(name.substr(slash + 1));
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

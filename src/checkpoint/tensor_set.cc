#include "checkpoint/tensor_set.h"

#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/small_file.h"
#include "io/file_errors.h"
#include "normscope/error.h"
#include "text/node.h"

namespace normscope::checkpoint {
namespace {

namespace fs = std::filesystem;
using io::quoted_name;
using io::quoted_path;
using io::reject;

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
// A process may hold about a thousand files open; the largest models have a few hundred.
constexpr std::size_t kMostFiles = 768;

std::vector<std::string> names_ending_in(const fs::path& directory, std::string_view suffix) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (name.ends_with(suffix) && is_file(entry->path())) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

[[noreturn]] void reject_without_tensors(const fs::path& directory) {
  const std::string label = quoted_path(directory.string());
  const std::vector<std::string> pickles = names_ending_in(directory, ".bin");
  if (!pickles.empty())
    reject(
        label,
        fmt::format("holds weights as a Python pickle only ({}), which can run any program and is not read",
                    quoted_name(pickles.front())),
        "convert it with save_pretrained(directory, safe_serialization=True) of transformers");
  reject(label, fmt::format("holds neither {} nor {} nor any other .safetensors file", kSingle, kIndex),
         "download the model again, or convert its weights to safetensors");
}

// A name that stays in its directory on every system.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\:\0", 4)) == std::string_view::npos;
}

}  // namespace

std::map<std::string, std::vector<std::string>> read_index(std::string_view json, const std::string& label) {
  const nlohmann::json index = text::parse_json(json, label);
  const text::Node map = text::Node(index, label).at("weight_map");
  if (!map.value().is_object()) map.fail("expected an object that names a file for each tensor");
  std::map<std::string, std::vector<std::string>> files;
  for (const auto& [tensor, file] : map.value().items()) {
    if (!file.is_string())
      reject(label, fmt::format("names no file for tensor {}", quoted_name(tensor)), "save it again");
    const auto& name = file.get_ref<const std::string&>();
    if (!is_plain_name(name))
      reject(label,
             fmt::format("names {} for tensor {}, which is not the name of a file beside it",
                         quoted_name(name), quoted_name(tensor)),
             "an index may only name files of its own directory");
    files[name].push_back(tensor);
  }
  if (files.empty()) reject(label, "lists no tensors in its weight_map", "save it again");
  if (files.size() > kMostFiles)
    reject(label, fmt::format("names {} files, but at most {} are opened", files.size(), kMostFiles),
           "save the model in larger files");
  return files;
}

TensorSet TensorSet::open(const fs::path& directory) {
  const auto single = [&](const std::string& name) {
    TensorSet set(quoted_path((directory / name).string()));
    set.add_file(directory / name);
    return set;
  };
  if (is_file(directory / kSingle)) return single(kSingle);
  if (is_file(directory / kIndex)) {
    TensorSet set(quoted_path((directory / kIndex).string()));
    set.add_indexed(directory / kIndex);
    return set;
  }
  const std::vector<std::string> names = names_ending_in(directory, ".safetensors");
  if (names.empty()) reject_without_tensors(directory);
  if (names.size() > 1)
    reject(quoted_path(directory.string()),
           fmt::format("holds several .safetensors files ({}) and no {}", io::quoted_names(names), kIndex),
           fmt::format("add the index, or name the one to be read {}", kSingle));
  return single(names.front());
}

void TensorSet::add_file(const fs::path& path) {
  const std::size_t file = files_.size();
  files_.push_back({quoted_path(path.string()), TensorFile::open(path.string())});
  const File& added = files_.back();
  const auto reject_second = [&](const std::string& name) {
    reject(added.label,
           fmt::format("holds tensor {}, which another file of the index holds too", quoted_name(name)),
           "save the model again");
  };
  for (std::size_t i = 0; i < added.tensors.tensors().size(); ++i) {
    const std::string& name = added.tensors.tensors()[i].name;
    if (unreadable_.contains(name) || !places_.emplace(name, Place{file, i}).second) reject_second(name);
  }
  for (const UnreadableTensor& tensor : added.tensors.unreadable())
    if (places_.contains(tensor.name) || !unreadable_.emplace(tensor.name, tensor.reason).second)
      reject_second(tensor.name);
}

void TensorSet::add_indexed(const fs::path& index) {
  for (const auto& [file, tensors] : read_index(read_small_file(index, kLongestIndex), label_)) {
    const fs::path path = index.parent_path() / file;
    if (!is_file(path))
      reject(quoted_path(path.string()), fmt::format("is missing, though {} names it", label_),
             "download the model again: all its files are needed");
    const std::size_t number = files_.size();
    add_file(path);
    for (const std::string& tensor : tensors) {
      const auto place = places_.find(tensor);
      const bool here = place != places_.end() && place->second.file == number;
      if (!here && !unreadable_.contains(tensor))
        reject(files_.back().label,
               fmt::format("holds no tensor {}, though {} says so", quoted_name(tensor), label_),
               "download the model again: the files belong to different versions");
    }
  }
}

const TensorInfo* TensorSet::find(const std::string& name) const {
  const auto place = places_.find(name);
  if (place != places_.end()) return &files_[place->second.file].tensors.tensors()[place->second.tensor];
  const auto reason = unreadable_.find(name);
  if (reason != unreadable_.end()) throw InputError(reason->second);
  return nullptr;
}

void TensorSet::read_rows(const std::string& name, std::size_t first, std::span<float> into) const {
  const Place place = places_.at(name);
  files_[place.file].tensors.read_rows(place.tensor, first, into);
}

std::string TensorSet::label_of(const std::string& name) const {
  const auto place = places_.find(name);
  return place == places_.end() ? label_ : files_[place->second.file].label;
}

}  // namespace normscope::checkpoint

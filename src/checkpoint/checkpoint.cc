#include "normscope/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "checkpoint/config.h"
#include "checkpoint/families.h"
#include "checkpoint/llama2c.h"
#include "checkpoint/places.h"
#include "checkpoint/small_file.h"
#include "checkpoint/tensor_set.h"
#include "checkpoint/tokenizer_files.h"
#include "checkpoint/weights.h"
#include "core/fetched.h"
#include "core/spelling.h"
#include "io/file_errors.h"
#include "normscope/error.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;
using namespace checkpoint;
using io::quoted_name;
using io::quoted_path;
using io::reject;

constexpr const char* kPackedLlama2c = "llama2.data";  // weights and tokenizer in one file

Checkpoint open_llama2c_file(const fs::path& path) {
  Llama2c file = open_llama2c(path);
  const fs::path beside = path.parent_path() / "tokenizer.bin";
  FoundTokenizer found;
  if (!file.tokenizer.empty()) {
    const std::string label = fmt::format("{} (what follows the weights)", quoted_path(path.string()));
    found = {Tokenizer::from_llama2c(file.tokenizer, label), ""};
  } else if (is_file(beside)) {
    found = tokenizer_or_reason([&] {
      return Tokenizer::from_llama2c(read_small_file(beside, kLongestTokenizer),
                                     quoted_path(beside.string()));
    });
  } else {
    found.reason = fmt::format(
        "There is no tokenizer.bin beside {}; put the one of llama2.c there, or give "
        "token ids.",
        quoted_path(path.string()));
  }
  return {path.string(), model_weights(std::move(file.plan), std::move(file.tensors), "its header"),
          std::move(found.tokenizer), std::move(found.reason)};
}

Checkpoint open_directory(const fs::path& directory) {
  const fs::path path = directory / "config.json";
  if (!is_file(path) && is_file(directory / kPackedLlama2c))
    return open_llama2c_file(directory / kPackedLlama2c);
  if (!is_file(path))
    reject(quoted_path(directory.string()), "holds no config.json",
           "name the directory of a Hugging Face model, or download it again");
  const std::string label = quoted_path(path.string());
  ModelPlan plan = plan_of(Config(read_small_file(path, kLongestConfig), label));
  const Family::Vocabulary vocabulary = plan.family.vocabulary;
  auto tensors = std::make_shared<TensorSet>(TensorSet::open(directory));
  Checkpoint checkpoint;
  checkpoint.path = directory.string();
  checkpoint.weights = model_weights(std::move(plan), std::move(tensors), label, &checkpoint.notes);
  FoundTokenizer found = find_tokenizer(directory, vocabulary);
  checkpoint.tokenizer = std::move(found.tokenizer);
  checkpoint.no_tokenizer = std::move(found.reason);
  return checkpoint;
}

Checkpoint open_file(const fs::path& path) {
  const std::string extension = path.extension().string();
  if (extension == ".bin" || extension == ".data") return open_llama2c_file(path);
  reject(quoted_path(path.string()), "is a file, but a model is a directory or a .bin file of llama2.c",
         "name the directory that holds its config.json");
}

[[noreturn]] void reject_unknown(const std::string& name) {
  if (!is_model_id(name)) reject(quoted_path(name), "does not exist", "check the path");
  const std::vector<std::string> offered = {"minilm", "stories15m"};
  if (std::find(offered.begin(), offered.end(), name) != offered.end())
    reject(quoted_name(name), "is not on this machine yet",
           fmt::format("get it with: normscope data get {}", name));
  const auto meant = nearest_spelling(name, offered);
  reject(
      quoted_name(name),
      fmt::format(
          "is neither a directory nor a file, nor a model in the local Hugging Face cache{}, and nothing is "
          "downloaded without being asked",
          meant ? fmt::format(" (did you mean '{}'?)", *meant) : ""),
      fmt::format(
          "get it with: huggingface-cli download {}, or a small model with: normscope data get minilm",
          name));
}

}  // namespace

Checkpoint open_checkpoint(const std::string& name) {
  if (name.empty() || name.find('\0') != std::string::npos)
    reject(quoted_name(name), "is not the name of a model",
           "give a directory, a .bin file of llama2.c or an id");
  if (is_folder(name)) return open_directory(name);
  if (is_file(name)) return open_file(name);
  if (const auto fetched = fetched_directory(name)) return open_directory(*fetched);
  if (const auto cached = in_hugging_face_cache(name)) return open_directory(*cached);
  reject_unknown(name);
}

}  // namespace normscope

#pragma once
// The tensors of a model's directory: one .safetensors file, or several with an index that says which tensor
// is in which (model.safetensors.index.json).
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "checkpoint/tensor_source.h"

namespace normscope::checkpoint {

// The content of an index: tensors by the file that holds them. Throws InputError if a file is not named as
// one beside the index.
std::map<std::string, std::vector<std::string>> read_index(std::string_view json, const std::string& label);

class TensorSet : public TensorSource {
 public:
  // Takes model.safetensors, else model.safetensors.index.json, else the only *.safetensors of the directory.
  // Every tensor of the index must be in the file it names, and in no other; files are named without a path.
  static TensorSet open(const std::filesystem::path& directory);

  const TensorInfo* find(const std::string& name) const override;
  void read_rows(const std::string& name, std::size_t first, std::span<float> into) const override;
  std::string label() const override { return label_; }
  std::string label_of(const std::string& name) const override;

 private:
  struct File {
    std::string label;
    TensorFile tensors;
  };
  struct Place {
    std::size_t file, tensor;
  };

  explicit TensorSet(std::string label) : label_(std::move(label)) {}
  void add_file(const std::filesystem::path& path);
  void add_indexed(const std::filesystem::path& index);

  std::string label_;
  std::vector<File> files_;
  std::unordered_map<std::string, Place> places_;
  std::unordered_map<std::string, std::string> unreadable_;  // and why
};

}  // namespace normscope::checkpoint

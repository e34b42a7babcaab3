#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "checkpoint/layout.h"
#include "checkpoint/small_file.h"
#include "checkpoint/tensor_set.h"
#include "checkpoint/weights.h"
#include "io/file_errors.h"
#include "io/replace_directory.h"
#include "io/replace_file.h"
#include "io/safetensors.h"
#include "normscope/checkpoint.h"
#include "normscope/error.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;
using namespace checkpoint;
using io::quoted_name;
using io::quoted_path;
using io::reject;

constexpr const char *kConfig = "config.json", *kTensors = "model.safetensors",
                     *kOwnTensors = "normscope.safetensors";

// Replacing a directory removes what is in it: that must be files only, and config.json one of ours.
bool is_ours(const fs::path& directory) {
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error))
    if (entry->is_symlink(error) || !entry->is_regular_file(error)) return false;
  if (error || !is_file(directory / kConfig)) return false;
  const auto config =
      nlohmann::json::parse(read_small_file(directory / kConfig, kLongestConfig), nullptr, false);
  return config.is_object() && config.contains("normscope_version");
}

void require_replaceable(const fs::path& directory, const std::string& label) {
  if (!is_folder(directory)) return;
  std::error_code error;
  if (fs::is_empty(directory, error) && !error) return;
  if (!is_ours(directory))
    reject(label, "holds files that are not a checkpoint written by normscope, and would be lost",
           "name a new or an empty directory");
}

void require_file_names(const std::vector<CheckpointExtras::File>& files, const std::string& label) {
  std::set<std::string_view> names = {kConfig, kTensors, kOwnTensors};
  for (const CheckpointExtras::File& file : files) {
    const fs::path path(file.name);
    if (path.empty() || path.filename() != path || file.name == "." || file.name == ".." ||
        file.name.ends_with(".safetensors") || !names.insert(file.name).second)
      reject(label, fmt::format("cannot hold a file named {} beside the model's", quoted_name(file.name)),
             "choose another name");
  }
}

// A model's tensors, and what else the file is to hold.
class Writing {
 public:
  Writing(const ModelWeights& weights, const ModelPlan& plan, std::span<const Tensor> extras,
          const std::string& label)
      : weights_(weights), plan_(plan), extras_(extras), label_(label) {
    show([&](const std::string& name, std::vector<std::size_t> shape, std::span<const float> values) {
      const auto wrong =
          std::find_if_not(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
      if (wrong != values.end())
        reject(fmt::format("{} (tensor {})", label_, quoted_name(name)),
               fmt::format("would hold {} at number {}", *wrong, wrong - values.begin()),
               "a model is written only if all its weights are finite");
      infos_.push_back({name, DType::float32, std::move(shape)});
    });
  }

  void write(const fs::path& path) const {
    // The Hugging Face library reads only files that say which library they are for.
    const std::string header = io::safetensors_header(path.string(), infos_, {{"format", "pt"}});
    io::replace_file(path.string(), [&](const io::Append& append) {
      append(std::as_bytes(std::span(header)));
      show([&](const std::string&, const std::vector<std::size_t>&, std::span<const float> values) {
        io::append_floats(append, values);
      });
    });
  }

 private:
  void show(const ShowTensor& to) const {
    show_tensors(weights_, plan_, to);
    for (const Tensor& tensor : extras_) {
      std::size_t size = 1;
      for (const std::size_t extent : tensor.shape) size *= extent;
      const std::vector<float> values(tensor.values.begin(), tensor.values.end());
      if (values.size() != size)
        reject(fmt::format("{} (tensor {})", label_, quoted_name(tensor.name)),
               fmt::format("has {} values, but its shape holds {}", values.size(), size),
               "give as many values as the shape holds");
      to(tensor.name, tensor.shape, values);
    }
  }

  const ModelWeights& weights_;
  const ModelPlan& plan_;
  std::span<const Tensor> extras_;
  std::string label_;
  std::vector<TensorInfo> infos_;
};

void write_bytes(const fs::path& path, std::string_view bytes) {
  io::replace_file(path.string(), [&](const io::Append& append) { append(std::as_bytes(std::span(bytes))); });
}

}  // namespace

void write_checkpoint(const fs::path& directory, const ModelWeights& weights,
                      const CheckpointExtras& extras) {
  const std::string label = quoted_path(directory.string());
  require_replaceable(directory, label);
  require_file_names(extras.files, label);
  const std::size_t types = written_family(weights.spec().family).type.empty() ? 0 : weights.types().rows();
  Layout layout = layout_of(weights.spec(), types, extras, label);
  const Writing tensors(weights, layout.plan, extras.tensors, label);
  io::replace_directory(directory, [&](const fs::path& made) {
    for (const CheckpointExtras::File& file : extras.files) write_bytes(made / file.name, file.bytes);
    write_bytes(made / kConfig, config_text(layout.config));
    tensors.write(made / (layout.plan.own_norms ? kOwnTensors : kTensors));
    // What cannot be read back does not take the place of what can.
    model_weights(layout.plan, std::make_shared<TensorSet>(TensorSet::open(made)), label);
  });
}

}  // namespace normscope

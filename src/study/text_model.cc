#include "study/text_model.h"

#include <span>
#include <utility>

#include "normscope/checkpoint.h"
#include "normscope/transformer.h"

namespace normscope {
namespace {

// The head of classes under the names that the Hugging Face library has for it.
std::vector<Tensor> head_tensors(const TextRun& run) {
  constexpr std::pair<const char*, const char*> names[] = {
      {"pooler.weight", "bert.pooler.dense.weight"},
      {"pooler.bias", "bert.pooler.dense.bias"},
      {"classifier.weight", "classifier.weight"},
      {"classifier.bias", "classifier.bias"},
  };
  std::vector<Tensor> tensors;
  for (const ParameterSlot& slot : parameter_slots(run.spec)) {
    for (const auto& [ours, theirs] : names) {
      if (slot.name != ours) continue;
      const auto part = std::span(run.parameters).subspan(slot.offset, slot.size());
      std::vector<std::size_t> shape = {slot.rows, slot.cols};
      if (slot.name.ends_with(".bias")) shape = {slot.size()};
      tensors.push_back({theirs, DType::float32, std::move(shape), {part.begin(), part.end()}});
    }
  }
  return tensors;
}

}  // namespace

void write_text_model(const std::filesystem::path& directory, const TextRun& run,
                      const TrainingTokenizer& tokenizer, const std::vector<std::string>& classes) {
  CheckpointExtras extras;
  for (const TokenizerFile& file : tokenizer.files) extras.files.push_back({file.name, file.content});
  extras.labels = classes;
  extras.dropout = run.spec.model.block.dropout;
  if (run.spec.classes > 0) {
    extras.tensors = head_tensors(run);
    extras.padding = tokenizer.padding;
  } else {
    extras.end_of_text = tokenizer.end_of_text;
  }
  std::filesystem::create_directories(directory.parent_path());
  write_checkpoint(directory, *trained_model(run.spec, run.parameters), extras);
}

}  // namespace normscope

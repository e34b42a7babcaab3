#pragma once
// Models that were trained on text, in files: as `train` and `paper` leave them.
#include <filesystem>
#include <string>
#include <vector>

#include "normscope/text_training.h"
#include "normscope/training_tokenizer.h"

namespace normscope {

// The directory of a Hugging Face model, with the tokenizer's files; of a classifier with its head and the
// names of its classes. Its parents are created.
void write_text_model(const std::filesystem::path& directory, const TextRun& run,
                      const TrainingTokenizer& tokenizer, const std::vector<std::string>& classes);

}  // namespace normscope

#include "checkpoint/tokenizer_files.h"

#include <fmt/format.h>

#include "checkpoint/small_file.h"
#include "io/file_errors.h"
#include "normscope/error.h"

namespace normscope::checkpoint {
namespace {

namespace fs = std::filesystem;

std::string label_of(const fs::path& path) {
  return io::quoted_path(path.string());
}

// Cased models say so in a file of their own; without one BERT's vocabulary is of lower case.
bool lower_case(const fs::path& directory) {
  const fs::path path = directory / "tokenizer_config.json";
  if (!is_file(path)) return true;
  return Config(read_small_file(path, kLongestConfig), label_of(path)).flag_or("do_lower_case", true);
}

}  // namespace

FoundTokenizer tokenizer_or_reason(const std::function<Tokenizer()>& read) {
  try {
    return {read(), ""};
  } catch (const Error& error) {
    return {std::nullopt, error.what()};
  }
}

FoundTokenizer find_tokenizer(const fs::path& directory, Family::Vocabulary vocabulary) {
  const auto text = [&](const char* name) { return read_small_file(directory / name, kLongestTokenizer); };
  const auto label = [&](const char* name) { return label_of(directory / name); };
  if (is_file(directory / "tokenizer.json"))
    return tokenizer_or_reason(
        [&] { return Tokenizer::from_json(text("tokenizer.json"), label("tokenizer.json")); });
  if (vocabulary == Family::Vocabulary::bert && is_file(directory / "vocab.txt"))
    return tokenizer_or_reason([&] {
      return Tokenizer::from_bert_vocab(text("vocab.txt"), {.lowercase = lower_case(directory)},
                                        label("vocab.txt"));
    });
  if (vocabulary == Family::Vocabulary::gpt2 && is_file(directory / "vocab.json") &&
      is_file(directory / "merges.txt"))
    return tokenizer_or_reason(
        [&] { return Tokenizer::from_gpt2(text("vocab.json"), text("merges.txt"), label("vocab.json")); });
  return {std::nullopt,
          fmt::format("{} holds no tokenizer that is read here: tokenizer.json{} is expected; save one with "
                      "save_pretrained of a fast tokenizer of transformers, or give token ids.",
                      label_of(directory),
                      vocabulary == Family::Vocabulary::bert   ? " or vocab.txt"
                      : vocabulary == Family::Vocabulary::gpt2 ? ", or vocab.json with merges.txt,"
                                                               : "")};
}

}  // namespace normscope::checkpoint

#pragma once
// What the commands on trained models share: a model, a text, and the windows of tokens it is read in.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/common.h"
#include "normscope/checkpoint.h"
#include "normscope/text_windows.h"
#include "report/model_on_text.h"

namespace normscope::cli {

struct TextCall {
  std::string model, text, ids, window, stride, samples;
};

// MODEL (unless the command names it otherwise), --text, --ids, --window, --stride, --samples.
void add_model_option(CLI::App& command, TextCall& call);
void add_text_options(CLI::App& command, TextCall& call);

struct ModelText {
  std::string source;  // of the text, for people
  std::string text;    // empty with --ids
  std::vector<Token> tokens;
  std::vector<TextWindow> windows;
  std::size_t window = 0, stride = 0;
  std::vector<std::string> notes;  // what a reader should know: the text was cut, …

  std::vector<std::vector<std::uint32_t>> ids() const;
  // A token as the text has it; special and id-only tokens as the vocabulary spells them.
  std::string spelled(const Checkpoint& checkpoint, const Token& token) const;
};

// For the page of a run, and its options in config.json.
ModelOnText describe(const Checkpoint& checkpoint, const TextCall& call, const ModelText& text);
nlohmann::ordered_json text_options(const TextCall& call, const ModelText& text);

// Throws InputError unless exactly one of --text and --ids is given, if the model has no tokenizer, an id is
// not in the vocabulary, or the text is empty. The longest window is what the model has positions for, at
// most 1024.
ModelText read_model_text(const Checkpoint& checkpoint, const TextCall& call);

// "standard input", or the path made printable.
std::string label_of_source(const std::string& path);
// The whole of a file or of standard input ("-").
std::string read_text_file(const std::string& path, std::string_view option);

}  // namespace normscope::cli

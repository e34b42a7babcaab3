#pragma once
// What the studies of trained models share: a model, a text, and the windows of tokens it is read in.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "normscope/checkpoint.h"
#include "normscope/mask.h"
#include "normscope/text_windows.h"
#include "result/model_on_text.h"
#include "result/options.h"
#include "result/text_settings.h"

namespace normscope {

// A text, or token ids, that the caller holds in memory; `text` or `ids` of the options then name them for people.
struct HeldText {
  std::optional<std::string> text = {};
  std::optional<std::vector<std::uint32_t>> ids = {};
};

struct TextOptions {
  std::string model, text, ids;
  std::optional<std::size_t> window, stride;
  std::size_t samples = 1;
  HeldText held = {};

  static void describe(auto& visit, auto& self) {
    constexpr auto most = static_cast<double>(Mask::most_tokens);
    visit.input("MODEL", self.model,
                "A Hugging Face directory, an id in its local cache, a llama2.c file, or a model fetched by "
                "`normscope data get`");
    visit("text", self.text, "The text; - is standard input", OptionFacts{.type = "FILE"});
    visit("ids", self.ids, "Token ids in its place: numbers in a text file, or an .npy",
          OptionFacts{.type = "FILE"});
    visit("window", self.window, "Tokens read at once",
          OptionFacts{.low = 1, .high = most, .otherwise = "what the model has positions for, at most 1024"});
    visit("stride", self.stride, "A window every so many tokens",
          OptionFacts{.low = 1, .high = most, .otherwise = "the window"});
    visit("samples", self.samples, "Windows at most", OptionFacts{.low = 1, .high = 1e6});
  }
};

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

// Throws InputError unless exactly one of --text and --ids is given, if the model has no tokenizer, an id is
// not in the vocabulary, or the text is empty. The longest window is what the model has positions for, at
// most 1024.
ModelText read_model_text(const Checkpoint& checkpoint, const TextOptions& options);

TextSettings text_settings(const TextOptions& options, const ModelText& text);
// For the page of a run.
ModelOnText model_on_text(const Checkpoint& checkpoint, const TextOptions& options, const ModelText& text);

// "standard input", or the path made printable.
std::string label_of_source(const std::string& path);
// The whole of a file or of standard input ("-").
std::string read_text_file(const std::string& path, std::string_view option);
// Its beginning, of a file of any size: so many bytes and no more, up to the end of a line there if it has one. What is
// compressed is unpacked as a whole.
struct TextStart {
  std::string text;
  bool whole = true;
};
TextStart read_text_start(const std::string& path, std::string_view option, std::uint64_t bytes);

}  // namespace normscope

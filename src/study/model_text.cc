#include "study/model_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/printable.h"
#include "core/read_number.h"
#include "io/text_bytes.h"
#include "normscope/error.h"
#include "normscope/tensor_file.h"
#include "study/parse.h"
#include "text/utf8.h"

namespace normscope {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 28;
constexpr std::size_t kLongestWindow = 1024;

// What stands in the place of an id, which may be anything: a whole text, bytes of another kind of file.
InputError no_id(const std::string& path, std::size_t line, std::size_t number, std::string_view found) {
  constexpr std::size_t most = 24;
  return InputError(fmt::format(
      "--ids: line {} of {}, number {} of all, is '{}{}', which is no token id: they are whole numbers "
      "from 0 on, with spaces, commas or line breaks between them.",
      line, label_of_source(path), number, printable(found.substr(0, most)), found.size() > most ? "…" : ""));
}

std::vector<std::uint32_t> parse_ids(const std::string& path) {
  std::vector<std::uint32_t> ids;
  const auto take = [&](std::uint64_t id) { ids.push_back(static_cast<std::uint32_t>(id)); };
  if (path.ends_with(".npy")) {
    for (const double value : read_tensor(path).values) {
      if (!(value >= 0 && value < 0x1p32 && value == std::floor(value)))
        throw InputError(
            fmt::format("--ids: number {} of '{}' is {}, which is no token id: they are whole, from 0 on.",
                        ids.size() + 1, printable(path), value));
      take(static_cast<std::uint64_t>(value));
    }
    return ids;
  }
  const std::string text = read_text_file(path, "--ids");
  std::size_t line = 1;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" \t\r\n,", i), text.size());
    if (end > i) {
      const auto id = read_number<std::uint32_t>(std::string_view(text).substr(i, end - i));
      if (!id) throw no_id(path, line, ids.size() + 1, std::string_view(text).substr(i, end - i));
      take(*id);
    }
    line += end < text.size() && text[end] == '\n';
    i = end + 1;
  }
  return ids;
}

void read_tokens(const Checkpoint& checkpoint, const TextOptions& options, ModelText& result) {
  if (!options.text.empty() && !options.ids.empty())
    throw InputError("--text and --ids both say what the model reads; give one of them.");
  if (options.text.empty() && options.ids.empty()) {
    throw InputError("Give the text as --text FILE ('-' is standard input), or its tokens as --ids FILE.");
  }
  if (!options.ids.empty()) {
    result.source = label_of_source(options.ids);
    for (const std::uint32_t id : options.held.ids ? *options.held.ids : parse_ids(options.ids))
      result.tokens.push_back({id, 0, 0, false});
    return;
  }
  if (!checkpoint.tokenizer) {
    throw InputError(fmt::format("{} Give token ids with --ids FILE instead.", checkpoint.no_tokenizer));
  }
  result.source = label_of_source(options.text);
  result.text = options.held.text ? *options.held.text : read_text_file(options.text, "--text");
  result.tokens = checkpoint.tokenizer->encode(result.text);
  if (!text::is_valid_utf8(result.text))
    result.notes.emplace_back("The text is not all UTF-8; what is not was read as U+FFFD.");
  if (result.text.find('\0') != std::string::npos)
    result.notes.emplace_back("The text holds zero bytes; is it a text?");
}

}  // namespace

std::string label_of_source(const std::string& path) {
  return path == "-" ? "standard input" : printable(path);
}

namespace {

std::unique_ptr<io::Bytes> open_file(const std::string& path, std::string_view option) {
  std::error_code unreadable;
  if (std::filesystem::is_directory(path, unreadable))
    throw InputError(
        fmt::format("{}: '{}' is a directory; name a text file in it.", option, printable(path)));
  return io::open_text(path, kMostBytes).bytes;
}

}  // namespace

TextStart read_text_start(const std::string& path, std::string_view option, std::uint64_t bytes) {
  const auto file = open_file(path, option);
  TextStart start{std::string(std::min(file->size(), bytes), '\0'), file->size() <= bytes};
  file->read(0, std::as_writable_bytes(std::span(start.text)));
  if (start.whole) return start;
  if (const auto line = start.text.rfind('\n'); line != std::string::npos) start.text.resize(line + 1);
  return start;
}

std::string read_text_file(const std::string& path, std::string_view option) {
  const auto bytes = open_file(path, option);
  if (bytes->size() > kMostBytes) {
    throw InputError(fmt::format("{}: '{}' is larger than {} MiB; give a part of it.", option,
                                 printable(path), kMostBytes >> 20));
  }
  std::string text(bytes->size(), '\0');
  bytes->read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

std::vector<std::vector<std::uint32_t>> ModelText::ids() const {
  std::vector<std::vector<std::uint32_t>> result;
  for (const TextWindow& each : windows) result.push_back(each.ids());
  return result;
}

std::string ModelText::spelled(const Checkpoint& checkpoint, const Token& token) const {
  if (token.end > token.begin && token.end <= text.size())
    return text.substr(token.begin, token.end - token.begin);
  if (checkpoint.tokenizer) {
    if (const auto name = checkpoint.tokenizer->token(token.id)) return *name;
  }
  return fmt::format("#{}", token.id);
}

ModelOnText model_on_text(const Checkpoint& checkpoint, const TextOptions& options, const ModelText& text) {
  const ModelSpec& spec = checkpoint.weights->spec();
  ModelOnText result;
  result.model = printable(options.model);
  result.family = spec.family;
  result.text = text.source;
  result.layers = spec.layers;
  result.heads = spec.block.heads;
  result.width = spec.block.width;
  result.head_width = spec.block.width_of_head();
  result.windows = text.windows.size();
  for (const TextWindow& window : text.windows) result.tokens += window.tokens.size();
  result.notes = checkpoint.notes;
  result.notes.insert(result.notes.end(), text.notes.begin(), text.notes.end());
  return result;
}

TextSettings text_settings(const TextOptions& options, const ModelText& text) {
  return {options.model, options.text.empty() ? options.ids : options.text, text.window, text.stride,
          text.windows.size()};
}

ModelText read_model_text(const Checkpoint& checkpoint, const TextOptions& options) {
  check_options(options);
  const ModelSpec& spec = checkpoint.weights->spec();
  ModelText result;
  read_tokens(checkpoint, options, result);
  const std::size_t added = count_added(result.tokens), inner = result.tokens.size() - added;
  if (inner == 0) throw InputError(fmt::format("The text of {} has no tokens.", result.source));
  for (std::size_t i = 0; i < result.tokens.size(); ++i) {
    const Token& token = result.tokens[i];
    if (token.id < spec.vocabulary) continue;
    if (!options.ids.empty()) {
      throw InputError(
          fmt::format("--ids: {} in {}, number {} of them, is not in the model's vocabulary of {}.", token.id,
                      result.source, i + 1, spec.vocabulary));
    }
    throw InputError(
        fmt::format("Token {} of {} is not in the model's vocabulary of {}; its tokenizer belongs "
                    "to another model.",
                    token.id, result.source, spec.vocabulary));
  }
  const std::size_t most = spec.positions > 0 ? spec.positions : Mask::most_tokens;
  result.window =
      options.window ? require_count(*options.window, "--window", 1, most) : std::min(most, kLongestWindow);
  result.stride = options.stride.value_or(result.window);
  const std::size_t samples = options.samples;
  // Special tokens stand in every window, so neighbours would leave out as many.
  if (!options.stride && result.stride > added) result.stride -= added;
  result.windows = text_windows(result.tokens, result.window, result.stride, samples);
  std::size_t last = 0;
  for (const TextWindow& each : result.windows)
    last = std::max(last, each.first + each.tokens.size() - count_added(each.tokens));
  if (last < inner) {
    const std::size_t count = result.windows.size();
    result.notes.push_back(fmt::format(
        "The text has {} tokens; {} window{} of {} {} read, up to its token {}. More: --samples, --window.",
        inner, count, count == 1 ? "" : "s", result.windows.front().tokens.size(),
        count == 1 ? "was" : "were", last));
  }
  return result;
}

}  // namespace normscope

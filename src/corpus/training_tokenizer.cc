#include "normscope/training_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "checkpoint/small_file.h"
#include "checkpoint/tokenizer_files.h"
#include "core/fetched.h"
#include "corpus/fetched_sets.h"
#include "io/file_errors.h"
#include "normscope/error.h"
#include "text/locality.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"
#include "text/utf8.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;
using checkpoint::is_file;
using checkpoint::is_folder;
using checkpoint::kLongestConfig;
using checkpoint::kLongestTokenizer;
using checkpoint::read_small_file;
using nlohmann::json;

constexpr const char* kEndOfText = "<|endoftext|>";

std::optional<std::uint32_t> first_known(const Tokenizer& tokenizer,
                                         std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const auto id = tokenizer.id(name)) return id;
  return std::nullopt;
}

// "eos_token" of tokenizer_config.json: a string, or an object with its "content".
std::optional<std::uint32_t> configured_end(const Tokenizer& tokenizer,
                                            std::span<const TokenizerFile> files) {
  for (const TokenizerFile& file : files) {
    if (file.name != "tokenizer_config.json") continue;
    const json config = json::parse(file.content, nullptr, false);
    if (!config.is_object() || !config.contains("eos_token")) return std::nullopt;
    const json& end = config["eos_token"];
    const json& name = end.is_object() && end.contains("content") ? end["content"] : end;
    return name.is_string() ? tokenizer.id(name.get_ref<const std::string&>()) : std::nullopt;
  }
  return std::nullopt;
}

TrainingTokenizer made(std::string name, const std::string& what, Tokenizer tokenizer,
                       std::vector<TokenizerFile> files) {
  TrainingTokenizer result{std::move(name),
                           fmt::format("{}, {} tokens", what, tokenizer.size()),
                           tokenizer,
                           configured_end(tokenizer, files),
                           first_known(tokenizer, {"[PAD]", "<pad>"}).value_or(0),
                           std::move(files)};
  if (!result.end_of_text)
    result.end_of_text =
        first_known(tokenizer, {kEndOfText, "<|end_of_text|>", "</s>", "<eos>", "<|im_end|>", "[SEP]"});
  return result;
}

TokenizerFile file_of(const fs::path& path, const char* name) {
  return {name, read_small_file(path, kLongestTokenizer)};
}

json added_token(const char* content, std::uint32_t id) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

TrainingTokenizer from_own_json(const char* name, const char* what, const json& file) {
  std::string content = file.dump();
  Tokenizer tokenizer = Tokenizer::from_json(content, name);
  return made(name, what, std::move(tokenizer), {{"tokenizer.json", std::move(content)}});
}

// Byte-level BPE that merges nothing: any program that reads a tokenizer.json reads bytes too.
TrainingTokenizer bytes_tokenizer() {
  json vocabulary = json::object();
  for (unsigned byte = 0; byte < 256; ++byte)
    vocabulary[text::utf8(std::u32string(1, text::byte_character(static_cast<unsigned char>(byte))))] = byte;
  vocabulary[kEndOfText] = 256;
  const json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
  return from_own_json("bytes", "bytes and the end of text",
                       {{"version", "1.0"},
                        {"truncation", nullptr},
                        {"padding", nullptr},
                        {"added_tokens", json::array({added_token(kEndOfText, 256)})},
                        {"normalizer", nullptr},
                        {"pre_tokenizer", byte_level},
                        {"post_processor", nullptr},
                        {"decoder", byte_level},
                        {"model",
                         {{"type", "BPE"},
                          {"dropout", nullptr},
                          {"unk_token", nullptr},
                          {"continuing_subword_prefix", nullptr},
                          {"end_of_word_suffix", nullptr},
                          {"fuse_unk", false},
                          {"vocab", std::move(vocabulary)},
                          {"merges", json::array()}}}});
}

TrainingTokenizer from_pairs(const std::string& name, const std::string& what, const fs::path& vocabulary,
                             const fs::path& merges) {
  std::vector<TokenizerFile> files = {file_of(vocabulary, "vocab.json"), file_of(merges, "merges.txt")};
  Tokenizer tokenizer =
      Tokenizer::from_gpt2(files[0].content, files[1].content, io::quoted_path(vocabulary.string()));
  return made(name, what, std::move(tokenizer), std::move(files));
}

TrainingTokenizer from_directory(const std::string& name, const std::string& what,
                                 const fs::path& directory) {
  const auto has = [&](const char* file) { return is_file(directory / file); };
  if (!has("tokenizer.json") && !has("vocab.txt")) {
    if (has("vocab.json") && has("merges.txt"))
      return from_pairs(name, what, directory / "vocab.json", directory / "merges.txt");
    if (has("encoder.json") && has("vocab.bpe"))
      return from_pairs(name, what, directory / "encoder.json", directory / "vocab.bpe");
    io::reject(
        io::quoted_path(directory.string()), "holds no tokenizer that is read here",
        "name a directory with tokenizer.json, vocab.txt, vocab.json and merges.txt, or encoder.json and "
        "vocab.bpe");
  }
  const char* main = has("tokenizer.json") ? "tokenizer.json" : "vocab.txt";
  const auto found = checkpoint::find_tokenizer(directory, checkpoint::Family::Vocabulary::bert);
  if (!found.tokenizer) throw InputError(found.reason);
  std::vector<TokenizerFile> files = {file_of(directory / main, main)};
  if (has("tokenizer_config.json"))
    files.push_back(
        {"tokenizer_config.json", read_small_file(directory / "tokenizer_config.json", kLongestConfig)});
  return made(name, what, *found.tokenizer, std::move(files));
}

std::optional<fs::path> tokenizer_directory(const std::string& name) {
  if (const auto own = fetched_directory(name)) return *own;
  const auto all = fetched_directory("tokenizers");
  if (!all || name.empty() || name.front() == '.' || name.find('/') != std::string::npos) return std::nullopt;
  const fs::path directory = fs::path(*all) / name;
  return is_folder(directory) ? std::optional(directory) : std::nullopt;
}

// Words as BERT's tokenizer finds them, before it cuts them into pieces.
class WordFinder {
 public:
  WordFinder() : node_(settings(), "words") {
    normalizer_ = text::make_normalizer(node_.at("normalizer"));
    pre_tokenizer_ = text::make_pre_tokenizer(node_.at("pre_tokenizer"));
  }
  std::vector<std::string> words(std::string_view text) const {
    std::vector<text::Piece> pieces;
    pieces.push_back({text::AlignedText(text::lossy_utf8(text).text), std::nullopt});
    normalizer_->apply(pieces[0].text);
    pre_tokenizer_->apply(pieces);
    std::vector<std::string> result;
    result.reserve(pieces.size());
    for (const text::Piece& piece : pieces) result.push_back(piece.text.text());
    return result;
  }
  static const json& settings() {
    static const json value = {{"normalizer",
                                {{"type", "BertNormalizer"},
                                 {"clean_text", true},
                                 {"handle_chinese_chars", true},
                                 {"strip_accents", nullptr},
                                 {"lowercase", true}}},
                               {"pre_tokenizer", {{"type", "BertPreTokenizer"}}}};
    return value;
  }

 private:
  text::Node node_;
  std::unique_ptr<const text::Normalizer> normalizer_;
  std::unique_ptr<const text::PreTokenizer> pre_tokenizer_;
};

// The most frequent first, of equals the first by spelling.
std::vector<std::string> words_by_count(std::span<const std::string_view> texts) {
  std::unordered_map<std::string_view, std::uint64_t> parts;  // as written: each is looked into once only
  for (std::string_view text : texts) {
    while (!text.empty()) {
      const std::size_t cut = text::local_cut(text);
      ++parts[text.substr(0, cut)];
      text.remove_prefix(cut);
    }
  }
  const WordFinder finder;
  std::unordered_map<std::string, std::uint64_t> counts;
  for (const auto& [part, count] : parts)
    for (std::string& word : finder.words(part)) counts[std::move(word)] += count;
  std::vector<std::pair<std::string, std::uint64_t>> sorted(counts.begin(), counts.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::vector<std::string> words;
  words.reserve(sorted.size());
  for (auto& [word, count] : sorted) words.push_back(std::move(word));
  return words;
}

}  // namespace

TrainingTokenizer training_tokenizer(const std::string& name) {
  if (name == "bytes") return bytes_tokenizer();
  if (is_folder(name)) return from_directory(name, io::quoted_path(name), name);
  if (is_file(name)) {
    TokenizerFile file = file_of(name, "tokenizer.json");
    Tokenizer tokenizer = Tokenizer::from_json(file.content, io::quoted_path(name));
    return made(name, io::quoted_path(name), std::move(tokenizer), {std::move(file)});
  }
  if (const auto directory = tokenizer_directory(name))
    return from_directory(name, name == "gpt2-bpe" ? "GPT-2's BPE" : fmt::format("Tokenizer '{}'", name),
                          *directory);
  if (name == "gpt2-bpe" || name == "bert")
    io::reject(fmt::format("The tokenizer '{}'", name), "is not on this machine yet",
               fmt::format("get it with: normscope data get {}", name == "bert" ? "tokenizers" : name));
  io::reject(fmt::format("The tokenizer {}", io::quoted_name(name)),
             "is neither a directory nor a file, nor a tokenizer that was fetched",
             "name a directory with tokenizer.json, gpt2-bpe or bytes");
}

TrainingTokenizer default_language_tokenizer() {
  return training_tokenizer(tokenizer_directory("gpt2-bpe") ? "gpt2-bpe" : "bytes");
}

TrainingTokenizer word_tokenizer(std::span<const std::string_view> texts, std::size_t most) {
  constexpr std::array special = {"[PAD]", "[UNK]", "[CLS]", "[SEP]"};
  if (most <= special.size())
    throw InputError(fmt::format("A vocabulary of {} tokens has no room for words beside {} special tokens.",
                                 most, special.size()));
  std::vector<std::string> words = words_by_count(texts);
  if (words.empty())
    throw InputError("The texts have no words to make a vocabulary of; give texts with words.");
  words.resize(std::min(words.size(), most - special.size()));
  json vocabulary = json::object(), added = json::array();
  for (std::uint32_t id = 0; id < special.size(); ++id) {
    vocabulary[special[id]] = id;
    added.push_back(added_token(special[id], id));
  }
  for (const std::string& word : words) vocabulary[word] = vocabulary.size();
  json file = WordFinder::settings();
  file.update(
      {{"version", "1.0"},
       {"truncation", nullptr},
       {"padding", nullptr},
       {"added_tokens", std::move(added)},
       {"post_processor",
        {{"type", "BertProcessing"}, {"cls", json::array({"[CLS]", 2})}, {"sep", json::array({"[SEP]", 3})}}},
       {"decoder", nullptr},
       {"model", {{"type", "WordLevel"}, {"vocab", std::move(vocabulary)}, {"unk_token", "[UNK]"}}}});
  return from_own_json("words", "the most frequent words of the training texts", file);
}

TrainingTokenizer default_text_tokenizer(std::span<const std::string_view> texts, std::size_t most) {
  return tokenizer_directory("bert") ? training_tokenizer("bert") : word_tokenizer(texts, most);
}

}  // namespace normscope

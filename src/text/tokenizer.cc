#include "normscope/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "normscope/error.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/decoder.h"
#include "text/locality.h"
#include "text/post_processor.h"
#include "text/utf8.h"

namespace normscope {

using nlohmann::json;

struct Tokenizer::Parts {
  std::unique_ptr<const text::Normalizer> normalizer;
  std::unique_ptr<const text::PreTokenizer> pre_tokenizer;
  std::unique_ptr<const text::Model> model;
  std::unique_ptr<const text::PostProcessor> post_processor;
  std::unique_ptr<const text::Decoder> decoder;
  text::AddedTokens added;
  // Ids that stand for no text although a text may spell them: special only when decoded.
  std::vector<std::uint32_t> silent;
  bool local;  // see text/locality.h

  // What a tokenizer.json says around a model; names that are not there stand for nothing to do.
  Parts(const text::Node& node, std::unique_ptr<const text::Model> its_model,
        std::vector<std::uint32_t> its_silent = {})
      : normalizer(make(node, "normalizer", text::make_normalizer)),
        pre_tokenizer(make(node, "pre_tokenizer", text::make_pre_tokenizer)),
        model(std::move(its_model)),
        post_processor(make(node, "post_processor", text::make_post_processor)),
        decoder(make(node, "decoder", text::make_decoder)),
        added(added_tokens(node), model->vocabulary(), normalizer.get()),
        silent(std::move(its_silent)),
        local(text::never_looks_across_spaces(node)) {}

 private:
  template <class Made>
  static Made make(const text::Node& node, std::string_view name, Made (*maker)(const text::Node&)) {
    const auto found = node.find(name);
    return found ? maker(*found) : nullptr;
  }
  static std::vector<text::AddedToken> added_tokens(const text::Node& node) {
    const auto found = node.find("added_tokens");
    return found ? text::added_tokens(*found) : std::vector<text::AddedToken>();
  }
};

namespace {

// Positions of the reference library are bytes until they are put into the result, then characters.
class Characters {
 public:
  explicit Characters(std::string_view valid) {
    std::uint32_t index = 0;
    for (std::size_t i = 0; i < valid.size(); ++index) {
      next_character(valid, i);
      of_byte_.resize(i, index);
    }
  }
  // Of bytes [begin, end).
  std::pair<std::size_t, std::size_t> range(std::size_t begin, std::size_t end) const {
    if (begin >= of_byte_.size()) return {begin, end};
    if (end < of_byte_.size()) return {of_byte_[begin], of_byte_[end]};
    return {of_byte_[begin], std::size_t{of_byte_.back()} + 1};
  }

 private:
  std::vector<std::uint32_t> of_byte_;
};

json special(std::string_view token, std::uint32_t id) {
  return {{"id", id}, {"content", token}, {"special", true}, {"normalized", false}};
}

// Lines without their ends; a last line break does not begin another one.
std::vector<std::string_view> lines(std::string_view text) {
  std::vector<std::string_view> result;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    result.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

}  // namespace

Tokenizer Tokenizer::from_json(std::string_view tokenizer_json, std::string_view label) {
  const json file = text::parse_json(tokenizer_json, label);
  const text::Node node(file, std::string(label));
  return Tokenizer(std::make_shared<const Parts>(node, text::make_model(node.at("model"))));
}

Tokenizer Tokenizer::from_bert_vocab(std::string_view vocab_txt, BertOptions options,
                                     std::string_view label) {
  json vocabulary = json::object();
  for (std::string_view token : lines(vocab_txt)) {
    const std::size_t id = vocabulary.size();
    if (!text::is_valid_utf8(token))
      throw InputError(fmt::format("{}: line {} is not UTF-8.", label, id + 1));
    while (!token.empty() && text::is_white_space(static_cast<unsigned char>(token.back())) &&
           token.back() > 0)
      token.remove_suffix(1);
    if (!vocabulary.emplace(token, id).second)
      throw InputError(fmt::format("{}: line {} has the token \"{}\" again.", label, id + 1, token));
  }
  const auto id = [&](const char* token) -> std::uint32_t {
    const auto found = vocabulary.find(token);
    if (found == vocabulary.end())
      throw InputError(
          fmt::format("{}: no line has {}; this is not the vocabulary of a BERT.", label, token));
    return found->get<std::uint32_t>();
  };
  json file = {{"normalizer",
                {{"type", "BertNormalizer"},
                 {"clean_text", true},
                 {"handle_chinese_chars", true},
                 {"lowercase", options.lowercase}}},
               {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
               {"post_processor",
                {{"type", "BertProcessing"},
                 {"cls", json::array({"[CLS]", id("[CLS]")})},
                 {"sep", json::array({"[SEP]", id("[SEP]")})}}},
               {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}}},
               {"added_tokens", json::array()}};
  id("[UNK]");
  for (const char* token : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
    if (vocabulary.contains(token)) file["added_tokens"].push_back(special(token, id(token)));
  }
  file["model"] = {{"vocab", std::move(vocabulary)}};
  const text::Node node(file, std::string(label));
  return Tokenizer(std::make_shared<const Parts>(node, text::make_word_piece(node.at("model"))));
}

Tokenizer Tokenizer::from_gpt2(std::string_view vocab_json, std::string_view merges_txt,
                               std::string_view label) {
  const json vocabulary = text::parse_json(vocab_json, label);
  text::Vocabulary tokens(text::Node(vocabulary, std::string(label)));
  std::vector<std::pair<std::string, std::string>> names;
  for (const std::string_view line : lines(merges_txt)) {
    if (line.empty() || line.starts_with("#version")) continue;
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos)
      throw InputError(
          fmt::format("{}: merge {} is not a pair of tokens with a space between.", label, names.size() + 1));
    names.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  text::Bpe::Merges merges = text::merges_of(tokens, names, "", label);
  json file = {{"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
               {"post_processor", {{"type", "ByteLevel"}, {"trim_offsets", false}}},
               {"decoder", {{"type", "ByteLevel"}}},
               {"added_tokens", json::array()}};
  if (const auto end = tokens.id("<|endoftext|>"))
    file["added_tokens"].push_back(special("<|endoftext|>", *end));
  auto model = std::make_unique<text::Bpe>(std::move(tokens), std::move(merges), text::BpeSettings(),
                                           std::string(label));
  return Tokenizer(std::make_shared<const Parts>(text::Node(file, std::string(label)), std::move(model)));
}

Tokenizer Tokenizer::from_llama2c(std::string_view tokenizer_bin, std::string_view label) {
  // int32 length of the longest token; then for each token float32 score, int32 length, bytes.
  std::size_t at = 0;
  const auto word = [&](std::string_view what) {
    if (tokenizer_bin.size() - at < 4) throw InputError(fmt::format("{}: ends within {}.", label, what));
    std::uint32_t value = 0;
    for (std::size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(tokenizer_bin[at + i]);
    at += 4;
    return value;
  };
  word("the length of the longest token");
  text::Vocabulary vocabulary;
  std::vector<float> scores;
  while (at < tokenizer_bin.size()) {
    const auto id = static_cast<std::uint32_t>(scores.size());
    const std::string what = fmt::format("token {}", id);
    scores.push_back(std::bit_cast<float>(word(what)));
    const std::uint32_t size = word(what);
    if (size > tokenizer_bin.size() - at) throw InputError(fmt::format("{}: ends within {}.", label, what));
    const std::string_view token = tokenizer_bin.substr(at, size);
    at += size;
    if (!text::is_valid_utf8(token)) throw InputError(fmt::format("{}: {} is not UTF-8.", label, what));
    if (std::isnan(scores.back()))
      throw InputError(fmt::format("{}: the score of {} is not a number.", label, what));
    // llama2.c writes spaces for ▁, and line breaks around <s> and </s>.
    std::string spelled;
    for (const text::Match& part : text::find_literal(token, " "))
      spelled += part.found ? "\xE2\x96\x81" : token.substr(part.begin, part.end - part.begin);
    if (id == 1 || id == 2) spelled = id == 1 ? "<s>" : "</s>";
    // Older files spell the token of a byte as the character of that number, which is there again as a piece.
    if (id >= 3 && id < 3 + 256 && token == text::utf8(std::u32string(1, id - 3)))
      spelled = fmt::format("<0x{:02X}>", id - 3);
    // A token that is there twice is found once; a name of its own keeps the other one's id.
    if (!vocabulary.insert(spelled, id) && !vocabulary.insert(fmt::format("<again {}>", id), id))
      throw InputError(fmt::format("{}: {} is there too often.", label, what));
    if (id > text::highest_id) throw InputError(fmt::format("{}: too many tokens.", label));
  }
  if (scores.size() < 3)
    throw InputError(
        fmt::format("{}: {} tokens; <unk>, <s> and </s> at least are needed.", label, scores.size()));

  // Two tokens are merged if the vocabulary has what they make, in the order of its score.
  std::map<float, std::uint32_t, std::greater<>> ranks;
  for (const float score : scores) ranks[score];
  std::uint32_t next_rank = 0;
  for (auto& [score, rank] : ranks) rank = next_rank++;
  text::Bpe::Merges merges;
  for (std::uint32_t id = 3; id < scores.size(); ++id) {
    const std::string_view token = vocabulary.token(id).value();
    if (token.size() > 1024)
      throw InputError(fmt::format("{}: token {} is longer than 1024 bytes.", label, id));
    for (std::size_t cut = 0; cut < token.size();) {
      next_character(token, cut);
      const auto left = vocabulary.id(token.substr(0, cut)), right = vocabulary.id(token.substr(cut));
      if (left && right) merges[text::Bpe::pair(*left, *right)] = {ranks[scores[id]], id};
    }
  }
  text::BpeSettings settings;
  settings.unknown = std::string(vocabulary.token(0).value());
  settings.byte_fallback = true;
  const json space_to_mark = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "▁"}};
  const json mark_to_space = {{"type", "Replace"}, {"pattern", {{"String", "▁"}}}, {"content", " "}};
  const json file = {
      {"normalizer",
       {{"type", "Sequence"}, {"normalizers", {{{"type", "Prepend"}, {"prepend", "▁"}}, space_to_mark}}}},
      {"post_processor",
       {{"type", "TemplateProcessing"},
        {"single", {{{"SpecialToken", {{"id", "<s>"}}}}, {{"Sequence", {{"id", "A"}}}}}},
        {"special_tokens", {{"<s>", {{"ids", {1U}}}}}}}},
      {"decoder",
       {{"type", "Sequence"},
        {"decoders",
         {mark_to_space,
          {{"type", "ByteFallback"}},
          {{"type", "Fuse"}},
          {{"type", "Strip"}, {"content", " "}, {"start", 1U}, {"stop", 0U}}}}}}};
  auto model = std::make_unique<text::Bpe>(std::move(vocabulary), std::move(merges), std::move(settings),
                                           std::string(label));
  // <s> and </s>; in a text they are characters like any others.
  return Tokenizer(std::make_shared<const Parts>(text::Node(file, std::string(label)), std::move(model),
                                                 std::vector<std::uint32_t>{1, 2}));
}

std::vector<Token> Tokenizer::encode(std::string_view text, SpecialTokens special) const {
  if (text.size() > std::numeric_limits<std::int32_t>::max())
    throw InputError(
        fmt::format("A text of {} bytes is too long to be encoded at once; the most is 2³¹.", text.size()));
  const text::LossyText lossy = text::lossy_utf8(text);
  const Characters in_characters(lossy.text);
  std::vector<text::Piece> pieces =
      parts_->added.find(text::AlignedText(lossy.text), parts_->normalizer.get());
  if (parts_->pre_tokenizer) parts_->pre_tokenizer->apply(pieces);

  text::Encoded encoded;
  std::vector<text::WordToken> word;
  for (const text::Piece& piece : pieces) {
    const std::string& its = piece.text.text();
    const bool special_piece = piece.id && parts_->added.token(*piece.id)->special;
    word.clear();
    if (piece.id) {
      word.push_back({*piece.id, 0, its.size(), its});
    } else {
      parts_->model->tokenize(its, word);
    }
    for (const text::WordToken& token : word) {
      const text::Source source = piece.text.source(token.begin, token.end);
      const auto [begin, end] = in_characters.range(source.begin, source.end);
      encoded.push_back({token.id, begin, end, token.text, special_piece});
    }
  }
  std::vector<text::Encoded> all;
  all.push_back(std::move(encoded));
  if (parts_->post_processor) parts_->post_processor->apply(all, special == SpecialTokens::add);

  const auto byte = [&](std::size_t character) {
    return std::size_t{lossy.boundaries[std::min(character, lossy.boundaries.size() - 1)]};
  };
  std::vector<Token> tokens;
  for (const text::Encoded& part : all) {
    for (const text::EncodedToken& token : part)
      tokens.push_back({token.id, byte(token.begin), byte(token.end), token.special});
  }
  return tokens;
}

WordMemory::Slot& WordMemory::slot(std::string_view word, std::uint64_t hash) {
  for (std::size_t at = hash;; ++at) {
    Slot& each = table_[at & (table_.size() - 1)];
    if (each.word_size == 0) return each;
    if (each.hash == hash && std::string_view(words_).substr(each.word, each.word_size) == word) return each;
  }
}

void WordMemory::grow() {
  std::vector<Slot> old = std::move(table_);
  table_.assign(std::max<std::size_t>(1024, 2 * old.size()), {});
  for (const Slot& each : old)
    if (each.word_size > 0)
      slot(std::string_view(words_).substr(each.word, each.word_size), each.hash) = each;
}

void Tokenizer::append_ids(std::string_view text, WordMemory& memory, std::vector<std::uint32_t>& ids) const {
  // Words longer than this are rare, and so are words met after so many others.
  constexpr std::size_t longest_word = 64, most_words = std::size_t{1} << 19;
  const auto encode_to = [&](std::string_view part, std::vector<std::uint32_t>& to) {
    for (const Token& token : encode(part, SpecialTokens::omit)) to.push_back(token.id);
  };
  if (!parts_->local) return encode_to(text, ids);
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text::local_cut(text));
    text.remove_prefix(word.size());
    if (2 * memory.size_ >= memory.table_.size()) memory.grow();
    const std::uint64_t hash = std::hash<std::string_view>()(word);
    WordMemory::Slot& slot = memory.slot(word, hash);
    if (slot.word_size == 0) {
      if (word.size() > longest_word || memory.size_ >= most_words) {
        encode_to(word, ids);
        continue;
      }
      const std::size_t first = memory.ids_.size();
      encode_to(word, memory.ids_);
      slot = {hash, static_cast<std::uint32_t>(memory.words_.size()), static_cast<std::uint32_t>(word.size()),
              static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(memory.ids_.size() - first)};
      memory.words_ += word;
      ++memory.size_;
    }
    const auto begin = memory.ids_.begin() + slot.first;
    ids.insert(ids.end(), begin, begin + slot.count);
  }
}

std::string Tokenizer::decode(std::span<const std::uint32_t> ids, SpecialTokens special) const {
  std::vector<std::string> tokens;
  for (const std::uint32_t id : ids) {
    const bool silent = std::find(parts_->silent.begin(), parts_->silent.end(), id) != parts_->silent.end();
    if (silent && special == SpecialTokens::omit) continue;
    auto token = parts_->added.decoded(id);
    if (!token) {
      if (const auto known = parts_->model->vocabulary().token(id)) token = std::string(*known);
    }
    if (token && (special == SpecialTokens::add || !parts_->added.is_special(*token)))
      tokens.push_back(std::move(*token));
  }
  std::string result;
  if (parts_->decoder) {
    for (const std::string& part : parts_->decoder->apply(std::move(tokens))) result += part;
    return result;
  }
  for (const std::string& token : tokens) result += (result.empty() ? "" : " ") + token;
  return result;
}

std::optional<std::string> Tokenizer::token(std::uint32_t id) const {
  if (const text::AddedToken* added = parts_->added.token(id)) return added->content;
  const auto known = parts_->model->vocabulary().token(id);
  return known ? std::optional(std::string(*known)) : std::nullopt;
}

std::optional<std::uint32_t> Tokenizer::id(std::string_view token) const {
  const auto added = parts_->added.id(token);
  return added ? added : parts_->model->vocabulary().id(token);
}

std::size_t Tokenizer::size() const {
  return std::max(parts_->model->vocabulary().ids_end(), parts_->added.ids_end());
}

}  // namespace normscope

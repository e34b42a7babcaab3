#include "normscope/tokenizer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "support/message.h"

namespace normscope {
namespace {

using nlohmann::json;

json word_level(const std::vector<std::string>& words) {
  json vocabulary = {{"<unk>", 0}};
  for (const std::string& word : words) vocabulary[word] = vocabulary.size();
  return {{"model", {{"type", "WordLevel"}, {"unk_token", "<unk>"}, {"vocab", vocabulary}}}};
}

// The merges as JSON.
json byte_pairs(const json& vocabulary, const char* merges) {
  return {{"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", json::parse(merges)}}}};
}

Tokenizer made(const json& file) {
  return Tokenizer::from_json(file.dump());
}

std::string rejected(const std::string& file) {
  return message_of([&] { Tokenizer::from_json(file, "'file'"); });
}

std::string rejected(const json& file) {
  return rejected(file.dump());
}

std::vector<std::string> spelled(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::string> result;
  for (const Token& token : tokenizer.encode(text)) result.push_back(tokenizer.token(token.id).value());
  return result;
}

std::vector<std::string> parts(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::string> result;
  for (const Token& token : tokenizer.encode(text))
    result.emplace_back(text.substr(token.begin, token.end - token.begin));
  return result;
}

using Strings = std::vector<std::string>;

constexpr std::string_view bert_vocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\ncafe\n,\n";

TEST(BertVocabulary, CutsWordsIntoTheLongestPiecesAndMarksThemInTheText) {
  const auto tokenizer = Tokenizer::from_bert_vocab(bert_vocabulary, {});
  const std::string text = "Unaffable, CAFÉ [MASK] x";
  EXPECT_EQ(spelled(tokenizer, text),
            (Strings{"[CLS]", "un", "##aff", "##able", ",", "cafe", "[MASK]", "[UNK]", "[SEP]"}));
  EXPECT_EQ(parts(tokenizer, text), (Strings{"", "Un", "aff", "able", ",", "CAFÉ", "[MASK]", "x", ""}));
  std::vector<bool> special;
  for (const Token& token : tokenizer.encode(text)) special.push_back(token.special);
  EXPECT_EQ(special, (std::vector<bool>{true, false, false, false, false, false, true, false, true}));
  EXPECT_EQ(tokenizer.encode(text, SpecialTokens::omit).size(), 7U);
  EXPECT_EQ(tokenizer.size(), 10U);
}

TEST(BertVocabulary, WithoutItsTokensIsRejected) {
  expect_mentions(message_of([] { Tokenizer::from_bert_vocab("a\nb\n", {}, "'v'"); }), {"'v'", "[CLS]"});
  expect_mentions(message_of([] { Tokenizer::from_bert_vocab("a\na\n", {}, "'v'"); }),
                  {"'v'", "line 2", "again"});
  expect_mentions(message_of([] { Tokenizer::from_bert_vocab("\xff\n", {}, "'v'"); }), {"line 1", "UTF-8"});
}

TEST(Gpt2, MergesBytesByRank) {
  const auto tokenizer = Tokenizer::from_gpt2(
      R"({"h":0,"i":1,"Ġ":2,"hi":3,"Ġhi":4,"Ã":5,"¤":6,"<|endoftext|>":7})", "#version: 0.2\nh i\nĠ hi\n");
  EXPECT_EQ(spelled(tokenizer, "hi hi<|endoftext|>ä"), (Strings{"hi", "Ġhi", "<|endoftext|>", "Ã", "¤"}));
  EXPECT_EQ(parts(tokenizer, "hi hi<|endoftext|>ä"), (Strings{"hi", " hi", "<|endoftext|>", "ä", "ä"}));
  const std::vector<std::uint32_t> ids = {3, 4, 7, 5, 6, 5, 99};
  EXPECT_EQ(tokenizer.decode(ids), "hi hiä\uFFFD");
  EXPECT_EQ(tokenizer.decode(ids, SpecialTokens::add), "hi hi<|endoftext|>ä\uFFFD");
}

std::string llama2c(const std::vector<std::pair<std::string, float>>& tokens) {
  std::string bytes(4, '\0');
  for (const auto& [token, score] : tokens) {
    const auto size = static_cast<std::uint32_t>(token.size());
    bytes.append(reinterpret_cast<const char*>(&score), 4);
    bytes.append(reinterpret_cast<const char*>(&size), 4);
    bytes += token;
  }
  return bytes;
}

// Older files spell byte tokens as characters.
class Llama2c : public testing::TestWithParam<bool> {};

TEST_P(Llama2c, MergesWhatHasTheHighestScore) {
  std::vector<std::pair<std::string, float>> tokens = {{"<unk>", 0}, {"\n<s>\n", 0}, {"\n</s>\n", 0}};
  for (int byte = 0; byte < 256; ++byte) {
    const std::string character = byte < 128 ? std::string(1, static_cast<char>(byte))
                                             : std::string{static_cast<char>(0xC0 | byte >> 6),
                                                           static_cast<char>(0x80 | (byte & 0x3F))};
    tokens.emplace_back(GetParam() ? character : fmt::format("<0x{:02X}>", byte), 0.0F);
  }
  for (const char* token : {" ", "a", "b", "c"}) tokens.emplace_back(token, -9.0F);
  tokens.emplace_back("ab", -2.0F);
  tokens.emplace_back("bc", -1.0F);
  tokens.emplace_back(" a", -3.0F);
  const auto tokenizer = Tokenizer::from_llama2c(llama2c(tokens));
  EXPECT_EQ(spelled(tokenizer, "abc ab\n"), (Strings{"<s>", "▁a", "bc", "▁", "ab", "<0x0A>"}));
  EXPECT_EQ(parts(tokenizer, "abc ab\n"), (Strings{"", "a", "bc", " ", "ab", "\n"}));
  std::vector<std::uint32_t> ids;
  for (const Token& token : tokenizer.encode("abc ab\n")) ids.push_back(token.id);
  EXPECT_EQ(tokenizer.decode(std::span(ids).subspan(1)), "abc ab\n");
}

INSTANTIATE_TEST_SUITE_P(BytesAsCharacters, Llama2c, testing::Bool());

TEST(Llama2cFile, CutAnywhereIsRejectedOrShorter) {
  const std::string whole = llama2c({{"<unk>", 0}, {"\n<s>\n", 0}, {"\n</s>\n", 0}, {"a", -1}});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    try {
      EXPECT_LT(Tokenizer::from_llama2c(whole.substr(0, size)).size(), 4U);
    } catch (const InputError& error) {
      expect_mentions(error.what(), {"tokenizer.bin"});
    }
  }
  EXPECT_EQ(Tokenizer::from_llama2c(whole).size(), 4U);
}

TEST(Text, ThatIsNotUtf8HasOffsetsIntoItsOwnBytes) {
  json file = word_level({"a", "b", "\uFFFD"});
  file["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"String", ""}}}, {"behavior", "Isolated"}};
  const auto tokenizer = made(file);
  // One U+FFFD for each: E2 82 is a beginning, FF is nothing, ED A0 80 are three bytes that are nothing.
  EXPECT_EQ(parts(tokenizer,
                  "a\xE2\x82"
                  "b\xFF\xED\xA0\x80"),
            (Strings{"a", "\xE2\x82", "b", "\xFF", "\xED", "\xA0", "\x80"}));
}

TEST(Text, ThatIsEmptyHasOnlyTheTokensAroundIt) {
  EXPECT_TRUE(made(word_level({})).encode("").empty());
  EXPECT_EQ(spelled(Tokenizer::from_bert_vocab(bert_vocabulary, {}), ""), (Strings{"[CLS]", "[SEP]"}));
}

TEST(AddedTokens, TakeSpaceAroundThemAndStandAlone) {
  json file = word_level({"x", "in"});
  file["pre_tokenizer"] = {{"type", "Whitespace"}};
  file["added_tokens"] = {{{"id", 3},
                           {"content", "<m>"},
                           {"lstrip", true},
                           {"rstrip", true},
                           {"special", true},
                           {"normalized", false}},
                          {{"id", 4}, {"content", "in"}, {"single_word", true}, {"normalized", false}}};
  EXPECT_EQ(parts(made(file), "x  <m> \n x xin in"), (Strings{"x", "  <m> \n ", "x", "xin", "in"}));
}

double seconds(const Tokenizer& tokenizer, const std::string& text) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(tokenizer.encode(text).empty());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Anything quadratic would take minutes.
TEST(LongWords, OfAMillionCharactersTakeSeconds) {
  const std::string word(1'000'000, 'a');
  json pairs = byte_pairs({{"a", 0}, {"aa", 1}, {"aaaa", 2}}, R"([["a", "a"], ["aa", "aa"]])");
  EXPECT_LT(seconds(made(pairs), word), 20);
  pairs["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", true}};
  pairs["model"]["vocab"]["Ġ"] = 3;
  EXPECT_LT(seconds(made(pairs), word), 20);
  EXPECT_LT(seconds(made(pairs), std::string(1'000'000, ' ')), 20);

  const json unigram = json::parse(
      R"({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", -1], ["aaa", -1.5]]}})");
  EXPECT_LT(seconds(made(unigram), word), 20);

  json pieces = {{"model",
                  {{"type", "WordPiece"},
                   {"unk_token", "x"},
                   {"max_input_chars_per_word", 4'000'000'000U},
                   {"vocab", {{"x", 0}, {"a", 1}, {"##a", 2}, {"##aa", 3}}}}}};
  EXPECT_LT(seconds(made(pieces), word), 20);
}

TEST(Threads, MayShareATokenizer) {
  const auto tokenizer = Tokenizer::from_bert_vocab(bert_vocabulary, {});
  const auto expected = tokenizer.encode("unaffable café");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 100; ++round) EXPECT_EQ(tokenizer.encode("unaffable café"), expected);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(TokenizerFile, WithAComponentWeDoNotKnowIsRejectedByItsName) {
  for (const char* part : {"normalizer", "pre_tokenizer", "post_processor", "decoder"}) {
    json file = word_level({"a"});
    file[part] = {{"type", "Teleporter"}};
    expect_mentions(rejected(file), {"'file'", part, "Teleporter"});
    file[part] = {{"type", 5}};
    expect_mentions(rejected(file), {"'file'", part, "string"});
  }
  expect_mentions(rejected(json{{"model", {{"type", "Oracle"}, {"vocab", json::object()}}}}),
                  {"model", "Oracle"});
}

TEST(TokenizerFile, ThatIsDamagedIsRejectedWithOneSentence) {
  expect_mentions(rejected(std::string("")), {"'file'", "not JSON"});
  expect_mentions(rejected(std::string("[1]")), {"'file'", "object"});
  expect_mentions(rejected(std::string("{}")), {"'file'", "model", "missing"});
  expect_mentions(rejected(std::string(100000, '[')), {"'file'", "nested"});
  expect_mentions(rejected(std::string(R"({"model":{"vocab":{"a":0,"a":1},"merges":[]}})")), {"twice"});
  expect_mentions(rejected(std::string(R"({"model":{"vocab":[["a",1e999]]}})")), {"not JSON"});
  expect_mentions(rejected(std::string("{\"model\":\"\xff\"}")), {"not JSON"});
  expect_mentions(rejected(byte_pairs({{"a", 0}, {"b", 0}}, "[]")), {"same id"});
  for (const json& id : {json(-1), json(1e30), json(1U << 24), json("0"), json(18446744073709551615ULL)})
    expect_mentions(rejected(byte_pairs({{"a", id}}, "[]")), {"id of \"a\"", "16777215"});
  expect_mentions(rejected(byte_pairs({{"a", 0}}, R"([["a", "b"]])")),
                  {"merge 0", "\"b\"", "not in the vocabulary"});
  expect_mentions(rejected(byte_pairs({{"a", 0}}, R"([["a", "a"]])")), {"\"aa\""});
  expect_mentions(rejected(byte_pairs({{"a", 0}}, R"(["aa"])")), {"pair"});
  expect_mentions(rejected(byte_pairs({{"a", 0}}, "[1]")), {"pair"});
  expect_mentions(rejected(json::parse(R"({"model": {"vocab": [["a", "b"]]}})")), {"[piece, score]"});
  expect_mentions(rejected(json::parse(R"({"model": {"vocab": [["a", 0.5]], "unk_id": 1}})")), {"unk_id"});
}

TEST(TokenizerFile, WithATrapInAPatternIsRejected) {
  json file = word_level({"a"});
  const auto pattern = [&](const std::string& regex) {
    file["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}};
    return file;
  };
  expect_mentions(rejected(pattern("(a")), {"pre_tokenizer", "regular expression"});
  expect_mentions(rejected(pattern(std::string(20000, 'a'))), {"20000 bytes"});
  expect_mentions(rejected(pattern(std::string(5000, '('))), {"regular expression"});
  const auto slow = made(pattern("a(a|aa|aaa)*(?<!a)"));
  expect_mentions(message_of([&] { slow.encode(std::string(200, 'a')); }), {"does not come to an end"});
}

TEST(TokenizerFile, NestedSequencesAreLimited) {
  json file = word_level({"a"});
  json sequence = {{"type", "Lowercase"}};
  for (int i = 0; i < 20; ++i) sequence = {{"type", "Sequence"}, {"normalizers", {sequence}}};
  file["normalizer"] = sequence;
  expect_mentions(rejected(file), {"deep"});
}

TEST(TokenizerFile, PrecompiledNormalizerThatLiesIsRejectedOrHarmless) {
  json file = word_level({"a"});
  for (const char* map : {"", "AA==", "!!!!", "AAAAAA==", "/////w==", "BAAAAP////8=", "BAAAAP////8AgA=="}) {
    file["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", map}};
    try {
      made(file).encode("abc ﬁ");
    } catch (const InputError&) {
    }
  }
  expect_mentions(rejected(file), {"charsmap"});
}

TEST(TokenizerFile, CharactersWithoutATokenAreAnErrorOnlyIfThereIsNoUnknownToken) {
  const json file = json::parse(R"({"model": {"type": "Unigram", "vocab": [["a", -1.0]]}})");
  EXPECT_EQ(made(file).encode("aa").size(), 2U);
  expect_mentions(message_of([&] { made(file).encode("b"); }), {"not in the vocabulary"});
}

}  // namespace
}  // namespace normscope

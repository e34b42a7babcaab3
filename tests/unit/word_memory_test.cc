#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "normscope/random.h"
#include "normscope/tokenizer.h"
#include "text/aligned_text.h"
#include "text/locality.h"
#include "text/utf8.h"

namespace normscope {
namespace {

using nlohmann::json;
using Ids = std::vector<std::uint32_t>;

// What tokenizers disagree on at the edges of words: white space of every kind, accents, digits, apostrophes,
// characters of two and three bytes, bytes that are no UTF-8, tokens spelled in the text.
std::string tangled_text(std::uint64_t seed) {
  static const std::array<std::string, 26> pieces = {"a",
                                                     "he",
                                                     "'s",
                                                     "'",
                                                     " ",
                                                     "  ",
                                                     "\n",
                                                     "\r\n",
                                                     "\t",
                                                     "\xC2\xA0",
                                                     "\xE3\x80\x80",
                                                     "é",
                                                     "e\u0301",
                                                     " \u0301",
                                                     "12",
                                                     "½",
                                                     "!",
                                                     ",",
                                                     ".'",
                                                     "?)",
                                                     "中",
                                                     "\xFF",
                                                     "<|endoftext|>",
                                                     "[MASK]",
                                                     std::string(1, '\0'),
                                                     "\x7F"};
  Random random(seed);
  std::string text;
  for (std::uint64_t count = random.below(60); count > 0; --count)
    text += pieces[random.below(pieces.size())];
  return text;
}

Ids at_once(const Tokenizer& tokenizer, std::string_view text) {
  Ids ids;
  for (const Token& token : tokenizer.encode(text, SpecialTokens::omit)) ids.push_back(token.id);
  return ids;
}

void expect_same_ids(const Tokenizer& tokenizer) {
  WordMemory memory;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const std::string text = tangled_text(seed);
    Ids ids = {7};
    tokenizer.append_ids(text, memory, ids);
    Ids expected = at_once(tokenizer, text);
    expected.insert(expected.begin(), 7);
    ASSERT_EQ(ids, expected) << "seed " << seed << ": " << text;
  }
}

json bytes_of_text() {
  json vocabulary = json::object();
  for (int byte = 0; byte < 256; ++byte) {
    std::string name;
    text::append_utf8(name, text::byte_character(static_cast<unsigned char>(byte)));
    vocabulary[name] = byte;
  }
  return vocabulary;
}

Tokenizer gpt2_like() {
  json vocabulary = bytes_of_text();
  std::string merges = "#version: 0.2\n";
  for (const auto& [left, right] : std::vector<std::pair<std::string, std::string>>{
           {"h", "e"}, {"Ġ", "he"}, {"Ċ", "Ċ"}, {"Ġ", "Ġ"}, {"'", "s"}, {"Ġ", "a"}, {"1", "2"}, {"!", "Ġ"}}) {
    vocabulary[left + right] = vocabulary.size();
    merges += left + " " + right + "\n";
  }
  vocabulary["<|endoftext|>"] = vocabulary.size();
  return Tokenizer::from_gpt2(vocabulary.dump(), merges);
}

TEST(WordMemory, GivesTheIdsOfByteLevelPairsOfTheWholeText) {
  expect_same_ids(gpt2_like());
}

TEST(WordMemory, GivesTheIdsOfWordPiecesOfTheWholeText) {
  expect_same_ids(Tokenizer::from_bert_vocab(
      "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nhe\n##he\n##a\ne\n##e\n'\ns\n!\n?\n12\n中\n<\n|\n", {}));
}

TEST(WordMemory, GivesTheIdsOfTokenizersThatLookAcrossSpaces) {
  json file = {{"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", true}}},
               {"model", {{"type", "BPE"}, {"vocab", bytes_of_text()}, {"merges", json::array()}}}};
  expect_same_ids(Tokenizer::from_json(file.dump()));
  file["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  expect_same_ids(Tokenizer::from_json(file.dump()));
  file["model"]["vocab"]["aĠ"] = 256;
  file["model"]["merges"] = json::parse(R"([["a", "Ġ"]])");
  expect_same_ids(Tokenizer::from_json(file.dump()));
}

TEST(WordMemory, CutsOnlyWhereNoPieceReachesAcross) {
  EXPECT_EQ(text::local_cut("one two"), 3U);
  EXPECT_EQ(text::local_cut("  one\n two"), 5U);
  EXPECT_EQ(text::local_cut("é two"), 6U);  // é might as well be a space of Unicode
  EXPECT_EQ(text::local_cut(" \n\t"), 3U);
  EXPECT_EQ(text::local_cut("one, two"), 3U);
  EXPECT_EQ(text::local_cut("?, two"), 2U);
  EXPECT_EQ(text::local_cut("1,2 two"), 3U);
}

}  // namespace
}  // namespace normscope

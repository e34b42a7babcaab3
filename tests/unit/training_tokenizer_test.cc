#include "normscope/training_tokenizer.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "support/message.h"
#include "support/temporary_directory.h"

namespace normscope {
namespace {

using Ids = std::vector<std::uint32_t>;
using nlohmann::json;

Ids ids_of(const TrainingTokenizer& tokenizer, std::string_view text) {
  Ids ids;
  for (const Token& token : tokenizer.tokenizer.encode(text)) ids.push_back(token.id);
  return ids;
}

TEST(ByteTokenizer, GivesEveryByteItsNumber) {
  const TrainingTokenizer bytes = training_tokenizer("bytes");
  EXPECT_EQ(bytes.size(), 257U);
  EXPECT_EQ(bytes.end_of_text, 256U);
  std::string all;
  for (char32_t c = 1; c < 0x250; ++c) {
    if (c < 0x80) {
      all += static_cast<char>(c);
    } else {
      all += static_cast<char>(0xC0 | c >> 6);
      all += static_cast<char>(0x80 | (c & 0x3F));
    }
  }
  Ids expected;
  for (const char byte : all) expected.push_back(static_cast<unsigned char>(byte));
  EXPECT_EQ(ids_of(bytes, all), expected);
  EXPECT_EQ(bytes.tokenizer.decode(expected), all);
}

TEST(ByteTokenizer, IsATokenizerJsonOfTheSameIds) {
  const TrainingTokenizer bytes = training_tokenizer("bytes");
  ASSERT_EQ(bytes.files.size(), 1U);
  const TemporaryDirectory directory;
  directory.file(bytes.files[0].name, bytes.files[0].content);
  const TrainingTokenizer again = training_tokenizer(directory.path().string());
  EXPECT_EQ(ids_of(again, "Süß\n"), ids_of(bytes, "Süß\n"));
  EXPECT_EQ(again.end_of_text, 256U);
  EXPECT_EQ(again.files[0].content, bytes.files[0].content);
}

TEST(TrainingTokenizer, ReadsGpt2FilesUnderBothNames) {
  const std::string vocabulary = R"({"a": 0, "b": 1, "ab": 2, "<|endoftext|>": 3})",
                    merges = "#version: 0.2\na b\n";
  const TemporaryDirectory openai, hugging_face;
  openai.file("encoder.json", vocabulary);
  openai.file("vocab.bpe", merges);
  hugging_face.file("vocab.json", vocabulary);
  hugging_face.file("merges.txt", merges);
  for (const TemporaryDirectory* directory : {&openai, &hugging_face}) {
    const TrainingTokenizer found = training_tokenizer(directory->path().string());
    EXPECT_EQ(ids_of(found, "aba"), (Ids{2, 0}));
    EXPECT_EQ(found.end_of_text, 3U);
    EXPECT_EQ(found.size(), 4U);
    ASSERT_EQ(found.files.size(), 2U);
    EXPECT_EQ(found.files[0].name, "vocab.json");
    EXPECT_EQ(found.files[1].name, "merges.txt");
  }
}

TEST(TrainingTokenizer, KnowsEndAndPaddingOfADirectory) {
  const TemporaryDirectory directory;
  directory.file("vocab.txt", "[UNK]\n[CLS]\n[SEP]\n[PAD]\ngood\nstop\n");
  const TrainingTokenizer bert = training_tokenizer(directory.path().string());
  EXPECT_EQ(ids_of(bert, "Good"), (Ids{1, 4, 2}));
  EXPECT_EQ(bert.end_of_text, 2U);
  EXPECT_EQ(bert.padding, 3U);
  directory.file("tokenizer_config.json", R"({"eos_token": {"content": "stop"}})");
  EXPECT_EQ(training_tokenizer(directory.path().string()).end_of_text, 5U);
  directory.file("tokenizer_config.json", R"({"eos_token": "good"})");
  EXPECT_EQ(training_tokenizer(directory.path().string()).end_of_text, 4U);
}

TEST(TrainingTokenizer, SaysWhatIsMissing) {
  const TemporaryDirectory directory;
  const auto refused = [](const std::string& name) { return message_of([&] { training_tokenizer(name); }); };
  expect_mentions(refused(directory.path().string()), {"holds no tokenizer", "tokenizer.json", "vocab.bpe"});
  expect_mentions(refused("no-such-tokenizer"), {"no-such-tokenizer", "gpt2-bpe", "bytes"});
  directory.file("tokenizer.json", "{");
  expect_mentions(refused(directory.path().string()), {"tokenizer.json", "not JSON"});
}

TEST(TrainingTokenizer, SaysHowToGetWhatIsNotFetched) {
  const TemporaryDirectory directory;
  const char* before = std::getenv("NORMSCOPE_DATA");
  const std::optional<std::string> kept =
      before != nullptr ? std::optional<std::string>(before) : std::nullopt;
  ::setenv("NORMSCOPE_DATA", directory.path().c_str(), 1);
  const std::string pairs = message_of([] { training_tokenizer("gpt2-bpe"); });
  const std::string bert = message_of([] { training_tokenizer("bert"); });
  EXPECT_EQ(default_language_tokenizer().name, "bytes");
  const std::vector<std::string_view> texts = {"a word"};
  EXPECT_EQ(default_text_tokenizer(texts).name, "words");
  std::filesystem::create_directories(directory.path() / "tokenizers" / "bert");
  directory.file("tokenizers/bert/vocab.txt", "[UNK]\n[CLS]\n[SEP]\n[PAD]\n");
  EXPECT_EQ(default_text_tokenizer(texts).name, "bert");
  if (kept)
    ::setenv("NORMSCOPE_DATA", kept->c_str(), 1);
  else
    ::unsetenv("NORMSCOPE_DATA");
  expect_mentions(pairs, {"normscope data get gpt2-bpe"});
  expect_mentions(bert, {"normscope data get tokenizers"});
}

TEST(WordTokenizer, KeepsTheMostFrequentWords) {
  const std::vector<std::string_view> texts = {"The cat, the DOG.", "the cat\nsleeps; a café"};
  const TrainingTokenizer words = word_tokenizer(texts, 7);
  EXPECT_EQ(words.size(), 7U);
  EXPECT_EQ(words.tokenizer.token(4), "the");
  EXPECT_EQ(words.tokenizer.token(5), "cat");
  EXPECT_EQ(words.tokenizer.token(6), ",");  // of those met once the first by spelling
  EXPECT_EQ(ids_of(words, "The cat sleeps"), (Ids{2, 4, 5, 1, 3}));
  EXPECT_EQ(words.padding, 0U);
  EXPECT_EQ(word_tokenizer(texts, 1000).tokenizer.id("cafe").has_value(), true);
  EXPECT_THROW(word_tokenizer(texts, 4), InputError);
  const std::vector<std::string_view> blank = {" ", ""};
  EXPECT_THROW(word_tokenizer(blank, 10), InputError);
}

}  // namespace
}  // namespace normscope

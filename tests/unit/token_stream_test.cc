#include "normscope/token_stream.h"

#include <gtest/gtest.h>

#include <set>

#include "support/message.h"
#include "support/temporary_directory.h"

namespace normscope {
namespace {

using Ids = std::vector<std::uint32_t>;
using Paths = std::vector<std::string>;

Ids counted(std::uint32_t count) {
  Ids ids;
  for (std::uint32_t i = 0; i < count; ++i) ids.push_back(i);
  return ids;
}

StreamOptions options(std::size_t context, std::uint64_t most = 0, double held_out = 0) {
  StreamOptions result;
  result.context = context;
  result.most_tokens = most;
  result.held_out_share = held_out;
  return result;
}

TEST(TokenStream, JoinsDocumentsByEndOfText) {
  const TemporaryDirectory directory;
  const auto corpus = text_corpus(Paths{directory.file("a", "hi"), directory.file("b", "you")});
  const TokenStream stream = token_stream(*corpus, training_tokenizer("bytes"), options(2), Executor(1));
  EXPECT_EQ(stream.tokens, (Ids{'h', 'i', 256, 'y', 'o', 'u', 256}));
  EXPECT_EQ(stream.documents, 2U);
  EXPECT_EQ(stream.bytes, 5U);
  EXPECT_TRUE(stream.whole);
  EXPECT_EQ(stream.training().size(), 7U);
}

TEST(TokenStream, OfALongFileIsThatOfItsBytes) {
  const TemporaryDirectory directory;
  std::string text;
  for (int i = 0; text.size() < 300000; ++i) text += "Zeile " + std::to_string(i) + ", süß.\n";
  const auto corpus = text_corpus(Paths{directory.file("a", text)});
  const TokenStream stream = token_stream(*corpus, training_tokenizer("bytes"), options(8), Executor(2));
  ASSERT_EQ(stream.tokens.size(), text.size() + 1);
  for (std::size_t i = 0; i < text.size(); ++i)
    ASSERT_EQ(stream.tokens[i], static_cast<unsigned char>(text[i])) << i;
}

TEST(TokenStream, IsTheSameForAnyNumberOfThreads) {
  const auto corpus = grammar_corpus(1);
  const TrainingTokenizer bytes = training_tokenizer("bytes");
  const TokenStream one = token_stream(*corpus, bytes, options(64, 100000, 0.1), Executor(1));
  const TokenStream three = token_stream(*corpus, bytes, options(64, 100000, 0.1), Executor(3));
  EXPECT_EQ(one.tokens, three.tokens);
  EXPECT_EQ(one.content_hash, three.content_hash);
  EXPECT_EQ(one.documents, three.documents);
  EXPECT_EQ(one.bytes, three.bytes);
}

TEST(TokenStream, ReadsNoMoreThanIsAskedFor) {
  const TemporaryDirectory directory;
  std::string text(1000000, 'x');
  text[900000] = '\xFF';  // would be refused if it were read
  const auto corpus = text_corpus(Paths{directory.file("a", text)});
  const TokenStream stream =
      token_stream(*corpus, training_tokenizer("bytes"), options(8, 1000), Executor(1));
  EXPECT_EQ(stream.tokens, Ids(1000, 'x'));
  EXPECT_FALSE(stream.whole);
}

TEST(TokenStream, HoldsOutTheLastShareAndAWindowAtLeast) {
  const TemporaryDirectory directory;
  const auto corpus = text_corpus(Paths{directory.file("a", std::string(999, 'x'))});
  const TrainingTokenizer bytes = training_tokenizer("bytes");
  const TokenStream tenth = token_stream(*corpus, bytes, options(8, 0, 0.1), Executor(1));
  EXPECT_EQ(tenth.held_out().size(), 100U);
  EXPECT_EQ(tenth.training().size(), 900U);
  EXPECT_EQ(tenth.held_out().back(), 256U);
  const TokenStream window = token_stream(*corpus, bytes, options(200, 0, 0.1), Executor(1));
  EXPECT_EQ(window.held_out().size(), 201U);
  EXPECT_NE(tenth.content_hash, window.content_hash);
}

TEST(TokenStream, SaysWhichContextWouldDo) {
  const TemporaryDirectory directory;
  const TrainingTokenizer bytes = training_tokenizer("bytes");
  const auto corpus = text_corpus(Paths{directory.file("a", std::string(99, 'x'))});
  const auto refused = [&](const Corpus& its, const StreamOptions& asked) {
    return message_of([&] { token_stream(its, bytes, asked, Executor(1)); });
  };
  expect_mentions(refused(*corpus, options(100)), {"has 100 tokens", "--context 99"});
  EXPECT_NO_THROW(token_stream(*corpus, bytes, options(99), Executor(1)));
  expect_mentions(refused(*corpus, options(50, 0, 0.1)), {"has 100 tokens", "--context 49"});
  EXPECT_NO_THROW(token_stream(*corpus, bytes, options(49, 0, 0.1), Executor(1)));
  expect_mentions(refused(*corpus, options(30, 0, 0.75)), {"--context 24"});
  EXPECT_NO_THROW(token_stream(*corpus, bytes, options(24, 0, 0.75), Executor(1)));
  const auto mark = text_corpus(Paths{directory.file("mark", "\xEF\xBB\xBF")});
  expect_mentions(refused(*mark, options(1)), {"has 1 token,", "more text"});
}

TEST(TokenStream, RefusesSettingsWithoutSense) {
  const TrainingTokenizer bytes = training_tokenizer("bytes");
  const auto corpus = grammar_corpus(1);
  const auto refused = [&](const TrainingTokenizer& tokenizer, const StreamOptions& asked) {
    return message_of([&] { token_stream(*corpus, tokenizer, asked, Executor(1)); });
  };
  expect_mentions(refused(bytes, options(8)), {"no end", "how many tokens"});
  expect_mentions(refused(bytes, options(0, 100)), {"context is 0"});
  expect_mentions(refused(bytes, options(8, 100, 1)), {"held out is 1"});
  TrainingTokenizer endless = bytes;
  endless.end_of_text.reset();
  expect_mentions(refused(endless, options(8, 100)), {"bytes", "ends a text", "eos_token"});
}

TEST(LanguageBatch, HasWindowsWithWhatFollowsEachToken) {
  const Ids tokens = counted(100);
  const TokenBatch batch = language_batch(tokens, 7, 5, 1, 0);
  ASSERT_EQ(batch.texts, 5U);
  ASSERT_EQ(batch.length, 7U);
  ASSERT_EQ(batch.tokens.size(), 35U);
  EXPECT_TRUE(batch.lengths.empty());
  for (std::size_t i = 0; i < 35; ++i) {
    EXPECT_EQ(batch.targets[i], batch.tokens[i] + 1);
    if (i % 7 > 0) {
      EXPECT_EQ(batch.tokens[i], batch.tokens[i - 1] + 1);
    }
  }
}

// Against the naive reading: list all windows, and see each once per epoch.
TEST(LanguageBatch, ShowsEveryTokenOnceInAnEpoch) {
  for (const std::uint32_t size : {8U, 14U, 15U, 16U, 100U}) {
    const Ids tokens = counted(size);
    const std::uint64_t windows = window_count(tokens, 7);
    EXPECT_EQ(windows, (size - 1 + 6) / 7);
    std::multiset<std::uint32_t> expected, first, second;
    for (std::uint32_t begin = 0; begin + 1 < size; begin += 7) expected.insert(std::min(begin, size - 8));
    for (std::uint64_t step = 0; step < windows; ++step) {
      first.insert(language_batch(tokens, 7, 1, 3, step).tokens[0]);
      second.insert(language_batch(tokens, 7, 1, 3, windows + step).tokens[0]);
    }
    EXPECT_EQ(first, expected) << size;
    EXPECT_EQ(second, expected) << size;
  }
}

TEST(LanguageBatch, DoesNotDependOnHowTheOrderIsCutIntoBatches) {
  const Ids tokens = counted(1000);
  Ids singly, together;
  for (std::uint64_t step = 0; step < 300; ++step)
    singly.push_back(language_batch(tokens, 9, 1, 5, step).tokens[0]);
  for (std::uint64_t step = 0; step < 60; ++step) {
    const TokenBatch batch = language_batch(tokens, 9, 5, 5, step);
    for (std::size_t row = 0; row < 5; ++row) together.push_back(batch.tokens[row * 9]);
  }
  EXPECT_EQ(singly, together);
  Ids other;
  for (std::uint64_t step = 0; step < 300; ++step)
    other.push_back(language_batch(tokens, 9, 1, 6, step).tokens[0]);
  EXPECT_NE(singly, other);
  const Ids epoch1(singly.begin(), singly.begin() + 111), epoch2(singly.begin() + 111, singly.begin() + 222);
  EXPECT_NE(epoch1, epoch2);
}

TEST(LanguageBatch, RefusesTextShorterThanAWindow) {
  const Ids tokens = counted(8);
  EXPECT_NO_THROW(language_batch(tokens, 7, 1, 1, 0));
  expect_mentions(message_of([&] { language_batch(tokens, 8, 1, 1, 0); }), {"8 tokens", "window of 8"});
  EXPECT_THROW(language_batch({}, 1, 1, 1, 0), InputError);
  EXPECT_THROW(language_batch(tokens, 0, 1, 1, 0), InputError);
  EXPECT_THROW(language_batch(tokens, 1, 0, 1, 0), InputError);
}

TEST(HeldOutBatches, AreAllWindowsOrEvenlySpaced) {
  const Ids tokens = counted(101);
  const auto all = held_out_batches(tokens, 10, 4, 1000);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].texts, 4U);
  EXPECT_EQ(all[2].texts, 2U);
  EXPECT_EQ(all[2].tokens[10], 90U);
  const auto some = held_out_batches(tokens, 10, 4, 5);
  ASSERT_EQ(some.size(), 2U);
  EXPECT_EQ(some[0].tokens[10], 20U);
  EXPECT_EQ(some[1].tokens[0], 80U);
  EXPECT_EQ(some[1].targets[0], 81U);
}

}  // namespace
}  // namespace normscope

// Corpora as `normscope data get` fetches them; skipped where they have not been (tests/SKIPPED.md).
#include <gtest/gtest.h>

#include "fetch/place.h"
#include "normscope/labelled_text.h"
#include "normscope/token_stream.h"

namespace normscope {
namespace {

#define SKIP_UNLESS_FETCHED(name) \
  if (!fetch::is_fetched(name)) GTEST_SKIP() << "not fetched; get it with: normscope data get " << (name)

using Ids = std::vector<std::uint32_t>;

// What is remembered of words changes no id: against whole passages, encoded at once.
void expect_ids_of_whole_passages(const Corpus& corpus, const Tokenizer& tokenizer, std::uint64_t passages) {
  WordMemory memory;
  for (std::uint64_t i = 0; i < passages; ++i) {
    const std::string text = corpus.passage(i).text;
    Ids ids, expected;
    tokenizer.append_ids(text, memory, ids);
    for (const Token& token : tokenizer.encode(text, SpecialTokens::omit)) expected.push_back(token.id);
    ASSERT_EQ(ids, expected) << corpus.name() << " passage " << i;
  }
}

TEST(FetchedCorpora, HaveTheIdsOfWholePassages) {
  for (const char* name : {"imdb", "gutenberg", "gpt2-bpe", "tokenizers"}) SKIP_UNLESS_FETCHED(name);
  for (const char* name : {"gpt2-bpe", "bert"}) {
    const TrainingTokenizer tokenizer = training_tokenizer(name);
    expect_ids_of_whole_passages(*imdb_corpus(), tokenizer.tokenizer, 300);
    expect_ids_of_whole_passages(*gutenberg_corpus(), tokenizer.tokenizer, 40);
  }
}

TEST(FetchedCorpora, GutenbergHasThreeMillionTokensOfGpt2) {
  for (const char* name : {"gutenberg", "gpt2-bpe"}) SKIP_UNLESS_FETCHED(name);
  const TrainingTokenizer tokenizer = training_tokenizer("gpt2-bpe");
  EXPECT_EQ(tokenizer.size(), 50257U);
  EXPECT_EQ(tokenizer.end_of_text, 50256U);
  const TokenStream stream = token_stream(*gutenberg_corpus(), tokenizer, {}, Executor(2));
  EXPECT_EQ(stream.tokens.size(), 3163816U);
  EXPECT_EQ(stream.documents, 729U);
  EXPECT_EQ(stream.content_hash, "6b6b6b7bd4976b8c");
}

TEST(FetchedCorpora, ImdbSplitsIntoHalvesThatShareNoReview) {
  SKIP_UNLESS_FETCHED("imdb");
  const LabelledSplit split = imdb_reviews();
  EXPECT_EQ(split.test.rows.size(), 25000U);
  EXPECT_EQ(split.training.rows.size(), 24788U);
  EXPECT_EQ(split.repeated, 212U);
  std::size_t positive = 0;
  for (const LabelledText& row : split.test.rows) {
    positive += row.label;
    ASSERT_EQ(row.text.find("<br />"), std::string::npos);
  }
  EXPECT_EQ(positive, 12500U);
}

}  // namespace
}  // namespace normscope

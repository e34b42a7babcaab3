#include "normscope/labelled_text.h"

#include <gtest/gtest.h>

#include <set>

#include "corpus/json_array.h"
#include "support/message.h"
#include "support/temporary_directory.h"

namespace normscope {
namespace {

using Ids = std::vector<std::uint32_t>;
using Strings = std::vector<std::string>;

LabelledTexts read_as(const std::string& name, const std::string& content,
                      const LabelledColumns& columns = {}, const Strings* classes = nullptr) {
  const TemporaryDirectory directory;
  return read_labelled(directory.file(name, content), columns, classes);
}

std::string refused(const std::string& name, const std::string& content, const LabelledColumns& columns = {},
                    const Strings* classes = nullptr) {
  return message_of([&] { read_as(name, content, columns, classes); });
}

void expect_rows(const LabelledTexts& texts, const std::vector<std::pair<std::string, std::uint32_t>>& rows) {
  ASSERT_EQ(texts.rows.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(texts.rows[i].text, rows[i].first) << i;
    EXPECT_EQ(texts.rows[i].label, rows[i].second) << i;
  }
}

TEST(LabelledTable, ReadsTabsWithTheLabelFirstAndQuotesAsTheyAre) {
  const LabelledTexts texts = read_as("a.tsv", "label\tsentence\n0\tno \"wit\" , only\r\n1\ta \"gem\n\n");
  EXPECT_EQ(texts.classes, (Strings{"0", "1"}));
  expect_rows(texts, {{"no \"wit\" , only", 0}, {"a \"gem", 1}});
  expect_rows(read_as("b.tsv", "label\tcontent\n1\tgood\n0\tbad"), {{"good", 1}, {"bad", 0}});
}

TEST(LabelledTable, ReadsQuotedFieldsOfSeveralLines) {
  const LabelledTexts texts = read_as(
      "a.csv", "\xEF\xBB\xBFid,text,label\r\n1,\"a, \"\"b\"\"\nc\",pos\r\n2,,neg\n3,plain \"x\" y,pos");
  EXPECT_EQ(texts.classes, (Strings{"neg", "pos"}));
  expect_rows(texts, {{"a, \"b\"\nc", 1}, {"", 0}, {"plain \"x\" y", 1}});
}

TEST(LabelledTable, ReadsJsonArraysAndLines) {
  const std::string one = R"({"t": "good \u00fc", "s": 1})", two = R"({"s": 0, "t": "bad", "more": [1, {}]})";
  for (const auto& [name, content] :
       std::vector<std::pair<std::string, std::string>>{{"a.json", "[" + one + ", " + two + "]"},
                                                        {"a.jsonl", one + "\n\n" + two + "\n"},
                                                        {"unnamed", "[" + one + ", " + two + "]"},
                                                        {"unnamed", one + "\r\n" + two}})
    expect_rows(read_as(name, content), {{"good ü", 1}, {"bad", 0}});
}

TEST(LabelledTable, SortsLabelsAsNumbersIfTheyAre) {
  EXPECT_EQ(read_as("a.csv", "text,label\na,10\nb,9\nc,-1\n").classes, (Strings{"-1", "9", "10"}));
  EXPECT_EQ(read_as("a.csv", "text,label\na,10\nb,9\nc,x\n").classes, (Strings{"10", "9", "x"}));
  EXPECT_EQ(read_as("a.json", R"([{"text": "a", "label": true}, {"text": "b", "label": false}])").classes,
            (Strings{"false", "true"}));
}

TEST(LabelledTable, TakesNamedColumns) {
  LabelledColumns columns;
  columns.text = "body";
  columns.label = "stars";
  expect_rows(read_as("a.csv", "text,body,label,stars\nx,y,0,5\nx,z,0,1\n", columns), {{"y", 1}, {"z", 0}});
  expect_mentions(refused("a.csv", "text,label\na,0\nb,1\n", columns), {"'body'", "'text', 'label'"});
  expect_mentions(refused("a.csv", "words,label\na,0\nb,1\n"),
                  {"no column of texts", "'sentence'", "'words', 'label'"});
  expect_mentions(refused("a.tsv", "sentence\tscore\na\t0\n"),
                  {"no column of labels", "'sentence', 'score'"});
  expect_mentions(refused("a.jsonl", "{\"text\": \"a\", \"label\": 0}\n{\"label\": 0}"),
                  {"Line 2", "it has 'label'"});
}

TEST(LabelledTable, NamesTheLineAtFault) {
  expect_mentions(refused("a.tsv", "label\tsentence\n0\ta\n1\tb\tc\n"),
                  {"Line 3", "3 fields", "header has 2"});
  expect_mentions(refused("a.csv", "text,label\n\"a\nb\",0\n\nc\n"), {"Line 5", "1 field,", "header has 2"});
  expect_mentions(refused("a.csv", "text,label\na,0\n\"b,1\nc,0\n"), {"Line 3", "never closed"});
  expect_mentions(refused("a.csv", "text,label\n\"a\"b,0\n"), {"Line 2", "behind a closing quote"});
  expect_mentions(refused("a.csv", "text,label\na,0\nb,\n"), {"Line 3", "no label"});
  expect_mentions(refused("a.jsonl", "{\"text\": \"a\", \"label\": 0}\n{\"text\": \"b\", \"label\": 1"),
                  {"Line 2", "not JSON"});
  expect_mentions(refused("a.json", R"([{"text": "a", "label": 0.5}])"),
                  {"Object 1", "number", "whole numbers"});
  expect_mentions(refused("a.json", R"([{"text": 1, "label": 0}])"), {"Object 1", "texts are strings"});
  expect_mentions(refused("a.tsv", "label\tsentence\n0\tcaf\xE9\n"), {"a.tsv", "not UTF-8", "offset 20"});
  expect_mentions(refused("a.json", "[{\"text\": \"\xE9\", \"label\": 0}]"),
                  {"Object 1", "not UTF-8", "offset 11"});
}

TEST(LabelledTable, RefusesHostileFiles) {
  expect_mentions(refused("a.jsonl", "{\"text\": " + std::string(100000, '[')), {"Line 1", "nested deeper"});
  expect_mentions(
      refused("a.csv", "text,label\n\"" + std::string(corpus::kLongestRecord + 1, 'x') + "\",1\n"),
      {"Line 2"});
  expect_mentions(refused("a.tsv", std::string(corpus::kLongestRecord + 1, 'x')), {"Line 1", "more than"});
  expect_mentions(refused("a.csv", std::string(100000, ',')), {"Line 1", "fields"});
  expect_mentions(refused("a.csv", ""), {"holds no texts"});
  expect_mentions(refused("a.csv", "text,label\n"), {"holds no texts"});
  expect_mentions(refused("a.json", "[]"), {"holds no texts"});
  std::string many = "text,label\n";
  for (int i = 0; i < 2000; ++i) many += "a," + std::to_string(i) + "\n";
  expect_mentions(refused("a.csv", many), {"more than 1000 different labels"});
}

TEST(LabelledTable, RefusesOneClassAndUnknownLabels) {
  expect_mentions(refused("a.csv", "text,label\na,0\nb,0\n"), {"one class only", "'0'"});
  const Strings classes = {"0", "1"};
  EXPECT_EQ(read_as("a.csv", "text,label\na,1\n", {}, &classes).rows[0].label, 1U);
  expect_mentions(refused("a.csv", "text,label\na,1\nb,2\n", {}, &classes), {"Line 3", "'2'", "'0', '1'"});
}

TEST(LabelledSplit, TakesAShareOfEachClassAndLeavesRepeatsOutOfTraining) {
  LabelledTexts texts = grammar_reviews(200, 1);
  for (LabelledText& row : texts.rows) row.text += std::to_string(&row - texts.rows.data());
  texts.rows[7].text = texts.rows[9].text = texts.rows[11].text = texts.rows[13].text = "again";
  const LabelledSplit split = split_labelled(texts, 0.25, 3);
  ASSERT_EQ(split.test.rows.size(), 50U);
  EXPECT_EQ(split.training.rows.size() + split.repeated, 150U);
  std::size_t positive = 0;
  std::set<std::string> tested;
  for (const LabelledText& row : split.test.rows) {
    positive += row.label;
    tested.insert(row.text);
  }
  EXPECT_EQ(positive, 25U);
  for (const LabelledText& row : split.training.rows) EXPECT_FALSE(tested.contains(row.text));
  const LabelledSplit again = split_labelled(texts, 0.25, 3), other = split_labelled(texts, 0.25, 4);
  EXPECT_EQ(again.test.rows[0].text, split.test.rows[0].text);
  std::set<std::string> others;
  for (const LabelledText& row : other.test.rows) others.insert(row.text);
  EXPECT_NE(others, tested);
  EXPECT_THROW(split_labelled(texts, 0, 1), InputError);
  EXPECT_THROW(split_labelled(texts, 1, 1), InputError);
  EXPECT_THROW(split_labelled(grammar_reviews(2, 1), 0.1, 1), InputError);
}

TEST(GrammarReviews, AreBalancedAndSaySo) {
  const LabelledTexts texts = grammar_reviews(100, 5);
  EXPECT_TRUE(texts.generated);
  EXPECT_EQ(texts.classes, (Strings{"negative", "positive"}));
  std::size_t positive = 0;
  for (const LabelledText& row : texts.rows) positive += row.label;
  EXPECT_EQ(positive, 50U);
  expect_rows(grammar_reviews(1, 5), {{texts.rows[0].text, 0}});
}

TrainingTokenizer words_of(const LabelledTexts& texts) {
  return word_tokenizer(texts.texts(), 1000);
}

TEST(EncodedTexts, KeepTheSpecialTokensOfTextsThatAreCut) {
  const LabelledTexts texts =
      read_as("a.tsv", "label\ttext\n0\tone two three four\n1\tone\n1\t\n0\tone two three\n");
  const TrainingTokenizer words = words_of(texts);
  const EncodedTexts encoded = encode_labelled(texts, words, 5, Executor(1));
  ASSERT_EQ(encoded.size(), 4U);
  EXPECT_EQ(encoded.cut, 1U);
  const auto id = [&](const char* word) { return words.tokenizer.id(word).value(); };
  const Ids cut(encoded.text(0).begin(), encoded.text(0).end()),
      whole(encoded.text(3).begin(), encoded.text(3).end());
  EXPECT_EQ(cut, (Ids{2, id("one"), id("two"), id("three"), 3}));
  EXPECT_EQ(whole, cut);
  EXPECT_EQ(encoded.text(2).size(), 2U);
  EXPECT_THROW(encode_labelled(texts, words, 2, Executor(1)), InputError);
}

// Against the naive reading, text by text, and for one and three threads.
TEST(EncodedTexts, AreTheTokenizersForAnyNumberOfThreads) {
  const LabelledTexts texts = grammar_reviews(500, 2);
  const TrainingTokenizer words = words_of(texts);
  const EncodedTexts one = encode_labelled(texts, words, 12, Executor(1));
  const EncodedTexts three = encode_labelled(texts, words, 12, Executor(3));
  EXPECT_EQ(one.tokens, three.tokens);
  EXPECT_EQ(one.content_hash, three.content_hash);
  for (std::size_t i = 0; i < texts.rows.size(); ++i) {
    Ids expected;
    for (const Token& token : words.tokenizer.encode(texts.rows[i].text)) expected.push_back(token.id);
    if (expected.size() > 12) expected.erase(expected.begin() + 11, expected.end() - 1);
    ASSERT_EQ(Ids(one.text(i).begin(), one.text(i).end()), expected) << i;
    ASSERT_EQ(one.labels[i], texts.rows[i].label);
  }
}

TEST(TextBatch, IsFilledUpToItsLongestText) {
  const LabelledTexts texts = read_as("a.tsv", "label\ttext\n0\tone two\n1\tone\n1\tone two three\n");
  const EncodedTexts encoded = encode_labelled(texts, words_of(texts), 128, Executor(1));
  const auto batches = text_batches(encoded, 2);
  ASSERT_EQ(batches.size(), 2U);
  EXPECT_EQ(batches[0].length, 4U);
  EXPECT_EQ(batches[0].lengths, (Ids{4, 3}));
  EXPECT_EQ(batches[0].targets, (Ids{0, 1}));
  ASSERT_EQ(batches[0].tokens.size(), 8U);
  EXPECT_EQ(batches[0].tokens[7], encoded.padding);
  EXPECT_EQ(batches[0].tokens[6], 3U);
  EXPECT_EQ(batches[1].texts, 1U);
  EXPECT_EQ(batches[1].length, 5U);
}

TEST(TextBatch, ShowsEveryTextOnceInAnEpoch) {
  const LabelledTexts texts = grammar_reviews(30, 4);
  EncodedTexts encoded = encode_labelled(texts, words_of(texts), 64, Executor(1));
  for (std::uint32_t i = 0; i < 30; ++i) encoded.labels[i] = i;  // to tell them apart
  Ids order;
  for (std::uint64_t step = 0; step < 15; ++step)
    for (const std::uint32_t label : text_batch(encoded, 4, 9, step).targets) order.push_back(label);
  const std::set<std::uint32_t> first(order.begin(), order.begin() + 30),
      second(order.begin() + 30, order.end());
  EXPECT_EQ(first.size(), 30U);
  EXPECT_EQ(second.size(), 30U);
  EXPECT_EQ(text_batch(encoded, 1, 9, 17).targets[0], order[17]);
  EXPECT_THROW(text_batch(encoded, 0, 1, 1), InputError);
  EXPECT_THROW(text_batch(EncodedTexts(), 1, 1, 1), InputError);
}

}  // namespace
}  // namespace normscope

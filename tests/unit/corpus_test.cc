#include "normscope/corpus.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <set>
#include <sstream>

#include "corpus/grammar.h"
#include "corpus/json_array.h"
#include "corpus/permutation.h"
#include "corpus/plain_text.h"
#include "corpus/slices.h"
#include "support/message.h"
#include "support/temporary_directory.h"

namespace normscope {
namespace {

using corpus::Permutation;
using Paths = std::vector<std::string>;

// Where fetched data are looked for, as long as it lives.
class DataDirectory {
 public:
  explicit DataDirectory(const TemporaryDirectory& directory) {
    if (const char* before = std::getenv("NORMSCOPE_DATA")) before_ = before;
    ::setenv("NORMSCOPE_DATA", directory.path().c_str(), 1);
  }
  DataDirectory(const DataDirectory&) = delete;
  DataDirectory& operator=(const DataDirectory&) = delete;
  ~DataDirectory() {
    if (before_)
      ::setenv("NORMSCOPE_DATA", before_->c_str(), 1);
    else
      ::unsetenv("NORMSCOPE_DATA");
  }

 private:
  std::optional<std::string> before_;
};

std::string whole_text(const Corpus& corpus) {
  std::string text;
  for (std::uint64_t i = 0; i < corpus.passages(); ++i) text += corpus.passage(i).text;
  return text;
}

std::string refusal(const Paths& paths) {
  return message_of([&] { whole_text(*text_corpus(paths)); });
}

TEST(Permutation, VisitsEveryPlaceOnce) {
  for (const std::uint64_t size : {1U, 2U, 3U, 5U, 16U, 17U, 1000U}) {
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < size; ++i) seen.insert(Permutation(size, 1, 2)(i));
    EXPECT_EQ(seen.size(), size);
    EXPECT_EQ(*seen.rbegin(), size - 1);
  }
}

TEST(Permutation, DiffersBySeedAndStreamAndIsNoRotation) {
  const auto order = [](std::uint64_t seed, std::uint64_t stream) {
    std::vector<std::uint64_t> result;
    for (std::uint64_t i = 0; i < 100; ++i) result.push_back(Permutation(100, seed, stream)(i));
    return result;
  };
  EXPECT_NE(order(1, 0), order(2, 0));
  EXPECT_NE(order(1, 0), order(1, 1));
  EXPECT_EQ(order(1, 0), order(1, 0));
  std::size_t neighbours = 0;
  for (std::uint64_t i = 0; i + 1 < 100; ++i) neighbours += order(3, 0)[i + 1] == order(3, 0)[i] + 1 ? 1 : 0;
  EXPECT_LT(neighbours, 10U);
}

TEST(TextCorpus, HasADocumentForEachFileInOrder) {
  const TemporaryDirectory directory;
  const auto corpus = text_corpus(Paths{directory.file("b.txt", "second"), directory.file("a.txt", "first")});
  ASSERT_EQ(corpus->passages(), 2U);
  EXPECT_EQ(corpus->passage(0).text, "second");
  EXPECT_EQ(corpus->passage(1).text, "first");
  EXPECT_TRUE(corpus->passage(0).ends_document);
  EXPECT_FALSE(corpus->generated());
}

TEST(TextCorpus, CutsLongFilesBeforeWhiteSpaceAndLosesNothing) {
  const TemporaryDirectory directory;
  std::string text;
  for (int i = 0; text.size() < 400000; ++i)
    text += (i % 7 == 0 ? "\n\nword" : "  Wört ") + std::to_string(i * i);
  const auto corpus = text_corpus(Paths{directory.file("long.txt", text)});
  EXPECT_GT(corpus->passages(), 5U);
  EXPECT_EQ(whole_text(*corpus), text);
  for (std::uint64_t i = 0; i < corpus->passages(); ++i) {
    const Passage passage = corpus->passage(i);
    EXPECT_EQ(passage.ends_document, i + 1 == corpus->passages());
    if (i > 0) {
      EXPECT_TRUE(passage.text[0] == ' ' || passage.text[0] == '\n') << i;
    }
  }
}

TEST(TextCorpus, CutsTextWithoutWhiteSpaceBetweenCharacters) {
  const TemporaryDirectory directory;
  std::string text;
  while (text.size() < 300000) text += "中";
  const auto corpus = text_corpus(Paths{directory.file("long.txt", text)});
  EXPECT_EQ(whole_text(*corpus), text);
  for (std::uint64_t i = 0; i < corpus->passages(); ++i) EXPECT_LE(corpus->passage(i).text.size(), 140000U);
}

TEST(TextCorpus, ReadsLineEndsAndTheByteOrderMarkAsPythonDoes) {
  const TemporaryDirectory directory;
  EXPECT_EQ(whole_text(*text_corpus(Paths{directory.file("a.txt", "\xEF\xBB\xBFone\r\ntwo\rthree\n")})),
            "one\ntwo\nthree\n");
}

TEST(TextCorpus, NamesTheByteThatIsNotUtf8) {
  const TemporaryDirectory directory;
  expect_mentions(refusal({directory.file("a.txt", "caf\xE9 au lait")}),
                  {"a.txt", "0xe9", "offset 3", "iconv"});
  std::string far(200000, 'x');
  far[150000] = '\xFF';
  expect_mentions(refusal({directory.file("far.txt", far)}), {"offset 150000"});
  expect_mentions(refusal({directory.file("zero.txt", std::string("ab\0c", 4))}), {"zero byte", "offset 2"});
  expect_mentions(refusal({directory.file("utf16.txt", "\xFF\xFEh")}), {"UTF-16", "iconv"});
}

TEST(TextCorpus, RefusesWhatHoldsNoText) {
  const TemporaryDirectory directory;
  expect_mentions(refusal({}), {"no text files"});
  expect_mentions(refusal({directory.file("empty.txt", "")}), {"empty.txt", "is empty"});
  expect_mentions(refusal({directory.file("missing.txt")}), {"does not exist"});
  expect_mentions(refusal({directory.path().string()}), {"is a directory", "text files"});
}

TEST(TextCorpus, NoticesAFileThatChangesWhileItIsRead) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("a.txt", "one two");
  const auto corpus = text_corpus(Paths{path});
  directory.file("a.txt", "one");
  expect_mentions(message_of([&] { corpus->passage(0); }), {"has changed", "7", "3"});
}

TEST(FetchedCorpus, SaysHowToGetWhatIsAbsent) {
  const TemporaryDirectory directory;
  const DataDirectory data(directory);
  expect_mentions(message_of([] { corpus_by_name("imdb", 1); }), {"normscope data get imdb"});
  expect_mentions(message_of([] { corpus_by_name("gutenberg", 1); }), {"normscope data get gutenberg"});
  expect_mentions(message_of([] { corpus_by_name("wikipedia", 1); }),
                  {"wikipedia", "imdb", "gutenberg", "grammar"});
}

TEST(FetchedCorpus, IsTheFirstThatIsThereElseTheGrammar) {
  const TemporaryDirectory directory;
  const DataDirectory data(directory);
  EXPECT_EQ(default_corpus(1)->name(), "grammar");
  std::filesystem::create_directory(directory.path() / "gutenberg");
  directory.file("gutenberg/book.txt", "Once.");
  EXPECT_EQ(default_corpus(1)->name(), "gutenberg");
  std::filesystem::create_directory(directory.path() / "imdb");
  directory.file("imdb/reviews.json", R"([{"t": "Good.", "s": 1}])");
  EXPECT_EQ(default_corpus(1)->name(), "imdb");
}

TEST(FetchedCorpus, ShufflesReviewsAndBreaksTheirLines) {
  const TemporaryDirectory directory;
  const DataDirectory data(directory);
  std::filesystem::create_directory(directory.path() / "imdb");
  std::string file = "[";
  for (int i = 0; i < 50; ++i)
    file += (i > 0 ? ",\n" : "") + std::string(R"({"t": "Review )") + std::to_string(i) +
            R"( \"}]\".<br /><br />End.", "s": )" + (i < 25 ? "0}" : "1}");
  directory.file("imdb/reviews.json", file + "]");
  const auto corpus = imdb_corpus();
  ASSERT_EQ(corpus->passages(), 50U);
  std::set<std::string> seen;
  std::size_t at_home = 0;
  for (int i = 0; i < 50; ++i) {
    const std::string text = corpus->passage(static_cast<std::uint64_t>(i)).text;
    seen.insert(text);
    at_home += text == "Review " + std::to_string(i) + " \"}]\".\n\nEnd." ? 1 : 0;
  }
  EXPECT_EQ(seen.size(), 50U);
  EXPECT_LT(at_home, 10U);
  directory.file("imdb/reviews.json", R"([{"t": "Good.", "s": 1}, {"t": 5, "s": 1}])");
  expect_mentions(message_of([] { whole_text(*imdb_corpus()); }), {"review 2"});
}

TEST(FetchedCorpus, CutsBooksAtParagraphsAndReadsLatin1) {
  const TemporaryDirectory directory;
  const DataDirectory data(directory);
  std::filesystem::create_directory(directory.path() / "gutenberg");
  std::string book;
  for (int i = 0; i < 3000; ++i)
    book += "Caf\xE9 " + std::to_string(i) + (i % 5 == 0 ? ".\r\n\r\n" : ".\r\n");
  directory.file("gutenberg/book.txt", book);
  directory.file("gutenberg/README", "not a book");
  const auto corpus = gutenberg_corpus();
  std::size_t lines = 0;
  for (std::uint64_t i = 0; i < corpus->passages(); ++i) {
    const std::string text = corpus->passage(i).text;
    EXPECT_TRUE(corpus::is_utf8(text));
    EXPECT_TRUE(text.starts_with("Café ")) << text.substr(0, 20);
    EXPECT_EQ(text.find('\r'), std::string::npos);
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines += line.empty() ? 0 : 1;
  }
  EXPECT_EQ(lines, 3000U);
}

TEST(JsonObjects, AreFoundWhereverStringsAndBracesMislead) {
  const std::string text = R"( [ {"a": "}\\\"]{" , "b": [{}, []]} , {} ] )";
  const auto file = io::bytes_in_memory({reinterpret_cast<const std::byte*>(text.data()),
                                         reinterpret_cast<const std::byte*>(text.data()) + text.size()},
                                        "text");
  const auto ranges = corpus::json_objects(*file, "text");
  ASSERT_EQ(ranges.size(), 2U);
  EXPECT_EQ(text.substr(ranges[0].begin, ranges[0].size), R"({"a": "}\\\"]{" , "b": [{}, []]})");
  EXPECT_EQ(text.substr(ranges[1].begin, ranges[1].size), "{}");
}

TEST(JsonObjects, AreRefusedWhenDamagedOrHostile) {
  const auto refused = [](const std::string& text) {
    const auto* first = reinterpret_cast<const std::byte*>(text.data());
    const auto file = io::bytes_in_memory({first, first + text.size()}, "text");
    return message_of([&] { corpus::json_objects(*file, "'text'"); });
  };
  expect_mentions(refused(""), {"'text'", "'['", "offset 0"});
  expect_mentions(refused("{}"), {"'['", "offset 0"});
  expect_mentions(refused("[1]"), {"'{'", "offset 1"});
  expect_mentions(refused("[{},]"), {"'{'", "offset 4"});
  expect_mentions(refused("[{} {}]"), {"',' or ']'", "offset 4"});
  expect_mentions(refused("[{}]x"), {"nothing more", "offset 4"});
  expect_mentions(refused("[{\"a\": \"b"), {"ends within", "offset 1"});
  expect_mentions(refused("[{" + std::string(100000, '[')), {"nested deeper"});
  expect_mentions(refused("[{\"" + std::string(corpus::kLongestRecord, 'x')), {"more than", "offset 1"});
}

TEST(Grammar, TellsTheSameStoryForTheSameSeedAndAnotherForAnother) {
  EXPECT_EQ(corpus::grammar_story(3, 5), corpus::grammar_story(3, 5));
  EXPECT_NE(corpus::grammar_story(3, 5), corpus::grammar_story(3, 6));
  EXPECT_NE(corpus::grammar_story(3, 5), corpus::grammar_story(4, 5));
  const auto corpus = grammar_corpus(3);
  EXPECT_EQ(corpus->passage(5).text, corpus::grammar_story(3, 5));
  EXPECT_TRUE(corpus->generated());
  EXPECT_EQ(corpus->description(), "built-in grammar, generated, seed 3");
}

std::set<std::string> words_of(const std::string& text) {
  std::set<std::string> words;
  std::istringstream in(text);
  for (std::string word; in >> word;) {
    while (!word.empty() && (word.back() == '.' || word.back() == ',' || word.back() == '?')) word.pop_back();
    words.insert(word);
  }
  return words;
}

TEST(Grammar, HasManyWordsAndFewInAStory) {
  std::set<std::string> all;
  std::size_t largest = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::set<std::string> words = words_of(corpus::grammar_story(1, i));
    largest = std::max(largest, words.size());
    all.insert(words.begin(), words.end());
  }
  EXPECT_GT(all.size(), 1000U);
  EXPECT_LT(largest, 160U);  // a story keeps to its topic
}

TEST(Grammar, CountsRightly) {
  const std::vector<std::string> numbers = {"zero",  "one",   "two",  "three", "four",   "five",  "six",
                                            "seven", "eight", "nine", "ten",   "eleven", "twelve"};
  const auto value = [&](const std::string& word) {
    return std::find(numbers.begin(), numbers.end(), word) - numbers.begin();
  };
  std::size_t counted = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const std::string story = corpus::grammar_story(2, i);
    for (std::size_t at = story.find("There "); at != std::string::npos; at = story.find("There ", at + 1)) {
      std::istringstream in(story.substr(at));
      std::string there, be, all, word, name, take, taken, of, them, so, rest, left;
      in >> there >> be >> all;
      while (in >> word && !word.ends_with('.')) continue;
      in >> name >> take >> taken >> of >> them >> so >> rest >> be >> left;
      EXPECT_EQ(value(all), value(taken) + value(rest)) << story.substr(at, 120);
      EXPECT_EQ(be == "is" || be == "was", rest == "one") << story.substr(at, 120);
      ++counted;
    }
  }
  EXPECT_GT(counted, 50U);
}

}  // namespace
}  // namespace normscope

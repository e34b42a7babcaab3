// Structs that name their fields once: JSON there and back, and its schema.
#include "result/describe.h"

#include <gtest/gtest.h>

#include <limits>

#include "normscope/keys.h"
#include "result/json_reader.h"
#include "result/json_writer.h"
#include "result/keys.h"
#include "result/schema.h"
#include "support/message.h"

namespace normscope {
namespace {

struct Inner {
  std::string word;
  double number = 0;
  static void describe(auto& visit, auto& self) {
    visit("word", self.word, "a word");
    visit("number", self.number, "a number");
  }
};

struct Outer {
  std::size_t count = 0;
  int below = 0;
  bool flag = false;
  Verdict verdict = Verdict::selectable;
  std::optional<double> maybe;
  std::optional<std::string> shown;
  std::vector<double> list;
  std::vector<bool> flags;
  std::vector<Inner> inner;
  Named<Inner> named;

  static void describe(auto& visit, auto& self) {
    visit("count", self.count, "how many");
    visit("below", self.below, "may be negative");
    visit("flag", self.flag, "yes or no");
    visit("verdict", self.verdict, "by name");
    visit("maybe", self.maybe, "null if there is none");
    visit.when(self.shown.has_value(), "shown", self.shown, "absent if there is none");
    visit("list", self.list, "numbers");
    visit("flags", self.flags, "yes or no each");
    visit("inner", self.inner, "objects");
    visit("named", self.named, "objects by name");
  }
};

Outer example() {
  return {.count = 3,
          .below = -2,
          .flag = true,
          .verdict = Verdict::tied,
          .maybe = 0.1,
          .shown = "\"µ\"\n",
          .list = {1, 2.5, 1e-300, std::numeric_limits<double>::infinity()},
          .flags = {true, false},
          .inner = {{"a", 1}, {"b", std::nan("")}},
          .named = {{"z", {"c", 3}}, {"a", {"d", 4}}}};
}

TEST(Described, IsWrittenAsTheLibraryForJsonWould) {
  for (const Outer& each : {example(), Outer()}) {
    for (const int indent : {-1, 2, 4}) {
      const std::string text = json_of(each, indent);
      EXPECT_EQ(nlohmann::ordered_json::parse(text).dump(indent) + "\n", text);
    }
  }
  EXPECT_EQ(json_of(Inner{"a", 0.5}, -1), "{\"word\":\"a\",\"number\":0.5}\n");
  EXPECT_EQ(json_of(Inner{"\xff", 1}, -1), "{\"word\":\"\xef\xbf\xbd\",\"number\":1.0}\n");
}

TEST(Described, ReadsBackWhatWasWritten) {
  for (const Outer& each : {example(), Outer()}) {
    const std::string text = json_of(each);
    EXPECT_EQ(json_of(from_json<Outer>(text, "the file")), text);
  }
  const Outer read = from_json<Outer>(json_of(example()), "the file");
  EXPECT_EQ(read.verdict, Verdict::tied);
  EXPECT_EQ(read.named[1].first, "a");
  EXPECT_EQ(read.below, -2);
}

TEST(Described, NamesWhatIsMissingUnknownOrOfAnotherKind) {
  const auto refused = [](const std::string& text) {
    return message_of([&] { from_json<Inner>(text, "the file"); });
  };
  expect_mentions(refused(R"({"word": "a"})"), {"the file", "'number'"});
  expect_mentions(refused(R"({"word": "a", "number": 1, "more": 2})"), {"the file", "'more'"});
  expect_mentions(refused(R"({"word": 1, "number": 1})"), {"the file.word", "text"});
  expect_mentions(refused(R"({"word": "a", "number": "b"})"), {"the file.number", "number"});
  expect_mentions(refused("[1"), {"the file", "JSON"});
  expect_mentions(refused("[1]"), {"the file", "object"});
  const auto changed = [](const char* name, const nlohmann::ordered_json& value) {
    auto json = nlohmann::ordered_json::parse(json_of(example()));
    json[name] = value;
    return message_of([&] { from_json<Outer>(json.dump(), "the file"); });
  };
  expect_mentions(changed("verdict", "maybe"), {"the file.verdict", "selectable", "unselectable"});
  expect_mentions(changed("count", -1), {"the file.count", "whole number"});
  expect_mentions(changed("below", 1e10), {"the file.below", "whole number"});
  expect_mentions(changed("below", 3'000'000'000), {"the file.below", "whole number"});
  expect_mentions(changed("inner", {{{"word", "a"}, {"number", 1}}, {{"word", "b"}}}),
                  {"the file.inner[1]", "'number'"});
}

TEST(Described, HasASchemaWithASentenceForEveryField) {
  const auto schema = schema_of<Outer>("an example");
  EXPECT_EQ(schema["title"], "an example");
  EXPECT_EQ(schema["properties"]["count"]["type"], "integer");
  EXPECT_EQ(schema["properties"]["count"]["description"], "how many");
  EXPECT_EQ(schema["properties"]["verdict"]["enum"].size(), 4u);
  EXPECT_EQ(schema["properties"]["inner"]["items"]["properties"]["word"]["type"], "string");
  const auto required = schema["required"].get<std::vector<std::string>>();
  EXPECT_EQ(std::count(required.begin(), required.end(), "shown"), 0);
  EXPECT_EQ(std::count(required.begin(), required.end(), "maybe"), 1);
}

TEST(KeysResult, ReadsBackWhatWasWritten) {
  KeysResult result;
  result.settings.query_norm = 2;
  KeySetResult& set = result.sets.emplace_back();
  set.set.n = 3, set.set.d = 2, set.set.rank = 1, set.set.kept = {1};
  set.keys.emplace();
  for (const Verdict verdict : {Verdict::selectable, Verdict::tied, Verdict::unselectable}) {
    KeyResult& key = set.keys->emplace_back();
    key.index = set.keys->size() - 1;
    key.key.verdict = verdict;
    key.key.margin = key.key.depth = 0.25;
    key.key.cover = {{0, 0.5}, {2, 0.5}};
    if (verdict != Verdict::tied) key.verified = true;
  }
  const std::string text = json_of(result, -1);
  const KeysResult read = from_json<KeysResult>(text, "results.json");
  EXPECT_EQ(json_of(read, -1), text);
  EXPECT_EQ(read.sets[0].keys->at(2).key.depth, 0.25);
  EXPECT_EQ(read.sets[0].keys->at(0).key.cover[1].index, 2u);
  EXPECT_EQ(read.sets[0].set.kept, set.set.kept);
}

}  // namespace
}  // namespace normscope

// Every result, with every field filled, reads back to the bytes it was written as.
#include <gtest/gtest.h>

#include "fetch/data.h"
#include "result/ablate.h"
#include "result/collapse.h"
#include "result/columns.h"
#include "result/equilibria.h"
#include "result/heatmap.h"
#include "result/json_reader.h"
#include "result/json_writer.h"
#include "result/keys.h"
#include "result/mask.h"
#include "result/paper.h"
#include "result/ranges.h"
#include "result/scan.h"
#include "result/training.h"
#include "result/vocab.h"
#include "serve/site.h"
#include "support/message.h"

namespace normscope {
namespace {

// A visitor that gives every field a value of its own, also those that are there only under a condition.
class Filler {
 public:
  // Values rise or fall from field to field, so that conditions between fields are met once or the other time.
  Filler(int& next, int step) : next_(next), step_(step) {}

  template <class Field>
  void operator()(const char*, Field& field, const char*, const Facts& = {}) {
    fill(field);
  }
  template <class Field>
  void when(bool, const char*, Field& field, const char*, const Facts& = {}) {
    fill(field);
  }
  template <class Field>
  void of_kind(bool, bool, const char*, Field& field, const char*, const Facts& = {}) {
    fill(field);
  }
  template <class T>
  void fill(T& value) {
    using Kind = FieldKind<T>;
    if constexpr (Described<T>) {
      T::describe(*this, value);
    } else if constexpr (Kind::optional) {
      fill(value.emplace());
    } else if constexpr (Kind::named) {
      for (const char* name : {"z", "a"}) fill(value.emplace_back(name, typename Kind::Inner()).second);
    } else if constexpr (Kind::list) {
      for (int i = 0; i < 2; ++i) {
        typename Kind::Inner each{};
        fill(each);
        value.push_back(each);
      }
    } else if constexpr (NamedEnumeration<T>) {
      const auto all = values_of(value);
      value = all[static_cast<std::size_t>(number()) % all.size()];
    } else if constexpr (std::is_same_v<T, bool>) {
      value = true;
    } else if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<T>(number() + 0.125);
    } else if constexpr (std::is_integral_v<T>) {
      value = static_cast<T>(number());
    } else {
      value = "word " + std::to_string(number());
    }
  }

 private:
  int number() { return next_ += step_; }
  int& next_;
  int step_;
};

template <class Result>
void expect_round_trip(const char* name) {
  for (const int step : {0, 1, -1}) {
    Result result{};
    int next = step < 0 ? 100'000 : 0;
    if (step != 0) Filler(next, step).fill(result);
    const std::string text = json_of(result, -1);
    EXPECT_EQ(json_of(from_json<Result>(text, name), -1), text) << name;
  }
}

TEST(Results, ReadBackToTheBytesTheyWereWrittenAs) {
  expect_round_trip<KeysResult>("keys");
  expect_round_trip<ScanResult>("scan");
  expect_round_trip<VocabResult>("vocab");
  expect_round_trip<AblateResult>("ablate");
  expect_round_trip<HeatmapResult>("heatmap");
  expect_round_trip<MasksResult>("mask");
  expect_round_trip<CollapseResult>("collapse");
  expect_round_trip<EquilibriaResult>("equilibria");
  expect_round_trip<MajorityResult>("train majority");
  expect_round_trip<TextResult>("train lm");
  expect_round_trip<MajorityPlan>("plan of train majority");
  expect_round_trip<TextPlan>("plan of train lm");
  expect_round_trip<TrainingLine<MajorityMeasures<double>>>("line of train majority");
  expect_round_trip<TrainingLine<TextMeasures>>("line of train lm");
  expect_round_trip<PaperResult>("paper");
  expect_round_trip<PaperPlan>("plan of paper");
  expect_round_trip<serve::ServeResult>("serve");
  expect_round_trip<fetch::DataListResult>("data list");
  expect_round_trip<fetch::DataGetResult>("data get");
  expect_round_trip<fetch::DataPathResult>("data path");
  for (const TextResult& result : {TextResult::of_a_language_model(), TextResult::of_a_classifier()})
    EXPECT_EQ(json_of(from_json<TextResult>(json_of(result), "train")), json_of(result));
}

struct Ranged {
  std::size_t count = 1;
  std::vector<double> shares = {};
  std::optional<double> maybe = {};

  static void describe(auto& visit, auto& self) {
    visit("count", self.count, "how many", {.low = 1});
    visit("shares", self.shares, "of each", {.low = 0, .high = 1});
    visit.when(self.maybe.has_value(), "maybe", self.maybe, "or not", {.finite = true});
  }
};
struct Holder {
  std::vector<Ranged> inner = {};
  static void describe(auto& visit, auto& self) { visit("inner", self.inner, "some"); }
};

TEST(Ranges, NameTheFirstNumberThatIsOutOfItsOwn) {
  const auto refused = [](const Ranged& inner) {
    return message_of([&] { require_in_ranges(Holder{{{}, inner}}, "config.json"); });
  };
  EXPECT_NO_THROW(require_in_ranges(Holder{{{}, {2, {0, 1}, 3}}}, "config.json"));
  EXPECT_EQ(refused({0}), "config.json.inner[1].count is 0, but takes at least 1.");
  EXPECT_EQ(refused({1, {0.5, 1.5}}), "config.json.inner[1].shares[1] is 1.5, but takes 0 to 1.");
  expect_mentions(refused({1, {std::nan("")}}), {"shares[0]", "0 to 1"});
  expect_mentions(refused({1, {}, INFINITY}), {"maybe", "finite"});
}

struct Row {
  std::string words = "a,b";
  Quoted name = {"plain"};
  double number = 0.5;
  std::optional<double> nothing = {};
  bool flag = true;
  Verdict verdict = Verdict::tied;
  Named<std::size_t> entries = {{"x", 1}, {"y", 2}};
  bool more = false;

  static void describe(auto& visit, auto& self) {
    visit("words", self.words, "some");
    visit("name", self.name, "in quotes");
    visit("number", self.number, "with all digits", {.heading = "#"});
    visit("nothing", self.nothing, "is empty");
    visit("flag", self.flag, "yes or no");
    visit("verdict", self.verdict, "by name");
    visit("entries", self.entries, "a column each");
    visit.when(self.more, "more", self.number, "only then");
  }
};

TEST(Columns, AreHeadingsAndCellsOfDescribedRows) {
  using Lines = std::vector<std::vector<std::string>>;
  Row other;
  other.number = std::nan("");
  EXPECT_EQ(table_of(std::vector<Row>{{}, other}),
            (Lines{{"words", "name", "#", "nothing", "flag", "verdict", "x", "y"},
                   {"a,b", "plain", "0.5", "", "yes", "tied", "1", "2"},
                   {"a,b", "plain", "", "", "yes", "tied", "1", "2"}}));
  EXPECT_TRUE(table_of(std::vector<Row>()).empty());
  EXPECT_EQ(columns_of(Row())[2].sentence, std::string("with all digits"));
  Csv<Row> csv({"flag", "y"});
  csv.add({.words = "say \"a\"", .more = true});
  EXPECT_EQ(std::move(csv).text(),
            "words,name,#,nothing,verdict,x\n\"say \"\"a\"\"\",\"plain\",0.5,,tied,1,0.5\n");
}

}  // namespace
}  // namespace normscope

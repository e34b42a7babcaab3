#include "record/text_record.h"

#include <gtest/gtest.h>

#include "normscope/error.h"
#include "support/message.h"
#include "support/temporary_directory.h"

namespace normscope {
namespace {

using Json = nlohmann::ordered_json;

TextPlan tiny_plan() {
  TextPlan plan;
  plan.settings = published_language_training();
  plan.settings.spec.model.vocabulary = 7;
  plan.settings.spec.model.layers = 1;
  plan.settings.spec.model.positions = 6;
  plan.settings.adam.learning_rate = 0.01;
  plan.settings.adam.schedule = {Schedule::Kind::cosine, 3, 12};
  plan.settings.steps = 12;
  plan.settings.evaluate_every = 4;
  plan.batch = 2;
  plan.context = 6;
  plan.runs = {{"layernorm", 1}, {"center", 2}};
  plan.data.source = "files";
  plan.data.files = {"a.txt", "b.txt"};
  plan.data.tokenizer = "bytes";
  plan.data.description = "two files";
  plan.data.content_hash = "abc";
  plan.data.classes = {};
  return plan;
}

TokenBatch batch_of(std::uint64_t seed, std::uint64_t step) {
  TokenBatch batch;
  batch.texts = 2;
  batch.length = 6;
  for (std::uint64_t i = 0; i < 12; ++i) {
    batch.tokens.push_back(static_cast<std::uint32_t>((seed + step + i) % 7));
    batch.targets.push_back(static_cast<std::uint32_t>((seed + step + i + 1) % 7));
  }
  return batch;
}

TextTraining training_of(const TextPlan& plan) {
  return {plan.settings, plan.runs, {batch_of, {batch_of(0, 100)}}};
}

TEST(TextPlan, ReadsBackFromItsConfig) {
  TextPlan plan = tiny_plan();
  plan.save_every = 8;
  plan.checkpoint_every = 16;
  EXPECT_EQ(to_json(text_plan(to_json(plan))), to_json(plan));
  plan.settings = published_sentiment_training();
  plan.settings.spec.classes = 3;
  plan.data.classes = {"bad", "fair", "good"};
  plan.data.generated = true;
  EXPECT_EQ(to_json(text_plan(to_json(plan))), to_json(plan));
}

TEST(TextPlan, IsRefusedByTheNameOfWhatIsWrong) {
  const Json good = to_json(tiny_plan());
  const auto expect_refused = [&](const char* fact, const auto& change) {
    Json json = good;
    change(json);
    EXPECT_NE(message_of<InputError>([&] { text_plan(json); }).find(fact), std::string::npos) << fact;
  };
  expect_refused("'data'", [](Json& json) { json.erase("data"); });
  expect_refused("'batch'", [](Json& json) { json["settings"]["batch"] = "many"; });
  expect_refused("'generated'", [](Json& json) { json["data"]["generated"] = 1; });
  expect_refused("'seed'", [](Json& json) { json["runs"][0]["seed"] = -1; });
  expect_refused("runs", [](Json& json) { json.erase("runs"); });
}

TEST(TextPlan, OtherDataAreNotGoneOnWith) {
  const TextPlan plan = tiny_plan();
  EXPECT_NO_THROW(require_same_data(plan, "abc", 7));
  EXPECT_NE(message_of<InputError>([&] { require_same_data(plan, "abd", 7); }).find("two files"),
            std::string::npos);
  EXPECT_NE(message_of<InputError>([&] { require_same_data(plan, "abc", 8); }).find("8 tokens"),
            std::string::npos);
}

TEST(TextRecord, GoesOnToTheSameLinesAndParameters) {
  const TemporaryDirectory folder;
  const TextPlan plan = tiny_plan();
  const Executor executor(1);
  TextTraining whole = training_of(plan);
  {
    TextRecord record(folder.path() / "whole", "train lm", provenance(0, 1), plan);
    while (!whole.done()) {
      whole.advance(executor);
      record.add(whole);
    }
    EXPECT_EQ(record.checkpoint(), folder.path() / "whole" / kCheckpointFile);
  }
  {
    TextRecord record(folder.path() / "parted", "train lm", provenance(0, 1), plan);
    record.set_checkpoint_every(4);
    TextTraining part = training_of(plan);
    for (int i = 0; i < 3; ++i) {
      part.advance(executor);
      record.add(part);
    }
  }
  TextRecord record = TextRecord::open(folder.path() / "parted", "train lm");
  TextTraining rest = training_of(record.plan());
  record.restore(rest);
  EXPECT_EQ(rest.step(), 8u);
  while (!rest.done()) {
    rest.advance(executor);
    record.add(rest);
  }
  for (std::size_t r = 0; r < 2; ++r) EXPECT_EQ(rest.runs()[r].parameters, whole.runs()[r].parameters);
  const auto lines = whole_lines(folder.path() / "parted" / kMetricsFile);
  EXPECT_EQ(lines, whole_lines(folder.path() / "whole" / kMetricsFile));
  EXPECT_EQ(lines.size(), 2u * 4);
}

}  // namespace
}  // namespace normscope

// Trainings without the command line: plans and results as JSON there and back, records that go on.
#include <gtest/gtest.h>

#include <fstream>

#include "normscope/error.h"
#include "result/schema.h"
#include "study/train_majority.h"
#include "study/train_text.h"
#include "support/message.h"
#include "support/temporary_directory.h"

namespace normscope {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json json_value(const T& described) {
  return Json::parse(json_of(described));
}
TextPlan text_plan(const Json& json) {
  TextPlan plan;
  JsonReader::read(json, "The run's config.json", plan);
  return plan;
}

TextPlan tiny_plan() {
  TextPlan plan;
  static_cast<TextTrainingSettings&>(plan.settings) = published_language_training();
  plan.settings.spec.model.vocabulary = 7;
  plan.settings.spec.model.layers = 1;
  plan.settings.spec.model.positions = 6;
  plan.settings.adam.learning_rate = 0.01;
  plan.settings.adam.schedule = {Schedule::Kind::cosine, 3, 12};
  plan.settings.steps = 12;
  plan.settings.evaluate_every = 4;
  plan.settings.batch = 2;
  plan.settings.context = 6;
  plan.settings.content_hash = "abc";
  plan.runs = {PlannedRun{{"layernorm", 1}}, PlannedRun{{"center", 2}}};
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
  return {plan.settings, {plan.runs.begin(), plan.runs.end()}, {batch_of, {batch_of(0, 100)}}};
}

TEST(TextPlan, ReadsBackFromItsConfig) {
  TextPlan plan = tiny_plan();
  plan.save_every = 8;
  plan.checkpoint_every = 16;
  EXPECT_EQ(json_value(text_plan(json_value(plan))), json_value(plan));
  const TransformerSpec read = text_plan(json_value(plan)).settings.spec;
  EXPECT_EQ(parameter_slots(read).size(), parameter_slots(plan.settings.spec).size());
  EXPECT_EQ(read.model.block.norm.eps, plan.settings.spec.model.block.norm.eps);  // as published
  static_cast<TextTrainingSettings&>(plan.settings) = published_sentiment_training();
  plan.settings.spec.classes = 3;
  plan.data.classes = {"bad", "fair", "good"};
  plan.data.generated = true;
  EXPECT_EQ(json_value(text_plan(json_value(plan))), json_value(plan));
  EXPECT_NO_THROW(check_plan(plan));
}

TEST(TextPlan, IsRefusedByTheNameOfWhatIsWrong) {
  const Json good = json_value(tiny_plan());
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
  const auto read = [&](const char* content_hash, std::size_t vocabulary) {
    TextPlan now = plan;
    now.data.content_hash = content_hash;
    now.settings.spec.model.vocabulary = vocabulary;
    require_same_data(plan, now);
  };
  EXPECT_NO_THROW(read("abc", 7));
  EXPECT_NE(message_of<InputError>([&] { read("abd", 7); }).find("two files"), std::string::npos);
  EXPECT_NE(message_of<InputError>([&] { read("abc", 8); }).find("8 tokens"), std::string::npos);
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

TEST(TextRecord, IsBegunOrResumedWithTheSamePlanOnly) {
  const TemporaryDirectory folder;
  TextPlan plan = tiny_plan();
  const auto begin = [&] {
    return TextRecord::begin_or_open(folder.path() / "run", "train lm", provenance(0, 1), plan);
  };
  EXPECT_FALSE(begin().checkpoint());
  EXPECT_NO_THROW(begin());
  plan.settings.batch = 3;
  EXPECT_NE(message_of<InputError>(begin).find("other settings"), std::string::npos);
  plan.data.content_hash = "abd";
  EXPECT_NE(message_of<InputError>(begin).find("not what the run was begun with"), std::string::npos);
}

TEST(TextRecord, NamesWhatSomebodyChangedInItsConfig) {
  const TemporaryDirectory folder;
  { const TextRecord record(folder.path() / "run", "train lm", provenance(0, 1), tiny_plan()); }
  const std::string file = (folder.path() / "run" / "config.json").string();
  std::ifstream stream(file);
  const Json config = Json::parse(stream);
  const auto opened = [&](const auto& change) {
    Json changed = config;
    change(changed);
    std::ofstream(file) << changed.dump();
    return message_of<InputError>([&] { TextRecord::open(folder.path() / "run", "train lm"); });
  };
  expect_mentions(opened([](Json& json) { json["options"]["settings"]["layers"] = 0; }),
                  {"config.json", "settings.layers is 0", "at least 1"});
  expect_mentions(opened([](Json& json) { json["options"]["settings"]["dropout"] = 1.5; }),
                  {"config.json", "settings.dropout is 1.5", "0 to 1"});
  expect_mentions(opened([](Json& json) { json["options"]["settings"].erase("batch"); }),
                  {"config.json", "settings", "'batch'"});
  expect_mentions(opened([](Json& json) { json["options"]["more"] = 1; }), {"config.json", "unknown 'more'"});
  expect_mentions(opened([](Json& json) { json["more"] = 1; }), {"config.json", "unknown 'more'"});
  expect_mentions(opened([](Json& json) { json.erase("seed"); }), {"config.json", "no 'seed'"});
}

template <class Result>
void expect_reads_back(const Result& result) {
  const std::string text = json_of(result);
  EXPECT_EQ(json_of(from_json<Result>(text, "results.json")), text);
  const auto schema = schema_of<Result>("a result");
  const Json json = Json::parse(text);
  for (const auto& [name, ignored] : json.items())
    EXPECT_TRUE(schema.at("properties").contains(name)) << name;
}

TEST(MajorityStudy, ResultReadsBackAndGoesOnFromItsRecord) {
  const Executor executor(1);
  MajorityOptions options;
  options.norm = "layernorm,rmsnorm";
  options.seeds = "2";
  options.classes = 4;
  options.length = 10;
  options.samples = 60;
  options.steps = 6;
  options.other.task.margin = 2;
  options.other.batch = 20;
  options.other.evaluate_every = 3;
  const MajorityPlan plan = plan_majority(options);
  EXPECT_EQ(plan.settings.feed_forward, 8u);
  EXPECT_EQ(json_value(from_json<MajorityPlan>(json_of(plan), "config.json")), json_value(plan));
  const TemporaryDirectory folder;
  MajorityRecord record(folder.path() / "run", "train majority", provenance(0, 1), plan);
  std::size_t done = 0, total = 0;
  const MajorityStudy study = study_majority(plan, &record, {executor, 0, [&](std::size_t d, std::size_t t) {
                                                               done = d;
                                                               total = t;
                                                             }});
  EXPECT_EQ(done, 4u * 6);
  EXPECT_EQ(total, 4u * 6);
  ASSERT_EQ(study.result.runs.size(), 4u);
  ASSERT_EQ(study.result.norms.size(), 2u);
  EXPECT_EQ(study.result.runs[0].measures.test_loss, study.training.runs()[0].rows.back().test.loss);
  EXPECT_EQ(study.result.norms[0].measures.accuracy.count, 2u);
  expect_reads_back(study.result);
  const MajorityStudy again = study_majority(plan, &record, {executor});
  EXPECT_EQ(again.time.steps, 0u);
  EXPECT_EQ(json_value(again.result)["runs"], json_value(study.result)["runs"]);
}

TEST(TextStudy, ResultReadsBack) {
  const Executor executor(1);
  LanguageOptions options;
  options.corpus = "grammar";
  options.tokenizer = "bytes";
  options.tokens = 2000;
  options.context = 8;
  options.batch = 2;
  options.layers = 1;
  options.steps = 4;
  options.evaluate_every = 2;
  const PlannedTexts planned = plan_language(options, {executor});
  const TextTrainingStudy study = study_text(planned.plan, planned.texts, nullptr, {executor});
  EXPECT_EQ(study.result.command, "train lm");
  EXPECT_EQ(study.result.runs[0].measures.tokens, 4u * 2 * 8);
  EXPECT_FALSE(study.result.runs[0].model);
  expect_reads_back(study.result);

  TextResult troubled = study.result;
  troubled.runs[0].trouble = TroubleResult{{LossTrouble::Kind::spike, 3, 9.5, 1.5, 8, "wte"}};
  expect_reads_back(troubled);
}

TextRun tested_run(std::uint64_t seed, std::optional<TransformerLoss> held_out) {
  TextRun run;
  run.id = {"none", seed};
  run.rows = {TextRow{10, 0.5, held_out}};
  return run;
}

TEST(TextStudy, TheIntervalOfOneAccuracyIsThatOfTheRunThatHasIt) {
  TransformerLoss tested;
  tested.loss = 0.7;
  tested.accuracy = 0.75;
  tested.targets = 40;
  const std::vector<TextRun> runs = {tested_run(1, std::nullopt), tested_run(2, tested)};
  const TextNormResult both = norm_result("none", runs, true),
                       one = norm_result("none", std::span(runs).last(1), true);
  EXPECT_EQ(both.runs, 2u);
  EXPECT_EQ(both.accuracy->count, 1u);
  EXPECT_EQ(both.accuracy->mean, 0.75);
  EXPECT_LT(both.accuracy->low, 0.75);
  EXPECT_EQ(both.accuracy->low, one.accuracy->low);
  EXPECT_EQ(both.accuracy->high, one.accuracy->high);
}

}  // namespace
}  // namespace normscope

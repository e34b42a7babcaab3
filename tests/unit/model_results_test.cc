// Studies of trained models, called without the command line: their results read back as they were written.
#include <gtest/gtest.h>

#include "normscope/tensor_file.h"
#include "result/json_reader.h"
#include "result/json_writer.h"
#include "study/ablate.h"
#include "study/scan.h"
#include "study/vocab.h"
#include "support/message.h"
#include "support/paths.h"
#include "support/temporary_directory.h"

namespace normscope {
namespace {

TextOptions text_of(const std::string& model, const TemporaryDirectory& directory) {
  TextOptions text;
  text.model = source_path() + "/tests/golden/models/" + model;
  text.ids = directory.file("ids.txt", "3 1 4 1 5 9 2 6 5 3 5 8 9 7 9 3");
  text.window = 5;
  text.samples = 3;
  return text;
}

template <class Result>
void expect_reads_back(const Result& result) {
  const std::string text = json_of(result, -1);
  EXPECT_EQ(json_of(from_json<Result>(text, "results.json"), -1), text);
}

TEST(AblateResult, ReadsBackWhatWasWritten) {
  const TemporaryDirectory directory;
  const Executor executor(1);
  for (const char* model : {"gpt2", "bert", "t5"}) {
    AblateOptions options;
    options.text = text_of(model, directory);
    options.rescale = true;
    options.prompts = 2;
    options.probe_length = 4;
    const AblateResult result = study_ablate(options, {executor}).result;
    EXPECT_EQ(result.rows.size(), 9u);
    EXPECT_EQ(result.rows[2].layers->size(), 3u);
    EXPECT_TRUE(result.rows[2].layers->at(1).constant);
    expect_reads_back(result);
  }
}

TEST(AblateResult, ARowThatFailedSaysWhyAndNothingElse) {
  AblateRowResult row;
  row.name = "none";
  row.norm = "none";
  row.failure = "Tokens left the range of float32 in layer 1.";
  const auto json = nlohmann::ordered_json::parse(json_of(row));
  EXPECT_EQ(json.size(), 3u);
  expect_reads_back(row);
}

// So that what few prompts call no worse by a tenth and many prompts worse do not contradict each other.
TEST(AblateResult, TheVerdictSaysWhetherALossIsBelowTheMargin) {
  AblateResult result;
  result.settings.tolerated = 0.1;
  result.settings.prompts = 32;
  AblateRowResult& row = result.rows.emplace_back();
  row.name = "rmsnorm";
  const auto change = [](const char* measure, double low, double high, RetrievalVerdict verdict) {
    return RetrievalChange{
        measure, {32, 0.85, 0.8, 0.9}, {32, 0.8, 0.7, 0.9}, {32, (low + high) / 2, low, high}, 0.05, verdict};
  };
  const auto told = [&](const RetrievalChange& one) {
    row.retrieval = std::vector{one};
    return ablate_verdict(result);
  };
  EXPECT_EQ(
      told(change("finds", -0.05, -0.01, RetrievalVerdict::worse)),
      "rmsnorm: retrieval worse, by less than 10 % of what it has above chance (finds 0.85 → 0.8, -0.03 ± 0.02).");
  EXPECT_EQ(told(change("finds", -0.15, -0.01, RetrievalVerdict::worse)),
            "rmsnorm: retrieval worse (finds 0.85 → 0.8, -0.08 ± 0.07).");
  EXPECT_EQ(
      told(change("finds", -0.06, 0.02, RetrievalVerdict::not_worse)),
      "rmsnorm: retrieval no worse by 10 % of what it has above chance (finds 0.85 → 0.8, -0.02 ± 0.04).");
  EXPECT_EQ(told(change("copy", -0.2, 0.2, RetrievalVerdict::not_shown)),
            "rmsnorm: retrieval no difference these 32 prompts can show (copy 0.85 → 0.8, 0 ± 0.2).");
}

TEST(AblateStudy, RefusesWhatAModelCannotHave) {
  const TemporaryDirectory directory;
  const Executor executor(1);
  AblateOptions options;
  options.text = text_of("gpt2", directory);
  const auto refused = [&] { return message_of([&] { study_ablate(options, {executor}); }); };
  options.text.window = 17;
  expect_mentions(refused(), {"--window", "from 1 to 16", "17"});
  options.text.window = 5;
  options.mask_token = 4;
  expect_mentions(refused(), {"--mask-token", "encoders"});
  options.text = text_of("bert", directory);
  options.mask_token = 50;
  expect_mentions(refused(), {"--mask-token", "from 0 to 49"});
}

TEST(VocabResult, ReadsBackWhatWasWritten) {
  const TemporaryDirectory directory;
  const Executor executor(1);
  // Corners of a square, its centre, the middle of an edge, and a corner twice.
  write_npy(directory.file("square.npy"),
            {"", DType::float32, {7, 2}, {1, 1, 1, -1, -1, 1, -1, -1, 0, 0, 1, 0, 1, 1}});
  for (const bool exact : {false, true}) {
    VocabOptions options;
    options.source = directory.file("square.npy");
    options.exact = exact;
    const VocabResult result = study_vocab(options, {executor}).result;
    EXPECT_EQ(result.counts.tied, 3u);
    EXPECT_EQ(result.verified.has_value(), exact);
    expect_reads_back(result);
  }
  VocabOptions options;
  options.source = source_path() + "/tests/golden/models/gpt2";
  expect_reads_back(study_vocab(options, {executor}).result);
}

TEST(VocabResult, ATokenIsNamedWhereItsVocabularyIsKnown) {
  VocabToken token;
  token.verdict = Verdict::unselectable;
  token.cover = {{3, 0.5, "three"}, {4, 0.5, ""}};
  const auto json = nlohmann::ordered_json::parse(json_of(token));
  EXPECT_FALSE(json.contains("token"));
  EXPECT_FALSE(json.contains("margin"));
  EXPECT_EQ(json["cover"][0]["token"], "three");
  EXPECT_FALSE(json["cover"][1].contains("token"));
  expect_reads_back(token);
}

TEST(ScanResult, ReadsBackWhatWasWritten) {
  const TemporaryDirectory directory;
  const Executor executor(1);
  for (const char* model : {"gpt2", "albert", "mistral"}) {
    ScanOptions options;
    options.text = text_of(model, directory);
    ScanResult result = study_scan(options, {executor}).result;
    EXPECT_EQ(result.spaces.size(), 4u);
    EXPECT_EQ(result.windows->at(2).layers.size(), 3u);
    expect_reads_back(result);
    result.windows.reset();
    expect_reads_back(result);
  }
}

TEST(ScanStudy, AsksOnlyWhatItIsAskedAndNamesASpaceOnce) {
  const TemporaryDirectory directory;
  const Executor executor(1);
  ScanOptions options;
  options.text = text_of("gpt2", directory);
  options.spaces = {"head", "head"};
  options.layers = "1";
  options.heads = "0";
  const ScanResult result = study_scan(options, {executor}).result;
  EXPECT_EQ(result.spaces.size(), 1u);
  ASSERT_EQ(result.windows->at(0).layers.size(), 1u);
  EXPECT_FALSE(result.windows->at(0).layers[0].model);
  EXPECT_FALSE(result.windows->at(0).layers[0].heads.at(0).reachable);
  expect_reads_back(result);
}

TEST(ScanStudy, WritesTracesWhereItIsTold) {
  const TemporaryDirectory directory;
  const Executor executor(1);
  ScanOptions options;
  options.text = text_of("gpt2", directory);
  options.spaces = {"model"};
  options.trace = "out";
  expect_mentions(message_of([&] { study_scan(options, {executor}); }), {"--trace", "--out"});
  study_scan(options, {executor}, directory.path());
  const TensorFile trace = TensorFile::open(directory.file("trace.layer.2.safetensors"));
  EXPECT_EQ(trace.read("window.1.layer.2.out").shape.at(0), 5u);
}

}  // namespace
}  // namespace normscope

// Studies of trained models, called without the command line: their results read back as they were written.
#include <gtest/gtest.h>

#include "result/json_reader.h"
#include "result/json_writer.h"
#include "study/ablate.h"
#include "support/message.h"
#include "support/temporary_directory.h"

namespace normscope {
namespace {

TextOptions text_of(const std::string& model, const TemporaryDirectory& directory) {
  TextOptions text;
  text.model = NORMSCOPE_SOURCE "/tests/golden/models/" + model;
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

}  // namespace
}  // namespace normscope

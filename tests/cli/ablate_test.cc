// normscope ablate, as a user calls it: on the tiny models of tests/golden.
#include "study/ablate.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "result/json_writer.h"
#include "support/program.h"

namespace normscope {
namespace {

class AblateCommand : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    std::string ids;
    for (int i = 0; i < 60; ++i) ids += std::to_string(3 + i * i % 47) + " ";
    write(path("ids.txt"), ids);
  }
  static std::string model(const std::string& name) {
    return "\"" + source_path() + "/tests/golden/models/" + name + "\"";
  }
  // On three windows of ten tokens.
  std::string call(const std::string& name) const {
    return "ablate " + model(name) + " --ids " + path("ids.txt") +
           " --window 10 --samples 3 --prompts 3 --probe-length 6 ";
  }
};

TEST_F(AblateCommand, HasARowForEveryNormBesideTheModelAsTrained) {
  const Outcome outcome = run(call("gpt2") + "--norm none center --rescale");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* fact : {"as trained", "none", "none, rescaled", "center, rescaled", "loss", "copy gain",
                           "lookup", "head finds", "layernorm; replaced in all layers"})
    EXPECT_NE(outcome.out.find(fact), std::string::npos) << fact << " is missing in: " << outcome.out;
}

TEST_F(AblateCommand, JsonHoldsEveryMeasureOfEveryLayer) {
  const auto json = result_of(call("gpt2") + "--norm layernorm,none --seed 5");
  EXPECT_EQ(json.at("command"), "ablate");
  EXPECT_EQ(json.at("seed"), 5);
  EXPECT_EQ(json.at("measured_loss"), "next token");
  EXPECT_EQ(json.at("norm"), "layernorm");
  ASSERT_EQ(json.at("rows").size(), 3u);
  const auto &trained = json.at("rows")[0], &same = json.at("rows")[1], &none = json.at("rows")[2];
  EXPECT_EQ(trained.at("losses"), same.at("losses"));
  EXPECT_NE(trained.at("losses"), none.at("losses"));
  ASSERT_EQ(none.at("layers").size(), 3u);
  for (const char* name : {"change", "cosine", "entropy", "largest_weight", "norm"})
    EXPECT_EQ(none.at("layers")[2].at(name).at("count"), 3) << name;
  EXPECT_EQ(same.at("layers")[2].at("change").at("mean"), 0);
  EXPECT_GT(none.at("layers")[2].at("change").at("mean").get<double>(), 0);
  ASSERT_EQ(none.at("retrieval").size(), 4u);
  EXPECT_EQ(none.at("probe").at("copy").at("gain").at("count"), 3);
}

TEST_F(AblateCommand, AnEncoderIsMeasuredOnHiddenTokensOrSaysWhyNot) {
  const auto without = result_of(call("bert") + "--norm rmsnorm");
  EXPECT_EQ(without.at("measured_loss"), "none");
  EXPECT_FALSE(without.at("rows")[0].contains("loss"));
  EXPECT_NE(without.at("notes").dump().find("which token hides others is not known"), std::string::npos);
  EXPECT_TRUE(without.at("rows")[0].at("probe").contains("finds"));
  const auto with = result_of(call("bert") + "--norm rmsnorm --mask-token 4");
  EXPECT_EQ(with.at("measured_loss"), "masked token");
  EXPECT_EQ(with.at("rows")[1].at("loss").at("count"), 3);
}

TEST_F(AblateCommand, AModelWithoutHeadHasNoLoss) {
  const auto json = result_of(call("t5") + "--norm none");
  EXPECT_EQ(json.at("measured_loss"), "none");
  EXPECT_NE(json.at("notes").dump().find("no output head"), std::string::npos);
  EXPECT_EQ(json.at("norm"), "rmsnorm");
}

TEST_F(AblateCommand, LayersThatAreNotNamedStayAsTrained) {
  const auto json = result_of(call("gpt2") + "--norm none --layers 2");
  EXPECT_EQ(json.at("changed_layers"), nlohmann::json::array({2}));
  EXPECT_EQ(json.at("rows")[1].at("layers")[1].at("change").at("mean"), 0);
  EXPECT_GT(json.at("rows")[1].at("layers")[2].at("change").at("mean").get<double>(), 0);
  // A linear map stands between ALBERT's embeddings and its first layer.
  EXPECT_EQ(result_of(call("albert") + "--norm none").at("changed_layers")[0], 1);
}

TEST_F(AblateCommand, SameBytesForAnyNumberOfThreads) {
  auto one = result_of(call("llama") + "--norm none center --rescale --threads 1"),
       eight = result_of(call("llama") + "--norm none center --rescale --threads 8");
  for (auto* json : {&one, &eight}) {
    json->erase("seconds");
    json->erase("threads");
  }
  EXPECT_EQ(one, eight);
}

TEST_F(AblateCommand, SaysWhatTheStudySays) {
  AblateOptions options;
  options.text.model = source_path() + "/tests/golden/models/gpt2";
  options.text.ids = path("ids.txt");
  options.text.window = 10;
  options.text.samples = 3;
  options.norms = {"none", "center"};
  options.rescale = true;
  options.prompts = 3;
  options.probe_length = 6;
  const Executor executor(2);
  auto study = nlohmann::json::parse(json_of(study_ablate(options, {executor, 5}).result)),
       program = result_of(call("gpt2") + "--norm none center --rescale --seed 5 --threads 2");
  for (auto* json : {&study, &program}) json->erase("seconds");
  EXPECT_EQ(study, program);
}

TEST_F(AblateCommand, WritesARunDirectory) {
  const Outcome outcome = run(call("gpt2") + "--quiet --out " + path("run"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* name : {"config.json", "results.json", "layers.csv", "report.html"})
    EXPECT_FALSE(read(path("run") + "/" + name).empty()) << name;
  EXPECT_EQ(read_json(path("run") + "/config.json").at("options").at("norms").size(), 4u);
  EXPECT_NE(read(path("run") + "/report.html").find("cosine with those as trained"), std::string::npos);
}

TEST_F(AblateCommand, RefusesWrongCalls) {
  expect_refused(call("gpt2") + "--norm batchnorm", {"batchnorm", "layernorm"});
  expect_refused(call("gpt2") + "--norm normals:2", {"normals:2", "learned"});
  expect_refused(call("gpt2") + "--norm ''", {"norm"});
  expect_refused(call("gpt2") + "--layers 3", {"--layers", "2"});
  expect_refused(call("albert") + "--layers 0", {"linear map"});
  const std::string plain = "ablate " + model("gpt2") + " --ids " + path("ids.txt");
  expect_refused(plain + " --prompts -1", {"--prompts"});
  expect_refused(plain + " --probe-length 3", {"--probe-length", "4"});
  expect_refused(plain + " --window 17", {"--window", "16"});
  expect_refused(call("gpt2") + "--probe-tokens words", {"--probe-tokens", "vocabulary"});
  expect_refused(call("gpt2") + "--mask-token 4", {"--mask-token", "encoders"});
  expect_refused(call("bert") + "--mask-token 50", {"--mask-token", "49"});
  expect_refused("ablate " + model("gpt2"), {"--text", "--ids"});
  expect_refused("ablate " + model("gpt2") + " --text " + path("none.txt"), {"token"});
  expect_refused("ablate " + path("nowhere") + " --ids " + path("ids.txt"), {"nowhere"});
  write(path("ids.txt"), "1 2 4000");
  expect_refused(call("gpt2"), {"4000"});
}

}  // namespace
}  // namespace normscope

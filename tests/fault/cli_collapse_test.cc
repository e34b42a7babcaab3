// normscope collapse, as a user calls it.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "fault/program.h"
#include "normscope/tensor_file.h"

namespace normscope {
namespace {

class CollapseCommand : public ProgramTest {
 protected:
  static constexpr const char* kSmall = "collapse --tokens 8 --dim 4 --layers 3 ";
};

TEST_F(CollapseCommand, PrintsEveryCase) {
  const Outcome outcome = run(std::string(kSmall) + "--variant san san+norm --mask full window:1");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* row : {"san, full", "san, window:1", "san+norm, full", "san+norm, window:1", "Thm 1"}) {
    EXPECT_NE(outcome.out.find(row), std::string::npos) << row;
  }
}

TEST_F(CollapseCommand, JsonHoldsEveryMeasureOfEveryLayer) {
  const auto json = result_of(std::string(kSmall) + "--variant san --mask full causal --samples 3 --seed 5");
  EXPECT_EQ(json.at("command"), "collapse");
  EXPECT_EQ(json.at("seed"), 5);
  ASSERT_EQ(json.at("curves").size(), 2u);
  const auto& curve = json.at("curves")[0];
  EXPECT_EQ(curve.at("name"), "full");
  EXPECT_EQ(curve.at("measures").size(), 15u);
  for (const auto& [name, values] : curve.at("measures").items()) {
    EXPECT_EQ(values.at("mean").size(), 4u) << name;
    EXPECT_EQ(values.at("sd").size(), 4u) << name;
  }
  EXPECT_EQ(curve.at("singular_values").size(), 4u);
  EXPECT_EQ(curve.at("singular_values")[0].size(), 4u);
  const auto& theorem = curve.at("theory").at("theorem1");
  EXPECT_EQ(theorem.at("violations"), 0);
  EXPECT_EQ(theorem.at("bound").size(), 4u);
  EXPECT_TRUE(curve.at("theory").at("corollary1").at("bound").is_null());
}

TEST_F(CollapseCommand, SameBytesForAnyNumberOfThreads) {
  const std::string call = std::string(kSmall) + "--heads 2 --dropout 0 0.1 --samples 5 --json --threads ";
  auto one = nlohmann::json::parse(run(call + "1").out), eight = nlohmann::json::parse(run(call + "8").out);
  for (auto* json : {&one, &eight}) {
    json->erase("seconds");
    json->erase("threads");
  }
  EXPECT_EQ(one, eight);
}

TEST_F(CollapseCommand, UniformAttentionUnderTheFullMaskCollapsesAtOnce) {
  const auto json =
      result_of(std::string(kSmall) +
                "--variant san --mask full --query-key zero --value identity --precision float64");
  EXPECT_LT(json.at("curves")[0].at("measures").at("relative").at("mean")[1].get<double>(), 1e-15);
}

TEST_F(CollapseCommand, WritesARunDirectory) {
  const Outcome outcome = run(std::string(kSmall) + "--quiet --out " + path("run"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* name : {"config.json", "results.json", "curves.csv", "relative.svg", "report.html"}) {
    EXPECT_FALSE(read(path("run") + "/" + name).empty()) << name;
  }
  EXPECT_EQ(read_json(path("run") + "/config.json").at("options").at("dim"), 4);
}

TEST_F(CollapseCommand, ReadsTokensValuesAndMasksFromFiles) {
  Tensor tokens{"", DType::float64, {8, 4}, std::vector<double>(32)};
  for (std::size_t i = 0; i < 32; ++i) tokens.values[i] = std::sin(static_cast<double>(i + 1));
  write_npy(path("tokens.npy"), tokens);
  Tensor rotation{"", DType::float64, {4, 4}, {0, 1, 0, 0, -1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}};
  write_npy(path("rotation.npy"), rotation);
  write(path("mask.txt"), "11000000\n11000000\n01100000\n00110000\n00011000\n00001100\n00000110\n00000011\n");
  const auto json = result_of(std::string(kSmall) + "--variant san+norm --norm unit --start " +
                              path("tokens.npy") + " --value orthogonal:" + path("rotation.npy") +
                              " --mask " + path("mask.txt") + " --precision float64");
  EXPECT_NE(json.at("settings").at("value").get<std::string>().find("rotation.npy"), std::string::npos);
  EXPECT_EQ(json.at("settings").at("variants")[0], "san+norm");
  rotation.name = "layer.0.value";
  const std::vector<Tensor> two = {rotation, {"other", DType::float64, {1}, {0}}};
  write_safetensors(path("model.safetensors"), two);
  EXPECT_EQ(result_of(std::string(kSmall) + "--variant san --mask full --value " +
                      path("model.safetensors:layer.0.value"))
                .at("curves")
                .size(),
            1u);
  expect_refused(std::string(kSmall) + "--value " + path("model.safetensors"), {"layer.0.value", "other"});
  rotation.values[0] = 0.5;
  write_npy(path("rotation.npy"), rotation);
  expect_refused(std::string(kSmall) + "--value orthogonal:" + path("rotation.npy"),
                 {"rotation.npy", "not orthogonal"});
  expect_refused(std::string(kSmall) + "--samples 2 --start " + path("tokens.npy"),
                 {"8 x 4", "needs 16 rows"});
}

TEST_F(CollapseCommand, FilesSayHowManyTokensThereAre) {
  write(path("mask.txt"), "110\n010\n011\n");
  EXPECT_EQ(result_of("collapse --variant san --mask " + path("mask.txt") + " full")["settings"]["tokens"],
            3);
  EXPECT_EQ(
      result_of("collapse --variant san --mask '" + path("mask.txt") + "&causal'")["settings"]["tokens"], 3);
  write_npy(path("tokens.npy"), {"", DType::float64, {6, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}});
  EXPECT_EQ(result_of("collapse --variant san --dim 2 --samples 2 --mask full --start " +
                      path("tokens.npy"))["settings"]["tokens"],
            3);
  write(path("two.txt"), "11\n11\n");
  expect_refused("collapse --variant san --mask " + path("mask.txt") + " " + path("two.txt"),
                 {"mask.txt' has 3 tokens", "two.txt' 2"});
  expect_refused("collapse --variant san --mask full,causal", {"--mask full causal"});
  const std::vector<Tensor> masks = {{"a", DType::float32, {2, 2}, {1, 0, 1, 1}},
                                     {"b", DType::float32, {2, 2}, {1, 1, 1, 1}}};
  write_safetensors(path("masks.safetensors"), masks);
  EXPECT_EQ(result_of("collapse --variant san --mask " + path("masks.safetensors:b"))["settings"]["tokens"],
            2);
}

TEST_F(CollapseCommand, TokensStartFromTheWordsOfAText) {
  write(path("text.txt"), "The cat, the CAT; a dog.\n");  // the cat , the cat ; a dog .
  const std::string call = "collapse --variant san --mask full --dim 16 --start text:" + path("text.txt");
  EXPECT_EQ(result_of(call)["settings"]["tokens"], 9);
  expect_refused(call + " --tokens 5 --samples 2", {"has 9 words", "2 samples of 5 tokens need 10"});
  write(path("empty.txt"), " \n");
  expect_refused("collapse --start text:" + path("empty.txt"), {"has 0 words"});
  expect_refused("collapse --start text:" + path("missing.txt"), {"missing.txt"});
}

TEST_F(CollapseCommand, ATokenThatAttendsToNothingIsSaid) {
  write(path("mask.txt"), "100\n000\n011\n");
  const Outcome outcome =
      run("collapse --tokens 3 --dim 4 --layers 2 --variant san --mask " + path("mask.txt"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("attends to nothing"), std::string::npos) << outcome.out;
}

TEST_F(CollapseCommand, WrongCallsGetASentence) {
  const std::string small = kSmall;
  expect_refused(small + "--variant sam", {"sam", "san+norm"});
  expect_refused(small + "--mask windw:1", {"windw", "window"});
  expect_refused(small + "--norm layernrom", {"layernrom"});
  expect_refused(small + "--norm project:2", {"project:2"});
  expect_refused(small + "--placement middle", {"middle", "sandwich"});
  expect_refused(small + "--temperature -1", {"--temperature", "-1"});
  expect_refused(small + "--temperature 0", {"--temperature"});
  expect_refused(small + "--dropout 1", {"--dropout"});
  expect_refused(small + "--heads 3", {"heads", "3", "4"});
  expect_refused(small + "--value jordan", {"jordan"});
  expect_refused(small + "--value jordan:x", {"jordan:x"});
  expect_refused(small + "--init missing.npy", {"missing.npy"});
  expect_refused(small + "--start moon", {"moon", "sphere", ".npy"});
  expect_refused(small + "--shape gpt", {"gpt", "bert-base"});
  expect_refused(small + "--layers 0", {"--layers"});
  expect_refused(small + "--tokens 0", {"--tokens"});
  write(path("mask.txt"), "11\n11\n");
  expect_refused(small + "--mask " + path("mask.txt"), {"mask.txt", "2", "8"});
}

TEST_F(CollapseCommand, AWeightThatUnderflowedBoundsNothing) {
  const auto json =
      result_of(std::string(kSmall) + "--variant san --mask full --init identity --temperature 1e-30");
  EXPECT_TRUE(json.at("curves")[0].at("theory").at("theorem1").at("bound").is_null());
}

TEST_F(CollapseCommand, DegenerateSizesAreDefined) {
  for (const char* sizes :
       {"--tokens 1 --dim 1", "--tokens 1 --dim 8", "--tokens 8 --dim 1", "--tokens 2 --dim 2"}) {
    const auto json = result_of(std::string("collapse --layers 2 --norm layernorm rmsnorm ") + sizes);
    EXPECT_EQ(json.at("curves").size(), 32u) << sizes;
  }
}

}  // namespace
}  // namespace normscope

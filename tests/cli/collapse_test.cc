// normscope collapse, as a user calls it.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "normscope/tensor_file.h"
#include "support/program.h"

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
  EXPECT_EQ(curve.at("name"), "san, full");
  EXPECT_EQ(curve.at("mask"), "full");
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

TEST_F(CollapseCommand, OneSampleHasNoInterval) {
  const std::string call = std::string(kSmall) + "--variant san --mask causal --samples ";
  EXPECT_EQ(run(call + "1").out.find("95 %"), std::string::npos);
  EXPECT_NE(run(call + "2").out.find("kept per layer (both)"), std::string::npos);
  EXPECT_NE(run(call + "3").out.find("kept per layer (95 %)"), std::string::npos);
  const auto one = result_of(call + "1").at("curves")[0], three = result_of(call + "3").at("curves")[0];
  EXPECT_TRUE(one.at("rate").at("low").is_null() && one.at("rate").at("high").is_null());
  EXPECT_TRUE(one.at("measures").at("mu").at("sd")[3].is_null());
  EXPECT_EQ(three.at("rate").at("samples").size(), 3u);
  EXPECT_LT(three.at("rate").at("low"), three.at("rate").at("high"));
}

TEST_F(CollapseCommand, StepsOfALayerAreSaidAndWholeOnesAreNot) {
  const std::string call = std::string(kSmall) + "--variant san --mask full ";
  const auto whole = result_of(call), half = result_of(call + "--step-size 0.5"),
             asked = result_of(call + "--step-size 1");
  EXPECT_FALSE(whole.at("settings").contains("step_size"));
  EXPECT_EQ(asked.at("curves"), whole.at("curves"));
  EXPECT_EQ(half.at("settings").at("step_size"), 0.5);
  EXPECT_GT(half.at("curves")[0].at("rate").at("factor"), whole.at("curves")[0].at("rate").at("factor"));
  EXPECT_TRUE(half.at("curves")[0].at("theory").at("theorem1").at("bound").is_null());
  EXPECT_NE(run(call + "--step-size 0.5").out.find("Steps of h = 0.5: layer l is at the time l·h."),
            std::string::npos);
  EXPECT_EQ(run(call).out.find("Steps of"), std::string::npos);
}

TEST_F(CollapseCommand, ShowsBothReadingsOfTheorem2) {
  const std::string call =
      "collapse --tokens 8 --layers 3 --dim 16 --variant san+norm --norm unit --value orthogonal --start "
      "sphere --mask star";
  const Outcome outcome = run(call);
  for (const char* text : {"Thm 2, r = diameter", "Thm 2, r = radius", "is not settled"})
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text;
  const auto theory = result_of(call).at("curves")[0].at("theory");
  EXPECT_EQ(theory.at("radius"), 1);
  EXPECT_EQ(theory.at("diameter"), 2);
  EXPECT_EQ(theory.at("theorem2_diameter").at("violations"), 0);
  EXPECT_EQ(theory.at("theorem2_radius").at("bound").size(), 4u);
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
  expect_refused(small + "--step-size 0", {"--step-size", "above 0"});
  expect_refused(small + "--step-size 1.5", {"--step-size", "1.5"});
  expect_refused(small + "--step-size -0.1", {"--step-size", "-0.1"});
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

class CollapseOfModelCommand : public CollapseCommand {
 protected:
  void SetUp() override {
    CollapseCommand::SetUp();
    std::string ids;
    for (int i = 0; i < 60; ++i) ids += std::to_string(i * 7 % 30) + " ";
    write(path("ids.txt"), ids);
  }
  // A tiny model of a family, as recorded for the tests of whole models.
  std::string call(const std::string& family) const {
    return std::string("collapse ") + source_path() + "/tests/golden/models/" + family + " --ids " +
           path("ids.txt") + " ";
  }
};

TEST_F(CollapseOfModelCommand, EveryFamilyRunsWithItsOwnNormPlacementAndMask) {
  struct Family {
    const char *name, *norm, *placement, *mask;
  };
  for (const auto& [name, norm, placement, mask] : {Family{"bert", "layernorm", "post", "full"},
                                                    {"albert", "layernorm", "post", "full"},
                                                    {"gpt2", "layernorm", "pre", "causal"},
                                                    {"llama", "rmsnorm", "pre", "causal"},
                                                    {"t5", "rmsnorm", "pre", "full"}}) {
    const auto json = result_of(call(name) + "--tokens 8 --samples 2");
    const auto& settings = json.at("settings");
    EXPECT_EQ(settings.at("norms"), nlohmann::json{norm}) << name;
    EXPECT_EQ(settings.at("placements"), nlohmann::json{placement}) << name;
    EXPECT_EQ(settings.at("own_mask"), mask) << name;
    EXPECT_EQ(settings.at("masks")[0], mask) << name;
    EXPECT_EQ(settings.at("masks").size(), 4u) << name;
    EXPECT_EQ(settings.at("init"), "pretrained") << name;
    EXPECT_EQ(json.at("curves").size(), 20u) << name;
    EXPECT_EQ(json.at("curves")[0].at("measures").at("mu").at("mean").size(),
              settings.at("layers").get<std::size_t>() + 1)
        << name;
  }
}

TEST_F(CollapseOfModelCommand, PretrainedAndRandomStandSideBySide) {
  const std::string options = "--tokens 8 --variant san+norm --mask full --seed 3 ";
  const auto both = result_of(call("bert") + options + "--init both");
  ASSERT_EQ(both.at("curves").size(), 2u);
  EXPECT_EQ(both.at("curves")[0].at("group"), "pretrained, san+norm");
  EXPECT_EQ(both.at("curves")[1].at("group"), "random, san+norm");
  for (const char* init : {"pretrained", "random"}) {
    const auto one = result_of(call("bert") + options + "--init " + init);
    EXPECT_EQ(one.at("curves")[0].at("measures"),
              both.at("curves")[init == std::string("random") ? 1 : 0].at("measures"))
        << init;
  }
  EXPECT_NE(both.at("curves")[0].at("measures"), both.at("curves")[1].at("measures"));
}

TEST_F(CollapseOfModelCommand, AnotherNormReplacesTheModels) {
  const auto json = result_of(
      call("gpt2") + "--tokens 8 --variant full --mask causal --norm layernorm,unit --temperature 1");
  ASSERT_EQ(json.at("curves").size(), 2u);
  EXPECT_EQ(json.at("curves")[1].at("norm"), "unit");
  EXPECT_EQ(json.at("curves")[1].at("temperature"), 1);
  EXPECT_NE(json.at("curves")[0].at("measures"), json.at("curves")[1].at("measures"));
}

TEST_F(CollapseOfModelCommand, WritesARunDirectoryThatNamesModelAndText) {
  const Outcome outcome = run(call("llama") + "--tokens 8 --quiet --out " + path("run"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto options = read_json(path("run") + "/config.json").at("options");
  EXPECT_EQ(options.at("family"), "llama");
  EXPECT_NE(options.at("model").get<std::string>().find("models/llama"), std::string::npos);
  EXPECT_NE(options.at("text").get<std::string>().find("ids.txt"), std::string::npos);
  const std::string page = read(path("run") + "/report.html");
  EXPECT_NE(page.find("pretrained"), std::string::npos);
  EXPECT_NE(page.find("Its own mask is causal"), std::string::npos);
}

TEST_F(CollapseOfModelCommand, TheTextSaysHowManyTokensThereAre) {
  write(path("ids.txt"), "1 2 3 4 5 6 7 8 9 10");
  const std::string one = call("llama") + "--variant san --mask causal ";
  EXPECT_EQ(result_of(one).at("settings").at("tokens"), 10);
  EXPECT_EQ(result_of(one + "--samples 3").at("settings").at("tokens"), 3);
  EXPECT_EQ(result_of(one + "--samples 3 --stride 1").at("settings").at("tokens"), 8);
  expect_refused(one + "--samples 3 --tokens 4", {"10 tokens", "3 samples of 4", "need 12"});
}

TEST_F(CollapseOfModelCommand, WhatBelongsToDrawnWeightsIsRefused) {
  for (const char* option :
       {"--dim 4", "--heads 2", "--feed-forward 8", "--value identity", "--query-key zero",
        "--output identity", "--start sphere", "--shape bert-base", "--weight-norm", "--fresh-weights"}) {
    const std::string name = std::string(option).substr(0, std::string(option).find(' '));
    expect_refused(call("bert") + option, {name, "model"});
  }
  expect_refused(call("bert") + "--init xavier", {"xavier", "pretrained", "random"});
  expect_refused(call("bert") + "--layers 99", {"--layers", "99"});
  expect_refused(call("bert") + "--tokens 5000", {"positions", "5000"});
  expect_refused("collapse " + path("none") + " --ids " + path("ids.txt"), {path("none")});
  expect_refused(std::string("collapse ") + source_path() + "/tests/golden/models/bert", {"--text", "--ids"});
  write(path("ids.txt"), "1 2 999999");
  expect_refused(call("bert") + "--tokens 2", {"999999", "vocabulary"});
  expect_refused("collapse --init random", {"--init random", "MODEL"});
  expect_refused("collapse --text x.txt", {"--text", "MODEL"});
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

TEST_F(CollapseCommand, CurvesHaveNamesOfTheirOwn) {
  const auto json = result_of("collapse --tokens 6 --dim 4 --layers 2 --mask full causal full");
  std::set<std::string> names;
  for (const auto& curve : json.at("curves")) names.insert(curve.at("name").get<std::string>());
  EXPECT_EQ(names.size(), json.at("curves").size());
  EXPECT_TRUE(names.contains("san, causal"));
  EXPECT_EQ(json.at("curves")[1].at("mask"), "causal");
}

}  // namespace
}  // namespace normscope

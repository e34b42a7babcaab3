// What studies answer, without the command line: JSON there and back.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "normscope/checkpoint.h"
#include "result/json_reader.h"
#include "result/json_writer.h"
#include "result/schema.h"
#include "study/collapse.h"
#include "study/equilibria.h"
#include "study/heatmap.h"
#include "study/mask.h"
#include "support/message.h"
#include "support/paths.h"
#include "support/temporary_directory.h"

namespace normscope {
namespace {

template <class Result>
Result expect_reads_back(const Result& result) {
  const std::string text = json_of(result);
  Result read = from_json<Result>(text, "results.json");
  EXPECT_EQ(json_of(read), text);
  EXPECT_EQ(nlohmann::ordered_json::parse(text).dump(2) + "\n", text);
  return read;
}

// Every field has a sentence, and what a result holds is what its schema says.
template <class Result>
void expect_in_schema(const Result& result) {
  const auto schema = schema_of<Result>("a result");
  for (const auto& [name, property] : schema.at("properties").items())
    EXPECT_FALSE(property.at("description").template get<std::string>().empty()) << name;
  const auto json = nlohmann::ordered_json::parse(json_of(result));
  for (const auto& [name, ignored] : json.items())
    EXPECT_TRUE(schema.at("properties").contains(name)) << name;
}

TEST(HeatmapStudy, ResultAndSettingsReadBack) {
  const Executor executor(1);
  HeatmapStudyOptions options{.n = "3:5", .d = "2", .draws = 3, .norm = "rmsnorm"};
  const HeatmapStudy study = study_heatmap(options, {executor, 7});
  const HeatmapResult read = expect_reads_back(study.result);
  EXPECT_EQ(read.made.seed, 7u);
  EXPECT_EQ(read.norm, "rmsnorm");
  EXPECT_EQ(read.cells.size(), 3u);
  EXPECT_EQ(read.grids[0].norm, "none");
  EXPECT_EQ(read.grids[1].cells[2].cell.fraction, study.run.grids[1].heatmap.cells[2].fraction);
  EXPECT_EQ(expect_reads_back(study.settings).norms, study.settings.norms);
  expect_in_schema(study.result);
  options.draws = 1;  // a single draw has no standard error
  EXPECT_TRUE(std::isnan(expect_reads_back(study_heatmap(options, {executor}).result).cells[0].cell.any_se));
}

TEST(HeatmapStudy, TellsHowFarAllGridsAre) {
  const Executor executor(1);
  std::size_t last = 0, all = 0;
  study_heatmap(HeatmapStudyOptions{.n = "3", .d = "2,3", .draws = 50},
                {executor, 0, [&](std::size_t done, std::size_t total) {
                   EXPECT_GE(done, last);
                   last = done, all = total;
                 }});
  EXPECT_EQ(last, all);
  EXPECT_EQ(all, 2 * 2 * 50u);
}

TEST(EquilibriaStudy, ResultAndSettingsReadBack) {
  const Executor executor(1);
  const EquilibriaOptions options{
      .w = "1.5,3", .tokens = 3, .dim = 3, .starts = 20, .steps = 30, .angles = 16, .trajectory = "0,1,0,-1"};
  const EquilibriaStudy study = study_equilibria(options, {executor, 3});
  const EquilibriaResult read = expect_reads_back(study.result);
  ASSERT_EQ(read.weights.size(), 2u);
  EXPECT_EQ(read.weights[1].fixed_points[3].kind, PointKind::singular);
  EXPECT_TRUE(std::isnan(read.weights[1].fixed_points[3].multiplier));
  EXPECT_EQ(read.weights[0].equilibria.size(), 3u);
  EXPECT_EQ(read.weights[0].trajectories[0].start, (std::vector<double>{0, 1, 0, -1}));
  EXPECT_EQ(read.weights[0].trajectories[0].fate, study.run.weights[0].paths[0].fate);
  EXPECT_EQ(expect_reads_back(study.settings).w, (std::vector<double>{1.5, 3}));
  expect_in_schema(study.result);
}

TEST(EquilibriaStudy, MapsAreForPagesOnly) {
  const Executor executor(1);
  const EquilibriaSettings settings = plan_equilibria({.starts = 5, .steps = 8, .angles = 4});
  const EquilibriaStudy with = study_equilibria(settings, {executor}, FateMaps::yes),
                        without = study_equilibria(settings, {executor});
  EXPECT_EQ(with.run.weights[0].map.size(), with.run.cells * with.run.cells);
  EXPECT_TRUE(without.run.weights[0].map.empty());
  EXPECT_EQ(json_of(with.result.weights[0]), json_of(without.result.weights[0]));
}

TEST(MaskStudy, ResultAndSettingsReadBack) {
  const Executor executor(1);
  const TemporaryDirectory directory;
  const std::string file = (directory.path() / "mask.txt").string();
  std::ofstream(file) << "110\n010\n011\n";
  const MaskStudy study = study_masks({.masks = {file, "causal", "self", "random:0.5"}}, {executor, 5});
  const MasksResult read = expect_reads_back(study.result);
  ASSERT_EQ(read.masks.size(), 4u);
  EXPECT_EQ(read.masks[0].tokens, 3u);
  EXPECT_EQ(read.masks[0].centres.ranges, (std::vector<std::vector<std::uint32_t>>{{1, 1}}));
  EXPECT_EQ(read.masks[1].radius, 1u);
  EXPECT_EQ(read.masks[1].diameter, std::nullopt);
  EXPECT_EQ(read.masks[2].radius, std::nullopt);
  EXPECT_EQ(expect_reads_back(study.settings).n, std::vector<std::size_t>(4, 3));
  EXPECT_EQ(expect_reads_back(MaskSettings{{"m.npz"}, {2}, "allowed"}).tensor, "allowed");
  expect_in_schema(study.result);
}

TEST(MaskStudy, SaysWhatCannotBe) {
  expect_mentions(message_of([] { plan_masks({.masks = {"causal"}, .tensor = "x"}, 0); }), {"--tensor"});
  expect_mentions(message_of([] { plan_masks({.masks = {"caussal"}}, 0); }), {"caussal", "causal"});
  expect_mentions(message_of([] { plan_masks({.masks = std::vector<std::string>(101, "full")}, 0); }),
                  {"101"});
}

TEST(CollapseStudy, ResultReadsBack) {
  const Executor executor(1);
  CollapseOptions options{.variants = {"san", "san+norm"}, .masks = {"full", "star"}};
  options.tokens = 5, options.dim = 4, options.layers = 2, options.samples = 2;
  const CollapseStudy study = study_collapse(options, {executor, 4});
  const CollapseResult read = expect_reads_back(study.result);
  ASSERT_EQ(read.curves.size(), 4u);
  EXPECT_EQ(read.curves[1].theory.radius, 1u);
  EXPECT_EQ(read.curves[1].theory.diameter, 2u);
  EXPECT_TRUE(read.curves[0].theory.theorem1.bound.has_value());
  EXPECT_FALSE(read.curves[0].theory.corollary1.violations.has_value());
  EXPECT_EQ(read.curves[3].measures.front().first, "mu");
  EXPECT_EQ(read.curves[3].measures.front().second.mean.size(), 3u);
  EXPECT_FALSE(read.settings.model.has_value());
  expect_in_schema(study.result);
  expect_in_schema(study.result.settings);
}

TEST(CollapseStudy, TakesAModelThatWasOpened) {
  const Executor executor(1);
  const Checkpoint checkpoint = open_checkpoint(source_path() + "/tests/golden/models/llama");
  GivenModel model{"llama", "ids", checkpoint.weights, {}};
  for (std::uint32_t id = 1; id <= 9; ++id) model.tokens.push_back({id, 0, 0, false});
  CollapseOptions options{
      .stride = 3, .variants = {"full"}, .masks = {"causal"}, .samples = 2, .init = "both"};
  const CollapseStudy study = study_collapse(plan_collapse(options, model, 0), {executor});
  const CollapseResult read = expect_reads_back(study.result);
  EXPECT_EQ(read.settings.model, "llama");
  EXPECT_EQ(read.settings.text, "ids");
  EXPECT_EQ(read.settings.stride, 3u);
  EXPECT_EQ(read.settings.tokens, 6u);
  ASSERT_EQ(read.curves.size(), 2u);
  EXPECT_EQ(read.curves[0].group, "pretrained, full");
  EXPECT_EQ(read.curves[1].group, "random, full");
  expect_mentions(message_of([&] { plan_collapse({.tokens = 8, .samples = 2}, model, 0); }),
                  {"9 tokens", "2 samples of 8"});
}

// Of one sample nothing is known beyond it, of two no interval: which curve ends lower must be so in each of them.
TEST(CollapseStudy, TheVerdictSetsCurvesApartOnlyWhereSamplesDo) {
  const auto verdict = [](const std::vector<double>& a, const std::vector<double>& b) {
    const auto curve = [](const char* name, const std::vector<double>& ends) {
      CollapseCurve result;
      result.name = name;
      result.layers.resize(2);
      for (const double end : ends)
        for (auto& layer : result.layers) layer.emplace_back().relative = end;
      return result;
    };
    return collapse_verdict({curve("full", a), curve("causal", b)});
  };
  expect_mentions(verdict({0.1}, {0.2}),
                  {"nearest to equal under full", "one sample", "another start may differ"});
  expect_mentions(verdict({0.1, 0.2}, {0.2, 0.4}),
                  {"nearest to equal under full", "differ by 0.1 and 0.2 in the two samples"});
  for (const auto& told : {verdict({0.1, 0.3}, {0.4, 0.2}), verdict({0.1, 0.2, 0.3}, {0.4, 0.1, 0.3}),
                           verdict({0.1, 0.2}, {0.1, 0.2})}) {
    expect_mentions(told, {"samples do not tell apart", "full", "causal"});
    EXPECT_EQ(told.find("nearest to equal under"), std::string::npos) << told;
  }
  expect_mentions(verdict({0.1, 0.11, 0.12}, {0.3, 0.31, 0.33}), {"nearest to equal under full", "95 %"});
}

TEST(CollapseStudy, SaysWhatCannotBe) {
  const auto refused = [](const CollapseOptions& options) {
    return message_of([&] { plan_collapse(options, std::nullopt, 0); });
  };
  expect_mentions(refused({.text = "text.txt"}), {"--text", "trained model"});
  expect_mentions(refused({.stride = 2}), {"--stride", "trained model"});
  expect_mentions(refused({.dim = 4, .heads = 5}), {"--heads", "from 1 to 4", "5"});
  expect_mentions(refused({.shape = "gpt"}), {"gpt", "bert-base"});
  expect_mentions(refused({.start = "text:/"}), {"--start", "directory"});
  expect_mentions(message_of([] { require_goes_with_model({.dim = 4}); }), {"--dim", "model"});
}

}  // namespace
}  // namespace normscope

// Studies called without the command line answer what the program prints.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "result/json_writer.h"
#include "study/collapse.h"
#include "study/equilibria.h"
#include "study/heatmap.h"
#include "study/mask.h"
#include "support/program.h"

namespace normscope {
namespace {

class StudyAndProgram : public ProgramTest {
 protected:
  // Byte for byte, but for the time they took.
  template <class Result>
  void expect_printed(Result result, const std::string& call) const {
    const Outcome outcome = run(call + " --json --seed 3 --threads 1");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    result.seconds = nlohmann::json::parse(outcome.out).at("seconds").get<double>();
    EXPECT_EQ(outcome.out, json_of(result, -1));
  }

  const Executor executor_{1};
  const Context context_{executor_, 3};
};

TEST_F(StudyAndProgram, HeatmapsAreTheSame) {
  expect_printed(
      study_heatmap(HeatmapStudyOptions{.n = "3:6", .d = "2,3", .draws = 4, .norm = "rmsnorm"}, context_)
          .result,
      "heatmap --n 3:6 --d 2,3 --draws 4 --norm rmsnorm");
}

TEST_F(StudyAndProgram, EquilibriaAreTheSame) {
  expect_printed(study_equilibria(
                     {.w = "1.5,3", .tokens = 3, .dim = 3, .starts = 20, .steps = 30, .angles = 16}, context_)
                     .result,
                 "equilibria --w 1.5,3 --tokens 3 --dim 3 --starts 20 --steps 30 --angles 16");
}

TEST_F(StudyAndProgram, MasksAreTheSame) {
  write(path("mask.txt"), "110\n010\n011\n");
  expect_printed(study_masks({.masks = {path("mask.txt"), "window:1", "random:0.5"}}, context_).result,
                 "mask " + path("mask.txt") + " window:1 random:0.5");
}

TEST_F(StudyAndProgram, CurvesOfCollapseAreTheSame) {
  CollapseOptions options{.variants = {"san", "full"}, .masks = {"full", "window:1"}};
  options.tokens = 5, options.dim = 4, options.layers = 2, options.samples = 2;
  expect_printed(
      study_collapse(options, context_).result,
      "collapse --variant san full --mask full window:1 --tokens 5 --dim 4 --layers 2 --samples 2");
}

}  // namespace
}  // namespace normscope

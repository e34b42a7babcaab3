// normscope submit: scripts that a shell takes, and that go on with what is there.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "support/program.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;

class SubmitCommand : public ProgramTest {
 protected:
  std::string script(const std::string& arguments) const {
    const Outcome outcome = run("submit " + arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  }
  // The script run by a shell, with the program in place of what starts processes on a cluster.
  int run_script(const std::string& text) const {
    write(folder_ / "script.sh", text);
    const std::string programs = fs::path(program_path()).parent_path().string();
    return std::system(
        ("PATH=" + programs + ":$PATH bash " + path("script.sh") + " >" + path("said") + " 2>&1").c_str());
  }
};

TEST_F(SubmitCommand, WritesWhatWasAskedFor) {
  const std::string text =
      script("--nodes 3 --tasks 2 --threads 4 --dry-run 5 -- heatmap --n 3:5 --d 3 --draws 5 --out \"" +
             path("it's") + "\"");
  for (const char* line : {"#!/bin/bash\n", "#SBATCH --nodes=3\n", "#SBATCH --ntasks-per-node=2\n",
                           "#SBATCH --cpus-per-task=4\n", "#SBATCH --mem=", "#SBATCH --time=00:05:00\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  EXPECT_EQ(text.find("--array"), std::string::npos);
  EXPECT_NE(text.find("it'\\''s"), std::string::npos) << text;
}

TEST_F(SubmitCommand, LongRunsAreJobsThatGoOn) {
  const std::string text = script(
      "--time 50:00:00 --tasks 3 --memory 2G --limit 12:00:00 -- paper --only fig2 --out " + path("run"));
  EXPECT_NE(text.find("#SBATCH --time=12:00:00\n"), std::string::npos) << text;
  EXPECT_NE(text.find("#SBATCH --mem=6G\n"), std::string::npos) << text;
  EXPECT_NE(text.find("#SBATCH --array=1-6%1\n"), std::string::npos) << text;
}

// Sixteen threads do not make one run of a training sixteen times as fast.
TEST_F(SubmitCommand, TimeIsOfAsManyWorkersAsFindWork) {
  const std::string training =
      "--tasks 2 --threads 8 --dry-run 30 -- train majority --steps 5 --samples 100 --length 10 ";
  const std::string one = script(training + "--out " + path("one"));
  EXPECT_NE(one.find("; 1 worker (no more of 16 find work in 1 run) at 100 %"), std::string::npos) << one;
  const std::string four = script(training + "--norm layernorm,none --seeds 2 --out " + path("four"));
  EXPECT_NE(four.find("; 4 workers (no more of 16 find work in 4 runs) at 80 %"), std::string::npos) << four;
}

TEST_F(SubmitCommand, TheScriptRunsAndEndsOnce) {
  const std::string text = script(
      "--launcher env --threads 1 --dry-run 5 -- heatmap --n 3:5 --d 3 --draws 5 --out " + path("run"));
  EXPECT_EQ(run_script(text), 0) << read(path("said"));
  const std::string results = read(folder_ / "run/results.json");
  EXPECT_NE(results.find("\"heatmap\""), std::string::npos);
  EXPECT_EQ(run_script(text), 0);
  EXPECT_EQ(read(path("said")), "This run has ended.\n");
  EXPECT_EQ(read(folder_ / "run/results.json"), results);
}

TEST_F(SubmitCommand, WrongCallsAreRefused) {
  expect_refused("submit -- mask causal", {"'mask' is not work for a cluster"});
  expect_refused("submit -- heatmap --n 3 --d 3", {"--out"});
  expect_refused("submit -- heatmap --draws 0 --out " + path("x"), {"--draws", "'0'"});
  expect_refused("submit --limit soon -- heatmap --out " + path("x"), {"--limit", "'soon'"});
  expect_refused("submit --time 1:00:00 --memory 1G -- train 'lm; ls' --out " + path("x"),
                 {"train takes majority, lm, sentiment"});
  expect_refused("submit -- scan model --text - --out " + path("x"), {"standard input"});
}

}  // namespace
}  // namespace normscope

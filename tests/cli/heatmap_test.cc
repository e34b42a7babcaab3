// What the command line does with wrong calls, places it cannot write to and output nobody takes.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "support/paths.h"
#include "support/temporary_directory.h"

namespace {

namespace fs = std::filesystem;

struct Outcome {
  int code = -1;
  std::string out, err;
};

class HeatmapCommand : public ::testing::Test {
 protected:
  static std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // arguments: as a shell would take them, redirections included.
  Outcome run(const std::string& arguments) const {
    const std::string errors = (directory_ / "stderr").string();
    const std::string command = "( \"" + normscope::program_path() + "\" " + arguments + " ) 2>" + errors;
    Outcome outcome;
    std::FILE* pipe = ::popen(command.c_str(), "r");
    if (pipe == nullptr) return outcome;
    std::array<char, 4096> buffer;
    for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
      outcome.out.append(buffer.data(), got);
    }
    const int status = ::pclose(pipe);
    if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
    outcome.err = read(errors);
    return outcome;
  }

  void expect_one_line(const Outcome& outcome, int code, const std::string& arguments) const {
    EXPECT_EQ(outcome.code, code) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_EQ(outcome.err.rfind("normscope: ", 0), 0u) << arguments << ": " << outcome.err;
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << arguments << ": " << outcome.err;
  }

  static constexpr const char* kSmall = "heatmap --n 3:6 --d 2,3 --draws 4 ";
  const normscope::TemporaryDirectory temporary_;
  const fs::path directory_ = temporary_.path();
};

TEST_F(HeatmapCommand, AWrongCallGetsOneSentenceAndExitCodeTwo) {
  for (const std::string arguments : {"heatmap --n 0",
                                      "heatmap --n -3",
                                      "heatmap --n 9:3",
                                      "heatmap --n 3:9:0",
                                      "heatmap --n 3:",
                                      "heatmap --n ''",
                                      "heatmap --n 1:2:3:4",
                                      "heatmap --n 3.5",
                                      "heatmap --n 3,,4",
                                      "heatmap --n 99999999999999999999",
                                      "heatmap --n",
                                      "heatmap --d 0",
                                      "heatmap --d x",
                                      "heatmap --n 1:1000 --d 1:1000",
                                      "heatmap --n 1:1000000",
                                      "heatmap --draws 0",
                                      "heatmap --draws -1",
                                      "heatmap --draws 1e3",
                                      "heatmap --init gaussian",
                                      "heatmap --precision float16",
                                      "heatmap --norm batchnorm",
                                      "heatmap --norm qknorm:2",
                                      "heatmap --norm project:99999999",
                                      "heatmap --threads 1025",
                                      "heatmap --threads -1",
                                      "heatmap --threads x",
                                      "heatmap --seed -1",
                                      "heatmap --seed 18446744073709551616",
                                      "heatmap --seed 1 --seed 2",
                                      "heatmap --nonsense",
                                      "heatmap extra",
                                      "heatmap --out ''",
                                      "heatmap --json --csv -",
                                      "--nonsense",
                                      "hetmap",
                                      "\"$(printf 'a\\nb\\033[2J')\""}) {
    expect_one_line(run(arguments), 2, arguments);
  }
}

TEST_F(HeatmapCommand, SuggestsWhatWasMeant) {
  EXPECT_NE(run("hetmap").err.find("did you mean 'heatmap'?"), std::string::npos);
  EXPECT_NE(run("heatmap --drws 3").err.find("did you mean '--draws'?"), std::string::npos);
}

TEST_F(HeatmapCommand, HelpAndVersionAreNotErrors) {
  for (const std::string arguments : {"--help", "heatmap --help", "--version"}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 0) << arguments;
    EXPECT_EQ(outcome.err, "") << arguments;
    EXPECT_NE(outcome.out, "") << arguments;
  }
  EXPECT_NE(run("heatmap --help").out.find("Examples:\n  normscope heatmap"), std::string::npos);
}

TEST_F(HeatmapCommand, HelpTellsTheLimits) {
  const std::string help = run("heatmap --help").out;
  for (const char* limit : {"1048575", "16777216", "100000 cells"})
    EXPECT_NE(help.find(limit), std::string::npos) << limit;
  EXPECT_EQ(run("heatmap --n 1048576 --d 1").code, 2);
  EXPECT_EQ(run("heatmap --draws 16777217").code, 2);
}

TEST_F(HeatmapCommand, NoCommandPrintsHelpAndIsAWrongCall) {
  const Outcome outcome = run("");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("heatmap"), std::string::npos);
}

TEST_F(HeatmapCommand, PlacesThatCannotBeWrittenAreRefusedBeforeTheWork) {
  const std::string file = (directory_ / "file").string(), full = (directory_ / "full").string();
  std::ofstream(file) << "x";
  fs::create_directories(full);
  std::ofstream(full + "/thesis.tex") << "x";
  // A grid that would take hours: only an early refusal returns.
  const std::string hours = "heatmap --n 2000:3000 --d 50 --draws 100000 ";
  for (const std::string& place :
       {"--out " + file, "--out " + file + "/below", "--out " + full, std::string("--out /proc/normscope"),
        std::string("--csv /nonexistent/cells.csv"), "--csv " + full}) {
    expect_one_line(run(hours + place), 2, place);
  }
  EXPECT_EQ(read(file), "x");
}

TEST_F(HeatmapCommand, LostOutputIsAFailedRun) {
  for (const std::string lost :
       {">/dev/full", "--json >/dev/full", "--csv - >/dev/full", ">&-", "--csv /dev/full"}) {
    expect_one_line(run(kSmall + lost), 1, lost);
  }
  expect_one_line(run("--help >/dev/full"), 1, "--help >/dev/full");
}

TEST_F(HeatmapCommand, AClosedPipeIsNoCrash) {
  const std::string code = (directory_ / "code").string();
  run(std::string(kSmall) + "--json; echo $? >" + code + " ) | ( exec <&- ");
  const std::string seen = read(code);
  EXPECT_TRUE(seen == "0\n" || seen == "141\n") << seen;  // whether the pipe closed first is a race
}

TEST_F(HeatmapCommand, JsonCarriesCellsOfTheNormAskedFor) {
  const Outcome outcome = run(std::string(kSmall) + "--json --seed 9 --threads 2");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const auto result = nlohmann::json::parse(outcome.out);
  for (const char* key : {"version", "commit", "isa", "seconds", "init"})
    EXPECT_TRUE(result.contains(key)) << key;
  EXPECT_EQ(result["seed"], 9);
  EXPECT_EQ(result["threads"], 2);
  EXPECT_EQ(result["norm"], "none");
  EXPECT_EQ(result["cells"].size(), 8u);
  EXPECT_EQ(result["grids"].size(), 2u);
  EXPECT_EQ(result["grids"][1]["norm"], "layernorm");
  EXPECT_EQ(result["cells"], result["grids"][0]["cells"]);

  const auto asked = nlohmann::json::parse(run(std::string(kSmall) + "--json --seed 9 --norm rmsnorm").out);
  EXPECT_EQ(asked["norm"], "rmsnorm");
  EXPECT_EQ(asked["cells"], asked["grids"][1]["cells"]);
  EXPECT_EQ(asked["grids"][0]["cells"], result["cells"]);
  EXPECT_EQ(nlohmann::json::parse(run(std::string(kSmall) + "--json --norm none").out)["grids"].size(), 1u);
}

TEST_F(HeatmapCommand, ThreadsDoNotChangeTheCells) {
  const std::string one = run(std::string(kSmall) + "--csv - --threads 1").out;
  EXPECT_NE(one, "");
  for (const char* threads : {"2", "8", "0"}) {
    EXPECT_EQ(run(std::string(kSmall) + "--csv - --threads " + threads).out, one) << threads;
  }
}

TEST_F(HeatmapCommand, ARunIsADirectoryThatCanBeOverwritten) {
  const fs::path out = directory_ / "a" / "run";
  for (const char* seed : {"1", "2"}) {
    const Outcome outcome = run(std::string(kSmall) + "--quiet --out " + out.string() + " --seed " + seed);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
  }
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(out)) names.insert(entry.path().filename().string());
  EXPECT_EQ(names, (std::set<std::string>{"cells.csv", "config.json", "heatmap.svg", "report.html",
                                          "results.json"}));
  EXPECT_EQ(nlohmann::json::parse(read(out / "config.json"))["seed"], 2);
  EXPECT_EQ(nlohmann::json::parse(read(out / "results.json"))["seed"], 2);
}

TEST_F(HeatmapCommand, PlainOutputHasNoEscapeCodes) {
  const Outcome outcome = run(kSmall);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos);
  EXPECT_NE(outcome.out.find("after LayerNorm 0 everywhere"), std::string::npos);
}

}  // namespace

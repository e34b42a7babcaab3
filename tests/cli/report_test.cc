// normscope report: pages over runs, finished or not, ours or a stranger's.
#include <sys/stat.h>

#include "support/program.h"

namespace normscope {
namespace {

using nlohmann::json;

class ReportCommand : public ProgramTest {
 protected:
  // A small run of a command, in a directory of that name.
  void make(const std::string& name, const std::string& arguments) const {
    const Outcome outcome = run(arguments + " --quiet --out " + path(name));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  void make_heatmap(const std::string& name, int seed = 0) const {
    make(name, "heatmap --n 3:8 --d 2,3 --draws 5 --seed " + std::to_string(seed));
  }
  void make_training(const std::string& name, const std::string& more) const {
    make(name, "train majority --steps 20 --samples 500 --batch 100 --evaluate-every 10 " + more);
  }
  std::string out() const { return " --out " + path("page.html"); }
  void expect_report_refused(const std::string& runs, const std::vector<std::string>& facts) const {
    expect_refused("report " + runs + out(), facts);
    EXPECT_FALSE(std::filesystem::exists(path("page.html")));
  }
};

TEST_F(ReportCommand, ShowsEveryKindOfRun) {
  write(path("keys.txt"), "");
  make_heatmap("heat");
  make("mask", "mask causal window:1 --n 6");
  make("collapse", "collapse --tokens 6 --dim 6 --layers 3 --samples 2 --variant san --mask full causal");
  make("equilibria", "equilibria --starts 20 --steps 50 --angles 20 --w 2");
  make_training("one", "--norm layernorm --seeds 2");
  make_training("two", "--norm rmsnorm --seeds 2");
  std::string runs;
  for (const char* name : {"heat", "mask", "collapse", "equilibria", "one", "two"}) runs += " " + path(name);
  const Outcome outcome = run("report" + runs + out());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("train majority"), std::string::npos);
  const std::string page = read(path("page.html"));
  for (const char* words :
       {"Report on 6 runs", "Trainings with the same settings, by norm", "Phase portrait, w = 2",
        "What differs between the runs of train majority", "href=\"./heat/report.html\"",
        "Unselectable keys by number of keys and dimension", "The masks"})
    EXPECT_NE(page.find(words), std::string::npos) << words;
  const json result = result_of("report" + runs + out());
  EXPECT_EQ(result["runs"].size(), 6u);
  EXPECT_EQ(result["runs"][0]["state"], "finished");
}

TEST_F(ReportCommand, SetsModelsSideBySide) {
  std::string ids;
  for (int i = 0; i < 40; ++i) ids += std::to_string(3 + i * i % 47) + " ";
  write(path("ids.txt"), ids);
  const std::string model = source_path() + "/tests/golden/models/", text = " --ids " + path("ids.txt");
  make("scan1", "scan " + model + "gpt2" + text + " --window 12 --samples 2");
  make("scan2", "scan " + model + "llama" + text + " --window 12 --heads 1");
  make("vocab1", "vocab " + model + "gpt2");
  make("vocab2", "vocab " + model + "llama --limit 3");
  make("ablate1",
       "ablate " + model + "gpt2" + text + " --window 10 --samples 3 --prompts 3 --norm none,center");
  make("ablate2", "ablate " + model + "llama" + text + " --window 10 --samples 3 --prompts 0 --norm rmsnorm");
  std::string runs;
  for (const char* name : {"scan1", "scan2", "vocab1", "vocab2", "ablate1", "ablate2"})
    runs += " " + path(name);
  const json result = result_of("report" + runs + out());
  const std::string page = read(path("page.html"));
  for (const char* words :
       {"Report on 6 runs", "<figure id=\"scan-unselectable\"", "<figure id=\"scan-entropy\"",
        "Unselectable tokens, by layer and head, run by run", "scan1: any query", "scan2: reachable queries",
        "Tokens that cannot be selected, space by space, runs of scan side by side",
        "Tokens by verdict, runs of vocab side by side", "Selectable tokens with the smallest margins, 3 of",
        "Models with another norm in front of attention, runs of ablate side by side",
        "<figure id=\"run5-hidden\"", "Claim: without the norm, retrieval", "href=\"./vocab1/report.html\""})
    EXPECT_NE(page.find(words), std::string::npos) << words;
  // Sentences stand in a table of their own, which fits a telephone.
  const std::string list =
      page.substr(page.find("The runs</h2>"), page.find("Main results</h2>") - page.find("The runs</h2>"));
  EXPECT_NE(list.find("finished"), std::string::npos);
  EXPECT_EQ(list.find("main result"), std::string::npos) << list;
  // Where a run was asked about no heads in particular, nothing is told, and a cell says so.
  const std::size_t differs = page.find("What differs between the runs of scan");
  const std::string table = page.substr(differs, page.find("</table>", differs) - differs);
  EXPECT_NE(table.find("heads"), std::string::npos) << table;
  EXPECT_NE(table.find(">–</td>"), std::string::npos) << table;
  EXPECT_EQ(table.find("></td>"), std::string::npos) << table;
  // What the runs found is what their own reports say.
  for (std::size_t i : {0, 1, 4, 5}) {
    const std::string run = result["runs"][i]["run"];
    EXPECT_EQ(result["runs"][i]["result"], read_json(run + "/results.json")["verdict"]) << run;
  }
}

TEST_F(ReportCommand, ScansThatDoNotHoldTogetherAreRefused) {
  write(path("ids.txt"), "1 2 3 4 5");
  make("scan",
       "scan " + source_path() + "/tests/golden/models/gpt2 --ids " + path("ids.txt") + " --space head");
  const json whole = read_json(path("scan/results.json"));
  const auto refused = [&](const char* place, const json& value, const std::string& fact) {
    json damaged = whole;
    damaged[json::json_pointer(place)] = value;
    write(path("scan/results.json"), damaged.dump());
    expect_report_refused(path("scan"), {"results.json", fact});
  };
  refused("/windows", json::array(), "window");
  refused("/windows/0/layers/0/layer", 1'000'000'000'000, "layers and heads");
  refused("/windows/0/layers/0/heads/0/head", 1'000'000'000'000, "layers and heads");
  refused("/windows/0/layers/0/heads/0/entropy", "high", "entropy");
  refused("/more", 1, "'more'");
  json uneven = whole;
  uneven["windows"].push_back(whole["windows"][0]);
  uneven["windows"][1]["layers"].erase(0);
  write(path("scan/results.json"), uneven.dump());
  expect_report_refused(path("scan"), {"results.json", "same layers"});
}

TEST_F(ReportCommand, EveryCommandLeavesAReport) {
  make_training("train", "--seeds 1");
  EXPECT_NE(read(path("train/report.html")).find("Training, by norm"), std::string::npos);
  // Four corners and the middle, as a .npy file.
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (5, 2), }";
  header += std::string(117 - header.size(), ' ') + "\n";
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += std::string("\x76\x00", 2) + header;
  for (const double value : {1., 1., 1., -1., -1., 1., -1., -1., 0., 0.})
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  write(path("keys.npy"), bytes);
  make("keys", "keys " + path("keys.npy"));
  EXPECT_NE(read(path("keys/report.html")).find("4\u00a0(80.0\u00a0%) are selectable"), std::string::npos);
  ASSERT_EQ(run("report " + path("keys") + out()).code, 0);
  EXPECT_NE(read(path("page.html")).find("Margins of selectable keys"), std::string::npos);
}

TEST_F(ReportCommand, RunsThatGoOnAreShownAsFarAsTheyAre) {
  make_training("run", "--seeds 2");
  std::filesystem::remove(path("run/results.json"));
  write(path("run/metrics.jsonl"), read(path("run/metrics.jsonl")) + R"({"step":30,"no)");
  const json result = result_of("report " + path("run") + out());
  EXPECT_EQ(result["runs"][0]["state"], "at step 20 of 20");
  EXPECT_NE(read(path("page.html")).find("No results.json yet"), std::string::npos);
  std::filesystem::remove(path("run/metrics.jsonl"));
  EXPECT_EQ(run("report " + path("run") + out()).code, 0);
  make_heatmap("heat");
  std::filesystem::remove(path("heat/results.json"));
  EXPECT_EQ(result_of("report " + path("heat") + out())["runs"][0]["state"], "not finished");
}

TEST_F(ReportCommand, OnlyAReportIsReplaced) {
  make_heatmap("run");
  ASSERT_EQ(run("report " + path("run") + out()).code, 0);
  const std::string page = read(path("page.html"));
  ASSERT_EQ(run("report " + path("run") + out()).code, 0);  // another report gives way
  EXPECT_EQ(read(path("page.html")), page);
  for (const char* mine : {"my notes", "<!DOCTYPE html>\n<html lang=\"en\"><p>my page</p></html>"}) {
    write(path("mine.html"), mine);
    expect_refused("report " + path("run") + " --out " + path("mine.html"),
                   {"mine.html", "not a report", "--out"});
  }
  write(path("empty.html"), "");
  EXPECT_EQ(run("report " + path("run") + " --quiet --out " + path("empty.html")).code, 0);
}

TEST_F(ReportCommand, WhatDiffersStandsAboveTheFigures) {
  make_training("a", "--seeds 1");
  make_training("b", "--seeds 11,42");
  ASSERT_EQ(run("report " + path("a") + " " + path("b") + out()).code, 0);
  const std::string page = read(path("page.html"));
  const std::size_t differs = page.find("What differs between the runs of train majority");
  ASSERT_NE(differs, std::string::npos);
  EXPECT_LT(page.find("The runs"), differs);
  EXPECT_LT(differs, page.find("<figure"));
}

TEST_F(ReportCommand, AnUnfinishedTrainingSaysHowFarItIs) {
  make_training("run", "--seeds 1");
  std::filesystem::remove(path("run/results.json"));
  json config = read_json(path("run/config.json"));
  config["options"]["settings"]["steps"] = 500;
  write(path("run/config.json"), config.dump());
  ASSERT_EQ(run("report " + path("run") + out()).code, 0);
  const std::string page = read(path("page.html"));
  EXPECT_NE(page.find("so far, at step 20 of 500"), std::string::npos);
  EXPECT_EQ(page.find("at the last step"), std::string::npos);
}

TEST_F(ReportCommand, WhatIsNoRunIsRefusedInASentence) {
  expect_refused("report", {"RUN"});
  expect_report_refused(path("nowhere"), {"nowhere", "not a directory"});
  write(path("folder/file"), "");
  expect_report_refused(path("folder"), {"folder", "config.json"});
  expect_report_refused(path("folder/file"), {"not a directory"});
  for (const std::string& config :
       {std::string("{}"), std::string("[1]"), std::string("x"), std::string(""), std::string(100'000, '['),
        std::string(2 << 20, ' '), std::string(R"({"program":"other","command":"heatmap"})")}) {
    write(path("folder/config.json"), config);
    expect_report_refused(path("folder"), {"config.json"});
  }
}

TEST_F(ReportCommand, HostileRunsAreRefusedAndNothingIsWritten) {
  make_heatmap("run");
  const std::string results = read(path("run/results.json"));
  std::string wide = "{\"grids\":[0";
  for (int i = 0; i < 4'100'000; ++i) wide += ",0";
  for (const std::string& text :
       {std::string("null"), std::string("{"), results.substr(0, results.size() / 2),
        std::string(1'000'000, '['), wide + "]}",
        std::string(R"({"init":"normal","precision":"float32","n":[3],"d":[2],"grids":[{"cells":[1,2]}]})"),
        std::string(R"({"init":5})")}) {
    write(path("run/results.json"), text);
    expect_report_refused(path("run"), {"results.json"});
  }
  std::filesystem::remove(path("run/results.json"));
  ASSERT_EQ(::mkfifo(path("run/results.json").c_str(), 0600), 0);
  expect_sentence(run("report " + path("run") + out()), 2, {"results.json"});
  std::filesystem::remove(path("run/results.json"));
  make_training("train", "--seeds 1");
  for (const std::string& log : {std::string("x\n"), std::string("{}\n"), std::string(100'000, 'a') + "\n",
                                 std::string("[[[[\n"), std::string("{\"step\":\"1\"}\n")}) {
    write(path("train/metrics.jsonl"), log);
    expect_report_refused(path("train"), {"metrics.jsonl"});
  }
}

TEST_F(ReportCommand, NamesFromRunsStayText) {
  make("mask", "mask causal --n 4");
  json results = read_json(path("mask/results.json")), config = read_json(path("mask/config.json"));
  results["masks"][0]["mask"] = "</script><script>alert(1)</script>";
  config["version"] = "<img src=x onerror=alert(2)>";
  write(path("mask/results.json"), results.dump());
  write(path("mask/config.json"), config.dump());
  ASSERT_EQ(run("report " + path("mask") + out()).code, 0);
  const std::string page = read(path("page.html"));
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_EQ(page.find("<img"), std::string::npos);
}

TEST_F(ReportCommand, TheReportIsWholeOrAbsent) {
  make_heatmap("run");
  ASSERT_EQ(run("report " + path("run") + out()).code, 0);
  const std::string before = read(path("page.html"));
  EXPECT_EQ(run("report " + path("run") + out(), 8).code, 1);  // a disk that is full
  EXPECT_EQ(read(path("page.html")), before);
  expect_refused("report " + path("run") + " --out " + path("no/where.html"), {"does not exist"});
  expect_refused("report " + path("run") + " --out " + path("run"), {"name of a file"});
}

TEST_F(ReportCommand, ManyRunsStaySmall) {
  make("heat", "heatmap --draws 2");
  std::string runs;
  for (int i = 0; i < 50; ++i) {
    const std::string copy = path("heat" + std::to_string(i));
    std::filesystem::copy(path("heat"), copy);
    runs += " " + copy;
  }
  ASSERT_EQ(run("report" + runs + out()).code, 0);
  const std::string page = read(path("page.html"));
  EXPECT_LT(page.size(), 20'000'000u);
  EXPECT_EQ(page.find("Left out"), std::string::npos);
  EXPECT_NE(page.find("<figure id=\"run50-heatmap\""), std::string::npos);
}

}  // namespace
}  // namespace normscope

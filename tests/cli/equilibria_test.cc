// normscope equilibria: what it prints and writes, and what it says to wrong calls.
#include "support/program.h"

namespace normscope {
namespace {

class EquilibriaCommand : public ProgramTest {
 protected:
  static constexpr const char* kSmall = "equilibria --starts 60 --steps 100 --angles 36 ";
};

TEST_F(EquilibriaCommand, WrongCallsGetOneSentence) {
  expect_refused("equilibria --w 1", {"above 1", "not 1", "√(1 − 1/w²)"});
  expect_refused("equilibria --w 0.5", {"above 1", "not 0.5"});
  expect_refused("equilibria --w -3", {"above 1", "not -3"});
  expect_refused("equilibria --w 2,1e7", {"1e+06"});
  expect_refused("equilibria --w nan", {"--w", "nan"});
  expect_refused("equilibria --w 2,,3", {"--w"});
  expect_refused("equilibria --w ''", {"--w"});
  expect_refused("equilibria --tokens 0", {"--tokens", "from 1 to 60"});
  expect_refused("equilibria --dim 0", {"--dim", "from 1 to 60"});
  expect_refused("equilibria --tokens 61", {"--tokens", "61"});
  expect_refused("equilibria --tokens 2.5", {"--tokens"});
  expect_refused("equilibria --starts 0", {"--starts"});
  expect_refused("equilibria --steps 1", {"--steps", "from 2"});
  expect_refused("equilibria --angles 0", {"--angles"});
  expect_refused("equilibria --trajectory 1,2,3", {"--trajectory", "3 numbers"});
  expect_refused("equilibria --trajectory 1", {"--trajectory", "1 number"});
  expect_refused("equilibria --trajectory 0,0,1,0", {"token 1", "origin"});
  expect_refused("equilibria --trajectory '1,0;x,1'", {"--trajectory", "'x'"});
  expect_refused("equilibria --trajectory '1,2;'", {"--trajectory"});
  expect_refused("equilibria extra", {"extra"});
}

TEST_F(EquilibriaCommand, PrintsARowPerW) {
  const Outcome outcome = run(std::string(kSmall) + "--w 1.1,2,10 --quiet");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  for (const char* part : {"multiplier", "½ − arcsin(1/w)/2π", "95 % interval", "published bound",
                           "Zero rows: a row", "Settled:", "31.84 %", "41.67 %", "48.41 %"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << " is missing in: " << outcome.out;
}

TEST_F(EquilibriaCommand, TellsWhichEquilibriaAreMissingAndWhichAreOnlyCounted) {
  const std::string few = run(std::string(kSmall) + "--tokens 4 --dim 4 --w 2.5").out;
  EXPECT_NE(few.find("none of rank 2: the last entry of token 4 would have the square 1 - 3²/w² = -0.44"),
            std::string::npos)
      << few;
  const std::string half = run(std::string(kSmall) + "--tokens 4 --dim 4 --w 3").out;
  EXPECT_NE(half.find("half as many of rank 2"), std::string::npos) << half;
  // w leaves only ranks above 11, of which one is built.
  const auto many =
      result_of("equilibria --tokens 24 --dim 20 --w 13 --starts 1 --steps 2 --angles 4 --trajectory 1,2");
  const auto& ranks = many["weights"][0]["equilibria"];
  EXPECT_EQ(ranks.size(), 20u);
  EXPECT_EQ(ranks[19]["count"], 1 << 20);
  EXPECT_EQ(ranks[19]["enumerated"], false);
  EXPECT_TRUE(ranks[19]["residual"].is_null());
}

TEST_F(EquilibriaCommand, JsonHasTheNumbers) {
  const auto result = result_of(std::string(kSmall) + "--tokens 3 --dim 3 --w 3,5");
  EXPECT_EQ(result["command"], "equilibria");
  ASSERT_EQ(result["weights"].size(), 2u);
  const auto& weight = result["weights"][0];
  EXPECT_EQ(weight["fixed_points"].size(), 4u);
  EXPECT_TRUE(weight["fixed_points"][3]["multiplier"].is_null());
  EXPECT_EQ(weight["arc"]["mismatches"], 0);
  ASSERT_EQ(weight["equilibria"].size(), 3u);
  EXPECT_EQ(weight["equilibria"][2]["count"], 8);
  EXPECT_EQ(weight["equilibria"][2]["stable"], 2);
  EXPECT_EQ(weight["equilibria"][2]["least_signs"], nlohmann::json({1, -1, 1}));
  EXPECT_LT(weight["equilibria"][2]["residual"], 1e-14);
  EXPECT_EQ(weight["final_ranks"]["ranks"].size(), 3u);
  EXPECT_EQ(weight["coupled"]["ranks"].size(), 2u);
  EXPECT_EQ(weight["coupled"]["starts"], 60);
  EXPECT_NE(result["zero_row_policy"].get<std::string>().find("stays zero"), std::string::npos);
}

TEST_F(EquilibriaCommand, AZeroRowIsSeenOnScreenInJsonAndInThePicture) {
  const std::string call = std::string(kSmall) + "--trajectory '90,270;1,1,2,0' --out " + path("zero");
  const Outcome outcome = run(call + " --quiet");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("Trajectory 0 at w = 2 met 1."), std::string::npos) << outcome.out;
  const auto result = read_json(path("zero") + "/results.json");
  EXPECT_EQ(result["weights"][0]["trajectories"][0]["zero_rows"], 1);
  EXPECT_EQ(result["weights"][0]["trajectories"][0]["fate"], "zero row");
  EXPECT_EQ(result["weights"][0]["trajectories"][1]["zero_rows"], 0);
  EXPECT_NE(read(path("zero") + "/phase.svg").find("the row became zero"), std::string::npos);
  EXPECT_NE(read(path("zero") + "/trajectories.csv").find("\n2,0,1,0,1,0,0,1\n"), std::string::npos);
}

TEST_F(EquilibriaCommand, LeavesARunBehindThatIsTheSameForAnyNumberOfThreads) {
  Files first;
  for (const int threads : {1, 3}) {
    const std::string out = path("run" + std::to_string(threads));
    const Outcome outcome = run(std::string(kSmall) + "--w 1.5,2 --tokens 3 --dim 2 --seed 4 --threads " +
                                std::to_string(threads) + " --out " + out);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    Files files = files_of(out);
    for (const char* name : {"config.json", "results.json", "phase.svg", "trajectories.csv", "report.html"})
      EXPECT_TRUE(files.count(name) == 1) << name;
    EXPECT_EQ(files.size(), 5u);
    auto results = nlohmann::json::parse(files["results.json"]);
    results.erase("seconds");
    results.erase("threads");
    files["results.json"] = results.dump();
    // The picture names the threads.
    if (threads == 1) {
      first = files;
    } else {
      EXPECT_EQ(first["results.json"], files["results.json"]);
      EXPECT_EQ(first["trajectories.csv"], files["trajectories.csv"]);
    }
  }
  expect_refused("equilibria --out " + path("run1/results.json"), {"results.json"});
}

TEST_F(EquilibriaCommand, AFullDiskIsAFailedRun) {
  const Outcome outcome = run(kSmall, 0, "/dev/full");
  EXPECT_EQ(outcome.code, 1);
  const Outcome torn = run(std::string(kSmall) + "--out " + path("torn"), 8);
  EXPECT_EQ(torn.code, 1) << torn.err;
}

}  // namespace
}  // namespace normscope

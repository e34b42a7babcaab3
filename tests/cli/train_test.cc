// What `normscope train majority` prints and leaves behind, through wrong calls, kills and full disks.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "normscope/random.h"
#include "normscope/record.h"
#include "normscope/tensor_file.h"
#include "support/program.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using std::chrono::milliseconds;

const std::string kTask =
    "train majority --samples 500 --classes 5 --length 12 --margin 2 --evaluate-every 10 --batch 100 ";
const std::string kSmall = kTask + "--steps 60 ";
// Long enough to be killed in the middle.
const std::string kLong = kTask + "--steps 1500 --norm layernorm,rmsnorm --checkpoint-every 20 ";
constexpr const char* kMeasures[] = {"train_loss", "test_loss", "accuracy",          "sequence_accuracy",
                                     "angle_mean", "angle_sd",  "attention_entropy", "attention_distance"};
constexpr const char *kLog = "metrics.jsonl", *kCheckpoint = "checkpoint.safetensors";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::stringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Of the run that the tensors belong to.
Tensor& named(std::vector<Tensor>& tensors, const std::string& name) {
  return *std::find_if(tensors.begin(), tensors.end(),
                       [&](const Tensor& tensor) { return tensor.name.ends_with("/" + name); });
}

class TrainCommand : public ProgramTest {
 protected:
  std::string in_run(const char* file) const { return path("run/") + file; }
  std::string resume() const { return "train majority --resume " + path("run"); }

  // A finished training in "run".
  Files finish(const std::string& arguments) const {
    const Outcome outcome = run(arguments + " --quiet --out " + path("run"));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return files_of(path("run"));
  }
  Files finish_resumed() const {
    const Outcome outcome = run(resume() + " --quiet");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return files_of(path("run"));
  }
  // A training in "run" that was killed after a checkpoint was written and before it was done.
  void leave_half_done() const {
    const pid_t child = start(kTask + "--steps 100000000 --checkpoint-every 20 --out " + path("run"));
    for (int i = 0; i < 2000 && !fs::exists(in_run(kCheckpoint)); ++i)
      std::this_thread::sleep_for(milliseconds(5));
    ::kill(child, SIGKILL);
    EXPECT_EQ(wait(child).code, -1);
    ASSERT_TRUE(fs::exists(in_run(kCheckpoint)));
  }
  void expect_same_training(const Files& expected) const {
    EXPECT_EQ(read(in_run(kLog)), expected.at(kLog));
    EXPECT_TRUE(read(in_run(kCheckpoint)) == expected.at(kCheckpoint)) << "the checkpoint differs";
    EXPECT_TRUE(read(in_run("geometry.safetensors")) == expected.at("geometry.safetensors"));
  }
  // Rewrites the checkpoint with its tensors changed.
  template <class Change>
  void change_checkpoint(const Change& change, bool keep_hash = true) const {
    const TensorFile file = TensorFile::open(in_run(kCheckpoint));
    std::vector<Tensor> tensors;
    for (const TensorInfo& info : file.tensors()) tensors.push_back(file.read(info.name));
    change(tensors);
    std::map<std::string, std::string> metadata(file.metadata().begin(), file.metadata().end());
    if (!keep_hash) metadata.erase("state_hash");
    write_safetensors(in_run(kCheckpoint), tensors, metadata);
  }
};

TEST_F(TrainCommand, JsonHasEveryDocumentedMember) {
  const json result = result_of(kSmall + "--norm layernorm,rmsnorm --seeds 3");
  EXPECT_EQ(result["command"], "train majority");
  for (const char* name : {"version", "commit", "isa", "threads", "seconds", "ms_per_step"})
    EXPECT_TRUE(result.contains(name)) << name;
  EXPECT_GT(result["ms_per_step"], 0.0);
  const json& settings = result["settings"];
  EXPECT_EQ(settings["classes"], 5);
  EXPECT_EQ(settings["length"], 12);
  EXPECT_EQ(settings["samples"], 500);
  EXPECT_EQ(settings["margin"], 2);
  EXPECT_EQ(settings["dim"], 8);
  EXPECT_EQ(settings["feed_forward"], 8);
  EXPECT_EQ(settings["steps"], 60);
  EXPECT_EQ(settings["evaluate_every"], 10);
  EXPECT_EQ(settings["batch"], 100);
  ASSERT_EQ(result["runs"].size(), 6u);
  for (std::size_t r = 0; r < 6; ++r) {
    const json& run = result["runs"][r];
    EXPECT_EQ(run["norm"], r < 3 ? "layernorm" : "rmsnorm");
    EXPECT_EQ(run["seed"], (std::vector{11, 123, 42}[r % 3]));
    EXPECT_EQ(run["step"], 60);
    EXPECT_GT(run["parameters"], 0);
    EXPECT_TRUE(run["keys_out_of_plane"].is_number());
    for (const char* name : kMeasures) EXPECT_TRUE(run[name].is_number()) << name;
    for (const char* loss : {"1.0", "0.5", "0.2"}) EXPECT_TRUE(run["steps_to"].contains(loss)) << loss;
  }
  ASSERT_EQ(result["norms"].size(), 2u);
  for (const json& norm : result["norms"]) {
    EXPECT_EQ(norm["runs"], 3);
    for (const char* name : kMeasures) {
      EXPECT_LE(norm[name]["low"], norm[name]["mean"]) << name;
      EXPECT_LE(norm[name]["mean"], norm[name]["high"]) << name;
    }
    for (const char* loss : {"1.0", "0.5", "0.2"}) EXPECT_TRUE(norm["steps_to"][loss].contains("runs"));
  }
}

TEST_F(TrainCommand, TheScreenHasARowPerNorm) {
  const Outcome outcome = run(kSmall + "--norm layernorm,published --seeds 3");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  for (const char* word : {"layernorm", "published", "test loss", "accuracy %", "angle to 1", "to 0.5",
                           "5 classes", "ms per step over 360 steps", " ±", "95 %"})
    EXPECT_NE(outcome.out.find(word), std::string::npos) << word << " is missing in:\n" << outcome.out;
}

TEST_F(TrainCommand, OfTwoSeedsTheScreenShowsBothValues) {
  const std::string call = kSmall + "--norm layernorm --seeds 2";
  const Outcome outcome = run(call);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json runs = result_of(call)["runs"];
  ASSERT_EQ(runs.size(), 2);
  const std::string losses =
      fmt::format("{:.3f}, {:.3f}", runs[0]["test_loss"].get<double>(), runs[1]["test_loss"].get<double>());
  EXPECT_NE(outcome.out.find(losses), std::string::npos) << losses << " is missing in:\n" << outcome.out;
  EXPECT_NE(outcome.out.find("of two seeds both values are shown"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("±"), std::string::npos) << outcome.out;
}

TEST_F(TrainCommand, SeedsAreACountOrAList) {
  const auto seeds = [&](const std::string& option) {
    std::vector<std::uint64_t> list;
    const json result = result_of(kTask + "--steps 1 " + option);
    for (const json& run : result["runs"]) list.push_back(run["seed"]);
    return list;
  };
  using Seeds = std::vector<std::uint64_t>;
  EXPECT_EQ(seeds("--seeds 10"), (Seeds{11, 123, 42, 9, 456, 4, 5, 6, 7, 8}));
  EXPECT_EQ(seeds("--seeds 11,42"), (Seeds{11, 42}));
  EXPECT_EQ(seeds("--seeds 42,"), (Seeds{42}));
  EXPECT_EQ(seeds("--seed 7"), (Seeds{7}));
  EXPECT_EQ(seeds(""), (Seeds{11}));
  const std::string out = " --out " + path("run");
  expect_refused(kSmall + "--seeds 11" + out, {"--seeds 11", "how many", "11,42", "--seed N"});
  expect_refused(kSmall + "--seeds 0" + out, {"--seeds 0"});
  expect_refused(kSmall + "--seeds 11,11" + out, {"11", "twice"});
  expect_refused(kSmall + "--seeds 11,x" + out, {"--seeds", "'x'"});
  expect_refused(kSmall + "--seeds 2 --seed 3" + out, {"--seed", "--seeds"});
}

TEST_F(TrainCommand, EveryNormTrains) {
  const std::string names =
      "none,layernorm,rmsnorm,center,unit,xsigma,dyt,published,qknorm,qknorm:2,project:1,project:2,normals:1";
  const json result = result_of(kSmall + "--norm " + names);
  ASSERT_EQ(result["runs"].size(), 13u);
  for (const json& run : result["runs"]) {
    EXPECT_EQ(run["step"], 60) << run["norm"];
    EXPECT_FALSE(run.contains("diverged")) << run["norm"];
  }
}

TEST_F(TrainCommand, FrozenAttentionAndAMatrixAreSettingsThatResume) {
  const std::string options = kTask + "--norm rmsnorm --uniform-attention --learned-matrix --steps ";
  const Files whole = finish(options + "60");
  const json results = json::parse(whole.at("results.json"));
  EXPECT_EQ(results["settings"]["uniform_attention"], true);
  EXPECT_EQ(results["settings"]["learned_matrix"], true);
  EXPECT_NEAR(results["runs"][0]["attention_distance"].get<double>(), 0, 1e-6);
  EXPECT_EQ(results["runs"][0]["parameters"], 464 + 64);
  fs::remove_all(path("run"));
  finish(options + "30");
  ASSERT_EQ(run(resume() + " --steps 60 --quiet").code, 0);
  expect_same_training(whole);
  fs::remove_all(path("run"));
  const json usual = json::parse(finish(kSmall).at("results.json"));
  EXPECT_FALSE(usual["settings"].contains("uniform_attention"));
  EXPECT_FALSE(usual["settings"].contains("learned_matrix"));
}

TEST_F(TrainCommand, ThreeDimensionsAreASetting) {
  const json result = result_of("train majority --3d --steps 20 --evaluate-every 10");
  EXPECT_EQ(result["settings"]["dim"], 3);
  EXPECT_EQ(result["settings"]["classes"], 10);
  EXPECT_EQ(result["settings"]["stop_accuracy"], 1.0);
  EXPECT_LT(result["runs"][0]["keys_out_of_plane"], 1e-6);  // after LayerNorm
}

TEST_F(TrainCommand, OnceTheLearningRateIsZeroNothingChangesAndANoteSaysSo) {
  const Outcome outcome = run(kTask + "--steps 50 --decay-steps 20 --out " + path("run"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* fact : {"learning rate is 0", "step 20", "--decay-steps", "50"})
    EXPECT_NE(outcome.err.find(fact), std::string::npos) << fact << " is missing in: " << outcome.err;
  std::vector<double> losses;  // at steps 0, 10, …
  for (const std::string& line : lines_of(read(in_run(kLog))))
    losses.push_back(json::parse(line)["test_loss"]);
  ASSERT_EQ(losses.size(), 6u);
  EXPECT_NE(losses[1], losses[2]);
  for (const std::size_t i : {3, 4, 5}) EXPECT_EQ(losses[i], losses[2]);
  EXPECT_EQ(run(kTask + "--steps 20 --decay-steps 20").err, "");
}

TEST_F(TrainCommand, ARunIsADirectory) {
  const Outcome outcome = run(kSmall + "--norm layernorm,project:1 --seeds 2 --json --out " + path("run"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Files files = files_of(path("run"));
  std::set<std::string> names;
  for (const auto& [name, bytes] : files) names.insert(name);
  EXPECT_EQ(names, (std::set<std::string>{"config.json", kLog, kCheckpoint, "geometry.safetensors",
                                          "report.html", "results.json"}));
  EXPECT_EQ(json::parse(files.at("results.json")), json::parse(outcome.out));
  const json config = json::parse(files.at("config.json"));
  EXPECT_EQ(config["command"], "train majority");
  EXPECT_EQ(config["options"]["settings"]["steps"], 60);
  EXPECT_EQ(config["options"]["runs"].size(), 4u);

  const auto lines = lines_of(files.at(kLog));
  ASSERT_EQ(lines.size(), 4u * 7);  // steps 0, 10, …, 60
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const json line = json::parse(lines[i]);
    EXPECT_EQ(line["step"], 10 * (i / 4));
    EXPECT_EQ(line["norm"], i % 4 < 2 ? "layernorm" : "project:1");
    EXPECT_EQ(line["seed"], i % 2 == 0 ? 11 : 123);
    for (const char* name : kMeasures) EXPECT_TRUE(line.contains(name)) << name;
    EXPECT_EQ(line["train_loss"].is_null(), i < 4);
  }

  const TensorFile geometry = TensorFile::open(in_run("geometry.safetensors"));
  EXPECT_EQ(geometry.tensors().size(), 8u);
  for (const char* name : {"layernorm/seed11/keys", "project:1/seed123/queries"}) {
    const Tensor tensor = geometry.read(name);
    EXPECT_EQ(tensor.shape, (std::vector<std::size_t>{5, 8})) << name;
    EXPECT_TRUE(std::all_of(tensor.values.begin(), tensor.values.end(),
                            [](double value) { return std::isfinite(value); }));
  }
}

TEST_F(TrainCommand, TheNumberOfThreadsLeavesNoTrace) {
  const Files one = finish(kSmall + "--norm layernorm,rmsnorm --seeds 3 --threads 1");
  for (const char* threads : {"2", "8"}) {
    fs::remove_all(path("run"));
    finish(kSmall + "--norm layernorm,rmsnorm --seeds 3 --threads " + threads);
    expect_same_training(one);
  }
}

TEST_F(TrainCommand, KilledAtAnyMomentItResumesToTheSameBytes) {
  const auto start = std::chrono::steady_clock::now();
  const Files whole = finish(kLong);
  // Kills come at any moment of a whole run, however long one takes here.
  const auto span =
      std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start).count();
  Random random(7);
  int kills = 0, after_checkpoint = 0;
  // As many rounds as it takes for some kills to come after a checkpoint: how fast a run is changes from one
  // to the next.
  for (int round = 0; round < 3 || (round < 100 && after_checkpoint <= 3); ++round) {
    fs::remove_all(path("run"));
    for (int attempt = 0;; ++attempt) {
      const bool begun = fs::exists(in_run("config.json"));
      after_checkpoint += attempt > 0 && fs::exists(in_run(kCheckpoint));
      const std::string call =
          (begun ? resume() + " --checkpoint-every 20" : kLong + "--out " + path("run")) + " --threads " +
          std::to_string(1 + random.below(2));
      // Sooner or later one is let live.
      const milliseconds delay(1 + random.below(static_cast<std::uint64_t>(span) / 2 + 1));
      const Outcome outcome = attempt < 30 ? run_killed(call, delay) : run(call);
      if (outcome.code == 0) break;
      ASSERT_EQ(outcome.code, -1) << outcome.err;
      ++kills;
    }
    expect_same_training(whole);
  }
  EXPECT_GT(kills, 3);
  EXPECT_GT(after_checkpoint, 3);
}

TEST_F(TrainCommand, WhatAKilledRunLeftIsRemoved) {
  const Files whole = finish(kSmall);
  const std::string leftover = in_run(".normscope-123-4.tmp");
  write(leftover, "half");
  EXPECT_TRUE(finish_resumed() == whole);
  EXPECT_FALSE(fs::exists(leftover));
  write(leftover, "half");
  expect_refused(kSmall + "--out " + path("run"), {"--resume"});
  EXPECT_TRUE(fs::exists(leftover));
}

TEST_F(TrainCommand, LinesAfterTheCheckpointAreDropped) {
  const Files whole = finish(kSmall);
  // As if killed between the log and its checkpoint: a checkpoint of step 30 under the log of step 60.
  fs::remove_all(path("run"));
  finish(kTask + "--steps 30");
  const auto lay = [&](const std::string& log) {
    write(in_run("config.json"), whole.at("config.json"));
    write(in_run(kLog), log);
    // What was done at step 30 is not, of 60. Only the program can sign such a checkpoint.
    change_checkpoint([](std::vector<Tensor>& tensors) { named(tensors, "progress").values[2] = 0; }, false);
  };
  const std::string half = read(in_run(kLog)), checkpoint = read(in_run(kCheckpoint));
  for (const std::string& log :
       {whole.at(kLog), half, half + "{\"step\":40,\"no", half + std::string(50, '\0'), half + "x\n"}) {
    write(in_run(kCheckpoint), checkpoint);
    lay(log);
    finish_resumed();
    expect_same_training(whole);
  }
}

TEST_F(TrainCommand, WithoutACheckpointItBeginsAnew) {
  const Files whole = finish(kSmall);
  for (const bool torn : {false, true}) {
    fs::remove(in_run(kCheckpoint));
    if (torn) write(in_run(kLog), whole.at(kLog).substr(0, 700));
    finish_resumed();
    expect_same_training(whole);
  }
}

TEST_F(TrainCommand, AFinishedRunIsLeftAsItIs) {
  const Files whole = finish(kSmall + "--norm layernorm,rmsnorm");
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(finish_resumed() == whole);
  EXPECT_EQ(result_of(resume())["runs"], json::parse(whole.at("results.json"))["runs"]);
}

TEST_F(TrainCommand, OverflowIsNoDamage) {
  // The second moments overflow while the loss is still finite.
  const Files whole = finish(kTask + "--norm none,layernorm --lr 1000 --steps 2000");
  const TensorFile checkpoint = TensorFile::open(in_run(kCheckpoint));
  const Tensor square = checkpoint.read("none/seed11/adam.square");
  ASSERT_FALSE(std::all_of(square.values.begin(), square.values.end(),
                           [](double value) { return std::isfinite(value); }));
  EXPECT_TRUE(finish_resumed() == whole);
}

TEST_F(TrainCommand, ARunThatDivergedDoesNotHoldUpTheOthers) {
  const Files whole = finish(kTask + "--norm none,layernorm --layers 8 --lr 300 --steps 200");
  const json result = json::parse(whole.at("results.json"));
  EXPECT_EQ(result["runs"][0]["diverged"], true);
  EXPECT_FALSE(result["runs"][1].contains("diverged"));
  EXPECT_EQ(result["runs"][1]["step"], 200);
  EXPECT_TRUE(finish_resumed() == whole);
}

TEST_F(TrainCommand, ALossThatOverflowsBeforeTheFirstStepIsAFailedRun) {
  expect_sentence(run("train majority --samples 10 --classes 2 --length 12 --margin 2 --steps 1 --norm none "
                      "--layers 600 --dim 32 --path generic"),
                  1, {"none with seed 11", "not finite", "fewer layers"});
}

TEST_F(TrainCommand, OldNamesOfOptionsGoOnWorkingUnlisted) {
  const json result = result_of(kSmall + "--dimension 4 --learning-rate 0.01");
  EXPECT_EQ(result["settings"]["dim"], 4);
  EXPECT_EQ(result_of(kSmall + "--dim 4 --lr 0.01")["runs"], result["runs"]);
  const std::string help = run("train majority --help").out;
  EXPECT_NE(help.find("--learning-rate"), std::string::npos);
  EXPECT_EQ(help.find("--lr"), std::string::npos);
  EXPECT_EQ(help.find("--dim "), std::string::npos);
  expect_refused(kSmall + "--dim 4 --dimension 8", {"--dim", "--dimension"});
  expect_refused(kSmall + "--learning-rate 0", {"--learning-rate", "'0'"});
}

TEST_F(TrainCommand, OneProcessWritesAtATime) {
  const pid_t first = start(kTask + "--steps 100000000 --out " + path("run"));
  for (int i = 0; i < 2000 && read(in_run(kLog)).empty(); ++i) std::this_thread::sleep_for(milliseconds(5));
  const Outcome second = run(resume());
  ::kill(first, SIGKILL);
  wait(first);
  expect_sentence(second, 2, {"is in use by process " + std::to_string(first), path("run"), "wait"});
}

TEST_F(TrainCommand, WrongCallsAreRefused) {
  const auto refused = [&](const std::string& options, const std::vector<std::string>& facts) {
    expect_refused("train majority " + options + " --out " + path("run"), facts);
  };
  refused("--classes 60 --samples 50", {"60 classes", "50 sequences", "draw more"});
  refused("--length 0", {"--length", "from 1", "'0'"});
  refused("--length 5", {"length 5", "leads by 6", "from 1 to 3"});
  refused("--margin 49", {"49", "from 1 to 48"});
  refused("--samples 4 --classes 2", {"4 sequences", "at least 5"});
  refused("--dim 1", {"at least 2 dimensions"});
  refused("--dim 4 --norm project:4", {"project:4", "4 of 4"});
  refused("--heads 3", {"3 heads", "8", "divisor"});
  refused("--norm layrnorm", {"layrnorm", "layernorm"});
  refused("--norm layernorm,layernorm", {"layernorm", "twice"});
  refused("--norm ''", {"--norm"});
  refused("--stepz 3", {"--stepz", "--steps"});
  refused("--steps abc", {"--steps", "abc"});
  refused("--steps -1", {"--steps", "-1"});
  refused("--steps ''", {"--steps", "empty"});
  refused("--steps 3 --steps 4", {"--steps", "more than once"});
  refused("--lr 0", {"--lr", "'0'"});
  refused("--lr nan", {"--lr", "nan"});
  refused("--batch 0", {"--batch", "'0'"});
  refused("--evaluate-every 0", {"--evaluate-every", "'0'"});
  refused("--checkpoint-every 0", {"--checkpoint-every", "'0'"});
  refused("--mask half", {"half", "causal"});
  refused("--path fast", {"--path", "fast", "generic"});
  refused("--path bag --mask causal", {"bag"});
  refused("minority", {"minority"});
  expect_refused("train", {"train"});
  expect_refused("train minority", {"no command 'minority'", "did you mean 'majority'?"});
  expect_refused("train regression --steps 3", {"no command 'regression'", "normscope train --help"});
}

TEST_F(TrainCommand, OnlyATrainingCanBeResumed) {
  write(path("file"), "x");
  write(path("foreign/thesis.tex"), "x");
  write(path("odd/config.json"), R"({"program": 3})");
  write(path("list/config.json"), "[]");
  ASSERT_EQ(run("heatmap --n 3 --d 2 --draws 1 --quiet --out " + path("heatmap")).code, 0);
  expect_refused("train majority --resume " + path("missing"), {path("missing"), "does not exist", "--out"});
  for (const char* name : {"file", "foreign", "odd", "list"})
    expect_refused("train majority --resume " + path(name), {path(name), "config.json", "--out"});
  expect_refused("train majority --resume " + path("heatmap"),
                 {path("heatmap"), "heatmap", "train majority"});
  expect_refused("train majority --resume ''", {"--resume", "empty"});
  finish(kSmall);
  for (const char* option : {"--norm rmsnorm", "--seed 3", "--seeds 2", "--3d", "--out elsewhere"}) {
    const std::string name = std::string(option).substr(0, std::string(option).find(' '));
    expect_refused(resume() + " " + option, {"--resume", name});
  }
}

TEST_F(TrainCommand, MoreStepsExtendATrainingToTheSameBytes) {
  const Files whole = finish(kTask + "--steps 120");
  fs::remove_all(path("run"));
  finish(kSmall);
  // Not to fewer, nor to as many.
  for (const char* steps : {"30", "60"})
    expect_refused(resume() + " --steps " + steps, {"--steps", "planned to step 60"});
  const Outcome more = run(resume() + " --quiet --steps 120");
  ASSERT_EQ(more.code, 0) << more.err;
  expect_same_training(whole);
  const auto config = json::parse(read(in_run("config.json")));
  EXPECT_EQ(config["options"], json::parse(whole.at("config.json"))["options"]);
  EXPECT_EQ(json::parse(read(in_run("results.json")))["runs"], json::parse(whole.at("results.json"))["runs"]);
  // From then on it is a training of 120 steps.
  EXPECT_EQ(run(resume() + " --quiet").code, 0);
  expect_same_training(whole);
}

TEST_F(TrainCommand, ALearningRateThatHasEndedIsNotExtended) {
  finish(kSmall + "--decay-steps 60");
  expect_refused(resume() + " --steps 120", {"fallen to 0 at step 60", "new directory"});
}

TEST_F(TrainCommand, AConfigThatWasChangedIsRefused) {
  const json config = json::parse(finish(kSmall).at("config.json"));
  const auto refused = [&](const std::vector<std::string>& facts, const auto& change) {
    json changed = config;
    change(changed);
    write(in_run("config.json"), changed.dump());
    expect_refused(resume(), facts);
  };
  refused({"0.0.1", "version"}, [](json& j) { j["version"] = "0.0.1"; });
  refused({"'steps'"}, [](json& j) { j["options"]["settings"]["steps"] = -5; });
  refused({"'steps'"}, [](json& j) { j["options"]["settings"]["steps"] = "many"; });
  refused({"'dim'"}, [](json& j) { j["options"]["settings"].erase("dim"); });
  refused({"'settings'"}, [](json& j) { j["options"] = 3; });
  refused({"Mask", "diagonal"}, [](json& j) { j["options"]["settings"]["mask"] = "diagonal"; });
  refused({"path", "slow"}, [](json& j) { j["options"]["settings"]["path"] = "slow"; });
  refused({"layrnorm"}, [](json& j) { j["options"]["runs"][0]["norm"] = "layrnorm"; });
  refused({"config.json", "no norm"}, [](json& j) { j["options"]["runs"] = json::array(); });
  refused({"not of this training"}, [](json& j) { j["options"]["runs"][0]["norm"] = "rmsnorm"; });
  refused({"model of another shape"}, [](json& j) { j["options"]["settings"]["feed_forward"] = 4; });
}

TEST_F(TrainCommand, AttentionStaysWithinTheMask) {
  const std::string call = "train majority --length 6 --margin 1 --classes 3 --samples 60 --steps 5 --mask ";
  const double most = std::log(3.0);  // a window of one token to each side
  EXPECT_LE(result_of(call + "window:1")["runs"][0]["attention_entropy"], most);
  EXPECT_GT(result_of(call + "full")["runs"][0]["attention_entropy"], most);
  EXPECT_EQ(result_of(call + "window:1")["settings"]["mask"], "window:1");
  EXPECT_NEAR(result_of(call + "self")["runs"][0]["attention_entropy"], 0, 1e-6);
}

TEST_F(TrainCommand, AttentionToOneTokenHasNoEntropy) {
  for (const char* path : {"bag", "generic"}) {
    const std::string call =
        std::string("train majority --length 1 --margin 1 --classes 3 --samples 60 --steps 20 --path ") +
        path;
    const json entropy = result_of(call)["runs"][0]["attention_entropy"];
    EXPECT_GE(entropy, 0.0) << path;
    EXPECT_LT(entropy, 1e-6) << path;  // what rounding of float leaves
    EXPECT_EQ(run(call).out.find("-0.0"), std::string::npos) << path;
  }
}

TEST_F(TrainCommand, AMissingLogIsRefusedAndNotMade) {
  finish(kSmall);
  fs::remove(in_run(kLog));
  expect_refused(resume(), {kLog, "missing", "begin anew"});
  fs::remove(in_run(kCheckpoint));
  json config = read_json(in_run("config.json"));
  config["options"]["runs"][0]["norm"] = "layrnorm";
  write(in_run("config.json"), config.dump());
  expect_refused(resume(), {"layrnorm"});
}

TEST_F(TrainCommand, ADamagedCheckpointOrLogIsRefused) {
  leave_half_done();
  // A kill in the middle of a checkpoint leaves a temporary, which the next start removes: not what is
  // tested.
  RunDirectory(path("run")).remove_leftovers();
  const Files whole = files_of(path("run"));
  const std::string checkpoint = whole.at(kCheckpoint);
  const auto refused = [&](const std::vector<std::string>& facts) {
    expect_refused(resume(), facts);
    write(in_run(kCheckpoint), checkpoint);
    write(in_run(kLog), whole.at(kLog));
  };
  write(in_run(kCheckpoint), "this is no tensor");
  refused({kCheckpoint});
  write(in_run(kCheckpoint), "");
  refused({kCheckpoint});
  write(in_run(kCheckpoint), checkpoint.substr(0, checkpoint.size() - 9));
  refused({kCheckpoint});
  change_checkpoint([](std::vector<Tensor>& tensors) { tensors.erase(tensors.begin()); });
  refused({"no tensor", "layernorm/seed11"});
  change_checkpoint([](std::vector<Tensor>& tensors) {
    Tensor& tensor = named(tensors, "embedding");
    tensor = {tensor.name, DType::float32, {1}, {0}};
  });
  refused({"1 numbers", "another shape"});
  for (const char* name : {"embedding", "adam.mean"}) {
    change_checkpoint([&](std::vector<Tensor>& tensors) { named(tensors, name).values[3] = std::nan(""); });
    refused({name, "NaN", "start anew"});
  }
  change_checkpoint([](std::vector<Tensor>& tensors) { named(tensors, "embedding").values[3] += 0.25; });
  refused({kCheckpoint, "not as it was written"});
  change_checkpoint([](std::vector<Tensor>& tensors) { named(tensors, "progress").values[0] = -1; });
  refused({"step"});
  write_safetensors(in_run(kCheckpoint), std::vector<Tensor>{{"x", DType::float32, {1}, {0}}});
  refused({kCheckpoint, "not a checkpoint"});
  write(in_run(kLog), "");
  refused({kLog, "another run"});
  write(in_run(kLog), whole.at(kLog).substr(0, 100));
  refused({kLog, "another run"});
  std::string changed = whole.at(kLog);
  changed[changed.find("accuracy") + 12] ^= 1;
  write(in_run(kLog), changed);
  refused({kLog, "changed"});
  // The same norm and seed, but another training.
  ASSERT_EQ(run(kTask + "--steps 1000 --lr 0.01 --quiet --out " + path("other")).code, 0);
  write(in_run(kLog), read(path("other/") + kLog));
  refused({kLog, "another run"});
}

TEST_F(TrainCommand, ADirectoryThatHoldsARunIsNotTouched) {
  finish(kSmall);
  expect_refused(kSmall + "--out " + path("run"), {path("run"), "--resume", "new directory"});
  write(path("foreign/thesis.tex"), "x");
  write(path("file"), "x");
  expect_refused(kSmall + "--out " + path("foreign"), {path("foreign"), "empty directory"});
  expect_refused(kSmall + "--out " + path("file"), {path("file"), "directory"});
  expect_refused(kSmall + "--out /proc/normscope", {"/proc/normscope"});
  expect_refused(kSmall + "--out ''", {"--out"});
}

TEST_F(TrainCommand, AFullDiskLeavesWhatWasThereAndCanBeGoneOnWith) {
  const Files whole = finish(kTask + "--steps 600");
  const std::size_t needed = whole.at(kCheckpoint).size();
  // ulimit -f counts blocks of 512 bytes: room for the checkpoint, not for the whole log.
  const int room = static_cast<int>(needed / 512 + 4);
  ASSERT_GT(whole.at(kLog).size(), static_cast<std::size_t>(room) * 512);
  fs::remove_all(path("run"));
  expect_sentence(run(kTask + "--steps 600 --checkpoint-every 10 --out " + path("run"), room), 1,
                  {kLog, "File too large", "intact"});
  EXPECT_TRUE(fs::exists(in_run(kCheckpoint)));
  EXPECT_GT(read(in_run(kLog)).size(), 0u);
  expect_sentence(run(resume() + " --checkpoint-every 10", room), 1, {kLog});
  finish_resumed();
  expect_same_training(whole);

  // Not even room for a checkpoint.
  fs::remove_all(path("run"));
  expect_sentence(run(kTask + "--steps 600 --checkpoint-every 10 --out " + path("run"), 8), 1,
                  {kCheckpoint, "File too large", "space"});
  EXPECT_FALSE(fs::exists(in_run(kCheckpoint)));
  finish_resumed();
  expect_same_training(whole);
  for (const auto& [name, bytes] : files_of(path("run"))) EXPECT_EQ(name.find(".tmp"), std::string::npos);
}

TEST_F(TrainCommand, LostOutputIsAFailedRun) {
  expect_sentence(run(kSmall + "--quiet --out " + path("run"), 0, "/dev/full"), 1, {"Standard output"});
  EXPECT_TRUE(fs::exists(in_run("results.json")));
}

}  // namespace
}  // namespace normscope

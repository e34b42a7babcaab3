// What `normscope train lm` and `train sentiment` print and leave behind, through wrong calls, bad texts,
// kills and full disks.
#include <algorithm>
#include <chrono>
#include <set>
#include <sstream>

#include "support/program.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using std::chrono::milliseconds;

const std::string kTiny = "--layers 2 --batch 2 --evaluate-every 10 --learning-rate 1e-2 ";
const std::string kModel = "train lm --corpus grammar --tokenizer bytes --tokens 2000 --context 16 " + kTiny;
const std::string kLanguage = kModel + "--steps 30 ";
const std::string kReviews =
    "train sentiment --tokenizer words --length 12 --feed-forward 16 --steps 20 " + kTiny;
constexpr const char *kLog = "metrics.jsonl", *kCheckpoint = "checkpoint.safetensors";

std::vector<json> lines_of(const std::string& text) {
  std::vector<json> lines;
  std::stringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(json::parse(line));
  return lines;
}

class TrainTextCommand : public ProgramTest {
 protected:
  std::string in_run(const std::string& file) const { return path("run/") + file; }
  std::string out() const { return " --quiet --out " + path("run"); }
  std::string resume(const std::string& command = "train lm") const {
    return command + " --quiet --resume " + path("run");
  }

  // What does not tell how long it took, or with how many threads.
  static Files lasting(Files files) {
    for (const char* name : {"config.json", "results.json", "report.html"}) files.erase(name);
    return files;
  }
  Files finish(const std::string& arguments) const {
    const Outcome outcome = run(arguments + out());
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return lasting(files_of(path("run")));
  }
  static void expect_same(const Files& found, const Files& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (const auto& [name, bytes] : expected) {
      ASSERT_TRUE(found.contains(name)) << name;
      EXPECT_TRUE(found.at(name) == bytes) << name << " differs";
    }
  }
  void kill_after_a_checkpoint(const std::string& arguments) const {
    const pid_t child = start(arguments + out());
    for (int i = 0; i < 4000 && !fs::exists(in_run(kCheckpoint)); ++i)
      std::this_thread::sleep_for(milliseconds(2));
    ::kill(child, SIGKILL);
    EXPECT_EQ(wait(child).code, -1) << "it was done before it was killed";
    ASSERT_TRUE(fs::exists(in_run(kCheckpoint)));
  }
  // A table of labelled texts of two kinds.
  std::string reviews() const {
    std::string table = "sentence\tlabel\n";
    for (int i = 0; i < 40; ++i)
      table += "film " + std::to_string(i) + (i % 2 == 0 ? " is good\tgood\n" : " is bad\tbad\n");
    write(path("reviews.tsv"), table);
    return path("reviews.tsv");
  }
};

TEST_F(TrainTextCommand, ALanguageModelIsADirectory) {
  const Outcome outcome = run(kLanguage + "--norm layernorm,center --seeds 2 --save-every 20 --json" + out());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Files files = files_of(path("run"));
  std::set<std::string> folders;
  for (const auto& [name, bytes] : files) folders.insert(name.substr(0, name.rfind('/')));
  for (const char* norm : {"layernorm", "center"}) {
    for (const char* model : {"-seed11", "-seed123", "-seed11-step20", "-seed123-step20"}) {
      const std::string folder = std::string("models/") + norm + model;
      EXPECT_TRUE(folders.contains(folder)) << folder;
      EXPECT_TRUE(files.contains(folder + "/config.json")) << folder;
      EXPECT_TRUE(files.contains(folder + "/tokenizer.json")) << folder;
    }
  }
  const json result = json::parse(outcome.out);
  EXPECT_EQ(json::parse(files.at("results.json")), result);
  EXPECT_EQ(result["command"], "train lm");
  EXPECT_EQ(result["data"]["generated"], true);
  EXPECT_EQ(result["data"]["source"], "grammar");
  EXPECT_EQ(result["settings"]["vocabulary"], 257);
  EXPECT_GT(result["tokens_per_second"], 0.0);
  ASSERT_EQ(result["runs"].size(), 4u);
  for (const json& each : result["runs"]) {
    EXPECT_EQ(each["step"], 30);
    EXPECT_EQ(each["tokens"], 30 * 2 * 16);
    EXPECT_LT(each["held_out_loss"], 5.5);  // log 257 is 5.55
    EXPECT_GT(each["perplexity"], 1.0);
    EXPECT_TRUE(fs::exists(in_run(each["model"].get<std::string>() + "/config.json")));
  }
  ASSERT_EQ(result["norms"].size(), 2u);
  for (const json& norm : result["norms"]) {
    for (const char* name : {"train_loss", "held_out_loss", "perplexity"}) {
      EXPECT_LE(norm[name]["low"], norm[name]["mean"]) << name;
      EXPECT_LE(norm[name]["mean"], norm[name]["high"]) << name;
    }
  }
  const auto lines = lines_of(files.at(kLog));
  ASSERT_EQ(lines.size(), 4u * 4);  // steps 0, 10, 20, 30
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i]["step"], 10 * (i / 4));
    EXPECT_EQ(lines[i]["train_loss"].is_null(), i < 4);
    EXPECT_TRUE(lines[i]["held_out_loss"].is_number());
  }
  for (const char* word : {"Held-out loss", "Training loss", "built-in grammar"})
    EXPECT_NE(files.at("report.html").find(word), std::string::npos) << word;
}

TEST_F(TrainTextCommand, AnotherTextIsMeasuredOn) {
  std::string words;
  for (int i = 0; i < 20; ++i) words += "Eight words of a text that was not trained on. ";
  write(path("test.txt"), words);
  const std::string command = kModel + "--steps 10 --test " + path("test.txt");
  const json tested = result_of(command + out());
  // As many bytes, and where the text ends.
  EXPECT_EQ(tested["data"]["held_out_tokens"], words.size() + 1);
  EXPECT_NE(tested["data"]["description"].get<std::string>().find("tested on"), std::string::npos);
  const json held_out = result_of(kModel + "--steps 10 --held-out 0.2");
  EXPECT_NE(tested["runs"][0]["held_out_loss"], held_out["runs"][0]["held_out_loss"]);
  // The text is that of the run, and must stay as it was.
  write(path("test.txt"), words + "And more.");
  fs::remove(in_run("results.json"));
  expect_refused(resume(), {"not what the run was begun with"});
  expect_refused(command + " --held-out 0.2", {"--test", "--held-out"});
  expect_refused(kModel + "--steps 10 --test " + path("none.txt"), {"none.txt"});
}

TEST_F(TrainTextCommand, TheScreenSaysThatAGrammarWroteTheText) {
  const Outcome outcome = run(kLanguage);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* word : {"layernorm", "held-out loss", "perplexity", "tokens seen",
                           "not results on real text", "tokens/s", "257 tokens"})
    EXPECT_NE(outcome.out.find(word), std::string::npos) << word << " is missing in:\n" << outcome.out;
}

TEST_F(TrainTextCommand, ATrainedModelCanBeScanned) {
  finish(kLanguage + "--norm center --seed 5");
  write(path("text.txt"), "The old captain saw the small house near the river.");
  const json scan = result_of("scan " + in_run("models/center-seed5") + " --text " + path("text.txt"));
  EXPECT_EQ(scan["command"], "scan");
}

TEST_F(TrainTextCommand, TheNumberOfThreadsLeavesNoTrace) {
  const Files one = finish(kLanguage + "--norm layernorm,center --threads 1");
  for (const char* threads : {"2", "8"}) {
    fs::remove_all(path("run"));
    expect_same(finish(kLanguage + "--norm layernorm,center --threads " + threads), one);
  }
  fs::remove_all(path("run"));
  const Files text = finish(kReviews + "--corpus grammar --threads 1");
  fs::remove_all(path("run"));
  expect_same(finish(kReviews + "--corpus grammar --threads 8"), text);
}

TEST_F(TrainTextCommand, AKilledTrainingGoesOnToTheSameBytes) {
  const std::string call =
      kModel + "--steps 400 --checkpoint-every 100 --save-every 200 --norm layernorm,center ";
  const Files whole = finish(call);
  fs::remove_all(path("run"));
  kill_after_a_checkpoint(call);
  const Outcome outcome = run(resume());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_same(lasting(files_of(path("run"))), whole);
}

TEST_F(TrainTextCommand, AKilledClassifierGoesOnToTheSameBytes) {
  const std::string call = "train sentiment --tokenizer words --length 12 --feed-forward 16 --steps 400 " +
                           kTiny + "--checkpoint-every 10 --data " + reviews() + " ";
  const Files whole = finish(call);
  fs::remove_all(path("run"));
  kill_after_a_checkpoint(call);
  const Outcome outcome = run(resume("train sentiment"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_same(lasting(files_of(path("run"))), whole);
}

TEST_F(TrainTextCommand, AFinishedRunIsLeftAsItIs) {
  ASSERT_EQ(run(kLanguage + out()).code, 0);
  const Files whole = files_of(path("run"));
  ASSERT_EQ(run(resume()).code, 0);
  EXPECT_TRUE(files_of(path("run")) == whole);
}

TEST_F(TrainTextCommand, ANumberThatIsNotFiniteStopsItsRunOnly) {
  const Outcome outcome = run(
      "train lm --corpus grammar --tokenizer bytes --context 32 --batch 4 --evaluate-every 10 --steps 100 "
      "--checkpoint-every 10 --learning-rate 0.3 --warmup 50 --norm layernorm,none --json" +
      out());
  EXPECT_EQ(outcome.code, 1);
  const json result = json::parse(outcome.out);
  EXPECT_EQ(result["runs"][0]["step"], 100);
  EXPECT_FALSE(result["runs"][0].contains("trouble"));
  const json& trouble = result["runs"][1]["trouble"];
  EXPECT_EQ(trouble["kind"], "not finite");
  for (const std::string& fact :
       std::vector<std::string>{"none with seed 11", "step " + trouble["step"].dump(), "finite",
                                "'" + trouble["tensor"].get<std::string>() + "'", "last good checkpoint",
                                "checkpoint.safetensors"})
    EXPECT_NE(outcome.err.find(fact), std::string::npos) << fact << " is missing in: " << outcome.err;
  EXPECT_TRUE(fs::exists(in_run("models/layernorm-seed11")));
  EXPECT_FALSE(fs::exists(in_run("models/none-seed11")));
  // What was good of the run that stopped is there to look at, in the checkpoint and as a model.
  const auto good = result["runs"][1]["model"].get<std::string>();
  EXPECT_EQ(good.substr(0, 23), "models/none-seed11-step");
  write(path("ids.txt"), "1 2 3 4 5 6 7 8 9");
  EXPECT_EQ(run("scan " + in_run(good) + " --ids " + path("ids.txt") + " --quiet").code, 0);
  // The other run's checkpoints go on: nothing is left to do, and the same is told.
  const Files before = lasting(files_of(path("run")));
  const Outcome again = run(resume() + " --json");
  EXPECT_EQ(again.code, 1);
  EXPECT_TRUE(json::parse(again.out)["tokens_per_second"].is_null());
  EXPECT_EQ(json::parse(again.out)["runs"], result["runs"]);
  EXPECT_EQ(again.err.substr(again.err.find("none with seed")),
            outcome.err.substr(outcome.err.find("none with seed")));
  expect_same(lasting(files_of(path("run"))), before);
}

TEST_F(TrainTextCommand, ASpikeStopsTheTrainingWithTheLastGoodCheckpoint) {
  const Outcome outcome = run(
      "train lm --corpus grammar --tokenizer bytes --context 32 --batch 4 --evaluate-every 10 --steps 100 "
      "--checkpoint-every 10 --learning-rate 5 --warmup 100 --json" +
      out());
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(json::parse(outcome.out)["runs"][0]["trouble"]["kind"], "spike");
  for (const char* fact : {"the loss rose", "largest gradient", "last good checkpoint", "of step 30"})
    EXPECT_NE(outcome.err.find(fact), std::string::npos) << fact << " is missing in: " << outcome.err;
}

TEST_F(TrainTextCommand, ALearningRateBeyondReasonIsToldAtOnce) {
  const Outcome outcome =
      run("train lm --corpus grammar --tokenizer bytes --tokens 2000 --context 16 --batch 2 --steps 30 "
          "--learning-rate 1e30" +
          out());
  EXPECT_EQ(outcome.code, 1);
  for (const char* fact : {"layernorm with seed 11", "step 1", "no longer finite", "no good checkpoint"})
    EXPECT_NE(outcome.err.find(fact), std::string::npos) << fact << " is missing in: " << outcome.err;
  EXPECT_FALSE(fs::exists(in_run("models")));
}

TEST_F(TrainTextCommand, AFullDiskLeavesTheLastCheckpoint) {
  // ulimit -f counts blocks of 512 bytes: room for the log, not for a checkpoint.
  const int room = 12;
  expect_sentence(run(kModel + "--steps 100 --checkpoint-every 10" + out(), room), 1,
                  {kCheckpoint, "File too large"});
  EXPECT_FALSE(fs::exists(in_run(kCheckpoint)));
  fs::remove_all(path("run"));
  kill_after_a_checkpoint(kModel + "--steps 100000 --checkpoint-every 10");
  const std::string good = read(in_run(kCheckpoint));
  expect_sentence(run(resume() + " --checkpoint-every 10", room), 1, {kCheckpoint, "File too large"});
  EXPECT_TRUE(read(in_run(kCheckpoint)) == good);
  for (const auto& [name, bytes] : files_of(path("run"))) EXPECT_EQ(name.find(".tmp"), std::string::npos);
}

TEST_F(TrainTextCommand, ALabelledTableTrainsAClassifier) {
  const Outcome outcome = run(kReviews + "--data " + reviews() + " --test-share 0.25 --json" + out());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json result = json::parse(outcome.out);
  EXPECT_EQ(result["data"]["classes"], (json{"bad", "good"}));
  EXPECT_EQ(result["data"]["test_texts"], 10);
  EXPECT_EQ(result["data"]["generated"], false);
  EXPECT_EQ(result["runs"][0]["held_out_targets"], 10);
  const json& accuracy = result["norms"][0]["accuracy"];
  EXPECT_LT(accuracy["low"], accuracy["high"]);
  const json config = read_json(in_run("models/none-seed11/config.json"));
  EXPECT_EQ(config["id2label"]["0"], "bad");
  EXPECT_EQ(config["id2label"]["1"], "good");
}

TEST_F(TrainTextCommand, TextsThatAreBothTrainedOnAndTestedAreCounted) {
  const std::string table = reviews();
  const Outcome both = run(kReviews + "--data " + table + " --test " + table);
  ASSERT_EQ(both.code, 0) << both.err;
  EXPECT_NE(both.out.find("40 of those to train on are tested too"), std::string::npos) << both.out;
  const Outcome apart = run(kReviews + "--data " + table);
  EXPECT_EQ(apart.out.find("tested too"), std::string::npos) << apart.out;
}

TEST_F(TrainTextCommand, EveryNormOfAClassifierCanBeExchanged) {
  const json result = result_of(kReviews + "--corpus grammar --norm none,layernorm,rmsnorm");
  ASSERT_EQ(result["norms"].size(), 3u);
  for (const json& norm : result["norms"]) EXPECT_EQ(norm["runs"], 1) << norm;
  // Gains and biases after the embeddings and twice in each of two layers, of width 8.
  EXPECT_EQ(result["runs"][1]["parameters"].get<int>() - result["runs"][0]["parameters"].get<int>(), 5 * 16);
}

TEST_F(TrainTextCommand, TextsThatCannotBeTrainedOnAreRefused) {
  const std::string call =
      "train lm --tokenizer bytes --context 64 --steps 1 --out " + path("run") + " --text ";
  write(path("empty.txt"), "");
  write(path("one.txt"), "x");
  write(path("short.txt"), "A text of less than the window.");
  write(path("latin.txt"), "caf\xe9 " + std::string(500, 'x'));
  expect_refused(call + path("empty.txt"), {"empty.txt", "empty"});
  expect_refused(call + path("one.txt"), {"too few"});
  expect_refused(call + path("short.txt"), {"--context", "window of 64"});
  expect_refused(call + path("latin.txt"), {"latin.txt", "UTF-8"});
  expect_refused(call + path("missing.txt"), {"missing.txt"});
  expect_refused(call + path("one.txt") + " --corpus grammar", {"--text", "--corpus"});
  expect_refused(kLanguage + "--corpus shakespeare", {"--corpus"});
}

TEST_F(TrainTextCommand, TablesThatCannotBeTrainedOnAreRefused) {
  const std::string data = " --data " + reviews(), call = kReviews + "--out " + path("run") + " ";
  write(path("unknown.tsv"), "sentence\tlabel\nfilm is odd\todd\n");
  write(path("single.tsv"), "sentence\tlabel\na\tx\nb\tx\n");
  write(path("latin.tsv"), "sentence\tlabel\ncaf\xe9\tx\nb\ty\n");
  expect_refused(call + data + " --test " + path("unknown.tsv"), {"'odd'", "bad", "good"});
  expect_refused(call + data + " --text-column body", {"body", "sentence"});
  expect_refused(call + data + " --label-column stars", {"stars", "label"});
  expect_refused(call + "--data " + path("single.tsv"), {"one class"});
  expect_refused(call + "--data " + path("latin.tsv"), {"latin.tsv", "UTF-8"});
  expect_refused(call + "--test " + path("unknown.tsv"), {"--test", "--data"});
  expect_refused(call + "--corpus books", {"--corpus", "books"});
}

TEST_F(TrainTextCommand, WrongCallsAreRefused) {
  const auto refused = [&](const std::string& options, const std::vector<std::string>& facts) {
    expect_refused(kModel + "--out " + path("run") + " " + options, facts);
  };
  refused("--heads 3", {"head"});
  refused("--norm layrnorm", {"layrnorm", "layernorm"});
  refused("--steps 10 --warmup 20", {"--warmup 20", "10 steps"});
  refused("--dropout 1.5", {"--dropout"});
  refused("--held-out 1", {"--held-out"});
  refused("--steps ''", {"--steps", "empty"});
  refused("--seeds 2 --seed 3", {"--seed", "--seeds"});
  expect_refused(kLanguage + "--save-every 10", {"--save-every", "--out"});
  expect_refused("train lm --corpus grammar --tokenizer " + path("nowhere"), {"nowhere"});
}

TEST_F(TrainTextCommand, NothingIsWrittenOverATraining) {
  finish(kLanguage);
  write(path("ids.txt"), "1 2 3 4 5 6 7 8 9");
  const Files before = files_of(path("run"));
  for (const std::string& call :
       {"scan " + in_run("models/layernorm-seed11") + " --ids " + path("ids.txt"),
        std::string("heatmap --n 4 --d 3 --draws 2"), std::string("mask full --n 4"),
        std::string("equilibria --starts 5 --steps 5"), std::string("collapse --tokens 4 --dim 4 --layers 2"),
        std::string("paper --only fig1cd")})
    expect_sentence(run(call + out()), 2, {path("run"), "'normscope train lm'", "new directory"});
  EXPECT_TRUE(files_of(path("run")) == before);
}

TEST_F(TrainTextCommand, OnlyTheSameTrainingOnTheSameTextIsGoneOnWith) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "Sentence number " + std::to_string(i) + " is here.\n";
  write(path("text.txt"), text);
  finish(kLanguage + "--norm center");
  write(path("tokenizer/tokenizer.json"), read(in_run("models/center-seed11/tokenizer.json")));
  fs::remove_all(path("run"));
  finish("train lm --context 16 --steps 20 --tokenizer " + path("tokenizer") + " --text " + path("text.txt") +
         " " + kTiny);
  expect_refused(resume("train sentiment"), {"train lm", "train sentiment"});
  expect_refused(resume("train majority"), {"train lm", "train majority"});
  expect_refused(resume() + " --steps 40", {"--steps 40", "fallen to 0 at step 20", "new directory"});
  write(path("text.txt"), text + "One more.");
  expect_refused(resume(), {"not what the run was begun with", "text.txt"});
  write(path("text.txt"), text);
  json tokenizer = read_json(path("tokenizer/tokenizer.json"));
  tokenizer["model"]["vocab"]["extra"] = 257;
  write(path("tokenizer/tokenizer.json"), tokenizer.dump());
  expect_refused(resume(), {"258 tokens", "257"});
}

TEST_F(TrainTextCommand, AConfigThatWasChangedIsRefused) {
  finish(kLanguage);
  const json config = read_json(in_run("config.json"));
  const auto refused = [&](const std::vector<std::string>& facts, const auto& change) {
    json changed = config;
    change(changed["options"]);
    write(in_run("config.json"), changed.dump());
    expect_refused(resume(), facts);
  };
  refused({"'steps'"}, [](json& j) { j["settings"]["steps"] = -5; });
  refused({"'dim'"}, [](json& j) { j["settings"].erase("dim"); });
  refused({"model", "gpt9"}, [](json& j) { j["settings"]["model"] = "gpt9"; });
  refused({"schedule", "bumpy"}, [](json& j) { j["settings"]["schedule"] = "bumpy"; });
  refused({"no norm"}, [](json& j) { j["runs"] = json::array(); });
  refused({"'files'"}, [](json& j) { j["data"]["files"] = 3; });
  refused({"classes"}, [](json& j) { j["settings"]["classes"] = 2; });
  refused({"not of this training"}, [](json& j) { j["runs"][0]["norm"] = "rmsnorm"; });
  refused({"not as it was written"}, [](json& j) { j["settings"]["learning_rate"] = 1e-3; });
}

}  // namespace
}  // namespace normscope

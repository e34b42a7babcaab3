// normscope scan: what it prints, what it leaves behind, and what it says to wrong calls.
#include "study/scan.h"

#include "normscope/tensor_file.h"
#include "result/json_writer.h"
#include "support/program.h"

namespace normscope {
namespace {

class ScanCommand : public ProgramTest {
 protected:
  static std::string model(const std::string& name) {
    return std::string(NORMSCOPE_SOURCE) + "/tests/golden/models/" + name;
  }
  std::string file(const std::string& name, const std::string& bytes) const {
    write(path(name), bytes);
    return path(name);
  }
  std::string ids() const { return file("ids.txt", "3 1 4 1 5 9\n2, 6 5 3 5\n"); }
};

TEST_F(ScanCommand, AWrongCallGetsOneSentenceAndExitCodeTwo) {
  const std::string bert = "scan " + model("bert"), tokens = " --ids " + ids();
  for (const std::string& arguments : {std::string("scan"),
                                       std::string("scan nosuchmodel --text x"),
                                       bert,
                                       bert + " --text missing.txt",
                                       bert + tokens + " --text " + ids(),
                                       bert + tokens + " --layers 3",
                                       bert + tokens + " --layers x",
                                       bert + tokens + " --heads 99",
                                       bert + tokens + " --space everywhere",
                                       bert + tokens + " --mask window:1",
                                       bert + tokens + " --margin some",
                                       bert + tokens + " --window 0",
                                       bert + tokens + " --stride 0",
                                       bert + tokens + " --samples 0",
                                       bert + tokens + " --trace attn.key",
                                       bert + tokens + " --out " + path("run") + " --trace nowhere",
                                       bert + tokens + " --highlight all",
                                       bert + " --ids " + file("empty.txt", " \n"),
                                       bert + " --ids " + file("word.txt", "1 two 3"),
                                       bert + " --ids " + file("large.txt", "1 50"),
                                       "scan " + ids() + tokens}) {
    expect_refused(arguments, {});
  }
  // The model has no tokenizer, and says so.
  expect_refused(bert + " --text " + ids(), {"--ids"});
  EXPECT_FALSE(std::filesystem::exists(path("run") + "/results.json"));
}

TEST_F(ScanCommand, EveryFamilyIsScannedAndTheFilesAreWhole) {
  for (const std::string name : {"bert", "roberta", "distilbert", "albert", "gpt2", "llama", "mistral",
                                 "qwen2", "t5", "t5-gated", "bert-sharded"}) {
    SCOPED_TRACE(name);
    const std::string out = path("run-" + name);
    const Outcome outcome = run("scan " + model(name) + " --ids " + ids() + " --out " + out);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("layer"), std::string::npos);
    const auto results = read_json(out + "/results.json");
    EXPECT_EQ(results["command"], "scan");
    const auto& layers = results["windows"][0]["layers"];
    ASSERT_EQ(layers.size(), 3u);
    for (const auto& layer : layers) {
      for (const auto& head : layer["heads"]) {
        EXPECT_EQ(head["keys"]["verdicts"].get<std::string>().size(), 11u);
        const auto& counts = head["keys"];
        EXPECT_EQ(
            counts["selectable"].get<int>() + counts["tied"].get<int>() + counts["unselectable"].get<int>(),
            11);
        for (const char* space : {"keys", "reachable"}) {
          if (!head.contains(space)) continue;  // ALBERT's first layer
          const auto& set = head[space];
          const auto verdicts = set["verdicts"].get<std::string>();
          ASSERT_EQ(set["places"].size(), 11u);
          for (std::size_t i = 0; i < 11; ++i) {
            // Whoever won is not unselectable, and a verdict from one place names it.
            EXPECT_TRUE(verdicts[i] != 'u' || head["wins"][i] == 0) << space << ", token " << i;
            EXPECT_EQ(set["places"][i].is_null(), verdicts[i] == 'u' || verdicts[i] == '?');
            if (verdicts[i] != 'u' && set.contains("robust")) {
              EXPECT_EQ(set["robust"].get<std::string>()[i], '-');
            }
          }
        }
        if (head.contains("reachable")) {
          EXPECT_EQ(head["reachable"]["weight_places"][0], 10);
          EXPECT_EQ(head["reachable"]["weight_places"].size(), name == "mistral" ? 3u : 1u);
        }
        EXPECT_LE(counts["robust_unselectable"], counts["unselectable"]);
      }
    }
    const std::string page = read(out + "/report.html");
    EXPECT_NE(page.find("<svg"), std::string::npos);
    EXPECT_EQ(read_json(out + "/config.json")["command"], "scan");
  }
}

TEST_F(ScanCommand, WindowsAreCutAndSaidSo) {
  const Outcome outcome =
      run("scan " + model("gpt2") + " --ids " + ids() + " --window 4 --stride 2 --samples 2 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto results = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(results["windows"].size(), 2u);
  EXPECT_EQ(results["windows"][1]["ids"], (std::vector<int>{4, 1, 5, 9}));
  EXPECT_EQ(results["settings"]["mask"], "causal");
  EXPECT_EQ(results["windows"][0]["losses"].size(), 3u);
  EXPECT_NE(outcome.err.find("--samples"), std::string::npos);
}

TEST_F(ScanCommand, SaysWhatPlacesSeeAndFromWhichOnesItSpeaks) {
  const auto said = [&](const std::string& name, const std::string& more = "") {
    const Outcome outcome = run("scan " + model(name) + " --ids " + ids() + more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  };
  const auto mask = [&](const std::string& name, const std::string& more = "") {
    return nlohmann::json::parse(said(name, more + " --json"))["settings"]["mask"].get<std::string>();
  };
  EXPECT_NE(said("bert").find("A query sees all tokens of its window; unselectable"), std::string::npos);
  EXPECT_NE(said("gpt2").find("A query sees the tokens up to itself; unselectable"), std::string::npos);
  EXPECT_NE(said("gpt2", " --mask full").find("unlike those of the model"), std::string::npos);
  EXPECT_NE(said("gpt2").find("can form at the last place gives"), std::string::npos);
  EXPECT_EQ(said("gpt2", " --no-weights").find("Max weight"), std::string::npos);
  const std::string sliding = said("mistral");
  EXPECT_NE(sliding.find("A query sees itself and the 3 tokens before it;"), std::string::npos);
  EXPECT_NE(sliding.find("at the last place of each stretch of 4 tokens"), std::string::npos);
  EXPECT_EQ(mask("mistral"), "onesided:3");
  EXPECT_EQ(mask("mistral", " --window 4"), "causal");
  EXPECT_EQ(mask("mistral", " --mask full"), "full");
}

TEST_F(ScanCommand, TracesAreTheTokensAsTheyPass) {
  const std::string out = path("run");
  const Outcome outcome = run("scan " + model("llama") + " --ids " + ids() +
                              " --layers 1 --trace attn.norm.in,out,attn.key --out " + out);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(out + "/trace.layer.0.safetensors"));
  const TensorFile trace = TensorFile::open(out + "/trace.layer.1.safetensors");
  ASSERT_EQ(trace.tensors().size(), 3u);
  EXPECT_EQ(trace.read("window.0.layer.1.out").shape, (std::vector<std::size_t>{11, 16}));
}

TEST_F(ScanCommand, SaysWhatTheStudySays) {
  ScanOptions options;
  options.text.model = model("mistral");
  options.text.ids = ids();
  options.text.window = 6;
  options.text.samples = 2;
  options.layers = "0:1";
  const Executor executor(2);
  auto study = nlohmann::json::parse(json_of(study_scan(options, {executor}).result)),
       program = result_of("scan " + model("mistral") + " --ids " + ids() +
                           " --window 6 --samples 2 --layers 0:1 --threads 2");
  for (auto* results : {&study, &program}) results->erase("seconds");
  EXPECT_EQ(study, program);
}

TEST_F(ScanCommand, TheSameBytesForAnyNumberOfThreads) {
  const std::string call = "scan " + model("qwen2") + " --ids " + ids() + " --json --threads ";
  auto one = nlohmann::json::parse(run(call + "1").out), four = nlohmann::json::parse(run(call + "4").out);
  for (auto* results : {&one, &four}) {
    results->erase("seconds");
    results->erase("threads");
  }
  EXPECT_EQ(one, four);
}

}  // namespace
}  // namespace normscope

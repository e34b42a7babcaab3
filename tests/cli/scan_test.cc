// normscope scan: what it prints, what it leaves behind, and what it says to wrong calls.
#include "study/scan.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>

#include "normscope/tensor_file.h"
#include "result/json_writer.h"
#include "support/program.h"

namespace normscope {
namespace {

class ScanCommand : public ProgramTest {
 protected:
  static std::string model(const std::string& name) { return source_path() + "/tests/golden/models/" + name; }
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
  EXPECT_NE(said("gpt2").find("Weights are of queries at the last place."), std::string::npos);
  EXPECT_EQ(said("gpt2", " --no-weights").find("Weights are of"), std::string::npos);
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

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Between two or more spaces.
std::vector<std::string> columns_of(const std::string& line) {
  std::vector<std::string> columns;
  for (std::size_t begin = line.find_first_not_of(' '); begin < line.size();) {
    const std::size_t end = std::min(line.find("  ", begin), line.size());
    columns.push_back(line.substr(begin, end - begin));
    begin = std::min(line.find_first_not_of(' ', end), line.size());
  }
  return columns;
}

TEST_F(ScanCommand, TheTableExplainsItself) {
  const Outcome outcome =
      run("scan " + model("gpt2") + " --ids " + ids() + " --window 4 --stride 2 --samples 2");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<std::string> lines = lines_of(outcome.out);
  EXPECT_NE(lines[0].find("(gpt2) on "), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find(": 8 tokens in 2 windows of up to 4; layer by layer, shares in per cent"),
            std::string::npos)
      << lines[0];
  const std::vector<std::string> header = columns_of(lines[2]);
  EXPECT_EQ(header.front(), "layer");
  EXPECT_EQ(std::set<std::string>(header.begin(), header.end()).size(), header.size()) << lines[2];
  EXPECT_NE(std::find(header.begin(), header.end(), "reach worst"), header.end()) << lines[2];
  // A line for each layer, a gap, and one line that says what every column is.
  ASSERT_GT(lines.size(), 7u);
  EXPECT_EQ(lines[6], "");
  for (const char* word :
       {"before, after:", "head:", "worst:", "reach:", "along 1:", "spread:", "entropy:", "never won:"})
    EXPECT_NE(lines[7].find(word), std::string::npos) << word << " is missing in " << lines[7];
  EXPECT_EQ(outcome.out.find("e+02"), std::string::npos) << outcome.out;
}

TEST_F(ScanCommand, FitsANarrowScreen) {
  const std::string call = "scan " + model("gpt2") + " --ids " + ids();
  ::setenv("COLUMNS", "60", 1);
  const Outcome narrow = run(call);
  ::unsetenv("COLUMNS");
  const Outcome wide = run(call);
  ASSERT_EQ(narrow.code, 0) << narrow.err;
  std::set<std::string> in_narrow;
  for (const std::string& line : lines_of(narrow.out)) {
    const auto width = std::count_if(line.begin(), line.end(),
                                     [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
    if (line.find('/') == std::string::npos) {  // a path cannot be broken
      EXPECT_LE(width, 60) << line;
    }
    for (const std::string& column : columns_of(line)) in_narrow.insert(column);
  }
  for (const std::string& column : columns_of(lines_of(wide.out)[2]))
    EXPECT_TRUE(in_narrow.contains(column)) << column << " is missing in " << narrow.out;
}

TEST_F(ScanCommand, TiedTokensAreMarkedAsUnselectableOnesAre) {
  // No position is added to Llama's tokens: equal ones are equal keys in the first layer.
  const std::string out = path("run");
  const Outcome outcome =
      run("scan " + model("llama") + " --ids " + ids() + " --space before --layers 0 --out " + out);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("tied in all {{so}}"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("{{#5}} {{#3}} {{#5}}"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("before tied"), std::string::npos) << outcome.out;
  EXPECT_NE(read(out + "/report.html").find("tied in all"), std::string::npos);
  const auto space = read_json(out + "/results.json")["spaces"]["before"];
  EXPECT_EQ(space["tied_in_some"], 4);  // 1, 5, 3, 5: the first of equal ones was alone at its own place
}

TEST_F(ScanCommand, AColumnWithoutAnswersSaysWhy) {
  const Outcome outcome = run("scan " + model("albert") + " --ids " + ids());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("Reachable queries are not asked about in layer 0: nothing bounds"),
            std::string::npos)
      << outcome.out;
}

TEST_F(ScanCommand, KeysReadsItsTracesHeadByHead) {
  const std::string out = path("run");
  // Qwen2's four heads share two of keys.
  ASSERT_EQ(run("scan " + model("qwen2") + " --ids " + ids() +
                " --layers 1 --space head --mask full --trace " + "attn.key,attn.query --out " + out)
                .code,
            0);
  const TensorFile trace = TensorFile::open(out + "/trace.layer.1.safetensors");
  const std::string keys = "window.0.layer.1.attn.key";
  const auto heads = read_json(out + "/results.json")["windows"][0]["layers"][0]["heads"];
  const std::size_t key_heads = heads.back()["key_head"].get<std::size_t>() + 1;
  EXPECT_EQ(trace.metadata().at(keys + ".heads"), std::to_string(key_heads));
  EXPECT_EQ(trace.metadata().at("window.0.layer.1.attn.query.heads"), std::to_string(heads.size()));
  const auto asked =
      result_of("keys " + out + "/trace.layer.1.safetensors --tensor " + keys + " --margin bound");
  ASSERT_EQ(asked["sets"].size(), key_heads);
  EXPECT_EQ(asked["settings"]["heads"], key_heads);
  for (std::size_t h = 0; h < key_heads; ++h) {
    EXPECT_EQ(asked["sets"][h]["head"], h);
    EXPECT_EQ(asked["sets"][h]["n"], 11);
  }
  // As one key, if that is what is asked.
  EXPECT_EQ(result_of("keys " + out + "/trace.layer.1.safetensors --heads 1 --tensor " + keys)["sets"].size(),
            1u);
}

TEST_F(ScanCommand, WrongIdsAreNamedWithTheirPlace) {
  const std::string call = "scan " + model("gpt2") + " --ids " + path("wrong.txt");
  write(path("wrong.txt"), "1 2\n3, four 5\n");
  expect_refused(call, {"--ids", "line 2 of ", "wrong.txt", "number 4", "'four'"});
  write(path("wrong.txt"), "1 2 -3");
  expect_refused(call, {"line 1 of ", "number 3", "'-3'"});
  write(path("wrong.txt"), "7\n\xff\xfe\x1b[2J" + std::string(1000, 'x'));
  const Outcome bytes = run(call);
  EXPECT_EQ(bytes.code, 2);
  EXPECT_NE(bytes.err.find("line 2 of "), std::string::npos) << bytes.err;
  EXPECT_NE(bytes.err.find("\\xff\\xfe\\x1b"), std::string::npos) << bytes.err;
  EXPECT_EQ(bytes.err.find('\x1b'), std::string::npos);
  EXPECT_LT(bytes.err.size(), 600u);
  write_npy(path("wrong.npy"), {"", DType::float64, {3}, {1, 2.5, 3}});
  expect_refused("scan " + model("gpt2") + " --ids " + path("wrong.npy"),
                 {"number 2 of ", "wrong.npy", "2.5"});
  write(path("text.txt"), "words");
  expect_refused("scan " + model("gpt2") + " --ids " + ids() + " --text " + path("text.txt"),
                 {"--text and --ids", "one of them"});
  expect_refused("scan " + model("gpt2") + " --ids " + ids() + " --layers 9", {"9", "--layers"});
}

// A model of bytes, trained for a step, so that it can be scanned with a text.
TEST_F(ScanCommand, CharactersOfSeveralTokensAreShownOnceAndBracketsOfTheTextAreTold) {
  std::string book;
  for (int i = 0; i < 900; ++i) book += "Sentence number " + std::to_string(i) + " of the book. ";
  write(path("book.txt"), book);
  ASSERT_EQ(run("train lm --text " + path("book.txt") +
                " --tokenizer bytes --norm center --steps 1 --context 64 --quiet --out " + path("lm"))
                .code,
            0);
  write(path("text.txt"), "a字[b] é{c}\\ and and and so on, one more word, and another");
  const std::string call = "scan " + path("lm/models/center-seed11") + " --text " + path("text.txt") +
                           " --space head --out " + path("run");
  const Outcome outcome = run(call);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::size_t at = outcome.out.find("By layer and head");
  ASSERT_NE(at, std::string::npos) << outcome.out;
  const std::string legend_and_text = outcome.out.substr(at);
  EXPECT_NE(legend_and_text.find("brackets and backslashes of the text itself with a backslash"),
            std::string::npos)
      << legend_and_text;
  const std::string text = legend_and_text.substr(legend_and_text.find('\n') + 1);
  for (const char* character : {"字", "é"}) {
    EXPECT_NE(text.find(character), std::string::npos) << text;
    EXPECT_EQ(text.find(character), text.rfind(character)) << text;
  }
  for (const char* own : {"\\[", "\\]", "\\{", "\\}", "\\\\"})
    EXPECT_NE(text.find(own), std::string::npos) << own << " in " << text;
  // Without marks and escapes it is the text.
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\')
      plain += text[++i];
    else if (std::string("[]{}").find(text[i]) == std::string::npos)
      plain += text[i];
  }
  EXPECT_EQ(plain.substr(0, plain.find_last_not_of('\n') + 1), read(path("text.txt")));
  const auto window = read_json(path("run/results.json"))["windows"][0];
  std::string joined;
  for (const auto& token : window["tokens"]) joined += token.get<std::string>();
  EXPECT_EQ(joined, read(path("text.txt")));
  EXPECT_EQ(window["tokens"].size(), window["ids"].size());
  EXPECT_NE(read(path("run/report.html")).find("next token of the same character"), std::string::npos);
}

TEST_F(ScanCommand, ARunInItsPlaceLeavesNoTracesBehind) {
  const std::string out = path("run"), call = "scan " + model("gpt2") + " --ids " + ids() + " --out " + out;
  ASSERT_EQ(run(call + " --trace attn.key").code, 0);
  write(out + "/notes.txt", "mine");
  ASSERT_TRUE(std::filesystem::exists(out + "/trace.layer.0.safetensors"));
  ASSERT_EQ(run("mask causal --n 4 --out " + out).code, 0);
  EXPECT_FALSE(std::filesystem::exists(out + "/trace.layer.0.safetensors"));
  EXPECT_EQ(read_json(out + "/config.json")["command"], "mask");
  EXPECT_EQ(read(out + "/notes.txt"), "mine");
  ASSERT_EQ(run(call).code, 0);
  for (const auto& [name, bytes] : files_of(out)) EXPECT_EQ(name.find("mask"), std::string::npos) << name;
  EXPECT_EQ(read(out + "/notes.txt"), "mine");
}

}  // namespace
}  // namespace normscope

// What `normscope paper` writes, and what it does with wrong calls and earlier runs.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "support/program.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class PaperCommand : public ProgramTest {
 protected:
  std::string out() const { return " --quiet --out " + path("run"); }
  std::string resume() const { return "paper --resume " + path("run"); }
};

TEST_F(PaperCommand, EveryClaimGetsAVerdict) {
  const json printed =
      result_of("paper --only fig2,fig3,followups --seeds 2 --steps 30 --out " + path("run"));
  const json results = read_json(path("run/results.json"));
  EXPECT_EQ(results, printed);
  EXPECT_EQ(results["command"], "paper");
  EXPECT_EQ(results["parts"], (json{"fig2", "fig3", "followups"}));
  EXPECT_EQ(results["seeds"], (json{11, 123}));
  EXPECT_EQ(results["steps"], 30);
  std::set<std::string> places;
  for (const json& claim : results["claims"]) {
    // What is open says what is left to run, and for how long.
    const std::string more = claim["more"], full = "--only " + std::string(claim["part"]) + " --full";
    EXPECT_EQ(more.empty(), claim["holds"] != "open") << claim;
    EXPECT_EQ(more.empty(), claim["more_seconds"].is_null()) << claim;
    if (!more.empty()) {
      EXPECT_NE(more.find(full), std::string::npos) << more;
    }
    for (const char* name : {"where", "claim", "published", "measured", "verdict", "why"})
      EXPECT_TRUE(claim[name].is_string()) << name << " in " << claim;
    for (const char* name : {"where", "claim", "published", "measured", "verdict"})
      EXPECT_NE(claim[name], "") << name << " in " << claim;
    places.insert(claim["where"]);
  }
  for (const char* place : {"Fig. 2a", "Fig. 2b", "Fig. 3", "§5, asked"})
    EXPECT_TRUE(places.contains(place)) << place;
  EXPECT_TRUE(fs::exists(path("run/majority/metrics.jsonl")));
  EXPECT_TRUE(fs::exists(path("run/majority/geometry.safetensors")));

  // The report needs nothing but itself.
  const std::string page = read(path("run/report.html"));
  for (const char* scheme : {"http://", "https://"}) {
    for (std::size_t at = 0; (at = page.find(scheme, at)) != std::string::npos; ++at)
      EXPECT_EQ(page.compare(at, 18, "http://www.w3.org/"), 0) << page.substr(at, 60);
  }
  for (const char* word : {"<svg", "Fig. 2a", "layernorm"})
    EXPECT_NE(page.find(word), std::string::npos) << word;

  // Resumed when finished, with the results lost, and with everything lost but the log.
  const Files whole = files_of(path("run"));
  ASSERT_EQ(run(resume() + " --quiet").code, 0);
  EXPECT_TRUE(files_of(path("run")) == whole);
  fs::remove(path("run/results.json"));
  ASSERT_EQ(run(resume() + " --quiet").code, 0);
  EXPECT_TRUE(files_of(path("run")) == whole);
  for (const char* part : {"fig2", "fig3", "followups"})
    fs::remove(path(std::string("run/part-") + part + ".json"));
  fs::remove(path("run/majority/checkpoint.safetensors"));
  ASSERT_EQ(run(resume() + " --quiet").code, 0);
  EXPECT_TRUE(files_of(path("run")) == whole);

  // Neither begun anew nor changed.
  expect_refused("paper --only fig3" + out(), {path("run"), "--resume", "--out"});
  // A part whose picture could do more than be seen is not taken over.
  json part = read_json(path("run/part-fig2.json"));
  part["figures"][0]["svg"] = "<svg><script>alert(1)</script></svg>";
  write(path("run/part-fig2.json"), part.dump());
  ASSERT_EQ(run(resume() + " --quiet").code, 0);
  EXPECT_TRUE(files_of(path("run")) == whole);
  for (const char* option : {"--seeds 2", "--steps 30", "--full", "--seed 3", "--out x"}) {
    const std::string name = std::string(option).substr(0, std::string(option).find(' '));
    expect_refused(resume() + " " + option, {"--resume", name});
  }
  json config = read_json(path("run/config.json"));
  const json version = config["version"];
  config["version"] = "0.0.1";
  write(path("run/config.json"), config.dump());
  expect_refused(resume(), {"0.0.1", "version"});
  config.erase("version");
  write(path("run/config.json"), config.dump());
  expect_refused(resume(), {"version"});
  // Parts that nothing is said of.
  config["version"] = version;
  config["options"]["parts"] = {"fig4"};
  write(path("run/config.json"), config.dump());
  expect_refused(resume(), {"cannot be resumed", "config.json", "trained"});
}

TEST_F(PaperCommand, PartsThatAreNamedRunAndGoOn) {
  const json named =
      result_of("paper --only page,fig1a-none,wu1 --seeds 2 --steps 20 --quiet --out " + path("run"));
  EXPECT_EQ(named["parts"], (json{"wu1", "fig1a-none", "page"}));
  std::set<std::string> papers;
  for (const json& claim : named["claims"]) papers.insert(claim["paper"]);
  EXPECT_EQ(papers, (std::set<std::string>{"brody2023", "wu2024"}));
  EXPECT_TRUE(fs::exists(path("run/majority-3d-none/metrics.jsonl")));
  const Files whole = files_of(path("run"));
  fs::remove(path("run/results.json"));
  fs::remove(path("run/part-fig1a-none.json"));
  ASSERT_EQ(run(resume() + " --quiet").code, 0);
  EXPECT_TRUE(files_of(path("run")) == whole);
}

TEST_F(PaperCommand, AddedPartsGiveTheBytesOfAllAtOnce) {
  const std::string settings = " --seeds 1 --steps 20 --seed 5 --quiet";
  ASSERT_EQ(
      run("paper --only fig2,fig3,followups,wu1,wu9 --models none" + settings + " --out " + path("whole"))
          .code,
      0);
  // followups needs more norms than fig3, so that the training is another; --models is of wu9 alone.
  ASSERT_EQ(run("paper --only fig3,wu1" + settings + " --out " + path("run")).code, 0);
  const json first = read_json(path("run/results.json"));
  for (const char* option : {"--seed 6", "--seeds 2", "--steps 30", "--samples 3", "--full"}) {
    const std::string name = std::string(option).substr(0, std::string(option).find(' '));
    expect_refused(resume() + " --only fig2 " + option, {name, "settings of the run", "--out"});
  }
  expect_refused(resume() + " --only fig5", {"fig5"});
  expect_refused(resume() + " --only fig2 --corpus grammar", {"--corpus", "fig4"});
  expect_refused(resume() + " --only fig2 --out x", {"--out"});
  EXPECT_EQ(read_json(path("run/results.json")), first);  // by none of these
  // Parts that it has already, with the settings it has: nothing is added.
  EXPECT_EQ(result_of(resume() + " --only fig3 --steps 20 --seed 5"), first);
  ASSERT_EQ(run(resume() + " --only wu9,fig2 --models none --quiet").code, 0);
  expect_refused(resume() + " --only wu4 --models minilm", {"--models", "settings of the run"});
  ASSERT_EQ(run(resume() + " --only followups --quiet").code, 0);
  EXPECT_TRUE(files_of(path("run")) == files_of(path("whole")));
  // A run that does not say what it was asked for.
  json config = read_json(path("run/config.json"));
  config["options"].erase("asked");
  write(path("run/config.json"), config.dump());
  expect_refused(resume() + " --only fig1ab", {"--only", "config.json", "--out"});
}

TEST_F(PaperCommand, ATrainingWhoseKeysNobodyLookedAtIsRunAgainForThePartThatDoes) {
  ::setenv("NORMSCOPE_DATA", path("nothing-fetched").c_str(), 1);
  write(path("book.txt"), [] {
    std::string book;
    for (int i = 0; i < 900; ++i)
      book += "Sentence number " + std::to_string(i) + " of the book is good enough. ";
    return book;
  }());
  const std::string settings = " --text-steps 2 --seeds 1 --quiet --corpus " + path("book.txt") + " --out ";
  ASSERT_EQ(run("paper --only fig4,table1" + settings + path("whole")).code, 0);
  ASSERT_EQ(run("paper --only fig4" + settings + path("run")).code, 0);
  expect_refused(resume() + " --only table1 --text-steps 3", {"--text-steps", "settings of the run"});
  expect_refused(resume() + " --only table1 --corpus grammar", {"--corpus", "settings of the run"});
  ASSERT_EQ(run(resume() + " --only table1 --quiet").code, 0);
  EXPECT_TRUE(files_of(path("run")) == files_of(path("whole")));
  ::unsetenv("NORMSCOPE_DATA");
}

TEST_F(PaperCommand, StepsAlsoEndTheRunsInThreeDimensions) {
  const json results = result_of("paper --only fig1ab --seeds 2 --steps 20 --out " + path("run"));
  EXPECT_EQ(results["steps_3d"], 20);
  ASSERT_EQ(results["claims"].size(), 2u);
  EXPECT_EQ(results["claims"][0]["where"], "Fig. 1a");
  EXPECT_EQ(results["claims"][1]["where"], "Fig. 1b");
  // Keys after LayerNorm lie in a plane: what rounding leaves is printed as none.
  EXPECT_NE(std::string(results["claims"][1]["measured"]).find("layernorm: 0 % of"), std::string::npos)
      << results["claims"][1];
  EXPECT_EQ(result_of(resume()), results);
}

TEST_F(PaperCommand, AKilledRunGoesOnToTheSameResults) {
  const std::string call = "paper --only fig1ab --seeds 1 --steps 60";
  const json whole = result_of(call + " --out " + path("run"));
  for (const int delay : {20, 100, 250}) {
    fs::remove_all(path("run"));
    run_killed(call + out(), std::chrono::milliseconds(delay));
    const bool begun = fs::exists(path("run/config.json"));
    EXPECT_EQ(result_of(begun ? resume() : call + " --out " + path("run")), whole) << delay;
  }
}

TEST_F(PaperCommand, TheSeedOfTheHeatMapsIsRemembered) {
  const pid_t child = start("paper --only fig1cd --seed 5" + out());
  for (int i = 0; i < 2000 && !fs::exists(path("run/config.json")); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ::kill(child, SIGKILL);
  wait(child);
  json config = read_json(path("run/config.json"));
  EXPECT_EQ(config["seed"], 5);
  config["options"]["draws"] = 1;  // the whole figure takes minutes
  write(path("run/config.json"), config.dump());
  const json five = result_of(resume());
  EXPECT_EQ(five["seed"], 5);
  config["seed"] = 0;
  write(path("run/config.json"), config.dump());
  EXPECT_NE(result_of(resume())["claims"], five["claims"]);
}

TEST_F(PaperCommand, TextPartsTrainLookAtKeysAndGoOn) {
  ::setenv("NORMSCOPE_DATA", path("nothing-fetched").c_str(), 1);
  write(path("sentences.txt"),
        "The first of the sentences is long enough. <b>Markup</b> is what the second one has in it!\n");
  const std::string parts = "fig4,table1,table2,table3,table4";
  const pid_t child = start("paper --only " + parts + " --text " + path("sentences.txt") + out());
  for (int i = 0; i < 2000 && !fs::exists(path("run/config.json")); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ::kill(child, SIGKILL);
  wait(child);
  // The recipe takes minutes: a run of seconds has less of everything.
  json config = read_json(path("run/config.json"));
  EXPECT_EQ(config["options"]["language"]["corpus"], "grammar");
  EXPECT_EQ(config["options"]["language"]["steps"], 800);
  config["options"]["language"].update({{"steps", 4},
                                        {"evaluate_every", 2},
                                        {"batch", 1},
                                        {"context", 64},
                                        {"most_tokens", 4000},
                                        {"held_out", 1},
                                        {"windows", 2},
                                        {"trend_windows", 1}});
  config["options"]["sentiment"].update(
      {{"steps", 2}, {"evaluate_every", 1}, {"batch", 2}, {"training_texts", 50}, {"test_texts", 10}});
  for (const char* training : {"language", "sentiment"}) fs::remove_all(path("run") + "/" + training);
  write(path("run/config.json"), config.dump());

  const json results = result_of(resume());
  EXPECT_EQ(results["language"]["steps"], 4);
  std::map<std::string, std::string> verdicts;
  for (const json& claim : results["claims"]) {
    EXPECT_NE(claim["measured"], "not run") << claim;
    verdicts[std::string(claim["where"]) + ": " + std::string(claim["claim"])] = claim["verdict"];
  }
  EXPECT_EQ(verdicts["Table 1: With scaling, no key is unselectable"], "holds");
  EXPECT_EQ(verdicts["Table 2: Of what leaves it, nothing is"], "holds");
  EXPECT_NE(verdicts["§1, §4.2: LayerNorm makes every key selectable"].find("only if keys are what leaves"),
            std::string::npos);
  const std::string page = read(path("run/report.html"));
  for (const char* words : {"GENERATED BY A BUILT-IN GRAMMAR", "REDUCED", "Table 3: unselectable words",
                            "Recipe of the language model"})
    EXPECT_NE(page.find(words), std::string::npos) << words;
  EXPECT_EQ(page.find("<b>Markup"), std::string::npos);
  EXPECT_TRUE(fs::exists(path("run/language/models/center-seed11/config.json")));
  // A classifier is whole: what pools, what classifies, and what the classes are called.
  const std::string classifier = path("run/sentiment/models/none-seed11");
  const json labels = read_json(classifier + "/config.json")["id2label"];
  EXPECT_EQ(labels.size(), 2) << labels;
  const std::string tensors = read(classifier + "/normscope.safetensors");
  for (const char* name : {"classifier.weight", "classifier.bias", "bert.pooler.dense.weight"})
    EXPECT_NE(tensors.find(name), std::string::npos) << name;
  EXPECT_TRUE(fs::exists(path("run/language/keys-layernorm-seed42-step4.json")));

  // Resumed when finished, and with parts, keys and models lost.
  const Files whole = files_of(path("run"));
  EXPECT_TRUE(fs::remove(path("run/part-table1-1.json")));
  EXPECT_TRUE(fs::remove(path("run/part-table3-1.json")));
  fs::remove(path("run/results.json"));
  fs::remove(path("run/language/keys-center-seed11-step4.json"));
  fs::remove_all(path("run/language/models"));
  EXPECT_EQ(result_of(resume()), results);
  const Files after = files_of(path("run"));
  for (const auto& [name, bytes] : whole)
    EXPECT_TRUE(after.contains(name) && after.at(name) == bytes) << name;
  EXPECT_EQ(after.size(), whole.size());
  ::unsetenv("NORMSCOPE_DATA");
}

TEST_F(PaperCommand, TextPartsTrainOnFilesOfTheUser) {
  ::setenv("NORMSCOPE_DATA", path("nothing-fetched").c_str(), 1);
  std::string book, table = "label\tsentence\n";
  for (int i = 0; i < 900; ++i) {
    const std::string sentence =
        "Sentence number " + std::to_string(i) + " of the book is good enough to read. ";
    book += sentence;
    if (i < 60) table += (i % 2 == 0 ? "1\t" : "0\t") + sentence + "\n";
  }
  write(path("book.txt"), book);
  write(path("sst.tsv"), table);
  const json results = result_of("paper --only table1,table4 --text-steps 1 --seeds 1 --corpus " +
                                 path("book.txt") + " --reviews " + path("sst.tsv") + out());
  EXPECT_EQ(results["language"]["corpus"], path("book.txt"));
  EXPECT_EQ(results["sentiment"]["reviews"], path("sst.tsv"));
  EXPECT_EQ(read_json(path("run/language/config.json"))["options"]["data"]["source"], "files");
  const std::string page = read(path("run/report.html"));
  EXPECT_NE(page.find("book.txt"), std::string::npos);
  EXPECT_EQ(page.find("GENERATED BY"), std::string::npos);
  EXPECT_EQ(result_of("paper --quiet --resume " + path("run")), results);
  fs::remove_all(path("run"));
  expect_refused("paper --only table1 --corpus " + path("missing.txt") + out(), {"missing.txt"});
  expect_refused("paper --only table1 --corpus -" + out(), {"--corpus", "file"});
  expect_refused("paper --only table4 --reviews " + path("book.txt") + out(), {"book.txt"});
  expect_refused("paper --only fig1cd --corpus grammar" + out(), {"--corpus", "fig4"});
  expect_refused("paper --only fig4 --reviews grammar" + out(), {"--reviews", "table3"});
  ::unsetenv("NORMSCOPE_DATA");
}

TEST_F(PaperCommand, WithoutPretrainedModelsTheirHalfIsLeftOutAndSaid) {
  const json results = result_of("paper --only wu3,wu4 --models none --out " + path("run"));
  EXPECT_EQ(results["models"], json::array());
  ASSERT_EQ(results["claims"].size(), 5u);
  for (const json& claim : results["claims"]) {
    EXPECT_EQ(claim["verdict"], "open") << claim;
    EXPECT_NE(std::string(claim["measured"]).find("normscope data get minilm"), std::string::npos) << claim;
  }
  EXPECT_NE(read(path("run/report.html")).find("data get stories15m"), std::string::npos);
}

TEST_F(PaperCommand, PretrainedModelsAndTheirTextAreCheckedFirst) {
  expect_refused("paper --only wu4 --models " + path("missing") + out(), {path("missing")});
  expect_refused("paper --only wu4 --models minilm,," + out(), {"--models", "empty"});
  expect_refused("paper --only fig1cd --models none" + out(), {"--models", "wu2"});
  expect_refused("paper --only wu4 --text -" + out(), {"--text", "file"});
  const std::string tiny = source_path() + "/tests/golden/models/bert";
  expect_refused("paper --only wu4 --models " + tiny + out(), {"tokenizer"});
  EXPECT_FALSE(fs::exists(path("run/config.json")));
}

TEST_F(PaperCommand, AnAuditRunsPiecesThatCanBeRepeatedExactly) {
  const std::string parts = "paper --only wu1,wu9 --models none --seed 4";
  const json results = result_of(parts + " --budget 2m --out " + path("run"));
  EXPECT_EQ(results["budget"], 120);
  ASSERT_GE(results["pieces"].size(), 2u);
  EXPECT_EQ(results["pieces"][0]["level"], 1);
  for (const json& claim : results["claims"]) {
    EXPECT_NE(claim["id"], "") << claim;
    const bool looked_at = !claim["comparisons"].empty();
    EXPECT_EQ(claim["holds"] == "open", !looked_at) << claim;
    for (const json& comparison : claim["comparisons"]) {
      EXPECT_NE(comparison["what"], "") << claim;
      EXPECT_NE(comparison["answer"], "not yet") << claim;
    }
  }
  const std::string log = read(path("run/pieces.jsonl"));
  EXPECT_EQ(static_cast<std::size_t>(std::count(log.begin(), log.end(), '\n')), results["pieces"].size());
  for (const int threads : {1, 2, 8}) {
    const std::string again = path("again") + std::to_string(threads);
    const json repeated = result_of(
        fmt::format("{} --pieces {} --threads {} --out {}", parts, path("run/pieces.jsonl"), threads, again));
    EXPECT_EQ(repeated["claims"], results["claims"]) << threads;
    EXPECT_EQ(repeated["pieces"], results["pieces"]) << threads;
  }
  EXPECT_EQ(result_of(resume()), results);
  // With a kill on the way.
  for (const int delay : {50, 400}) {
    fs::remove_all(path("run"));
    run_killed(parts + " --budget 2m" + out(), std::chrono::milliseconds(delay));
    const bool begun = fs::exists(path("run/config.json"));
    const json after = result_of(begun ? resume() : parts + " --budget 2m --out " + path("run"));
    EXPECT_EQ(after["claims"], results["claims"]) << delay;
  }
}

TEST_F(PaperCommand, WhatABudgetHasNoTimeForSaysWhatItWouldTake) {
  const json results = result_of("paper --only fig1ab,wu1 --budget 1s --out " + path("run"));
  ASSERT_EQ(results["pieces"].size(), 1u);
  EXPECT_EQ(results["pieces"][0]["effort"], "wu1");
  for (const json& claim : results["claims"]) {
    const bool was_run = claim["part"] == "wu1";
    EXPECT_EQ(claim["paper"], was_run ? "wu2024" : "brody2023") << claim;
    EXPECT_EQ(claim["pieces"], was_run ? 1 : 0) << claim;
    EXPECT_EQ(claim["more"], was_run ? "" : "3 seeds, about 2 min") << claim;
    if (!was_run) {
      EXPECT_EQ(claim["more_seconds"], 90) << claim;
    }
  }
  // They have their tiles and cards like the others.
  const std::string page = read(path("run/report.html"));
  for (const json& claim : results["claims"]) {
    const std::string id = "claim-" + std::string(claim["id"]);
    EXPECT_NE(page.find("href=\"#" + id + "\""), std::string::npos) << id;
    EXPECT_NE(page.find("id=\"" + id + "\""), std::string::npos) << id;
  }
}

TEST_F(PaperCommand, PiecesOfTrainingsHaveTheSameBytesOnAnyNumberOfThreads) {
  const pid_t child = start("paper --only fig1ab --budget 2m" + out());
  for (int i = 0; i < 2000 && !fs::exists(path("run/config.json")); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ::kill(child, SIGKILL);
  wait(child);
  json config = read_json(path("run/config.json"));
  config["options"]["steps_3d"] = 3;  // the task takes thousands
  config["options"]["repeats"] = json::array();
  for (const int level : {1, 2})
    config["options"]["repeats"].push_back({{"effort", "majority-3d"},
                                            {"level", level},
                                            {"amount", level == 1 ? "3 seeds" : "5 seeds"},
                                            {"parts", {"fig1ab"}}});
  std::optional<Files> first;
  for (const int threads : {1, 2, 8}) {
    const std::string directory = "threads" + std::to_string(threads);
    write(path(directory + "/config.json"), config.dump());
    const json results = result_of(fmt::format("paper --resume {} --threads {}", path(directory), threads));
    EXPECT_EQ(results["pieces"], config["options"]["repeats"]);
    EXPECT_EQ(results["claims"][0]["pieces"], 2);
    // All but what says when and with how many threads it was made.
    Files files = files_of(path(directory));
    std::erase_if(files, [](const auto& file) {
      return file.first.ends_with("config.json") || file.first == "pieces.jsonl" ||
             file.first == "results.json" || file.first == "report.html";
    });
    EXPECT_TRUE(files.contains("part-fig1ab-2.json"));
    EXPECT_TRUE(files.contains("majority-3d-2/metrics.jsonl"));
    if (!first) first = files;
    EXPECT_TRUE(files == *first) << threads;
  }
}

TEST_F(PaperCommand, WrongBudgetsAndPiecesAreRefused) {
  for (const char* budget : {"5", "0m", "-1m", "soon", "1w", "nanm", "1e300h"})
    expect_refused(std::string("paper --budget ") + budget + out(), {"--budget", budget, "10m"});
  expect_refused("paper --budget 1m --samples 3" + out(), {"--budget", "--samples"});
  expect_refused("paper --only wu9 --pieces " + path("missing") + out(),
                 {"--pieces", "missing", "pieces.jsonl"});
  write(path("log"), R"({"effort": "wu7", "level": 1, "amount": "", "parts": [], "seconds": 1})");
  expect_refused("paper --only wu9 --pieces " + path("log") + out(), {"--pieces", "wu7"});
  write(path("log"), R"({"effort": "wu9", "level": 3, "amount": "", "parts": [], "seconds": 1})");
  expect_refused("paper --only wu9 --models none --pieces " + path("log") + out(),
                 {"--pieces", "level 3", "wu9"});
  write(path("log"), R"({"effort": "wu9"})");
  expect_refused("paper --only wu9 --pieces " + path("log") + " --out " + path("other"), {"level"});
  write(path("squad.json"), R"({"data": [{"paragraphs": [{"question": 1}]}]})");
  expect_refused("paper --only table1 --squad " + path("squad.json") + " --out " + path("other"),
                 {"--squad", "squad.json", "context"});
  expect_refused("paper --only wu9 --squad " + path("squad.json") + " --out " + path("other"),
                 {"--squad", "table1"});
  expect_refused("paper --only table1 --test-text " + path("none.txt") + " --out " + path("other"),
                 {"none.txt"});
  expect_refused("paper --only wu9 --test-text " + path("squad.json") + " --out " + path("other"),
                 {"--test-text", "fig4"});
}

TEST_F(PaperCommand, WrongCallsAreRefused) {
  expect_refused("paper --only fig5" + out(), {"fig5", "did you mean", "fig2"});
  expect_refused("paper --only fig2 --text-steps 5" + out(), {"--text-steps", "fig4"});
  expect_refused("paper --only fig4 --full --text-steps 5" + out(), {"--full", "--text-steps"});
  write(path("empty.txt"), "No sentence.");
  expect_refused("paper --only table3 --text " + path("empty.txt") + out(), {"--text", "no sentence"});
  expect_refused("paper --only figure1cd" + out(), {"figure1cd", "fig1cd"});
  expect_refused("paper --only fig2,," + out(), {"--only", "''"});
  expect_refused("paper --only ''" + out(), {"--only", "empty"});
  expect_refused("paper --seeds 11" + out(), {"--seeds", "from 1 to 10"});
  expect_refused("paper --steps 0" + out(), {"--steps", "'0'"});
  expect_refused("paper --resume ''", {"--resume", "empty"});
  expect_refused("paper --resume " + path("missing"), {path("missing"), "does not exist"});
  write(path("odd/config.json"), R"({"program": "normscope", "command": ["paper"]})");
  expect_refused("paper --resume " + path("odd"), {path("odd")});
  ASSERT_EQ(run("train majority --samples 100 --classes 5 --steps 1 --quiet --out " + path("training")).code,
            0);
  expect_refused("paper --resume " + path("training"), {"train majority"});
  expect_refused("paper --only fig2 --out " + path("training"), {path("training"), "new directory"});
  expect_refused("paper --only fig2 --out /proc/normscope", {"/proc/normscope"});
}

}  // namespace
}  // namespace normscope

// normscope mask: what it prints, what it leaves behind, and what it says to wrong calls and hostile files.
#include <set>

#include "normscope/tensor_file.h"
#include "support/program.h"

namespace normscope {
namespace {

class MaskCommand : public ProgramTest {
 protected:
  // A file in the folder of the test, by its full name.
  std::string file(const std::string& name, const std::string& bytes) const {
    write(path(name), bytes);
    return path(name);
  }
};

TEST_F(MaskCommand, AWrongCallGetsOneSentenceAndExitCodeTwo) {
  for (const std::string arguments : {"mask",
                                      "mask ''",
                                      "mask nonsense",
                                      "mask window",
                                      "mask window:-1",
                                      "mask random:2",
                                      "mask prefix:9 --n 8",
                                      "mask full --n 0",
                                      "mask full --n -1",
                                      "mask full --n 1e3",
                                      "mask full --n 16777217",
                                      "mask full --n",
                                      "mask full+",
                                      "mask missing.txt",
                                      "mask ./full",
                                      "mask / --n 4",
                                      "mask full --tensor x",
                                      "mask full --nonsense",
                                      "mask full --out ''",
                                      "mask full causal --edges -",
                                      "mask full --json --edges -",
                                      "mask full --n 20000 --edges -",
                                      "mask strided:2 --n 1000000",
                                      "mask full --edges /nonexistent/edges.txt"}) {
    expect_refused(arguments, {});
  }
  expect_refused("mask casual", {"did you mean 'causal'?"});
  expect_refused("mask full+windw:2", {"did you mean 'window'?"});
  expect_refused("mask windw:0.5", {"did you mean 'window'?"});
}

TEST_F(MaskCommand, HostileFilesGetOneSentenceThatSaysWhere) {
  const auto refused = [&](const std::string& bytes, const std::vector<std::string>& facts) {
    std::vector<std::string> all = facts;
    all.emplace_back("bad.txt");
    expect_refused("mask " + file("bad.txt", bytes), all);
  };
  refused("", {"holds no mask"});
  refused("# nothing\n\n", {"holds no mask"});
  refused("10\n1\n", {"line 2 has 1 entries", "first row has 2"});
  refused("101\n111\n", {"2 rows of 3 entries"});
  refused("10\n01\n11\n", {"line 3", "one row too many"});
  refused("1 0\n0 2\n", {"line 2", "'2'"});
  refused("1,0\n0,,1\n", {"line 2"});
  refused("1 0\n0 10\n", {"line 2", "'10'"});
  refused("1 0\n0 -1\n", {"line 2", "'-1'"});
  refused("hello\n", {"line 1", "'h'"});
  refused(std::string("1 0 0 1 1 \0", 11) + "\n", {"zero byte at 10"});
  refused("1\x1b[2J\n", {"line 1"});
  refused("edges x\n", {"line 1"});
  refused("edges 0\n", {"line 1"});
  refused("edges 3 4\n", {"line 1"});
  refused("edges\n", {"without edges"});
  refused("edges 99999999999\n", {"99999999999 tokens", "16777216"});
  refused("edges\n0 16777216\n", {"token 16777216"});
  refused("edges 3\n0 3\n", {"line 2 names token 3", "there are 3"});
  refused("edges 3\n0\n", {"line 2"});
  refused("edges 3\n0 1 2\n", {"line 2"});
  refused("edges 3\n0 -1\n", {"line 2"});
  refused("edges 3\n0 1.5\n", {"line 2"});
  refused("PK nothing", {});
  refused(std::string("\x93NUMPY\x01\x00", 8), {});
  write_npy(path("bad.txt"), {"", DType::float32, {2, 3}, std::vector<double>(6)});
  expect_refused("mask " + path("bad.txt"), {"2 × 3"});
  write_npy(path("bad.txt"), {"", DType::float32, {4}, std::vector<double>(4)});
  expect_refused("mask " + path("bad.txt"), {"its shape is 4"});
  write_npy(path("bad.txt"), {"", DType::float32, {2, 2}, {1, 0, 0.5, 1}});
  expect_refused("mask " + path("bad.txt"), {"0.5 at row 1, column 0"});
  write_npy(path("bad.txt"), {"", DType::float32, {2, 2}, {1, 0, 0, 0.0 / 0.0}});
  expect_refused("mask " + path("bad.txt"), {"row 1, column 1"});
  const std::string good = file("good.txt", "11\n01\n");
  expect_refused("mask " + good + " --n 3", {"has 2 tokens, but 3 were asked for"});
  expect_refused("mask " + good + " --tensor x", {"'x'"});
}

TEST_F(MaskCommand, EveryKindOfFileIsTheSameMask) {
  const std::vector<double> values = {1, 0, 1, 1, 1, 0, 0, 0, 0};
  write_npy(path("bool.npy"), {"", DType::boolean, {3, 3}, values});
  write_npy(path("float.npy"), {"", DType::float16, {3, 3}, values});
  const std::vector<Tensor> tensors = {{"mask", DType::uint8, {3, 3}, values},
                                       {"other", DType::int64, {1}, {7}}};
  write_safetensors(path("two.safetensors"), tensors);
  nlohmann::json first;
  for (const std::string& spec :
       {file("dense.txt", "101\n110\n000\n"),
        file("spaces.txt", "# three tokens\r\n1 0 1\r\n\r\n1\t1  0\r\n0 0 0"),
        file("commas", "1,0,1\n1, 1,0\n0 ,0,0 # none\n"),
        file("edges.txt", "edges 3\n0 2\n0 0\n1 1\n1 0\n1 0\n"), path("bool.npy"), path("float.npy"),
        path("two.safetensors") + " --tensor mask", "- <" + path("dense.txt"), "- <" + path("bool.npy")}) {
    SCOPED_TRACE(spec);
    nlohmann::json mask = result_of("mask " + spec)["masks"][0];
    mask.erase("mask");
    EXPECT_EQ(mask["edges"], 4);
    EXPECT_EQ(mask["empty_rows"], 1);
    EXPECT_EQ(mask["self_loops"], 2);
    if (first.is_null()) first = mask;
    EXPECT_EQ(mask, first);
  }
  expect_refused("mask " + path("two.safetensors"), {"2 tensors"});
}

TEST_F(MaskCommand, JsonHasThePapersRadii) {
  const auto result = result_of("mask full causal window:1 onesided:1 --seed 4");
  for (const char* key : {"version", "commit", "isa", "seconds", "threads"})
    EXPECT_TRUE(result.contains(key)) << key;
  EXPECT_EQ(result["seed"], 4);
  ASSERT_EQ(result["masks"].size(), 4u);
  const std::vector<int> radii = {1, 1, 64, 127};
  for (std::size_t k = 0; k < 4; ++k) {
    EXPECT_EQ(result["masks"][k]["tokens"], 128);
    EXPECT_EQ(result["masks"][k]["radius"], radii[k]);
  }
  EXPECT_EQ(result["masks"][0]["diameter"], 1);
  EXPECT_TRUE(result["masks"][1]["diameter"].is_null());
  EXPECT_EQ(result["masks"][1]["centres"], (nlohmann::json{{"count", 1}, {"ranges", {{0, 0}}}}));
  EXPECT_EQ(result["masks"][2]["centres"], (nlohmann::json{{"count", 128}, {"ranges", {{0, 127}}}}));
  EXPECT_TRUE(result_of("mask self --n 3")["masks"][0]["radius"].is_null());
}

TEST_F(MaskCommand, TheScreenDrawsOneMaskAndComparesSeveral) {
  const Outcome one = run("mask causal --n 3");
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_NE(one.out.find("0 ██····\n       1 ████··\n       2 ██████\n"), std::string::npos) << one.out;
  EXPECT_NE(one.out.find("diameter                  infinite\n"), std::string::npos);
  EXPECT_EQ(one.out.find('\x1b'), std::string::npos);
  const Outcome several = run("mask full self --n 9");
  EXPECT_NE(several.out.find("infinite"), std::string::npos);
  EXPECT_EQ(several.out.find("█"), std::string::npos);
  const Outcome empty = run("mask " + file("empty.txt", "00\n01\n"));
  EXPECT_NE(empty.out.find("attention is defined as 0"), std::string::npos);
  EXPECT_EQ(run("mask window:1 --n 100000").code, 0);
  // Families take the tokens of a file beside them.
  EXPECT_EQ(result_of("mask full " + path("empty.txt"))["masks"][0]["tokens"], 2);
}

TEST_F(MaskCommand, AnEdgeListReadsBackAsTheSameMask) {
  for (const std::string spec : {"window:2", "random:0.3", "self", "star&causal"}) {
    const std::string edges = path("edges");
    ASSERT_EQ(run("mask '" + spec + "' --n 11 --seed 5 --edges " + edges).code, 0) << spec;
    auto first = result_of("mask '" + spec + "' --n 11 --seed 5")["masks"][0];
    auto again = result_of("mask " + edges)["masks"][0];
    first.erase("mask");
    again.erase("mask");
    EXPECT_EQ(first, again) << spec;
  }
  EXPECT_EQ(run("mask self --n 2 --edges -").out, "edges 2\n0 0\n1 1\n");
}

TEST_F(MaskCommand, ARunIsADirectoryThatCanBeOverwritten) {
  for (const std::string n : {"8", "300"}) {
    const Outcome outcome = run("mask causal random:0.1 --quiet --n " + n + " --out " + path("run"));
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    std::set<std::string> names;
    for (const auto& [name, bytes] : files_of(path("run"))) names.insert(name);
    EXPECT_EQ(names, (std::set<std::string>{"config.json", "mask.svg", "report.html", "results.json"}));
    EXPECT_EQ(read_json(path("run") + "/results.json")["masks"][0]["tokens"], std::stoi(n));
    // Only a small mask is drawn as a graph.
    EXPECT_EQ(read(path("run") + "/mask.svg").find("<circle") != std::string::npos, n == "8");
  }
  EXPECT_EQ(read_json(path("run") + "/config.json")["command"], "mask");
}

TEST_F(MaskCommand, LostOutputIsAFailedRun) {
  expect_sentence(run("mask full", 0, "/dev/full"), 1, {});
  expect_sentence(run("mask full --edges - --n 50", 0, "/dev/full"), 1, {});
}

TEST_F(MaskCommand, HelpHasExamplesAndFamilies) {
  const Outcome outcome = run("mask --help");
  EXPECT_EQ(outcome.code, 0);
  for (const char* part : {"Examples:\n  normscope mask", "onesided:w", "16777216"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace normscope

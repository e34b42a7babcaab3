// normscope keys on the keys of heads, and its advice; vocab's.
#include <algorithm>
#include <filesystem>

#include "normscope/tensor_file.h"
#include "support/program.h"

namespace normscope {
namespace {

class KeysOfHeads : public ProgramTest {
 protected:
  std::string npy(const std::string& name, std::vector<std::size_t> shape, std::vector<double> values) const {
    write_npy(path(name), {"", DType::float64, std::move(shape), std::move(values)});
    return path(name);
  }
  // Two heads of five keys each: a square with its centre, and five on a line.
  static constexpr double kHeads[2][5][2] = {{{1, 1}, {1, -1}, {-1, 1}, {-1, -1}, {0, 0}},
                                             {{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}}};
  std::string side_by_side() const {
    std::vector<double> rows;
    for (std::size_t i = 0; i < 5; ++i)
      for (const auto& head : kHeads) rows.insert(rows.end(), head[i], head[i] + 2);
    return npy("rows.npy", {5, 4}, rows);
  }
  std::string four_axes() const {
    std::vector<double> values;
    for (int batch = 0; batch < 2; ++batch)
      for (const auto& head : kHeads)
        for (const auto& key : head) values.insert(values.end(), key, key + 2);
    return npy("cache.npy", {2, 2, 5, 2}, values);
  }
};

TEST_F(KeysOfHeads, HeadsSideBySideAreSetsOfTheirOwn) {
  const auto result = result_of("keys " + side_by_side() + " --heads 2");
  ASSERT_EQ(result["sets"].size(), 2u);
  EXPECT_EQ(result["settings"]["heads"], 2);
  for (int head = 0; head < 2; ++head) {
    EXPECT_EQ(result["sets"][head]["head"], head);
    EXPECT_FALSE(result["sets"][head].contains("batch"));
    EXPECT_EQ(result["sets"][head]["d"], 2);
  }
  EXPECT_EQ(result["sets"][0]["counts"]["unselectable"], 1);
  EXPECT_EQ(result["sets"][1]["counts"]["unselectable"], 3);
  const std::string text = run("keys " + side_by_side() + " --heads 2").out;
  EXPECT_NE(text.find("5 × 2, 2 heads\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nhead 1\n"), std::string::npos) << text;
  // Without --heads a row is one key.
  EXPECT_EQ(result_of("keys " + side_by_side())["sets"][0]["d"], 4);
}

TEST_F(KeysOfHeads, AKeyCacheHasBatchesAndHeads) {
  const auto result = result_of("keys " + four_axes());
  ASSERT_EQ(result["sets"].size(), 4u);
  EXPECT_EQ(result["sets"][3]["batch"], 1);
  EXPECT_EQ(result["sets"][3]["head"], 1);
  EXPECT_EQ(result["sets"][2]["counts"],
            result_of("keys " + side_by_side() + " --heads 2")["sets"][0]["counts"]);
  const Outcome text = run("keys " + four_axes());
  EXPECT_NE(text.out.find("5 × 2, 2 × 2 heads"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("\nbatch 1, head 0\n"), std::string::npos) << text.out;
}

TEST_F(KeysOfHeads, HeadsThatDoNotFitAreASentence) {
  expect_refused("keys " + side_by_side() + " --heads 3", {"5 × 4", "3 heads", "--heads"});
  expect_refused("keys " + side_by_side() + " --heads 0", {"--heads"});
  expect_refused("keys " + four_axes() + " --heads 3", {"2 heads, not 3"});
  expect_refused("keys " + npy("five.npy", {1, 1, 1, 1, 1}, {0}), {"batch × heads × keys"});
  const std::vector<Tensor> tensors = {{"k", DType::float32, {2, 4}, std::vector<double>(8, 1)}};
  write_safetensors(path("wrong.safetensors"), tensors, {{"k.heads", "many"}});
  expect_refused("keys " + path("wrong.safetensors"), {"'many' heads", "--heads"});
}

TEST_F(KeysOfHeads, ARunIsNotReplacedByWhatReadsItsFiles) {
  const std::string run_directory = path("run");
  ASSERT_EQ(run("keys " + side_by_side() + " --out " + run_directory).code, 0);
  const std::string inside = npy("run/keys.npy", {2, 2}, {0, 1, 1, 0});
  for (const char* command : {"keys ", "vocab "}) {
    const Outcome refused = run(command + inside + " --out " + run_directory);
    EXPECT_EQ(refused.code, 2);
    EXPECT_NE(refused.err.find("name another directory for --out"), std::string::npos) << refused.err;
  }
  EXPECT_TRUE(std::filesystem::exists(run_directory + "/results.json"));
}

TEST_F(KeysOfHeads, AdviceNamesWhatMakesAKeySelectable) {
  const std::string file = npy("square.npy", {6, 2}, {4, 4, 4, -4, -4, 4, -4, -4, 1, 0, 4, 0});
  const auto result = result_of("keys " + file + " --advice");
  const auto& keys = result["sets"][0]["keys"];
  EXPECT_FALSE(keys[0].contains("advice"));
  EXPECT_EQ(keys[4]["advice"]["scale"]["least"], 4);
  EXPECT_EQ(keys[4]["advice"]["offset"]["least"], 0);
  EXPECT_EQ(keys[5]["advice"]["scale"]["least"], 1);
  // On a circle all six are corners.
  std::vector<std::string> norms;
  for (const auto& norm : keys[4]["advice"]["norms"]) norms.push_back(norm["norm"]);
  EXPECT_EQ(std::count(norms.begin(), norms.end(), "rmsnorm"), 0);  // (1, 0) and (4, 0) become equal
  EXPECT_EQ(result["sets"][0]["offsets_for_all"]["counts"]["selectable"], 6);
  const Outcome text = run("keys " + file + " --advice");
  EXPECT_NE(text.out.find("what would help"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("offsets for all"), std::string::npos) << text.out;
  // The page has it, too, and a page over runs.
  ASSERT_EQ(run("keys " + file + " --advice --quiet --out " + path("run")).code, 0);
  ASSERT_EQ(run("report " + path("run") + " --quiet --out " + path("page.html")).code, 0);
  for (const std::string& page : {read(path("run/report.html")), read(path("page.html"))}) {
    for (const char* words : {"What would help", "a factor above", "Offsets for all: at least"})
      EXPECT_NE(page.find(words), std::string::npos) << words;
    EXPECT_NE(page.find("<td class=\"number\">4</td>"), std::string::npos);
  }
  ASSERT_EQ(run("keys " + file + " --quiet --out " + path("plain")).code, 0);
  EXPECT_EQ(read(path("plain/report.html")).find("What would help"), std::string::npos);
  const std::string apart = npy("apart.npy", {4, 2}, {4, 4, 4, -4, -4, 0, 1, 0});
  const auto other = result_of("keys " + apart + " --advice")["sets"][0]["keys"][3]["advice"]["norms"];
  ASSERT_FALSE(other.empty());
  EXPECT_EQ(other[0]["norm"], "rmsnorm");
  EXPECT_EQ(other[0]["witness"].size(), 2u);
  const Outcome nothing = run("keys " + npy("line.npy", {2, 1}, {0, 1}) + " --advice");
  EXPECT_NE(nothing.out.find("nothing is needed"), std::string::npos) << nothing.out;
}

// What the last digit does is no advice.
TEST_F(KeysOfHeads, ANormThatHelpsByItsRoundingAloneIsNotAdvised) {
  const auto norms_for = [&](const std::string& file, std::size_t key) {
    const auto found = result_of("keys " + file + " --advice")["sets"][0]["keys"][key];
    EXPECT_NE(found["verdict"], "selectable");
    std::vector<std::string> names;
    for (const auto& norm : found["advice"]["norms"]) names.push_back(norm["norm"]);
    return names;
  };
  // Of one sign, scaling makes keys equal.
  const auto scaled = norms_for(
      npy("line.npy", {5, 1}, {0.5421572747513552, -0.0018914828380037015, -1.39662, -0.86131, 0.67471}), 0);
  EXPECT_EQ(std::count(scaled.begin(), scaled.end(), "rmsnorm"), 0);
  // The last is half of the third: a linear map leaves it between the others, but thirds are rounded.
  const auto centred =
      norms_for(npy("flat.npy", {5, 3}, {-2, -8, -3, 6, 8, 1, -6, -12, -3, 4, 8, 2, -2, -4, -1}), 4);
  EXPECT_EQ(std::count(centred.begin(), centred.end(), "center"), 0);
}

TEST_F(KeysOfHeads, VocabGivesTheSameAdvice) {
  const std::string file = npy("square.npy", {6, 2}, {4, 4, 4, -4, -4, 4, -4, -4, 1, 0, 4, 0});
  const auto keys = result_of("keys " + file + " --advice")["sets"][0];
  const auto vocab = result_of("vocab " + file + " --advice");
  ASSERT_EQ(vocab["never_alone"].size(), 2u);
  for (const auto& token : vocab["never_alone"])
    EXPECT_EQ(token["advice"]["scale"]["least"],
              keys["keys"][token["id"].get<std::size_t>()]["advice"]["scale"]["least"]);
  EXPECT_EQ(vocab["offsets_for_all"]["counts"]["selectable"], 6);
  const std::string text = run("vocab " + file + " --advice").out;
  for (const char* words :
       {"a factor above", "biases for all    at least", "6 selectable, 0 tied, 0 unselectable"})
    EXPECT_NE(text.find(words), std::string::npos) << words << " in " << text;
  ASSERT_EQ(run("vocab " + file + " --advice --quiet --out " + path("vocab")).code, 0);
  EXPECT_NE(read(path("vocab/report.html")).find("Biases for all: at least"), std::string::npos);
}

}  // namespace
}  // namespace normscope

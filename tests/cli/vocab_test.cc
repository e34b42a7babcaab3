// What `normscope vocab` says about matrices of tokens, and what it does with wrong calls.
#include "study/vocab.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "normscope/random.h"
#include "normscope/tensor_file.h"
#include "result/json_writer.h"
#include "support/program.h"

namespace normscope {
namespace {

using nlohmann::json;

class VocabCommand : public ProgramTest {
 protected:
  std::string write_matrix(const std::string& name, std::vector<std::size_t> shape,
                           std::vector<double> values, DType dtype = DType::float32) const {
    write_npy(path(name), {"", dtype, std::move(shape), std::move(values)});
    return path(name);
  }

  // Corners of a square, its centre, and the middle of an edge.
  std::string write_square() const { return write_matrix("square.npy", {6, 2}, square_); }

  // A vocabulary of six tokens, one of which would move the cursor of a terminal.
  std::string write_tokenizer() const {
    const json tokenizer = {
        {"version", "1.0"},
        {"added_tokens", json::array()},
        {"normalizer", nullptr},
        {"pre_tokenizer", {{"type", "Whitespace"}}},
        {"post_processor", nullptr},
        {"decoder", nullptr},
        {"model",
         {{"type", "WordLevel"},
          {"unk_token", "a"},
          {"vocab", {{"a", 0}, {"b", 1}, {"c", 2}, {"<d>", 3}, {"e\u001b[2J", 4}, {"f", 5}}}}}};
    write(path("tokenizer.json"), tokenizer.dump());
    return path("tokenizer.json");
  }

  const std::vector<double> square_ = {1, 1, 1, -1, -1, 1, -1, -1, 0, 0, 1, 0};
};

TEST_F(VocabCommand, NamesTheTokensThatNeverWinAlone) {
  const json result = result_of("vocab " + write_square());
  EXPECT_EQ(result["tokens"], 6);
  EXPECT_EQ(result["counts"]["selectable"], 4);
  EXPECT_EQ(result["counts"]["tied"], 1);
  EXPECT_EQ(result["counts"]["unselectable"], 1);
  ASSERT_EQ(result["never_alone"].size(), 2u);
  EXPECT_EQ(result["never_alone"][0]["id"], 4);
  EXPECT_EQ(result["never_alone"][0]["verdict"], "unselectable");
  EXPECT_EQ(result["never_alone"][1]["id"], 5);
  EXPECT_EQ(result["never_alone"][1]["verdict"], "tied");
  double total = 0, x = 0, y = 0;
  for (const json& term : result["never_alone"][0]["cover"]) {
    const double weight = term["weight"];
    const std::size_t id = term["id"];
    total += weight, x += weight * square_[2 * id], y += weight * square_[2 * id + 1];
  }
  EXPECT_NEAR(total, 1, 1e-12);
  EXPECT_NEAR(std::hypot(x, y), 0, 1e-12);
  const Outcome outcome = run("vocab " + write_square());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("Of 6 tokens, 2 can never be the single likeliest"), std::string::npos)
      << outcome.out;
}

TEST_F(VocabCommand, ABiasDecidesWhoWins) {
  const std::string bias = write_matrix("bias.npy", {6}, {0, 0, 0, 0, 5, 0});
  const json result = result_of("vocab " + write_square() + " --bias " + bias + " --exact");
  EXPECT_EQ(result["bias"], true);
  EXPECT_EQ(result["counts"]["selectable"], 5);  // the centre too, now that it starts from 5
  EXPECT_EQ(result["verified"], 6);
}

TEST_F(VocabCommand, TokensAreShownByNameAndCannotMoveTheCursor) {
  const std::string arguments = "vocab " + write_square() + " --tokenizer " + write_tokenizer();
  const json result = result_of(arguments);
  EXPECT_EQ(result["never_alone"][1]["token"], "f");
  const Outcome outcome = run(arguments + " --out " + path("run"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos);
  EXPECT_NE(outcome.out.find("<d>"), std::string::npos) << outcome.out;
  const std::string page = read(path("run/report.html"));
  EXPECT_EQ(page.find("<d>"), std::string::npos);
  EXPECT_NE(page.find("&lt;d&gt;"), std::string::npos);
  EXPECT_EQ(page.find('\x1b'), std::string::npos);
}

TEST_F(VocabCommand, TheRunHoldsACertificateForEveryToken) {
  Random random(3);
  std::vector<double> values(200 * 3);
  for (double& value : values) value = static_cast<float>(random.normal());
  const json result =
      result_of("vocab " + write_matrix("random.npy", {200, 3}, values) + " --out " + path("run"));
  EXPECT_EQ(read_json(path("run/config.json"))["command"], "vocab");
  EXPECT_EQ(read_json(path("run/results.json"))["counts"], result["counts"]);
  const TensorFile file = TensorFile::open(path("run/certificates.safetensors"));
  const Tensor verdict = file.read("verdict"), token = file.read("witness.token"),
               witness = file.read("witness"), start = file.read("cover.start"),
               member = file.read("cover.token"), weight = file.read("cover.weight");
  ASSERT_EQ(verdict.values.size(), 200u);
  const auto score = [&](const double* query, std::size_t i) {
    return std::inner_product(query, query + 3, values.begin() + static_cast<std::ptrdiff_t>(3 * i), 0.0);
  };
  std::vector<bool> certified(200);
  for (std::size_t k = 0; k < token.values.size(); ++k) {
    const auto own = static_cast<std::size_t>(token.values[k]);
    bool wins = true;
    for (std::size_t j = 0; j < 200; ++j)
      wins = wins && (j == own || score(&witness.values[3 * k], own) > score(&witness.values[3 * k], j));
    EXPECT_EQ(wins, verdict.values[own] == 0) << own;
    certified[own] = wins;
  }
  for (std::size_t i = 0; i < 200; ++i) {
    if (verdict.values[i] == 0) continue;
    std::vector<double> sum(3);
    for (auto k = static_cast<std::size_t>(start.values[i]);
         k < static_cast<std::size_t>(start.values[i + 1]); ++k)
      for (std::size_t c = 0; c < 3; ++c)
        sum[c] += weight.values[k] * values[3 * static_cast<std::size_t>(member.values[k]) + c];
    for (std::size_t c = 0; c < 3; ++c) EXPECT_NEAR(sum[c], values[3 * i + c], 1e-9);
    certified[i] = true;
  }
  EXPECT_EQ(std::count(certified.begin(), certified.end(), true), 200);
  EXPECT_GT(result["counts"]["unselectable"], 50);
}

TEST_F(VocabCommand, SaysWhatTheStudySays) {
  VocabOptions options;
  options.source = write_square();
  options.tokenizer = write_tokenizer();
  options.margin = Margins::exact;
  options.exact = true;
  const Executor executor(2);
  json study = json::parse(json_of(study_vocab(options, {executor}).result)),
       program = result_of("vocab " + options.source + " --tokenizer " + options.tokenizer +
                           " --margin exact --exact --threads 2");
  for (json* each : {&study, &program}) each->erase("seconds");
  EXPECT_EQ(study, program);
}

TEST_F(VocabCommand, TheLimitHoldsOnScreenAndForMargins) {
  const json result = result_of("vocab " + write_square() + " --limit 1");
  EXPECT_EQ(result["smallest_margins"].size(), 1u);
  EXPECT_EQ(result["never_alone"].size(), 2u);  // what was asked for is complete
  const Outcome outcome = run("vocab " + write_square() + " --limit 1");
  EXPECT_NE(outcome.out.find("1 of 2"), std::string::npos) << outcome.out;
  EXPECT_EQ(result_of("vocab " + write_square() + " --limit 0")["smallest_margins"].size(), 0u);
}

TEST_F(VocabCommand, WrongCallsAreRefusedInOneSentence) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::string square = write_square();
  expect_refused("vocab " + path("missing.npy"), {"missing.npy"});
  expect_refused("vocab " + path("missing"), {"missing"});
  expect_refused("vocab " + write_matrix("nan.npy", {2, 2}, {1, 2, nan, 4}), {"NaN", "row 1", "column 0"});
  expect_refused("vocab " + write_matrix("list.npy", {4}, {1, 2, 3, 4}), {"list.npy", "row per token"});
  expect_refused("vocab " + write_matrix("none.npy", {0, 4}, {}), {"none.npy", "row per token"});
  expect_refused("vocab " + square + " --bias " + write_matrix("short.npy", {2}, {1, 2}),
                 {"short.npy", "2 numbers", "6 tokens"});
  expect_refused("vocab " + square + " --bias " + write_matrix("bad.npy", {6}, {1, 2, nan, 4, 5, 6}),
                 {"bias", "token 2"});
  expect_refused("vocab " + square + " --margin wide", {"--margin", "wide"});
  expect_refused("vocab " + square + " --limit many", {"--limit", "many"});
  expect_refused("vocab " + square + " --embeddings", {"--embeddings", "MODEL"});
  expect_refused("vocab " + square + " --tokenizer " + path("no.json"), {"no.json"});
}

TEST_F(VocabCommand, OfSeveralTensorsOneIsNamedAfterAColon) {
  const std::vector<Tensor> tensors = {{"head", DType::float32, {6, 2}, square_},
                                       {"bias", DType::float32, {6}, {0, 0, 0, 0, 5, 0}}};
  write_safetensors(path("model.safetensors"), tensors);
  const std::string file = path("model.safetensors");
  expect_refused("vocab " + file, {"2 tensors", "head", "bias", ":NAME"});
  EXPECT_EQ(result_of("vocab " + file + ":head --bias " + file + ":bias")["counts"]["selectable"], 5);
}

}  // namespace
}  // namespace normscope

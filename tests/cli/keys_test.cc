// What `normscope keys` does with wrong calls and strange files, and what its output holds.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "normscope/random.h"
#include "normscope/tensor_file.h"
#include "support/paths.h"
#include "support/temporary_directory.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Outcome {
  int code = -1;
  std::string out, err;
};

std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int b = 0; b < bytes; ++b, value >>= 8) text += static_cast<char>(value & 0xFF);
  return text;
}

// A .npy file as its parts: for what write_npy never writes.
std::string npy(const std::string& descr, bool fortran, const std::string& shape, const std::string& data) {
  std::string header = "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
                       ", 'shape': " + shape + ", }";
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 11, ' ');
  header += '\n';
  return "\x93NUMPY\x01" + std::string(1, '\0') + little_endian(header.size(), 2) + header + data;
}

std::string double_bytes(double value, bool big_endian) {
  std::string text = little_endian(std::bit_cast<std::uint64_t>(value), 8);
  if (big_endian) std::reverse(text.begin(), text.end());
  return text;
}

std::uint32_t crc32(const std::string& bytes) {
  std::uint32_t crc = ~0U;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

// A zip archive of stored members.
std::string npz(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string archive, directory;
  for (const auto& [name, bytes] : members) {
    const std::string common = little_endian(20, 2) + little_endian(0, 8) + little_endian(crc32(bytes), 4) +
                               little_endian(bytes.size(), 4) + little_endian(bytes.size(), 4) +
                               little_endian(name.size(), 2) + little_endian(0, 2);
    directory += "PK\x01\x02" + little_endian(20, 2) + common + little_endian(0, 10) +
                 little_endian(archive.size(), 4) + name;
    archive += "PK\x03\x04" + common + name + bytes;
  }
  const std::string end = "PK\x05\x06" + little_endian(0, 4) + little_endian(members.size(), 2) +
                          little_endian(members.size(), 2) + little_endian(directory.size(), 4) +
                          little_endian(archive.size(), 4) + little_endian(0, 2);
  return archive + directory + end;
}

class KeysCommand : public ::testing::Test {
 protected:
  static std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string path(const std::string& name) const { return (directory_ / name).string(); }

  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

  std::string write(const std::string& name, std::vector<std::size_t> shape, std::vector<double> values,
                    DType dtype = DType::float64) const {
    write_npy(path(name), {"", dtype, std::move(shape), std::move(values)});
    return path(name);
  }

  // Corners of a square, its centre, the middle of an edge: exact in every float dtype.
  std::string write_square() const { return write("square.npy", {6, 2}, square_); }

  // arguments: as a shell would take them, redirections included.
  Outcome run(const std::string& arguments) const {
    const std::string errors = path("stderr");
    const std::string command = "( \"" + program_path() + "\" " + arguments + " ) 2>" + errors;
    Outcome outcome;
    std::FILE* pipe = ::popen(command.c_str(), "r");
    if (pipe == nullptr) return outcome;
    std::array<char, 4096> buffer;
    for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
      outcome.out.append(buffer.data(), got);
    const int status = ::pclose(pipe);
    if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
    outcome.err = read(errors);
    return outcome;
  }

  // Exit code 2, one sentence on standard error that holds the facts, nothing on standard output, and no
  // files in the directory of the run.
  void expect_refused(const std::string& arguments, const std::vector<std::string>& facts) const {
    SCOPED_TRACE(arguments);
    const Outcome outcome = run(arguments + " --json --out " + path("refused"));
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err.rfind("normscope: ", 0), 0u) << outcome.err;
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
    for (const std::string& fact : facts)
      EXPECT_NE(outcome.err.find(fact), std::string::npos) << fact << " is missing in: " << outcome.err;
    EXPECT_TRUE(!fs::exists(path("refused")) || fs::is_empty(path("refused")));
  }

  json result_of(const std::string& arguments) const {
    const Outcome outcome = run(arguments + " --json");
    EXPECT_EQ(outcome.code, 0) << arguments << ": " << outcome.err;
    EXPECT_EQ(outcome.err, "") << arguments;
    return outcome.code == 0 ? json::parse(outcome.out) : json();
  }

  static std::vector<std::string> verdicts(const json& set) {
    std::vector<std::string> list;
    for (const json& key : set.at("keys")) list.push_back(key.at("verdict"));
    return list;
  }

  const std::vector<double> square_ = {0, 0, 2, 0, 2, 2, 0, 2, 1, 1, 1, 0};
  const std::vector<std::string> square_verdicts_ = {"selectable", "selectable",   "selectable",
                                                     "selectable", "unselectable", "tied"};
  const TemporaryDirectory temporary_;
  const fs::path directory_ = temporary_.path();
};

TEST_F(KeysCommand, FilesThatHoldNoKeysAreRefused) {
  expect_refused("keys " + path("missing.npy"), {"missing.npy"});
  expect_refused("keys " + directory_.string(), {directory_.string(), "directory"});
  expect_refused("keys " + write("magic.npy", "this is no tensor"), {"magic.npy"});
  expect_refused("keys " + write("empty.npy", ""), {"empty.npy"});
  const std::string whole = read(write_square());
  expect_refused("keys " + write("header.npy", whole.substr(0, 40)), {"header.npy"});
  expect_refused("keys " + write("cut.npy", whole.substr(0, whole.size() - 5)), {"cut.npy"});
  expect_refused("keys " + write("object.npy", npy("|O", false, "(2, 2)", std::string(32, 'x'))),
                 {"object.npy", "object"});
  expect_refused("keys", {"FILE"});
}

TEST_F(KeysCommand, OfSeveralTensorsOneMustBeNamed) {
  const std::string member = read(write_square());
  const std::string file = write("two.npz", npz({{"first.npy", member}, {"second.npy", member}}));
  expect_refused("keys " + file, {"two.npz", "first", "second", "2 tensors", "--tensor"});
  expect_refused("keys - <" + file, {"standard input", "2 tensors", "--tensor"});
  expect_refused("keys " + write_square() + " --bias " + file, {"two.npz", "2 tensors", "--bias-tensor"});
  expect_refused("keys " + file + " --tensor third", {"two.npz", "third", "first", "second"});
  EXPECT_EQ(verdicts(result_of("keys " + file + " --tensor second")["sets"][0]), square_verdicts_);
  expect_refused("keys " + write_square() + " --tensor k", {"square.npy", "k"});
  expect_refused("keys " + write_square() + ":k", {"square.npy:k", "--tensor k"});
}

TEST_F(KeysCommand, ShapesThatAreNoKeysAreRefused) {
  expect_refused("keys " + write("none.npy", {0, 3}, {}), {"none.npy", "0 × 3"});
  expect_refused("keys " + write("flat.npy", {3, 0}, {}), {"flat.npy", "3 × 0"});
  expect_refused("keys " + write("sets.npy", {0, 3, 2}, {}), {"sets.npy", "0 × 3 × 2"});
  expect_refused("keys " + write("list.npy", {4}, {1, 2, 3, 4}), {"list.npy", "4 numbers"});
  expect_refused("keys " + write("five.npy", {1, 1, 2, 1, 2}, {1, 2, 3, 4}),
                 {"five.npy", "1 × 1 × 2 × 1 × 2"});
  expect_refused("keys " + write("scalar.npy", {}, {1}), {"scalar.npy", "single number"});
}

TEST_F(KeysCommand, NumbersThatAreNotFiniteAreNamedByPlace) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  expect_refused("keys " + write("nan.npy", {3, 2}, {1, 2, 3, nan, 5, 6}),
                 {"nan.npy", "NaN", "row 1", "column 1"});
  expect_refused("keys " + write("inf.npy", {3, 2}, {1, 2, 3, 4, -inf, 6}),
                 {"inf.npy", "infinite", "row 2", "column 0"});
  expect_refused("keys " + write("batch.npy", {2, 1, 2}, {1, 2, 3, nan}),
                 {"batch.npy", "NaN", "set 1", "row 0", "column 1"});
  expect_refused("keys " + write("half.npy", {2, 2}, {1, 2, inf, 4}, DType::float16),
                 {"half.npy", "infinite", "row 1", "column 0"});
}

TEST_F(KeysCommand, OffsetsMustFitTheKeys) {
  const std::string keys = "keys " + write_square() + " --bias ";
  expect_refused(keys + write("short.npy", {5}, {1, 2, 3, 4, 5}), {"short.npy", "5", "6 × 2"});
  expect_refused(keys + write("wide.npy", {6, 2}, square_), {"wide.npy", "6 × 2"});
  expect_refused(keys + write("nan.npy", {6}, {1, 2, std::nan(""), 4, 5, 6}),
                 {"nan.npy", "NaN", "position 2"});
  expect_refused(keys + path("missing.npy"), {"missing.npy"});
  expect_refused("keys - --bias - <" + write_square(), {"standard input"});
}

TEST_F(KeysCommand, WrongOptionsAreRefused) {
  const std::string keys = "keys " + write_square();
  expect_refused(keys + " --norm batchnorm", {"batchnorm", "layernorm"});
  expect_refused(keys + " --norm qknorm:3", {"3", "2"});
  expect_refused(keys + " --rank partial", {"--rank", "partial", "numerical", "full"});
  expect_refused(keys + " --margin none", {"--margin", "none", "exact", "bound"});
  expect_refused(keys + " --query-norm -1", {"--query-norm", "-1"});
  expect_refused(keys + " --query-norm nan", {"--query-norm", "nan"});
  expect_refused(keys + " --query-norm inf", {"--query-norm", "inf"});
  expect_refused(keys + " --query-norm much", {"--query-norm", "much"});
  expect_refused(keys + " --noise -0.5", {"--noise", "-0.5"});
  expect_refused(keys + " --noise abc", {"--noise", "abc", "finite number of at least 0"});
  expect_refused(keys + " --bias-tensor b", {"--bias-tensor", "--bias"});
  expect_refused(keys + " --norm project:1", {"project:1", "normals"});
  expect_refused(keys + " --threads -1", {"--threads", "-1"});
  expect_refused(keys + " --prefixes", {"--prefixes", "--prefix"});
  expect_refused(keys + " more.npy", {"more.npy"});
}

TEST_F(KeysCommand, NormsThatNeedNormalsAreNotOffered) {
  const Outcome wrong = run("keys " + write_square() + " --norm batchnorm"), help = run("keys --help");
  for (const std::string& text : {wrong.err, help.out}) {
    EXPECT_NE(text.find("qknorm:h"), std::string::npos) << text;
    EXPECT_EQ(text.find("project:k"), std::string::npos) << text;
    EXPECT_EQ(text.find("normals"), std::string::npos) << text;
  }
}

TEST_F(KeysCommand, FileNamesThatAreNotUtf8DoNotSpoilTheJson) {
  const std::string file = write("k\xff.npy", {6, 2}, square_), out = path("run");
  const json result = result_of("keys '" + file + "' --quiet --out " + out);
  EXPECT_EQ(verdicts(result["sets"][0]), square_verdicts_);
  EXPECT_NE(result["settings"]["file"].get<std::string>().find("k\\xff.npy"), std::string::npos);
  EXPECT_EQ(json::parse(read(out + "/config.json"))["options"]["file"], result["settings"]["file"]);
}

TEST_F(KeysCommand, ADirectionLeftOutIsSaid) {
  // Column 1 holds the last bit of float16 numbers near 100; then a spread of 1.
  std::vector<double> flat, real;
  Random random(12);
  for (std::size_t i = 0; i < 12; ++i) {
    const double x = random.normal();
    for (std::vector<double>* keys : {&flat, &real}) keys->push_back(100 + x);
    flat.push_back(i % 2 == 0 ? 100 : 100.0625);
    real.push_back(100 + random.normal());
  }
  const std::string dropped = run("keys " + write("flat.npy", {12, 2}, flat, DType::float16)).out,
                    kept = run("keys " + write("real.npy", {12, 2}, real, DType::float16)).out;
  EXPECT_NE(dropped.find("1 of 2: 1 direction left out as rounding"), std::string::npos) << dropped;
  EXPECT_NE(dropped.find("; --rank full keeps it"), std::string::npos) << dropped;
  EXPECT_NE(kept.find("2 of 2 (directions with spread"), std::string::npos) << kept;
  EXPECT_EQ(kept.find("left out"), std::string::npos) << kept;
  EXPECT_EQ(result_of("keys " + path("flat.npy"))["sets"][0]["rank"], 1);
  EXPECT_EQ(result_of("keys " + path("flat.npy") + " --rank full")["sets"][0]["rank"], 2);
  // Two keys fill one dimension of three; nothing was taken from them.
  const std::string two = run("keys " + write("two.npy", {2, 3}, {0, 0, 0, 1, 2, 3})).out;
  EXPECT_NE(two.find("1 of 3 (directions"), std::string::npos) << two;
}

TEST_F(KeysCommand, RobustFollowsTheDtypeOfTheOffsets) {
  const std::string keys = "keys " + write("line.npy", {3, 1}, {-1, 1, 0}) + " --bias ";
  const std::vector<double> offsets = {1000, 1000, 1001};  // float16 has steps of 1/2 there
  const std::string fine = write("fine.npy", {3}, offsets),
                    coarse = write("coarse.npy", {3}, {1000, 1000, 1000.5}, DType::float16);
  EXPECT_EQ(result_of(keys + fine)["sets"][0]["keys"][2]["robust"], true);
  const json key = result_of(keys + coarse)["sets"][0]["keys"][2];
  EXPECT_EQ(key["verdict"], "selectable");
  EXPECT_EQ(key["robust"], false);
}

TEST_F(KeysCommand, NamesThatWouldMoveTheCursorAreMadePrintable) {
  const Outcome outcome = run("keys \"$(printf 'a\\nb\\033[2J.npy')\"");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos);
  EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
}

TEST_F(KeysCommand, JsonHasEveryDocumentedField) {
  const json result = result_of("keys " + write_square() + " --query-norm 3 --prefix --exact --threads 2");
  for (const char* field : {"version", "commit", "seconds", "threads", "isa", "settings", "sets"})
    EXPECT_TRUE(result.contains(field)) << field;
  EXPECT_EQ(result["threads"], 2);
  EXPECT_EQ(result["settings"]["dtype"], "float64");
  ASSERT_EQ(result["sets"].size(), 1u);
  const json& set = result["sets"][0];
  EXPECT_EQ(set["n"], 6);
  EXPECT_EQ(set["d"], 2);
  EXPECT_EQ(set["rank"], 2);
  EXPECT_GT(set["rank_tolerance"], 0.0);
  EXPECT_EQ(set["counts"], (json{{"selectable", 4}, {"tied", 1}, {"unselectable", 1}}));
  EXPECT_EQ(set["robust_counts"], (json{{"selectable", 4}, {"tied", 0}, {"unselectable", 1}}));
  EXPECT_TRUE(set["exact_path"].is_number_unsigned());
  EXPECT_EQ(verdicts(set), square_verdicts_);
  for (std::size_t i = 0; i < 6; ++i) {
    const json& key = set["keys"][i];
    EXPECT_EQ(key["index"], i);
    EXPECT_TRUE(key["robust"].is_boolean());
    EXPECT_EQ(key["verified"], true);
    EXPECT_LE(key["max_weight"], key["max_weight_bound"]);
    EXPECT_TRUE(key["last_prefix"].is_number_unsigned());
    EXPECT_EQ(key.contains("margin"), key["verdict"] == "selectable");
    EXPECT_EQ(key.contains("depth"), key["verdict"] == "unselectable");
    EXPECT_EQ(key.contains("tied_with"), key["verdict"] == "tied");
    EXPECT_EQ(key.contains("witness"), key["verdict"] != "unselectable");
    EXPECT_EQ(key.contains("cover"), key["verdict"] != "selectable");
  }
  EXPECT_NEAR(set["keys"][2]["margin"], std::sqrt(2), 1e-12);
  EXPECT_EQ(set["keys"][5]["tied_with"], (json{0, 1}));
  EXPECT_EQ(set["keys"][0]["last_prefix"], 6);
  EXPECT_EQ(set["keys"][4]["last_prefix"], 0);
}

TEST_F(KeysCommand, WhatIsNotAskedForIsNotThere) {
  const json key = result_of("keys " + write_square())["sets"][0]["keys"][0];
  for (const char* field : {"max_weight", "max_weight_bound", "last_prefix", "verified"})
    EXPECT_FALSE(key.contains(field)) << field;
}

TEST_F(KeysCommand, SummaryLeavesOutTheKeys) {
  const json whole = result_of("keys " + write_square()),
             summary = result_of("keys " + write_square() + " --summary");
  EXPECT_FALSE(summary["sets"][0].contains("keys"));
  EXPECT_EQ(summary["sets"][0]["counts"], whole["sets"][0]["counts"]);
  EXPECT_EQ(summary["sets"][0]["robust_counts"], whole["sets"][0]["robust_counts"]);
}

TEST_F(KeysCommand, AKeyAloneHasNoFiniteMargin) {
  const json result = result_of("keys " + write("one.npy", {1, 3}, {1, 2, 3}));
  EXPECT_EQ(result["sets"][0]["keys"][0]["verdict"], "selectable");
  EXPECT_TRUE(result["sets"][0]["keys"][0]["margin"].is_null());
}

TEST_F(KeysCommand, ADashIsStandardInput) {
  const std::string file = write_square();
  EXPECT_EQ(result_of("keys - <" + file)["sets"], result_of("keys " + file)["sets"]);
  const std::string bias = write("bias.npy", {6}, {0, 0, 0, 0, 5, 0});
  EXPECT_EQ(result_of("keys " + file + " --bias - <" + bias)["sets"],
            result_of("keys " + file + " --bias " + bias)["sets"]);
}

TEST_F(KeysCommand, OffsetsArePartOfTheQuestion) {
  const std::string bias = write("bias.npy", {6}, {0, 0, 0, 0, 5, -1});
  const json set = result_of("keys " + write_square() + " --bias " + bias)["sets"][0];
  EXPECT_EQ(set["keys"][4]["verdict"], "selectable");
  EXPECT_EQ(set["keys"][5]["verdict"], "unselectable");
}

TEST_F(KeysCommand, ABatchGivesWhatEachSetGivesAlone) {
  Random random(1);
  std::vector<double> values(3 * 20 * 2), offsets(3 * 20);
  for (double& value : values) value = random.normal();
  for (double& value : offsets) value = random.normal();
  const std::string batch = write("batch.npy", {3, 20, 2}, values);
  const std::string bias = write("bias.npy", {3, 20}, offsets);
  const json plain = result_of("keys " + batch + " --prefix"),
             offset = result_of("keys " + batch + " --bias " + bias);
  ASSERT_EQ(plain["sets"].size(), 3u);
  for (std::size_t s = 0; s < 3; ++s) {
    const auto part = [](const std::vector<double>& all, std::size_t from, std::size_t count) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(from);
      return std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(count));
    };
    const std::string alone = write("alone.npy", {20, 2}, part(values, s * 40, 40));
    const std::string own = write("own.npy", {20}, part(offsets, s * 20, 20));
    EXPECT_EQ(result_of("keys " + alone + " --prefix")["sets"][0], plain["sets"][s]);
    EXPECT_EQ(result_of("keys " + alone + " --bias " + own)["sets"][0], offset["sets"][s]);
  }
}

TEST_F(KeysCommand, HalfPrecisionIsReadFromSafetensors) {
  std::vector<Tensor> tensors;
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32})
    tensors.push_back({name_of(dtype), dtype, {6, 2}, square_});
  write_safetensors(path("keys.safetensors"), tensors);
  double before = 1;
  for (const char* name : {"bfloat16", "float16", "float32"}) {
    const json result = result_of("keys " + path("keys.safetensors") + " --tensor " + name);
    EXPECT_EQ(result["settings"]["dtype"], name);
    EXPECT_EQ(verdicts(result["sets"][0]), square_verdicts_) << name;
    const double tolerance = result["sets"][0]["rank_tolerance"];  // follows the rounding of the dtype
    EXPECT_LT(tolerance, before) << name;
    before = tolerance;
  }
}

TEST_F(KeysCommand, OrderOfAxesAndBytesDoesNotMatter) {
  const json expected = result_of("keys " + write_square() + " --prefix")["sets"];
  for (const bool fortran : {false, true})
    for (const bool big_endian : {false, true}) {
      std::string data;
      for (std::size_t k = 0; k < 12; ++k)
        data += double_bytes(square_[fortran ? k % 6 * 2 + k / 6 : k], big_endian);
      const std::string file = write("other.npy", npy(big_endian ? ">f8" : "<f8", fortran, "(6, 2)", data));
      EXPECT_EQ(result_of("keys " + file + " --prefix")["sets"], expected) << fortran << big_endian;
    }
}

TEST_F(KeysCommand, IntegersAreKeysToo) {
  EXPECT_EQ(verdicts(result_of("keys " + write("int.npy", {6, 2}, square_, DType::int32))["sets"][0]),
            square_verdicts_);
}

TEST_F(KeysCommand, ThreadsChangeNothingButTheirNumber) {
  Random random(2);
  std::vector<double> values(400 * 4);
  for (double& value : values) value = random.normal();
  const std::string call =
      "keys " + write("keys.npy", {400, 4}, values) + " --prefix --query-norm 2 --json --threads ";
  std::set<std::string> outputs;
  for (const char* threads : {"1", "2", "8"}) {
    std::string text = run(call + threads).out;
    const std::size_t begin = text.find("\"seconds\":"), end = text.find("\"isa\":");
    ASSERT_LT(begin, end);
    ASSERT_NE(end, std::string::npos);
    EXPECT_NE(text.substr(begin, end - begin).find("\"threads\":" + std::string(threads)), std::string::npos);
    outputs.insert(text.erase(begin, end - begin));
  }
  EXPECT_EQ(outputs.size(), 1u);
}

TEST_F(KeysCommand, RowsThatANormLeavesUndefinedAreCounted) {
  // After LayerNorm of (x, y) only the sign of x − y is left; (1, 1) and (0, 0) have nothing to scale.
  const json result = result_of("keys " + write_square() + " --norm layernorm");
  EXPECT_EQ(result["settings"]["norm"], "layernorm");
  EXPECT_EQ(result["undefined_rows"], 3);
  EXPECT_EQ(verdicts(result["sets"][0]), (std::vector<std::string>{"unselectable", "tied", "unselectable",
                                                                   "selectable", "unselectable", "tied"}));
}

TEST_F(KeysCommand, FullRankTakesEveryDigitAtFaceValue) {
  // A segment with one end of three nudged off the line by less than its rounding.
  const std::string file = write("line.npy", {3, 2}, {0, 0, 1, 1 + 0x1p-23, 2, 2}, DType::float32);
  EXPECT_EQ(result_of("keys " + file)["sets"][0]["counts"]["unselectable"], 1);
  EXPECT_EQ(result_of("keys " + file)["sets"][0]["rank"], 1);
  EXPECT_EQ(result_of("keys " + file + " --rank full")["sets"][0]["counts"]["selectable"], 3);
}

TEST_F(KeysCommand, ARunIsADirectory) {
  const std::string out = path("run");
  const Outcome outcome = run("keys " + write_square() + " --json --out " + out);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(out)) names.insert(entry.path().filename().string());
  EXPECT_EQ(names, (std::set<std::string>{"config.json", "keys.svg", "report.html", "results.json"}));
  EXPECT_EQ(read(out + "/results.json"), outcome.out);
  const json config = json::parse(read(out + "/config.json"));
  EXPECT_EQ(config["program"], "normscope");
  EXPECT_EQ(config["command"], "keys");
  EXPECT_EQ(verdicts(json::parse(read(out + "/results.json"))["sets"][0]), square_verdicts_);
  EXPECT_NE(outcome.err.find("results.json"), std::string::npos);
  EXPECT_EQ(run("keys " + write_square() + " --quiet --out " + out).err,
            "");  // an earlier run is overwritten
}

TEST_F(KeysCommand, APlaceThatIsNoDirectoryIsRefused) {
  const std::string file = write("file", "x");
  fs::create_directories(path("full"));
  write("full/thesis.tex", "x");
  for (const std::string& place : {file, path("full")}) {
    const Outcome outcome = run("keys " + write_square() + " --out " + place);
    EXPECT_EQ(outcome.code, 2) << place;
    EXPECT_EQ(outcome.out, "") << place;
    EXPECT_NE(outcome.err.find(place), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(read(file), "x");
}

TEST_F(KeysCommand, LostOutputIsAFailedRun) {
  for (const std::string lost : {">/dev/full", "--json >/dev/full", ">&-", "--json >&-"}) {
    const Outcome outcome = run("keys " + write_square() + " " + lost);
    EXPECT_EQ(outcome.code, 1) << lost;
    EXPECT_EQ(outcome.err.rfind("normscope: ", 0), 0u) << lost << ": " << outcome.err;
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << lost << ": " << outcome.err;
  }
}

TEST_F(KeysCommand, TheScreenTellsCountsMarginsAndRank) {
  const Outcome outcome = run("keys " + write_square() + " --query-norm 2 --prefix --exact");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos);
  for (const char* word : {"selectable", "tied", "unselectable", "66.7 %", "smallest margins", "rank",
                           "2 of 2", "6 verified in rational arithmetic", "float64"})
    EXPECT_NE(outcome.out.find(word), std::string::npos) << word << " is missing in:\n" << outcome.out;
}

}  // namespace
}  // namespace normscope

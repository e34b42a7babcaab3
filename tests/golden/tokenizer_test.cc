// Token ids, offsets and decoded texts against the Hugging Face library, as recorded by record_tokenizers.py,
// on strings that are hard to tokenize.
#include "normscope/tokenizer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "normscope/tensor_file.h"
#include "support/paths.h"

namespace normscope {
namespace {

using nlohmann::json;

const json& files() {
  static const json all = json::parse(std::ifstream(source_path() + "/tests/golden/tokenizers.json"));
  return all;
}

const std::vector<double>& numbers(const std::string& name) {
  static const std::map<std::string, Tensor> all = [] {
    const auto file = TensorFile::open(source_path() + "/tests/golden/tokenizers.npz");
    std::map<std::string, Tensor> tensors;
    for (const TensorInfo& info : file.tensors()) tensors[info.name] = file.read(info.name);
    return tensors;
  }();
  return all.at(name).values;
}

// Strings one after the other, and their sizes.
std::vector<std::string> strings(const std::string& bytes, const std::string& sizes) {
  std::vector<std::string> result;
  auto at = numbers(bytes).begin();
  for (const double size : numbers(sizes)) {
    std::string& next = result.emplace_back();
    for (int i = 0; i < static_cast<int>(size); ++i)
      next.push_back(static_cast<char>(static_cast<unsigned char>(*at++)));
  }
  return result;
}

class RecordedTokenizer : public testing::TestWithParam<std::string> {
 protected:
  Tokenizer tokenizer() const { return Tokenizer::from_json(files().at(GetParam()).dump(), GetParam()); }
  const std::vector<double>& recorded(const char* what) const { return numbers(GetParam() + what); }
};

TEST_P(RecordedTokenizer, HasTheIdsAndOffsetsOfTheReference) {
  const Tokenizer ours = tokenizer();
  const std::vector<std::string> texts = strings("strings", "sizes");
  const auto& which = recorded(".which");
  ASSERT_GE(which.size(), 700U);
  std::size_t next = 0;
  for (std::size_t i = 0; i < which.size(); ++i) {
    const std::string& text = texts.at(static_cast<std::size_t>(which[i]));
    const auto count = static_cast<std::size_t>(recorded(".counts")[i]);
    const std::vector<Token> found = ours.encode(text);
    ASSERT_EQ(found.size(), count) << testing::PrintToString(text);
    double begin = 0;
    for (const Token& token : found) {
      begin += recorded(".begins")[next] - (1 << 15);
      ASSERT_EQ(token.id, recorded(".ids")[next]) << testing::PrintToString(text);
      ASSERT_EQ(static_cast<double>(token.begin), begin) << testing::PrintToString(text);
      ASSERT_EQ(static_cast<double>(token.end), begin + recorded(".sizes")[next])
          << testing::PrintToString(text);
      ++next;
    }
  }
  EXPECT_EQ(next, recorded(".ids").size());
}

TEST_P(RecordedTokenizer, DecodesToTheTextOfTheReference) {
  const Tokenizer ours = tokenizer();
  const std::vector<std::string> texts = strings(GetParam() + ".decoded", GetParam() + ".decoded_sizes");
  const auto& ids = recorded(".ids");
  std::size_t next = 0;
  for (std::size_t i = 0; i < recorded(".counts").size(); ++i) {
    const auto count = static_cast<std::size_t>(recorded(".counts")[i]);
    const std::vector<std::uint32_t> tokens(ids.begin() + static_cast<std::ptrdiff_t>(next),
                                            ids.begin() + static_cast<std::ptrdiff_t>(next + count));
    next += count;
    if (i % 7 != 0) continue;
    EXPECT_EQ(ours.decode(tokens), texts.at(i / 7)) << i;
  }
}

TEST_P(RecordedTokenizer, KnowsEveryTokenByItsId) {
  const Tokenizer ours = tokenizer();
  const json& vocabulary = files().at(GetParam()).at("model").at("vocab");
  std::size_t id = 0;
  for (const auto& [token, its] : vocabulary.items()) {
    const std::string& spelled = vocabulary.is_array() ? its.at(0).get_ref<const std::string&>() : token;
    const auto expected = vocabulary.is_array() ? id++ : its.get<std::size_t>();
    EXPECT_EQ(ours.token(static_cast<std::uint32_t>(expected)), spelled);
    EXPECT_EQ(ours.id(spelled), expected);
  }
  EXPECT_GE(ours.size(), vocabulary.size());
}

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const auto& [name, file] : files().items()) result.push_back(name);
  return result;
}

INSTANTIATE_TEST_SUITE_P(Recorded, RecordedTokenizer, testing::ValuesIn(names()),
                         [](const auto& named) { return named.param; });

TEST(RecordedStrings, AreMoreThanTwoThousandForEachKind) {
  for (const char* kind : {"byte_bpe", "wordpiece", "unigram"})
    EXPECT_GE(numbers(std::string(kind) + ".which").size(), 2000U) << kind;
}

}  // namespace
}  // namespace normscope

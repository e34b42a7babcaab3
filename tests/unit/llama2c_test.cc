// Files of llama2.c.
#include <bit>
#include <cmath>

#include "support/opened_checkpoint.h"
#include "support/tensor_bytes.h"

namespace normscope {
namespace {

using Ids = std::vector<std::uint32_t>;

std::vector<float> values_of(std::span<const float> row) {
  return {row.begin(), row.end()};
}

// A file of llama2.c: width 4, hidden 6, 2 layers, 2 heads, 1 of keys, 5 words, 3 positions. The float at
// place i is i.
struct TinyLlama2c {
  std::array<std::int32_t, 7> header = {4, 6, 2, 2, 1, 5, 3};
  std::size_t floats = 5 * 4 + 2 * (4 + 16 + 8 + 8 + 16 + 4 + 24 + 24 + 24) + 4 + 3 * 2;
  std::string after;

  std::string bytes() const {
    std::string out;
    for (const std::int32_t number : header) out += raw({number});
    for (std::size_t i = 0; i < floats; ++i) out += raw({static_cast<float>(i)});
    return out + after;
  }
};

const std::string kTinyTokenizer = raw<std::int32_t>({3}) + raw({0.0f}) + raw<std::int32_t>({5}) + "<unk>" +
                                   raw({0.0f}) + raw<std::int32_t>({5}) + "\n<s>\n" + raw({0.0f}) +
                                   raw<std::int32_t>({6}) + "\n</s>\n" + raw({0.0f}) +
                                   raw<std::int32_t>({1}) + " " + raw({0.0f}) + raw<std::int32_t>({1}) + "a";

TEST(Llama2cFile, HoldsMatricesLayerByLayer) {
  const TemporaryDirectory directory;
  const Checkpoint checkpoint = open_checkpoint(directory.file("stories.bin", TinyLlama2c().bytes()));
  const ModelSpec& spec = checkpoint.weights->spec();
  EXPECT_EQ(spec.block.width, 4u);
  EXPECT_EQ(spec.block.key_width(), 2u);
  EXPECT_EQ(spec.positions, 3u);
  EXPECT_TRUE(spec.block.rotary.neighbours);
  EXPECT_EQ(spec.block.norm.eps, 1e-5);
  EXPECT_TRUE(spec.tied);
  EXPECT_EQ(values_of(checkpoint.weights->embeddings(Ids{3})[0]), (std::vector<float>{12, 13, 14, 15}));
  const BlockWeights<float> layer = checkpoint.weights->layer(1);
  EXPECT_EQ(layer.attention_gain, (std::vector<float>{24, 25, 26, 27}));
  const std::size_t wq = 28 + 16, wk = 28 + 32 + 8, wv = wk - 8 + 16 + 8, wo = 28 + 32 + 16 + 16 + 16;
  EXPECT_EQ(layer.query_key_value(2, 1), static_cast<float>(wq + 1 * 4 + 2));
  EXPECT_EQ(layer.query_key_value(2, 4 + 1), static_cast<float>(wk + 1 * 4 + 2));
  EXPECT_EQ(layer.query_key_value(2, 6 + 1), static_cast<float>(wv + 1 * 4 + 2));
  EXPECT_EQ(layer.output(2, 1), static_cast<float>(wo + 1 * 4 + 2));
  const std::size_t rms_ffn = wo + 16, w1 = rms_ffn + 8 + 24, w2 = w1 + 48, w3 = w2 + 48;
  EXPECT_EQ(layer.feed_forward_gain[0], static_cast<float>(rms_ffn + 4));
  EXPECT_EQ(layer.gate(2, 5), static_cast<float>(w1 + 5 * 4 + 2));
  EXPECT_EQ(layer.down(5, 2), static_cast<float>(w2 + 2 * 6 + 5));
  EXPECT_EQ(layer.up(2, 5), static_cast<float>(w3 + 5 * 4 + 2));
  EXPECT_EQ(checkpoint.weights->final_norm().gain[0], static_cast<float>(w3 + 24));
  EXPECT_EQ(checkpoint.weights->head().output(1, 0), 4);
  expect_mentions(checkpoint.no_tokenizer, {"tokenizer.bin", "stories.bin"});
}

TEST(Llama2cFile, NegativeVocabularyMeansAClassifierOfItsOwn) {
  TinyLlama2c file;
  file.header[5] = -5;
  const std::size_t classifier = file.floats;
  file.floats += 5 * 4;
  const TemporaryDirectory directory;
  const Checkpoint checkpoint = open_checkpoint(directory.file("stories.bin", file.bytes()));
  EXPECT_FALSE(checkpoint.weights->spec().tied);
  EXPECT_EQ(checkpoint.weights->head().output(0, 0), static_cast<float>(classifier));
}

TEST(Llama2cFile, TokenizerStandsBesideItOrFollows) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("stories.bin", TinyLlama2c().bytes());
  directory.file("tokenizer.bin", kTinyTokenizer);
  EXPECT_EQ(open_checkpoint(path).tokenizer.value().size(), 5u);
  directory.file("tokenizer.bin", "xyz");
  expect_mentions(open_checkpoint(path).no_tokenizer, {"tokenizer.bin"});
  TinyLlama2c packed;
  packed.after = kTinyTokenizer;
  EXPECT_EQ(open_checkpoint(directory.file("llama2.data", packed.bytes())).tokenizer.value().size(), 5u);
  // The directory alone is enough.
  EXPECT_EQ(open_checkpoint(directory.path().string()).weights->spec().layers, 2u);
  packed.after = "what is this";
  expect_mentions(message_of([&] { open_checkpoint(directory.file("llama2.data", packed.bytes())); }),
                  {"llama2.data", "follows the weights"});
}

TEST(Llama2cFile, IsAsLongAsItsHeaderSays) {
  const TemporaryDirectory directory;
  const auto refused = [&](const std::string& bytes) {
    return message_of([&] { open_checkpoint(directory.file("model.bin", bytes)); });
  };
  const std::string whole = TinyLlama2c().bytes();
  expect_mentions(refused(whole.substr(0, whole.size() - 1)),
                  {"model.bin", std::to_string(whole.size() - 1)});
  expect_mentions(refused(whole.substr(0, 10)), {"truncated", "28"});
  TinyLlama2c huge;
  huge.header = {1 << 20, 1 << 22, 10000, 2, 1, 1 << 28, 3};
  expect_mentions(refused(huge.bytes()), {"truncated or not a llama2.c file"});
  TinyLlama2c zero;
  zero.header[2] = 0;
  expect_mentions(refused(zero.bytes()), {"layers = 0"});
  TinyLlama2c heads;
  heads.header[3] = 3;
  expect_mentions(refused(heads.bytes()), {"3 heads"});
  expect_mentions(refused("PK\x03\x04" + whole), {"pickle"});
  expect_mentions(refused(raw<std::uint32_t>({0x616b3432}) + whole), {"version 0"});
}

}  // namespace
}  // namespace normscope

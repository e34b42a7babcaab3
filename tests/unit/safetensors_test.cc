#include <gtest/gtest.h>

#include <string>

#include "normscope/tensor_file.h"
#include "support/message.h"
#include "support/temporary_directory.h"
#include "support/tensor_bytes.h"

namespace normscope {
namespace {

const std::string kTwo =
    R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[1,2],"data_offsets":[2,10]},)"
    R"("b":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}   )";

TEST(Safetensors, ReadsTensorsAndMetadata) {
  const std::string file = safetensors(kTwo, raw<std::uint16_t>({0x3f80}) + raw({2.0f, -4.0f}));
  const TensorFile opened = TensorFile::from_bytes(bytes_of(file), "input");
  ASSERT_EQ(opened.tensors().size(), 2u);
  EXPECT_EQ(opened.tensors()[0].name, "b");  // the order of the data
  EXPECT_EQ(opened.tensors()[0].dtype, DType::bfloat16);
  EXPECT_EQ(opened.metadata(), (std::map<std::string, std::string>{{"format", "pt"}}));
  EXPECT_EQ(opened.read("b").values, Values{1});
  const Tensor w = opened.read("w");
  EXPECT_EQ(w.shape, (Shape{1, 2}));
  EXPECT_EQ(w.values, (Values{2, -4}));
  expect_mentions(message_of([&] { opened.read(); }), {"2 tensors: 'b', 'w'"});
  expect_mentions(message_of([&] { opened.read("q"); }), {"no tensor 'q'", "it holds 'b', 'w'"});
}

TEST(Safetensors, ReadsEveryDType) {
  const auto value = [](const std::string& dtype, const std::string& data) {
    return read_bytes(safetensors(one(dtype, "[]", "[0," + std::to_string(data.size()) + "]"), data)).values;
  };
  EXPECT_EQ(value("F64", raw({0.1})), Values{0.1});
  EXPECT_EQ(value("F32", raw({-1.5f})), Values{-1.5});
  EXPECT_EQ(value("F16", raw<std::uint16_t>({0x0001})), Values{0x1p-24});
  EXPECT_EQ(value("BF16", raw<std::uint16_t>({0xff80})), Values{-kInfinity});
  EXPECT_EQ(value("I64", raw<std::int64_t>({-5})), Values{-5});
  EXPECT_EQ(value("I32", raw<std::int32_t>({-5})), Values{-5});
  EXPECT_EQ(value("I16", raw<std::int16_t>({-5})), Values{-5});
  EXPECT_EQ(value("I8", raw<std::int8_t>({-5})), Values{-5});
  EXPECT_EQ(value("U64", raw<std::uint64_t>({5})), Values{5});
  EXPECT_EQ(value("U32", raw<std::uint32_t>({5})), Values{5});
  EXPECT_EQ(value("U16", raw<std::uint16_t>({5})), Values{5});
  EXPECT_EQ(value("U8", raw<std::uint8_t>({255})), Values{255});
  EXPECT_EQ(value("BOOL", "\x01"), Values{1});
}

TEST(Safetensors, ReadsEmptyTensorsAndEmptyFiles) {
  EXPECT_EQ(read_bytes(safetensors(one("F32", "[0,4]", "[0,0]"), "")).shape, (Shape{0, 4}));
  expect_rejected(safetensors("{}", ""), "holds no tensors");
  EXPECT_TRUE(TensorFile::from_bytes(bytes_of(safetensors("{}", "")), "input").tensors().empty());
}

TEST(Safetensors, PassesOverDTypesItCannotRead) {
  const std::string header = R"({"a":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]},)"
                             R"("c":{"dtype":"F4","shape":[2],"data_offsets":[2,3]},)"
                             R"("b":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}})";
  const TensorFile opened = TensorFile::from_bytes(bytes_of(safetensors(header, "abcd")), "input");
  EXPECT_EQ(opened.read("b").values, Values{'d'});
  EXPECT_EQ(opened.unreadable().size(), 2u);
  expect_mentions(message_of([&] { opened.read("a"); }), {"F8_E4M3", "convert it"});
}

TEST(Safetensors, RejectsBadLengths) {
  expect_rejected(raw<std::uint64_t>({100'000'001}) + "{}", "header of 100000001 bytes");
  expect_rejected(raw<std::uint64_t>({UINT64_MAX}) + "{}", "above the limit");
  expect_rejected(raw<std::uint64_t>({50}) + "{}", "expected 58 bytes, found 10");
  expect_rejected(raw<std::uint64_t>({0}) + "{}", "does not begin with '{'");
}

TEST(Safetensors, NeedsAnObjectAtTheStart) {
  const TemporaryDirectory directory;
  const auto message = [&](const std::string& header) {
    return message_of([&] { read_tensor(directory.file("a.safetensors", safetensors(header, ""))); });
  };
  expect_mentions(message(" {}"), {"does not begin with '{'"});
  expect_mentions(message("[]"), {"does not begin with '{'"});
  expect_mentions(message_of([&] { read_tensor(directory.file("b.safetensors", "abc")); }),
                  {"expected 8 bytes, found 3"});
}

TEST(Safetensors, RejectsMalformedHeaders) {
  const auto rejected = [](const std::string& header, const std::string& fact) {
    expect_rejected(safetensors(header, "abcd"), fact);
  };
  const std::string fine = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  rejected(R"({"t":)" + fine + R"(,"t":)" + fine + "}", "'t' appears twice");
  rejected(R"({"t":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "repeated key 'dtype'");
  rejected(R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", "repeated key 'x'");
  rejected(R"({"t":{"dtype":"F32","shape":[1]}})", "lacks dtype, shape or data_offsets");
  rejected(one("Q7", "[1]", "[0,4]"), "unknown dtype 'Q7'");
  rejected(one("F32", "[1]", "[0,4,4]"), "has 3 numbers");
  rejected(one("F32", "[1]", "4"), "a number in 'data_offsets'");
  rejected(one("F32", "[-1]", "[0,4]"), "a negative number");
  rejected(one("F32", "[1.0]", "[0,4]"), "not a 64-bit whole number");
  rejected(one("F32", "[18446744073709551616]", "[0,4]"), "not a 64-bit whole number");
  rejected(one("F32", "[[1]]", "[0,4]"), "an array");
  rejected(one("F32", "\"1\"", "[0,4]"), "a string in 'shape'");
  rejected(one("F32", "null", "[0,4]"), "null");
  rejected(R"({"t":true})", "where an object is expected");
  rejected(R"({"t":{"dtype":{},"shape":[1],"data_offsets":[0,4]}})", "an object in 'dtype'");
  rejected(R"({"__metadata__":{"a":1},"t":)" + fine + "}", "only strings");
  rejected(R"({"__metadata__":{"a":{}},"t":)" + fine + "}", "only strings");
  rejected(R"({"__metadata__":{"a":"1","a":"2"},"t":)" + fine + "}", "twice in __metadata__");
  rejected(R"({"__metadata__":"a","t":)" + fine + "}", "where an object is expected");
  rejected(R"({"t":)" + fine, "not valid JSON");
  rejected(R"({"t":)" + fine + "} x", "not valid JSON");
  rejected("{\"\xff\":" + fine + "}", "not valid JSON");
  rejected("{" + std::string(100000, '['), "not valid JSON");
}

TEST(Safetensors, RejectsOffsetsThatDoNotFit) {
  expect_rejected(safetensors(one("F32", "[2]", "[0,4]"), "abcd"), "takes 8 bytes");
  expect_rejected(safetensors(one("F32", "[1]", "[4,0]"), "abcd"), "data_offsets [4, 0]");
  expect_rejected(safetensors(one("F4", "[1]", "[0,1]"), "a"), "takes 4 bits");
  expect_rejected(safetensors(one("F32", "[4294967296,4294967296]", "[0,0]"), ""), "overflows");
  expect_rejected(safetensors(one("F32", "[0,9223372036854775808,2]", "[0,0]"), ""), "overflows");
  expect_rejected(safetensors(one("F32", "[1]", "[4,8]"), "abcdefgh"), "hole before tensor 't'");
  const std::string header = one("F32", "[2]", "[0,8]");
  const std::string full = std::to_string(8 + header.size() + 8);
  expect_rejected(safetensors(header, "abcd"), "expected " + full + " bytes");
  expect_rejected(safetensors(one("F32", "[1]", "[0,4]"), "abcdefgh"),
                  "4 bytes of data that belong to no tensor");
  expect_rejected(safetensors(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
                              R"("b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
                              "abcd"),
                  "overlap at tensor 'b'");
  expect_rejected(safetensors(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                              R"("b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
                              "abcd"),
                  "hole before tensor 'b'");
  expect_rejected(safetensors(one("U8", "[18446744073709551615]", "[0,18446744073709551615]"), "abcd"),
                  "overflows");
}

TEST(Safetensors, KeepsTheMemoryLimit) {
  const std::string file = safetensors(one("U8", "[4]", "[0,4]"), "abcd");
  expect_mentions(message_of([&] { read_bytes(file, "t", {.max_bytes = 31}); }), {"31 bytes", "tensor 't'"});
}

// A terabyte of holes lists at once: only the header is read.
TEST(Safetensors, ListsAHugeFileWithoutReadingIt) {
  const TemporaryDirectory directory;
  const std::uint64_t size = std::uint64_t{1} << 40;
  const std::string header = one("U8", "[" + std::to_string(size) + "]", "[0," + std::to_string(size) + "]");
  const std::string path = directory.file("huge.safetensors", safetensors(header, ""));
  if (::truncate(path.c_str(), static_cast<off_t>(8 + header.size() + size)) != 0)
    GTEST_SKIP() << "the file system has no sparse files of this size";
  EXPECT_EQ(list_tensors(path).at(0).shape, Shape{size});
  expect_mentions(message_of([&] { read_tensor(path); }), {"17179869184 bytes allowed"});
}

}  // namespace
}  // namespace normscope

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>

#include "normscope/tensor_file.h"
#include "support/message.h"
#include "support/temporary_directory.h"
#include "support/tensor_bytes.h"

namespace normscope {
namespace {

// The bytes numpy.save(…, np.array([[1, 2], [3, 4]], '<f4')) writes.
TEST(Npy, ReadsWhatNumpyWrites) {
  std::string file("\x93NUMPY\x01\x00\x76\x00", 10);
  file += "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }";
  file.resize(127, ' ');
  file += '\n';
  file += std::string("\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x40\x40\x00\x00\x80\x40", 16);
  const Tensor tensor = read_bytes(file);
  EXPECT_EQ(tensor.name, "");
  EXPECT_EQ(tensor.dtype, DType::float32);
  EXPECT_EQ(tensor.shape, (Shape{2, 2}));
  EXPECT_EQ(tensor.values, (Values{1, 2, 3, 4}));

  const TemporaryDirectory directory;
  write_npy(directory.file("a.npy"), tensor);
  EXPECT_EQ(content_of(directory.file("a.npy")), file);
}

TEST(Npy, ReadsVersionsOneToThree) {
  for (const int version : {1, 2, 3})
    EXPECT_EQ(read_bytes(npy_of("<f8", "(2,)", raw({1.5, -2.5}), false, version)).values,
              (Values{1.5, -2.5}));
}

TEST(Npy, ReadsBothByteOrders) {
  using enum std::endian;
  for (const std::endian order : {little, big}) {
    const std::string mark = order == big ? ">" : "<";
    EXPECT_EQ(read_bytes(npy_of(mark + "f2", "(2,)", raw<std::uint16_t>({0x3c00, 0xc100}, order))).values,
              (Values{1, -2.5}));
    EXPECT_EQ(read_bytes(npy_of(mark + "f4", "(2,)", raw({1.5f, -0x1p-149f}, order))).values,
              (Values{1.5, -0x1p-149}));
    EXPECT_EQ(read_bytes(npy_of(mark + "f8", "(2,)", raw({0.1, -1e300}, order))).values,
              (Values{0.1, -1e300}));
    EXPECT_EQ(read_bytes(npy_of(mark + "i2", "(2,)", raw<std::int16_t>({-2, 258}, order))).values,
              (Values{-2, 258}));
    EXPECT_EQ(read_bytes(npy_of(mark + "u2", "(1,)", raw<std::uint16_t>({65534}, order))).values,
              (Values{65534}));
    EXPECT_EQ(read_bytes(npy_of(mark + "i4", "(2,)", raw<std::int32_t>({-70000, 1}, order))).values,
              (Values{-70000, 1}));
    EXPECT_EQ(read_bytes(npy_of(mark + "u4", "(1,)", raw<std::uint32_t>({4294967295u}, order))).values,
              (Values{4294967295.0}));
    EXPECT_EQ(read_bytes(npy_of(mark + "i8", "(1,)", raw<std::int64_t>({-(1LL << 53)}, order))).values,
              (Values{-0x1p53}));
    EXPECT_EQ(read_bytes(npy_of(mark + "u8", "(1,)", raw<std::uint64_t>({1ULL << 63}, order))).values,
              (Values{0x1p63}));
  }
}

TEST(Npy, ReadsOneByteTypes) {
  EXPECT_EQ(read_bytes(npy_of("|i1", "(2,)", "\xff\x7f")).values, (Values{-1, 127}));
  EXPECT_EQ(read_bytes(npy_of("|u1", "(2,)", "\xff\x7f")).values, (Values{255, 127}));
  const Tensor flags = read_bytes(npy_of("|b1", "(2,)", std::string("\x00\x01", 2)));
  EXPECT_EQ(flags.dtype, DType::boolean);
  EXPECT_EQ(flags.values, (Values{0, 1}));
  expect_rejected(npy_of("|b1", "(2,)", "\x01\x02"), "byte 2 (element 1)");
}

TEST(Npy, ReadsEveryFloat16) {
  const Values got = read_bytes(npy_of("<f2", "(9,)",
                                       raw<std::uint16_t>({0x0001, 0x03ff, 0x0400, 0x7bff, 0x8000, 0x8001,
                                                           0x7c00, 0xfc00, 0x7e00})))
                         .values;
  EXPECT_EQ(Values(got.begin(), got.begin() + 8),
            (Values{0x1p-24, 1023 * 0x1p-24, 0x1p-14, 65504, -0.0, -0x1p-24, kInfinity, -kInfinity}));
  EXPECT_TRUE(std::signbit(got[4]));
  EXPECT_TRUE(std::isnan(got[8]));
}

// Every one of the 65536 bit patterns survives reading and writing, NaN as NaN.
TEST(Npy, SixteenBitFloatsRoundTrip) {
  const TemporaryDirectory directory;
  std::string data;
  for (std::uint32_t bits = 0; bits < 65536; ++bits)
    data += raw<std::uint16_t>({static_cast<std::uint16_t>(bits)});
  for (const char* descr : {"<f2", "<V2"}) {
    const Tensor tensor = read_bytes(npy_of(descr, "(65536,)", data));
    write_npy(directory.file("a.npy"), tensor);
    const std::string written = content_of(directory.file("a.npy"));
    const std::string back = written.substr(written.size() - data.size());
    for (std::size_t i = 0; i < 65536; ++i) {
      if (std::isnan(tensor.values[i])) continue;
      ASSERT_EQ(back.substr(2 * i, 2), data.substr(2 * i, 2)) << descr << i;
    }
    const Tensor again = read_tensor(directory.file("a.npy"));
    for (std::size_t i = 0; i < 65536; ++i)
      ASSERT_EQ(std::isnan(again.values[i]), std::isnan(tensor.values[i])) << descr << i;
  }
}

TEST(Npy, ReadsTwoByteRecordsAsBfloat16) {
  for (const char* descr : {"<V2", "|V2"}) {
    const Tensor tensor = read_bytes(npy_of(descr, "(3,)", raw<std::uint16_t>({0x3f80, 0xc040, 0x0001})));
    EXPECT_EQ(tensor.dtype, DType::bfloat16);
    EXPECT_EQ(tensor.values, (Values{1, -3, 0x1p-133}));
  }
  expect_rejected(npy_of(">V2", "(1,)", "ab"), "'>V2' is not");
  expect_rejected(npy_of("|V3", "(1,)", "abc"), "raw records");
}

TEST(Npy, TurnsFortranOrderIntoRows) {
  // Rows (1 2 3), (4 5 6), stored column by column.
  const Tensor matrix = read_bytes(npy_of("|i1", "(2, 3)", "\x01\x04\x02\x05\x03\x06", true));
  EXPECT_EQ(matrix.shape, (Shape{2, 3}));
  EXPECT_EQ(matrix.values, (Values{1, 2, 3, 4, 5, 6}));

  // a[i][j][k] = 100i + 10j + k, shape (2, 3, 2), first index fastest.
  std::string data;
  Values expected;
  for (int k = 0; k < 2; ++k)
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 2; ++i) data += static_cast<char>(100 * i + 10 * j + k);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 2; ++k) expected.push_back(100 * i + 10 * j + k);
  EXPECT_EQ(read_bytes(npy_of("|u1", "(2, 3, 2)", data, true)).values, expected);
  EXPECT_EQ(read_bytes(npy_of("|u1", "(12,)", data, true)).values.front(), 0);
}

// More elements than one chunk, so that the walk continues across chunks.
TEST(Npy, FortranOrderSpansChunks) {
  const std::size_t rows = 300, cols = 701;
  std::string data;
  for (std::size_t j = 0; j < cols; ++j)
    for (std::size_t i = 0; i < rows; ++i)
      data += raw<std::uint32_t>({static_cast<std::uint32_t>(i * cols + j)});
  const Tensor tensor = read_bytes(npy_of("<u4", "(300, 701)", data, true));
  for (std::size_t i = 0; i < rows * cols; ++i) ASSERT_EQ(tensor.values[i], static_cast<double>(i));
}

TEST(Npy, ReadsScalarsAndEmptyArrays) {
  const Tensor scalar = read_bytes(npy_of("<f8", "()", raw({7.0})));
  EXPECT_EQ(scalar.shape, Shape{});
  EXPECT_EQ(scalar.values, Values{7});
  for (const bool fortran : {false, true}) {
    const Tensor empty = read_bytes(npy_of("<f8", "(0, 5)", "", fortran));
    EXPECT_EQ(empty.shape, (Shape{0, 5}));
    EXPECT_TRUE(empty.values.empty());
  }
}

TEST(Npy, AcceptsWhatPythonWouldWrite) {
  EXPECT_EQ(
      read_bytes(npy("{\"shape\":(2L,),'fortran_order' : False,'descr':\"<f4\"}", raw({1.0f, 2.0f}))).values,
      (Values{1, 2}));
}

TEST(Npy, RejectsIntegersThatNoDoubleEquals) {
  expect_rejected(npy_of("<i8", "(2,)", raw<std::int64_t>({1, (1LL << 53) + 1})),
                  "9007199254740993 (element 1)");
  expect_rejected(npy_of("<i8", "(1,)", raw<std::int64_t>({std::numeric_limits<std::int64_t>::max()})),
                  "9223372036854775807");
  expect_rejected(npy_of("<u8", "(1,)", raw<std::uint64_t>({UINT64_MAX})), "18446744073709551615");
  EXPECT_EQ(
      read_bytes(npy_of("<i8", "(1,)", raw<std::int64_t>({std::numeric_limits<std::int64_t>::min()}))).values,
      (Values{-0x1p63}));
}

TEST(Npy, NamesWhatItDoesNotRead) {
  expect_rejected(npy_of("|O", "(1,)", "pickle"), "Python objects");
  expect_rejected(npy_of("<c16", "(1,)", std::string(16, 'x')), "complex");
  expect_rejected(npy_of("<U3", "(1,)", std::string(12, 'x')), "strings");
  expect_rejected(npy_of("|S3", "(1,)", "abc"), "strings");
  expect_rejected(npy_of("<M8[ns]", "(1,)", "12345678"), "dates");
  expect_rejected(npy_of("<f16", "(1,)", std::string(16, 'x')), "wider than 64 bits");
  expect_rejected(npy_of("|f4", "(1,)", "abcd"), "without a byte order");
  expect_rejected(npy_of("f4", "(1,)", "abcd"), "without a byte order");
  expect_rejected(npy_of("", "(1,)", "abcd"), "unknown dtype");
  expect_rejected(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "abcd"),
                  "structured");
  expect_rejected(npy("{'descr': ('<f4', (2,)), 'fortran_order': False, 'shape': (1,), }", "12345678"),
                  "structured");
}

TEST(Npy, RejectsMalformedHeaders) {
  expect_rejected(npy_of("<f4", "(1,)", "abcd", false, 4), "version 4.0");
  std::string minor = npy_of("<f4", "(1,)", "abcd");
  minor[7] = 1;
  expect_rejected(minor, "version 1.1");
  expect_rejected(npy("", ""), "'{' expected");
  expect_rejected(npy("{'descr': '<f4', 'shape': (1,)}", "abcd"), "missing");
  expect_rejected(npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", "abcd"),
                  "repeated key 'descr'");
  expect_rejected(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (), 'more': 1}", "abcd"),
                  "unknown or repeated key 'more'");
  expect_rejected(npy("{'descr': '<f4', 'fortran_order': 0, 'shape': ()}", "abcd"), "True or False");
  expect_rejected(npy("{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", "abcd"),
                  "after the closing");
  expect_rejected(npy("{'descr': '<f4", "abcd"), "does not end");
  expect_rejected(npy("{descr: '<f4'}", "abcd"), "quoted string expected");
  expect_rejected(npy_of("<f4", "(1)", "abcd"), "needs a comma");
  expect_rejected(npy_of("<f4", "(-1,)", "abcd"), "0 or more");
  expect_rejected(npy_of("<f4", "(1 1)", "abcd"), "',' expected");
  expect_rejected(npy_of("<f4", "[1]", "abcd"), "'(' expected");
  expect_rejected(npy_of("<f4", "(,)", "abcd"), "0 or more");
  expect_rejected(npy_of("<f4", "(18446744073709551616,)", "abcd"), "64 bits");
  expect_rejected(npy(std::string(70000, ' '), "", 2), "header of 70000 bytes");
}

TEST(Npy, RejectsSizesThatDoNotFit) {
  expect_rejected(npy_of("<f8", "(4294967296, 4294967296)", "abcd"), "overflows");
  expect_rejected(npy_of("<f8", "(2305843009213693952,)", "abcd"), "overflows");
  expect_rejected(npy_of("<f8", "(0, 9223372036854775808, 4)", ""), "overflows");
  const std::string whole = npy_of("<f4", "(2, 2)", raw({1.0f, 2.0f, 3.0f, 4.0f}));
  const std::string expected = "expected " + std::to_string(whole.size()) + " bytes, found ";
  expect_rejected(whole.substr(0, whole.size() - 1), expected + std::to_string(whole.size() - 1));
  expect_rejected(whole.substr(0, 20), "found 20");
  expect_rejected(whole.substr(0, 9), "expected 10 bytes, found 9");
  expect_rejected(whole.substr(0, 7), "expected 8 bytes, found 7");
  expect_rejected(whole + "x", "goes on after its array");
  expect_rejected(npy_of("<f8", "(1000000000000,)", "abcd"), "truncated");
}

TEST(Npy, HasNoNames) {
  const std::string file = npy_of("<f4", "()", "abcd");
  expect_mentions(message_of([&] { read_bytes(file, "keys"); }), {"'keys'", "leave the name out"});
}

TEST(Npy, KeepsTheMemoryLimit) {
  const std::string file = npy_of("|u1", "(5,)", "abcde");
  EXPECT_EQ(read_bytes(file, std::nullopt, {.max_bytes = 40}).values.size(), 5u);
  expect_mentions(message_of([&] { read_bytes(file, std::nullopt, {.max_bytes = 39}); }),
                  {"(5,)", "39 bytes"});
}

}  // namespace
}  // namespace normscope

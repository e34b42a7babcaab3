#include "normscope/tensor_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <thread>

#include "normscope/error.h"
#include "support/temporary_directory.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;
using Shape = std::vector<std::size_t>;
using Values = std::vector<double>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

template <class T>
std::string raw(std::initializer_list<T> values, std::endian order = std::endian::little) {
  std::string out;
  for (const T value : values) {
    auto one = std::bit_cast<std::array<char, sizeof(T)>>(value);
    if (order != std::endian::native) std::reverse(one.begin(), one.end());
    out.append(one.begin(), one.end());
  }
  return out;
}

// A .npy file by hand: the dict as given, no padding (readers must not rely on it).
std::string npy(const std::string& dict, const std::string& data, int version = 1) {
  std::string out = "\x93NUMPY";
  out += static_cast<char>(version);
  out += '\0';
  const int length_bytes = version == 1 ? 2 : 4;
  for (int i = 0; i < length_bytes; ++i) out += static_cast<char>(dict.size() >> (8 * i) & 0xff);
  return out + dict + data;
}

std::string npy_of(const std::string& descr, const std::string& shape, const std::string& data,
                   bool fortran = false, int version = 1) {
  return npy("{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
                 ", 'shape': " + shape + ", }\n",
             data, version);
}

std::string safetensors(const std::string& header, const std::string& data) {
  return raw<std::uint64_t>({header.size()}) + header + data;
}

Tensor read_bytes(const std::string& file, const std::optional<std::string>& name = std::nullopt,
                  const ReadLimits& limits = {}) {
  return TensorFile::from_bytes(bytes_of(file), "input", limits).read(name);
}

template <class Thrown = InputError>
std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Thrown& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

void expect_rejected(const std::string& file, const std::string& fact) {
  const std::string message = message_of([&] { read_bytes(file); });
  EXPECT_NE(message.find(fact), std::string::npos) << message;
  EXPECT_NE(message.find("'input'"), std::string::npos) << message;
  EXPECT_NE(message.find("; "), std::string::npos) << "no advice: " << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

void expect_mentions(const std::string& message, std::initializer_list<const char*> facts) {
  for (const char* fact : facts)
    EXPECT_NE(message.find(fact), std::string::npos) << fact << " in: " << message;
}

using Directory = TemporaryDirectory;

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Root may read and write everything; permissions only mean something to somebody else.
class AsNobody {
 public:
  AsNobody() : root_(::geteuid() == 0) {
    if (root_ && ::seteuid(65534) != 0) std::abort();
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;
  ~AsNobody() {
    if (root_ && ::seteuid(0) != 0) std::abort();
  }

 private:
  bool root_;
};

// ---- dtypes

TEST(DTypes, UnitRoundoffIsTwoToMinusTheSignificantBits) {
  EXPECT_EQ(unit_roundoff(DType::float16), 0x1p-11);
  EXPECT_EQ(unit_roundoff(DType::bfloat16), 0x1p-8);
  EXPECT_EQ(unit_roundoff(DType::float32), std::numeric_limits<float>::epsilon() / 2);
  EXPECT_EQ(unit_roundoff(DType::float64), std::numeric_limits<double>::epsilon() / 2);
  EXPECT_EQ(unit_roundoff(DType::int64), 0x1p-53);
}

// Halfway between two neighbours is the worst case: 1 + u must round, and 1 + 2u must not.
TEST(DTypes, UnitRoundoffIsWhatWritingLoses) {
  const Directory directory;
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32}) {
    const double u = unit_roundoff(dtype);
    write_npy(directory.file("a.npy"), {"", dtype, {3}, {1 + u, 1 + 2 * u, 1 + 1.5 * u}});
    EXPECT_EQ(read_tensor(directory.file("a.npy")).values, (Values{1, 1 + 2 * u, 1 + 2 * u}))
        << name_of(dtype);
  }
}

TEST(DTypes, HaveNamesAndSizes) {
  EXPECT_STREQ(name_of(DType::bfloat16), "bfloat16");
  EXPECT_STREQ(name_of(DType::boolean), "bool");
  EXPECT_EQ(size_of(DType::bfloat16), 2u);
  EXPECT_EQ(size_of(DType::uint64), 8u);
  EXPECT_EQ(size_of(DType::boolean), 1u);
}

// ---- .npy

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

  const Directory directory;
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
  const Directory directory;
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

// ---- .npz

struct ZipEntry {
  std::string name, content;
  bool deflated = false;
  bool encrypted = false;
};

// Archives come from libzip itself; what it would not write is patched into the bytes afterwards.
std::string zip_of(const std::vector<ZipEntry>& entries) {
  const Directory directory;
  const std::string path = directory.file("a.zip");
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE, nullptr);
  for (const ZipEntry& entry : entries) {
    zip_source_t* source = zip_source_buffer(archive, entry.content.data(), entry.content.size(), 0);
    const auto index = static_cast<zip_uint64_t>(zip_file_add(archive, entry.name.c_str(), source, 0));
    EXPECT_EQ(zip_set_file_compression(archive, index, entry.deflated ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0), 0);
    if (entry.encrypted) {
      EXPECT_EQ(zip_file_set_encryption(archive, index, ZIP_EM_AES_128, "secret"), 0);
    }
  }
  EXPECT_EQ(zip_close(archive), 0);
  return content_of(path);
}

// Overwrites `value` at `offset` in every header of the given signature.
std::string patched(std::string file, const std::string& signature, std::size_t offset,
                    const std::string& value) {
  for (std::size_t at = file.find(signature); at != std::string::npos; at = file.find(signature, at + 4))
    file.replace(at + offset, value.size(), value);
  return file;
}
const std::string kLocal = "PK\x03\x04", kCentral = "PK\x01\x02";

std::string replace_all(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

const std::string kSmall = npy_of("<f4", "(2,)", raw({1.0f, 2.0f}));

// An archive with one stored member, x.npy = uint8 [7], every byte by hand.
TEST(Npz, ReadsAnArchiveWrittenByHand) {
  const std::string member = npy("{'descr':'|u1','fortran_order':False,'shape':(1,)}", "\x07");
  ASSERT_EQ(member.size(), 61u);
  std::uint32_t crc = 0xffffffff;
  for (const char c : member) {
    crc ^= static_cast<unsigned char>(c);
    for (int k = 0; k < 8; ++k) crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
  }
  const std::string common = std::string("\x14\x00\x00\x00\x00\x00\x00\x00\x21\x00", 10) +
                             raw<std::uint32_t>({~crc, 61, 61}) + raw<std::uint16_t>({5, 0});
  const std::string local = kLocal + common + "x.npy" + member;
  const std::string central = kCentral + raw<std::uint16_t>({20}) + common + std::string(14, '\0') + "x.npy";
  const std::string end = "PK\x05\x06" + raw<std::uint16_t>({0, 0, 1, 1}) +
                          raw<std::uint32_t>({static_cast<std::uint32_t>(central.size()),
                                              static_cast<std::uint32_t>(local.size())}) +
                          raw<std::uint16_t>({0});
  const Tensor tensor = read_bytes(local + central + end);
  EXPECT_EQ(tensor.name, "x");
  EXPECT_EQ(tensor.values, Values{7});
}

TEST(Npz, ReadsStoredAndDeflatedMembers) {
  const std::string zeros = npy_of("<f8", "(1000, 30)", std::string(240000, '\0'));
  const std::string file =
      zip_of({{"keys.npy", kSmall}, {"layer/0.npy", zeros, true}, {"readme.txt", "hello"}});
  EXPECT_LT(file.size(), 10000u);
  const TensorFile opened = TensorFile::from_bytes(bytes_of(file), "input");
  ASSERT_EQ(opened.tensors().size(), 2u);
  EXPECT_EQ(opened.tensors()[0].name, "keys");
  EXPECT_EQ(opened.tensors()[1].name, "layer/0");
  EXPECT_EQ(opened.tensors()[1].shape, (Shape{1000, 30}));
  EXPECT_EQ(opened.read("layer/0").values, Values(30000));
  EXPECT_EQ(opened.read("keys").values, (Values{1, 2}));
  EXPECT_EQ(opened.read("keys").values, (Values{1, 2}));
}

TEST(Npz, ReadsItsOnlyMemberWithoutAName) {
  EXPECT_EQ(read_bytes(zip_of({{"keys.npy", kSmall}})).name, "keys");
  expect_rejected(zip_of({{"a.npy", kSmall}, {"b.npy", kSmall}}),
                  "holds 2 tensors: 'a', 'b'; name one of them");
}

TEST(Npz, ListsTwentyNamesAtMost) {
  std::vector<ZipEntry> entries;
  for (int i = 10; i < 35; ++i) entries.push_back({"t" + std::to_string(i) + ".npy", kSmall});
  const std::string message = message_of([&] { read_bytes(zip_of(entries), "t99"); });
  expect_mentions(message, {"no tensor 't99'", "'t10'", "'t29' and 5 more"});
  EXPECT_EQ(message.find("'t30'"), std::string::npos) << message;
}

TEST(Npz, PassesOverMembersItCannotRead) {
  const std::string file = zip_of({{"labels.npy", npy_of("<U1", "(1,)", "abcd")}, {"keys.npy", kSmall}});
  const TensorFile opened = TensorFile::from_bytes(bytes_of(file), "input");
  EXPECT_EQ(opened.tensors().size(), 1u);
  ASSERT_EQ(opened.unreadable().size(), 1u);
  EXPECT_EQ(opened.unreadable()[0].name, "labels");
  EXPECT_EQ(opened.read("keys").values, (Values{1, 2}));
  expect_mentions(message_of([&] { opened.read("labels"); }), {"member 'labels'", "strings"});
  expect_mentions(message_of([&] { opened.read(); }), {"2 tensors", "'labels'"});
}

TEST(Npz, RejectsArchivesWithoutArrays) {
  expect_rejected(zip_of({{"readme.txt", "hello"}}), "without .npy members (it holds 'readme.txt')");
  expect_rejected(zip_of({{"archive/data.pkl", "hello"}}), "PyTorch checkpoint");
  expect_rejected(std::string("PK\x05\x06", 4) + std::string(18, '\0'), "without members");
}

TEST(Npz, RejectsBadMembers) {
  expect_rejected(zip_of({{"a.npy", "not an array"}}), "does not begin with \\x93NUMPY");
  expect_rejected(zip_of({{"a.npy", kSmall + "x"}}), "goes on after its array");
  expect_rejected(zip_of({{"a.npy", kSmall.substr(0, kSmall.size() - 1)}}), "truncated");
  expect_rejected(zip_of({{"a.npy", npy_of("<f8", "(1000000000000,)", "")}}), "truncated");
  expect_rejected(zip_of({{"a.npy", kSmall, false, true}}), "encrypted");
  expect_rejected(replace_all(zip_of({{"a.npy", kSmall}, {"b.npy", kSmall}}), "b.npy", "a.npy"), "twice");
  // Method 12 is bzip2.
  const std::string method = raw<std::uint16_t>({12});
  expect_rejected(
      patched(patched(zip_of({{"a.npy", kSmall, true}}), kLocal, 8, method), kCentral, 10, method),
      "compression method 12");
}

TEST(Npz, RejectsDamage) {
  const std::string file = zip_of({{"a.npy", kSmall}});
  expect_rejected(file.substr(0, file.size() - 10), "truncated zip archive");
  expect_rejected(file.substr(0, 40), "truncated zip archive");
  std::string flipped = file;
  flipped[file.find("NUMPY") + kSmall.size() - 3] ^= 1;  // in the data: only the checksum can tell
  expect_rejected(flipped, "damaged");
  std::string deflated = zip_of({{"a.npy", npy_of("|u1", "(5000,)", std::string(5000, 'a')), true}});
  deflated[deflated.size() / 2 - 40] ^= 0x55;
  expect_rejected(deflated, "damaged");
}

// A member that declares 8 GB in a few hundred bytes is turned away before anything is allocated.
TEST(Npz, RejectsDeclaredSizesThatCannotBe) {
  const std::string header = npy_of("<f8", "(500000000,)", "");
  const std::string size = raw<std::uint32_t>({static_cast<std::uint32_t>(header.size() + 4000000000u)});
  for (const bool deflated : {false, true}) {
    const std::string file = zip_of({{"a.npy", header + std::string(2000, '\0'), deflated}});
    expect_rejected(patched(patched(file, kLocal, 22, size), kCentral, 24, size), "cannot hold");
  }
}

// Within what deflate could do, but not what the stream holds.
TEST(Npz, RejectsMembersShorterThanDeclared) {
  const std::string header = npy_of("|u1", "(9000,)", "");
  const std::string size = raw<std::uint32_t>({static_cast<std::uint32_t>(header.size() + 9000)});
  const std::string file = zip_of({{"a.npy", header + std::string(8000, '\0'), true}});
  const std::string message =
      message_of([&] { read_bytes(patched(patched(file, kLocal, 22, size), kCentral, 24, size)); });
  expect_mentions(message, {"'a'"});
}

TEST(Npz, KeepsTheMemoryLimit) {
  const std::string file = zip_of({{"a.npy", npy_of("|u1", "(100000,)", std::string(100000, '\0')), true}});
  expect_mentions(message_of([&] { read_bytes(file, "a", {.max_bytes = 1000}); }),
                  {"(100000,)", "1000 bytes"});
}

// ---- .safetensors

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

std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"t":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
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
  const Directory directory;
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
  expect_rejected(safetensors(one("F32", "[2]", "[0,4]"), "abcd"), "takes 64 bits");
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
  const Directory directory;
  const std::uint64_t size = std::uint64_t{1} << 40;
  const std::string header = one("U8", "[" + std::to_string(size) + "]", "[0," + std::to_string(size) + "]");
  const std::string path = directory.file("huge.safetensors", safetensors(header, ""));
  if (::truncate(path.c_str(), static_cast<off_t>(8 + header.size() + size)) != 0)
    GTEST_SKIP() << "the file system has no sparse files of this size";
  EXPECT_EQ(list_tensors(path).at(0).shape, Shape{size});
  expect_mentions(message_of([&] { read_tensor(path); }), {"17179869184 bytes allowed"});
}

// ---- paths, streams and formats

TEST(TensorFiles, TellTheFormatByItsBytes) {
  const Directory directory;
  EXPECT_EQ(read_tensor(directory.file("a.safetensors", kSmall)).values, (Values{1, 2}));
  EXPECT_EQ(read_tensor(directory.file("b.npy", zip_of({{"k.npy", kSmall}}))).name, "k");
  EXPECT_EQ(read_tensor(directory.file("c", safetensors(one("U8", "[1]", "[0,1]"), "x"))).name, "t");
}

TEST(TensorFiles, NameWhatIsNotATensorFile) {
  expect_rejected("", "is empty (0 bytes)");
  expect_rejected("hello, world", "begins with the bytes 68 65 6c 6c 6f 2c 20 77");
  expect_rejected("\x93NUM", "begins with the bytes 93 4e 55 4d");
  expect_rejected("version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer");
  expect_rejected(std::string("\x80\x02}q\x00.", 6), "Python pickle");
  expect_rejected("\x1f\x8b\x08", "gzip");
  expect_rejected("GGUF\x03", "GGUF");
  expect_rejected("\x89HDF\r\n", "HDF5");
}

TEST(TensorFiles, NameWhatIsWrongWithAPath) {
  const Directory directory;
  const auto message = [](const std::string& path) { return message_of([&] { read_tensor(path); }); };
  expect_mentions(message(directory.file("none.npy")), {"none.npy'", "does not exist", "check the path"});
  expect_mentions(message(directory.path().string()), {"is a directory"});
  expect_mentions(message(directory.file("a.npy", kSmall) + "/b"), {"could not be opened"});
  expect_mentions(message(std::string("a\0b", 3)), {"'a\\x00b'", "zero byte"});
  const std::string secret = directory.file("secret.npy", kSmall);
  fs::permissions(secret, fs::perms::none);
  const AsNobody nobody;
  expect_mentions(message(secret), {"secret.npy'", "permission denied"});
}

TEST(TensorFiles, EscapeControlCharactersInNames) {
  const std::string message =
      message_of([] { read_tensor("/nowhere/\x1b[31m\n\x7f\xc2\x9b\xff\xed\xa0\x80 schlüssel 键"); });
  expect_mentions(message, {"\\x1b[31m\\x0a\\x7f\\xc2\\x9b\\xff\\xed\\xa0\\x80 schlüssel 键'"});
  const std::string named =
      safetensors(R"({"a\u001b]0;x\u0007":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                  R"("b":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
                  "x");
  expect_rejected(named, "'a\\x1b]0;x\\x07'");
}

// Standard input and pipes at a path, which cannot seek.
TEST(TensorFiles, ComeFromStandardInput) {
  const int saved = ::dup(STDIN_FILENO);
  const auto with_input = [&](const std::string& file, const std::function<void()>& call) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    std::thread writer([&] {
      for (const char c : file.substr(0, 3)) EXPECT_EQ(::write(ends[1], &c, 1), 1);
      const std::string rest = file.size() > 3 ? file.substr(3) : "";
      EXPECT_EQ(::write(ends[1], rest.data(), rest.size()), static_cast<ssize_t>(rest.size()));
      ::close(ends[1]);
    });
    ::dup2(ends[0], STDIN_FILENO);
    call();
    writer.join();
    ::dup2(saved, STDIN_FILENO);
    ::close(ends[0]);
  };
  with_input(kSmall, [] { EXPECT_EQ(read_tensor("-").values, (Values{1, 2})); });
  with_input(zip_of({{"k.npy", kSmall, true}}), [] {
    EXPECT_EQ(read_tensor("-", "k").values, (Values{1, 2}));
  });
  with_input(safetensors(one("U8", "[1]", "[0,1]"), "x"), [] { EXPECT_EQ(read_tensor("-").name, "t"); });
  with_input(kSmall, [] { EXPECT_EQ(read_tensor("/dev/stdin").values, (Values{1, 2})); });
  with_input("", [] { expect_mentions(message_of([] { read_tensor("-"); }), {"standard input is empty"}); });
  with_input(kSmall.substr(0, 70), [] {
    expect_mentions(message_of([] { read_tensor("-"); }), {"standard input is truncated", "found 70"});
  });
  with_input(kSmall, [] {
    expect_mentions(message_of([] { read_tensor("-", std::nullopt, {.max_bytes = 16}); }),
                    {"more than 16 bytes"});
  });
  ::close(saved);
}

TEST(TensorFiles, ThatShrinkWhileOpenAreTruncated) {
  const Directory directory;
  for (const std::string& file :
       {npy_of("|u1", "(100000,)", std::string(100000, 'x')),
        safetensors(one("U8", "[100000]", "[0,100000]"), std::string(100000, 'x')),
        zip_of({{"k.npy", npy_of("|u1", "(100000,)", std::string(100000, 'x'))}})}) {
    const std::string path = directory.file("a", file);
    const TensorFile opened = TensorFile::open(path);
    fs::resize_file(path, 50000);
    EXPECT_NE(message_of([&] { opened.read(); }), "");
  }
}

// ---- writing

TEST(WriteNpy, RoundTripsEveryDType) {
  const Directory directory;
  const std::string path = directory.file("a.npy");
  const auto round_trip = [&](DType dtype, const Values& values) {
    write_npy(path, {"", dtype, {values.size(), 1}, values});
    const Tensor tensor = read_tensor(path);
    EXPECT_EQ(tensor.dtype, dtype);
    EXPECT_EQ(tensor.shape, (Shape{values.size(), 1}));
    EXPECT_EQ(tensor.values, values) << name_of(dtype);
  };
  round_trip(DType::float64, {0.1, -0.0, 5e-324, 1.7976931348623157e308, kInfinity});
  round_trip(DType::float32, {0.5, 0x1p-149, 0x1.fffffep127, -kInfinity});
  round_trip(DType::float16, {0.5, 0x1p-24, 65504});
  round_trip(DType::bfloat16, {0.5, 0x1p-133, 0x1.fep127});
  round_trip(DType::int8, {-128, 127});
  round_trip(DType::int16, {-32768, 32767});
  round_trip(DType::int32, {-2147483648.0, 2147483647.0});
  round_trip(DType::int64, {-0x1p63, 0x1p62});
  round_trip(DType::uint8, {0, 255});
  round_trip(DType::uint16, {0, 65535});
  round_trip(DType::uint32, {0, 4294967295.0});
  round_trip(DType::uint64, {0, 0x1p63});
  round_trip(DType::boolean, {0, 1});
  round_trip(DType::float64, {});
}

TEST(WriteNpy, RoundTripsShapes) {
  const Directory directory;
  const std::string path = directory.file("a.npy");
  for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 3, 4}, Shape{0, 7}, Shape{200000}, Shape(32, 1)}) {
    std::size_t count = 1;
    for (const std::size_t extent : shape) count *= extent;
    Values values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<double>(i) / 3;
    write_npy(path, {"", DType::float64, shape, values});
    EXPECT_EQ(fs::file_size(path) % 64, count * 8 % 64);
    EXPECT_EQ(read_tensor(path).shape, shape);
    EXPECT_EQ(read_tensor(path).values, values);
  }
}

TEST(WriteNpy, RoundsToNearestEven) {
  const Directory directory;
  const std::string path = directory.file("a.npy");
  // Between 1 and 1 + 2^-10; a float in between would round the second down.
  write_npy(path, {"", DType::float16, {4}, {1 + 0x1p-11, 1 + 0x1p-11 + 0x1p-50, 0x1p-25, 0x1.8p-25}});
  EXPECT_EQ(read_tensor(path).values, (Values{1, 1 + 0x1p-10, 0, 0x1p-24}));
}

TEST(WriteNpy, RejectsWhatTheDTypeCannotHold) {
  const Directory directory;
  const auto rejected = [&](DType dtype, double value) {
    expect_mentions(message_of([&] {
                      write_npy(directory.file("a.npy"), {"", dtype, {2}, {0, value}});
                    }),
                    {"a.npy'", "(element 1)", name_of(dtype)});
  };
  rejected(DType::float16, 65520);
  rejected(DType::bfloat16, 0x1.ffp127);
  rejected(DType::bfloat16, -1e300);
  rejected(DType::float32, 0x1.ffffffp127);
  rejected(DType::int8, 128);
  rejected(DType::int8, 0.5);
  rejected(DType::int64, 0x1p63);
  rejected(DType::uint64, -1);
  rejected(DType::uint8, std::nan(""));
  rejected(DType::boolean, 2);
  EXPECT_EQ(directory.entries(), 0u);
}

TEST(WriteNpy, RejectsShapesThatDoNotFit) {
  const Directory directory;
  expect_mentions(message_of([&] {
                    write_npy(directory.file("a.npy"), {"", DType::float32, {2, 2}, {1, 2}});
                  }),
                  {"(2, 2)", "2 values"});
  expect_mentions(message_of([&] {
                    write_npy(directory.file("a.npy"), {"", DType::float32, Shape(33, 1), {1}});
                  }),
                  {"33 dimensions"});
}

TEST(WriteSafetensors, RoundTripsTensorsAndMetadata) {
  const Directory directory;
  const std::string path = directory.file("a.safetensors");
  const std::vector<Tensor> tensors = {{"flags \"quoted\"\n", DType::boolean, {3}, {1, 0, 1}},
                                       {"w", DType::bfloat16, {2, 1}, {0.5, -2}},
                                       {"ключ", DType::float64, {}, {0.1}},
                                       {"empty", DType::float32, {0, 2}, {}}};
  const std::map<std::string, std::string> metadata = {{"seed", "1"}, {"a\tb", "\"x\""}};
  write_safetensors(path, tensors, metadata);
  const TensorFile opened = TensorFile::open(path);
  EXPECT_EQ(opened.metadata(), metadata);
  ASSERT_EQ(opened.tensors().size(), 4u);
  EXPECT_EQ(opened.tensors()[0].name, "ключ");  // widest first, so that all are aligned
  for (const Tensor& tensor : tensors) {
    const Tensor back = opened.read(tensor.name);
    EXPECT_EQ(back.dtype, tensor.dtype);
    EXPECT_EQ(back.shape, tensor.shape);
    EXPECT_EQ(back.values, tensor.values);
  }
  write_safetensors(path, {});
  EXPECT_EQ(content_of(path), safetensors("{}      ", ""));
}

TEST(WriteSafetensors, RejectsBadNames) {
  const Directory directory;
  const auto message = [&](const std::vector<Tensor>& tensors) {
    return message_of([&] { write_safetensors(directory.file("a"), tensors); });
  };
  const Tensor a{"a", DType::float32, {}, {1}};
  expect_mentions(message({a, a}), {"two tensors named 'a'"});
  expect_mentions(message({{"__metadata__", DType::float32, {}, {1}}}), {"__metadata__"});
  expect_mentions(message({{"\xff", DType::float32, {}, {1}}}), {"'\\xff'", "UTF-8"});
  expect_mentions(message({{"a", DType::float32, {2}, {1}}}), {"tensor 'a'", "1 values"});
  EXPECT_EQ(directory.entries(), 0u);
}

}  // namespace
}  // namespace normscope

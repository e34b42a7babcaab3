// Tensor files whatever their format: dtypes, paths and streams, and writing.
#include "normscope/tensor_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "support/message.h"
#include "support/temporary_directory.h"
#include "support/tensor_bytes.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;
TEST(DTypes, UnitRoundoffIsTwoToMinusTheSignificantBits) {
  EXPECT_EQ(unit_roundoff(DType::float16), 0x1p-11);
  EXPECT_EQ(unit_roundoff(DType::bfloat16), 0x1p-8);
  EXPECT_EQ(unit_roundoff(DType::float32), std::numeric_limits<float>::epsilon() / 2);
  EXPECT_EQ(unit_roundoff(DType::float64), std::numeric_limits<double>::epsilon() / 2);
  EXPECT_EQ(unit_roundoff(DType::int64), 0x1p-53);
}

// Halfway between two neighbours is the worst case: 1 + u must round, and 1 + 2u must not.
TEST(DTypes, UnitRoundoffIsWhatWritingLoses) {
  const TemporaryDirectory directory;
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

TEST(TensorFiles, TellTheFormatByItsBytes) {
  const TemporaryDirectory directory;
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
  const TemporaryDirectory directory;
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
  const TemporaryDirectory directory;
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

TEST(WriteNpy, RoundTripsEveryDType) {
  const TemporaryDirectory directory;
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
  const TemporaryDirectory directory;
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
  const TemporaryDirectory directory;
  const std::string path = directory.file("a.npy");
  // Between 1 and 1 + 2^-10; a float in between would round the second down.
  write_npy(path, {"", DType::float16, {4}, {1 + 0x1p-11, 1 + 0x1p-11 + 0x1p-50, 0x1p-25, 0x1.8p-25}});
  EXPECT_EQ(read_tensor(path).values, (Values{1, 1 + 0x1p-10, 0, 0x1p-24}));
}

TEST(WriteNpy, RejectsWhatTheDTypeCannotHold) {
  const TemporaryDirectory directory;
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
  const TemporaryDirectory directory;
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
  const TemporaryDirectory directory;
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
  write_safetensors(path, std::span<const Tensor>());
  EXPECT_EQ(content_of(path), safetensors("{}      ", ""));
}

TEST(WriteSafetensors, RejectsBadNames) {
  const TemporaryDirectory directory;
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

// Every 16-bit float there is.
TEST(ReadRows, HalfPrecisionBecomesTheSameFloatAsByWayOfDouble) {
  for (const std::string dtype : {"F16", "BF16"}) {
    std::string data;
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) data += raw({static_cast<std::uint16_t>(bits)});
    const TensorFile file =
        TensorFile::from_bytes(bytes_of(safetensors(one(dtype, "[256,256]", "[0,131072]"), data)), "input");
    const Values expected = file.read().values;
    std::vector<float> rows(expected.size());
    file.read_rows(0, 0, rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (std::isnan(expected[i])) {
        EXPECT_TRUE(std::isnan(rows[i])) << dtype << " " << i;
      } else {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(rows[i]),
                  std::bit_cast<std::uint32_t>(static_cast<float>(expected[i])))
            << dtype << " " << i;
      }
    }
  }
}

TEST(ReadRows, GivesTheRowsAskedForInEveryFormatAndDType) {
  const TemporaryDirectory directory;
  for (const DType dtype : {DType::float16, DType::float32, DType::float64, DType::int32}) {
    const Tensor tensor{"t", dtype, {4, 1, 2}, {0, 1, 2, 3, 4, 5, 6, 7}};
    write_safetensors(directory.file("a.safetensors"), std::vector<Tensor>{{"s", dtype, {}, {9}}, tensor});
    write_npy(directory.file("a.npy"), tensor);
    for (const char* name : {"a.safetensors", "a.npy"}) {
      const TensorFile file = TensorFile::open(directory.file(name));
      std::size_t place = 0;
      while (file.tensors()[place].shape.empty()) ++place;
      std::vector<float> rows(4);
      file.read_rows(place, 2, rows);
      EXPECT_EQ(rows, (std::vector<float>{4, 5, 6, 7})) << name << " " << name_of(dtype);
      file.read_rows(place, 4, {});
    }
  }
}

TEST(ReadRows, RejectsRowsThatAreNotThere) {
  const TensorFile file = TensorFile::from_bytes(
      bytes_of(safetensors(one("F32", "[2,2]", "[0,16]"), std::string(16, '\0'))), "input");
  std::vector<float> two(2), three(3), four(4);
  expect_mentions(message_of([&] { file.read_rows(0, 2, two); }), {"'t'", "2 rows", "row 2"});
  expect_mentions(message_of([&] { file.read_rows(0, 1, four); }), {"2 rows"});
  expect_mentions(message_of([&] { file.read_rows(0, SIZE_MAX, two); }), {"2 rows"});
  expect_mentions(message_of([&] { file.read_rows(0, 0, three); }), {"rows of 2"});
  expect_mentions(message_of([&] { file.read_rows(1, 0, two); }), {"1 tensors"});
}

TEST(ReadRows, RoundsToFloatAndBeyondItsRangeToInfinity) {
  const TensorFile file =
      TensorFile::from_bytes(bytes_of(safetensors(one("F64", "[2]", "[0,16]"), raw({0.1, 1e300}))), "input");
  std::vector<float> values(2);
  file.read_rows(0, 0, values);
  EXPECT_EQ(values, (std::vector<float>{0.1f, std::numeric_limits<float>::infinity()}));
}

}  // namespace
}  // namespace normscope

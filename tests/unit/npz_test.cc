#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "normscope/tensor_file.h"
#include "support/message.h"
#include "support/tensor_bytes.h"

namespace normscope {
namespace {

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

}  // namespace
}  // namespace normscope

// Texts that are compressed, and files that are none.
#include "io/text_bytes.h"

#include <gtest/gtest.h>

#include "normscope/corpus.h"
#include "normscope/labelled_text.h"
#include "support/compressed.h"
#include "support/message.h"
#include "support/temporary_directory.h"

namespace normscope {
namespace {

constexpr std::uint64_t kMost = 1 << 20;

std::string text_of(const std::string& path, std::uint64_t most = kMost) {
  const io::TextBytes opened = io::open_text(path, most);
  std::string text(opened.bytes->size(), '\0');
  opened.bytes->read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

TEST(CompressedText, IsUnpackedWhateverItsName) {
  const TemporaryDirectory directory;
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "Line " + std::to_string(i * i) + "\n";
  EXPECT_EQ(text_of(directory.file("plain", text)), text);
  for (const int filter : {ARCHIVE_FILTER_GZIP, ARCHIVE_FILTER_XZ, ARCHIVE_FILTER_ZSTD}) {
    const std::string path = directory.file("packed", compressed(text, filter));
    EXPECT_EQ(text_of(path), text) << filter;
    EXPECT_TRUE(io::open_text(path, kMost).unpacked);
    EXPECT_EQ(text_of(directory.file("empty", compressed("", filter))), "") << filter;
  }
  EXPECT_EQ(text_of(directory.file("empty", "")), "");
}

TEST(CompressedText, MayNotBeDamagedNorLargerThanIsRead) {
  const TemporaryDirectory directory;
  const std::string text(300'000, 'a');
  for (const int filter : {ARCHIVE_FILTER_GZIP, ARCHIVE_FILTER_XZ, ARCHIVE_FILTER_ZSTD}) {
    std::string packed = compressed(text, filter);
    const std::string path = directory.file("packed", packed);
    EXPECT_EQ(text_of(path, text.size()), text);
    expect_mentions(message_of([&] { text_of(path, text.size() - 1); }), {"packed", "299999 bytes"});
    expect_mentions(message_of([&] { text_of(directory.file("cut", packed.substr(0, packed.size() / 2))); }),
                    {"cut", "damaged or truncated"});
    expect_mentions(message_of([&] { text_of(directory.file("stump", packed.substr(0, 6))); }),
                    {"stump", "damaged or truncated"});
  }
  std::string changed = compressed("some text, and more of it", ARCHIVE_FILTER_XZ);
  changed[changed.size() / 2] ^= 0x55;
  expect_mentions(message_of([&] { text_of(directory.file("changed", changed)); }), {"damaged"});
}

TEST(BinaryFiles, AreNamedAsWhatTheyAre) {
  const TemporaryDirectory directory;
  for (const auto& [bytes, name] :
       std::vector<std::pair<std::string, std::string>>{{"%PDF-1.7\n", "a PDF"},
                                                        {"PK\x03\x04rest", ".zip"},
                                                        {"\x93NUMPY\x01", ".npy"},
                                                        {"\x7f"
                                                         "ELF\x02",
                                                         "a program"},
                                                        {std::string(257, 'x') + "ustar  ", ".tar"}}) {
    const std::string path = directory.file("given", bytes);
    expect_mentions(message_of([&] { text_of(path); }), {"given", name, "not text"});
    const std::string packed = compressed(bytes, ARCHIVE_FILTER_GZIP);
    expect_mentions(message_of([&] { text_of(directory.file("given.gz", packed)); }), {"holds", name});
  }
  expect_mentions(message_of([&] { text_of(directory.file("wide.txt", "\xFF\xFEh")); }),
                  {"wide.txt", "UTF-16", "iconv"});
}

TEST(CompressedText, IsReadByCorporaAndTables) {
  const TemporaryDirectory directory;
  const std::vector<std::string> paths = {
      directory.file("a.txt.xz", compressed("Once upon a time.\n", ARCHIVE_FILTER_XZ)),
      directory.file("b.txt", "The end.\n")};
  const auto corpus = text_corpus(paths);
  EXPECT_EQ(corpus->passage(0).text + corpus->passage(1).text, "Once upon a time.\nThe end.\n");
  const std::string table = "label\tsentence\n0\tbad\n1\tgood, very\n";
  const LabelledTexts texts =
      read_labelled(directory.file("a.tsv.zst", compressed(table, ARCHIVE_FILTER_ZSTD)), {}, nullptr);
  ASSERT_EQ(texts.rows.size(), 2u);
  EXPECT_EQ(texts.rows[1].text, "good, very");
}

}  // namespace
}  // namespace normscope

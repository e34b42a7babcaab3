// Texts of which only the beginning is read.
#include <gtest/gtest.h>

#include <filesystem>

#include "normscope/error.h"
#include "study/model_text.h"
#include "support/temporary_directory.h"

namespace normscope {
namespace {

TEST(TextStart, OfAFileOfAnySizeIsCutAtTheEndOfALine) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("text", "one line\nanother\nand a third");
  const auto start = [&](std::uint64_t bytes) { return read_text_start(path, "--text", bytes); };
  EXPECT_EQ(start(20).text, "one line\nanother\n");
  EXPECT_FALSE(start(20).whole);
  EXPECT_EQ(start(5).text, "one l");
  EXPECT_EQ(start(28).text, "one line\nanother\nand a third");
  EXPECT_TRUE(start(28).whole);
  EXPECT_TRUE(start(1000).whole);
  // More than read_text_file takes: a file with a hole.
  std::filesystem::resize_file(path, std::uintmax_t{1} << 33);
  EXPECT_EQ(start(20).text, "one line\nanother\n");
  EXPECT_THROW(read_text_file(path, "--text"), InputError);
}

TEST(TextStart, OfADirectoryOrOfNothingIsRefused) {
  const TemporaryDirectory directory;
  const std::string file = directory.file("text", "one line\n"),
                    folder = std::filesystem::path(file).parent_path().string();
  EXPECT_THROW(read_text_start(folder, "--text", 20), InputError);
  EXPECT_THROW(read_text_start(file + "-not-there", "--text", 20), InputError);
}

}  // namespace
}  // namespace normscope

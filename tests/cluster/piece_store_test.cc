// Finished pieces in files: what was kept is found again, and nothing that was damaged is believed.
#include "record/piece_store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/temporary_directory.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;

class PieceStoreTest : public ::testing::Test {
 protected:
  void keep(std::size_t first, std::size_t last, std::uint64_t fingerprint = 7) const {
    PieceStore store(run(), fingerprint);
    store.set_plan("{}");
    for (std::size_t piece = first; piece < last; ++piece) store.add("work", piece, result(piece));
    store.flush();
  }
  static std::string result(std::size_t piece) {
    return "result " + std::to_string(piece) + std::string(3, '\0');
  }
  fs::path run() const { return fs::path(folder_.path()) / "run"; }
  std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    for (const auto& entry : fs::directory_iterator(run() / kPiecesFolder))
      if (entry.path().extension() == ".pieces") all.push_back(entry.path());
    std::sort(all.begin(), all.end());
    return all;
  }
  static std::string read(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  static void write(const fs::path& file, const std::string& bytes) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  }

  TemporaryDirectory folder_;
};

TEST_F(PieceStoreTest, FindsWhatAnEarlierRunKept) {
  keep(0, 3);
  keep(3, 5);
  PieceStore store(run(), 7);
  EXPECT_EQ(store.found(), 5u);
  EXPECT_EQ(store.damage(), "");
  EXPECT_EQ(store.take("work", 4), result(4));
  EXPECT_EQ(store.take("other work", 3), std::nullopt);
  EXPECT_EQ(store.take("work", 5), std::nullopt);
  EXPECT_EQ(plan_of_unfinished_run(run()), "{}");
}

TEST_F(PieceStoreTest, OfAnotherPlanAreLeftAlone) {
  keep(0, 3, 7);
  EXPECT_EQ(PieceStore(run(), 8).found(), 0u);
  EXPECT_EQ(PieceStore(run(), 7).found(), 3u);
}

TEST_F(PieceStoreTest, EveryFlippedBitAndEveryCutIsSeen) {
  keep(0, 2);
  keep(2, 3);
  const fs::path file = files().front();
  const std::string bytes = read(file);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string changed = bytes;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    write(file, changed);
    PieceStore store(run(), 7);
    ASSERT_EQ(store.found(), 1u) << "bit " << bit;
    ASSERT_NE(store.damage().find("1 file of finished pieces"), std::string::npos) << store.damage();
    ASSERT_FALSE(fs::exists(file)) << "a damaged file is in nobody's way";
  }
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    write(file, bytes.substr(0, size));
    ASSERT_EQ(PieceStore(run(), 7).found(), 1u) << size;
  }
}

TEST_F(PieceStoreTest, FollowsNoLinksAndRemovesOnlyItsOwn) {
  keep(0, 1);
  const fs::path elsewhere = fs::path(folder_.path()) / "elsewhere";
  fs::rename(files().front(), elsewhere);
  fs::create_symlink(elsewhere, run() / kPiecesFolder / "0000000000000007-000003.pieces");
  write(run() / kPiecesFolder / "notes.txt", "mine");
  EXPECT_EQ(PieceStore(run(), 7).found(), 0u);
  EXPECT_TRUE(fs::exists(elsewhere));
  remove_pieces(run());
  EXPECT_EQ(read(run() / kPiecesFolder / "notes.txt"), "mine");
  EXPECT_EQ(plan_of_unfinished_run(run()), std::nullopt);
}

}  // namespace
}  // namespace normscope

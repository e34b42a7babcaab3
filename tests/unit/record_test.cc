#include "normscope/record.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>

#include "io/replace_file.h"
#include "normscope/error.h"
#include "record/json.h"
#include "support/temporary_directory.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;

class Record : public ::testing::Test {
 protected:
  static std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void put(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  static std::size_t entries(const fs::path& path) {
    return static_cast<std::size_t>(
        std::count_if(fs::directory_iterator(path), fs::directory_iterator(), [](const auto& entry) {
          return entry.path().filename() != ".normscope-lock";
        }));  // of a run that lives
  }

  const TemporaryDirectory temporary_;
  const fs::path directory_ = temporary_.path();
};

TEST_F(Record, WritesEveryByteAndLeavesNothingElse) {
  const std::string bytes("a\0b\nc", 5);
  write_file_atomically(directory_ / "f", bytes);
  EXPECT_EQ(read(directory_ / "f"), bytes);
  write_file_atomically(directory_ / "f", "");
  EXPECT_EQ(read(directory_ / "f"), "");
  EXPECT_EQ(entries(directory_), 1u);
}

TEST_F(Record, AReaderKeepsTheOldBytesWhileTheNewOnesAppear) {
  put(directory_ / "f", "old");
  std::ifstream reader(directory_ / "f");
  write_file_atomically(directory_ / "f", "new and longer");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(reader), {}), "old");
  EXPECT_EQ(read(directory_ / "f"), "new and longer");
}

TEST_F(Record, AFailedWriteThrowsAndLeavesNoTemporary) {
  fs::create_directories(directory_ / "f");
  EXPECT_THROW(write_file_atomically(directory_ / "f", "x"), InputError);
  EXPECT_THROW(write_file_atomically(directory_ / "missing" / "f", "x"), InputError);
  EXPECT_THROW(write_file_atomically("", "x"), InputError);
  EXPECT_EQ(entries(directory_), 1u);
}

TEST_F(Record, WritesThroughDevicesInsteadOfReplacingThem) {
  write_file_atomically("/dev/null", "x");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_THROW(write_file_atomically("/dev/full", "x"), Error);
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(Record, APlaceIsRefusedBeforeTheWork) {
  EXPECT_NO_THROW(require_place_for_file(directory_ / "f"));
  EXPECT_NO_THROW(require_place_for_file("/dev/null"));
  EXPECT_THROW(require_place_for_file(directory_), InputError);
  EXPECT_THROW(require_place_for_file(directory_ / "missing" / "f"), InputError);
  EXPECT_THROW(require_place_for_file(""), InputError);
}

TEST_F(Record, ARunSaysWhatMadeIt) {
  const RunDirectory run(directory_ / "a" / "b");
  run.write_config("heatmap", provenance(7, 2), R"({"draws": 3})");
  const auto config = nlohmann::json::parse(read(directory_ / "a" / "b" / "config.json"));
  EXPECT_EQ(config["program"], "normscope");
  EXPECT_EQ(config["command"], "heatmap");
  EXPECT_EQ(config["seed"], 7);
  EXPECT_EQ(config["threads"], 2);
  EXPECT_EQ(config["options"]["draws"], 3);
  for (const char* key : {"version", "commit", "isa"})
    EXPECT_FALSE(config[key].get<std::string>().empty()) << key;
}

TEST_F(Record, AnEarlierRunIsOverwrittenFileByFile) {
  const RunDirectory first(directory_ / "run");
  first.write_config("heatmap", provenance(1, 1), "{}");
  first.write("results.json", "first");
  first.write("other.csv", "kept");
  const RunDirectory second(directory_ / "run");
  second.write_config("heatmap", provenance(2, 1), "{}");
  second.write("results.json", "second");
  EXPECT_EQ(read(directory_ / "run" / "results.json"), "second");
  EXPECT_EQ(read(directory_ / "run" / "other.csv"), "kept");
}

TEST_F(Record, AStrangersDirectoryIsRefused) {
  put(directory_ / "thesis.tex", "x");
  EXPECT_THROW(RunDirectory{directory_}, InputError);
  for (const std::string config :
       {"{}", "[]", "{", "\"normscope\"", R"({"program": ["normscope"]})", "\xff\xfe"}) {
    put(directory_ / "config.json", config);
    EXPECT_THROW(RunDirectory{directory_}, InputError) << config;
  }
  put(directory_ / "config.json", std::string(100'000, '['));
  EXPECT_THROW(RunDirectory{directory_}, InputError);
}

TEST_F(Record, AFileIsNotADirectory) {
  put(directory_ / "f", "x");
  EXPECT_THROW(RunDirectory{directory_ / "f"}, InputError);
  EXPECT_THROW(RunDirectory{directory_ / "f" / "g"}, InputError);
  EXPECT_THROW(RunDirectory{""}, InputError);
}

TEST_F(Record, WhatAKilledRunLeftDoesNotBlockTheNext) {
  put(directory_ / ".normscope-1-0.tmp", "half");
  EXPECT_NO_THROW(RunDirectory{directory_});
}

TEST_F(Record, WhatAKilledRunLeftIsRemovedByTheNext) {
  const RunDirectory run(directory_ / "run");
  run.write_config("heatmap", provenance(1, 1), "{}");
  const fs::path stale = run.path() / ".normscope-123-4.tmp";
  put(stale, "half");
  const RunDirectory next(run.path());
  EXPECT_TRUE(fs::exists(stale)) << "opening a directory changes nothing in it";
  next.write_config("heatmap", provenance(1, 1), "{}");
  EXPECT_FALSE(fs::exists(stale));
  put(stale, "half");
  next.remove_leftovers();
  EXPECT_EQ(entries(run.path()), 1u);
}

TEST_F(Record, OnlyOurStaleTemporariesAreRemoved) {
  const RunDirectory run(directory_ / "run");
  for (const char* name :
       {".normscope-1.tmp", ".normscope-1-.tmp", ".normscope-1-2", ".normscope-a-1.tmp", "normscope-1-2.tmp",
        ".normscope-.tmp", ".normscope.tmp", ".normscope-1-2-3.tmp", ".normscope-1-2.tmp.tmp", "other.tmp"})
    put(run.path() / name, "x");
  fs::create_directory(run.path() / ".normscope-1-1.tmp");
  put(directory_ / "outside", "x");
  fs::create_symlink(directory_ / "outside", run.path() / ".normscope-1-2.tmp");
  ASSERT_EQ(::mkfifo((run.path() / ".normscope-1-3.tmp").c_str(), 0666), 0);
  // One that is being written, by another process as far as the lock can tell.
  put(run.path() / ".normscope-1-4.tmp", "half");
  const int writer = ::open((run.path() / ".normscope-1-4.tmp").c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(writer, LOCK_EX), 0);
  const std::size_t before = entries(run.path());
  run.remove_leftovers();
  EXPECT_EQ(entries(run.path()), before);
  EXPECT_EQ(read(directory_ / "outside"), "x");
  ::close(writer);
  run.remove_leftovers();
  EXPECT_EQ(entries(run.path()), before - 1);
}

TEST_F(Record, AFileBeingWrittenIsNoLeftover) {
  const RunDirectory run(directory_ / "run");
  const std::string target = (run.path() / "f").string();
  io::replace_file(target, [&](const io::Append& append) {
    append(std::as_bytes(std::span("half", 4)));
    run.remove_leftovers();
    append(std::as_bytes(std::span(" whole", 6)));
  });
  EXPECT_EQ(read(target), "half whole");
  EXPECT_EQ(entries(run.path()), 1u);
}

TEST_F(Record, NamesStayInsideTheDirectory) {
  const RunDirectory run(directory_ / "run");
  for (const char* name : {"", ".", "..", "../f", "a/b", "/tmp/f"})
    EXPECT_THROW(run.write(name, "x"), Error) << name;
  fs::create_symlink(directory_ / "outside", directory_ / "run" / "results.json");
  run.write("results.json", "x");
  EXPECT_FALSE(fs::exists(directory_ / "outside"));
  EXPECT_EQ(read(directory_ / "run" / "results.json"), "x");
}

TEST_F(Record, BytesThatAreNotUtf8DoNotThrow) {
  const RunDirectory run(directory_ / "run");
  run.write_config("\xff", {"1.2.3", "commit", "isa", 4, 5}, R"({"list": [1, {"deep": []}], "word": "a"})");
  EXPECT_EQ(read(directory_ / "run" / "config.json"), R"({
  "program": "normscope",
  "command": "�",
  "version": "1.2.3",
  "commit": "commit",
  "isa": "isa",
  "seed": 4,
  "threads": 5,
  "options": {
    "list": [
      1,
      {
        "deep": []
      }
    ],
    "word": "a"
  }
}
)");
}

}  // namespace
}  // namespace normscope

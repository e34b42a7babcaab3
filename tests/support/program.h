#pragma once
// The program, run in a temporary folder of a test: its output, its exit code, its death.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "support/paths.h"

namespace normscope {

struct Outcome {
  int code = -1;  // -1: ended by a signal
  std::string out, err;
};

class ProgramTest : public ::testing::Test {
 protected:
  using Files = std::map<std::string, std::string>;

  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              ("normscope-" + std::to_string(::getpid()) + "-" + test->test_suite_name() + test->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  static std::string read(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  static void write(const std::filesystem::path& file, const std::string& bytes) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << bytes;
  }
  static nlohmann::json read_json(const std::filesystem::path& file) {
    return nlohmann::json::parse(read(file));
  }

  // Every file below a directory, with its bytes.
  static Files files_of(const std::filesystem::path& directory) {
    Files files;
    if (!std::filesystem::is_directory(directory)) return files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
      if (entry.is_regular_file())
        files[std::filesystem::relative(entry.path(), directory).string()] = read(entry.path());
    }
    return files;
  }

  // arguments: as a shell would take them. limit: of the size of a file, in blocks of `ulimit -f`; 0: none.
  // out: where standard output goes, if not into the outcome.
  pid_t start(const std::string& arguments, int limit = 0, const std::string& out = "") const {
    const std::string command = (limit > 0 ? "ulimit -f " + std::to_string(limit) + "; " : "") + "exec \"" +
                                program_path() + "\" " + arguments + " >" +
                                (out.empty() ? path(".out") : out) + " 2>" + path(".err");
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(127);
    }
    return child;
  }

  Outcome wait(pid_t child) const {
    int status = 0;
    ::waitpid(child, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read(path(".out")), read(path(".err"))};
  }

  Outcome run(const std::string& arguments, int limit = 0, const std::string& out = "") const {
    return wait(start(arguments, limit, out));
  }

  Outcome run_killed(const std::string& arguments, std::chrono::milliseconds after) const {
    const pid_t child = start(arguments);
    std::this_thread::sleep_for(after);
    ::kill(child, SIGKILL);
    return wait(child);
  }

  nlohmann::json result_of(const std::string& arguments) const {
    const Outcome outcome = run(arguments + " --json --quiet");
    EXPECT_EQ(outcome.code, 0) << arguments << ": " << outcome.err;
    EXPECT_EQ(outcome.err, "") << arguments;
    return outcome.code == 0 ? nlohmann::json::parse(outcome.out) : nlohmann::json();
  }

  // The exit code, one sentence on standard error that holds the facts, nothing on standard output, and no
  // file changed or added.
  void expect_refused(const std::string& arguments, const std::vector<std::string>& facts) const {
    SCOPED_TRACE(arguments);
    const Files before = files();
    const Outcome outcome = run(arguments);
    expect_sentence(outcome, 2, facts);
    EXPECT_TRUE(files() == before) << "files were changed";
  }

  static void expect_sentence(const Outcome& outcome, int code, const std::vector<std::string>& facts) {
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err.rfind("normscope: ", 0), 0u) << outcome.err;
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
    for (const std::string& fact : facts)
      EXPECT_NE(outcome.err.find(fact), std::string::npos) << fact << " is missing in: " << outcome.err;
  }

  std::filesystem::path folder_;

 private:
  Files files() const {
    Files all = files_of(folder_);
    all.erase(".out");
    all.erase(".err");
    return all;
  }
};

}  // namespace normscope

// What the program draws on a terminal: nothing wider than it.
#include <fcntl.h>
#include <sys/ioctl.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <sstream>

#include "normscope/tensor_file.h"
#include "support/program.h"

namespace normscope {
namespace {

class Screen : public ProgramTest {
 protected:
  // Everything the program writes to a terminal so wide, and its exit code. stop_after: lines of progress; 0: its end.
  Outcome run_on_terminal(const std::string& arguments, unsigned short columns, int stop_after = 0) const {
    const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
    EXPECT_TRUE(terminal >= 0 && ::grantpt(terminal) == 0 && ::unlockpt(terminal) == 0);
    const winsize size{24, columns, 0, 0};
    EXPECT_EQ(::ioctl(terminal, TIOCSWINSZ, &size), 0);
    const std::string name = ::ptsname(terminal);
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("TERM", "xterm", 1);
      ::unsetenv("COLUMNS");
      const std::string command =
          "exec \"" + program_path() + "\" " + arguments + " >" + name + " 2>" + name + " </dev/null";
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(127);
    }
    const int held = ::open(name.c_str(), O_RDWR | O_NOCTTY);  // else reading ends before the child opens it
    std::string text;
    ::fcntl(terminal, F_SETFL, O_NONBLOCK);
    bool stopped = false;
    int status = 0;
    for (bool ended = false; !ended;) {
      ended = ::waitpid(child, &status, WNOHANG) == child;
      char piece[4096];
      for (ssize_t got = 0; (got = ::read(terminal, piece, sizeof piece)) > 0;)
        text.append(piece, static_cast<std::size_t>(got));
      if (!stopped && stop_after > 0 && std::count(text.begin(), text.end(), '\r') > stop_after) {
        ::kill(child, SIGINT);
        stopped = true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ::close(held);
    ::close(terminal);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text, ""};
  }

  static std::size_t width(const std::string& line) {
    return static_cast<std::size_t>(std::count_if(
        line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
  }
};

TEST_F(Screen, ProgressFitsTheTerminal) {
  for (const unsigned short columns : {30, 60, 200}) {
    const std::string text =
        run_on_terminal("collapse --layers 10000 --tokens 64 --samples 64 --variant san", columns, 5).out;
    std::size_t drawn = 0;
    const std::string erase = "\r\x1b[K";
    for (std::size_t at = text.find(erase); at != std::string::npos; at = text.find(erase, at + 1)) {
      const std::size_t begin = at + erase.size();
      const std::string line =
          text.substr(begin, std::min(text.find_first_of("\r\n", begin), text.size()) - begin);
      if (line.rfind("normscope: ", 0) == 0) continue;  // the last words, which are no progress
      drawn += !line.empty();
      EXPECT_LT(width(line), columns) << line;
      if (columns == 200 && !line.empty()) {
        EXPECT_NE(line.find("/s · "), std::string::npos) << line;
      }
    }
    EXPECT_GT(drawn, 2u) << text;
  }
}

TEST_F(Screen, TablesAreStackedWhereTheyDoNotFit) {
  const Outcome outcome = run_on_terminal("mask full causal window:1 onesided:1 --n 8 --quiet", 60);
  ASSERT_EQ(outcome.code, 0) << outcome.out;
  std::istringstream lines(outcome.out);
  std::size_t named = 0;
  for (std::string line; std::getline(lines, line);) {
    line.erase(line.find_last_not_of('\r') + 1);
    EXPECT_LE(width(line), 60u) << line;
    named += line.rfind("window:1", 0) == 0;
  }
  EXPECT_EQ(named, 2u) << outcome.out;  // each block says whose it is
  for (const char* column : {"tokens", "diameter", "radius"})
    EXPECT_NE(outcome.out.find(column), std::string::npos) << column;
}

TEST_F(Screen, LinesOfEveryCommandFitNarrowScreens) {
  // 40 keys, of which most are inside, in two dimensions.
  std::vector<double> values;
  for (int i = 0; i < 40; ++i) {
    values.push_back(i % 7 - 3 + 0.01 * i);
    values.push_back(i % 5 - 2 - 0.02 * i);
  }
  write_npy(path("k.npy"), {"", DType::float64, {40, 2}, values});
  write_npy(path("bias.npy"), {"", DType::float64, {40}, std::vector<double>(40, 0.5)});
  const std::string file = path("k.npy");
  write(path("ids.txt"), "3 1 4 1 5 9 2 6 5 3 5 8 9 7 9 3");
  const std::string on_ids = source_path() + "/tests/golden/models/gpt2 --ids " + path("ids.txt");
  for (const std::string& call :
       {"keys " + file + " --advice --exact --prefix --query-norm 3",
        "keys " + file + " --bias " + path("bias.npy"), "vocab " + file + " --advice",
        std::string("train majority --steps 2 --seeds 2 --samples 100 --classes 5"),
        std::string("mask causal --n 40"), std::string("heatmap --n 3:30 --d 3,4 --draws 2"),
        std::string("collapse --layers 3 --tokens 8 --dim 8 --mask full causal"),
        std::string("equilibria --tokens 3 --dim 3 --starts 20 --steps 20 --angles 36"),
        "ablate " + on_ids + " --prompts 2", "scan " + on_ids, std::string("data list"),
        "paper --only identities --out " + path("paper")}) {
    const Outcome wide = run(call + " --quiet");
    ASSERT_EQ(wide.code, 0) << wide.err;
    for (const char* columns : {"60", "10"}) {
      ::setenv("COLUMNS", columns, 1);
      std::filesystem::remove_all(path("paper"));  // is not written over
      const Outcome narrow = run(call + " --quiet");
      ::unsetenv("COLUMNS");
      ASSERT_EQ(narrow.code, 0) << narrow.err;
      std::istringstream lines(narrow.out);
      for (std::string line; std::string(columns) == "60" && std::getline(lines, line);) {
        if (line.find('/') == std::string::npos) {  // a path cannot be broken
          EXPECT_LE(width(line), 60u) << call << ": " << line;
        }
      }
    }
  }
  const std::string text = run("keys " + file + " --bias " + path("bias.npy")).out;
  EXPECT_NE(text.substr(0, text.find('\n')).find("score offsets of " + path("bias.npy")), std::string::npos)
      << text;
}

TEST_F(Screen, NotesMarkedTextsAndTheFirstPageFitNarrowScreens) {
  std::string ids;
  for (int i = 0; i < 60; ++i) ids += std::to_string(3 + i * i % 37) + " ";
  write(path("ids.txt"), ids);
  ::setenv("COLUMNS", "60", 1);
  for (const std::string& call :
       {std::string(), "scan " + source_path() + "/tests/golden/models/gpt2 --ids " + path("ids.txt")}) {
    const Outcome outcome = run(call);
    std::istringstream lines(outcome.out + outcome.err);
    std::size_t seen = 0;
    for (std::string line; std::getline(lines, line); ++seen) {
      if (line.find('/') != std::string::npos) continue;  // a path cannot be broken
      EXPECT_LE(width(line), 60u) << call << ": " << line;
    }
    EXPECT_GT(seen, 8u) << outcome.out << outcome.err;
  }
  ::unsetenv("COLUMNS");
}

TEST_F(Screen, AWrongCallIsToldWhatItMisses) {
  expect_refused("--seed 3 keys k.npy", {"Options come after the command", "--seed"});
  expect_refused("train", {"normscope train needs a command: majority, lm, sentiment"});
  expect_refused("vocab k.npy --norm layernorm", {"There is no option '--norm'"});
  expect_refused("scan minilmm --text story.txt", {"did you mean 'minilm'?"});
  expect_refused("paper --only fig1", {"did you mean 'fig1ab'?"});
}

TEST_F(Screen, WhatAWrongCallIsToldFitsNarrowScreens) {
  ::setenv("COLUMNS", "60", 1);
  const Outcome outcome = run("paper --only fig1");
  ::unsetenv("COLUMNS");
  std::istringstream lines(outcome.err);
  std::size_t seen = 0;
  for (std::string line; std::getline(lines, line); ++seen) EXPECT_LE(width(line), 60u) << line;
  EXPECT_GT(seen, 3u) << outcome.err;
}

TEST_F(Screen, HelpIsInLinesThatFitAndSaysTheSame) {
  for (const std::string call : {"--help", "keys --help", "train lm --help"}) {
    const auto words = [](const std::string& text) {
      std::istringstream all(text);
      return std::vector<std::string>{std::istream_iterator<std::string>(all), {}};
    };
    const std::string wide = run(call).out;
    for (const std::size_t columns : {50, 80}) {
      ::setenv("COLUMNS", std::to_string(columns).c_str(), 1);
      const std::string narrow = run(call).out;
      ::unsetenv("COLUMNS");
      EXPECT_EQ(words(narrow), words(wide));
      std::istringstream lines(narrow);
      for (std::string line; std::getline(lines, line);)
        if (line.find('/') == std::string::npos) {  // a path cannot be broken
          EXPECT_LE(width(line), columns) << line;
        }
    }
  }
}

TEST_F(Screen, ColumnsOfSharesAreOnTheRight) {
  std::vector<double> values;  // a circle of 2999 and its centre
  for (int i = 0; i < 2999; ++i) {
    values.push_back(std::cos(2 * 3.14159265358979 * i / 2999));
    values.push_back(std::sin(2 * 3.14159265358979 * i / 2999));
  }
  values.insert(values.end(), {0, 0});
  write_npy(path("circle.npy"), {"", DType::float64, {3000, 2}, values});
  const Outcome outcome = run("keys " + path("circle.npy") + " --margin bound");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("2999  > 99.9 %"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("   1   < 0.1 %"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("100.0 %"), std::string::npos) << outcome.out;
}

TEST_F(Screen, AReaderWhoHasSeenEnoughIsNoFailure) {
  std::vector<double> values;
  for (int i = 0; i < 4000; ++i) values.push_back(i * i % 101);
  write_npy(path("k.npy"), {"", DType::float64, {1000, 4}, values});
  const std::string command = "{ \"" + program_path() + "\" keys " + path("k.npy") +
                              " --json --margin bound --out " + path("run") + " --quiet; echo $? >" +
                              path("code") + "; } 2>" + path("said") + " | head -c 5 >" + path("seen");
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(read(path("seen")).size(), 5u);
  EXPECT_EQ(read(path("said")), "");
  EXPECT_EQ(read(path("code")), "141\n");  // as of programs that SIGPIPE ends
  EXPECT_EQ(read_json(path("run/results.json"))["sets"][0]["n"], 1000);
  EXPECT_NE(read(path("run/report.html")).find("</html>"), std::string::npos);
}

}  // namespace
}  // namespace normscope

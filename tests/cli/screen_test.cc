// What the program draws on a terminal: nothing wider than it.
#include <fcntl.h>
#include <sys/ioctl.h>

#include <cstdlib>
#include <sstream>

#include "support/program.h"

namespace normscope {
namespace {

class Screen : public ProgramTest {
 protected:
  // Everything the program writes to a terminal so wide, and its exit code.
  Outcome run_on_terminal(const std::string& arguments, unsigned short columns, int stop_after_ms = 0) const {
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
          "exec \"" NORMSCOPE_PROGRAM "\" " + arguments + " >" + name + " 2>" + name + " </dev/null";
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(127);
    }
    const int held = ::open(name.c_str(), O_RDWR | O_NOCTTY);  // else reading ends before the child opens it
    std::string text;
    ::fcntl(terminal, F_SETFL, O_NONBLOCK);
    const auto begun = std::chrono::steady_clock::now();
    bool stopped = false;
    int status = 0;
    for (bool ended = false; !ended;) {
      ended = ::waitpid(child, &status, WNOHANG) == child;
      char piece[4096];
      for (ssize_t got = 0; (got = ::read(terminal, piece, sizeof piece)) > 0;)
        text.append(piece, static_cast<std::size_t>(got));
      if (!stopped && stop_after_ms > 0 &&
          std::chrono::steady_clock::now() - begun > std::chrono::milliseconds(stop_after_ms)) {
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
        run_on_terminal("collapse --layers 10000 --tokens 64 --samples 64 --variant san", columns, 1500).out;
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

}  // namespace
}  // namespace normscope

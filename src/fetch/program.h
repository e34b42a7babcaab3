#pragma once
// Other programs, started without a shell: an argument is an argument, whatever is in it.
#include <atomic>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace normscope::fetch {

struct ProgramEnd {
  bool found = true;      // in the directories of PATH
  int code = 0;           // its exit code; -1: ended by a signal
  std::string complaint;  // what it said on standard error, in one line
};

// Runs arguments[0] to its end and hands its standard output on as it comes. If `output` throws, the program
// is stopped and the exception goes on; it is also stopped, and Cancelled thrown, once `stop` becomes true.
ProgramEnd run_program(const std::vector<std::string>& arguments,
                       const std::function<void(std::span<const std::byte>)>& output,
                       const std::atomic<bool>* stop);

}  // namespace normscope::fetch

#pragma once
// What a study needs from outside. The command line, Python and tests each make one.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "normscope/executor.h"

namespace normscope {

struct Context {
  const Executor& executor;  // threads, and whether to stop: its work then ends with Cancelled
  std::uint64_t seed = 0;
  // Units of work done, of how many; from any thread.
  std::function<void(std::size_t done, std::size_t total)> progress = {};
  // A sentence that a person should read before the work is done; how it stands, such as the current loss.
  std::function<void(std::string_view)> note = {}, detail = {};
};

}  // namespace normscope

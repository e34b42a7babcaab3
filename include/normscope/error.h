#pragma once
// What the library throws. The message is one sentence a person can act on: what was read, where, what was
// expected, what to do. The library itself never prints, exits or aborts on input.
#include <stdexcept>
#include <string>

namespace normscope {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The input or the call is at fault (the command line turns it into exit code 2).
struct InputError : Error {
  using Error::Error;
};

}  // namespace normscope

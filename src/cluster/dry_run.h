#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace normscope {

// What some seconds of work have shown of all of it.
struct DryRun {
  bool ended = false;    // before its time was over
  std::string refused;   // why it failed; empty: it did not
  double seconds = 0;    // for all of it: taken or, by the share that was seen, to be expected
  double share = 0;      // of the work, as it told itself
  double megabytes = 0;  // held at most
};

// The work, in a process of its own, which is stopped after so many seconds. It tells what share is done; what it throws is
// why it was refused. To be called while there are no threads. Throws Cancelled as soon as `stopped`.
DryRun dry_run(const std::function<void(const std::function<void(double share)>& tell)>& work, double seconds,
               const std::function<bool()>& stopped);

}  // namespace normscope

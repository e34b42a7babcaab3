#pragma once
// One run at a time in a directory, from whichever machine: a file in it names host and process of who is there.
#include <filesystem>
#include <memory>

namespace normscope {

inline constexpr const char* kLockFile = ".normscope-lock";

// Locked while this lives. What a process that died has left is taken over: at once if it was on this machine,
// else when it has not been renewed for some minutes.
class RunLock {
 public:
  // Throws InputError that names the host and the process that have it.
  explicit RunLock(const std::filesystem::path& directory);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  struct Held;
  std::unique_ptr<Held>
      held_;  // null: an earlier lock of this process holds, or nothing can be written there
};

}  // namespace normscope

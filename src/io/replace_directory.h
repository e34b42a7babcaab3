#pragma once
// Writes a directory whole or not at all.
#include <filesystem>
#include <functional>

namespace normscope::io {

// Calls `fill` with an empty directory beside the target, syncs it and puts it in the target's place; what
// was there before is then removed. Whatever fails, the target is as it was and the directory beside it gone.
// After a kill the target is the old one or the new one; only where the file system cannot exchange two names
// at once there is a moment in which there is none, and the old one stands beside it, to which the next call
// returns. What a kill left beside the target, the next call removes. A symbolic link keeps pointing where it
// did. Throws InputError if the place cannot be written to, Error if the disk fails.
//
// What stands there is removed with everything in it: callers make sure that it is theirs.
void replace_directory(const std::filesystem::path& path,
                       const std::function<void(const std::filesystem::path&)>& fill);

}  // namespace normscope::io

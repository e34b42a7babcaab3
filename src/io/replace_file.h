#pragma once
// Writes a file whole or not at all.
#include <cstddef>
#include <functional>
#include <span>
#include <string>

namespace normscope::io {

// Appends bytes to the file being written, or throws.
using Append = std::function<void(std::span<const std::byte>)>;

// Calls `content` to fill a temporary beside the target, syncs it and renames it over the target. Whatever
// fails, the temporary is removed and the target is as it was. A symbolic link keeps pointing where it did.
void replace_file(const std::string& path, const std::function<void(const Append&)>& content);

}  // namespace normscope::io

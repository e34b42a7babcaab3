#pragma once
// Writes a file whole or not at all.
#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace normscope::io {

// Appends bytes to the file being written, or throws.
using Append = std::function<void(std::span<const std::byte>)>;

// Calls `content` to fill a temporary beside the target, syncs it and renames it over the target. Whatever
// fails, the temporary is removed and the target is as it was. A symbolic link keeps pointing where it did.
void replace_file(const std::string& path, const std::function<void(const Append&)>& content);

// The names of temporaries, of this process: ".normscope-12-0.tmp"; and whether a name is one.
std::string temporary_name(unsigned number);
bool is_temporary_name(std::string_view name);

// Removes the temporaries that writers who were killed left in a directory. A temporary is locked while it is
// written, so that those of writers still at work are left alone, as is whatever is not a regular file. What
// cannot be removed stays.
void remove_stale_temporaries(const std::filesystem::path& directory) noexcept;

}  // namespace normscope::io

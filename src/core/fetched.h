#pragma once
// Where this machine keeps what was fetched: a directory for each name that `normscope data get NAME` knows.
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace normscope {

// A variable of the environment, if it is set and not empty.
std::optional<std::filesystem::path> path_in_environment(const char* variable);

// $NORMSCOPE_DATA, else $XDG_DATA_HOME/normscope, else ~/.local/share/normscope; nothing if none is set.
std::optional<std::filesystem::path> data_directory();

// Whether a name can be a directory's without leading elsewhere: letters, digits, '-', '_' and '.', at most
// 96, the first neither '-' nor '.'.
bool is_plain_name(std::string_view name);

// The directory of a model or data set, if it is there.
std::optional<std::string> fetched_directory(const std::string& name);

}  // namespace normscope

#pragma once
// Models that `normscope data get NAME` has fetched: a directory for each name.
#include <filesystem>
#include <optional>
#include <string>

namespace normscope::checkpoint {

// $NORMSCOPE_DATA, else $XDG_DATA_HOME/normscope, else ~/.local/share/normscope; nothing if none is set.
std::optional<std::filesystem::path> data_directory();

// Its directory, if it is there.
std::optional<std::string> fetched_model(const std::string& name);

}  // namespace normscope::checkpoint

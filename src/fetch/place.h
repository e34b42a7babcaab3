#pragma once
// Where fetched data lie: $NORMSCOPE_DATA, else $XDG_DATA_HOME/normscope, else ~/.local/share/normscope;
// there a directory for each data set, which is whole or absent.
#include <filesystem>
#include <string>

namespace normscope::fetch {

// Throws InputError if none of the variables is set.
std::filesystem::path data_directory();
std::filesystem::path place_of(const std::string& name);
bool is_fetched(const std::string& name);

}  // namespace normscope::fetch

#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "normscope/record.h"

namespace normscope {

// config.json of an earlier run, to go on with. Throws InputError if there is none, if it is of another
// program, another command or another version, or if something in it is missing or unknown.
nlohmann::ordered_json read_config(const std::filesystem::path& directory, std::string_view command);
// Whose run a directory holds: "scan", "train lm", …; empty: no run of ours.
std::string command_of(const std::filesystem::path& directory);

}  // namespace normscope

#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "normscope/record.h"

namespace normscope {

// {"version", "commit", "isa", "seed", "threads"}: the first members of every JSON object that leaves the
// program.
nlohmann::ordered_json to_json(const Provenance& provenance);
// config.json of an earlier run, to go on with. Throws InputError if there is none, or if it is of another
// program, another command or another version.
nlohmann::ordered_json read_config(const std::filesystem::path& directory, std::string_view command);
// Whose run a directory holds: "scan", "train lm", …; empty: no run of ours.
std::string command_of(const std::filesystem::path& directory);
// Bytes that are not UTF-8 (file names may hold any) become U+FFFD. Ends with a newline.
std::string json_text(const nlohmann::ordered_json& json, int indent = 2);

}  // namespace normscope

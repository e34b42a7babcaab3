#pragma once
// The runs below the directories that are served, and what their files tell.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "serve/files.h"

namespace normscope::serve {

using Json = nlohmann::ordered_json;

// How far a run is.
//   running:    a process holds the lock of metrics.jsonl, or a run inside is running;
//   finished:   results.json is there, which is written last;
//   stopped:    there is a log without results, and nobody holds its lock: killed or interrupted;
//   unfinished: neither results nor a log that could tell more.
// On a file system without locks, a log without results that changed in the last two minutes is running.
enum class State { running, finished, stopped, unfinished };
std::string_view word(State state);

struct Run {
  std::size_t root = 0;
  std::vector<std::string> names;  // of its path below the root; none: the root itself
  std::string command;
  std::int64_t begun = 0;  // when config.json was written, seconds since 1970
  State state = State::unfinished;
  std::vector<std::pair<std::string, std::string>> settings;  // the main ones
};

struct RunList {
  std::vector<Run> runs;  // the newest first
  bool complete = true;   // false: there is more than is looked at
};
struct ScanLimits {
  std::size_t depth = 8, folders = 20'000, runs = 2'000;
};
// Runs below each root, and those inside runs, such as the trainings of an audit.
RunList find_runs(std::span<const std::filesystem::path> roots, const ScanLimits& limits = {});
// Runs inside one directory, which itself may be one.
RunList find_runs_below(const std::filesystem::path& root, std::size_t root_index,
                        const std::vector<std::string>& names, const ScanLimits& limits = {});

// config.json of a run of ours.
std::optional<Json> run_config(const Folder& folder);
State state_of(const Folder& folder);

// "held_out_loss" as words.
std::string spaced(std::string name);
// One line for a value that may be anything; long lists of numbers by their ends.
std::string brief(const Json& value);
// The same of a setting: no layers or heads in particular are all.
std::string setting_text(std::string_view name, const Json& value);

}  // namespace normscope::serve

#pragma once
// The pages of the server. Whatever comes from a file or a file name is text, and is escaped.
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "serve/runs.h"

namespace normscope::serve {

// Address of a run's page, with its slash at the end: "/run/0/fig1/".
std::string run_address(std::size_t root, const std::vector<std::string>& names);

std::string list_page(const std::vector<std::filesystem::path>& roots, const RunList& list);
// list: of the run itself and the runs inside (find_runs_below).
std::string run_page(const std::vector<std::filesystem::path>& roots, const Folder& folder, const Run& run,
                     const RunList& list);
// A sentence on a page of its own.
std::string message_page(std::string_view title, std::string_view sentence);

}  // namespace normscope::serve

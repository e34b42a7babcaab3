#include "report/report_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <system_error>

#include "normscope/error.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostRuns = 1000;

}  // namespace

fs::path folder_of(const ReportOptions& options) {
  const fs::path out = options.out;
  return out.has_parent_path() ? out.parent_path() : fs::path(".");
}

std::vector<fs::path> runs_of(const ReportOptions& options) {
  std::vector<fs::path> found;
  const auto add = [&](const fs::path& path) {
    std::error_code unknown;
    const auto same = [&](const fs::path& other) { return fs::equivalent(path, other, unknown); };
    if (std::none_of(found.begin(), found.end(), same)) found.push_back(path);
  };
  for (const std::string& run : options.runs) {
    if (run.empty()) throw InputError("The name of a run is empty; name the directories that --out named.");
    add(run);
    for (const char* inside : {"majority", "majority-3d"}) {
      std::error_code unknown;
      if (fs::is_regular_file(fs::path(run) / inside / "config.json", unknown)) add(fs::path(run) / inside);
    }
  }
  if (found.size() > kMostRuns)
    throw InputError(fmt::format("{} runs were named; a report takes at most {}.", found.size(), kMostRuns));
  for (const fs::path& run : found) {
    std::error_code unknown;
    if (fs::path(options.out).extension() != ".html" && fs::equivalent(folder_of(options), run, unknown)) {
      throw InputError(
          fmt::format("'{}' lies in the run '{}', whose files a report must not replace; name a "
                      "file elsewhere, or one that ends in .html.",
                      options.out, run.string()));
    }
  }
  return found;
}

}  // namespace normscope

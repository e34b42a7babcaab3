#include "report/report_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <system_error>

#include "normscope/error.h"
#include "report/page.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostRuns = 1000;

// A page takes the place of another page of ours, and of nothing else.
void require_replaceable(const fs::path& out) {
  std::error_code unknown;
  if (!fs::is_regular_file(out, unknown) || fs::file_size(out, unknown) == 0) return;
  std::string beginning(256, '\0');
  std::ifstream file(out, std::ios::binary);
  file.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  beginning.resize(static_cast<std::size_t>(file.gcount()));
  if (!is_report_of_ours(beginning))
    throw InputError(fmt::format(
        "--out: '{}' is there and is not a report of this program, which is all that a report may "
        "replace; name another file, or remove it first.",
        out.string()));
}

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
  require_replaceable(options.out);
  return found;
}

}  // namespace normscope

// normscope report: one page over several runs.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/common.h"
#include "cli/training_marks.h"
#include "normscope/error.h"
#include "record/json.h"
#include "report/runs_page.h"

namespace normscope::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostRuns = 1000;

struct ReportCall {
  std::vector<std::string> runs;
  std::string out = "report.html";
};

// The directories named, each once; after a run of `paper` the trainings inside it.
std::vector<fs::path> directories(const ReportCall& call) {
  std::vector<fs::path> found;
  const auto add = [&](const fs::path& path) {
    std::error_code unknown;
    const auto same = [&](const fs::path& other) { return fs::equivalent(path, other, unknown); };
    if (std::none_of(found.begin(), found.end(), same)) found.push_back(path);
  };
  for (const std::string& run : call.runs) {
    if (run.empty()) throw InputError("The name of a run is empty; name the directories that --out named.");
    add(run);
    for (const char* inside : {"majority", "majority-3d"}) {
      std::error_code unknown;
      if (fs::is_regular_file(fs::path(run) / inside / "config.json", unknown)) add(fs::path(run) / inside);
    }
  }
  if (found.size() > kMostRuns)
    throw InputError(fmt::format("{} runs were named; a report takes at most {}.", found.size(), kMostRuns));
  return found;
}

void run_report(const ReportCall& call, const Common& common) {
  const fs::path out = call.out;
  require_place_for_file(out);
  const auto runs = directories(call);
  for (const fs::path& run : runs) {
    std::error_code unknown;
    const fs::path folder = out.has_parent_path() ? out.parent_path() : fs::path(".");
    if (out.extension() != ".html" && fs::equivalent(folder, run, unknown)) {
      throw InputError(
          fmt::format("'{}' lies in the run '{}', whose files a report must not replace; name a "
                      "file elsewhere, or one that ends in .html.",
                      out.string(), run.string()));
    }
  }
  RunsReport report({out.has_parent_path() ? out.parent_path() : fs::path("."), training_marks, runs.size()});
  {
    Progress progress(common, "report:", "runs");
    for (std::size_t i = 0; i < runs.size(); ++i) {
      report.add(read_run(runs[i]));
      progress.update(i + 1, runs.size());
    }
  }
  const Page page = report.page(provenance(0, 1));
  write_file_atomically(out, render_html(page));
  note(common, "Wrote " + out.string());
  if (common.json) return print(page.data + "\n");
  auto rows = page.claims.rows;
  for (auto& row : rows) {
    row.pop_back();  // the main results are sentences
    for (std::string& cell : row) cell = printable(cell);
  }
  print(table(rows));
}

}  // namespace

void add_report(CLI::App& app, Common& common) {
  CLI::App* command =
      app.add_subcommand("report", "One HTML page over several runs: figures, and what differs");
  command->footer(
      "Examples:\n  normscope report runs/*\n  normscope report runs/majority runs/fig1 --out "
      "comparison.html\n\n"
      "Figures are drawn anew from what the runs stored; trainings with the same settings are laid over "
      "each\n"
      "other. Runs that are not finished are shown as far as they are.");
  auto call = std::make_shared<ReportCall>();
  command->add_option("RUN", call->runs, "Directories that --out named")->type_name("")->required();
  command->add_option("--out", call->out, "The page")->type_name("FILE")->capture_default_str();
  command->add_flag("--json", common.json, "Print one JSON object instead of text");
  command->add_flag("--quiet", common.quiet, "No progress and no notes on standard error");
  command->callback([call, &common] { run_report(*call, common); });
}

}  // namespace normscope::cli

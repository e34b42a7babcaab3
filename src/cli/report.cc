// normscope report: one page over several runs.
#include <memory>

#include "cli/common.h"
#include "cli/options.h"
#include "report/report_options.h"
#include "report/runs_page.h"
#include "run/training_marks.h"

namespace normscope::cli {
namespace {

void run_report(const ReportOptions& options, const Common& common) {
  require_place_for_file(options.out);
  const auto runs = runs_of(options);
  RunsReport report({folder_of(options), training_marks, runs.size()});
  {
    Progress progress(common, "report:", "runs");
    for (std::size_t i = 0; i < runs.size(); ++i) {
      report.add(read_run(runs[i]));
      progress.update(i + 1, runs.size());
    }
  }
  const CardedPage page = report.page(provenance(0, 1));
  write_file_atomically(options.out, render_html(page));
  note(common, "Wrote " + options.out);
  if (common.json) return print(page.data + "\n");
  auto rows = page.claims.rows;
  for (auto& row : rows)
    for (std::string& cell : row) cell = printable(cell);
  print(table(rows));
}

}  // namespace

void add_report(CLI::App& app, Common& common) {
  CLI::App* command =
      add_plain_command(app, "report", "One HTML page over several runs: figures, and what differs",
                        {"report runs/*", "report runs/majority runs/fig1 --out comparison.html"});
  add_to_footer(
      *command,
      "Figures are drawn anew from what the runs stored; trainings with the same settings are laid over each\n"
      "other. Runs that are not finished are shown as far as they are.");
  auto options = std::make_shared<ReportOptions>();
  add_options(*command, *options);
  OptionAdder add(*command);
  PrintedOnly::describe(add, common);
  when_called(*command, [options, &common] { run_report(*options, common); });
}

}  // namespace normscope::cli

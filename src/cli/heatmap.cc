// normscope heatmap: unselectable random keys over n × d, with and without a norm (Fig. 1c and 1d of Brody et
// al.).
#include "study/heatmap.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "cli/calls.h"
#include "cli/common.h"
#include "cli/kept.h"
#include "cli/options.h"
#include "normscope/error.h"
#include "report/heatmap_page.h"
#include "result/json_writer.h"
#include "run/finished.h"

namespace normscope::cli {
namespace {

// The nearest colour of the 6 × 6 × 6 cube of a 256-colour terminal.
int terminal_colour(Colour colour) {
  const auto level = [](int value) { return value < 48 ? 0 : value < 115 ? 1 : (value - 35) / 40; };
  return 16 + 36 * level(colour.red) + 6 * level(colour.green) + level(colour.blue);
}

// One character: "·" for none at all, a digit for the tenths, "#" for all; in colours a coloured block.
std::string mark(double share, bool colours) {
  if (colours && share > 0) return fmt::format("\x1b[48;5;{}m \x1b[0m", terminal_colour(viridis(share)));
  if (share == 0) return "·";
  return share == 1 ? "#"
                    : std::string(1, static_cast<char>('0' + std::min(9, static_cast<int>(10 * share))));
}

std::string legend(bool colours) {
  if (!colours) return wrapped("· none   0 more than none   1 from 10 % … 9 from 90 %   # all") + "\n";
  std::string text = "· none   ";
  for (int tenth = 0; tenth <= 10; ++tenth) text += mark(std::max(0.01, tenth / 10.0), true);
  return text + "  0 … 100 %\n";
}

// Labels of the columns, each under the first of its column, as many as fit.
std::string column_labels(const std::vector<std::size_t>& n, std::size_t step) {
  std::string line;
  for (std::size_t i = 0; i < n.size(); i += step) {
    const std::size_t column = i / step;
    if (!line.empty() && column < line.size() + 2) continue;
    line += std::string(column - line.size(), ' ') + std::to_string(n[i]);
  }
  return line;
}

std::string draw_map(const Heatmap& heatmap, double HeatmapCell::*reading, bool colours) {
  const std::size_t across = heatmap.n.size(), room = std::max<std::size_t>(20, terminal_width()) - 10;
  const std::size_t step = (across + room - 1) / room, down = (heatmap.d.size() + 39) / 40;
  std::string text;
  for (std::size_t row = 0; row < heatmap.d.size(); row += down) {
    text += fmt::format("{:>9} ",
                        row == 0 ? fmt::format("d {}", heatmap.d[row]) : std::to_string(heatmap.d[row]));
    for (std::size_t column = 0; column < across; column += step) {
      text += mark(heatmap.cells[row * across + column].*reading, colours);
    }
    text += "\n";
  }
  text += "        n " + column_labels(heatmap.n, step) + "\n";
  if (step > 1) text += fmt::format("          (one of every {} n is drawn)\n", step);
  if (down > 1) text += fmt::format("          (one of every {} d is drawn)\n", down);
  return text;
}

std::string screen(const HeatmapRun& run) {
  const bool colours = colour_output();
  std::string text = wrapped(fmt::format("Unselectable random keys: {} per cell, init {}, {}, seed {}",
                                         counted(run.draws, "draw"), name_of(run.init),
                                         name_of(run.precision), run.provenance.seed)) +
                     "\n";
  text += legend(colours);
  for (const auto& grid : run.grids) {
    const HeatmapSummary summary = summarise(grid.heatmap);
    const auto title = [&](const std::string& words) {
      text += "\n" + wrapped(fmt::format("norm {}: {}", grid.norm, words)) + "\n";
    };
    if (summary.unselectable == 0) {
      title(fmt::format("none of the {} keys drawn is unselectable{}", grouped(summary.keys),
                        summary.cells == 1 ? "" : ", in any of " + counted(summary.cells, "cell")));
      continue;
    }
    title("mean share of unselectable keys (the caption's reading)");
    text += draw_map(grid.heatmap, &HeatmapCell::fraction, colours);
    title("share of draws with at least one (what the paper plotted)");
    text += draw_map(grid.heatmap, &HeatmapCell::any, colours);
  }
  return text + "\n" + table(heatmap_summary(run).rows) + "\n" + wrapped(heatmap_verdict(run)) + "\n" +
         wrapped(heatmap_readings(run)) + "\n";
}

void run_heatmap(HeatmapCall call, const Common& given, const CLI::App& command) {
  KeptRun run("heatmap", given, command, call.resume, {"--csv"});
  run.resume(call.study);
  const Common& common = run.common();
  const std::string& csv = call.csv;  // "-": standard output; empty: nowhere
  const HeatmapSettings settings = plan_heatmap(call.study);
  if (common.json && csv == "-") {
    throw InputError("--json and --csv - both ask for standard output; give --csv a file.");
  }
  // A place that cannot be written to is said before the work, not after it.
  if (!csv.empty() && csv != "-" && speaks(common)) require_place_for_file(csv);
  run.begin(call.study, {});
  const Executor executor = executor_of(common);
  const HeatmapStudy study =
      with_progress(common, executor, "heatmap:", "draws",
                    [&](const Context& context) { return study_heatmap(settings, context); });
  if (!speaks(common)) return;
  run.write(study);
  if (csv == "-") return print(heatmap_csv(study.run));
  if (!csv.empty()) write_file_atomically(csv, heatmap_csv(study.run));
  common.json ? write_json(study.result, -1, print) : print(screen(study.run));
}

}  // namespace

void add_heatmap(CLI::App& app, Common& common) {
  CLI::App* command = add_command(
      app, common, "heatmap", "How often random keys are unselectable, over their number n and dimension d",
      {"heatmap", "heatmap --n 3:60:3 --d 3,8,15 --draws 1000 --norm rmsnorm",
       "heatmap --norm center --init xavier --csv cells.csv", "heatmap --seed 7 --out runs/fig1"});
  auto call = std::make_shared<HeatmapCall>();
  add_options(*command, *call);
  add_to_footer(*command, "Norms: " + norm_list());
  when_called(*command, [call, &common, command] { run_heatmap(*call, common, *command); });
}

}  // namespace normscope::cli

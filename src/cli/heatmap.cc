// normscope heatmap: unselectable random keys over n × d, with and without a norm (Fig. 1c and 1d of Brody et
// al.).
#include "study/heatmap.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "cli/calls.h"
#include "cli/common.h"
#include "cli/options.h"
#include "normscope/error.h"
#include "report/heatmap_page.h"
#include "result/columns.h"
#include "result/json_writer.h"

namespace normscope::cli {
namespace {

void write_run(const RunDirectory& directory, const HeatmapStudy& study) {
  directory.write_config("heatmap", study.result.made, json_of(study.settings));
  directory.write("results.json", json_of(study.result));
  directory.write("cells.csv", heatmap_csv(study.run));
  directory.write("heatmap.svg", heatmap_svg(heatmap_figure(study.run)));
  directory.write("report.html", render_html(heatmap_page(study.run, json_of(study.result, -1))));
}

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
  if (!colours) return "· none   0 more than none   1 from 10 % … 9 from 90 %   # all\n";
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
  const std::size_t across = heatmap.n.size(), room = std::max<std::size_t>(20, terminal_width() - 10);
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

std::string percent(double share) {
  return fmt::format("{:.4g} %", 100 * share);
}

struct GridRow {
  std::string norm;
  HeatmapSummary summary;

  static void describe(auto& visit, auto& self) {
    const HeatmapSummary& summary = self.summary;
    visit("norm", self.norm, "of the grid");
    visit("keys", summary.keys, "of all draws");
    visit("unselectable", summary.unselectable, "of these");
    visit("robust", summary.robust_unselectable, "of these, whatever rounding did");
    visit("most keys", percent(summary.most_fraction.fraction), "largest share in a cell");
    visit("at n,d", place(summary.most_fraction.fraction, summary.most_fraction), "that cell");
    visit("most draws", percent(summary.most_any.any), "largest share with one at least");
    visit("at n,d", place(summary.most_any.any, summary.most_any), "that cell");
    visit("cells with none", fmt::format("{}/{}", summary.clear_cells, summary.cells), "of all");
  }
  static std::string place(double share, const HeatmapCell& cell) {
    return share == 0 ? std::string("-") : fmt::format("{},{}", cell.n, cell.d);
  }
};

std::string summary_table(const HeatmapRun& run) {
  std::vector<GridRow> rows;
  for (const auto& grid : run.grids) rows.push_back({grid.norm, summarise(grid.heatmap)});
  return table(table_of(rows));
}

std::string screen(const HeatmapRun& run) {
  const bool colours = colour_output();
  std::string text = fmt::format("Unselectable random keys: {} draws per cell, init {}, {}, seed {}\n",
                                 run.draws, name_of(run.init), name_of(run.precision), run.provenance.seed);
  text += legend(colours);
  for (const auto& grid : run.grids) {
    const HeatmapSummary summary = summarise(grid.heatmap);
    if (summary.unselectable == 0) {
      text += fmt::format("\nnorm {}: no key that was drawn is unselectable, in any cell\n", grid.norm);
      continue;
    }
    text += fmt::format("\nnorm {}: mean share of unselectable keys (the caption's reading)\n", grid.norm);
    text += draw_map(grid.heatmap, &HeatmapCell::fraction, colours);
    text += fmt::format("\nnorm {}: share of draws with at least one (what the paper plotted)\n", grid.norm);
    text += draw_map(grid.heatmap, &HeatmapCell::any, colours);
  }
  return text + "\n" + summary_table(run) + "\n" + heatmap_verdict(run) + "\n" + heatmap_readings(run) + "\n";
}

void run_heatmap(const HeatmapCall& call, const Common& common) {
  const std::string& csv = call.csv;  // "-": standard output; empty: nowhere
  const HeatmapSettings settings = plan_heatmap(call.study);
  if (common.json && csv == "-") {
    throw InputError("--json and --csv - both ask for standard output; give --csv a file.");
  }
  // A place that cannot be written to is said before the work, not after it.
  if (!csv.empty() && csv != "-") require_place_for_file(csv);
  const auto directory = replaceable_directory(common);
  const Executor executor(common.threads, common.stop);
  const HeatmapStudy study = [&] {
    Progress progress(common, "heatmap:", "draws");
    return study_heatmap(settings, {executor, common.seed, [&](std::size_t done, std::size_t total) {
                                      progress.update(done, total);
                                    }});
  }();
  if (directory) {
    write_run(*directory, study);
    note(common, "Wrote " + (directory->path() / "report.html").string());
  }
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
  when_called(*command, [call, &common] { run_heatmap(*call, common); });
}

}  // namespace normscope::cli

// normscope heatmap: unselectable random keys over n × d, with and without a norm (Fig. 1c and 1d of Brody et
// al.).
#include "normscope/heatmap.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <memory>

#include "cli/common.h"
#include "normscope/error.h"
#include "normscope/report.h"
#include "record/json.h"

namespace normscope::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostCells = 100'000;

struct HeatmapCall {
  std::string n = "3:60", d = "3:15", draws = "100", init = "normal", norm, precision = "float32", csv;
};

// The resolved call: one grid per norm, in the order shown.
struct Plan {
  HeatmapOptions options;
  std::vector<std::string> norms;
  std::string asked;  // the norm of the top-level "cells"
};

Plan resolve(const HeatmapCall& call, const Common& common) {
  Plan plan;
  plan.options.n = parse_range(call.n, "--n", 1, HeatmapOptions::most_keys, kMostCells);
  plan.options.d = parse_range(call.d, "--d", 1, HeatmapOptions::most_dimensions, kMostCells);
  if (plan.options.n.size() * plan.options.d.size() > kMostCells) {
    throw InputError(fmt::format("--n and --d ask for {} cells; at most {} fit one heat map.",
                                 plan.options.n.size() * plan.options.d.size(), kMostCells));
  }
  plan.options.draws = parse_count(call.draws, "--draws", 1, HeatmapOptions::most_draws);
  plan.options.init = parse_key_init(call.init);
  plan.options.precision = parse_precision(call.precision);
  plan.options.seed = common.seed;
  const std::string shown = name_of(parse_norm(call.norm.empty() ? "layernorm" : call.norm));
  plan.asked = call.norm.empty() ? "none" : shown;
  plan.norms = {"none"};
  if (shown != "none") plan.norms.push_back(shown);
  return plan;
}

HeatmapRun compute(const Plan& plan, const Common& common, const Executor& executor) {
  HeatmapRun run;
  run.init = plan.options.init;
  run.precision = plan.options.precision;
  run.draws = plan.options.draws;
  run.provenance = provenance(common.seed, executor.threads());
  for (const std::string& norm : plan.norms) {
    HeatmapOptions options = plan.options;
    options.norm = parse_norm(norm);
    Progress progress(common, "norm " + norm + ":", "draws");
    run.grids.push_back({norm, key_heatmap(options, executor, [&](std::size_t done, std::size_t total) {
                           progress.update(done, total);
                         })});
  }
  return run;
}

Json to_json(const HeatmapCell& cell) {
  return {{"n", cell.n},
          {"d", cell.d},
          {"draws", cell.draws},
          {"fraction", cell.fraction},
          {"fraction_sd", cell.fraction_sd},
          {"fraction_se", cell.fraction_se},
          {"any", cell.any},
          {"any_se", cell.any_se},
          {"tied", cell.tied},
          {"unselectable", cell.unselectable},
          {"robust_unselectable", cell.robust_unselectable},
          {"robust_fraction", cell.robust_fraction},
          {"robust_any", cell.robust_any}};
}

Json cells_json(const Heatmap& heatmap) {
  Json cells = Json::array();
  for (const HeatmapCell& cell : heatmap.cells) cells.push_back(to_json(cell));
  return cells;
}

Json results_json(const HeatmapRun& run, const Plan& plan, double seconds) {
  Json results = {{"command", "heatmap"}};
  results.update(normscope::to_json(run.provenance));
  results["seconds"] = seconds;
  results["init"] = name_of(run.init);
  results["precision"] = name_of(run.precision);
  results["draws"] = run.draws;
  results["n"] = plan.options.n;
  results["d"] = plan.options.d;
  results["verdict"] = heatmap_verdict(run);
  results["norm"] = plan.asked;
  for (const auto& grid : run.grids) {
    if (grid.norm == plan.asked) results["cells"] = cells_json(grid.heatmap);
  }
  results["grids"] = Json::array();
  for (const auto& grid : run.grids) {
    results["grids"].push_back({{"norm", grid.norm}, {"cells", cells_json(grid.heatmap)}});
  }
  return results;
}

Json options_json(const Plan& plan) {
  return {{"n", plan.options.n},
          {"d", plan.options.d},
          {"draws", plan.options.draws},
          {"init", name_of(plan.options.init)},
          {"precision", name_of(plan.options.precision)},
          {"norm", plan.asked},
          {"norms", plan.norms},
          {"eps", plan.options.norm.eps},
          {"affine", plan.options.norm.affine}};
}

void write_run(const RunDirectory& directory, const HeatmapRun& run, const Plan& plan, const Json& results) {
  const std::string text = json_text(results);
  directory.write_config("heatmap", run.provenance, options_json(plan).dump());
  directory.write("results.json", text);
  directory.write("cells.csv", heatmap_csv(run));
  directory.write("heatmap.svg", heatmap_svg(heatmap_figure(run)));
  directory.write("report.html", render_html(heatmap_page(run, results.dump())));
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

std::string summary_table(const HeatmapRun& run) {
  std::vector<std::vector<std::string>> rows = {{"norm", "keys", "unselectable", "robust", "most keys",
                                                 "at n,d", "most draws", "at n,d", "cells with none"}};
  const auto at = [](double share, const HeatmapCell& cell) {
    return share == 0 ? std::string("-") : fmt::format("{},{}", cell.n, cell.d);
  };
  for (const auto& grid : run.grids) {
    const HeatmapSummary summary = summarise(grid.heatmap);
    rows.push_back({grid.norm, std::to_string(summary.keys), std::to_string(summary.unselectable),
                    std::to_string(summary.robust_unselectable), percent(summary.most_fraction.fraction),
                    at(summary.most_fraction.fraction, summary.most_fraction), percent(summary.most_any.any),
                    at(summary.most_any.any, summary.most_any),
                    fmt::format("{}/{}", summary.clear_cells, summary.cells)});
  }
  return table(rows);
}

std::string screen(const HeatmapRun& run) {
  const bool colours = colour_output();
  std::string text = fmt::format("Unselectable random keys: {} draws per cell, init {}, {}, seed {}\n",
                                 run.draws, name_of(run.init), name_of(run.precision), run.provenance.seed);
  text += legend(colours);
  for (const auto& grid : run.grids) {
    const HeatmapSummary summary = summarise(grid.heatmap);
    if (summary.unselectable == 0) {
      text += fmt::format("\nnorm {}: no key is unselectable, in any draw of any cell\n", grid.norm);
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
  const Plan plan = resolve(call, common);
  if (common.json && call.csv == "-") {
    throw InputError("--json and --csv - both ask for standard output; give --csv a file.");
  }
  // A place that cannot be written to is said before the work, not after it.
  if (!call.csv.empty() && call.csv != "-") require_place_for_file(call.csv);
  const auto directory = replaceable_directory(common);
  const Executor executor(common.threads, common.stop);
  const auto start = std::chrono::steady_clock::now();
  const HeatmapRun run = compute(plan, common, executor);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  const Json results = results_json(run, plan, seconds);
  if (directory) {
    write_run(*directory, run, plan, results);
    note(common, "Wrote " + (directory->path() / "report.html").string());
  }
  if (call.csv == "-") return print(heatmap_csv(run));
  if (!call.csv.empty()) write_file_atomically(call.csv, heatmap_csv(run));
  print(common.json ? json_text(results, -1) : screen(run));
}

}  // namespace

void add_heatmap(CLI::App& app, Common& common) {
  CLI::App* command = add_command(
      app, common, "heatmap", "How often random keys are unselectable, over their number n and dimension d",
      {"heatmap", "heatmap --n 3:60:3 --d 3,8,15 --draws 1000 --norm rmsnorm",
       "heatmap --norm center --init xavier --csv cells.csv", "heatmap --seed 7 --out runs/fig1"});
  auto call = std::make_shared<HeatmapCall>();
  const auto option = [&](const char* name, std::string& value, const char* type, const char* description) {
    return command->add_option(name, value, description)->type_name(type);
  };
  option("--n", call->n, "RANGE",
         "Numbers of keys, up to 1048575: 3:60, 3:60:5, 3,5,8 or 20; with --d at most 100000 cells")
      ->capture_default_str();
  option("--d", call->d, "RANGE", "Dimensions, up to 1048575, written like --n")->capture_default_str();
  option("--draws", call->draws, "N", "Random draws per cell, up to 16777216")->capture_default_str();
  option("--init", call->init, "NAME", "normal N(0,1), uniform U(-1,1) or xavier U(±sqrt(6/(n+d)))")
      ->capture_default_str();
  option("--norm", call->norm, "NAME",
         "Norm of the second grid [layernorm]; if given, its cells are those of --json");
  option("--precision", call->precision, "NAME", "What the keys are held in: float32 or float64")
      ->capture_default_str();
  option("--csv", call->csv, "FILE", "Write the cells as CSV; - is standard output, instead of the text");
  std::string norms;
  for (const std::string_view name : norm_names())
    norms += fmt::format("{}{}", norms.empty() ? "" : " ", name);
  command->footer(command->get_footer() + "\n\nNorms: " + norms);
  command->callback([call, &common] { run_heatmap(*call, common); });
}

}  // namespace normscope::cli

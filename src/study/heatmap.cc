#include "study/heatmap.h"

#include <fmt/format.h>

#include <chrono>

#include "normscope/error.h"
#include "study/parse.h"

namespace normscope {
namespace {

constexpr std::size_t kMostCells = 100'000;

HeatmapOptions options_of(const HeatmapSettings& settings) {
  HeatmapOptions options;
  options.n = settings.n;
  options.d = settings.d;
  options.draws = settings.draws;
  options.init = settings.init;
  options.precision = settings.precision;
  return options;
}

std::vector<HeatmapCellResult> cells_of(const Heatmap& heatmap) {
  std::vector<HeatmapCellResult> cells;
  for (const HeatmapCell& cell : heatmap.cells) cells.push_back({cell});
  return cells;
}

HeatmapResult result_of(const HeatmapRun& run, const HeatmapSettings& settings, double seconds) {
  HeatmapResult result;
  result.made = run.provenance;
  result.seconds = seconds;
  result.init = run.init;
  result.precision = run.precision;
  result.draws = run.draws;
  result.n = settings.n;
  result.d = settings.d;
  result.verdict = heatmap_verdict(run);
  result.norm = settings.norm;
  for (const HeatmapRun::Grid& grid : run.grids) {
    result.grids.push_back({grid.norm, cells_of(grid.heatmap)});
    if (grid.norm == settings.norm) result.cells = result.grids.back().cells;
  }
  return result;
}

}  // namespace

HeatmapSettings plan_heatmap(const HeatmapStudyOptions& options) {
  check_options(options);
  HeatmapSettings settings;
  settings.n = parse_range(options.n, "--n", 1, HeatmapOptions::most_keys, kMostCells);
  settings.d = parse_range(options.d, "--d", 1, HeatmapOptions::most_dimensions, kMostCells);
  if (settings.n.size() * settings.d.size() > kMostCells) {
    throw InputError(fmt::format("--n and --d ask for {} cells; at most {} fit one heat map.",
                                 settings.n.size() * settings.d.size(), kMostCells));
  }
  settings.draws = options.draws;
  settings.init = parse_key_init(options.init);
  settings.precision = parse_precision(options.precision);
  const std::string shown = name_of(parse_norm(options.norm.empty() ? "layernorm" : options.norm));
  settings.norm = options.norm.empty() ? "none" : shown;
  settings.norms = {"none"};
  if (shown != "none") settings.norms.push_back(shown);
  HeatmapOptions checked = options_of(settings);
  for (const std::string& norm : settings.norms) {
    checked.norm = parse_norm(norm);
    check_heatmap(checked);
  }
  return settings;
}

HeatmapStudy study_heatmap(const HeatmapSettings& settings, const Context& context) {
  HeatmapStudy study;
  study.settings = settings;
  HeatmapRun& run = study.run;
  run.init = settings.init;
  run.precision = settings.precision;
  run.draws = settings.draws;
  run.provenance = provenance(context.seed, context.executor.threads());
  const auto start = std::chrono::steady_clock::now();
  HeatmapOptions drawn = options_of(settings);
  drawn.seed = context.seed;
  std::vector<NormSpec> norms;
  for (const std::string& norm : settings.norms) norms.push_back(parse_norm(norm));
  std::vector<Heatmap> maps = key_heatmaps(drawn, norms, context.executor, context.progress);
  for (std::size_t which = 0; which < maps.size(); ++which)
    run.grids.push_back({settings.norms[which], std::move(maps[which])});
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  study.result = result_of(run, settings, seconds);
  return study;
}

HeatmapStudy study_heatmap(const HeatmapStudyOptions& options, const Context& context) {
  return study_heatmap(plan_heatmap(options), context);
}

}  // namespace normscope

#include "report/runs_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/number_text.h"
#include "normscope/error.h"
#include "report/collapse_page.h"
#include "report/keys_page.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMostCells = 100'000, kMostPoints = 600, kMostWeights = 3, kMostMasks = 12,
                      kMostRows = 200;
constexpr std::size_t kMostMaskTokens = 4096, kMostLogRows = 100'000, kLongestValue = 60;

[[noreturn]] void refuse(const RunFiles& run, std::string_view what) {
  throw InputError(fmt::format("'{}' does not hold what normscope {} writes: {}.",
                               (run.directory / "results.json").string(), run.command, what));
}

std::string made_by(const RunFiles& run, std::string_view settings = {}) {
  return fmt::format("{}{}seed {} · normscope {} ({}, {})", settings, settings.empty() ? "" : " · ",
                     count_of(run.config, "seed"), text_of(run.config, "version"),
                     text_of(run.config, "commit"), text_of(run.config, "isa"));
}

std::vector<std::size_t> counts_of(const Json& list) {
  std::vector<std::size_t> counts;
  for (const Json& each : list) counts.push_back(each.is_number_unsigned() ? each.get<std::size_t>() : 0);
  return counts;
}

std::vector<double> numbers_of(const Json& list) {
  std::vector<double> numbers;
  for (const Json& each : list) numbers.push_back(each.is_number() ? each.get<double>() : std::nan(""));
  return numbers;
}

std::string shown(const Json& value) {
  if (value.is_array()) {
    std::string list;
    for (const Json& each : value) {
      if (list.size() > kLongestValue) break;
      list += (list.empty() ? "" : ", ") + (each.is_structured() ? std::string("…") : shown(each));
    }
    return list.size() <= kLongestValue ? list : list.substr(0, kLongestValue) + "…";
  }
  std::string text = value.is_string() ? value.get<std::string>()
                                       : value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= kLongestValue ? text : text.substr(0, kLongestValue) + "…";
}

// --- heat maps ---

HeatmapCell cell_of(const Json& json) {
  HeatmapCell cell{};
  cell.n = count_of(json, "n");
  cell.d = count_of(json, "d");
  cell.draws = count_of(json, "draws");
  cell.fraction = number_of(json, "fraction");
  cell.fraction_sd = number_of(json, "fraction_sd");
  cell.fraction_se = number_of(json, "fraction_se");
  cell.any = number_of(json, "any");
  cell.any_se = number_of(json, "any_se");
  const double tied = number_of(json, "tied");
  cell.tied = std::isfinite(tied) && tied >= 0 && tied < 1e15 ? static_cast<decltype(cell.tied)>(tied) : 0;
  cell.unselectable = count_of(json, "unselectable");
  cell.robust_unselectable = count_of(json, "robust_unselectable");
  cell.robust_fraction = number_of(json, "robust_fraction");
  cell.robust_any = number_of(json, "robust_any");
  return cell;
}

int threads_of(const Json& json) {
  return static_cast<int>(std::clamp<std::uint64_t>(count_of(json, "threads"), 1, 1024));
}

PageSection heatmap_section(const RunFiles& run) {
  const Json& results = run.results;
  HeatmapRun heatmap;
  heatmap.init = parse_key_init(text_of(results, "init"));
  heatmap.precision = parse_precision(text_of(results, "precision"));
  heatmap.draws = count_of(results, "draws");
  heatmap.provenance = {text_of(results, "version"), text_of(results, "commit"), text_of(results, "isa"),
                        count_of(results, "seed"), threads_of(results)};
  const auto n = counts_of(array_of(results, "n")), d = counts_of(array_of(results, "d"));
  for (const Json& grid : array_of(results, "grids")) {
    const Json& cells = array_of(grid, "cells");
    if (n.empty() || d.empty() || cells.size() > kMostCells || cells.size() != n.size() * d.size())
      refuse(run, "a grid has not one cell for every n and d");
    HeatmapRun::Grid each{text_of(grid, "norm"), {n, d, {}}};
    for (const Json& cell : cells) each.heatmap.cells.push_back(cell_of(cell));
    heatmap.grids.push_back(std::move(each));
  }
  if (heatmap.grids.empty()) refuse(run, "there is no grid");
  Page page = heatmap_page(heatmap, "");
  PageSection section{run.name};
  section.verdict = page.verdict;
  section.paragraphs = {heatmap_readings(heatmap)};
  section.tables = {page.tables.front()};
  // Without a hint in every cell: the page reads them from the CSV, and the file stays small.
  HeatmapFigure figure = heatmap_figure(heatmap);
  figure.x_column = "n";
  figure.y_column = "d";
  for (auto& row : figure.rows) {
    for (std::size_t p = 0; p < row.panels.size(); ++p) {
      row.panels[p].hints.clear();
      row.panels[p].where = "norm=" + heatmap.grids[p].norm;
    }
  }
  Figure drawn = page.figures.front();
  drawn.svg = heatmap_svg(figure);
  section.figures.push_back(std::move(drawn));
  return section;
}

// --- collapse ---

CurveFigure collapse_curves(const Json& curves, const CollapseQuantity& quantity) {
  CurveFigure figure;
  const auto panel_of = [&](const std::string& group) -> CurveFigure::Panel& {
    for (auto& panel : figure.panels) {
      if (panel.title == group) return panel;
    }
    CurveFigure::Panel& panel = figure.panels.emplace_back();
    panel.title = group;
    panel.x_label = "layer";
    panel.y_label = quantity.symbol;
    panel.log_y = quantity.log;
    if (quantity.log) panel.y_low = 1e-9;
    return panel;
  };
  const auto layers = [](std::size_t count) {
    std::vector<double> numbers(count);
    for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<double>(i);
    return numbers;
  };
  for (const Json& curve : curves) {
    CurveFigure::Panel& panel = panel_of(text_of(curve, "group"));
    const Json& measure = object_of(object_of(curve, "measures"), quantity.name);
    CurveFigure::Curve line{text_of(curve, "name"), {}, numbers_of(array_of(measure, "mean")), {}, {}};
    line.x = layers(line.y.size());
    const std::vector<double> sd = numbers_of(array_of(measure, "sd"));
    if (sd.size() == line.y.size() &&
        std::any_of(sd.begin(), sd.end(), [](double value) { return value > 0; })) {
      for (std::size_t i = 0; i < sd.size(); ++i) {
        line.low.push_back(quantity.log ? std::max(line.y[i] - sd[i], line.y[i] / 10) : line.y[i] - sd[i]);
        line.high.push_back(line.y[i] + sd[i]);
      }
    }
    const std::string name = line.name;
    panel.curves.push_back(std::move(line));
    struct Theorem {
      const char *member, *name;
      double TokenMeasures::*measure;
    };
    for (const Theorem& theorem :
         {Theorem{"theorem1", "Thm 1", &TokenMeasures::mu},
          Theorem{"theorem2_diameter", "Thm 2, r = diameter", &TokenMeasures::relative},
          Theorem{"theorem2_radius", "Thm 2, r = radius", &TokenMeasures::relative},
          Theorem{"corollary1", "Cor 1", &TokenMeasures::relative}}) {
      const auto bound = numbers_of(array_of(object_of(object_of(curve, "theory"), theorem.member), "bound"));
      if (theorem.measure != quantity.measure || bound.empty()) continue;
      panel.curves.push_back(
          {fmt::format("{}, {}", theorem.name, name), layers(bound.size()), bound, {}, {}});
    }
  }
  return figure;
}

PageSection collapse_section(const RunFiles& run) {
  const Json& curves = array_of(run.results, "curves");
  if (curves.empty()) refuse(run, "there is no curve");
  PageSection section{run.name};
  section.verdict = text_of(run.results, "verdict");
  section.paragraphs = {"Bands are one standard deviation over samples."};
  const std::string settings = made_by(run, settings_list(object_of(run.results, "settings")));
  for (const CollapseQuantity& quantity : collapse_quantities()) {
    CurveFigure figure = collapse_curves(curves, quantity);
    const bool any = std::any_of(figure.panels.begin(), figure.panels.end(), [](const auto& panel) {
      return std::any_of(panel.curves.begin(), panel.curves.end(), [](const auto& curve) {
        return std::any_of(curve.y.begin(), curve.y.end(), [](double value) { return std::isfinite(value); });
      });
    });
    if (!any) continue;
    const std::size_t left_out = thin(figure, kMostPoints);
    Figure drawn = to_figure(quantity.name, quantity.title, "", figure);
    if (left_out > 0)
      drawn.caption = fmt::format("{} points that pixels cannot show were left out.", left_out);
    drawn.settings = settings;
    section.figures.push_back(std::move(drawn));
  }
  ReportTable table{"Collapse", {{"case", "kept per layer", "95 % interval"}}};
  for (const Json& curve : curves) {
    if (table.rows.size() > kMostRows) break;
    const Json& rate = object_of(curve, "rate");
    table.rows.push_back(
        {text_of(curve, "group") + ", " + text_of(curve, "name"), fixed(number_of(rate, "factor"), 3),
         std::isfinite(number_of(rate, "low"))
             ? fmt::format("{} to {}", fixed(number_of(rate, "low"), 3), fixed(number_of(rate, "high"), 3))
             : "– (one sample)"});
  }
  section.tables.push_back(std::move(table));
  return section;
}

// --- equilibria ---

FinalRanks ranks_of(const Json& json) {
  FinalRanks ranks;
  ranks.starts = count_of(json, "starts");
  ranks.ranks = {0};
  for (const Json& rank : array_of(json, "ranks")) {
    if (ranks.ranks.size() <= EquilibriumLimits::most_size) ranks.ranks.push_back(count_of(rank, "starts"));
  }
  ranks.ranks.resize(std::max<std::size_t>(3, ranks.ranks.size()));
  ranks.zero_rows = count_of(json, "zero_rows");
  ranks.unsettled = count_of(json, "unsettled");
  return ranks;
}

PageSection equilibria_section(const RunFiles& run) {
  constexpr std::size_t most_paths = 20, most_layers = 40;
  EquilibriaRun equilibria;
  equilibria.n = count_of(run.results, "tokens");
  equilibria.d = count_of(run.results, "dim");
  equilibria.starts = count_of(run.results, "starts");
  equilibria.layers = count_of(run.results, "steps");
  equilibria.provenance = {text_of(run.config, "version"), text_of(run.config, "commit"),
                           text_of(run.config, "isa"), count_of(run.config, "seed"), threads_of(run.config)};
  PageSection section{run.name};
  section.verdict = text_of(run.results, "verdict");
  ReportTable table{"How often the tokens stay apart",
                    {{"w", "token 1 fixed", "½ − arcsin(1/w)/2π", "both moving", "starts", "zero rows"}}};
  for (const Json& json : array_of(run.results, "weights")) {
    if (table.rows.size() > kMostRows) break;
    EquilibriaRun::Weight weight;
    weight.w = number_of(json, "w");
    require_equilibrium_weight(weight.w);
    const Json& arc = object_of(json, "arc");
    weight.arc.formula = number_of(arc, "formula");
    weight.coupled = ranks_of(object_of(json, "coupled"));
    const double starts = static_cast<double>(std::max<std::size_t>(1, weight.coupled.starts));
    table.rows.push_back({fmt::format("{:g}", weight.w), percent(number_of(arc, "share"), 2),
                          percent(weight.arc.formula, 2),
                          percent(static_cast<double>(weight.coupled.ranks[2]) / starts, 2),
                          std::to_string(weight.coupled.starts), std::to_string(weight.coupled.zero_rows)});
    if (section.figures.size() >= kMostWeights) continue;
    for (const Json& path : array_of(json, "trajectories")) {
      const auto start = numbers_of(array_of(path, "start"));
      if (start.size() != 4 || weight.paths.size() >= most_paths ||
          !std::all_of(start.begin(), start.end(), [](double value) { return std::abs(value) <= 1e6; }))
        continue;
      weight.paths.push_back(token_path(weight.w, {start[0], start[1], start[2], start[3]},
                                        std::min<std::size_t>(most_layers, count_of(path, "layers"))));
      for (const Fate fate : {Fate::collapsed, Fate::apart, Fate::zero_row, Fate::unsettled}) {
        if (text_of(path, "fate") == name_of(fate)) weight.paths.back().fate = fate;
      }
    }
    const PhaseFigure figure = phase_figure(equilibria, weight);
    Figure drawn{fmt::format("phase-{}", section.figures.size()),
                 fmt::format("Phase portrait, w = {:g}", weight.w),
                 "After Wu et al. (2024), Fig. 5. The map of all starts is in the run's own report."};
    drawn.svg = phase_svg(figure);
    drawn.csv = phase_csv(figure);
    drawn.settings = made_by(run, fmt::format("{} starts, {} layers", equilibria.starts, equilibria.layers));
    section.figures.push_back(std::move(drawn));
  }
  if (table.rows.size() == 1) refuse(run, "there is no w");
  section.tables.push_back(std::move(table));
  return section;
}

// --- masks ---

PageSection mask_section(const RunFiles& run) {
  PageSection section{run.name};
  const Json& specs = array_of(object_of(run.config, "options"), "masks");
  ReportTable table{"As graphs",
                    {{"mask", "tokens", "edges", "density", "components", "centres", "radius", "diameter"}}};
  MaskFigure figure;
  std::size_t index = 0;
  const auto length = [](const Json& mask, const char* name) {
    return mask.contains(name) && mask[name].is_number_unsigned() ? std::to_string(count_of(mask, name))
                                                                  : "infinite";
  };
  for (const Json& mask : array_of(run.results, "masks")) {
    if (table.rows.size() > kMostRows) break;
    if (!mask.is_object()) refuse(run, "a mask is not an object");
    const std::string name = text_of(mask, "mask");
    const std::size_t tokens = count_of(mask, "tokens");
    table.rows.push_back({name, std::to_string(tokens), std::to_string(count_of(mask, "edges")),
                          fmt::format("{:.4g} %", 100 * number_of(mask, "density")),
                          std::to_string(count_of(mask, "components")),
                          std::to_string(count_of(object_of(mask, "centres"), "count")),
                          length(mask, "radius"), length(mask, "diameter")});
    const bool known = index < specs.size() && specs[index].is_string();
    const std::string spec = known ? specs[index].get<std::string>() : "";
    ++index;
    if (!known || spec.size() > 500 || tokens == 0 || tokens > kMostMaskTokens ||
        figure.panels.size() >= kMostMasks)
      continue;
    try {  // families can be built anew; of files only the graph's properties are known
      Mask built = parse_mask(spec, tokens, count_of(run.config, "seed"));
      if (built.edges() != count_of(mask, "edges")) continue;
      MaskProperties properties = mask_properties(built);
      figure.panels.push_back({name, std::move(built), std::move(properties)});
    } catch (const InputError&) {
      continue;
    }
  }
  if (table.rows.size() == 1) refuse(run, "there is no mask");
  section.verdict = table.rows.size() == 2 ? fmt::format("{}: radius {}, {} centres.", table.rows[1][0],
                                                         table.rows[1][6], table.rows[1][5])
                                           : fmt::format("{} masks.", table.rows.size() - 1);
  if (!figure.panels.empty()) {
    Figure drawn{"mask", "The masks",
                 "Rows are tokens, columns what they attend to. Small masks are also graphs."};
    drawn.svg = mask_svg(figure);
    drawn.csv = mask_csv(figure);
    drawn.settings = made_by(run);
    section.figures.push_back(std::move(drawn));
  }
  if (figure.panels.size() + 1 < table.rows.size())
    section.paragraphs.emplace_back(
        "Masks from files and large ones are drawn in the run's own report only.");
  section.tables.push_back(std::move(table));
  return section;
}

// --- keys ---

KeyCounts key_counts(const Json& json) {
  return {count_of(json, "selectable"), count_of(json, "tied"), count_of(json, "unselectable")};
}

PageSection keys_section(const RunFiles& run) {
  const Json& settings = object_of(run.results, "settings");
  KeysRun keys;
  keys.source = text_of(settings, "file");
  keys.norm = text_of(settings, "norm");
  keys.lower_bounds = text_of(settings, "margin") == "bound";
  for (const Json& json : array_of(run.results, "sets")) {
    KeysRun::Set set{count_of(json, "n"),
                     count_of(json, "d"),
                     count_of(json, "rank"),
                     key_counts(object_of(json, "counts")),
                     key_counts(object_of(json, "robust_counts")),
                     {},
                     {}};
    for (const Json& key : array_of(json, "keys")) {
      if (const double margin = number_of(key, "margin"); std::isfinite(margin))
        set.margins.push_back(margin);
      if (const double depth = number_of(key, "depth"); std::isfinite(depth)) set.depths.push_back(depth);
    }
    keys.sets.push_back(std::move(set));
  }
  if (keys.sets.empty()) refuse(run, "there is no set of keys");
  PageSection section{run.name};
  section.verdict = keys_verdict(keys);
  section.figures = keys_figures(keys, made_by(run, settings_list(settings)));
  section.tables = {keys_table(keys, kMostRows)};
  return section;
}

PageSection paper_section(const RunFiles& run) {
  PageSection section{run.name};
  std::map<std::string, std::size_t> verdicts;
  section.claims = {"Claims", {{"where", "claim", "published", "measured", "verdict", "why"}}};
  for (const Json& claim : array_of(run.results, "claims")) {
    if (section.claims.rows.size() > kMostRows) break;
    ++verdicts[text_of(claim, "verdict")];
    section.claims.rows.push_back({text_of(claim, "where"), text_of(claim, "claim"),
                                   text_of(claim, "published"), text_of(claim, "measured"),
                                   text_of(claim, "verdict"), text_of(claim, "why")});
  }
  if (section.claims.rows.size() == 1) refuse(run, "there is no claim");
  for (const auto& [verdict, count] : verdicts)
    section.verdict += fmt::format("{}{}: {}", section.verdict.empty() ? "Claims: " : ", ", verdict, count);
  section.verdict += ".";
  section.paragraphs.emplace_back(
      "The figures of the papers are in the run's own report; trainings inside it are below.");
  return section;
}

PageSection training_section(const RunFiles& run, const TrainingMarks& marks) {
  const Json& settings = object_of(object_of(run.config, "options"), "settings");
  PageSection section{run.name};
  section.verdict = training_verdict(run.log.series);
  if (run.log.series.empty()) {
    section.paragraphs.emplace_back("There is no line in metrics.jsonl yet.");
    return section;
  }
  section.figures.push_back(training_figure(
      run.log.series, marks,
      fmt::format("{} · normscope {} ({}, {})", settings_list(settings), text_of(run.config, "version"),
                  text_of(run.config, "commit"), text_of(run.config, "isa"))));
  if (run.log.left_out > 0)
    section.figures.back().caption +=
        fmt::format(" {} rows of metrics.jsonl were passed over; it has all.", run.log.left_out);
  section.tables.push_back(training_table(run.log.series));
  return section;
}

// A command this report does not know: what its results say in single values.
PageSection plain_section(const RunFiles& run) {
  PageSection section{run.name};
  section.verdict = text_of(run.results, "verdict");
  ReportTable table{"Results", {{"name", "value"}}};
  if (run.results.is_object()) {
    for (const auto& [name, value] : run.results.items()) {
      if (value.is_structured() || table.rows.size() > kMostRows) continue;
      table.rows.push_back({name.substr(0, kLongestValue), shown(value)});
    }
  }
  if (table.rows.size() > 1) section.tables.push_back(std::move(table));
  return section;
}

// "a" and "b.c" with their values, of options that may be nested.
void flatten(const Json& json, const std::string& prefix, std::map<std::string, std::string>& values) {
  if (!json.is_object()) return;
  for (const auto& [name, value] : json.items()) {
    if (values.size() >= kMostRows) return;
    if (value.is_object()) {
      flatten(value, "", values);
    } else if (name != "runs") {
      values[prefix + name.substr(0, kLongestValue)] = shown(value);
    }
  }
}

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

std::map<std::string, std::string> options_of(const Json& options, const TrainingLog& log) {
  std::map<std::string, std::string> values;
  flatten(options, "", values);
  std::vector<std::string> norms, seeds;
  const auto add = [](std::vector<std::string>& list, const std::string& word) {
    if (std::find(list.begin(), list.end(), word) == list.end() && list.size() < 12) list.push_back(word);
  };
  for (const TrainingSeries& series : log.series) {
    add(norms, series.norm);
    add(seeds, std::to_string(series.seed));
  }
  if (!norms.empty()) values["norms"] = joined(norms), values["seeds"] = joined(seeds);
  return values;
}

}  // namespace

void RunsReport::keep_what_fits(PageSection& section) {
  // Runs still to come have a right to as much.
  const std::size_t to_come = options_.runs > sections_.size() ? options_.runs - sections_.size() : 1;
  std::size_t room = left_ / to_come;
  std::vector<std::string> dropped;
  std::vector<Figure> kept;
  for (Figure& figure : section.figures) {
    const std::size_t size =
        figure.svg.size() + figure.html.size() + figure.csv.size() + figure.csv.size() / 8;
    if (size > room) {
      dropped.push_back(figure.title);
      continue;
    }
    room -= size;
    left_ -= size;
    kept.push_back(std::move(figure));
  }
  section.figures = std::move(kept);
  if (!dropped.empty())
    section.paragraphs.push_back(fmt::format(
        "Left out, since a report over {} runs would become too large: {}. The run's own report has {}.",
        options_.runs, joined(dropped), dropped.size() == 1 ? "it" : "them"));
}

void RunsReport::add(RunFiles run) {
  const Json options = object_of(run.config, "options");
  const bool done = run.results.is_object();
  PageSection section{run.name};
  try {
    if (run.command.starts_with("train ")) {
      const Json& settings = object_of(options, "settings");
      section = training_section(run, options_.marks ? options_.marks(settings) : TrainingMarks());
    } else if (done) {
      section = run.command == "heatmap"      ? heatmap_section(run)
                : run.command == "collapse"   ? collapse_section(run)
                : run.command == "equilibria" ? equilibria_section(run)
                : run.command == "mask"       ? mask_section(run)
                : run.command == "keys"       ? keys_section(run)
                : run.command == "paper"      ? paper_section(run)
                                              : plain_section(run);
    }
  } catch (const nlohmann::json::exception&) {
    refuse(run, "a value is of another kind");
  } catch (const InputError& error) {
    std::string what = error.what();
    if (what.find(run.directory.string()) != std::string::npos) throw;
    while (what.ends_with('.')) what.pop_back();
    refuse(run, what);  // a sentence of another room does not know the file
  }
  if (!run.note.empty()) section.paragraphs.insert(section.paragraphs.begin(), run.note);
  if (run.has_report())
    section.link = fs::absolute(run.directory / "report.html")
                       .lexically_normal()
                       .lexically_relative(fs::absolute(options_.folder).lexically_normal())
                       .string();
  Known known{section.title,
              run.command,
              text_of(run.config, "version"),
              done ? "finished" : "not finished",
              section.verdict,
              std::to_string(count_of(run.config, "seed")),
              options,
              {}};
  if (run.command.starts_with("train ")) {
    double step = 0;
    for (const TrainingSeries& series : run.log.series)
      if (!series.rows.empty()) step = std::max(step, series.rows.back().step);
    if (!done)
      known.state =
          fmt::format("at step {:.0f} of {}", step, count_of(object_of(options, "settings"), "steps"));
    while (run.log.rows() > kMostLogRows) run.log.halve();
    known.log = std::move(run.log);
    known.seed = options_of(Json(), known.log)["seeds"];
  }
  section.title = fmt::format("{}: {}", run.name, run.command);
  keep_what_fits(section);
  for (Figure& figure : section.figures)
    figure.name = fmt::format("run{}-{}", sections_.size() + 1, figure.name);
  runs_.push_back(std::move(known));
  sections_.push_back(std::move(section));
}

Page RunsReport::page(const Provenance& provenance) const {
  Page page;
  page.title =
      runs_.size() == 1 ? "Report on " + runs_.front().name : fmt::format("Report on {} runs", runs_.size());
  Json data = {{"runs", Json::array()}};
  page.claims = {"The runs", {{"run", "command", "state", "seed", "version", "main result"}}};
  for (const Known& run : runs_) {
    page.claims.rows.push_back({run.name, run.command, run.state, run.seed, run.version, run.verdict});
    data["runs"].push_back({{"run", run.name},
                            {"command", run.command},
                            {"state", run.state},
                            {"seed", run.seed},
                            {"version", run.version},
                            {"result", run.verdict}});
  }
  // What differs, command by command.
  std::map<std::string, std::vector<const Known*>> commands;
  for (const Known& run : runs_) commands[run.command].push_back(&run);
  for (const auto& [command, group] : commands) {
    if (group.size() < 2) continue;
    std::vector<std::map<std::string, std::string>> all;
    std::map<std::string, bool> differs;
    for (const Known* run : group) {
      all.push_back(options_of(run->options, run->log));
      if (!all.back().contains("seeds")) all.back()["seed"] = run->seed;
      for (const auto& [name, value] : all.back()) {
        const auto first = all.front().find(name);
        differs[name] = differs[name] || first == all.front().end() || first->second != value;
      }
      for (const auto& [name, value] : all.front())
        if (!all.back().contains(name)) differs[name] = true;
    }
    ReportTable table{fmt::format("What differs between the runs of {}", command), {{"run"}}};
    for (const auto& [name, is_different] : differs)
      if (is_different) table.rows[0].push_back(name);
    if (table.rows[0].size() == 1) {
      page.paragraphs.push_back(
          fmt::format("The {} runs of {} have the same settings.", group.size(), command));
      continue;
    }
    for (std::size_t r = 0; r < group.size(); ++r) {
      std::vector<std::string> row = {group[r]->name};
      for (std::size_t c = 1; c < table.rows[0].size(); ++c) {
        const auto found = all[r].find(table.rows[0][c]);
        row.push_back(found == all[r].end() ? "–" : found->second);
      }
      table.rows.push_back(std::move(row));
    }
    page.tables.push_back(std::move(table));
  }
  // Trainings with the same settings, over each other.
  std::map<std::string, std::vector<const Known*>> trainings;
  for (const Known& run : runs_) {
    if (run.log.series.empty()) continue;
    Json settings = object_of(run.options, "settings");
    settings.erase("steps");  // how far they went does not make them another experiment
    trainings[settings.dump(-1, ' ', false, Json::error_handler_t::replace)].push_back(&run);
  }
  for (const auto& [settings, group] : trainings) {
    if (group.size() < 2) continue;
    std::vector<TrainingSeries> all;
    std::vector<std::string> names;
    for (const Known* run : group) {
      names.push_back(run->name);
      for (const TrainingSeries& series : run->log.series) {
        const auto same = [&](const TrainingSeries& other) {
          return other.norm == series.norm && other.seed == series.seed;
        };
        const auto known = std::find_if(all.begin(), all.end(), same);
        if (known == all.end()) {
          all.push_back(series);
        } else if (series.last_step() > known->last_step()) {
          *known = series;
        }
      }
    }
    const Json& shared = object_of(group.front()->options, "settings");
    Figure figure = training_figure(all, options_.marks ? options_.marks(shared) : TrainingMarks(),
                                    settings_list(shared));
    figure.name = "trainings";
    figure.title = "Trainings with the same settings, by norm";
    figure.caption +=
        fmt::format(" From {}. Of a norm and seed that several have, the longest counts.", joined(names));
    page.figures.push_back(std::move(figure));
    page.tables.push_back(training_table(all));
  }
  page.sections = sections_;
  page.footer = fmt::format("Report made by normscope {} ({}, {}); each run names the version that made it.",
                            provenance.version, provenance.commit, provenance.isa);
  page.data = data.dump(-1, ' ', false, Json::error_handler_t::replace);
  return page;
}

}  // namespace normscope

#include "report/runs_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "normscope/error.h"
#include "report/ablate_page.h"
#include "report/collapse_page.h"
#include "report/equilibria_page.h"
#include "report/heatmap_page.h"
#include "report/keys_page.h"
#include "report/mask_page.h"
#include "report/paper_cards.h"
#include "report/result_cards.h"
#include "report/scan_page.h"
#include "report/training_results.h"
#include "report/vocab_page.h"
#include "result/columns.h"
#include "result/json_reader.h"
#include "result/json_writer.h"
#include "result/paper.h"

namespace normscope {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMostRows = RunView::most_rows, kMostLogRows = 100'000, kLongestValue = 60;
constexpr std::size_t kMostBeside = 12, kMostBesideBytes = 3'000'000;  // runs whose maps share a figure

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

RunView paper_view(const PaperResult& result, const Provenance&) {
  RunView view;
  PageSection& section = view.section;
  if (result.claims.empty()) throw InputError("there is no claim");
  section.verdict = counts_sentence(paper_cards(result, kMostRows));
  section.paragraphs.emplace_back(
      "The figures of the papers are in the run's own report; trainings inside it are below.");
  return view;
}

RunView training_view(const RunFiles& run, const TrainingMarks& marks) {
  const Json& settings = object_of(object_of(run.config, "options"), "settings");
  RunView view;
  PageSection& section = view.section;
  const auto unfinished = run.finished ? std::nullopt : std::optional(count_of(settings, "steps"));
  section.verdict = training_verdict(run.log.series, unfinished);
  if (run.log.series.empty()) {
    section.paragraphs.emplace_back("There is no line in metrics.jsonl yet.");
    return view;
  }
  section.figures.push_back(training_figure(
      run.log.series, marks,
      fmt::format("{} · normscope {} ({}, {})", settings_list(settings), text_of(run.config, "version"),
                  text_of(run.config, "commit"), text_of(run.config, "isa"))));
  if (run.log.left_out > 0)
    section.figures.back().caption +=
        fmt::format(" {} rows of metrics.jsonl were passed over; it has all.", run.log.left_out);
  section.tables.push_back(training_table(run.log.series));
  return view;
}

// A command this report does not know: what its results say in single values.
RunView plain_view(const Json& results) {
  RunView view;
  PageSection& section = view.section;
  section.verdict = text_of(results, "verdict");
  ReportTable table{"Results", {{"name", "value"}}};
  if (results.is_object()) {
    for (const auto& [name, value] : results.items()) {
      if (value.is_structured() || table.rows.size() > kMostRows) continue;
      table.rows.push_back({name.substr(0, kLongestValue), shown(value)});
    }
  }
  if (table.rows.size() > 1) section.tables.push_back(std::move(table));
  return view;
}

// A run in the table at the top, and in the JSON.
struct RunRow {
  std::string run, command, state, seed, version, result;

  static void describe(auto& visit, auto& self) {
    visit("run", self.run, "its directory, as it was named");
    visit("command", self.command, "that made it");
    visit("state", self.state, "finished, or how far it is");
    visit("seed", self.seed, "or the seeds of a training");
    visit("version", self.version, "of the program that made it");
    visit("result", self.result, "in a sentence", {.heading = "main result"});
  }
};
struct RunRows {
  std::vector<RunRow> runs;

  static void describe(auto& visit, auto& self) { visit("runs", self.runs, "in the order they were named"); }
};

// What is known of a command's results: how they are read, and what is shown of them.
struct Command {
  std::string_view name;
  RunView (*view)(const Json& results, const Provenance& made);
};
template <class Result, RunView (*view)(const Result&, const Provenance&)>
RunView view_of(const Json& results, const Provenance& made) {
  Result result;
  JsonReader::read(results, "its JSON", result);
  return view(result, made);
}
constexpr Command kCommands[] = {
    {"keys", view_of<KeysResult, keys_view>},
    {"scan", view_of<ScanResult, scan_view>},
    {"vocab", view_of<VocabResult, vocab_view>},
    {"ablate", view_of<AblateResult, ablate_view>},
    {"heatmap", view_of<HeatmapResult, heatmap_view>},
    {"mask", view_of<MasksResult, mask_view>},
    {"collapse", view_of<CollapseResult, collapse_view>},
    {"equilibria", view_of<EquilibriaResult, equilibria_view>},
    {"paper", view_of<PaperResult, paper_view>},
    {"train majority", view_of<MajorityResult, majority_view>},
    {"train lm", view_of<TextResult, text_training_view>},
    {"train sentiment", view_of<TextResult, text_training_view>},
};

// The same map of several runs, in one figure: runs beside each other, panel by panel.
RunView::Map beside(const std::vector<std::pair<std::string, const RunView::Map*>>& maps) {
  RunView::Map all = *maps.front().second;
  all.figure.panels.clear();
  std::vector<std::string> titles;
  for (const auto& [run, map] : maps) {
    all.figure.layers = std::max(all.figure.layers, map->figure.layers);
    all.figure.heads = std::max(all.figure.heads, map->figure.heads);
    for (const LayerHeadFigure::Panel& panel : map->figure.panels)
      if (std::find(titles.begin(), titles.end(), panel.title) == titles.end()) titles.push_back(panel.title);
  }
  for (const std::string& title : titles) {
    for (const auto& [run, map] : maps) {
      for (const LayerHeadFigure::Panel& panel : map->figure.panels) {
        if (panel.title != title) continue;
        all.figure.panels.push_back({fmt::format("{}: {}", fs::path(run).filename().string(), title),
                                     panel.values, map->figure.heads});
      }
    }
  }
  return all;
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

RunView results_view(std::string_view command, const Json& results, const Json& config) {
  const auto known = std::find_if(std::begin(kCommands), std::end(kCommands),
                                  [&](const Command& each) { return each.name == command; });
  if (known == std::end(kCommands)) return plain_view(results);
  const Provenance made{text_of(config, "version"), text_of(config, "commit"), text_of(config, "isa"),
                        count_of(config, "seed"),
                        static_cast<int>(std::clamp<std::uint64_t>(count_of(config, "threads"), 1, 1024))};
  return known->view(results, made);
}

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
  const bool training = run.command.starts_with("train ");
  RunView view;
  std::vector<Card> cards;
  try {
    if (run.results.is_object()) cards = results_cards(run.command, run.results);
    if (training) {
      const Json& settings = object_of(options, "settings");
      view = training_view(run, options_.marks ? options_.marks(settings) : TrainingMarks());
    } else if (run.results.is_object()) {
      view = results_view(run.command, run.results, run.config);
    }
  } catch (const InputError& error) {
    std::string what = error.what();  // a sentence of another room, which does not know the file
    while (what.ends_with('.')) what.pop_back();
    throw InputError(fmt::format("'{}' does not hold what normscope {} writes: {}.",
                                 (run.directory / "results.json").string(), run.command, what));
  }
  PageSection& section = view.section;
  if (!run.note.empty()) section.paragraphs.insert(section.paragraphs.begin(), run.note);
  if (run.has_report())
    section.link = fs::absolute(run.directory / "report.html")
                       .lexically_normal()
                       .lexically_relative(fs::absolute(options_.folder).lexically_normal())
                       .string();
  Known known{run.name,
              run.command,
              text_of(run.config, "version"),
              run.finished ? "finished" : "not finished",
              section.verdict,
              std::to_string(count_of(run.config, "seed")),
              options,
              {},
              std::move(view.maps),
              std::move(view.beside)};
  if (training) {
    double step = 0;
    for (const TrainingSeries& series : run.log.series)
      if (!series.rows.empty()) step = std::max(step, series.rows.back().step);
    if (!run.finished)
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
  cards_.push_back(std::move(cards));
}

// What runs of a command have alike: maps in one figure, rows in one table.
void RunsReport::add_beside(Page& page, const std::string& command, const std::vector<const Known*>& group) {
  if (group.size() < 2) return;
  ReportTable table;
  std::map<std::string, std::vector<std::pair<std::string, const RunView::Map*>>> maps;
  for (const Known* run : group) {
    for (const RunView::Map& map : run->maps)
      if (maps[map.name].size() < kMostBeside) maps[map.name].emplace_back(run->name, &map);
    for (std::size_t r = table.rows.empty() ? 0 : 1; r < run->beside.rows.size(); ++r) {
      auto& row = table.rows.emplace_back(run->beside.rows[r]);
      row.insert(row.begin(), r == 0 ? "run" : run->name);
    }
    table.title = fmt::format("{}, runs of {} side by side", run->beside.title, command);
  }
  if (!table.rows.empty()) page.tables.push_back(std::move(table));
  for (const RunView::Map& first : group.front()->maps) {
    const auto& found = maps[first.name];
    if (found.size() < 2) continue;
    const RunView::Map all = beside(found);
    const bool some = found.size() < group.size();
    Figure figure =
        to_figure(command + "-" + all.name, all.title + ", run by run",
                  some ? fmt::format("The first {} runs; the others are below.", found.size()) : all.caption,
                  all.figure);
    figure.settings = "The settings of each run are with its own figures.";
    if (figure.svg.size() + figure.csv.size() <= kMostBesideBytes) page.figures.push_back(std::move(figure));
  }
}

CardedPage RunsReport::page(const Provenance& provenance) const {
  CardedPage page;
  page.title =
      runs_.size() == 1 ? "Report on " + runs_.front().name : fmt::format("Report on {} runs", runs_.size());
  RunRows rows;
  for (const Known& run : runs_)
    rows.runs.push_back({run.name, run.command, run.state, run.seed, run.version, run.verdict});
  page.claims = {"The runs", table_of(rows.runs)};
  // Sentences have a table of their own: beside the other columns a telephone has no room for them.
  ReportTable results{"Main results", {}};
  for (auto& row : page.claims.rows) {
    results.rows.push_back({row.front(), std::move(row.back())});
    row.pop_back();
  }
  page.above.push_back(std::move(results));
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
        row.push_back(found == all[r].end() || found->second.empty() ? "–" : found->second);
      }
      table.rows.push_back(std::move(row));
    }
    page.above.push_back(std::move(table));
  }
  for (const auto& [command, group] : commands) add_beside(page, command, group);
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
  page.section_cards = cards_;
  page.footer = fmt::format("Report made by normscope {} ({}, {}); each run names the version that made it.",
                            provenance.version, provenance.commit, provenance.isa);
  page.data = json_of(rows, -1);
  page.data.pop_back();  // the newline
  return page;
}

}  // namespace normscope

#include "run/finished.h"

#include <fmt/format.h>

#include "core/printable.h"
#include "normscope/error.h"
#include "record/json.h"
#include "report/ablate_page.h"
#include "report/equilibria_page.h"
#include "report/heatmap_page.h"
#include "report/keys_page.h"
#include "report/mask_page.h"
#include "report/result_cards.h"
#include "report/scan_page.h"
#include "report/vocab_page.h"
#include "result/json_writer.h"
#include "study/parse.h"

namespace normscope {
namespace {

// For a page, which holds it.
template <Described Result>
std::string data_of(const Result& result) {
  std::string data = json_of(result, -1);
  data.pop_back();  // the newline
  return data;
}

MaskFigure figure_of(const MaskStudy& study) {
  const Provenance& made = study.result.made;
  return {study.masks,
          fmt::format("seed {} · normscope {} ({}, {})", made.seed, made.version, made.commit, made.isa)};
}

// Of one set that can be drawn; keys on which score offsets decide are not seen from where they lie.
std::optional<Figure> picture_of(const KeysStudy& study) {
  constexpr std::size_t most = 1000;
  const auto& [given, result] = study;
  if (given.sets != 1 || (given.d != 2 && given.d != 3) || given.n > most || !given.offsets.empty() ||
      !result.sets.front().keys)
    return std::nullopt;
  std::vector<Verdict> verdicts;
  for (const KeyResult& key : *result.sets.front().keys) verdicts.push_back(key.key.verdict);
  const std::string norm = result.settings.norm == "none" ? "as they are" : "after " + result.settings.norm;
  return keys_picture({given.values.data(), given.n, given.d}, verdicts, given.projected_out > 0,
                      fmt::format("{}, {}", counted(given.n, "key"), norm),
                      settings_text(result.made, given.source));
}

}  // namespace

std::unique_ptr<RunDirectory> replaceable_directory(const std::string& path,
                                                    std::initializer_list<std::string> inputs) {
  const std::string held = command_of(std::filesystem::path(path));
  if (held == "paper" || held.starts_with("train ")) {
    throw InputError(fmt::format(
        "'{}' holds a run of 'normscope {}', over which nothing is written; name a new directory.", path,
        held));
  }
  for (const std::string& input : inputs) {
    std::error_code unknown;
    const auto folder = std::filesystem::absolute(tensor_place(input).path, unknown).parent_path();
    if (!held.empty() && !input.empty() && std::filesystem::equivalent(folder, path, unknown)) {
      throw InputError(fmt::format(
          "'{}' lies in '{}', whose earlier run would be removed with it; name another directory for --out.",
          input, path));
    }
  }
  return std::make_unique<RunDirectory>(path, RunDirectory::Use::replaced);
}

// Verdicts and certificates of single keys stay in results.json, which may be large.
Page page_of(const KeysStudy& study) {
  const auto& [given, result] = study;
  KeysRun keys;
  keys.source = fmt::format("{}, {}, {} × {}", given.source, name_of(given.dtype), given.n, given.d);
  if (!result.settings.bias.empty()) keys.source += ", score offsets of " + printable(result.settings.bias);
  keys.norm = result.settings.norm;
  keys.lower_bounds = result.settings.margin == Margins::bound;
  for (const KeySetResult& set : result.sets) keys.sets.push_back(summary_of(set));
  if (result.settings.advice) keys.advice = advice_tables(result);
  KeysResult head;
  head.made = result.made;
  head.seconds = result.seconds;
  head.settings = result.settings;
  head.undefined_rows = result.undefined_rows;
  Page page = keys_page(keys, result.made, json_of(head, -1));
  if (std::optional<Figure> picture = picture_of(study))
    page.figures.insert(page.figures.begin(), *std::move(picture));
  return page;
}

void write_run(const RunDirectory& directory, const KeysStudy& study, const KeysResult& result) {
  const std::string page = render_html(page_of(study));
  directory.write_config("keys", result.made, json_of(result.settings));
  directory.write("results.json", json_of(result, -1));
  if (const std::optional<Figure> picture = picture_of(study)) directory.write("keys.svg", picture->svg);
  directory.write("report.html", page);
}

std::string source_of(const VocabStudy& study) {
  return fmt::format("{}, {}, {} × {}", study.given.source, name_of(study.given.dtype), study.result.tokens,
                     study.result.d);
}

// Of the single tokens the page shows a few, and certificates.safetensors holds all.
Page page_of(const VocabStudy& study) {
  VocabResult head = study.result;
  head.never_alone.reset();
  head.smallest_margins.reset();
  return vocab_page(study.result, source_of(study), study.set, json_of(head, -1));
}

void write_run(const RunDirectory& directory, const VocabStudy& study) {
  directory.write_config("vocab", study.result.made, json_of(study.result.settings));
  directory.add_file("certificates.safetensors");
  write_certificates(directory.path() / "certificates.safetensors", study.set);
  directory.write("results.json", json_of(study.result));
  directory.write("report.html", render_html(page_of(study)));
}

// The page holds the figures' data; all verdicts of all tokens are in results.json.
CardedPage page_of(const ScanPlan& plan, const ScanStudy& study) {
  const ScanResult& result = study.result;
  ScanResult head;
  head.made = result.made;
  head.seconds = result.seconds;
  head.settings = result.settings;
  head.family = result.family;
  head.verdict = result.verdict;
  head.spaces = result.spaces;
  CardedPage page = scan_page(result, study.summary, ScanAbout{plan.about, plan.as_model}, data_of(head));
  page.score.cards = scan_cards(result);
  return page;
}

void begin_run(const RunDirectory& directory, const ScanPlan& plan, const Provenance& made) {
  directory.write_config("scan", made, json_of(plan.told));
  for (const std::string& file : trace_files(plan)) directory.add_file(file);
}

void write_run(const RunDirectory& directory, const ScanPlan& plan, const ScanStudy& study) {
  directory.write("results.json", json_of(study.result));
  directory.write("report.html", render_html(page_of(plan, study)));
}

CardedPage page_of(const AblatePlan& plan, const AblateStudy& study) {
  CardedPage page = ablate_page(study.result, study.ablation, plan.about, data_of(study.result));
  page.score.cards = ablate_cards(study.result);
  return page;
}

void write_run(const RunDirectory& directory, const AblatePlan& plan, const AblateStudy& study) {
  directory.write_config("ablate", study.result.made, json_of(plan.told));
  directory.write("results.json", json_of(study.result));
  directory.write("layers.csv", ablate_csv(study.result));
  directory.write("report.html", render_html(page_of(plan, study)));
}

Page page_of(const HeatmapStudy& study) {
  return heatmap_page(study.run, json_of(study.result, -1));
}

void write_run(const RunDirectory& directory, const HeatmapStudy& study) {
  directory.write_config("heatmap", study.result.made, json_of(study.settings));
  directory.write("results.json", json_of(study.result));
  directory.write("cells.csv", heatmap_csv(study.run));
  directory.write("heatmap.svg", heatmap_svg(heatmap_figure(study.run)));
  directory.write("report.html", render_html(page_of(study)));
}

Page page_of(const MaskStudy& study) {
  return mask_page(figure_of(study), study.result.made, json_of(study.result, -1));
}

void write_run(const RunDirectory& directory, const MaskStudy& study) {
  directory.write_config("mask", study.result.made, json_of(study.settings));
  directory.write("results.json", json_of(study.result));
  directory.write("mask.svg", mask_svg(figure_of(study)));
  directory.write("report.html", render_html(page_of(study)));
}

std::unique_ptr<RunDirectory> paper_directory(const std::filesystem::path& path, bool resume,
                                              const PaperPlan& plan, int threads) {
  constexpr const char* command = "paper";
  auto directory = std::make_unique<RunDirectory>(path);
  if (resume) {
    directory->remove_leftovers();
    return directory;
  }
  const std::string held = command_of(path);
  if (!held.empty() && held != command) {
    throw InputError(fmt::format("'{}' holds a run of 'normscope {}'; name a new directory with --out.",
                                 path.string(), held));
  }
  if (directory->holds_run()) {
    throw InputError(fmt::format(
        "'{}' holds an earlier run; go on with it by --resume {}, or name a new directory with --out.",
        path.string(), path.string()));
  }
  directory->write_config(command, provenance(plan.seed, threads), json_of(plan, -1));
  return directory;
}

Page page_of(const EquilibriaStudy& study) {
  return equilibria_page(study.run, json_of(study.result, -1));
}

void write_run(const RunDirectory& directory, const EquilibriaStudy& study) {
  directory.write_config("equilibria", study.result.made, json_of(study.settings));
  directory.write("results.json", json_of(study.result));
  directory.write("trajectories.csv", trajectories_csv(study.run));
  directory.write("phase.svg", phase_svg(phase_figure(study.run, study.run.weights.front())));
  directory.write("report.html", render_html(page_of(study)));
}

}  // namespace normscope

// normscope scan: which tokens of a text the layers and heads of a trained model can select.
#include "study/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/common.h"
#include "cli/options.h"
#include "report/scan_page.h"
#include "result/json_writer.h"

namespace normscope::cli {
namespace {

constexpr std::size_t kMostPrinted = 4000;  // characters of text on a terminal

// The text with the unselectable tokens marked: by colour, or by brackets where there is none.
std::string marked_text(const ScanResult& result, KeySpace space) {
  const bool colours = colour_output();
  std::string text;
  std::size_t characters = 0;
  for (std::size_t w = 0; w < result.windows->size() && characters < kMostPrinted; ++w) {
    const TextFigure figure = scan_text(result, w, space);
    for (const TextFigure::Token& token : figure.tokens) {
      if (characters >= kMostPrinted) break;
      // Line breaks stay; whatever else could move the cursor does not.
      std::string shown;
      for (const std::string_view line : split(token.text, '\n')) {
        if (!shown.empty() || line.data() != token.text.data()) shown += '\n';
        shown += printable(line);
      }
      characters += shown.size();
      const std::size_t begin = std::min(shown.find_first_not_of(" \n"), shown.size());
      const std::string space_before = shown.substr(0, begin), word = shown.substr(begin);
      if (!token.value) {
        text += shown;
      } else if (colours) {
        text +=
            fmt::format("{}\033[{}m{}\033[0m", space_before, *token.value >= 1 ? "1;97;41" : "30;43", word);
      } else {
        const bool in_all = *token.value >= 1;
        text += fmt::format("{}{}{}{}", space_before, in_all ? "[[" : "[", word, in_all ? "]]" : "]");
      }
    }
    text += "\n";
  }
  return text + (characters >= kMostPrinted ? "…\n" : "");
}

std::string highlighted(const ScanResult& result, std::optional<KeySpace> space) {
  for (const KeySpace each : result.settings.spaces) {
    if (!space && any_unselectable(result, each)) space = each;
  }
  if (!space || !any_unselectable(result, *space)) return "";
  return fmt::format("\nUnselectable in some {0}{1}, in all {2} ({3}):\n{4}", set_name(*space),
                     colour_output() ? " (yellow)" : " [so]", colour_output() ? "(red)" : "[[so]]",
                     name_of(*space), marked_text(result, *space));
}

// The page holds the figures' data; all verdicts of all tokens are in results.json.
std::string report(ScanStudy& study, const ScanAbout& about) {
  auto windows = std::exchange(study.result.windows, std::nullopt);
  std::string data = json_of(study.result, -1);
  data.pop_back();  // the newline
  study.result.windows = std::move(windows);
  return render_html(scan_page(study.result, study.summary, about, std::move(data)));
}

ScanStudy run_with_progress(const ScanPlan& plan, const Common& common, const Executor& executor) {
  Progress progress(common, "scan:", "sets");
  return run_scan(plan, {executor, common.seed,
                         [&](std::size_t done, std::size_t total) { progress.update(done, total); }});
}

void run(const ScanOptions& options, const Common& common) {
  const ScanPlan plan = plan_scan(options, common.out);
  const auto directory = replaceable_directory(common);
  const Executor executor(common.threads, common.stop);
  if (directory)
    directory->write_config("scan", provenance(common.seed, executor.threads()), json_of(plan.told));
  ScanStudy study = run_with_progress(plan, common, executor);
  const ScanAbout about{plan.about, plan.as_model};
  for (const std::string& sentence : about.notes) note(common, sentence);
  if (directory) {
    directory->write("results.json", json_of(study.result));
    directory->write("report.html", report(study, about));
    note(common, "Wrote " + (directory->path() / "report.html").string());
  }
  if (common.json) return write_json(study.result, -1, print);
  print(fmt::format("{}\n{}{}\n{}\n", table(scan_table(study.result, study.summary).rows),
                    scan_readings(study.result, about), study.result.verdict,
                    highlighted(study.result, options.highlight)));
}

}  // namespace

void add_scan(CLI::App& app, Common& common) {
  CLI::App* command = add_command(
      app, common, "scan", "Which tokens of a text the layers and heads of a trained model can select",
      {"scan minilm --text article.txt --out runs/minilm",
       "scan stories15m --text story.txt --space head reachable --layers 0:2 --heads 0,3",
       "scan path/to/model --ids tokens.txt --window 512 --stride 256 --samples 8 --json"});
  auto options = std::make_shared<ScanOptions>();
  add_options(*command, *options);
  when_called(*command, [options, &common] { run(*options, common); });
}

}  // namespace normscope::cli

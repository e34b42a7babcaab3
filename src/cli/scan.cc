// normscope scan: which tokens of a text the layers and heads of a trained model can select.
#include "study/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "cli/common.h"
#include "cli/options.h"
#include "report/scan_page.h"
#include "result/json_writer.h"

namespace normscope::cli {
namespace {

constexpr std::size_t kMostPrinted = 4000;  // characters of text on a terminal

// How a kind of token is marked: by colour, or by brackets where there is none.
struct Mark {
  const char *kind, *colour, *name, *before, *after;
};
constexpr Mark kMarks[] = {{kUnselectableInAll, "1;97;41", "red", "[[", "]]"},
                           {kUnselectableInSome, "30;43", "yellow", "[", "]"},
                           {kTiedInAll, "1;97;44", "blue", "{{", "}}"},
                           {kTiedInSome, "30;46", "cyan", "{", "}"}};

// Line breaks stay; whatever else could move the cursor does not.
std::string shown(const std::string& token) {
  std::string text;
  for (const std::string_view line : split(token, '\n')) {
    if (line.data() != token.data()) text += '\n';
    text += printable(line);
  }
  return text;
}

// The text of a space with its tokens marked, and which marks it has.
struct MarkedText {
  std::string text;
  std::set<const Mark*> marks;
};

MarkedText marked_text(const ScanResult& result, KeySpace space) {
  const bool colours = colour_output();
  MarkedText marked;
  std::size_t characters = 0;
  for (std::size_t w = 0; w < result.windows->size() && characters < kMostPrinted; ++w) {
    for (const TextFigure::Token& token : scan_text(result, w, space).tokens) {
      if (characters >= kMostPrinted) break;
      const std::string text = shown(token.text);
      characters += text.size();
      const auto* mark = std::find_if(std::begin(kMarks), std::end(kMarks),
                                      [&](const Mark& each) { return each.kind == token.kind; });
      if (mark == std::end(kMarks)) {
        marked.text += text;
        continue;
      }
      marked.marks.insert(mark);
      const std::size_t begin = std::min(text.find_first_not_of(" \n"), text.size());
      marked.text += text.substr(0, begin);
      marked.text += colours ? fmt::format("\033[{}m{}\033[0m", mark->colour, text.substr(begin))
                             : mark->before + text.substr(begin) + mark->after;
    }
    marked.text += "\n";
  }
  if (characters >= kMostPrinted) marked.text += "…\n";
  return marked;
}

// Of the space asked for; else of the first that has unselectable tokens; else of the first with tied ones.
std::string highlighted(const ScanResult& result, std::optional<KeySpace> space) {
  for (const auto& marked : {any_unselectable, any_marked}) {
    for (const KeySpace each : result.settings.spaces)
      if (!space && marked(result, each)) space = each;
  }
  if (!space || !any_marked(result, *space)) return "";
  const MarkedText marked = marked_text(result, *space);
  std::vector<std::string> legend;
  for (const Mark& mark : kMarks) {
    if (!marked.marks.contains(&mark)) continue;
    legend.push_back(colour_output() ? fmt::format("{} ({})", mark.kind, mark.name)
                                     : fmt::format("{} {}so{}", mark.kind, mark.before, mark.after));
  }
  // What follows was not printed.
  if (legend.empty()) legend.emplace_back("unselectable and tied tokens come later in the text");
  return fmt::format(
      "\n{}\n{}",
      wrapped(fmt::format("By {} ({}): {}", set_name(*space), name_of(*space), fmt::join(legend, ", "))),
      marked.text);
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
  const std::vector<std::string> traces = trace_files(plan);
  const auto begin_run = [&] {
    directory->write_config("scan", provenance(common.seed, executor.threads()), json_of(plan.told));
    for (const std::string& file : traces) directory->add_file(file);
  };
  // Traces are written on the way; without them an earlier run stays until there are results.
  if (directory && !traces.empty()) begin_run();
  ScanStudy study = run_with_progress(plan, common, executor);
  const ScanAbout about{plan.about, plan.as_model};
  for (const std::string& sentence : about.notes) note(common, sentence);
  if (directory) {
    if (traces.empty()) begin_run();
    directory->write("results.json", json_of(study.result));
    directory->write("report.html", report(study, about));
    note(common, "Wrote " + (directory->path() / "report.html").string());
  }
  if (common.json) return write_json(study.result, -1, print);
  std::string text = wrapped(scan_heading(study.result)) + "\n\n" +
                     table(scan_table(study.result, study.summary).rows) + "\n";
  for (const std::string& sentence : scan_readings(study.result, study.summary, about.as_model))
    text += wrapped(sentence) + "\n";
  print(text + wrapped(study.result.verdict) + "\n" + highlighted(study.result, options.highlight));
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

// normscope scan: which tokens of a text the layers and heads of a trained model can select.
#include "study/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "cli/calls.h"
#include "cli/common.h"
#include "cli/kept.h"
#include "cli/options.h"
#include "report/scan_page.h"
#include "result/json_writer.h"
#include "run/finished.h"

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

constexpr std::string_view kBrackets = "[]{}\\";

// Line breaks stay; whatever else could move the cursor does not. Where brackets are marks, those of the text get
// a backslash.
std::string shown(const std::string& token, bool brackets) {
  std::string text;
  for (const std::string_view line : split(token, '\n')) {
    if (line.data() != token.data()) text += '\n';
    for (const char c : printable(line)) {
      if (brackets && kBrackets.find(c) != std::string_view::npos) text += '\\';
      text += c;
    }
  }
  return text;
}

// Lines are not broken inside a mark; what stands there meanwhile occurs in no text that is shown.
constexpr char kSpaceInMark = '\x1f';

// The text of a space with its tokens marked, and which marks it has.
struct MarkedText {
  std::string text;
  std::set<const Mark*> marks;
  bool escaped = false;  // brackets of its own
};

MarkedText marked_text(const ScanResult& result, KeySpace space) {
  const bool colours = colour_output();
  MarkedText marked;
  std::size_t characters = 0;
  for (std::size_t w = 0; w < result.windows->size() && characters < kMostPrinted; ++w) {
    const TextFigure whole = with_whole_characters(scan_text(result, w, space));
    for (const TextFigure::Token& token : whole.tokens) {
      if (characters >= kMostPrinted) break;
      const std::string text = shown(token.text, !colours);
      marked.escaped |= !colours && token.text.find_first_of(kBrackets) != std::string::npos;
      characters += text.size();
      const auto* mark = std::find_if(std::begin(kMarks), std::end(kMarks),
                                      [&](const Mark& each) { return each.kind == token.kind; });
      if (mark == std::end(kMarks)) {
        marked.text += text;
        continue;
      }
      marked.marks.insert(mark);
      // Spaces stand before the mark, unless there is nothing else.
      const std::size_t ink = text.find_first_not_of(" \n"), begin = ink == std::string::npos ? 0 : ink;
      marked.text += text.substr(0, begin);
      std::string inside = text.substr(begin);
      std::replace(inside.begin(), inside.end(), ' ', kSpaceInMark);
      marked.text += colours ? fmt::format("\033[{}m{}\033[0m", mark->colour, inside)
                             : mark->before + inside + mark->after;
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
  std::string lines = wrapped(marked.text);
  std::replace(lines.begin(), lines.end(), kSpaceInMark, ' ');
  std::vector<std::string> legend;
  for (const Mark& mark : kMarks) {
    if (!marked.marks.contains(&mark)) continue;
    legend.push_back(colour_output() ? fmt::format("{} ({})", mark.kind, mark.name)
                                     : fmt::format("{} {}so{}", mark.kind, mark.before, mark.after));
  }
  if (marked.escaped) legend.emplace_back("brackets and backslashes of the text itself with a backslash");
  // What follows was not printed.
  if (marked.marks.empty()) legend.emplace_back("unselectable and tied tokens come later in the text");
  return fmt::format(
      "\n{}\n{}",
      wrapped(fmt::format("By {} ({}): {}", set_name(*space), name_of(*space), fmt::join(legend, ", "))),
      lines);
}

void run(KeptCall<ScanOptions> call, const Common& given, const CLI::App& command) {
  KeptRun kept("scan", given, command, call.resume);
  kept.resume(call.study);
  const Common& common = kept.common();
  const ScanOptions& options = call.study;
  const ScanPlan plan = plan_scan(options, common.out);
  const RunDirectory* directory =
      kept.begin(options, {options.text.model, options.text.text, options.text.ids});
  const Executor executor = executor_of(common);
  const Provenance made = provenance(common.seed, executor.threads());
  // Traces are written on the way; without them an earlier run stays until there are results.
  if (directory && !plan.trace.empty()) begin_run(*directory, plan, made);
  const ScanStudy study = with_progress(common, executor, "scan:", "sets",
                                        [&](const Context& context) { return run_scan(plan, context); });
  if (!speaks(common)) return;
  const ScanAbout about{plan.about, plan.as_model};
  for (const std::string& sentence : about.notes) note(common, sentence);
  if (directory && plan.trace.empty()) begin_run(*directory, plan, made);
  kept.write(plan, study);
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
  auto call = std::make_shared<KeptCall<ScanOptions>>();
  add_options(*command, *call);
  allow_resuming(*command);
  when_called(*command, [call, &common, command] { run(*call, common, *command); });
}

}  // namespace normscope::cli

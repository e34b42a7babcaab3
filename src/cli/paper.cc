// normscope paper: reruns the papers' figures, beside the published values, and says which claims hold.
#include "study/paper.h"

#include <fmt/format.h>
#include <unistd.h>

#include "cli/calls.h"
#include "cli/common.h"
#include "cli/interrupt.h"
#include "cli/kept.h"
#include "cli/options.h"
#include "result/json_writer.h"
#include "run/finished.h"

namespace normscope::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCommand = "paper";

std::string screen(const PaperStudy& study) {
  std::string text;
  for (const ClaimResult& claim : study.result.claims) {
    const auto line = [&](const char* label, std::string_view words) {
      text += labelled(label, words, screen_width(STDOUT_FILENO).value_or(std::string::npos), 13);
    };
    text += wrapped(fmt::format("{}: {}", claim.where, claim.claim)) + "\n";
    line("  published", claim.published);
    line("  measured", claim.measured);
    line("  verdict", claim.verdict);
    if (!claim.why.empty()) line("  why", claim.why);
    if (const std::string missing = what_is_missing(claim); claim.holds == Holds::open && !missing.empty())
      line("  missing", missing);
    text += "\n";
  }
  return text + wrapped(counts_of(study.found.claims)) + "\n";
}

PaperContext paper_context(const Common& common, const Executor& executor, Whole& whole) {
  PaperContext context{executor, [&](std::string_view sentence) { note(common, sentence); }, {}, {}};
  context.step = [&](const std::string& label, const char* unit) {
    const auto progress = std::make_shared<Progress>(common, label, unit, &whole);
    Context step{executor};
    step.note = [&](std::string_view sentence) { note(common, sentence); };
    step.progress = [progress](std::size_t done, std::size_t total) { progress->update(done, total); };
    step.detail = [progress](std::string_view detail) { progress->set_detail(std::string(detail)); };
    return step;
  };
  context.begins = [&](double total, double before, double part) {
    whole.total = total;
    whole.before = before;
    whole.part = part;
  };
  return context;
}

// With --only parts are added, and options that they alone use may be given.
bool resumes_paper(const CLI::App& command) {
  if (!was_given(command, "--only")) return resumes(command);
  return resumes(command,
                 {"--only", "--seed", "--seeds", "--steps", "--text-steps", "--samples", "--full", "--models",
                  "--text", "--corpus", "--reviews", "--budget", "--squad", "--test-text"});
}

PaperPlan new_plan(const PaperCall& call, const Common& common) {
  return plan_paper(call.study, common.seed, [&](std::string_view sentence) { note(common, sentence); });
}

PaperPlan resumed_plan(const PaperCall& call, const Common& common, const CLI::App& command) {
  PaperPlan plan = read_paper_plan(call.resume);
  if (!was_given(command, "--only")) return plan;
  const auto seed = was_given(command, "--seed") ? std::optional(common.seed) : std::nullopt;
  return widened_plan(plan, call.study, seed, [&](std::string_view sentence) { note(common, sentence); });
}

// What was found of fewer parts is no result of this run.
void widen(const RunDirectory& directory, const PaperPlan& plan) {
  if (json_of(plan) == json_of(read_paper_plan(directory.path()))) return;
  for (const char* file : {"results.json", "report.html"}) fs::remove(directory.path() / file);
  directory.set_options(kCommand, json_of(plan, -1));
}

void run_paper(const PaperCall& call, const Common& common, const CLI::App& command) {
  const bool resume = resumes_paper(command);
  const fs::path out = resume ? call.resume : common.out.empty() ? "paper" : common.out;
  const PaperPlan plan =
      plan_of_first([&] { return resume ? resumed_plan(call, common, command) : new_plan(call, common); },
                    executor_of(common));
  Whole whole;
  if (!speaks(common)) {
    const Executor executor = executor_of(common);
    return static_cast<void>(study_paper(plan, nullptr, paper_context(common, executor, whole)));
  }
  const auto opened = paper_directory(out, resume, plan, executor_of(common).threads());
  const RunDirectory& directory = *opened;
  if (resume && was_given(command, "--only")) widen(directory, plan);
  set_kept(kept_of(directory, kCommand));
  KeptPieces pieces(common, out, json_of(plan) + std::to_string(plan.seed));
  const Executor executor = executor_of(common);
  const PaperStudy study = study_paper(plan, &directory, paper_context(common, executor, whole));
  pieces.finish();
  directory.write("results.json", json_of(study.result));
  directory.write("report.html", render_html(paper_page(study)));
  remove_pieces(out);
  note(common, "Wrote " + (out / "report.html").string());
  print(common.json ? json_of(study.result, -1) : screen(study));
}

}  // namespace

void add_paper(CLI::App& app, Common& common) {
  CLI::App* command =
      add_command(app, common, "paper",
                  "Rerun the figures of Brody et al. 2023 and Wu et al. 2024 and say which claims hold",
                  {"paper --only fig2,fig3 --seeds 3 --out runs/fig2", "paper --full --out runs/paper",
                   "paper --only wu2,wu7 --samples 4 --out runs/wu",
                   "paper --only fig4,table1,table2,table3,table4 --out runs/text",
                   "paper --resume runs/paper", "paper --resume runs/fig2 --only followups"});
  describe_seed(*command,
                "Seed of the heat maps and the collapse runs; the trainings have the paper's seeds");
  auto call = std::make_shared<PaperCall>();
  add_options(*command, *call);
  std::string parts = "Parts:";
  for (const PaperPart& part : paper_parts())
    parts += fmt::format("\n  {:<13} {}{}", part.name, part.sentence, part.if_named ? "; only if named" : "");
  add_to_footer(*command, parts + "\n\nWithout --out the directory is ./paper.");
  when_called(*command, [call, &common, command] { run_paper(*call, common, *command); });
}

}  // namespace normscope::cli

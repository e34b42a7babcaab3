// normscope paper: reruns the papers' figures, beside the published values, and says which claims hold.
#include "study/paper.h"

#include <fmt/format.h>

#include "cli/calls.h"
#include "cli/common.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "normscope/error.h"
#include "record/json.h"
#include "result/json_writer.h"

namespace normscope::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCommand = "paper";

std::string screen(const PaperStudy& study) {
  std::string text;
  for (const ClaimResult& claim : study.result.claims) {
    text += fmt::format("{}: {}\n  published  {}\n  measured   {}\n  verdict    {}\n", claim.where,
                        claim.claim, claim.published, claim.measured, claim.verdict);
    if (!claim.why.empty()) text += fmt::format("  why        {}\n", claim.why);
    text += "\n";
  }
  return text + counts_of(study.found.claims) + "\n";
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

void run_paper(const PaperCall& call, const Common& common, const CLI::App& command) {
  const bool resume = resumes(command);
  const fs::path out = resume ? call.resume : common.out.empty() ? "paper" : common.out;
  const auto tell = [&](std::string_view sentence) { note(common, sentence); };
  const PaperPlan plan = resume ? read_paper_plan(out) : plan_paper(call.study, common.seed, tell);
  const Executor executor(common.threads, common.stop);
  const RunDirectory directory(out);
  if (resume) {
    directory.remove_leftovers();
  } else {
    const std::string held = command_of(out);
    if (!held.empty() && held != kCommand) {
      throw InputError(fmt::format("'{}' holds a run of 'normscope {}'; name a new directory with --out.",
                                   out.string(), held));
    }
    if (directory.holds_run()) {
      throw InputError(fmt::format(
          "'{}' holds an earlier run; go on with it by --resume {}, or name a new directory with --out.",
          out.string(), out.string()));
    }
    directory.write_config(kCommand, provenance(plan.seed, executor.threads()), json_of(plan, -1));
  }
  set_kept(kept_of(directory, kCommand));
  Whole whole;
  const PaperStudy study = study_paper(plan, directory, paper_context(common, executor, whole));
  directory.write("results.json", json_of(study.result));
  directory.write("report.html", render_html(paper_page(study)));
  note(common, "Wrote " + (out / "report.html").string());
  print(common.json ? json_of(study.result, -1) : screen(study));
}

}  // namespace

void add_paper(CLI::App& app, Common& common) {
  CLI::App* command = add_command(
      app, common, "paper",
      "Rerun the figures of Brody et al. 2023 and Wu et al. 2024 and say which claims hold",
      {"paper --only fig2,fig3 --seeds 3 --out runs/fig2", "paper --full --out runs/paper",
       "paper --only wu2,wu7 --samples 4 --out runs/wu",
       "paper --only fig4,table1,table2,table3,table4 --out runs/text", "paper --resume runs/paper"});
  describe_seed(*command,
                "Seed of the heat maps and the collapse runs; the trainings have the paper's seeds");
  auto call = std::make_shared<PaperCall>();
  add_options(*command, *call);
  std::string parts = "Parts:";
  for (const PaperPart& part : paper_parts()) parts += fmt::format("\n  {:<10} {}", part.name, part.sentence);
  add_to_footer(*command, parts + "\n\nWithout --out the directory is ./paper.");
  when_called(*command, [call, &common, command] { run_paper(*call, common, *command); });
}

}  // namespace normscope::cli

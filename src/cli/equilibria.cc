// normscope equilibria: where attention layers with a norm lead tokens (Wu et al. 2024, Theorem 3, Fig. 1 and
// 5).
#include "study/equilibria.h"

#include <fmt/core.h>

#include <memory>

#include "cli/calls.h"
#include "cli/common.h"
#include "cli/kept.h"
#include "cli/options.h"
#include "report/equilibria_page.h"
#include "result/json_writer.h"
#include "run/finished.h"

namespace normscope::cli {
namespace {

std::string shown(const ReportTable& each) {
  return wrapped(each.title) + "\n" + table(each.rows) + (each.note.empty() ? "" : wrapped(each.note) + "\n");
}

std::string screen(const EquilibriaRun& run, bool trajectories) {
  const EquilibriaTables tables = equilibria_tables(run);
  std::string text = shown(tables.points) + "\n" + shown(tables.arcs) + "\n" + shown(tables.coupled);
  if (trajectories) text += "\n" + shown(tables.trajectories);
  text += "\n" + shown(tables.equilibria);
  if (run.n != 2 || run.d != 2) text += "\n" + shown(tables.ranks);
  const std::string settled = fmt::format(
      "Rank: singular values above {:g} of the largest. Settled: from layer {} to {} it stayed, and "
      "they moved by at most {:g} %.",
      RankOptions::rank_tolerance, run.layers / 2, run.layers, 100 * RankOptions::settled_change);
  for (const std::string& sentence : {"\n" + settled, zero_row_policy(run), equilibria_verdict(run)})
    text += wrapped(sentence) + "\n";
  return text;
}

void run_equilibria(KeptCall<EquilibriaOptions> call, const Common& given, const CLI::App& command) {
  KeptRun run("equilibria", given, command, call.resume);
  run.resume(call.study);
  const Common& common = run.common();
  const EquilibriaOptions& options = call.study;
  const EquilibriaSettings settings = plan_equilibria(options);
  run.begin(options, {});
  const Executor executor = executor_of(common);
  const EquilibriaStudy study =
      with_progress(common, executor, "equilibria:", "starts", [&](const Context& context) {
        return study_equilibria(settings, context, common.out.empty() ? FateMaps::no : FateMaps::yes);
      });
  if (!speaks(common)) return;
  run.write(study);
  common.json ? write_json(study.result, -1, print) : print(screen(study.run, !options.trajectory.empty()));
}

}  // namespace

void add_equilibria(CLI::App& app, Common& common) {
  CLI::App* command =
      add_command(app, common, "equilibria",
                  "Where attention layers with a norm lead tokens: collapse, or equilibria of any rank",
                  {"equilibria --w 1.1,2,10", "equilibria --tokens 3 --dim 3 --w 3 --out runs/equilibria",
                   "equilibria --trajectory \"85,200;90,270\""});
  auto call = std::make_shared<KeptCall<EquilibriaOptions>>();
  add_options(*command, *call);
  when_called(*command, [call, &common, command] { run_equilibria(*call, common, *command); });
}

}  // namespace normscope::cli

// normscope collapse: how fast tokens become alike with depth, under masks, norms, temperatures, value
// matrices.
#include "study/collapse.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/calls.h"
#include "cli/common.h"
#include "cli/kept.h"
#include "cli/options.h"
#include "report/collapse_page.h"
#include "result/json_writer.h"
#include "run/finished.h"
#include "study/masks.h"

namespace normscope::cli {
namespace {

std::string screen(const CollapseStudy& study) {
  const std::vector<CollapseCurve>& curves = study.curves;
  std::string text = wrapped(settings_sentence(study.plan)) + "\n\n" + table(collapse_table(curves)) + "\n";
  // Those theorems that speak of the case; what the others lack is in the report and in --json.
  const auto theory = theory_table(study.result.curves, Theory::that_applies);
  if (!theory.empty()) {
    text += table(theory) + "\n";
    if (const std::string readings = readings_note(curves); !readings.empty())
      text += wrapped(readings) + "\n";
  }
  return text + wrapped(policies_text(study) + study.result.verdict) + "\n";
}

void run_collapse(CollapseCall call, const Common& given, const CLI::App& command) {
  KeptRun run("collapse", given, command, call.resume);
  run.resume(call);
  const Common& common = run.common();
  CollapsePlan plan = plan_collapse(call.study, read_collapse_model(call.model, call.study), common.seed);
  run.begin(call, {call.model, call.study.text, call.study.ids});
  const Executor executor = executor_of(common);
  const CollapseStudy study =
      with_progress(common, executor, "collapse:", "layers",
                    [&](const Context& context) { return study_collapse(std::move(plan), context); });
  if (!speaks(common)) return;
  run.write(study);
  common.json ? write_json(study.result, -1, print) : print(screen(study));
}

}  // namespace

void add_collapse(CLI::App& app, Common& common) {
  CLI::App* command = add_command(
      app, common, "collapse",
      "How fast tokens become alike with depth, under masks, norms, temperatures, weights",
      {"collapse", "collapse --shape bert-base --variant san san+norm --dropout 0 0.1 --out runs/bert",
       "collapse --variant san --mask full causal --value orthogonal --temperature 0.0156,1,64",
       "collapse --variant san+norm --norm unit,rmsnorm,dyt --mask window:1 star --layers 64",
       "collapse --variant san --query-key zero --value jordan:2 --mask my-mask.txt --tokens 16",
       "collapse minilm --text article.txt --samples 8 --init both --out runs/minilm"});
  auto call = std::make_shared<CollapseCall>();
  add_options(*command, *call);
  add_to_footer(*command, fmt::format("Masks: {}\nNorms: {}", mask_list(),
                                      fmt::join(norm_names_without_normals(), " ")));
  when_called(*command, [call, &common, command] { run_collapse(*call, common, *command); });
}

}  // namespace normscope::cli

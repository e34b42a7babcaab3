// normscope ablate: a trained model with another norm, or none, in front of attention.
#include "study/ablate.h"

#include <fmt/format.h>

#include <memory>

#include "cli/common.h"
#include "cli/options.h"
#include "report/ablate_page.h"
#include "result/json_writer.h"
#include "run/finished.h"

namespace normscope::cli {
namespace {

void run(const AblateOptions& options, const Common& common) {
  const Executor executor(common.threads, common.stop);
  const AblatePlan plan = plan_ablate(options, {executor, common.seed});
  const auto directory = replaceable_directory(common);
  const AblateStudy study = with_progress(common, executor, "ablate:", "layers",
                                          [&](const Context& context) { return run_ablate(plan, context); });
  const auto& [ablation, result] = study;
  if (directory) {
    write_run(*directory, plan, study);
    note_report(common, *directory);
  }
  if (common.json) return write_json(result, -1, print);
  std::string text = table(ablate_table(ablation)) + "\n";
  for (const std::string& sentence : result.notes) text += wrapped(sentence) + "\n";
  print(text + wrapped(result.verdict) + fmt::format("\n{:.3g} s\n", result.seconds));
}

}  // namespace

void add_ablate(CLI::App& app, Common& common) {
  CLI::App* command =
      add_command(app, common, "ablate",
                  "A trained model with another norm, or none, in front of attention: what changes",
                  {"ablate minilm --text article.txt --window 128 --samples 16 --out runs/ablate",
                   "ablate stories15m --text story.txt --norm none center --rescale",
                   "ablate path/to/model --ids tokens.txt --norm rmsnorm --layers 0:2 --json"});
  auto options = std::make_shared<AblateOptions>();
  add_options(*command, *options);
  add_to_footer(*command, fmt::format("Norms: {}", fmt::join(norm_names_without_normals(), " ")));
  when_called(*command, [options, &common] { run(*options, common); });
}

}  // namespace normscope::cli

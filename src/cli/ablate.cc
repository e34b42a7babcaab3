// normscope ablate: a trained model with another norm, or none, in front of attention.
#include "study/ablate.h"

#include <fmt/format.h>

#include <memory>

#include "cli/common.h"
#include "cli/options.h"
#include "report/ablate_page.h"
#include "result/json_writer.h"

namespace normscope::cli {
namespace {

AblateStudy run_with_progress(const AblatePlan& plan, const Common& common, const Executor& executor) {
  Progress progress(common, "ablate:", "layers");
  return run_ablate(plan, {executor, common.seed,
                           [&](std::size_t done, std::size_t total) { progress.update(done, total); }});
}

void run(const AblateOptions& options, const Common& common) {
  const Executor executor(common.threads, common.stop);
  const AblatePlan plan = plan_ablate(options, {executor, common.seed});
  const auto directory = replaceable_directory(common);
  const auto [ablation, result] = run_with_progress(plan, common, executor);
  if (directory) {
    directory->write_config("ablate", provenance(common.seed, executor.threads()), json_of(plan.told));
    directory->write("results.json", json_of(result));
    directory->write("layers.csv", ablate_csv(result));
    std::string data = json_of(result, -1);
    data.pop_back();  // the newline
    directory->write("report.html", render_html(ablate_page(result, ablation, plan.about, std::move(data))));
    note(common, "Wrote " + (directory->path() / "report.html").string());
  }
  if (common.json) return write_json(result, -1, print);
  std::string text = table(ablate_table(ablation)) + "\n";
  for (const std::string& sentence : result.notes) text += sentence + "\n";
  print(text + result.verdict + fmt::format("\n{:.3g} s\n", result.seconds));
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

// normscope vocab: which tokens of a vocabulary a model can put on top.
#include "study/vocab.h"

#include <fmt/core.h>

#include <memory>

#include "cli/calls.h"
#include "cli/common.h"
#include "cli/kept.h"
#include "cli/options.h"
#include "cli/verdict_table.h"
#include "core/number_text.h"
#include "report/vocab_page.h"
#include "result/json_writer.h"
#include "run/finished.h"

namespace normscope::cli {
namespace {

std::string screen(const VocabStudy& study) {
  const VocabResult& result = study.result;
  std::string text = wrapped(source_of(study) + (result.bias ? ", with bias" : "")) + "\n";
  text +=
      verdict_table(result.counts, result.robust_counts, "tokens", 2) + wrapped(vocab_verdict(result)) + "\n";
  const auto list = [&](const char* title, const std::vector<VocabToken>& tokens, std::size_t whole) {
    const ReportTable shown = vocab_table(title, tokens, result.settings.limit, whole);
    if (shown.rows.size() > 1) text += fmt::format("\n{}\n{}", wrapped(shown.title), table(shown.rows));
  };
  list("Never on top alone", *result.never_alone, result.counts.tied + result.counts.unselectable);
  if (result.for_all) text += labelled("biases for all", offsets_words(*result.for_all, "token"));
  list(result.settings.margin == Margins::bound ? "Smallest margins (lower bounds)" : "Smallest margins",
       *result.smallest_margins, result.counts.selectable);
  const std::string how = fmt::format(
      "rank {} of {}; {} decided by error bounds, {} by rational arithmetic{}", result.rank, result.d,
      counted(result.tokens - result.exact_path - result.counts.undecided, "token"), result.exact_path,
      result.verified ? fmt::format("; {} verified in rational arithmetic", *result.verified) : "");
  return text + fmt::format("\n{}\n{:.3g} s\n", wrapped(how), result.seconds);
}

void run(KeptCall<VocabOptions> call, const Common& given, const CLI::App& command) {
  KeptRun kept("vocab", given, command, call.resume);
  kept.resume(call.study);
  const Common& common = kept.common();
  const VocabOptions& options = call.study;
  kept.begin(options, {options.source, options.bias});
  const Executor executor = executor_of(common);
  const VocabStudy study = with_progress(common, executor, "vocab:", "tokens", [&](const Context& context) {
    return study_vocab(options, context);
  });
  if (!speaks(common)) return;
  for (const std::string& sentence : study.given.notes) note(common, sentence);
  kept.write(study);
  common.json ? write_json(study.result, -1, print) : print(screen(study));
}

}  // namespace

void add_vocab(CLI::App& app, Common& common) {
  auto call = std::make_shared<KeptCall<VocabOptions>>();
  CLI::App* command = add_command(
      app, common, "vocab", "Which tokens a language model can never put on top, with certificates",
      {"vocab stories15m", "vocab minilm --embeddings --out runs/minilm-words",
       "vocab model.safetensors:lm_head.weight --bias model.safetensors:lm_head.bias",
       "vocab head.npy --tokenizer tokenizer.json --exact --json"});
  add_options(*command, *call);
  allow_resuming(*command);
  when_called(*command, [call, &common, command] { run(*call, common, *command); });
}

}  // namespace normscope::cli

// normscope vocab: which tokens of a vocabulary a model can put on top.
#include "study/vocab.h"

#include <fmt/core.h>

#include <memory>

#include "cli/common.h"
#include "cli/options.h"
#include "cli/verdict_table.h"
#include "core/number_text.h"
#include "report/vocab_page.h"
#include "result/json_writer.h"

namespace normscope::cli {
namespace {

std::string source_of(const VocabStudy& study) {
  return fmt::format("{}, {}, {} × {}", study.given.source, name_of(study.given.dtype), study.result.tokens,
                     study.result.d);
}

std::string screen(const VocabStudy& study) {
  const VocabResult& result = study.result;
  std::string text = fmt::format("{}{}\n", source_of(study), result.bias ? ", with bias" : "");
  text += verdict_table(result.counts, result.robust_counts, "tokens", 2) + vocab_verdict(result) + "\n";
  const auto list = [&](const char* title, const std::vector<VocabToken>& tokens, std::size_t whole) {
    const ReportTable shown = vocab_table(title, tokens, result.settings.limit, whole);
    if (shown.rows.size() > 1) text += fmt::format("\n{}\n{}", shown.title, table(shown.rows));
  };
  list("Never on top alone", *result.never_alone, result.counts.tied + result.counts.unselectable);
  list(result.settings.margin == Margins::bound ? "Smallest margins (lower bounds)" : "Smallest margins",
       *result.smallest_margins, result.counts.selectable);
  return text +
         fmt::format(
             "\nrank {} of {}; {} tokens decided by error bounds, {} by rational arithmetic{}\n{:.3g} s\n",
             result.rank, result.d, result.tokens - result.exact_path - result.counts.undecided,
             result.exact_path,
             result.verified ? fmt::format("; {} verified in rational arithmetic", *result.verified) : "",
             result.seconds);
}

// Of the single tokens the page shows a few, and certificates.safetensors holds all.
std::string head_of(VocabResult result) {
  result.never_alone.reset();
  result.smallest_margins.reset();
  return json_of(result, -1);
}

VocabStudy study_with_progress(const VocabOptions& options, const Common& common) {
  const Executor executor(common.threads, common.stop);
  Progress progress(common, "vocab", "tokens");
  return study_vocab(options, {executor, common.seed,
                               [&](std::size_t done, std::size_t all) { progress.update(done, all); }});
}

void run(const VocabOptions& options, const Common& common) {
  const auto directory = replaceable_directory(common, {options.source, options.bias});
  const VocabStudy study = study_with_progress(options, common);
  const VocabResult& result = study.result;
  for (const std::string& sentence : study.given.notes) note(common, sentence);
  if (directory) {
    directory->write_config("vocab", result.made, json_of(result.settings));
    directory->add_file("certificates.safetensors");
    write_certificates(directory->path() / "certificates.safetensors", study.set);
    directory->write("results.json", json_of(result));
    directory->write("report.html",
                     render_html(vocab_page(result, source_of(study), study.set, head_of(result))));
    note(common, fmt::format("Wrote {}", (directory->path() / "report.html").string()));
  }
  if (!common.json) return print(screen(study));
  write_json(result, -1, print);
  print("\n");
}

}  // namespace

void add_vocab(CLI::App& app, Common& common) {
  auto options = std::make_shared<VocabOptions>();
  CLI::App* command = add_command(
      app, common, "vocab", "Which tokens a language model can never put on top, with certificates",
      {"vocab stories15m", "vocab minilm --embeddings --out runs/minilm-words",
       "vocab model.safetensors:lm_head.weight --bias model.safetensors:lm_head.bias",
       "vocab head.npy --tokenizer tokenizer.json --exact --json"});
  add_options(*command, *options);
  when_called(*command, [options, &common] { run(*options, common); });
}

}  // namespace normscope::cli

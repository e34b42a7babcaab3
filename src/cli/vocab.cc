// normscope vocab: which tokens of a vocabulary a model can put on top.
#include "study/vocab.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "cli/common.h"
#include "cli/options.h"
#include "report/vocab_page.h"
#include "result/json_writer.h"

namespace normscope::cli {
namespace {

VocabRun::Token page_token(const VocabToken& given) {
  constexpr std::size_t kMostCovers = 4;
  VocabRun::Token token{given.id, given.token, given.verdict, given.robust, 0, ""};
  token.size = given.verdict == Verdict::unselectable ? given.depth : given.margin;
  std::vector<VocabTerm> cover = given.cover;
  std::sort(cover.begin(), cover.end(), [](const VocabTerm& a, const VocabTerm& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
  });
  for (std::size_t k = 0; k < std::min(kMostCovers, cover.size()); ++k) {
    const auto& [id, weight, text] = cover[k];
    token.covers += fmt::format("{}{}", k > 0 ? ", " : "",
                                text.empty() ? std::to_string(id) : fmt::format("{} ({})", text, id));
  }
  if (cover.size() > kMostCovers) token.covers += fmt::format(", … ({} in all)", cover.size());
  return token;
}

VocabRun run_of(const VocabStudy& study) {
  const VocabResult& result = study.result;
  VocabRun run;
  run.keys.source =
      fmt::format("{}, {}, {} × {}", study.given.source, name_of(study.given.dtype), result.tokens, result.d);
  run.keys.norm = "none";
  run.keys.lower_bounds = result.settings.margin == Margins::bound;
  run.keys.sets = {summary_of(study.set)};
  run.biased = result.bias;
  const std::size_t shown = std::min(result.settings.limit, result.never_alone->size());
  for (std::size_t k = 0; k < shown; ++k) run.lost.push_back(page_token((*result.never_alone)[k]));
  for (const VocabToken& token : *result.smallest_margins) run.nearest.push_back(page_token(token));
  return run;
}

std::string screen(const VocabRun& run, const VocabResult& result) {
  std::string text = fmt::format("{}{}\n", run.keys.source, result.bias ? ", with bias" : "");
  std::vector<std::vector<std::string>> rows = {{"verdict", "tokens", "share", "robust"}};
  const auto row = [&](const char* name, std::size_t all, std::size_t robust) {
    const double share = static_cast<double>(all) / static_cast<double>(result.tokens);
    rows.push_back(
        {name, std::to_string(all), fmt::format("{:.2f} %", 100.0 * share), std::to_string(robust)});
  };
  row("selectable", result.counts.selectable, result.robust_counts.selectable);
  row("tied", result.counts.tied, result.robust_counts.tied);
  row("unselectable", result.counts.unselectable, result.robust_counts.unselectable);
  if (result.counts.undecided > 0) row("undecided", result.counts.undecided, 0);
  text += table(rows) + vocab_verdict(run) + "\n";
  const auto list = [&](const char* title, const std::vector<VocabRun::Token>& tokens, std::size_t whole) {
    if (tokens.empty()) return;
    const ReportTable shown = vocab_table(title, tokens, whole);
    text += fmt::format("\n{}\n{}", shown.title, table(shown.rows));
  };
  list("Never on top alone", run.lost, result.counts.tied + result.counts.unselectable);
  list(run.keys.lower_bounds ? "Smallest margins (lower bounds)" : "Smallest margins", run.nearest,
       result.counts.selectable);
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
  const auto directory = replaceable_directory(common);
  const VocabStudy study = study_with_progress(options, common);
  const VocabResult& result = study.result;
  for (const std::string& sentence : study.given.notes) note(common, sentence);
  const VocabRun shown = run_of(study);
  if (directory) {
    directory->write_config("vocab", result.made, json_of(result.settings));
    write_certificates(directory->path() / "certificates.safetensors", study.set);
    directory->write("results.json", json_of(result));
    directory->write("report.html", render_html(vocab_page(shown, result.made, head_of(result))));
    note(common, fmt::format("Wrote {}", (directory->path() / "report.html").string()));
  }
  if (!common.json) return print(screen(shown, result));
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

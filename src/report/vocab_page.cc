#include "report/vocab_page.h"

#include <fmt/core.h>

#include <utility>

namespace normscope {

std::string vocab_verdict(const VocabRun& run) {
  const KeysRun::Set& set = run.keys.sets.at(0);
  const std::size_t lost = set.counts.tied + set.counts.unselectable;
  const std::string undecided =
      set.counts.undecided > 0
          ? fmt::format(" {} more are undecided: rational arithmetic would need more than it may take.",
                        set.counts.undecided)
          : "";
  if (lost == 0 && !undecided.empty())
    return fmt::format("Of {} tokens, {} are the likeliest under some hidden state.", set.n,
                       set.counts.selectable) +
           undecided;
  if (lost == 0)
    return fmt::format(
        "Each of the {} tokens is the likeliest under some hidden state: none is unargmaxable.", set.n);
  return fmt::format(
             "Of {} tokens, {} can never be the single likeliest: {} unselectable (no hidden state puts them "
             "on "
             "top), {} tied (never alone).",
             set.n, lost, set.counts.unselectable, set.counts.tied) +
         undecided;
}

ReportTable vocab_table(const std::string& title, const std::vector<VocabRun::Token>& tokens,
                        std::size_t whole) {
  ReportTable table{title, {{"id", "token", "verdict", "robust", "margin or depth", "covered by"}}};
  if (tokens.size() < whole) table.title += fmt::format(", {} of {}", tokens.size(), whole);
  for (const VocabRun::Token& token : tokens)
    table.rows.push_back({std::to_string(token.id), token.text.empty() ? "–" : token.text,
                          name_of(token.verdict), token.robust ? "yes" : "no",
                          token.verdict == Verdict::tied ? "–" : fmt::format("{:.4g}", token.size),
                          token.covers.empty() ? "–" : token.covers});
  return table;
}

Page vocab_page(const VocabRun& run, const Provenance& provenance, std::string data) {
  Page page = keys_page(run.keys, provenance, std::move(data));
  page.title = "Which tokens a model can put on top";
  page.verdict = vocab_verdict(run);
  page.paragraphs = {
      fmt::format("{}.", run.keys.source),
      fmt::format("A token's logit is h·w{}, with w its row of the output matrix and h the hidden state. A "
                  "token is selectable if some h gives it the strictly highest logit; otherwise greedy "
                  "decoding can never produce it, whatever the text. All of space counts for h: what the "
                  "last norm lets through is less. Witnesses and covers of all tokens are in "
                  "certificates.safetensors.",
                  run.biased ? " + b" : "")};
  const KeyCounts& counts = run.keys.sets.at(0).counts;
  if (!run.lost.empty())
    page.tables.push_back(
        vocab_table("Tokens that can never win alone", run.lost, counts.tied + counts.unselectable));
  if (!run.nearest.empty())
    page.tables.push_back(
        vocab_table("Selectable tokens with the smallest margins", run.nearest, counts.selectable));
  return page;
}

}  // namespace normscope

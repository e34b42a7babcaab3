#include "report/vocab_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/number_text.h"
#include "result/columns.h"

namespace normscope {
namespace {

// Those whose mixture beats a token, the heaviest first.
std::string covers_of(const VocabToken& token) {
  constexpr std::size_t most = 4;
  std::vector<VocabTerm> cover = token.cover;
  std::sort(cover.begin(), cover.end(), [](const VocabTerm& a, const VocabTerm& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
  });
  std::string text;
  for (std::size_t k = 0; k < std::min(most, cover.size()); ++k) {
    const auto& [id, weight, word] = cover[k];
    text += fmt::format("{}{}", k > 0 ? ", " : "",
                        word.empty() ? std::to_string(id) : fmt::format("{} ({})", word, id));
  }
  if (cover.size() > most) text += fmt::format(", … ({} in all)", cover.size());
  return text.empty() ? "–" : text;
}

std::string above(const std::optional<KeyThreshold>& threshold) {
  return threshold ? fmt::format("{:.6g}", threshold->least) : "–";
}

std::string norms_of(const KeyAdvice& advice) {
  std::string norms;
  for (const NormAdvice& norm : advice.norms) norms += (norms.empty() ? "" : " ") + norm.norm;
  return norms.empty() ? "–" : norms;
}

struct TokenRow {
  const VocabToken& token;
  bool advised = false;  // any of the table's tokens

  static void describe(auto& visit, auto& self) {
    const VocabToken& token = self.token;
    const double size = token.verdict == Verdict::unselectable ? token.depth : token.margin;
    visit("id", token.id, "row of the token");
    visit("token", token.token.empty() ? "–" : token.token, "as the vocabulary spells it");
    visit("verdict", token.verdict, "what hidden states can do with it");
    visit("robust", token.robust, "whatever rounding did");
    visit("margin or depth", token.verdict == Verdict::tied ? "–" : fmt::format("{:.4g}", size),
          "how near it is to another verdict");
    visit("covered by", covers_of(token), "a mixture of these, the heaviest first");
    const KeyAdvice& advice = token.advice.value_or(KeyAdvice());
    visit.when(self.advised, "a factor above", above(advice.scale), "makes it selectable");
    visit.when(self.advised, "a bias above", above(advice.offset), "makes it selectable");
    visit.when(self.advised, "a norm", norms_of(advice), "that makes it selectable");
  }
};

std::vector<ReportTable> token_tables(const VocabResult& result) {
  std::vector<ReportTable> tables;
  const std::size_t lost = result.counts.tied + result.counts.unselectable;
  if (result.never_alone && !result.never_alone->empty() && result.settings.limit > 0)
    tables.push_back(
        vocab_table("Tokens that can never win alone", *result.never_alone, result.settings.limit, lost));
  if (result.for_all && !tables.empty())
    tables.back().note = fmt::format("Biases for all: {}.", offsets_words(*result.for_all, "token"));
  if (result.smallest_margins && !result.smallest_margins->empty())
    tables.push_back(vocab_table("Selectable tokens with the smallest margins", *result.smallest_margins,
                                 result.settings.limit, result.counts.selectable));
  return tables;
}

}  // namespace

std::string vocab_verdict(const VocabResult& result) {
  const KeyCounts& counts = result.counts;
  const std::size_t lost = counts.tied + counts.unselectable;
  const std::string undecided =
      counts.undecided > 0
          ? fmt::format(" {} more {} undecided: rational arithmetic would need more than it may take.",
                        counts.undecided, counts.undecided == 1 ? "is" : "are")
          : "";
  if (lost == 0 && !undecided.empty())
    return fmt::format("Of {}, {} {} the likeliest under some hidden state.", counted(result.tokens, "token"),
                       counts.selectable, counts.selectable == 1 ? "is" : "are") +
           undecided;
  if (lost == 0)
    return fmt::format(
        "Each of the {} is the likeliest under some hidden state, of all there could be: none is unargmaxable. "
        "Whether a text leads there is not asked.",
        counted(result.tokens, "token"));
  return fmt::format(
             "Of {}, {} can never be the single likeliest: {} unselectable (on top under no hidden "
             "state), {} tied (never alone).",
             counted(result.tokens, "token"), lost, counts.unselectable, counts.tied) +
         undecided;
}

ReportTable vocab_table(const std::string& title, const std::vector<VocabToken>& tokens, std::size_t most,
                        std::size_t whole) {
  const std::size_t shown = std::min(most, tokens.size());
  std::vector<TokenRow> rows;
  const bool advised = std::any_of(tokens.begin(), tokens.end(),
                                   [](const VocabToken& token) { return token.advice.has_value(); });
  for (std::size_t k = 0; k < shown; ++k) rows.push_back({tokens[k], advised});
  ReportTable table{title, table_of(rows)};
  if (shown < whole) table.title += fmt::format(", {} of {}", shown, whole);
  return table;
}

Page vocab_page(const VocabResult& result, const std::string& source, const KeySet& set, std::string data) {
  const KeysRun keys{source, "none", result.settings.margin == Margins::bound, {summary_of(set)}};
  Page page = keys_page(keys, result.made, std::move(data));
  page.title = "Which tokens a model can put on top";
  page.verdict = vocab_verdict(result);
  page.paragraphs = {
      fmt::format("{}.", source),
      fmt::format(
          "A token's logit is h·w{}, with w its row of the output matrix and h the hidden state. A "
          "token is selectable if some h gives it the strictly highest logit. One that is unselectable "
          "greedy decoding can never produce, whatever the text; one that is tied only where a tie "
          "falls to it (logits taken without rounding). All of space counts for h: what the "
          "last norm lets through is less. Witnesses and covers of all tokens are in "
          "certificates.safetensors.",
          result.bias ? " + b" : "")};
  for (ReportTable& table : token_tables(result)) page.tables.push_back(std::move(table));
  return page;
}

RunView vocab_view(const VocabResult& result, const Provenance& made) {
  const std::string source = fmt::format(
      "{}{}, {}, {} × {}{}", result.settings.source, result.settings.embeddings ? ": word embeddings" : "",
      name_of(result.settings.dtype), result.tokens, result.d, result.bias ? ", with bias" : "");
  RunView view;
  view.section.verdict = vocab_verdict(result);
  view.section.paragraphs = {source + ". " + settings_text(made) + "."};
  const KeysRun keys{
      source,
      "none",
      false,
      {{result.tokens, result.d, result.rank, result.counts, result.robust_counts, {}, {}, {}}}};
  view.beside = tokens_table(result.settings.source, keys);
  view.section.tables = token_tables(result);
  view.section.tables.insert(view.section.tables.begin(), view.beside);
  for (ReportTable& table : view.section.tables)
    table.rows.resize(std::min(table.rows.size(), RunView::most_rows + 1));
  return view;
}

}  // namespace normscope

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "corpus/content_hash.h"
#include "corpus/encoding.h"
#include "corpus/permutation.h"
#include "normscope/error.h"
#include "normscope/labelled_text.h"
#include "normscope/text_windows.h"
#include "text/locality.h"

namespace normscope {
namespace {

using namespace corpus;
using Ids = std::vector<std::uint32_t>;

// What a tokenizer puts around every text.
struct Surround {
  Ids front, behind;

  explicit Surround(const Tokenizer& tokenizer) {
    const std::vector<Token> tokens = tokenizer.encode("a", SpecialTokens::add);
    std::size_t first = 0, last = tokens.size();
    while (first < tokens.size() && is_added(tokens[first])) front.push_back(tokens[first++].id);
    while (last > first && is_added(tokens[last - 1])) --last;
    for (; last < tokens.size(); ++last) behind.push_back(tokens[last].id);
  }
  std::size_t size() const { return front.size() + behind.size(); }
};

// So many words that their tokens are more than are kept: what follows need not be looked at. Words give a
// token each, but for rare ones without a visible character.
std::string_view beginning_of(std::string_view text, std::size_t most_tokens) {
  std::size_t size = 0;
  for (std::size_t words = 0; words < 2 * most_tokens + 16 && size < text.size(); ++words)
    size += text::local_cut(text.substr(size));
  return text.substr(0, size);
}

TokenBatch filled_up(const EncodedTexts& texts, const std::vector<std::size_t>& chosen) {
  TokenBatch batch;
  batch.texts = chosen.size();
  for (const std::size_t i : chosen) batch.length = std::max(batch.length, texts.text(i).size());
  batch.tokens.reserve(batch.texts * batch.length);
  for (const std::size_t i : chosen) {
    const auto text = texts.text(i);
    batch.tokens.insert(batch.tokens.end(), text.begin(), text.end());
    batch.tokens.resize(batch.lengths.size() * batch.length + batch.length, texts.padding);
    batch.lengths.push_back(static_cast<std::uint32_t>(text.size()));
    batch.targets.push_back(texts.labels[i]);
  }
  return batch;
}

void check(const EncodedTexts& texts, std::size_t batch) {
  if (batch == 0) throw InputError("A batch must have at least 1 text.");
  if (texts.size() == 0) throw InputError("There are no texts to make batches of.");
}

}  // namespace

EncodedTexts encode_labelled(const LabelledTexts& texts, const TrainingTokenizer& tokenizer,
                             std::size_t most_tokens, const Executor& executor) {
  const Surround surround(tokenizer.tokenizer);
  if (most_tokens <= surround.size())
    throw InputError(
        fmt::format("A text of {} tokens holds nothing beside its {} special tokens; allow more.",
                    most_tokens, surround.size()));
  const std::size_t inner = most_tokens - surround.size();
  std::vector<Ids> ids(texts.rows.size());
  constexpr std::size_t kTextsOfPiece = 64;
  WordMemories memories;
  executor.for_each((ids.size() + kTextsOfPiece - 1) / kTextsOfPiece, [&](std::size_t piece) {
    memories.with([&](WordMemory& memory) {
      const std::size_t end = std::min(ids.size(), (piece + 1) * kTextsOfPiece);
      for (std::size_t i = piece * kTextsOfPiece; i < end; ++i)
        tokenizer.tokenizer.append_ids(beginning_of(texts.rows[i].text, inner), memory, ids[i]);
    });
  });

  EncodedTexts encoded;
  encoded.padding = tokenizer.padding;
  encoded.begins.push_back(0);
  ContentHash hash;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    encoded.cut += ids[i].size() > inner ? 1 : 0;
    ids[i].resize(std::min(ids[i].size(), inner));
    for (const Ids* part : std::initializer_list<const Ids*>{&surround.front, &ids[i], &surround.behind})
      encoded.tokens.insert(encoded.tokens.end(), part->begin(), part->end());
    // A tokenizer that adds nothing makes nothing of an empty text, but a model must be given something.
    if (encoded.tokens.size() == encoded.begins.back()) encoded.tokens.push_back(tokenizer.padding);
    encoded.begins.push_back(encoded.tokens.size());
    encoded.labels.push_back(texts.rows[i].label);
    hash.add(encoded.text(i));
    hash.add(texts.rows[i].label);
  }
  encoded.content_hash = hash.text();
  return encoded;
}

TokenBatch text_batch(const EncodedTexts& texts, std::size_t batch, std::uint64_t seed, std::uint64_t step) {
  check(texts, batch);
  std::vector<std::size_t> chosen;
  for (std::size_t row = 0; row < batch; ++row)
    chosen.push_back(static_cast<std::size_t>(endless_order(texts.size(), seed, step * batch + row)));
  return filled_up(texts, chosen);
}

std::vector<TokenBatch> text_batches(const EncodedTexts& texts, std::size_t batch) {
  check(texts, batch);
  std::vector<TokenBatch> batches;
  for (std::size_t first = 0; first < texts.size(); first += batch) {
    std::vector<std::size_t> chosen;
    for (std::size_t i = first; i < std::min(texts.size(), first + batch); ++i) chosen.push_back(i);
    batches.push_back(filled_up(texts, chosen));
  }
  return batches;
}

}  // namespace normscope

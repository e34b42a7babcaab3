#include "normscope/token_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "corpus/content_hash.h"
#include "corpus/encoding.h"
#include "corpus/permutation.h"
#include "io/file_errors.h"
#include "normscope/error.h"

namespace normscope {
namespace {

using namespace corpus;

constexpr std::uint64_t kMostTokens = std::uint64_t{1} << 31;
constexpr std::uint64_t kMostPassagesAtOnce = 512;
constexpr std::size_t kManyTokens = std::size_t{1} << 19;  // of one round

struct EncodedPassage {
  std::vector<std::uint32_t> ids;
  std::size_t bytes = 0;
  bool ends_document = true;
};

std::vector<EncodedPassage> encode_passages(const Corpus& corpus, std::uint64_t first, std::uint64_t count,
                                            const Tokenizer& tokenizer, WordMemories& memories,
                                            const Executor& executor) {
  std::vector<EncodedPassage> round(static_cast<std::size_t>(count));
  executor.for_each(round.size(), [&](std::size_t i) {
    const Passage passage = corpus.passage(first + i);
    memories.with([&](WordMemory& memory) { tokenizer.append_ids(passage.text, memory, round[i].ids); });
    round[i].bytes = passage.text.size();
    round[i].ends_document = passage.ends_document;
  });
  return round;
}

// Rounds of more and more passages: a short stream must not wait for text it does not need. Their sizes
// change nothing but the time, since tokens are taken in the order of passages.
void fill(TokenStream& stream, const Corpus& corpus, const TrainingTokenizer& tokenizer, std::uint64_t most,
          const Executor& executor) {
  WordMemories memories;
  bool begins_document = true;
  std::uint64_t first = 0, count = 1;
  const std::uint64_t passages = corpus.passages();
  while (first < passages && stream.tokens.size() < most) {
    count = std::min(count, passages - first);
    const auto round = encode_passages(corpus, first, count, tokenizer.tokenizer, memories, executor);
    const std::size_t before = stream.tokens.size();
    for (const EncodedPassage& passage : round) {
      if (stream.tokens.size() >= most) break;
      stream.documents += begins_document ? 1 : 0;
      stream.bytes += passage.bytes;
      begins_document = passage.ends_document;
      stream.tokens.insert(stream.tokens.end(), passage.ids.begin(), passage.ids.end());
      if (passage.ends_document) stream.tokens.push_back(*tokenizer.end_of_text);
      ++first;
    }
    if (stream.tokens.size() - before < kManyTokens) count = std::min(2 * count, kMostPassagesAtOnce);
  }
  stream.whole = first == passages && stream.tokens.size() <= most;
  if (stream.tokens.size() > most) stream.tokens.resize(static_cast<std::size_t>(most));
}

std::size_t held_out_tokens(std::size_t tokens, const StreamOptions& options) {
  if (options.held_out_share == 0) return 0;
  const auto share =
      static_cast<std::size_t>(std::ceil(options.held_out_share * static_cast<double>(tokens)));
  return std::max(share, options.context + 1);
}

[[noreturn]] void reject_short(const Corpus& corpus, std::size_t tokens, const StreamOptions& options) {
  const bool holds_out = options.held_out_share > 0;
  const std::string what =
      fmt::format("The text ({}) has {} token{}", corpus.description(), tokens, tokens == 1 ? "" : "s");
  // A window takes one token more than its context, and each part needs a window.
  const auto share =
      static_cast<std::size_t>(std::ceil(options.held_out_share * static_cast<double>(tokens)));
  const std::size_t room = holds_out ? std::min(tokens - std::min(share, tokens), tokens / 2) : tokens;
  if (room < 2)
    throw InputError(fmt::format("{}, too few to learn what follows what; give more text.", what));
  throw InputError(
      fmt::format("{}, but a window of {} tokens with what follows it takes {}{}; use --context {} or less, "
                  "or give more text.",
                  what, options.context, options.context + 1,
                  holds_out ? ", to train on and again to be held out" : "", room - 1));
}

void check(const Corpus& corpus, const TrainingTokenizer& tokenizer, const StreamOptions& options) {
  if (!tokenizer.end_of_text)
    io::reject(fmt::format("The tokenizer {}", io::quoted_name(tokenizer.name)),
               "has no token that ends a text (such as <|endoftext|> or </s>)",
               "choose gpt2-bpe or bytes, or name one in its tokenizer_config.json as eos_token");
  if (!(options.held_out_share >= 0 && options.held_out_share < 1))
    throw InputError(fmt::format("The share that is held out is {}, but must be at least 0 and less than 1.",
                                 options.held_out_share));
  if (options.context == 0) throw InputError("The context is 0 tokens, but must be at least 1.");
  if (options.most_tokens > kMostTokens)
    throw InputError(
        fmt::format("{} tokens are asked for, but at most {} are held.", options.most_tokens, kMostTokens));
  if (options.most_tokens == 0 && corpus.generated())
    throw InputError("A generated corpus has no end; say how many tokens are wanted.");
}

// Where window w begins: the last one so that it ends with the tokens.
std::size_t window_begin(std::size_t tokens, std::size_t context, std::uint64_t window) {
  return static_cast<std::size_t>(std::min<std::uint64_t>(window * context, tokens - 1 - context));
}

void append_window(TokenBatch& batch, std::span<const std::uint32_t> tokens, std::uint64_t window) {
  const auto begin =
      tokens.begin() + static_cast<std::ptrdiff_t>(window_begin(tokens.size(), batch.length, window));
  const auto length = static_cast<std::ptrdiff_t>(batch.length);
  batch.tokens.insert(batch.tokens.end(), begin, begin + length);
  batch.targets.insert(batch.targets.end(), begin + 1, begin + 1 + length);
  ++batch.texts;
}

std::uint64_t checked_windows(std::span<const std::uint32_t> tokens, std::size_t context, std::size_t batch) {
  if (context == 0 || batch == 0) throw InputError("Context and batch must be at least 1.");
  const std::uint64_t windows = window_count(tokens, context);
  if (windows == 0)
    throw InputError(
        fmt::format("{} tokens are too few for a window of {} and what follows it.", tokens.size(), context));
  return windows;
}

}  // namespace

TokenStream token_stream(const Corpus& corpus, const TrainingTokenizer& tokenizer,
                         const StreamOptions& options, const Executor& executor) {
  check(corpus, tokenizer, options);
  TokenStream stream;
  fill(stream, corpus, tokenizer, options.most_tokens == 0 ? kMostTokens : options.most_tokens, executor);
  if (options.most_tokens == 0 && !stream.whole)
    throw InputError(
        fmt::format("The text ({}) has more than {} tokens, the most that are held; use a part of it.",
                    corpus.description(), kMostTokens));
  const std::size_t held_out = held_out_tokens(stream.tokens.size(), options);
  if (stream.tokens.size() < held_out + options.context + 1)
    reject_short(corpus, stream.tokens.size(), options);
  stream.training_tokens = stream.tokens.size() - held_out;
  ContentHash hash;
  hash.add(stream.tokens);
  hash.add(stream.training_tokens);
  stream.content_hash = hash.text();
  return stream;
}

std::uint64_t window_count(std::span<const std::uint32_t> tokens, std::size_t context) {
  if (context == 0 || tokens.size() <= context) return 0;
  return (tokens.size() - 1 + context - 1) / context;
}

TokenBatch language_batch(std::span<const std::uint32_t> tokens, std::size_t context, std::size_t batch,
                          std::uint64_t seed, std::uint64_t step) {
  const std::uint64_t windows = checked_windows(tokens, context, batch);
  TokenBatch result;
  result.length = context;
  for (std::size_t row = 0; row < batch; ++row)
    append_window(result, tokens, endless_order(windows, seed, step * batch + row));
  return result;
}

std::vector<TokenBatch> held_out_batches(std::span<const std::uint32_t> tokens, std::size_t context,
                                         std::size_t batch, std::size_t most_windows) {
  const std::uint64_t windows = checked_windows(tokens, context, batch);
  const std::uint64_t used = std::min<std::uint64_t>(windows, most_windows);
  std::vector<TokenBatch> batches;
  for (std::uint64_t i = 0; i < used; ++i) {
    if (i % batch == 0) batches.emplace_back().length = context;
    append_window(batches.back(), tokens, i * windows / used);
  }
  return batches;
}

}  // namespace normscope

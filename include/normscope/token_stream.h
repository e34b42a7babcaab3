#pragma once
// A corpus as one row of tokens, and batches of windows of it in a random order that can be entered anywhere:
//
//   document, end of text, document, end of text, …          the last part held out
//
// With n tokens and windows of c, window w begins at w·c, and the last one so that its last target is the
// last token: ⌈(n − 1)/c⌉ windows, each token but the first a target. Batch b of size B has windows bB … bB +
// B − 1 of an endless order: one permutation of all windows after the other, each computed from (seed, epoch)
// alone, so step b needs nothing that came before.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "normscope/corpus.h"
#include "normscope/executor.h"
#include "normscope/training_tokenizer.h"
#include "normscope/transformer.h"

namespace normscope {

struct StreamOptions {
  std::size_t context = 1024;     // tokens of a window
  std::uint64_t most_tokens = 0;  // no more text is read than gives so many; 0: all there is
  double held_out_share = 0.05;   // of the tokens, the last ones; a window at least. 0: none
};

struct TokenStream {
  std::vector<std::uint32_t> tokens;
  std::size_t training_tokens = 0;  // the first ones; the others are held out
  std::uint64_t documents = 0;      // of which something was read
  std::uint64_t bytes = 0;          // of text
  bool whole = true;                // false: the corpus has more
  std::string content_hash;         // of tokens and of where training ends: to go on with the same data

  std::span<const std::uint32_t> training() const { return std::span(tokens).first(training_tokens); }
  std::span<const std::uint32_t> held_out() const { return std::span(tokens).subspan(training_tokens); }
};

// The same tokens for any number of threads. Throws InputError if the tokenizer has no end of text, a share
// is not in [0, 1), or there are too few tokens for a window of each part (with the longest that would do).
TokenStream token_stream(const Corpus& corpus, const TrainingTokenizer& tokenizer,
                         const StreamOptions& options, const Executor& executor);

// 0 if not even one fits.
std::uint64_t window_count(std::span<const std::uint32_t> tokens, std::size_t context);

// Throws InputError if not even one window fits, or context or batch is 0.
TokenBatch language_batch(std::span<const std::uint32_t> tokens, std::size_t context, std::size_t batch,
                          std::uint64_t seed, std::uint64_t step);

// Windows to measure on: all if there are at most so many, else so many evenly spaced; in order.
std::vector<TokenBatch> held_out_batches(std::span<const std::uint32_t> tokens, std::size_t context,
                                         std::size_t batch, std::size_t most_windows);

}  // namespace normscope

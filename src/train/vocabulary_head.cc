#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "train/vocabulary_head.cc"
#include "train/vocabulary_head.h"

// In this order, before highway.h.
// clang-format off
#include "core/targets.h"
#include <hwy/foreach_target.h>
// clang-format on

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/run_pieces.h"
#include "train/dispatch.h"
#include "train/products-inl.h"
#include "train/shared_step.h"

#ifndef NORMSCOPE_TRAIN_VOCABULARY_HEAD_ONCE
#define NORMSCOPE_TRAIN_VOCABULARY_HEAD_ONCE
namespace normscope {

// Compiled for the instruction set of this machine.
template <class T>
struct VocabularyHeadKernels {
  // Token block `block`: −log p of each target (0 where none) to losses[N], and where wanted (dx not null)
  // log₂Z to log_sums[N] and ∂L/∂x to dx (d × N).
  void (*tokens)(const VocabularyHead<T>& head, std::size_t block, double* losses, T* log_sums, T* dx);
  // Word block `block`: Σ_t weight·p_tw x_t (the targets' part is the caller's) to de, d × padded V.
  // `weighted`: x times the weight, 0 where a token does not count.
  void (*words)(const VocabularyHead<T>& head, std::size_t block, const T* log_sums, const T* weighted,
                T* de);
};

}  // namespace normscope
#endif

HWY_BEFORE_NAMESPACE();
namespace normscope::HWY_NAMESPACE {
namespace {

constexpr std::size_t kChunk = 128;  // words or tokens between two sums

template <class T>
using Head = VocabularyHead<T>;

// Calls body(first, count) over chunks of `total`.
template <class Body>
HWY_INLINE void for_chunks(std::size_t total, const Body& body) {
  for (std::size_t first = 0; first < total; first += kChunk) body(first, std::min(kChunk, total - first));
}

// The largest of all logits of each column, at least `top`.
template <class T>
void raise_to_largest(const Head<T>& head, const T* x, T* top) {
  constexpr std::size_t kTokens = Head<T>::kTokens;
  HWY_ALIGN T logits[kChunk * kTokens];
  for_chunks(head.vocabulary, [&](std::size_t first, std::size_t count) HWY_ATTR {
    product<Start::zero>({count, head.width, kTokens}, {head.embedding + first * head.width, head.width, 1},
                         {x, kTokens}, Strided<T>{logits, kTokens});
    for (std::size_t w = 0; w < count; ++w) {
      for (std::size_t c = 0; c < kTokens; c += kLanes<T>)
        store(hn::Max(load(top + c), load(logits + w * kTokens + c)), top + c);
    }
  });
}

template <class T>
void head_tokens(const Head<T>& head, std::size_t block, double* losses, T* log_sums, T* dx) {
  constexpr std::size_t kTokens = Head<T>::kTokens;
  // Beyond this above the target's logit (in powers of two) a sum of powers could vanish.
  constexpr T kTooFar = 80;
  const std::size_t d = head.width, begin = block * kTokens;
  // x in units of log 2, so that powers of two take the place of exponentials.
  Aligned<T> x(d * kTokens), sums(d * kTokens, T(0)), part(d * kTokens);
  HWY_ALIGN T square[kTokens] = {}, shift[kTokens], minus_shift[kTokens], target[kTokens] = {};
  for (std::size_t k = 0; k < d; ++k) {
    for (std::size_t c = 0; c < kTokens; ++c) {
      const T value = head.x[k * head.tokens + begin + c] * std::numbers::log2e_v<T>;
      x[k * kTokens + c] = value;
      square[c] += value * value;
    }
  }
  bool too_far = false;
  for (std::size_t c = 0; c < kTokens; ++c) {
    shift[c] = std::sqrt(square[c]) * head.longest;
    const std::uint32_t word = head.targets[begin + c];
    if (word >= head.vocabulary) continue;
    for (std::size_t k = 0; k < d; ++k) target[c] += head.embedding[word * d + k] * x[k * kTokens + c];
    too_far = too_far || shift[c] - target[c] > kTooFar;
  }
  if (too_far) {
    std::copy_n(target, kTokens, shift);
    raise_to_largest(head, x.data(), shift);
  }
  for (std::size_t c = 0; c < kTokens; ++c) minus_shift[c] = -shift[c];

  HWY_ALIGN T powers[kChunk * kTokens];
  double totals[kTokens] = {};
  for_chunks(head.vocabulary, [&](std::size_t first, std::size_t count) HWY_ATTR {
    const T* const words = head.embedding + first * d;
    product<Start::columns, Finish::exp2>({count, d, kTokens}, {words, d, 1}, {x.data(), kTokens},
                                          Strided<T>{powers, kTokens}, minus_shift);
    for (std::size_t c = 0; c < kTokens; c += kLanes<T>) {
      Vec<T> sum = zero<T>();
      for (std::size_t w = 0; w < count; ++w) sum = hn::Add(sum, load(powers + w * kTokens + c));
      HWY_ALIGN T lanes[kLanes<T>];
      store(sum, lanes);
      for (std::size_t l = 0; l < kLanes<T>; ++l) totals[c + l] += static_cast<double>(lanes[l]);
    }
    if (dx == nullptr) return;
    product<Start::zero>({d, count, kTokens}, {words, 1, d}, {powers, kTokens},
                         Strided<T>{part.data(), kTokens});
    for (std::size_t i = 0; i < d * kTokens; i += kLanes<T>)
      store(hn::Add(load(sums.data() + i), load(part.data() + i)), sums.data() + i);
  });

  for (std::size_t c = 0; c < kTokens; ++c) {
    const std::uint32_t word = head.targets[begin + c];
    const double log_sum = static_cast<double>(shift[c]) + std::log2(totals[c]);
    const bool counts = word < head.vocabulary;
    // Rounding may put the target above the sum that it is part of. NaN stays NaN.
    losses[begin + c] =
        counts ? std::max(log_sum - static_cast<double>(target[c]), 0.0) * std::numbers::ln2 : 0;
    if (dx == nullptr) continue;
    log_sums[begin + c] = static_cast<T>(log_sum);
    const T weight = counts ? head.weight : T(0),
            share = static_cast<T>(static_cast<double>(weight) / totals[c]);
    for (std::size_t k = 0; k < d; ++k) {
      dx[k * head.tokens + begin + c] =
          counts ? sums[k * kTokens + c] * share - weight * head.embedding[word * d + k] : T(0);
    }
  }
}

template <class T>
void head_words(const Head<T>& head, std::size_t block, const T* log_sums, const T* weighted, T* de) {
  constexpr std::size_t kWords = Head<T>::kWords;
  const std::size_t d = head.width, begin = block * kWords;
  // The words of the block, in units of log 2, close together.
  Aligned<T> words(d * kWords), sums(d * kWords, T(0)), part(d * kWords);
  for (std::size_t k = 0; k < d; ++k) {
    for (std::size_t w = 0; w < kWords; ++w)
      words[k * kWords + w] = head.transposed[k * head.padded_words + begin + w] * std::numbers::log2e_v<T>;
  }
  HWY_ALIGN T powers[kChunk * kWords];
  HWY_ALIGN T minus[kChunk];
  for_chunks(head.tokens, [&](std::size_t first, std::size_t count) HWY_ATTR {
    for (std::size_t t = 0; t < count; ++t) minus[t] = -log_sums[first + t];
    product<Start::bias, Finish::exp2>({count, d, kWords}, {head.x + first, 1, head.tokens},
                                       {words.data(), kWords}, Strided<T>{powers, kWords}, minus);
    product<Start::zero>({d, count, kWords}, {weighted + first, head.tokens, 1}, {powers, kWords},
                         Strided<T>{part.data(), kWords});
    for (std::size_t i = 0; i < d * kWords; i += kLanes<T>)
      store(hn::Add(load(sums.data() + i), load(part.data() + i)), sums.data() + i);
  });
  for (std::size_t k = 0; k < d; ++k)
    std::copy_n(sums.data() + k * kWords, kWords, de + k * head.padded_words + begin);
}

template <class T>
VocabularyHeadKernels<T> kernels() {
  return {head_tokens<T>, head_words<T>};
}
NORMSCOPE_KERNELS(VocabularyHeadKernels);

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normscope {

NORMSCOPE_EXPORT_KERNELS(VocabularyHeadKernels, head_kernels);

template <class T>
T longest_word(const VocabularyHead<T>& head) {
  double longest = 0;
  for (std::size_t w = 0; w < head.vocabulary; ++w) {
    double square = 0;
    for (const T value : std::span(head.embedding + w * head.width, head.width))
      square += static_cast<double>(value) * static_cast<double>(value);
    longest = square > longest || std::isnan(square) ? square : longest;
    if (std::isnan(square)) break;
  }
  return static_cast<T>(std::sqrt(longest) * (1 + 1e-6));  // an upper bound also after rounding
}

template <class T>
void vocabulary_tokens(const VocabularyHead<T>& head, std::size_t first, std::size_t end, double* losses,
                       T* log_sums, T* dx, const Executor& executor) {
  const auto kernels = head_kernels<T>();
  executor.for_each((end - first) / head.kTokens, [&](std::size_t block) {
    kernels.tokens(head, first / head.kTokens + block, losses, log_sums, dx);
  });
}

template <class T>
void vocabulary_words(VocabularyHead<T> head, const T* log_sums, T* dwords, const Executor& executor,
                      bool shared) {
  const auto kernels = head_kernels<T>();
  const std::size_t V = head.vocabulary, d = head.width, N = head.tokens;
  head.padded_words = (V + head.kWords - 1) / head.kWords * head.kWords;
  std::vector<T> transposed(d * head.padded_words, T(0)), sums(d * head.padded_words), weighted(d * N);
  for (std::size_t w = 0; w < V; ++w) {
    for (std::size_t k = 0; k < d; ++k) transposed[k * head.padded_words + w] = head.embedding[w * d + k];
  }
  for (std::size_t i = 0; i < d * N; ++i)
    weighted[i] = head.targets[i % N] < V ? head.x[i] * head.weight : T(0);
  head.transposed = transposed.data();
  const std::size_t blocks = head.padded_words / head.kWords;
  const auto one = [&](std::size_t block) {
    kernels.words(head, block, log_sums, weighted.data(), sums.data());
  };
  if (!shared) {
    executor.for_each(blocks, one);
  } else {
    // So many that processes end together, and few enough that messages are rare.
    const std::size_t pieces = std::min<std::size_t>(blocks, 64);
    const PieceWork work{"words of a step", std::vector<double>(pieces, 1), false, {}, {}};
    const auto begin_of = [&](std::size_t piece) { return blocks * piece / pieces * head.kWords; };
    const auto parts =
        run_pieces<std::vector<T>>(executor, work, [&](std::size_t piece, const Executor& inside) {
          const std::size_t begin = begin_of(piece), end = begin_of(piece + 1);
          inside.for_each((end - begin) / head.kWords,
                          [&](std::size_t block) { one(begin / head.kWords + block); });
          return columns_of(sums.data(), d, head.padded_words, begin, end);
        });
    for (std::size_t piece = 0; piece < pieces; ++piece)
      put_columns(parts[piece], sums.data(), d, head.padded_words, begin_of(piece), begin_of(piece + 1));
  }
  for (std::size_t w = 0; w < V; ++w) {
    for (std::size_t k = 0; k < d; ++k) dwords[w * d + k] = sums[k * head.padded_words + w];
  }
  for (std::size_t i = 0; i < N; ++i) {
    if (head.targets[i] >= V) continue;
    for (std::size_t k = 0; k < d; ++k) dwords[head.targets[i] * d + k] -= weighted[k * N + i];
  }
}

template <class T>
std::vector<double> vocabulary_losses(VocabularyHead<T> head, T* dx, T* dwords, const Executor& executor) {
  head.longest = longest_word(head);
  std::vector<double> losses(head.tokens);
  std::vector<T> log_sums(dx != nullptr ? head.tokens : 0);
  vocabulary_tokens(head, 0, head.tokens, losses.data(), log_sums.data(), dx, executor);
  if (dx != nullptr) vocabulary_words(head, log_sums.data(), dwords, executor, false);
  return losses;
}

// NOLINTBEGIN(bugprone-macro-parentheses): T is a type
#define NORMSCOPE_VOCABULARY_HEAD(T)                                                                   \
  template T longest_word(const VocabularyHead<T>&);                                                   \
  template void vocabulary_tokens(const VocabularyHead<T>&, std::size_t, std::size_t, double*, T*, T*, \
                                  const Executor&);                                                    \
  template void vocabulary_words(VocabularyHead<T>, const T*, T*, const Executor&, bool);              \
  template std::vector<double> vocabulary_losses(VocabularyHead<T>, T*, T*, const Executor&)
// NOLINTEND(bugprone-macro-parentheses)
NORMSCOPE_VOCABULARY_HEAD(float);
NORMSCOPE_VOCABULARY_HEAD(double);

}  // namespace normscope
#endif

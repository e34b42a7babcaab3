#pragma once
// The head of a language model with its loss: logits = E·x over a vocabulary of V words, cross-entropy, and
// the gradients of both sides, without ever holding logits of more than a small block. Written here because
// no packaged library has it.
//
//   tokens   blocks of kTokens tokens × all words: Z = Σ_w e^(E_w·x), and at the same pass ∂L/∂x, which is
//            Σ_w e^(E_w·x) E_w / Z − E_target. The exponents are shifted by ‖x‖·max‖E_w‖, an upper bound;
//            only where that lies too far above the target's logit, the largest logit is sought first
//   words    blocks of kWords words × all tokens: p recomputed from log Z, ∂L/∂E_w = Σ_t p_tw x_t − targets
//
// Sums are over 128 in float, these in turn in float (of x, E) or double (of Z). Every number is written by
// one block, so that results do not depend on threads.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "normscope/executor.h"

namespace normscope {

template <class T>
struct VocabularyHead {
  static constexpr std::size_t kTokens = 32, kWords = 32;  // multiples of kColumns

  std::size_t vocabulary = 0, width = 0;
  std::size_t tokens = 0;                  // a multiple of kTokens: N
  const T* embedding = nullptr;            // V × d
  const T* x = nullptr;                    // d × N
  const std::uint32_t* targets = nullptr;  // N; at least V: the token does not count
  T weight = 0;                            // of a token that counts, in the loss

  T longest = 0;  // longest_word

  // Set by vocabulary_words.
  const T* transposed = nullptr;  // d × padded V: the embedding by columns, 0 beyond V
  std::size_t padded_words = 0;   // a multiple of kWords
};

// Of the tokens [first, end), multiples of kTokens: −log p of each target (0 where none) to losses (N), and where
// wanted (dx not null) log₂Z to log_sums (N) and the gradient of x, times the weight, to dx (d × N).
template <class T>
void vocabulary_tokens(const VocabularyHead<T>& head, std::size_t first, std::size_t end, double* losses,
                       T* log_sums, T* dx, const Executor& executor);
// The gradient of the words, times the weight, to dwords (V × d), from the log_sums of all tokens. shared: by the
// processes of a job.
template <class T>
void vocabulary_words(VocabularyHead<T> head, const T* log_sums, T* dwords, const Executor& executor,
                      bool shared = false);
// max‖E_w‖, rounded up, for VocabularyHead::longest.
template <class T>
T longest_word(const VocabularyHead<T>& head);

// Both at once, in this process: the losses, and where wanted (not null) dx and dwords. For float and double.
template <class T>
std::vector<double> vocabulary_losses(VocabularyHead<T> head, T* dx, T* dwords, const Executor& executor);

}  // namespace normscope

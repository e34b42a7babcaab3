// −log softmax(logits)[label] of each token.   logits: (C, T), labels: (T)
#ifndef NORMSCOPE_TRAIN_LAYERS_CROSS_ENTROPY_REFERENCE
#define NORMSCOPE_TRAIN_LAYERS_CROSS_ENTROPY_REFERENCE
#include <cmath>
#include <cstdint>
#include <vector>

#include "train/columns.h"

namespace normscope::reference {

// Row 0: the loss of each token; row 1: 1 where the first highest logit is the label's.
inline Array cross_entropy(const Array& logits, const std::vector<std::uint32_t>& labels) {
  Array result(2, logits.cols());
  for (std::size_t t = 0; t < logits.cols(); ++t) {
    std::size_t top = 0;
    for (std::size_t c = 1; c < logits.rows(); ++c) top = logits(c, t) > logits(top, t) ? c : top;
    double total = 0;
    for (std::size_t c = 0; c < logits.rows(); ++c) total += std::exp(logits(c, t) - logits(top, t));
    result(0, t) = std::log(total) + logits(top, t) - logits(labels[t], t);
    result(1, t) = top == labels[t] ? 1 : 0;
  }
  return result;
}

}  // namespace normscope::reference
#endif

#if defined(NORMSCOPE_TRAIN_LAYERS_CROSS_ENTROPY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMSCOPE_TRAIN_LAYERS_CROSS_ENTROPY_INL_H_
#undef NORMSCOPE_TRAIN_LAYERS_CROSS_ENTROPY_INL_H_
#else
#define NORMSCOPE_TRAIN_LAYERS_CROSS_ENTROPY_INL_H_
#endif

#include "train/functions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normscope::HWY_NAMESPACE {
namespace {

// What the columns of logits say about their labels.
template <class T>
struct ColumnLoss {
  T* loss;   // −log softmax at the label, per column
  T* right;  // 1 where the highest logit is the label's, else 0; or null
};

// Cross-entropy of `classes` logits per column against labels[column]. Puts the
// gradient weight·(softmax − [class = label]) in place of the logits.
template <class T>
HWY_INLINE void cross_entropy_columns(std::size_t classes, T* HWY_RESTRICT logits,
                                      const std::uint16_t* HWY_RESTRICT labels, const T* HWY_RESTRICT weights,
                                      ColumnLoss<T> result, std::size_t columns) {
  const Tag<T> tag;
  // What concerns the label only is done number by number: one of `classes` rows.
  for (std::size_t c = 0; c < columns; ++c) result.loss[c] = -logits[labels[c] * columns + c];
  for (std::size_t c = 0; c < columns; c += kLanes<T>) {
    Vec<T> top = load(logits + c), winner = zero<T>();
    for (std::size_t k = 1; k < classes; ++k) {
      const Vec<T> logit = load(logits + k * columns + c);
      if (result.right != nullptr) {
        winner = hn::IfThenElse(hn::Gt(logit, top), splat(static_cast<T>(k)), winner);
      }
      top = hn::Max(top, logit);
    }
    if (result.right != nullptr) store(winner, result.right + c);
    Vec<T> sum = zero<T>();
    for (std::size_t k = 0; k < classes; ++k) {
      const Vec<T> e = hn::Exp(tag, hn::Sub(load(logits + k * columns + c), top));
      sum = hn::Add(sum, e);
      store(e, logits + k * columns + c);
    }
    store(hn::Add(hn::Log(tag, sum), hn::Add(top, load(result.loss + c))), result.loss + c);
    const Vec<T> share = hn::Div(load(weights + c), sum);
    for (std::size_t k = 0; k < classes; ++k) {
      store(hn::Mul(load(logits + k * columns + c), share), logits + k * columns + c);
    }
  }
  for (std::size_t c = 0; c < columns; ++c) logits[labels[c] * columns + c] -= weights[c];
  if (result.right == nullptr) return;
  for (std::size_t c = 0; c < columns; ++c) result.right[c] = result.right[c] == static_cast<T>(labels[c]);
}

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

// o = softmax(q kᵀ/√d_QK + mask) v of each head, d_QK = d/H unless another is given.   q, k, v: (d, T), one after another in qkv; o: (d, T)
#ifndef NORMSCOPE_TRAIN_LAYERS_ATTENTION_REFERENCE
#define NORMSCOPE_TRAIN_LAYERS_ATTENTION_REFERENCE
#include <cmath>

#include "normscope/mask.h"
#include "train/columns.h"

namespace normscope::reference {

// Down each column.
inline Array softmax(const Array& scores) {
  Array weights(scores.rows(), scores.cols());
  for (std::size_t t = 0; t < scores.cols(); ++t) {
    double top = -HUGE_VAL, total = 0;
    for (std::size_t i = 0; i < scores.rows(); ++i) top = std::fmax(top, scores(i, t));
    for (std::size_t i = 0; i < scores.rows(); ++i) total += weights(i, t) = std::exp(scores(i, t) - top);
    for (std::size_t i = 0; i < scores.rows(); ++i) weights(i, t) /= total;
  }
  return weights;
}

// Of one head: keys × queries.
inline Array attention_weights(const Array& qkv, std::size_t heads, std::size_t head, const Mask& mask,
                               double temperature = 0, bool uniform = false) {
  const std::size_t T = qkv.cols(), d = qkv.rows() / 3, width = d / heads;
  Array scores(T, T);
  for (std::size_t key = 0; key < T; ++key) {
    for (std::size_t query = 0; query < T; ++query) {
      for (std::size_t i = head * width; i < (head + 1) * width; ++i)
        scores(key, query) += qkv(i, query) * qkv(d + i, key);
      scores(key, query) /=
          uniform ? HUGE_VAL : std::sqrt(temperature > 0 ? temperature : static_cast<double>(width));
      if (!mask.attends(query, key)) scores(key, query) = -HUGE_VAL;
    }
  }
  return softmax(scores);
}

inline Array attention(const Array& qkv, std::size_t heads, const Mask& mask, double temperature = 0,
                       bool uniform = false) {
  const std::size_t T = qkv.cols(), d = qkv.rows() / 3, width = d / heads;
  Array o(d, T);
  for (std::size_t head = 0; head < heads; ++head) {
    const Array weights = attention_weights(qkv, heads, head, mask, temperature, uniform);
    for (std::size_t i = head * width; i < (head + 1) * width; ++i) {
      for (std::size_t key = 0; key < T; ++key) {
        for (std::size_t query = 0; query < T; ++query)
          o(i, query) += weights(key, query) * qkv(2 * d + i, key);
      }
    }
  }
  return o;
}

}  // namespace normscope::reference
#endif

#if defined(NORMSCOPE_TRAIN_LAYERS_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMSCOPE_TRAIN_LAYERS_ATTENTION_INL_H_
#undef NORMSCOPE_TRAIN_LAYERS_ATTENTION_INL_H_
#else
#define NORMSCOPE_TRAIN_LAYERS_ATTENTION_INL_H_
#endif

#include <algorithm>
#include <vector>

#include "train/products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normscope::HWY_NAMESPACE {
namespace {

// Softmax down each column of `rows` scores, in place. `bias`, if not null, is added to the scores first.
template <class T>
HWY_INLINE void softmax_columns(std::size_t rows, T* HWY_RESTRICT scores, const T* bias,
                                std::size_t columns) {
  const Tag<T> tag;
  for (std::size_t c = 0; c < columns; c += kLanes<T>) {
    Vec<T> top = splat(-hwy::HighestValue<T>());
    for (std::size_t j = 0; j < rows; ++j) {
      Vec<T> score = load(scores + j * columns + c);
      if (bias != nullptr) {
        score = hn::Add(score, load(bias + j * columns + c));
        store(score, scores + j * columns + c);
      }
      top = hn::Max(top, score);
    }
    Vec<T> sum = zero<T>();
    for (std::size_t j = 0; j < rows; ++j) {
      const Vec<T> weight = hn::Exp(tag, hn::Sub(load(scores + j * columns + c), top));
      sum = hn::Add(sum, weight);
      store(weight, scores + j * columns + c);
    }
    const Vec<T> share = hn::Div(splat(T(1)), sum);
    for (std::size_t j = 0; j < rows; ++j) {
      store(hn::Mul(load(scores + j * columns + c), share), scores + j * columns + c);
    }
  }
}

// Backward of softmax_columns: from weights and ∂L/∂weights, ∂L/∂scores in place of the latter.
template <class T>
HWY_INLINE void softmax_columns_backward(std::size_t rows, const T* HWY_RESTRICT weights,
                                         T* HWY_RESTRICT gradient, std::size_t columns) {
  for (std::size_t c = 0; c < columns; c += kLanes<T>) {
    Vec<T> mean = zero<T>();
    for (std::size_t j = 0; j < rows; ++j) {
      mean = hn::MulAdd(load(weights + j * columns + c), load(gradient + j * columns + c), mean);
    }
    for (std::size_t j = 0; j < rows; ++j) {
      const Vec<T> g = hn::Sub(load(gradient + j * columns + c), mean);
      store(hn::Mul(load(weights + j * columns + c), g), gradient + j * columns + c);
    }
  }
}

// Sums over the tokens of one sequence, means over heads.
struct AttentionMeasure {
  double entropy = 0, distance = 0;
};

// Keys are rows and queries columns, so that softmax runs down columns.
template <class T>
class Attention {
 public:
  // mask: keys × columns, added to the scores (0 or a very negative number; every query has a key left), or
  // null. temperature: d_QK; 0: d/heads. uniform: the scores are 0.
  Attention(std::size_t d, std::size_t heads, std::size_t length, std::size_t columns, const T* mask,
            double temperature = 0, bool uniform = false)
      : width_(d / heads),
        heads_(heads),
        length_(length),
        mask_(mask),
        scale_(uniform
                   ? 0
                   : 1 / std::sqrt(temperature > 0 ? static_cast<T>(temperature) : static_cast<T>(width_))),
        weights_(heads, Columns<T>(length, columns)),
        dweights_(length, columns) {}

  void forward(const Columns<T>& qkv, Columns<T>& o) {
    const std::size_t d = width_ * heads_, columns = qkv.columns();
    for (std::size_t h = 0; h < heads_; ++h) {
      const T *k = qkv.row(d + h * width_), *v = qkv.row(2 * d + h * width_);
      Columns<T>& weights = weights_[h];
      product<Start::zero>({length_, width_, columns}, {k, 1, columns}, qkv.from(h * width_), weights.from());
      scale(weights);
      softmax_columns(length_, weights.data(), mask_, columns);
      product<Start::zero>({width_, length_, columns}, {v, columns, 1}, weights.from(), o.from(h * width_));
    }
  }

  // dqkv is written.
  void backward(const Columns<T>& qkv, const Columns<T>& dout, Columns<T>& dqkv) {
    const std::size_t d = width_ * heads_, columns = qkv.columns();
    for (std::size_t h = 0; h < heads_; ++h) {
      const std::size_t q = h * width_, k = d + q, v = d + k;  // rows
      const Columns<T>& weights = weights_[h];
      product<Start::zero>({length_, width_, columns}, {qkv.row(v), 1, columns}, dout.from(q),
                           dweights_.from());
      sums_over_queries(dout.row(q), weights, dqkv.row(v));
      softmax_columns_backward(length_, weights.data(), dweights_.data(), columns);
      scale(dweights_);
      product<Start::zero>({width_, length_, columns}, {qkv.row(k), columns, 1}, dweights_.from(),
                           dqkv.from(q));
      sums_over_queries(qkv.row(q), dweights_, dqkv.row(k));
    }
  }

  AttentionMeasure measure() const {
    AttentionMeasure sum;
    // Uniform over the keys that the mask leaves to a query.
    std::vector<double> uniform(length_, 1.0 / static_cast<double>(length_));
    for (std::size_t i = 0; mask_ != nullptr && i < length_; ++i) {
      double left = 0;
      for (std::size_t j = 0; j < length_; ++j) left += hidden(j, i) ? 0 : 1;
      uniform[i] = 1 / left;
    }
    for (const Columns<T>& weights : weights_) {
      for (std::size_t j = 0; j < length_; ++j) {
        for (std::size_t i = 0; i < length_; ++i) {
          const auto weight = static_cast<double>(weights.row(j)[i]);
          // Rounding may put the only weight of a row above 1.
          if (weight > 0 && weight < 1) sum.entropy -= weight * std::log(weight);
          if (!hidden(j, i)) sum.distance += std::fabs(weight - uniform[i]) / 2;
        }
      }
    }
    return {sum.entropy / static_cast<double>(heads_), sum.distance / static_cast<double>(heads_)};
  }

 private:
  void scale(Columns<T>& scores) const {
    const Vec<T> factor = splat(scale_);
    T* const values = scores.data();
    for (std::size_t i = 0; i < scores.size(); i += kLanes<T>)
      store(hn::Mul(load(values + i), factor), values + i);
  }

  bool hidden(std::size_t key, std::size_t query) const {
    return mask_ != nullptr && mask_[key * dweights_.columns() + query] < 0;
  }

  // result[i][key] = Σ over queries of a[i][query]·scores[key][query]; padding keys get 0.
  void sums_over_queries(const T* HWY_RESTRICT a, const Columns<T>& scores, T* HWY_RESTRICT result) {
    const std::size_t columns = scores.columns();
    for (std::size_t i = 0; i < width_; ++i) {
      for (std::size_t key = 0; key < length_; ++key) {
        Vec<T> sum = zero<T>();
        for (std::size_t c = 0; c < columns; c += kLanes<T>)
          sum = hn::MulAdd(load(a + i * columns + c), load(scores.row(key) + c), sum);
        result[i * columns + key] = hn::GetLane(hn::SumOfLanes(Tag<T>(), sum));
      }
      std::fill(result + i * columns + length_, result + (i + 1) * columns, T(0));
    }
  }

  std::size_t width_, heads_, length_;
  const T* mask_;
  T scale_;
  std::vector<Columns<T>> weights_;
  Columns<T> dweights_;
};

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

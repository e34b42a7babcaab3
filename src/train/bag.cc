// The bag path. Without positions and with a full mask, tokens of one type within a sequence are alike, and
// q, k, v and exp(q·k) depend on the types only. So those are computed once per step, for `classes` types,
// and what is left per pair (sequence s, type t in it) are sums weighted by the counts c_u of the sequence:
//
//   o_t = Σ_u c_u w_tu v_u / Σ_u c_u w_tu,   w_tu = exp(q_t·k_u/√(d/heads) − max_u)
//
// then the rest of the layer. Exact, not an approximation. Pairs of one type are processed together, as
// columns.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "train/bag.cc"
#include "train/bag.h"

// In this order, before highway.h.
// clang-format off
#include "core/targets.h"
#include <hwy/foreach_target.h>
// clang-format on

#include <algorithm>
#include <cmath>

#include "train/kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normscope::HWY_NAMESPACE {
namespace {

// Scratch of one chunk: feature-major blocks of kBlock pairs, and sums over pairs kept per lane.
template <class T>
class BagChunkRun {
 public:
  BagChunkRun(const BagTables<T>& tables, const BagBatch& batch)
      : tables_(tables),
        batch_(batch),
        C(tables.classes),
        d(tables.dimension),
        H(tables.heads),
        F(tables.feed_forward) {
    const std::size_t mixed = d + 2 * H;
    std::size_t size = 0;
    const auto block = [&](std::size_t rows) { return std::exchange(size, size + rows * kBlock); };
    const auto sums = [&](std::size_t count) { return std::exchange(size, size + count * kLanes<T>); };
    const std::size_t counts = block(C), logits = block(C), mix = block(mixed), o = block(d), x1 = block(d),
                      xhat = block(d), hidden = block(F), dhidden = block(F), dx = block(d),
                      dattention = block(d), weights = block(1), inverse = block(1), loss = block(1),
                      right = block(1);
    sums_begin_ = size;
    const std::size_t sum_e = sums(C * d), sum_w1 = sums(F * d), sum_b1 = sums(F), sum_w2 = sums(d * F),
                      sum_b2 = sums(d), sum_wo = sums(d * d), sum_x1 = sums(d), sum_mix = sums(C * (d + H));
    values_.assign(size, T(0));
    T* const base = values_.data();
    counts_ = base + counts, logits_ = base + logits, mix_ = base + mix, o_ = base + o, x1_ = base + x1;
    xhat_ = base + xhat, hidden_ = base + hidden, dhidden_ = base + dhidden, dx_ = base + dx;
    dattention_ = base + dattention, weights_ = base + weights;
    inverse_ = base + inverse, loss_ = base + loss, right_ = base + right;
    sum_e_ = base + sum_e, sum_w1_ = base + sum_w1, sum_b1_ = base + sum_b1, sum_w2_ = base + sum_w2;
    sum_b2_ = base + sum_b2, sum_wo_ = base + sum_wo, sum_x1_ = base + sum_x1, sum_mix_ = base + sum_mix;
    norm2_ = {true, true, false, std::sqrt(static_cast<T>(d)), tables.eps};
  }

  void gradient(const BagChunk& chunk, double* totals) {
    double loss = 0;
    for (std::size_t begin = chunk.begin; begin < chunk.end; begin += kBlock) {
      gather(chunk.type, begin, std::min(begin + kBlock, chunk.end));
      forward(chunk.type, d + H);
      cross_entropy_columns(C, logits_, kBlock, labels_, weights_, {loss_, nullptr}, kBlock);
      for (std::size_t p = 0; p < kBlock; ++p)
        loss += static_cast<double>(weights_[p]) * static_cast<double>(loss_[p]);
      backward();
    }
    totals[0] = loss;
    // In the order of BagSums: the lane sums stand in it.
    reduce_lanes(values_.data() + sums_begin_, (values_.size() - sums_begin_) / kLanes<T>, totals + 1);
  }

  void measure(const BagChunk& chunk, BagMeasure& total) {
    for (std::size_t begin = chunk.begin; begin < chunk.end; begin += kBlock) {
      const std::size_t end = std::min(begin + kBlock, chunk.end);
      gather(chunk.type, begin, end);
      forward(chunk.type, d + 2 * H);
      measure_attention(chunk.type, end - begin, total);
      cross_entropy_columns(C, logits_, kBlock, labels_, weights_, {loss_, right_}, kBlock);
      for (std::size_t p = 0; p < end - begin; ++p) {
        const auto weight = static_cast<double>(weights_[p]);
        total.loss += weight * static_cast<double>(loss_[p]);
        total.right += static_cast<double>(counts_[chunk.type * kBlock + p] * right_[p]);
        if (right_[p] == 0) total.wrong.push_back(batch_.rows[begin + p]);
      }
    }
  }

 private:
  static constexpr std::size_t kBlock = 32;  // pairs at a time: everything of a block fits the first cache

  void gather(std::size_t type, std::size_t begin, std::size_t end) {
    for (std::size_t p = 0; p < end - begin; ++p) {
      const std::uint32_t row = batch_.rows[begin + p];
      const std::uint16_t* const counts = batch_.counts.data() + row * C;
      for (std::size_t u = 0; u < C; ++u) counts_[u * kBlock + p] = static_cast<T>(counts[u]);
      labels_[p] = batch_.labels[row];
      weights_[p] = static_cast<T>(counts[type] * batch_.weight);
    }
    for (std::size_t p = end - begin; p < kBlock; ++p) {  // padding: any sequence will do, without weight
      for (std::size_t u = 0; u < C; ++u) counts_[u * kBlock + p] = static_cast<T>(u == type);
      weights_[p] = 0;
      labels_[p] = 0;
    }
  }

  void forward(std::size_t type, std::size_t mixed) {
    const std::size_t mix_rows = d + 2 * H;
    product<Start::zero>(mixed, C, {tables_.mix.data() + type * mix_rows * C, C, 1}, tables_.bias2.data(),
                         counts_, kBlock, mix_, kBlock, kBlock);
    for (std::size_t h = 0; h < H; ++h) {
      for (std::size_t c = 0; c < kBlock; c += kLanes<T>) {
        const Vec<T> inverse = hn::Div(splat(T(1)), load(mix_ + (d + h) * kBlock + c));
        store(inverse, mix_ + (d + h) * kBlock + c);
        for (std::size_t j = h * (d / H); j < (h + 1) * (d / H); ++j) {
          store(hn::Mul(load(mix_ + j * kBlock + c), inverse), o_ + j * kBlock + c);
        }
      }
    }
    product<Start::bias>(d, d, {tables_.out.data(), d, 1}, tables_.start.data() + type * d, o_, kBlock, x1_,
                         kBlock, kBlock);
    norm_columns(norm2_, d, x1_, xhat_, xhat_, inverse_, kBlock, kBlock);
    product<Start::bias>(F, d, {tables_.weight1.data(), d, 1}, tables_.bias1.data(), xhat_, kBlock, hidden_,
                         kBlock, kBlock);
    relu(F, hidden_, kBlock, kBlock);
    // x2 takes the place of x1, which the backward pass does not need.
    for (std::size_t j = 0; j < d; ++j) {
      for (std::size_t c = 0; c < kBlock; c += kLanes<T>) {
        store(hn::Add(load(x1_ + j * kBlock + c), splat(tables_.bias2[j])), x1_ + j * kBlock + c);
      }
    }
    product<Start::add>(d, F, {tables_.weight2.data(), F, 1}, tables_.bias2.data(), hidden_, kBlock, x1_,
                        kBlock, kBlock);
    product<Start::zero>(C, d, {tables_.embedding.data(), d, 1}, tables_.bias2.data(), x1_, kBlock, logits_,
                         kBlock, kBlock);
  }

  void backward() {
    const T* none = tables_.bias2.data();
    product<Start::zero>(d, C, {tables_.embedding.data(), 1, d}, none, logits_, kBlock, dx_, kBlock, kBlock);
    add_outer(C, logits_, kBlock, d, x1_, kBlock, sum_e_, kBlock);
    product<Start::zero>(F, d, {tables_.weight2.data(), 1, F}, none, dx_, kBlock, dhidden_, kBlock, kBlock);
    relu_backward(F, hidden_, dhidden_, kBlock, kBlock);
    add_outer(d, dx_, kBlock, F, hidden_, kBlock, sum_w2_, kBlock);
    add_rows(d, dx_, kBlock, sum_b2_, kBlock);
    add_outer(F, dhidden_, kBlock, d, xhat_, kBlock, sum_w1_, kBlock);
    add_rows(F, dhidden_, kBlock, sum_b1_, kBlock);
    product<Start::zero>(d, F, {tables_.weight1.data(), 1, d}, none, dhidden_, kBlock, dattention_, kBlock,
                         kBlock);
    norm_columns_backward(norm2_, d, xhat_, xhat_, inverse_, dattention_, dx_, kBlock,
                          kBlock);  // dx is now ∂L/∂x1
    add_rows(d, dx_, kBlock, sum_x1_, kBlock);
    add_outer(d, dx_, kBlock, d, o_, kBlock, sum_wo_, kBlock);
    product<Start::zero>(d, d, {tables_.out.data(), 1, d}, none, dx_, kBlock, dattention_, kBlock, kBlock);
    // o = numerator/denominator; mix_ holds 1/denominator and becomes the gradient of both.
    for (std::size_t h = 0; h < H; ++h) {
      for (std::size_t c = 0; c < kBlock; c += kLanes<T>) {
        const Vec<T> inverse = load(mix_ + (d + h) * kBlock + c);
        Vec<T> along = zero<T>();
        for (std::size_t j = h * (d / H); j < (h + 1) * (d / H); ++j) {
          const Vec<T> g = load(dattention_ + j * kBlock + c);
          along = hn::MulAdd(g, load(o_ + j * kBlock + c), along);
          store(hn::Mul(g, inverse), mix_ + j * kBlock + c);
        }
        store(hn::Neg(hn::Mul(along, inverse)), mix_ + (d + h) * kBlock + c);
      }
    }
    add_outer(C, counts_, kBlock, d + H, mix_, kBlock, sum_mix_, kBlock);
  }

  // An attention row gives each of the c_u tokens of type u the weight a_u = w_u/Σcw, so its entropy is
  // log Σcw − Σcw log w/Σcw, and its distance from uniform ½ Σ c_u |a_u − 1/T|.
  void measure_attention(std::size_t type, std::size_t pairs, BagMeasure& total) const {
    const std::size_t mix_rows = d + 2 * H;
    const double uniform = 1.0 / static_cast<double>(batch_.length);
    for (std::size_t h = 0; h < H; ++h) {
      const T* w = tables_.mix.data() + (type * mix_rows + d + h) * C;
      for (std::size_t p = 0; p < pairs; ++p) {
        const auto inverse = static_cast<double>(mix_[(d + h) * kBlock + p]);
        const auto logs = static_cast<double>(mix_[(d + H + h) * kBlock + p]);
        double distance = 0;
        for (std::size_t u = 0; u < C; ++u) {
          distance += static_cast<double>(counts_[u * kBlock + p]) *
                      std::fabs(static_cast<double>(w[u]) * inverse - uniform);
        }
        const double weight = static_cast<double>(weights_[p]) / static_cast<double>(H);
        // Rounding may put it below 0.
        total.entropy += weight * std::max(-std::log(inverse) - logs * inverse, 0.0);
        total.distance += weight * distance / 2;
      }
    }
  }

  const BagTables<T>& tables_;
  const BagBatch& batch_;
  const std::size_t C, d, H, F;
  std::vector<T> values_;
  std::uint16_t labels_[kBlock] = {};
  std::size_t sums_begin_ = 0;
  T *counts_, *logits_, *mix_, *o_, *x1_, *xhat_, *hidden_, *dhidden_, *dx_, *dattention_, *weights_,
      *inverse_, *loss_, *right_;
  T *sum_e_, *sum_w1_, *sum_b1_, *sum_w2_, *sum_b2_, *sum_wo_, *sum_x1_, *sum_mix_;
  ColumnNorm<T> norm2_;
};

template <class T>
void gradient(const BagTables<T>& tables, const BagBatch& batch, const BagChunk& chunk, double* totals) {
  BagChunkRun<T>(tables, batch).gradient(chunk, totals);
}
template <class T>
void measure(const BagTables<T>& tables, const BagBatch& batch, const BagChunk& chunk, BagMeasure& total) {
  BagChunkRun<T>(tables, batch).measure(chunk, total);
}

BagKernels<float> float_kernels() {
  return {gradient<float>, measure<float>};
}
BagKernels<double> double_kernels() {
  return {gradient<double>, measure<double>};
}

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normscope {

HWY_EXPORT(float_kernels);
HWY_EXPORT(double_kernels);

template <>
BagKernels<float> bag_kernels() {
  return HWY_DYNAMIC_DISPATCH(float_kernels)();
}
template <>
BagKernels<double> bag_kernels() {
  return HWY_DYNAMIC_DISPATCH(double_kernels)();
}

}  // namespace normscope
#endif

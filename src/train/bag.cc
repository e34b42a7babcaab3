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

#include "train/dispatch.h"
#include "train/layers/cross_entropy-inl.h"
#include "train/layers/feed_forward-inl.h"
#include "train/layers/norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normscope::HWY_NAMESPACE {
namespace {

// Scratch of one chunk: matrices of kBlock pairs, and sums over pairs kept per lane, in the order of BagSums.
template <class T>
class BagChunkRun {
 public:
  BagChunkRun(const BagTables<T>& tables, const BagBatch& batch)
      : tables_(tables),
        batch_(batch),
        C(tables.classes),
        d(tables.dimension),
        H(tables.heads),
        F(tables.feed_forward),
        at_(C, d, H, F),
        counts_(C),
        logits_(counts_),
        mix_(d + 2 * H),
        o_(d),
        x1_(o_),
        xhat_(o_),
        dx_(o_),
        dattention_(o_),
        hidden_(F),
        dhidden_(hidden_),
        sums_(at_.size * kLanes<T>, T(0)),
        norm2_{true, true, false, std::sqrt(static_cast<T>(d)), tables.eps} {}

  void gradient(const BagChunk& chunk, double* totals) {
    double loss = 0;
    for (std::size_t begin = chunk.begin; begin < chunk.end; begin += kBlock) {
      gather(chunk.type, begin, std::min(begin + kBlock, chunk.end));
      forward(chunk.type, d + H);
      cross_entropy_columns(C, logits_.data(), labels_, weights_, {loss_, nullptr}, kBlock);
      for (std::size_t p = 0; p < kBlock; ++p)
        loss += static_cast<double>(weights_[p]) * static_cast<double>(loss_[p]);
      backward();
    }
    totals[0] = loss;
    reduce_lanes(sums(1), at_.size - 1, totals + 1);
  }

  void measure(const BagChunk& chunk, BagMeasure& total) {
    for (std::size_t begin = chunk.begin; begin < chunk.end; begin += kBlock) {
      const std::size_t end = std::min(begin + kBlock, chunk.end);
      gather(chunk.type, begin, end);
      forward(chunk.type, d + 2 * H);
      measure_attention(chunk.type, end - begin, total);
      cross_entropy_columns(C, logits_.data(), labels_, weights_, {loss_, right_}, kBlock);
      for (std::size_t p = 0; p < end - begin; ++p) {
        const auto weight = static_cast<double>(weights_[p]);
        total.loss += weight * static_cast<double>(loss_[p]);
        total.right += static_cast<double>(counts_.row(chunk.type)[p] * right_[p]);
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
      for (std::size_t u = 0; u < C; ++u) counts_.row(u)[p] = static_cast<T>(counts[u]);
      labels_[p] = batch_.labels[row];
      weights_[p] = static_cast<T>(counts[type] * batch_.weight);
    }
    for (std::size_t p = end - begin; p < kBlock; ++p) {  // padding: any sequence will do, without weight
      for (std::size_t u = 0; u < C; ++u) counts_.row(u)[p] = static_cast<T>(u == type);
      weights_[p] = 0;
      labels_[p] = 0;
    }
  }

  void forward(std::size_t type, std::size_t mixed) {
    const std::size_t mix_rows = d + 2 * H;
    product<Start::zero>({mixed, C, kBlock}, {tables_.mix.data() + type * mix_rows * C, C, 1}, counts_.from(),
                         mix_.from());
    for (std::size_t h = 0; h < H; ++h) {
      for (std::size_t c = 0; c < kBlock; c += kLanes<T>) {
        const Vec<T> inverse = hn::Div(splat(T(1)), load(mix_.row(d + h) + c));
        store(inverse, mix_.row(d + h) + c);
        for (std::size_t j = h * (d / H); j < (h + 1) * (d / H); ++j)
          store(hn::Mul(load(mix_.row(j) + c), inverse), o_.row(j) + c);
      }
    }
    product<Start::bias>({d, d, kBlock}, {tables_.out.data(), d, 1}, o_.from(), x1_.from(),
                         tables_.start.data() + type * d);
    norm_columns(norm2_, d, x1_.data(), xhat_.data(), xhat_.data(), inverse_, kBlock);
    product<Start::bias>({F, d, kBlock}, {tables_.weight1.data(), d, 1}, xhat_.from(), hidden_.from(),
                         tables_.bias1.data());
    relu(hidden_.data(), hidden_.size());
    // x2 takes the place of x1, which the backward pass does not need.
    for (std::size_t j = 0; j < d; ++j) {
      for (std::size_t c = 0; c < kBlock; c += kLanes<T>)
        store(hn::Add(load(x1_.row(j) + c), splat(tables_.bias2[j])), x1_.row(j) + c);
    }
    product<Start::add>({d, F, kBlock}, {tables_.weight2.data(), F, 1}, hidden_.from(), x1_.from());
    product<Start::zero>({C, d, kBlock}, {tables_.embedding.data(), d, 1}, x1_.from(), logits_.from());
  }

  void backward() {
    product<Start::zero>({d, C, kBlock}, {tables_.embedding.data(), 1, d}, logits_.from(), dx_.from());
    add_outer(C, logits_.from(), d, x1_.from(), sums(at_.embedding), kBlock);
    product<Start::zero>({F, d, kBlock}, {tables_.weight2.data(), 1, F}, dx_.from(), dhidden_.from());
    relu_backward(hidden_.data(), dhidden_.data(), hidden_.size());
    add_outer(d, dx_.from(), F, hidden_.from(), sums(at_.weight2), kBlock);
    add_rows(d, dx_.data(), sums(at_.bias2), kBlock);
    add_outer(F, dhidden_.from(), d, xhat_.from(), sums(at_.weight1), kBlock);
    add_rows(F, dhidden_.data(), sums(at_.bias1), kBlock);
    product<Start::zero>({d, F, kBlock}, {tables_.weight1.data(), 1, d}, dhidden_.from(), dattention_.from());
    norm_columns_backward(norm2_, d, xhat_.data(), xhat_.data(), inverse_, dattention_.data(), dx_.data(),
                          kBlock);  // dx is now ∂L/∂x1
    add_rows(d, dx_.data(), sums(at_.x1), kBlock);
    add_outer(d, dx_.from(), d, o_.from(), sums(at_.out), kBlock);
    product<Start::zero>({d, d, kBlock}, {tables_.out.data(), 1, d}, dx_.from(), dattention_.from());
    // o = numerator/denominator; mix_ holds 1/denominator and becomes the gradient of both.
    for (std::size_t h = 0; h < H; ++h) {
      for (std::size_t c = 0; c < kBlock; c += kLanes<T>) {
        const Vec<T> inverse = load(mix_.row(d + h) + c);
        Vec<T> along = zero<T>();
        for (std::size_t j = h * (d / H); j < (h + 1) * (d / H); ++j) {
          const Vec<T> g = load(dattention_.row(j) + c);
          along = hn::MulAdd(g, load(o_.row(j) + c), along);
          store(hn::Mul(g, inverse), mix_.row(j) + c);
        }
        store(hn::Neg(hn::Mul(along, inverse)), mix_.row(d + h) + c);
      }
    }
    add_outer(C, counts_.from(), d + H, mix_.from(), sums(at_.mix), kBlock);
  }

  // An attention row gives each of the c_u tokens of type u the weight a_u = w_u/Σcw, so its entropy is
  // log Σcw − Σcw log w/Σcw, and its distance from uniform ½ Σ c_u |a_u − 1/T|.
  void measure_attention(std::size_t type, std::size_t pairs, BagMeasure& total) const {
    const std::size_t mix_rows = d + 2 * H;
    const double uniform = 1.0 / static_cast<double>(batch_.length);
    for (std::size_t h = 0; h < H; ++h) {
      const T* w = tables_.mix.data() + (type * mix_rows + d + h) * C;
      for (std::size_t p = 0; p < pairs; ++p) {
        const auto inverse = static_cast<double>(mix_.row(d + h)[p]);
        const auto logs = static_cast<double>(mix_.row(d + H + h)[p]);
        double distance = 0;
        for (std::size_t u = 0; u < C; ++u) {
          distance += static_cast<double>(counts_.row(u)[p]) *
                      std::fabs(static_cast<double>(w[u]) * inverse - uniform);
        }
        const double weight = static_cast<double>(weights_[p]) / static_cast<double>(H);
        // Rounding may put it below 0.
        total.entropy += weight * std::max(-std::log(inverse) - logs * inverse, 0.0);
        total.distance += weight * distance / 2;
      }
    }
  }

  // The lane sums of what stands at `offset` of BagSums.
  T* sums(std::size_t offset) { return sums_.data() + offset * kLanes<T>; }

  const BagTables<T>& tables_;
  const BagBatch& batch_;
  const std::size_t C, d, H, F;
  const BagSums at_;
  Columns<T, kBlock> counts_, logits_, mix_, o_, x1_, xhat_, dx_, dattention_, hidden_, dhidden_;
  Aligned<T> sums_;
  HWY_ALIGN T weights_[kBlock] = {}, inverse_[kBlock] = {}, loss_[kBlock] = {}, right_[kBlock] = {};
  std::uint16_t labels_[kBlock] = {};
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

template <class T>
BagKernels<T> kernels() {
  return {gradient<T>, measure<T>};
}
NORMSCOPE_KERNELS(BagKernels);

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normscope {

NORMSCOPE_EXPORT_KERNELS(BagKernels, bag_kernels);

}  // namespace normscope
#endif

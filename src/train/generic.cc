// The encoder of train.h, forward and backward, one sequence at a time: a sequence's activations stay in the
// first caches, and nothing of the size of a batch is ever held.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "train/generic.cc"
#include "train/generic.h"

// In this order, before highway.h.
// clang-format off
#include "core/targets.h"
#include <hwy/foreach_target.h>
// clang-format on

#include <algorithm>
#include <cmath>

#include "train/dispatch.h"
#include "train/layers/cross_entropy-inl.h"
#include "train/layers/encoder_layer-inl.h"
#include "train/parameters.h"

HWY_BEFORE_NAMESPACE();
namespace normscope::HWY_NAMESPACE {
namespace {

template <class T>
class GenericRun {
 public:
  explicit GenericRun(const GenericJob<T>& job)
      : job_(job),
        spec_(*job.spec),
        columns_(padded_columns(job.set->length)),
        slices_(slices(spec_, job.parameters)),
        output_(slices_.embedding, {}, spec_.classes, spec_.dimension),
        residual_(spec_.dimension, columns_),
        logits_(spec_.classes, columns_),
        dx_(spec_.dimension, columns_),
        labels_(columns_, 0),
        weights_(1, columns_),
        loss_(1, columns_),
        right_(1, columns_),
        embedding_(spec_.classes * spec_.dimension, 0.0) {
    for (std::size_t l = 0; l < spec_.layers; ++l) {
      layers_.emplace_back(spec_, slices_.layers[l], job.set->length, columns_,
                           job.mask.empty() ? nullptr : job.mask.data());
    }
    const T weight = static_cast<T>(job.weight);
    std::fill_n(weights_.data(), job.set->length, weight);
  }

  double gradient(std::span<double> gradient) {
    double loss = 0;
    for (const std::uint32_t s : job_.batch) {
      forward(s);
      cross_entropy(s, false);
      for (std::size_t i = 0; i < job_.set->length; ++i) loss += static_cast<double>(loss_.data()[i]);
      backward(s);
    }
    const auto parts = slices(spec_, gradient);
    for (std::size_t l = 0; l < spec_.layers; ++l) layers_[l].take_gradients(parts.layers[l]);
    output_.take_gradients(embedding_, {});
    for (std::size_t i = 0; i < embedding_.size(); ++i) parts.embedding[i] += embedding_[i];
    return loss * job_.weight;
  }

  GenericMeasure measure() {
    GenericMeasure total;
    for (const std::uint32_t s : job_.batch) {
      forward(s);
      cross_entropy(s, true);
      double right = 0;
      for (std::size_t i = 0; i < job_.set->length; ++i) {
        total.loss += job_.weight * static_cast<double>(loss_.data()[i]);
        right += static_cast<double>(right_.data()[i]);
      }
      total.positions += right;
      total.sequences += right == static_cast<double>(job_.set->length) ? 1 : 0;
      for (const EncoderLayer<T>& layer : layers_) {
        const AttentionMeasure attention = layer.attention().measure();
        total.entropy += job_.weight * attention.entropy / static_cast<double>(spec_.layers);
        total.distance += job_.weight * attention.distance / static_cast<double>(spec_.layers);
      }
    }
    return total;
  }

  void logits(std::span<T> out) {
    for (std::size_t b = 0; b < job_.batch.size(); ++b) {
      forward(job_.batch[b]);
      std::copy_n(logits_.data(), spec_.classes * columns_, out.data() + b * spec_.classes * columns_);
    }
  }

 private:
  std::uint16_t token(std::uint32_t s, std::size_t i) const {
    return job_.set->tokens[s * job_.set->length + i];
  }

  void forward(std::uint32_t s) {
    const std::size_t d = spec_.dimension;
    for (std::size_t i = 0; i < job_.set->length; ++i) {
      const T* row = slices_.embedding.data() + token(s, i) * d;
      for (std::size_t j = 0; j < d; ++j) residual_.data()[j * columns_ + i] = row[j];
    }
    for (std::size_t j = 0; j < d; ++j) {
      std::fill_n(residual_.data() + j * columns_ + job_.set->length, columns_ - job_.set->length, T(0));
    }
    for (EncoderLayer<T>& layer : layers_) layer.forward(residual_);
    output_.forward(residual_, logits_);
  }

  void cross_entropy(std::uint32_t s, bool judge) {
    std::fill(labels_.begin(), labels_.end(), job_.set->labels[s]);
    cross_entropy_columns(spec_.classes, logits_.data(), labels_.data(), weights_.data(),
                          {loss_.data(), judge ? right_.data() : nullptr}, columns_);
  }

  void backward(std::uint32_t s) {
    const std::size_t d = spec_.dimension;
    output_.backward(residual_, logits_, dx_);
    for (std::size_t l = spec_.layers; l-- > 0;) layers_[l].backward(dx_);
    for (std::size_t i = 0; i < job_.set->length; ++i) {
      double* const row = embedding_.data() + token(s, i) * d;
      for (std::size_t j = 0; j < d; ++j) row[j] += static_cast<double>(dx_.data()[j * columns_ + i]);
    }
  }

  const GenericJob<T>& job_;
  const EncoderSpec& spec_;
  const std::size_t columns_;
  EncoderSlices<const T> slices_;
  std::vector<EncoderLayer<T>> layers_;
  Linear<T, LaneSums> output_;  // logits = embedding · x
  Columns<T> residual_, logits_, dx_;
  std::vector<std::uint16_t> labels_;
  Columns<T> weights_, loss_, right_;
  std::vector<double> embedding_;  // gradient
};

template <class T>
double gradient(const GenericJob<T>& job, std::span<double> sums) {
  return GenericRun<T>(job).gradient(sums);
}
template <class T>
GenericMeasure measure(const GenericJob<T>& job) {
  return GenericRun<T>(job).measure();
}
template <class T>
void logits(const GenericJob<T>& job, std::span<T> values) {
  GenericRun<T>(job).logits(values);
}

template <class T>
GenericKernels<T> kernels() {
  return {gradient<T>, measure<T>, logits<T>};
}
NORMSCOPE_KERNELS(GenericKernels);

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normscope {

NORMSCOPE_EXPORT_KERNELS(GenericKernels, generic_kernels);

}  // namespace normscope
#endif

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
      if (spec_.keep_apart > 0) loss += alikeness_loss();
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

  // Adds μ/‖X‖ of what enters the first layer, and of what leaves each, of every sequence.
  void spread(std::span<double> sums) {
    for (const std::uint32_t s : job_.batch) {
      forward(s);
      for (std::size_t l = 0; l <= spec_.layers; ++l)
        sums[l] += std::sqrt(std::max(0.0, 1 - look_at(left_by(l)).alike));
    }
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

  // What leaves layer l, from 1; 0: what enters the first.
  const Columns<T>& left_by(std::size_t l) const { return l < spec_.layers ? layers_[l].input() : residual_; }

  // How alike the tokens X of a sequence are: T‖m‖²/‖X‖² = 1 − (μ/‖X‖)², m the mean token; 0 for X = 0.
  struct Alikeness {
    double alike = 0, square = 0;  // ‖X‖²
    std::vector<double> mean;      // m
  };
  Alikeness look_at(const Columns<T>& x) const {
    const std::size_t length = job_.set->length;
    Alikeness found{0, 0, std::vector<double>(x.rows(), 0.0)};
    double mean_square = 0;
    for (std::size_t i = 0; i < x.rows(); ++i) {
      const T* const row = x.row(i);
      for (std::size_t t = 0; t < length; ++t) {
        const auto value = static_cast<double>(row[t]);
        found.mean[i] += value;
        found.square += value * value;
      }
      found.mean[i] /= static_cast<double>(length);
      mean_square += found.mean[i] * found.mean[i];
    }
    if (found.square > 0) found.alike = static_cast<double>(length) * mean_square / found.square;
    return found;
  }
  // λ of one layer that is not the last, in the units of a sequence's loss, whose weight is that of a position.
  double keep_apart() const {
    return spec_.keep_apart * static_cast<double>(job_.set->length) / static_cast<double>(spec_.layers - 1);
  }
  double alikeness_loss() const {
    double sum = 0;
    for (std::size_t l = 1; l < spec_.layers; ++l) sum += look_at(left_by(l)).alike;
    return keep_apart() * sum;
  }
  // Adds its gradient by what leaves layer l: that of p = T‖m‖²/‖X‖² is 2(m − p x)/‖X‖².
  void add_alikeness_gradient(std::size_t l) {
    const Columns<T>& x = left_by(l);
    const Alikeness found = look_at(x);
    if (!(found.square > 0)) return;
    const double factor = 2 * keep_apart() * job_.weight / found.square;
    for (std::size_t i = 0; i < x.rows(); ++i) {
      T* const to = dx_.row(i);
      for (std::size_t t = 0; t < job_.set->length; ++t)
        to[t] += static_cast<T>(factor * (found.mean[i] - found.alike * static_cast<double>(x.row(i)[t])));
    }
  }

  void cross_entropy(std::uint32_t s, bool judge) {
    std::fill(labels_.begin(), labels_.end(), job_.set->labels[s]);
    cross_entropy_columns(spec_.classes, logits_.data(), labels_.data(), weights_.data(),
                          {loss_.data(), judge ? right_.data() : nullptr}, columns_);
  }

  void backward(std::uint32_t s) {
    const std::size_t d = spec_.dimension;
    output_.backward(residual_, logits_, dx_);
    for (std::size_t l = spec_.layers; l-- > 0;) {
      if (spec_.keep_apart > 0 && l + 1 < spec_.layers) add_alikeness_gradient(l + 1);
      layers_[l].backward(dx_);
    }
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
void spread(const GenericJob<T>& job, std::span<double> sums) {
  GenericRun<T>(job).spread(sums);
}

template <class T>
GenericKernels<T> kernels() {
  return {gradient<T>, measure<T>, logits<T>, spread<T>};
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

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "train/transformer_texts.cc"
#include "train/transformer_texts.h"

// In this order, before highway.h.
// clang-format off
#include "core/targets.h"
#include <hwy/foreach_target.h>
// clang-format on

#include <algorithm>

#include "train/dispatch.h"
#include "train/layers/transformer_layer-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normscope::HWY_NAMESPACE {
namespace {

template <class T>
class TransformerTexts {
 public:
  explicit TransformerTexts(const TransformerJob<T>& job)
      : job_(job),
        model_(job.spec->model),
        columns_(job.columns),
        slices_(slices(*job.spec, job.parameters)),
        dropout_(job.dropout ? model_.block.dropout : 0),
        embedding_norm_(model_.embedding_norm, slices_.embedding_norm, model_.block.width, columns_),
        final_norm_(model_.final_norm, slices_.final_norm, model_.block.width, columns_),
        sum_(model_.block.width, columns_),
        x_(sum_),
        dx_(sum_),
        part_(sum_) {
    for (const LayerSlices<const T>& layer : slices_.layers) layers_.emplace_back(*job.spec, layer, columns_);
  }

  void forward(T* outputs) {
    for (std::size_t text = job_.first_text; text < job_.end_text; ++text) {
      embed(text);
      for (std::size_t l = 0; l < layers_.size(); ++l) {
        layers_[l].forward(x_, length(text), dropout(), place(text, l));
        if (job_.kept != nullptr) layers_[l].keep(kept(text, l));
      }
      if (job_.kept != nullptr) std::copy_n(x_.data(), x_.size(), kept(text, layers_.size()));
      final_norm_.forward(x_, part_);
      for (std::size_t k = 0; k < part_.rows(); ++k)
        std::copy_n(part_.row(k), columns_, outputs + (k * job_.batch->texts + text) * columns_);
    }
  }

  void backward(const T* doutputs, std::span<double> gradient, T* dembeddings) {
    for (std::size_t text = job_.first_text; text < job_.end_text; ++text) {
      std::copy_n(kept(text, layers_.size()), x_.size(), x_.data());
      final_norm_.forward(x_, part_);
      for (std::size_t k = 0; k < part_.rows(); ++k)
        std::copy_n(doutputs + (k * job_.batch->texts + text) * columns_, columns_, part_.row(k));
      std::fill_n(dx_.data(), dx_.size(), T(0));
      final_norm_.backward(x_, part_, dx_);
      for (std::size_t l = layers_.size(); l-- > 0;) {
        layers_[l].recall(kept(text, l), dropout(), place(text, l));
        layers_[l].backward(dx_, length(text), dropout(), place(text, l));
      }
      embed(text);
      dropout_.apply(place(text, layers_.size()), dx_);
      std::fill_n(part_.data(), part_.size(), T(0));
      embedding_norm_.backward(sum_, dx_, part_);
      for (std::size_t k = 0; k < part_.rows(); ++k)
        std::copy_n(part_.row(k), columns_, dembeddings + (k * job_.batch->texts + text) * columns_);
    }
    TransformerSpec without_tables = *job_.spec;
    without_tables.model.vocabulary = without_tables.model.positions = without_tables.types = 0;
    const auto parts = slices(without_tables, gradient);
    for (std::size_t l = 0; l < layers_.size(); ++l) layers_[l].take_gradients(parts.layers[l]);
    final_norm_.take_gradients(parts.final_norm);
    embedding_norm_.take_gradients(parts.embedding_norm);
  }

 private:
  std::size_t length(std::size_t text) const {
    return job_.batch->lengths.empty() ? job_.batch->length : job_.batch->lengths[text];
  }
  const ColumnDropout<T>* dropout() const { return dropout_.active() ? &dropout_ : nullptr; }
  // The first site of dropout of a layer; after the last, that of the embeddings.
  DropoutPlace place(std::size_t text, std::size_t layer) const {
    if (!job_.dropout) return {};
    const std::size_t sites = TransformerLayer<T>::sites(model_.block);
    const std::size_t of_text = text * (layers_.size() * sites + 1);
    return {job_.dropout->seed, static_cast<std::uint32_t>(job_.dropout->stream),
            static_cast<std::uint32_t>(of_text + layer * sites)};
  }

  // sum_ = word + position + type, 0 beyond the batch's length; x_ = norm and dropout of it.
  void embed(std::size_t text) {
    const std::size_t d = sum_.rows(), n = job_.batch->length;
    for (std::size_t i = 0; i < n; ++i) {
      const T* const word = slices_.word.data() + job_.batch->tokens[text * n + i] * d;
      const T* const position = slices_.position.data() + i * d;
      for (std::size_t k = 0; k < d; ++k)
        sum_.row(k)[i] = word[k] + position[k] + (slices_.type.empty() ? T(0) : slices_.type[k]);
    }
    embedding_norm_.forward(sum_, x_);
    dropout_.apply(place(text, layers_.size()), x_);
  }

  // Of a layer, or after the last, what enters the final norm.
  T* kept(std::size_t text, std::size_t layer) const {
    return job_.kept + (text * kept_rows(model_) + layer * kept_rows_of_layer(model_.block)) * columns_;
  }

  const TransformerJob<T>& job_;
  const ModelSpec& model_;
  const std::size_t columns_;
  TransformerSlices<const T> slices_;
  ColumnDropout<T> dropout_;
  Norm<T> embedding_norm_, final_norm_;
  Columns<T> sum_, x_, dx_, part_;
  std::vector<TransformerLayer<T>> layers_;
};

template <class T>
void forward(const TransformerJob<T>& job, T* outputs) {
  TransformerTexts<T>(job).forward(outputs);
}
template <class T>
void backward(const TransformerJob<T>& job, const T* doutputs, std::span<double> gradient, T* dembeddings) {
  TransformerTexts<T>(job).backward(doutputs, gradient, dembeddings);
}

template <class T>
TransformerKernels<T> kernels() {
  return {forward<T>, backward<T>};
}
NORMSCOPE_KERNELS(TransformerKernels);

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace normscope {

NORMSCOPE_EXPORT_KERNELS(TransformerKernels, transformer_kernels);

}  // namespace normscope
#endif

// One block of block.h, pre or post; its plain version is the forward pass of the model room.   x: (d, T), T
// a multiple of kTextColumns
#if defined(NORMSCOPE_TRAIN_LAYERS_TRANSFORMER_LAYER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMSCOPE_TRAIN_LAYERS_TRANSFORMER_LAYER_INL_H_
#undef NORMSCOPE_TRAIN_LAYERS_TRANSFORMER_LAYER_INL_H_
#else
#define NORMSCOPE_TRAIN_LAYERS_TRANSFORMER_LAYER_INL_H_
#endif

#include <algorithm>

#include "normscope/block.h"
#include "train/layers/dropout-inl.h"
#include "train/layers/feed_forward-inl.h"
#include "train/layers/linear-inl.h"
#include "train/layers/norm-inl.h"
#include "train/layers/streamed_attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normscope::HWY_NAMESPACE {
namespace {

template <class T>
class TransformerLayer {
 public:
  // Sites of dropout within a layer: the heads' weights, then what attention and feed-forward add.
  static std::size_t sites(const BlockSpec& spec) { return spec.heads + 2; }

  TransformerLayer(const TransformerSpec& spec, const LayerSlices<const T>& parameters, std::size_t columns)
      : pre_(spec.model.block.placement == Placement::pre),
        norm2_is_none_(spec.model.block.feed_forward_norm.value_or(spec.model.block.norm) == NormSpec()),
        heads_(spec.model.block.heads),
        norm1_(spec.model.block.norm, parameters.norm1, spec.model.block.width, columns),
        norm2_(spec.model.block.feed_forward_norm.value_or(spec.model.block.norm), parameters.norm2,
               spec.model.block.width, columns),
        in_(parameters.in_proj, parameters.in_bias, 3 * spec.model.block.width, spec.model.block.width),
        out_(parameters.out_weight, parameters.out_bias, spec.model.block.width, spec.model.block.width),
        attention_(spec.model.block.width, heads_, columns, spec.model.causal),
        feed_forward_(parameters, spec.model.block.width, spec.model.block.feed_forward,
                      spec.model.block.activation),
        x_(spec.model.block.width, columns),
        h_(x_),
        o_(x_),
        sum1_(x_),
        x1_(x_),
        g_(x_),
        sum2_(x_),
        part_(x_),
        dsum_(x_),
        qkv_(3 * spec.model.block.width, columns),
        dqkv_(qkv_) {}

  // x ← block(x). `place`: of the layer's first site.
  void forward(Columns<T>& x, std::size_t length, const ColumnDropout<T>* dropout, DropoutPlace place) {
    x_ = x;
    enter_attention();
    attention_.forward(qkv_, length, dropout, place, o_);
    leave_attention(dropout, place, true);
    if (pre_) {
      x = sum2_;
    } else {
      norm2_.forward(sum2_, x);
    }
  }

  // What is kept of forward for recall, kept_rows_of_layer: what entered the block, what attention made of
  // it, and its log sums. The rest is computed again.
  void keep(T* to) const {
    for (const Columns<T>* each : {&x_, &o_, &attention_.log_sums()})
      to = std::copy_n(each->data(), each->size(), to);
  }
  void recall(const T* kept, const ColumnDropout<T>* dropout, DropoutPlace place) {
    for (Columns<T>* each : {&x_, &o_, &attention_.log_sums()}) {
      std::copy_n(kept, each->size(), each->data());
      kept += each->size();
    }
    enter_attention();
    leave_attention(dropout, place, !pre_ && !norm2_is_none_);
    if (!pre_ && !norm2_is_none_) norm2_.forward(sum2_, part_);
  }

  // After recall: ∂L/∂(block's output) in dx becomes ∂L/∂(its input).
  void backward(Columns<T>& dx, std::size_t length, const ColumnDropout<T>* dropout, DropoutPlace place) {
    through_norm(norm2_, sum2_, dx);
    part_ = dx;
    drop(dropout, place, 1, part_);
    feed_forward_.backward(pre_ ? g_ : x1_, part_, dsum_);
    join(norm2_, sum1_, dx);
    through_norm(norm1_, sum1_, dx);
    part_ = dx;
    drop(dropout, place, 0, part_);
    out_.backward(o_, part_, dsum_);
    attention_.backward(qkv_, length, dropout, place, o_, dsum_, dqkv_);
    in_.backward(pre_ ? h_ : x_, dqkv_, dsum_);
    join(norm1_, x_, dx);
  }

  void take_gradients(const LayerSlices<double>& gradient) const {
    norm1_.take_gradients(gradient.norm1);
    norm2_.take_gradients(gradient.norm2);
    in_.take_gradients(gradient.in_proj, gradient.in_bias);
    out_.take_gradients(gradient.out_weight, gradient.out_bias);
    feed_forward_.take_gradients(gradient);
  }

 private:
  void enter_attention() {
    if (pre_) norm1_.forward(x_, h_);
    in_.forward(pre_ ? h_ : x_, qkv_);
  }
  void leave_attention(const ColumnDropout<T>* dropout, DropoutPlace place, bool with_feed_forward) {
    out_.forward(o_, part_);
    drop(dropout, place, 0, part_);
    add(x_, part_, sum1_);
    if (!pre_) norm1_.forward(sum1_, x1_);
    const Columns<T>& middle = pre_ ? sum1_ : x1_;
    if (pre_) norm2_.forward(middle, g_);
    if (!with_feed_forward) return;
    feed_forward_.forward(pre_ ? g_ : middle, part_);
    drop(dropout, place, 1, part_);
    add(middle, part_, sum2_);
  }
  void drop(const ColumnDropout<T>* dropout, DropoutPlace place, std::size_t site, Columns<T>& part) const {
    place.place += static_cast<std::uint32_t>(heads_ + site);
    if (dropout != nullptr) dropout->apply(place, part);
  }
  // post: dx before the norm that comes after the sum.
  void through_norm(Norm<T>& norm, const Columns<T>& input, Columns<T>& dx) {
    if (pre_) return;
    std::fill_n(part_.data(), part_.size(), T(0));
    norm.backward(input, dx, part_);
    std::swap(part_, dx);
  }
  // dx += what comes back through the part's own branch, in dsum_: through its norm (pre) or as it is.
  void join(Norm<T>& norm, const Columns<T>& input, Columns<T>& dx) {
    if (pre_) {
      norm.backward(input, dsum_, dx);
    } else {
      add(dx, dsum_, dx);
    }
  }

  bool pre_, norm2_is_none_;
  std::size_t heads_;
  Norm<T> norm1_, norm2_;
  Linear<T, RowSums> in_, out_;
  StreamedAttention<T> attention_;
  FusedFeedForward<T> feed_forward_;
  Columns<T> x_, h_, o_, sum1_, x1_, g_, sum2_, part_, dsum_, qkv_, dqkv_;
};

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

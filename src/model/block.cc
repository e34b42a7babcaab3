#include "normscope/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "core/gemm.h"
#include "model/block_kernels.h"
#include "model/dropout.h"
#include "model/rotate.h"
#include "normscope/error.h"

namespace normscope {
namespace {

// Rows of scores held at once. Wide enough for the products to run at full speed, narrow enough that a window
// mask pays for little more than its window.
constexpr std::size_t kScoreRows = 128;

bool has_norm(const NormSpec& norm) {
  return norm.projection != Projection::none || norm.scaling != Scaling::none || norm.affine;
}

template <class T>
void require_shape(const Matrix<T>& matrix, std::size_t rows, std::size_t cols, const char* name) {
  if (matrix.rows() == rows && matrix.cols() == cols) return;
  throw InputError(fmt::format("The {} weights are {} x {}; the block needs {} x {}.", name, matrix.rows(),
                               matrix.cols(), rows, cols));
}

template <class T>
void require_bias(const std::vector<T>& bias, std::size_t size, const char* name) {
  if (bias.empty() || bias.size() == size) return;
  throw InputError(fmt::format("The {} has {} entries; the block needs {}.", name, bias.size(), size));
}

template <class T>
void require_fit(const BlockSpec& spec, const BlockWeights<T>& weights) {
  require_valid(spec);
  const std::size_t d = spec.width, f = spec.feed_forward, all = spec.query_width() + 2 * spec.key_width();
  require_shape(weights.query_key_value, d, all, "query, key and value");
  require_shape(weights.output, spec.query_width(), d, "attention output");
  require_bias(weights.query_key_value_bias, all, "bias of query, key and value");
  require_bias(weights.output_bias, d, "bias of the attention output");
  if (spec.relative.buckets > 0)
    require_shape(weights.relative, spec.heads, spec.relative.buckets, "relative position");
  if (f == 0) return;
  require_shape(weights.up, d, f, "first feed-forward");
  require_shape(weights.down, f, d, "second feed-forward");
  require_bias(weights.up_bias, f, "bias of the first feed-forward");
  require_bias(weights.down_bias, d, "bias of the second feed-forward");
  if (!spec.gated) return;
  require_shape(weights.gate, d, f, "feed-forward gate");
  require_bias(weights.gate_bias, f, "bias of the feed-forward gate");
}

// out = in·W + b
template <class T>
void linear(MatrixView<const T> in, const Matrix<T>& weights, const std::vector<T>& bias, MatrixView<T> out) {
  if (bias.empty()) return multiply<T>(1, in, weights.view(), Transpose::no, 0, out);
  for (std::size_t i = 0; i < out.rows; ++i) std::copy(bias.begin(), bias.end(), out[i].begin());
  multiply<T>(1, in, weights.view(), Transpose::no, 1, out);
}

// Columns first, …, first + count − 1 of a matrix.
template <class T>
MatrixView<T> columns(MatrixView<T> matrix, std::size_t first, std::size_t count) {
  return {matrix.data + first, matrix.rows, count, matrix.stride};
}

template <class T>
MatrixView<T> rows(MatrixView<T> matrix, std::size_t first, std::size_t count) {
  return {matrix.data + first * matrix.stride, count, matrix.cols, matrix.stride};
}

template <class T>
class Buffer {
 public:
  MatrixView<T> view(std::size_t row_count, std::size_t col_count) {
    if (values_.size() < row_count * col_count) values_.resize(row_count * col_count);
    return {values_.data(), row_count, col_count};
  }

 private:
  std::vector<T> values_;
};

// The three parts of the projected tokens.
template <class T>
struct Projected {
  Projected(const BlockSpec& spec, MatrixView<T> all)
      : query(columns(all, 0, spec.query_width())),
        key(columns(all, spec.query_width(), spec.key_width())),
        value(columns(all, spec.query_width() + spec.key_width(), spec.key_width())) {}
  MatrixView<T> query, key, value;
};

// Of rows that enter equal, all that leave are as the first. A library rounds a row by where it lies, and keys of equal tokens that differ
// by rounding alone would have verdicts of their own.
template <class T>
void share_equal_rows(MatrixView<const T> in, MatrixView<T> out) {
  std::unordered_map<std::string_view, std::size_t> first;
  for (std::size_t i = 0; i < in.rows; ++i) {
    const std::string_view bytes(reinterpret_cast<const char*>(in[i].data()), in[i].size_bytes());
    const auto [found, fresh] = first.try_emplace(bytes, i);
    if (!fresh) std::copy(out[found->second].begin(), out[found->second].end(), out[i].begin());
  }
}

// Queries, keys and values of h, side by side.
template <class T>
Projected<T> project(const BlockSpec& spec, const BlockWeights<T>& weights, MatrixView<const T> h,
                     MatrixView<T> qkv) {
  linear(h, weights.query_key_value, weights.query_key_value_bias, qkv);
  if (spec.relative.buckets > 0)
    share_equal_rows<T>(h, qkv);  // elsewhere tokens hold their positions, or are turned by them
  const Projected<T> parts(spec, qkv);
  for (const auto& [part, heads] :
       {std::pair(parts.query, spec.heads), std::pair(parts.key, spec.key_head_count())}) {
    if (spec.normalize_query_key) {
      NormSpec unit;
      unit.scaling = Scaling::unit_per_head;
      unit.heads = static_cast<int>(heads);
      norm_forward<T>(unit, {}, part, part);
    }
    for (std::size_t p = 0; p < part.rows; ++p)
      rotate<T>(spec.rotary, spec.width_of_head(), static_cast<double>(p), part[p]);
  }
  return parts;
}

// Offsets of the scores by distance, of one head: entry key − query + n − 1.
template <class T>
void fill_offsets(const RelativeBuckets& relative, std::span<const T> bias, std::size_t n, std::span<T> to) {
  for (std::size_t k = 0; k < 2 * n - 1; ++k)
    to[k] = k + 1 < n ? bias[relative.bucket(n - 1 - k, 0)] : bias[relative.bucket(0, k + 1 - n)];
}

}  // namespace

double BlockSpec::score_scale() const {
  return 1 / std::sqrt(temperature > 0 ? temperature : static_cast<double>(width_of_head()));
}

std::size_t RelativeBuckets::bucket(std::size_t query, std::size_t key) const {
  std::size_t half = buckets, first = 0;
  if (both_ways) {
    half /= 2;
    if (key > query) first = half;
  }
  const std::size_t distance = key > query ? (both_ways ? key - query : 0) : query - key;
  const std::size_t single = half / 2;
  if (distance < single) return first + distance;
  // In float, as T5 was trained: distances on the border of two buckets depend on it.
  const float share =
      std::log(static_cast<float>(distance) / static_cast<float>(single)) /
      static_cast<float>(std::log(static_cast<double>(max_distance) / static_cast<double>(single)));
  const auto beyond = static_cast<std::size_t>(share * static_cast<float>(half - single));
  return first + std::min(single + beyond, half - 1);
}

void require_valid(const BlockSpec& spec) {
  if (spec.width == 0) throw InputError("A block needs a width of at least 1.");
  if (spec.key_heads > 0 && spec.heads % spec.key_heads != 0) {
    throw InputError(fmt::format("{} key heads do not divide {} heads; every key head serves as many.",
                                 spec.key_heads, spec.heads));
  }
  if (const std::size_t buckets = spec.relative.buckets; buckets > 0) {
    const std::size_t least = spec.relative.both_ways ? 4 : 2;
    if (buckets % least != 0 || spec.relative.max_distance <= buckets / least) {
      throw InputError(
          fmt::format("{} buckets of distances up to {} cannot be: the number must be divisible "
                      "by {}, and the greatest distance above {}.",
                      buckets, spec.relative.max_distance, least, buckets / least));
    }
  }
  if (spec.heads == 0 || (spec.head_width == 0 && spec.width % spec.heads != 0)) {
    throw InputError(
        fmt::format("{} heads do not divide the width {}; choose a divisor.", spec.heads, spec.width));
  }
  if (2 * spec.rotary.frequencies.size() > spec.width_of_head()) {
    throw InputError(fmt::format("{} pairs to rotate do not fit a head of width {}.",
                                 spec.rotary.frequencies.size(), spec.width_of_head()));
  }
  constexpr double least = 1e-30, most = 1e30;  // beyond, scores leave the range of float
  if (spec.temperature != 0 && !(spec.temperature >= least && spec.temperature <= most)) {
    throw InputError(fmt::format("The temperature d_QK is {}; it must lie between {} and {}.",
                                 spec.temperature, least, most));
  }
  if (!(spec.dropout >= 0 && spec.dropout < 1)) {
    throw InputError(fmt::format("Dropout {} is not a probability from 0 to below 1.", spec.dropout));
  }
  if (!(spec.step > 0 && spec.step <= 1)) {
    throw InputError(
        fmt::format("The step size is {}; it must be above 0 and at most 1, a whole layer.", spec.step));
  }
  if (spec.norm.projection == Projection::normals) {
    throw InputError(
        fmt::format("The norm {} has learned normals, which need training; a block here takes norms without.",
                    name_of(spec.norm)));
  }
}

template <class T>
struct BlockForward<T>::Scratch {
  Buffer<T> h, qkv, context, y, hidden, gate, scores, offsets;

  BlockCounts counts;
  double entropy = 0;
  const BlockObserver<T>* observer = nullptr;

  void show(BlockPoint point, MatrixView<const T> values) const {
    if (observer->point) observer->point(point, values);
  }

  void norm(const NormSpec& spec, std::span<const T> gain, std::span<const T> bias, MatrixView<const T> from,
            MatrixView<T> to) {
    NormParameters<T> parameters;
    parameters.gain = gain;
    parameters.bias = bias;
    counts.norm += norm_forward<T>(spec, parameters, from, to);
  }

  // Attention weights of one head for tokens first, first + 1, …: rows of scores become weights.
  void weigh(const BlockSpec& spec, const Mask& mask, std::size_t head, std::size_t first, Mask::Run reach,
             MatrixView<T> weight) {
    const std::size_t n = mask.n();
    for (std::size_t i = 0; i < weight.rows; ++i) {
      if (spec.relative.buckets > 0) {
        const T* offset =
            offsets.view(spec.heads, 2 * n - 1)[head].data() + (reach.first + n - 1 - first - i);
        for (std::size_t j = 0; j < weight.cols; ++j) weight(i, j) += offset[j];
      }
      const auto runs = mask.row(first + i);
      const SoftmaxRow row = softmax_runs<T>(weight[i].data(), weight.cols, reach.first, runs);
      if (runs.empty()) continue;
      counts.least_weight = std::min(counts.least_weight, row.least);
      entropy += row.entropy;
    }
    if (observer->attention) observer->attention({head, first, reach, weight});
  }

  // out = attention(in), n × d.
  void attend(const BlockSpec& spec, const BlockWeights<T>& weights, const Mask& mask, MatrixView<const T> in,
              MatrixView<T> out, DropoutKey key) {
    const std::size_t n = in.rows, width = spec.width_of_head();
    const MatrixView<T> heads = context.view(n, spec.query_width());
    show(BlockPoint::attention_in, in);
    const Projected<T> parts =
        project(spec, weights, in, qkv.view(n, spec.query_width() + 2 * spec.key_width()));
    show(BlockPoint::query, parts.query);
    show(BlockPoint::key, parts.key);
    show(BlockPoint::value, parts.value);
    if (spec.relative.buckets > 0) {
      const MatrixView<T> table = offsets.view(spec.heads, 2 * n - 1);
      for (std::size_t head = 0; head < spec.heads; ++head)
        fill_offsets<T>(spec.relative, weights.relative[head], n, table[head]);
    }
    const auto scale = static_cast<T>(spec.score_scale());
    for (std::size_t first = 0; first < n; first += kScoreRows) {
      const std::size_t count = std::min(kScoreRows, n - first);
      const Mask::Run reach = mask.reach(first, first + count);
      const std::size_t reached = reach.last - reach.first;
      for (std::size_t head = 0; head < spec.heads; ++head) {
        const MatrixView<T> to = columns(rows(heads, first, count), head * width, width);
        if (reached == 0) {
          for (std::size_t i = 0; i < count; ++i) std::fill(to[i].begin(), to[i].end(), T(0));
          continue;
        }
        const std::size_t column = spec.key_head_of(head) * width;
        const MatrixView<T> weight = scores.view(count, reached);
        const MatrixView<T> keys = rows(columns(parts.key, column, width), reach.first, reached);
        const MatrixView<T> values = rows(columns(parts.value, column, width), reach.first, reached);
        multiply<T>(scale, columns(rows(parts.query, first, count), head * width, width), keys,
                    Transpose::yes, 0, weight);
        weigh(spec, mask, head, first, reach, weight);
        if (spec.dropout > 0) {
          Dropout dropout(spec.dropout, key, DropoutSite::attention, first / kScoreRows * spec.heads + head);
          for (std::size_t i = 0; i < count; ++i) {
            for (const Mask::Run run : mask.row(first + i)) {
              dropout.apply(weight[i].subspan(run.first - reach.first, run.last - run.first));
            }
          }
        }
        multiply<T>(1, weight, values, Transpose::no, 0, to);
      }
    }
    linear<T>(heads, weights.output, weights.output_bias, out);
    show(BlockPoint::attention_out, out);
  }

  void feed(const BlockSpec& spec, const BlockWeights<T>& weights, MatrixView<const T> in,
            MatrixView<T> out) {
    const std::size_t count = in.rows * spec.feed_forward;
    const MatrixView<T> inside = hidden.view(in.rows, spec.feed_forward);
    linear(in, weights.up, weights.up_bias, inside);
    if (spec.gated) {
      const MatrixView<T> open = gate.view(in.rows, spec.feed_forward);
      linear(in, weights.gate, weights.gate_bias, open);
      activate(spec.activation, open.data, count);
      for (std::size_t i = 0; i < count; ++i) inside.data[i] *= open.data[i];
    } else {
      activate(spec.activation, inside.data, count);
    }
    linear<T>(inside, weights.down, weights.down_bias, out);
  }

  // From what f gave; a whole step is the sum as written.
  static void take_step(const BlockSpec& spec, MatrixView<const T> f, MatrixView<T> x) {
    const auto h = static_cast<T>(spec.step), kept = spec.skip ? T(1) : 1 - h;
    const bool whole = spec.step == 1;
    for (std::size_t i = 0; i < x.rows; ++i) {
      for (std::size_t j = 0; j < x.cols; ++j) {
        x(i, j) = !whole ? kept * x(i, j) + h * f(i, j) : spec.skip ? x(i, j) + f(i, j) : f(i, j);
      }
    }
  }

  // The norm of a sublayer, its gain and bias, and under which names it is seen.
  struct Normed {
    const NormSpec& norm;
    std::span<const T> gain, bias;
    BlockPoint in, out;
  };

  // x ← x + f(x) with its norms, for f = attention or feed-forward.
  template <class Function>
  void sublayer(const BlockSpec& spec, const Normed& with, DropoutSite site, DropoutKey key, MatrixView<T> x,
                const Function& f) {
    const MatrixView<T> out = y.view(x.rows, x.cols);
    const bool normed = has_norm(with.norm);
    const auto apply_norm = [&](MatrixView<T> to) {
      show(with.in, x);
      if (normed) norm(with.norm, with.gain, with.bias, x, to);
      show(with.out, normed ? to : x);
    };
    if (spec.placement != Placement::post) {
      const MatrixView<T> in = h.view(x.rows, x.cols);
      apply_norm(in);
      f(MatrixView<const T>(normed ? in : x), out);
    } else {
      f(MatrixView<const T>(x), out);
    }
    if (spec.dropout > 0) {
      Dropout dropout(spec.dropout, key, site);
      for (std::size_t i = 0; i < out.rows; ++i) dropout.apply(out[i]);
    }
    if (normed && spec.placement == Placement::sandwich) norm(with.norm, {}, {}, out, out);
    take_step(spec, out, x);
    if (spec.placement == Placement::post) apply_norm(x);
  }
};

template <class T>
BlockForward<T>::BlockForward() : scratch_(std::make_unique<Scratch>()) {}
template <class T>
BlockForward<T>::~BlockForward() = default;
template <class T>
BlockForward<T>::BlockForward(BlockForward&&) noexcept = default;
template <class T>
BlockForward<T>& BlockForward<T>::operator=(BlockForward&&) noexcept = default;

template <class T>
BlockCounts BlockForward<T>::apply(const BlockSpec& spec, const BlockWeights<T>& weights, const Mask& mask,
                                   std::type_identity_t<MatrixView<T>> x, DropoutKey key,
                                   const BlockObserver<T>& observer) {
  require_fit(spec, weights);
  if (mask.n() != x.rows || x.cols != spec.width) {
    throw InputError(fmt::format("A mask of {} tokens and a block of width {} do not fit tokens of {} x {}.",
                                 mask.n(), spec.width, x.rows, x.cols));
  }
  Scratch& scratch = *scratch_;
  scratch.counts = {};
  scratch.entropy = 0;
  scratch.observer = &observer;
  for (std::size_t i = 0; i < mask.n(); ++i) scratch.counts.empty_rows += mask.row(i).empty();
  scratch.sublayer(spec,
                   {spec.norm, weights.attention_gain, weights.attention_bias, BlockPoint::attention_norm_in,
                    BlockPoint::attention_norm_out},
                   DropoutSite::attention_output, key, x, [&](MatrixView<const T> in, MatrixView<T> out) {
                     scratch.attend(spec, weights, mask, in, out, key);
                   });
  if (spec.feed_forward > 0) {
    scratch.sublayer(
        spec,
        {spec.feed_forward_norm ? *spec.feed_forward_norm : spec.norm, weights.feed_forward_gain,
         weights.feed_forward_bias, BlockPoint::feed_forward_norm_in, BlockPoint::feed_forward_norm_out},
        DropoutSite::feed_forward_output, key, x,
        [&](MatrixView<const T> in, MatrixView<T> out) { scratch.feed(spec, weights, in, out); });
  }
  scratch.show(BlockPoint::out, x);
  const std::size_t attending = (mask.n() - scratch.counts.empty_rows) * spec.heads;
  scratch.counts.entropy = attending > 0 ? scratch.entropy / static_cast<double>(attending) : 0;
  return scratch.counts;
}

template <class T>
Matrix<double> attention_matrix(const BlockSpec& spec, const BlockWeights<T>& weights, const Mask& mask,
                                std::type_identity_t<MatrixView<const T>> h, std::size_t head) {
  require_fit(spec, weights);
  const std::size_t n = h.rows, width = spec.width_of_head();
  Matrix<T> qkv(n, spec.query_width() + 2 * spec.key_width());
  const Projected<T> parts = project<T>(spec, weights, h, qkv.view());
  const std::size_t column = spec.key_head_of(head) * width;
  Matrix<double> result(n, n);
  for (std::size_t i = 0; i < n; ++i) {
    double sum = 0, top = -HUGE_VAL;
    std::vector<double> score(n);
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t k = 0; k < width; ++k) {
        score[j] += static_cast<double>(parts.query(i, head * width + k)) *
                    static_cast<double>(parts.key(j, column + k));
      }
      score[j] *= spec.score_scale();
      if (spec.relative.buckets > 0)
        score[j] += static_cast<double>(weights.relative(head, spec.relative.bucket(i, j)));
      if (mask.attends(i, j)) top = std::max(top, score[j]);
    }
    for (std::size_t j = 0; j < n; ++j) sum += mask.attends(i, j) ? std::exp(score[j] - top) : 0;
    for (std::size_t j = 0; j < n; ++j)
      result(i, j) = mask.attends(i, j) ? std::exp(score[j] - top) / sum : 0;
  }
  return result;
}

template class BlockForward<float>;
template class BlockForward<double>;
template Matrix<double> attention_matrix<float>(const BlockSpec&, const BlockWeights<float>&, const Mask&,
                                                MatrixView<const float>, std::size_t);
template Matrix<double> attention_matrix<double>(const BlockSpec&, const BlockWeights<double>&, const Mask&,
                                                 MatrixView<const double>, std::size_t);

}  // namespace normscope

// The outer part of the bag path: what depends on the types only, in double, before and after the pairs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "normscope/error.h"
#include "train/bag.h"
#include "train/parameters.h"
#include "train/paths.h"

namespace normscope {
namespace {

using Rows = Matrix<double>;

// a · bᵀ, of rows of equal width.
Rows times_transposed(const Rows& a, const Rows& b) {
  Rows result(a.rows(), b.rows());
  for (std::size_t i = 0; i < a.rows(); ++i) {
    for (std::size_t j = 0; j < b.rows(); ++j) {
      result(i, j) = std::inner_product(a[i].begin(), a[i].end(), b[j].begin(), 0.0);
    }
  }
  return result;
}

// sum += a · b
void add_product(const Rows& a, const Rows& b, Rows& sum) {
  for (std::size_t i = 0; i < a.rows(); ++i) {
    for (std::size_t k = 0; k < a.cols(); ++k) {
      for (std::size_t j = 0; j < b.cols(); ++j) sum(i, j) += a(i, k) * b(k, j);
    }
  }
}

// sum += aᵀ · b
void add_transposed_product(const Rows& a, const Rows& b, MatrixView<double> sum) {
  for (std::size_t k = 0; k < a.rows(); ++k) {
    for (std::size_t i = 0; i < a.cols(); ++i) {
      for (std::size_t j = 0; j < b.cols(); ++j) sum(i, j) += a(k, i) * b(k, j);
    }
  }
}

Rows rows_of(std::span<const double> values, std::size_t cols) {
  return Rows(values.size() / cols, cols, {values.begin(), values.end()});
}

template <class T>
void assign(std::vector<T>& to, std::span<const double> from) {
  to.resize(from.size());
  std::transform(from.begin(), from.end(), to.begin(), [](double value) { return static_cast<T>(value); });
}

// Forward of the types: what attention needs of them.
struct Types {
  Rows input;                 // of norm1, C × d
  Rows h, query, key, value;  // C × d
  Rows weight;                // heads·C × C: w_tu of head h in row h·C + t
  Rows log_weight;
  double widest = 0;  // largest spread of scores of one query
};

template <class T>
class BagPath final : public EncoderGradient<T> {
 public:
  explicit BagPath(const EncoderSpec& spec)
      : spec_(spec),
        sums_(spec.classes, spec.dimension, spec.heads, spec.feed_forward),
        parameters_(parameter_count(spec)),
        slices_(slices(spec, std::span<const double>(parameters_))),
        root_(spec.uniform
                  ? std::numeric_limits<double>::infinity()
                  : std::sqrt(static_cast<double>(spec.dimension) / static_cast<double>(spec.heads))) {
    tables_.classes = spec.classes;
    tables_.dimension = spec.dimension;
    tables_.heads = spec.heads;
    tables_.feed_forward = spec.feed_forward;
    tables_.eps = static_cast<T>(spec.norm2.eps);
  }

  double gradient(const SequenceSet& set, std::span<const std::uint32_t> batch, std::span<const T> parameters,
                  std::span<T> gradient, const Executor& executor) override {
    if (!prepare(parameters)) return generic().gradient(set, batch, parameters, gradient, executor);
    gather(set, batch);
    partial_.resize(chunks_.size() * sums_.size);
    executor.for_each(chunks_.size(), [&](std::size_t c) {
      double* const totals = partial_.data() + c * sums_.size;
      std::fill_n(totals, sums_.size, 0.0);
      bag_kernels<T>().gradient(tables_, batch_, chunks_[c], totals);
    });
    return collect(gradient);
  }

  EncoderMeasures measure(const SequenceSet& set, std::span<const T> parameters,
                          const Executor& executor) override {
    if (!prepare(parameters)) return generic().measure(set, parameters, executor);
    std::vector<std::uint32_t> all(set.size());
    std::iota(all.begin(), all.end(), 0U);
    gather(set, all);
    std::vector<BagMeasure> parts(chunks_.size());
    executor.for_each(chunks_.size(), [&](std::size_t c) {
      bag_kernels<T>().measure(tables_, batch_, chunks_[c], parts[c]);
    });
    EncoderMeasures total;
    double positions = 0;
    std::vector<bool> wrong(set.size(), false);
    for (const BagMeasure& part : parts) {
      total.loss += part.loss;
      positions += part.right;
      total.attention_entropy += part.entropy;
      total.attention_distance += part.distance;
      for (const std::uint32_t row : part.wrong) wrong[row] = true;
    }
    total.accuracy = positions / (static_cast<double>(set.size()) * static_cast<double>(set.length));
    const auto right = static_cast<double>(std::count(wrong.begin(), wrong.end(), false));
    total.sequence_accuracy = right / static_cast<double>(set.size());
    return total;
  }

 private:
  static constexpr std::size_t kChunk = 2048;  // pairs
  // Beyond this spread the weights of a sequence whose types all score low would leave the range of float.
  static constexpr double kWidestScores = 60;

  EncoderGradient<T>& generic() {
    if (!generic_) generic_ = make_generic_path<T>(spec_);
    return *generic_;
  }

  // False if the scores are too far apart for one maximum per type to serve every sequence.
  bool prepare(std::span<const T> parameters) {
    std::copy(parameters.begin(), parameters.end(), parameters_.begin());
    forward_types();
    if (!(types_.widest <= kWidestScores)) return false;
    fill_tables();
    return true;
  }

  std::span<const double> part_of_in_proj(std::size_t part) const {
    const std::size_t size = spec_.dimension * spec_.dimension;
    return slices_.layers[0].in_proj.subspan(part * size, size);
  }

  void forward_types() {
    const std::size_t C = spec_.classes, d = spec_.dimension, width = d / spec_.heads;
    const Rows embedding = rows_of(slices_.embedding, d);
    types_.h = Rows(C, d);
    types_.input =
        spec_.matrix ? times_transposed(embedding, rows_of(slices_.layers[0].matrix, d)) : embedding;
    norm_forward(spec_.norm1, norm_parameters(slices_.layers[0].norm1, d), std::as_const(types_.input).view(),
                 types_.h.view());
    types_.query = times_transposed(types_.h, rows_of(part_of_in_proj(0), d));
    types_.key = times_transposed(types_.h, rows_of(part_of_in_proj(1), d));
    types_.value = times_transposed(types_.h, rows_of(part_of_in_proj(2), d));
    types_.weight = types_.log_weight = Rows(spec_.heads * C, C);
    types_.widest = 0;
    for (std::size_t r = 0; r < spec_.heads * C; ++r) {
      const std::size_t first = r / C * width;
      const auto query = types_.query[r % C].subspan(first, width);
      const auto scores = types_.log_weight[r];
      for (std::size_t u = 0; u < C; ++u) {
        scores[u] = std::inner_product(query.begin(), query.end(),
                                       types_.key[u].begin() + static_cast<std::ptrdiff_t>(first), 0.0) /
                    root_;
      }
      const auto [low, high] = std::minmax_element(scores.begin(), scores.end());
      const double top = *high, spread = top - *low;
      if (!(spread <= types_.widest)) types_.widest = spread;  // NaN stays
      for (std::size_t u = 0; u < C; ++u) {
        scores[u] -= top;
        types_.weight(r, u) = std::exp(scores[u]);
      }
    }
  }

  void fill_tables() {
    const std::size_t C = spec_.classes, d = spec_.dimension, H = spec_.heads, F = spec_.feed_forward;
    const LayerSlices<const double>& layer = slices_.layers[0];
    const std::size_t rows = d + 2 * H;
    tables_.mix.resize(C * rows * C);
    for (std::size_t t = 0; t < C; ++t) {
      T* const mix = tables_.mix.data() + t * rows * C;
      for (std::size_t h = 0; h < H; ++h) {
        const auto weight = types_.weight[h * C + t];
        for (std::size_t u = 0; u < C; ++u) {
          for (std::size_t j = h * (d / H); j < (h + 1) * (d / H); ++j) {
            mix[j * C + u] = static_cast<T>(weight[u] * types_.value(u, j));
          }
          mix[(d + h) * C + u] = static_cast<T>(weight[u]);
          mix[(d + H + h) * C + u] = static_cast<T>(weight[u] * types_.log_weight(h * C + t, u));
        }
      }
    }
    std::vector<double> start(slices_.embedding.begin(), slices_.embedding.end());
    for (std::size_t i = 0; i < start.size(); ++i) start[i] += layer.out_bias[i % d];
    // norm2 = gain ⊙ x̂ + bias goes into the first linear layer.
    std::vector<double> weight1(layer.weight1.begin(), layer.weight1.end()),
        bias1(layer.bias1.begin(), layer.bias1.end());
    if (spec_.norm2.affine) {
      for (std::size_t i = 0; i < F; ++i) {
        for (std::size_t j = 0; j < d; ++j) {
          bias1[i] += weight1[i * d + j] * layer.norm2.bias[j];
          weight1[i * d + j] *= layer.norm2.gain[j];
        }
      }
    }
    assign(tables_.start, start);
    assign(tables_.out, layer.out_weight);
    assign(tables_.weight1, weight1);
    assign(tables_.bias1, bias1);
    assign(tables_.weight2, layer.weight2);
    assign(tables_.bias2, layer.bias2);
    assign(tables_.embedding, slices_.embedding);
  }

  // Pairs by type, and the chunks they are processed in.
  void gather(const SequenceSet& set, std::span<const std::uint32_t> batch) {
    const std::size_t C = spec_.classes, rows = batch.size();
    batch_.counts.resize(rows * C);
    batch_.labels.resize(rows);
    batch_.rows.resize(rows * C);
    batch_.length = set.length;
    batch_.weight = 1 / (static_cast<double>(rows) * static_cast<double>(set.length));
    std::vector<std::size_t> end(C);
    for (std::size_t t = 0; t < C; ++t) end[t] = t * rows;
    for (std::uint32_t row = 0; row < rows; ++row) {
      // The sequences of a batch lie anywhere in the set.
      if (row + 8 < rows) {
        __builtin_prefetch(&set.counts[batch[row + 8] * C]);
        __builtin_prefetch(&set.labels[batch[row + 8]]);
      }
      std::copy_n(set.counts.data() + batch[row] * C, C, batch_.counts.data() + row * C);
      batch_.labels[row] = set.labels[batch[row]];
      const std::uint16_t* const counts = batch_.counts.data() + row * C;
      for (std::size_t t = 0; t < C; ++t) {  // without a branch: whether a type occurs cannot be foreseen
        batch_.rows[std::min(end[t], rows * C - 1)] = row;
        end[t] += counts[t] != 0;
      }
    }
    chunks_.clear();
    for (std::size_t t = 0; t < C; ++t) {
      for (std::size_t begin = t * rows; begin < end[t]; begin += kChunk) {
        chunks_.push_back({t, begin, std::min(begin + kChunk, end[t])});
      }
    }
  }

  // From the sums of the chunks, in their order, to the gradient of the parameters.
  double collect(std::span<T> gradient) const {
    const std::size_t C = spec_.classes, d = spec_.dimension, H = spec_.heads;
    std::vector<double> total(sums_.x1, 0.0);
    Rows dx1(C, d);
    std::vector<double> dmix(C * C * (d + H), 0.0);
    for (std::size_t c = 0; c < chunks_.size(); ++c) {
      const double* const part = partial_.data() + c * sums_.size;
      const std::size_t t = chunks_[c].type;
      for (std::size_t i = 0; i < sums_.x1; ++i) total[i] += part[i];
      for (std::size_t j = 0; j < d; ++j) dx1(t, j) += part[sums_.x1 + j];
      for (std::size_t i = 0; i < C * (d + H); ++i) dmix[t * C * (d + H) + i] += part[sums_.mix + i];
    }

    std::vector<double> result(parameters_.size(), 0.0);
    const auto slice = slices(spec_, std::span(result));
    const LayerSlices<double>& layer = slice.layers[0];
    const auto copy = [&](std::size_t from, std::span<double> to) {
      std::copy_n(total.begin() + static_cast<std::ptrdiff_t>(from), to.size(), to.begin());
    };
    copy(sums_.embedding, slice.embedding);
    copy(sums_.bias1, layer.bias1);
    copy(sums_.weight2, layer.weight2);
    copy(sums_.bias2, layer.bias2);
    copy(sums_.out, layer.out_weight);
    copy(sums_.weight1, layer.weight1);
    if (spec_.norm2.affine) unfold_norm2(layer);
    for (std::size_t t = 0; t < C; ++t) {
      for (std::size_t j = 0; j < d; ++j) {
        slice.embedding[t * d + j] += dx1(t, j);
        layer.out_bias[j] += dx1(t, j);
      }
    }
    backward_types(dmix, slice);
    for (std::size_t i = 0; i < result.size(); ++i) gradient[i] = static_cast<T>(result[i]);
    return total[0];
  }

  // W₁' = W₁ diag(gain), b₁' = b₁ + W₁ bias: from the gradients of W₁' and b₁' those of all four.
  void unfold_norm2(const LayerSlices<double>& gradient) const {
    const LayerSlices<const double>& layer = slices_.layers[0];
    const std::size_t d = spec_.dimension;
    for (std::size_t i = 0; i < spec_.feed_forward; ++i) {
      for (std::size_t j = 0; j < d; ++j) {
        double& weight = gradient.weight1[i * d + j];
        gradient.norm2.gain[j] += layer.weight1[i * d + j] * weight;
        gradient.norm2.bias[j] += layer.weight1[i * d + j] * gradient.bias1[i];
        weight = weight * layer.norm2.gain[j] + gradient.bias1[i] * layer.norm2.bias[j];
      }
    }
  }

  void backward_types(std::span<const double> dmix, const EncoderSlices<double>& gradient) const {
    const std::size_t C = spec_.classes, d = spec_.dimension, H = spec_.heads, width = d / H;
    Rows dquery(C, d), dkey(C, d), dvalue(C, d);
    for (std::size_t t = 0; t < C; ++t) {
      for (std::size_t u = 0; u < C; ++u) {
        const double* const g = dmix.data() + (t * C + u) * (d + H);
        for (std::size_t h = 0; h < H; ++h) {
          const double weight = types_.weight(h * C + t, u);
          double dweight = g[d + h];
          for (std::size_t j = h * width; j < (h + 1) * width; ++j) {
            dweight += g[j] * types_.value(u, j);
            dvalue(u, j) += weight * g[j];
          }
          const double dscore = dweight * weight / root_;
          for (std::size_t j = h * width; j < (h + 1) * width; ++j) {
            dquery(t, j) += dscore * types_.key(u, j);
            dkey(u, j) += dscore * types_.query(t, j);
          }
        }
      }
    }
    Rows dh(C, d);
    const Rows* parts[] = {&dquery, &dkey, &dvalue};
    for (std::size_t part = 0; part < 3; ++part) {
      add_product(*parts[part], rows_of(part_of_in_proj(part), d), dh);
      add_transposed_product(*parts[part], types_.h,
                             {gradient.layers[0].in_proj.data() + part * d * d, d, d});
    }
    Rows dx(C, d);
    norm_backward(spec_.norm1, norm_parameters(slices_.layers[0].norm1, d), types_.input.view(),
                  std::as_const(dh).view(), dx.view(), norm_gradients(gradient.layers[0].norm1, d));
    if (spec_.matrix) {
      const Rows dinput = std::exchange(dx, Rows(C, d));
      add_transposed_product(dinput, rows_of(slices_.embedding, d), {gradient.layers[0].matrix.data(), d, d});
      add_product(dinput, rows_of(slices_.layers[0].matrix, d), dx);
    }
    for (std::size_t i = 0; i < C * d; ++i) gradient.embedding[i] += dx.data()[i];
  }

  EncoderSpec spec_;
  BagSums sums_;
  std::vector<double> parameters_;
  EncoderSlices<const double> slices_;
  double root_;  // √(width of a head); infinite if attention is uniform
  Types types_;
  BagTables<T> tables_;
  BagBatch batch_;
  std::vector<BagChunk> chunks_;
  std::vector<double> partial_;
  std::unique_ptr<EncoderGradient<T>> generic_;
};

}  // namespace

bool is_bag_of_types(const EncoderSpec& spec) {
  NormSpec norm2 = spec.norm2;
  norm2.affine = false;
  norm2.eps = 0;
  return spec.layers == 1 && spec.mask == "full" && spec.placement == Placement::pre &&
         spec.temperature == 0 && norm2 == parse_norm("layernorm") &&
         spec.classes <= SequenceSet::most_counted_classes;
}

template <class T>
std::unique_ptr<EncoderGradient<T>> make_bag_path(const EncoderSpec& spec) {
  if (!is_bag_of_types(spec)) {
    throw InputError(
        "The bag path needs one layer, a full mask and LayerNorm before the feed-forward part; take the "
        "generic path.");
  }
  return std::make_unique<BagPath<T>>(spec);
}
template std::unique_ptr<EncoderGradient<float>> make_bag_path(const EncoderSpec&);
template std::unique_ptr<EncoderGradient<double>> make_bag_path(const EncoderSpec&);

template <class T>
std::unique_ptr<EncoderGradient<T>> make_encoder_gradient(const EncoderSpec& spec, EncoderPath path) {
  check_encoder(spec);
  const bool bag = path == EncoderPath::bag || (path == EncoderPath::automatic && is_bag_of_types(spec));
  return bag ? make_bag_path<T>(spec) : make_generic_path<T>(spec);
}
template std::unique_ptr<EncoderGradient<float>> make_encoder_gradient(const EncoderSpec&, EncoderPath);
template std::unique_ptr<EncoderGradient<double>> make_encoder_gradient(const EncoderSpec&, EncoderPath);

}  // namespace normscope

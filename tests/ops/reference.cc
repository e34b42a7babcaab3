#include "ops/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "normscope/mask.h"

namespace normscope::ops {

const Array* find(const Arrays& arrays, std::string_view name) {
  for (const Named& array : arrays) {
    if (array.name == name) return &array.value;
  }
  return nullptr;
}
const Array& at(const Arrays& arrays, std::string_view name) {
  const Array* const array = find(arrays, name);
  if (array == nullptr) throw std::logic_error(fmt::format("No array '{}'.", name));
  return *array;
}

namespace reference {
namespace {

std::vector<double> column(const Array& x, std::size_t c) {
  std::vector<double> values(x.rows());
  for (std::size_t i = 0; i < x.rows(); ++i) values[i] = x(i, c);
  return values;
}

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// v − mean(v); a constant v gives exactly 0, as the equation has it.
std::vector<double> centred(std::vector<double> v) {
  const bool constant = std::all_of(v.begin(), v.end(), [&](double value) { return value == v[0]; });
  double mean = 0;
  for (const double value : v) mean += value / static_cast<double>(v.size());
  for (double& value : v) value = constant ? 0 : value - mean;
  return v;
}

// y − Vᵀ(VVᵀ)⁻¹V y, the inverse by Gauss-Jordan elimination with pivots.
std::vector<double> without_normals(std::vector<double> y, const Array& normals) {
  const std::size_t k = normals.rows();
  Array system(k, k + 1);  // VVᵀ | V y
  for (std::size_t i = 0; i < k; ++i) {
    for (std::size_t j = 0; j < k; ++j) system(i, j) = dot(normals[i], normals[j]);
    system(i, k) = dot(normals[i], y);
  }
  for (std::size_t p = 0; p < k; ++p) {
    std::size_t best = p;
    for (std::size_t i = p; i < k; ++i) {
      if (std::fabs(system(i, p)) > std::fabs(system(best, p))) best = i;
    }
    for (std::size_t j = 0; j <= k; ++j) std::swap(system(p, j), system(best, j));
    for (std::size_t i = 0; i < k; ++i) {
      const double factor = i == p ? 0 : system(i, p) / system(p, p);
      for (std::size_t j = 0; j <= k; ++j) system(i, j) -= factor * system(p, j);
    }
  }
  for (std::size_t i = 0; i < k; ++i) {
    for (std::size_t j = 0; j < y.size(); ++j) y[j] -= system(i, k) / system(i, i) * normals(i, j);
  }
  return y;
}

// target/√(‖w‖² + d·eps), and 0 where that has no value.
double factor(double target, std::span<const double> w, double eps) {
  const double square = dot(w, w) + static_cast<double>(w.size()) * eps;
  return square > 0 ? target / std::sqrt(square) : 0;
}

std::vector<double> scaled(const NormSpec& spec, const Array* alpha, std::vector<double> y) {
  const double root = std::sqrt(static_cast<double>(y.size()));
  const auto times = [&](double s) {
    for (double& value : y) value *= s;
  };
  switch (spec.scaling) {
    case Scaling::none:
      break;
    case Scaling::root_dimension:
      times(factor(root, y, spec.eps));
      break;
    case Scaling::unit:
      times(factor(1, y, spec.eps));
      break;
    case Scaling::inverse_root_dimension:
      times(factor(1 / root, y, spec.eps));
      break;
    case Scaling::standard_deviation:
      times(factor(root, centred(y), spec.eps));
      break;
    case Scaling::unit_per_head: {
      const std::size_t width = y.size() / static_cast<std::size_t>(spec.heads);
      for (std::size_t first = 0; first < y.size(); first += width) {
        const double s = factor(1, std::span(y).subspan(first, width), spec.eps);
        for (std::size_t i = first; i < first + width; ++i) y[i] *= s;
      }
      break;
    }
    case Scaling::tanh:
      for (double& value : y) value = std::tanh((*alpha)(0, 0) * value);
      break;
  }
  return y;
}

Array rows_of(const Array& x, std::size_t first, std::size_t count) {
  const auto begin = x.values().begin() + static_cast<std::ptrdiff_t>(first * x.cols());
  return Array(count, x.cols(), {begin, begin + static_cast<std::ptrdiff_t>(count * x.cols())});
}

Array sum(Array a, const Array& b) {
  for (std::size_t i = 0; i < a.values().size(); ++i) a.data()[i] += b.data()[i];
  return a;
}

std::string prefix_of(std::size_t layer) {
  return fmt::format("layers.{}.", layer);
}

Array projected_qkv(const EncoderSpec& spec, const Arrays& parameters, std::size_t layer, const Array& x) {
  const std::string prefix = prefix_of(layer);
  return linear(at(parameters, prefix + "attention.in_proj"), nullptr,
                norm(spec.norm1, parameters, prefix + "norm1.", x));
}

Array embedded(const Array& embedding, std::span<const std::uint16_t> tokens) {
  Array x(embedding.cols(), tokens.size());
  for (std::size_t c = 0; c < tokens.size(); ++c) {
    for (std::size_t i = 0; i < x.rows(); ++i) x(i, c) = embedding(tokens[c], i);
  }
  return x;
}

}  // namespace

Array linear(const Array& weight, const Array* bias, const Array& x) {
  Array y(weight.rows(), x.cols());
  for (std::size_t c = 0; c < x.cols(); ++c) {
    for (std::size_t i = 0; i < y.rows(); ++i) {
      y(i, c) = bias == nullptr ? 0 : bias->data()[i];
      for (std::size_t j = 0; j < x.rows(); ++j) y(i, c) += weight(i, j) * x(j, c);
    }
  }
  return y;
}

Array norm(const NormSpec& spec, const Arrays& parameters, const std::string& prefix, const Array& x) {
  Array y(x.rows(), x.cols());
  for (std::size_t c = 0; c < x.cols(); ++c) {
    std::vector<double> values = column(x, c);
    if (spec.projection == Projection::ones) values = centred(values);
    if (spec.projection == Projection::normals)
      values = without_normals(values, at(parameters, prefix + "normals"));
    values = scaled(spec, find(parameters, prefix + "alpha"), values);
    for (std::size_t i = 0; i < x.rows(); ++i) {
      y(i, c) = values[i];
      if (!spec.affine) continue;
      y(i, c) *= at(parameters, prefix + "gain").data()[i];
      y(i, c) += at(parameters, prefix + "bias").data()[i];
    }
  }
  return y;
}

Array softmax(const Array& scores) {
  Array weights(scores.rows(), scores.cols());
  for (std::size_t c = 0; c < scores.cols(); ++c) {
    const auto values = column(scores, c);
    const double top = *std::max_element(values.begin(), values.end());
    double total = 0;
    for (std::size_t i = 0; i < values.size(); ++i) total += weights(i, c) = std::exp(values[i] - top);
    for (std::size_t i = 0; i < values.size(); ++i) weights(i, c) /= total;
  }
  return weights;
}

Array attention_weights(const Array& q, const Array& k, const std::string& mask) {
  Array scores(k.cols(), q.cols());
  const Mask allowed = parse_mask(mask, k.cols());
  for (std::size_t key = 0; key < k.cols(); ++key) {
    for (std::size_t query = 0; query < q.cols(); ++query) {
      for (std::size_t i = 0; i < q.rows(); ++i) scores(key, query) += q(i, query) * k(i, key);
      scores(key, query) /= std::sqrt(static_cast<double>(q.rows()));
      if (!allowed.attends(query, key)) scores(key, query) = -HUGE_VAL;
    }
  }
  return softmax(scores);
}

Array attention(std::size_t heads, const std::string& mask, const Array& qkv) {
  const std::size_t d = qkv.rows() / 3, width = d / heads;
  Array o(d, qkv.cols());
  for (std::size_t first = 0; first < d; first += width) {
    const Array weights = attention_weights(rows_of(qkv, first, width), rows_of(qkv, d + first, width), mask);
    for (std::size_t i = first; i < first + width; ++i) {
      for (std::size_t key = 0; key < qkv.cols(); ++key) {
        for (std::size_t query = 0; query < qkv.cols(); ++query)
          o(i, query) += weights(key, query) * qkv(2 * d + i, key);
      }
    }
  }
  return o;
}

Array feed_forward(const Arrays& parameters, const std::string& prefix, const Array& x) {
  Array hidden =
      linear(at(parameters, prefix + "linear1.weight"), &at(parameters, prefix + "linear1.bias"), x);
  for (std::size_t i = 0; i < hidden.values().size(); ++i) hidden.data()[i] = std::max(0.0, hidden.data()[i]);
  return linear(at(parameters, prefix + "linear2.weight"), &at(parameters, prefix + "linear2.bias"), hidden);
}

Array cross_entropy(const Array& logits, const std::vector<std::uint16_t>& labels) {
  Array result(2, logits.cols());
  for (std::size_t c = 0; c < logits.cols(); ++c) {
    const auto values = column(logits, c);
    const auto top = std::max_element(values.begin(), values.end());  // the first of the highest
    double total = 0;
    for (const double value : values) total += std::exp(value - *top);
    result(0, c) = std::log(total) + *top - values[labels[c]];
    result(1, c) = top - values.begin() == labels[c] ? 1 : 0;
  }
  return result;
}

Array encoder_layer(const EncoderSpec& spec, const Arrays& parameters, std::size_t layer, const Array& x) {
  const std::string prefix = prefix_of(layer);
  const Array o = attention(spec.heads, spec.mask, projected_qkv(spec, parameters, layer, x));
  const Array x1 = sum(x, linear(at(parameters, prefix + "attention.out_proj.weight"),
                                 &at(parameters, prefix + "attention.out_proj.bias"), o));
  const Array g = norm(spec.norm2, parameters, prefix + "norm2.", x1);
  return sum(x1, feed_forward(parameters, prefix + "feed_forward.", g));
}

Array encoder_logits(const EncoderSpec& spec, const Arrays& parameters,
                     std::span<const std::uint16_t> tokens) {
  const Array& embedding = at(parameters, "embedding");
  Array x = embedded(embedding, tokens);
  for (std::size_t l = 0; l < spec.layers; ++l) x = encoder_layer(spec, parameters, l, x);
  return linear(embedding, nullptr, x);
}

EncoderMeasures encoder_measures(const EncoderSpec& spec, const Arrays& parameters, const SequenceSet& set) {
  const std::size_t T = set.length, width = spec.dimension / spec.heads;
  const double share = 1 / static_cast<double>(set.size() * T),
               row_share = share / static_cast<double>(spec.layers * spec.heads);
  EncoderMeasures total;
  for (std::size_t s = 0; s < set.size(); ++s) {
    const auto tokens = std::span(set.tokens).subspan(s * T, T);
    const Array result =
        cross_entropy(encoder_logits(spec, parameters, tokens), std::vector<std::uint16_t>(T, set.labels[s]));
    double right = 0;
    for (std::size_t c = 0; c < T; ++c) {
      total.loss += share * result(0, c);
      right += result(1, c);
    }
    total.accuracy += share * right;
    total.sequence_accuracy += right == static_cast<double>(T) ? 1 / static_cast<double>(set.size()) : 0;
    Array x = embedded(at(parameters, "embedding"), tokens);
    const Mask allowed = parse_mask(spec.mask, T);
    for (std::size_t l = 0; l < spec.layers; ++l) {
      const Array qkv = projected_qkv(spec, parameters, l, x);
      for (std::size_t first = 0; first < spec.dimension; first += width) {
        const Array weights = attention_weights(rows_of(qkv, first, width),
                                                rows_of(qkv, spec.dimension + first, width), spec.mask);
        for (std::size_t query = 0; query < T; ++query) {
          double visible = 0;
          for (std::size_t key = 0; key < T; ++key) visible += allowed.attends(query, key) ? 1 : 0;
          for (std::size_t key = 0; key < T; ++key) {
            if (!allowed.attends(query, key)) continue;
            const double weight = weights(key, query);
            if (weight > 0) total.attention_entropy -= row_share * weight * std::log(weight);
            total.attention_distance += row_share * std::fabs(weight - 1 / visible) / 2;
          }
        }
      }
      x = encoder_layer(spec, parameters, l, x);
    }
  }
  return total;
}

}  // namespace reference
}  // namespace normscope::ops

// y = g ⊙ s·P x + b of each token, as norm.h has it: a projection P, a scale s, gain and bias.   x, y: (d, T)
#ifndef NORMSCOPE_TRAIN_LAYERS_NORM_REFERENCE
#define NORMSCOPE_TRAIN_LAYERS_NORM_REFERENCE
#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "train/columns.h"
#include "train/parameters.h"

namespace normscope::reference {

inline double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// v − mean(v); a constant v gives exactly 0, as the equation has it.
inline std::vector<double> centred(std::vector<double> v) {
  const bool constant = std::all_of(v.begin(), v.end(), [&](double value) { return value == v[0]; });
  double mean = 0;
  for (const double value : v) mean += value / static_cast<double>(v.size());
  for (double& value : v) value = constant ? 0 : value - mean;
  return v;
}

// y − Vᵀ(VVᵀ)⁻¹V y, the inverse by Gauss-Jordan elimination with pivots.
inline std::vector<double> without_normals(std::vector<double> y, std::span<const double> normals) {
  const std::size_t d = y.size(), k = normals.size() / d;
  const auto normal = [&](std::size_t i) { return normals.subspan(i * d, d); };
  Array system(k, k + 1);  // VVᵀ | V y
  for (std::size_t i = 0; i < k; ++i) {
    for (std::size_t j = 0; j < k; ++j) system(i, j) = dot(normal(i), normal(j));
    system(i, k) = dot(normal(i), y);
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
    for (std::size_t j = 0; j < d; ++j) y[j] -= system(i, k) / system(i, i) * normal(i)[j];
  }
  return y;
}

// target/√(‖w‖² + d·eps), and 0 where that has no value.
inline double factor(double target, std::span<const double> w, double eps) {
  const double square = dot(w, w) + static_cast<double>(w.size()) * eps;
  return square > 0 ? target / std::sqrt(square) : 0;
}

inline std::vector<double> scaled(const NormSpec& spec, const double* alpha, std::vector<double> y) {
  if (spec.scaling == Scaling::none) return y;
  if (spec.scaling == Scaling::tanh) {
    for (double& value : y) value = std::tanh(*alpha * value);
    return y;
  }
  const std::size_t d = y.size(), width = spec.scaling == Scaling::unit_per_head
                                              ? d / static_cast<std::size_t>(spec.heads)
                                              : d;
  const double root = std::sqrt(static_cast<double>(d));
  const bool sigma = spec.scaling == Scaling::standard_deviation;
  const double target = sigma || spec.scaling == Scaling::root_dimension  ? root
                        : spec.scaling == Scaling::inverse_root_dimension ? 1 / root
                                                                          : 1;
  const std::vector<double> w = sigma ? centred(y) : y;
  for (std::size_t i = 0; i < d; ++i)
    y[i] *= factor(target, std::span(w).subspan(i / width * width, width), spec.eps);
  return y;
}

inline Array norm(const NormSpec& spec, const NormSlices<const double>& parameters, const Array& x) {
  const std::size_t d = x.rows(), T = x.cols();
  Array y(d, T);
  for (std::size_t t = 0; t < T; ++t) {
    std::vector<double> z(d);
    for (std::size_t i = 0; i < d; ++i) z[i] = x(i, t);
    if (spec.projection == Projection::ones) z = centred(z);
    if (spec.projection == Projection::normals) z = without_normals(z, parameters.normals);
    z = scaled(spec, parameters.alpha, z);
    for (std::size_t i = 0; i < d; ++i)
      y(i, t) = spec.affine ? z[i] * parameters.gain[i] + parameters.bias[i] : z[i];
  }
  return y;
}

}  // namespace normscope::reference
#endif

#if defined(NORMSCOPE_TRAIN_LAYERS_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMSCOPE_TRAIN_LAYERS_NORM_INL_H_
#undef NORMSCOPE_TRAIN_LAYERS_NORM_INL_H_
#else
#define NORMSCOPE_TRAIN_LAYERS_NORM_INL_H_
#endif

#include <optional>

#include "train/products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace normscope::HWY_NAMESPACE {
namespace {

// The norms whose projection is none or ones and whose scaling is one number per token. Two rounds of
// centring, as in the norm room: the second makes a constant row exactly 0.
template <class T>
struct ColumnNorm {
  bool centre = false;     // projection orthogonal to 1
  bool scale = false;      // z = target·y/r, r² = ‖w‖² + d·eps
  bool deviation = false;  // w is y centred (σ), though y is not
  T target = 1, eps = 0;
};

// A division, since d·(1/d) is not 1 for every d (41 in float, 49 in double): a constant row would never
// become 0.
template <class T>
HWY_INLINE Vec<T> column_mean(std::size_t d, const T* x, std::size_t stride) {
  Vec<T> sum = zero<T>();
  for (std::size_t i = 0; i < d; ++i) sum = hn::Add(sum, load(x + i * stride));
  return hn::Div(sum, splat(static_cast<T>(d)));
}

// z = norm(x) before its affine part; `inverse` keeps 1/r of each column (0 where r = 0). For σ, `centred`
// keeps w.
template <class T>
HWY_INLINE void norm_columns(const ColumnNorm<T>& norm, std::size_t d, const T* HWY_RESTRICT x,
                             T* HWY_RESTRICT z, T* HWY_RESTRICT centred, T* HWY_RESTRICT inverse,
                             std::size_t columns) {
  for (std::size_t c = 0; c < columns; c += kLanes<T>) {
    const auto centre = [&](T* y) HWY_ATTR {
      for (int round = 0; round < 2; ++round) {
        const Vec<T> mean = column_mean(d, y + c, columns);
        for (std::size_t i = 0; i < d; ++i)
          store(hn::Sub(load(y + i * columns + c), mean), y + i * columns + c);
      }
    };
    for (std::size_t i = 0; i < d; ++i) store(load(x + i * columns + c), z + i * columns + c);
    if (norm.centre) centre(z);
    if (!norm.scale) continue;
    const T* w = z;
    if (norm.deviation) {
      for (std::size_t i = 0; i < d; ++i) store(load(x + i * columns + c), centred + i * columns + c);
      centre(centred);
      w = centred;
    }
    Vec<T> square = splat(norm.eps * static_cast<T>(d));
    for (std::size_t i = 0; i < d; ++i) {
      square = hn::MulAdd(load(w + i * columns + c), load(w + i * columns + c), square);
    }
    const Vec<T> one_over =
        hn::IfThenElseZero(hn::Gt(square, zero<T>()), hn::Div(splat(T(1)), hn::Sqrt(square)));
    store(one_over, inverse + c);
    const Vec<T> factor = hn::Mul(splat(norm.target), one_over);
    for (std::size_t i = 0; i < d; ++i) {
      store(hn::Mul(load(z + i * columns + c), factor), z + i * columns + c);
    }
  }
}

// From g = ∂L/∂z adds ∂L/∂x to dx; g is spent.
template <class T>
HWY_INLINE void norm_columns_backward(const ColumnNorm<T>& norm, std::size_t d, const T* HWY_RESTRICT z,
                                      const T* HWY_RESTRICT centred, const T* HWY_RESTRICT inverse,
                                      T* HWY_RESTRICT g, T* HWY_RESTRICT dx, std::size_t columns) {
  for (std::size_t c = 0; c < columns; c += kLanes<T>) {
    if (norm.scale) {
      // ∂L/∂y = (target/r)(g − w (y·g)/r²), with y·g = z·g r/target: w (z·g)/(target·r).
      const Vec<T> one_over = load(inverse + c), factor = hn::Mul(splat(norm.target), one_over);
      Vec<T> along = zero<T>();
      for (std::size_t i = 0; i < d; ++i) {
        along = hn::MulAdd(load(z + i * columns + c), load(g + i * columns + c), along);
      }
      along = hn::Mul(along, splat(T(1) / norm.target));
      // w/r is z/target unless w is its own vector.
      const Vec<T> per_w =
          norm.deviation ? hn::Mul(along, one_over) : hn::Mul(along, splat(T(1) / norm.target));
      const T* w = norm.deviation ? centred : z;
      for (std::size_t i = 0; i < d; ++i) {
        const Vec<T> rest = hn::NegMulAdd(load(w + i * columns + c), per_w, load(g + i * columns + c));
        store(hn::Mul(rest, factor), g + i * columns + c);
      }
    }
    const Vec<T> mean = norm.centre ? column_mean(d, g + c, columns) : zero<T>();
    for (std::size_t i = 0; i < d; ++i) {
      const Vec<T> rest = hn::Sub(load(g + i * columns + c), mean);
      store(hn::Add(load(dx + i * columns + c), rest), dx + i * columns + c);
    }
  }
}

// Any norm. Those with one scale per token and at most the projection orthogonal to 1 run on columns; the
// others go through the norm room, row by row.
template <class T>
class Norm {
 public:
  Norm(const NormSpec& spec, const NormSlices<const T>& parameters, std::size_t d, std::size_t columns)
      : spec_(spec),
        parameters_(parameters),
        fast_(column_norm(spec, d)),
        z_(d, columns),
        centred_(fast_ && fast_->deviation ? d : 0, columns),
        inverse_(1, columns),
        gain_sums_(spec.affine ? d * kLanes<T> : 0, T(0)),
        bias_sums_(spec.affine ? d * kLanes<T> : 0, T(0)),
        gain_(parameters.gain.size()),
        bias_(parameters.bias.size()),
        normals_(parameters.normals.size()) {}

  void forward(const Columns<T>& x, Columns<T>& y) {
    if (!fast_) return forward_rows(x, y);
    const std::size_t d = x.rows(), columns = x.columns();
    norm_columns(*fast_, d, x.data(), z_.data(), centred_.data(), inverse_.data(), columns);
    for (std::size_t i = 0; i < d; ++i) {
      const Vec<T> gain = splat(spec_.affine ? parameters_.gain[i] : T(1));
      const Vec<T> bias = splat(spec_.affine ? parameters_.bias[i] : T(0));
      for (std::size_t c = 0; c < columns; c += kLanes<T>) {
        store(hn::MulAdd(load(z_.row(i) + c), gain, bias), y.row(i) + c);
      }
    }
  }

  // Adds ∂L/∂x to dx; dy is spent.
  void backward(const Columns<T>& x, Columns<T>& dy, Columns<T>& dx) {
    if (!fast_) return backward_rows(x, dy, dx);
    const std::size_t d = x.rows(), columns = x.columns();
    if (spec_.affine) {
      add_rows(d, dy.data(), bias_sums_.data(), columns);
      for (std::size_t i = 0; i < d; ++i) {
        const Vec<T> gain = splat(parameters_.gain[i]);
        Vec<T> sum = load(gain_sums_.data() + i * kLanes<T>);
        for (std::size_t c = 0; c < columns; c += kLanes<T>) {
          const Vec<T> g = load(dy.row(i) + c);
          sum = hn::MulAdd(g, load(z_.row(i) + c), sum);
          store(hn::Mul(g, gain), dy.row(i) + c);
        }
        store(sum, gain_sums_.data() + i * kLanes<T>);
      }
    }
    norm_columns_backward(*fast_, d, z_.data(), centred_.data(), inverse_.data(), dy.data(), dx.data(),
                          columns);
  }

  void take_gradients(const NormSlices<double>& gradient) const {
    reduce_lanes(gain_sums_.data(), gain_sums_.size() / kLanes<T>, gradient.gain.data());
    reduce_lanes(bias_sums_.data(), bias_sums_.size() / kLanes<T>, gradient.bias.data());
    const auto add = [](const std::vector<T>& from, std::span<double> to) {
      for (std::size_t i = 0; i < from.size(); ++i) to[i] += static_cast<double>(from[i]);
    };
    add(gain_, gradient.gain);
    add(bias_, gradient.bias);
    add(normals_, gradient.normals);
    if (gradient.alpha != nullptr) *gradient.alpha += static_cast<double>(alpha_);
  }

 private:
  static std::optional<ColumnNorm<T>> column_norm(const NormSpec& spec, std::size_t d) {
    const Scaling scaling = spec.scaling;
    if (spec.projection == Projection::normals || scaling == Scaling::unit_per_head ||
        scaling == Scaling::tanh)
      return std::nullopt;
    const auto root = std::sqrt(static_cast<T>(d));
    const T target = scaling == Scaling::unit                     ? T(1)
                     : scaling == Scaling::inverse_root_dimension ? 1 / root
                                                                  : root;
    return ColumnNorm<T>{spec.projection == Projection::ones, scaling != Scaling::none,
                         scaling == Scaling::standard_deviation, target, static_cast<T>(spec.eps)};
  }

  static Matrix<T> transposed(const Columns<T>& x) {
    Matrix<T> rows(x.columns(), x.rows());
    for (std::size_t i = 0; i < x.rows(); ++i) {
      for (std::size_t c = 0; c < x.columns(); ++c) rows(c, i) = x.row(i)[c];
    }
    return rows;
  }

  void forward_rows(const Columns<T>& x, Columns<T>& y) const {
    Matrix<T> rows = transposed(x);
    norm_forward<T>(spec_, norm_parameters(parameters_, x.rows()), rows.view(), rows.view());
    for (std::size_t i = 0; i < x.rows(); ++i) {
      for (std::size_t c = 0; c < x.columns(); ++c) y.row(i)[c] = rows(c, i);
    }
  }

  void backward_rows(const Columns<T>& x, const Columns<T>& dy, Columns<T>& dx) {
    const std::size_t d = x.rows();
    const Matrix<T> rows = transposed(x);
    Matrix<T> gradient = transposed(dy);
    const NormGradients<T> sums = {gain_, bias_, {normals_.data(), normals_.size() / d, d}, &alpha_};
    norm_backward<T>(spec_, norm_parameters(parameters_, d), rows.view(), gradient.view(), gradient.view(),
                     sums);
    for (std::size_t i = 0; i < d; ++i) {
      for (std::size_t c = 0; c < x.columns(); ++c) dx.row(i)[c] += gradient(c, i);
    }
  }

  NormSpec spec_;
  NormSlices<const T> parameters_;
  std::optional<ColumnNorm<T>> fast_;
  Columns<T> z_, centred_, inverse_;
  std::vector<T> gain_sums_, bias_sums_;  // per lane, of the columns
  std::vector<T> gain_, bias_, normals_;  // of the rows
  T alpha_ = 0;
};

}  // namespace
}  // namespace normscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

// Forward and backward of every norm, one row at a time: affine ∘ scaling ∘ projection.
#include "normscope/norm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "norm/normal_span.h"
#include "normscope/error.h"

namespace normscope {
namespace {

// Sum over i of term(i) in four partial sums, always combined alike: shorter dependency chains, same result
// everywhere.
template <class Term>
double sum(std::size_t count, const Term& term) {
  double part[4] = {};
  const std::size_t whole = count / 4 * 4;
  for (std::size_t i = 0; i < whole; i += 4) {
    for (std::size_t lane = 0; lane < 4; ++lane) part[lane] += term(i + lane);
  }
  for (std::size_t i = whole; i < count; ++i) part[i - whole] += term(i);
  return (part[0] + part[1]) + (part[2] + part[3]);
}

double dot(std::span<const double> a, std::span<const double> b) {
  return sum(a.size(), [&](std::size_t i) { return a[i] * b[i]; });
}

void multiply(std::span<double> values, double factor) {
  for (double& value : values) value *= factor;
}

// Divides the values by a power of two where their squares could leave the range of double, and returns it.
// The exponent stays above −900 so that eps in the same units stays finite.
double extract_unit(std::span<double> values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::fabs(value));
  const bool safe = largest == 0 || (largest > 0x1p-300 && largest < 0x1p300);
  if (safe || !std::isfinite(largest)) return 1;
  const int exponent = std::max(std::ilogb(largest), -900);
  multiply(values, std::ldexp(1.0, -exponent));
  return std::ldexp(1.0, exponent);
}

// y ← y − mean(y)·1, twice: the second round removes what rounding left of the mean in the first. It makes a
// constant row exactly 0: the first round leaves every entry the same few ulps k·u with |k| ≤ 2d, and sums of
// these are exact up to d = 2²⁵.
void centre(std::span<double> y) {
  for (int round = 0; round < 2; ++round) {
    const double mean = sum(y.size(), [&](std::size_t i) { return y[i]; }) / static_cast<double>(y.size());
    for (double& value : y) value -= mean;
  }
}

bool is_zero(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return value == 0; });
}

// The norm without its affine part, for rows of width d. One object serves all rows of a call.
class Core {
 public:
  Core(const NormSpec& spec, std::size_t d, double alpha, std::optional<NormalSpan> normals)
      : spec_(spec),
        alpha_(alpha),
        normals_(std::move(normals)),
        y_(d),
        z_(d),
        centred_(spec.scaling == Scaling::standard_deviation ? d : 0),
        heads_(spec.scaling == Scaling::unit_per_head ? static_cast<std::size_t>(spec.heads) : 1),
        width_(d / heads_.size()),
        target_(target(spec.scaling, static_cast<double>(width_))),
        root_d_eps_(std::sqrt(static_cast<double>(width_) * spec.eps)) {}

  // Where the caller puts x before it calls forward.
  std::span<double> row() { return y_; }
  // z of that row; keeps what backward needs.
  std::span<const double> forward(NormCounts& counts);
  // g = ∂L/∂z of the row last sent forward becomes ∂L/∂x; dV (k × d) and dα are added to.
  void backward(std::span<double> g, std::span<double> normals_gradient, double& alpha_gradient) const;
  // What a row is scaled to.
  static double target(Scaling scaling, double d);

 private:
  // z = factor·y, factor = target/root; w is y, or y centred for σ. Lengths are in units of `unit`.
  struct Head {
    double unit = 1;
    double norm = 0;  // ‖w‖
    double root = 0;  // √(‖w‖² + d·eps)
    double factor = 0;
  };

  bool scales() const { return spec_.scaling != Scaling::none && spec_.scaling != Scaling::tanh; }
  void scale(std::size_t h);
  void scaling_backward(std::span<double> g) const;
  void projection_backward(std::span<double> g, std::span<double> normals_gradient) const;
  std::span<const double> denominator_vector() const { return centred_.empty() ? y_ : centred_; }

  NormSpec spec_;
  double alpha_;
  std::optional<NormalSpan> normals_;
  std::vector<double> y_, z_, centred_;
  std::vector<Head> heads_;
  std::size_t width_;             // of a head, the d of its scaling
  double target_;                 // ‖z‖ for eps = 0 (for σ: ‖z centred‖)
  double root_d_eps_;             // √(d·eps)
  Eigen::VectorXd coefficients_;  // c = (VVᵀ)⁻¹V x, in units of row_unit_
  double row_unit_ = 1;
};

double Core::target(Scaling scaling, double d) {
  switch (scaling) {
    case Scaling::root_dimension:
    case Scaling::standard_deviation:
      return std::sqrt(d);
    case Scaling::inverse_root_dimension:
      return 1 / std::sqrt(d);
    default:
      return 1;
  }
}

void Core::scale(std::size_t h) {
  Head& head = heads_[h];
  const auto y = std::span(y_).subspan(h * width_, width_);
  // Heads may differ in magnitude beyond any common unit; after a projection the row has one already.
  head.unit = spec_.projection == Projection::none ? extract_unit(y) : row_unit_;
  if (spec_.scaling == Scaling::standard_deviation) {
    centred_ = y_;
    centre(centred_);
  }
  const auto w = denominator_vector().subspan(h * width_, width_);
  head.norm = std::sqrt(dot(w, w));
  head.root = root_d_eps_ > 0 ? std::hypot(head.norm, root_d_eps_ / head.unit) : head.norm;
  head.factor = head.root == 0 ? 0 : target_ / head.root;
  for (std::size_t i = 0; i < width_; ++i) z_[h * width_ + i] = y[i] * head.factor;
}

std::span<const double> Core::forward(NormCounts& counts) {
  ++counts.rows;
  const bool zero_row = is_zero(y_);
  row_unit_ = spec_.projection == Projection::none ? 1 : extract_unit(y_);
  if (spec_.projection == Projection::ones) centre(y_);
  if (spec_.projection == Projection::normals) coefficients_ = normals_->project(y_);
  if (!scales()) {
    for (std::size_t i = 0; i < y_.size(); ++i) {
      z_[i] = spec_.scaling == Scaling::tanh ? std::tanh(alpha_ * (y_[i] * row_unit_)) : y_[i] * row_unit_;
    }
    return z_;
  }
  bool undefined = false;
  for (std::size_t h = 0; h < heads_.size(); ++h) {
    scale(h);
    undefined = undefined || heads_[h].norm == 0;
  }
  // A head that nothing was projected out of has norm 0 only if it is zero itself.
  const bool zero_head = spec_.projection == Projection::none && spec_.scaling == Scaling::unit_per_head;
  if (undefined) ++(zero_row || zero_head ? counts.zero_rows : counts.constant_rows);
  return z_;
}

void Core::scaling_backward(std::span<double> g) const {
  if (spec_.scaling == Scaling::none) return;
  if (spec_.scaling == Scaling::tanh) {
    for (std::size_t i = 0; i < g.size(); ++i) g[i] *= (1 - z_[i] * z_[i]) * alpha_;
    return;
  }
  for (std::size_t h = 0; h < heads_.size(); ++h) {
    const Head& head = heads_[h];
    const auto part = g.subspan(h * width_, width_);
    if (head.root == 0) {  // undefined: the policy's gradient
      std::fill(part.begin(), part.end(), 0.0);
      continue;
    }
    // z = target·y/r, r² = ‖w‖² + d·eps, ∂r/∂y = w/r:  ∂L/∂y = (target/r)(g − w (y·g)/r²)
    const auto y = std::span(y_).subspan(h * width_, width_),
               w = denominator_vector().subspan(h * width_, width_);
    const double along = dot(y, part) / head.root / head.root;
    // The division by the unit comes last: factor/unit alone may overflow where a zero gradient must stay 0.
    for (std::size_t i = 0; i < width_; ++i) part[i] = (part[i] - w[i] * along) * head.factor / head.unit;
  }
}

void Core::projection_backward(std::span<double> g, std::span<double> normals_gradient) const {
  if (spec_.projection == Projection::none) return;
  const double unit = extract_unit(g);
  if (spec_.projection == Projection::ones) {
    centre(g);
  } else {
    const Eigen::VectorXd along = normals_->project(g);  // (VVᵀ)⁻¹V ∂L/∂y; g is now P ∂L/∂y
    // ∂L/∂V = −(c (P ∂L/∂y)ᵀ + ((VVᵀ)⁻¹V ∂L/∂y) yᵀ)
    const std::size_t d = g.size();
    for (std::size_t k = 0; k * d < normals_gradient.size(); ++k) {
      const double c = coefficients_(static_cast<Eigen::Index>(k)) * row_unit_ * unit;
      const double a = along(static_cast<Eigen::Index>(k)) * unit * row_unit_;
      for (std::size_t i = 0; i < d; ++i) normals_gradient[k * d + i] -= c * g[i] + a * y_[i];
    }
  }
  multiply(g, unit);
}

void Core::backward(std::span<double> g, std::span<double> normals_gradient, double& alpha_gradient) const {
  if (spec_.scaling == Scaling::tanh) {
    for (std::size_t i = 0; i < g.size(); ++i) {
      alpha_gradient += g[i] * (1 - z_[i] * z_[i]) * (y_[i] * row_unit_);
    }
  }
  scaling_backward(g);
  projection_backward(g, normals_gradient);
}

void check_spec(const NormSpec& spec, std::size_t d) {
  if (d == 0) throw InputError("a norm needs rows of at least one dimension, got width 0");
  if (!(spec.eps >= 0) || !std::isfinite(spec.eps)) {
    throw InputError(fmt::format("eps must be a finite number of at least 0, got {}", spec.eps));
  }
  const bool per_head = spec.scaling == Scaling::unit_per_head;
  if (per_head && (spec.heads < 1 || d % static_cast<std::size_t>(spec.heads) != 0)) {
    throw InputError(fmt::format("{} heads do not divide a width of {}", spec.heads, d));
  }
}

template <class T>
void check_parameters(const NormSpec& spec, const NormParameters<T>& parameters, std::size_t d) {
  if (spec.affine) {
    const std::size_t gains = parameters.gain.size();
    const bool per_head = spec.scaling == Scaling::unit_per_head;
    const bool shared = per_head && (gains == 1 || gains == d / static_cast<std::size_t>(spec.heads));
    if (gains != 0 && gains != d && !shared) {
      throw InputError(fmt::format("gain has {} entries, but rows have width {}", gains, d));
    }
    if (!parameters.bias.empty() && parameters.bias.size() != d) {
      throw InputError(fmt::format("bias has {} entries, but rows have width {}", parameters.bias.size(), d));
    }
  }
  const auto& normals = parameters.normals;
  const bool fits =
      spec.normals >= 1 && normals.rows == static_cast<std::size_t>(spec.normals) && normals.cols == d;
  if (spec.projection == Projection::normals && !fits) {
    throw InputError(fmt::format("the norm needs normals of shape {} × {} (at least one), got {} × {}",
                                 spec.normals, d, normals.rows, normals.cols));
  }
}

template <class T>
void check_gradients(const NormSpec& spec, const NormParameters<T>& parameters,
                     const NormGradients<T>& gradients, std::size_t d) {
  const std::size_t gains = parameters.gain.empty() ? d : parameters.gain.size();
  const auto& normals = gradients.normals;
  const bool gain_fits = !spec.affine || gradients.gain.empty() || gradients.gain.size() == gains;
  const bool bias_fits = !spec.affine || gradients.bias.empty() || gradients.bias.size() == d;
  const bool normals_fit = spec.projection != Projection::normals || normals.data == nullptr ||
                           (normals.rows == parameters.normals.rows && normals.cols == d);
  if (!gain_fits || !bias_fits || !normals_fit) {
    throw InputError("the gradients of gain, bias and normals must have the shapes of the parameters");
  }
}

template <class T, class U>
void check_same_shape(MatrixView<T> a, MatrixView<U> b) {
  if (a.rows != b.rows || a.cols != b.cols) {
    throw InputError(fmt::format("the norm's input is {} × {}, but its counterpart is {} × {}", a.rows,
                                 a.cols, b.rows, b.cols));
  }
}

template <class T>
Core make_core(const NormSpec& spec, const NormParameters<T>& parameters, std::size_t d) {
  check_spec(spec, d);
  check_parameters(spec, parameters, d);
  std::optional<NormalSpan> normals;
  if (spec.projection == Projection::normals) {
    Matrix<double> wide(parameters.normals.rows, d);
    for (std::size_t k = 0; k < wide.rows(); ++k) {
      std::copy_n(parameters.normals[k].begin(), d, wide[k].begin());
    }
    normals.emplace(std::as_const(wide).view(), std::numeric_limits<T>::epsilon() / 2.0);
  }
  return Core(spec, d, parameters.alpha, std::move(normals));
}

// The d numbers a row meets: `values` repeated (shared by the heads), or `otherwise` where there are none.
template <class T>
std::vector<double> per_column(std::span<const T> values, bool affine, double otherwise, std::size_t d) {
  std::vector<double> columns(d, otherwise);
  if (!affine || values.empty()) return columns;
  for (std::size_t i = 0; i < d; ++i) columns[i] = values[i % values.size()];
  return columns;
}

// The reverse of per_column: a number shared by several columns gets the sum of their gradients.
template <class T>
void add_folded(std::span<const double> columns, std::span<T> gradient) {
  for (std::size_t j = 0; j < gradient.size(); ++j) {
    double total = 0;
    for (std::size_t i = j; i < columns.size(); i += gradient.size()) total += columns[i];
    gradient[j] += static_cast<T>(total);
  }
}

}  // namespace

NormCounts& NormCounts::operator+=(const NormCounts& other) {
  rows += other.rows;
  zero_rows += other.zero_rows;
  constant_rows += other.constant_rows;
  return *this;
}

template <class T>
NormCounts norm_forward(const NormSpec& spec, const NormParameters<T>& parameters,
                        std::type_identity_t<MatrixView<const T>> x, std::type_identity_t<MatrixView<T>> y) {
  check_same_shape(x, y);
  Core core = make_core(spec, parameters, x.cols);
  const std::vector<double> gain = per_column(parameters.gain, spec.affine, 1, x.cols);
  const std::vector<double> bias = per_column(parameters.bias, spec.affine, 0, x.cols);
  NormCounts counts;
  for (std::size_t r = 0; r < x.rows; ++r) {
    std::copy(x[r].begin(), x[r].end(), core.row().begin());
    const auto z = core.forward(counts);
    for (std::size_t i = 0; i < z.size(); ++i) y(r, i) = static_cast<T>(z[i] * gain[i] + bias[i]);
  }
  return counts;
}

namespace {

// The largest derivative of y → target·y/√(‖w‖² + d·eps) within `error` of y, w being y or y centred.
double steepest(double target, double y_norm, double w_norm, double d_eps, double error, bool centred) {
  const double root = std::hypot(std::max(0.0, w_norm - error), std::sqrt(d_eps));
  if (root == 0) return std::numeric_limits<double>::infinity();
  return target / root * (centred ? 1 + (y_norm + error) / root : 1);
}

}  // namespace

NormCounts norm_as_in_models(const NormSpec& spec, const NormParameters<double>& parameters,
                             MatrixView<const double> x, MatrixView<double> y, double unit_roundoff) {
  if (unit_roundoff < 0x1p-24) return norm_forward<double>(spec, parameters, x, y);
  const auto narrowed = [](const double* begin, std::size_t count) {
    return std::vector<float>(begin, begin + count);
  };
  const std::vector<float> gain = narrowed(parameters.gain.data(), parameters.gain.size()),
                           bias = narrowed(parameters.bias.data(), parameters.bias.size()),
                           normals = narrowed(parameters.normals.data,
                                              parameters.normals.rows * parameters.normals.cols);
  NormParameters<float> narrow;
  narrow.gain = gain;
  narrow.bias = bias;
  narrow.normals = {normals.data(), parameters.normals.rows, parameters.normals.cols};
  narrow.alpha = static_cast<float>(parameters.alpha);
  Matrix<float> rows(x.rows, x.cols);
  for (std::size_t i = 0; i < x.rows; ++i)
    for (std::size_t c = 0; c < x.cols; ++c) rows(i, c) = static_cast<float>(x(i, c));
  const NormCounts counts = norm_forward<float>(spec, narrow, rows.view(), rows.view());
  for (std::size_t i = 0; i < y.rows; ++i)
    for (std::size_t c = 0; c < y.cols; ++c) y(i, c) = static_cast<double>(rows(i, c));
  return counts;
}

std::size_t directions_projected_out(const NormSpec& spec) {
  const bool entry_by_entry =
      spec.scaling == Scaling::tanh || (spec.scaling == Scaling::unit_per_head && spec.heads > 1);
  return spec.projection == Projection::ones && !entry_by_entry ? 1 : 0;
}

std::vector<double> norm_errors(const NormSpec& spec, MatrixView<const double> x, double unit_roundoff,
                                double smallest_rounding, double result_roundoff, double alpha) {
  constexpr double kMost = 1e300;  // stands for: anything
  // Half a step of the least numbers, of the file's and of the result's; that of double's is no double itself.
  constexpr double least = std::numeric_limits<double>::denorm_min();
  const bool doubles = unit_roundoff > 0 && unit_roundoff <= 0x1p-53;
  const double smallest = doubles ? std::max(smallest_rounding, least) : smallest_rounding,
               result_smallest = result_roundoff > 0x1p-53 ? 0x1p-150
                                 : result_roundoff > 0     ? least
                                                           : 0;
  const bool centred = spec.scaling == Scaling::standard_deviation;
  const std::size_t heads = spec.scaling == Scaling::unit_per_head ? static_cast<std::size_t>(spec.heads) : 1,
                    width = x.cols / heads;
  std::vector<double> errors, y(x.cols), w, off(width);
  for (std::size_t i = 0; i < x.rows; ++i) {
    std::copy(x[i].begin(), x[i].end(), y.begin());
    const double unit = extract_unit(y);  // squares may leave the range of double
    const std::vector<double> scaled = y;
    if (spec.projection == Projection::ones) centre(y);
    double total = 0;
    for (std::size_t h = 0; h < heads; ++h) {
      const auto part = std::span(y).subspan(h * width, width);
      for (std::size_t c = 0; c < width; ++c)
        off[c] = unit_roundoff * std::abs(scaled[h * width + c]) + smallest / unit;
      const double error = std::sqrt(dot(off, off)), size = std::sqrt(dot(part, part));
      double moved = error * unit, length = size * unit;  // of the result
      if (spec.scaling == Scaling::tanh) {
        moved = std::min(moved * alpha, 2 * std::sqrt(static_cast<double>(width)));
        length = std::min(length * alpha, std::sqrt(static_cast<double>(width)));
      } else if (spec.scaling != Scaling::none) {
        const double target = Core::target(spec.scaling, static_cast<double>(width)),
                     d_eps = static_cast<double>(width) * spec.eps / unit / unit;
        w.assign(part.begin(), part.end());
        if (centred) centre(w);
        const double w_norm = std::sqrt(dot(w, w)), root = std::hypot(w_norm, std::sqrt(d_eps));
        moved = error * steepest(target, size, w_norm, d_eps, error, centred);
        length = root > 0 ? target * size / root : 0;
        if (!centred) moved = std::min(moved, 2 * target);
      }
      // Sums of `width` terms in double, and the rounding of what comes out.
      moved += (result_roundoff + 4 * static_cast<double>(width) * 0x1p-53) * (length + moved) +
               result_smallest * std::sqrt(static_cast<double>(width));
      total = std::isfinite(moved) ? std::hypot(total, moved) : kMost;
    }
    errors.push_back(std::min(total, kMost));
  }
  return errors;
}

template <class T>
void norm_backward(const NormSpec& spec, const NormParameters<T>& parameters,
                   std::type_identity_t<MatrixView<const T>> x, std::type_identity_t<MatrixView<const T>> dy,
                   std::type_identity_t<MatrixView<T>> dx, const NormGradients<T>& gradients) {
  check_same_shape(x, dy);
  if (dx.data != nullptr) check_same_shape(x, dx);
  Core core = make_core(spec, parameters, x.cols);
  check_gradients(spec, parameters, gradients, x.cols);

  const std::size_t d = x.cols;
  const std::vector<double> gain = per_column(parameters.gain, spec.affine, 1, d);
  const bool wants_normals = spec.projection == Projection::normals && gradients.normals.data != nullptr;
  std::vector<double> g(d), dgain(d), dbias(d), dnormals(wants_normals ? gradients.normals.rows * d : 0);
  double dalpha = 0;
  NormCounts ignored;
  for (std::size_t r = 0; r < x.rows; ++r) {
    std::copy(x[r].begin(), x[r].end(), core.row().begin());
    std::copy(dy[r].begin(), dy[r].end(), g.begin());
    const auto z = core.forward(ignored);
    for (std::size_t i = 0; i < d; ++i) {
      dgain[i] += g[i] * z[i];
      dbias[i] += g[i];
      g[i] *= gain[i];
    }
    core.backward(g, dnormals, dalpha);
    if (dx.data == nullptr) continue;
    for (std::size_t i = 0; i < d; ++i) dx(r, i) = static_cast<T>(g[i]);
  }
  if (spec.affine) {
    add_folded(dgain, gradients.gain);
    add_folded(dbias, gradients.bias);
  }
  for (std::size_t i = 0; i < dnormals.size(); ++i) {
    gradients.normals(i / d, i % d) += static_cast<T>(dnormals[i]);
  }
  if (gradients.alpha != nullptr) *gradients.alpha += static_cast<T>(dalpha);
}

template NormCounts norm_forward<float>(const NormSpec&, const NormParameters<float>&,
                                        MatrixView<const float>, MatrixView<float>);
template NormCounts norm_forward<double>(const NormSpec&, const NormParameters<double>&,
                                         MatrixView<const double>, MatrixView<double>);
template void norm_backward<float>(const NormSpec&, const NormParameters<float>&, MatrixView<const float>,
                                   MatrixView<const float>, MatrixView<float>, const NormGradients<float>&);
template void norm_backward<double>(const NormSpec&, const NormParameters<double>&, MatrixView<const double>,
                                    MatrixView<const double>, MatrixView<double>,
                                    const NormGradients<double>&);

}  // namespace normscope

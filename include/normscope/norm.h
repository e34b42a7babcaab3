#pragma once
// What each half of a norm does.
//
// Every norm is a composition, row by row, of three parts that can be switched separately:
//
//   projection   y = P x      P = I, I − 11ᵀ/d (orthogonal to 1), or I − Vᵀ(VVᵀ)⁻¹V (orthogonal to k normals
//   V) scaling      z = s(y) y   to a norm of √d, 1 or 1/√d, by 1/σ(y), or per head; tanh(αy) stands in for
//   it in DyT affine       g ⊙ z + b
//
// LayerNorm is projection orthogonal to 1, then scaling to √d (Brody, Alon, Yahav 2023, §2). eps enters as
// s = target/√(‖y‖² + d·eps), which for LayerNorm and RMSNorm is the textbook 1/√(σ² + eps); all scalings
// treat it alike, so that `unit` and `published` stay `rmsnorm` times a constant. Per head, d is the head's
// width.
//
// Rows that scaling leaves undefined. A zero row, and a row with σ = 0 (for normals: a row in their span, up
// to rounding), has no direction to scale. With eps = 0 its output before the affine part is 0 and so is its
// gradient before the affine part. With eps > 0 the formula defines the row and both value and gradient
// follow it. Such rows are counted either way. In one dimension every row has σ = 0: LayerNorm maps it to 0.
//
// Range: squares are summed in units of the largest entry, so rows from 1e-300 to 1e300 neither overflow nor
// vanish. NaN and Inf propagate within their row. Arithmetic is in double for float rows too.
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "normscope/matrix.h"

namespace normscope {

enum class Projection {
  none,
  ones,     // orthogonal to 1: subtracts the mean
  normals,  // orthogonal to learned normals, the rows of V
};

enum class Scaling {
  none,
  root_dimension,          // ‖z‖ = √d
  unit,                    // ‖z‖ = 1
  inverse_root_dimension,  // ‖z‖ = 1/√d
  standard_deviation,      // z = y/σ(y), σ² = ‖y − mean(y)‖²/d; the numerator is not centred
  unit_per_head,           // each of `heads` slices of width d/heads: norm 1
  tanh,                    // z = tanh(αy), entry by entry
};

// Where a block applies its norm: x + f(norm(x)), norm(x + f(x)), x + norm(f(norm(x))).
enum class Placement { pre, post, sandwich };
inline constexpr std::array kPlacements = {Placement::pre, Placement::post, Placement::sandwich};
inline const char* name_of(Placement placement) {
  constexpr const char* names[] = {"pre", "post", "sandwich"};
  return names[static_cast<std::size_t>(placement)];
}
inline std::span<const Placement> values_of(Placement) {
  return kPlacements;
}

struct NormSpec {
  Projection projection = Projection::none;
  Scaling scaling = Scaling::none;
  bool affine = false;
  double eps = 0;
  int normals = 0;  // k, for Projection::normals
  int heads = 1;    // for Scaling::unit_per_head

  bool operator==(const NormSpec&) const = default;
};

// A norm by its name: `none`, `center` (projection only), `rmsnorm` (scaling to √d), `unit`, `published`
// (to 1/√d, as the published code of Brody et al. does), `xsigma` (x/σ(x)), `dyt`, `qknorm` or `qknorm:h`
// (h heads), `normals:k` (projection only), `layernorm` = `center+rmsnorm`, `project:k` =
// `normals:k+rmsnorm`, and any projection+scaling, such as `center+unit`. Without affine part and with eps =
// 0: callers set these. Throws InputError that lists the names on offer (which does not restrict what is
// read).
std::span<const std::string_view> norm_names();
std::span<const std::string_view> norm_names_without_normals();
NormSpec parse_norm(std::string_view name, std::span<const std::string_view> offered = norm_names());
// The shortest name that parse_norm reads back to the same projection and scaling.
std::string name_of(const NormSpec& spec);

// Learned numbers of one norm. An empty gain is 1, an empty bias 0; both are ignored unless spec.affine.
template <class T>
struct NormParameters {
  std::span<const T> gain;      // d; per head also d/heads (shared by the heads) or 1
  std::span<const T> bias;      // d
  MatrixView<const T> normals;  // k × d, linearly independent
  T alpha = T(0.5);             // for Scaling::tanh
};

// Where norm_backward adds the gradients of the parameters, in their shapes. Empty (null): not wanted.
template <class T>
struct NormGradients {
  std::span<T> gain, bias;
  MatrixView<T> normals;
  T* alpha = nullptr;
};

struct NormCounts {
  std::size_t rows = 0;
  std::size_t zero_rows = 0;      // x = 0 (per head: in at least one head)
  std::size_t constant_rows = 0;  // x ≠ 0 with nothing left to scale: σ = 0, or x in the span of the normals

  std::size_t undefined_rows() const { return zero_rows + constant_rows; }
  NormCounts& operator+=(const NormCounts& other);
};

// y = norm(x), rows × d; y may be x. For float and double. Throws InputError when shapes do not fit together,
// eps is negative, heads do not divide d, or the normals are not finite and linearly independent.
template <class T>
NormCounts norm_forward(const NormSpec& spec, const NormParameters<T>& parameters,
                        std::type_identity_t<MatrixView<const T>> x, std::type_identity_t<MatrixView<T>> y);

// The same in the precision that models run norms in: float32 for numbers of at most that precision
// (unit_roundoff of 2^-24 or more), else float64. For numbers of any dtype, held in double.
NormCounts norm_as_in_models(const NormSpec& spec, const NormParameters<double>& parameters,
                             MatrixView<const double> x, MatrixView<double> y, double unit_roundoff);

// How many directions no result of the norm has: 1 if it projects along the vector of ones and then scales
// each row as a whole (tanh, or one factor per head, leads out of that plane again), else 0.
std::size_t directions_projected_out(const NormSpec& spec);

// How far norm(x) can be, row by row, from the norm of the numbers that were rounded to x: any x' with
// |x'_i − x_i| ≤ unit_roundoff·|x_i| + smallest_rounding. With `result_roundoff`, that of the numbers y is
// held in. A norm without affine part and learned normals; alpha as in NormParameters.
std::vector<double> norm_errors(const NormSpec& spec, MatrixView<const double> x, double unit_roundoff,
                                double smallest_rounding, double result_roundoff, double alpha = 0.5);

// From dy = ∂L/∂y writes dx = ∂L/∂x (dx may be dy, or have null data: not wanted) and adds the gradients of
// the parameters, summed over rows in row order in double. Throws as norm_forward.
template <class T>
void norm_backward(const NormSpec& spec, const NormParameters<T>& parameters,
                   std::type_identity_t<MatrixView<const T>> x, std::type_identity_t<MatrixView<const T>> dy,
                   std::type_identity_t<MatrixView<T>> dx, const NormGradients<T>& gradients);

// P = I − 11ᵀ/d (Brody et al., eq. 28); d ≥ 1.
Matrix<double> projection_matrix(std::size_t d);
// The same P as the paper builds it (eqs. 22–27): to the basis {u₁, …, u_{d−1}, 1} with uᵢ = 1 − d·eᵢ, drop
// the coordinate along 1, and back. d ≥ 1.
Matrix<double> projection_matrix_by_change_of_basis(std::size_t d);
// P = I − Vᵀ(VVᵀ)⁻¹V for normals V (k × d).
Matrix<double> projection_matrix(MatrixView<const double> normals);

// LayerNorm maps the plane span(v, 1) to two points (Brody et al., App. B): √d·u where α > 0 and −√d·u where
// α < 0, for x = αv + β1 and u the unit vector along the part of v orthogonal to 1. Throws InputError if v is
// parallel to 1.
std::array<std::vector<double>, 2> plane_image(std::span<const double> v);

// {y : normal·y = offset}, ‖normal‖ = 1.
struct Hyperplane {
  std::vector<double> normal;
  double offset = 0;
};

// The hyperplane that holds the image of LayerNorm with gain g and bias b: Σ (yᵢ − bᵢ)/gᵢ = 0, so its normal
// is ∝ 1/g (Riechers 2024). The first component with gᵢ = 0 is constant, which makes the normal eᵢ and the
// offset bᵢ, the limit of gᵢ → 0. An empty bias is 0. Throws InputError on an empty or non-finite gain or
// bias.
Hyperplane image_hyperplane(std::span<const double> gain, std::span<const double> bias = {});

}  // namespace normscope

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "normscope/error.h"
#include "normscope/norm.h"
#include "normscope/norm_identities.h"
#include "normscope/random.h"

namespace normscope {
namespace {

using Vector = std::vector<double>;

constexpr std::size_t kMostDimensions = 2048;

double dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}
double length(std::span<const double> a) {
  return std::sqrt(dot(a, a));
}
double mean(std::span<const double> a) {
  return std::accumulate(a.begin(), a.end(), 0.0) / static_cast<double>(a.size());
}
double distance(std::span<const double> a, std::span<const double> b) {
  double square = 0;
  for (std::size_t i = 0; i < a.size(); ++i) square += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(square);
}
Vector times(double factor, std::span<const double> a) {
  Vector result(a.begin(), a.end());
  for (double& x : result) x *= factor;
  return result;
}

Vector normed(const char* norm, Vector x) {
  const std::size_t d = x.size();
  norm_forward<double>(parse_norm(norm), {}, MatrixView<const double>(x.data(), 1, d),
                       MatrixView<double>(x.data(), 1, d));
  return x;
}
Vector drawn(Random& random, std::size_t d) {
  Vector x(d);
  for (double& each : x) each = random.normal();
  return x;
}
// A random unit vector orthogonal to 1.
Vector direction_in_plane(Random& random, std::size_t d) {
  Vector v = drawn(random, d);
  for (int twice = 0; twice < 2; ++twice) {
    const double middle = mean(v);
    for (double& each : v) each -= middle;
    v = times(1 / length(v), v);
  }
  return v;
}

void grow(double& largest, double residual) {
  largest = std::max(largest, residual);
}

// Eq. 4, 5 and 16.
void look_at_halves(NormIdentities& found, const Vector& x, const Matrix<double>& projection) {
  const std::size_t d = x.size();
  const double root = std::sqrt(static_cast<double>(d));
  const Vector centred = normed("center", x), scaled = normed("layernorm", x);
  const double middle = mean(x);
  double square = 0;
  for (const double each : x) square += (each - middle) * (each - middle);
  const double sigma = std::sqrt(square / static_cast<double>(d));
  Vector projected(d);
  for (std::size_t i = 0; i < d; ++i) projected[i] = dot(projection[i], x);
  grow(found.orthogonal,
       std::fabs(std::accumulate(centred.begin(), centred.end(), 0.0)) / (root * length(x)));
  grow(found.length, std::fabs(length(centred) - root * sigma) / length(centred));
  grow(found.scaled, std::fabs(length(scaled) - root) / root);
  grow(found.action, distance(projected, centred) / length(x));
}

// Eq. 17 to 21: x = α1 + Σβᵢuᵢ with βᵢ = (x_d − xᵢ)/d.
void look_at_coordinates(NormIdentities& found, const Vector& x, const Matrix<double>& projection) {
  const std::size_t d = x.size();
  const auto count = static_cast<double>(d);
  const double alpha = mean(x);
  Vector part(d, 0);  // Σβᵢuᵢ, uᵢ = 1 − d·eᵢ
  double sum = 0;
  for (std::size_t i = 0; i + 1 < d; ++i) sum += (x[d - 1] - x[i]) / count;
  for (std::size_t i = 0; i < d; ++i) part[i] = sum - (i + 1 < d ? x[d - 1] - x[i] : 0);
  Vector whole = part, projected(d);
  for (double& each : whole) each += alpha;
  for (std::size_t i = 0; i < d; ++i) projected[i] = dot(projection[i], x);
  grow(found.coordinates, distance(whole, x) / length(x));
  grow(found.coordinates, distance(projected, part) / length(x));
}

// Eq. 13 to 15.
void look_at_plane(NormIdentities& found, Random& random, std::size_t d) {
  const double root = std::sqrt(static_cast<double>(d));
  const Vector v = direction_in_plane(random, d);
  const double alpha = random.normal(), beta = random.normal();
  Vector x = times(alpha, v);
  for (double& each : x) each += beta;
  const Vector along = times(alpha, v), image = normed("layernorm", x);
  grow(found.projected, distance(normed("center", x), along) / length(x));
  // What rounding does to αv is stretched with it.
  const double stretched = length(x) / length(along);
  grow(found.direction, distance(image, times(root / length(along), along)) / (root * stretched));
  grow(found.two_points, distance(image, times(alpha > 0 ? root : -root, v)) / (root * stretched));
  for (const double each : normed("layernorm", Vector(d, beta))) grow(found.undefined, std::fabs(each));
}

// Eq. 22 to 28.
void look_at_matrices(NormIdentities& found, std::size_t d, const Matrix<double>& projection) {
  const auto count = static_cast<double>(d);
  const auto basis = [&](std::size_t i, std::size_t j) { return j + 1 < d && i == j ? 1 - count : 1.0; };
  const auto inverse = [&](std::size_t i, std::size_t j) {
    return (i + 1 == d || j + 1 == d ? 1.0 : i == j ? -1.0 : 0.0) / count;
  };
  // M M⁻¹ in what its factors' zeros leave.
  for (std::size_t i = 0; i < d; ++i) {
    double last = 0;
    for (std::size_t k = 0; k < d; ++k) last += basis(i, k) * inverse(k, d - 1);
    grow(found.inverse, std::fabs(last - (i + 1 == d ? 1 : 0)));
    for (std::size_t j = 0; j + 1 < d; ++j) {
      const double entry = basis(i, j) * inverse(j, j) + basis(i, d - 1) * inverse(d - 1, j);
      grow(found.inverse, std::fabs(entry - (i == j ? 1 : 0)));
    }
  }
  const Matrix<double> built = projection_matrix_by_change_of_basis(d);
  for (std::size_t i = 0; i < d; ++i) {
    for (std::size_t j = 0; j < d; ++j) {
      grow(found.change_of_basis, std::fabs(built(i, j) - projection(i, j)));
      grow(found.formula, std::fabs(projection(i, j) - ((i == j ? 1.0 : 0.0) - 1 / count)));
    }
  }
}

}  // namespace

double NormIdentities::largest() const {
  return std::max({orthogonal, length, scaled, projected, direction, two_points, undefined, action,
                   coordinates, inverse, change_of_basis, formula});
}

NormIdentities norm_identities(std::size_t d, std::size_t samples, std::uint64_t seed) {
  if (d < 2 || d > kMostDimensions)
    throw InputError(fmt::format(
        "The identities of LayerNorm are looked at in 2 to {} dimensions, not in {}.", kMostDimensions, d));
  if (samples < 1) throw InputError("The identities of LayerNorm need at least one random vector.");
  NormIdentities found;
  found.dimension = d;
  found.samples = samples;
  const Matrix<double> projection = projection_matrix(d);
  for (std::size_t s = 0; s < samples; ++s) {
    Random random(seed, s);
    const Vector x = drawn(random, d);
    look_at_halves(found, x, projection);
    look_at_coordinates(found, x, projection);
    look_at_plane(found, random, d);
  }
  look_at_matrices(found, d, projection);
  return found;
}

}  // namespace normscope

#include "oracle/families.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace normscope::oracle {
namespace {

using Keys = Matrix<double>;

double small_integer(Random& random, int reach) {
  return static_cast<double>(random.below(2 * static_cast<std::uint64_t>(reach) + 1)) - reach;
}

// Values drawn row by row.
template <class Draw>
Keys fill(std::size_t n, std::size_t d, Draw draw) {
  Keys keys(n, d);
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t c = 0; c < d; ++c) keys(j, c) = draw(j, c);
  }
  return keys;
}

Keys from_rows(const std::vector<std::vector<double>>& rows, std::size_t d) {
  return fill(rows.size(), d, [&](std::size_t j, std::size_t c) { return rows[j][c]; });
}

void shuffle_rows(Random& random, std::vector<std::vector<double>>& rows) {
  for (std::size_t j = rows.size(); j > 1; --j) std::swap(rows[j - 1], rows[random.below(j)]);
}

// Half of the time all rows, otherwise n of them: without some vertices other keys become selectable.
Keys sample_rows(Random& random, std::vector<std::vector<double>> rows, std::size_t n, std::size_t d) {
  shuffle_rows(random, rows);
  if (random.below(2) == 0 && n < rows.size()) rows.resize(n);
  return from_rows(rows, d);
}

Keys gaussian(Random& random, std::size_t n, std::size_t d) {
  return fill(n, d, [&](auto, auto) { return random.normal(); });
}

Keys uniform(Random& random, std::size_t n, std::size_t d) {
  return fill(n, d, [&](auto, auto) { return 2 * random.uniform() - 1; });
}

void subtract_mean(std::span<double> row) {
  double mean = 0;
  for (double x : row) mean += x / static_cast<double>(row.size());
  for (double& x : row) x -= mean;
}

void scale_to(std::span<double> row, double norm) {
  double square = 0;
  for (double x : row) square += x * x;
  if (square == 0) return;
  for (double& x : row) x *= norm / std::sqrt(square);
}

enum class Norm { layernorm, rmsnorm, center, unit };

template <Norm norm, bool to_float>
Keys normalized(Random& random, std::size_t n, std::size_t d) {
  Keys keys = gaussian(random, n, d);
  for (std::size_t j = 0; j < n; ++j) {
    if (norm == Norm::layernorm || norm == Norm::center) subtract_mean(keys[j]);
    if (norm == Norm::layernorm || norm == Norm::rmsnorm)
      scale_to(keys[j], std::sqrt(static_cast<double>(d)));
    if (norm == Norm::unit) scale_to(keys[j], 1);
    if (to_float) {
      for (double& x : keys[j]) x = static_cast<double>(static_cast<float>(x));
    }
  }
  return keys;
}

Keys gaussian_float(Random& random, std::size_t n, std::size_t d) {
  return fill(n, d, [&](auto, auto) { return static_cast<double>(static_cast<float>(random.normal())); });
}

Keys lattice(Random& random, std::size_t n, std::size_t d) {
  const int reach = 1 + static_cast<int>(random.below(3));
  return fill(n, d, [&](auto, auto) { return small_integer(random, reach); });
}

Keys binary(Random& random, std::size_t n, std::size_t d) {
  return fill(n, d, [&](auto, auto) { return static_cast<double>(random.below(2)); });
}

// {−1, 0, 1}^d: the corners of a cube, the centres of its edges and faces, and its own centre.
Keys cube(Random& random, std::size_t n, std::size_t d) {
  d = std::min<std::size_t>(d, 3);
  std::vector<std::vector<double>> rows;
  std::size_t total = 1;
  for (std::size_t c = 0; c < d; ++c) total *= 3;
  for (std::size_t code = 0; code < total; ++code) {
    std::vector<double> row;
    for (std::size_t c = 0, rest = code; c < d; ++c, rest /= 3)
      row.push_back(static_cast<double>(rest % 3) - 1);
    rows.push_back(std::move(row));
  }
  return sample_rows(random, std::move(rows), n, d);
}

Keys cross_polytope(Random& random, std::size_t n, std::size_t d) {
  std::vector<std::vector<double>> rows(1, std::vector<double>(d, 0.0));
  const double size = 1 + static_cast<double>(random.below(4));
  for (std::size_t c = 0; c < d; ++c) {
    for (double sign : {-size, size}) {
      rows.emplace_back(d, 0.0);
      rows.back()[c] = sign;
    }
  }
  if (random.below(2) == 0) {  // inside, on the boundary or outside
    rows.emplace_back();
    for (std::size_t c = 0; c < d; ++c) rows.back().push_back(small_integer(random, 1));
  }
  return sample_rows(random, std::move(rows), n, d);
}

// Every point of the moment curve is a vertex; in ascending powers the coordinates differ widely in size.
Keys moment_curve(Random& random, std::size_t n, std::size_t d) {
  const bool integer = random.below(2) == 0;
  const std::size_t middle = n / 2;
  std::vector<double> t(n);
  for (std::size_t j = 0; j < n; ++j) {
    t[j] = integer ? static_cast<double>(j) - static_cast<double>(middle) : 2 * random.uniform() - 1;
  }
  return fill(n, d, [&](std::size_t j, std::size_t c) { return std::pow(t[j], static_cast<double>(c + 1)); });
}

// A simplex with the centroids of some of its faces, all integers: the whole simplex's is unselectable, the
// others tied.
Keys simplex(Random& random, std::size_t n, std::size_t d) {
  std::vector<std::vector<double>> vertices(d + 1, std::vector<double>(d, 0.0));
  double multiple = 1;
  for (std::size_t k = 2; k <= d + 1; ++k) multiple *= static_cast<double>(k);
  for (std::size_t c = 0; c < d; ++c) vertices[c][c] = multiple;
  std::vector<std::vector<double>> rows = vertices;
  for (std::size_t extra = 0; extra <= n / 2; ++extra) {
    shuffle_rows(random, vertices);
    const std::size_t size = extra == 0 ? d + 1 : 2 + random.below(d);
    std::vector<double> centroid(d, 0.0);
    for (std::size_t k = 0; k < size; ++k) {
      for (std::size_t c = 0; c < d; ++c) centroid[c] += vertices[k][c] / static_cast<double>(size);
    }
    rows.push_back(std::move(centroid));
  }
  shuffle_rows(random, rows);
  return from_rows(rows, d);
}

Keys duplicates(Random& random, std::size_t n, std::size_t d) {
  Keys keys = gaussian(random, n, d);
  for (std::size_t j = 1; j < n; ++j) {
    if (random.below(3) == 0) std::ranges::copy(std::as_const(keys)[random.below(j)], keys[j].begin());
  }
  return keys;
}

double nudge(Random& random, double x) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  switch (random.below(3)) {
    case 0:
      return std::nextafter(x, infinity);
    case 1:
      return std::nextafter(x, -infinity);
    default:
      return x;
  }
}

Keys near_duplicates(Random& random, std::size_t n, std::size_t d) {
  Keys keys = random.below(2) == 0 ? gaussian(random, n, d)
                                   : fill(n, d, [&](auto, auto) { return 1 + random.uniform(); });
  for (std::size_t j = 1; j < n; ++j) {
    if (random.below(2) == 0) continue;
    const std::size_t twin = random.below(j);
    for (std::size_t c = 0; c < d; ++c) keys(j, c) = nudge(random, keys(twin, c));
  }
  return keys;
}

// Averages of other keys, rounded: within an ulp of an edge, a face or an interior point.
Keys midpoints(Random& random, std::size_t n, std::size_t d) {
  Keys keys = random.below(2) == 0 ? gaussian(random, n, d) : gaussian_float(random, n, d);
  for (std::size_t j = 2; j < n; ++j) {
    if (random.below(2) == 0) continue;
    const std::size_t parts = 2 + random.below(std::min(d, j - 1));
    for (double& x : keys[j]) x = 0;
    for (std::size_t part = 0; part < parts; ++part) {
      const std::size_t other = random.below(j);
      for (std::size_t c = 0; c < d; ++c) keys(j, c) += keys(other, c) / static_cast<double>(parts);
    }
  }
  return keys;
}

Keys collinear(Random& random, std::size_t n, std::size_t d) {
  const bool integer = random.below(2) == 0;
  std::vector<double> direction(d), origin(d);
  for (std::size_t c = 0; c < d; ++c) {
    direction[c] = integer ? small_integer(random, 3) : random.normal();
    origin[c] = integer ? small_integer(random, 3) : random.normal();
  }
  Keys keys(n, d);
  for (std::size_t j = 0; j < n; ++j) {
    const double t = integer ? small_integer(random, 6) : random.normal();
    for (std::size_t c = 0; c < d; ++c) keys(j, c) = origin[c] + t * direction[c];
  }
  return keys;
}

// Keys in a random subspace of dimension r < d: exact for integers, with rounding noise across it for floats.
template <bool integer>
Keys flat(Random& random, std::size_t n, std::size_t d) {
  const std::size_t r = d == 1 ? 1 : 1 + random.below(d - 1);
  const auto draw = [&](auto, auto) { return integer ? small_integer(random, 3) : random.normal(); };
  const Keys coordinates = fill(n, r, draw), basis = fill(r, d, draw);
  Keys keys(n, d);
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t c = 0; c < d; ++c) {
      for (std::size_t k = 0; k < r; ++k) keys(j, c) += coordinates(j, k) * basis(k, c);
    }
  }
  return keys;
}

Keys flat_float32(Random& random, std::size_t n, std::size_t d) {
  Keys keys = flat<false>(random, n, d);
  for (std::size_t j = 0; j < n; ++j) {
    for (double& x : keys[j]) x = static_cast<double>(static_cast<float>(x));
  }
  return keys;
}

// Clusters of sizes 1e-20 … 1e20 around points of such sizes.
Keys clusters(Random& random, std::size_t n, std::size_t d) {
  const auto power = [&] { return std::pow(10.0, 40 * random.uniform() - 20); };
  const std::size_t count = 1 + random.below(3);
  const Keys centres = gaussian(random, count, d);
  std::vector<double> distance(count), size(count);
  for (std::size_t k = 0; k < count; ++k) {
    distance[k] = power();
    size[k] = power();
  }
  Keys keys(n, d);
  for (std::size_t j = 0; j < n; ++j) {
    const std::size_t k = random.below(count);
    for (std::size_t c = 0; c < d; ++c) keys(j, c) = distance[k] * centres(k, c) + size[k] * random.normal();
  }
  return keys;
}

// Coordinates in different units.
Keys mixed_units(Random& random, std::size_t n, std::size_t d) {
  std::vector<double> unit(d);
  for (double& x : unit) x = std::pow(10.0, 24 * random.uniform() - 12);
  return fill(n, d, [&](auto, std::size_t c) { return unit[c] * random.normal(); });
}

// One size for the whole set, far from 1.
Keys scaled_lattice(Random& random, std::size_t n, std::size_t d) {
  Keys keys = lattice(random, n, d);
  const double scale = std::pow(10.0, 40 * random.uniform() - 20);
  for (std::size_t j = 0; j < n; ++j) {
    for (double& x : keys[j]) x *= scale;
  }
  return keys;
}

Keys few_keys(Random& random, std::size_t n, std::size_t d) {
  n = 1 + (n - 1) % d;
  return random.below(2) == 0 ? gaussian(random, n, d) : lattice(random, n, d);
}

Keys one_key(Random& random, std::size_t, std::size_t d) {
  return gaussian(random, 1, d);
}

Keys one_dimension(Random& random, std::size_t n, std::size_t) {
  return random.below(2) == 0 ? gaussian(random, n, 1) : lattice(random, n, 1);
}

Keys all_equal(Random& random, std::size_t n, std::size_t d) {
  const Keys one = gaussian(random, 1, d);
  return fill(n, d, [&](auto, std::size_t c) { return one(0, c); });
}

Keys zero_rows(Random& random, std::size_t n, std::size_t d) {
  Keys keys = gaussian(random, n, d);
  for (std::size_t j = 0; j < n; ++j) {
    if (random.below(3) == 0) {
      for (double& x : keys[j]) x = random.below(2) == 0 ? 0.0 : -0.0;
    }
  }
  return keys;
}

constexpr double float32 = 0x1p-24;
constexpr std::array families = {
    KeyFamily{"gaussian", "random", gaussian},
    KeyFamily{"gaussian float32", "random", gaussian_float, float32},
    KeyFamily{"uniform", "random", uniform},
    KeyFamily{"few keys (n <= d)", "random", few_keys},
    KeyFamily{"one key", "random", one_key},
    KeyFamily{"one dimension", "random", one_dimension},
    KeyFamily{"layernorm", "norms", normalized<Norm::layernorm, false>},
    KeyFamily{"layernorm float32", "norms", normalized<Norm::layernorm, true>, float32},
    KeyFamily{"rmsnorm", "norms", normalized<Norm::rmsnorm, false>},
    KeyFamily{"rmsnorm float32", "norms", normalized<Norm::rmsnorm, true>, float32},
    KeyFamily{"center", "norms", normalized<Norm::center, false>},
    KeyFamily{"center float32", "norms", normalized<Norm::center, true>, float32},
    KeyFamily{"unit (sphere)", "norms", normalized<Norm::unit, false>},
    KeyFamily{"unit float32", "norms", normalized<Norm::unit, true>, float32},
    KeyFamily{"lattice", "polytopes", lattice},
    KeyFamily{"binary", "polytopes", binary},
    KeyFamily{"cube with centres", "polytopes", cube},
    KeyFamily{"cross-polytope", "polytopes", cross_polytope},
    KeyFamily{"moment curve", "polytopes", moment_curve},
    KeyFamily{"simplex with centroids", "polytopes", simplex},
    KeyFamily{"duplicates", "degenerate", duplicates},
    KeyFamily{"near-duplicates", "degenerate", near_duplicates},
    KeyFamily{"rounded midpoints", "degenerate", midpoints},
    KeyFamily{"collinear", "degenerate", collinear},
    KeyFamily{"flat, exact", "degenerate", flat<true>},
    KeyFamily{"flat, rounded", "degenerate", flat<false>},
    KeyFamily{"flat, float32", "degenerate", flat_float32, float32},
    KeyFamily{"all equal", "degenerate", all_equal},
    KeyFamily{"zero rows", "degenerate", zero_rows},
    KeyFamily{"clusters", "scales", clusters},
    KeyFamily{"mixed units", "scales", mixed_units},
    KeyFamily{"scaled lattice", "scales", scaled_lattice},
};

bool small_integers(MatrixView<const double> keys) {
  for (std::size_t j = 0; j < keys.rows; ++j) {
    for (double x : keys[j]) {
      if (x != std::floor(x) || std::abs(x) > 0x1p40) return false;
    }
  }
  return true;
}

}  // namespace

std::span<const KeyFamily> key_families() {
  return families;
}

const char* name_of(OffsetKind kind) {
  switch (kind) {
    case OffsetKind::none:
      return "none";
    case OffsetKind::random:
      return "random";
    case OffsetKind::integer:
      return "integer";
    case OffsetKind::affine:
      return "affine";
    case OffsetKind::equal:
      return "equal";
  }
  return "";
}

std::vector<double> draw_offsets(Random& random, MatrixView<const double> keys, OffsetKind kind) {
  if (kind == OffsetKind::none) return {};
  std::vector<double> offsets(keys.rows);
  switch (kind) {
    case OffsetKind::none:
      break;
    case OffsetKind::random:
      for (double& b : offsets) b = random.normal();
      break;
    case OffsetKind::integer:
      for (double& b : offsets) b = small_integer(random, 2);
      break;
    case OffsetKind::affine: {
      // Sums of products are exact for small integers; otherwise only a multiple of one coordinate by a power
      // of two is.
      std::vector<double> slope(keys.cols, 0.0);
      double constant = 0;
      if (small_integers(keys)) {
        for (double& x : slope) x = small_integer(random, 2);
        constant = small_integer(random, 2);
      } else {
        slope[random.below(keys.cols)] =
            (random.below(2) == 0 ? 1 : -1) * std::ldexp(1.0, static_cast<int>(random.below(4)));
      }
      for (std::size_t j = 0; j < keys.rows; ++j) {
        offsets[j] = constant;
        for (std::size_t c = 0; c < keys.cols; ++c) offsets[j] += slope[c] * keys(j, c);
      }
      break;
    }
    case OffsetKind::equal: {
      const double value = random.normal();
      for (double& b : offsets) b = value;
      break;
    }
  }
  return offsets;
}

Shape draw_shape(Random& random) {
  if (random.below(64) == 0) return {1 + random.below(40), 1 + random.below(8)};
  return {1 + random.below(16), 1 + random.below(5)};
}

Shape draw_large_shape(Random& random) {
  const std::size_t n = 193 + random.below(308);
  return {n, random.below(4) == 0 ? 24 + random.below(4) : 2 + random.below(7)};
}

}  // namespace normscope::oracle

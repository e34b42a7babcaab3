// The equilibria of Theorem 3 of Wu et al.: built, checked, and their linear stability.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/decompose.h"
#include "core/run_pieces.h"
#include "normscope/equilibria.h"
#include "normscope/error.h"

namespace normscope {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void require_rank(std::size_t n, std::size_t d, std::size_t rank) {
  require_equilibrium_size(n, d);
  if (rank < 1 || rank > std::min(n, d)) {
    throw InputError(
        fmt::format("{} tokens in {} dimensions have rank 1 to {}, not {}.", n, d, std::min(n, d), rank));
  }
}

Eigen::MatrixXd copy(MatrixView<const double> x) {
  Eigen::MatrixXd result(x.rows, x.cols);
  for (std::size_t i = 0; i < x.rows; ++i) {
    for (std::size_t j = 0; j < x.cols; ++j)
      result(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) = x(i, j);
  }
  return result;
}

// d × d: 1 on the diagonal, w above it.
Eigen::MatrixXd jordan(Eigen::Index d, double w) {
  Eigen::MatrixXd block = Eigen::MatrixXd::Identity(d, d);
  for (Eigen::Index j = 0; j + 1 < d; ++j) block(j, j + 1) = w;
  return block;
}

// S_i W, row by row.
Eigen::MatrixXd sums_times_w(double w, const Eigen::MatrixXd& x) {
  Eigen::MatrixXd sums = x;
  for (Eigen::Index i = 1; i < sums.rows(); ++i) sums.row(i) += sums.row(i - 1);
  return sums * jordan(x.cols(), w);
}

Eigen::Index leading_zeros(const Eigen::VectorXd& row) {
  Eigen::Index zeros = 0;
  while (zeros < row.size() && row(zeros) == 0) ++zeros;
  return zeros;
}

// Orthonormal columns that span what is orthogonal to the unit vector u.
Eigen::MatrixXd tangent(const Eigen::VectorXd& u) {
  return householder_qr(u).q().rightCols(u.size() - 1);
}

// Largest modulus of the eigenvalues of TᵀWᵀT / λ, T the tangent space at the unit vector u.
double core_radius(double w, const Eigen::VectorXd& u, double lambda) {
  const Eigen::MatrixXd t = tangent(u), block = t.transpose() * jordan(u.size(), w).transpose() * t / lambda;
  return eigenvalue_moduli(block).maxCoeff();
}

// Leading entries in different columns are independent: their number is the rank, without any tolerance, if
// the rows that share one are equal.
std::size_t echelon_rank(const Matrix<double>& x) {
  std::set<std::size_t> leading;
  for (std::size_t i = 0; i < x.rows(); ++i) {
    const auto row = x[i];
    const auto first = std::find_if(row.begin(), row.end(), [](double value) { return value != 0; });
    if (first != row.end()) leading.insert(static_cast<std::size_t>(first - row.begin()));
  }
  return leading.size();
}

std::vector<int> signs_of(std::uint64_t pattern, std::size_t rank) {
  std::vector<int> signs(rank);
  for (std::size_t i = 0; i < rank; ++i) signs[i] = (pattern >> (rank - 1 - i) & 1) == 0 ? 1 : -1;
  return signs;
}

void include(RankSummary& summary, const RankSummary& more) {
  if (more.count == 0) return;
  const bool first = summary.count == 0;
  summary.count += more.count;
  summary.stable += more.stable;
  summary.marginal = more.marginal;
  summary.residual = std::max(summary.residual, more.residual);
  summary.stable_rank = std::max(summary.stable_rank, more.stable_rank);
  summary.largest_radius = std::max(summary.largest_radius, more.largest_radius);
  summary.largest_rank = std::max(summary.largest_rank, more.largest_rank);
  summary.least_rank = first ? more.least_rank : std::min(summary.least_rank, more.least_rank);
  if (first || more.least_radius < summary.least_radius) {
    summary.least_radius = more.least_radius;
    summary.least_signs = more.least_signs;
  }
}

RankSummary examine(std::size_t n, std::size_t d, double w, const std::vector<int>& signs) {
  const Matrix<double> x = equilibrium(n, d, w, signs);
  const Stability linear = stability(w, x.view());
  RankSummary one;
  one.count = 1;
  one.residual = residual(w, x.view());
  one.least_rank = one.largest_rank = echelon_rank(x);
  one.stable_rank = stable_rank(x.view());
  one.stable = linear.stable();
  one.least_radius = one.largest_radius = linear.radius;
  one.least_signs = signs;
  one.marginal = linear.marginal;
  return one;
}

void enumerate(std::size_t n, std::size_t d, double w, RankSummary& summary, const Executor& executor) {
  constexpr std::uint64_t piece = 16;
  const std::uint64_t patterns = std::uint64_t{1} << summary.rank;
  // At m = w the second token's last entry is 0, and its sign none.
  const bool two_are_one = summary.rank > 1 && summary.second_entry_squared == 0;
  const PieceWork work{"equilibria", std::vector<double>((patterns + piece - 1) / piece, 1), true, {}, {}};
  const auto parts = run_pieces<RankSummary>(executor, work, [&](std::size_t index, const Executor&) {
    RankSummary part;
    for (std::uint64_t pattern = index * piece; pattern < std::min(patterns, (index + 1) * piece);
         ++pattern) {
      const std::vector<int> signs = signs_of(pattern, summary.rank);
      if (two_are_one && signs[1] < 0) continue;
      include(part, examine(n, d, w, signs));
    }
    return part;
  });
  summary.count = 0;
  for (const RankSummary& part : parts) include(summary, part);
  summary.enumerated = true;
}

}  // namespace

double second_entry_squared(std::size_t n, double w, std::size_t rank) {
  if (rank < 2) return 1;
  const double ratio = static_cast<double>(n - rank + 1) / w;
  return (1 - ratio) * (1 + ratio);
}

std::uint64_t equilibrium_count(std::size_t n, std::size_t d, double w, std::size_t rank) {
  require_equilibrium_weight(w);
  require_rank(n, d, rank);
  const double squared = second_entry_squared(n, w, rank);
  if (squared < 0) return 0;
  return std::uint64_t{1} << (squared == 0 ? rank - 1 : rank);
}

Matrix<double> equilibrium(std::size_t n, std::size_t d, double w, std::span<const int> signs) {
  const std::size_t rank = signs.size();
  require_equilibrium_weight(w);
  require_rank(n, d, rank);
  for (const int sign : signs) {
    if (sign != 1 && sign != -1) throw InputError(fmt::format("A sign is 1 or −1, not {}.", sign));
  }
  const std::size_t equal = n - rank + 1;
  const double second = second_entry_squared(n, w, rank);
  if (second < 0) {
    throw InputError(fmt::format(
        "{} tokens have no such equilibrium of rank {} at w = {:g}: the square of the last entry of "
        "token {}, 1 − {}²/w², would be {:.4g}; it needs w of at least {}.",
        n, rank, w, equal + 1, equal, second, equal));
  }
  Matrix<double> x(n, d);
  for (std::size_t i = 0; i < equal; ++i) x(i, d - 1) = signs[0];
  for (std::size_t i = equal; i < n; ++i) {
    const bool first = i == equal;
    const double factor = (first ? static_cast<double>(equal) : 1.0) / w;
    for (std::size_t j = 0; j + 1 < d; ++j) x(i, j) = x(i - 1, j + 1) == 0 ? 0 : -factor * x(i - 1, j + 1);
    x(i, d - 1) = signs[i - equal + 1] * std::sqrt(first ? second : (1 - 1 / w) * (1 + 1 / w));
  }
  return x;
}

double residual(double w, MatrixView<const double> x) {
  std::vector<double> values;
  for (std::size_t i = 0; i < x.rows; ++i) values.insert(values.end(), x[i].begin(), x[i].end());
  Matrix<double> next(x.rows, x.cols, std::move(values));
  equilibrium_layer(w, next.view());
  double largest = 0;
  for (std::size_t i = 0; i < x.rows; ++i) {
    for (std::size_t j = 0; j < x.cols; ++j) largest = std::max(largest, std::fabs(next(i, j) - x(i, j)));
  }
  return largest;
}

double stable_rank(MatrixView<const double> x) {
  const Eigen::MatrixXd matrix = copy(x);
  const Eigen::MatrixXd gram =
      x.rows < x.cols ? Eigen::MatrixXd(matrix * matrix.transpose()) : matrix.transpose() * matrix;
  return matrix.squaredNorm() / symmetric_eigenvalues(gram).maxCoeff();
}

double published_bound(std::size_t n, double w) {
  const auto size = static_cast<double>(n);
  return size / (size - (size - 1) / (w * w));
}

double own_bound(std::size_t n, double w, std::size_t rank) {
  if (rank < 2) return 1;
  const auto size = static_cast<double>(n), equal = static_cast<double>(n - rank + 1);
  return size / (size - (equal * equal + static_cast<double>(rank) - 2) / (w * w));
}

Matrix<double> layer_jacobian(double w, MatrixView<const double> x) {
  const Eigen::MatrixXd next = sums_times_w(w, copy(x));
  const Eigen::MatrixXd transposed = jordan(next.cols(), w).transpose();
  const auto d = next.cols();
  Matrix<double> jacobian(x.rows * x.cols, x.rows * x.cols);
  for (Eigen::Index i = 0; i < next.rows(); ++i) {
    const double length = next.row(i).norm();
    if (length <= 0x1p-52 * (1 + w) * static_cast<double>(i + 1)) {
      throw InputError(
          fmt::format("Row {} of the next layer is zero: there the layer has no derivative.", i));
    }
    const Eigen::VectorXd unit = next.row(i).transpose() / length;
    const Eigen::MatrixXd block =
        (Eigen::MatrixXd::Identity(d, d) - unit * unit.transpose()) * transposed / length;
    for (Eigen::Index j = 0; j <= i; ++j) {
      for (Eigen::Index a = 0; a < d; ++a) {
        for (Eigen::Index b = 0; b < d; ++b)
          jacobian(static_cast<std::size_t>(i * d + a), static_cast<std::size_t>(j * d + b)) = block(a, b);
      }
    }
  }
  return jacobian;
}

Stability stability(double w, MatrixView<const double> x) {
  const Eigen::MatrixXd tokens = copy(x), next = sums_times_w(w, tokens);
  Stability result;
  for (Eigen::Index i = 0; i < tokens.rows(); ++i) {
    const Eigen::VectorXd token = tokens.row(i).transpose();
    const double lambda = next.row(i).norm();
    const Eigen::Index zeros = leading_zeros(token), rest = token.size() - zeros;
    // The Jordan block of the leading entries, known without a solver, whose error would be ε^(1/zeros).
    const bool marginal = std::fabs(lambda - 1) < 1e-12;
    if (marginal) {
      result.marginal += static_cast<std::size_t>(zeros);
    } else if (zeros > 0) {
      result.radius = std::max(result.radius, 1 / lambda);
    }
    if (rest > 1) result.radius = std::max(result.radius, core_radius(w, token.tail(rest), lambda));
  }
  return result;
}

std::vector<RankSummary> equilibria_by_rank(std::size_t n, std::size_t d, double w,
                                            const Executor& executor) {
  require_equilibrium_weight(w);
  require_equilibrium_size(n, d);
  std::vector<RankSummary> all;
  for (std::size_t rank = 1; rank <= std::min(n, d); ++rank) {
    RankSummary summary;
    summary.rank = rank;
    summary.second_entry_squared = second_entry_squared(n, w, rank);
    summary.published_bound = published_bound(n, w);
    summary.own_bound = own_bound(n, w, rank);
    summary.count = equilibrium_count(n, d, w, rank);
    if (summary.count > 0 && rank <= EquilibriumLimits::most_enumerated_rank) {
      enumerate(n, d, w, summary, executor);
    } else {
      if (summary.count == 0) summary.own_bound = kNan;
      summary.residual = summary.stable_rank = summary.least_radius = summary.largest_radius = kNan;
    }
    all.push_back(std::move(summary));
  }
  return all;
}

}  // namespace normscope

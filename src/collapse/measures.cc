// Measures of one set of tokens. Inner products of all pairs are formed in strips and never held: memory
// stays O(n·d).
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/decompose.h"
#include "core/gemm.h"
#include "normscope/collapse.h"

namespace normscope {
namespace {

constexpr double kNear = 0.999;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double square(double value) {
  return value * value;
}

std::vector<double> mean_token(const Matrix<double>& x) {
  std::vector<double> mean(x.cols());
  for (std::size_t i = 0; i < x.rows(); ++i) {
    for (std::size_t j = 0; j < x.cols(); ++j) mean[j] += x(i, j);
  }
  for (double& value : mean) value /= static_cast<double>(x.rows());
  return mean;
}

struct Norms {
  double frobenius = 0;
  double one_infinity = 0;  // √(‖·‖₁‖·‖_∞): greatest sum of absolute values of a column times that of a row
};

// Of the tokens less `shift`.
Norms norms_of(const Matrix<double>& x, std::span<const double> shift) {
  constexpr std::size_t lanes = 4;  // partial sums of a row, which shorten the chain of additions
  std::vector<double> column(x.cols());
  double row_most = 0, squares = 0;
  for (std::size_t i = 0; i < x.rows(); ++i) {
    std::array<double, lanes> absolute{}, square_sum{};
    const auto row = x[i];
    const auto add = [&](std::size_t j, std::size_t lane) {
      const double value = row[j] - shift[j];
      column[j] += std::fabs(value);
      absolute[lane] += std::fabs(value);
      square_sum[lane] += square(value);
    };
    std::size_t j = 0;
    for (; j + lanes <= x.cols(); j += lanes) {
      for (std::size_t lane = 0; lane < lanes; ++lane) add(j + lane, lane);
    }
    for (std::size_t lane = 0; j < x.cols(); ++j, ++lane) add(j, lane);
    row_most = std::max(row_most, (absolute[0] + absolute[1]) + (absolute[2] + absolute[3]));
    squares += (square_sum[0] + square_sum[1]) + (square_sum[2] + square_sum[3]);
  }
  const double column_most = column.empty() ? 0 : *std::max_element(column.begin(), column.end());
  return {std::sqrt(squares), std::sqrt(row_most * column_most)};
}

// Tokens joined, directly or through others, by `join`.
class Clusters {
 public:
  explicit Clusters(std::size_t n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), std::size_t{0}); }
  void join(std::size_t a, std::size_t b) { parent_[root(a)] = root(b); }
  std::size_t count() {
    std::size_t roots = 0;
    for (std::size_t i = 0; i < parent_.size(); ++i) roots += root(i) == i;
    return roots;
  }

 private:
  std::size_t root(std::size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  std::vector<std::size_t> parent_;
};

// Calls body(i, products) for every token i with its inner products with tokens 0, …, i.
template <class Body>
void for_inner_products(const Matrix<double>& x, const Body& body) {
  constexpr std::size_t strip = 64;
  const std::size_t n = x.rows(), d = x.cols();
  Matrix<double> products(std::min(strip, n), n);
  for (std::size_t first = 0; first < n; first += strip) {
    const std::size_t count = std::min(strip, n - first), last = first + count;
    multiply<double>(1, MatrixView<const double>(x.data() + first * d, count, d), x.view().first_rows(last),
                     Transpose::yes, 0, MatrixView<double>(products.data(), count, last, n));
    for (std::size_t i = first; i < last; ++i) body(i, products[i - first].first(i + 1));
  }
}

// Mean |cos| of the differences of tokens 0 and 1, 2 and 3, …
double difference_cosine(const Matrix<double>& x) {
  const std::size_t count = x.rows() / 2;
  if (count < 2) return kNone;
  Matrix<double> differences(count, x.cols());
  for (std::size_t m = 0; m < count; ++m) {
    for (std::size_t j = 0; j < x.cols(); ++j) differences(m, j) = x(2 * m, j) - x(2 * m + 1, j);
  }
  std::vector<double> squares;  // of the differences so far
  double sum = 0;
  for_inner_products(differences, [&](std::size_t a, std::span<const double> products) {
    squares.push_back(products[a]);
    for (std::size_t b = 0; b < a; ++b) {
      const double length = std::sqrt(squares[a] * squares[b]);
      if (length > 0) sum += std::min(1.0, std::fabs(products[b]) / length);
    }
  });
  return sum / (0.5 * static_cast<double>(count) * static_cast<double>(count - 1));
}

void measure_cosines(const Matrix<double>& x, TokenMeasures& measures) {
  const std::size_t n = x.rows();
  if (n < 2) {
    measures.min_cosine = measures.mean_cosine = measures.mean_abs_cosine = measures.near_share = kNone;
    measures.clusters = 1;
    return;
  }
  std::vector<double> inverse;  // 1/norm of the tokens so far
  Clusters clusters(n);
  double least = 1, sum = 0, absolute = 0;
  std::size_t near = 0;
  for_inner_products(x, [&](std::size_t i, std::span<const double> products) {
    inverse.push_back(products[i] > 0 ? 1 / std::sqrt(products[i]) : 0);
    for (std::size_t j = 0; j < i; ++j) {
      const double cosine = std::clamp(products[j] * inverse[i] * inverse[j], -1.0, 1.0);
      least = std::min(least, cosine);
      sum += cosine;
      absolute += std::fabs(cosine);
      if (cosine > kNear) {
        ++near;
        clusters.join(i, j);
      }
    }
  });
  const double pairs = 0.5 * static_cast<double>(n) * static_cast<double>(n - 1);
  measures.min_cosine = least;
  measures.mean_cosine = sum / pairs;
  measures.mean_abs_cosine = absolute / pairs;
  measures.near_share = static_cast<double>(near) / pairs;
  measures.clusters = static_cast<double>(clusters.count());
}

// Falling. Of float tokens from their inner products in double, whose error (about 1e-8 σ₁) is below float's
// own; of double tokens by a decomposition of the tokens themselves.
template <class T>
std::vector<double> singular_values_of(const Matrix<double>& x) {
  const auto n = static_cast<Eigen::Index>(x.rows()), d = static_cast<Eigen::Index>(x.cols());
  const Eigen::Map<const RowMatrix> tokens(x.data(), n, d);
  Eigen::VectorXd values;
  if constexpr (std::is_same_v<T, float>) {
    RowMatrix products = RowMatrix::Zero(std::min(n, d), std::min(n, d));
    if (d < n) {
      products.noalias() = tokens.transpose() * tokens;
    } else {  // the solver reads what is on and below the diagonal
      for_inner_products(x, [&](std::size_t i, std::span<const double> row) {
        std::copy(row.begin(), row.end(), products.data() + i * x.rows());
      });
    }
    values = symmetric_eigenvalues(products).cwiseMax(0).cwiseSqrt();
  } else {
    // The triangular factor has the singular values of the tokens, and is small.
    values = singular_values(triangular_factor(n >= d ? RowMatrix(tokens) : RowMatrix(tokens.transpose())));
  }
  std::vector<double> falling(values.data(), values.data() + values.size());
  std::sort(falling.begin(), falling.end(), std::greater<>());
  return falling;
}

template <class T>
void measure_spectrum(std::span<const double> values, std::size_t n, std::size_t d, TokenMeasures& measures) {
  const double most = values.empty() ? 0 : values[0];
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  const double least =
      most * static_cast<double>(std::max(n, d)) * static_cast<double>(std::numeric_limits<T>::epsilon());
  measures.rank = static_cast<double>(
      std::count_if(values.begin(), values.end(), [&](double value) { return value > least; }));
  measures.rank_share = values.empty() ? 0 : measures.rank / static_cast<double>(values.size());
  measures.stable_rank = most > 0 ? square(measures.norm / most) : 0;
  double entropy = 0;
  for (const double value : values) {
    if (value > 0) entropy -= value / sum * std::log(value / sum);
  }
  measures.effective_rank = most > 0 ? std::exp(entropy) : 0;
  measures.least_singular = values.empty() ? 0 : values.back();
}

}  // namespace

std::span<const std::string_view, TokenMeasures::count> TokenMeasures::names() {
  static constexpr std::array<std::string_view, count> all = {"mu",
                                                              "norm",
                                                              "relative",
                                                              "residual",
                                                              "min_cosine",
                                                              "mean_cosine",
                                                              "mean_abs_cosine",
                                                              "difference_cosine",
                                                              "near_share",
                                                              "clusters",
                                                              "rank",
                                                              "rank_share",
                                                              "stable_rank",
                                                              "effective_rank",
                                                              "least_singular"};
  return all;
}

std::array<double, TokenMeasures::count> TokenMeasures::values() const {
  return {mu,
          norm,
          relative,
          residual,
          min_cosine,
          mean_cosine,
          mean_abs_cosine,
          difference_cosine,
          near_share,
          clusters,
          rank,
          rank_share,
          stable_rank,
          effective_rank,
          least_singular};
}

template <class T>
TokenMeasures measure_tokens(std::type_identity_t<MatrixView<const T>> tokens, Spectrum spectrum,
                             std::vector<double>* singular_values) {
  Matrix<double> x(tokens.rows, tokens.cols);
  for (std::size_t i = 0; i < tokens.rows; ++i) std::copy(tokens[i].begin(), tokens[i].end(), x[i].begin());
  const Norms whole = norms_of(x, std::vector<double>(x.cols()));
  const Norms centred = norms_of(x, mean_token(x));
  TokenMeasures measures;
  measures.mu = centred.frobenius;
  measures.norm = whole.frobenius;
  measures.relative = measures.norm > 0 ? std::min(1.0, measures.mu / measures.norm) : 0;
  measures.residual = whole.one_infinity > 0 ? centred.one_infinity / whole.one_infinity : 0;
  measure_cosines(x, measures);
  measures.difference_cosine = difference_cosine(x);
  if (spectrum == Spectrum::no) {
    measures.rank = measures.rank_share = measures.stable_rank = measures.effective_rank =
        measures.least_singular = kNone;
    return measures;
  }
  const std::vector<double> values = singular_values_of<T>(x);
  measure_spectrum<T>(values, x.rows(), x.cols(), measures);
  if (singular_values != nullptr) *singular_values = values;
  return measures;
}

template TokenMeasures measure_tokens<float>(MatrixView<const float>, Spectrum, std::vector<double>*);
template TokenMeasures measure_tokens<double>(MatrixView<const double>, Spectrum, std::vector<double>*);

}  // namespace normscope

// Measures of one set of tokens. Everything follows from the tokens and their inner products, which are
// formed once.
#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/gemm.h"
#include "normscope/collapse.h"

namespace normscope {
namespace {

constexpr double kNear = 0.999;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double square(double value) {
  return value * value;
}

// √(‖·‖₁‖·‖_∞): greatest sum of absolute values of a column times that of a row.
double one_infinity_norm(const Matrix<double>& x) {
  std::vector<double> column(x.cols());
  double row_most = 0;
  for (std::size_t i = 0; i < x.rows(); ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < x.cols(); ++j) {
      sum += std::fabs(x(i, j));
      column[j] += std::fabs(x(i, j));
    }
    row_most = std::max(row_most, sum);
  }
  const double column_most = column.empty() ? 0 : *std::max_element(column.begin(), column.end());
  return std::sqrt(row_most * column_most);
}

double frobenius(const Matrix<double>& x) {
  double sum = 0;
  for (const double value : x.values()) sum += square(value);
  return std::sqrt(sum);
}

Matrix<double> without_mean(const Matrix<double>& x) {
  std::vector<double> mean(x.cols());
  for (std::size_t i = 0; i < x.rows(); ++i) {
    for (std::size_t j = 0; j < x.cols(); ++j) mean[j] += x(i, j) / static_cast<double>(x.rows());
  }
  Matrix<double> centred(x.rows(), x.cols());
  for (std::size_t i = 0; i < x.rows(); ++i) {
    for (std::size_t j = 0; j < x.cols(); ++j) centred(i, j) = x(i, j) - mean[j];
  }
  return centred;
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

// Mean |cos| of the differences of tokens 0 and 1, 2 and 3, …, from inner products of the centred tokens
// (which lose no digits when all tokens are nearly equal).
double difference_cosine(const Matrix<double>& products) {
  const std::size_t count = products.rows() / 2;
  if (count < 2) return kNone;
  const auto dot = [&](std::size_t a, std::size_t b) {
    return products(2 * a, 2 * b) - products(2 * a, 2 * b + 1) - products(2 * a + 1, 2 * b) +
           products(2 * a + 1, 2 * b + 1);
  };
  double sum = 0;
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      const double length = std::sqrt(dot(a, a) * dot(b, b));
      if (length > 0) sum += std::min(1.0, std::fabs(dot(a, b)) / length);
    }
  }
  return sum / (0.5 * static_cast<double>(count) * static_cast<double>(count - 1));
}

void measure_cosines(const Matrix<double>& products, TokenMeasures& measures) {
  const std::size_t n = products.rows();
  if (n < 2) {
    measures.min_cosine = measures.mean_cosine = measures.mean_abs_cosine = measures.near_share = kNone;
    measures.clusters = 1;
    return;
  }
  std::vector<double> inverse(n);
  for (std::size_t i = 0; i < n; ++i) inverse[i] = products(i, i) > 0 ? 1 / std::sqrt(products(i, i)) : 0;
  Clusters clusters(n);
  double least = 1, sum = 0, absolute = 0;
  std::size_t near = 0;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double cosine = std::clamp(products(i, j) * inverse[i] * inverse[j], -1.0, 1.0);
      least = std::min(least, cosine);
      sum += cosine;
      absolute += std::fabs(cosine);
      if (cosine > kNear) {
        ++near;
        clusters.join(i, j);
      }
    }
  }
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
std::vector<double> singular_values_of(const Matrix<double>& x, const Matrix<double>& products) {
  using Values = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const auto n = static_cast<Eigen::Index>(x.rows()), d = static_cast<Eigen::Index>(x.cols());
  const Eigen::Map<const Values> tokens(x.data(), n, d);
  Eigen::VectorXd values;
  if constexpr (std::is_same_v<T, float>) {
    const Eigen::Map<const Values> outer(products.data(), n, n);
    Values inner;
    if (d < n) inner.noalias() = tokens.transpose() * tokens;
    const Eigen::SelfAdjointEigenSolver<Values> solver(d < n ? inner : Values(outer), Eigen::EigenvaluesOnly);
    values = solver.eigenvalues().cwiseMax(0).cwiseSqrt();
  } else {
    // The triangular factor has the singular values of the tokens, and is small.
    const Values tall = n >= d ? Values(tokens) : Values(tokens.transpose());
    const Eigen::HouseholderQR<Values> qr(tall);
    const Values triangle = qr.matrixQR().topRows(tall.cols()).template triangularView<Eigen::Upper>();
    values = Eigen::BDCSVD<Eigen::MatrixXd>(triangle).singularValues();
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

Matrix<double> inner_products(const Matrix<double>& x) {
  Matrix<double> products(x.rows(), x.rows());
  multiply<double>(1, x.view(), x.view(), Transpose::yes, 0, products.view());
  return products;
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
  const Matrix<double> centred = without_mean(x);
  TokenMeasures measures;
  measures.mu = frobenius(centred);
  measures.norm = frobenius(x);
  measures.relative = measures.norm > 0 ? std::min(1.0, measures.mu / measures.norm) : 0;
  const double whole = one_infinity_norm(x);
  measures.residual = whole > 0 ? one_infinity_norm(centred) / whole : 0;
  const Matrix<double> products = inner_products(x);
  measure_cosines(products, measures);
  measures.difference_cosine = difference_cosine(inner_products(centred));
  if (spectrum == Spectrum::no) {
    measures.rank = measures.rank_share = measures.stable_rank = measures.effective_rank =
        measures.least_singular = kNone;
    return measures;
  }
  const std::vector<double> values = singular_values_of<T>(x, products);
  measure_spectrum<T>(values, x.rows(), x.cols(), measures);
  if (singular_values != nullptr) *singular_values = values;
  return measures;
}

template TokenMeasures measure_tokens<float>(MatrixView<const float>, Spectrum, std::vector<double>*);
template TokenMeasures measure_tokens<double>(MatrixView<const double>, Spectrum, std::vector<double>*);

}  // namespace normscope
